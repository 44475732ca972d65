"""Errors that a project has met before, known again by every distinctive line of an output.

The first error line of an output often says least: a suite prints what it provokes on purpose, a runner that a task
failed. So each line that reads like an error and names something (a file, a test, a package) is a key. What an agent
concludes of a failure is kept for the lines that it names: that they were there before, or what they come of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from memctl.domain.failures.explanations import causal, cause_in, guesses, links, says_what_was_wrong, sentences
from memctl.domain.failures.shapes import ERROR_WORDS
from memctl.domain.failures.signatures import LOOKED_AT, says_little
from memctl.domain.failures.templates import form_of_line, plain
from memctl.domain.support import patterns
from memctl.domain.support.bounded import NARROW, one_line
from memctl.domain.support.location import normalise
from memctl.domain.support.mentions import names_in, path_within
from memctl.domain.support.remembered import remembered
from memctl.domain.support.text import digest_of

MOST_LINES, MOST_PLACES = 24, 16
"""Distinctive lines of one output, and directories that its lines lie in, that are keys."""

MOST_READ = 64
"""Lines of one output that read like an error which are looked at for what they name; a compiler prints hundreds."""

LONGEST_LINE, SHORTEST_LINE = 300, 14
"""Characters of a line that are looked at, and below which it says nothing."""

LEAST_WORDS = 4
"""Words of its own by which a line that names nothing is known again."""

LONGEST_SAID = 400
"""Characters of what is kept of a conclusion."""


class ErrorLine(NamedTuple):
    """A line of an output that reads like an error: the digest by which it is known again, and what it names."""

    key: str
    text: str
    names: frozenset[str]
    paths: tuple[str, ...]


class Conclusion(NamedTuple):
    """What an agent says of a failure that was there before: its sentence, and the keys of what that names."""

    text: str
    keys: tuple[str, ...]


_VERDICT = patterns.compile(
    r"\(fail\) |--- FAIL: |\bFAIL(?:ED)?\b|✗|✘|❌|✖|× |(?:^|[ :])error(?:\[|:| TS\d)|^E |\bpanic: |"
    r"^(?:at )?[^\s:]+\.\w{1,5}(?::\d+:\d+:? |(?::\d+)* .*━━)",
    patterns.M,
)
"""How lines begin that say which test, check or file failed."""

_OF_A_TEST = patterns.compile(r"\(fail\) |--- FAIL: |\bFAIL(?:ED)?\b|^(?:✗|✘|❌|✖|●) ")
"""What says that a test failed, and not why."""

_WRAPPERS = patterns.compile(
    r"exited with (?:code|status)|ELIFECYCLE|Command failed with|task failed|script failed|exit status \d|"
    r"BUILD FAILED|\[build failed\]|\[setup failed\]|A complete log of this run|^(?:From |hint: )|CONFLICT \(|"
    r"Automatic merge failed|^FAIL\s+\S+(?:\s+\[|\s+[\d.]+s|$)|"
    r"For more information|^Exit code|could not apply|failed to push|unrecognized subcommand"
)
"""Reports that something failed further up or beside, and what git says of work that is under way: they come with many
failures, or say what to do by themselves."""

_RUNNER = patterns.compile(r"^\[[\w:.@/-]{2,40}\] +")
_WORD = patterns.compile(r"[A-Za-z_]\w{4,}")
_PATH = patterns.compile(r"(?:[A-Za-z]:)?[\w.@+~-]*(?:[/\\][\w.@+-]+)+[/\\]?|\b[\w-]{2,}\.[a-z]{1,5}\b")


def error_lines(output: str, location: str = "") -> tuple[ErrorLine, ...]:
    """The distinctive lines of an output, each once: first those that say what failed, then what else reads like an
    error; each in order. Paths are taken from the location on."""
    verdicts: dict[str, None] = {}
    others: dict[str, None] = {}
    lines = list(_lines(output))
    verdict, error = (_LinesWith(each, "\n".join(lines)) for each in (_VERDICT, ERROR_WORDS))
    end = -1
    for text in lines:
        start, end = end + 1, end + 1 + len(text)
        said = verdict.between(start, end)
        if (said or (len(others) < MOST_READ and error.between(start, end))) and not _WRAPPERS.search(text):
            (verdicts if said else others)[text] = None
        if len(verdicts) == MOST_READ:
            break
    found: dict[str, ErrorLine] = {}
    for text in islice(chain(verdicts, others), MOST_READ):
        if line := _line(text, location):
            found.setdefault(line.key, line)
            if len(found) == MOST_LINES:
                break
    return tuple(found.values())


class _LinesWith:
    """Which lines of a text hold a pattern, asked in order: it is looked for once, and not in each line."""

    def __init__(self, pattern: patterns.Pattern[str], text: str) -> None:
        self._pattern, self._text = pattern, text
        self._next = -1

    def between(self, start: int, end: int) -> bool:
        if self._next < start:
            found = self._pattern.search(self._text, start)
            self._next = found.start() if found else len(self._text) + 1
        return self._next < end


def _lines(output: str) -> Iterator[str]:
    half = LOOKED_AT // 2
    text = output if len(output) <= LOOKED_AT else f"{output[:half]}\n{output[-half:]}"
    for line in plain(text).split("\n"):
        folded = " ".join(line[: LONGEST_LINE * 2].split())[:LONGEST_LINE]
        if len(folded) < SHORTEST_LINE:
            continue
        if folded[0] == "[":
            folded = _RUNNER.sub("", folded)
        if len(folded) >= SHORTEST_LINE:
            yield folded


def _line(text: str, location: str) -> ErrorLine | None:
    if (known := _anywhere(text)) is None:
        return None
    paths = tuple(dict.fromkeys(_within(location, path) for path in known.paths))[:4]
    return known._replace(paths=tuple(filter(None, paths)))


@remembered(1_024, longest=512)
def _anywhere(text: str) -> ErrorLine | None:
    """The line wherever it was printed, with its paths as it names them."""
    names = names_in(text)
    if says_little(text, 1 if names else LEAST_WORDS):
        return None
    form = form_of_line(text.removeprefix("E "))
    return ErrorLine(digest_of(f"line:{form}"), text, names, tuple(match[0] for match in _PATH.finditer(text)))


def is_verdict(line: ErrorLine) -> bool:
    """Whether a line says which test, check or file failed, and is no log of what was tried."""
    return _VERDICT.search(line.text) is not None


def says_why(line: ErrorLine) -> bool:
    """Whether a line says what is wrong: what a test that is named alone failed of differs from change to change."""
    return _OF_A_TEST.search(line.text) is None


def _within(location: str, path: str) -> str:
    """A path as the project calls it; empty where it lies elsewhere, or names no folder."""
    path = path.replace("\\", "/")
    if path.startswith("/") or path[1:2] == ":":
        path = path_within(normalise(location), path) if location else ""
    return path.removeprefix("./") if "/" in path else ""


def place_key(place: str) -> str:
    """Key of a directory whose errors are no one's."""
    return digest_of(f"place:{place}")


def places_of(lines: Iterable[ErrorLine]) -> dict[str, str]:
    """The directories that most lines with a path lie in, by key: where all errors are there, their place says more
    than their words."""
    counts: dict[str, int] = {}
    placed = 0
    for line in lines:
        places = {place for path in line.paths for place in _folders(path)}
        placed += bool(places)
        for place in places:
            counts[place] = counts.get(place, 0) + 1
    most = sorted(place for place, count in counts.items() if count * 2 > placed)[:MOST_PLACES]
    return {place_key(place): place for place in most}


def _folders(path: str) -> list[str]:
    """The directories that a path lies in, at most four, outermost first."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:depth]) for depth in range(1, min(len(parts), 4) + 1)]


# --- what an agent concludes ---

_STANDING = patterns.compile(
    r"\bpre-?existing\b|\balready (?:failing|failed|fails|broken|there|present)\b|\bunrelated\b|"
    r"(?:\bnot|n't|\bnothing) (?:directly )?(?:related|caused|due|to do with|because)\b|\bflak(?:y|ey|iness|es?)\b|"
    r"\bintermittent\b|\benvironment(?:al)? (?:issue|problem|failure|limitation|error)s?\b|"
    r"\bknown (?:issue|failure|limitation|problem)s?\b|\b(?:in|from) files? (?:that )?I (?:didn't|did not|haven't)\b|"
    r"\b(?:fail|fails|failing|broken|there|present)\b.{0,40}\b(?:on|before|without) (?:main|master|my|our|the) |"
    r"(?:\bnot|n't) (?:a )?(?:(?:part of|in|from|introduced by|something) (?:my|our|I)|"
    r"(?:part of|in|from|introduced by) (?:this|the) (?:\w+ )?(?:pr|commit|changes?|branch|work|task|edits?|diff)s?)\b|"
    r"\bpicked up by\b|"
    r"\b(?:leftover|someone else'?s?|expected failures?|intentional(?:ly)?)\b|"
    r"기존(?:부터|에)|무관",
    patterns.I,
)
_OF_FAILURE = patterns.compile(
    r"fail|error|\blint|warning|\bissue|broken|\btests?\b|violation|problem|실패|오류|에러", patterns.I
)
_FAILS = patterns.compile(
    r"\b(?:fail(?:s|ed|ing|ures?)?|errors?|broken?|breaks|rejects?|rejected|crash\w*)\b|실패|오류|에러", patterns.I
)
_UNSURE = patterns.compile(
    r"\?$|\b(?:if|whether|might|maybe|perhaps|could be|may be|let me|let's|I'll|I will|I should|need to|want to|verify|"
    r"check)\b|(?:\bnot|n't|\bnever|\bno longer) (?:a |an )?(?:pre-?existing|flak\w+|unrelated|known|environment\w*)\b",
    patterns.I,
)
_FOREIGN = patterns.compile(
    r"clone|vendor|third.party|extern|generated|untracked|node_modules|\btmp\b|\btemp\b|cache|\bbuild/|\bdist/",
    patterns.I,
)
"""What is said of a place whose files are not the project's own: only there all that fails is of no one's doing."""


@remembered(256)
def standing_in(text: str) -> tuple[str, ...]:
    """The sentences of an answer that say a failure was there before, or is nobody's."""
    if not _STANDING.search(text[:6_000]):
        return ()
    found = (each for each in sentences(text[:6_000]) if _STANDING.search(each) and _OF_FAILURE.search(each))
    return tuple(each for each in found if not _UNSURE.search(each))[:4]


def concluded(text: str, lines: Sequence[ErrorLine]) -> Conclusion | None:
    """What an answer concludes of the failure that printed these lines; None where it names nothing of them."""
    for sentence in standing_in(text):
        named = names_in(sentence)
        keys = [line.key for line in lines if named & line.names]
        keys += [place_key(place) for place in _places_named(sentence) if any(_lies_in(line, place) for line in lines)]
        if not named and not keys:
            keys = [line.key for line in lines if is_verdict(line)]
        if keys:
            return Conclusion(one_line(sentence, LONGEST_SAID), tuple(dict.fromkeys(keys)))
    return None


class _Cause(NamedTuple):
    """A sentence that says what something came of: the names and words in it, and whether it is of a failure."""

    sentence: str
    names: frozenset[str]
    words: frozenset[str]
    fails: bool


@remembered(256)
def _causes_in(text: str) -> tuple[_Cause, ...]:
    text = text[:6_000]
    found = (each for each in sentences(text) if links(each) and not each.endswith(("?", ":"))) if causal(text) else ()
    return tuple(
        _Cause(each, names_in(each), frozenset(_WORD.findall(each)), _FAILS.search(each) is not None)
        for each in islice((each for each in found if not guesses(each)), 8)
    )


@remembered(1024)
def _words_of(line: str) -> frozenset[str]:
    """The words of a failure's line, which is held against each answer."""
    return frozenset(_WORD.findall(line))


def explained(text: str, lines: Sequence[ErrorLine], command: str) -> Conclusion | None:
    """What an answer says that the failure came of whose command printed these lines, now or in a later turn; None
    where it names nothing of them."""
    for sentence, named, words, fails in _causes_in(text):
        shared = [line for line in lines if not named.isdisjoint(line.names)]
        keys = tuple(line.key for line in shared if fails or len(words & _words_of(line.text)) > 1)
        if not keys and fails and f"`{command}`" in sentence:
            keys = tuple(line.key for line in lines if is_verdict(line)) or tuple(line.key for line in lines)
        if keys:
            return Conclusion(one_line(sentence, LONGEST_SAID), keys)
    return None


def _places_named(sentence: str) -> list[str]:
    """The directories that a sentence names as not the project's own."""
    if not _FOREIGN.search(sentence):
        return []
    found = (match[0].replace("\\", "/").removeprefix("./") for match in _PATH.finditer(sentence))
    return [path.strip("/") for path in found if path.endswith("/") or "." not in path.rpartition("/")[2]]


def _lies_in(line: ErrorLine, place: str) -> bool:
    return any(path.startswith(f"{place}/") for path in line.paths)


def showing(message: str, excerpt: str, lines: Iterable[ErrorLine]) -> tuple[ErrorLine, ...]:
    """Those lines of an output that show an error: they hold its message, or stand in its excerpt."""
    first = " ".join(message.partition("\n")[0].split())
    within = frozenset(line.key for line in error_lines(excerpt))
    return tuple(line for line in lines if line.key in within or (len(first) >= SHORTEST_LINE and first in line.text))


def of_these(explanation: str, lines: Sequence[ErrorLine]) -> str:
    """The first sentence of an explanation that names something of an error's lines, else its cause; empty where none
    says what was wrong."""
    found = (each for each in filter(says_what_was_wrong, sentences(explanation)) if _named_in(each, lines))
    cause = cause_in(explanation)
    return one_line(next(found, cause if links(cause) else ""), LONGEST_SAID)


def said_of(text: str, message: str, lines: Iterable[ErrorLine]) -> tuple[str, ...]:
    """The keys of those lines that a text is said of: it names something of them, or they hold the error's message."""
    first = " ".join(message.partition("\n")[0].split())
    return tuple(line.key for line in lines if text and (first in line.text or _named_in(text, [line])))


def _named_in(text: str, lines: Iterable[ErrorLine]) -> bool:
    wanted = frozenset(word for line in lines for name in line.names for word in _WORD.findall(name))
    return not wanted.isdisjoint(_WORD.findall(text))


def quoted_command(command: str) -> str:
    """A command as it is kept: on one line."""
    return one_line(command, 160, NARROW)
