"""What was learnt of code: rules of replacement, and transformations that recur."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta
from psycopg import sql

from memctl.api.reading import models
from memctl.api.reading.feedback import standing
from memctl.api.reading.learnt import (
    Applicability,
    CodeExample,
    Effects,
    PatternItem,
    PatternStats,
    RuleItem,
    RuleVerdict,
    Transformation,
)
from memctl.api.reading.pages import Condition, Keyed, page
from memctl.api.reading.places import Places, projects_of
from memctl.api.reading.questions import Limit, question
from memctl.api.reading.reader import Reader
from memctl.api.reading.views import Page, iso, moment
from memctl.domain.code.edits import VARIANTS, Category
from memctl.domain.code.rules import RECURS, family_of
from memctl.domain.projects.identity import Projects
from memctl.domain.support.bounded import names
from memctl.projections.code_patterns import Application, CodePattern
from memctl.projections.code_rules import CodeRule, Sighting

Language = Annotated[str | None, Meta(max_length=40, examples=["go"])]

_LOOKED_AT = 200
"""Rows of a page; what recurs is rare, so a few pages have all of it."""

_EXAMPLES = 3

_ORDER = {"trusted": 0, "active": 1, "weak": 2, "seen": 3, "retired": 4}


def met_in(places: Places) -> list[Condition]:
    """Rows that were met in one of the project's locations, by their `locations`."""
    if places.locations is None:
        return []
    among = "EXISTS (SELECT FROM jsonb_array_elements(row->'locations') AS l WHERE l->>0 = ANY(%s::text[]))"
    return [Condition(sql.SQL(among), (list(places.locations),))]


@question("/rules", "code")
def rules(
    reader: Reader,
    places: Places,
    *,
    language: Language = None,
    state: Literal["seen", "weak", "active", "trusted", "retired"] | None = None,
    limit: Limit = 50,
) -> Page[RuleItem]:
    """Rules of replacement, the surest first. Those seen in one file only, and retired ones, only if `state` asks."""
    p = models.code_rules
    conditions = met_in(places)
    if state != "seen":
        conditions.append(
            Condition(
                sql.SQL(
                    "(jsonb_array_length(row->'files') >= %s OR jsonb_array_length(row->'sessions') >= %s"
                    " OR row->'retired' <> 'null'::jsonb)"
                ),
                (RECURS, RECURS),
            )
        )
    known = projects_of(reader)
    found: list[RuleItem] = []
    cursor: str | None = None
    while len(found) < limit:
        rows, cursor = page(reader, p, "last_seen", conditions, limit=_LOOKED_AT, cursor=cursor)
        for keyed in standing(reader, "code_rule", rows):
            item = rule_item(keyed, known)
            wanted = (state,) if state else ("trusted", "active", "weak")
            spoken = language is None or family_of(language) in map(family_of, item.languages)
            if item.state in wanted and spoken:
                found.append(item)
        if cursor is None:
            break
    found.sort(key=lambda item: (_ORDER[item.state], -item.confidence, -item.observations, item.id))
    return Page(found[:limit], None, places.scope)


def rule_item(keyed: Keyed[CodeRule], known: Projects) -> RuleItem:
    """A rule as it is shown: what gives way to what, how sure that is, and where it was seen."""
    rule: CodeRule = keyed.row
    before, after = rule.texts_ahead
    outcomes = rule.outcomes
    return RuleItem(
        id=keyed.key,
        before=before,
        after=after,
        kind=rule.kind,
        regex=rule.regex if rule.kind == "regex" else None,
        category=rule.category,
        languages=list(rule.languages),
        state=rule.state,
        confidence=rule.confidence,
        observations=rule.observations,
        places=sum(s.places for s in rule.sightings if s.forward == rule.forward),
        successes=sum(outcomes),
        failures=len(outcomes) - sum(outcomes),
        asked_by_user=any(s.asked and s.forward == rule.forward for s in rule.sightings),
        files=list(names(rule.files)),
        sessions=list(names(rule.sessions)),
        projects=sorted({known.name_of(place) for place in names(rule.locations) if place}),
        first_seen=_iso(rule.first_seen),
        last_seen=_iso(rule.last_seen),
        examples=[_example(s) for s in rule.sightings if s.forward == rule.forward][:_EXAMPLES],
        verdicts=[RuleVerdict(at=_iso(v.at), success=v.success, why=v.why, by=v.by) for v in rule.verdicts],
        retired=rule.retired is not None and not rule.retired.back,
        reason=rule.retired.reason if rule.retired is not None else "",
        merged_into=rule.retired.into if rule.retired is not None else "",
    )


@question("/patterns", "code")
def patterns(
    reader: Reader,
    places: Places,
    *,
    category: Category | None = None,
    language: Language = None,
    limit: Limit = 50,
) -> Page[PatternItem]:
    """Transformations that recur, those applied most often first, put together over a project's locations."""
    p = models.code_patterns
    conditions = []
    if places.locations is not None:
        conditions.append(Condition(sql.SQL("row->>'location' = ANY(%s::text[])"), (list(places.locations),)))
    known = projects_of(reader)
    groups: dict[tuple[str, str, str], list[Keyed[CodePattern]]] = defaultdict(list)
    cursor: str | None = None
    while True:
        rows, cursor = page(reader, p, "last_seen", conditions, limit=_LOOKED_AT, cursor=cursor)
        for keyed in rows:
            row: CodePattern = keyed.row
            if row.variant and (language is None or family_of(language) == family_of(row.language)):
                groups[known.name_of(row.location), family_of(row.language), row.variant].append(keyed)
        if cursor is None:
            break
    found = [item for (project, _, _), group in groups.items() if (item := pattern_item(group, project)) is not None]
    found = [item for item in found if category is None or item.category == category]
    found.sort(key=lambda item: (-item.stats.application_count, item.id))
    return Page(found[:limit], None, places.scope)


def pattern_item(group: Sequence[Keyed[CodePattern]], project: str) -> PatternItem | None:
    """The rows that several locations of a project keep of a pattern, merged into one pattern.

    None where it does not recur, or was retired. What is expected of it (`effects`) is the category's, not measured;
    `avg_improvement` is the mean share of characters that the shown lines lost.
    """
    rows: list[CodePattern] = [k.row for k in group if k.row.retired is None or k.row.retired.back]
    files = sorted({path for row in rows for path in names(row.files)})
    sessions = sorted({stream for row in rows for stream in names(row.sessions)})
    if not rows or max(len(files), len(sessions)) < RECURS or rows[0].variant not in VARIANTS:
        return None
    variant = VARIANTS[rows[0].variant]
    examples = sorted((e for row in rows for e in row.examples), key=lambda e: (e.at, e.id), reverse=True)
    applied = sum(row.applications for row in rows)
    undone = sum(len(row.undone) for row in rows)
    return PatternItem(
        id=min(k.key for k in group),
        name=rows[0].variant,
        category=variant.category,
        project=project,
        transformation=Transformation(
            description=variant.description,
            before_template=examples[0].before,
            after_template=examples[0].after,
        ),
        applicability=Applicability(languages=sorted({row.language for row in rows})),
        effects=Effects(
            readability=variant.readability,
            performance=variant.performance,
            maintainability=variant.maintainability,
            testability=variant.testability,
        ),
        stats=PatternStats(
            application_count=applied,
            success_rate=round(max(applied - undone, 0) / max(applied, 1), 4),
            avg_improvement=_shorter(examples),
        ),
        files=files,
        sessions=sessions,
        first_seen=_iso(min(row.first_seen for row in rows)),
        last_seen=_iso(max(row.last_seen for row in rows)),
        examples=[_example(e) for e in examples[:_EXAMPLES]],
    )


def _shorter(examples: Sequence[Application]) -> float:
    shares = [(len(e.before) - len(e.after)) / max(len(e.before), 1) for e in examples]
    return round(sum(shares) / len(shares), 4) + 0.0 if shares else 0.0


def _example(of: Sighting | Application) -> CodeExample:
    before, after = (of.before, of.after) if isinstance(of, Application) else (of.line_before, of.line_after)
    event = str(of.span.event) if of.span is not None else None
    return CodeExample(before=before, after=after, path=of.path, session=of.stream, at=_iso(of.at), event_id=event)


def _iso(at: int) -> str | None:
    return iso(moment(at)) if at else None
