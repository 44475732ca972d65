"""OpenCode sessions as `opencode export ID` writes them: one JSON document `{info, messages: [{info, parts}]}`.

Messages and parts have ids and times in milliseconds. A session with a parent is a subagent's: it is read into its
parent's stream. Not kept: `step-start`, `step-finish`, `snapshot`, `patch` (a digest of what the calls say in full),
and the list of todos, which its tool's calls hold.
"""

from pathlib import Path
from typing import Any

from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.observations import (
    Agent,
    ContextCompacted,
    NoticeReceived,
    Observation,
    PromptSubmitted,
    ResponseReceived,
    SessionStarted,
    ToolCalled,
    ToolFailed,
    ToolReturned,
)
from memctl.domain.support import patterns
from memctl.domain.support.location import normalise
from memctl.domain.support.provenance import CLIENT
from memctl.infra.transcripts.command_files import is_expanded
from memctl.infra.transcripts.fields import count, identifier, integer, items, kind, mapping, string
from memctl.infra.transcripts.formats import LineFields, Session, Unreadable, decoded, token_counts
from memctl.infra.transcripts.patches import hunks_of

_ARGUMENT = patterns.compile(r'^"(?:[^"\\]|\\.)*\s(?:[^"\\]|\\.)*"(?:\s|$)', patterns.S)
"""How `opencode run` writes an argument of several words; what it reads from a pipe stands behind."""


class OpenCode:
    """The format's reader. It keeps what the session's `info` said."""

    agent: Agent = "opencode"

    def __init__(self, path: Path | None = None) -> None:
        self._session = Session("opencode")

    def split(self, data: bytes) -> list[Any]:
        exported = decoded(data)
        rest = {name: value for name, value in exported.items() if name not in ("info", "messages")}
        session = {"session": mapping(exported.get("info"))}
        return [session, *items(exported.get("messages")), *({name: value} for name, value in rest.items())]

    def read(self, record: Any, place: str) -> list[NewEvent] | str:
        record = mapping(record)
        if "session" in record:
            return self._start(mapping(record.get("session")))
        if not self._session.id:
            raise Unreadable("names no session")
        if "info" not in record:
            return kind(*sorted(map(str, record))[:1])
        return self._message(mapping(record.get("info")), [*map(mapping, items(record.get("parts")))], place)

    def _start(self, info: dict[str, Any]) -> list[NewEvent]:
        own, parent = identifier(info.get("id")), identifier(info.get("parentID"))
        if not own:
            raise Unreadable("names no session")
        session = self._session
        session.id, session.subagent = parent or own, own if parent else ""
        session.agent_version = string(info.get("version"))
        session.location = normalise(string(info.get("directory")))
        # `opencode run` lets its session ask nobody anything.
        rules = [mapping(rule) for rule in items(info.get("permission"))]
        session.unattended = any((rule.get("permission"), rule.get("action")) == ("question", "deny") for rule in rules)
        common = session.fields(own)
        payload: Observation = SessionStarted(source="startup", title=string(info.get("title")), **common)
        if parent:
            payload = NoticeReceived(kind="subagent-started", text=string(info.get("title")), **common)
        return [session.event(payload, _micros(mapping(info.get("time")).get("created")))]

    def _message(self, info: dict[str, Any], parts: list[dict[str, Any]], place: str) -> list[NewEvent] | str:
        role, session = info.get("role"), self._session
        session.subagent_type = string(info.get("agent")) if session.subagent else ""
        common = session.fields(
            identifier(info.get("id")) or place,
            parent=identifier(info.get("parentID")),
            model=_model(info),
        )
        location = normalise(string(mapping(info.get("path")).get("cwd")))
        found: list[tuple[Observation, Any]] = []
        asks = ""
        # Part k has block 2k, and what came back of a call the block behind: a message that grows keeps its blocks.
        if role == "user":
            created = mapping(info.get("time")).get("created")
            prompts, asks = self._prompted(parts, common, location or session.location, _micros(created))
            found = [(seen, created) for seen in prompts]
        elif role == "assistant":
            found = _answers(info, parts, common)
        events = [session.event(seen, _micros(moment), location=location, actor=asks) for seen, moment in found]
        return events or kind(role, *(string(part.get("type")) for part in parts[:1]))

    def _prompted(
        self, parts: list[dict[str, Any]], common: LineFields, location: str, created: Micros
    ) -> tuple[list[Observation], str]:
        """What a message of the user's role asks, and who does: a command's text is the client's, what a program hands
        over is an agent's."""
        images = sum(string(part.get("mime")).startswith("image/") for part in parts)
        found: list[Observation] = []
        by_program = False
        for index, part in enumerate(parts):
            if asked := _asked(part, 2 * index, images, common):
                found += asked
                images = 0
                argument = _ARGUMENT.search(string(part.get("text"))) and not part.get("synthetic")
                by_program = by_program or bool(argument)
        texts = () if self._session.subagent else (string(part.get("text")) for part in parts)
        if any(is_expanded(text, location, self.agent, created) for text in texts):
            return found, CLIENT
        return found, "agent" if by_program else ""


def _answers(info: dict[str, Any], parts: list[dict[str, Any]], common: LineFields) -> list[tuple[Observation, Any]]:
    """What an agent's message says and does, how it failed, and what it cost, each with its time."""
    found: list[tuple[Observation, Any]] = []
    times, summary = mapping(info.get("time")), info.get("summary") is True
    for index, part in enumerate(parts):
        created = mapping(part.get("time")).get("start") or times.get("created")
        found += _answered(part, 2 * index, created, common, summary=summary)
    if error := mapping(info.get("error")):
        text = string(mapping(error.get("data")).get("message")) or string(error.get("name"))
        what = "interrupted" if error.get("name") == "MessageAbortedError" else "api-error"
        notice = NoticeReceived(kind=what, text=text, block=2 * len(parts), **common)
        found.append((notice, times.get("completed")))
    if spent := _tokens(mapping(info.get("tokens"))):
        tokens = common.copy()
        tokens["line"] += ":tokens"
        notice = NoticeReceived(kind="tokens", data=spent, **tokens)
        found.append((notice, times.get("completed") or times.get("created")))
    return found


def _model(info: dict[str, Any]) -> str:
    """The model of an answer; a prompt names it one level deeper."""
    return string(info.get("modelID")) or string(mapping(info.get("model")).get("modelID"))


def _micros(milliseconds: Any) -> Micros:
    return Micros(min(count(milliseconds), 253_402_300_799_000) * 1000)  # the year 9999


def _asked(part: dict[str, Any], block: int, images: int, common: LineFields) -> list[Observation]:
    match part.get("type"):
        case "text" if text := string(part.get("text")):
            # `synthetic` is text that the client put there: files that were named, reminders.
            meta = part.get("synthetic") is True or part.get("ignored") is True
            return [PromptSubmitted(text=text, meta=meta, images=images, block=block, **common)]
        case "compaction":
            return [ContextCompacted(trigger="auto" if part.get("auto") is True else "manual", block=block, **common)]
        case "subtask" if text := string(part.get("prompt")):
            return [PromptSubmitted(text=text, meta=True, block=block, **common)]
        case _:
            return []


def _answered(
    part: dict[str, Any], block: int, created: Any, common: LineFields, *, summary: bool
) -> list[tuple[Observation, Any]]:
    text = string(part.get("text")).strip()
    match part.get("type"):
        case "text" if text and summary:
            return [(ContextCompacted(text=text, block=block, **common), created)]
        case "text" if text:
            return [(ResponseReceived(text=text, block=block, **common), created)]
        case "reasoning" if text:
            return [(ResponseReceived(text=text, kind="thinking", block=block, **common), created)]
        case "tool":
            return _used(part, block, created, common)
        case "retry":
            error = mapping(mapping(part.get("error")).get("data"))
            return [
                (NoticeReceived(kind="api-error", text=string(error.get("message")), block=block, **common), created)
            ]
        case _:
            return []


def _used(part: dict[str, Any], block: int, created: Any, common: LineFields) -> list[tuple[Observation, Any]]:
    """A call, and what came back of it once it has ended."""
    state, tool = mapping(part.get("state")), string(part.get("tool"))
    times, given = mapping(state.get("time")), mapping(state.get("input"))
    call = identifier(part.get("callID")) or f"{common['line']}.{block}"
    found: list[tuple[Observation, Any]] = [
        (ToolCalled(tool=tool, call=call, input=given, block=block, **common), times.get("start") or created)
    ]
    status = state.get("status")
    if status not in ("completed", "error"):
        return found
    details = mapping(state.get("metadata"))
    code, started, ended = integer(details.get("exit")), integer(times.get("start")), integer(times.get("end"))
    outcome = ToolFailed if status == "error" or code else ToolReturned
    returned = outcome(
        text=string(state.get("output") if status == "completed" else state.get("error")),
        tool=tool,
        call=call,
        exit_code=code,
        duration_ms=max(0, ended - started) if started is not None and ended is not None else None,
        file=string(given.get("filePath")),
        patch=hunks_of(string(details.get("diff"))),
        asked=identifier(details.get("sessionId")) if tool == "task" else "",
        block=block + 1,
        **common,
    )
    return [*found, (returned, times.get("end") or created)]


def _tokens(tokens: dict[str, Any]) -> dict[str, int]:
    cache = mapping(tokens.get("cache"))
    spent = token_counts(
        taken=count(tokens.get("input")) + count(cache.get("write")),
        given=count(tokens.get("output")) + count(tokens.get("reasoning")),
        cached=count(cache.get("read")),
    )
    return spent if any(spent.values()) else {}
