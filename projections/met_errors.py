"""Met errors: distinctive lines of failed outputs, what agents concluded of them, and what ended them."""

from collections.abc import Iterable

import msgspec

from memctl.domain.events.event import derived_of
from memctl.domain.events.facts import ErrorMet
from memctl.domain.failures.met_errors import LONGEST_SAID
from memctl.domain.support.bounded import NARROW, clipped, newest, newest_of
from memctl.domain.support.provenance import LONGEST_NAME
from memctl.projections.kernel import projection

FAILURES = 8

RAN = "ran `"
"""How a change begins that was a command."""


class MetFailure(msgspec.Struct, frozen=True, omit_defaults=True):
    """One failed output that had the line. Times in microseconds: when it came, when the agent said (`said`) that it
    was there before, said (`why`) what it came of, and when what had failed passed after a change. `passed` is the
    command that went well instead."""

    at: int
    id: str
    stream: str
    lineage: str = ""
    command: str = ""
    line: str = ""
    said: str = ""
    said_at: int = 0
    cause: str = ""
    change: str = ""
    mended_at: int = 0
    passed: str = ""
    why: str = ""
    why_at: int = 0
    member: str = ""
    """Through whose key any of it came; empty of what this machine saw."""

    @property
    def met(self) -> tuple[int, str, str]:
        """When and where it came."""
        return self.at, self.stream, self.lineage

    @property
    def origin(self) -> str:
        """The session that it counts for: copies and forks of one count once."""
        return self.lineage or self.stream


class MetError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the sessions of one location show of one distinctive line, or of one directory.

    `failures` are the newest 8. `judged_at` and `mended_at` are when one was last said to be nobody's, and mended.
    """

    location: str
    judged_at: int = 0
    mended_at: int = 0
    failures: tuple[MetFailure, ...] = ()

    def before(self, stream: str) -> tuple[MetFailure, ...]:
        """The failures of other sessions than that one, newest first."""
        return tuple(each for each in self.failures if each.stream != stream)

    def standing(self, stream: str) -> list[MetFailure]:
        """The failures of other sessions that were said to be nobody's, newest first, those before others whose session
        went on past it; none where one was mended since."""
        said = [each for each in self.before(stream) if each.said]
        if not said or said[0].said_at <= self.mended_at:
            return []
        return sorted((each for each in said if each.said_at > self.mended_at), key=lambda each: not each.passed)

    def cured(self, stream: str) -> list[MetFailure]:
        """The failures of other sessions of which is known what they came of, or which command ended them, newest
        first. An edit that nobody explained was of that session's own code."""
        known = (each for each in self.before(stream) if each.cause or each.why or each.change.startswith(RAN))
        return [msgspec.structs.replace(each, cause=each.cause or each.why) for each in known]

    def stayed(self, stream: str) -> int:
        """In how many other sessions it came, where none of them ended it."""
        return 0 if self.mended_at else len({each.origin for each in self.before(stream)})


def row_id(location: str, key: str) -> str:
    """Key of what is known of a line, or of a directory, at a location."""
    return derived_of("met_error", location, key)


def together(rows: Iterable[MetError]) -> MetError:
    """What the places of one project show of one key."""
    every = list(rows)
    if len(every) == 1:
        return every[0]
    return MetError(
        location="",
        judged_at=max(row.judged_at for row in every),
        mended_at=max(row.mended_at for row in every),
        failures=newest_of((each for row in every for each in row.failures), FAILURES),
    )


@projection(
    row=MetError,
    key=lambda fact: tuple(row_id(fact.location, key) for key in fact.keys),
    indexes=(("location", "judged_at"), ("judged_at",)),
)
def met_errors(row: MetError | None, fact: ErrorMet) -> MetError:
    """Distinctive lines of failed outputs, what agents concluded of them, and what ended them."""
    row = row or MetError(location=fact.location)
    at = int(fact.occurred_at)
    return msgspec.structs.replace(
        row,
        judged_at=max(row.judged_at, at) if fact.outcome == "judged" else row.judged_at,
        mended_at=max(row.mended_at, at) if fact.outcome == "mended" else row.mended_at,
        failures=_failures(row.failures, fact, at),
    )


def _failures(kept: tuple[MetFailure, ...], fact: ErrorMet, at: int) -> tuple[MetFailure, ...]:
    """The newest failures, with what this fact says of its own."""
    id, met_at = str(fact.failure), at - fact.duration_us
    known = next((each for each in kept if each.id == id), None)
    if known is None and len(kept) >= FAILURES and (met_at, id) < (kept[-1].at, kept[-1].id):
        return kept
    met = MetFailure(at=met_at, id=id, stream=clipped(fact.stream, 160), lineage=clipped(fact.lineage, 16))
    known = known or met
    if known.met != met.met:  # facts that contradict each other of one failure: the later one counts, in any order
        known = max(known, met, key=lambda each: each.met)
    return newest(kept, _with(known, fact, at) if known.met == met.met else known, FAILURES)


def _with(known: MetFailure, fact: ErrorMet, at: int) -> MetFailure:
    """The failure with what one more fact says of it. Where two say one thing the greater stands, in any order."""
    known = msgspec.structs.replace(known, member=max(known.member, clipped(fact.through, LONGEST_NAME)))
    if fact.outcome == "passed":
        return msgspec.structs.replace(known, passed=max(known.passed, clipped(fact.command, 160, NARROW)))
    said = msgspec.structs.replace(known, command=max(known.command, clipped(fact.command, 160, NARROW)))
    if fact.outcome == "met":
        return said
    said = msgspec.structs.replace(said, line=max(said.line, clipped(fact.line, 200)))
    if fact.outcome == "judged":
        text, said_at = max((known.said, known.said_at), (clipped(fact.text, LONGEST_SAID), at))
        return msgspec.structs.replace(said, said=text, said_at=said_at)
    if fact.outcome == "explained":
        why_at, text = max((known.why_at, known.why), (at, clipped(fact.text, LONGEST_SAID)))
        return msgspec.structs.replace(said, why=text, why_at=why_at)
    cause, change, mended_at = max(
        (known.cause, known.change, known.mended_at), (clipped(fact.text, LONGEST_SAID), clipped(fact.change, 300), at)
    )
    return msgspec.structs.replace(said, cause=cause, change=change, mended_at=mended_at)
