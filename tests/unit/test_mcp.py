"""Answers for agents: small, and JSON whatever is in them."""

from __future__ import annotations

import json

import pytest

from memctl.api.mcp import WHOLE, _guarded, _json
from memctl.domain.events.recalls import quoted


@pytest.mark.parametrize(
    "thing",
    [
        {"text": "값" * 100_000},
        {"evidence": [{"quote": f"line {number} " * 60} for number in range(400)]},
        {"item": {"input": {f"{number} {'k' * 300}": number for number in range(9_000)}}},
        {"item": {"title": "a fix", "steps": [["x" * 5_000] * 300, {"deep": [{"er": "y" * 90_000}]}]}},
    ],
)
def test_what_is_too_long_is_shortened_within_and_stays_json(thing: dict[str, object]) -> None:
    told = _json(thing)
    assert len(told) <= WHOLE
    found = json.loads(told)
    assert found.pop("shortened").startswith("texts to ")
    assert found.keys() == thing.keys()


def test_what_is_too_long_in_whatever_form_is_json_too() -> None:
    wide = {str(number): {str(other): {"deep": "w" * 90} for other in range(50)} for number in range(50)}
    told = _json({"item": wide})
    assert len(told) <= WHOLE
    assert list(json.loads(told)) == ["shortened"]


def test_what_fits_is_told_whole() -> None:
    thing = {"text": "t" * 9_000, "items": list(range(60))}
    assert json.loads(_json(thing)) == thing


def test_a_list_says_how_much_was_left_out() -> None:
    items = json.loads(_json({"items": ["w" * 100] * 1_000}))["items"]
    assert items[-1] == f"… and {1_000 - len(items) + 1:,} more"


HIDDEN = "\U000e0063\U000e0075\U000e0072\U000e006c \u202e\u200b\u3164"


def test_an_agent_is_given_nothing_that_people_do_not_see() -> None:
    answered = _guarded(lambda: _json({"text": f"use pnpm{HIDDEN}", "emoji": "❤️‍🔥", "فارسی": "می‌خواهم"}))()
    assert json.loads(answered) == {"text": "use pnpm ", "emoji": "❤️‍🔥", "فارسی": "می‌خواهم"}
    assert quoted(f"use\u200d pnpm{HIDDEN}", 100) == '"use pnpm"'
    assert quoted(f"{HIDDEN * 30}use pnpm", 20) == '"use pnpm"', "what is hidden takes no room either"
