"""`memctl eval` over a vector server of its own: what is hidden is as good as forgotten, and is there again."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from memctl.api.evaluation import Asked, Dataset, Passage
from memctl.api.evaluation.bench import indexed
from memctl.infra.embedders import NONE, Embedders

SAID = (
    "Shall we give the old boat a name?", "Marigold suits a boat.", *(f"The harbour opens at {n}." for n in range(30))
)  # fmt: skip
QUESTION = Asked(
    id="q", query="a name for the old boat last week", gold=frozenset(("t/0",)), scope="t",
    now=datetime(2024, 6, 1, tzinfo=UTC),
)  # fmt: skip


def talk(at: int = 1_700_000_000_000_000) -> Dataset:
    passages = [
        Passage(id=f"t/{place}", text=text, scope="t", session="t/1", at=at, before=f"t/{place - 1}" if place else "")
        for place, text in enumerate(SAID)
    ]
    return Dataset(name="talk", passages=passages, questions=[QUESTION])


def test_what_is_hidden_lends_its_neighbours_nothing_and_is_found_again() -> None:
    whole = talk()
    with indexed(whole, Embedders(NONE), lambda line: None) as bench:
        first, again = (bench.ask(whole.questions)[0] for _ in range(2))
    opening, second, *others = whole.passages
    apart = msgspec.structs.replace(whole, passages=[opening, msgspec.structs.replace(second, before=""), *others])
    with indexed(apart, Embedders(NONE), lambda line: None) as bench:
        (lent_nothing,) = bench.ask(apart.questions)
    assert first.ranked == ("t/0", "t/1")
    assert (again.ranked, again.best_score, again.hidden_score) == (first.ranked, first.best_score, first.hidden_score)
    assert first.hidden_score == lent_nothing.hidden_score > 0


def test_of_passages_without_dates_no_question_asks_a_time() -> None:
    outside, undated = talk(), talk(at=0)
    with indexed(outside, Embedders(NONE), lambda line: None) as bench:
        (of_then,) = bench.ask(outside.questions, hiding=False)
    with indexed(undated, Embedders(NONE), lambda line: None) as bench:
        (of_any_time,) = bench.ask(undated.questions, hiding=False)
    assert of_any_time.best_score > of_then.best_score


def test_of_a_conversation_what_the_one_named_said_comes_first() -> None:
    said = ("Bo: Ada, I sold it.", "Ada: I sold mine too, only last week, Bo.", *("Bo: Good, Ada.", "Ada: Yes.") * 3)
    passages = [Passage(id=f"s/{place}", text=text, scope="s", session=f"s/{place}") for place, text in enumerate(said)]
    asked = Asked(id="q", query="What has Ada sold?", gold=frozenset(("s/1",)), scope="s")
    with indexed(
        Dataset(name="sold", passages=passages, questions=[asked]), Embedders(NONE), lambda line: None
    ) as bench:
        (judged,) = bench.ask([asked], hiding=False)
    assert judged.ranked[:2] == ("s/1", "s/0")
