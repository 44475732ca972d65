"""Has this error been seen before, and what was done about it?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from psycopg import sql

from memctl.api.evidence import events_of, evidence_of
from memctl.api.pages import projection_named, several, table_of
from memctl.api.places import Places, projects_of
from memctl.api.reader import Reader
from memctl.api.views import BugAnswer, BugHit, Evidence, each_shown, moment, shown
from memctl.domain.bounded import names
from memctl.domain.bug_match import MATCHES_ABOVE, Match, Shape, match, shape_of
from memctl.domain.memory import memory_id
from memctl.domain.signatures import SeenError, signature_of
from memctl.projections.bug_patterns import BugPattern

_OF_ONE_TYPE = 300
"""Patterns of an error's type that it is compared with, newest first."""


class Likeness(msgspec.Struct, frozen=True):
    """A pattern, and how the error asked about is like it."""

    pattern: BugPattern
    match: Match


def bugs(
    reader: Reader, text: str, places: Places, *, command: str = "", also: Iterable[str] = (), limit: int = 5
) -> BugAnswer:
    """Known errors like those that `text` shows, certain ones first. `also` names signatures worth a comparison."""
    errors = signature_of(text, command)
    found = like(reader, errors, places, command=command, also=also)[:limit]
    events = events_of(reader, [s.span for each in found for s in each.pattern.evidence])
    hits = [_hit(reader, each, evidence_of([s.span for s in each.pattern.evidence], events)) for each in found]
    told = [
        {"signature": e.signature, "error_types": list(e.error_types), "template": e.template, "message": e.message}
        for e in errors
    ]
    return BugAnswer(errors=told, hits=hits)


def known(reader: Reader, places: Places, *, limit: int = 5) -> BugAnswer:
    """Known kinds of errors without asking for one: those resolved most often first, then the newest."""
    p = projection_named("bug_patterns")
    found = reader.connection.execute(
        sql.SQL(
            "SELECT key FROM {} WHERE space_id = %s AND (%s::text[] IS NULL OR EXISTS ("
            "SELECT FROM jsonb_array_elements(row->'locations') AS l WHERE l->>0 = ANY(%s::text[])))"
            " ORDER BY (row->>'resolutions')::int DESC, (row->>'last_seen')::bigint DESC, key LIMIT %s"
        ).format(table_of(reader, p)),
        [reader.space_id, places.locations, places.locations, limit],
    ).fetchall()
    patterns: dict[str, BugPattern] = several(reader, p, [row[0] for row in found])
    ranked = [Likeness(patterns[row[0]], Match(1.0, ())) for row in found if row[0] in patterns]
    events = events_of(reader, [s.span for each in ranked for s in each.pattern.evidence])
    return BugAnswer(
        errors=[],
        hits=[_hit(reader, each, evidence_of([s.span for s in each.pattern.evidence], events)) for each in ranked],
    )


def like(
    reader: Reader, errors: Sequence[SeenError], places: Places, *, command: str = "", also: Iterable[str] = ()
) -> list[Likeness]:
    """Patterns that match one of the errors above `MATCHES_ABOVE`, best first: equal signatures, then by likeness,
    those with a solution before those without."""
    if not errors:
        return []
    p = projection_named("bug_patterns")
    types = sorted({t.rsplit(".", 1)[-1].lower() for e in errors for t in e.error_types} - _SAYS_NOTHING)
    known: dict[str, BugPattern] = several(
        reader, p, [*(e.signature for e in errors), *also, *(_of_types(reader, types) if types else ())]
    )
    shapes = [_asked(error, command) for error in errors]
    allowed = None if places.locations is None else set(places.locations)
    found = []
    for pattern in known.values():
        if allowed is not None and allowed.isdisjoint(names(pattern.locations)):
            continue
        best = max((match(shape, pattern.shape) for shape in shapes), key=lambda m: m.score)
        if best.score > MATCHES_ABOVE:
            found.append(Likeness(pattern, best))
    found.sort(key=lambda f: (-f.match.score, -f.pattern.resolutions, -f.pattern.last_seen, f.pattern.signature))
    return found


def _asked(error: SeenError, command: str) -> Shape:
    """What the error is compared by. A type that only says "error" is none: it must not speak against others."""
    shape = shape_of(error, command)
    told = tuple(t for t in shape.error_types if t.lower() not in _SAYS_NOTHING)
    return msgspec.structs.replace(shape, error_types=told)


_SAYS_NOTHING = frozenset(("error", "exit", ""))
"""Types that a rule gives to what it knows no type of."""


def _of_types(reader: Reader, types: Sequence[str]) -> list[str]:
    p = projection_named("bug_patterns")
    found = reader.connection.execute(
        sql.SQL(
            "SELECT key FROM {} WHERE space_id = %s AND EXISTS ("
            "SELECT FROM jsonb_array_elements_text(row->'error_types') AS t"
            " WHERE lower(regexp_replace(t, '^.*\\.', '')) = ANY(%s::text[]))"
            " ORDER BY (row->>'last_seen')::bigint DESC, key LIMIT %s"
        ).format(table_of(reader, p)),
        [reader.space_id, list(types), _OF_ONE_TYPE],
    )
    return [row[0] for row in found]


def _hit(reader: Reader, found: Likeness, evidence: list[Evidence]) -> BugHit:
    pattern = found.pattern
    solutions = pattern.solutions
    mean = pattern.mean_resolve_us
    return BugHit(
        id=memory_id("bug_pattern", pattern.signature),
        signature=pattern.signature,
        score=found.match.score,
        aspects=list(found.match.aspects),
        error_types=list(pattern.error_types),
        message=pattern.message or pattern.template,
        occurrences=pattern.occurrences,
        resolutions=pattern.resolutions,
        mean_resolve_s=None if mean is None else round(mean / 1e6, 1),
        first_seen=moment(pattern.first_seen),
        last_seen=moment(pattern.last_seen),
        projects=sorted({projects_of(reader).name_of(place) for place in names(pattern.locations)}),
        files=list(names(pattern.files)),
        solution=shown(solutions[0]) if solutions else None,
        solutions=each_shown(solutions[:5]),
        evidence=evidence,
    )
