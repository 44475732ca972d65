"""How the viewer's pages put ids, times, passages and counts into words, without a server."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from memctl.api.queries.project import waiting
from memctl.api.reading.caller import OWNER
from memctl.api.viewer import render
from memctl.api.viewer.corrections import checkouts
from memctl.api.viewer.forgetting import HOW
from memctl.api.viewer.render import environment, linked, to_the_second, unmarked, worth_showing
from memctl.domain.projects.identity import Named, Place, Projects

OLDER = "older, see 641f4e26-5ada-520c-b5d4-a7b3037e7694, same words"


def test_an_id_in_words_leads_to_what_it_is_of_by_its_beginning() -> None:
    assert linked(OLDER) == (
        'older, see <a href="/things/641f4e26-5ada-520c-b5d4-a7b3037e7694">641f4e26</a>, same words'
    )
    assert linked("folded from bug_patterns e2111f1df6ee258a") == (
        'folded from bug_patterns <a href="/things/e2111f1df6ee258a">e2111f1d</a>'
    )


@given(st.text("0123456789abcdef-<& ", max_size=60))
def test_what_is_no_id_is_the_text_escaped(text: str) -> None:
    assert re.sub(r"<a [^>]*>|</a>", "", re.sub(r'<a href="/things/([^"]+)">[^<]+', r"\1", linked(text))) == str(
        escape(text)
    )


@pytest.mark.parametrize(
    ("classes", "open"),
    [
        (["suggested", "none", "high", "none", "none"], 3),
        (["none"] * 9, 3),
        (["high"], 1),
        ([], 3),
    ],
)
def test_what_is_weaker_than_the_last_likely_result_is_folded_away(classes: list[str], open: int) -> None:
    assert worth_showing([{"class": each} for each in classes]) == open


@pytest.mark.parametrize(
    ("passage", "words"),
    [
        ("## What This Does 1. **Before**: it (**only** now) runs", "What This Does 1. Before: it (only now) runs"),
        ("Run: ```bash make test ``` then\n### Why\nit", "Run: make test then Why it"),
        (
            'added ".claude/**", ".opencode/**" in 2**3 `a` # twice',
            'added ".claude/**", ".opencode/**" in 2**3 `a` # twice',
        ),
    ],
)
def test_a_passage_in_one_line_has_no_marks_of_headings_fences_or_bold(passage: str, words: str) -> None:
    assert " ".join(unmarked(passage).split()) == words


def test_a_piece_of_work_says_once_why_it_is_open() -> None:
    def line(*left: str) -> str:
        item = SimpleNamespace(
            id="1", description="Fix it", project="shop", task_type="bugfix", why="the user interrupted it",
            session_id="s", threads=[SimpleNamespace(text=text) for text in left],
        )  # fmt: skip
        template = environment().get_template("work.html")
        return "".join(template.blocks["row"](template.new_context({"item": item, "project_link": str})))

    assert line("the user interrupted it").count("the user interrupted it") == 1
    assert "left open: the tests" in line("the tests")
    assert "left open" not in line()


def test_an_event_says_its_second() -> None:
    assert ">30 Jun 2026 02:45:07<" in to_the_second("2026-06-30T04:45:07.5+02:00")
    assert to_the_second(None) == ""


@pytest.mark.parametrize(
    ("model", "dropped", "changed", "words"),
    [
        ("episodes", 1, 0, "1 piece of work"),
        ("insights", 0, 1, "1 claim stays without it"),
        ("insights", 0, 3, "3 claims stay without it"),
        ("memories", 8, 2, "8 memories that search finds; 2 more stay without it"),
        ("memories", 1, 1, "1 memory that search finds; 1 more stays without it"),
    ],
)
def test_what_forgetting_takes_along_is_counted_in_words(model: str, dropped: int, changed: int, words: str) -> None:
    row = SimpleNamespace(read_model=model, dropped=dropped, changed=changed)
    preview = SimpleNamespace(
        types={}, sessions=1, first_at=None, statements_about=0, exact=True, events=1, spooled=0, consequences=[row]
    )
    page = render.page(
        "forget.html", OWNER, ways=HOW, how="match", what="x", trouble="", key="k", at="forget", preview=preview,
        receipt=None, called="",
    )  # fmt: skip
    assert f"<ul><li>{words}</li></ul>" in page


def test_the_engine_says_first_whether_all_is_well_and_what_is_still_to_come() -> None:
    def engine(missing: list[str]) -> str:
        outbox, log = (
            SimpleNamespace(to_write=0, waiting_for_dense=9),
            SimpleNamespace(mark=1, generation=SimpleNamespace(stage1=1, stage2=1), shards=[]),
        )
        stats = SimpleNamespace(events=SimpleNamespace(total=1), outbox=outbox, log=log, bytes={"database": 1})
        return render.page("engine_live.html", OWNER, stats=stats, troubles=[], missing=missing, replays=[])

    behind = engine(["9 texts of memories wait for their dense vector"])
    assert "All is well: everything that was appended is folded.</p>" in engine([])
    assert "is folded. But for search: 9 texts of memories wait for their dense vector.</p>" in behind
    assert behind.index("9 texts of memories wait") < behind.index("events")


def test_a_checkout_that_claims_a_project_twice_is_asked_about_once() -> None:
    home, copy, remote = "/home/dana/shop", "/srv/copy", "github.com/dana/shop"
    known = Projects(
        [
            Place(home, root=home, remotes=(remote,), named={remote: Named(brought=False, since=1)}),
            Place(copy, root=copy, repository=home, remotes=(remote,), named={remote: Named(brought=False, since=2)}),
        ]
    )
    claims = [each.claims for each in waiting(known)]
    (asked,) = checkouts(known)
    assert sorted(asked["claims"]) == sorted(claims) == [home, remote]
    assert (asked["root"], asked["project"]) == (copy, known.one("shop").anchor)
    assert checkouts(known, but=copy) == []
