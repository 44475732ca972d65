"""Observations of a client: what a transcript line or a hook delivery said, and nothing a rule concluded.

One event a block of a transcript line, or a hook delivery. Texts are capped, and then `length` gives their true
length in characters. Streams are `session/<agent>/<session id>`.
"""

import hashlib
from typing import Any, Literal
from uuid import UUID

import msgspec

from memctl.domain.events.event import Payload, derived_id, event

Agent = Literal[
    "claude-code", "codex", "copilot-cli", "gemini-cli", "opencode", "specstory", "aider", "swe-agent", "cursor"
]  # fmt: skip
Via = Literal["transcript", "hook"]

HISTORY = "history/"
"""How the streams of repositories' histories begin."""

TRANSCRIPT = "transcript:"
"""How the names of what a transcript holds begin."""

MOST_FILES, LONGEST_FILE = 40, 300
"""Files of one commit that are kept, and characters of the name of each."""

TEXT_CAP = 16_000
"""Characters of one text that are kept: the first 10,000 and the last 6,000 of longer ones."""

LONGEST_NAME = 256
"""Bytes of an agent's name, and of the id of a session, a line or a call; clients' have half as many."""

CONTEXT_BLOCK_OPEN = "<memctl-context>"
CONTEXT_BLOCK_CLOSE = "</memctl-context>"
"""Around all text that memctl puts in front of an agent unasked, so that it is known again when a client plays it
back."""

HEAD = 10_000


class Observation(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """What every observation carries beside its own content.

    `line` is the transcript line's uuid, or `#<ordinal>` (from 1, counting every line of the file) in formats without
    uuids; `block` the block's index in that line; `parent` the uuid of the line it answers, as the client wrote it.
    """

    via: Via = "transcript"
    line: str = ""
    block: int = 0
    parent: str = ""
    agent_version: str = ""
    model: str = ""
    branch: str = ""
    subagent: str = ""
    subagent_type: str = ""
    injected: bool = False
    """The text was memctl's own (a context block, a tool's answer): it is not kept, and nothing is learnt from it."""
    confined: bool = False
    """Delivered under a key that is limited to projects: it shows nothing of other places (decision 36)."""


@event("session.started")
class SessionStarted(Observation, frozen=True, kw_only=True, omit_defaults=True):
    """A client began a session, or took one up again."""

    source: str = ""
    """startup, resume, clear, compact or fork, where the client says so."""
    title: str = ""
    repository: str = ""
    """Git remote, where the client says so."""
    brought: bool = False
    """That stood in a file elsewhere than clients keep theirs: whoever wrote that may have given it any date."""
    commit: str = ""
    parent_session: str = ""
    """The session that asked for this one, which is a subagent's."""
    unattended: bool = False
    """A program began it: what hooks alone report of it is no person's word."""


@event("session.ended")
class SessionEnded(Observation, frozen=True, kw_only=True, omit_defaults=True):
    """A client closed a session."""

    reason: str = ""


@event("prompt.submitted")
class PromptSubmitted(Observation, frozen=True, kw_only=True, omit_defaults=True):
    """A user, or the client in the user's place (`meta`), addressed the agent."""

    text: str
    length: int = 0
    meta: bool = False
    images: int = 0


@event("response.received")
class ResponseReceived(Observation, frozen=True, kw_only=True, omit_defaults=True):
    """The agent said something, or showed a thought.

    `message` is the API message the block is part of; token counts repeat on every block of one message.
    """

    text: str
    length: int = 0
    kind: Literal["text", "thinking"] = "text"
    message: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0


@event("tool.called")
class ToolCalled(Observation, frozen=True, kw_only=True, omit_defaults=True):
    """The agent asked for a tool. `input` is what it passed, long strings capped."""

    tool: str
    call: str = ""
    """The client's id of this use of the tool."""
    input: dict[str, Any] = msgspec.field(default_factory=dict)
    length: int = 0
    """True length of the input as JSON, in characters, where something was capped."""
    message: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0


class Hunk(msgspec.Struct, frozen=True, omit_defaults=True):
    """One hunk of a patch, as the client showed it: lines begin with a space, a plus or a minus."""

    old_start: int
    new_start: int
    lines: tuple[str, ...]


class ToolOutcome(Observation, frozen=True, kw_only=True, omit_defaults=True):
    """What came back from a tool."""

    text: str = ""
    length: int = 0
    tool: str = ""
    call: str = ""
    exit_code: int | None = None
    duration_ms: int | None = None
    interrupted: bool = False
    file: str = ""
    patch: tuple[Hunk, ...] = ()
    asked: str = ""
    """The subagent that the use handed work to, where the client says so."""


@event("tool.returned")
class ToolReturned(ToolOutcome, frozen=True, kw_only=True, omit_defaults=True):
    """A tool did what it was asked."""


@event("tool.failed")
class ToolFailed(ToolOutcome, frozen=True, kw_only=True, omit_defaults=True):
    """A tool, or the command it ran, failed; or the user refused it."""


@event("context.compacted")
class ContextCompacted(Observation, frozen=True, kw_only=True, omit_defaults=True):
    """The client shortened the agent's context. `text` is its summary, where it shows one."""

    text: str = ""
    length: int = 0
    trigger: str = ""
    tokens_before: int = 0


@event("notice.received")
class NoticeReceived(Observation, frozen=True, kw_only=True, omit_defaults=True):
    """Something else the client reported that may matter: a title, a pull request, an API error, a queued prompt."""

    kind: str
    text: str = ""
    length: int = 0
    data: dict[str, Any] = msgspec.field(default_factory=dict)


@event("commit.recorded")
class CommitRecorded(Observation, frozen=True, kw_only=True, omit_defaults=True):
    """A commit of a repository, as git has it: `line` is its id, `text` its message, `files` are those it changed."""

    text: str = ""
    length: int = 0
    files: tuple[str, ...] = ()
    changed: int = 0
    """How many files it changed, of which `files` are the first."""


@event("tag.recorded")
class TagRecorded(Observation, frozen=True, kw_only=True, omit_defaults=True):
    """A commit of a repository has a name: `parent` is the commit's id, `line` says which tag it is."""

    name: str


def bounded_name(name: str) -> str:
    """A name as it is kept: of a longer one than any client's a digest, for rows and tombstones are found by it."""
    data = name.encode("utf-8", "surrogatepass")
    return name if len(data) <= LONGEST_NAME else "x" + hashlib.sha256(data).hexdigest()[:32]


def session_stream(agent: str, session_id: str) -> str:
    """The stream of one session."""
    return f"session/{agent}/{session_id}"


def session_in(stream: str, otherwise: str) -> str:
    """The id of the session that a stream is of; what stands beside the stream of anything else is kept."""
    of_session = otherwise and stream.startswith("session/") and stream.count("/") > 1
    return stream.split("/", 2)[2] if of_session else otherwise


def transcript_key(agent: str, session_id: str, line: str, block: int) -> str:
    """Dedupe key of a block of a transcript line."""
    return f"{TRANSCRIPT}{agent}:{session_id}:{line}:{block}"


def history_stream(repository: str) -> str:
    """The stream of a repository's history; `repository` is the path of its root."""
    return f"{HISTORY}{derived_id(f'history:{repository}').hex[:12]}"


def history_key(stream: str, line: str) -> str:
    """Dedupe key of a commit, or of a tag, of a repository."""
    return f"{stream}:{line}"


def hook_key(delivery_id: str) -> str:
    """Dedupe key of a hook delivery: the 128-bit id that the hook drew before its first attempt."""
    return f"hook:{delivery_id}"


MESSAGE = "hook-message:"
"""How the names begin of the messages of a conversation that a client hands over whole, again and again. They carry no
time of their own: what differs from a known one by when it came is that one."""


def event_id_of(space_id: int, dedupe_key: str) -> UUID:
    """Id of the event under a dedupe key."""
    return derived_id(f"{space_id}:{dedupe_key}")


def capped(text: str, limit: int = TEXT_CAP) -> tuple[str, int]:
    """The text as it is kept, and its true length (0 where nothing was left out)."""
    if len(text) <= limit:
        return text, 0
    head = limit * HEAD // TEXT_CAP
    left_out = len(text) - limit
    return with_note(text[:head], left_out, text[head + left_out :]), len(text)


def with_note(head: str, left_out: int, tail: str) -> str:
    """Both ends of a text, and between them how many characters were left out."""
    return f"{head}\n[… {left_out} characters left out …]\n{tail}"
