"""Codex lines in miniature."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import (
    NoticeReceived,
    PromptSubmitted,
    ResponseReceived,
    SessionStarted,
    ToolCalled,
    ToolFailed,
    ToolReturned,
)
from memctl.infra.transcripts.codex import Codex
from memctl.infra.transcripts.reading import Parsed, parse_lines, raw_lines

TIME = "2026-06-17T10:07:16.815Z"
META = {
    "id": "c-1",
    "timestamp": TIME,
    "cwd": "/work/agentv/",
    "cli_version": "0.140.0",
    "source": "cli",
    "originator": "codex-tui",
    "git": {"branch": "main", "commit_hash": "4e48", "repository_url": "https://example.com/o/agentv.git"},
}


def record(kind: str, /, **payload: Any) -> dict[str, Any]:
    return {"timestamp": TIME, "type": kind, "payload": payload}


def item(kind: str, /, **payload: Any) -> dict[str, Any]:
    return record("response_item", type=kind, **payload)


def message(role: str, *texts: str) -> dict[str, Any]:
    return item("message", role=role, content=[{"type": "input_text", "text": text} for text in texts])


def parse(*records: Any, wanted_from: int = 0) -> list[Parsed]:
    data = b"".join(json.dumps(each).encode() + b"\n" for each in (record("session_meta", **META), *records))
    return list(parse_lines(raw_lines(io.BytesIO(data)), Codex(), wanted_from))


def events(*records: Any) -> list[NewEvent]:
    return [event for parsed in parse(*records)[1:] for event in parsed.events]


def test_the_head_starts_the_session_and_says_where() -> None:
    (event,) = parse()[0].events
    assert event.stream == "session/codex/c-1"
    assert event.dedupe_key == "transcript:codex:c-1:#1:0"
    assert event.location == "/work/agentv"
    assert isinstance(event.payload, SessionStarted)
    assert event.payload.repository == "https://example.com/o/agentv.git"
    assert (event.payload.commit, event.payload.branch, event.payload.source) == ("4e48", "main", "startup")


def test_messages_are_taken_from_response_items_and_their_doubles_ignored() -> None:
    parsed = parse(
        message("user", "Publish failed"),
        record("event_msg", type="user_message", message="Publish failed"),
        message("assistant", "I look."),
        record("event_msg", type="agent_message", message="I look."),
        item("reasoning", summary=[{"type": "summary_text", "text": "Think"}]),
        record("event_msg", type="agent_reasoning", text="Think"),
    )[1:]
    assert [line.outcome for line in parsed] == ["events", "ignored"] * 3
    prompt, said, thought = (event.payload for line in parsed for event in line.events)
    assert isinstance(prompt, PromptSubmitted)
    assert prompt.text == "Publish failed"
    assert isinstance(said, ResponseReceived)
    assert said.text == "I look."
    assert isinstance(thought, ResponseReceived)
    assert (thought.text, thought.kind) == ("Think", "thinking")


def test_what_the_client_puts_in_front_of_the_user_is_not_the_users() -> None:
    kinds = [
        line.kind
        for line in parse(
            message("user", "# AGENTS.md instructions for /work\n<INSTRUCTIONS>", "<environment_context>\n <cwd>"),
            message("developer", "<permissions instructions>"),
            message("user", "<skill>\n<name>worktree</name>"),
        )[1:]
    ]
    assert kinds == ["response_item:message:user", "response_item:message:developer", "response_item:message:user"]


@pytest.mark.parametrize(
    "text",
    [
        "<user_action>\n  <context>User initiated a review task.</context>\n  <results>Never use eval.</results>",
        '<codex_internal_context source="goal">\nContinue working toward the active thread goal.',
        "<external_browser>Always use tabs.</external_browser>",
        "<ENVIRONMENT_CONTEXT>\n <cwd>/work</cwd>",
        "Warning: apply_patch was requested via exec_command. Use the apply_patch tool instead of exec_command.",
        "<image name=[Image #1]>",
        "</image>",
    ],
)
def test_what_the_client_says_in_the_users_place_is_no_prompt(text: str) -> None:
    (line,) = parse(message("user", text))[1:]
    assert line.kind == "response_item:message:user"


def test_the_marks_around_an_image_are_no_words() -> None:
    texts = ("<image name=[Image #1]>", "</image>", "[Image #1] Why is it red?", "<image> tags are closed here")
    image = {"type": "input_image", "image_url": "data:image/png;base64,AA=="}
    content = [{"type": "input_text", "text": text} for text in texts]
    found = events(item("message", role="user", content=[content[0], image, *content[1:]]))
    prompts = [event.payload for event in found if isinstance(event.payload, PromptSubmitted)]
    assert [(prompt.text, prompt.images) for prompt in prompts] == [(texts[2], 1), (texts[3], 0)]


def test_directory_and_model_are_those_of_the_turn() -> None:
    turn = record("turn_context", cwd="/work/other", model="gpt-x")
    before, after = events(message("user", "a"), turn, message("user", "b"))
    assert (before.location, after.location) == ("/work/agentv", "/work/other")
    assert isinstance(after.payload, PromptSubmitted)
    assert after.payload.model == "gpt-x"


def test_read_on_from_an_offset_a_line_gives_the_same_event() -> None:
    records = (record("turn_context", cwd="/work/other", model="gpt-x"), message("user", "b"), message("user", "c"))
    whole = parse(*records)
    for line in whole:
        rest = parse(*records, wanted_from=line.offset)
        assert rest == whole[line.number - 1 :]


def test_a_shells_header_becomes_fields() -> None:
    call = item("function_call", name="exec_command", call_id="c", arguments='{"cmd":"make test"}')
    good = (
        "Chunk ID: a1\nWall time: 0.6197 seconds\nProcess exited with code 0\nOriginal token count: 3\nOutput:\nfine\n"
    )
    bad = "Exit code: 2\nWall time: 1 seconds\nOutput:\nboom"
    old = json.dumps({"output": "boom", "metadata": {"exit_code": 1, "duration_seconds": 0.5}})
    running = "Chunk ID: b\nWall time: 1.0 seconds\nProcess running with session ID 7\nOutput:\n"
    called, passed, failed, older, unfinished = events(
        call, *(item("function_call_output", call_id="c", output=output) for output in (good, bad, old, running))
    )
    assert isinstance(called.payload, ToolCalled)
    assert called.payload.input == {"cmd": "make test"}
    assert isinstance(passed.payload, ToolReturned)
    assert (passed.payload.text, passed.payload.exit_code, passed.payload.duration_ms) == ("fine\n", 0, 619)
    assert isinstance(failed.payload, ToolFailed)
    assert (failed.payload.text, failed.payload.exit_code) == ("boom", 2)
    assert isinstance(older.payload, ToolFailed)
    assert (older.payload.text, older.payload.exit_code, older.payload.duration_ms) == ("boom", 1, 500)
    assert isinstance(unfinished.payload, ToolReturned)
    assert unfinished.payload.exit_code is None
    assert "Process running with session ID 7" in unfinished.payload.text


def test_a_patch_is_called_with_its_text_and_its_lines_are_a_notice() -> None:
    called, notice = events(
        item("custom_tool_call", name="apply_patch", call_id="p", input="*** Begin Patch"),
        record(
            "event_msg",
            type="patch_apply_end",
            call_id="p",
            success=True,
            changes={"/w/a.py": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-a\n+b\n"}},
        ),
    )
    assert isinstance(called.payload, ToolCalled)
    assert called.payload.input == {"input": "*** Begin Patch"}
    assert isinstance(notice.payload, NoticeReceived)
    assert notice.payload.data == {"call": "p", "success": True, "files": {"/w/a.py": "update"}}
    assert notice.payload.text.endswith("-a\n+b")


def test_tokens_are_a_notice_without_what_was_cached() -> None:
    usage = {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 5}
    (event,) = events(record("event_msg", type="token_count", info={"last_token_usage": usage}))
    assert isinstance(event.payload, NoticeReceived)
    assert event.payload.data == {"tokens_in": 60, "tokens_out": 5, "tokens_cached": 40}


def test_the_first_rollouts_without_payloads_are_read() -> None:
    records = [{"id": "c-0", "timestamp": TIME, "instructions": None}, message("user", "hi")["payload"]]
    data = b"".join(json.dumps(each).encode() + b"\n" for each in records)
    start, prompt = (e for parsed in parse_lines(raw_lines(io.BytesIO(data)), Codex()) for e in parsed.events)
    assert isinstance(start.payload, SessionStarted)
    assert isinstance(prompt.payload, PromptSubmitted)
    assert prompt.stream == "session/codex/c-0"


def test_a_line_before_the_session_is_named_is_bad() -> None:
    data = json.dumps(message("user", "hi")).encode() + b"\n"
    (parsed,) = parse_lines(raw_lines(io.BytesIO(data)), Codex())
    assert (parsed.outcome, parsed.why) == ("bad", "no session_meta in front of it")


@pytest.mark.parametrize(
    ("source", "originator", "actor"),
    [
        ("cli", "codex_cli_rs", "user"),
        ("cli", "codex-tui", "user"),
        ("vscode", "codex_vscode", "user"),
        ("vscode", "Codex Desktop", "user"),
        (None, None, "user"),
        (None, "codex_cli_rs", "user"),
        ("exec", "codex_exec", "agent"),
        ("exec", "codex-tui", "agent"),
        ("mcp", "codex-tui", "agent"),
        ("automation", None, "agent"),
        ("cli", None, "agent"),
        ("cli", "codex_exec", "agent"),
        ({"custom": "x"}, "codex-tui", "agent"),
        ("cli", ["codex-tui"], "agent"),
        (None, "codex_exec", "agent"),
        (None, "codex_sdk_ts", "agent"),
        ("vscode", None, "agent"),
        ("vscode", "nightly_bot", "agent"),  # `codex app-server`, which names its client here alone
        ("vscode", "codex_sdk_py", "agent"),
    ],
)
def test_what_a_program_asks_of_codex_is_nobodys_typed_word(source: Any, originator: Any, actor: str) -> None:
    asked = item("message", role="user", content=[{"type": "input_text", "text": "always use quartz for dates"}])
    found = events(record("session_meta", **{**META, "source": source, "originator": originator}), asked)
    assert [event.actor for event in found if isinstance(event.payload, PromptSubmitted)] == [actor]
