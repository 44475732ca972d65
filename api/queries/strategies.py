"""Strategies of a project: what earlier work teaches for work to come."""

from typing import Annotated

import msgspec

from memctl.api.reading import models
from memctl.api.reading.feedback import standing
from memctl.api.reading.pages import Keyed, Where, page
from memctl.api.reading.places import Places, projects_of
from memctl.api.reading.questions import Cursor, Limit, question
from memctl.api.reading.reader import Reader
from memctl.api.reading.records import StrategyItem
from memctl.api.reading.views import Page, iso, moment
from memctl.domain.knowledge.memory import memory_id
from memctl.domain.knowledge.orders import might_be_obeyed
from memctl.domain.projects.identity import Projects
from memctl.domain.support.bounded import names
from memctl.domain.support.provenance import Provenance, words_of
from memctl.domain.support.structs import carried_over
from memctl.projections.strategies import Strategy

MOST_PAGES = 20
"""Pages of rows that are read for a page of strategies, of which some are rejected, or the same in another clone."""


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
    `acts` installs, downloads, orders for all time or speaks in the user's name: it is shown to who asks alone.

    `domain` is commands, code style, version control, verification, or what a model called it.
    """
    p = models.strategies
    conditions = Where(p).equal("enough", not waiting).within(places).equal("domain", domain or None)
    known = projects_of(reader)
    shown: dict[tuple[str | None, str], StrategyItem] = {}
    for _ in range(MOST_PAGES):
        missing = limit - len(shown)
        rows, cursor = page(reader, p, "last_seen", conditions, limit=missing, cursor=cursor)
        for keyed in standing(reader, "strategy", rows):
            _add(shown, strategy_item(keyed, known))
        if cursor is None or len(shown) >= limit:
            break
    return Page(list(shown.values()), cursor, places.scope)


def _add(shown: dict[tuple[str | None, str], StrategyItem], item: StrategyItem) -> None:
    """Show a strategy, together with the same of another clone or worktree of the project."""
    if (same := shown.get((item.project, item.title))) is not None:
        item = msgspec.structs.replace(
            same,
            sessions=list(dict.fromkeys((*same.sessions, *item.sessions))),
            confidence=max(same.confidence, item.confidence),
        )
    shown[item.project, item.title] = item


def acts(row: Strategy) -> bool:
    """Whether a strategy might be obeyed by an agent that did not ask for it."""
    return might_be_obeyed(f"{row.title}\n{row.description}\n{row.content}")


def strategy_item(keyed: Keyed[Strategy], known: Projects) -> StrategyItem:
    """A strategy as it is shown. `memory_id` is what is rated, pinned or rejected."""
    row: Strategy = keyed.row
    return carried_over(
        row,
        StrategyItem,
        id=keyed.key,
        memory_id=memory_id("strategy", keyed.key),
        origin=words_of(Provenance.AGENT if row.made_by else Provenance.TOOL),
        acts=acts(row),
        project=known.name_of(row.location) if row.location else None,
        sessions=list(names(row.sessions)),
        sources=len(row.sources),
        first_seen=iso(moment(row.first_seen)),
        last_seen=iso(moment(row.last_seen)),
    )
