"""Known commands: calls that were wrong in themselves, by what their errors named, and the forms that work."""

from __future__ import annotations

import msgspec

from memctl.domain.events.event import derived_of
from memctl.domain.events.facts import CommandTried
from memctl.domain.failures.known_commands import LONGEST_FORM, LONGEST_KEY, odds
from memctl.domain.support.bounded import NARROW, Seen, clipped, newest, seen
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


class WorkingForm(msgspec.Struct, frozen=True, omit_defaults=True):
    """A form that went well instead, and the name of the directory it ran in. `failed` is the failure's fact."""

    at: int
    id: str
    stream: str
    command: str
    directory: str = ""
    event: str = ""
    failed: str = ""


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
        return odds(failed[0].reason, len({each.stream for each in failed}), since)

    def works_now(self, stream: str) -> WorkingForm | None:
        """The newest form that went well instead, in another session."""
        return next((each for each in self.works if each.stream != stream), None)


def row_id(location: str, key: str) -> str:
    """Key of what is known of a command's key at a location."""
    return str(derived_of("known_command", location, key))


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
                worked=seen(row.worked, fact.stream, at, SESSIONS),
            )
        case "failed":
            return msgspec.structs.replace(
                row,
                subject=_subject(fact),
                failures=row.failures + 1,
                last_failed_at=max(row.last_failed_at, at),
                failed=newest(row.failed, _failed(fact), FAILURES),
            )
        case "replaced":
            return msgspec.structs.replace(
                row, subject=_subject(fact), works=newest(row.works, _working(fact), WORKING)
            )


def _subject(fact: CommandTried) -> str:
    """A failure is known by one key."""
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
    )


def _event(fact: CommandTried, at: int) -> str:
    return str(fact.evidence[at].event) if fact.evidence else ""
