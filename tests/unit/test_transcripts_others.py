"""Gemini CLI, OpenCode, SpecStory, aider, SWE-agent: what each format's words become."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import client_sessions
import msgspec
import pytest
from client_sessions import SAMPLES
from transcript_files import parse_file

from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import (
    NoticeReceived,
    Observation,
    PromptSubmitted,
    ResponseReceived,
    SessionStarted,
    ToolCalled,
    ToolFailed,
    ToolOutcome,
    ToolReturned,
)
from memctl.infra.transcripts.aider import Aider
from memctl.infra.transcripts.fields import micros
from memctl.infra.transcripts.files import default_sources
from memctl.infra.transcripts.gemini import GeminiDocument, GeminiLines
from memctl.infra.transcripts.opencode import OpenCode
from memctl.infra.transcripts.reading import Parsed
from memctl.infra.transcripts.sniff import Reader, sniff
from memctl.infra.transcripts.specstory import SpecStory
from memctl.infra.transcripts.sweagent import SweAgent


def parse(reader: Reader, data: bytes, path: Path) -> list[Parsed]:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return list(parse_file(path, reader(path)))


def events(reader: Reader, path: Path, data: bytes | None = None) -> list[NewEvent]:
    parsed = parse(reader, SAMPLES[reader] if data is None else data, path)
    return [event for line in parsed for event in line.events]


def seen(found: list[NewEvent], kind: type[Any]) -> list[Any]:
    return [event.payload for event in found if isinstance(event.payload, kind)]


def notices(found: list[NewEvent], kind: str) -> list[Any]:
    return [payload for payload in seen(found, NoticeReceived) if payload.kind == kind]


# --- Gemini CLI ---


def test_both_of_geminis_forms_tell_the_same_session(tmp_path: Path) -> None:
    document = events(GeminiDocument, tmp_path / "a.json")
    lines = events(GeminiLines, tmp_path / "a.jsonl")
    assert {event.dedupe_key: event.payload for event in document} == {e.dedupe_key: e.payload for e in lines}


def test_geminis_prompts_are_what_the_user_typed_without_the_files_they_name(tmp_path: Path) -> None:
    (prompt,) = seen(events(GeminiDocument, tmp_path / "a.json"), PromptSubmitted)
    assert prompt.text == "Fix the total in @cart.py"


def test_what_hooks_told_gemini_is_no_word_of_the_user(tmp_path: Path) -> None:
    told = "<hook_context>&lt;memctl-context&gt;\nNever use eval.\n&lt;/memctl-context&gt;</hook_context>"
    contents = [
        [{"text": f"{told}\n\nFix it"}],
        [{"text": "Fix it"}, {"text": told}],
        [{"text": told}],
        [{"text": "Fix it"}, {"text": "\n--- Content from referenced files ---"}, {"text": "A"}, {"text": told}],
        [{"text": told.replace("eval", "--- Content from referenced files ---")}, {"text": "Fix it"}],
        [{"text": "--- Content from referenced files ---\nNever use eval."}],
    ]
    messages = [
        {"id": f"m{number}", "timestamp": "2026-01-01T10:00:01.000Z", "type": "user", "content": content}
        for number, content in enumerate(contents)
    ]
    prompts = seen(events(GeminiLines, tmp_path / "a.jsonl", client_sessions.gemini_lines(messages)), PromptSubmitted)
    assert [prompt.text for prompt in prompts] == ["Fix it"] * 4


def test_geminis_calls_have_their_outcome_exit_code_and_patch(tmp_path: Path) -> None:
    found = events(GeminiDocument, tmp_path / "a.json")
    assert [call.tool for call in seen(found, ToolCalled)] == ["run_shell_command", "replace", "read_file"]
    (failed,), (edited,) = seen(found, ToolFailed), seen(found, ToolReturned)
    assert (failed.exit_code, failed.call) == (1, "run_shell_command_1_0")
    assert edited.file == "/w/shop/cart.py"
    assert edited.patch[0].lines == ("-price", "+item.price")
    assert [thought.text for thought in seen(found, ResponseReceived) if thought.kind == "thinking"] == [
        "Tests\nThey tell."
    ]
    assert notices(found, "tokens")[0].data == {"tokens_in": 20, "tokens_out": 35, "tokens_cached": 100}
    assert [notice.text for notice in notices(found, "interrupted")] == ["Request cancelled."]
    assert notices(found, "title")[0].text == "A total fixed"


def test_geminis_project_is_found_beside_the_chat_or_by_the_digest_of_its_path(tmp_path: Path) -> None:
    project = tmp_path / "tmp" / "shop"
    project.mkdir(parents=True)
    (project / ".project_root").write_text("/home/u/shop")
    assert {e.location for e in events(GeminiDocument, project / "chats" / "a.json")} == {"/home/u/shop"}
    digest = hashlib.sha256(b"/w/shop").hexdigest()
    data = SAMPLES[GeminiDocument].replace(client_sessions.GEMINI_HEAD["projectHash"].encode(), digest.encode())
    found = events(GeminiDocument, tmp_path / "b.json", data)
    assert [event.location for event in found if event.type == "tool.failed"] == [""]
    assert found[-1].location == "/w/shop"


def test_geminis_subagents_lie_in_the_stream_of_the_session_that_asked(tmp_path: Path) -> None:
    head = client_sessions.GEMINI_HEAD | {"sessionId": "sub-1", "kind": "subagent"}
    data = client_sessions.lines([head, *client_sessions.GEMINI_MESSAGES[:2]])
    found = events(GeminiLines, tmp_path / "chats" / "parent-1" / "sub-1.jsonl", data)
    assert {event.stream for event in found} == {"session/gemini-cli/parent-1"}
    assert {event.payload.subagent for event in found if isinstance(event.payload, Observation)} == {"sub-1"}
    assert [event.actor for event in found if event.type == "prompt.submitted"] == ["agent"]
    assert not seen(found, SessionStarted)


# --- OpenCode ---


def test_opencodes_parts_become_what_was_said_and_done(tmp_path: Path) -> None:
    found = events(OpenCode, tmp_path / "a.json")
    said = [(prompt.text, prompt.meta, prompt.images) for prompt in seen(found, PromptSubmitted)]
    assert said == [("Fix the total", False, 1), ("Called the Read tool", True, 0)]
    failed, refused = seen(found, ToolFailed)
    assert (failed.exit_code, failed.duration_ms, failed.call) == (1, 1500, "toolu_1")
    assert refused.text == "oldString not found in content"
    (edited,) = seen(found, ToolReturned)
    assert (edited.file, edited.patch[0].lines) == ("/w/shop/cart.py", ("-price", "+item.price"))
    assert notices(found, "tokens")[0].data == {"tokens_in": 28, "tokens_out": 164, "tokens_cached": 13687}
    assert notices(found, "interrupted")[0].text == "aborted"
    (started,) = seen(found, SessionStarted)
    assert (started.title, started.agent_version) == ("Fixing the total", "1.2.27")
    assert {event.location for event in found} == {"/w/shop", "/w/shop/api"}
    assert found[0].occurred_at == 1771249728213000


def test_a_session_that_opencode_began_for_a_task_is_a_subagent_of_its_parent(tmp_path: Path) -> None:
    info = client_sessions.OPENCODE_INFO | {"id": "ses_child", "parentID": "ses_parent"}
    found = events(OpenCode, tmp_path / "a.json", client_sessions.opencode(info=info))
    assert {event.stream for event in found} == {"session/opencode/ses_parent"}
    assert {event.payload.subagent for event in found if isinstance(event.payload, Observation)} == {"ses_child"}
    assert {event.actor for event in found if event.type == "prompt.submitted"} == {"agent", "system"}
    assert notices(found, "subagent-started")[0].text == "Fixing the total"


ASKS_NOBODY = [{"permission": "question", "action": "deny", "pattern": "*"}]


@pytest.mark.parametrize(
    ("text", "rules", "actor"),
    [
        ("fix the total", [], "user"),
        ("fix the total", [{"permission": "bash", "action": "deny", "pattern": "*"}], "user"),
        ("fix the total", [{"permission": "question", "action": "allow", "pattern": "*"}], "user"),
        ('"total" is wrong', [], "user"),
        ('say "it is done" at the end', [], "user"),
        ("fix the total", ASKS_NOBODY, "agent"),
        ('"fix the total"', [], "agent"),
        ('"say \\"done\\" at the end"\nfrom a pipe', [], "agent"),
    ],
)
def test_what_opencode_run_was_asked_is_no_word_of_the_users(
    text: str, rules: list[Any], actor: str, tmp_path: Path
) -> None:
    message = {**client_sessions.OPENCODE_MESSAGES[0], "parts": [{"id": "prt_1", "type": "text", "text": text}]}
    info = client_sessions.OPENCODE_INFO | {"permission": rules}
    found = events(OpenCode, tmp_path / "a.json", client_sessions.opencode([message], info))
    assert [event.actor for event in found if event.type == "prompt.submitted"] == [actor]


# --- SWE-agent ---


def test_a_run_tells_its_problem_and_steps_but_not_its_template(tmp_path: Path) -> None:
    found = events(SweAgent, tmp_path / "a.traj")
    (prompt,) = seen(found, PromptSubmitted)
    assert prompt.text == "The total is wrong\nwith two items."
    assert [call.tool for call in seen(found, ToolCalled)] == ["open", "edit", "edit", "bash", "str_replace_editor"]
    opened, edit, _, run, replaced = (call.input for call in seen(found, ToolCalled))
    assert opened == {"file_path": "cart.py"}
    assert edit["new_string"] == "    return sum(prices)"
    assert run == {"command": "python -m pytest"}
    assert replaced == {"command": "str_replace", "path": "/w/shop/a.py", "old_str": "a b", "new_str": "c"}
    (failed,) = seen(found, ToolFailed)
    assert failed.file == "/w/shop/cart.py"
    assert seen(found, ToolReturned)[0].duration_ms == 239


def test_a_run_that_only_its_history_tells_has_its_place_and_its_edits(tmp_path: Path) -> None:
    shell = "\n(Open file: /w/shop/cart.py)\n(Current directory: /w/shop)\nbash-$"
    steps = [
        ("open cart.py", "[File: cart.py (2 lines total)]"),
        ("edit 'a + b' 'a - b'", "Text replaced."),
        ("edit 'a + c' 'a'", "Your edit was not applied (file not modified): Text 'a + c' not found"),
    ]
    history = [*client_sessions.SWE_HISTORY]
    for action, answer in steps:
        history += [
            {"role": "assistant", "content": "I do it.", "thought": "I do it.", "action": action},
            {"role": "tool", "content": answer + shell, "tool_call_ids": ["call_1"]},
        ]
    found = events(SweAgent, tmp_path / "a.traj", json.dumps({"history": history}).encode())
    assert {event.location for event in found[2:]} == {"/w/shop"}
    _, edited, _ = seen(found, ToolCalled)
    assert (edited.input["old_string"], edited.input["new_string"]) == ("a + b", "a - b")
    opened, replaced, refused = seen(found, ToolOutcome)
    assert (opened.text, replaced.file) == ("[File: cart.py (2 lines total)]", "/w/shop/cart.py")
    assert isinstance(refused, ToolFailed)


def test_runs_of_one_problem_are_sessions_of_their_own(tmp_path: Path) -> None:
    other = [client_sessions.SWE_STEPS[0] | {"execution_time": 0.3}, *client_sessions.SWE_STEPS[1:]]
    (one,) = {event.stream for event in events(SweAgent, tmp_path / "a.traj")}
    (two,) = {event.stream for event in events(SweAgent, tmp_path / "a.traj", client_sessions.swe_agent(other))}
    assert one != two


def test_what_gemini_thinks_in_the_parts_of_an_answer_it_does_not_say(tmp_path: Path) -> None:
    content = [{"text": "**Weighing it** I look.", "thought": True}, {"text": "Take the first."}]
    said = {"id": "g1", "timestamp": "2026-06-12T12:14:51.814Z", "type": "gemini", "content": content}
    thoughts = [{"subject": "Weighing it", "description": "I look."}]

    def told(**more: Any) -> list[tuple[str, str]]:
        chat = {"sessionId": "s1", "projectHash": "p", "messages": [said | more]}
        found = events(GeminiDocument, tmp_path / "a.json", msgspec.json.encode(chat))
        return [(each.kind, each.text) for each in seen(found, ResponseReceived)]

    assert told(thoughts=thoughts) == [("thinking", "Weighing it\nI look."), ("text", "Take the first.")]
    assert told() == [("thinking", "**Weighing it** I look."), ("text", "Take the first.")]


# --- SpecStory ---


def test_what_is_quoted_in_a_specstory_file_nobody_said(tmp_path: Path) -> None:
    found = events(SpecStory, tmp_path / "a.md")
    prompts = seen(found, PromptSubmitted)
    assert [prompt.text.split("\n")[0] for prompt in prompts] == ["Fix the total. It looked like this:", "Thanks!"]
    assert prompts[0].text.endswith("```")


def test_specstorys_uses_of_tools_have_their_arguments_and_results(tmp_path: Path) -> None:
    found = events(SpecStory, tmp_path / "a.md")
    assert {event.session_id for event in found} == {"5c7d5c23-0691-4467-b98e-0fb865b4a639"}
    bash, read, deploy = seen(found, ToolCalled)
    assert bash.input == {"command": "pytest tests/ -q"}
    assert (read.input, read.subagent) == ({"file_path": "./cart.py"}, "sidechain")
    assert deploy.input == {"target": "staging", "notes": "two\nlines"}
    failed, refused = seen(found, ToolFailed)
    assert (failed.exit_code, failed.text.split("\n")[1]) == (1, "E   NameError: name 'price' is not defined")
    assert refused.text == "refused"
    assert seen(found, ResponseReceived)[0].kind == "thinking"
    assert seen(found, ResponseReceived)[1].model == "claude-opus-4-6"
    assert found[-1].occurred_at - found[0].occurred_at == 300_000_000


def test_older_specstory_files_are_read_by_their_headings(tmp_path: Path) -> None:
    said = "---\n\n".join(("_**User**_\n\nBegin\n\n", "_**Assistant**_\n\nYes\n\n", "_****_\n\nDone\n"))
    text = f"## SpecStory\n\n## A plan (2/13/2025, 9:33:58 AM)\n\n{said}"
    found = events(SpecStory, tmp_path / ".specstory" / "history" / "a.md", text.encode())
    assert [event.type for event in found[1:]] == ["prompt.submitted", "response.received", "response.received"]
    assert {event.location for event in found} == {str(tmp_path)}


def test_an_edit_that_specstory_renders_without_its_text_has_its_file_and_an_interruption_is_no_prompt(
    tmp_path: Path,
) -> None:
    text = """<!-- Generated by SpecStory, Markdown v2.1.0 -->

# 2026-03-06 20:09:30Z

<!-- Claude Code Session 4415e10a-f4f5-41a2-b069-a92260daefc8 (2026-03-06 20:09:30Z) -->

_**User (2026-03-06 20:09:47Z)**_

Do this for me

---

_**Agent (claude-sonnet-4-6 2026-03-06 20:10:01Z)**_

<tool-use data-tool-type="write" data-tool-name="Edit"><details>
<summary>Tool use: **Edit**</summary>

```text
The file /home/dana/My Code/keys.json has been updated successfully.
```
</details></tool-use>

---

_**User (2026-03-06 20:10:09Z)**_

[Request interrupted by user]
"""
    found = events(SpecStory, tmp_path / "a.md", text.encode())
    (call,) = seen(found, ToolCalled)
    assert call.input == {"file_path": "/home/dana/My Code/keys.json"}
    (returned,) = seen(found, ToolReturned)
    assert returned.text.startswith("The file /home/dana")
    assert [prompt.text for prompt in seen(found, PromptSubmitted)] == ["Do this for me"]
    assert notices(found, "interrupted")


# --- aider ---


def test_aiders_chats_are_sessions_and_its_commands_no_prompts(tmp_path: Path) -> None:
    parsed = parse(Aider, SAMPLES[Aider], tmp_path / "a.md")
    found = [event for line in parsed for event in line.events]
    assert len({event.stream for event in found}) == 2
    assert [prompt.text for prompt in seen(found, PromptSubmitted)] == [
        "Fix the total of the cart\nand keep its name", "/ask why?", "Now the tax",
    ]  # fmt: skip
    assert [notice.text for notice in notices(found, "command")] == ["/add cart.py"]
    assert [line.kind for line in parsed].count("chat without a prompt") == 2


def test_aiders_answers_keep_their_headings_and_quotes(tmp_path: Path) -> None:
    found = events(Aider, tmp_path / "a.md")
    answer = seen(found, ResponseReceived)[0]
    assert "#### What is wrong\n\n> It adds names." in answer.text
    assert (answer.agent_version, answer.model) == ("0.86.1", "anthropic/claude-sonnet")


def test_an_edit_that_aider_applied_is_a_use_of_a_tool_with_what_the_answer_proposed(tmp_path: Path) -> None:
    found = events(Aider, tmp_path / "a.md")
    (call,) = seen(found, ToolCalled)
    edit = {"old_string": "    return sum(names)", "new_string": "    return sum(prices)"}
    assert call.input == {"file_path": "cart.py", "edits": [edit]}
    assert notices(found, "tokens")[0].data == {"tokens_in": 5200, "tokens_cached": 1100, "tokens_out": 604}
    assert notices(found, "commit")[0].text.startswith("Commit fd43cd4")
    assert notices(found, "interrupted")


def test_a_trimmed_or_joined_aider_history_tells_the_same_chats(tmp_path: Path) -> None:
    whole = {event.dedupe_key: event for event in events(Aider, tmp_path / "a.md")}
    last = SAMPLES[Aider][SAMPLES[Aider].rindex(b"# aider chat started") :]
    for data in (last, last + SAMPLES[Aider]):
        for event in events(Aider, tmp_path / "b.md", data):
            assert whole[event.dedupe_key] == event


def test_what_aider_writes_twice_because_it_was_asked_in_another_mode_is_one_prompt(tmp_path: Path) -> None:
    text = (
        "\n# aider chat started at 2024-10-15 04:27:44\n\n> Aider v0.59.1  \n\n"
        "#### /ask this is an engine  \n\n#### this is an engine  \n\nIt seems so.\n\n"
        "#### /ask   \n\n#### /architect turn it round  \n\n#### now the next  \n"
    )
    found = events(Aider, tmp_path / "a.md", text.encode())
    assert [prompt.text for prompt in seen(found, PromptSubmitted)] == [
        "this is an engine", "/ask", "/architect turn it round", "now the next",
    ]  # fmt: skip
    assert [notice.text for notice in notices(found, "command")] == ["/ask this is an engine"]


@pytest.mark.parametrize(("zone", "ahead_h"), [("UTC", 0), ("America/Los_Angeles", 7), ("Asia/Seoul", -9)])
def test_aiders_times_are_of_this_machines_zone(
    tmp_path: Path, zone: str, ahead_h: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = b"\n# aider chat started at 2024-10-15 14:27:44\n\n#### how are you?  \n\nfine\n"
    with monkeypatch.context() as there:
        there.setenv("TZ", zone)
        time.tzset()
        moments = {event.occurred_at for event in events(Aider, tmp_path / "h.md", history)}
    time.tzset()
    assert moments == {micros(f"2024-10-15T{14 + ahead_h:02}:27:44Z")}


def test_an_aider_history_lies_at_the_root_of_its_project(tmp_path: Path) -> None:
    assert {e.location for e in events(Aider, tmp_path / ".aider.chat.history.md")} == {str(tmp_path)}
    assert {e.location for e in events(Aider, tmp_path / "archive.md")} == {""}


# --- where they lie ---


def test_geminis_folder_is_among_the_defaults_and_one_client_can_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".gemini" / "tmp").mkdir(parents=True)
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    assert default_sources(tmp_path) == [tmp_path / ".claude" / "projects", tmp_path / ".gemini" / "tmp"]
    assert default_sources(tmp_path, "gemini-cli") == [tmp_path / ".gemini" / "tmp"]
    assert default_sources(tmp_path, "aider") == []


@pytest.mark.parametrize("mode", ["", "<!-- -*- mode: markdown -*- -->\n", "-*- coding: utf-8 -*-\n\n"])
def test_a_history_of_aiders_is_known_also_behind_an_editors_mode_line(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(mode.encode() + SAMPLES[Aider])
    assert sniff(path) is Aider
    assert {event.dedupe_key for event in events(Aider, path, path.read_bytes())} == {
        event.dedupe_key for event in events(Aider, tmp_path / "b.md")
    }
