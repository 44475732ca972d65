"""Reflection: when it is time, what belongs together, and what may be said of it."""

from __future__ import annotations

from typing import Any

import pytest

from memctl.domain.knowledge.reflections import (
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
    assert due(Grown(memories=3, weight=15.1, days=0), 20) == "importance"
    assert due(Grown(memories=3, weight=15.0, days=0), 20) is None
    assert due(Grown(memories=20, weight=2.0, days=0), 20) == "count"
    assert due(Grown(memories=20, weight=2.0, days=0), 21) is None
    assert due(Grown(memories=STALE_MEMORIES, weight=1.0, days=STALE_DAYS), 20) == "age"
    assert due(Grown(memories=STALE_MEMORIES - 1, weight=1.0, days=99), 20) is None


def linted(number: int, *rules: str, **more: Any) -> Piece:
    return episode(number, error_types=tuple(f"golangci-lint/{rule}" for rule in rules), **more)


def test_what_a_checker_keeps_finding_is_told_with_how_often() -> None:
    pieces = [linted(n, "errcheck", "typecheck", *(("goconst",) if n else ())) for n in range(4)]
    (told,) = by_rule(clusters(pieces), pieces)
    assert told.topic == "check:golangci-lint"
    assert told.title == "golangci-lint finds the same again and again here: `errcheck`, `goconst`"
    assert "4 episodes of 4 sessions: `errcheck` 4, `goconst` 3" in told.text, "what does not compile, everybody sees"
    assert told.memories == ("e3", "e2", "e1", "e0")


def test_a_single_rule_of_a_checker_is_left_to_strategies() -> None:
    pieces = [linted(n, "errcheck", "unused") for n in range(4)]
    assert by_rule(clusters(pieces), pieces) == []


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


def test_what_one_kind_tells_takes_no_room_from_another() -> None:
    pieces = [
        *(linted(n, "errcheck", "goconst", signatures=("x",)) for n in range(3)),
        linted(3, "errcheck", "goconst"),
        episode(4, signatures=("x",)),
        bug("Fix: ran `make fmt` (held 2 of 2)", "usage"),
    ]
    assert {told.topic.partition(":")[0] for told in by_rule(clusters(pieces), pieces)} == {"error", "check"}


def test_one_session_or_two_episodes_show_nothing() -> None:
    assert clusters([episode(n, files=("/w/a.py",), session="s") for n in range(9)]) == []
    assert clusters([episode(n, files=("/w/a.py",)) for n in range(2)]) == []


def test_the_files_of_a_topic_are_those_it_names_also_where_earlier_rules_recorded_two() -> None:
    assert files_of("file:src/routes/+layout.svelte") == ("src/routes/+layout.svelte",)
    assert files_of("pair:a.py\nb.py") == ("a.py", "b.py")
    assert files_of("check:ruff") == ()


def test_few_insights_are_made_and_none_of_the_same_episodes_twice() -> None:
    pieces = [
        episode(10 * group + n, files=(f"/w/{group}.py", f"/w/{group}b.py"), outcome="failure")
        for group in range(6)
        for n in range(3)
    ]
    told = by_rule(clusters(pieces), pieces)
    assert len(told) == MOST_INSIGHTS
    cited = [memory for each in told for memory in each.memories]
    assert len(cited) == len(set(cited))


def test_the_same_pieces_in_another_order_give_the_same() -> None:
    pieces = [linted(n, "errcheck", "goconst", files=("/w/a.py",), outcome="failure") for n in range(6)]
    assert by_rule(clusters(pieces), pieces)
    assert by_rule(clusters(pieces), pieces) == by_rule(clusters(pieces[::-1]), pieces[::-1])
