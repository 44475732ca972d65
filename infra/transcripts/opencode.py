"""OpenCode sessions as `opencode export ID` writes them: one JSON document `{info, messages: [{info, parts}]}`.

Messages and parts have ids and times in milliseconds. A session with a parent is a subagent's: it is read into its
parent's stream. Not kept: `step-start`, `step-finish`, `snapshot`, `patch` (a digest of what the calls say in full),
and the list of todos, which its tool's calls hold.
"""

from pathlib import Path
from typing import Any

from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.observations import Agent, ContextCompacted, SessionStarted
from memctl.domain.support import patterns
from memctl.domain.support.location import normalise
from memctl.domain.support.provenance import CLIENT
from memctl.infra.transcripts.command_files import is_expanded
from memctl.infra.transcripts.fields import count, identifier, integer, items, kind, mapping, string
from memctl.infra.transcripts.formats import Line, Session, Unreadable, decoded, token_counts
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
        line = Line(session, own, _micros(mapping(info.get("time")).get("created")))
        if parent:
            line.noticed("subagent-started", string(info.get("title")))
        else:
            line.add(SessionStarted(source="startup", title=string(info.get("title")), **line.fields))
        return line.events

    def _message(self, info: dict[str, Any], parts: list[dict[str, Any]], place: str) -> list[NewEvent] | str:
        role, session = info.get("role"), self._session
        session.subagent_type = string(info.get("agent")) if session.subagent else ""
        line = Line(
            session,
            identifier(info.get("id")) or place,
            _micros(mapping(info.get("time")).get("created")),
            parent=identifier(info.get("parentID")),
            model=_model(info),
            location=normalise(string(mapping(info.get("path")).get("cwd"))),
        )
        # Part k has block 2k, and what came back of a call the block behind: a message that grows keeps its blocks.
        if role == "user":
            self._prompted(parts, line)
        elif role == "assistant":
            _answer(info, parts, line)
        return line.events or kind(role, *(string(part.get("type")) for part in parts[:1]))

    def _prompted(self, parts: list[dict[str, Any]], line: Line) -> None:
        """What a message of the user's role asks: a command's text is the client's, what a program hands over is an
        agent's."""
        asked = [part for part in parts if _asks(part)]
        texts = () if self._session.subagent else (string(part.get("text")) for part in parts)
        location = line.location or self._session.location
        if any(is_expanded(text, location, self.agent, line.at) for text in texts):
            line.actor = CLIENT
        elif any(_ARGUMENT.search(string(part.get("text"))) and not part.get("synthetic") for part in asked):
            line.actor = "agent"
        images = sum(string(part.get("mime")).startswith("image/") for part in parts)
        for index, part in enumerate(parts):
            if _asks(part):
                _ask(part, 2 * index, images, line)
                images = 0


def _answer(info: dict[str, Any], parts: list[dict[str, Any]], line: Line) -> None:
    """What an agent's message says and does, how it failed, and what it cost, each with its time."""
    times, summary = mapping(info.get("time")), info.get("summary") is True
    for index, part in enumerate(parts):
        started = mapping(part.get("time")).get("start")
        _part(part, 2 * index, _micros(started or times.get("created")), line, summary=summary)
    ended = _micros(times.get("completed"))
    if error := mapping(info.get("error")):
        text = string(mapping(error.get("data")).get("message")) or string(error.get("name"))
        what = "interrupted" if error.get("name") == "MessageAbortedError" else "api-error"
        line.noticed(what, text, block=2 * len(parts), at=ended)
    if spent := _tokens(mapping(info.get("tokens"))):
        line.fields["line"] += ":tokens"
        line.noticed("tokens", data=spent, at=_micros(times.get("completed") or times.get("created")))


def _model(info: dict[str, Any]) -> str:
    """The model of an answer; a prompt names it one level deeper."""
    return string(info.get("modelID")) or string(mapping(info.get("model")).get("modelID"))


def _micros(milliseconds: Any) -> Micros:
    return Micros(min(count(milliseconds), 253_402_300_799_000) * 1000)  # the year 9999


def _asks(part: dict[str, Any]) -> bool:
    """Whether a part of a message of the user's role says anything."""
    says = {"text": part.get("text"), "compaction": "compaction", "subtask": part.get("prompt")}
    return bool(string(says.get(string(part.get("type")))))


def _ask(part: dict[str, Any], block: int, images: int, line: Line) -> None:
    match part.get("type"):
        case "text":
            # `synthetic` is text that the client put there: files that were named, reminders.
            meta = part.get("synthetic") is True or part.get("ignored") is True
            line.prompted(string(part.get("text")), meta=meta, images=images, block=block)
        case "compaction":
            trigger = "auto" if part.get("auto") is True else "manual"
            line.add(ContextCompacted(trigger=trigger, block=block, **line.fields))
        case "subtask":
            line.prompted(string(part.get("prompt")), meta=True, block=block)


def _part(part: dict[str, Any], block: int, at: Micros, line: Line, *, summary: bool) -> None:
    text = string(part.get("text")).strip()
    match part.get("type"):
        case "text" if text and summary:
            line.add(ContextCompacted(text=text, block=block, **line.fields), at=at)
        case "text" | "reasoning" as type:
            line.said(text, thinking=type == "reasoning", block=block, at=at)
        case "tool":
            _used(part, block, at, line)
        case "retry":
            error = mapping(mapping(part.get("error")).get("data"))
            line.noticed("api-error", string(error.get("message")), block=block, at=at)


def _used(part: dict[str, Any], block: int, at: Micros, line: Line) -> None:
    """A call, and what came back of it once it has ended."""
    state, tool = mapping(part.get("state")), string(part.get("tool"))
    times, given = mapping(state.get("time")), mapping(state.get("input"))
    call = identifier(part.get("callID")) or f"{line.fields['line']}.{block}"
    line.called(tool, call, given, block=block, at=_micros(times.get("start")) if times.get("start") else at)
    status = state.get("status")
    if status not in ("completed", "error"):
        return
    details = mapping(state.get("metadata"))
    code, started, ended = integer(details.get("exit")), integer(times.get("start")), integer(times.get("end"))
    line.answered(
        failed=status == "error" or code,
        text=string(state.get("output") if status == "completed" else state.get("error")),
        tool=tool,
        call=call,
        exit_code=code,
        duration_ms=max(0, ended - started) if started is not None and ended is not None else None,
        file=string(given.get("filePath")),
        patch=hunks_of(string(details.get("diff"))),
        asked=identifier(details.get("sessionId")) if tool == "task" else "",
        block=block + 1,
        at=_micros(times.get("end")) if times.get("end") else at,
    )


def _tokens(tokens: dict[str, Any]) -> dict[str, int]:
    cache = mapping(tokens.get("cache"))
    spent = token_counts(
        taken=count(tokens.get("input")) + count(cache.get("write")),
        given=count(tokens.get("output")) + count(tokens.get("reasoning")),
        cached=count(cache.get("read")),
    )
    return spent if any(spent.values()) else {}
