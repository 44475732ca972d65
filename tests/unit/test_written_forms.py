"""A text is found in whatever form people read it, and what holds its letters alone counts as near."""

from __future__ import annotations

import base64
import json
import unicodedata

import line_fronts
import pytest
from written import FORMS, NEAR, stands_in

from memctl.domain.support.written_forms import WrittenForms

PHRASE = "the zq7vkx19mw Harbour protocol"


def around(text: str) -> bytes:
    return f"before it stands something, {text} after it".encode()


@pytest.mark.parametrize("form", FORMS)
def test_a_phrase_is_held_in_whatever_form_it_is_written(form: str) -> None:
    written = FORMS[form](PHRASE)
    assert WrittenForms([PHRASE]).within(around(written)) == ({PHRASE}, set())
    assert stands_in(PHRASE, written), "the tests' own way finds it, too"


@pytest.mark.parametrize("form", FORMS)
def test_it_is_held_in_that_form_within_json_as_a_table_is_copied(form: str) -> None:
    copied = json.dumps({"text": FORMS[form](PHRASE)}).replace("\\", "\\\\")
    assert WrittenForms([PHRASE]).within(copied.encode()).held == {PHRASE}


@pytest.mark.parametrize("aside", [False, True], ids=["written on", "set aside"])
def test_a_phrase_over_three_lines_is_seen_whatever_a_tool_puts_before_them(aside: bool) -> None:
    phrase = "meet dana at the old harbour before dawn with the ledger"
    said = "x = 1\nmeet dana at the\nold harbour before\ndawn with the ledger\ny = 2\n"
    fronts = [name for name in line_fronts.FRONTS if line_fronts.set_aside(name) is aside]
    sought = WrittenForms([phrase])
    kept = [name for name in fronts if not sought.within(line_fronts.fronted(name, said).encode()).held]
    assert len(kept) <= 0.01 * len(fronts), kept
    other = "\n".join(line_fronts.fronted(name, said.replace("harbour", "tower")) for name in fronts)
    assert not sought.within(other.encode()).held


BEGUN = {
    "cat": "here:   12\tmeet dana at\n    13\tthe old harbour",
    "read": "look at this:   9→meet dana at\n  10→the old harbour",
    "editor": "that is 12 | meet dana at\n13 | the old harbour",
    "grep": "see src/plan.md:12:meet dana at\nsrc/plan.md:13:the old harbour\nand so on",
    "list": "we said (99) meet dana at\n100) the old harbour",
    "padded": "here:     1  meet dana at\r\n    2  the old harbour",
}


@pytest.mark.parametrize("form", BEGUN)
def test_a_phrase_over_numbered_lines_is_held_though_the_first_is_begun_behind_what_was_typed(form: str) -> None:
    sought = WrittenForms([phrase := "meet dana at the old harbour"])
    assert sought.within(BEGUN[form].encode()).held == {phrase}
    copied = json.dumps({"text": BEGUN[form]}).replace("\\", "\\\\")
    assert sought.within(copied.encode()).held == {phrase}


@pytest.mark.parametrize(
    "other",
    [
        "here:   12\tmeet dana at\n    14\tthe old harbour",
        "here: meet dana at\n13 the old harbour",
        "here: 112: meet dana at\n13: the old harbour",
        "a.md:12:meet dana at\nb.md:13:the old harbour",
        "here:   12\tmeet dana at\n    13the old harbour",
    ],
)
def test_a_number_that_counts_no_lines_keeps_what_stands_around_it_apart(other: str) -> None:
    assert not WrittenForms(["meet dana at the old harbour"]).within(other.encode()).held


@pytest.mark.parametrize("written", ["nine < a and b > lives", "nine <1> lives"])
def test_a_comparison_is_no_tag(written: str) -> None:
    assert not WrittenForms(["nine lives"]).within(around(written)).held


@pytest.mark.parametrize("form", NEAR)
def test_the_same_letters_with_other_signs_between_them_are_near(form: str) -> None:
    assert WrittenForms([PHRASE]).within(around(NEAR[form](PHRASE))) == (set(), {PHRASE})


@pytest.mark.parametrize(
    "other",
    [
        "the zq7vkx19mw harbour",
        "the zq7vkx19mw harbours a protocol",
        base64.b64encode(b"the zq7vkx19m harbour protocol").decode(),
        "the harbour protocol zq7vkx19mw",
        FORMS["a dump"]("the zq7vkx19m harbour protocol"),
        FORMS["a list of bytes"]("the zq7vkx19m harbour protocol"),
        FORMS["base32"]("the zq7vkx19m harbour protocol"),
        FORMS["lines of a search"]("the zq7vkx19m harbour protocol"),
    ],
)
def test_other_words_are_neither(other: str) -> None:
    assert WrittenForms([PHRASE]).within(around(other)) == (set(), set())


@pytest.mark.parametrize(
    "phrase", ["a+b == c", "C:\\new\\table", "100%25", "-> =>", "결제대행 조정", "Straße 7 é", "&amp; co"]
)
def test_a_phrase_of_signs_or_of_other_letters_is_found_as_it_stands(phrase: str) -> None:
    assert WrittenForms([phrase]).within(around(phrase)).held == {phrase}
    assert not WrittenForms([phrase]).within(around("something else")).held


@pytest.mark.parametrize(
    "phrase",
    [
        "συμφωνία με τον Παπαδόπουλο",
        "Королёв Андрей",
        "Олексій Їжакевич",
        "José Álvarez",
        "Mc O'Malley-Blau",
        'the "Harbour" deal',
    ],
)
def test_a_letter_and_its_mark_are_one_letter_and_a_quotation_mark_is_as_it_is_typed(phrase: str) -> None:
    typeset = phrase.translate(str.maketrans("-'", "\u2011\u2019")).replace('"H', "\u201cH").replace('r"', "r\u201d")
    forms = (unicodedata.normalize("NFD", phrase), unicodedata.normalize("NFC", phrase), typeset)
    for form in forms:
        assert WrittenForms([phrase]).within(around(form)).held == {phrase}
        assert WrittenForms([form]).within(around(phrase)).held == {form}


@pytest.mark.parametrize(
    ("phrase", "written"),
    [
        ("the purple-falcon plan", "**the** purple-falcon, plan"),
        ("the purple-falcon plan", "> the pur-\n> ple-falcon\n> plan"),
        ("ask Королёв", "ask: «Королёв»"),
        ("결제대행 조정", "| 결제대행 | 조정 |"),
        ("so it is.", "so, it is!"),
    ],
)
def test_what_is_the_same_in_canonical_form_is_held_however_short_it_is(phrase: str, written: str) -> None:
    assert WrittenForms([phrase]).within(around(written)) == ({phrase}, set())


def test_a_word_is_not_held_where_a_longer_one_begins_with_it_or_where_it_lacks_its_signs() -> None:
    assert not WrittenForms(["so it is"]).within(b"so, it isn").held
    assert not WrittenForms(["name()"]).within(b"a name of it").held


def test_a_word_does_not_join_with_what_stands_in_another_line() -> None:
    assert WrittenForms(["now here"]).within(b"it is nowhere") == (set(), set())


def test_of_several_texts_those_are_named_that_stand_there() -> None:
    sought = WrittenForms(["zq7vkx19mw", "bq3jhy54nd", "fh2wkq83zt"])
    assert sought.within(around("%7aq7vkx19mw and fh2w\nkq83zt")).held == {"zq7vkx19mw", "fh2wkq83zt"}
    assert WrittenForms([]).within(around(PHRASE)) == (set(), set())


def test_a_word_that_stands_alone_is_found_in_pieces_behind_what_each_line_begins_with() -> None:
    for broken in ("E   qzb\nE   smy\nE   k91x", "src/a.md:12:qzb\nsrc/a.md:13:smy\nsrc/a.md:14:k91x"):
        assert WrittenForms(["qzbsmyk91x"]).within(broken.encode()).held == {"qzbsmyk91x"}
