"""Hook deliveries, and the samples that Claude Code documents."""

from __future__ import annotations

import json
from typing import Any

import published
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memctl.domain.events.event import Micros
from memctl.domain.events.observations import (
    Agent,
    ContextCompacted,
    PromptSubmitted,
    ResponseReceived,
    SessionStarted,
    ToolCalled,
    ToolFailed,
    ToolReturned,
)
from memctl.infra.hooks.dialects import answer
from memctl.infra.hooks.payloads import ParsedHook, parse_hook
from memctl.infra.redaction import prepare

NOW = Micros(1_767_323_045_678_000)


def parse(name: str, **fields: Any) -> ParsedHook:
    payload = {"session_id": "abc123", "cwd": "/work/cli/", "hook_event_name": name, **fields}
    return parse_hook(json.dumps(payload).encode(), "d1", NOW)


def test_a_prompt_is_stamped_by_the_hook_and_named_by_its_delivery() -> None:
    (event,) = parse("UserPromptSubmit", prompt="Write a function").events
    assert event.payload == PromptSubmitted(text="Write a function", via="hook")
    assert (event.stream, event.dedupe_key) == ("session/claude-code/abc123", "hook:d1")
    assert (event.occurred_at, event.location, event.actor) == (NOW, "/work/cli", "user")


def test_a_tool_use_is_its_call_and_its_outcome() -> None:
    called, returned = parse(
        "PostToolUse",
        tool_name="Bash",
        tool_use_id="toolu_1",
        tool_input={"command": "ls"},
        tool_response={"stdout": "a\nb", "stderr": "", "interrupted": False},
        duration_ms=12,
    ).events
    assert (called.dedupe_key, returned.dedupe_key) == ("hook:d1", "hook:d1:1")
    assert isinstance(called.payload, ToolCalled)
    assert called.payload.input == {"command": "ls"}
    assert isinstance(returned.payload, ToolReturned)
    assert (returned.payload.text, returned.payload.duration_ms) == ("a\nb", 12)
    assert called.payload.call == returned.payload.call == "toolu_1"


def test_a_failed_tool_use_tells_its_exit_code() -> None:
    called, failed = parse(
        "PostToolUseFailure", tool_name="Bash", tool_input={"command": "npm test"}, error="Exit code 1\nError: no"
    ).events
    assert isinstance(called.payload, ToolCalled)
    assert isinstance(failed.payload, ToolFailed)
    assert (failed.payload.text, failed.payload.exit_code) == ("Exit code 1\nError: no", 1)


def test_the_last_message_is_taken_at_stop_because_the_transcript_lags() -> None:
    (event,) = parse("SubagentStop", last_assistant_message="Found 3", agent_id="a1", agent_type="Explore").events
    assert isinstance(event.payload, ResponseReceived)
    assert (event.payload.subagent, event.payload.subagent_type) == ("a1", "Explore")
    assert parse("Stop").kind == "hook:Stop"


def test_what_a_client_has_written_for_itself_is_no_subagents_answer() -> None:
    summary = {"last_assistant_message": "<summary>We mended it.</summary>", "agent_id": "a2"}
    assert parse("SubagentStop", **summary, agent_type="").kind == "hook:SubagentStop"
    assert parse("SubagentStop", **summary).events  # a client that names no types


def test_starts_and_compactions_say_why() -> None:
    (started,) = parse("SessionStart", source="resume", model="m").events
    assert isinstance(started.payload, SessionStarted)
    assert (started.payload.source, started.payload.model) == ("resume", "m")
    (compacted,) = parse("PreCompact", trigger="auto").events
    assert isinstance(compacted.payload, ContextCompacted)
    assert compacted.payload.trigger == "auto"


def test_unknown_hooks_are_ignored_by_name_and_unknown_fields_passed_over() -> None:
    assert parse("BrandNewHook", x={"y": [1]}).kind == "hook:BrandNewHook"
    assert len(parse("UserPromptSubmit", prompt="x", brand_new={"y": 1}).events) == 1


def test_a_hook_that_its_payload_does_not_name_may_be_named_by_the_caller() -> None:
    raw = b'{"session_id":"s","prompt":"x"}'
    assert parse_hook(raw, "d", NOW).kind == "hook"
    (event,) = parse_hook(raw, "d", NOW, "codex", "UserPromptSubmit").events
    assert event.stream == "session/codex/s"


@pytest.mark.parametrize(
    ("transcript", "by"),
    [({}, "user"), ({"transcript_path": "/r.jsonl"}, "user"), ({"transcript_path": None}, "agent")],
)
def test_codex_without_a_transcript_is_a_programs(transcript: dict[str, Any], by: str) -> None:
    raw = json.dumps({"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "push it", **transcript})
    (event,) = parse_hook(raw.encode(), "d", NOW, "codex").events
    assert event.actor == by


def of_client(agent: Agent, payload: dict[str, Any]) -> ParsedHook:
    return parse_hook(json.dumps(payload).encode(), "d1", NOW, agent)


def test_gemini_tells_prompts_answers_and_starts_and_leaves_its_tools_to_the_transcript() -> None:
    common = {
        "session_id": "g1",
        "transcript_path": "/x/session.json",
        "cwd": "/w",
        "timestamp": "2026-01-01T00:00:00Z",
    }
    (prompt,) = of_client("gemini-cli", {**common, "hook_event_name": "BeforeAgent", "prompt": "Fix it"}).events
    assert (prompt.stream, prompt.payload) == ("session/gemini-cli/g1", PromptSubmitted(text="Fix it", via="hook"))
    # It hands on what a hook said at the start as part of the prompt, and compresses nothing at each PreCompress.
    before = "<hook_context>&lt;memctl-context&gt;\nNever use eval.\n&lt;/memctl-context&gt;</hook_context>\n\n"
    begun = {**common, "hook_event_name": "BeforeAgent", "prompt": f"{before}Fix it"}
    assert of_client("gemini-cli", begun).events[0].payload == prompt.payload
    # So it does with the files that a prompt names: one of them may hold the sign of their end, and say more.
    files = (
        "\n--- Content from referenced files ---\nA\n--- End of content ---\nNever use eval.\n--- End of content ---"
    )
    for prompt in (f"Fix it{files}", f"Fix it{files}\n\n{before}", f"{before}Fix it{files}"):
        named = {**common, "hook_event_name": "BeforeAgent", "prompt": prompt}
        assert of_client("gemini-cli", named).events[0].payload == PromptSubmitted(text="Fix it", via="hook")
    assert not of_client("gemini-cli", {**common, "hook_event_name": "PreCompress", "trigger": "auto"}).events
    told = {**common, "hook_event_name": "AfterAgent", "prompt": "Fix it", "prompt_response": "Fixed."}
    stopped = of_client("gemini-cli", told)
    assert [event.payload for event in stopped.events] == [ResponseReceived(text="Fixed.", via="hook")]
    assert stopped.transcripts == ("/x/session.json",)
    tool = {**common, "hook_event_name": "AfterTool", "tool_name": "run_shell_command", "tool_input": {}}
    assert of_client("gemini-cli", tool).kind == "hook:gemini:AfterTool"


def test_cursor_tells_every_use_of_a_tool_and_where_it_works() -> None:
    common = {"conversation_id": "k1", "workspace_roots": ["/w/shop"], "cursor_version": "2.1", "model": "sonnet"}
    used = {
        **common,
        "hook_event_name": "postToolUse",
        "tool_name": "Shell",
        "tool_use_id": "t1",
        "tool_input": {"command": "npm test", "working_directory": "/w/shop"},
        "tool_output": '{"exitCode": 0, "stdout": "ok"}',
        "duration": 12.7,
    }
    called, returned = of_client("cursor", used).events
    assert (called.stream, called.location) == ("session/cursor/k1", "/w/shop")
    assert isinstance(returned.payload, ToolReturned)
    assert (returned.payload.text, returned.payload.exit_code, returned.payload.duration_ms) == ("ok", 0, 12)
    failed = {**used, "hook_event_name": "postToolUseFailure", "error_message": "Exit code 1\nno", "tool_output": None}
    _, failure = of_client("cursor", failed).events
    assert isinstance(failure.payload, ToolFailed)
    assert (failure.payload.exit_code, failure.payload.agent_version) == (1, "2.1")
    (said,) = of_client("cursor", {**common, "hook_event_name": "afterAgentResponse", "text": "Done."}).events
    assert isinstance(said.payload, ResponseReceived)
    assert of_client("cursor", {**common, "hook_event_name": "beforeReadFile"}).kind == "hook:cursor:beforeReadFile"


def test_an_answer_has_the_form_that_its_client_takes() -> None:
    assert answer("claude-code", {"hook_event_name": "SessionStart"}, "x") == {
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "x"}
    }
    assert answer("gemini-cli", {"hook_event_name": "BeforeAgent"}, "x") == {
        "hookSpecificOutput": {"hookEventName": "BeforeAgent", "additionalContext": "x"}
    }
    assert answer("cursor", {"hook_event_name": "sessionStart"}, "x") == {"additional_context": "x"}
    assert answer("claude-code", {"session_id": "s"}, "x") == {"context": "x"}


def test_the_messages_of_a_conversation_are_known_when_they_come_again() -> None:
    first = [
        {"role": "user", "content": "Fix it"},
        {"role": "assistant", "content": [{"type": "text", "text": "Done"}]},
    ]
    again = [*first, {"role": "user", "content": "Fix it"}]
    one, two = (parse("Stop", stop_reason="end_turn", messages=messages).events for messages in (first, again))
    assert [type(event.payload) for event in two] == [PromptSubmitted, ResponseReceived, PromptSubmitted]
    assert [event.dedupe_key for event in two][:2] == [event.dedupe_key for event in one]
    assert len({event.dedupe_key for event in two}) == 3


@pytest.mark.parametrize(
    "raw",
    [b"{", b"[]", b"7", b"{}", b'{"session_id":7}', b"\xff\0", b"[" * 9999, b'{"a":' * 500 + b"1" + b"}" * 500],
)
def test_what_is_no_delivery_is_bad_and_says_why(raw: bytes) -> None:
    parsed = parse_hook(raw, "d", NOW)
    assert parsed.why
    assert not parsed.events


@pytest.mark.parametrize("value", ["9" * 5_000, "[" * 3_000 + "]" * 3_000])
def test_of_a_delivery_a_value_beyond_limits_is_left_out_and_the_rest_kept(value: str) -> None:
    raw = f'{{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":"a","x":{value}}}'
    (event,) = parse_hook(raw.encode(), "d", NOW).events
    assert event.payload == PromptSubmitted(text="a", via="hook")


@given(st.binary(max_size=200))
def test_no_bytes_break_the_parser(raw: bytes) -> None:
    parse_hook(raw, "d", NOW)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)
NAMES = (
    "UserPromptSubmit PostToolUse PostToolUseFailure Stop SessionStart PreCompact PostCompact TaskCreated StopFailure"
    " BeforeAgent AfterAgent postToolUse postToolUseFailure afterAgentResponse beforeSubmitPrompt sessionStart"
)
FIELDS = (
    "prompt tool_name tool_input tool_response tool_use_id error source trigger agent_id messages prompt_response text"
    " tool_output error_message duration workspace_roots"
)


@settings(deadline=None)  # the first event compiles the rules
@given(
    agent=st.sampled_from(["claude-code", "gemini-cli", "cursor"]),
    name=st.sampled_from(NAMES.split()),
    fields=st.dictionaries(st.sampled_from(FIELDS.split()), JSON),
)
def test_no_field_of_a_wrong_type_breaks_the_parser(agent: Agent, name: str, fields: dict[str, Any]) -> None:
    for event in of_client(agent, {"session_id": "s", "cwd": "/w", "hook_event_name": name, **fields}).events:
        prepare(event)


def test_every_documented_sample_is_read_or_ignored_by_name() -> None:
    if not published.HOOKS.is_dir():
        pytest.skip(published.lacking(published.HOOKS))
    samples = sorted(published.HOOKS.glob("*.input.*.json"))
    assert samples
    kept = set()
    for sample in samples:
        parsed = parse_hook(sample.read_bytes(), "d", NOW)
        name = sample.name.partition(".")[0]
        assert not parsed.why, sample.name
        assert parsed.events or parsed.kind == f"hook:{name}"
        kept |= {name} if parsed.events else set()
    assert {"SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop", "SessionEnd"} <= kept
