"""Calls that were wrong in themselves, those that went well instead, and what went well: facts about known commands."""

from collections.abc import Sequence
from typing import NamedTuple

from memctl.domain.events.event_order import OrderedEvent
from memctl.domain.events.fact_builder import FactBuilder
from memctl.domain.events.facts import CommandTried, Span
from memctl.domain.failures.known_commands import (
    REACH,
    Failed,
    WrongCall,
    forms_of,
    installs,
    one_line_of,
    works_instead,
    wrong_call,
)

MOST_WORKED, MOST_OPEN = 2_000, 8
"""Keys of a session that are reported to work, and wrong calls that wait for the right one."""


class _Open(NamedTuple):
    at: int
    call: WrongCall
    fact: CommandTried
    idle: int


class WrongCalls:
    """The wrong calls of one stream that nothing has replaced yet, and the keys that are known to work there."""

    def __init__(self, assertions: FactBuilder) -> None:
        self._assert = assertions
        self._worked: set[str] = set()
        self._reported = 0
        self._open: list[_Open] = []

    def failed(
        self, at: int, placed: OrderedEvent, about: str, command: str, began: str, errors: Sequence[Failed]
    ) -> None:
        """A command that began in a directory failed, as the `at`th use of a tool, and showed these errors."""
        call = wrong_call(command, began, errors)
        if call is None:
            return
        self._worked.discard(call.subject)
        fact = self._assert.make(
            CommandTried,
            placed,
            f"{about}:{call.subject}",
            location=self._assert.home,
            outcome="failed",
            keys=(call.subject,),
            command=one_line_of(command),
            reason=call.reason,
            message=call.message,
            directory=began.rstrip("/").rpartition("/")[2],
        )
        self._open = [
            *(each for each in self._open if each.call.subject != call.subject),
            _Open(at, call, fact, self._assert.idle),
        ]
        del self._open[:-MOST_OPEN]

    def passed(self, at: int, placed: OrderedEvent, about: str, command: str, began: str) -> None:
        """A command that began in a directory went well."""
        new = [key for key in (*forms_of(command, began), *sorted(installs(command, began))) if key not in self._worked]
        if new and self._reported < MOST_WORKED:
            self._reported += len(new)
            self._worked.update(new)
            self._assert.make(
                CommandTried,
                placed,
                f"{about}:worked",
                location=self._assert.home,
                outcome="worked",
                keys=tuple(new),
            )
        left = []
        for each in self._open:
            if at - each.at > REACH:
                continue
            found = works_instead(each.call, command, began)
            if found is None:
                left.append(each)
                continue
            self._assert.make(
                CommandTried,
                placed,
                f"{each.fact.id}:replaced",
                *each.fact.evidence,
                Span(placed.cite),
                location=self._assert.home,
                outcome="replaced",
                keys=(each.call.subject,),
                command=each.fact.command,
                reason=each.call.reason,
                message=each.call.message,
                works=found[0],
                directory=found[1],
                failed=each.fact.id,
                calls=at - each.at,
                idle_us=self._assert.idle - each.idle,
            )
        self._open = left
