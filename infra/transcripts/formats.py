"""What a reader of a client's format is: of lines, or of a document; and how what it reads becomes events."""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypedDict, TypeVar, Unpack, runtime_checkable

import msgspec
import orjson

from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.observations import (
    Agent,
    Hunk,
    NoticeReceived,
    Observation,
    PromptSubmitted,
    ResponseReceived,
    SessionStarted,
    ToolCalled,
    ToolFailed,
    ToolOutcome,
    ToolReturned,
    session_stream,
    transcript_key,
)
from memctl.domain.language.prompts import framed_by_another
from memctl.domain.support import patterns
from memctl.domain.support.json_bodies import MOST_VALUES, has_few_values
from memctl.domain.support.provenance import CLIENT, IMPORTED, unattended
from memctl.infra.transcripts.fields import MAX_DEPTH, shallow

ZEROS = b"\0"
"""What stands in a file where a disk lost what was written."""

NOTHING = b"\0 \t\r\n"
"""Bytes of a file that say nothing."""

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

    def __init__(self, agent: Agent, id: str = "", location: str = "", *, in_markdown: bool = False) -> None:
        """`in_markdown`: what an agent prints may look there like the user's prompt, so a prompt's words are taken for
        another's."""
        self.agent = agent
        self.id = id
        self.location = location
        self.agent_version = self.model = self.branch = self.subagent = self.subagent_type = ""
        self.unattended = False
        """No person is known to sit there: a program asks, answers and refuses."""
        self._in_markdown = in_markdown

    def event(self, payload: Observation, occurred_at: Micros, *, location: str = "", actor: str = "") -> NewEvent:
        """A block of a line as an event, under the key that its line and block give it.

        `location` is where the line says the session was, `actor` who spoke where the kind of observation does not say.
        """
        if self.unattended and isinstance(payload, SessionStarted):
            payload = msgspec.structs.replace(payload, unattended=True)
        return NewEvent(
            stream=session_stream(self.agent, self.id),
            payload=payload,
            occurred_at=occurred_at,
            dedupe_key=transcript_key(self.agent, self.id, payload.line, payload.block),
            actor=unattended(actor or _actor(payload)) if self.unattended else actor or self._speaker(payload),
            location=location or self.location,
            session_id=self.id,
        )

    def _speaker(self, payload: Observation) -> str:
        said_by = _actor(payload)
        if said_by == "user" and self._in_markdown:
            return IMPORTED
        text = payload.text if said_by == "user" and isinstance(payload, PromptSubmitted) else ""
        return CLIENT if framed_by_another(text, self.agent) else said_by


class Spent(TypedDict, total=False):
    """The message that a block is part of, and the tokens of it."""

    message: str
    tokens_in: int
    tokens_out: int
    tokens_cached: int


class Answered(TypedDict, total=False):
    """What came back of the use of a tool, as `ToolOutcome` has it."""

    text: str
    tool: str
    call: str
    exit_code: int | None
    duration_ms: int | None
    interrupted: bool
    file: str
    patch: tuple[Hunk, ...]
    asked: str
    block: int


class Line:
    """One line of a session, or record of a document, on its way to events: what its blocks say, in order.

    `parent`, `model` and `subagent` are given where the line has its own; `at` is when its blocks happened that bear no
    time of their own, `location` where, `actor` who speaks where the kind of a block does not say.
    """

    def __init__(
        self, session: Session, id: str, at: Micros, *, parent: str = "", model: str = "", subagent: str = "",
        location: str = "",
    ) -> None:  # fmt: skip
        self.session = session
        self.at = at
        self.location = location
        self.actor = ""
        self.events: list[NewEvent] = []
        self.fields = LineFields(
            line=id,
            parent=parent,
            agent_version=session.agent_version,
            model=model or session.model,
            branch=session.branch,
            subagent=subagent or session.subagent,
            subagent_type=session.subagent_type,
        )

    def add(self, payload: Observation, *, at: Micros | None = None, actor: str = "") -> None:
        """A block that happened at a moment of its own, or was said by that actor, where these are given."""
        at = self.at if at is None else at
        self.events.append(self.session.event(payload, at, location=self.location, actor=actor or self.actor))

    def prompted(self, text: str, *, block: int = 0, meta: bool = False, images: int = 0) -> None:
        """The user, or the client in the user's place (`meta`), addressed the agent."""
        self.add(PromptSubmitted(text=text, meta=meta, images=images, block=block, **self.fields))

    def said(
        self, text: str, *, block: int = 0, thinking: bool = False, at: Micros | None = None, **spent: Unpack[Spent]
    ) -> None:
        """The agent said something, or showed a thought; nothing is added where the text is blank."""
        if text.strip():
            kind: Literal["text", "thinking"] = "thinking" if thinking else "text"
            self.add(ResponseReceived(text=text, kind=kind, block=block, **spent, **self.fields), at=at)

    def called(
        self, tool: str, call: str, given: dict[str, Any], *, block: int = 0, at: Micros | None = None,
        **spent: Unpack[Spent],
    ) -> None:  # fmt: skip
        """The agent asked for a tool."""
        self.add(ToolCalled(tool=tool, call=call, input=given, block=block, **spent, **self.fields), at=at)

    def answered(self, *, failed: object, at: Micros | None = None, **answer: Unpack[Answered]) -> None:
        """What came back from a tool, which did what it was asked, or `failed`."""
        outcome = ToolFailed if failed else ToolReturned
        self.add(outcome(**answer, **self.fields), at=at)

    def noticed(
        self, kind: str, text: str = "", data: dict[str, Any] | None = None, *, block: int = 0, actor: str = "",
        at: Micros | None = None,
    ) -> None:  # fmt: skip
        """Something else that the client reports."""
        self.add(NoticeReceived(kind=kind, text=text, data=data or {}, block=block, **self.fields), actor=actor, at=at)


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

_TOKENS = patterns.compile(
    rb'"(?:[^"\\]|\\.)*(?:"|\\?$)|[\[\]{}]|-?[0-9][0-9.]{300,}(?:[eE][+-]?[0-9]+)?|-?[0-9][0-9.]*[eE]\+?[0-9]{3,}',
    patterns.S,
)
"""What is looked at in JSON: texts, so that nothing in them is; what nests; numbers that no float may hold."""

MOST_TOKENS = 3 * MOST_VALUES
"""Texts and brackets that are looked at, which takes some seconds: JSON of `MOST_VALUES` holds fewer."""

T = TypeVar("T")


def without_zeros(data: bytes) -> tuple[bytes, str]:
    """A line or document without the zero bytes that it begins with, and what is said of them."""
    left = data.lstrip(ZEROS)
    zeros = len(data) - len(left)
    return left, f"begins with {zeros:,} zero bytes, where the disk lost what was written" if zeros else ""


def within_limits(data: bytes) -> tuple[bytes, str]:
    """JSON with a text in place of each value that nests too deeply, and of each number that no float holds.

    With it comes where the first of them stood and why it was left out; nothing where there is none, or where it holds
    more than `MOST_TOKENS`. Takes time linear in `data`.
    """
    left_out: list[tuple[int, int]] = []
    depth = begin = 0
    for number, found in enumerate(_TOKENS.finditer(data)):
        if number == MOST_TOKENS:
            return data, ""
        start, end = found.span()
        match data[start : start + 1]:
            case b"[" | b"{":
                depth += 1
                if depth == MAX_DEPTH + 1:
                    begin = start
            case b"]" | b"}":
                if depth == MAX_DEPTH + 1:
                    left_out.append((begin, end))
                depth -= 1
            case b'"':
                pass
            case _ if depth <= MAX_DEPTH and _overflows(found[0]):
                left_out.append((start, end))
    if not left_out:
        return data, ""
    pieces, at = [], 0
    for start, end in left_out:
        pieces += [data[at:start], f'"[left out by memctl: {_beyond(data, start, end)}]"'.encode()]
        at = end
    start, end = left_out[0]
    more = f", and {len(left_out) - 1:,} more such" if len(left_out) > 1 else ""
    return b"".join((*pieces, data[at:])), f"left out at byte {start + 1:,}: {_beyond(data, start, end)}{more}"


def _beyond(data: bytes, start: int, end: int) -> str:
    if data[start : start + 1] in (b"[", b"{"):
        return f"what is nested deeper than {MAX_DEPTH} levels"
    return f"a number of {end - start:,} characters, larger than JSON readers hold"


def _overflows(number: bytes) -> bool:
    try:
        return math.isinf(float(number))
    except ValueError:
        return False


def read_within_limits(read: Callable[[bytes], T], data: bytes) -> tuple[T, str]:
    """What `read` makes of JSON, and why some of it was left out (`within_limits`), which is tried where it makes
    nothing of the whole. Raises: Unreadable."""
    try:
        return read(data), ""
    except Unreadable:
        less, why = within_limits(data)
        if not why:
            raise
        return read(less), why


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
            raise Unreadable(not_json(error)) from error
    if not isinstance(value, dict):
        raise Unreadable(f"not an object but {type(value).__name__}")
    if not shallow(value):
        raise Unreadable("nested too deeply")
    return value


def not_json(error: Exception) -> str:
    """Why a text is no JSON that is read."""
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error.msg} at character {error.pos + 1}"
    return "nested too deeply" if isinstance(error, RecursionError) else "holds a number too large"


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
