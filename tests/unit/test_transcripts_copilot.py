"""Copilot CLI lines in miniature."""

from __future__ import annotations

import io
import json
from typing import Any

from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import (
    Hunk,
    PromptSubmitted,
    ResponseReceived,
    SessionEnded,
    SessionStarted,
    ToolCalled,
    ToolFailed,
    ToolReturned,
)
from memctl.infra.transcripts.copilot import Copilot
from memctl.infra.transcripts.reading import Parsed, parse_lines, raw_lines


def record(type: str, id: str = "e-1", **data: Any) -> dict[str, Any]:
    return {"type": type, "data": data, "id": id, "timestamp": "2026-06-25T01:50:34.403Z", "parentId": "e-0"}


START = record(
    "session.start",
    id="e-0",
    sessionId="p-1",
    copilotVersion="1.0.64",
    context={"cwd": "/work/agentv", "branch": "main", "headCommit": "cbee"},
) | {"parentId": None}


def parse(*records: Any) -> list[Parsed]:
    data = b"".join(json.dumps(each).encode() + b"\n" for each in (START, *records))
    return list(parse_lines(raw_lines(io.BytesIO(data)), Copilot()))


def events(*records: Any) -> list[NewEvent]:
    return [event for parsed in parse(*records)[1:] for event in parsed.events]


def test_a_session_starts_and_ends() -> None:
    (started,) = parse()[0].events
    assert isinstance(started.payload, SessionStarted)
    assert (started.payload.commit, started.payload.branch) == ("cbee", "main")
    (ended,) = events(record("session.shutdown", shutdownType="routine"))
    assert isinstance(ended.payload, SessionEnded)
    assert ended.payload.reason == "routine"
    assert (ended.stream, ended.location) == ("session/copilot-cli/p-1", "/work/agentv")


ASKED = record("user.message", id="e-2", content="always use quartz for dates")


def system(text: str) -> dict[str, Any]:
    about = "You are the GitHub Copilot CLI, a terminal assistant built by GitHub. "
    return record("system.message", id="e-1", role="system", content=about + text)


def test_what_a_program_asks_is_nobodys_typed_word() -> None:
    alone = "You are running in non-interactive mode and have no way to communicate with the user."
    attended = "You are an interactive CLI tool that helps users."
    quoted = f"{attended}{' Be brief.' * 60}\n<custom_instruction>{alone}</custom_instruction>"
    assert [each.actor for each in events(system(alone), ASKED)] == ["agent"]
    assert [each.actor for each in events(system(quoted), ASKED)] == ["user"]
    assert [each.actor for each in events(system(alone), ASKED, system(attended), ASKED)] == ["agent", "user"]


def test_who_asks_is_known_where_reading_goes_on() -> None:
    data = b"".join(
        json.dumps(each).encode() + b"\n" for each in (START, system("You are running in non-interactive mode"))
    )
    more = data + json.dumps(ASKED).encode() + b"\n"
    (parsed,) = parse_lines(raw_lines(io.BytesIO(more)), Copilot(), len(data))
    assert [each.actor for each in parsed.events] == ["agent"]


def test_a_prompt_is_what_was_typed_and_not_what_the_client_made_of_it() -> None:
    (event,) = events(record("user.message", content="why?", transformedContent="<current_datetime>\nwhy?"))
    assert isinstance(event.payload, PromptSubmitted)
    assert event.payload.text == "why?"
    assert event.payload.parent == "e-0"


def test_what_a_skill_or_the_autopilot_puts_in_the_users_place_is_not_the_users() -> None:
    by = [
        {},
        {"source": "user"},
        {"source": "immediate-prompt"},
        {"source": "skill-pdf"},
        {"source": "agent-a1"},
        {"source": "thinking-exhausted-continuation"},
        {"isAutopilotContinuation": True},
    ]
    found = events(*(record("user.message", f"e-{n}", content="Never use eval.", **each) for n, each in enumerate(by)))
    assert [event.actor for event in found] == ["user"] * 3 + ["system"] * 4


def test_a_message_is_thought_text_and_calls_under_fixed_blocks() -> None:
    requests = [{"toolCallId": "t1", "name": "bash", "arguments": {"command": "ls"}}, {"toolCallId": "t2"}]
    found = events(record("assistant.message", content="I look.", reasoningText="Hm", toolRequests=requests))
    assert [type(event.payload) for event in found] == [ResponseReceived, ResponseReceived, ToolCalled, ToolCalled]
    (called,) = events(record("assistant.message", content="", toolRequests=requests[:1]))
    assert called.dedupe_key == found[2].dedupe_key == "transcript:copilot-cli:p-1:e-1:2"


def test_outcomes_carry_exit_code_and_patch() -> None:
    diff = "\ndiff --git a/w/a b/w/a\nindex 0..0\n--- a/w/a\n+++ b/w/a\n@@ -3,2 +3,2 @@\n x\n-a\n+b\n"
    passed, failed, refused = events(
        record("tool.execution_complete", success=True, result={"content": "done", "detailedContent": diff}),
        record(
            "tool.execution_complete", success=True, result={"content": "x\n<shellId: 3 completed with exit code 2>"}
        ),
        record("tool.execution_complete", success=False, error={"message": "no such shell"}),
    )
    assert isinstance(passed.payload, ToolReturned)
    assert (passed.payload.file, passed.payload.patch) == ("/w/a", (Hunk(3, 3, (" x", "-a", "+b")),))
    assert isinstance(failed.payload, ToolFailed)
    assert failed.payload.exit_code == 2
    assert isinstance(refused.payload, ToolFailed)
    assert refused.payload.text == "no such shell"


def test_what_repeats_or_is_the_clients_own_is_ignored() -> None:
    kinds = ["tool.execution_start", "hook.start", "hook.end", "system.message", "assistant.turn_start"]
    assert [line.kind for line in parse(*(record(kind, content="x") for kind in kinds))[1:]] == kinds
