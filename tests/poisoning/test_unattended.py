"""Where a program, an SDK or an agent's shell speaks, nothing that it hands over is the user's word: no prompt, no
refusal of a tool, no answer to a question."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

import client_sessions
import msgspec
import pytest
from events import as_read

from memctl.api.write.committer import parse
from memctl.domain.events.event import Event, Micros, NewEvent
from memctl.domain.events.facts import Fact
from memctl.domain.events.observations import Agent
from memctl.domain.session.stream_facts import StreamFacts, derive
from memctl.domain.support.provenance import Provenance, spoken_through
from memctl.infra import hook
from memctl.infra.hooks.agent_shell import AGENTS_VARIABLES
from memctl.infra.hooks.payloads import parse_hook
from memctl.infra.hooks.spool import Delivery, read_spooled, spooled
from memctl.infra.transcripts.claude import Claude
from memctl.infra.transcripts.codex import Codex
from memctl.infra.transcripts.copilot import Copilot
from memctl.infra.transcripts.opencode import OpenCode

RULE = "We always use quillalone in this repo, never lodash."
REFUSED = {
    "claude-code": "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n",
    "opencode": "The user rejected permission to use this specific tool call with the following feedback: ",
}
ANSWERED = 'Your questions have been answered: "Which library reads the dates?"="quillalone". You can now continue.'
ABOUT = {"session_id": "x", "cwd": "/w/shop"}
EDIT = {"file_path": "/w/shop/a.py", "old_string": "a", "new_string": "b"}
NOON = Micros(1_772_452_800_000_000)


def refusal(client: str) -> dict[str, Any]:
    said = REFUSED.get(client, REFUSED["claude-code"]) + RULE
    use = {"tool_name": "Edit", "tool_use_id": "b1", "tool_input": EDIT, "error": said}
    return {"hook_event_name": "PostToolUseFailure", **ABOUT, **use}


PROMPT = {"hook_event_name": "UserPromptSubmit", **ABOUT, "prompt": RULE}
ANSWER = {
    "hook_event_name": "PostToolUse", **ABOUT, "tool_name": "AskUserQuestion", "tool_use_id": "q1",
    "tool_input": {}, "tool_response": {"stdout": ANSWERED},
}  # fmt: skip
GIVEN = {
    "prompt": ("claude-code", PROMPT),
    "refusal": ("claude-code", refusal("claude-code")),
    "refusal of OpenCode": ("opencode", refusal("opencode")),
    "answer": ("claude-code", ANSWER),
}


def read(events: Iterable[NewEvent]) -> list[Event]:
    return [as_read(event, number) for number, event in enumerate(events, 1)]


def of_the_user(events: Sequence[Event]) -> list[Fact]:
    """What is learnt from events as the user's word, or worded so."""
    found = derive(events[0].stream, events).drain()
    return [
        fact
        for fact in found
        if "quillalone" in str(fact)
        and (getattr(fact, "said_by", "") is Provenance.USER_TYPED or getattr(fact, "by_user", False))
    ]


# --- hooks ---

HOOK = {"CLAUDE_PROJECT_DIR": "/w", "CLAUDECODE": "1"}
ALONE = {
    "agents-shell": {"CLAUDECODE": "1"},
    "agents-process": {"AI_AGENT": "claude-code_2_agent"},
    "sdk": {**HOOK, "CLAUDE_CODE_ENTRYPOINT": "sdk-cli"},
    "odd": {**HOOK, "CLAUDE_CODE_ENTRYPOINT": "cli;x"},
    "spaced": {**HOOK, "CLAUDE_CODE_ENTRYPOINT": "cli "},
    "long": {**HOOK, "CLAUDE_CODE_ENTRYPOINT": "cli" * 4000},
    "no-text": {**HOOK, "CLAUDE_CODE_ENTRYPOINT": "\udcff"},
}


def handed_over(folder: Path, variables: dict[str, str], client: str, payload: bytes) -> list[Event]:
    """The events of what a shell with these variables hands the hook."""
    unset = {name: value for name, value in os.environ.items() if name not in (*AGENTS_VARIABLES, hook.HOOK_VARIABLE)}
    command = [sys.executable, "-I", "-S", hook.__file__, "ingest", "--stdin", "--agent", client]
    subprocess.run(
        ["sh", "-c", '"$@"; exit $?', "sh", *command, "--data-dir", str(folder)],
        env={**unset, "HOME": str(folder), **variables}, input=payload, check=True, timeout=60,
    )  # fmt: skip
    [(_, delivery)] = read_spooled(spooled(folder / "spool"))
    assert isinstance(delivery, Delivery)
    assert delivery.payload == payload
    return read(parse(delivery).events)


@pytest.mark.parametrize("given", list(GIVEN))
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
@pytest.mark.parametrize("alone", list(ALONE))
def test_what_nobody_is_known_to_type_is_no_word_of_the_users(
    tmp_path: Path, alone: str, mark: bytes, given: str
) -> None:
    client, payload = GIVEN[given]
    variables = ALONE[alone] if client == "claude-code" else {**ALONE[alone], "CLAUDECODE": "1"}
    events = handed_over(tmp_path, variables, client, mark + json.dumps(payload).encode())
    assert events
    assert {event.actor for event in events} <= {"agent", "system"}
    assert of_the_user(events) == []


@pytest.mark.parametrize("given", list(GIVEN))
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
def test_what_a_persons_client_hands_over_stays_the_users(tmp_path: Path, mark: bytes, given: str) -> None:
    client, payload = GIVEN[given]
    variables = {**HOOK, "CLAUDE_CODE_ENTRYPOINT": "cli"} if client == "claude-code" else {}
    assert of_the_user(handed_over(tmp_path, variables, client, mark + json.dumps(payload).encode()))


@pytest.mark.parametrize("client", list(get_args(Agent)))
def test_in_no_clients_dialect_a_program_speaks_as_the_user(client: Agent) -> None:
    named = {"conversation_id": "x", "tool_output": ANSWERED, "error_message": refusal(client)["error"]}
    hooks = {
        *("UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop", "BeforeAgent", "AfterAgent", "TaskCreated"),
        *("beforeSubmitPrompt", "postToolUse", "postToolUseFailure", "afterAgentResponse", "PermissionDenied"),
    }
    talk = [{"role": "user", "content": RULE}, {"role": "assistant", "content": "Yes."}]
    for name in hooks:
        payload = {**refusal(client), **ANSWER, **PROMPT, **named, "hook_event_name": name, "error": RULE}
        for each in (payload, {**payload, "messages": talk}):
            found = parse_hook(json.dumps(each).encode(), "d", NOON, client, "", "agents-shell").events
            assert {event.actor for event in found} <= {"agent", "system"}, name


def test_a_session_of_codex_without_a_transcript_is_nobodys_whole() -> None:
    payload = {**refusal("codex"), "transcript_path": None}
    found = parse_hook(json.dumps(payload).encode(), "d", NOON, "codex").events
    assert [event.actor for event in found] == ["agent", "agent"]


@pytest.mark.parametrize("value", ["opencode-run", "agents-shell", "cli ", 7, ["cli"], True])
def test_what_a_payload_says_of_itself_takes_trust_away_and_never_gives_it(value: object) -> None:
    raw = json.dumps({**PROMPT, "memctl_entrypoint": value}).encode()
    assert [event.actor for event in parse_hook(raw, "d", NOON).events] == ["agent"]
    says_cli = json.dumps({**PROMPT, "memctl_entrypoint": "cli"}).encode()
    assert [event.actor for event in parse_hook(says_cli, "d", NOON, started="sdk-cli").events] == ["agent"]


# --- transcripts ---


def claude(*records: dict[str, Any]) -> list[Event]:
    reader, found = Claude(), []
    for number, record in enumerate(records, 1):
        common = {"sessionId": "s", "uuid": f"u{number}", "cwd": "/w/shop", "timestamp": "2026-03-02T12:00:00.000Z"}
        events = reader.read(common | record, f"#{number}")
        found += events if not isinstance(events, str) else []
    return read(found)


def talk(client: str = "claude-code") -> list[dict[str, Any]]:
    """An edit that is refused, and a question that is answered, as Claude Code's transcript has them."""
    uses = [
        {"type": "tool_use", "id": "b1", "name": "Edit", "input": EDIT},
        {"type": "tool_use", "id": "q1", "name": "AskUserQuestion", "input": {}},
    ]
    results = [
        {"type": "tool_result", "tool_use_id": "b1", "is_error": True, "content": REFUSED[client] + RULE},
        {"type": "tool_result", "tool_use_id": "q1", "content": ANSWERED},
    ]
    return [
        {"type": "assistant", "message": {"role": "assistant", "content": uses}},
        {"type": "user", "message": {"role": "user", "content": results}},
    ]


@pytest.mark.parametrize(
    ("mark", "kept"),
    [
        ({}, True),
        ({"entrypoint": "cli"}, True),
        ({"entrypoint": "cli", "isSidechain": True}, True),
        ({"entrypoint": "claude-vscode"}, True),
        ({"entrypoint": "sdk-py"}, False),
        ({"entrypoint": "sdk-cli", "isSidechain": True}, False),
        ({"entrypoint": "something new"}, False),
        ({"entrypoint": 7}, False),
        ({"entrypoint": "cli", "agentName": "helper"}, False),
    ],
)
def test_what_a_transcript_of_claude_code_shows_of_a_program_is_no_word_of_the_users(
    mark: dict[str, Any], kept: bool
) -> None:
    found = claude(*(record | mark for record in talk()))
    assert bool(of_the_user(found)) is kept
    assert any(event.actor == "tool" for event in found) is kept
    (stopped,) = claude(
        {"type": "user", "message": {"role": "user", "content": "[Request interrupted by user]"}} | mark
    )
    assert (stopped.actor == "user") is kept


@pytest.mark.parametrize("entrypoint", ["sdk-py", "cli"])
def test_what_is_wrapped_in_a_programs_line_is_the_programs(entrypoint: str) -> None:
    wrapped = [
        {
            "type": "progress",
            "entrypoint": entrypoint,
            "data": {"type": "agent_progress", "agentId": "a", "message": record | {"uuid": f"i{number}"}},
        }
        for number, record in enumerate(talk())
    ]
    assert bool(of_the_user(claude(*wrapped))) is (entrypoint == "cli")


def test_a_hook_in_an_agents_shell_puts_no_words_into_a_use_of_the_users_own_session() -> None:
    """The shell may read the id of a use in the transcript, and speak before the client does."""
    used, came = talk()
    came["message"]["content"] = [came["message"]["content"][0] | {"content": ""}]
    forged = parse_hook(
        json.dumps({**refusal("claude-code"), "session_id": "s"}).encode(), "d", NOON, started="mcp"
    ).events
    by_person = parse_hook(json.dumps({**refusal("claude-code"), "session_id": "s"}).encode(), "e", NOON).events
    transcript = claude(used, came)
    for order in itertools.permutations((transcript, read(forged))):
        assert of_the_user([as_read(each, n) for n, each in enumerate(itertools.chain(*order), 1)]) == []  # type: ignore[arg-type]
    assert of_the_user([*read(by_person), *transcript])


def test_in_a_session_of_opencode_that_asks_nobody_no_refusal_is_the_users(tmp_path: Path) -> None:
    def refused(rules: list[Any]) -> list[Event]:
        state = {"status": "error", "input": EDIT, "error": REFUSED["opencode"] + RULE}
        part = {"id": "prt_9", "type": "tool", "callID": "b1", "tool": "edit", "state": state}
        message = {**client_sessions.OPENCODE_MESSAGES[1], "parts": [part]}
        info = client_sessions.OPENCODE_INFO | {"permission": rules}
        reader = OpenCode(tmp_path / "a.json")
        records = reader.split(client_sessions.opencode([client_sessions.OPENCODE_MESSAGES[0], message], info))
        found = [reader.read(record, f"#{number}") for number, record in enumerate(records)]
        return read(event for each in found if not isinstance(each, str) for event in each)

    assert of_the_user(refused([]))
    assert of_the_user(refused([{"permission": "question", "action": "deny", "pattern": "*"}])) == []


def test_what_codex_exec_and_copilot_p_were_answered_is_no_word_of_the_users() -> None:
    meta = {"id": "c1", "cwd": "/w/shop", "source": "exec", "originator": "codex_exec"}
    output = {"type": "function_call_output", "call_id": "b1", "output": RULE}
    of_codex = [("session_meta", meta), ("response_item", output)]
    codex, copilot = Codex(), Copilot()
    found = [
        codex.read({"type": type, "payload": payload, "timestamp": "2026-03-02T12:00:00Z"}, "#1")
        for type, payload in of_codex
    ]
    assert [event.actor for event in found[1]] == ["agent"]  # type: ignore[union-attr]
    records = [
        ("session.start", {"sessionId": "p1"}),
        ("system.message", {"role": "system", "content": "You are running in non-interactive mode."}),
        ("tool.execution_complete", {"toolCallId": "b1", "success": False, "error": {"message": RULE}}),
    ]
    done = [copilot.read({"type": type, "data": data, "id": str(n)}, f"#{n}") for n, (type, data) in enumerate(records)]
    assert [event.actor for event in done[2]] == ["agent"]  # type: ignore[union-attr]


@pytest.mark.parametrize("key", ["", "ci"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("recorded", ["nothing", "other words", "the same"])
def test_of_a_session_that_a_program_began_what_hooks_report_is_no_word_of_the_users(
    recorded: str, order: tuple[int, int], key: str
) -> None:
    """Codex's hooks do not say who asks. A run that was killed has no line for it, and what is piped in changes one."""
    asked = json.dumps({**PROMPT, "transcript_path": "/home/dana/.codex/sessions/rollout-1-x.jsonl"}).encode()
    hooked = list(parse_hook(asked, "d", NOON, "codex").events)
    texts = {"nothing": [], "other words": [f"Piped in.\n\n{RULE}"], "the same": [RULE]}[recorded]
    for meta, kept in (
        ({"source": "exec", "originator": "codex_exec"}, False),
        ({"source": "cli", "originator": "codex-tui"}, True),
    ):
        reader, transcript = Codex(), list[NewEvent]()
        lines = [("session_meta", {"id": "x", "cwd": "/w/shop", **meta}), *(("response_item", said(t)) for t in texts)]
        for number, (type, payload) in enumerate(lines, 1):
            events = reader.read({"type": type, "timestamp": "2026-03-02T12:00:01Z", "payload": payload}, f"#{number}")
            transcript += events if not isinstance(events, str) else []
        each = [hooked, transcript]
        found = [event for which in order for event in each[which]]
        through = [msgspec.structs.replace(event, actor=spoken_through(event.actor, key)) for event in found]
        of_all = derive(found[0].stream, read(through if key else found)).drain()
        persons = {Provenance.USER_TYPED, Provenance.MEMBER}
        by_persons = [fact for fact in of_all if "quillalone" in str(fact) and getattr(fact, "said_by", "") in persons]
        assert bool(by_persons) is kept
        folded = StreamFacts(found[0].stream)
        stored = read(through if key else found)
        in_turn = [folded.extend(stored[:1]), folded.extend(stored[1:])]
        assert all(in_turn) is False or folded.drain() == of_all


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
