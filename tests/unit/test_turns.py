"""A session in turns: what a reader of the viewer sees of it."""

from __future__ import annotations

from uuid import uuid4

import msgspec
from events import as_read, observed

from memctl.api.queries.turns import MOST_SHOWN, MOST_STEPS, turns_of
from memctl.api.reading.records import TurnItem
from memctl.domain.events.event import Event, Micros, NewEvent
from memctl.domain.events.event_order import EventOrder
from memctl.domain.events.observations import (
    ContextCompacted,
    Hunk,
    Observation,
    PromptSubmitted,
    ResponseReceived,
    ToolCalled,
    ToolFailed,
    ToolReturned,
)
from memctl.domain.events.recalls import BECAUSE, SILENT, MemoryRecalled, PassedOver, RecalledMemory


def read(*payloads: Observation | NewEvent) -> list[Event]:
    """Payloads as blocks of one transcript, a second apart; a ready event as it is."""
    events = []
    for n, each in enumerate(payloads):
        event = observed(each, at=n) if isinstance(each, Observation) else each
        events.append(as_read(event, n + 1))
    return events


def turns(*payloads: Observation | NewEvent) -> list[TurnItem]:
    placed = EventOrder().place(read(*payloads))
    assert placed is not None
    return turns_of(placed)


def prompted(line: str, text: str, **more: object) -> PromptSubmitted:
    return PromptSubmitted(line=line, text=text, **more)  # type: ignore[arg-type]


def answered(line: str, text: str) -> ResponseReceived:
    return ResponseReceived(line=line, text=text)


def test_a_prompt_begins_a_turn_and_its_last_answer_ends_it() -> None:
    first, second = turns(
        prompted("a", "mend the parser"),
        answered("b", "I look first."),
        answered("c", "It is mended."),
        prompted("d", "and the tests?"),
        answered("e", "They pass."),
    )
    assert (first.prompt, [step.text for step in first.steps]) == ("mend the parser", ["I look first."])
    assert first.answer is not None
    assert first.answer.text == "It is mended."
    assert (second.prompt, second.steps) == ("and the tests?", [])
    assert second.answer is not None
    assert second.answer.text == "They pass."


def test_a_use_of_a_tool_is_one_step_with_what_came_back() -> None:
    (turn,) = turns(
        prompted("a", "run it"),
        ToolCalled(line="b", tool="Bash", call="1", input={"command": "make all"}),
        ToolFailed(line="c", tool="Bash", call="1", text="no rule to make target", exit_code=2, duration_ms=1500),
        ToolCalled(line="d", tool="Edit", call="2", input={"file_path": "/p/Makefile"}),
        ToolReturned(
            line="e", tool="Edit", call="2", file="/p/Makefile", patch=(Hunk(1, 1, (" x", "-old", "+new", "+more")),)
        ),
    )
    failed, edited = turn.steps
    assert (failed.tool, failed.about, failed.ended, failed.text, failed.duration_ms) == (
        "Bash", "make all", "failed", "no rule to make target", 1500,
    )  # fmt: skip
    assert (edited.files, edited.ended, edited.text, edited.patch) == (
        ["/p/Makefile"], "well", "", [" x", "-old", "+new", "+more"],
    )  # fmt: skip
    assert (turn.failures, turn.files, turn.lines_added, turn.lines_removed) == (1, ["/p/Makefile"], 2, 1)
    assert turn.tools == [("Bash", 1), ("Edit", 1)]


def test_a_hook_and_its_transcript_are_one_prompt() -> None:
    hook = prompted("", "mend the parser", via="hook")
    delivered_by = observed(hook, at=0)
    delivered = NewEvent(
        stream=delivered_by.stream,
        payload=hook,
        occurred_at=delivered_by.occurred_at,
        dedupe_key="hook:1",
        actor="user",
        session_id="s1",
    )
    found = turns(delivered, prompted("a", "mend the parser"), answered("b", "done"))
    assert [turn.prompt for turn in found] == ["mend the parser"]


def test_what_memory_injected_stands_in_the_turn_that_asked() -> None:
    hook = prompted("", "why does it fail", via="hook")
    asked = NewEvent(
        stream=observed(hook).stream,
        payload=hook,
        occurred_at=Micros(1_772_452_800_000_000),
        dedupe_key="hook:1",
        actor="user",
    )
    recall = MemoryRecalled(
        hook="UserPromptSubmit", memories=(RecalledMemory("m1", 0.8),), asked_by=as_read(asked, 1).event_id
    )
    given = NewEvent(
        stream=asked.stream,
        payload=recall,
        occurred_at=asked.occurred_at,
        dedupe_key=f"recall:{uuid4()}",
        actor="memctl",
    )
    (turn,) = turns(asked, given, answered("b", "because"))
    assert [(each.id, each.score, each.hook, each.withheld) for each in turn.injected] == [
        ("m1", 0.8, "UserPromptSubmit", False)
    ]


def test_a_turn_says_why_memory_kept_silent_and_what_it_left_out() -> None:
    silent = MemoryRecalled(hook="UserPromptSubmit", passed_over=(PassedOver("m2", 0.3, "no lead"),))
    asked = observed(prompted("a", "why does it fail"))
    later = Micros(asked.occurred_at + 1)
    given = msgspec.structs.replace(asked, payload=silent, dedupe_key="recall:1", actor="memctl", occurred_at=later)
    (turn,) = turns(asked, given, answered("b", "because"))
    assert (turn.injected, turn.silent) == ([], SILENT[""])
    assert [(each.id, each.score, each.why) for each in turn.left_out] == [("m2", 0.3, BECAUSE["no lead"])]


def test_what_stands_before_the_first_prompt_is_a_turn_without_one() -> None:
    (turn,) = turns(ContextCompacted(line="a", text="so far"), answered("b", "going on"))
    assert (turn.event, turn.prompt, turn.at) == ("", "", None)
    assert [step.kind for step in turn.steps] == ["compacted"]


def test_a_subagents_words_are_no_answer_and_its_prompt_no_turn() -> None:
    (turn,) = turns(
        prompted("a", "look into it"),
        prompted("b", "you look for callers", subagent="x"),
        ResponseReceived(line="c", text="there are four", subagent="x"),
    )
    assert turn.answer is None


def test_a_turn_of_many_steps_shows_its_first_and_all_that_failed() -> None:
    uses: list[Observation] = []
    for n in range(MOST_SHOWN * 2):
        uses.append(ToolCalled(line=f"c{n}", tool="Bash", call=str(n), input={"command": f"make {n}"}))
        outcome = ToolFailed if n == MOST_STEPS + 9 else ToolReturned
        uses.append(outcome(line=f"r{n}", tool="Bash", call=str(n)))
    (turn,) = turns(prompted("a", "go"), *uses)
    assert turn.steps_in_all == MOST_SHOWN * 2
    assert [step.about for step in turn.steps[-2:]] == [f"make {MOST_STEPS - 1}", f"make {MOST_STEPS + 9}"]
