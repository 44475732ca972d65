"""Strategies of a project: what earlier work teaches for work to come."""

from __future__ import annotations

from typing import Annotated

import msgspec
from psycopg import sql

from memctl.api.reading import models
from memctl.api.reading.feedback import standing
from memctl.api.reading.learnt import StrategyItem
from memctl.api.reading.pages import Condition, Keyed, page
from memctl.api.reading.places import Places, projects_of
from memctl.api.reading.questions import Cursor, Limit, question
from memctl.api.reading.reader import Reader
from memctl.api.reading.views import Page, iso, moment
from memctl.domain.knowledge.acting import commands_somebody
from memctl.domain.knowledge.memory import memory_id
from memctl.domain.projects.identity import Projects
from memctl.domain.support.bounded import names
from memctl.domain.support.provenance import Provenance, words_of
from memctl.projections.strategies import Strategy


@question("/strategies", "code")
def strategies(
    reader: Reader,
    places: Places,
    *,
    domain: Annotated[str | None, msgspec.Meta(max_length=40, examples=["commands"])] = None,
    waiting: bool = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[StrategyItem]:
    """Lessons that enough sessions have taught, the newest first; `waiting`: those that lack sessions instead. One that
    might be obeyed, because it installs, downloads or speaks in the user's name, is left out.

    `domain` is commands, code style, version control, verification, or what a model called it.
    """
    conditions = [Condition(sql.SQL("row->'enough' = %s::jsonb"), ("false" if waiting else "true",))]
    if places.locations is not None:
        conditions.append(Condition(sql.SQL("row->>'location' = ANY(%s::text[])"), (list(places.locations),)))
    if domain:
        conditions.append(Condition(sql.SQL("row->>'domain' = %s"), (domain,)))
    rows, after = page(reader, models.strategies, "last_seen", conditions, limit=limit, cursor=cursor)
    known = projects_of(reader)
    shown: dict[tuple[str | None, str], StrategyItem] = {}
    for keyed in standing(reader, "strategy", rows):
        if commands_somebody(f"{keyed.row.title}\n{keyed.row.description}\n{keyed.row.content}"):
            continue
        item = strategy_item(keyed, known)
        if (same := shown.get((item.project, item.title))) is not None:  # of another clone or worktree of the project
            item = msgspec.structs.replace(
                same,
                sessions=list(dict.fromkeys((*same.sessions, *item.sessions))),
                confidence=max(same.confidence, item.confidence),
            )
        shown[item.project, item.title] = item
    return Page(list(shown.values()), after, places.scope)


def strategy_item(keyed: Keyed[Strategy], known: Projects) -> StrategyItem:
    """A strategy as it is shown. `memory_id` is what is rated, pinned or rejected."""
    row: Strategy = keyed.row
    return StrategyItem(
        id=keyed.key,
        memory_id=memory_id("strategy", keyed.key),
        title=row.title,
        description=row.description,
        content=row.content,
        domain=row.domain,
        from_failure=row.from_failure,
        confidence=row.confidence,
        made_by=row.made_by,
        origin=words_of(Provenance.AGENT if row.made_by else Provenance.TOOL),
        project=known.name_of(row.location) if row.location else None,
        sessions=list(names(row.sessions)),
        sources=len(row.sources),
        first_seen=iso(moment(row.first_seen)),
        last_seen=iso(moment(row.last_seen)),
    )
