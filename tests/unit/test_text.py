"""Canonical text, words, and the estimate of tokens."""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence

import published
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.support import text as text_module
from memctl.domain.support.text import Runs, canonical, estimate_tokens, sparse, sparse_query, tokens

# Every character, lone surrogates and NUL among them, with those that the rules look at made likely.
CHARACTERS = st.one_of(
    st.characters(), st.sampled_from("+#._-/!=<>'’ \t\n\0aBc1가각힣각Ａ①ﬁİßΣς\u0301\u0345\ud800\udfff")
)
TEXTS = st.text(CHARACTERS, max_size=40)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  Hello,   World!\n", "hello world"),
        ("C, C++ and C#.", "c c++ and c#"),
        ("commit with `--no-verify`!", "commit with --no-verify"),
        ("a != b; c == d", "a != b c == d"),
        ("x->y => z", "x->y => z"),
        ("see ./src/main.py, ../README.md and /etc/hosts.", "see ./src/main.py ../readme.md and /etc/hosts"),
        ("edit .env (not env)", "edit .env not env"),
        ("List<T> in <div>", "list<t> in <div>"),
        ("call __init__() first", "call __init__ first"),
        ("issue #12 is fixed...", "issue #12 is fixed"),
        ("don’t -- really - don't", "dont really dont"),
        ("ＦＵＬＬ　ｗｉｄｔｈ ①", "full width 1"),
        ("“한글” 문장입니다.", "한글 문장입니다"),
        ("हिन्दी भाषा", "हिन्दी भाषा"),
        ("version 3.11.2", "version 3.11.2"),
        ("", ""),
        ("\0\ud800?!", ""),
    ],
)
def test_canonical_text_keeps_words_and_code_and_drops_the_rest(text: str, expected: str) -> None:
    assert canonical(text) == expected


def test_texts_that_mean_different_code_stay_different() -> None:
    texts = ["use C", "use C++", "use C#", "use --verify", "use --no-verify", "use verify", "a != b", "a == b", "a = b"]
    assert len({canonical(text) for text in texts}) == len(texts)


@given(TEXTS)
def test_canonical_text_is_idempotent(text: str) -> None:
    once = canonical(text)
    assert canonical(once) == once


@given(TEXTS, st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_canonical_text_is_the_same_for_every_unicode_form(text: str, form: str) -> None:
    assert canonical(unicodedata.normalize(form, text)) == canonical(text)


@given(TEXTS)
def test_canonical_text_can_be_stored(text: str) -> None:
    stored = canonical(text)
    assert stored.encode("utf-8").decode() == stored
    assert "\0" not in stored
    assert stored == " ".join(stored.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The tests were failing", ["test", "fail"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("parse_json_file", ["parse_json_file", "pars", "json", "file"]),
        ("src/main.py", ["src/main.py", "src", "main.py", "main", "py"]),
        ("os.path.join", ["os.path.join", "os", "path", "join"]),
        ("C++ and C#", ["c++", "c", "c#", "c"]),
        ("Python 3.11", ["python", "3.11", "3", "11"]),
        ("--no-verify", ["no-verify", "verifi"]),
        ("오류를 고쳤다", ["오류", "류를", "고쳤", "쳤다"]),
        ("값", ["값"]),
        ("pytest를 실행", ["pytest", "실행"]),
        ("日本語", ["日本", "本語"]),
        ("x" * 65, []),
        ("\0 \ud800", []),
    ],
)
def test_words_for_search(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@given(TEXTS)
def test_words_do_not_depend_on_the_unicode_form(text: str) -> None:
    assert tokens(unicodedata.normalize("NFD", text)) == tokens(text)


def test_estimated_tokens_count_hangul_by_the_character_and_english_by_four() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("abcd" * 10) == 10
    assert estimate_tokens("가나다라마바사아자차") == 10
    assert estimate_tokens("привет") == 3


@given(TEXTS, TEXTS)
def test_estimated_tokens_grow_with_the_text(one: str, other: str) -> None:
    assert max(estimate_tokens(one), estimate_tokens(other)) <= estimate_tokens(one + other)


# --- quality, on public data where it is at hand ---


def hit_rates(documents: Sequence[str], queries: Sequence[tuple[str, set[int]]], at: Sequence[int]) -> list[float]:
    """The share of queries with a right document among the first k, for each k, ranked by BM25 as the index does it."""
    postings: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for document, text in enumerate(documents):
        for index, weight in zip(*sparse(text), strict=True):
            postings[index].append((document, weight))
    hits = Counter[int]()
    for text, right in queries:
        scores: dict[int, float] = defaultdict(float)
        for index in sparse_query(text)[0]:
            found = postings.get(index, [])
            idf = math.log((len(documents) - len(found) + 0.5) / (len(found) + 0.5) + 1)
            for document, weight in found:
                scores[document] += idf * weight
        ranked = sorted(scores, key=lambda document: (-scores[document], document))
        hits.update(k for k in at if right & set(ranked[:k]))
    return [hits[k] / len(queries) for k in at]


def read(name: str) -> str:
    path = published.FOLDER / name
    if not path.is_file():
        pytest.skip(published.lacking(path))
    return path.read_text()


def test_english_search_is_at_least_as_good_as_stemmed_bm25() -> None:
    data = json.loads(read("longmemeval-lite/lme_evidence_turns.json"))
    position = {passage["id"]: k for k, passage in enumerate(data["passages"])}
    queries = [(query["question"], {position[gold] for gold in query["gold"]}) for query in data["queries"]]
    rates = hit_rates([p["text"] for p in data["passages"]], [query for query in queries if query[1]], (1, 5, 10))
    assert [rate >= floor for rate, floor in zip(rates, (0.641, 0.841, 0.881), strict=True)] == [True] * 3, rates


def test_korean_search_finds_the_page_that_a_description_was_taken_from() -> None:
    documents, queries = [], []
    for position, line in enumerate(read("tldr-ko-en.jsonl").splitlines()):
        title, *rest = json.loads(line)["ko"].split("\n")
        description = next(text for text in rest if text.startswith(">"))
        documents.append("\n".join(text for text in rest if text != description))
        name = re.escape(title.lstrip("# ").strip())
        queries.append((re.sub(name, " ", description, flags=re.IGNORECASE), {position}))
    rates = hit_rates(documents, queries, (1, 10))
    # Words between spaces, in place of pairs of syllables, reach .557 and .810 here.
    assert rates[0] >= 0.57, rates
    assert rates[1] >= 0.82, rates


def test_every_python_makes_the_same_keys() -> None:
    """Unicode grows from one version of Python to the next; what this one made stands here."""
    digest = hashlib.sha256()
    later = [int(end, 16) for each in text_module._LATER.split() for end in each.split("-")]
    for code in sorted({*later, *range(0, 0x30000, 29)}):
        if not 0xD800 <= code < 0xE000:
            character = f"a{chr(code)}B"
            digest.update(repr((canonical(character), tokens(character))).encode())
    assert digest.hexdigest()[:16] == "7e5ac182c5234815"


@given(st.text(st.sampled_from("ab_ ?éK가\ud800\n")))
def test_runs_are_what_a_pattern_finds(text: str) -> None:
    assert Runs("ab_").within(text) == re.findall("[ab_]+", text)
