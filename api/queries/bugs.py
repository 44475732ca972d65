"""Has this error been seen before, and what was done about it?"""

from collections.abc import Iterable, Mapping, Sequence
from typing import LiteralString, NamedTuple

import msgspec
from psycopg import sql

from memctl.api.reading import models
from memctl.api.reading.evidence import events_of, evidence_of
from memctl.api.reading.feedback import standing
from memctl.api.reading.met_in_places import met_in_places
from memctl.api.reading.pages import Condition, Keyed, Where, field_of, select, several
from memctl.api.reading.places import Places, projects_of
from memctl.api.reading.reader import Reader
from memctl.api.reading.views import (
    BugAnswer,
    BugHit,
    Evidence,
    RecognisedError,
    RelatedBug,
    ShownSolution,
    moment,
    shown_as,
)
from memctl.domain.failures.matching import DESCRIPTION, MATCHES_ABOVE, Match, Shape, match, shape_of
from memctl.domain.failures.signatures import SeenError, signature_of
from memctl.domain.failures.solutions import lesson_of
from memctl.domain.knowledge.memory import memory_id
from memctl.domain.support.bounded import names
from memctl.domain.support.structs import carried_over
from memctl.projections.bug_patterns import BugPattern

_OF_ONE_TYPE = 300
"""Patterns of an error's type that it is compared with, newest first."""


HELD = 0.5
"""Least success rate of a solution that is shown as the lesson: one that never failed has more."""


class Likeness(msgspec.Struct, frozen=True):
    """A pattern, and how the error asked about is like it."""

    pattern: BugPattern
    match: Match
    message: str = ""
    """Of the error asked about, where it is of this kind."""


def bugs(
    reader: Reader,
    text: str,
    places: Places,
    *,
    command: str = "",
    chances: Mapping[str, float] | None = None,
    limit: int = 5,
) -> BugAnswer:
    """Known errors like those that `text` shows, certain ones first.

    If it shows no known error, those that it describes are returned.
    `chances` has the signatures that search finds for its words and meaning, each with the chance that it fits.
    """
    errors = signature_of(text, command)
    chances = chances or {}
    found = like(reader, errors, places, command=command, also=chances) or _patterns_of(reader, chances, places)
    found = found[:limit]
    return BugAnswer(
        errors=[RecognisedError(e.signature, list(e.error_types), e.template, e.message) for e in errors],
        hits=_hits(reader, _in_words_of(reader, found, places)),
        scope=places.scope,
    )


class BugFilter(NamedTuple):
    """Which kinds of errors are asked for; None, or no text, asks for nothing. Times in microseconds, of when one was
    last seen. `open`: those never resolved, or the others."""

    text: str = ""
    open: bool | None = None
    since: int | None = None
    before: int | None = None

    def conditions(self, places: Places) -> Where:
        p = models.bug_patterns
        found = Where(p).met_in(places).holding("message", self.text).between("last_seen", self.since, self.before)
        if self.open is None:
            return found
        return found.also(Condition(sql.SQL("({} = 0) = %s").format(field_of(p, "resolutions")), (self.open,)))


ANY = BugFilter()


def known(
    reader: Reader, places: Places, wanted: BugFilter = ANY, *, order: str = "resolutions", limit: int = 5,
    skip: int = 0, whole: bool = True,
) -> BugAnswer:  # fmt: skip
    """Known kinds of errors without asking for one: by a field of their rows that is a whole number, highest first,
    then the newest. The first `skip` are left out. Without `whole` neither evidence nor related errors are read."""
    found = known_patterns(reader, places, wanted, order=order, limit=limit, skip=skip)
    likenesses = [Likeness(each, Match(1.0, ())) for each in found]
    hits = _hits(reader, likenesses) if whole else [_hit(reader, each, [], []) for each in likenesses]
    return BugAnswer(errors=[], hits=hits, scope=places.scope)


def known_patterns(
    reader: Reader, places: Places, wanted: BugFilter = ANY, *, order: str = "resolutions", limit: int = 5,
    skip: int = 0,
) -> list[BugPattern]:  # fmt: skip
    """The same as rows, each as these places showed it."""
    p = models.bug_patterns
    found = select(
        reader, p, "SELECT key FROM {rows} ORDER BY {by} DESC, {newest} DESC, key LIMIT %s OFFSET %s", limit, skip,
        conditions=wanted.conditions(places), by=field_of(p, order), newest=field_of(p, "last_seen"),
    )  # fmt: skip
    patterns = _patterns(reader, [row[0] for row in found])
    return met_in_places(reader, [patterns[row[0]] for row in found if row[0] in patterns], places)


def projects_with(reader: Reader, pattern: BugPattern) -> list[str]:
    """The names of the projects that showed it."""
    return sorted({projects_of(reader).name_of(place) for place in names(pattern.locations)})


def _in_words_of(reader: Reader, found: Sequence[Likeness], places: Places) -> list[Likeness]:
    """The same, each pattern as these places showed it."""
    patterns = met_in_places(reader, [each.pattern for each in found], places)
    return [Likeness(pattern, each.match, each.message) for pattern, each in zip(patterns, found, strict=True)]


def of_signature(reader: Reader, signature: str) -> BugHit | None:
    """The known kind of error of that signature; None where there is none, or where a person rejected it."""
    pattern = _patterns(reader, [signature]).get(signature)
    return None if pattern is None else _hits(reader, [Likeness(pattern, Match(1.0, ()))])[0]


def like(
    reader: Reader, errors: Sequence[SeenError], places: Places, *, command: str = "", also: Iterable[str] = ()
) -> list[Likeness]:
    """Patterns that match one of the errors above `MATCHES_ABOVE`, best first: equal signatures, then by likeness,
    those with a solution before those without."""
    if not errors:
        return []
    types = sorted({t.rsplit(".", 1)[-1].lower() for e in errors for t in e.error_types} - _SAYS_NOTHING)
    wanted = [*(e.signature for e in errors), *also, *(_of_types(reader, types, places) if types else ())]
    known = _patterns(reader, wanted)
    return ranked(errors, _within(known.values(), places), command)


def ranked(errors: Sequence[SeenError], patterns: Iterable[BugPattern], command: str = "") -> list[Likeness]:
    """Those of the patterns that match one of the errors above `MATCHES_ABOVE`, best first."""
    shapes = [_asked(error, command) for error in errors]
    asked = {error.signature: error.message for error in errors}
    found = []
    for pattern in patterns:
        best = max((match(shape, pattern.shape) for shape in shapes), key=lambda m: m.score)
        if best.score > MATCHES_ABOVE:
            found.append(Likeness(pattern, best, asked.get(pattern.signature, "")))
    return sorted(found, key=_best_first)


def _patterns_of(reader: Reader, chances: Mapping[str, float], places: Places) -> list[Likeness]:
    """Patterns that a text describes in its own words."""
    sure = {signature: chance for signature, chance in chances.items() if chance > MATCHES_ABOVE}
    patterns = _patterns(reader, list(sure))
    found = [
        Likeness(each, Match(round(sure[each.signature], 4), (DESCRIPTION,)))
        for each in _within(patterns.values(), places)
    ]
    return sorted(found, key=_best_first)


def _patterns(reader: Reader, signatures: Sequence[str]) -> dict[str, BugPattern]:
    """Patterns by signature, without those that a person rejected."""
    p = models.bug_patterns
    rows = [Keyed(key, row) for key, row in several(reader, p, signatures).items()]
    return {keyed.key: keyed.row for keyed in standing(reader, "bug_pattern", rows)}


def _within(patterns: Iterable[BugPattern], places: Places) -> list[BugPattern]:
    allowed = None if places.locations is None else set(places.locations)
    return [each for each in patterns if allowed is None or not allowed.isdisjoint(names(each.locations))]


def _best_first(found: Likeness) -> tuple[float, int, int, str]:
    return -found.match.score, -found.pattern.resolutions, -found.pattern.last_seen, found.pattern.signature


def _asked(error: SeenError, command: str) -> Shape:
    """What the error is compared by. A type that only says "error" is none: it must not speak against others."""
    shape = shape_of(error, command)
    types = tuple(t for t in shape.error_types if t.lower() not in _SAYS_NOTHING)
    return msgspec.structs.replace(shape, error_types=types)


_SAYS_NOTHING = frozenset(("error", "exit", ""))
"""Types that a rule gives to what it knows no type of."""


def _of_types(reader: Reader, types: Sequence[str], places: Places) -> list[str]:
    p = models.bug_patterns
    alike = Condition(
        sql.SQL(
            "EXISTS (SELECT FROM jsonb_array_elements_text(row->'error_types') AS t"
            " WHERE lower(regexp_replace(t, '^.*\\.', '')) = ANY(%s::text[]))"
        ),
        (list(types),),
    )
    query: LiteralString = "SELECT key FROM {rows} ORDER BY (row->>'last_seen')::bigint DESC, key LIMIT %s"
    return [key for (key,) in select(reader, p, query, _OF_ONE_TYPE, places=places, conditions=[alike])]


def _hits(reader: Reader, found: Sequence[Likeness]) -> list[BugHit]:
    events = events_of(reader, [s.span for each in found for s in each.pattern.evidence])
    wanted = [name for each in found for name in names(each.pattern.related)]
    related: dict[str, BugPattern] = several(reader, models.bug_patterns, wanted)
    return [
        _hit(
            reader,
            each,
            evidence_of([s.span for s in each.pattern.evidence], events),
            [related[name] for name in names(each.pattern.related) if name in related],
        )
        for each in found
    ]


def _hit(reader: Reader, found: Likeness, evidence: list[Evidence], related: Sequence[BugPattern]) -> BugHit:
    pattern = found.pattern
    solutions = pattern.solutions_for(found.message or pattern.message)
    mean = pattern.mean_resolve_us
    return carried_over(
        pattern,
        BugHit,
        id=memory_id("bug_pattern", pattern.signature),
        score=found.match.score,
        class_=found.match.class_,
        aspects=list(found.match.aspects),
        error_types=list(pattern.error_types),
        message=pattern.message or pattern.template,
        stack=list(pattern.frames),
        code=list(names(pattern.code)),
        file_types=list(names(pattern.file_types)),
        frameworks=list(names(pattern.frameworks)),
        causes=pattern.own_causes,
        mean_resolve_s=None if mean is None else round(mean / 1e6, 1),
        first_seen=moment(pattern.first_seen),
        last_seen=moment(pattern.last_seen),
        projects=projects_with(reader, pattern),
        files=list(names(pattern.files)),
        solution=shown_as(solutions[0], ShownSolution) if solutions else None,
        lesson=lesson_of(solutions[0]) if solutions and solutions[0].success_rate >= HELD else "",
        solutions=[shown_as(each, ShownSolution) for each in solutions[:5]],
        related=[
            RelatedBug(each.signature, list(each.error_types), each.message or each.template, each.resolutions)
            for each in related
        ],
        evidence=evidence,
    )
