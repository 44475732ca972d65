"""Stage 1: what a stream's events tell, whatever the order, the batches and the tellers they came in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from session_events import SECOND, START, STREAM, TRACEBACK, Session, event, facts_of, hooks_of, only

from memctl.api.reading.evidence import field_text
from memctl.domain.events.event_order import EventOrder, preferred
from memctl.domain.events.facts import (
    Answered,
    CommandRan,
    CommandTried,
    Episode,
    ErrorMet,
    ErrorOccurred,
    ErrorResolved,
    Fact,
    FileChanged,
    FileTouched,
    InsightFound,
    KnowledgeHeld,
    PlaceSeen,
    PlanChanged,
    Prompted,
    ResolutionRefuted,
    SessionOpened,
    SessionTitled,
    SubagentAsked,
    TaskClosed,
    TaskOpened,
    TokensSpent,
    ToolUsed,
    Turn,
    quote_hash,
)
from memctl.domain.events.facts import TestsRan as RanTests  # pytest takes what begins with Test for its own
from memctl.domain.events.observations import (
    CommitRecorded,
    NoticeReceived,
    PromptSubmitted,
    ResponseReceived,
    SessionStarted,
    ToolCalled,
    ToolReturned,
    event_id_of,
)
from memctl.domain.knowledge.memory import worth_keeping
from memctl.domain.language.summaries import is_politeness
from memctl.domain.session.stream_facts import LONGEST_STEP, derive
from memctl.domain.session.tool_uses import Use
from memctl.projections.memories import CORRECTED, of_turn


@pytest.fixture
def repaired() -> Session:
    """An opening prompt, a failing test, an explanation, an edit, the passing test, a commit, and thanks."""
    session = Session()
    session.tell(SessionStarted(source="startup", branch="main"), "system")
    session.user("Fix the total of an empty cart: it crashes.")
    session.runs("cd /work/shop && pytest -q", TRACEBACK, exit_code=1)
    session.says("The issue is that `total` starts from None because the cart has no discount. I'll start from 0.")
    session.edits("/work/shop/cart.py", "    total = self.discount", "    total = self.discount or 0")
    session.runs("pytest -q", "............ [100%]\n12 passed in 0.40s")
    session.says("Fixed: an empty cart now totals 0.")
    session.user("thanks!")
    session.says("You're welcome.")
    return session


def test_a_session_with_an_error_a_fix_and_thanks_tells_these_facts(repaired: Session) -> None:
    facts = facts_of(repaired.events)
    assert [type(fact) for fact in facts] == [
        SessionOpened,
        PlaceSeen,
        Prompted,
        TaskOpened,
        ToolUsed,
        CommandRan,
        RanTests,
        ErrorOccurred,
        ErrorMet,
        Answered,
        ToolUsed,
        FileTouched,
        FileChanged,
        ToolUsed,
        CommandRan,
        RanTests,
        CommandTried,
        ErrorResolved,
        ErrorMet,
        Answered,
        Turn,
        KnowledgeHeld,
        Prompted,
        Answered,
        Turn,
        KnowledgeHeld,
        Episode,
    ]
    opened, asked, task = only(facts, SessionOpened, Prompted, TaskOpened)[:3]
    assert (opened.source, opened.branch, opened.location) == ("startup", "main", "/work/shop")
    assert (asked.kind, asked.task) == ("opening", task.task)
    assert (task.description, task.task_type) == ("Fix the total of an empty cart: it crashes.", "bugfix")

    failed, passed = only(facts, RanTests)
    assert (failed.runner, failed.passed) == ("pytest", False)
    assert passed.passed

    [error] = only(facts, ErrorOccurred)
    assert error.error_types == ("test failure", "TypeError")
    assert error.template == "unsupported operand type(s) for +: <q> and <q>"
    assert error.frames == ("test_cart.py::test_total_of_empty_cart",)
    assert error.command == "cd /work/shop && pytest -q"

    [changed] = only(facts, FileChanged)
    assert (changed.path, changed.added, changed.removed) == ("/work/shop/cart.py", 1, 1)

    [fix] = only(facts, ErrorResolved)
    assert (fix.error, fix.signature, fix.command) == (error.id, error.signature, "pytest -q")
    assert [edit.path for edit in fix.edits] == ["/work/shop/cart.py"]
    assert fix.explanation.startswith("The issue is that `total` starts from None because")
    assert fix.duration_us == 5 * SECOND

    [_, thanks] = only(facts, Prompted)
    assert thanks.kind == "thanks"
    [first, second] = only(facts, Turn)
    assert (first.answer, first.files) == ("Fixed: an empty cart now totals 0.", ("/work/shop/cart.py",))
    assert second.prompt == "thanks!"

    [episode] = only(facts, Episode)
    assert (episode.outcome, episode.why, episode.feedback) == ("success", "the user was content", "positive")
    assert (episode.closed, episode.steps, episode.tests_passed) == (False, 3, True)
    assert (episode.signatures, episode.resolved) == ((error.signature,), (error.signature,))
    assert (episode.lines_added, episode.lines_removed) == (1, 1)
    assert (first.lead, second.lead) == ("", first.prompt)


def test_evidence_quotes_the_cited_event(repaired: Session) -> None:
    payloads = {told.delivery_id: told.payload for told in repaired.events}
    quoted = [span for fact in facts_of(repaired.events) for span in fact.evidence if span.quote_hash]
    assert len(quoted) >= 8
    for span in quoted:
        text = field_text(payloads[span.event], span.field)
        assert text is not None
        assert quote_hash(text[span.start : span.end]) == span.quote_hash
    [error] = only(facts_of(repaired.events), ErrorOccurred)
    [span] = error.evidence
    text = field_text(payloads[span.event], span.field)
    assert text is not None
    assert text[span.start : span.end].startswith("FAILED tests/test_cart.py::test_total_of_empty_cart")


def test_the_next_opening_prompt_closes_task_and_episode(repaired: Session) -> None:
    repaired.user(
        "Implement the following plan:\n\n# Plan: Export invoices as PDF\n\n## Context\n\nCustomers ask for it."
    )
    facts = facts_of(repaired.events)
    [closed] = only(facts, TaskClosed)
    assert (closed.outcome, closed.by) == ("success", "next_prompt")
    done, begun = only(facts, Episode)
    assert done.closed
    assert not begun.closed
    assert (begun.description, begun.task_type) == ("Export invoices as PDF", "feature")


def test_what_the_client_puts_in_the_users_place_is_no_prompt() -> None:
    session = Session()
    session.user(
        "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>"
    )
    session.user("<local-command-stdout></local-command-stdout>", meta=True)
    session.user("<task-notification>\n<task-id>1</task-id>\n</task-notification>")
    session.user("[Request interrupted by user]")
    session.user("This session is being continued from a previous conversation that ran out of context.")
    session.user("remember: use pnpm", injected=True)
    session.user("<ide_opened_file>cart.py</ide_opened_file>Rename the cart to basket everywhere please")
    session.user("Do it in the tests too", subagent="a1")
    kinds = [(fact.kind, fact.text) for fact in only(facts_of(session.events), Prompted)]
    assert kinds == [("command", "/clear"), ("opening", "Rename the cart to basket everywhere please")]


REFUSALS = {
    "claude-code": "The user doesn't want to proceed with this tool use. The tool use was rejected. "
    "To tell you how to proceed, the user said:\nno, put it into a new module",
    "opencode": "The user rejected permission to use this specific tool call with the following feedback: "
    "no, put it into a new module",
}


@pytest.mark.parametrize("client", ["claude-code", "opencode", "gemini-cli", "codex", "copilot-cli"])
@pytest.mark.parametrize("writes", list(REFUSALS))
def test_why_a_user_refused_a_tool_is_a_prompt_where_the_client_says_so(client: str, writes: str) -> None:
    session = Session()
    session.user("Add a discount to the cart please")
    given = {"file_path": "cart.py", "old_string": "a", "new_string": "b"}
    session.uses("Edit", given, REFUSALS[writes], failed=True)
    stream = f"session/{client}/s1"
    facts = derive(stream, [msgspec.structs.replace(each, stream=stream) for each in session.events]).drain()
    said = [(fact.kind, fact.text) for fact in only(facts, Prompted)][1:]
    assert said == ([("correction", "no, put it into a new module")] if client == writes else [])
    [use] = only(facts, ToolUsed)
    assert (use.ok, use.noise) == (False, True)
    assert not only(facts, ErrorOccurred, FileChanged)


@pytest.mark.parametrize(
    ("tool", "given", "output"),
    [
        ("Bash", {"command": "grep -rn TODO src"}, "Exit code 1"),
        ("Bash", {"command": "pytest"}, "<tool_use_error>Sibling tool call errored</tool_use_error>"),
        ("Edit", {"file_path": "a.py"}, "<tool_use_error>File has not been read yet. Read it first</tool_use_error>"),
        ("Edit", {"file_path": "a.py"}, "<tool_use_error>String to replace not found in file.\nString: error: x"),
        ("Read", {"file_path": "a.py"}, "<tool_use_error>File does not exist.</tool_use_error>"),
    ],
)
def test_noise_is_no_error(tool: str, given: dict[str, Any], output: str) -> None:
    session = Session()
    session.uses(tool, given, output, failed=True, exit_code=1)
    [use] = only(facts_of(session.events), ToolUsed)
    assert use.noise
    assert not only(facts_of(session.events), ErrorOccurred)


@pytest.mark.parametrize(
    "command", ["cat build.log", "git diff HEAD~1", "grep -n Error -A3 app.log; ls", "sed -n 1,50p notes.md | head"]
)
def test_an_error_that_a_document_quotes_is_no_error(command: str) -> None:
    session = Session()
    session.runs(command, 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: boom\n')
    assert not only(facts_of(session.events), ErrorOccurred)


def test_a_pipe_that_hides_the_exit_code_does_not_hide_the_failure() -> None:
    session = Session()
    session.runs(
        "go test ./... 2>&1 | tail -5",
        "--- FAIL: TestCart (0.01s)\n    cart_test.go:9: got 3, want 4\nFAIL\nFAIL\tshop\t0.02s",
    )
    facts = facts_of(session.events)
    [error] = only(facts, ErrorOccurred)
    assert error.frames == ("TestCart",)
    [ran] = only(facts, CommandRan)
    assert (ran.ok, ran.head) == (False, "go test")


def test_what_was_committed_is_a_solution_in_its_own_words(repaired: Session) -> None:
    for subject in ("fix(cart): an empty one totals 0", "Merge branch 'main'", "Test empty carts"):
        repaired.runs(f'git commit -am "{subject}"', f"[main 1a2b3c4] {subject}")
    [episode] = only(facts_of(repaired.events), Episode)
    committed = "fix(cart): an empty one totals 0; Test empty carts"
    assert episode.solution == f"{committed} — Fixed: an empty cart now totals 0."


@pytest.mark.parametrize(
    ("path", "subject", "task_type"),
    [
        ("/work/shop/cart.py", "fix(cart): keep the sign", "bugfix"),
        ("/work/shop/cart.py", "Keep the sign", "unknown"),
        ("/work/shop/cart.md", "Keep the sign", "docs"),
        ("/home/dana/.claude/plans/a-plan.md", "Keep the sign", "question"),
    ],
)
def test_a_question_that_led_to_changes_is_no_question_any_more(path: str, subject: str, task_type: str) -> None:
    session = Session()
    session.user("why is the total of the cart negative?")
    session.uses("Write", {"file_path": path, "content": "total"}, "File created")
    session.runs(f'git commit -am "{subject}"', f"[main 1a2b3c4] {subject}")
    [episode] = only(facts_of(session.events), Episode)
    assert episode.task_type == task_type


def test_symbols_are_those_that_code_defines_whole() -> None:
    session = Session()
    session.user("Rename the total")
    session.edits("/work/shop/docs/types.md", "a", "pick one\ntype instead of a class\n")
    session.edits(
        "/work/shop/cart.py", "a", "def total(cart):\n    return 1\n" + "# x\n" * 139 + "def discounted_total(cart):"
    )
    assert [fact.symbols for fact in only(facts_of(session.events), FileChanged)] == [(), ("total",)]


def test_what_git_alone_changed_is_told_by_its_commit() -> None:
    session = Session()
    session.user("Remove the stray file please")
    session.runs('git rm stray.txt && git commit -m "Remove a stray file"', "[main 1a2b3c4] Remove a stray file")
    [episode] = only(facts_of(session.events), Episode)
    assert episode.solution == "Remove a stray file"


@pytest.mark.parametrize("words", ["You're welcome!", "Glad it works. Let me know if anything comes up.", "천만에요!"])
def test_what_takes_thanks_solves_nothing(words: str) -> None:
    session = Session()
    session.user("why is the total of the cart negative?")
    session.says("The sign is lost in `total`.")
    session.user("thanks")
    session.says(words)
    [episode] = only(facts_of(session.events), Episode)
    assert episode.answer == "The sign is lost in `total`."


@pytest.mark.parametrize("words", ["Thanks to the index, it takes 2 ms.", "No problem was found."])
def test_what_begins_politely_and_says_something_is_an_answer(words: str) -> None:
    assert not is_politeness(words)


def test_a_commit_in_another_repository_tells_nothing_of_the_work(repaired: Session) -> None:
    repaired.runs('cd /tmp/scratch && git commit -am "Try something"', "[main 1a2b3c4] Try something")
    [episode] = only(facts_of(repaired.events), Episode)
    assert episode.solution == "Fixed: an empty cart now totals 0."


HOURS = 3_600 * SECOND


def slow(*, away: float = 0, at_a_tool: float = 0) -> ErrorResolved:
    """How a test was mended, where so many seconds passed before the user spoke, and before a call came back."""
    session = Session()
    session.user("Fix the total of an empty cart: it crashes.")
    session.runs("pytest -q", TRACEBACK, exit_code=1)
    session.says("It starts from None.")
    session.tell(PromptSubmitted(text="Then let it start from 0, please."), "user", after=1 + away)
    session.edits("/work/shop/cart.py", "total = self.discount", "total = self.discount or 0")
    session.tell(ToolCalled(tool="Bash", call="slow", input={"command": "pytest -q"}))
    session.tell(ToolReturned(text="12 passed in 0.40s", call="slow"), "tool", after=1 + at_a_tool)
    [fix] = only(facts_of(session.events), ErrorResolved)
    assert isinstance(fix, ErrorResolved)
    return fix


def test_what_a_person_was_away_for_is_no_time_of_work() -> None:
    assert slow().idle_us == SECOND, "until the user speaks"
    lunch = slow(away=17_575)
    assert (lunch.duration_us, lunch.idle_us) == (slow().duration_us + 17_575 * SECOND, 17_576 * SECOND)
    assert slow(at_a_tool=300).idle_us == SECOND, "a run of five minutes is work"
    assert slow(at_a_tool=5 * 3_600).idle_us == SECOND + 5 * HOURS + SECOND - LONGEST_STEP, "no run takes hours"


def test_a_prompt_that_comes_while_a_tool_is_at_work_ends_no_pause() -> None:
    session = Session()
    session.user("Fix the total of an empty cart: it crashes.")
    session.runs("pytest -q", TRACEBACK, exit_code=1)
    session.edits("/work/shop/cart.py", "total = self.discount", "total = self.discount or 0")
    session.tell(ToolCalled(tool="Bash", call="slow", input={"command": "pytest -q"}))
    session.tell(PromptSubmitted(text="And then commit, please."), "user", after=60)
    session.tell(ToolReturned(text="12 passed in 0.40s", call="slow"), "tool", after=60)
    [fix] = only(facts_of(session.events), ErrorResolved)
    assert (fix.duration_us > 120 * SECOND, fix.idle_us) == (True, 0)


SCRIPT = """Exit code 1
Traceback (most recent call last):
  File "/tmp/try.py", line 3, in <module>
    print(total(None))
TypeError: unsupported operand type(s) for +: 'NoneType' and 'int'
"""


def tried(program: str, path: str, *, done: str = "") -> Session:
    """The user asks for a change of the shop; something is tried in a file until it passes."""
    session = Session()
    session.user("Find out why the total of an empty cart in the shop fails")
    session.runs(f"{program} {path}", SCRIPT.replace("/tmp/try.py", path), exit_code=1)
    session.edits(path, "total(None)", "total(0)")
    session.runs(f"{program} {path}", "0\n3 passed in 0.1s")
    session.says(done or "It is the sign, which is lost in `total`.")
    return session


@pytest.mark.parametrize("path", ["/tmp/try.py", "/private/tmp/claude/s/scratchpad/try.py", "/var/folders/x/T/try.py"])
@pytest.mark.parametrize("program", ["python", "pytest"])
def test_what_passed_in_a_scratch_file_decides_nothing(program: str, path: str) -> None:
    [episode] = only(facts_of(tried(program, path).events), Episode)
    assert (episode.outcome, episode.why) == ("success", "answered")
    assert episode.files == (path,), "it is named all the same"
    left = "I could not find out why it fails."
    [episode] = only(facts_of(tried(program, path, done=left).events), Episode)
    assert episode.outcome == "unknown"


@pytest.mark.parametrize(
    ("program", "path", "why"),
    [
        ("python", "/work/shop/tools/try.py", "what had failed passed after the changes"),
        ("python", "/work/shop/tmp/try.py", "what had failed passed after the changes"),
        ("pytest", "/work/shop/tests/test_try.py", "tests passed after the last change"),
    ],
)
def test_what_passed_in_the_project_decides(program: str, path: str, why: str) -> None:
    [episode] = only(facts_of(tried(program, path).events), Episode)
    assert (episode.outcome, episode.why) == ("success", why)


def test_what_is_tried_in_a_scratch_folder_takes_nothing_back(repaired: Session) -> None:
    repaired.edits("/tmp/try/cart.py", "total(None)", "total(0)")
    repaired.runs("cd /tmp/try && pytest -q", TRACEBACK, exit_code=1)
    [episode] = only(facts_of(repaired.events), Episode)
    assert (episode.outcome, episode.why, episode.tests_passed) == (
        "success",
        "tests passed after the last change",
        True,
    )


def test_a_session_that_works_in_a_temporary_folder_is_judged_by_it() -> None:
    session = tried("pytest", "/tmp/shop/tests/test_cart.py")
    events = [msgspec.structs.replace(event, location="/tmp/shop") for event in session.events]
    [episode] = only(facts_of(events), Episode)
    assert episode.why == "tests passed after the last change"


@pytest.mark.parametrize(
    ("location", "command"),
    [("/work/shop", 'cd "$REPO" && git commit'), ("/work/shop", 'git -C "$DIR" commit'), ("", "git commit")],
)
def test_a_commit_of_which_nobody_says_where_is_of_the_work(location: str, command: str) -> None:
    session = Session()
    session.user("Add the totals to the cart page of the shop")
    session.runs(f"{command} -m 'feat(cart): totals on its page'", "[main 1a2b3c4] feat(cart): totals on its page")
    events = [msgspec.structs.replace(event, location=location) for event in session.events]
    [episode] = only(facts_of(events), Episode)
    assert episode.outcome == "success"
    assert "commit" in episode.why


def test_work_that_only_touched_documents_was_on_them() -> None:
    session = Session()
    session.user("Add how to install it on a new machine")
    session.edits("/work/shop/docs/install.md", "", "Run make.")
    session.says("Added the installation to the manual.")
    [episode] = only(facts_of(session.events), Episode)
    assert episode.task_type == "docs"
    session.edits("/work/shop/install.py", "", "print()")
    [episode] = only(facts_of(session.events), Episode)
    assert episode.task_type == "feature"


def test_an_error_that_comes_back_soon_refutes_its_resolution(repaired: Session) -> None:
    repaired.runs("pytest -q", TRACEBACK, exit_code=1)
    facts = facts_of(repaired.events)
    [refuted] = only(facts, ResolutionRefuted)
    [fix] = only(facts, ErrorResolved)
    assert (refuted.resolution, refuted.signature) == (fix.id, fix.signature)
    [first, again] = only(facts, ErrorOccurred)
    assert first.signature == again.signature
    assert not again.seen_before


def test_nothing_is_resolved_where_nothing_was_changed() -> None:
    session = Session()
    session.runs("pytest -q", TRACEBACK, exit_code=1)
    session.runs("pytest -q", "12 passed in 0.40s")
    assert not only(facts_of(session.events), ErrorResolved)


def test_a_passing_run_of_other_tests_resolves_nothing() -> None:
    session = Session()
    session.runs("pytest -q", TRACEBACK, exit_code=1)
    session.edits("/work/shop/cart.py", "a", "b")
    session.runs("pytest -q -k invoice", "3 passed in 0.10s")
    assert not only(facts_of(session.events), ErrorResolved)
    session.runs("pytest -q -k 'empty_cart or invoice'", "4 passed in 0.10s")
    assert not only(facts_of(session.events), ErrorResolved), "only `|` joins names"
    session.runs("pytest -q -k empty_cart", "1 passed in 0.10s")
    assert len(only(facts_of(session.events), ErrorResolved)) == 1


def test_a_command_that_changes_things_can_be_the_fix() -> None:
    session = Session()
    session.runs(
        "go build ./...", "Exit code 1\ngo: updates to go.mod needed; to update it:\n\tgo mod tidy", exit_code=1
    )
    session.runs("go mod tidy")
    session.runs("cd cmd && go build ./...")
    [fix] = only(facts_of(session.events), ErrorResolved)
    assert fix.approach == "ran `go mod tidy`"


def test_each_step_of_a_plan_keeps_its_state() -> None:
    session = Session()
    session.uses("TaskCreate", {"subject": "Write the parser"}, "Task #1 created successfully: Write the parser")
    session.uses("TaskCreate", {"subject": "Test it"}, "Task #2 created successfully: Test it")
    session.uses("TaskUpdate", {"taskId": "1", "status": "completed"}, "Updated task #1 status")
    session.uses("TodoWrite", {"todos": [{"content": "Ship", "status": "in_progress"}]}, "ok")
    plans = [fact.steps for fact in only(facts_of(session.events), PlanChanged)]
    assert plans[-2:] == [
        (("completed", "Write the parser"), ("pending", "Test it")),
        (("in_progress", "Ship"),),
    ]


def test_subagents_open_no_task_and_their_work_counts_for_the_open_one() -> None:
    session = Session()
    session.user("Refactor the cart module into smaller pieces")
    session.user("Look for usages of the cart", subagent="a1")
    session.tell(ToolCalled(tool="Write", call="w1", input={"file_path": "x.py", "content": "a\nb"}, subagent="a1"))
    session.tell(ToolReturned(call="w1", text="ok", subagent="a1"), "tool")
    session.says("I found three usages.", subagent="a1")
    facts = facts_of(session.events)
    assert len(only(facts, TaskOpened)) == len(only(facts, Prompted)) == len(only(facts, Turn)) == 1
    [changed] = only(facts, FileChanged)
    [task] = only(facts, TaskOpened)
    assert (changed.task, changed.subagent, changed.created, changed.added) == (task.task, "a1", True, 2)
    [turn] = only(facts, Turn)
    assert turn.answer == ""


def test_an_answer_that_was_finished_is_kept_where_something_else_than_a_prompt_leads_to_another() -> None:
    session = Session()
    session.user("Why is the first page of the shop slow?")
    session.says("I look at the queries.", message="m1")
    session.tell(ToolCalled(tool="Bash", call="c1", input={"command": "make trace"}, message="m1"))
    session.tell(ToolReturned(call="c1", text="900 queries"), "tool")
    session.says("It asks once for each product: 900 queries.", message="m2")
    session.user("<task-notification>the trace ended</task-notification>", meta=True)
    session.tell(ToolCalled(tool="Bash", call="c2", input={"command": "cat trace"}, message="m3"))
    session.tell(ToolReturned(call="c2", text="ok"), "tool")
    last = session.says("The trace ended too.", message="m4")
    [turn] = only(facts_of(session.events), Turn)
    assert (turn.earlier, turn.answer) == (("It asks once for each product: 900 queries.",), "The trace ended too.")
    assert (len(turn.evidence), turn.evidence[-1].event) == (3, last.event_id), "known since the last"
    row = of_turn(turn)
    assert row.text.endswith("→ It asks once for each product: 900 queries.\n\nThe trace ended too.")
    assert "900 queries" in row.search_text


def test_what_an_agent_found_out_on_the_way_is_kept_though_the_prompt_says_nothing() -> None:
    session = Session()
    session.user("continue")
    session.says("The upload fails because `retry` is never passed on. Let me fix it.")
    session.runs("make", "ok")
    session.says("Now the tests.")
    session.runs("make test", "ok")
    last = session.says("Done.")
    [turn] = only(facts_of(session.events), Turn)
    assert (turn.reasons, turn.answer) == (("The upload fails because `retry` is never passed on.",), "Done.")
    assert turn.evidence[-1].event == last.event_id, "known since the last"
    row = of_turn(turn)
    assert worth_keeping(row.text, row.importance)
    assert row.text == "continue\n→ The upload fails because `retry` is never passed on.\n\nDone."


def test_of_what_was_found_out_on_the_way_the_newest_is_kept() -> None:
    session = Session()
    session.user("Mend the upload.")
    for number in range(5):
        session.says(f"Step {number} fails because `part{number}` is not set.")
        session.runs("make", "ok")
    session.says("Done.")
    [turn] = only(facts_of(session.events), Turn)
    assert [each[:6] for each in turn.reasons] == ["Step 3", "Step 4"]


def test_words_before_the_use_of_a_tool_are_no_answer_where_no_message_says_which() -> None:
    session = Session()
    session.user("Why is the first page of the shop slow?")
    session.says("I look at the queries.")
    session.runs("make trace", "900 queries")
    session.says("I read them.")
    session.runs("cat trace", "ok")
    session.says("It asks once for each product.")
    [turn] = only(facts_of(session.events), Turn)
    assert (turn.earlier, turn.answer) == ((), "It asks once for each product.")


def test_of_many_answers_of_one_turn_the_short_ones_go() -> None:
    session = Session()
    session.user("Why is the first page of the shop slow?")
    said = ["It asks once for each product: 900 queries.", "Ended.", "Ended too, as before.", "All ended."]
    for number, text in enumerate(said):
        session.says(text, message=f"m{number}")
    [turn] = only(facts_of(session.events), Turn)
    assert (*turn.earlier, turn.answer) == (said[0], said[2], said[3])


def test_what_a_subagent_was_asked_for_is_told_and_its_steps_are_not_the_tasks() -> None:
    session = Session()
    session.user("Refactor the cart module into smaller pieces")
    session.uses("TodoWrite", {"todos": [{"content": "Split", "status": "pending"}]}, "ok")
    session.tell(ToolCalled(tool="TodoWrite", call="w1", input={"todos": [{"content": "Look"}]}, subagent="a1"))
    session.tell(ToolReturned(call="w1", text="ok", subagent="a1"), "tool")
    task = {"subagent_type": "Explore", "description": "Find usages", "prompt": "Look for usages of the cart"}
    session.uses("Task", task, "Three usages.", asked="a1", duration_ms=7)
    facts = facts_of(session.events)
    [asked] = only(facts, SubagentAsked)
    assert (asked.asked, asked.role, asked.about, asked.ok) == ("a1", "Explore", "Find usages", True)
    [plan] = only(facts, PlanChanged)
    assert plan.steps == (("pending", "Split"),)
    [*_, episode] = only(facts, Episode)
    assert "Look for usages" not in str(episode)


def test_a_message_counts_its_tokens_once() -> None:
    session = Session()
    session.says("First I look.", message="m1", tokens_in=100, tokens_out=5)
    session.says("Then I leap.", message="m1", tokens_in=100, tokens_out=40)
    session.says("Done.", message="m2", tokens_in=7, tokens_out=1)
    spent = only(facts_of(session.events), TokensSpent)
    assert [(fact.tokens_in, fact.tokens_out) for fact in spent] == [(100, 5), (0, 35), (7, 1)]


def test_a_title_without_a_time_waits_for_the_sessions_beginning() -> None:
    session = Session()
    session.user("Add a wish list to the shop please")
    title = event(NoticeReceived(kind="title", text="Wish list", line="#3"), "transcript:claude-code:s1:#3:0", 0)
    facts = facts_of([*session.events, title])
    assert [type(fact) for fact in facts][:3] == [SessionOpened, PlaceSeen, SessionTitled]
    assert all(fact.occurred_at > START for fact in facts)


def test_claims_are_quoted_from_the_prompt() -> None:
    session = Session()
    said = session.user("Always use pnpm instead of npm in this project. And let's go with option 2 for the layout.")
    [insight] = only(facts_of(session.events), InsightFound)
    text = said.payload.text  # type: ignore[attr-defined]
    [span] = insight.evidence
    assert span.event == said.delivery_id
    assert quote_hash(text[span.start : span.end]) == span.quote_hash
    assert "pnpm" in insight.canonical


# --- one telling in several events ---


def bare(facts: Sequence[Fact]) -> list[dict[str, Any]]:
    """Facts without their evidence and times: what they say."""
    said = []
    for fact in facts:
        fields = msgspec.structs.asdict(fact) | {"kind_of_fact": type(fact).__name__}
        for name in ("evidence", "lineage", "once", "occurred_at", "ended_at", "duration_ms", "duration_us"):
            fields.pop(name, None)
        said.append(fields)
    return said


def test_hooks_and_transcript_tell_each_fact_once(repaired: Session) -> None:
    hooks = hooks_of(repaired.events)
    alone, both = facts_of(repaired.events), facts_of([*hooks, *repaired.events])
    assert bare(both) == bare(alone)
    assert [fact.evidence for fact in both] == [fact.evidence for fact in alone], (
        "the transcript is cited once it is in"
    )
    assert bare(facts_of(hooks)) == bare(alone), "hooks alone tell the same"


def test_the_kth_telling_pairs_with_the_kth_of_the_same_words() -> None:
    session = Session()
    for _ in range(3):
        session.user("commit")
        session.says("Committed.")
    hooks = [each for each in hooks_of(session.events) if isinstance(each.payload, PromptSubmitted)]
    facts = only(facts_of([*session.events, *hooks[:2]]), Prompted)
    assert len(facts) == 3
    assert len({fact.id for fact in facts}) == 3


def test_a_transcript_block_after_its_hook_asks_for_a_new_derivation(repaired: Session) -> None:
    hooks = hooks_of(repaired.events)
    state = derive(STREAM, hooks)
    before = state.drain()
    assert not state.extend(repaired.events[:2])
    assert state.drain() == []
    assert state.extend(hooks), "what was refused changed nothing, and duplicates are harmless"
    assert state.drain() == []
    assert before


def test_the_first_hook_after_a_transcript_asks_for_a_new_derivation(repaired: Session) -> None:
    """Until then the words by which it may be told to say the same were not noted."""
    last = hooks_of([e for e in repaired.events if isinstance(e.payload, ResponseReceived)])[-1]
    state = derive(STREAM, repaired.events)
    assert not state.extend([msgspec.structs.replace(last, occurred_at=repaired.events[-1].occurred_at + 1)])
    assert bare(facts_of([*repaired.events, last])) == bare(facts_of(repaired.events))


@pytest.mark.parametrize("kind", [CommitRecorded, PromptSubmitted, ResponseReceived, ToolReturned])
@pytest.mark.parametrize("by", ["member:eve", "agent:eve", "import"])
def test_a_longer_version_of_another_does_not_replace_what_this_machine_saw(kind: Any, by: str) -> None:
    own = event(kind(line="c1", text="Add a wish list"), "c1", START)
    theirs = msgspec.structs.replace(
        own, actor=by, payload=kind(line="c1", text="Add a wish list, and always use yarn")
    )
    assert preferred([own, theirs]) == preferred([theirs, own]) == own


def test_of_two_versions_the_longest_text_counts_and_then_the_lowest_hash() -> None:
    session = Session()
    session.user("Add a wish list")
    first = session.events[0]
    longer = msgspec.structs.replace(
        first,
        event_id=event_id_of(1, "variant"),
        variant_of=first.event_id,
        payload=msgspec.structs.replace(first.payload, text="Add a wish list to the shop"),  # type: ignore[type-var]
    )
    for order in ([first, longer], [longer, first]):
        [prompt] = only(facts_of(order), Prompted)
        assert prompt.text == "Add a wish list to the shop"
        assert prompt.evidence[0].event == first.event_id
    state = derive(STREAM, [first])
    assert not state.extend([longer])


@pytest.mark.parametrize(("actor", "by_user"), [("user", True), ("agent", False), ("member:eve", False)])
def test_a_prompt_says_whether_the_user_gave_it(actor: str, by_user: bool) -> None:
    session = Session()
    session.user("Add a wish list")
    [prompt] = only(facts_of([msgspec.structs.replace(session.events[0], actor=actor)]), Prompted)
    assert prompt.by_user is by_user


@pytest.mark.parametrize(
    ("front", "by_user"),
    [
        ("", True),
        ("<system-reminder>a note</system-reminder>\n", False),
        ("# a.py\n\n## My request for Codex:\n", False),
    ],
)
def test_words_beside_a_clients_block_are_quoted_as_nobodys(front: str, by_user: bool) -> None:
    session = Session()
    session.user(f"{front}please drop the tables of dates")
    session.says("Done, they are gone.")
    [turn] = only(facts_of(session.events), Turn)
    assert (turn.by_user, "please drop the tables" in turn.prompt) == (by_user, True)


def test_an_edit_that_only_opencodes_hook_told_has_its_file_and_its_lines() -> None:
    given = {"filePath": "/work/shop/cart.py", "oldString": "a = 1", "newString": "a = 2\nb = 3"}
    session = Session()
    session.user("Fix the cart")
    session.uses("edit", given, "Edit applied successfully.")
    facts = facts_of(session.events)
    [change] = only(facts, FileChanged)
    assert (change.path, change.added, change.removed, change.after) == ("/work/shop/cart.py", 2, 1, "a = 2\nb = 3")
    [used] = only(facts, ToolUsed)
    assert used.summary == "/work/shop/cart.py"


def queued(session: Session, text: str) -> None:
    session.tell(NoticeReceived(kind="queued-prompt", text=text), "user")


def taken(session: Session) -> None:
    session.tell(NoticeReceived(kind="queue-taken"), "system")


def test_what_was_typed_while_the_agent_worked_is_a_prompt_once(repaired: Session) -> None:
    prompts = [fact.text for fact in facts_of(repaired.events) if isinstance(fact, Prompted)]
    queued(repaired, "No, we never round totals down here.")
    queued(repaired, "Also use pnpm for the scripts.")
    taken(repaired)
    repaired.says("Understood.")
    repaired.user("Also  use pnpm for the scripts.")
    repaired.user("No, we never round totals down here.")
    taken(repaired)
    facts = facts_of(repaired.events)
    said = [fact for fact in facts if isinstance(fact, Prompted)]
    assert [fact.text for fact in said] == [
        *prompts, "No, we never round totals down here.", "Also  use pnpm for the scripts.",
    ]  # fmt: skip
    quoted = next(event for event in repaired.events if event.event_id == said[-2].evidence[0].event)
    assert quote_hash(field_text(quoted.payload, "text") or "") == said[-2].evidence[0].quote_hash


def test_what_waits_and_was_never_handed_out_is_no_prompt(repaired: Session) -> None:
    before = [fact for fact in facts_of(repaired.events) if isinstance(fact, Prompted)]
    queued(repaired, "No, we never round totals down here.")
    assert [fact for fact in facts_of(repaired.events) if isinstance(fact, Prompted)] == before


def test_a_path_to_words_is_short_whatever_a_tool_was_passed() -> None:
    """Rows keep dozens of such paths, and the names in them are a model's."""
    words, session = "v := map[string]any{", Session()
    session.user("please modernise the code of the shop")

    def use(given: dict[str, Any]) -> Use:
        session.uses("Edit", given, "done")
        *_, called, came = EventOrder().place(session.events) or ()
        return Use(came, called)

    long = "n" * 16_000
    assert use({long: words, "edits": [{long: words}]}).quote(words).field == "text"
    assert use({"edits": [{"new_string": words}]}).quote(words).field == "input.edits.0.new_string"


@pytest.mark.parametrize(
    ("answer", "prompt", "following", "corrected"),
    [
        ("It is fixed now.", "that still fails", "I look.", True),
        ("The local file wins.", "but don't both run?", "You're absolutely right! Both run.", True),
        ("The local file wins.", "and the other?", "Good question.", False),
        ("Shall I push it?", "no", "Then not.", False),
        ("Which one do you prefer?", "instead of that, a third", "You're right.", False),
        ("", "that still fails", "You're right.", False),
    ],
)
def test_a_turn_that_was_not_let_stand_says_so(answer: str, prompt: str, following: str, corrected: bool) -> None:
    session = Session()
    session.user("Why do the hooks run twice?")
    if answer:
        session.says(answer)
    session.user(prompt)
    session.says(following)
    session.says("Done.")
    turns = {each.id: each for each in only(facts_of(session.events), Turn)}
    assert [each.corrected for each in turns.values()] == [corrected, False]
    assert of_turn(next(iter(turns.values()))).outcome == (CORRECTED if corrected else "")
