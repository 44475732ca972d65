"""What an agent's words tell of what it did, and what of them tells nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.language.summaries import account_of, gist_of, says_done


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Done - created `docs/cart.md` with all of it.", "Created `docs/cart.md` with all of it."),
        ("All tests pass. Now `Total` keeps the sign of every price.", "Now `Total` keeps the sign of every price."),
        ("Added a note on sums, because they failed.", "Added a note on sums, because they failed."),
        ("The fix is a single-line removal in `cart.py`.", "The fix is a single-line removal in `cart.py`."),
        ("- **Line 7**: `Target agent` → `Target for rendering`", "`Target agent` → `Target for rendering`."),
        (
            "Tests pass. Both buttons have been changed:\n\n- `a.tsx` — `primary` → `secondary`\n  - in the header\n"
            "- `b.tsx` — `primary` → `secondary`\n\nReady to commit?",
            "Both buttons have been changed: `a.tsx` — `primary` → `secondary`; `b.tsx` — `primary` → `secondary`.",
        ),
        (
            "The `resume` command now:\n1. **Finds checkpoints** after a merge\n2. Asks before it overwrites a log",
            "The `resume` command now: Finds checkpoints after a merge; Asks before it overwrites a log.",
        ),
        ("I rewrote the sum of all prices.", "I rewrote the sum of all prices."),
        ("I split the cart into two parts.", "I split the cart into two parts."),
        ("The change is complete — added a sum of all prices.", "Added a sum of all prices."),
        (
            "Changed the answer of `add`:\n\n**Before:**\n- It was cut twice\n\n**After:**\n- It sums all prices up",
            "Changed the answer of `add`: It sums all prices up.",
        ),
        (
            "The file now has one meaningful test:\n\n## Changes\n- Removed the second sum of prices",
            "Removed the second sum of prices.",
        ),
        (
            "I made two changes:\n- `cart.py` (new)\n  - removed the second sum of all prices\n- `shop/shop.py`",
            "I made two changes: `cart.py` (new): removed the second sum of all prices; `shop/shop.py`.",
        ),
        (
            "## Before\n- The total was set to the first price\n\n## After\n- The total is now the sum of prices",
            "The total is now the sum of prices.",
        ),
        ("**Before:** the total was set once\nAnd it is now set for each cart.", "And it is now set for each cart."),
    ],
)
def test_what_was_done_is_told_in_the_agents_words(said: str, told: str) -> None:
    assert account_of(said, 300) == told


@pytest.mark.parametrize(
    "said",
    [
        "Now run the tests to verify what was changed.",
        "Now I'll commit what was added to the cart.",
        "But the index that got written has another tree's content.",
        "Yes, we just fixed exactly that issue.",
        "I've fixed the bug. The fix is complete. All 12 tests pass.",
        "The issue is that the total was changed twice.",
        "The total should be rounded instead of cut.",
        "`total` - Set by the caller of the function",
        "## What You Have Now Beside It",
        "Now when re-running the command:\n```\nnothing\n```\n",
        "Force-push what is left of it now.",
        "Returned as an error of the hook.",
        "`danger-full-access` — unrestricted access to all",
        "It has no built-in feature for this.",
        "The check shows what is there, but nothing of our new reset command.",
        "- Branch with most items expanded by default",
        "**What was wrong:** the total was moved before it was summed.",
        "Fixed and committed as [21da6a6e](cart.py).",
        "| before | after |\n| --- | --- |\n| set twice here | set once now |",
        "",
    ],
)
def test_what_tells_nothing_of_what_was_done_is_no_account(said: str) -> None:
    assert account_of(said, 300) == ""


def test_of_words_that_are_not_sure_only_what_was_done_is_told() -> None:
    said = "`cart.py` has been deleted. The total is now stored by the shop. I removed the second sum of prices."
    assert account_of(said, 300, sure=True) == "`cart.py` has been deleted. I removed the second sum of prices."


def test_an_account_says_nothing_twice() -> None:
    assert account_of("Added a sum of all prices.\n- Added a sum of all prices\n", 300) == "Added a sum of all prices."


def test_a_gist_has_what_explains_and_not_what_announces() -> None:
    assert gist_of("Let me look at the cart.\nThe total is cut before it is summed.", 90) == (
        "The total is cut before it is summed."
    )


@given(st.text(st.sampled_from("Added now:`-*#|\n .1→ed the sum"), max_size=200), st.integers(60, 300), st.booleans())
def test_an_account_is_one_line_within_its_limit(said: str, limit: int, sure: bool) -> None:
    told = account_of(said, limit, sure=sure)
    assert "\n" not in told
    assert len(told) <= limit + 1
    assert isinstance(says_done(said, sure=sure), bool)
