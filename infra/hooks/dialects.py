"""Hooks of other clients in the words of Claude Code's, which `memctl.infra.hooks.payloads` reads.

Sources: Gemini CLI's hooks reference (docs/hooks/reference.md, 0.61), Cursor's (cursor.com/docs/agent/hooks, 2.0).
Codex, and memctl's plugin for OpenCode, send Claude Code's own shapes.
"""

import json
from collections.abc import Mapping
from typing import Any

from memctl.domain.support.json_bodies import has_few_values
from memctl.domain.support.location import normalise
from memctl.infra.transcripts.fields import identifier, items, mapping, string
from memctl.infra.transcripts.formats import Unfinished, Unreadable, decoded
from memctl.infra.transcripts.gemini import typed

Payload = dict[str, Any]

_GEMINI = {
    "SessionStart": "SessionStart",
    "SessionEnd": "SessionEnd",
    "BeforeAgent": "UserPromptSubmit",
    "AfterAgent": "Stop",
}
"""Passed over: its hooks for tools, since the transcript holds the same under ids that they do not have; and
`PreCompress`, which it runs before every request to its model, whether anything is compressed or not (seen in 0.61).
"""

_CURSOR = {
    "sessionStart": "SessionStart",
    "sessionEnd": "SessionEnd",
    "beforeSubmitPrompt": "UserPromptSubmit",
    "postToolUse": "PostToolUse",
    "postToolUseFailure": "PostToolUseFailure",
    "afterAgentResponse": "Stop",
    "preCompact": "PreCompact",
    "subagentStop": "SubagentStop",
}


def in_claudes_words(agent: str, payload: Payload) -> Payload:
    """The payload as Claude Code would have sent it. Hooks that are not known keep their name."""
    if agent == "gemini-cli":
        return _of_gemini(payload)
    if agent == "cursor":
        return _of_cursor(payload)
    return payload


def read_asked(agent: str, body: bytes, event: str = "") -> tuple[Payload, Payload]:
    """What a hook sends that asks, as it is and in Claude Code's words; both empty where it is no JSON object. `event`
    names the hook where the payload does not."""
    try:
        sent = decoded(body)
    except (Unreadable, Unfinished):
        return {}, {}
    named = sent if string(sent.get("hook_event_name")) or not event else {**sent, "hook_event_name": event}
    return sent, in_claudes_words(agent, named)


def place_of(payload: Payload) -> tuple[str, str]:
    """The session that a hook asks for, and where it works; both as memctl compares them."""
    return identifier(payload.get("session_id")), normalise(string(payload.get("cwd")))


def answer(agent: str, payload: Mapping[str, Any], text: str) -> Payload:
    """The text for the agent in the form in which its client takes it at that hook.

    Without a hook's name in the payload nobody's form is asked for: then it is the older `{"context": …}`.
    """
    name = string(payload.get("hook_event_name"))
    if not name:
        return {"context": text}
    if agent == "cursor":
        return {"additional_context": text}
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}


def _of_gemini(payload: Payload) -> Payload:
    name = string(payload.get("hook_event_name"))
    translated = {**payload, "hook_event_name": _GEMINI.get(name, name)}
    if name == "BeforeAgent":
        translated["prompt"] = typed(string(payload.get("prompt")))
    elif name == "AfterAgent":
        translated["last_assistant_message"] = payload.get("prompt_response")
    elif name not in _GEMINI:
        translated["hook_event_name"] = f"gemini:{name}"
    return translated


def _of_cursor(payload: Payload) -> Payload:
    name = string(payload.get("hook_event_name"))
    roots = [root for root in items(payload.get("workspace_roots")) if isinstance(root, str)]
    translated = {
        **payload,
        "hook_event_name": _CURSOR.get(name, f"cursor:{name}"),
        "session_id": payload.get("conversation_id") or payload.get("session_id"),
        "cwd": string(payload.get("cwd")) or next(iter(roots), ""),
        "version": payload.get("cursor_version"),
    }
    match name:
        case "sessionStart":
            translated["source"] = "startup"
        case "postToolUse":
            translated["tool_response"] = _tool_output(payload.get("tool_output"))
            translated["duration_ms"] = _whole(payload.get("duration"))
        case "postToolUseFailure":
            translated["error"] = payload.get("error_message")
            translated["duration_ms"] = _whole(payload.get("duration"))
        case "afterAgentResponse":
            translated["last_assistant_message"] = payload.get("text")
    return translated


def _tool_output(output: Any) -> Any:
    """What Cursor hands on as JSON in a string; a shell's exit code under Claude Code's name for it."""
    if isinstance(output, str) and has_few_values(output.encode("utf-8", "replace")):
        try:
            output = json.loads(output)
        except (ValueError, RecursionError):
            return output
    details = mapping(output)
    if not details:
        return output
    return {**details, "exit_code": details.get("exitCode", details.get("exit_code"))}


def _whole(number: Any) -> Any:
    return int(number) if isinstance(number, float) and number == number and abs(number) < 1e15 else number
