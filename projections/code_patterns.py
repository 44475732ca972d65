"""Transformations of code that recur in a place: what is refactored how, and how often."""

from __future__ import annotations

from typing import assert_never

import msgspec

from memctl.domain.code.edits import VARIANTS, Category
from memctl.domain.code.rules import RECURS, ChangeUndone, PatternRetired, pattern_id
from memctl.domain.events.facts import CodeTransformed, Span
from memctl.domain.support.bounded import Seen, clipped, newest, seen
from memctl.projections.code_rules import Retirement, retirement
from memctl.projections.kernel import Recorded, projection


class Application(msgspec.Struct, frozen=True, omit_defaults=True):
    """Once when the transformation was made: lines before and after, and the edit."""

    at: int
    id: str
    path: str
    stream: str
    before: str
    after: str
    span: Span | None = None


class CodePattern(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of transformation in one place and language. Times in microseconds.

    `variant` is a key of `domain.code.edits.VARIANTS`, which gives the category and what is expected of it. The
    newest 16 applications are kept; `undone` names the changes that were taken back (the newest 16).
    """

    variant: str = ""
    language: str = ""
    location: str = ""
    applications: int = 0
    first_seen: int = 0
    last_seen: int = 0
    examples: tuple[Application, ...] = ()
    files: tuple[Seen, ...] = ()
    sessions: tuple[Seen, ...] = ()
    sources: tuple[Seen, ...] = ()
    """The sessions that count: a copy, fork or resumed one is none of its own."""
    undone: tuple[Seen, ...] = ()
    retired: Retirement | None = None

    @property
    def category(self) -> Category | None:
        return VARIANTS[self.variant].category if self.variant in VARIANTS else None

    @property
    def success_rate(self) -> float:
        """Share of the applications that were not taken back, 0 to 1."""
        return round(max(self.applications - len(self.undone), 0) / max(self.applications, 1), 4)

    @property
    def shown(self) -> bool:
        """Whether it was seen in two files or sessions, and nobody retired it."""
        retired = self.retired is not None and not self.retired.back
        return not retired and max(len(self.files), len(self.sources)) >= RECURS


Input = CodeTransformed | Recorded[PatternRetired] | Recorded[ChangeUndone]


def _keys(item: Input) -> tuple[str, ...]:
    if isinstance(item, CodeTransformed):
        return (pattern_id(item.location, item.language, item.variant),)
    match item.payload:
        case PatternRetired() as payload:
            return (clipped(payload.pattern, 64),) if payload.kind == "code_pattern" else ()
        case ChangeUndone() as payload:
            return tuple(clipped(pattern, 64) for pattern in payload.patterns[:20])
        case _:
            assert_never(item.payload)


@projection(row=CodePattern, key=_keys, indexes=(("last_seen",), ("location", "last_seen")))
def code_patterns(
    row: CodePattern | None, item: CodeTransformed | Recorded[PatternRetired] | Recorded[ChangeUndone]
) -> CodePattern | None:
    """Transformations of code by category: extract method or constant, rename, simplify, type hints, restructure."""
    row = row or CodePattern()
    if isinstance(item, CodeTransformed):
        return _applied(row, item)
    at, id = int(item.event.occurred_at), str(item.event.delivery_id)
    match item.payload:
        case PatternRetired() as payload:
            return msgspec.structs.replace(row, retired=retirement(row.retired, at, id, payload))
        case ChangeUndone() as payload:
            return msgspec.structs.replace(row, undone=seen(row.undone, str(payload.change), at, 16))
        case _:
            assert_never(item.payload)


def _applied(row: CodePattern, fact: CodeTransformed) -> CodePattern:
    at = int(fact.occurred_at)
    application = Application(
        at=at,
        id=str(fact.id),
        path=clipped(fact.path, 160),
        stream=clipped(fact.stream, 120),
        before=clipped(fact.before, 200),
        after=clipped(fact.after, 200),
        span=fact.evidence[0] if fact.evidence else None,
    )
    return msgspec.structs.replace(
        row,
        variant=fact.variant,
        language=max(row.language, clipped(fact.language, 20)),
        location=fact.location,
        applications=row.applications + 1,
        first_seen=min(row.first_seen, at) if row.applications else at,
        last_seen=max(row.last_seen, at),
        examples=newest(row.examples, application, 16),
        files=seen(row.files, fact.path, at, 16),
        sessions=seen(row.sessions, fact.stream, at, 16),
        sources=seen(row.sources, fact.origin, at, 16),
    )
