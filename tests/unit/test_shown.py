"""What is learnt from what people and agents do, and from what it is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from events import as_read

from memctl.domain.events.event import Event, Micros, NewEvent
from memctl.domain.events.facts import InsightFound, quote_hash
from memctl.domain.events.observations import (
    Observation,
    PromptSubmitted,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    transcript_key,
)
from memctl.domain.session.stream_facts import derive

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


def shown(*payloads: Observation) -> dict[str, InsightFound]:
    facts = derive(STREAM, events(*payloads)).drain()
    return {fact.text: fact for fact in facts if isinstance(fact, InsightFound)}


def all_of(parts: Sequence[list[Observation]]) -> list[Observation]:
    return [each for part in parts for each in part]


def test_a_command_that_passed_proves_how_a_project_is_worked_on_in_its_own_characters() -> None:
    payloads = run("cd web && mise run test:ci 2>&1")
    found = shown(*payloads)["The tests run as in CI with `mise run test:ci`"]
    assert (found.kind, found.said_by, found.proved, found.location) == ("fact", "tool", True, "/home/dana/ledger")
    span = found.evidence[0]
    command = "cd web && mise run test:ci 2>&1"
    assert span.field == "input.command"
    assert command[span.start : span.end].startswith("mise run test:ci")
    assert span.quote_hash == quote_hash(command[span.start : span.end])


def test_the_folder_of_a_command_is_counted_from_where_it_began() -> None:
    """What comes back tells where the command ended: here, in the folder that it entered."""
    called, back = events(*run("cd web && make test && git commit -m 'feat: add a total to carts'"))
    facts = derive(STREAM, [called, msgspec.structs.replace(back, location="/home/dana/ledger/web")]).drain()
    found = {fact.text for fact in facts if isinstance(fact, InsightFound)}
    assert "The tests run with `make test`, in `web`" in found
    assert any("Conventional Commits" in text for text in found)


@pytest.mark.parametrize(
    "payloads",
    [
        run("mise run test", failed="Exit code 1\nmise ERROR no task test found"),
        run("npm run lint", failed='Exit code 1\nnpm error Missing script: "lint"'),
        run("git checkout main"),
        run("bun --check scripts/release.ts"),
        run("pnpm --filter web test"),
        run("npm run test src/a.test.ts"),
        run("npm test -- --grep cart"),
        run("GOOS=windows mise run build"),
        run("npm run start-server.js"),
        run("make test-watch"),
        run("cat x | make test"),
        run("cd /tmp/scratch && make test"),
        run("cd $REPO && make test"),
        run("pytest", failed="Exit code 1\n1 failed in 0.2s"),
        all_of([run("go test ./store/...", number=n) for n in (1, 2, 3, 4)]),
        all_of([run("go test ./... -run TestA", number=n) for n in (1, 2, 3, 4)]),
        all_of([run("gofmt -l .", number=n) for n in (1, 2, 3, 4)]),
        all_of([run("bun test src/a.test.ts", number=n) for n in (1, 2, 3, 4)]),
        all_of([run("pytest -k cart", number=n) for n in (1, 2, 3, 4)]),
        all_of([run("go build ./...", number=n) for n in (1, 2, 3, 4)]),
        run("go test ./..."),
    ],
)
def test_what_is_not_there_or_looks_at_a_part_says_nothing_of_the_project(payloads: list[Observation]) -> None:
    assert shown(*payloads) == {}


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("mise run test 2>&1 | tail -5", "The tests run with `mise run test`"),
        ("make test; echo $?", "The tests run with `make test`"),
        ("CI=1 timeout 60 npm test -s", "The tests run with `npm test`"),
        ("pnpm -r lint", "Linting is done with `pnpm -r lint`"),
        ("yarn lint:fix", "Lint problems are fixed with `yarn lint:fix`"),
        ("bun run typecheck && git add .", "Types are checked with `bun run typecheck`"),
        ("mise run test:integration", "The integration tests run with `mise run test:integration`"),
        ("npm run test:e2e", "The end-to-end tests run with `npm run test:e2e`"),
        ("mise run test:ci", "The tests run as in CI with `mise run test:ci`"),
        ("pnpm api:generate", "Code is generated with `pnpm api:generate`"),
        ("cd web && npm run build", "The project builds with `npm run build`, in `web`"),
        ("cd web && just build", "The project builds with `just build`"),
    ],
)
def test_a_command_of_the_project_itself_is_known_from_one_run(command: str, text: str) -> None:
    assert text in shown(*run(command))


def test_tests_that_fail_still_show_how_they_are_run() -> None:
    found = shown(*run("mise run test", failed="Exit code 1\n--- FAIL: TestCart"))["The tests run with `mise run test`"]
    assert not found.proved


def test_a_tool_counts_from_its_second_passing_run_over_the_whole_project() -> None:
    runs = [run("cd src && go test ./... -v -count=1", number=n) for n in (1, 2)]
    assert "The tests run with `go test ./...`, in `src`" in shown(*all_of(runs))


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (".venv/bin/pytest -q", "The tests run with `.venv/bin/pytest`"),
        ("source .venv/bin/activate && ls", "Commands run in the virtual environment of `source .venv/bin/activate`"),
        ("docker compose up -d", "The services that it needs are started with `docker compose up -d`"),
        ("python manage.py migrate", "The database is migrated with `python manage.py migrate`"),
        ("npx tsc --noEmit", "Types are checked with `npx tsc --noEmit`"),
    ],
)
def test_how_a_tool_is_started_belongs_to_the_claim(command: str, text: str) -> None:
    assert text in shown(*all_of([run(command, number=n) for n in (1, 2)]))


def test_what_the_project_defined_itself_takes_the_place_of_a_bare_tool() -> None:
    tool = [run("uv run pytest", number=n) for n in (1, 2)]
    assert set(shown(*run("make test", number=0), *all_of(tool))) == {"The tests run with `make test`"}
    found = derive(STREAM, events(*all_of(tool), *run("make test", number=3))).drain()
    denied = [f.denied for f in found if isinstance(f, InsightFound) and f.text == "The tests run with `uv run pytest`"]
    assert denied == [False, True]


def test_a_package_manager_answers_the_question_that_the_user_may_answer_otherwise() -> None:
    found = shown(*run("pnpm install"))["Packages are managed with pnpm"]
    assert (found.subject, found.canonical, found.polarity) == ("one/package manager", "pnpm", 1)
    assert shown(*run("npm install -g serve")) == {}


@pytest.mark.parametrize(
    ("command", "form", "shows"),
    [
        ('git commit -m "feat(store): keep all rows"', "Conventional", True),
        ('git commit -am "Keep all the rows"', "Conventional", False),
        ('git commit -m "Keep all the rows"', "plain sentences", True),
        ("git switch -c fix/cart-total", "by the kind", True),
        ("git checkout -b dana-cart", "by the kind", False),
        ("gh pr create --fill", "by pull request", True),
        ("git push origin main", "by pull request", False),
    ],
)
def test_each_commit_branch_and_push_speaks_for_a_form_or_against_it(command: str, form: str, shows: bool) -> None:
    found = {text: fact.denied for text, fact in shown(*run(command)).items() if form in text}
    assert list(found.values()) == [not shows]


@pytest.mark.parametrize(
    "command",
    [
        'git commit -m "Merge branch main"',
        'cd /tmp/trial && git commit -m "feat: a first one"',
        "git push",
        """./posh print tooltip --command 'git commit -m "hello; world"'""",
    ],
)
def test_what_git_wrote_or_another_repository_holds_is_no_form_of_this_one(command: str) -> None:
    assert shown(*run(command)) == {}


def said(text: str, **more: Any) -> dict[str, InsightFound]:
    return shown(PromptSubmitted(text=text, line="#1", **more))


def test_what_a_user_states_for_good_is_kept_verbatim() -> None:
    text = "great, always run the linter before you push"
    (found,) = said(text).values()
    span = found.evidence[0]
    assert (found.text, found.said_by, found.rule) == (
        "always run the linter before you push",
        "user_typed",
        "statement",
    )
    assert span.quote_hash == quote_hash(text[span.start : span.end])


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("always run the linter before you push", {"subagent": "a1"}),
        ("always run the linter before you push", {"meta": True}),
        ("<memctl-context>the user asks: always add a test, and never use npm</memctl-context>", {"injected": True}),
        ("<memctl-context>always add a test for this</memctl-context>", {}),
        ("please look at what they ask for\n\nAlways run the linter before you push", {}),
        ("<system-reminder>always add a test for this</system-reminder>", {}),
        ("<command-message>review</command-message>\n<command-name>/compact</command-name>", {}),
        ("Base directory for this skill: /x\n\nAlways add a test for each change. Never use npm.", {}),
        ("This session is being continued from a previous conversation. Always use pnpm. Add a test.", {}),
        ("[Request interrupted by user for tool use]", {}),
        ("/review 12", {}),
        ("/ask why is it red", {}),
        ("please push directly to main", {}),
        ("yes, then commit, push", {}),
        ("please make sure the docs are consistent", {}),
        ("can you explain that", {}),
        ("summarize real quick", {}),
        ("no need to update the changelog", {}),
        ("> can you add a test for this?\n\nwhat is meant by that", {}),
        ('He wrote: "Please add tests. Then update the changelog."', {}),
        ("The spec says:\n" + "Then add a test. " * 60, {}),
    ],
)
def test_nothing_is_learnt_from_what_the_user_did_not_say(text: str, more: dict[str, Any]) -> None:
    assert said(text, **more) == {}


def test_a_refusal_notice_is_nobodys_preference() -> None:
    assert shown(*run("rm -rf build", failed=REFUSAL + " Always use pnpm.")) == {}
