"""Failed outputs of a session by their distinctive lines, what the agent concluded of them, and what ended them."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple
from uuid import UUID

from memctl.domain.events.event import Micros
from memctl.domain.events.event_order import OrderedEvent
from memctl.domain.events.fact_builder import FactBuilder
from memctl.domain.events.facts import TAGS, ErrorMet, ErrorOccurred, Span, fact_id
from memctl.domain.failures.met_errors import (
    Conclusion,
    ErrorLine,
    concluded,
    error_lines,
    explained,
    is_verdict,
    of_these,
    quoted_command,
    said_of,
    showing,
)
from memctl.domain.session.error_resolution import Resolved
from memctl.domain.shell.commands import is_commit, proves, rewrites
from memctl.domain.shell.directories import parts_where
from memctl.domain.support.bounded import one_line

MOST_OPEN, REACH = 4, 20
"""Failed outputs that an answer may be about, and uses of tools until it."""

MOST_FAILED = 16
"""Failed outputs of a session, at most, that a turn may still explain."""

MOST_KNOWN = 256
"""Errors of a session whose output is known until they are mended."""


class _Open(NamedTuple):
    at: int
    id: UUID
    failed_at: Micros
    command: str
    began: str
    lines: tuple[ErrorLine, ...]
    span: Span


class _Shown(NamedTuple):
    """The output that showed an error, and its lines there."""

    id: UUID
    failed_at: Micros
    lines: tuple[ErrorLine, ...]


class _Judged(NamedTuple):
    open: _Open
    keys: tuple[str, ...]


class MetErrors:
    """The failed outputs of one stream."""

    def __init__(self, assertions: FactBuilder) -> None:
        self._assert = assertions
        self._open: list[_Open] = []
        self._failed: list[_Open] = []
        self._judged: list[_Judged] = []
        self._outputs: dict[UUID, _Shown] = {}

    def failed(
        self, at: int, placed: OrderedEvent, about: str, command: str, began: str, output: str,
        errors: Sequence[ErrorOccurred],
    ) -> None:  # fmt: skip
        """A use of a tool failed, as the `at`th, and showed these errors."""
        lines = error_lines(output, self._assert.location)
        if not lines:
            return
        id = fact_id(self._assert.stream, TAGS[ErrorMet], f"{about}:met")
        failed = _Open(at, id, placed.when, command, began, lines, Span(placed.cite))
        self._open, self._failed = [*self._open, failed][-MOST_OPEN:], [*self._failed, failed][-MOST_FAILED:]
        for error in errors:
            shown = showing(error.message, error.text, lines)
            if shown:
                self._outputs[error.id] = _Shown(id, placed.when, shown)
            if len(self._outputs) > MOST_KNOWN:
                self._outputs.pop(next(iter(self._outputs)))
        verdicts = tuple(line.key for line in lines if is_verdict(line))
        if verdicts:
            self._note(placed, f"{about}:met", "met", verdicts, id, placed.when, command=quoted_command(command))

    def answered(self, at: int, placed: OrderedEvent, text: str) -> None:
        """The agent said something: perhaps that one of the latest failures was there before."""
        for failed in reversed(self._open):
            found = concluded(text, failed.lines) if at - failed.at <= REACH else None
            if found is None:
                continue
            self._open.remove(failed)
            self._judged = [*self._judged, _Judged(failed, found.keys)][-MOST_OPEN:]
            self._said(placed, "judged", f"{failed.id}:judged", failed, found)
            return
        self._explained(placed, text)

    def _explained(self, placed: OrderedEvent, text: str) -> None:
        """An answer or a commit's message says, however much later, what the newest failure that it names came of."""
        for failed in reversed(self._failed):
            if found := explained(text, failed.lines, failed.command):
                self._said(placed, "explained", f"{failed.id}:{placed.cite}", failed, found)
                return

    def _said(
        self, placed: OrderedEvent, outcome: Literal["judged", "explained"], about: str, failed: _Open,
        found: Conclusion,
    ) -> None:  # fmt: skip
        """What was said of a failure, by the first of its lines that it is said of."""
        line = next((line.text for line in failed.lines if line.key in found.keys), failed.lines[0].text)
        self._note(
            placed, about, outcome, found.keys, failed.id, failed.failed_at, failed.span, Span(placed.cite),
            command=quoted_command(failed.command), line=one_line(line, 200), text=found.text,
        )  # fmt: skip

    def passed(self, at: int, placed: OrderedEvent, command: str, began: str) -> None:
        """A command went well: what was run instead of one whose failure was nobody's, or that very one, which shows
        that something ended it. What was committed may say what a failure came of."""
        if is_commit(command):
            self._explained(placed, _message_of(command))
            return
        for each in self._judged:
            same = quoted_command(command) == quoted_command(each.open.command)
            shown, failed = _proofs(command, began, same), _proofs(each.open.command, each.open.began)
            if at - each.open.at <= REACH and _instead(shown, failed):
                self._judged.remove(each)
                self._note(
                    placed, f"{each.open.id}:passed", "mended" if same else "passed", each.keys, each.open.id,
                    each.open.failed_at, Span(placed.cite), command=quoted_command(command),
                )  # fmt: skip
                return

    def mended(self, placed: OrderedEvent, errors: Sequence[ErrorOccurred], resolved: Resolved) -> None:
        """What had failed passed after a change, which ended these errors of one output."""
        known = [shown for error in errors if (shown := self._outputs.pop(error.id, None))]
        if not known:
            return
        lines = list(dict.fromkeys(line for shown in known for line in shown.lines))
        text = of_these(resolved.explanation, lines)
        named = said_of(text, errors[0].message, lines)
        others = tuple(line.key for line in lines if line.key not in named)
        for about, keys, said in (("mended", named, text), ("mended:beside", others, "")):
            if keys:
                line = next(line.text for line in lines if line.key in keys)
                self._note(
                    placed, f"{errors[0].id}:{about}", "mended", keys, known[0].id, known[0].failed_at,
                    *errors[0].evidence, Span(placed.cite), command=quoted_command(errors[0].command),
                    line=one_line(line, 200), text=said, change=one_line(resolved.change, 300),
                )  # fmt: skip

    def _note(
        self, placed: OrderedEvent, about: str, outcome: Literal["met", "judged", "mended", "explained", "passed"],
        keys: tuple[str, ...], failure: UUID, failed_at: Micros, *spans: Span, **fields: Any,
    ) -> None:  # fmt: skip
        self._assert.make(
            ErrorMet, placed, about, *spans, location=self._assert.home, outcome=outcome, keys=keys, failure=failure,
            duration_us=placed.when - failed_at, **fields,
        )  # fmt: skip


def _message_of(command: str) -> str:
    """The whole message that a command commits with; empty where it gives none."""
    return command.partition(" -m ")[2].partition('" &&')[0].strip("\"'")


def _proofs(command: str, began: str, rewriting: bool = True) -> dict[str, str]:
    """The parts of a command that test, check or build, by their heads, each with the directory it ran in; also those
    that put files into form, where `rewriting`."""
    parts = parts_where(command, began)
    return {part.head: at for at, part in parts if proves(part.head) and (rewriting or not rewrites(part))}


def _instead(shown: Mapping[str, str], failed: Mapping[str, str]) -> bool:
    """Whether a run did what another was to do, by the same programs and all its parts; nowhere else."""
    tools, wanted = ({(head.partition(" ")[0], proves(head)) for head in each} for each in (shown, failed))
    where = {f"{at}/" for at in failed.values()}
    within = all(any(f"{at}/".startswith(other) for other in where) for at in shown.values())
    return bool(wanted) and wanted <= tools and within
