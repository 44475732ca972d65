"""A share of the sightings of each kind of error: what `bug_patterns` puts together.

A row that changes must be folded again from all that went to it when one of its facts is revised. Of an error that
thousands of sessions met, that would be thousands of facts for each late line of a transcript. So the sessions are
dealt out over a fixed number of rows, and what a revision costs is one share, and putting the shares together.
"""

import hashlib

import msgspec

from memctl.domain.events.facts import ErrorOccurred, ErrorResolved, ResolutionRefuted, Span, quote_hash
from memctl.domain.failures.explanations import cause_in, links
from memctl.domain.failures.matching import file_types_of, frameworks_of
from memctl.domain.failures.solutions import Attempt, CodeChange, Detail, hunks_of, only_of
from memctl.domain.support.bounded import (
    BYTES_PER_CHARACTER,
    LOCATIONS,
    NARROW,
    Seen,
    clipped,
    newest,
    newest_of,
    one_line,
    seen,
    seen_of,
)
from memctl.projections.kernel import projection

SHARES = 32
"""Rows that the sessions of one kind of error are dealt out over."""


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


class Sightings(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of one kind of error. Times and durations in microseconds.

    The newest 32 attempts at a solution are kept, and the details of the newest 8. Where only a resolution is known
    yet, `example` is None. `code` are the lines of source that the tool pointed at, `causes` what was said to be behind
    it, `related` the signatures of other errors that the same run showed; each newest first.
    """

    signature: str
    example: Example | None = None
    occurrences: int = 0
    resolutions: int = 0
    refutations: int = 0
    timed: int = 0
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
    code: tuple[Seen, ...] = ()
    causes: tuple[Seen, ...] = ()
    related: tuple[Seen, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    details: tuple[Detail, ...] = ()
    refuted: tuple[Seen, ...] = ()
    evidence: tuple[Sighting, ...] = ()


LONGEST_APPROACH = 340
"""Characters of how an error was ended: its cause, and both sides of a change."""

# How many each collection keeps.
_SEEN = {"locations": LOCATIONS, "sessions": 16, "files": 12, "file_types": 8, "frameworks": 8, "commands": 8,
         "code": 4, "causes": 4, "related": 8, "refuted": 64}  # fmt: skip
_DATED = {"attempts": 32, "details": 8, "evidence": 8}
_SUMS = ("occurrences", "resolutions", "refutations", "timed", "resolve_us_total")


def together(one: Sightings, other: Sightings) -> dict[str, object]:
    """The fields of two shares put together, but for the signature."""
    examples = [each for each in (one.example, other.example) if each is not None]
    fields: dict[str, object] = {
        "example": max(examples, key=lambda e: (e.at, e.id), default=None),
        "first_seen": min(one.first_seen, other.first_seen),
        "last_seen": max(one.last_seen, other.last_seen),
        "last_resolved": max(one.last_resolved, other.last_resolved),
    }
    for name in _SUMS:
        fields[name] = getattr(one, name) + getattr(other, name)
    for name, limit in _SEEN.items():
        fields[name] = seen_of((*getattr(one, name), *getattr(other, name)), limit)
    for name, limit in _DATED.items():
        fields[name] = newest_of((*getattr(one, name), *getattr(other, name)), limit)
    return fields


class BugSightings(Sightings, frozen=True, kw_only=True):
    """One share of the sightings of one kind of error. `came`, `ended` and `refused` are the least digests of when and
    in which session it occurred, was resolved, and came back: what copies and forks of a session repeat has one."""

    came: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


Input = ErrorOccurred | ErrorResolved | ResolutionRefuted

LEAST = 256
"""Digests that are kept of each; from there on their number is estimated by how dense they are."""


def _with(marks: tuple[str, ...], fact: Input) -> tuple[tuple[str, ...], int]:
    """The digests with that of one more fact, and how many different ones there were, in any order."""
    mark = quote_hash(f"{fact.origin}\0{fact.occurred_at}")[:8]
    kept = tuple(sorted({*marks, mark})[:LEAST])
    return kept, len(kept) if len(kept) < LEAST else (LEAST - 1) * 16**8 // (int(kept[-1], 16) + 1)


def _share(fact: Input) -> str:
    return f"{fact.signature}:{hashlib.sha256(fact.origin.encode('utf-8', 'surrogatepass')).digest()[0] % SHARES:02d}"


@projection(row=BugSightings, key=_share)
def bug_sightings(
    row: BugSightings | None, fact: ErrorOccurred | ErrorResolved | ResolutionRefuted
) -> BugSightings | None:
    """Errors by signature and share of the sessions, with what resolved them and whether that lasted."""
    at = int(fact.occurred_at)
    row = row or BugSightings(signature=fact.signature, first_seen=at, last_seen=at)
    match fact:
        case ErrorOccurred():
            row = _occurred(row, fact, at)
        case ErrorResolved():
            row = _resolved(row, fact, at)
        case ResolutionRefuted():
            refuted = seen(row.refuted, str(fact.resolution), at, _SEEN["refuted"])
            marks, refutations = _with(row.refused, fact)
            row = msgspec.structs.replace(row, refused=marks, refutations=refutations, refuted=refuted)
    evidence = row.evidence
    if fact.evidence:
        evidence = newest(evidence, Sighting(at, str(fact.id), fact.evidence[0]), _DATED["evidence"])
    return msgspec.structs.replace(
        row,
        first_seen=min(row.first_seen, at),
        last_seen=max(row.last_seen, at),
        locations=seen(row.locations, fact.location, at, _SEEN["locations"]),
        sessions=seen(row.sessions, fact.stream, at, _SEEN["sessions"]),
        evidence=evidence,
    )


def _occurred(row: BugSightings, fact: ErrorOccurred, at: int) -> BugSightings:
    example = row.example
    if example is None or (at, str(fact.id)) > (example.at, example.id):
        example = Example(
            at,
            str(fact.id),
            message=clipped(fact.message, 500),
            text=clipped(fact.text, 1500, NARROW),
            template=clipped(fact.template, 400, NARROW),
            error_types=tuple(clipped(t, 80, NARROW) for t in fact.error_types[:6]),
            frames=tuple(clipped(f, 160, NARROW) for f in fact.frames[:6]),
            tool=clipped(fact.tool, 60, NARROW),
            command=one_line(fact.command, 300, NARROW),
        )
    files, types, frameworks, related = row.files, row.file_types, row.frameworks, row.related
    paths = (*fact.files[:8], *fact.frames[:8])
    for path in fact.files[:8]:
        files = seen(files, path, at, _SEEN["files"])
    for name in file_types_of(paths):
        types = seen(types, name, at, _SEEN["file_types"], 20)
    for name in frameworks_of(fact.command, paths):
        frameworks = seen(frameworks, name, at, _SEEN["frameworks"], 40)
    for signature in fact.beside[:8]:
        related = seen(related, signature, at, _SEEN["related"], 64)
    came, occurrences = _with(row.came, fact)
    return msgspec.structs.replace(
        row,
        example=example,
        came=came,
        occurrences=occurrences,
        files=files,
        file_types=types,
        frameworks=frameworks,
        related=related,
        commands=seen(row.commands, one_line(fact.command, 160, NARROW), at, _SEEN["commands"]),
        code=seen(row.code, one_line(fact.code, 160, NARROW), at, _SEEN["code"]),
    )


_LONGEST_CAUSE = 240
"""Characters of a cause."""


def _resolved(row: BugSightings, fact: ErrorResolved, at: int) -> BugSightings:
    fact_id = str(fact.id)
    paths = tuple(dict.fromkeys(clipped(e.path, 70, NARROW) for e in fact.edits[:8]))
    hunks = hunks_of(fact.edits, fact.ran)
    attempt = Attempt(
        at,
        fact_id,
        one_line(fact.approach, LONGEST_APPROACH),
        paths[:2],
        hunks,
        clipped(fact.lineage, 16),
        only_of(fact.message) if fact.instead else "",
    )
    detail = Detail(
        at,
        fact_id,
        explanation=clipped(fact.explanation, 400),
        edits=tuple(
            CodeChange(clipped(e.path, 120, NARROW), clipped(e.before, 140, NARROW), clipped(e.after, 140, NARROW))
            for e in fact.edits[:2]
        ),
        command=one_line(fact.command, 160, NARROW),
        message=one_line(fact.message, 160, NARROW),
    )
    cause = cause_in(fact.explanation, _LONGEST_CAUSE)
    ended, resolutions = _with(row.ended, fact)
    return msgspec.structs.replace(
        row,
        ended=ended,
        resolutions=resolutions,
        timed=row.timed + 1,
        resolve_us_total=row.resolve_us_total + max(fact.duration_us - fact.idle_us, 0),
        last_resolved=max(row.last_resolved, at),
        causes=seen(
            row.causes,
            one_line(cause if links(cause) else "", _LONGEST_CAUSE),
            at,
            _SEEN["causes"],
            _LONGEST_CAUSE,
            BYTES_PER_CHARACTER,
        ),
        attempts=newest(row.attempts, attempt, _DATED["attempts"]),
        details=newest(row.details, detail, _DATED["details"]),
    )
