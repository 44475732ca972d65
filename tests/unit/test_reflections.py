"""Reflection: when it is time, what belongs together, and what may be said of it."""

from __future__ import annotations

from typing import Any

import pytest

from memctl.domain.reflections import (
    ENOUGH_MEMORIES,
    MOST_INSIGHTS,
    STALE_DAYS,
    STALE_MEMORIES,
    Grown,
    Piece,
    by_rule,
    clusters,
    due,
    files_of,
)

DAY = 86_400_000_000


def episode(number: int, **more: Any) -> Piece:
    told: dict[str, Any] = {
        "id": f"e{number}", "kind": "episode", "title": f"piece {number}", "session": f"s{number}",
        "outcome": "success", "at": number * DAY,
    }  # fmt: skip
    return Piece(**{**told, **more})


def bug(way_out: str, type: str) -> Piece:
    text = f"{type}\nSeen 3×\n{way_out}"
    return Piece(id="b", kind="bug_pattern", title="It failed", text=text, signatures=("x",), error_types=(type,))


def test_it_is_time_by_importance_by_count_or_by_age() -> None:
    assert due(Grown(memories=3, weight=15.1, days=0)) == "importance"
    assert due(Grown(memories=3, weight=15.0, days=0)) is None
    assert due(Grown(memories=ENOUGH_MEMORIES, weight=2.0, days=0)) == "count"
    assert due(Grown(memories=STALE_MEMORIES, weight=1.0, days=STALE_DAYS)) == "age"
    assert due(Grown(memories=STALE_MEMORIES - 1, weight=1.0, days=99)) is None


def test_files_changed_together_are_told_with_the_episodes_that_changed_them() -> None:
    pieces = [episode(n, files=("/w/cart.py", "/w/ledger.py")) for n in range(1, 4)]
    (told,) = by_rule(clusters(pieces), pieces)
    assert told.topic == "pair:/w/cart.py\n/w/ledger.py"
    assert told.memories == ("e3", "e2", "e1")
    assert "3 episodes of 3 sessions" in told.text


def test_work_on_a_file_that_failed_is_told_with_what_worked() -> None:
    outcomes = ("failure", "open", "success", "failure")
    pieces = [
        episode(n, files=(f"/w/other{n}.py", "/w/cart.py"), outcome=how, title=f"total {how}")
        for n, how in enumerate(outcomes)
    ]
    (told,) = by_rule(clusters(pieces), pieces)
    assert told.topic == "file:/w/cart.py"
    assert "2 failed and 1 were left unfinished" in told.text
    assert "total success" in told.text


def test_what_is_quoted_is_cited_however_long_ago_it_was() -> None:
    pieces = [
        episode(n, files=(f"/w/other{n}.py", "/w/cart.py"), outcome="failure" if n else "success", title=f"piece {n}")
        for n in range(30)
    ]
    (told,) = by_rule(clusters(pieces), pieces)
    assert "piece 0" in told.text
    assert told.memories[0] == "e0"
    assert len(set(told.memories)) == len(told.memories)


def test_an_error_that_comes_back_cites_its_pattern_and_its_fix() -> None:
    pieces = [*(episode(n, signatures=("x",)) for n in range(3)), bug("Fix: start from 0 (held 2 of 3)", "TypeError")]
    (told,) = by_rule(clusters(pieces), pieces)
    assert told.memories[0] == "b"
    assert told.text.endswith("Fix: start from 0 (held 2 of 3)")


@pytest.mark.parametrize(
    ("way_out", "type", "told"),
    [
        ("", "TypeError", False),
        ("Fix: start from 0 (held 1 of 1)", "TypeError", False),
        ("Fix: took both sides (edited cart.py) (held 3 of 3)", "conflict/content", False),
        ("Fix: checked it (edited cart.py) (held 3 of 3)", "golangci-lint/errcheck", False),
        ("Fix: ran `make fmt` (held 2 of 2)", "golangci-lint/gofmt", True),
    ],
)
def test_an_error_is_told_only_with_a_way_out_that_is_no_cases_own(way_out: str, type: str, told: bool) -> None:
    pieces = [*(episode(n, signatures=("x",)) for n in range(3)), bug(way_out, type)]
    assert bool(by_rule(clusters(pieces), pieces)) is told


def test_a_file_and_its_test_or_two_sessions_of_one_thing_tell_nothing() -> None:
    for names in (("cart.test.ts", "cart.ts"), ("test_cart.py", "cart.py"), ("cart_test.go", "cart.go")):
        pieces = [episode(n, files=tuple(f"/w/{name}" for name in names)) for n in range(1, 5)]
        assert by_rule(clusters(pieces), pieces) == []
    pieces = [episode(n, files=("/w/cart.py", "/w/ledger.py"), session=f"s{n % 2}") for n in range(6)]
    assert by_rule(clusters(pieces), pieces) == []


def test_what_one_kind_tells_takes_no_room_from_another() -> None:
    pieces = [
        *(episode(n, signatures=("x",), files=("/w/cart.py", "/w/ledger.py")) for n in range(3)),
        episode(3, signatures=("x",)),
        bug("Fix: ran `make fmt` (held 2 of 2)", "usage"),
    ]
    assert {told.topic.partition(":")[0] for told in by_rule(clusters(pieces), pieces)} == {"error", "pair"}


def test_one_session_or_two_episodes_show_nothing() -> None:
    same = [episode(n, files=("/w/a.py", "/w/b.py"), session="s") for n in range(9)]
    assert clusters(same) == []
    assert clusters([episode(n, files=("/w/a.py", "/w/b.py")) for n in range(2)]) == []


def test_files_that_mostly_change_alone_do_not_belong_together() -> None:
    both = [episode(n, files=("/w/a.py", "/w/b.py")) for n in range(3)]
    alone = [episode(10 + n, files=("/w/a.py",)) for n in range(3)]
    assert "pair:/w/a.py\n/w/b.py" in [cluster.topic for cluster in clusters([*both, *alone[:2]])]
    assert "pair:/w/a.py\n/w/b.py" not in [cluster.topic for cluster in clusters([*both, *alone])]


def test_files_with_a_plus_in_their_names_are_told_apart() -> None:
    one, other = "src/routes/+layout.svelte", "src/routes/+page.svelte"
    both = [episode(n, files=(one, other)) for n in range(3)]
    told = next(each for each in by_rule(clusters(both), both) if each.topic.startswith("pair:"))
    assert told.title == "routes/+layout.svelte and routes/+page.svelte change together"
    assert files_of(told.topic) == (one, other)
    alone = [episode(10 + n, files=(one,)) for n in range(3)]
    assert not [cluster for cluster in clusters([*both, *alone]) if cluster.kind == "pair"]


def test_few_insights_are_made_and_none_of_the_same_episodes_twice() -> None:
    pieces = [
        episode(10 * group + n, files=(f"/w/{group}a.py", f"/w/{group}b.py")) for group in range(6) for n in range(3)
    ]
    told = by_rule(clusters(pieces), pieces)
    assert len(told) == MOST_INSIGHTS
    cited = [memory for each in told for memory in each.memories]
    assert len(cited) == len(set(cited))


def test_the_same_pieces_in_another_order_give_the_same() -> None:
    pieces = [episode(n, files=("/w/a.py", "/w/b.py"), title="migrations again") for n in range(6)]
    assert by_rule(clusters(pieces), pieces) == by_rule(clusters(pieces[::-1]), pieces[::-1])
