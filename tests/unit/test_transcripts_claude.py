"""Claude Code lines in miniature."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from events import NOON

from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import (
    ContextCompacted,
    Hunk,
    NoticeReceived,
    PromptSubmitted,
    ResponseReceived,
    SessionStarted,
    ToolCalled,
    ToolFailed,
    ToolReturned,
)
from memctl.infra.hooks.payloads import parse_hook
from memctl.infra.transcripts.claude import Claude
from memctl.infra.transcripts.reading import Parsed, parse_lines, raw_lines


def line(type: str, content: Any = None, **fields: Any) -> dict[str, Any]:
    base = {
        "type": type,
        "uuid": "u-1",
        "parentUuid": "u-0",
        "sessionId": "s-1",
        "isSidechain": False,
        "timestamp": "2026-01-02T03:04:05.678Z",
        "cwd": "D:\\work\\cli",
        "version": "2.1.5",
        "gitBranch": "main",
    }
    if content is not None:
        base["message"] = {"role": type, "content": content}
    return base | fields


def parse(*records: Any) -> list[Parsed]:
    data = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    return list(parse_lines(raw_lines(io.BytesIO(data)), Claude()))


def events(*records: Any) -> list[NewEvent]:
    return [event for parsed in parse(*records) for event in parsed.events]


def ignored(record: Any) -> str:
    (parsed,) = parse(record)
    assert parsed.outcome == "ignored"
    return parsed.kind


def test_a_prompt_keeps_who_where_and_when() -> None:
    (event,) = events(line("user", "Fix the lint errors"))
    assert event == NewEvent(
        stream="session/claude-code/s-1",
        payload=PromptSubmitted(
            text="Fix the lint errors", line="u-1", parent="u-0", agent_version="2.1.5", branch="main"
        ),
        occurred_at=1767323045678000,
        dedupe_key="transcript:claude-code:s-1:u-1:0",
        actor="user",
        location="D:/work/cli",
        session_id="s-1",
    )


def test_each_block_of_an_answer_is_an_event_of_its_own_with_the_messages_tokens() -> None:
    message = {
        "id": "msg_1",
        "model": "claude-x",
        "usage": {
            "input_tokens": 3,
            "cache_creation_input_tokens": 10,
            "cache_read_input_tokens": 100,
            "output_tokens": 7,
        },
        "content": [
            {"type": "thinking", "thinking": "Look first."},
            {"type": "text", "text": "\n\nI look."},
            {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}},
        ],
    }
    thought, said, called = events(line("assistant", message=message))
    assert [event.dedupe_key[-2:] for event in (thought, said, called)] == [":0", ":1", ":2"]
    assert isinstance(thought.payload, ResponseReceived)
    assert thought.payload.kind == "thinking"
    assert isinstance(said.payload, ResponseReceived)
    assert said.payload.text == "I look."
    assert isinstance(called.payload, ToolCalled)
    assert called.payload.input == {"command": "ls"}
    assert {event.actor for event in (thought, said, called)} == {"agent"}
    for payload in (thought.payload, said.payload, called.payload):
        assert (payload.message, payload.model) == ("msg_1", "claude-x")
        assert (payload.tokens_in, payload.tokens_out, payload.tokens_cached) == (13, 7, 100)


def test_a_result_carries_the_lines_structured_details() -> None:
    block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "ok"}]}
    details = {
        "filePath": "/w/a.go",
        "durationMs": 12,
        "structuredPatch": [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-a", "+b"]}],
    }
    (event,) = events(line("user", [block], toolUseResult=details))
    assert isinstance(event.payload, ToolReturned)
    assert (event.payload.text, event.payload.call, event.payload.file) == ("ok", "toolu_1", "/w/a.go")
    assert event.payload.duration_ms == 12
    assert event.payload.patch == (Hunk(1, 1, ("-a", "+b")),)
    assert event.actor == "tool"


@pytest.mark.parametrize("details", ["Error: Exit code 2\nno", ["x"], None, 7, {"filePath": 3, "durationMs": "x"}])
def test_a_result_is_kept_whatever_its_details_are(details: Any) -> None:
    block = {"type": "tool_result", "tool_use_id": "t", "content": "Exit code 2\nno", "is_error": True}
    (event,) = events(line("user", [block], toolUseResult=details))
    assert isinstance(event.payload, ToolFailed)
    assert event.payload.exit_code == 2


def test_details_are_nobodys_where_a_line_has_several_results() -> None:
    blocks = [{"type": "tool_result", "tool_use_id": name, "content": name} for name in ("a", "b")]
    first, second = events(line("user", blocks, toolUseResult={"filePath": "/x"}))
    assert isinstance(first.payload, ToolReturned)
    assert isinstance(second.payload, ToolReturned)
    assert (first.payload.file, second.payload.file) == ("", "")


def test_images_are_counted_and_not_kept() -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "iVBORw0KGgo" * 9}}
    (shown,) = events(line("user", [{"type": "text", "text": "see"}, image, image]))
    assert isinstance(shown.payload, PromptSubmitted)
    assert (shown.payload.text, shown.payload.images) == ("see", 2)
    (alone,) = events(line("user", [image]))
    assert isinstance(alone.payload, PromptSubmitted)
    assert (alone.payload.text, alone.payload.images) == ("", 1)


def test_what_the_client_wrote_in_the_users_place_is_meta() -> None:
    for record in (
        line("user", "Base directory for this skill", isMeta=True),
        line("user", "<local-command-stdout>Bye!</local-command-stdout>"),
        line("user", "done", origin={"kind": "task-notification"}),
    ):
        (event,) = events(record)
        assert isinstance(event.payload, PromptSubmitted)
        assert event.payload.meta
        assert event.actor == "system"
    (typed,) = events(line("user", "hello", origin={"kind": "human"}))
    assert isinstance(typed.payload, PromptSubmitted)
    assert not typed.payload.meta


def test_an_interruption_is_a_notice() -> None:
    (event,) = events(line("user", [{"type": "text", "text": "[Request interrupted by user for tool use]"}]))
    assert isinstance(event.payload, NoticeReceived)
    assert event.payload.kind == "interrupted"


def test_a_subagents_wrapped_message_is_the_subagents_and_has_its_own_id() -> None:
    inner = {
        "type": "assistant",
        "uuid": "inner-1",
        "timestamp": "2026-01-02T03:04:06Z",
        "message": {"content": [{"type": "tool_use", "id": "t2", "name": "Read", "input": {}}]},
    }
    wrapped = line("progress", data={"type": "agent_progress", "agentId": "a24", "message": inner})
    own_file = line("assistant") | inner | {"isSidechain": True, "agentId": "a24", "parentUuid": None}
    (event,) = events(wrapped)
    assert event.stream == "session/claude-code/s-1"
    assert isinstance(event.payload, ToolCalled)
    assert event.payload.subagent == "a24"
    assert event.dedupe_key == "transcript:claude-code:s-1:inner-1:0"
    assert events(own_file) == [event]


def test_a_start_is_known_by_the_clients_start_hooks() -> None:
    data = {"type": "hook_progress", "hookEvent": "SessionStart", "hookName": "SessionStart:resume"}
    attachment = {"type": "hook_success", "hookEvent": "SessionStart", "hookName": "SessionStart:clear"}
    older, newer = events(line("progress", data=data), line("attachment", attachment=attachment, uuid="u-2"))
    assert isinstance(older.payload, SessionStarted)
    assert isinstance(newer.payload, SessionStarted)
    assert (older.payload.source, newer.payload.source) == ("resume", "clear")


def test_a_compaction_is_told_by_its_boundary_and_its_summary() -> None:
    boundary = line(
        "system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 168483}, parentUuid=None
    )
    summary = line("user", "This session is being continued", isCompactSummary=True, uuid="u-2")
    first, second = events(boundary, summary)
    assert isinstance(first.payload, ContextCompacted)
    assert (first.payload.trigger, first.payload.tokens_before) == ("auto", 168483)
    assert isinstance(second.payload, ContextCompacted)
    assert second.payload.text == "This session is being continued"


def test_notices_without_a_uuid_are_named_by_their_time_or_place() -> None:
    bare = {"sessionId": "s-1", "timestamp": "2026-01-02T03:04:05.678Z"}
    queued, taken, link, title = events(
        {"type": "queue-operation", "operation": "enqueue", "content": "and run the tests", **bare},
        {"type": "queue-operation", "operation": "remove", **bare},
        {"type": "pr-link", "prNumber": 7, "prUrl": "https://example.com/pull/7", "prRepository": "o/r", **bare},
        {"type": "custom-title", "customTitle": "Lint", "sessionId": "s-1"},
    )
    assert [event.dedupe_key.removeprefix("transcript:claude-code:s-1:") for event in (queued, taken, link, title)] == [
        "enqueue@1767323045678000:0",
        "remove@1767323045678000:0",
        "pr-link@1767323045678000:0",
        "#4:0",
    ]
    kinds = [event.payload.kind for event in (queued, taken, link, title) if isinstance(event.payload, NoticeReceived)]
    assert kinds == ["queued-prompt", "queue-taken", "pull-request", "title"]


def test_a_prompt_typed_while_the_agent_worked_is_a_prompt() -> None:
    (event,) = events(line("attachment", attachment={"type": "queued_command", "prompt": "use rebase"}))
    assert isinstance(event.payload, PromptSubmitted)
    assert event.payload.text == "use rebase"


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        (line("progress", data={"type": "bash_progress", "output": "x"}), "progress:bash_progress"),
        (line("attachment", attachment={"type": "nested_memory", "content": {}}), "attachment:nested_memory"),
        (line("system", subtype="turn_duration", durationMs=5), "system:turn_duration"),
        ({"type": "file-history-snapshot", "snapshot": {}}, "file-history-snapshot"),
        ({"type": "summary", "summary": "x", "leafUuid": "y"}, "summary"),
        ({"type": "something new\n", "x": 1}, "something_new_"),
        (line("assistant", [{"type": "thinking", "thinking": "", "signature": "x"}]), "assistant:thinking"),
        (line("assistant", [{"type": "fallback"}]), "assistant:fallback"),
        (line("user", ""), "user:empty"),
        (line("user", 7), "user:empty"),
        ({}, "unknown"),
    ],
)
def test_what_is_not_kept_is_counted_by_the_clients_word_for_it(record: Any, kind: str) -> None:
    assert ignored(record) == kind


def test_a_message_without_a_session_is_bad() -> None:
    (parsed,) = parse(line("user", "hi", sessionId=None))
    assert (parsed.outcome, parsed.why) == ("bad", "names no session")


@pytest.mark.parametrize("time", [None, 7, "yesterday", "0001-01-01T00:00:00+14:00", "1950-01-01T00:00:00Z"])
def test_a_time_that_is_none_is_zero_whatever_came_before(time: Any) -> None:
    first, second = events(line("user", "a"), line("user", "b", uuid="u-2", timestamp=time))
    assert (first.occurred_at, second.occurred_at) == (1767323045678000, 0)


def test_a_hostile_session_id_cannot_leave_its_stream() -> None:
    (event,) = events(line("user", "hi", sessionId="../../etc/passwd\n" * 50))
    assert event.stream.startswith("session/claude-code/x")
    assert len(event.stream) < 60
    assert "/" not in event.session_id


@pytest.mark.parametrize(
    ("entrypoint", "actor"),
    [("cli", "user"), ("claude-desktop", "user"), ("sdk-ts", "agent"), ("sdk-py", "agent"), ("sdk-cli", "agent"),
     ("mcp", "agent"), ("claude-code-github-action", "agent"), ("claude-vscode", "user"), ("remote_trigger", "agent")],
)  # fmt: skip
def test_what_a_program_asks_is_nobodys_typed_word(entrypoint: str, actor: str) -> None:
    (event,) = events(line("user", "always use quartz for dates", entrypoint=entrypoint))
    assert event.actor == actor
    hooked = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": "s",
        "prompt": "hello",
        "memctl_entrypoint": entrypoint,
    }
    (event,) = parse_hook(json.dumps(hooked).encode(), "d", NOON).events
    assert event.actor == actor


@pytest.mark.parametrize(
    "mark",
    [
        {"isMeta": True},
        {"wakeupSource": "schedule_wakeup"},
        {"scheduledTaskId": "8f31"},
        {"promptSource": "system"},
        {"origin": {"kind": "task-notification", "subkind": "scheduled-trigger"}},
    ],
)
def test_what_the_client_says_that_it_sent_itself_is_the_clients(mark: dict[str, Any]) -> None:
    (fired,) = events(line("user", "always use rebase", **mark))
    assert isinstance(fired.payload, PromptSubmitted)
    assert fired.payload.meta


@pytest.mark.parametrize(
    ("mark", "actor"),
    [({"promptSource": "typed"}, "user"), ({"promptSource": "unheard"}, "agent"), ({"agentName": "worker"}, "agent"),
     ({"promptSource": "sdk"}, "agent"), ({"promptSource": "sdk", "entrypoint": "claude-vscode"}, "user")],
)  # fmt: skip
def test_a_prompt_from_a_place_that_nobody_knows_is_nobodys(mark: dict[str, Any], actor: str) -> None:
    (event,) = events(line("user", "always use rebase", **mark))
    assert event.actor == actor
    attachment = {"type": "queued_command", "commandMode": "monitor", "prompt": "use rebase"}
    (event,) = events(line("attachment", attachment=attachment))
    assert isinstance(event.payload, PromptSubmitted)
    assert event.payload.meta


def test_a_scheduled_prompt_amid_the_work_is_the_clients() -> None:
    for mark in ({"isMeta": True}, {"origin": {"kind": "peer"}}):
        attachment = {"type": "queued_command", "commandMode": "prompt", "prompt": "use rebase", **mark}
        (event,) = events(line("attachment", attachment=attachment))
        assert isinstance(event.payload, PromptSubmitted)
        assert event.payload.meta
    (event,) = events(
        line("attachment", attachment={"type": "queued_command", "prompt": "x", "origin": {"kind": "human"}})
    )
    assert isinstance(event.payload, PromptSubmitted)
    assert not event.payload.meta
