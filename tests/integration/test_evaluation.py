"""An evaluation over a vector server of its own: what is hidden is as good as forgotten, and is there again."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from embedding import Signs
from evaluation import Asked, Dataset, Passage
from evaluation.bench import indexed

from memctl.infra.embedders import NONE, Embedders

sys.path.insert(0, str(Path(__file__).parents[1] / "eval"))
from mem0_peer import lacking
from retrieval import run
from search_peers import left_out, peers

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


def test_mem0_answers_by_meaning_and_words_from_what_was_said_to_that_user_until_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why := lacking(Signs()):
        pytest.skip(why)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    day = 86_400_000_000
    asked = msgspec.structs.replace(QUESTION, query="Who sold the lantern?", scope="one")
    then = int(asked.now.timestamp()) * 1_000_000 if asked.now else 0
    said = {
        "words": ("We heard that Bo sold his lantern.", "one", then),
        "meaning": ("We opened the harbour.", "one", then + day - 1),
        "neither": ("Bo sold his lantern.", "one", then),
        "later": ("We saw who sold the lantern.", "one", then + day),
        "elsewhere": ("We saw who sold the lantern.", "two", then),
    }
    passages = [Passage(id=id, text=text, scope=scope, at=at) for id, (text, scope, at) in said.items()]
    found = peers(Dataset(name="sold", passages=passages, questions=[asked]), Signs())
    (name,) = (name for name in found if name.startswith("mem0"))
    assert name in ("mem0, meaning and words", "mem0, meaning and lemmas")
    assert found[name](asked) == ["words", "meaning"]
    assert found[name](msgspec.structs.replace(asked, now=None)) == ["later", "words", "meaning"]
    assert left_out(Signs()) == {}
    assert sys.modules["mem0.memory.telemetry"].MEM0_TELEMETRY is False
    assert not Path(sys.modules["mem0.memory.setup"].mem0_dir).exists()


def test_a_peer_that_cannot_be_asked_is_named_with_the_reason() -> None:
    told = run(talk(), Embedders(NONE))
    assert [system["name"] for system in told["systems"]] == ["memctl", "BM25, stemmed"]
    assert list(told["left_out"]) == ["mem0"]
    assert told["left_out"]["mem0"] == lacking(None)
