"""Codex rollouts: JSONL under `~/.codex/sessions`, each line `{timestamp, type, payload}`, no ids of lines.

The first `session_meta` names the session and says where it began; each `turn_context` says the working directory and
model of what follows. Messages and calls come twice, as `response_item` and as `event_msg`: the response item is kept
(it is complete and in every version), the `event_msg` ignored as its duplicate.
"""

from pathlib import Path
from types import NoneType
from typing import Any

from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.observations import Agent, ContextCompacted, SessionStarted
from memctl.domain.support import patterns
from memctl.domain.support.location import normalise
from memctl.infra.transcripts.fields import count, identifier, integer, items, joined, kind, mapping, micros, string
from memctl.infra.transcripts.formats import Line, Session, Unreadable, decoded_within, exit_code_of, token_counts

_TERMINALS = ("codex_cli_rs", "codex-tui")
_WINDOWS = ("codex_vscode", "Codex Desktop", "codex_chatgpt_desktop", "codex_atlas")
_PERSONS: dict[str | None, tuple[str | None, ...]] = {
    "cli": _TERMINALS, "vscode": _WINDOWS, None: (None, *_TERMINALS, *_WINDOWS),
}  # fmt: skip
"""By the source of a session which originators are clients that a person sits at, those of Codex's makers. The first
rollouts (2025) name neither, later ones the originator alone."""
_TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text")

# Texts in the user's place that the client put there: instructions, surroundings, skills, news of other agents.
_INJECTED = patterns.compile(
    r"\s*(?:# AGENTS\.md instructions|<(?:environment_context|user_instructions|INSTRUCTIONS|skill|turn_aborted|"
    r"subagent_notification|user_shell_command|user_action|permissions instructions|collaboration_mode|goal_context|"
    r"codex_internal_context|external_context|recommended_plugins|hook_prompt|model_switch|personality_spec)\b|"
    r"<external_|Warning: (?:The maximum number of unified exec processes|apply_patch was requested via |"
    r"Your account was flagged )|</?(?:image|audio)(?: name=[^>\n]*)?>\s*\Z)",
    patterns.I,
)
_SHELL_HEADER = patterns.compile(
    r"(?:(?:Chunk ID|Wall time|Process exited with code|Original token count|Exit code|Total output lines):?[^\n]*\n)+"
    r"(?:Output:\n?|\Z)"
)
_EXIT_CODE = patterns.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,10})\b", patterns.M)
_WALL_TIME = patterns.compile(r"^Wall time: (\d{1,9}(?:\.\d{1,9})?) seconds?", patterns.M)
_FAILED = ("failed to ", "exec_command failed", "apply_patch verification failed", "execution error")


class Codex:
    """The format's reader. It keeps what `session_meta` and the latest `turn_context` said."""

    agent: Agent = "codex"
    context: tuple[bytes, ...] = (b'"session_meta"', b'"turn_context"')

    def __init__(self, path: Path | None = None) -> None:
        self._session = Session("codex")

    def recognises(self, record: dict[str, Any]) -> bool:
        return isinstance(record.get("type"), str) and isinstance(record.get("payload"), dict)

    def read(self, record: dict[str, Any], place: str) -> list[NewEvent] | str:
        type, payload = record.get("type"), record.get("payload")
        if not isinstance(payload, dict):
            # The first rollouts (2025) wrote the payload bare, and the session's facts without a type.
            payload = record
            type = "session_meta" if type is None and "id" in record else "response_item"
        if type == "session_meta":
            return self._start(payload, micros(record.get("timestamp")), place)
        if type == "turn_context":
            session = self._session
            session.location = normalise(string(payload.get("cwd"))) or session.location
            session.model = string(payload.get("model")) or session.model
            return kind(type)
        if not self._session.id:
            raise Unreadable("no session_meta in front of it")
        line = Line(self._session, place, micros(record.get("timestamp")))
        if type == "response_item":
            _item(payload, line)
        elif type == "event_msg":
            _event(payload, line)
        elif type == "compacted":
            line.add(ContextCompacted(text=string(payload.get("message")), **line.fields))
        return line.events or kind(type, payload.get("type"), payload.get("role"))

    def _start(self, meta: dict[str, Any], moment: Micros, place: str) -> list[NewEvent] | str:
        id, session = identifier(meta.get("id")), self._session
        if not id:
            raise Unreadable("session_meta without an id")
        if session.id and id != session.id:
            # A fork begins with a copy of its parent's lines; they count as the fork's own.
            return kind("session_meta", "other")
        resumed = bool(session.id)
        git = mapping(meta.get("git"))
        session.id = id
        session.agent_version = string(meta.get("cli_version"))
        session.branch = string(git.get("branch"))
        session.location = normalise(string(meta.get("cwd"))) or session.location
        # A subagent's thread is a session of its own; its source is an object that says so.
        source = mapping(meta.get("source"))
        session.unattended = "subagent" not in source and not _is_persons(meta.get("source"), meta.get("originator"))
        session.subagent = id if "subagent" in source else ""
        spawn = mapping(mapping(source.get("subagent")).get("thread_spawn"))
        line = Line(session, place, micros(meta.get("timestamp")) or moment)
        started = SessionStarted(
            source="fork" if meta.get("forked_from_id") else "resume" if resumed else "startup",
            repository=string(git.get("repository_url")),
            commit=string(git.get("commit_hash")),
            parent_session=identifier(spawn.get("parent_thread_id")),
            **line.fields,
        )
        line.add(started)
        return line.events


def _item(item: dict[str, Any], line: Line) -> None:
    type = string(item.get("type"))
    call = identifier(item.get("call_id") or item.get("id"))
    match type:
        case "message":
            _message(item, line)
        case "reasoning":
            texts = [joined(item.get(name), of=_TEXTS) for name in ("summary", "content")]
            line.said("\n".join(text for text in texts if text).strip(), thinking=True)
        case "function_call" | "custom_tool_call" | "tool_search_call":
            given = item.get("arguments") if "arguments" in item else item.get("input")
            line.called(string(item.get("name")) or type.removesuffix("_call"), call, _arguments(given))
        case "local_shell_call" | "web_search_call":
            line.called(type.removesuffix("_call"), call, mapping(item.get("action")))
        case "function_call_output" | "custom_tool_call_output":
            _answer(item.get("output"), call, line)
        case "tool_search_output":
            line.answered(failed=False, call=call)  # its listing of tools is the client's, and long
        case "compaction" | "context_compaction":
            line.add(ContextCompacted(text=string(item.get("message")), **line.fields))


def _message(item: dict[str, Any], line: Line) -> None:
    content = item.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
    images = sum(mapping(block).get("type") == "input_image" for block in blocks)
    for index, block in enumerate(map(mapping, blocks)):
        text = string(block.get("text")) if block.get("type") in _TEXTS else ""
        if item.get("role") == "assistant":
            line.said(text, block=index, message=identifier(item.get("id")))
        elif item.get("role") == "user" and text.strip() and not _INJECTED.match(text):
            line.prompted(text, block=index, images=images)
            images = 0
    if images and item.get("role") == "user" and not line.events:
        line.prompted("", images=images)


def _event(event: dict[str, Any], line: Line) -> None:
    match event.get("type"):
        case "token_count":
            # It follows the message it counts, so it cannot stand on it: a function of the line alone.
            usage = mapping(mapping(event.get("info")).get("last_token_usage"))
            cached = count(usage.get("cached_input_tokens"))
            taken = max(0, count(usage.get("input_tokens")) - cached)
            data = token_counts(taken=taken, given=count(usage.get("output_tokens")), cached=cached)
            if any(data.values()):
                line.noticed("tokens", data=data)
        case "patch_apply_end":
            _patch(event, line)
        case "task_complete" | "turn_complete":
            duration = integer(event.get("duration_ms"))
            line.noticed("turn-completed", data={"duration_ms": duration} if duration is not None else {})
        case "turn_aborted":
            line.noticed("interrupted", string(event.get("reason")))
        case "error" | "stream_error":
            line.noticed("api-error", string(event.get("message")))
        case "thread_name_updated":
            line.noticed("title", string(event.get("thread_name")))


def _is_persons(source: Any, originator: Any) -> bool:
    """Whether a person is known to sit where a session was begun. What `codex exec` is given is a program's word, or
    another agent's, and so is what any other program asks of Codex's server, which writes `vscode` for all of them."""
    if not isinstance(originator, (str, NoneType)):
        return False
    return isinstance(source, (str, NoneType)) and originator in _PERSONS.get(source, ())


def _arguments(value: Any) -> dict[str, Any]:
    """A call's arguments: an object, JSON of an object, or text."""
    if isinstance(value, str):
        try:
            decoded = decoded_within(value)
        except ValueError:
            return {"input": value}
        return decoded if isinstance(decoded, dict) else {"input": value}
    return mapping(value)


def _answer(output: Any, call: str, line: Line) -> None:
    """What a call gave back: text, text under the shell's header lines, JSON with metadata, or a list of blocks."""
    success: Any = None
    if isinstance(output, dict):
        success = output.get("success")
        output = output.get("content")
    text = joined(output, of=_TEXTS)
    code: int | None = None
    duration: int | None = None
    if text.startswith(('{"output":', '{"metadata":')):
        metadata = mapping(_arguments(text).get("metadata"))
        if metadata:
            text = joined(_arguments(text).get("output"), of=_TEXTS)
            code = integer(metadata.get("exit_code"))
            duration = _milliseconds(metadata.get("duration_seconds"))
    elif header := _SHELL_HEADER.match(text):
        exit_code, wall_time = _EXIT_CODE.search(header[0]), _WALL_TIME.search(header[0])
        code = exit_code_of(exit_code)
        duration = _milliseconds(float(wall_time[1])) if wall_time else None
        text = text[header.end() :]
    failed = bool(code) or success is False or (code is None and text.startswith(_FAILED))
    line.answered(failed=failed, text=text, call=call, exit_code=code, duration_ms=duration)


def _milliseconds(seconds: Any) -> int | None:
    return integer(round(seconds * 1000, 3)) if isinstance(seconds, (int, float)) else None


def _patch(event: dict[str, Any], line: Line) -> None:
    """What a patch did to files. The call and its outcome have lines of their own; this one has the line numbers."""
    changes = {path: mapping(change) for path, change in mapping(event.get("changes")).items()}
    diffs = [f"{path}\n{string(change.get('unified_diff'))}".rstrip("\n") for path, change in changes.items()]
    data = {
        "call": identifier(event.get("call_id")),
        "success": event.get("success") is True,
        "files": {path: string(change.get("type")) for path, change in changes.items()},
    }
    line.noticed("patch", "\n".join(diffs), data)
