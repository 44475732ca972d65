"""What the terminal says above results, and where there are none worth a look."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memctl.api.reading.advice import Answer, Tier
from memctl.api.reading.views import Class, Found, Scope, SourceRow
from memctl.cli.ask.guidance import _heading
from memctl.cli.ask.read import print_results
from memctl.cli.pages import print_scope


def found(class_: Class) -> Found:
    return Found(
        id="8eb0a7c5-0000", text="the cart", title="drop the cart", score=0.1, class_=class_, bucket="EPISODIC",
        kind="turn", project="shop", occurred_at=datetime(2026, 3, 2, tzinfo=UTC), evidence=[], why="same words",
        source=SourceRow("facts", "x"),
    )  # fmt: skip


def test_results_of_which_none_is_likely_are_said_to_be_so_and_all_but_three_take_a_line_each(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_results([found("none")] * 5)
    first, *others = capsys.readouterr().out.splitlines()
    assert first == "Nothing here is sure or likely: these only came nearest."
    assert others.count("weak      drop the cart") == 3
    assert others[-2:] == ["  8eb0a7c5  drop the cart"] * 2
    print_results([found("suggested"), found("none")])
    assert "Nothing here" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "results", "heading"),
    [
        ("none", [found("none")], "Nothing like it is known; nearest:"),
        ("none", [], "Nothing like it is known."),
        ("episodic_memory", [found("high")], "Done before:"),
    ],
)
def test_an_answer_is_headed_in_words_and_by_no_tier(source: Tier, results: list[Found], heading: str) -> None:
    message = "nothing like it is known" if source == "none" else "this was done before"
    scope = Scope(None, "everywhere", 0)
    assert _heading(Answer(kind="how_to", source=source, message=message, scope=scope, results=results)) == heading


@pytest.mark.parametrize(("locations", "asked"), [(0, "all projects"), (3, "the projects of your key")])
def test_who_asks_from_a_folder_of_no_project_is_shown_what_is_asked(
    capsys: pytest.CaptureFixture[str], locations: int, asked: str
) -> None:
    print_scope(Scope(None, "everywhere", locations))
    assert f"asking {asked}: this folder is of none" in capsys.readouterr().err
