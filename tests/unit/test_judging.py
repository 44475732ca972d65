"""How a piece of work went, by rule: which sign counts, and that a later one counts more."""

from __future__ import annotations

from typing import Any

import pytest

from memctl.domain.language.prompts import says_no
from memctl.domain.session.outcome_rules import SAID, SHOWN, UNCONTRADICTED, Signs, verdict_of

DONE = "The export skips empty ledgers now."


@pytest.mark.parametrize(
    ("signs", "outcome", "confidence"),
    [
        ({"steps": 4, "changed_at": 3, "answer": DONE, "answered_at": 4}, "success", UNCONTRADICTED),
        ({"steps": 6, "changed_at": 3, "answer": DONE, "answered_at": 4}, "unknown", 0.0),
        ({"steps": 4, "changed_at": 3, "answer": f"{DONE} One test still fails.", "answered_at": 4}, "unknown", 0.0),
        ({"steps": 4, "changed_at": 3, "tested_at": 4, "tests_passed": True}, "success", SHOWN),
        ({"steps": 4, "changed_at": 3, "tested_at": 2, "tests_passed": True}, "unknown", 0.0),
        ({"steps": 4, "changed_at": 3, "tested_at": 4, "tests_passed": False}, "failure", SHOWN),
        ({"steps": 4, "changed_at": 3, "committed_at": 4, "failed_at": 2}, "success", SHOWN),
        ({"steps": 4, "changed_at": 3, "committed_at": 3, "feedback": "negative", "feedback_at": 4}, "partial", SAID),
        ({"steps": 5, "changed_at": 3, "committed_at": 5, "feedback": "negative", "feedback_at": 4}, "success", SHOWN),
        ({"steps": 4, "changed_at": 1, "refused_at": 3, "answer": DONE, "answered_at": 4}, "partial", 0.6),
        ({"steps": 4, "changed_at": 4, "refused_at": 3, "answer": DONE, "answered_at": 4}, "success", UNCONTRADICTED),
        ({"steps": 2, "interrupted_at": 2}, "unknown", 0.0),
        ({"steps": 2, "answer": "It is in cart.py.", "answered_at": 2}, "success", UNCONTRADICTED),
        ({}, "unknown", 0.0),
    ],
)
def test_the_last_sign_that_tells_decides(signs: dict[str, Any], outcome: str, confidence: float) -> None:
    verdict = verdict_of(Signs(**signs), closed=False)
    assert (verdict.outcome, verdict.confidence) == (outcome, confidence)


@pytest.mark.parametrize(
    ("words", "declines"),
    [
        ("no don't set it, let's see if it keeps happening", True),
        ("nope", True),
        ("no, that's wrong", False),
        ("no it still fails", False),
        ("now run the tests", False),
    ],
)
def test_declining_an_offer_finds_fault_with_nothing(words: str, declines: bool) -> None:
    assert says_no(words) is declines
