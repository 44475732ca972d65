"""Sparse vectors of documents and queries."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memctl.domain.support.text import BM25_AVERAGE_LENGTH, BM25_B, BM25_K1, BODY_WEIGHT, sparse, sparse_query, tokens

TEXTS = st.text(st.one_of(st.characters(), st.sampled_from("ab cd_Ef./가나 \0\ud800")), max_size=60)


@given(TEXTS)
def test_indices_are_sorted_unique_and_fit_32_bits(text: str) -> None:
    for indices, values in (sparse(text), sparse_query(text)):
        assert indices == sorted(set(indices))
        assert all(0 <= index < 1 << 32 for index in indices)
        assert len(indices) == len(values)
        assert all(value > 0 for value in values)


@given(TEXTS.filter(lambda text: "http" not in text))
@example("http://")
def test_a_query_without_an_address_has_the_indices_of_its_text_and_on_one_line_weight_one(text: str) -> None:
    assert sparse_query(text)[0] == sparse(text)[0]
    line = " ".join(text.split("\n"))
    assert sparse_query(line) == (sparse(line)[0], [1.0] * len(set(sparse(line)[0])))


def test_the_first_line_of_a_report_weighs_more_than_the_rest_and_what_is_repeated_more() -> None:
    weights = dict(
        zip(*sparse_query("\ncheckout fails\nThe cart is empty, the cart is lost, checkout stays"), strict=True)
    )
    [checkout], [cart], [empty] = (sparse(word)[0] for word in ("checkout", "cart", "empty"))
    assert weights[sparse("fails")[0][0]] == 1.0
    assert weights[empty] == BODY_WEIGHT
    assert weights[cart] == pytest.approx(BODY_WEIGHT * (1 + math.log(2)))
    assert weights[checkout] == pytest.approx(1 + math.log(2))


def test_weights_are_bm25_without_the_idf() -> None:
    text = "cache cache miss"
    assert tokens(text) == ["cach", "cach", "miss"]
    norm = BM25_K1 * (1 - BM25_B + BM25_B * 3 / BM25_AVERAGE_LENGTH)
    expected = sorted([2 * (BM25_K1 + 1) / (2 + norm), (BM25_K1 + 1) / (1 + norm)])
    assert sorted(sparse(text)[1]) == pytest.approx(expected)


def test_a_word_weighs_less_in_a_longer_document() -> None:
    index = sparse("cache")[0][0]
    weights = [dict(zip(*sparse("cache" + " disk" * more), strict=True))[index] for more in (0, 10, 100)]
    assert weights == sorted(weights, reverse=True)
    assert len(set(weights)) == 3


def test_a_text_without_words_has_an_empty_vector() -> None:
    assert sparse("the of ... \0") == ([], [])
    assert sparse_query("?") == ([], [])


def test_indices_are_the_same_in_every_process() -> None:
    code = "from memctl.domain.support.text import sparse; print(sparse('오류 in parse_json')[0])"
    results = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert results == {f"{sparse('오류 in parse_json')[0]}\n"}


def test_of_an_address_only_its_end_is_looked_for() -> None:
    asked = sparse_query("https://github.com/acme/shop/issues/7718 the prompt breaks")
    assert asked == sparse_query("issues/7718 the prompt breaks")
    assert sparse_query("https://shop.example") == sparse_query("shop.example")
    assert sparse_query("see https://github.com/acme/widgets/") == sparse_query("see acme/widgets")
    assert sparse_query("https://github.com/acme/shop/pull/12/files") == sparse_query("12/files")
