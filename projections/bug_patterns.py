"""Bug patterns: errors by signature, and what resolved them."""

from __future__ import annotations

import msgspec

from memctl.domain.bounded import Seen, clipped, names, newest, one_line, seen
from memctl.domain.bug_match import Shape, file_types_of, frameworks_of
from memctl.domain.facts import ErrorOccurred, ErrorResolved, ResolutionRefuted, Span
from memctl.domain.solutions import Attempt, Change, Detail, Solution, solutions_of
from memctl.projections.kernel import projection


class Example(msgspec.Struct, frozen=True):
    """The latest occurrence, in its own words."""

    at: int
    id: str
    message: str
    text: str
    template: str
    error_types: tuple[str, ...]
    frames: tuple[str, ...]
    tool: str = ""
    command: str = ""


class Sighting(msgspec.Struct, frozen=True):
    """One occurrence or resolution, and the characters that show it."""

    at: int
    id: str
    span: Span


class BugPattern(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of error. Times and durations in microseconds.

    The row keeps the newest 32 attempts at a solution and the details of the newest 8; `solutions` groups them.
    `causes` are what was said to be behind it, newest first. Where only a resolution is known yet, `example` is None.
    """

    signature: str
    error_types: tuple[str, ...] = ()
    template: str = ""
    message: str = ""
    example: Example | None = None
    frames: tuple[str, ...] = ()
    occurrences: int = 0
    resolutions: int = 0
    refutations: int = 0
    resolve_us_total: int = 0
    first_seen: int = 0
    last_seen: int = 0
    last_resolved: int = 0
    locations: tuple[Seen, ...] = ()
    sessions: tuple[Seen, ...] = ()
    files: tuple[Seen, ...] = ()
    file_types: tuple[Seen, ...] = ()
    frameworks: tuple[Seen, ...] = ()
    commands: tuple[Seen, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    details: tuple[Detail, ...] = ()
    refuted: tuple[Seen, ...] = ()
    evidence: tuple[Sighting, ...] = ()

    @property
    def mean_resolve_us(self) -> int | None:
        """Mean time from the error to the run that passed; None before the first resolution."""
        return self.resolve_us_total // self.resolutions if self.resolutions else None

    @property
    def shape(self) -> Shape:
        """What a query error is compared with (`domain.bug_match.match`)."""
        return Shape(
            signature=self.signature,
            error_types=self.error_types,
            template=self.template,
            frames=self.frames,
            file_types=names(self.file_types),
            frameworks=names(self.frameworks),
        )

    @property
    def solutions(self) -> tuple[Solution, ...]:
        """What resolved it, best first."""
        conditions = tuple(f"{name} files" for name in sorted(names(self.file_types)[:3]))
        conditions += tuple(sorted(names(self.frameworks)[:3]))
        return solutions_of(self.attempts, self.details, self.refuted, conditions)


@projection(
    row=BugPattern,
    key=lambda fact: fact.signature,
    indexes=(("last_seen",), ("occurrences", "last_seen"), ("resolutions", "last_seen")),
)
def bug_patterns(row: BugPattern | None, fact: ErrorOccurred | ErrorResolved | ResolutionRefuted) -> BugPattern | None:
    """Errors by signature, across sessions, with what resolved them and how often that lasted."""
    at = int(fact.occurred_at)
    row = row or BugPattern(signature=fact.signature, first_seen=at, last_seen=at)
    match fact:
        case ErrorOccurred():
            row = _occurred(row, fact, at)
        case ErrorResolved():
            row = _resolved(row, fact, at)
        case ResolutionRefuted():
            row = msgspec.structs.replace(
                row, refutations=row.refutations + 1, refuted=seen(row.refuted, str(fact.resolution), at, 64)
            )
    evidence = row.evidence
    if fact.evidence:
        evidence = newest(evidence, Sighting(at, str(fact.id), fact.evidence[0]), 8)
    return msgspec.structs.replace(
        row,
        first_seen=min(row.first_seen, at),
        last_seen=max(row.last_seen, at),
        locations=seen(row.locations, fact.location, at, 16),
        sessions=seen(row.sessions, fact.stream, at, 16),
        evidence=evidence,
    )


def _occurred(row: BugPattern, fact: ErrorOccurred, at: int) -> BugPattern:
    example = row.example
    if example is None or (at, str(fact.id)) > (example.at, example.id):
        example = Example(
            at,
            str(fact.id),
            message=clipped(fact.message, 500),
            text=clipped(fact.text, 1500),
            template=clipped(fact.template, 400),
            error_types=tuple(clipped(t, 80) for t in fact.error_types[:6]),
            frames=tuple(clipped(f, 160) for f in fact.frames[:6]),
            tool=clipped(fact.tool, 60),
            command=one_line(fact.command, 300),
        )
    files, types, frameworks, commands = row.files, row.file_types, row.frameworks, row.commands
    paths = (*fact.files[:8], *fact.frames[:8])
    for path in fact.files[:8]:
        files = seen(files, path, at, 12)
    for name in file_types_of(paths):
        types = seen(types, name, at, 8, 20)
    for name in frameworks_of(fact.command, paths):
        frameworks = seen(frameworks, name, at, 8, 40)
    commands = seen(commands, one_line(fact.command, 160), at, 8)
    return msgspec.structs.replace(
        row,
        example=example,
        error_types=example.error_types,
        template=example.template,
        message=example.message,
        frames=example.frames,
        occurrences=row.occurrences + 1,
        files=files,
        file_types=types,
        frameworks=frameworks,
        commands=commands,
    )


def _resolved(row: BugPattern, fact: ErrorResolved, at: int) -> BugPattern:
    fact_id = str(fact.id)
    paths = tuple(dict.fromkeys(clipped(e.path, 70) for e in fact.edits[:8]))
    detail = Detail(
        at,
        fact_id,
        explanation=clipped(fact.explanation, 400),
        edits=tuple(
            Change(clipped(e.path, 120), clipped(e.before, 140), clipped(e.after, 140)) for e in fact.edits[:2]
        ),
        command=one_line(fact.command, 160),
    )
    return msgspec.structs.replace(
        row,
        resolutions=row.resolutions + 1,
        resolve_us_total=row.resolve_us_total + max(fact.duration_us, 0),
        last_resolved=max(row.last_resolved, at),
        attempts=newest(row.attempts, Attempt(at, fact_id, one_line(fact.approach, 120), paths[:2]), 32),
        details=newest(row.details, detail, 8),
    )
