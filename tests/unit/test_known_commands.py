"""Commands that are wrong in themselves: by what they are known again, which form works instead, and the odds."""

from __future__ import annotations

import pytest
from session_events import Session, facts_of

from memctl.domain.events.facts import CommandTried
from memctl.domain.failures.known_commands import (
    ENOUGH,
    MOST_KEYS,
    PRIOR,
    WrongCall,
    forms_of,
    keys_of,
    odds,
    works_instead,
    wrong_call,
)
from memctl.domain.failures.signatures import errors_in
from memctl.projections.known_commands import KnownCommand, known_commands, row_id, together, warning


def call_of(command: str, output: str, directory: str = "/work/shop") -> WrongCall | None:
    return wrong_call(command, directory, errors_in(output, command, failed=True, exit_code=1))


@pytest.mark.parametrize(
    ("command", "output", "reason", "subject"),
    [
        ("rtk bun run test 2>&1", "error: unrecognized subcommand 'bun'", "unknown option", "rtk bun"),
        ("ls -l && cat -A notes", "cat: illegal option -- A", "unknown option", "cat -A"),
        ("gh run view 77 --json event,actor", 'Unknown JSON field: "actor"', "unknown option", "gh run view actor"),
        ("timeout 60 go test ./...", "zsh: command not found: timeout", "missing program", "timeout"),
        ("python manage.py check", "bash: python: command not found", "missing program", "python"),
        ("npm run tets", 'npm error Missing script: "tets"', "missing script", "npm run tets"),
        ("go vet ./...", "pattern ./...: directory prefix . does not contain main module", "wrong directory",
         "go vet@shop"),
        ("git add cart/a.go", "fatal: pathspec 'cart/a.go' did not match any files", "missing path",
         "git add cart/a.go@shop"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_known_by_what_its_error_names(command: str, output: str, reason: str, subject: str) -> None:
    call = call_of(command, output)
    assert call is not None
    assert (call.reason, call.subject) == (reason, subject)
    assert subject in keys_of(command, "/work/shop"), "it is found by a key of the same command"


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("pytest -q", "FAILED tests/test_cart.py::test_total - AssertionError: 1 != 2"),
        ("mise run lint", "cart/a.go:3:1: error is not nil (nilerr)"),
        ("git merge main", "CONFLICT (content): Merge conflict in cart/a.go"),
        ("ls src/none", "ls: src/none: No such file or directory"),
    ],
)
def test_what_a_program_found_is_no_wrong_call(command: str, output: str) -> None:
    assert call_of(command, output) is None


def test_the_same_words_given_to_another_program_are_another_call() -> None:
    assert "rtk bun" not in keys_of("rtk test bun run test")
    assert "git status --cached" not in keys_of("git diff --cached")
    assert "go vet@shop" not in keys_of("cd src && go vet ./...", "/work/shop")


def test_a_command_has_a_bounded_number_of_keys() -> None:
    command = " && ".join(f"tool{n} " + " ".join(f"--option-{m}" for m in range(50)) for n in range(50))
    assert len(keys_of(command)) == len(forms_of(command)) == MOST_KEYS


def test_a_success_speaks_for_programs_and_options_and_not_for_values() -> None:
    assert set(forms_of("gh run view 77 --json actor", "/work/shop")) == {
        "gh", "gh run view", "gh run view@shop", "gh run view --json"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("command", "output", "works", "form"),
    [
        ("rtk bun run test", "error: unrecognized subcommand 'bun'", "bun run test | tail -5", "bun run test"),
        ("timeout 60 go test ./cart", "zsh: command not found: timeout", "go test ./cart", "go test ./cart"),
        ("npm run test:untis", 'npm error Missing script: "test:untis"', "npm run test", "npm run test"),
    ],
)
def test_what_does_the_same_is_the_form_that_works(command: str, output: str, works: str, form: str) -> None:
    call = call_of(command, output)
    assert call is not None
    assert works_instead(call, works, "/work/shop") == (form, "shop")


@pytest.mark.parametrize(
    ("command", "output", "other"),
    [
        ("rtk bun run test", "error: unrecognized subcommand 'bun'", "rtk git status"),
        ("rtk bun run test", "error: unrecognized subcommand 'bun'", "rtk bun run test --help"),
        ("git gc --dry-run", "error: unknown option `dry-run'", "git count-objects -v"),
        ("git diff cart/a.go", "fatal: ambiguous argument 'cart/a.go': unknown revision or path",
         "git add cart/a.go"),
        ("shoplint cart/a.go", "zsh: command not found: shoplint", "cat cart/a.go"),
    ],
)  # fmt: skip
def test_another_errand_is_no_form_that_works(command: str, output: str, other: str) -> None:
    call = call_of(command, output)
    assert call is not None
    assert works_instead(call, other, "/work/shop") is None


def test_odds_grow_with_failures_and_a_success_since_takes_them_back() -> None:
    for reason in PRIOR:
        assert odds(reason, 1, 0) < odds(reason, 3, 0) < 1
        assert odds(reason, 2, 1) < ENOUGH
    assert odds("unknown option", 1, 0) >= ENOUGH > odds("missing path", 1, 0)


# --- facts and rows ---


def tried(session: Session) -> list[CommandTried]:
    return [fact for fact in facts_of(session.events) if isinstance(fact, CommandTried)]


def row_of(facts: list[CommandTried], key: str) -> KnownCommand | None:
    row = None
    for fact in facts:
        if row_id(fact.location, key) in known_commands.keys(fact):
            row = known_commands(row, fact)
    return row


def test_a_session_shows_the_wrong_call_and_the_one_that_works() -> None:
    session = Session()
    session.user("Run the tests.")
    session.runs("rtk bun run test", "error: unrecognized subcommand 'bun'", exit_code=2)
    session.runs("bun run test", "4 pass")
    facts = tried(session)
    assert [fact.outcome for fact in facts] == ["failed", "worked", "replaced"]
    row = row_of(facts, "rtk bun")
    assert row is not None
    assert (row.subject, row.failures, row.successes) == ("rtk bun", 1, 0)
    assert [each.command for each in row.works] == ["bun run test"]
    assert row.works[0].failed == row.failed[0].id
    assert row.odds("another") >= ENOUGH
    assert row.odds(row.failed[0].stream) == 0, "what a session saw itself its agent has before its eyes"
    assert row.works_now(row.failed[0].stream) is None


def test_the_same_call_that_goes_well_later_clears_it() -> None:
    session = Session()
    session.user("Run the tests.")
    session.runs("rtk bun run test", "error: unrecognized subcommand 'bun'", exit_code=2)
    session.runs("bun run test", "4 pass")
    session.runs("rtk bun run test", "4 pass")
    row = row_of(tried(session), "rtk bun")
    assert row is not None
    assert row.successes == 1
    assert row.odds("another") < ENOUGH


def test_what_several_places_of_a_project_show_counts_together() -> None:
    failing, working = Session(), Session()
    for session in (failing, working):
        session.user("Run the tests.")
    failing.runs("rtk bun run test", "error: unrecognized subcommand 'bun'", exit_code=2)
    failing.runs("bun run test", "4 pass")
    working.runs("echo 1", "1")
    working.runs("rtk bun run test", "4 pass")
    rows = [(name, row_of(tried(session), "rtk bun")) for name, session in (("a", failing), ("b", working))]
    id, row = together([(name, row) for name, row in rows if row is not None])
    assert (id, row.failures, row.successes, len(row.works)) == ("a", 1, 1, 1)
    assert warning([("a", rows[0][1])], "another") is not None if rows[0][1] else False
    assert warning([(id, row)], "another") is None, "it went well since, at another place of the project"


def test_an_install_clears_a_missing_program() -> None:
    session = Session()
    session.user("Check it.")
    session.runs("jqq . a.json", "zsh: command not found: jqq", exit_code=127)
    session.runs("brew install jqq", "installed")
    row = row_of(tried(session), "jqq")
    assert row is not None
    assert row.failures == row.successes == 1
    assert row.odds("another") < ENOUGH


def test_a_form_that_came_too_late_is_not_taken_for_the_one_that_works() -> None:
    session = Session()
    session.user("Run the tests.")
    session.runs("rtk bun run test", "error: unrecognized subcommand 'bun'", exit_code=2)
    for number in range(9):
        session.runs(f"echo {number}", str(number))
    session.runs("bun run test", "4 pass")
    assert "replaced" not in [fact.outcome for fact in tried(session)]


def test_a_form_that_does_more_than_check_is_named_only_beside_a_call_that_says_the_same() -> None:
    session = Session()
    session.user("Clean it up.")
    failed = "aws s3 rb s3://acme-prod --force2"
    session.runs(failed, "Unknown options: --force2", exit_code=2)
    session.runs("aws s3 rb s3://acme-prod", "done")
    (subject,) = {fact.keys[0] for fact in tried(session) if fact.outcome == "failed"}
    row = row_of(tried(session), subject)
    assert row is not None
    assert row.works
    assert warning([("a", row)], "another") is None
    assert warning([("a", row)], "another", command="aws s3 ls --force2") is None
    assert warning([("a", row)], "another", command=failed) is not None
    assert warning([("a", row)], "another", command=f"{failed} --profile=test") is None, "it would lose its place"


def test_no_option_is_left_out_where_none_was_unknown() -> None:
    session = Session()
    session.user("Install it.")
    session.runs("npm ci", "npm error enoent ENOENT: no such file or directory, open '/x/package.json'", exit_code=1)
    session.runs("cd app && npm ci", "done")
    (subject,) = {fact.keys[0] for fact in tried(session) if fact.outcome == "failed"}
    row = row_of(tried(session), subject)
    assert row is not None
    assert row.works
    assert warning([("a", row)], "another", command="npm ci") is not None
    assert warning([("a", row)], "another", command="npm ci --ignore-scripts") is None
