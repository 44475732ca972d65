"""The read models of one stream: sessions, working memory, episodes."""

from __future__ import annotations

from typing import Any

import msgspec

from memctl.domain.events.event import Micros
from memctl.domain.events.facts import (
    Answered,
    DecisionTaken,
    Episode,
    ErrorOccurred,
    ErrorResolved,
    Fact,
    FileChanged,
    Identified,
    InsightFound,
    PlanChanged,
    Prompted,
    SessionClosed,
    SessionOpened,
    SessionTitled,
    SubagentAsked,
    TaskClosed,
    TaskOpened,
    TokensSpent,
    ToolUsed,
    fact_id,
)
from memctl.domain.support.bounded import LOCATIONS
from memctl.projections.episodes import EpisodeRow, episodes
from memctl.projections.sessions import Session, sessions
from memctl.projections.working_memory import WorkingMemory, working_memory

STREAM = "session/codex/s1"
_clock = iter(range(1, 10**9))


def told(cls: type[Any], **fields: Any) -> Any:
    number = next(_clock)
    if issubclass(cls, Identified):
        fields["id"] = fact_id(STREAM, "x", str(number))
    return cls(
        stream=STREAM,
        occurred_at=Micros(number),
        location=fields.pop("location", "/w/shop"),
        **fields,
    )


def session_after(*facts: Fact) -> Session:
    return sessions(None, facts)  # type: ignore[arg-type]


def memory_after(*facts: Fact) -> WorkingMemory:
    return working_memory(None, facts)  # type: ignore[arg-type]


def test_what_is_known_later_of_an_ended_session_does_not_take_it_up_again() -> None:
    facts = (
        told(SessionOpened, source="startup"),
        told(SessionClosed, reason="exit"),
        told(SessionOpened, branch="main", still=True),
    )
    assert (session_after(*facts).ended_at, session_after(*facts).branch) == (facts[1].occurred_at, "main")
    assert memory_after(*facts).ended_at == facts[1].occurred_at


def test_what_anothers_key_sends_into_a_session_is_none_of_its_words_and_figures() -> None:
    own = told(Prompted, text="Fix the cart", kind="opening")
    sent = [
        told(Prompted, text="Open the vaults", kind="follow_up", through="mallory"),
        told(SessionTitled, title="Vaults", through="mallory"),
        told(Answered, text="They are open.", through="mallory"),
    ]
    row = session_after(own, *sent)
    assert (row.first_prompt, row.title, row.summary, row.prompts, row.through) == ("Fix the cart", "", "", 1, "")
    row = session_after(*sent)
    assert (row.first_prompt, row.title, row.summary, row.prompts) == ("Open the vaults", "Vaults", "They are open.", 1)
    assert row.through == "mallory"


def test_a_session_counts_what_was_done_in_it() -> None:
    opened = told(SessionOpened, source="startup", model="m1", branch="main")
    row = session_after(
        opened,
        told(Prompted, text="Fix  the\ncart", kind="opening"),
        told(Prompted, text="/clear", kind="command"),
        told(Prompted, text="no, the other one", kind="correction", location="/w/shop/web"),
        told(ToolUsed, tool="Edit", family="edit", ok=True),
        told(ToolUsed, tool="Bash", family="run", ok=False),
        told(ToolUsed, tool="Bash", family="run", ok=False, noise=True),
        told(FileChanged, path="a.py", added=3, removed=1),
        told(FileChanged, path="a.py", added=1),
        told(FileChanged, path="b.py", removed=2),
        told(TokensSpent, tokens_in=5, tokens_out=7),
        told(TokensSpent, tokens_in=1, tokens_cached=9),
    )
    assert (row.agent, row.session_id, row.location, row.locations) == (
        "codex",
        "s1",
        "/w/shop",
        ("/w/shop", "/w/shop/web"),
    )
    assert (row.prompts, row.corrections, row.first_prompt) == (2, 1, "Fix the cart")
    assert row.last_prompt == "no, the other one"
    assert (row.tool_calls, row.tool_failures, row.patches_proposed, row.patches_applied) == (3, 1, 1, 3)
    assert (row.files_changed, row.lines_added, row.lines_removed) == (2, 4, 3)
    assert (row.tokens_in, row.tokens_out, row.tokens_cached) == (6, 7, 9)
    assert (row.started_at, row.ended_at, row.starts) == (opened.occurred_at, None, 1)


def test_a_session_keeps_what_was_asked_last_where_it_is_not_what_was_asked_first() -> None:
    first, then, thanks = (
        told(Prompted, text=text, kind=kind)
        for text, kind in (("Fix the cart", "opening"), ("Now the\nfooter", "follow_up"), ("Thanks!", "thanks"))
    )
    assert session_after(first).last_prompt == ""
    assert session_after(first, then, thanks).last_prompt == "Now the footer"
    assert session_after(first, then, told(Prompted, text="Fix the cart", kind="follow_up")).last_prompt == ""


def test_a_session_lists_its_subagents_with_what_they_did() -> None:
    row = session_after(
        told(SessionOpened, source="startup"),
        told(ToolUsed, tool="Grep", family="search", ok=True, subagent="a1"),
        told(ToolUsed, tool="Bash", family="run", ok=False, subagent="a1"),
        told(Answered, text="Three usages", subagent="a1"),
        told(SubagentAsked, asked="a1", role="Explore", about="Find usages", duration_ms=7),
        told(ToolUsed, tool="Bash", family="run", ok=True, subagent="a2"),
    )
    first, second = row.subagents
    assert (first.id, first.role, first.about, first.ok) == ("a1", "Explore", "Find usages", True)
    assert (first.tool_calls, first.tool_failures, first.answers) == (2, 1, 1)
    assert (second.id, second.ok, second.tool_calls) == ("a2", None, 1)
    assert (row.summary, row.tool_calls) == ("", 3)
    many = session_after(*(told(Answered, text="x", subagent=f"a{n}") for n in range(100)))
    assert len(many.subagents) == 32
    own = session_after(told(SessionOpened, parent="p1"), told(Answered, text="x", subagent="s1"))
    assert (own.parent, own.subagents) == ("p1", ())


def test_a_session_taken_up_again_is_open_again() -> None:
    closed = told(SessionClosed, reason="exit")
    ended = session_after(told(SessionOpened, source="startup"), closed)
    assert (ended.ended_at, ended.end_reason) == (closed.occurred_at, "exit")
    again = sessions(ended, [told(SessionOpened, source="resume", model="m2")])
    assert (again.ended_at, again.starts, again.model) == (None, 2, "m2")
    assert sessions(again, [told(SessionOpened, source="compact")]).starts == 2


def test_working_memory_knows_task_plan_and_step() -> None:
    opened = told(TaskOpened, task="t1", canonical="fix cart", description="Fix the cart", task_type="bugfix")
    plan = told(PlanChanged, steps=(("completed", "look"), ("in_progress", "write"), ("pending", "test")))
    row = memory_after(opened, plan)
    assert (row.task, row.task_status, row.current_step) == ("t1", "open", "write")
    assert (row.steps_done, row.pending) == (("look",), ("test",))
    closed = memory_after(
        opened, plan, told(TaskClosed, task="t1", canonical="fix cart", outcome="success", by="next_prompt")
    )
    assert closed.task_status == "closed"
    fresh = memory_after(opened, plan, told(TaskOpened, task="t2", canonical="b", description="B"))
    assert (fresh.task, fresh.plan, fresh.current_step) == ("t2", (), "")


def test_a_file_keeps_its_states_and_accesses() -> None:
    read = told(ToolUsed, tool="Read", family="read", ok=True, files=("a.py",))
    row = memory_after(
        read, told(FileChanged, path="a.py"), told(ToolUsed, tool="Read", family="read", ok=True, files=("a.py",))
    )
    [file] = row.files
    assert (file.state, file.before, file.accesses) == ("edited", "read", 3)
    many = memory_after(*(told(FileChanged, path=f"{i}.py") for i in range(50)))
    assert [file.path for file in many.files][-1] == "49.py"
    assert len(many.files) == 24


def test_ring_buffers_keep_the_latest() -> None:
    uses = [told(ToolUsed, tool=f"t{i}", family="run", ok=True) for i in range(25)]
    errors = [told(ErrorOccurred, signature=f"s{i}", message=f"m{i}") for i in range(9)]
    fixed = told(ErrorResolved, error=errors[-1].id, signature="s8", approach="edited a.py")
    beside = told(ErrorResolved, error=errors[-2].id, signature="s7", approach="the same", part_of=errors[-1].id)
    row = memory_after(*uses, *errors, fixed, beside)
    assert [result.tool for result in row.tool_results] == [f"t{i}" for i in range(15, 25)]
    assert [error.message for error in row.errors] == [f"m{i}" for i in range(4, 9)]
    assert row.errors[-1].resolution == "edited a.py"
    assert [noted.text for noted in row.discoveries] == ["edited a.py"]


def test_what_a_session_showed_the_contrary_of_is_no_discovery() -> None:
    fields = {"kind": "pattern", "canonical": "c", "subject": "c", "confidence": 0.7, "said_by": "tool"}
    row = memory_after(
        told(InsightFound, text="Commit messages follow Conventional Commits", denied=True, **fields),
        told(InsightFound, text="Commit messages are plain sentences", **fields),
    )
    assert [noted.text for noted in row.discoveries] == ["Commit messages are plain sentences"]


def test_a_decision_keeps_what_was_at_hand() -> None:
    row = memory_after(
        told(FileChanged, path="a.py"),
        told(ToolUsed, tool="Bash", family="run", ok=True),
        told(DecisionTaken, text="use tabs", rationale="because", said_by="user_typed"),
    )
    [decided] = row.decisions
    assert (decided.text, decided.said_by) == ("use tabs", "user_typed")
    assert (decided.context.step, decided.context.files, decided.context.decisions) == (1, ("a.py",), 0)


def test_an_episode_is_what_was_told_of_it_last() -> None:
    first = told(
        Episode, task="t", canonical="c", closed=False, description="d", signatures=("s1", "s2"), ended_at=Micros(0)
    )
    last = msgspec.structs.replace(first, closed=True, outcome="success", ended_at=Micros(first.occurred_at + 5))
    row: EpisodeRow | None = None
    for fact in (first, last):
        row = episodes(row, fact)
    assert row is not None
    assert (row.closed, row.outcome, row.stack_signature, row.duration_us) == (True, "success", "s1", 5)


def test_rows_stay_small_whatever_is_told() -> None:
    long = "긴" * 5_000
    facts: list[Fact] = []
    for i in range(60):
        facts += [
            told(Prompted, text=long, kind="opening"),
            told(TaskOpened, task="t", canonical=long, description=long),
            told(ToolUsed, tool=long, family="read", ok=True, files=(f"{i}{long}",), summary=long, result=long),
            told(PlanChanged, steps=tuple(("pending", long) for _ in range(50))),
            told(ErrorOccurred, signature="s", message=long, command=long),
            told(DecisionTaken, text=long, rationale=long),
        ]
    assert len(msgspec.json.encode(memory_after(*facts))) < 64 * 1024


def test_rows_of_a_session_name_every_place_it_worked_in_until_they_are_full() -> None:
    here = [told(ToolUsed, tool="Bash", family="run", ok=True, location=f"/w/{n}") for n in (1, 2, 1, 3)]
    for row in (session_after(*here), memory_after(*here)):
        assert row.locations == ("/w/1", "/w/2", "/w/3")
    assert memory_after(*here).location == "/w/3"
    many = [told(ToolUsed, tool="Bash", family="run", ok=True, location=f"/w/{n}") for n in range(40)]
    assert len(session_after(*many).locations) == len(memory_after(*many).locations) == LOCATIONS
