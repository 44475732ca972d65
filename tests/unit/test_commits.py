"""What a commit's message says, and which of two commits of one subject stands first."""

from __future__ import annotations

import functools
import itertools

import pytest
from session_events import event

from memctl.domain.events.observations import CommitRecorded
from memctl.domain.language.commits import LONGEST, Message, message_of, settled_by
from memctl.projections.commits import Revert, Reverts, reverts
from memctl.projections.kernel import Recorded

WHY = "The upstream bans clients for an hour after an eighth attempt, so seven stay inside of its window."
ID = "0123456789abcdef0123456789abcdef01234567"


def test_a_message_is_its_subject_its_reasons_what_it_takes_back_and_its_trailers() -> None:
    text = f'Revert "Cap it"\n\nThis reverts commit {ID}.\n\n{WHY}\n\nFixes: #12\nSigned-off-by: A B <a@b.example>\n'
    trailers = (("Fixes", "#12"), ("Signed-off-by", "A B <a@b.example>"))
    assert message_of(text) == Message('Revert "Cap it"', WHY, (ID,), trailers)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("", id="nothing"),
        pytest.param("See the ticket.", id="few words"),
        pytest.param("\n".join(f"- change module{n} and function{n} of it" for n in range(20)), id="a list"),
        pytest.param(f"> {WHY}", id="a quotation"),
        pytest.param("Signed-off-by: Somebody Whose Trailer Is Long Enough For Reasons <a@b.example>", id="trailers"),
    ],
)
def test_a_body_that_gives_no_reason_decides_nothing(body: str) -> None:
    assert message_of(f"Cap it\n\n{body}").why == ""


def test_a_reason_keeps_the_list_that_it_leads_to() -> None:
    assert message_of(f"Cap it\n\n{WHY}\n\n- one\n- two").why.endswith("- one\n- two")


def test_a_message_of_any_size_is_read_in_part() -> None:
    said = message_of("x" * 10 * LONGEST + "\n" + WHY * 1_000 + f"\nThis reverts commit {ID}." * 1_000)
    assert len(said.subject) <= 200
    assert said.why == ""
    assert len(message_of("a\n\n" + f"{WHY}\n" * 1_000).why) <= 1_800


def test_reports_of_one_commit_that_differ_give_the_same_row_in_any_order() -> None:
    texts = (f"Undo\n\nThis reverts commit {ID}.", f"Undo it\n\nThis reverts commit {ID}.\n\n{WHY}")
    reports = [
        Recorded(event(commit, str(place), when, place), commit)
        for place, (text, when) in enumerate(itertools.product(texts, (3, 5)), start=1)
        for commit in [CommitRecorded(line="f" * 40, text=text)]
    ]
    rows = {functools.reduce(reverts.fold, order, None) for order in itertools.permutations(reports)}
    assert rows == {Reverts((Revert(int(reports[-1].event.occurred_at), "f" * 40, "Undo it", WHY),))}


def test_a_commit_settles_what_its_sentences_say_and_each_point_that_says_enough() -> None:
    point = "answer 429 at once where the window is over, so that nobody waits for an attempt that cannot succeed"
    broken = point.replace(" over", "\n  over")
    text = f"Cap it\n\n{WHY}\n\n- {broken}\n- few words\n\nSigned-off-by: A <a@b.example>"
    assert settled_by(text) == [f"Committed: Cap it. {WHY}", f"Committed: Cap it. {point}"]
    assert settled_by(f"Cap it\n\n> {WHY}") == []
    assert settled_by("Cap it") == []
