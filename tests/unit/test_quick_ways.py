"""What is read by a quick way, beside the pattern that says what is meant: both give the same."""

from __future__ import annotations

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.language import prompts, summaries
from memctl.domain.support import patterns
from memctl.infra.redaction import views
from memctl.infra.transcripts.fields import identifier

words = st.lists(
    st.sampled_from((
        "always", "never use", "please", "don't", "a", "the tests", "I prefer", "from now on", "remember", "we use",
        "가나", "가", "한국어로", "항상", "é", "x1", "_ab", "12abcd", "`code`", "a.b",
        "(word)", ":", ".", ",", "/", " ", "\n", "ſ",
    )),
    max_size=12,
).map("".join)  # fmt: skip


@given(words)
def test_words_are_those_of_the_pattern(text: str) -> None:
    pattern = patterns.compile(r"[A-Za-z][A-Za-z0-9_]{3,}|[가-힣]{2,}")
    found = {word.lower() for word in pattern.findall(text)}
    assert prompts.words_in(text) == {word[:7] for word in found - prompts._COMMON}


@given(words)
def test_a_sentence_says_words_where_the_pattern_finds_three(text: str) -> None:
    assert summaries.says_words(text) == (sum(1 for _ in islice(summaries._PLAIN_WORD.finditer(text), 3)) == 3)


@given(st.text(alphabet='\\ntbu04"/a', max_size=30).map(str.encode))
def test_escapes_become_what_the_pattern_says(data: bytes) -> None:
    single = patterns.compile(rb"\\+").sub(rb"\ "[:1], data)
    for escape, byte in views._ESCAPED.items():
        single = single.replace(b"\\" + escape, byte)
    coded = views._CODE.sub(lambda code: bytes((int(code[1], 16),)), single)
    assert b"\\" not in data or views._unescaped(data) == coded


@given(st.text(alphabet="aZ0._:@#+-/ é", min_size=1, max_size=130))
def test_plain_ids_stay_as_they_are(name: str) -> None:
    plain = patterns.compile(r"[A-Za-z0-9][A-Za-z0-9._:@#+-]{0,127}").fullmatch(name)
    assert (identifier(name) == name) == (plain is not None)
    assert len(identifier(name)) <= 128


def test_what_was_found_in_a_short_text_is_of_that_pattern_and_that_place() -> None:
    first, second = patterns.compile("b(c)?"), patterns.compile("(b)c")
    for _ in range(2):
        assert first.search("abc").span() == (1, 3)  # type: ignore[union-attr]
        assert first.match("abc") is None
        assert first.fullmatch("b")[1] is None  # type: ignore[index]
        assert second.search("abc")[1] == "b"  # type: ignore[index]
        assert first.search("abc", 2) is None
