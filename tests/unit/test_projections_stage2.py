"""The read models of stage 2, each told as a short history."""

from __future__ import annotations

from itertools import pairwise, permutations
from typing import Any
from uuid import UUID

import msgspec
import pytest
from unit.test_projection_laws import MiniKernel, folded

from memctl.domain.events.event import Micros, derived_id
from memctl.domain.events.facts import (
    Edit,
    Episode,
    EpisodeDecision,
    ErrorOccurred,
    ErrorResolved,
    Fact,
    InsightFound,
    Prompted,
    ResolutionRefuted,
    TaskClosed,
    TaskOpened,
    ToolUsed,
    Turn,
    quote,
)
from memctl.domain.events.open_threads import Thread
from memctl.domain.support.bounded import names
from memctl.projections.bug_patterns import BugPattern, bug_patterns
from memctl.projections.bug_sightings import SHARES, BugSightings, Sightings, bug_sightings
from memctl.projections.candidates import ClaimCandidate, candidates
from memctl.projections.insights import Insight, insights
from memctl.projections.kernel import Changed, projections
from memctl.projections.memories import memories
from memctl.projections.memory_rows import Memory
from memctl.projections.stats import DAY, stats
from memctl.projections.tasks import Task, tasks
from memctl.projections.vector_points import MOST_POINTS, VectorPoint, line_at, points_of, vector_points
from memctl.projections.verified_knowledge import VerifiedKnowledge, verified_knowledge

HOUR = 3_600_000_000
NOON = 1_769_083_200_000_000  # 2026-01-22T12:00:00Z
SHOP = "/home/dana/shop"
SHARE = next(p for p in projections(2) if p.name == "bug_sightings")


def at(hours: float, session: str = "s1", **more: Any) -> dict[str, Any]:
    moment = Micros(int(NOON + hours * HOUR))
    about = derived_id(f"{moment}{session}{sorted(more.items())}")
    return {"id": about, "stream": f"session/claude-code/{session}", "occurred_at": moment, "location": SHOP}


def history(fold: Any, *facts: Fact) -> Any:
    row = None
    for fact in facts:
        row = fold(row, fact)
    return row


def said(hours: float, text: str, canonical: str, polarity: int = 1, **more: Any) -> InsightFound:
    fields: dict[str, Any] = {
        "kind": "preference",
        "subject": "one/package manager",
        "confidence": 0.8,
        "said_by": "user_typed",
        "evidence": (quote(UUID(int=int(hours * 60)), text),),
    }
    place = at(hours, str(more.pop("session", "s1")), about=text)
    return InsightFound(**place, text=text, canonical=canonical, polarity=polarity, **(fields | more))


def candidate_of(*facts: InsightFound) -> ClaimCandidate:
    insight: Insight = history(insights, *facts)
    found = candidates(None, Changed(insight.id, insight))
    assert found is not None
    return found


def knowledge_of(*found: ClaimCandidate) -> VerifiedKnowledge | None:
    row: VerifiedKnowledge | None = None
    for candidate in found:
        row = verified_knowledge(row, Changed(candidate.id, candidate))
    return row


# --- tasks ---


def opened(hours: float, session: str = "s1") -> TaskOpened:
    about = "Add rate limiting to the API"
    return TaskOpened(
        **at(hours, session, o=1), task="t", canonical="add rate limiting", description=about, task_type="feature"
    )


def closed(hours: float, by: str, outcome: Any = "success", session: str = "s1") -> TaskClosed | Episode:
    """The work was closed for good, or ended in a session that may go on with it."""
    place = at(hours, session, c=1)
    if by in ("next_prompt", "statement"):
        return TaskClosed(**place, task="t", canonical="add rate limiting", outcome=outcome, by=by)
    return Episode(
        **place, task="t", canonical="add rate limiting", description="", closed=False, outcome=outcome,
        ended_at=place["occurred_at"], ended_by=by,
    )  # fmt: skip


def test_a_task_is_open_until_something_but_the_sessions_end_closes_it() -> None:
    task: Task = history(tasks, opened(0), closed(1, "session_end", "unknown"))
    assert (task.status, task.outcome, task.description) == ("open", "unknown", "Add rate limiting to the API")
    task = history(
        tasks, opened(0), closed(1, "session_end", "unknown"), opened(5, "s2"), closed(6, "next_prompt", session="s2")
    )
    assert (task.status, task.outcome, task.opened, task.closed) == ("done", "success", 2, 2)
    assert [s.name for s in task.sessions] == ["session/claude-code/s2", "session/claude-code/s1"]


def test_a_commit_ends_a_task_and_a_session_that_goes_on_does_not() -> None:
    task: Task = history(tasks, opened(0), closed(1, "commit"))
    assert (task.status, task.outcome, task.closed) == ("done", "success", 1)
    task = history(tasks, opened(0), closed(3, "", "unknown"))
    assert (task.status, task.outcome, task.closed, task.last_at) == ("open", "unknown", 0, NOON + 3 * HOUR)


def test_work_that_went_well_is_done_whatever_ended_it_and_what_it_leaves_keeps_it_open() -> None:
    done = closed(3, "")
    assert isinstance(done, Episode)
    assert history(tasks, opened(0), done).status == "done"
    waits = msgspec.structs.replace(done, threads=(Thread("promised", "Waiting on completion."),))
    task: Task = history(tasks, opened(0), waits)
    assert (task.status, task.work and task.work.left) == ("open", ("Waiting on completion.",))
    assert history(tasks, opened(0), done, opened(5, "s2")).status == "open"
    assert history(tasks, opened(0), done, closed(6, "", "partial", "s2")).status == "open"


def test_a_task_that_succeeded_is_done_though_only_its_session_ended() -> None:
    task: Task = history(tasks, opened(0), closed(1, "session_end", "success"))
    assert (task.status, task.outcome) == ("done", "success")
    task = history(tasks, opened(0), closed(1, "session_end", "partial"))
    assert (task.status, task.outcome) == ("open", "partial")


def test_the_work_says_of_what_type_a_task_is_and_its_first_words_only_until_then() -> None:
    worked = msgspec.structs.replace(closed(2, "commit"), task_type="bugfix")
    assert history(tasks, opened(0)).task_type == "feature"
    for facts in ((opened(0), worked), (worked, opened(0)), (opened(0), worked, closed(5, "", session="s2"))):
        assert history(tasks, *facts).task_type == "bugfix"


def test_a_task_taken_up_again_is_open_again() -> None:
    task: Task = history(tasks, closed(1, "next_prompt"), opened(9, "s2"), opened(0))
    assert task.status == "open"
    assert (task.first_at, task.last_at) == (NOON, NOON + 9 * HOUR)


# --- the claims' road from L1 to L4 ---


def test_a_claim_repeated_in_other_sessions_grows_surer_and_one_repeated_in_a_breath_does_not() -> None:
    here = history(insights, said(0, "use pnpm", "pnpm"), said(1, "use pnpm!", "pnpm"))
    there = history(insights, said(0, "use pnpm", "pnpm"), said(1, "use pnpm!", "pnpm", session="s2"))
    assert (here.sayings, len(here.sessions), here.confidence) == (2, 1, 0.8)
    assert (there.sayings, len(there.sessions), there.confidence) == (2, 2, 0.84)
    assert there.text == "use pnpm!"


def test_the_users_words_are_shown_even_where_an_agents_are_newer() -> None:
    row = history(insights, said(0, "always use pnpm", "pnpm"), said(4, "pnpm is used", "pnpm", said_by="agent"))
    assert (row.text, row.said_by) == ("always use pnpm", "user_typed")


def test_an_agents_claim_waits_for_a_person_however_often_it_is_made() -> None:
    facts = [said(n, "tests run with pytest", "pytest", said_by="agent", session=f"s{n}") for n in range(8)]
    waiting = candidate_of(*facts)
    assert (waiting.ready, waiting.sessions) == (False, 0)
    assert "a person's yes: it is written by an agent" in waiting.missing[0]
    assert knowledge_of(waiting) is None


def test_forks_and_copies_of_one_session_count_once() -> None:
    facts = [
        said(n, "tests run with pytest", "pytest", kind="pattern", said_by="tool", session=f"s{n}") for n in range(3)
    ]
    forks = [msgspec.structs.replace(fact, lineage="one") for fact in facts]
    assert candidate_of(*facts).ready
    assert (candidate_of(*forks).ready, candidate_of(*forks).sessions) == (False, 1)
    assert len(history(insights, *forks).sessions) == 3


def test_sessions_that_show_the_contrary_hold_a_habit_back_whenever_they_come() -> None:
    shown = [said(n, "commits are signed", "signed", kind="pattern", said_by="tool", session=f"s{n}") for n in range(4)]
    against = [
        said(n, "commits are signed", "signed", kind="pattern", said_by="tool", session=f"s{n}", denied=True)
        for n in (4, 5)
    ]
    assert candidate_of(*shown).ready
    assert candidate_of(*shown, against[0]).ready
    rows = {history(insights, *facts) for facts in permutations([*shown[:2], *against])}
    assert len(rows) == 1
    mixed = candidate_of(*against, *shown)
    assert not mixed.ready
    assert "4 more sessions" in mixed.missing[0]
    alone = history(insights, against[0])
    assert (alone.sayings, alone.sessions, alone.text) == (0, (), "commits are signed")


def test_a_claim_without_a_quote_never_passes() -> None:
    candidate = candidate_of(said(0, "always use pnpm", "pnpm", evidence=()))
    assert not candidate.ready
    assert [c.name for c in candidate.checks if not c.passed] == ["evidence"]


def test_both_sides_of_a_conflict_are_kept_with_their_dates_and_the_newer_word_stands() -> None:
    npm, pnpm = candidate_of(said(0, "always use npm", "npm")), candidate_of(said(24, "always use pnpm", "pnpm"))
    row = knowledge_of(npm, pnpm)
    assert row is not None
    assert row == knowledge_of(pnpm, npm)
    assert (row.status, row.text) == ("conflicted", "always use pnpm")
    assert [(c.text, c.superseded_by == pnpm.id, c.valid_until) for c in row.claims] == [
        ("always use pnpm", False, None),
        ("always use npm", True, NOON + 24 * HOUR),
    ]


def test_a_claim_that_is_gone_leaves_the_other_side_standing() -> None:
    npm, pnpm = candidate_of(said(0, "always use npm", "npm")), candidate_of(said(24, "always use pnpm", "pnpm"))
    row = verified_knowledge(knowledge_of(npm, pnpm), Changed(pnpm.id, None))
    assert row == knowledge_of(npm)
    assert row is not None
    assert (row.status, row.text) == ("verified", "always use npm")
    assert verified_knowledge(row, Changed(npm.id, None)) is None


def test_a_preference_becomes_a_memory_that_tells_what_it_replaced() -> None:
    npm, pnpm = candidate_of(said(0, "always use npm", "npm")), candidate_of(said(24, "always use pnpm", "pnpm"))
    row = knowledge_of(npm, pnpm)
    assert row is not None
    memory = memories(None, Changed(row.id, row))
    assert memory is not None
    assert (memory.bucket, memory.status, memory.location) == ("PREFERENCE", "conflicted", SHOP)
    assert memory.text == ("always use pnpm\nBefore: always use npm (2026-01-22 to 2026-01-23; said by you)")
    assert memories(memory, Changed(row.id, None)) is None


# --- bug patterns ---

CRASH = {
    "signature": "c0ffee",
    "error_types": ("TypeError",),
    "template": "total() got <str>",
    "message": "total() got 'x'",
    "files": ("src/pricing.py",),
    "command": "pytest -q",
}


def fixed(hours: float, approach: str = "Convert the price to a number") -> ErrorResolved:
    return ErrorResolved(
        **at(hours, about=approach),
        error=UUID(int=1),
        signature="c0ffee",
        command="pytest -q",
        edits=(Edit("src/pricing.py", "x", "float(x)"),),
        explanation="It fails because prices came as text.",
        approach=approach,
        duration_us=6 * HOUR,
    )


def pattern_of(*facts: Fact) -> BugPattern:
    shares: dict[str, BugSightings | None] = {}
    for fact in facts:
        [key] = SHARE.keys(fact)
        shares[key] = bug_sightings(shares.get(key), fact)
    row = history(bug_patterns, *(Changed(key, share) for key, share in shares.items()))
    assert isinstance(row, BugPattern)
    return row


def test_an_error_and_its_fix_make_a_pattern_with_a_solution() -> None:
    pattern = pattern_of(ErrorOccurred(**at(0), **CRASH), fixed(6))
    assert (pattern.occurrences, pattern.resolutions, pattern.mean_resolve_us) == (1, 1, 6 * HOUR)
    assert pattern.shape.file_types == ("python",)
    assert pattern.shape.frameworks == ("pytest",)
    (solution,) = pattern.solutions
    assert (solution.approach, solution.uses, solution.success_rate) == ("Convert the price to a number", 1, 0.65)
    assert solution.conditions == ("`pytest -q` failed", "python files", "pytest")


def test_the_time_to_a_fix_leaves_out_while_nobody_worked() -> None:
    fix = msgspec.structs.replace(fixed(6), idle_us=4 * HOUR)
    assert pattern_of(ErrorOccurred(**at(0), **CRASH), fix).mean_resolve_us == 2 * HOUR
    assert stats(None, [fix]).resolve_us_total == 2 * HOUR


def test_a_fix_that_did_not_last_counts_against_it_even_where_the_refutation_came_first() -> None:
    fix = fixed(6)
    refuted = ResolutionRefuted(**at(7), resolution=fix.id, signature="c0ffee")
    facts: tuple[Fact, ...] = (ErrorOccurred(**at(0), **CRASH), fix, refuted)
    pattern = pattern_of(*facts)
    assert pattern == pattern_of(*reversed(facts))
    assert [(s.successes, s.success_rate) for s in pattern.solutions] == [(0, 0.35)]


def test_what_copies_and_forks_of_a_session_repeat_counts_once() -> None:
    facts: list[Fact] = []
    for number, lineage in enumerate(("first", "first", "first", "other")):
        stream = f"session/claude-code/copy-{number}"
        error, fix = ErrorOccurred(**at(0), **CRASH), fixed(6)
        refuted = ResolutionRefuted(**at(7), resolution=fix.id, signature="c0ffee")
        facts += [
            msgspec.structs.replace(each, stream=stream, lineage=lineage, id=UUID(int=10 * number + part))
            for part, each in enumerate((error, fix, refuted), 1)
        ]
    pattern = pattern_of(*facts)
    assert (pattern.occurrences, pattern.resolutions, pattern.refutations) == (2, 2, 2)
    assert pattern.mean_resolve_us == 6 * HOUR
    assert pattern == pattern_of(*reversed(facts))


def test_sessions_are_dealt_out_and_put_together_again_as_if_one_row_had_seen_them_all() -> None:
    facts: list[Fact] = []
    for number in range(200):
        session = f"s{number}"
        error = {**CRASH, "code": f"total(line_{number})", "beside": (f"beside-{number % 9}",)}
        facts += [ErrorOccurred(**at(number, session), **error)]
        facts += [msgspec.structs.replace(fixed(number + 0.5), stream=facts[-1].stream, id=UUID(int=number))]
    assert 20 < len({key for fact in facts for key in SHARE.keys(fact)}) <= SHARES
    pattern = pattern_of(*facts)
    assert (pattern.occurrences, pattern.resolutions, pattern.first_seen) == (200, 200, NOON)
    assert pattern == pattern_of(*reversed(facts))
    alone = None
    for fact in facts:
        alone = bug_sightings(alone, fact)
    assert alone is not None
    fields = Sightings.__struct_fields__
    assert {name: getattr(pattern, name) for name in fields} == {name: getattr(alone, name) for name in fields}
    assert names(pattern.code) == tuple(f"total(line_{number})" for number in (199, 198, 197, 196))
    assert len(names(pattern.related)) == 8


def test_what_was_said_of_one_example_is_not_said_of_another_whose_message_names_other_things() -> None:
    said = "It fails because `oldPrice` was renamed."
    fix = msgspec.structs.replace(
        fixed(6, f"{said[:-1]}: `a` became `b` in x.py"), explanation=said, message="'oldPrice' is not defined"
    )
    for name, causes, approach in (
        ("oldPrice", [said], fix.approach),
        ("newVoucher", [], "`a` became `b` in x.py"),
    ):
        latest = {**CRASH, "message": f"'{name}' is not defined"}
        pattern = pattern_of(ErrorOccurred(**at(0), **CRASH), fix, ErrorOccurred(**at(7), **latest))
        assert pattern.own_causes == causes
        assert [each.approach for each in pattern.solutions] == [approach]


@pytest.mark.parametrize(
    ("message", "holds"),
    [
        ("sed: can't read cart/total.go: No such file or directory", True),
        ("sed: can't read src/cart/total.go: No such file or directory", False),
        ("sed: can't read src/voucher.go: No such file or directory", False),
    ],
)
def test_another_call_is_the_way_out_of_no_other_message_of_its_kind(message: str, holds: bool) -> None:
    way = "ran it in `shop/src` instead of `shop`"
    missing = "sed: can't read cart/total.go: No such file or directory"
    fix = msgspec.structs.replace(fixed(6, way), edits=(), explanation="", message=missing, instead=True)
    latest = ErrorOccurred(**at(7), **{**CRASH, "message": message})
    ways = [way] if holds else []
    pattern = pattern_of(ErrorOccurred(**at(0), **{**CRASH, "message": missing}), fix, latest)
    assert [each.approach for each in pattern.solutions] == ways
    assert [each.approach for each in pattern.solutions_for(missing)] == [way]
    changed = msgspec.structs.replace(fix, instead=False)
    assert [each.approach for each in pattern_of(changed, latest).solutions] == [way]


def test_a_cause_is_not_said_of_another_path_that_only_lies_in_a_folder_of_the_same_name() -> None:
    said = "It fails because `shop` never writes it."
    missing = "pathspec '.shop/rates.json' did not match any files"
    fix = msgspec.structs.replace(fixed(6, f"{said[:-1]}: `a` became `b` in x.py"), explanation=said, message=missing)
    latest = ErrorOccurred(**at(7), **{**CRASH, "message": "pathspec 'src/shop/total.py' did not match any files"})
    pattern = pattern_of(fix, latest)
    assert pattern.own_causes == []
    assert [each.approach for each in pattern.solutions] == ["`a` became `b` in x.py"]
    assert [each.approach for each in pattern.solutions_for(missing)] == [fix.approach]


@pytest.mark.parametrize(
    ("types", "template", "frames", "known"),
    [
        (("exit",), "node exited with code <n>", (), False),
        (("error",), "') exited with code <n>", (), False),
        (("error",), "build failed", (), False),
        (("error",), "no plan was given", (), True),
        (("test failure",), "failed", ("test_total",), True),
    ],
)
def test_of_an_error_that_only_says_that_something_failed_no_way_out_is_known(
    types: tuple[str, ...], template: str, frames: tuple[str, ...], known: bool
) -> None:
    error = {**CRASH, "error_types": types, "template": template, "frames": frames}
    assert bool(pattern_of(ErrorOccurred(**at(0), **error), fixed(6)).solutions) == known


def test_a_call_holds_for_the_same_message_wherever_the_project_lies() -> None:
    fix = msgspec.structs.replace(
        fixed(6, "ran `make -C shop`"), edits=(), message="no Go files in /home/dana/shop", instead=True
    )
    for folder, count in (("/srv/work/shop", 1), ("C:/work/shop", 1), ("/home/dana/cart", 0)):
        latest = ErrorOccurred(**at(7), **{**CRASH, "message": f"no Go files in {folder}"})
        assert len(pattern_of(fix, latest).solutions) == count


def test_the_same_edit_is_one_solution_however_it_was_explained() -> None:
    edits = (Edit("src/pricing.py", "return price * count", "return float(price) * count"),)
    one = msgspec.structs.replace(fixed(6, "The form gives text (edited pricing.py)"), edits=edits)
    other = msgspec.structs.replace(fixed(9, "Quantities failed in checkout (edited cart.py)"), edits=edits)
    slight = msgspec.structs.replace(fixed(12, "A bracket was missing"), edits=(Edit("b.py", "", ")"),))
    solutions = pattern_of(ErrorOccurred(**at(0), **CRASH), one, other, slight).solutions
    assert [solution.uses for solution in solutions] == [2, 1]
    formatted = [
        msgspec.structs.replace(fixed(hour, why), edits=(), ran=("pnpm run format",))
        for hour, why in ((20, "The formatter disagrees (ran …)"), (21, "Line 9 is too long, so it was wrapped"))
    ]
    assert [solution.uses for solution in pattern_of(*formatted).solutions] == [2]
    assert solutions[0].description == "It fails because prices came as text."
    unlinked = msgspec.structs.replace(other, explanation="Prices are text.")
    assert names(pattern_of(one, unlinked).causes) == ("It fails because prices came as text.",)


def test_a_pattern_becomes_a_memory_that_shows_the_way_out() -> None:
    pattern = pattern_of(ErrorOccurred(**at(0), **CRASH), fixed(6))
    memory = memories(None, Changed(pattern.signature, pattern))
    assert memory is not None
    assert (memory.kind, memory.bucket, memory.outcome) == ("bug_pattern", "FACT", "solved")
    assert memory.gist == "TypeError: total() got 'x' → Convert the price to a number"
    assert "prices came as text" in memory.text
    assert "shop 2026-01-22 January" in memory.search_text
    unsolved = pattern_of(ErrorOccurred(**at(0), **CRASH))
    bare = memories(None, Changed(pattern.signature, unsolved))
    assert bare is not None
    assert bare.importance < memory.importance


# --- turns and episodes ---


@pytest.mark.parametrize(
    "prompt", ["yes", "ok, continue", "commit and push please", "/clear", "8", "네 진행해줘", "고마워!"]
)
def test_a_turn_that_only_steers_makes_no_memory(prompt: str) -> None:
    assert memories(None, Turn(**at(0), prompt=prompt, answer="Done. " * 20)) is None


def test_a_turn_is_remembered_with_its_question_first() -> None:
    turn = Turn(
        **at(0),
        prompt="Why does the checkout time out?\nIt worked last week.",
        answer="The root cause is the connection pool. It holds 5 connections.",
        files=("src/pool.py",),
    )
    memory = memories(None, turn)
    assert memory is not None
    assert (memory.bucket, memory.title) == ("EPISODIC", "Why does the checkout time out? It worked last week.")
    assert memory.gist.endswith("→ The root cause is the connection pool. It holds 5 connections.")
    assert memory.text.startswith("Why does the checkout time out?")
    assert memory.importance == pytest.approx(0.55)
    assert memory.source.key == str(turn.id)


def test_an_episode_is_remembered_by_what_came_of_it_and_revised_while_it_is_open() -> None:
    begun = Episode(**at(0), task="t", canonical="c", closed=False, description="Make the checkout retry", steps=3)
    done = msgspec.structs.replace(
        begun, closed=True, outcome="success", why="tests passed", solution="Retry with backoff.", files=("src/pay.py",)
    )
    first, last = memories(None, begun), memories(None, done)
    assert first is not None
    assert last is not None
    assert (first.id, first.outcome) == (last.id, "open")
    assert last.text.splitlines()[:2] == ["Make the checkout retry", "Outcome: success (tests passed)"]
    assert last.importance > first.importance


def points(memory: Memory) -> list[VectorPoint]:
    change = Changed(memory.id, memory)
    made = [vector_points(None, change, key) for key in vector_points.keys(change)]
    assert made == points_of(memory)
    return points_of(memory)


def test_a_memory_has_one_point_that_goes_with_it() -> None:
    memory = memories(None, Turn(**at(0), prompt="Why does the checkout time out?", answer="The pool is too small."))
    assert isinstance(memory, Memory)
    (point,) = points(memory)
    assert UUID(point.id).version == 5
    assert (point.dense_text, point.sparse_text) == (memory.gist, memory.search_text)
    (key,) = vector_points.keys(Changed(memory.id, memory))
    assert (point.id, point.chunk) == (key, 0)
    again = vector_points(point, Changed(memory.id, msgspec.structs.replace(memory, importance=0.9)), key)
    assert again == point
    assert vector_points(point, Changed(memory.id, None), key) is None


FOUND = ("The pool holds five connections, and each request takes two of them.",
         "A retry without a pause takes the connection that the first try still holds.")  # fmt: skip


def test_each_line_of_an_episode_that_says_something_is_a_point_found_by_meaning_alone() -> None:
    work = Episode(
        **at(0), task="t", canonical="c", closed=True, description="Make the checkout retry", steps=3,
        outcome="success", files=("src/a_file_with_quite_a_long_name/of_the_checkout.py",),
        decisions=tuple(EpisodeDecision(text, kind="finding") for text in (*FOUND, "Too short.")),
    )  # fmt: skip
    memory = memories(None, work)
    assert isinstance(memory, Memory)
    own, *lines = points(memory)
    assert (own.chunk, own.sparse_text) == (0, memory.search_text)
    assert [(line.chunk, line.dense_text, line.sparse_text) for line in lines] == [
        (number, f"Make the checkout retry: {text}", "") for number, text in enumerate(FOUND, 1)
    ]
    assert len({own.id, *(line.id for line in lines)}) == 3
    assert {line.memory_id for line in lines} == {memory.id}
    elsewhere = [str(UUID(int=UUID(line.id).int ^ 6)) for line in lines]  # in the store, of another space
    for ids in ([line.id for line in lines], elsewhere):
        assert [line_at(memory, id) for id in ids] == list(FOUND)
    assert line_at(memory, own.id) == line_at(memory, "") == ""


def test_a_line_that_an_episode_no_longer_holds_leaves_no_point() -> None:
    works = [
        Episode(
            **at(0), task="t", canonical="c", closed=True, description="Make the checkout retry", outcome="success",
            decisions=tuple(EpisodeDecision(text, kind="finding") for text in held),
        )
        for held in (FOUND, FOUND[1:], ())
    ]  # fmt: skip
    kernel = MiniKernel()
    kernel.batch(works[:1])
    assert len(kernel.tables["vector_points"]) == 3
    for before, after in pairwise(works):
        kernel.change([before], [after])
        assert kernel.tables["vector_points"] == folded([after])["vector_points"]
    assert len(kernel.tables["vector_points"]) == 1
    kernel.retract(works[-1:])
    assert kernel.tables["vector_points"] == {}


def test_the_points_of_an_episode_are_bounded_and_no_other_memory_has_several() -> None:
    work = Episode(
        **at(0), task="t", canonical="c", closed=True, description="Make the checkout retry", steps=3,
        outcome="success", decisions=tuple(EpisodeDecision(f"{n:03} {'says something ' * 3}") for n in range(200)),
    )  # fmt: skip
    memory = memories(None, work)
    assert isinstance(memory, Memory)
    assert len(points(memory)) == MOST_POINTS
    assert len(points(msgspec.structs.replace(memory, kind="turn"))) == 1


# --- counts ---


def test_a_day_is_counted_by_what_happened_in_it() -> None:
    noon = {name: value for name, value in at(0).items() if name != "id"}
    counted = [
        Prompted(**at(0), text="no, the other one", kind="correction"),
        Prompted(**at(0), text="/compact", kind="command"),  # which no session counts as a prompt either
        ToolUsed(**noon, tool="Bash", family="run", ok=False),
        ToolUsed(**noon, tool="Edit", family="edit", ok=False, noise=True),
        ErrorOccurred(**at(1), **CRASH),
        fixed(2),
    ]
    row = stats(None, counted)
    assert (row.location, row.day) == (SHOP, NOON // DAY)
    assert (row.prompts, row.corrections, row.tool_uses, row.tool_failures) == (1, 1, 2, 1)
    assert (row.errors, row.errors_resolved, row.resolve_us_total) == (1, 1, 6 * HOUR)
