"""What resolves an error, what does not, and which of an agent's sentences explain it."""

from __future__ import annotations

from uuid import UUID

import msgspec
import pytest
from session_events import Session, facts_of, only

from memctl.domain.events.event import Micros
from memctl.domain.events.facts import Edit, Episode, ErrorMet, ErrorOccurred, ErrorResolved
from memctl.domain.failures.explanations import Explained, cause_in, explanation_of
from memctl.domain.failures.signatures import errors_in
from memctl.domain.session.error_resolution import Resolutions

EDIT = Edit("/w/cart.go", "return a", "return b")
CHANGED = "`return a` became `return b` in cart.go"


def occurred(output: str, command: str, location: str = "/w/shop") -> list[ErrorOccurred]:
    return [
        ErrorOccurred(
            id=UUID(int=number),
            stream="session/claude-code/s1",
            occurred_at=Micros(1),
            location=location,
            signature=error.signature,
            error_types=error.error_types,
            message=error.message,
            frames=error.frames,
            files=error.files,
        )
        for number, error in enumerate(errors_in(output, command, failed=True, exit_code=1))
    ]


def fixes(
    output: str, failed: str, passed: str, *, edits: tuple[Edit, ...] = (), ran: tuple[str, ...] = ()
) -> list[str]:
    """How the errors were resolved that `failed` showed, where `passed` went well after these changes."""
    resolutions = Resolutions()
    resolutions.failed(1, failed, occurred(output, failed))
    resolutions.edited(2, edits)
    resolutions.ran(3, ran)
    return [resolved.approach for resolved in resolutions.passed(4, passed, "/w/shop")]


COMPILE = "# shop\ncart.go:3:2: undefined: total"


def test_an_edit_between_a_failing_and_a_passing_run_is_the_fix() -> None:
    assert fixes(COMPILE, "go build ./...", "go build ./...", edits=(EDIT,)) == [CHANGED]
    assert fixes(COMPILE, "go build ./...", "go test ./...", edits=(EDIT,)) == [CHANGED]
    assert fixes(COMPILE, "go build ./...", "go build ./...") == []
    assert fixes(COMPILE, "go build ./...", "npm test", edits=(EDIT,)) == []


@pytest.mark.parametrize(
    ("output", "failed", "passed"),
    [
        ("error: unknown option `dry-run'", "git gc --dry-run", "git gc"),
        ("no Go files in /w/shop\nFAIL\t. [setup failed]", "go test -run TestAdds", "go test -run TestAdds ./cart/..."),
        ("go: cannot find main module, but found .git/config in /w", "go run .", "cd shop && go run ."),
        ('npm error Missing script: "build"', "npm run build", "cd web && npm run build"),
        ("make: *** No rule to make target 'chek'.  Stop.", "make chek && make lint", "make lint"),
        ("(eval):1: parse error near `time'", "A=1 time ./shopctl sum", "time ./shopctl sum"),
    ],
)
def test_a_wrong_call_is_resolved_by_the_right_one_and_by_no_edit_that_lay_between(
    output: str, failed: str, passed: str
) -> None:
    assert fixes(output, failed, passed, edits=(EDIT,)) == [f"ran `{passed}` instead of `{failed}`"]


def test_what_was_run_instead_is_told_without_the_documents_that_it_wrote() -> None:
    [approach] = fixes(
        "go: cannot find main module", "go run .", "cat > a.go <<'EOF'\npackage main\nEOF\ncd shop && go run ."
    )
    assert approach == "ran `cat > a.go; cd shop && go run .` instead of `go run .`"


CAUSE = "The problem is that `total` was renamed."


def test_a_fix_says_the_cause_and_what_changed() -> None:
    resolutions = Resolutions()
    resolutions.failed(1, "go build ./...", occurred(COMPILE, "go build ./..."))
    resolutions.responded(1, f"I guess it fails because of the cache for `total`. {CAUSE}", thought=False)
    resolutions.edited(2, (EDIT,))
    resolutions.responded(2, "It should be documented because `total` is public.", thought=False)
    [resolved] = resolutions.passed(3, "go build ./...", "/w/shop")
    assert resolved.approach == f"{CAUSE.rstrip('.')}: {CHANGED}"


def test_an_edit_after_which_the_error_was_shown_again_is_not_the_fix() -> None:
    resolutions = Resolutions()
    resolutions.failed(1, "go build ./...", occurred(COMPILE, "go build ./..."))
    resolutions.edited(2, (Edit("/w/cart.go", "total", "sum"),))
    resolutions.failed(3, "go build ./...", occurred(COMPILE, "go build ./..."))
    resolutions.edited(4, (EDIT,))
    assert {each.edits for each in resolutions.passed(5, "go build ./...", "/w/shop")} == {(EDIT,)}


def test_of_several_edits_the_one_that_bears_on_the_error_is_shown_and_none_where_none_does() -> None:
    about = Edit("/w/shop.go", "sum()", "total()")
    assert fixes(COMPILE, "go build ./...", "go build ./...", edits=(about, Edit("/w/a.go", "x", "y"))) == [
        "`sum()` became `total()` in shop.go"
    ]
    others = (Edit("/w/b.go", "ineffassign total", "assignment"), Edit("/w/a.go", "x", "y"))
    linted = "cart.go:7:2: ineffectual assignment to total (ineffassign)"
    assert fixes(linted, "golangci-lint run", "golangci-lint run", edits=others) == [""]


@pytest.mark.parametrize("ran", ["rm notes.txt", "mkdir -p /tmp/try", "cp a.go b.go"])
def test_files_that_come_and_go_mend_nothing_that_does_not_name_them(ran: str) -> None:
    assert fixes(COMPILE, "go build ./...", "go build ./...", ran=(ran,)) == []
    assert fixes(COMPILE, "go build ./...", "go build ./...", ran=("rm cart.go",)) == ["ran `rm cart.go`"]


def test_one_change_that_ends_several_errors_of_a_run_is_one_fix() -> None:
    session = Session()
    session.user("Build it.")
    session.runs("go build ./...", f"{COMPILE}\nshop.go:9:4: undefined: price", exit_code=1)
    session.says("The problem is that `price` was renamed.")
    session.edits("/work/shop/cart.go", "old()", "total(price)")
    session.runs("go build ./...", "ok")
    first, second = only(facts := facts_of(session.events), ErrorResolved)
    assert (first.part_of, second.part_of) == (second.error, None)
    mended = [fact for fact in only(facts, ErrorMet) if fact.outcome == "mended"]
    assert [fact.line for fact in mended if fact.text] == ["shop.go:9:4: undefined: price"]


def test_a_run_in_another_part_of_the_project_shows_nothing_of_a_failure() -> None:
    for where, count in (("web", 0), ("api", 1)):
        resolutions = Resolutions()
        failed = "cd /w/shop/api && npx tsc --noEmit"
        resolutions.failed(1, failed, occurred("a.ts(3,1): error TS2304: Cannot find name 'cart'.", failed), "/w/shop")
        resolutions.edited(2, (EDIT,))
        assert len(resolutions.passed(3, f"cd /w/shop/{where} && npx tsc --noEmit", "/w/shop")) == count


def test_another_call_whose_end_a_pipe_hides_is_not_the_right_one() -> None:
    output = "error: unknown option `dry-run'"
    assert fixes(output, "git gc --dry-run", "git gc --quiet | tail -3") == []


def test_what_a_session_tries_for_itself_is_no_right_call() -> None:
    output = "go: cannot find main module, but found .git/config in /w"
    assert fixes(output, "go run .", "go run /tmp/try.go") == []


def test_only_a_sentence_that_links_a_cause_by_a_word_is_a_gotcha() -> None:
    beside = "`total` is missing and should be imported. The name `total` should be there since the last release."
    for said, gotchas in ((CAUSE, 1), (beside, 0)):
        session = Session()
        session.user("Fix the build.")
        session.runs("go build ./...", COMPILE, exit_code=1)
        session.says(said)
        session.edits("/work/shop/cart.go", "old()", "total(price)")
        session.runs("go build ./...", "ok")
        assert len(only(facts_of(session.events), Episode)[-1].gotchas) == gotchas


def test_a_test_of_which_only_its_failure_is_reported_is_called_by_its_name() -> None:
    [error] = occurred("FAILED tests/test_cart.py::test_total", "pytest")
    assert error.message == "test_cart.py::test_total failed"


def test_a_wrong_call_that_goes_well_later_was_mended_by_what_lay_between() -> None:
    output = 'npm error Missing script: "build"'
    script = Edit("/w/package.json", '"scripts": {}', '"scripts": {"build": "tsc"}')
    assert len([*filter(None, fixes(output, "npm run build", "npm run build", edits=(script,)))]) == 1


def test_a_file_is_named_by_a_message_with_its_folders_or_without() -> None:
    edit = Edit("/w/shop/Makefile", "all: a", "all: b")
    for said, shown in (("in Makefile.", True), ("in '/w/shop/Makefile'", True), ("in '/w/lib/Makefile'", False)):
        [approach] = fixes(f"Error: no rule for what is asked {said}", "sh e2e.sh", "sh e2e.sh", edits=(edit,))
        assert bool(approach) == shown, said


def test_what_the_agent_says_of_an_error_makes_a_change_its_fix_only_where_it_names_it() -> None:
    for after, shown in (("sum(items, options)", False), ("sum(items, timed)", True)):
        resolutions = Resolutions()
        resolutions.failed(1, "make e2e", occurred("Error: Command timed out after 120s", "make e2e"))
        resolutions.responded(1, "It failed because the command timed out while the network was slow.", thought=False)
        resolutions.edited(2, (Edit("/w/shop/src/total.ts", "sum(items)", after),))
        [resolved] = resolutions.passed(4, "make e2e", "/w/shop")
        assert bool(resolved.change) == shown


@pytest.mark.parametrize(
    ("output", "command"),
    [
        ("Error: Command timed out after 120s", "make e2e"),
        ("Error: ENOENT: no such file or directory, open '/w/shop/node_modules/ink/package.json'", "npm run build"),
        ("EACCES: permission denied, open '/var/run/shop.sock'", "npm run build"),
        ("Error: exit status 1", "make e2e"),
    ],
)
def test_what_names_nothing_of_the_only_change_is_not_said_to_be_mended_by_it(output: str, command: str) -> None:
    edit = Edit("/w/shop/src/total.ts", "sum(items)", "sum(items, options)")
    script = Edit("/w/shop/e2e.sh", "sum items", "sum options")
    own = Edit("/w/shop/package.json", '"version": "1.0"', '"version": "1.1"')
    assert fixes(output, command, command, edits=(own,)) == [""], "no file of a package is the project's own"
    assert fixes(output, command, command, edits=(edit,)) == [""]
    assert fixes(output, "sh e2e.sh", "sh e2e.sh", edits=(script,)) == ["`sum items` became `sum options` in e2e.sh"]


def test_an_error_of_no_known_kind_is_resolved_only_by_much_the_same_call() -> None:
    output = "Working directory has uncommitted changes, so it is not allowed to release"
    failed = "bun scripts/release.ts --tag next --otp 1"
    assert fixes(output, failed, "bun scripts/release.ts --help", edits=(EDIT,)) == []
    script = Edit("/w/scripts/release.ts", "return a", "return b")
    assert fixes(output, failed, "bun scripts/release.ts --tag next", edits=(script,)) == [
        CHANGED.replace("cart.go", "release.ts")
    ]


def test_what_the_shell_itself_could_not_do_is_resolved_by_the_same_line_alone() -> None:
    output = "(eval):1: no such file or directory: /tmp/x/.env"
    failed = "echo A=1 > /tmp/x/.env && sh run.sh --version"
    assert fixes(output, failed, "cp .env.example .env && sh run.sh --version", ran=("cp .env.example .env",)) == []
    assert fixes(output, failed, failed, ran=("cp -r x /tmp/x",)) == ["ran `cp -r x /tmp/x`"]


[ERROR] = occurred(COMPILE, "go build ./...")


def explained(*said: str) -> str:
    return explanation_of(ERROR, [Explained(1, text, thought=False) for text in said])


@pytest.mark.parametrize(
    "said",
    [
        "Wait, is it because of the import?",
        "Let me fix the remaining lint issues.",
        "Now run lint again to verify:",
        "I'll fix both of these errors",
        "Need to fix the errcheck lint error.",
        "Let me check why this is because",
        "Let me fix" + " lint" * 60 + " because the parser of `total` is new",  # read in no time
        "I see the issue!",
        "Let me fix the test to call `sum` instead of `total`.",
        "I need to use `sum` instead of `total`.",
        "I've replaced `total`, which has to be `sum`.",
        "All tests pass now that `total` should be `sum`.",
        "I need to trace back where the value of `total` comes from.",
        "Now updating the tests because `total` is gone.",
    ],
)
def test_a_sentence_that_asks_or_announces_explains_nothing(said: str) -> None:
    assert explained(said) == ""


@pytest.mark.parametrize(
    "said",
    [
        "The issue is that `total` was renamed.",
        "I need to call `sum` because `total` is gone.",
        "total 함수가 없어서 빌드가 실패합니다.",
    ],
)
def test_a_sentence_that_gives_the_reason_explains(said: str) -> None:
    assert explained("Looking at the code now.", said, "Let me run the tests again.") == said


def test_sentences_about_the_error_come_before_those_about_others() -> None:
    assert explained("It fails because the disk is full.", "It fails because `total` is gone.") == (
        "It fails because `total` is gone."
    )


def test_of_errors_that_came_up_together_each_has_the_words_that_name_it() -> None:
    output = "./cart.go:7:2: undefined: total\n./shop.go:9:4: undefined: price"
    resolutions = Resolutions()
    resolutions.failed(1, "go build ./...", occurred(output, "go build ./..."))
    resolutions.responded(1, "The issue is that `price` was renamed.", thought=False)
    resolutions.edited(2, (EDIT,))
    told = {each.error.fact.message: each.explanation for each in resolutions.passed(3, "go build ./...", "/w/shop")}
    assert told == {"undefined: total": "", "undefined: price": "The issue is that `price` was renamed."}


UNREAD = "npm error enoent Could not read package.json: Error: ENOENT: no such file, open '/w/shop-portal/package.json'"
MISFIT = "src/shops/basket.ts(3,1): error TS2345: Argument of type 'string' is not assignable to type 'number'."


@pytest.mark.parametrize("thought", [False, True])
@pytest.mark.parametrize(
    ("output", "command", "said", "holds"),
    [
        (UNREAD, "npm test", "The TOML starters of `shop-portal` are empty because JSON has no comments.", False),
        (UNREAD, "npm test", "It fails because `package.json` lies one folder up.", True),
        (MISFIT, "npx tsc", "The basket tests are slow because the shops are read each time.", False),
        (MISFIT, "npx tsc", "It fails because `basket` takes a number.", True),
        ("Error: no plan given", "./harness.sh draw-plans", "It fails because the release is new.", False),
        ("Error: no plan given", "./harness.sh draw-plans", "It fails because draw-plans reads none.", True),
    ],
)
def test_words_on_another_matter_that_only_name_the_project_or_a_word_of_a_file_explain_nothing(
    output: str, command: str, said: str, thought: bool, holds: bool
) -> None:
    [error] = (msgspec.structs.replace(each, command=command) for each in occurred(output, command))
    assert bool(explanation_of(error, [Explained(1, said, thought=thought)])) == holds


def test_words_on_an_edit_that_has_nothing_to_do_with_an_error_do_not_explain_it() -> None:
    for path, holds in (("/w/shop/voucher.go", False), ("/w/shop/cart.go", True)):
        resolutions = Resolutions()
        resolutions.failed(1, "go build ./...", occurred(COMPILE, "go build ./..."))
        resolutions.responded(2, "The `newVoucher` is missing because the form was renamed.", thought=False)
        resolutions.edited(3, (Edit(path, "return oldVoucher", "return newVoucher"),))
        [resolved] = resolutions.passed(4, "go build ./...", "/w/shop")
        assert bool(resolved.explanation) == holds


@pytest.mark.parametrize(
    ("path", "said", "shown"),
    [
        ("/w/shop/basket_test.go", "", ""),
        ("/w/shop/basket_test.go", "It fails because `basketTotal` counts the rest too.", "It fails because"),
        ("/w/shop/basket.go", "", "`return basketTotal(3)` became `return basketTotal(4)` in basket.go"),
    ],
)
def test_that_a_test_was_made_to_expect_what_came_out_is_shown_as_no_fix_unless_it_was_explained(
    path: str, said: str, shown: str
) -> None:
    failed = "--- FAIL: TestBasket (0.0s)\n    basket_test.go:9: basketTotal(3) = 3, want 4"
    resolutions = Resolutions()
    resolutions.failed(1, "go test ./...", occurred(failed, "go test ./..."))
    resolutions.responded(1, said, thought=False)
    resolutions.edited(2, (Edit(path, "return basketTotal(3)", "return basketTotal(4)"),))
    [resolved] = resolutions.passed(3, "go test ./...", "/w/shop")
    assert resolved.approach == shown if not said else resolved.approach.startswith(shown)


@pytest.mark.parametrize(
    ("said", "shown"),
    [("", ""), ("Since `total` moved to the cart, this is left over.", "Since `total` moved to the cart")],
)
def test_that_something_was_taken_out_is_shown_as_a_fix_only_where_it_was_explained(said: str, shown: str) -> None:
    resolutions = Resolutions()
    resolutions.failed(1, "go build ./...", occurred(COMPILE, "go build ./..."))
    resolutions.responded(1, said, thought=False)
    resolutions.edited(2, (Edit("/w/shop/cart.go", "print(total)\nreturn", "return"),))
    [resolved] = resolutions.passed(3, "go build ./...", "/w/shop")
    assert (bool(resolved.approach), resolved.approach.startswith(shown)) == (bool(said), True)


def test_what_a_linter_says_is_explained_by_words_that_name_it_alone() -> None:
    output = "cart.go:7:2: ineffectual assignment to total (ineffassign)"
    resolutions = Resolutions()
    resolutions.failed(1, "golangci-lint run", occurred(output, "golangci-lint run"))
    resolutions.responded(1, "The diagnostics are wrong because the server is stale.", thought=False)
    resolutions.edited(2, (EDIT,))
    [resolved] = resolutions.passed(3, "golangci-lint run", "/w/shop")
    assert resolved.explanation == ""


@pytest.mark.parametrize(
    ("failed", "passed"),
    [
        ("go build ./...", "go build ./..."),
        ("go build -tags=e2e ./e2e/...", "go test -tags=e2e -c ./e2e/... -o /dev/null"),
    ],
)
def test_what_went_away_by_itself_is_not_resolved_by_later_changes(failed: str, passed: str) -> None:
    resolutions = Resolutions()
    resolutions.failed(1, failed, occurred(COMPILE, failed))
    assert resolutions.passed(2, passed, "/w/shop") == []
    resolutions.edited(3, (EDIT,))
    assert resolutions.passed(4, passed, "/w/shop") == []
    assert resolutions.passed(5, passed, "/w/shop") == [], "it went away before"


@pytest.mark.parametrize("between", ["go build ./other/...", "go build ./... || true", "go build ./... | tail -3"])
def test_a_run_of_less_or_one_that_hides_its_end_leaves_an_error_open(between: str) -> None:
    resolutions = Resolutions()
    resolutions.failed(1, "go build ./...", occurred(COMPILE, "go build ./..."))
    assert resolutions.passed(2, between, "/w/shop") == []
    resolutions.edited(3, (EDIT,))
    assert len(resolutions.passed(4, "go build ./...", "/w/shop")) == 1


def test_a_commit_that_leaves_out_the_checks_mends_none_of_what_they_found() -> None:
    hook = f"{COMPILE}\nhusky - pre-commit script failed (code 1)"
    assert fixes(hook, "git commit -m x", "git commit --no-verify -m x", edits=(EDIT,)) == []
    assert fixes(hook, "git commit -m x", "git commit -m x", edits=(EDIT,)) == [CHANGED]


@pytest.mark.parametrize("then", ["--- FAIL: TestCart (0.1s)\n    cart_test.go:12: got nothing, want 4", COMPILE])
def test_a_test_that_fails_in_other_words_or_is_not_run_is_not_mended_by_what_came_before(then: str) -> None:
    resolutions = Resolutions()
    failed = occurred("--- FAIL: TestCart (0.1s)\n    cart_test.go:9: got 3, want 4", "go test ./...")
    resolutions.failed(1, "go test ./...", failed)
    resolutions.edited(2, (Edit("/w/cart.go", "wait 5", "wait 10"),))
    resolutions.failed(3, "go test ./...", occurred(then, "go test ./..."))
    resolutions.edited(4, (EDIT,))
    found = {each.error.at: each.edits for each in resolutions.passed(5, "go test ./...", "/w/shop")}
    assert EDIT in found[1]


AMBIGUOUS = "fatal: ambiguous argument 'cart/a.go': unknown revision or path not in the working tree."


@pytest.mark.parametrize(
    ("location", "command"), [("/w/shop", "git diff cart/a.go"), ("/w/shop/cart", "cd /w/shop && git diff cart/a.go")]
)
def test_what_was_not_there_is_resolved_by_the_folder_it_is_in(location: str, command: str) -> None:
    resolutions = Resolutions()
    resolutions.failed(1, "git diff cart/a.go", occurred(AMBIGUOUS, "git diff cart/a.go"), "/w/shop/cart")
    resolutions.ran(2, ["git add cart/a.go"])
    [resolved] = resolutions.passed(3, command, location)
    assert (resolved.approach, resolved.instead) == ("ran it in `shop` instead of `shop/cart`", True)


def test_a_folder_that_a_command_led_into_is_not_entered_twice() -> None:
    """What comes back tells where the command ended."""
    session = Session()
    session.user("What changed in the total?")
    session.runs("git diff total.go", AMBIGUOUS.replace("cart/a.go", "total.go"), exit_code=128)
    ended = session.runs("cd cart && git diff total.go", "-return a\n+return b")
    moved = msgspec.structs.replace(ended, location="/work/shop/cart")
    [resolved] = only(facts_of([*(e for e in session.events if e is not ended), moved]), ErrorResolved)
    assert (resolved.approach, resolved.instead) == ("ran it in `shop/cart` instead of `shop`", True)


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("cd /c/w/shop && git diff cart/a.go", ["ran it in `shop` instead of `shop/cart`"]),  # so Git for Windows says
        ("cd C:/w/shop && git diff cart/a.go", ["ran it in `shop` instead of `shop/cart`"]),
        ("cd D:/shop && git diff cart/a.go", ["ran it in `D:/shop` instead of `C:/w/shop/cart`"]),
    ],
)
def test_folders_of_windows_are_compared_as_far_as_they_can_be(command: str, found: list[str]) -> None:
    resolutions = Resolutions()
    resolutions.failed(1, "git diff cart/a.go", occurred(AMBIGUOUS, "git diff cart/a.go"), "C:/w/shop/cart")
    assert [each.approach for each in resolutions.passed(2, command, "C:/w/shop/cart")] == found


def test_an_error_that_names_no_path_is_not_resolved_by_another_folder() -> None:
    resolutions = Resolutions()
    resolutions.failed(1, "go build ./...", occurred(COMPILE, "go build ./..."), "/w/shop/cart")
    assert resolutions.passed(2, "go build ./...", "/w/shop") == []


@pytest.mark.parametrize(
    "said",
    [
        '`TestCart` - fails at line 9 with "got 3, it should be 4"',
        "Now let me fix the `TestCart` test.",
        "Maybe `TestCart` fails because of the clock.",
        "The linter already handled the errors because `errors.As` is used.",
    ],
)
def test_words_that_only_repeat_the_error_or_announce_explain_nothing(said: str) -> None:
    [error] = occurred("--- FAIL: TestCart (0.0s)\n    cart_test.go:9: got 3, it should be 4", "go test ./...")
    assert explanation_of(error, [Explained(1, said, False)]) == ""
    because = '"got 3, it should be 4" comes up in `TestCart` because the price is rounded.'
    assert explanation_of(error, [Explained(1, because, False)]) == because


MISSING = "no Go files in /w/shop"


@pytest.mark.parametrize(
    ("command", "approach"),
    [
        ("cd cart && go test", "ran it in `shop/cart` instead of `shop`"),
        ("Set-Location -Path 'cart'; go test -v", "ran it in `shop/cart` instead of `shop`"),
        ("go test ./cart/...", "ran `go test ./cart/...` instead of `go test -v -count=1`"),
    ],
)
def test_where_two_calls_ran_is_asked_before_their_words(command: str, approach: str) -> None:
    resolutions = Resolutions()
    failed = "go test -v -count=1"
    resolutions.failed(1, failed, occurred(MISSING, failed), "/w/shop")
    resolutions.edited(2, (EDIT,))
    assert [each.approach for each in resolutions.passed(3, command, "/w/shop")] == [approach]


def test_the_folder_stays_in_a_long_call() -> None:
    option = "error: unknown option `dry-run'"
    works = f"cd /w/shop && git gc --quiet && echo {'x' * 90}"
    assert fixes(option, "git gc --dry-run", works) == [
        "ran `cd /w/shop; git gc --quiet` instead of `git gc --dry-run`"
    ]


CONFLICT = "CONFLICT (content): Merge conflict in cart.go"


def test_giving_an_operation_up_ends_nothing() -> None:
    assert fixes(CONFLICT, "git merge main", "git merge --abort", ran=("git merge --abort",), edits=(EDIT,)) == []
    assert fixes(CONFLICT, "git merge main", "git merge topic", ran=("git merge --abort",)) == []


@pytest.mark.parametrize(
    ("undone", "found"),
    [
        ("git checkout -- cart.go", []),
        ("git restore .", []),
        ("git reset --hard origin/main", []),
        ("git stash", []),
        ("git checkout -- shop.go", [CHANGED]),
        ("git restore --staged cart.go", [CHANGED]),
        ("git reset HEAD cart.go", [CHANGED]),
    ],
)
def test_an_edit_that_git_took_back_is_no_fix(undone: str, found: list[str]) -> None:
    build = "go build ./..."
    assert fixes(COMPILE, build, build, edits=(EDIT,), ran=(undone,)) == found


def test_an_edit_that_was_laid_aside_and_put_back_stands() -> None:
    build = "go build ./..."
    assert fixes(COMPILE, build, build, edits=(EDIT,), ran=("git stash", "git stash pop")) == [CHANGED]


@pytest.mark.parametrize(
    ("failed", "passed", "count"),
    [
        ("go test ./cart/...", "go test ./web/...", 0),
        ("go test ./cart/...", "go test ./...", 1),
        ("go test ./cart/...", "go test ./cart", 1),
        ("go test ./...", "go test ./cart", 1),
        ("pytest tests/a", "pytest tests/b::test_x", 0),
    ],
)
def test_packages_and_paths_narrow_a_run(failed: str, passed: str, count: int) -> None:
    output = "panic: boom\n\ngoroutine 1 [running]:\nmain.main()\n\t/w/shop/cart/a.go:3 +0x1" if "go" in failed else (
        "FAILED test_cart.py::test_total - AssertionError: got 3"
    )  # fmt: skip
    assert len(fixes(output, failed, passed, edits=(EDIT,))) == count


@pytest.mark.parametrize(
    ("failed", "other"),
    [
        ("python3 - <<'EOF'\nprint(a)\nEOF", "python3 - <<'EOF'\nprint(1)\nEOF"),
        ('python -c "print(a)"', 'python -c "print(1)"'),
        ("node -e 'a()'", "node -e '1'"),
    ],
)
def test_a_script_in_a_command_is_its_whole_body(failed: str, other: str) -> None:
    output = (
        "Traceback (most recent call last):\n  File \"/w/cart.py\", line 1, in f\nNameError: name 'a' is not defined"
    )
    assert fixes(output, failed, other, edits=(EDIT,)) == []
    assert len(fixes(output, failed, failed, edits=(EDIT,))) == 1


def test_a_build_beside_it_does_not_show_that_a_script_is_in_order() -> None:
    failed, later = 'python -c "\nimport json\n" && go build -o cart .', "python check.py && go build -o cart ."
    output, ran = 'File "<string>", line 1\nIndentationError: unexpected indent', ("gofmt -w a.go",)
    assert fixes(output, failed, later, ran=ran) == []
    assert fixes(output, failed, failed, ran=ran) == ["ran `gofmt -w a.go`"]
    assert fixes(COMPILE, failed, later, edits=(EDIT,)) == [CHANGED]


def test_a_formatter_mends_formatting_alone() -> None:
    lint, fmt = "golangci-lint run", ("gofmt -w cart.go",)
    assert fixes("cart.go:7:2: Error return value is not checked (errcheck)", lint, lint, ran=fmt) == []
    assert fixes("cart.go:7:2: File is not properly formatted (gofmt)", lint, lint, ran=fmt) == [
        "ran `gofmt -w cart.go`"
    ]


def test_of_two_edits_of_one_line_the_later_is_shown() -> None:
    tries = (Edit("/w/cart.go", "return total", "return totals"), Edit("/w/cart.go", "return totals", "return sum"))
    assert fixes(COMPILE, "go build ./...", "go build ./...", edits=tries) == [
        "`return totals` became `return sum` in cart.go"
    ]


def test_a_change_that_was_not_seen_in_the_file_at_fault_is_not_passed_off_as_another() -> None:
    edits = (Edit("/w/cart.go", "", ""), Edit("/w/shop.go", "sum()", "total()"))
    build = "go build ./..."
    assert fixes(COMPILE, build, build, edits=edits) == [""]
    assert fixes(COMPILE, build, build, edits=edits[1:]) == ["`sum()` became `total()` in shop.go"]


def test_what_is_said_after_the_first_edit_that_bears_is_no_cause() -> None:
    resolutions = Resolutions()
    resolutions.failed(1, "go build ./...", occurred(COMPILE, "go build ./..."))
    resolutions.edited(2, (Edit("/w/cart.go", "total", "sum"),))
    resolutions.responded(3, "The problem is that `total` is not documented.", thought=False)
    resolutions.edited(4, (Edit("/w/notes.go", "a", "b"),))
    [resolved] = resolutions.passed(5, "go build ./...", "/w/shop")
    assert resolved.explanation == ""


@pytest.mark.parametrize(
    "said", ["I'm replacing `total` because it is gone.", "Now I'll drop `total` since it is gone."]
)
def test_what_the_agent_does_next_is_no_cause(said: str) -> None:
    assert cause_in(said) == ""
    assert cause_in(f"{CAUSE} {said}") == CAUSE


@pytest.mark.parametrize(
    "said",
    [
        "Now updating the test because `total` changed.",
        "I need to trace back the calls because `total` is empty.",
        "The simplest path is relaxing the config because `total` is optional.",
        "The fix is to call `sum` because `total` is gone.",
        "The test should be updated to call `sum` since the `total` is gone.",
        "`total` is empty because the cart is, so we should drop it.",
        # What it does not come of.
        "This isn't the cause, because `total` is set.",
        "It is unrelated because `total` is set elsewhere.",
        "That is not the same bug because `total` was there.",
    ],
)
def test_what_proposes_or_rules_out_is_no_cause(said: str) -> None:
    assert cause_in(said) == ""
    assert cause_in(f"{CAUSE} {said}") == CAUSE


@pytest.mark.parametrize(
    "said",
    [
        "The problem is that we need the `total` before the cart is there.",
        "It fails because `total` is going to the log, not to the caller.",
        "It fails because `total` was renamed, and is unrelated to the clock.",
        "`total` can't be set because the cart is frozen.",
        "This isn't caused by `total` but because the cart is frozen.",
        "`total` of unrelated carts is lost because they share a key.",
    ],
)
def test_a_need_that_is_the_fault_or_what_follows_a_cause_takes_nothing_from_it(said: str) -> None:
    assert cause_in(said) == said


@pytest.mark.parametrize(
    "said",
    [
        "It fails because the disk is full.",
        "The list should be sorted by its key.",
        "The leak comes from the watcher because `close` is never called.",
    ],
)
def test_what_names_nothing_of_an_error_nor_of_the_change_explains_it_not(said: str) -> None:
    assert explained(said) == ""
    changed = f"{said} order(key)\nwatcher.close()"
    assert explanation_of(ERROR, [Explained(1, said, thought=False)], changed="price()") == ""
    assert (explanation_of(ERROR, [Explained(1, said, thought=False)], changed=changed) != "") == ("`close`" in said)


def test_a_word_of_a_message_names_it_where_it_is_quoted_or_not_the_only_one() -> None:
    [error] = occurred("cart.ts(3,1): error TS2345: Argument of basket is not assignable to parameter of price", "tsc")
    for said, why in (
        ("basket has to be a number", 0),
        ("`basket` has to be a number", 1),
        ("basket has to be a price", 1),
    ):
        assert (explanation_of(error, [Explained(1, said, thought=False)]) != "") == bool(why), said


TEST_FAILED = "--- FAIL: TestCart (0.0s)\n    cart_test.go:9: got 3, want 4"


def test_the_test_is_the_failed_one_where_nothing_else_is_open() -> None:
    said = "The test fails because the clock stands still."
    for other, why in (("", said), (COMPILE, "")):
        resolutions = Resolutions()
        resolutions.failed(1, "go build ./...", occurred(other, "go build ./...") if other else [])
        resolutions.failed(2, "go test ./...", occurred(TEST_FAILED, "go test ./..."))
        resolutions.responded(2, said, thought=False)
        resolutions.edited(3, (Edit("/w/cart_test.go", "3", "4"),))
        [resolved] = [r for r in resolutions.passed(4, "go test ./...", "/w/shop") if r.error.at == 2]
        assert resolved.explanation == why


@pytest.mark.parametrize(
    "later",
    [
        "Actually, the cause is that `total` lies in another module.",
        "The real issue is that `total` lies in another module.",
        "Wait, that's not it.",
        "My first guess was wrong.",
        "You're right, sorry.",
    ],
)
def test_a_guess_that_is_taken_back_later_explains_nothing(later: str) -> None:
    first = "It fails because `total` was renamed."
    assert explained(first) == first
    assert first not in explained(first, later)
    assert first not in explained(f"{first} {later}")
    assert explained(first, "Actually, let me run it with more output.") == first


def test_a_reason_that_points_back_keeps_what_it_is_the_reason_of() -> None:
    said = "The build looks for `total` instead of `sum`. This is because the module was renamed."
    assert explained(said) == said


def test_a_thought_names_what_is_the_errors_own() -> None:
    [error] = occurred("cart.ts(3,1): error TS2304: Cannot find name 'basket' in module", "tsc")
    thought = "It fails because the module was never built."
    assert explanation_of(error, [Explained(1, thought, thought=True)]) == ""
    assert explanation_of(error, [Explained(1, "It fails because basket was renamed.", thought=True)]) != ""


def test_an_edit_in_a_shell_is_shown_with_both_its_sides() -> None:
    session = Session()
    session.user("Build it.")
    session.runs("go build ./...", COMPILE, exit_code=1)
    session.runs("sed -i 's/total()/sum()/' cart.go && go build ./...", "ok")
    [resolved] = only(facts_of(session.events), ErrorResolved)
    assert resolved.approach == "`total()` became `sum()` in cart.go"


MARKED = "docs/a.md:3:1 error MD040/fenced-code-language Fenced code blocks should have a language specified"
MARKUP = Edit("/w/shop/docs/a.md", "```", "```text")


@pytest.mark.parametrize(
    ("passed", "printed", "count"),
    [
        ("npx markdownlint-cli2 docs/a.md", "", 1),
        ("npx markdownlint-cli2 docs", "", 1),
        ("npx markdownlint-cli2 '**/*.md'", "", 1),
        ("npx markdownlint-cli2", "", 1),
        ("npx markdownlint-cli2 --config lint/rules.yaml /w/shop/docs/a.md", "", 1),
        ("cd docs && npx markdownlint-cli2 a.md", "", 1),
        # Other things were looked at.
        ("npx markdownlint-cli2 docs/b.md", "", 0),
        ("npx markdownlint-cli2 b.md", "", 0),
        ("npx markdownlint-cli2 /w/shop/notes/a.md", "", 0),
        ("npx markdownlint-cli2 'notes/**/*.md'", "", 0),
        # It was only counted or filtered, or nobody saw how it ended.
        ("npx markdownlint-cli2 docs/a.md | grep -c MD040", "1", 0),
        ("npx markdownlint-cli2 docs/a.md | wc -l", "12", 0),
        ("npx markdownlint-cli2 docs/a.md | grep -v MD013", "", 0),
        ("npx markdownlint-cli2 docs/a.md > /tmp/out 2>&1; diff /tmp/before /tmp/out", "", 0),
        ("npx markdownlint-cli2 docs/a.md 2>/dev/null | tail -3", "", 0),
        ("npx markdownlint-cli2 docs/a.md || true", "Summary: 3 issues in 1 file", 0),
        ("npx markdownlint-cli2 docs/a.md; echo done", "Summary: 3 issues in 1 file\ndone", 0),
        ("npx markdownlint-cli2 docs/a.md 2>&1 | tail -4; echo passed", "3 error(s)\n3 errors\npassed", 0),
        ("npx markdownlint-cli2 docs/a.md; echo exit $?", "exit 1", 0),
        ("npx markdownlint-cli2 --statistics docs/a.md", "12 MD040", 0),
        ("npx markdownlint-cli2 docs/a.md | grep -E ':[3-9][0-9]:' | head; echo exit $?", "exit 0", 0),
        ("npx markdownlint-cli2 docs/a.md | grep -E ':[3-9][0-9]:'; npx vitest run", " 3 passed", 0),
        ("npx markdownlint-cli2 docs/a.md 2>&1 | head -2", "Finding: docs/a.md\nLinting", 0),
        # Other kinds of files were looked at.
        ("npx markdownlint-cli2 '**/*.mdx'", "", 0),
        ("npx markdownlint-cli2 '**/*.{mdx,md}'", "", 1),
        # What was printed says how it ended, or would have said so.
        ("npx markdownlint-cli2 docs/a.md; echo exit $?", "exit 0", 1),
        ("npx markdownlint-cli2 docs/a.md | grep Summary", "Summary: 0 errors", 1),
        ("npx markdownlint-cli2 docs/a.md 2>&1 | tail -3", "", 1),
        ("npx markdownlint-cli2 docs/a.md && git diff | wc -l", "12", 1),
        # It still lists the error, whatever its exit code.
        ("npx markdownlint-cli2 docs/a.md", MARKED, 0),
        ("npx markdownlint-cli2 docs/a.md", "docs/a.md\n  12:1 warning MD040", 0),
        ("npx markdownlint-cli2 docs/a.md docs/b.md", "docs/b.md:9:1 warning MD040", 1),
        # It is another check.
        ("npx prettier --check docs/a.md", "", 0),
        ("node check.mjs docs/a.md", "", 0),
        ("python -c \"print('markdownlint-cli2 docs/a.md')\"", "", 0),
    ],
)
def test_a_check_passes_that_looks_at_the_same_and_shows_how_it_ended(passed: str, printed: str, count: int) -> None:
    resolutions = Resolutions()
    failed = "npx markdownlint-cli2 docs/a.md"
    resolutions.failed(1, failed, occurred(MARKED, failed), "/w/shop")
    resolutions.edited(2, (MARKUP,))
    assert len(resolutions.passed(3, passed, "/w/shop", printed)) == count


def test_a_filter_is_silent_of_what_it_showed_before_only_where_that_is_mended() -> None:
    shown = "npx markdownlint-cli2 docs/a.md | grep -n MD040 | head -20"
    for failed, count in ((shown, 1), ("npx markdownlint-cli2 docs/a.md", 0)):
        assert len(fixes(MARKED, failed, shown.replace("20", "5"), edits=(MARKUP,))) == count


def test_a_filtered_run_with_other_errors_does_not_show_that_this_one_is_gone() -> None:
    resolutions = Resolutions()
    failed = "npx markdownlint-cli2 docs/a.md"
    other = MARKED.replace("MD040/fenced-code-language", "MD013/line-length")
    resolutions.failed(1, failed, occurred(MARKED, failed), "/w/shop")
    resolutions.failed(2, f"{failed} | grep MD013", occurred(other, failed), "/w/shop")
    resolutions.edited(3, (MARKUP,))
    found = {each.error.at: each.edits for each in resolutions.passed(4, failed, "/w/shop")}
    assert found[1] == (MARKUP,)


def test_a_build_shows_nothing_of_what_a_check_or_a_test_file_does() -> None:
    in_test = COMPILE.replace("cart.go", "cart_test.go")
    for output, failed, count in (
        (COMPILE, "go vet ./...", 0),
        (in_test, "go test ./...", 0),
        (COMPILE, "go test ./...", 1),
    ):
        assert len(fixes(output, failed, "go build ./...", edits=(EDIT,))) == count


@pytest.mark.parametrize(
    ("passed", "printed", "count"),
    [
        ("npx vitest run cart.test", "", 1),
        ("npx vitest run price.test", "", 0),
        ("npx vitest run 2>&1 | tail -5", "error: thrown on purpose\n 3 passed", 1),
        ("npx vitest run 2>&1 | tail -5", "error: no such module", 0),
        ("npx vitest run 2>&1 | tail -5", "2 failed | 7 passed", 0),
        ("npx vitest run 2>&1 | grep -A 3 cart", "✓ cart adds up", 1),
    ],
)
def test_a_run_of_tests_includes_the_failed_one_and_says_that_it_passed(passed: str, printed: str, count: int) -> None:
    resolutions = Resolutions()
    failed = "npx vitest run"
    output = " FAIL  src/cart.test.ts > cart > adds up\nAssertionError: expected 3 to be 4\n ❯ src/cart.test.ts:9:20"
    resolutions.failed(1, failed, occurred(output, failed), "/w/shop")
    resolutions.edited(2, (Edit("/w/shop/src/cart.ts", "3", "4"),))
    assert len(resolutions.passed(3, passed, "/w/shop", printed)) == count


def test_a_run_of_the_failed_file_by_another_program_shows_that_it_passes() -> None:
    output = " FAIL  src/cart.test.ts > cart > adds up\nAssertionError: expected 3 to be 4\n ❯ src/cart.test.ts:9:20"
    edits = (Edit("/w/shop/src/cart.ts", "3", "4"),)
    for passed, count in (("npx vitest run src/cart.test.ts", 1), ("npx vitest run src/price.test.ts", 0)):
        assert len(fixes(output, "npm test", passed, edits=edits)) == count
    for other in ("npx eslint src/cart.test.ts", "npx tsc && npx vitest run src/price.test.ts"):
        assert fixes(output, "npm test", other, edits=edits) == []
    unplaced = " FAIL  adds up\nAssertionError: expected 3 to be 4"
    assert fixes(unplaced, "npm test", "npx vitest run src/price.test.ts", edits=edits) == []


def test_of_two_edits_that_are_one_fix_both_are_shown() -> None:
    output = 'cart.go:7:2: string "euro" has 3 occurrences, make it a constant (goconst)'
    edits = (
        Edit("/w/cart.go", "type Cart struct {", 'const ourCurrency = "euro"\ntype Cart struct {'),
        Edit("/w/cart.go", 'pay("euro")', "pay(ourCurrency)"),
        Edit("/w/cart.go", 'check("euro")', "check(it)"),
    )
    lint = "golangci-lint run"
    assert fixes(output, lint, lint, edits=edits[:2]) == [
        'added `const ourCurrency = "euro"` in cart.go; `pay("euro")` became `pay(ourCurrency)` in cart.go'
    ]
    assert fixes(output, lint, lint, edits=edits[2:]) == ['`check("euro")` became `check(it)` in cart.go']


def test_an_edit_that_shares_something_with_the_error_comes_before_one_that_only_shares_words_said_of_it() -> None:
    resolutions = Resolutions()
    resolutions.failed(1, "go build ./...", occurred(COMPILE, "go build ./..."))
    said = "It fails because `total` was moved, so `basket`, `voucher`, `discount` and `shipping` lack it."
    resolutions.responded(1, said, thought=False)
    other = Edit("/w/web.ts", "basket voucher", "basket voucher discount shipping")
    resolutions.edited(2, (EDIT, other))
    [resolved] = resolutions.passed(3, "go build ./...", "/w/shop")
    assert resolved.approach.endswith(CHANGED)


@pytest.mark.parametrize(
    ("failed", "passed", "approach"),
    [
        ("deno task seed --tables carts", "deno task seed --tables all", "--tables all"),
        ("npx vitest run --silent", "npx vitest run", ""),
        ("git rebase main", "git rebase topic", ""),
    ],
)
def test_what_mended_a_call_is_what_changed_in_it_where_no_edit_bears(failed: str, passed: str, approach: str) -> None:
    output = "TypeError: no pool named --pool=banana"
    resolutions = Resolutions()
    resolutions.failed(1, failed, occurred(output, failed))
    resolutions.edited(2, (Edit("/w/x.ts", "1", "2"), Edit("/w/y.ts", "5", "6")))
    [found] = resolutions.passed(3, passed, "/w/shop")
    assert found.approach == (f"ran `{passed}` instead of `{failed}`" if approach else "")
    assert found.instead == bool(approach), "another call is of this message alone"


def test_an_edit_after_which_a_run_that_went_well_still_lists_the_error_is_not_the_fix() -> None:
    resolutions = Resolutions()
    failed = "npx markdownlint-cli2 docs/a.md"
    resolutions.failed(1, failed, occurred(MARKED, failed), "/w/shop")
    resolutions.edited(2, (Edit("/w/shop/docs/a.md", "title", "Title"),))
    assert resolutions.passed(3, failed, "/w/shop", MARKED) == []
    resolutions.edited(4, (MARKUP,))
    assert [each.edits for each in resolutions.passed(5, failed, "/w/shop")] == [(MARKUP,)]


def test_a_failing_run_over_other_things_ends_no_error() -> None:
    resolutions = Resolutions()
    failed, other = "npx markdownlint-cli2 docs/a.md", "npx markdownlint-cli2 docs/b.md"
    resolutions.failed(1, failed, occurred(MARKED, failed), "/w/shop")
    resolutions.failed(2, other, occurred(MARKED.replace("MD040", "MD013").replace("a.md", "b.md"), other), "/w/shop")
    resolutions.edited(3, (MARKUP,))
    assert MARKUP in [edit for each in resolutions.passed(4, failed, "/w/shop") for edit in each.edits]


@pytest.mark.parametrize(
    ("failed", "passed", "count"),
    [
        ("bun run typecheck", "bun test a.test.ts", 0),
        ("bun run typecheck", "bun run lint", 0),
        ("bun run typecheck", "bun run type-check", 1),
        ("npx tsc --noEmit", "npx tsc -p web/tsconfig.json", 1),
    ],
)
def test_only_what_looks_at_types_shows_that_they_fit(failed: str, passed: str, count: int) -> None:
    output = "src/a.ts(3,1): error TS2304: Cannot find name 'cart'."
    assert len(fixes(output, failed, passed, edits=(Edit("/w/src/a.ts", "cart", "basket"),))) == count


@pytest.mark.parametrize(
    ("said", "failed", "passed", "approach"),
    [
        ("(eval):cd:1: no such file or directory: cart", "cd cart && go test", "go test",
         "ran it without `cd cart`"),
        ("bash: line 1: cd: cart: No such file or directory", "cd cart && go test", "cd .. && cd web && go test",
         "ran it without `cd cart`"),
    ],
)  # fmt: skip
def test_a_folder_that_could_not_be_entered_was_not_entered(said: str, failed: str, passed: str, approach: str) -> None:
    resolutions = Resolutions()
    resolutions.failed(1, failed, occurred(said, failed), "/w/shop/cart")
    assert [each.approach for each in resolutions.passed(2, passed, "/w/shop/cart")] == [approach]


def test_a_folder_that_was_made_meanwhile_is_entered() -> None:
    resolutions = Resolutions()
    failed = "cd cart && go test"
    resolutions.failed(1, failed, occurred("bash: line 1: cd: cart: No such file or directory", failed), "/w/shop")
    resolutions.ran(2, ["unzip cart.zip"])
    assert [each.approach for each in resolutions.passed(3, failed, "/w/shop")] == ["ran `unzip cart.zip`"]


def test_of_a_command_that_edits_on_its_way_the_folder_is_the_fix() -> None:
    resolutions = Resolutions()
    failed = "git checkout cart/a.go"
    resolutions.failed(
        1, failed, occurred("error: pathspec 'cart/a.go' did not match any file", failed), "/w/shop/cart"
    )
    resolutions.edited(2, (Edit("/w/shop/notes.go", "a", "b"),))
    [resolved] = resolutions.passed(2, "sed -i s/a/b/ ../notes.go; cd .. && git checkout cart/a.go", "/w/shop/cart")
    assert resolved.approach == "ran it in `shop` instead of `shop/cart`"


@pytest.mark.parametrize(
    ("passed", "approach"),
    [
        ("deno run gen.ts ../in.json", "ran `deno run gen.ts ../in.json` instead of `deno run gen.ts data/in.json`"),
        ("deno run gen.ts data/in.json", ""),
    ],
)
def test_a_path_that_was_spelled_otherwise_is_the_fix_and_no_edit_that_lay_between(passed: str, approach: str) -> None:
    output = "NotFound: No such file or directory (os error 2), open 'data/in.json'"
    assert fixes(output, "deno run gen.ts data/in.json", passed, edits=(EDIT,)) == [approach]


def test_a_document_mends_only_what_names_it_or_looks_at_documents() -> None:
    notes = Edit("/w/notes.md", "total", "undefined total")
    assert fixes(COMPILE, "go build ./...", "go build ./...", edits=(notes,)) == []
    assert len(fixes(MARKED, "markdownlint docs", "markdownlint docs", edits=(notes,))) == 1


def test_of_edits_that_bear_the_one_whose_changed_lines_name_what_the_error_does_comes_first() -> None:
    output = "./cart.go:3:2: undefined: priceOf"
    edits = (
        Edit("/w/cart.go", "x := priceOf(a)", "x := pricing.Of(a)"),
        Edit("/w/cart.go", "// cart undefined\nreturn 1", "// cart undefined\nreturn 2"),
    )
    assert fixes(output, "go build ./...", "go build ./...", edits=edits) == [
        "`x := priceOf(a)` became `x := pricing.Of(a)` in cart.go"
    ]


def test_a_change_is_shown_from_where_it_names_the_error() -> None:
    output = "./cart.go:3:2: undefined: priceOf"
    padding = ", ".join(f"argument{number}" for number in range(12))
    edit = Edit("/w/cart.go", f"a({padding}, priceOf)", "b()")
    [approach] = fixes(output, "go build ./...", "go build ./...", edits=(edit,))
    assert approach.startswith("`…")
    assert "priceOf" in approach


OURS, THEIRS = "func Total() int {", "func Sum() int {"


@pytest.mark.parametrize(
    ("after", "settled"),
    [
        (f"{OURS}\n{THEIRS}", "kept both sides of the conflict between `HEAD` and `topic`"),
        (OURS, "kept the side of `HEAD` in the conflict with `topic`"),
        (THEIRS, "kept the side of `topic` in the conflict with `HEAD`"),
    ],
)
def test_a_conflict_is_settled_by_the_side_that_stays(after: str, settled: str) -> None:
    before = f"<<<<<<< HEAD\n{OURS}\n=======\n{THEIRS}\n>>>>>>> topic"
    edits = (Edit("/w/cart.go", before, after),)
    goes_on = "git add cart.go && git rebase --continue"
    assert fixes(CONFLICT, "git rebase main", goes_on, edits=edits) == [f"{settled} in cart.go"]


@pytest.mark.parametrize("after", [f"{THEIRS}\nreturn 1", f"{OURS}\nreturn 1\n{THEIRS}", f"a := 1\n{OURS}"])
def test_of_a_conflict_that_was_merged_by_hand_no_side_is_named(after: str) -> None:
    before = f"<<<<<<< HEAD\n{OURS}\n=======\n{THEIRS}\n>>>>>>> topic"
    edits = (Edit("/w/cart.go", before, after),)
    goes_on = "git add cart.go && git rebase --continue"
    assert not any(
        "kept" in said or "became" in said for said in fixes(CONFLICT, "git rebase main", goes_on, edits=edits)
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "after", "side"),
    [
        (OURS, "", OURS, "`HEAD` in the conflict with `topic`"),
        (OURS, "", "", "`topic` in the conflict with `HEAD`"),
        ("", THEIRS, THEIRS, "`topic` in the conflict with `HEAD`"),
        ("", THEIRS, "", "`HEAD` in the conflict with `topic`"),
    ],
)
def test_an_empty_side_of_a_conflict_is_kept_where_the_other_goes(
    ours: str, theirs: str, after: str, side: str
) -> None:
    before = "\n".join(filter(None, ("<<<<<<< HEAD", ours, "=======", theirs, ">>>>>>> topic")))
    edits = (Edit("/w/cart.go", before, after),)
    goes_on = "git add cart.go && git rebase --continue"
    assert fixes(CONFLICT, "git rebase main", goes_on, edits=edits) == [f"kept the side of {side} in cart.go"]


def test_of_a_conflict_that_was_not_seen_whole_no_side_is_named() -> None:
    rest = "\n".join(f"    line{number} := total" for number in range(30))
    before = f"<<<<<<< HEAD\n{OURS}\n=======\n{THEIRS}\n>>>>>>> topic\n{rest}"[:600]
    edits = (Edit("/w/cart.go", before, f"{THEIRS}\n{rest}"[:600]),)
    goes_on = "git add cart.go && git rebase --continue"
    assert fixes(CONFLICT, "git rebase main", goes_on, edits=edits) == [""]


def test_an_error_that_nothing_resolved_is_no_gotcha() -> None:
    session = Session()
    session.user("Fix the build.")
    session.runs("go build ./...", COMPILE, exit_code=1)
    session.says("I give up.")
    assert only(facts_of(session.events), Episode)[-1].gotchas == ()


def test_a_line_that_was_cut_away_is_not_said_to_be_removed() -> None:
    long = "\n".join(f"line{number} := total" for number in range(60))
    session = Session()
    session.user("Build it.")
    session.runs("go build ./...", COMPILE, exit_code=1)
    session.edits("/work/shop/cart.go", f"{long}\nold(total)", f"{long}\nnew(total)")
    session.runs("go build ./...", "ok")
    [resolved] = only(facts_of(session.events), ErrorResolved)
    assert resolved.approach == "`old(total)` became `new(total)` in cart.go"


def fixes_of(session: Session) -> list[str]:
    return [fix.approach for fix in only(facts_of(session.events), ErrorResolved)]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("There is no pythonpath setting, so I add one to pyproject.toml.", True),
        ("Let me look at pyproject.toml.", False),
    ],
)
def test_the_only_edit_mends_what_names_nothing_of_it_where_the_agent_announced_it(said: str, shown: bool) -> None:
    output = (
        "ImportError while importing test module 'tests/test_a.py'.\nE   ModuleNotFoundError: No module named 'ledger'"
    )
    session = Session()
    session.user("Test it.")
    session.runs("pytest -q tests/test_a.py", f"{output}\nERROR tests/test_a.py\n1 error in 0.1s", exit_code=2)
    session.says(said)
    session.edits("/work/shop/pyproject.toml", "[tool.pytest]", '[tool.pytest]\npythonpath = ["."]')
    session.runs("pytest -q tests/test_a.py", "1 passed in 0.05s")
    [fix] = fixes_of(session)
    assert ("pythonpath" in fix) is shown


def test_an_edit_that_takes_the_rule_out_elsewhere_is_not_shown_for_one_that_puts_it_in() -> None:
    session = Session()
    session.user("Lint it.")
    session.runs("golangci-lint run", "shop.go:7:2: G104: Errors unhandled (gosec)", exit_code=1)
    session.edits("/work/shop/shop.go", "//nolint:errcheck // closes", "//nolint:errcheck,gosec // closes")
    session.edits("/work/shop/shop.go", "//nolint:noctx,gosec // runs", "//nolint:noctx // runs")
    session.runs("golangci-lint run", "ok")
    [fix] = fixes_of(session)
    assert "`//nolint:errcheck // closes` became `//nolint:errcheck,gosec // closes`" in fix


@pytest.mark.parametrize(
    ("failed", "output", "passed"),
    [
        ("git add e2e && git status --cached", "error: unknown option `cached'", "git add docs && git commit -m docs"),
        ("go test ./... | grep -E '--- FAIL'", "grep: unrecognized option `--- FAIL'", "go test -count=1 ./..."),
    ],
)
def test_a_call_of_another_program_than_the_one_that_was_called_wrong_is_no_fix(
    failed: str, output: str, passed: str
) -> None:
    session = Session()
    session.user("Look at it.")
    session.runs(failed, output, exit_code=2)
    session.runs(passed, "ok")
    assert fixes_of(session) == []


def test_an_edit_that_shares_only_words_with_a_failed_test_is_no_fix_and_one_of_what_it_tests_is() -> None:
    def fixed(path: str) -> list[str]:
        session = Session()
        session.user("Test it.")
        output = "FAILED tests/test_ledger.py::test_total - AssertionError: the report lacks rows that were written"
        session.runs("pytest", output, exit_code=1)
        session.edits("/work/shop/pages.py", "report.rows", "report.lacks(written)")
        session.edits(path, "sum(a)", "sum(b)")
        session.runs("pytest", "3 passed")
        return fixes_of(session)

    assert fixed("/work/shop/ledger.py") == ["`sum(a)` became `sum(b)` in ledger.py"]
    assert fixed("/work/shop/colours.py") == [""]


@pytest.mark.parametrize(
    ("words", "edits", "fix"),
    [
        ("", [("ledger.py", "sum(a)", "sum(b)"), ("ledger.py", "len(a)", "len(b)")], ""),
        ("", [("test_ledger.py", "== 3", "== 4"), ("pages.py", "report.rows", "report.lacks")], ""),
        (
            "",
            [("ledger.py", "sum(a)", "sum(b)"), ("pages.py", "report.rows", "report.lacks")],
            "`sum(a)` became `sum(b)`",
        ),
        (
            "test_total fails because `price_of` takes the wrong column.",
            [("ledger.py", "price_of(a)", "price_of(b)"), ("ledger.py", "len(a)", "len(b)")],
            "`price_of(a)` became `price_of(b)`",
        ),
    ],
)
def test_which_of_several_changes_mended_a_failed_test_is_said_where_one_bears_on_it_or_is_explained(
    words: str, edits: list[tuple[str, str, str]], fix: str
) -> None:
    session = Session()
    session.user("Test it.")
    session.runs("pytest", "FAILED tests/test_ledger.py::test_total - AssertionError: assert 3 == 4", exit_code=1)
    if words:
        session.says(words)
    for file, before, after in edits:
        session.edits(f"/work/shop/{'tests/' * file.startswith('test_')}{file}", before, after)
    session.runs("pytest", "3 passed")
    [found] = fixes_of(session)
    assert fix in found if fix else "became" not in found


def test_of_changes_that_have_only_the_file_to_do_with_an_error_none_is_its_fix() -> None:
    def fixed(first: str, other: str) -> list[str]:
        session = Session()
        session.user("Build it.")
        session.runs("go build ./...", "# shop\n./cart.go:31:9: undefined: priceOf", exit_code=1)
        session.edits("/work/shop/cart.go", first, f"{first}(now)")
        session.edits("/work/shop/cart.go", other, f"{other}(now)")
        session.runs("go build ./...", "")
        return fixes_of(session)

    assert fixed("colour", "shape") == [""]
    assert fixed("colour", "priceOf") == ["`priceOf` became `priceOf(now)` in cart.go"]


def test_what_says_something_else_puts_nothing_into_form() -> None:
    def fixed(before: str, after: str) -> list[str]:
        session = Session()
        session.user("Lint it.")
        output = "src/cart.ts format ━━━━━━━━━━━━━━\n\n  × Formatter would have printed the following content:\n"
        session.runs("bun run lint", output, exit_code=1)
        session.edits("/work/shop/src/cart.ts", before, after)
        session.runs("bun run lint", "Checked 12 files")
        return fixes_of(session)

    assert fixed("rm(dir).catch(() => {});", "rm(dir).catch(() => { /* gone */ });") == [""]
    [fix] = fixed("total(\n  a,\n  b,\n)", "total(a, b)")
    assert "became `total(a, b)` in cart.ts" in fix


POINTER = "# shop/cache\ncache/map_windows.go:31:9: possible misuse of unsafe.Pointer"
ELSEWHERE = Edit("/w/shop/src/prompt.go", "return a", "return b")


def test_what_another_program_passes_shows_nothing_of_an_error_that_no_change_bears_on() -> None:
    assert fixes(POINTER, "go vet ./...", "go test ./...", edits=(ELSEWHERE,)) == []
    both = "go build ./... && go vet ./..."
    assert fixes(POINTER, both, "go build ./...", edits=(ELSEWHERE,)) == []
    there = Edit("/w/shop/cache/map_windows.go", "unsafe.Pointer(at)", "view(at)")
    assert fixes(POINTER, "go vet ./...", "go test ./...", edits=(there,)) != []


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("The unsafe.Pointer warnings are pre-existing and unrelated to these changes.", 0),
        ("Vet's warning in map_windows.go was already there before my change: an existing issue.", 0),
        ("The failing test in ledger_test.go is pre-existing and unrelated.", 1),
        ("The unsafe.Pointer warning needs another prompt.", 1),
    ],
)
def test_what_the_agent_calls_none_of_its_work_is_mended_by_no_change_of_something_else(said: str, found: int) -> None:
    session = Session()
    session.user("Look at it.")
    session.runs("go vet ./...", POINTER, exit_code=1)
    session.says(said)
    session.edits("/work/shop/src/prompt.go", "return a", "return b")
    session.runs("go vet ./...", "ok")
    assert len(fixes_of(session)) == found


def test_what_the_agent_calls_none_of_its_work_is_mended_by_a_command_alone() -> None:
    session = Session()
    session.user("Look at it.")
    output = "error: Cannot find package 'ts-pattern' from '/work/shop/tmp/clones/a/main.ts'"
    session.runs("bun test", output, exit_code=1)
    session.says("The failing tests are in tmp/clones: Cannot find package 'ts-pattern' is pre-existing, not ours.")
    session.runs("rm -rf tmp/clones", "")
    session.runs("bun test", "3 pass\n0 fail\nRan 3 tests across 1 files.")
    assert fixes_of(session) == ["ran `rm -rf tmp/clones`"]
