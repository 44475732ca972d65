"""Known commands: calls that were wrong in themselves, by what their errors named, and the forms that work."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from memctl.domain.events.event import derived_of
from memctl.domain.events.facts import CommandTried
from memctl.domain.failures.known_commands import ENOUGH, LONGEST_FORM, LONGEST_KEY, odds
from memctl.domain.knowledge.orders import holds_orders
from memctl.domain.shell.harmless import harmless, says_it_otherwise
from memctl.domain.support.bounded import NARROW, Seen, clipped, newest, seen
from memctl.domain.support.provenance import LONGEST_NAME
from memctl.projections.kernel import projection

FAILURES, WORKING, SESSIONS = 8, 4, 16


class FailedCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """Once when the call was wrong. `event` is the one that shows it. `at` in microseconds."""

    at: int
    id: str
    stream: str
    command: str
    message: str = ""
    reason: str = ""
    directory: str = ""
    event: str = ""
    member: str = ""
    """Through whose key it came; empty of what this machine saw."""
    lineage: str = ""
    """What its session shares with copies and forks of it: they count once."""


class WorkingForm(msgspec.Struct, frozen=True, omit_defaults=True):
    """A form that went well instead, and the name of the directory it ran in. `failed` is the failure's fact."""

    at: int
    id: str
    stream: str
    command: str
    directory: str = ""
    event: str = ""
    failed: str = ""
    member: str = ""


class KnownCommand(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the sessions of one location show of one key of commands (`domain.failures.known_commands`).

    `failures` and `successes` count facts, at most a few a session. `failed` has the newest 8, `works` the newest 4
    forms that went well instead, `worked` the newest 16 sessions in which the key went well. Times in microseconds.
    """

    location: str
    subject: str = ""
    """Empty while the key only went well."""
    failures: int = 0
    successes: int = 0
    last_failed_at: int = 0
    last_worked_at: int = 0
    failed: tuple[FailedCall, ...] = ()
    works: tuple[WorkingForm, ...] = ()
    worked: tuple[Seen, ...] = ()

    def before(self, stream: str) -> tuple[FailedCall, ...]:
        """The failures in other sessions than that one, newest first."""
        return tuple(each for each in self.failed if each.stream != stream)

    def odds(self, stream: str) -> float:
        """How likely it fails again in a session, 0 to 1, by what other sessions show; 0 where none does."""
        failed = self.before(stream)
        if not failed:
            return 0.0
        since = sum(each.at > failed[0].at for each in self.worked)
        return odds(failed[0].reason, len({each.lineage or each.stream for each in failed}), since)

    def works_now(self, stream: str) -> WorkingForm | None:
        """The newest form that went well instead, in another session."""
        return next((each for each in self.works if each.stream != stream), None)


def row_id(location: str, key: str) -> str:
    """Key of what is known of a command's key at a location."""
    return derived_of("known_command", location, key)


class Warning(NamedTuple):
    """What is worth saying before a command runs: the call that failed before, and the form that went well instead.

    `id` is the key of the row that has it.
    """

    id: str
    row: KnownCommand
    failed: FailedCall
    works: WorkingForm
    odds: float

    @property
    def member(self) -> str:
        """Through whose key it came, or a part of it; empty of what this machine saw."""
        return self.works.member or self.failed.member


def together(rows: Sequence[tuple[str, KnownCommand]]) -> tuple[str, KnownCommand]:
    """What the places of one project show of one key, by the key of the row whose form is the newest."""
    if len(rows) == 1:
        return rows[0]
    id, _ = max(rows, key=lambda each: (each[1].works[0].at if each[1].works else 0, each[1].last_failed_at, each[0]))
    every = [row for _, row in rows]
    return id, KnownCommand(
        location="",
        subject=next((row.subject for row in every if row.subject), ""),
        failures=sum(row.failures for row in every),
        successes=sum(row.successes for row in every),
        last_failed_at=max(row.last_failed_at for row in every),
        last_worked_at=max(row.last_worked_at for row in every),
        failed=_newest([each for row in every for each in row.failed], FAILURES),
        works=_newest([each for row in every for each in row.works], WORKING),
        worked=tuple(sorted((each for row in every for each in row.worked), key=lambda s: -s.at)[:SESSIONS]),
    )


def warning(
    rows: Iterable[tuple[str, KnownCommand]], stream: str, *, command: str = "", failed: bool = False
) -> Warning | None:
    """The likeliest failure of a command with these keys in a session, where the form that works is known.

    None where it is likelier to go well, and where the session has met the failure itself; unless it has `failed` now.
    None also where the form that works does more than check and build, and does not only say otherwise what the
    `command` at hand says.
    """
    best: Warning | None = None
    for id, row in rows:
        works, likely, before = row.works_now(stream), row.odds(stream), row.before(stream)
        if works is None or not before:
            continue
        # A failure's key ends with what its message named.
        unknown = row.subject.rpartition(" ")[2] if before[0].reason == "unknown option" else ""
        if holds_orders(works.command):
            continue
        if not (harmless(works.command) or says_it_otherwise(command, works.command, unknown)):
            continue
        if not failed and (likely < ENOUGH or any(each.stream == stream for each in row.failed)):
            continue
        if best is None or (likely, row.last_failed_at) > (best.odds, best.row.last_failed_at):
            best = Warning(id, row, before[0], works, likely)
    return best


E = TypeVar("E", FailedCall, WorkingForm)


def _newest(items: Iterable[E], most: int) -> tuple[E, ...]:
    return tuple(sorted(items, key=lambda each: (each.at, each.id), reverse=True)[:most])


@projection(
    row=KnownCommand,
    key=lambda fact: tuple(row_id(fact.location, key) for key in fact.keys),
    indexes=(("location", "last_failed_at"), ("last_failed_at",)),
)
def known_commands(row: KnownCommand | None, fact: CommandTried) -> KnownCommand:
    """Calls that are wrong in themselves, why they fail here, how often, and the forms that work."""
    row, at = row or KnownCommand(location=fact.location), int(fact.occurred_at)
    match fact.outcome:
        case "worked":
            return msgspec.structs.replace(
                row,
                successes=row.successes + 1,
                last_worked_at=max(row.last_worked_at, at),
                worked=seen(row.worked, fact.origin, at, SESSIONS),
            )
        case "failed":
            return msgspec.structs.replace(
                row,
                subject=max(row.subject, _subject(fact)),
                failures=row.failures + 1,
                last_failed_at=max(row.last_failed_at, at),
                failed=newest(row.failed, _failed(fact), FAILURES),
            )
        case "replaced":
            return msgspec.structs.replace(
                row, subject=max(row.subject, _subject(fact)), works=newest(row.works, _working(fact), WORKING)
            )


def _subject(fact: CommandTried) -> str:
    """A failure is known by one key; of several that a row is given the greatest stands, in any order."""
    return clipped(fact.keys[0] if fact.keys else "", LONGEST_KEY, NARROW)


def _failed(fact: CommandTried) -> FailedCall:
    return FailedCall(
        at=int(fact.occurred_at),
        id=str(fact.id),
        stream=clipped(fact.stream, 160),
        command=clipped(fact.command, 300),
        message=clipped(fact.message, 200),
        reason=clipped(fact.reason, 40),
        directory=clipped(fact.directory, 100),
        event=_event(fact, 0),
        member=clipped(fact.through, LONGEST_NAME),
        lineage=clipped(fact.lineage, 16),
    )


def _working(fact: CommandTried) -> WorkingForm:
    return WorkingForm(
        at=int(fact.occurred_at),
        id=str(fact.id),
        stream=clipped(fact.stream, 160),
        command=clipped(fact.works, LONGEST_FORM),
        directory=clipped(fact.directory, 100),
        event=_event(fact, -1),
        failed=str(fact.failed or ""),
        member=clipped(fact.through, LONGEST_NAME),
    )


def _event(fact: CommandTried, at: int) -> str:
    return str(fact.evidence[at].event) if fact.evidence else ""
