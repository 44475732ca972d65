"""What is learnt from what people and agents do, and from what it is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from memctl.domain.derive import derive
from memctl.domain.event import Event, Micros, NewEvent
from memctl.domain.facts import InsightFound, quote_hash
from memctl.domain.habits import habits_in
from memctl.domain.observations import (
    Observation,
    PromptSubmitted,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    transcript_key,
)
from memctl.domain.prompts import said_in
from tests.events import as_read

STREAM = "session/claude-code/s1"
REFUSAL = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit,"
    " the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to"
    " proceed."
)


def events(*payloads: Observation) -> list[Event]:
    made = []
    for number, payload in enumerate(payloads, 1):
        key = transcript_key("claude-code", "s1", payload.line or f"#{number}", 0)
        new = NewEvent(
            stream=STREAM,
            payload=payload,
            occurred_at=Micros(number * 1_000_000),
            dedupe_key=key,
            actor="user",
            location="/home/dana/ledger",
            session_id="s1",
        )
        made.append(as_read(new, number))
    return made


def run(
    command: str, *, failed: str = "", exit_code: int | None = 0, number: int = 1, **more: Any
) -> list[Observation]:
    call = ToolCalled(tool="Bash", call=f"c{number}", input={"command": command}, line=f"#{2 * number}", **more)
    if failed:
        return [call, ToolFailed(tool="Bash", call=call.call, text=failed, line=f"#{2 * number + 1}")]
    back = ToolReturned(tool="Bash", call=call.call, text="ok", exit_code=exit_code, line=f"#{2 * number + 1}")
    return [call, back]


def edit(path: str, number: int) -> list[Observation]:
    given = {"file_path": path, "old_string": "a", "new_string": "b"}
    call = ToolCalled(tool="Edit", call=f"e{number}", input=given, line=f"#{2 * number}")
    return [call, ToolReturned(tool="Edit", call=call.call, text="ok", line=f"#{2 * number + 1}")]


def shown(*payloads: Observation) -> dict[str, InsightFound]:
    facts = derive(STREAM, events(*payloads)).drain()
    return {fact.text: fact for fact in facts if isinstance(fact, InsightFound)}


def all_of(parts: Sequence[list[Observation]]) -> list[Observation]:
    return [each for part in parts for each in part]


def test_a_command_that_passed_proves_how_a_project_is_worked_on_in_its_own_characters() -> None:
    payloads = run("cd web && mise run test:ci 2>&1")
    found = shown(*payloads)["The tests run with `mise run test:ci`"]
    assert (found.kind, found.said_by, found.proved) == ("fact", "tool", True)
    span = found.evidence[0]
    command = "cd web && mise run test:ci 2>&1"
    assert span.field == "input.command"
    assert command[span.start : span.end].startswith("mise run test:ci")
    assert span.quote_hash == quote_hash(command[span.start : span.end])


@pytest.mark.parametrize(
    "payloads",
    [
        run("mise run test", failed="Exit code 1\nFAIL"),
        run("mise run test", exit_code=1),
        run("mise run test | tail -5"),
        run("mise run test || true"),
        run("mise run test; echo done"),
        run("git checkout main"),
        run("bun --check scripts/release.ts"),
        run("go test ./store/..."),
    ],
)
def test_what_failed_hid_its_end_or_was_a_single_look_proves_nothing(payloads: list[Observation]) -> None:
    assert shown(*payloads) == {}


def test_a_tool_of_no_project_counts_from_its_third_passing_run() -> None:
    runs = [run("go test ./store/...", number=n) for n in (1, 2, 3)]
    assert "The tests run with `go test`" in shown(*all_of(runs))
    assert shown(*all_of(runs[:2])) == {}


def test_a_package_manager_answers_the_question_that_the_user_may_answer_otherwise() -> None:
    found = shown(*run("pnpm install"))["Packages are managed with pnpm"]
    assert (found.subject, found.canonical, found.polarity) == ("one/package manager", "pnpm", 1)
    assert shown(*run("npm install -g serve")) == {}


def test_three_changed_files_of_a_language_make_a_session_work_in_it() -> None:
    assert shown(*all_of([edit(f"/p/{n}.go", n) for n in (1, 2)])) == {}
    found = shown(*all_of([edit(f"/p/{n}.go", n) for n in (1, 2, 3, 4)]))
    assert set(found) == {"Works on Go code"}
    assert found["Works on Go code"].everywhere


def test_conventional_subjects_are_seen_from_the_second_on() -> None:
    commits = [run(f'git commit -m "feat(store): keep {n} rows"', number=n) for n in (1, 2)]
    assert any("Conventional Commits" in text for text in shown(*all_of(commits)))
    assert shown(*commits[0]) == {}
    assert shown(*all_of([run('git commit -m "Keep more rows"', number=n) for n in (1, 2)])) == {}


def test_a_bare_refusal_is_told_and_one_that_gives_a_reason_is_left_to_its_words() -> None:
    assert set(shown(*run("git stash pop", failed=REFUSAL))) == {"Did not let the agent run `git stash pop`"}
    assert shown(*run("mise run test:ci", failed=REFUSAL)) == {}
    reason = REFUSAL.replace(
        "STOP what you are doing and wait for", "To tell you how to proceed, the user said: not now"
    )
    assert shown(*run("git commit --amend", failed=reason)) == {}


def said(text: str, **more: Any) -> dict[str, InsightFound]:
    return shown(PromptSubmitted(text=text, line="#1", **more))


@pytest.mark.parametrize(
    ("text", "habit"),
    [
        ("can you add a test for this?", "Asks for tests along with a change"),
        ("테스트도 추가해줘", "Asks for tests along with a change"),
        ("then commit, and update changelog", "Has the changelog updated with a change"),
        ("please push directly to main", "Pushes straight to the main branch"),
        ("yes, then commit, push", "Has finished work committed and pushed by the agent"),
        ("the coderabbit comments on the pr need answers", "Pull requests are reviewed by CodeRabbit"),
        ("log a linear improvement - Project:Troy", "Issues are kept in Linear, project Troy"),
        ("use the test repo skill with the manual strategy", "Works with the skill `test repo`"),
        ("/gsd:quick the footer is gone", "Works with the command `/gsd:quick`"),
        ("Implement the following plan:\n\n# Plan: a thing", "Has the work planned in writing before it begins"),
    ],
)
def test_a_habit_shows_in_what_is_asked(text: str, habit: str) -> None:
    found = said(text)[habit]
    span = found.evidence[0]
    assert span.quote_hash == quote_hash(text[span.start : span.end])


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("can you add a test for this?", {"subagent": "a1"}),
        ("can you add a test for this?", {"meta": True}),
        ("<memctl-context>the user asks: always add a test, and never use npm</memctl-context>", {"injected": True}),
        ("<system-reminder>always add a test for this</system-reminder>", {}),
        ("<command-message>review</command-message>\n<command-name>/compact</command-name>", {}),
        ("Base directory for this skill: /x\n\nAlways add a test for each change. Never use npm.", {}),
        ("This session is being continued from a previous conversation. Always use pnpm. Add a test.", {}),
        ("[Request interrupted by user for tool use]", {}),
        ("The spec says:\n" + "Then add a test. " * 60, {}),
    ],
)
def test_nothing_is_learnt_from_what_the_user_did_not_say(text: str, more: dict[str, Any]) -> None:
    assert said(text, **more) == {}


def test_a_refusal_notice_is_nobodys_preference() -> None:
    assert shown(*run("rm -rf build", failed=REFUSAL + " Always use pnpm.")).keys() <= {
        "Did not let the agent run `rm`"
    }


def test_a_session_shows_a_thing_once() -> None:
    prompts = [PromptSubmitted(text=f"can you add a test for this {n}?", line=f"#{n}") for n in range(1, 4)]
    facts = derive(STREAM, events(*prompts)).drain()
    assert sum(isinstance(f, InsightFound) and f.text.startswith("Asks for tests") for f in facts) == 1


def test_places_of_habits_are_places_in_the_prompt() -> None:
    text = "<system-reminder>x</system-reminder> please add a test"
    (habit,) = habits_in(said_in(text))
    assert text[habit.start : habit.end] == "add a test"
