"""Hook deliveries, and the samples that Claude Code documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memctl.domain.event import Micros
from memctl.domain.observations import (
    ContextCompacted,
    PromptSubmitted,
    ResponseReceived,
    SessionStarted,
    ToolCalled,
    ToolFailed,
    ToolReturned,
)
from memctl.infra.redaction import prepare
from memctl.infra.transcripts.hooks import ParsedHook, parse_hook

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "data" / "hook-samples"
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
    "raw",
    [b"", b"{", b"[]", b"7", b"{}", b'{"session_id":7}', b"\xff\0", b"[" * 9999, b'{"a":' * 500 + b"1" + b"}" * 500],
)
def test_what_is_no_delivery_is_bad_and_says_why(raw: bytes) -> None:
    parsed = parse_hook(raw, "d", NOW)
    assert parsed.why
    assert not parsed.events


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
)
FIELDS = ["prompt", "tool_name", "tool_input", "tool_response", "tool_use_id", "error", "source", "trigger", "agent_id"]


@settings(deadline=None)  # the first event compiles the rules
@given(name=st.sampled_from(NAMES.split()), fields=st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_no_field_of_a_wrong_type_breaks_the_parser(name: str, fields: dict[str, Any]) -> None:
    for event in parse(name, **fields).events:
        prepare(event)


def test_every_documented_sample_is_read_or_ignored_by_name() -> None:
    if not SAMPLES.is_dir():
        pytest.skip(f"no samples at {SAMPLES}")
    samples = sorted(SAMPLES.glob("*.input.*.json"))
    assert samples
    kept = set()
    for sample in samples:
        parsed = parse_hook(sample.read_bytes(), "d", NOW)
        name = sample.name.partition(".")[0]
        assert not parsed.why, sample.name
        assert parsed.events or parsed.kind == f"hook:{name}"
        kept |= {name} if parsed.events else set()
    assert {"SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop", "SessionEnd"} <= kept
