"""One use of a tool as the log shows it: what was asked for and what came back, and where in them a thing is said."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from memctl.domain.events.event_order import OrderedEvent
from memctl.domain.events.facts import Span, quote
from memctl.domain.events.observations import ToolCalled, ToolOutcome

_DEEPEST = 3
"""How far into what was passed to a tool texts are looked for: `input.edits.0.new_string`."""

LONGEST_FIELD = 64
"""Characters of such a path: the names in it are whatever a model wrote, and rows keep dozens of them."""


class Use(NamedTuple):
    """A use of a tool: its return, and its call where that was seen."""

    came: OrderedEvent
    called: OrderedEvent | None = None
    began: str = ""
    """The directory that its command began in; empty where its call was not seen. Its result belongs to the
    directory that a `cd` in it led to."""

    def quote(self, *words: str) -> Span:
        """Where the first of these words that is found stands: in what came back, its patch, or what was passed.

        The whole event of the return where none of them is found.
        """
        for wanted in words:
            if not wanted.strip():
                continue
            for placed in (self.came, self.called):
                if placed is None:
                    continue
                for field, text in _texts(placed.event.payload):
                    at = _place_of(wanted, text)
                    if at >= 0:
                        return quote(placed.event.delivery_id, text, at, at + len(wanted), field)
        return Span(self.came.cite)


def _place_of(wanted: str, text: str) -> int:
    """Where the words stand by themselves, not inside a longer word; -1 where they do not."""
    at = text.find(wanted)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(wanted) : at + len(wanted) + 1]
        if not (before.isalnum() and wanted[0].isalnum()) and not (after.isalnum() and wanted[-1].isalnum()):
            return at
        at = text.find(wanted, at + 1)
    return -1


def _texts(payload: Any) -> Iterator[tuple[str, str]]:
    """The texts of an event of a use, with their paths in its payload."""
    if isinstance(payload, ToolOutcome):
        for number, hunk in enumerate(payload.patch):
            for row, line in enumerate(hunk.lines):
                yield f"patch.{number}.lines.{row}", line
        yield "text", payload.text
    elif isinstance(payload, ToolCalled):
        yield from _within(payload.input, "input", _DEEPEST)


def _within(value: Any, path: str, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if len(path) <= LONGEST_FIELD:
            yield path, value
    elif depth and isinstance(value, dict):
        for name, inner in value.items():
            if "." not in name:
                yield from _within(inner, f"{path}.{name}", depth - 1)
    elif depth and isinstance(value, list):
        for number, inner in enumerate(value[:50]):
            yield from _within(inner, f"{path}.{number}", depth - 1)
