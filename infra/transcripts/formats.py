"""What a reader of a client's format is: of lines, or of a document; and how what it reads becomes events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import orjson

from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.observations import (
    Agent,
    Observation,
    PromptSubmitted,
    ResponseReceived,
    ToolCalled,
    ToolOutcome,
    session_stream,
    transcript_key,
)
from memctl.infra.transcripts.fields import shallow

BOM = b"\xef\xbb\xbf"
"""What some editors and shells of Windows write in front of UTF-8."""


class Format(Protocol):
    """A client's transcript format. One instance reads one file, from its start."""

    agent: Agent
    context: tuple[bytes, ...]
    """A line that holds one of these may change what later lines mean, and is read on the way to an offset."""

    def read(self, record: dict[str, Any], place: str) -> list[NewEvent] | str:
        """The events of one object, or the kind it is ignored as. `place` is the line's ordinal as `#<n>`.

        Raises: Unreadable where the object lacks what it cannot be kept without.
        """

    def recognises(self, record: dict[str, Any]) -> bool:
        """Whether the object is a line's own, not one nested in a torn line."""


@runtime_checkable
class Document(Protocol):
    """A format whose files are one text each, mostly rewritten as a whole. One instance reads one file.

    The records that it splits a text into are accounted for as lines are. A file is read whole whenever it changed:
    what it gave before is known by its keys, so these may not depend on what stands behind.
    """

    agent: Agent

    def split(self, data: bytes) -> Sequence[Any]:
        """The records of the text. Raises: Unreadable; Unfinished where its writer is still at it."""

    def read(self, record: Any, place: str) -> list[NewEvent] | str:
        """As `Format.read`, for one record; `place` is its ordinal as `#<n>`. Raises: Unreadable."""


class Unreadable(ValueError):
    """A line that cannot be kept; the message says why."""


class Unfinished(Unreadable):
    """A document that breaks off."""


def observed(
    payload: Observation, *, agent: Agent, session: str, occurred_at: Micros, location: str, actor: str = ""
) -> NewEvent:
    """A block of a transcript line as an event, under the key that its line and block give it.

    `actor` is who spoke where the kind of observation does not say it.
    """
    return NewEvent(
        stream=session_stream(agent, session),
        payload=payload,
        occurred_at=occurred_at,
        dedupe_key=transcript_key(agent, session, payload.line, payload.block),
        actor=actor or _actor(payload),
        location=location,
        session_id=session,
    )


def _actor(payload: Observation) -> str:
    match payload:
        case PromptSubmitted():
            # What a subagent is asked comes from the agent that asks it.
            return "system" if payload.meta else "agent" if payload.subagent else "user"
        case ResponseReceived() | ToolCalled():
            return "agent"
        case ToolOutcome():
            return "tool"
        case _:
            return "system"


def decoded(data: bytes) -> dict[str, Any]:
    """The object that a document's bytes hold as JSON. Raises: Unreadable; Unfinished where it breaks off."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        try:  # lone surrogates, bytes that are not UTF-8, NaN
            value = json.loads(data.decode("utf-8-sig", "replace"))
        except (ValueError, RecursionError) as error:
            if not data.rstrip().endswith(b"}"):
                raise Unfinished("breaks off") from error
            raise Unreadable(f"not JSON: {type(error).__name__}") from error
    if not isinstance(value, dict):
        raise Unreadable(f"not an object but {type(value).__name__}")
    if not shallow(value):
        raise Unreadable("nested too deeply")
    return value


def lines_of(data: bytes) -> list[str]:
    """The lines of a text document, without their ends."""
    return data.decode("utf-8-sig", "replace").replace("\r\n", "\n").split("\n")
