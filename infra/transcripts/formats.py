"""What a reader of a client's format is: of lines, or of a document; and how what it reads becomes events."""

import json
from collections.abc import Sequence
from typing import Any, Protocol, TypedDict, runtime_checkable

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
from memctl.domain.support import patterns
from memctl.domain.support.json_bodies import MOST_VALUES, has_few_values
from memctl.domain.support.provenance import CLIENT, IMPORTED
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


class LineFields(TypedDict):
    """The fields of an observation that all events of one line share."""

    line: str
    parent: str
    agent_version: str
    model: str
    branch: str
    subagent: str
    subagent_type: str


class Session:
    """What a reader knows so far of the session that a file holds; its events carry it."""

    def __init__(self, agent: Agent, id: str = "", location: str = "") -> None:
        self.agent = agent
        self.id = id
        self.location = location
        self.agent_version = self.model = self.branch = self.subagent = self.subagent_type = ""

    def fields(self, line: str, *, parent: str = "", model: str = "", subagent: str = "") -> LineFields:
        """What the events of a line share; `model` and `subagent` where the line has its own."""
        return LineFields(
            line=line,
            parent=parent,
            agent_version=self.agent_version,
            model=model or self.model,
            branch=self.branch,
            subagent=subagent or self.subagent,
            subagent_type=self.subagent_type,
        )

    def event(self, payload: Observation, occurred_at: Micros, *, location: str = "", actor: str = "") -> NewEvent:
        """A block of a line as an event, under the key that its line and block give it.

        `location` is where the line says the session was, `actor` who spoke where the kind of observation does not say.
        """
        return NewEvent(
            stream=session_stream(self.agent, self.id),
            payload=payload,
            occurred_at=occurred_at,
            dedupe_key=transcript_key(self.agent, self.id, payload.line, payload.block),
            actor=actor or _actor(payload),
            location=location or self.location,
            session_id=self.id,
        )


def nobodys(payload: Observation) -> str:
    """The actor where a transcript is a text in Markdown: what an agent prints may look there like the user's prompt,
    so a prompt's words are taken for another's."""
    return IMPORTED if _actor(payload) == "user" else ""


def _actor(payload: Observation) -> str:
    match payload:
        case PromptSubmitted():
            # What a subagent is asked comes from the agent that asks it.
            return CLIENT if payload.meta else "agent" if payload.subagent else "user"
        case ResponseReceived() | ToolCalled():
            return "agent"
        case ToolOutcome():
            return "tool"
        case _:
            return "system"


MANY_VALUES = f"JSON of more than {MOST_VALUES:,} values"


def decoded(data: bytes) -> dict[str, Any]:
    """The object that a document's bytes hold as JSON. Raises: Unreadable; Unfinished where it breaks off."""
    if not has_few_values(data):
        raise Unreadable(MANY_VALUES)
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        try:  # lone surrogates, bytes that are not UTF-8, NaN
            value = json.loads(data.decode("utf-8-sig", "replace"))
        except (ValueError, RecursionError) as error:
            if not data.rstrip().endswith(b"}"):
                raise Unfinished("not JSON: it breaks off") from error
            raise Unreadable(f"not JSON: {type(error).__name__}") from error
    if not isinstance(value, dict):
        raise Unreadable(f"not an object but {type(value).__name__}")
    if not shallow(value):
        raise Unreadable("nested too deeply")
    return value


def decoded_within(text: str) -> Any:
    """What JSON in a text of a line holds. Raises: ValueError."""
    data = text.encode("utf-8", "replace")
    if not has_few_values(data):
        raise ValueError(MANY_VALUES)
    return orjson.loads(data)


def exit_code_of(found: patterns.Match[str] | None) -> int | None:
    """The exit code that a pattern's first group found in what a command printed."""
    return int(found[1]) if found else None


def token_counts(*, taken: int, given: int, cached: int) -> dict[str, int]:
    """What a notice of tokens holds: those newly read, written, and read from a cache."""
    return {"tokens_in": taken, "tokens_out": given, "tokens_cached": cached}


def lines_of(data: bytes) -> list[str]:
    """The lines of a text document, without their ends."""
    return data.decode("utf-8-sig", "replace").replace("\r\n", "\n").split("\n")
