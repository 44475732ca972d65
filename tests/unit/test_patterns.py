"""Patterns answer as `re` does where both know them, and in time linear in the text."""

from __future__ import annotations

import importlib
import pickle
import pkgutil
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memctl.domain
import memctl.infra
import memctl.projections
from memctl.domain.support import patterns

# What memctl's own patterns are made of: each is of RE2's syntax and of `re`'s.
SOURCES = (
    r"a", r"ab|a", r"a*?b", r"(?P<x>a+)(?P<y>b)?", r"^a", r"b$", r"\w+", r"\s+", r"[^\s:]+", r"\bab\b", r"(?i)AB",
    r"a{1,2}",     r"(?<!a)b", r"(?<=a)b", r"(?<=a)b|c", r"b(?!a)", r"a(?=b)", r"a(?=b)|c(?=a)", r"(?<!\w)b(?!\w)",
    r"(?<![^\W_])b(?![^\W_])", r"(?<!\S)b(?!\d)",
    r"[^\W\d_]+", r"[가-힣]+", r"(?P<b>b)?(?P<c>c)", r"a(?P<rest>.*)$", r"(?:a|b)+c", r"", r"b*",
)  # fmt: skip
TEXTS = st.lists(
    st.sampled_from(("a", "b", "c", "ab", " ", "\n", ":", "1", "_", "é", "가", "😀", "\ud800")), max_size=12
).map("".join)
FLAGS = st.sampled_from((0, patterns.M, patterns.I, patterns.M | patterns.S))


def standard(source: str, flags: int) -> re.Pattern[str]:
    known = {patterns.I: re.I, patterns.M: re.M, patterns.S: re.S, patterns.X: re.X}
    return re.compile(source, sum(known[flag] for flag in known if flags & flag))


@settings(max_examples=500, deadline=None)
@given(source=st.sampled_from(SOURCES), flags=FLAGS, text=TEXTS, long=st.booleans())
def test_a_pattern_finds_what_the_standard_library_finds(source: str, flags: int, text: str, long: bool) -> None:
    if source.endswith("$") and not flags & patterns.M:
        text = text.rstrip("\n")  # `$` is the end of the text, never before its last line break
    if r"\b" in source:
        text = text.encode("ascii", "ignore").decode()  # `\b` is of ASCII words
    text = text * 600 if long else text
    ours, theirs = patterns.compile(source, flags), standard(source, flags)
    pairs = [(ours.search(text), theirs.search(text)), (ours.match(text), theirs.match(text))]
    pairs += [(ours.fullmatch(text), theirs.fullmatch(text))] if text.count("\n") == 0 else []
    if not (text.endswith("\n") and flags & patterns.M):
        pairs += zip(ours.finditer(text), theirs.finditer(text), strict=True)
    for our, their in pairs:
        assert (our is None) == (their is None)
        if our is not None and their is not None:
            assert (our.span(), our[0], our.groups()) == (their.span(), their[0], their.groups())
            assert our.groupdict() == their.groupdict()


@settings(max_examples=500, deadline=None)
@given(source=st.sampled_from(SOURCES), text=TEXTS, start=st.integers(0, 12), end=st.integers(0, 12))
def test_a_window_of_a_text_is_matched_as_the_standard_library_matches_it(
    source: str, text: str, start: int, end: int
) -> None:
    if r"\b" in source:
        text = text.encode("ascii", "ignore").decode()
    if source.endswith("$") and text[:end].endswith("\n"):
        return
    start = min(start, len(text), end)
    our, their = patterns.compile(source).match(text, start, end), standard(source, 0).match(text, start, end)
    assert (our and our.span()) == (their and their.span())


@pytest.mark.parametrize(
    ("source", "text", "left"),
    [
        (r"\s*,\s*", "a , b,c", ["a", "b", "c"]),
        (r"(-)|(:)", "a-b:c", ["a", "-", None, "b", None, ":", "c"]),
        (r"x", "a", ["a"]),
    ],
)
def test_a_text_is_split_at_the_matches(source: str, text: str, left: list[str | None]) -> None:
    assert patterns.compile(source).split(text) == left
    assert patterns.compile(source).split(text, maxsplit=1)[0] == left[0]


def test_matches_are_replaced_by_a_text_as_it_is_or_by_what_is_made_of_them() -> None:
    name = patterns.compile(r"\$(\w+)")
    assert name.sub(r"\1", "$a and $é") == r"\1 and \1"
    assert name.sub(lambda found: f"<{found[1]}>", "$a and $é") == "<a> and <é>"
    assert name.subn("x", "$a $b $c", count=2) == ("x x $c", 2)


def test_a_refused_look_around_goes_on_behind_the_beginning_of_the_match() -> None:
    assert [found[0] for found in patterns.compile(r"(?!ab)\w{2}").finditer("abcd")] == ["bc"]
    assert patterns.compile(r"review(?! comments)").search("review comments, then review") is not None


@pytest.mark.parametrize(
    "source", [r"(a)\1", r"(?:a(?=b))+", r"a++", r"(?>a)", r"a{,3}", r"(", r"b(?<=a+)b", r"a\b가b", r"[\W]"]
)
def test_what_is_not_of_the_dialect_is_refused(source: str) -> None:
    with pytest.raises(patterns.BadPattern):
        patterns.compile(source).search("a")


def test_a_word_in_another_script_ends_where_it_ends() -> None:
    name = patterns.compile(r"\b홍길동\b")
    assert [found.start() for found in name.finditer("홍길동, é홍길동 홍길동님 홍길동")] == [0, 15]
    assert patterns.compile(r"\btest\b").search("test를 고쳐")


def test_bytes_are_matched_as_bytes() -> None:
    found = patterns.compile(rb"(?P<name>\w+)=\xff").search(b"\x00key=\xff")
    assert found is not None
    assert (found["name"], found.span()) == (b"key", (1, 6))


def test_a_pattern_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(patterns.compile("a", patterns.I))).search("A")


def all_patterns() -> list[patterns.Pattern[str] | patterns.Pattern[bytes]]:
    for room in (memctl.domain, memctl.projections, memctl.infra):
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            if "migrations" not in module.name:
                importlib.import_module(module.name)
    return sorted(patterns.made(), key=lambda each: str(each.pattern))


def test_every_pattern_of_memctl_is_of_the_dialect() -> None:
    found = all_patterns()
    assert len(found) > 500
    for each in found:
        each.search("" if isinstance(each.pattern, str) else b"")  # type: ignore[arg-type]


@pytest.mark.parametrize("source", ["[a", "[^", "[a\\", "(a", "\\", "a(?=b", "(?<!["])
def test_a_pattern_that_breaks_off_is_refused_in_words(source: str) -> None:
    """Users write patterns too, of what is to be cut."""
    with pytest.raises(patterns.BadPattern):
        patterns.Pattern(source).search("a")


@pytest.mark.parametrize("unit", ["  x\n", "a ", "1", "é", "((", "/a", "https://a.b/c?", "Error: ", "\\"])
def test_no_pattern_takes_longer_than_its_text(unit: str) -> None:
    """All matches in eight times the text take some eight times as long."""
    for each in all_patterns():
        if isinstance(each.pattern, bytes) or each.match(""):  # what may be nothing is asked for at one place only
            continue
        small, large = (_seconds(each, unit * (size // len(unit))) for size in (3_000, 24_000))
        assert large < 0.05 + 20 * small, each


def _seconds(pattern: patterns.Pattern[str], text: str) -> float:
    began = time.process_time()
    for _ in pattern.finditer(text):
        pass
    return time.process_time() - began


@pytest.mark.parametrize("length", [*range(254, 260), 512, 513, 2_048, 4_096])
def test_a_text_may_be_matched_at_its_very_end_whatever_its_length(length: int) -> None:
    text = "가" * length
    for place in (length, length - 1, length // 2):
        found = patterns.compile("$|가").match(text, place)
        assert found is not None
        assert found.span() == (place, min(place + 1, length))
