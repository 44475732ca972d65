"""Strategies by rule: what is a lesson for other work, what is not, and how many sessions it takes."""

from __future__ import annotations

import msgspec
import pytest
from session_events import Session, facts_of, only
from unit.test_learning import EPISODE, WORK, of, read

from memctl.domain.events.event import NewEvent
from memctl.domain.events.facts import Edit, Lesson, StrategyShown, fact_id
from memctl.domain.events.processor_events import StrategyDistilled
from memctl.domain.knowledge.strategies import (
    BY_HAND,
    MOST_STEPS,
    of_check,
    of_commit,
    of_gate,
    of_machine,
    of_one_test,
    of_refusal,
    steps_of,
)
from memctl.domain.session.stream_facts import StreamFacts, derive
from memctl.projections.kernel import Changed
from memctl.projections.memories import memories
from memctl.projections.strategies import Strategy, strategies, strategy_id


def test_a_rule_of_a_checker_is_enforced_and_one_that_every_agent_keeps_is_no_lesson() -> None:
    said = "os/exec.Command must not be called. use os/exec.CommandContext"
    lesson = of_check(("golangci-lint/noctx",), "mise run lint", said)
    assert lesson is not None
    assert lesson.key == "check:golangci-lint/noctx"
    assert of_check(("golangci-lint/unused",), "mise run lint", "func findSecrets is unused") is None
    assert of_check(("go compile",), "go build", "undefined: total") is None


def test_a_rule_that_is_many_is_told_by_the_one_that_was_broken() -> None:
    said = "elseif: can replace 'else {if cond {}}' with 'else if cond {}'"
    lesson = of_check(("golangci-lint/gocritic",), "mise run lint", said)
    assert lesson is not None
    assert lesson.title == "golangci-lint enforces `gocritic/elseif` here"
    said = "unused-parameter: parameter 'repo' seems to be unused"
    assert of_check(("golangci-lint/revive",), "mise run lint", said) is None
    plain = of_check(("eslint/no-console",), "npm run lint", "error: Unexpected console statement")
    assert plain is not None
    assert plain.key == "check:eslint/no-console"


def test_a_check_that_a_commit_ran_is_the_commits() -> None:
    said, committed = "Template literals are preferred.", "git add . && git commit -m 'x'"
    lesson = of_refusal(("biome/lint/style",), committed)
    assert lesson is not None
    assert lesson.title == "`git commit` runs biome here and refuses what it finds"
    assert of_check(("biome/lint/style",), committed, said) is None
    by_hand = "bun run lint && git commit -m 'x'"
    assert of_refusal(("biome/lint/style",), by_hand) is None
    asked = of_check(("biome/lint/style",), by_hand, said)
    assert asked is not None
    assert asked.key == "check:biome/lint/style", "the lint was run by hand"


def test_what_a_checker_finds_is_a_lesson_once_it_was_mended_and_what_it_refuses_at_once() -> None:
    session = Session()
    session.user("Close the files of the export when it ends.")
    found = "export.go:12:9: Error return value of `f.Close` is not checked (errcheck)"
    session.runs("golangci-lint run", found, exit_code=1)
    assert only(facts_of(session.events), StrategyShown) == []
    session.edits("/work/shop/export.go", "f.Close()", "return f.Close()")
    session.runs("golangci-lint run", "0 issues.")
    (shown,) = only(facts_of(session.events), StrategyShown)
    assert shown.lesson.key == "check:golangci-lint/errcheck"
    session.runs("git commit -m 'Close files'", found, exit_code=1)
    assert {fact.lesson.domain for fact in only(facts_of(session.events), StrategyShown)} == {
        "code style", "version control",
    }  # fmt: skip


def shown(number: int, lesson: Lesson, made_by: str = "") -> StrategyShown:
    stream = f"session/claude-code/s{number}"
    return StrategyShown(
        id=fact_id(stream, "strategy_shown", str(number)),
        stream=stream,
        occurred_at=1_000_000 * number,  # type: ignore[arg-type]
        location="/home/dana/ledger",
        lesson=lesson,
        made_by=made_by,
    )


def folded(*facts: StrategyShown) -> Strategy:
    row = None
    for fact in facts:
        row = strategies(row, fact)
    assert row is not None
    return row


NOCTX = "os/exec.Command must not be called. use os/exec.CommandContext"


def test_a_rule_of_a_checker_is_told_at_once_where_a_script_of_the_project_runs_it() -> None:
    own = of_check(("golangci-lint/noctx",), "mise run fmt && mise run lint 2>&1 | tail -5", NOCTX)
    by_hand = of_check(("golangci-lint/noctx",), "golangci-lint run ./...", NOCTX)
    assert own is not None
    assert by_hand is not None
    assert own.key == by_hand.key
    assert folded(shown(1, own)).enough
    assert not folded(shown(1, by_hand)).enough
    assert folded(shown(2, by_hand), shown(1, own)).enough, "what one session shows stays shown"


def test_how_a_rule_of_a_checker_is_excused_is_told_where_the_excuse_is_that_rules() -> None:
    edit = Edit("a.go", "x := f()", "x := f() //nolint:noctx // a test, which nobody ends\ny()")
    lesson = of_check(("golangci-lint/noctx",), "mise run lint", NOCTX, [edit])
    assert lesson is not None
    assert lesson.content.endswith("it is excused: `//nolint:noctx // a test, which nobody ends`.")
    for before, after in (("", "x := f() //nolint:gosec // another rule's"), (edit.after, edit.after)):
        lesson = of_check(("golangci-lint/noctx",), "mise run lint", NOCTX, [Edit("a.go", before, after)])
        assert lesson is not None
        assert lesson.content.endswith("Keep to it from the start.")


@pytest.mark.parametrize(
    ("edit", "kept"),
    [
        (Edit(".golangci.yml", "linters:\n  enable:", "linters:\n  disable:\n    - noctx\n  enable:"), False),
        (Edit("eslint.config.mjs", "rules: {", "rules: {\n  'ctx/noctx': 'off',"), False),
        (Edit(".golangci.yml", "disable: [noctx]\n", "disable: [noctx]\nenable: [gosec]"), True),
        (Edit("pkg/noctx.go", "", "// noctx is on"), True),
    ],
)
def test_a_rule_that_was_switched_off_is_no_lesson(edit: Edit, kept: bool) -> None:
    assert (of_check(("golangci-lint/noctx",), "mise run lint", NOCTX, [edit]) is not None) == kept


def test_a_check_of_the_project_that_keeps_finding_things_is_run_before_a_change_is_done() -> None:
    types, command, said = ("golangci-lint/unused",), "mise run fmt && mise run lint", "func findSecrets is unused"
    lesson = of_gate(types, command, {"mise run lint"}, said)
    assert lesson is not None
    assert lesson.title == "Run `mise run lint` before a change is done: it finds what has to be mended"
    assert [folded(*(shown(n, lesson) for n in range(1, many + 1))).enough for many in (2, 3)] == [False, True]
    assert of_gate(types, command, {"mise run fmt", "mise run lint"}, said) is None, "nobody knows which"
    assert of_gate(types, "golangci-lint run", {"golangci-lint run"}, said) is None, "run by hand"
    for found in (("golangci-lint/typecheck",), ("test failure",)):
        assert of_gate(found, command, {"mise run lint"}, said) is None, "which everybody runs"


def test_what_passes_before_commits_is_told_in_its_order() -> None:
    session = Session()
    session.user("Close the files of the export when it ends.")
    session.runs("npm run lint", "ok")
    session.edits("/work/shop/export.ts", "close()", "await close()")
    session.runs("npm run test", "ok")
    session.runs("npm run lint && npm run test -- --bail", "ok")
    session.runs("git commit -am 'Close files'", "[main 1a2b3c4] Close files\n 1 file changed")
    session.runs("git commit -am 'Again'", "[main 1a2b3c5] Again\n 1 file changed")
    (told,) = only(facts_of(session.events), StrategyShown)
    assert told.lesson.title == "Before a commit here: `npm run test`, then `npm run lint`"
    assert told.lesson.sessions > BY_HAND
    assert of_commit(["make lint"]) is None
    last = of_commit([f"make part{number}" for number in range(MOST_STEPS + 2)])
    assert last is not None
    assert last.title.startswith("Before a commit here: `make part2`, then `make part3`, `make part4`")


def test_what_failed_after_it_had_passed_is_not_among_what_passed_before_a_commit() -> None:
    session = Session()
    session.user("Close the files of the export when it ends.")
    session.edits("/work/shop/export.ts", "close()", "await close()")
    for command in ("npm run lint", "npm run test", "npm run build"):
        session.runs(command, "ok")
    session.runs("npm run lint", "export.ts: 1 error", exit_code=1)
    session.runs("git commit -am 'Close files'", "[main 1a2b3c4] Close files\n 1 file changed")
    (told,) = only(facts_of(session.events), StrategyShown)
    assert told.lesson.title == "Before a commit here: `npm run test`, then `npm run build`"


def test_the_steps_of_a_commit_are_told_by_their_names() -> None:
    assert steps_of("cd x && make lint && go test ./... && make run") == ("make lint",)


@pytest.mark.parametrize(
    ("command", "form"),
    [
        ("mise run test -- -run TestReset -v ./cmd/...", "mise run test -- -run NAME"),
        ("cd /w && npm run test -- --grep='a total' 2>&1 | tail -3", "npm run test -- --grep=NAME"),
        ("pnpm test -t total", "pnpm test -t NAME"),
        ("mise run test", ""),
        ("go test ./... -run TestReset", ""),
        ("pytest -k total", ""),
        ("npm run lint -- -t x", ""),
    ],
)
def test_how_one_test_alone_runs_is_told_of_scripts_of_the_project(command: str, form: str) -> None:
    lesson = of_one_test(command)
    assert (lesson.title if lesson is not None else "") == (f"One test alone runs with `{form}`" if form else "")


def test_what_only_this_machines_shell_and_tools_refuse_is_told() -> None:
    zsh = of_machine(("shell",), "no matches found: repos/x/pulls/1/comments?per_page=100")
    assert zsh is not None
    assert zsh.key == "machine:zsh patterns"
    bsd = of_machine(("usage",), "cat: illegal option -- A")
    assert bsd is not None
    assert bsd.title == "The tools here are BSD's (macOS), not GNU's: `cat -A` does not exist"
    assert of_machine(("usage",), "cat: invalid option -- 'Q'") is None
    assert of_machine(("shell",), "command not found: rg") is None


def test_a_rule_of_a_checker_run_by_hand_is_told_once_two_sessions_ran_into_it() -> None:
    lesson = of_check(("golangci-lint/noctx",), "golangci-lint run", NOCTX)
    assert lesson is not None
    once, twice = folded(shown(1, lesson)), folded(shown(1, lesson), shown(2, lesson))
    assert (once.enough, twice.enough) == (False, True)
    assert once.confidence < twice.confidence
    assert memories(None, Changed(once.id, once)) is None
    memory = memories(None, Changed(twice.id, twice))
    assert memory is not None
    assert (memory.kind, memory.source.key) == ("strategy", strategy_id("/home/dana/ledger", lesson))


LESSON = Lesson(title="Check empty input first", content="The export crashed on it.", from_failure=True)


def distilled(*lessons: Lesson, at: int = 200) -> NewEvent:
    return of(StrategyDistilled(episode=EPISODE, strategies=lessons, made_by="a-model"), at)


def told(*events: NewEvent) -> list[StrategyShown]:
    return [f for f in derive(WORK[0].stream, read(*WORK, *events)).drain() if isinstance(f, StrategyShown)]


def test_at_most_three_are_taken_of_what_a_model_distilled_and_its_newest_word_counts() -> None:
    many = [Lesson(title=f"Lesson number {n}") for n in range(5)]
    assert [fact.lesson.title for fact in told(distilled(*many))] == [each.title for each in many[:3]]
    assert [fact.lesson for fact in told(distilled(*many), distilled(LESSON, at=300))] == [LESSON]
    state = StreamFacts(WORK[0].stream)
    events = read(*WORK, distilled(*many), distilled(LESSON, at=300))
    assert state.extend(events[:4])
    assert not state.extend(events[4:]), "what it said before has to be taken back"


def test_a_models_lesson_has_no_key_of_a_rule_and_is_told_from_one_piece_of_work() -> None:
    (fact,) = told(distilled(msgspec.structs.replace(LESSON, key="before a commit", sessions=9)))
    assert fact.lesson == LESSON
