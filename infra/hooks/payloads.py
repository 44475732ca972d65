"""Parses hook payloads in Claude Code's format (Codex has nearly the same). `dialects` translates those of other
clients to it first.

The delivery carries no time, so the hook stamps it. Unknown hooks and fields never fail: they are ignored by kind.
"""

import hashlib
import json
from collections import Counter
from typing import Any

import msgspec

from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.observations import (
    MESSAGE,
    Agent,
    ContextCompacted,
    NoticeReceived,
    Observation,
    PromptSubmitted,
    ResponseReceived,
    SessionEnded,
    SessionStarted,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    Via,
    hook_key,
    session_stream,
)
from memctl.domain.language.prompts import framed_by_another
from memctl.domain.support import patterns
from memctl.domain.support.location import normalise
from memctl.domain.support.provenance import CLIENT, unattended
from memctl.infra.hook import AGENTS_SHELL
from memctl.infra.hooks.dialects import in_claudes_words
from memctl.infra.transcripts.claude import is_unattended
from memctl.infra.transcripts.command_files import is_expanded
from memctl.infra.transcripts.fields import identifier, integer, items, joined, kind, mapping, string
from memctl.infra.transcripts.formats import LineFields, Unreadable, decoded, exit_code_of, read_within_limits
from memctl.infra.transcripts.patches import structured_hunks

ENTRYPOINT = "memctl_entrypoint"
"""In a payload: how its client was started, where its plugin knows that a program did. It takes trust away, and gives
none: the header of the delivery counts as well."""

_EXIT_CODE = patterns.compile(r"(?:Error: )?(?:Command failed with exit code|Exit code:?) (\d{1,10})\b")
_MAX_PAYLOAD = 64 * 1024 * 1024
"""Bytes of what a client hands a hook: as much as a line of a transcript may have."""


# Fields of an answer that other fields of the event hold, or that repeat the call's input or the file.
_ELSEWHERE = frozenset(
    (
        *("content", "stdout", "stderr", "filePath", "interrupted", "exit_code"),
        *("structuredPatch", "originalFile", "oldString", "newString", "isImage", "noOutputExpected"),
    )
)


_WRITTEN = frozenset(("SessionStart", "Stop", "StopFailure", "SubagentStop", "PreCompact", "PostCompact", "SessionEnd"))
"""Hooks at whose time a transcript has, or will shortly have, something to read."""


class ParsedHook(msgspec.Struct, frozen=True):
    """What became of one delivery: events, or the kind it is ignored as, or why it is bad."""

    events: tuple[NewEvent, ...] = ()
    kind: str = ""
    why: str = ""
    transcripts: tuple[str, ...] = ()
    """Files that are worth reading now; see `memctl.api.write.transcripts`."""
    begins: bool = False
    """A session begins: others before it may have ended without a word."""


class _HookFields(LineFields):
    via: Via


def parse_hook(
    raw: bytes,
    delivery_id: str,
    received_at: Micros,
    agent: Agent = "claude-code",
    event_name: str = "",
    started: str = "",
    *,
    looks: bool = True,
) -> ParsedHook:
    """The events of one delivery, under `hook:<delivery id>` (further ones `:1`, `:2`).

    `event_name` is the hook that ran, for clients whose payload does not name it; `started` how the client was, as the
    delivery's header says. Without `looks` no file is looked at: then each prompt is the client's word. Never raises.
    """
    if not raw.strip():
        return ParsedHook(kind="empty")
    if len(raw) > _MAX_PAYLOAD:
        return ParsedHook(why=f"payload of {len(raw)} bytes is longer than {_MAX_PAYLOAD}")
    try:
        payload, _ = read_within_limits(decoded, raw)
    except Unreadable as error:
        return ParsedHook(why=str(error))
    if event_name and not string(payload.get("hook_event_name")):
        payload = {**payload, "hook_event_name": event_name}
    ways = (started, payload.get(ENTRYPOINT, ""))
    payload = in_claudes_words(agent, payload)
    name = string(payload.get("hook_event_name"))
    session = identifier(payload.get("session_id"))
    if not session:
        return ParsedHook(why="names no session")
    common = _HookFields(
        via="hook",
        line="",
        parent="",
        branch="",
        agent_version=string(payload.get("version")),
        model=string(payload.get("model")),
        subagent=identifier(payload.get("agent_id")),
        subagent_type=string(payload.get("agent_type")),
    )
    location = normalise(string(payload.get("cwd")))
    # No transcript is written: only `codex exec --ephemeral` has it so.
    ephemeral = agent == "codex" and "transcript_path" in payload and not string(payload["transcript_path"])
    alone = any(map(is_unattended, ways)) or ephemeral
    speaker = "agent" if alone or common["subagent"] else _who_types(name, payload, agent, location, looks=looks)
    found = _observations(name, payload, common, speaker)
    files = _written(payload) if name in _WRITTEN and AGENTS_SHELL not in ways else ()
    begins = name == "SessionStart"
    if not found:
        return ParsedHook(kind=kind("hook", name), transcripts=files, begins=begins)
    if isinstance(payload.get("messages"), list) and name == "Stop":
        keys = _keys_of_messages(agent, session, found)
    else:
        key = hook_key(delivery_id)
        keys = [key, *(f"{key}:{index}" for index in range(1, len(found)))]
    events = tuple(
        NewEvent(
            stream=session_stream(agent, session),
            payload=observation,
            occurred_at=received_at,
            dedupe_key=key,
            actor=unattended(actor) if alone else actor,
            location=location,
            session_id=session,
        )
        for key, (observation, actor) in zip(keys, found, strict=True)
    )
    return ParsedHook(events=events, transcripts=files, begins=begins)


def _written(payload: dict[str, Any]) -> tuple[str, ...]:
    """The transcripts that a client names. An agent's command may name any file."""
    named = (string(payload.get(field)) for field in ("transcript_path", "agent_transcript_path"))
    return tuple(file for file in named if file)


def _who_types(name: str, payload: dict[str, Any], agent: Agent, location: str, *, looks: bool) -> str:
    """Whose word a prompt is that no agent wrote: the client's, where that cannot be ruled out. It is the text of a
    command, as the client says or a file of the checkout shows, or stands in the frame of another client."""
    prompt = string(payload.get("prompt"))
    by_client = name == "UserPromptSubmit" and (
        not looks
        or payload.get("from_command") is True
        or framed_by_another(prompt, agent)
        or is_expanded(prompt, location, agent)
    )
    return CLIENT if by_client else "user"


def _keys_of_messages(agent: str, session: str, said: list[tuple[Observation, str]]) -> list[str]:
    """A key for each message of a conversation, by who says what and for the how manieth time. Handed over again it is
    known, and stays forgotten, also where its client has left out or changed what stood before it."""
    times, keys = Counter[str](), list[str]()
    for observation, actor in said:
        words = f"{session}\0{actor}\0{getattr(observation, 'text', '')}"
        times[words] += 1
        digest = hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()
        keys.append(f"{MESSAGE}{agent}:{session}:{digest[:32]}:{times[words]}")
    return keys


def _observations(name: str, payload: dict[str, Any], common: _HookFields, asks: str) -> list[tuple[Observation, str]]:
    match name:
        case "SessionStart":
            return [(SessionStarted(source=string(payload.get("source")), **common), "system")]
        case "SessionEnd":
            return [(SessionEnded(reason=string(payload.get("reason")), **common), "system")]
        case "UserPromptSubmit":
            text = string(payload.get("prompt"))
            return [(PromptSubmitted(text=text, **common), asks)] if text else []
        case "PostToolUse":
            return [(_called(payload, common), "agent"), (_returned(payload, common), "tool")]
        case "PostToolUseFailure":
            return [(_called(payload, common), "agent"), (_failed(payload, common), "tool")]
        case "PermissionDenied":
            text = string(payload.get("reason"))
            denied = ToolFailed(text=text, tool=_tool(payload), call=_call(payload), **common)
            return [(_called(payload, common), "agent"), (denied, "system")]
        case "Stop" if isinstance(payload.get("messages"), list):
            return _said(payload["messages"], common, asks)
        case "SubagentStop" if payload.get("agent_type") == "":
            return []  # nobody's subagent: Claude Code has one of its own write the summary of a compaction
        case "Stop" | "SubagentStop":
            text = string(payload.get("last_assistant_message")).strip()
            return [(ResponseReceived(text=text, **common), "agent")] if text else []
        case "StopFailure":
            text = string(payload.get("error_details")) or string(payload.get("last_assistant_message"))
            data = {"error": string(payload.get("error"))}
            return [(NoticeReceived(kind="api-error", text=text, data=data, **common), "system")]
        case "PreCompact":
            # The boundary itself: the summary comes with PostCompact, or with the transcript.
            return [(ContextCompacted(trigger=string(payload.get("trigger")), **common), "system")]
        case "PostCompact":
            text, trigger = string(payload.get("compact_summary")), string(payload.get("trigger"))
            return [(ContextCompacted(text=text, trigger=trigger, **common), "system")] if text else []
        case "TaskCreated" | "TaskCompleted":
            data = {"task": string(payload.get("task_id")), "description": string(payload.get("task_description"))}
            what = "task-created" if name == "TaskCreated" else "task-completed"
            return [(NoticeReceived(kind=what, text=string(payload.get("task_subject")), data=data, **common), "agent")]
        case _:
            # PreToolUse and PermissionRequest come before the outcome and say nothing more; PostToolBatch and
            # MessageDisplay repeat; the rest (Notification, ConfigChange, …) is about the client's own doings.
            return []


def _said(messages: list[Any], common: _HookFields, asks: str) -> list[tuple[Observation, str]]:
    """The messages of a conversation, as a client that has no other hooks hands them over at the end of a turn."""
    found: list[tuple[Observation, str]] = []
    for message in map(mapping, messages):
        text = joined(message.get("content")).strip()
        if text and message.get("role") == "user":
            found.append((PromptSubmitted(text=text, **common), asks))
        elif text and message.get("role") == "assistant":
            found.append((ResponseReceived(text=text, **common), "agent"))
    return found


def _tool(payload: dict[str, Any]) -> str:
    return string(payload.get("tool_name"))


def _call(payload: dict[str, Any]) -> str:
    return identifier(payload.get("tool_use_id"))


def _called(payload: dict[str, Any], common: _HookFields) -> ToolCalled:
    given = payload.get("tool_input")
    given = {"input": given} if isinstance(given, str) else mapping(given)
    return ToolCalled(tool=_tool(payload), call=_call(payload), input=given, **common)


def _returned(payload: dict[str, Any], common: _HookFields) -> ToolReturned:
    response = payload.get("tool_response")
    details = mapping(response)
    return ToolReturned(
        text=text_of(response),
        tool=_tool(payload),
        call=_call(payload),
        exit_code=integer(details.get("exit_code")),
        duration_ms=integer(payload.get("duration_ms")),
        interrupted=details.get("interrupted") is True,
        file=string(details.get("filePath")) or string(mapping(details.get("file")).get("filePath")),
        patch=structured_hunks(details.get("structuredPatch")),
        **common,
    )


def _failed(payload: dict[str, Any], common: _HookFields) -> ToolFailed:
    error = payload.get("error")
    text = error if isinstance(error, str) else text_of(error)
    code = _EXIT_CODE.match(text)
    return ToolFailed(
        text=text,
        tool=_tool(payload),
        call=_call(payload),
        exit_code=exit_code_of(code),
        duration_ms=integer(payload.get("duration_ms")),
        interrupted=payload.get("is_interrupt") is True,
        **common,
    )


def text_of(response: Any) -> str:
    """A tool's answer as the agent saw it, as far as the structured answer shows it."""
    if isinstance(response, (str, list)):
        return joined(response)
    details = mapping(response)
    if "stdout" in details:  # a command's answer, which may be empty
        return "\n".join(filter(None, (string(details.get(name)) for name in ("stdout", "stderr"))))
    file = mapping(details.get("file"))
    for text in (joined(details.get("content")), string(file.get("content")), string(details.get("result"))):
        if text:
            return text
    if names := [name for name in items(details.get("filenames")) if isinstance(name, str)]:
        return "\n".join(names)
    rest = {name: value for name, value in details.items() if name not in _ELSEWHERE}
    return json.dumps(rest, ensure_ascii=False, sort_keys=True, default=str) if rest else ""
