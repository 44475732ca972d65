"""What looks at text that others wrote takes time linear in it."""

from __future__ import annotations

import gc
import math
import random
import re
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest
from data_dirs import anonymizing
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from soak import FACTOR, examples
from text_functions import TextFunction, text_functions

from memctl.domain.failures.explanations import sentences
from memctl.domain.failures.met_errors import error_lines
from memctl.domain.failures.signatures import errors_in
from memctl.domain.language.summaries import account_of
from memctl.domain.projects.stack import imports_in, manifest_in
from memctl.domain.support import patterns
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.line_prefixes import prefixes
from memctl.infra.transcripts.aider import Aider
from memctl.infra.transcripts.formats import Document
from memctl.infra.transcripts.gemini import GeminiLines
from memctl.infra.transcripts.reading import parse_document
from memctl.infra.transcripts.specstory import SpecStory
from memctl.infra.transcripts.sweagent import _call

NINE_LINES = """\
          Traceback (most recent call last):
        cythoning pkg/a.pyx to pkg/a.c
        cythoning pkg/b.pyx to pkg/b.c
        cythoning pkg/c.pyx to pkg/c.c
        cythoning pkg/d.pyx to pkg/d.c
        cythoning pkg/e.pyx to pkg/e.c
        cythoning pkg/f.pyx to pkg/f.c
        copying pkg/g.py -> build
building without a name of an error
"""
"""Of a build: below what looks like a traceback nothing ends it. `re` took k^7 steps for k blanks before each line."""

FUNCTIONS: dict[str, Callable[[str], object]] = {
    "account_of": lambda text: account_of(text, 1_000),
    "errors_in": lambda text: errors_in(text, "make test", failed=True, exit_code=1),
    "errors_in_passing": lambda text: errors_in(text, "cat x", failed=False, exit_code=0),
    "imports_in": lambda text: imports_in("a.py", text),
    "manifest_in": lambda text: manifest_in("go.mod", text),
    "manifest_in_toml": lambda text: manifest_in("pyproject.toml", text),
    "swe_agent_action": lambda text: _call(f"edit {text}"),
    "redact": lambda text: redactor().redact(text),
}
"""What looks elsewhere by what stands beside the text. The others are found by their annotations."""

ALL = text_functions()


@cache
def redactor():  # type: ignore[no-untyped-def]
    return anonymizing("ticket-[0-9]+")


@cache
def literals() -> tuple[str, ...]:
    """What stands in memctl's patterns as it is: words, marks and beginnings of what they look for."""
    import memctl.domain.session.stream_facts  # noqa: F401  # registers most of them

    written = (each.pattern for each in patterns.made() if isinstance(each.pattern, str))
    found = {piece for source in written for piece in re.findall(r"[A-Za-z가-힣`'\"<>/=:.# -]{2,30}", source)}
    return tuple(sorted(found))


def seconds(function: Callable[[str], object], text: str) -> float:
    """The processor time of one call, without the collection of garbage: what that takes is the size of the process."""
    gc.disable()
    try:
        began = time.process_time()
        function(text)
        return time.process_time() - began
    finally:
        gc.enable()


def least_seconds(function: Callable[[str], object], text: str) -> float:
    return min(seconds(function, text + end) for end in ("", " "))


UNITS = (
    *(NINE_LINES, NINE_LINES.strip().splitlines()[0].strip() + "\n", "a.", "a. ", "’", " | cat", "cd a; "),
    *("  a\n", "가", "않", "# ", "(", "[", "{", '"', "'", "`", "```\n", "<a>", "</a>", "- a\n", "a/", "\\"),
    *("“a” ", '"a" ', "'a', ", "`a` ", "가나 ", "\u0301\u0316"),
    *("| a |\n", "a b ", "\r\n", "a=1 ", "--a ", "$(", "&&", "0", "a: b\n", "  at a (b.js:1:2)\n", "Nn:allowed<<A\n"),
)
"""What a text is made of by repetition."""

JOINTS = st.sampled_from(("", " ", "\n", "\n  ", "\t", ": ", "\x1b[0m", "é", "\\", '"', "'", "`", "(", "<<A\n"))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_text_of_eight_times_the_length_takes_some_eight_times_as_long(name: str) -> None:
    expect_linear_of_all([FUNCTIONS[name]])


@pytest.mark.parametrize("module", ALL)
def test_each_function_of_text_takes_time_linear_in_it(module: str) -> None:
    expect_linear_of_all([partial(ended, function) for function in ALL[module]])


def test_functions_of_text_are_found_with_what_they_are_called_by() -> None:
    found = {(module, each.name) for module, functions in ALL.items() for each in functions}
    assert {
        ("domain.failures.templates", "template_of(message)"),
        ("domain.language.claims", "sentences(text)"),
    } <= found
    assert len(found) > 500


def ended(function: TextFunction, text: str) -> None:
    """Call a function that may refuse what is no text of its kind, which is an end as well."""
    with suppress(MemctlError, LookupError, ValueError, TypeError, AssertionError, OSError):
        function(text)


def expect_linear_of_all(functions: Sequence[Callable[[str], object]]) -> None:
    for function in functions:
        taken = {unit: first_look(function, unit) for unit in UNITS}
        dear = sorted((unit for unit in UNITS if taken[unit] >= SOON), key=lambda unit: -taken[unit])
        for unit in dear if FACTOR else dear[:5] + [unit for unit in dear[5:] if random.random() < 0.3]:
            expect_linear(function, unit)

    @settings(
        examples(2), deadline=None, suppress_health_check=list(HealthCheck), phases=(Phase.explicit, Phase.generate)
    )
    @given(st.lists(st.tuples(st.sampled_from(literals()), JOINTS), min_size=1, max_size=3))
    def drawn(pieces: list[tuple[str, str]]) -> None:
        for function in functions:
            expect_linear(function, "".join(piece + joint for piece, joint in pieces))

    drawn()


def test_a_deep_key_of_quoted_names_is_no_manifest_s() -> None:
    assert seconds(lambda text: manifest_in("pyproject.toml", text), '"\\"".' * 3_190 + "b = 1\n") < 0.1


def aider(size: int, apart: str = "") -> str:
    answered = "a\n" * (size // 4) + "\n" + f"> Applied edit to a.py  \n{apart}" * (size // 50)
    return f"# aider chat started at 2026-01-01 10:00:00\n\n#### please  \n\n{answered}"


def specstory(size: int) -> str:
    used = "- a: `b`\n" * (size // 18) + "```\n```\n" * (size // 16) + "\n**Result:**\n\n```\nx\n```\n"
    return (
        "<!-- Generated by SpecStory -->\n\n# A (2026-01-01 10:00:00Z)\n\n"
        "<!-- Claude Code Session 00000000-0000-4000-8000-000000000000 (2026-01-01 10:00:00Z) -->\n\n"
        "_**User (2026-01-01 10:00:00Z)**_\n\nhi\n\n---\n\n_**Agent (model x, mode Agent)**_\n\n"
        '<tool-use data-tool-type="x" data-tool-name="y"><details>\n<summary>Tool use: **y**</summary>\n\n'
        f"{used}</details></tool-use>\n\n---\n"
    )


@pytest.mark.parametrize(
    ("format", "written"),
    [
        (Aider(Path("/w/.aider.chat.history.md")), aider),
        (Aider(Path("/w/.aider.chat.history.md")), partial(aider, apart="\n")),
        (SpecStory(Path("/w/.specstory/history/a.md")), specstory),
    ],
)
def test_a_document_of_eight_times_the_length_is_read_in_some_eight_times_the_time(
    format: Document, written: Callable[[int], str]
) -> None:
    small, large = (
        least_seconds(
            lambda text: sum(len(each.events) for each in parse_document(text.encode(), format)), written(size)
        )
        for size in (12_500, 100_000)
    )
    assert large < 0.06 + 16 * small, f"{small:.3f} s and {large:.3f} s"


def test_deep_paths_in_a_chat_of_gemini_cost_no_more_than_those_that_are_looked_at() -> None:
    """The project is the folder whose digest is known: each folder of a path was looked at, its whole name."""
    chat, call = GeminiLines(), {"name": "x", "args": {str(number): "/a" * 2_000 for number in range(200)}}
    chat.read({"sessionId": "s", "projectHash": "0" * 64}, "#1")
    message = {"id": "m", "type": "gemini", "toolCalls": [call] * 3}
    assert seconds(lambda place: chat.read(message, place), "#2") < 0.5


ASKED = count()
"""What functions keep by text would answer for a text asked before: so each text ends in a number of its own."""


def note_each_look(monkeypatch: pytest.MonkeyPatch, note: Callable[[str], object]) -> None:
    """Call `note` with each text that a pattern is asked of."""

    def noting(name: str) -> Callable[..., Any]:
        looks, at = getattr(patterns.Pattern, name), 1 if name == "subn" else 0

        def noted(pattern: Any, *given: Any) -> Any:
            note(given[at])
            return looks(pattern, *given)

        return noted

    for name in ("search", "match", "fullmatch", "finditer", "findall", "subn", "split"):
        monkeypatch.setattr(patterns.Pattern, name, noting(name))


FIRST, SMALL, LARGE, LARGEST = 2_700, 8_000, 128_000, 1_024_000
"""Characters. The last is asked for where the one before took longer than it should: where the memory of a machine is
slow, what fits its caches and what does not differ by a power of 1.3, while beyond both a square only grows steeper."""
SOON = 0.00027
"""Seconds. What is done so soon with a third of the length is not asked for the whole: no cube of it takes long."""
LINEAR, STEEP, STEEPER = 1.1, 1.18, 1.4
"""Powers of the length. Below the first no more is measured. From the second on the largest text is asked for, unless
it would take too long: what comes out at the third is no noise."""


def repeated(unit: str, size: int) -> str:
    return f"{unit * (size // len(unit) + 1)} {next(ASKED)}"


def first_look(function: Callable[[str], object], unit: str) -> float:
    return seconds(function, repeated(unit, FIRST))


def expect_linear(function: Callable[[str], object], unit: str) -> None:
    """What takes long is asked for at three times the length, and where that took more than three times as long, at
    sixteen times that, and then at eight times that."""

    def taken(size: int) -> float:
        return seconds(function, repeated(unit, size))

    if (first := taken(FIRST)) < SOON:
        return
    small = taken(SMALL)
    if (
        small < 0.005
        or small < (SMALL / FIRST) ** LINEAR * first
        or small < 4**LINEAR * min(taken(2_000), taken(2_000))
    ):
        return
    if (power := power_of(taken, SMALL, LARGE)) >= STEEP:
        power = power_of(taken, LARGE, LARGEST) if power < STEEPER else min(power, power_of(taken, SMALL, LARGE))
        if power >= STEEPER:
            pytest.fail(f"{unit!r} repeated: {small:.3f} s for {SMALL:,}, and a power of {power:.2f}")


def power_of(taken: Callable[[int], float], shorter: int, longer: int) -> float:
    """By which power of the length time grows. Noise only adds time: of all measures the least counts."""
    small = large = math.inf
    power, least = 0.0, LINEAR if longer == LARGE else STEEPER
    for _ in range(7):
        small = min(small, *(taken(shorter) for _ in range(4 if longer == LARGE else 1)))
        large = min(large, taken(longer))
        power = math.log(large / small, longer / shorter)
        if power < least:
            break
    return power


def steps(number: float) -> None:
    """Work in proportion."""
    for _ in range(int(number)):
        pass


def seen(function: Callable[[str], object]) -> bool:
    try:
        expect_linear(function, "a")
    except pytest.fail.Exception:
        return True
    return False


def test_a_square_that_outgrows_the_rest_at_twelve_thousand_characters_is_seen() -> None:
    six_milliseconds = 100_000 * 0.006 / least_seconds(lambda _: steps(100_000), "")

    def steep(text: str) -> None:
        steps(six_milliseconds * (len(text) + len(text) ** 2 / 12_000) / SMALL)

    assert any(seen(steep) for _ in range(5))  # beside other work, one in five looks sees less


@pytest.mark.parametrize(
    ("grows", "expected"),
    [
        (lambda size: size**1.5, True),
        (lambda size: size + size**2 / 8_000, True),
        (lambda size: size + size**2 / 12_000, True),
        (lambda size: size, False),
        (lambda size: size * math.log2(size), False),
        (lambda size: size * (2 if size > 100_000 else 1), False),
        (lambda size: size * (2 if size > 1_000_000 else 1), False),
    ],
    ids=["n^1.5", "n + n^2", "n + some n^2", "n", "n log n", "n, beyond a cache", "n, beyond another"],
)
def test_in_noise_as_of_a_busy_machine_what_is_steep_is_seen_and_nothing_else(
    grows: Callable[[float], float], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise is what a clock is made to show: up to a quarter more, and now and then double."""
    noise = random.Random(1)

    def clock(_: object, text: str) -> float:
        noisy = 1 + 0.25 * noise.random() ** 3 + (noise.random() < 0.05)
        return 0.01 * grows(len(text)) / grows(SMALL) * noisy

    monkeypatch.setattr(sys.modules[__name__], "seconds", clock)
    found = sum(seen(len) for _ in range(500))
    assert found >= 400 if expected else found == 0


def test_nine_lines_in_an_output_of_a_megabyte_are_read_at_five_megabytes_a_second() -> None:
    text = (NINE_LINES + "ok\n") * (1_000_000 // len(NINE_LINES))

    def errors(text: str) -> object:
        return errors_in(text, "pip install .", failed=True, exit_code=1)

    errors("what is made at the first call")
    assert least_seconds(errors, text) < len(text) / 5_000_000


REPORTS = ("--- FAIL: a\n", "(fail) a\nError\n", "  ● a › b\n", " ✖ a (1ms)\n", "FAILED a.py::b - x\n")


@pytest.mark.parametrize("report", REPORTS)
def test_reports_of_thousands_of_failures_cost_no_more_than_those_that_are_named(report: str) -> None:
    def errors(text: str) -> object:
        return errors_in(text, "make test", failed=True, exit_code=1)

    errors(report)
    kept, pasted = ((report * size)[:size] for size in (16_000, 400_000))
    assert max(least_seconds(errors, kept), least_seconds(errors, pasted)) < 0.08


ERRORS = (
    "src/{0}/{1}.ts({2},7): error TS2322: Type '{0}' is not assignable to type '{1}'.",
    "{0}/{1}.c:{2}:7: error: '{0}_{1}' undeclared (first use in this function)",
    "a.c:{2}: error: {0}",
    "error[E0308]: mismatched types in `{0}_{1}`\n  --> src/{0}.rs:{2}:7\n   |",
    "FAILED tests/test_{0}.py::test_{1}_{2} - AssertionError: assert {2} == 7",
    "  {2}:7  error  '{0}{1}' is assigned a value but never used  no-unused-vars",
    "2026-11-01 12:00:00 ERROR {0}.{1}: failed to {0} {1}{2}: timeout after {2} ms",
)


@pytest.mark.parametrize("error", ERRORS)
def test_an_output_full_of_different_errors_is_looked_at_no_further_than_what_is_kept_of_it(
    error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler prints hundreds, each as dear as the first. What is counted is how often a pattern is asked."""
    asked = count()

    def output(length: int) -> str:
        numbers = (next(ASKED) for _ in count())
        lines = (error.format(f"cart{'abc'[n % 3] * (n % 7)}", f"total{n}", n) for n in numbers)
        return "\n".join(islice(lines, length // len(error)))

    def read(length: int) -> int:
        text, before = output(length), next(asked)
        errors_in(text, "make test", failed=True, exit_code=1)
        error_lines(text, "/w")
        return next(asked) - before

    read(4_000)
    note_each_look(monkeypatch, lambda _: next(asked))
    few, full = read(4_000), read(64_000)
    assert 0 < full < 5 * few


OPENINGS = ("\x9d", "\x1b]", "\x1b]8;;", "\x9b", "\x1b[", "<b ", "<!-- ", "%25", "&amp;", "\\u")
"""What begins something that a text may be read past, and does not end it."""


@pytest.mark.parametrize("opening", OPENINGS)
@pytest.mark.parametrize("behind", ["%41", "Ａ", "&#65; ", "é\u200b"])
def test_what_opens_and_never_ends_is_redacted_in_linear_time(opening: str, behind: str) -> None:
    expect_linear(redactor().redact, opening + behind)


UNJOINED = (
    *("token key=q7Wm2Zr9Lk4T ", 'token key="q7Wm2Zr9Lk4T" ', "token [ key=q7Wm2Zr9Lk4T ", "key <a b", "password> <a "),
    *("value=value=", 'value="q7Wm2Zr9Lk4Tn8, ', "token\nvalue: ", "token, a=1, value=", "value: hunter22!, key: "),
    *("token, ", "a | token |\n", "a,password\n", "(token, a) values (", "token\n- ", 'password="""', "password=\n\n"),
    *(
        "12:token:\n",
        "[1a] token:\n",
        "[INFO] token:\n[INFO]   q7Wm2Zr9Lk4T\n",
        "a (b c 1-2 9) key=\n",
        "passwd x",
        "key,\n",
        'password = os.getenv("X", ',
        '["authorization", "a ',
        'name="password" value=',
        "?token=&password=",
        "cookie, a=",
    ),
    *("0000000: 4142 4142 4142 4142 \n", "00000000: 4142 4142 0000000", "0000000   a   b   c   d   e   f   g   h\n"),
)
"""A secret's name and the beginning of what may join a value to it."""


@pytest.mark.parametrize("unit", ["12:a b\n", "[1] [2] [a] [b] ", "a (b) ", "2026-11-20 [a] b\n", "+\n-\n", "1a" * 9])
def test_what_lines_begin_with_is_found_in_linear_time(unit: str) -> None:
    expect_linear(lambda text: prefixes(text.encode().split(b"\n")), unit)


@pytest.mark.parametrize("unit", UNJOINED)
def test_names_without_values_are_redacted_in_linear_time(unit: str) -> None:
    expect_linear(redactor().redact, unit)


def test_colons_in_what_an_agent_says_are_read_in_linear_time() -> None:
    expect_linear(sentences, ": ")


def test_lines_too_short_to_say_anything_ask_no_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    note_each_look(monkeypatch, lambda text: pytest.fail(f"a pattern is asked of {text[:20]!r}"))
    assert error_lines("\n" * 8_000 + "a\n" * 4_000, "/w") == ()
