"""Rules of replacement in code: what gave way to what, how often, and how sure that is."""

from __future__ import annotations

from typing import assert_never

import msgspec

from memctl.domain.code.edits import Replacement, filled, transformation_of
from memctl.domain.code.rules import (
    ChangeUndone,
    PatternRetired,
    RuleKind,
    RuleReinforced,
    RuleState,
    confidence,
    rule_id,
    state_of,
)
from memctl.domain.events.facts import CodeReplaced, Span
from memctl.domain.support import patterns
from memctl.domain.support.bounded import LOCATIONS, Seen, clipped, newest, seen
from memctl.projections.kernel import Recorded, projection

_VARIABLE = patterns.compile(r"\\\$(\d)")


class Sighting(msgspec.Struct, frozen=True, omit_defaults=True):
    """A replacement that was made. `forward` gives its direction: whether the lower text gave way to the higher."""

    at: int
    id: str
    forward: bool
    path: str
    stream: str
    language: str
    variables: tuple[str, ...] = ()
    line_before: str = ""
    line_after: str = ""
    places: int = 1
    asked: bool = False
    span: Span | None = None


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """What somebody said of a rule, and when."""

    at: int
    id: str
    success: bool
    why: str = ""
    by: str = ""


class Retirement(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last word on whether a rule or pattern is shown."""

    at: int
    id: str
    back: bool = False
    reason: str = ""
    into: str = ""
    by: str = ""


def retirement(before: Retirement | None, at: int, id: str, payload: PatternRetired) -> Retirement:
    """The last word after this one, in whatever order they come; cut to what a row keeps."""
    if before is not None and (at, id) < (before.at, before.id):
        return before
    return Retirement(
        at, id, payload.back, clipped(payload.reason, 300), clipped(payload.into, 60), clipped(payload.by, 40)
    )


class CodeRule(msgspec.Struct, frozen=True, kw_only=True):
    """One replacement, in both directions. Times in microseconds.

    `texts` are the two fragments in their order as texts; `sightings` (the newest 32) show which gave way to
    which, and `verdicts` (the newest 32) show how it held. `files`, `sessions` and `locations` are the newest 16.
    """

    texts: tuple[str, str] = ("", "")
    observations: int = 0
    first_seen: int = 0
    last_seen: int = 0
    sightings: tuple[Sighting, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    retired: Retirement | None = None
    files: tuple[Seen, ...] = ()
    sessions: tuple[Seen, ...] = ()
    sources: tuple[Seen, ...] = ()
    """The sessions that count: a copy, fork or resumed one is none of its own."""
    locations: tuple[Seen, ...] = ()

    @property
    def forward(self) -> bool:
        """The direction that was taken last by a user's wish, else more often, else last."""
        asked = [s for s in self.sightings if s.asked]
        if asked:
            return asked[0].forward
        ahead = sum(s.forward for s in self.sightings)
        if ahead * 2 != len(self.sightings):
            return ahead * 2 > len(self.sightings)
        return bool(self.sightings) and self.sightings[0].forward

    @property
    def kind(self) -> RuleKind:
        """Literal while it was seen with the same names only, else regex."""
        return "regex" if len({s.variables for s in self.sightings}) > 1 else "literal"

    @property
    def texts_ahead(self) -> tuple[str, str]:
        """Before and after, in the direction that holds."""
        low, high = self.texts
        before, after = (low, high) if self.forward else (high, low)
        if self.kind == "literal" and self.sightings:
            return filled(before, self.sightings[0].variables), filled(after, self.sightings[0].variables)
        return before, after

    @property
    def regex(self) -> str:
        """What finds places for it: the fragment before, each `$n` a name."""
        before, _ = self.texts_ahead
        return _VARIABLE.sub(lambda found: rf"(?P<v{found[1]}>[A-Za-z_]\w*)", patterns.escape(before), count=4)

    @property
    def outcomes(self) -> tuple[bool, ...]:
        """What speaks for and against it, oldest first."""
        outcomes = [(s.at, s.id, s.forward == self.forward) for s in self.sightings]
        outcomes += [(v.at, v.id, v.success) for v in self.verdicts]
        return tuple(success for _, _, success in sorted(outcomes)[-32:])

    @property
    def confidence(self) -> float:
        return confidence(self.outcomes)

    @property
    def recurs(self) -> int:
        """Files or sessions it was seen in, whichever are more."""
        return max(len(self.files), len(self.sources))

    @property
    def state(self) -> RuleState:
        retired = self.retired is not None and not self.retired.back
        return state_of(self.confidence, self.recurs, retired=retired)

    @property
    def category(self) -> str:
        """The transformation it is, or `replacement`."""
        if not self.sightings:
            return "replacement"
        newest_one = self.sightings[0]
        before, after = self.texts if self.forward else self.texts[::-1]
        made = transformation_of(Replacement(before, after, newest_one.variables, ("", "")), newest_one.language)
        return made.category if made is not None else "replacement"

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(sorted({s.language for s in self.sightings}))


Input = CodeReplaced | Recorded[RuleReinforced] | Recorded[PatternRetired] | Recorded[ChangeUndone]


def _keys(item: Input) -> tuple[str, ...]:
    if isinstance(item, CodeReplaced):
        return (rule_id(item.language, item.before, item.after),)
    match item.payload:
        case RuleReinforced() as payload:
            return (clipped(payload.rule, 64),)
        case PatternRetired() as payload:
            return (clipped(payload.pattern, 64),) if payload.kind == "rule" else ()
        case ChangeUndone() as payload:
            return tuple(clipped(rule, 64) for rule in payload.rules[:20])
        case _:
            assert_never(item.payload)


@projection(row=CodeRule, key=_keys, indexes=(("last_seen",),))
def code_rules(
    row: CodeRule | None,
    item: CodeReplaced | Recorded[RuleReinforced] | Recorded[PatternRetired] | Recorded[ChangeUndone],
) -> CodeRule | None:
    """Replacements in code that recur, with how sure they are."""
    row = row or CodeRule()
    if isinstance(item, CodeReplaced):
        return _sighted(row, item)
    at, id = int(item.event.occurred_at), str(item.event.delivery_id)
    match item.payload:
        case PatternRetired() as payload:
            return msgspec.structs.replace(row, retired=retirement(row.retired, at, id, payload))
        case RuleReinforced() as payload:
            verdict = Verdict(at, id, payload.success, clipped(payload.why, 100), clipped(payload.by, 20))
        case ChangeUndone() as payload:
            verdict = Verdict(at, id, False, clipped(payload.why or "undone", 100), clipped(payload.by, 20))
        case _:
            assert_never(item.payload)
    return msgspec.structs.replace(row, verdicts=newest(row.verdicts, verdict, 32))


def _sighted(row: CodeRule, fact: CodeReplaced) -> CodeRule:
    at = int(fact.occurred_at)
    low, high = sorted((fact.before, fact.after))
    sighting = Sighting(
        at=at,
        id=str(fact.id),
        forward=fact.before == low,
        path=clipped(fact.path, 120),
        stream=clipped(fact.stream, 120),
        language=clipped(fact.language, 20),
        variables=tuple(clipped(name, 30) for name in fact.variables[:4]),
        line_before=clipped(fact.line_before, 120),
        line_after=clipped(fact.line_after, 120),
        places=fact.places,
        asked=fact.asked,
        span=fact.evidence[0] if fact.evidence else None,
    )
    return msgspec.structs.replace(
        row,
        texts=(clipped(low, 120), clipped(high, 120)),
        observations=row.observations + 1,
        first_seen=min(row.first_seen, at) if row.observations else at,
        last_seen=max(row.last_seen, at),
        sightings=newest(row.sightings, sighting, 32),
        files=seen(row.files, fact.path, at, 16),
        sessions=seen(row.sessions, fact.stream, at, 16),
        sources=seen(row.sources, fact.origin, at, 16),
        locations=seen(row.locations, fact.location, at, LOCATIONS),
    )
