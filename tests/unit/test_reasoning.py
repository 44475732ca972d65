"""Hypotheses, decisions and statements: what is read out of words, what merges, and that what was recorded wins."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_events import facts_of

from memctl.domain.events.command import BadCommand, commands, read_command
from memctl.domain.events.event import Event, Micros, Payload, Position, type_of
from memctl.domain.events.facts import (
    Discovered,
    Episode,
    EpisodeDecision,
    Summarized,
    TaskClosed,
    TaskOpened,
)
from memctl.domain.events.observations import (
    PromptSubmitted,
    ResponseReceived,
    SessionEnded,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    event_id_of,
)
from memctl.domain.events.statements import (
    DecisionMade,
    DiscoveryNoted,
    HypothesisProposed,
    HypothesisUpdated,
    SessionSummarized,
    TaskCompleted,
    TaskStarted,
)
from memctl.domain.language.decisions import Asked, decisions_in_answers
from memctl.domain.language.findings import (
    LEAST,
    MODEL,
    MOST,
    MOST_OF_WORK,
    Passage,
    chance,
    found_in,
    found_in_work,
    passages_in,
)
from memctl.domain.language.hypotheses import CONFIRMED, OPEN, Hypotheses, key_of
from memctl.domain.session.stream_facts import derive
from memctl.domain.session.work_commands import (
    CompleteTask,
    NoSuchHypothesis,
    NothingOpen,
    StartTask,
    UpdateHypothesis,
    open_hypotheses,
)
from memctl.domain.support.provenance import Provenance
from memctl.projections.memories import memories
from memctl.projections.stream_state import fold_stream
from memctl.projections.working_memory import WorkingMemory

STREAM = "session/claude-code/s1"
START = 1_760_000_000_000_000


def history(*payloads: Payload, actor: str = "") -> list[Event]:
    """Events of one session, a second apart, in this order; prompts by the user, where no actor is named."""
    found = []
    for number, payload in enumerate(payloads, 1):
        key = f"test:{number}"
        found.append(
            Event(
                position=Position(number),
                event_id=event_id_of(1, key),
                space_id=1,
                stream=STREAM,
                type=type_of(payload).name,
                occurred_at=Micros(START + number * 1_000_000),
                recorded_at=Micros(START),
                actor=actor or ("user" if isinstance(payload, PromptSubmitted) else "agent"),
                location="/home/dana/ledger",
                session_id="s1",
                dedupe_key=key,
                payload=payload,
            )
        )
    return found


def memory(events: list[Event]) -> WorkingMemory:
    _, delta = fold_stream(STREAM, events)
    row = delta.rows["working_memory", STREAM]
    assert isinstance(row, WorkingMemory)
    return row


ASK = PromptSubmitted(text="please fix the crash of the export when the ledger is empty")


# --- reading ---


def test_what_an_agent_says_of_its_way_is_no_decision() -> None:
    for kind in ("text", "thinking"):
        said = ResponseReceived(
            text="I'll use a partial index instead of a second table, since it is small.", kind=kind
        )
        assert memory(history(ASK, said)).decisions == ()


def test_what_to_do_next_is_no_decision_of_the_users() -> None:
    text = 'Your questions have been answered: "What would you like to do next?"="Start", "Which store?"="Postgres"'
    assert [each.text for each in decisions_in_answers(text)] == ["Question “Which store?”, answer “Postgres”"]


@pytest.mark.parametrize(
    ("question", "kept"),
    [
        ("Should generated clients be committed to the repository?", True),
        ("Which branch naming scheme should the release tool expect?", True),
        ("Should we create a separate table or extend the ledger?", True),
        ("How should these fixups be committed?", False),
        ("Should the new endpoint be part of this change?", False),
        ("Which of the findings should be mended first?", False),
        ("Should I open a draft PR for the exporter?", False),
        ("Which branch should I base the exporter on?", False),
    ],
)
def test_what_is_asked_of_the_work_itself_is_no_decision(question: str, kept: bool) -> None:
    assert bool(decisions_in_answers(f'Your questions have been answered: "{question}"="As it was"')) is kept


def answers(**by_question: str) -> str:
    given = ", ".join(f'"{question.replace("_", " ")}?"="{answer}"' for question, answer in by_question.items())
    return f"Your questions have been answered: {given}. You can now continue with the user's answers in mind."


def test_four_answers_are_kept_and_long_ones_whole_with_their_question_cut() -> None:
    own = 'Neither: the ledger is "append only",\nso a row is marked as void. ' + "An auditor has to see both. " * 15
    question = "Which_of_the_ways_to_remove_rows_of_the_ledger_" + "and_of_every_account_that_it_names_" * 8
    found = decisions_in_answers(
        answers(
            Which_store_holds_ledgers="A",
            Which_colour_do_exports_get="B",
            What_is_sent_to_auditors="C",
            **{question: own},
        )
    )
    assert len(found) == 4
    assert found[3].text.endswith("”, answer “" + " ".join(own.split()) + "”")
    row = memory(
        history(
            ASK,
            ToolCalled(tool="AskUserQuestion", call="c1", input={}),
            ToolReturned(tool="AskUserQuestion", call="c1", text=answers(**{question: own})),
        )
    )
    assert row.decisions[-1].text.endswith("”, answer “" + " ".join(own.split()) + "”")


DRAWN = """User has answered your questions: "Which margin of pages goes?"="Outer (Recommended)" selected preview:
+--"="--+
| "a"   |
+-------+, "To which printed pages does the margin apply?"="Everywhere" user notes: "all of it",
but later, "Which short name of the margin is printed, "x" or "y"?"="Neither: say "z", as in the notes". Go on."""


def test_answers_are_those_to_the_questions_that_were_put_whatever_a_client_writes_between_them() -> None:
    put = [
        ("Which margin of pages goes?", ["Outer", "Outer (Recommended)", "Inner"]),
        ("To which printed pages does the margin apply?", ["Everywhere"]),
        ('Which short name of the margin is printed, "x" or "y"?', ["x", "y"]),
    ]
    questions = [{"question": each, "options": [{"label": label} for label in offered]} for each, offered in put]
    row = memory(
        history(
            ASK,
            ToolCalled(tool="AskUserQuestion", call="c1", input={"questions": questions}),
            ToolReturned(tool="AskUserQuestion", call="c1", text=DRAWN),
        )
    )
    assert [each.text.partition("Question “")[2] for each in row.decisions] == [
        "Which margin of pages goes?”, answer “Outer”",
        "To which printed pages does the margin apply?”, answer “Everywhere”",
        'Which short name of the margin is printed, "x" or "y"?”, answer “Neither: say "z", as in the notes”',
    ]


def test_a_short_question_is_kept_with_what_it_leans_on_or_not_at_all() -> None:
    text = answers(Which_one="Yes")
    assert decisions_in_answers(text) == []
    assert (
        decisions_in_answers(text, {"Which one?": Asked("Store")})[0].text
        == "Question “Store: Which one?”, answer “Yes”"
    )
    asked = history(
        ASK,
        ToolCalled(
            tool="AskUserQuestion", call="c1", input={"questions": [{"question": "Which one?", "header": "Store"}, 7]}
        ),
        ToolReturned(tool="AskUserQuestion", call="c1", text=text),
    )
    [decided] = memory(asked).decisions
    assert (
        decided.text
        == "Question “please fix the crash of the export when the ledger is empty, Store: Which one?”, answer “Yes”"
    )


def test_a_later_answer_to_a_question_takes_the_place_of_the_earlier() -> None:
    asked = [
        answers(Where_should_the_export_folder_be_stored="In the home", Who_may_read_exported_ledgers="All"),
        answers(Where_should_the_export_folder_now_be_stored="Beside the ledger"),
    ]
    payloads: list[Payload] = [ASK]
    for number, text in enumerate(asked):
        payloads.append(ToolCalled(tool="AskUserQuestion", call=f"c{number}", input={}))
        payloads.append(ToolReturned(tool="AskUserQuestion", call=f"c{number}", text=text))
    assert [each.text for each in memory(history(*payloads)).decisions] == [
        "Question “Who may read exported ledgers?”, answer “All”",
        "Question “Where should the export folder now be stored?”, answer “Beside the ledger”",
    ]


def test_an_episode_says_what_the_user_chose_and_of_two_answers_to_one_question_the_later() -> None:
    asked = ({"Where_should_the_export_folder_be_stored": each} for each in ("In the home", "Beside the ledger"))
    payloads: list[Payload] = [ASK]
    for number, each in enumerate(asked):
        payloads.append(ToolCalled(tool="AskUserQuestion", call=f"c{number}", input={}))
        payloads.append(ToolReturned(tool="AskUserQuestion", call=f"c{number}", text=answers(**each)))
    [episode] = [each for each in facts_of(history(*payloads, actor="user")) if isinstance(each, Episode)]
    said = "Question “Where should the export folder be stored?”, answer “Beside the ledger”"
    assert episode.decisions == (EpisodeDecision(said, Provenance.USER_TYPED),)


def test_whose_decision_it_is_stands_in_no_words_of_it() -> None:
    said = "The user decided: all builds fetch wheels from the mirror first"
    [episode] = [each for each in facts_of(history(ASK, DecisionMade(text=said))) if isinstance(each, Episode)]
    assert episode.decisions == (EpisodeDecision(said, Provenance.AGENT),)


def test_each_decision_is_remembered_by_itself_with_whose_it_is() -> None:
    asked = answers(Who_reads_the_ledger_cache="All of them", Who_reads_the_ledger_backup="Nobody else")
    call = ToolCalled(tool="AskUserQuestion", call="c", input={})
    payloads = (ASK, call, ToolReturned(tool="AskUserQuestion", call="c", text=asked), DecisionMade(text="no cache"))
    [episode] = [each for each in facts_of(history(*payloads, actor="user")) if isinstance(each, Episode)]
    kept = memories(None, episode)
    assert kept is not None
    assert [line for line in kept.text.split("\n") if line.startswith("Decided")] == [
        "Decided (said by the user): Question “Who reads the ledger cache?”, answer “All of them”",
        "Decided (said by the user): Question “Who reads the ledger backup?”, answer “Nobody else”",
        "Decided (said by the user): no cache",
    ]


def test_answers_to_two_short_questions_are_two_choices() -> None:
    asked = answers(Who_reads_the_ledger_cache="All", Who_reads_the_ledger_backup="Nobody")
    call = (
        ToolCalled(tool="AskUserQuestion", call="c", input={}),
        ToolReturned(tool="AskUserQuestion", call="c", text=asked),
    )
    [episode] = [each for each in facts_of(history(ASK, *call, actor="user")) if isinstance(each, Episode)]
    assert len(episode.decisions) == 2


# --- plans that were carried out ---

PLAN = """# Plan: Void rows instead of removing them

## Context

Auditors complain that removed rows of a ledger cannot be seen any more. More of that later.

## Design decisions

- **A mark, no table**: a voided row keeps its number and gets a date. It is never shown.
- Run the tests
- `ledger/rows.py`

## Steps

1. Add the column to the rows of the ledger and to the export

## Verification

1. Run `make test` and look at the export of an empty ledger
"""
POINTS = [
    "Planned and done: Void rows instead of removing them. Why: Auditors complain that removed rows of a ledger cannot "
    "be seen any more. More of that later",
    "Planned and done (Void rows instead of removing them, under “Design decisions”): A mark, no table: a voided row "
    "keeps its number and gets a date",
]


def ran(command: str) -> list[Payload]:
    return [
        ToolCalled(tool="Bash", call=command, input={"command": command}),
        ToolReturned(tool="Bash", call=command, text="done", exit_code=0),
    ]


def worked(*, committed: bool) -> list[Payload]:
    edit = {"file_path": "/home/dana/ledger/rows.py", "old_string": "a = 1", "new_string": "a = 2"}
    command = "git commit -m 'Void rows'" if committed else "git status"
    return [
        ToolCalled(tool="Edit", call="e1", input=edit),
        ToolReturned(tool="Edit", call="e1", text="ok"),
        ToolCalled(tool="Bash", call="b1", input={"command": command}),
        ToolReturned(tool="Bash", call="b1", text="[main 1a2b3c4] Void rows", exit_code=0),
    ]


SENT = PromptSubmitted(text=f"Implement the following plan:\n\n{PLAN}")
APPROVED = [
    ToolCalled(tool="ExitPlanMode", call="p1", input={"plan": PLAN}),
    ToolReturned(tool="ExitPlanMode", call="p1", text=f"User has approved your plan.\n\n## Approved Plan:\n{PLAN}"),
]


@pytest.mark.parametrize("plan", [[SENT], [ASK, *APPROVED]], ids=["sent", "approved"])
def test_what_a_plan_decides_is_kept_as_the_agents_once_its_work_is_committed(plan: list[Payload]) -> None:
    row = memory(history(*plan, *worked(committed=True)))
    assert [each.text for each in row.decisions] == POINTS
    assert {each.said_by for each in row.decisions} == {Provenance.AGENT}
    assert memory(history(*plan, *worked(committed=False))).decisions == ()
    assert memory(history(*plan, *worked(committed=True)[2:])).decisions == ()


def settled(*payloads: Payload) -> list[str]:
    """What the last piece of work of this history settles, as it stands."""
    episodes = [each for each in facts_of(history(*payloads)) if isinstance(each, Episode)]
    return [each.text for each in episodes[-1].decisions]


TESTED = [
    ToolCalled(tool="Bash", call="t1", input={"command": "pytest tests"}),
    ToolReturned(tool="Bash", call="t1", text="3 passed in 0.1s", exit_code=0),
]


def test_a_plan_whose_work_passed_its_tests_is_settled_without_a_commit() -> None:
    edit = worked(committed=False)[:2]
    assert settled(SENT, *edit, *TESTED, ResponseReceived(text="The mark is in place.")) == POINTS
    assert settled(SENT, *edit, ResponseReceived(text="The mark is in place.")) == []  # by the agent's word alone
    assert settled(SENT, *TESTED, ResponseReceived(text="The mark is in place.")) == []  # nothing was carried out


LABELLED = """Implement the following plan:

# Export rows by number

## Context

**The problem:** The export sorts rows by their date, so that two of one day change places.
**Prerequisite:** Rows of before 2020 have no number, which the import has to give them first.
**The fix:** Sort by number, which never changes.

## Approach

**File:** `ledger/export.py`

Take the number with the row instead of asking for it again.

```python
# Sorting is what the database does by itself.
```
"""


def test_a_label_in_a_plan_is_a_heading_of_its_line() -> None:
    plan = PromptSubmitted(text=LABELLED)
    title = "Export rows by number"
    assert [each.text for each in memory(history(plan, *worked(committed=True))).decisions] == [
        f"Planned and done: {title}. The problem: The export sorts rows by their date, so that two of one day change "
        "places",
        f"Planned and done: {title}. Prerequisite: Rows of before 2020 have no number, which the import has to give "
        "them first",
        f"Planned and done ({title}): The fix: Sort by number, which never changes",
        f"Planned and done ({title}): Take the number with the row instead of asking for it again",
    ]


def committing(command: str) -> list[Payload]:
    return [
        ToolCalled(tool="Bash", call="b1", input={"command": command}),
        ToolReturned(tool="Bash", call="b1", text="[main 1a2b3c4] Sort rows", exit_code=0),
    ]


WHY = "The export sorted rows by their date, and two rows of one day changed places whenever it ran again."


def test_a_commit_decides_what_its_message_gives_reasons_for() -> None:
    command = f"git add -A && git commit -m \"$(cat <<'EOF'\nSort rows by number\n\n{WHY}\nEOF\n)\""
    decisions = memory(history(ASK, *committing(command))).decisions
    assert [(each.text, each.said_by) for each in decisions] == [
        (f"Committed: Sort rows by number. {WHY}", Provenance.AGENT)
    ]
    failed = ToolFailed(tool="Bash", call="b1", text="nothing to commit", exit_code=1)
    assert memory(history(ASK, committing(command)[0], failed)).decisions == ()
    assert memory(history(ASK, *committing("git commit -m 'Sort rows by number'"))).decisions == ()


REPORT = """All tests pass.

- Replaced `sorted_by_date` with `sorted_by_number` because two rows of one day changed places
- Added a mark

The issue was that `index.py` held dates only, so the database fell back to any order.
"""
THANKS = PromptSubmitted(text="perfect, thanks, that works")
REPORTED = [
    "Done: Replaced `sorted_by_date` with `sorted_by_number` because two rows of one day changed places",
    "The issue was that `index.py` held dates only, so the database fell back to any order.",
]


def test_a_report_settles_what_was_done_and_why_once_the_work_came_to_good() -> None:
    edit, report = worked(committed=False)[:2], ResponseReceived(text=REPORT)
    assert settled(ASK, *edit, *TESTED, report) == REPORTED
    assert settled(ASK, *edit, report) == []
    assert settled(ASK, *TESTED, report, THANKS) == []  # what changed nothing mended nothing
    failed = ToolFailed(tool="Bash", call="t1", text="FAILED tests/a.py::test_a - assert 1 == 2", exit_code=1)
    assert settled(ASK, *edit, TESTED[0], failed, report) == []


def test_what_is_only_advised_says_so() -> None:
    advice = "The export should sort by `number`, which a row keeps for as long as it lives, instead of by date."
    edit = worked(committed=False)[:2]
    assert settled(ASK, *edit, *TESTED, ResponseReceived(text=advice)) == [f"Advised: {advice}"]


def test_a_report_that_the_user_finds_fault_with_settles_nothing_though_the_work_came_to_good() -> None:
    edit, report = worked(committed=False)[:2], ResponseReceived(text=REPORT)
    wrong = PromptSubmitted(text="no, that's wrong, it still sorts by date")
    again = [*edited("export.py", "e3"), *TESTED, ResponseReceived(text="Sorted by number now."), THANKS]
    assert settled(ASK, *edit, *TESTED, report, THANKS) == REPORTED
    assert settled(ASK, *edit, *TESTED, report, wrong, *again) == []


QUESTION = PromptSubmitted(text="why does the export have no header?")
LOOKED = [
    ToolCalled(tool="Read", call="r1", input={"file_path": "/home/dana/ledger/export.py"}),
    ToolReturned(tool="Read", call="r1", text="def export(): ..."),
]
FOUND = "`export.py` writes no header, since the bank's import takes the first line for a booking."


@pytest.mark.parametrize(
    ("payloads", "kept"),
    [
        ([QUESTION, *LOOKED, ResponseReceived(text=FOUND)], [FOUND]),
        ([QUESTION, *LOOKED, ResponseReceived(text=FOUND), PromptSubmitted(text="no, that's wrong, look again")], []),
        ([PromptSubmitted(text="Review the export."), *LOOKED, ResponseReceived(text=FOUND)], [FOUND]),
    ],
)
def test_what_an_answer_says_is_found_unless_the_user_finds_fault(payloads: list[Payload], kept: list[str]) -> None:
    assert settled(*payloads) == kept


def test_what_work_finds_holds_by_itself_and_what_it_did_or_mended_once_it_came_to_good() -> None:
    did = "Added `number` to the rows so that two of one day keep their places."
    was = "The cause is that `rows.py` sorts by dates only."
    edit, report = worked(committed=False)[:2], ResponseReceived(text=f"{FOUND}\n\n{did}\n\n{was}")
    assert settled(ASK, *edit, report) == [FOUND]
    assert settled(ASK, *edit, *TESTED, report) == [f"Done: {did}", was, FOUND]


def test_work_came_to_good_once_a_check_of_the_projects_own_passed_or_the_user_left() -> None:
    edit, said = worked(committed=False)[:2], ResponseReceived(text="The mark is in place.")
    assert settled(SENT, *edit, *ran("make typecheck"), said) == POINTS
    assert settled(SENT, *ran("make typecheck"), *edit, said) == []
    assert settled(SENT, *edit, said, SessionEnded(reason="exit")) == POINTS


def edited(file: str, call: str) -> list[Payload]:
    edit = {"file_path": f"/home/dana/ledger/{file}", "old_string": "b = 1", "new_string": "b = 2"}
    return [ToolCalled(tool="Edit", call=call, input=edit), ToolReturned(tool="Edit", call=call, text="ok")]


OTHERWISE = PromptSubmitted(text="No mark in the ledger, please; a table beside it.")


@pytest.mark.parametrize(
    ("between", "kept"),
    [
        ([OTHERWISE, *edited("rows.py", "e2")], []),
        ([OTHERWISE, *edited("CHANGELOG.md", "e2")], POINTS),
        ([OTHERWISE], POINTS),
        ([OTHERWISE, *edited("CHANGELOG.md", "e2"), *edited("CHANGELOG.md", "e3")], POINTS),
        (edited("rows.py", "e2"), POINTS),
        (ran("git checkout -- ."), []),
        (ran("git restore ledger/rows.py"), []),
        (ran("git restore ledger/"), []),
        ([*ran("git restore ledger/rows.py"), *edited("rows.py", "e2")], POINTS),
        (ran("git checkout main"), POINTS),
        (ran("git stash && make lint; git stash pop"), POINTS),
        (ran("git restore ledger/export.py"), POINTS),
        (ran("git restore ledger/row"), POINTS),
    ],
)
def test_a_plan_is_done_unless_its_work_was_undone_or_changed_again_behind_the_users_word(
    between: list[Payload], kept: list[str]
) -> None:
    edit, commit = worked(committed=True)[:2], worked(committed=True)[2:]
    assert [each.text for each in memory(history(SENT, *edit, *between, *commit)).decisions] == kept


def test_what_the_user_says_before_anything_is_changed_leaves_the_plan_as_it_is() -> None:
    assert [each.text for each in memory(history(SENT, OTHERWISE, *worked(committed=True))).decisions] == POINTS


def test_a_plan_that_is_quoted_by_a_tool_of_others_is_none() -> None:
    called, back = (msgspec.structs.replace(each, tool="mcp__x__ExitPlanMode") for each in APPROVED)
    assert memory(history(ASK, called, back, *worked(committed=True))).decisions == ()


# --- hypotheses that are held ---


def test_the_same_description_merges_and_keeps_the_higher_confidence() -> None:
    held = Hypotheses()
    key = key_of("The cache is stale")
    assert key_of("the cache is  stale.") == key
    held.move(key, "The cache is stale", "proposed", 0.6, "agent")
    again = held.move(key, "the cache is stale.", "proposed", 0.4, "agent")
    assert again is not None
    assert (again.confidence, again.mentions, len(held.open)) == (0.6, 2, 1)


@given(
    st.lists(st.tuples(st.sampled_from("abcdefghijkl"), st.sampled_from(["proposed", "supported"]), st.floats(0, 1)))
)
@settings(max_examples=50)
def test_open_hypotheses_stay_few_and_their_confidence_never_falls_unless_rejected(
    moves: list[tuple[str, str, float]],
) -> None:
    held = Hypotheses()
    before: dict[str, float] = {}
    for key, status, confidence in moves:
        was = {each.key: each.confidence for each in held.open}
        moved = held.move(key, key, status, confidence, "agent")  # type: ignore[arg-type]
        assert moved is not None
        assert moved.confidence >= was.get(key, 0.0)
        before[key] = moved.confidence
    assert len(held.open) <= OPEN


def test_a_confirmed_hypothesis_becomes_a_decision_and_a_rejected_one_leaves() -> None:
    text = "the exporter divides by the number of rows"
    proposed = HypothesisProposed(text=text, confidence=0.8)
    assert [held.text for held in memory(history(ASK, proposed)).hypotheses] == [text]
    confirmed = HypothesisUpdated(hypothesis=key_of(text), text=text, status="confirmed", confidence=CONFIRMED)
    row = memory(history(ASK, proposed, confirmed))
    assert row.hypotheses == ()
    assert [(d.text, d.kind, d.said_by) for d in row.decisions] == [(text, "cause", "agent")]
    rejected = HypothesisUpdated(hypothesis=key_of(text), text=text, status="rejected")
    assert memory(history(ASK, proposed, rejected)).hypotheses == ()


def test_a_cause_that_is_the_problem_is_no_decision_beside_it() -> None:
    cause = "the loader drops `total` before the rows are read"
    confirmed = HypothesisUpdated(hypothesis=key_of(cause), text=cause, status="confirmed", confidence=CONFIRMED)
    facts = derive(STREAM, history(ASK, HypothesisProposed(text=cause), confirmed)).drain()
    episode = [fact for fact in facts if isinstance(fact, Episode)][-1]
    assert (episode.problem, episode.decisions) == (cause, ())


@pytest.mark.parametrize("whose", [{"subagent": "a1"}, {"injected": True}, {"kind": "thinking"}])
def test_a_subagents_words_memctls_own_and_thoughts_settle_nothing(whose: dict[str, Any]) -> None:
    assert settled(QUESTION, *LOOKED, ResponseReceived(text=FOUND)) == [FOUND]
    assert settled(QUESTION, *LOOKED, ResponseReceived(text=FOUND, **whose)) == []


def test_another_task_begins_without_the_hypotheses_of_the_one_before() -> None:
    row = memory(
        history(
            ASK,
            HypothesisProposed(text="the exporter divides by the number of rows"),
            TaskStarted(description="Write the changelog of the next release"),
            TaskStarted(description="Publish the packages to the registry"),
        )
    )
    assert row.task_description == "Publish the packages to the registry"
    assert row.hypotheses == ()


# --- statements ---


def test_a_task_that_was_stated_right_after_its_prompt_is_that_prompts_task() -> None:
    facts = derive(STREAM, history(ASK, TaskStarted(description="Mend the export", task_type="bugfix"))).drain()
    opened = {fact.id: fact for fact in facts if isinstance(fact, TaskOpened)}
    [task] = opened.values()
    assert (task.description, task.task_type) == ("Mend the export", "bugfix")
    assert not [fact for fact in facts if isinstance(fact, TaskClosed)]


def test_a_prompt_after_a_stated_task_is_its_prompt() -> None:
    facts = derive(STREAM, history(TaskStarted(description="Mend the export of empty ledgers"), ASK)).drain()
    assert len({fact.id for fact in facts if isinstance(fact, TaskOpened)}) == 1
    episodes = [fact for fact in facts if isinstance(fact, Episode)]
    assert {episode.description for episode in episodes} == {"Mend the export of empty ledgers"}


def test_a_stated_outcome_wins_over_the_rules() -> None:
    said = TaskCompleted(outcome="partial", note="Windows is left")
    work = (ToolCalled(tool="Write", call="c1", input={"file_path": "a.py", "content": "x"}), ToolReturned(call="c1"))
    thanks = PromptSubmitted(text="perfect, thanks")
    facts = derive(STREAM, history(ASK, *work, thanks, said, actor="user")).drain()
    [closed] = [fact for fact in facts if isinstance(fact, Episode) and fact.closed]
    assert (closed.outcome, closed.why) == ("partial", "the user said so: Windows is left")
    [end] = [fact for fact in facts if isinstance(fact, TaskClosed)]
    assert (end.by, end.outcome) == ("statement", "partial")


def test_a_task_ends_where_it_began_wherever_the_session_has_gone() -> None:
    away = msgspec.structs.replace(history(ASK, TaskCompleted())[1], location="/home/dana/elsewhere")
    moved = msgspec.structs.replace(history(ASK, ResponseReceived(text="On it."))[1], location="/home/dana/lib")
    later = msgspec.structs.replace(history(*[ASK] * 3, TaskCompleted())[3], location="/home/dana/elsewhere")
    for events in ([*history(ASK), away], [*history(ASK), moved, later]):
        facts = derive(STREAM, events).drain()
        places = {fact.location for fact in facts if isinstance(fact, TaskOpened | TaskClosed)}
        assert places == {"/home/dana/ledger"}


def test_a_recorded_decision_takes_the_place_of_the_one_that_was_read() -> None:
    text = "I'll use a partial index instead of a second table"
    row = memory(
        history(ASK, ResponseReceived(text=f"{text}."), DecisionMade(text=text, rationale="writes stay cheap"))
    )
    [decided] = row.decisions
    assert (decided.stated, decided.rationale) == (True, "writes stay cheap")


def test_discoveries_and_summaries_reach_their_rows() -> None:
    events = history(ASK, DiscoveryNoted(text="the wheel lacks the template"), SessionSummarized(summary="Mended."))
    facts = derive(STREAM, [*events]).drain()
    assert [fact.text for fact in facts if isinstance(fact, Discovered)] == ["the wheel lacks the template"]
    assert [fact.summary for fact in facts if isinstance(fact, Summarized)] == ["Mended."]
    _, delta = fold_stream(STREAM, [*events, *_later(ResponseReceived(text="Anything else?"))])
    assert delta.rows["sessions", STREAM].summary == "Mended."


def _later(payload: Payload) -> list[Event]:
    return history(*[ASK] * 5, payload)[-1:]


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(7)))
def test_statements_and_observations_come_out_the_same_in_any_order_of_arrival(order: list[int]) -> None:
    events = history(
        ASK,
        ResponseReceived(text="Root cause: the exporter divides by the number of rows."),
        TaskStarted(description="Mend the export"),
        HypothesisProposed(text="the template is missing from the wheel", confidence=0.7),
        DecisionMade(text="ship the template in the wheel"),
        TaskCompleted(),
        ResponseReceived(text="All done: the template is in the wheel now."),
    )
    assert memory([events[n] for n in order]) == memory(events)


# --- commands ---


def decided(command: StartTask | CompleteTask | UpdateHypothesis, *payloads: Payload) -> Payload:
    return command.decide(history(*payloads))


def test_a_task_that_is_not_open_cannot_be_done() -> None:
    with pytest.raises(NothingOpen):
        decided(CompleteTask(session=STREAM))
    with pytest.raises(NothingOpen):
        decided(CompleteTask(session=STREAM), ASK, TaskCompleted())
    assert decided(CompleteTask(session=STREAM, note=" ok "), ASK) == TaskCompleted(note="ok")


def test_a_hypothesis_is_named_by_the_beginning_of_its_words_or_key() -> None:
    held = HypothesisProposed(text="the template is missing from the wheel")
    key = key_of(held.text)
    for name in ("the template", key[:6], "The template is missing from the wheel."):
        told = decided(UpdateHypothesis(session=STREAM, hypothesis=name, status="confirmed"), ASK, held)
        assert told == HypothesisUpdated(hypothesis=key, text=held.text, status="confirmed", confidence=CONFIRMED)
    with pytest.raises(NoSuchHypothesis, match="the template is missing"):
        decided(UpdateHypothesis(session=STREAM, hypothesis="the wheel", status="rejected"), ASK, held)


def test_open_hypotheses_are_those_that_working_memory_shows() -> None:
    events = history(
        ASK,
        HypothesisProposed(text="the template is missing from the wheel"),
        ResponseReceived(text="I suspect the exporter divides by the number of rows."),
        HypothesisProposed(text="the clock of the runner is wrong"),
        HypothesisUpdated(hypothesis=key_of("the clock of the runner is wrong"), text="", status="rejected"),
    )
    facts = derive(STREAM, events).drain()
    assert [each.text for each in open_hypotheses(facts)] == [each.text for each in memory(events).hypotheses]


@pytest.mark.parametrize(
    ("name", "body", "problem"),
    [
        ("task-start", b'{"description": "   "}', "white space"),
        ("task-start", b'{"description": "x", "type": "epic"}', "type"),
        ("decide", b'{"text": ""}', "length"),
        ("hypothesis-propose", b'{"text": "x", "confidence": 2}', "<= 1"),
        ("hypothesis-update", b'{"hypothesis": "x", "status": "proposed"}', "status"),
    ],
)
def test_a_command_that_says_nothing_or_too_much_is_refused(name: str, body: bytes, problem: str) -> None:
    decide: Callable[[bytes], Payload] = lambda body: read_command(commands()[name], body).decide([])  # noqa: E731
    with pytest.raises(BadCommand, match=problem):
        decide(body)


def test_a_task_that_is_stated_again_in_other_words_is_counted_once() -> None:
    started = TaskStarted(description="Mend the export")
    _, delta = fold_stream(STREAM, history(ASK, started, started))
    (session,) = (row for (name, _), row in delta.rows.items() if name == "sessions")
    (day,) = (row for (name, _), row in delta.rows.items() if name == "stats")
    assert (session.tasks, day.tasks_opened) == (1, 1)
    assert sum(isinstance(fact, TaskOpened) for fact in delta.facts.values()) == 1


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("`Pool.close` does not wait for connections that are in use: it only marks what is open at that time.", 1),
        ("The lock file is kept on purpose, so that a second worker never takes over what the first one has begun.", 1),
        ("`Pool.close` does not wait.", 0),  # says too little
        ("I looked at `Pool.close` and it does not wait for connections in use.", 0),
        ("Perhaps `Pool.close` does not wait for connections that are in use: it only marks what is open.", 0),
        ("Does `Pool.close` not wait for the connections that are in use, because it only marks what is open?", 0),
        ("The pool is opened by the first worker that needs it.", 0),  # neither why nor in contrast to what
        ("```\nPool.close does not wait for connections in use because it only marks what is open\n```", 0),
    ],
)
def test_a_finding_says_much_of_code_and_why_and_nothing_of_the_agent(answer: str, found: int) -> None:
    assert len(found_in(answer)) == found


def test_a_short_list_is_one_finding_with_what_it_is_of_and_a_long_one_several() -> None:
    points = ["Takes twelve digits", "This prevents that longer ones are taken in part"]
    whole = "The pattern in `ids.py`: Takes twelve digits; This prevents that longer ones are taken in part"
    head = "**The pattern** in `ids.py`:"
    assert [each.text for each in found_in("\n".join((head, *(f"- {each}" for each in points))))] == [whole]
    many = [f"`Part{n}` is read {'with all that follows it ' * 4}because part {n} is short" for n in range(9)]
    found = found_in_work(["\n".join((head, *(f"- {each}" for each in many)))])
    assert [each.text for each in found] == [f"The pattern in `ids.py`: {each}" for each in many[:MOST]]


@pytest.mark.parametrize(
    ("lines", "under"),
    [
        (["## Why it waits", "", FOUND], "Why it waits"),
        (["**Why it waits**", FOUND], "Why it waits"),
        (["## Summary", FOUND], ""),  # a word alone names no subject
        (["## Why it waits", "## Summary", FOUND], ""),
        (["## " + "Why it waits " * 8, FOUND], ""),
        (["What the bank wants:", f"- {FOUND}", *(f"- {FOUND} {n}" for n in range(9))], "What the bank wants"),
    ],
)
def test_a_finding_says_what_it_stands_under(lines: list[str], under: str) -> None:
    found = next(each for each in passages_in("\n".join(lines)) if each.text == FOUND)
    assert found.under == under
    assert f"{under}: {FOUND}" * bool(under) in found_in("\n".join(lines))[-1 if len(lines) < 9 else 0].text


def reason(number: int) -> str:
    return f"`Part{number}` is read with all that follows it, because part {number} is short."


def test_the_likeliest_findings_of_a_piece_of_work_are_kept_in_their_order() -> None:
    answers = ["\n\n".join(reason(at * 10 + n + 10) for n in range(MOST + 3)) for at in range(MOST_OF_WORK // MOST + 2)]
    found = [each.text for each in found_in_work(answers)]
    assert len(found) == MOST_OF_WORK
    assert found == sorted(found)
    assert {reason(each + 10 * len(answers)) for each in range(MOST)} < set(found)
    assert sum(text in answers[0] for text in found) < MOST
    assert found_in_work([answers[0], answers[0]]) == found_in_work(answers[:1])


def test_what_the_work_went_on_from_is_worth_it_less_often() -> None:
    likely = Passage(reason(1), leads_on=False, place=0)
    assert [chance(likely._replace(later=n)) for n in range(7)] == sorted(
        (chance(likely._replace(later=n)) for n in range(7)), reverse=True
    )
    short = next(text for n in range(99) if LEAST <= chance(likely._replace(text=(text := reason(1)[: 99 - n]))) < 0.45)
    assert [each.text for each in found_in_work([short])] == [short]
    assert found_in_work([short, *[reason(2)] * 5]) == found_in_work([reason(2)])


@given(st.text(), st.floats(0, 1))
def test_a_longer_reason_is_never_less_likely_worth_keeping(text: str, place: float) -> None:
    passage = Passage(f"{text} `x` is so because of it", leads_on=False, place=place)
    longer = passage._replace(text=f"{passage.text} and of what stands behind it")
    assert chance(passage) == 0 or chance(passage) < chance(longer) or chance(longer) == chance(passage) > 0.99


def test_what_had_been_wrong_is_a_cause_only_where_something_says_of_what() -> None:
    answers = [
        "The problem was that `Pool.close` does not wait, because it only marks what is open.",
        "The error handling in `Pool.close` does not wait for connections that are in use at that time.",
    ]
    found = [found_in(each)[0] for each in answers]
    assert [(each.kind, each.of_work) for each in found] == [("cause", True), ("finding", True)]
    assert found[0].text == answers[0]


def test_the_weights_of_what_is_kept_are_those_that_the_labels_give() -> None:
    labels = Path(__file__).parents[1] / "eval" / "worth.json"
    assert MODEL.fitted_on == hashlib.sha256(labels.read_bytes()).hexdigest()[:16], "run `make calibrate`"
