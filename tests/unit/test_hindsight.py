"""Hindsight: which needs are paired with which memories, and that nothing else is."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_events import Session, facts_of

from memctl.api.queries.hindsight import _record
from memctl.domain.events.event import Event, Micros
from memctl.domain.events.facts import Edit, ErrorResolved, Fact, Identified, KnowledgeHeld, KnowledgeNeeded, Turn
from memctl.domain.retrieval.hindsight import (
    APART,
    HeldMemory,
    Need,
    Pair,
    common_way,
    memory_words,
    nearness,
    pairs,
    request_words,
    same_way,
    way_of,
)
from memctl.domain.support.mentions import _VALUE, LONGEST_VALUE, SHORTEST_NAME, is_distinctive, path_within, values_in
from memctl.projections.hindsight import Hindsight, hindsight

HOUR = 3_600_000_000


def need(at: int, stream: str, **fields: Any) -> Need:
    return Need(at=at, id=f"n{at}", stream=stream, location="/work/shop", event=f"e{at}", text="x", **fields)


def memory(at: int, stream: str, **fields: Any) -> HeldMemory:
    fields = {"text": "ran `bun test` instead", "words": ("bun", "test"), **fields}
    return HeldMemory(at=at, id=f"m{at}", stream=stream, location="/work/shop", memory="m", event=f"h{at}", **fields)


# --- pairing ---


def test_a_memory_of_an_earlier_session_is_paired_and_the_sessions_own_is_not() -> None:
    asked = need(5 * HOUR, "b")
    assert [pair.memory.stream for pair in pairs("known command", [asked], [memory(0, "a"), memory(0, "b")])] == ["a"]
    assert not list(pairs("known command", [asked], [memory(0, "b")]))


def test_sessions_side_by_side_learn_nothing_from_each_other() -> None:
    assert not list(pairs("known command", [need(APART - 1, "b")], [memory(0, "a")]))
    assert list(pairs("known command", [need(APART, "b")], [memory(0, "a")]))


def test_memory_is_what_the_log_held_and_not_what_clocks_say() -> None:
    """An older session that was imported after the need was no help."""
    asked, held = need(5 * HOUR, "b"), memory(0, "a")
    assert list(pairs("known command", [asked], [held], positions={asked.event: 9, held.event: 8}))
    assert not list(pairs("known command", [asked], [held], positions={asked.event: 8, held.event: 9}))
    assert not list(pairs("known command", [asked], [held], positions={asked.event: 8}))  # forgotten


def test_of_a_session_the_first_need_counts() -> None:
    found = list(pairs("known command", [need(6 * HOUR, "b"), need(5 * HOUR, "b")], [memory(0, "a")]))
    assert [pair.need.at for pair in found] == [5 * HOUR]


def test_other_projects_are_apart() -> None:
    asked, held = need(5 * HOUR, "b"), memory(0, "a")
    assert not list(pairs("known command", [asked], [held], together=lambda one, other: False))


def test_a_value_that_many_sessions_held_says_nothing() -> None:
    words = ("basket", "checkout", "discount", "voucher")
    held = [memory(n, f"a{n}", words=words) for n in range(5)]
    asked = need(5 * HOUR, "b", words=words)
    assert list(pairs("found out again", [asked], held[:4]))
    assert not list(pairs("found out again", [asked], held))


def test_a_request_is_near_where_a_memory_holds_enough_of_its_words() -> None:
    asked = ("basket", "checkout", "discount", "rounding", "voucher")
    assert nearness(asked, ("basket", "checkout", "discount", "voucher", "other")) == 0.8
    assert nearness(asked, ("basket", "checkout", "discount")) == 0.0
    assert nearness([*asked, *(f"word{n}" for n in range(20))], asked) == 0.0
    assert nearness((), ()) == 0.0


# --- errors ---


def resolved(at: int, stream: str, way: Sequence[str], text: str = "ran `x`") -> tuple[Need, HeldMemory]:
    met = need(at, stream, end=f"end{at}", words=tuple(way), calls=3)
    return met, msgspec.structs.replace(memory(at + 1, stream, text=text, words=tuple(way)), id=met.id)


def found_for(*sessions: tuple[Need, HeldMemory]) -> list[Pair]:
    return list(pairs("known error", [each[0] for each in sessions], [each[1] for each in sessions]))


def test_the_same_command_mended_it_again() -> None:
    [pair] = found_for(resolved(0, "a", ["ran bun test"]), resolved(HOUR, "b", ["ran bun test", "cart"]))
    assert (pair.need.stream, pair.same_way, pair.likeness) == ("b", True, 1.0)


def test_an_error_in_other_words_that_ended_otherwise_is_no_pair() -> None:
    one, other = resolved(0, "a", ["ran bun test"]), resolved(HOUR, "b", ["cart.total"])
    assert [pair.same_way for pair in found_for(one, other)] == [False]
    elsewhere = msgspec.structs.replace(other[0], text="another message")
    assert not found_for(one, (elsewhere, other[1]))


def test_a_resolution_that_says_nothing_taught_nothing() -> None:
    assert not found_for(resolved(0, "a", ["cart"], ""), resolved(HOUR, "b", ["total"]))


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (["exec.CommandContext", "ctx"], ["exec.CommandContext"], 1.0),
        (["error", "return"], ["error", "return"], 0.0),
        (["nolint:dupl", "a", "b", "c", "d"], ["nolint:dupl", "e", "f", "g", "h"], 0.9),
        ([], [], 0.0),
    ],
)
def test_two_ways_are_alike_by_what_they_brought_in(one: list[str], other: list[str], alike: float) -> None:
    assert same_way(one, other, "dupl") == alike


def test_a_way_is_what_edits_brought_in_and_commands_that_are_no_chores() -> None:
    edit = Edit("a.go", "x := exec.Command(name)", "x := exec.CommandContext(ctx, name)")
    assert way_of([edit], ["git add a.go", "bun run lint:fix"]) == ("ran bun run lint:fix", "exec.CommandContext")


def ended(at: int, stream: str, *words: str) -> HeldMemory:
    return memory(at, stream, words=words)


def test_a_common_way_is_what_two_sessions_and_half_of_them_did() -> None:
    two = [ended(1, "a", "ran make fmt", "x.y"), ended(2, "b", "ran make fmt", "z.w")]
    way = common_way(two, "it failed")
    assert way is not None
    assert (way.commands, way.words, way.sessions, way.newest.stream, way.of) == (("make fmt",), (), 2, "b", 2)
    others = [ended(3, "c", "one.two"), ended(4, "d", "three.four"), ended(5, "e", "five.six")]
    assert common_way([*two, *others], "it failed") is None
    assert common_way(two, "it failed: say make fmt") is None
    assert common_way([ended(1, "a", "ran sed"), ended(1, "copy", "ran sed")], "") is None
    assert common_way([ended(1, "a", "error"), ended(2, "b", "error")], "") is None, "a word of prose"


def test_of_a_plain_way_one_session_is_enough() -> None:
    way = common_way([ended(1, "a", "ran make fmt"), ended(2, "b", "x.y")], "it failed")
    assert way is not None
    assert (way.commands, way.sessions, way.of) == (("make fmt",), 1, 2)
    found = common_way([ended(1, "a", "nolint:dupl", "a.b")], "it failed", "dupl")
    assert found is not None
    assert (found.words, found.of) == (("nolint:dupl",), 1)
    assert common_way([ended(1, "a", "ran make deploy")], "") is None, "it does more than check and format"
    assert common_way([ended(1, "a", "nolint:dupl", "a.b")], "", "errcheck") is None, "a directive for another check"
    others = [ended(at, f"{at}", word) for at, word in ((2, "x.y"), (3, "y.z"))]
    assert common_way([ended(1, "a", "ran make fmt"), *others], "") is None, "most sessions did otherwise"


def test_two_forks_of_one_session_are_one_witness() -> None:
    forks = [
        msgspec.structs.replace(ended(at, stream, "ran sed"), lineage="first-line")
        for at, stream in [(1, "a"), (2, "fork")]
    ]
    assert common_way(forks, "it failed") is None
    assert common_way([*forks, ended(3, "c", "ran sed")], "it failed") is not None


def test_a_way_of_edits_alone_is_the_words_that_they_share() -> None:
    found = common_way([ended(1, "a", "nolint:errcheck", "a.b"), ended(2, "b", "nolint:errcheck", "c.d")], "")
    assert found is not None
    assert (found.commands, found.words) == ((), ("nolint:errcheck",))


# --- what sessions show ---


def searching(*, named: bool = False, looked: int = 3) -> list[Event]:
    """A user asks for something, the agent looks around, and edits a file."""
    session = Session()
    session.user("Round the vouchers of a basket at checkout" + (" in pricing.py" if named else ""))
    for number in range(looked):
        session.runs(f"grep -rn voucher part{number}", "/work/shop/pricing.py:3: PRICE_ROUNDING_MODE = 1")
    session.edits("/work/shop/pricing.py", "mode = 1", "mode = PRICE_ROUNDING_MODE")
    return session.events


def needs_of(events: Sequence[Event]) -> list[tuple[str, str, int]]:
    facts = [fact for fact in facts_of(events) if isinstance(fact, KnowledgeNeeded)]
    return [(fact.kind, fact.subject, fact.calls) for fact in facts]


def test_what_was_searched_for_and_then_used_was_needed() -> None:
    assert dict.fromkeys(kind for kind, _, _ in needs_of(searching())) == {"place": None}
    [(_, path, calls)] = needs_of(searching())
    assert (path, calls) == ("pricing.py", 4)


def test_what_the_prompt_names_was_known() -> None:
    assert needs_of(searching(named=True)) == []


def test_what_was_found_at_once_was_no_search() -> None:
    assert needs_of(searching(looked=2)) == []


def test_values_are_addresses_options_variables_and_long_names() -> None:
    found = values_in("--dry-run-all at https://staging.example.org:8443/v1. with DATABASE_URL in computeGrandTotals")
    assert found == ("--dry-run-all", "https://staging.example.org:8443/v1", "DATABASE_URL", "computeGrandTotals")
    assert [is_distinctive(name) for name in ("branchName", "session_id")] == [False, False]
    assert [is_distinctive(name) for name in ("computeGrandTotals", "DATABASE_URL")] == [True, True]


HOMES = ("/home/ann_marie_smith", "/Users/annMarieSmith", "C:\\Users\\AnnMarieSmith", "C:/Users/AnnMarieSmith")


@pytest.mark.parametrize("home", HOMES)
def test_whose_home_a_path_lies_in_says_nothing(home: str) -> None:
    assert values_in(f"see {home}/shop/computeGrandTotals.py") == ("computeGrandTotals",)
    for words in (request_words(f"look at {home}/x/y"), memory_words(f"{home}/x", "", f"in `{home}/y`", ())):
        assert not {word for word in words if word.startswith(("ann", "home", "users", "mari"))}
    assert way_of([Edit("a.py", "x", f"root = '{home}/shop.toml'")], ()) == ("shop.toml", "root")


@given(st.text(st.sampled_from("aB1_-:/. é")), st.sampled_from(["", "--", "https://", "a_b", "aB"]))
def test_values_are_what_the_pattern_finds_in_the_whole_text(text: str, begin: str) -> None:
    text = f"{begin}{text}{'a' * SHORTEST_NAME}{text}"
    found = (match[0].rstrip("./") for match in _VALUE.finditer(text))
    assert values_in(text) == tuple(
        dict.fromkeys(each for each in found if SHORTEST_NAME <= len(each) <= LONGEST_VALUE)
    )


def test_a_request_is_not_near_a_memory_by_the_folders_of_a_home_alone() -> None:
    asked = request_words("why is /home/christian/checkout slow")
    held = memory_words("/home/christian/checkout fails with slow queries", "", "", ())
    assert nearness(asked, held) == 0.0


def test_a_files_path_is_the_same_in_each_worktree_and_unknown_outside() -> None:
    assert path_within("/work/shop", "/work/shop/src/cart.py") == "src/cart.py"
    assert path_within("/work/shop/.worktrees/fix", "/work/shop/.worktrees/fix/src/cart.py") == "src/cart.py"
    assert path_within("/work/shop", "src/cart.py") == "src/cart.py"
    assert path_within("/work/shop", "/etc/hosts") == ""
    assert path_within("/work/shop", "docs/REDACTED.md") == ""


# --- the fold ---


def errors_in(session: str, after: int, outcome: str = "bun test") -> list[Fact]:
    """An error of one session that `outcome` resolved."""
    told = Session()
    told.user("Run the tests of the cart please")
    told.runs("rtk bun run test", "error: unrecognized subcommand 'bun'\n\nUsage: rtk [OPTIONS] <COMMAND>", exit_code=2)
    told.runs("bun run test", "12 pass")
    shifted = []
    for fact in facts_of(told.events):
        if isinstance(fact, Identified):
            fields: dict[str, Any] = {"stream": f"session/claude-code/{session}"}
            fields["occurred_at"] = Micros(fact.occurred_at + after)
            changed = msgspec.structs.replace(fact, **fields)
            shifted.append(msgspec.structs.replace(changed, id=_other(fact.id, session)))
            if isinstance(fact, ErrorResolved):
                shifted[-1] = msgspec.structs.replace(shifted[-1], error=_other(fact.error, session))
    return [fact for fact in shifted if isinstance(fact, tuple(hindsight.facts))]


def _other(id: Any, session: str) -> Any:
    from uuid import uuid5

    return uuid5(id, session)


def rows_of(facts: Sequence[Any]) -> dict[str, Hindsight]:
    rows: dict[str, Hindsight] = {}
    for fact in facts:
        for key in hindsight.keys(fact):
            row = hindsight(rows.get(key), fact)
            assert row is not None
            rows[key] = row
    return rows


def test_what_a_need_took_leaves_out_while_nobody_worked() -> None:
    facts = [
        msgspec.structs.replace(fact, duration_us=5 * HOUR, idle_us=4 * HOUR)
        if isinstance(fact, ErrorResolved)
        else fact
        for fact in (*errors_in("one", 0), *errors_in("two", 9 * HOUR))
        if type(fact).__name__.startswith("Error")
    ]
    [row] = rows_of(facts).values()
    [pair] = pairs("known error", row.needs, row.memories)
    assert (pair.need.duration_us, pair.need.idle_us) == (5 * HOUR, 4 * HOUR)
    assert _record(row, pair, {}, None, None).seconds == 3_600


def test_an_error_that_two_sessions_met_is_in_one_row_whatever_the_order() -> None:
    facts = [*errors_in("one", 0), *errors_in("two", HOUR)]
    errors = [fact for fact in facts if type(fact).__name__.startswith("Error")]
    rows = [rows_of(order) for order in itertools.permutations(errors)]
    assert all(each == rows[0] for each in rows)
    [row] = rows[0].values()
    [pair] = pairs("known error", row.needs, row.memories)
    assert (pair.need.stream, pair.memory.stream, pair.same_way) == (
        "session/claude-code/two", "session/claude-code/one", True,
    )  # fmt: skip
    assert pair.need.calls == 1


def test_a_turn_leaves_its_files_and_values_and_no_long_text() -> None:
    """It goes to the rows of some thirty keys, and each of as many shards reads it."""
    session = Session()
    session.user("Where does the cart round its prices? " + "Look at every place. " * 400)
    session.edits("/work/shop/src/cart.py", "a", "b")
    session.says("It is `ROUND_HALF_EVEN_CENTS` in the settings. " + "And so on, and on. " * 700)
    facts = facts_of(session.events)
    [turn] = [fact for fact in facts if isinstance(fact, Turn)]
    [held] = [fact for fact in facts if isinstance(fact, KnowledgeHeld)]
    assert (held.turn, held.files) == (turn.id, turn.files)
    assert "ROUND_HALF_EVEN_CENTS" in held.values
    assert Turn not in hindsight.facts
    assert len(msgspec.json.encode(turn)) > 12_000
    assert len(msgspec.json.encode(held)) < 2_000


def test_what_one_session_alone_shows_is_not_several() -> None:
    assert not any(row.several for row in rows_of(errors_in("one", 0)).values())
