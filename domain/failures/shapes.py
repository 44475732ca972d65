"""How programs print their errors. Each shape finds its own kind in a text; which are believed is decided elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from memctl.domain.support import patterns
from memctl.domain.support.literals import lines_with

STRONG, PLAIN, WRAPPER = 3, 2, 1
"""How much a shape says. STRONG: only a failure looks like that. PLAIN: believed where the command failed.
WRAPPER: a failure reported further up, believed where nothing else is found."""


TEST_FAILURE = "test failure"


class FoundError(NamedTuple):
    """One error as a text shows it: characters `start` to `end`."""

    start: int
    end: int
    types: tuple[str, ...]
    message: str
    frames: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    weight: int = STRONG
    code: str = ""
    """The line of source of the innermost own frame, where the shape shows it."""


class Shape(NamedTuple):
    """Looks for one kind of error, all of one weight. `hints`: one of these substrings must occur, or nothing is
    looked for."""

    name: str
    hints: tuple[str, ...]
    find: Callable[[str], Iterator[FoundError]]
    weight: int = STRONG


LIBRARY = patterns.compile(
    r"site-packages|dist-packages|node_modules|/usr/lib|/usr/local/(?:lib|go)|lib/python3|lib\\python|<frozen|<string>|"
    r"node:internal|internal/|/rustc/|\.cargo/registry|/go/pkg/mod|/gomodcache|/opt/homebrew/|bun:|\.rustup|importlib|"
    r"runpy\.py|(?:^|[ /])(?:java|javax|jdk|sun|kotlin|scala|org\.junit|org\.gradle|com\.sun)[./]|asyncio/|"
    r"unittest/|_pytest|pluggy"
)


def own_frames(frames: list[tuple[str, str]]) -> tuple[str, ...]:
    """`file:function` of the three innermost own-code frames. Frames are (path, function); both innermost first."""
    own = [f"{base_of(path)}:{name}" for path, name in frames if not LIBRARY.search(path)]
    return tuple(dict.fromkeys(own))[:3]


def base_of(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


_PREFIX = r"^(?:\[[\w:.@/-]{2,}\] |[\w@/.-]{2,} ?\| |[\w@/.-]{2,}:[\w-]{2,}: )?"
"""What task runners put before each line: `[lint:go] `, `web | `, `web:build: `."""


def at_hints(pattern: patterns.Pattern[str], text: str, hints: tuple[str, ...]) -> Iterator[patterns.Match[str]]:
    """As `pattern.finditer(text)`, where it begins with `^` and every match has one of the hints on its first line."""
    end = 0
    for start in lines_with(text, hints):
        if start >= end and (found := pattern.match(text, start)):
            yield found
            end = found.end()


def lines(
    name: str,
    hints: tuple[str, ...],
    pattern: str,
    kind: str = "",
    weight: int = STRONG,
    within: tuple[str, ...] | None = None,
) -> Shape:
    """A shape of single lines; its pattern begins with `^`.

    Groups: `msg`, and where there are such `type`, `file`, `frame`. `within`: one of these stands in the first line of
    every match (empty: nothing sure does); the hints where it is not given.
    """
    within = hints if within is None else within
    regex = patterns.compile(pattern.replace("^", _PREFIX, 1), patterns.M)

    def find(text: str) -> Iterator[FoundError]:
        groups = regex.groupindex
        for found in at_hints(regex, text, within) if within else regex.finditer(text):
            message = found["msg"].strip()
            if not message:
                continue
            named = found["type"] if "type" in groups else None
            file = found["file"] if "file" in groups else None
            frame = found["frame"] if "frame" in groups else None
            types = _types(kind, named, name)
            frames, files = (frame.strip(),) if frame else (), (file,) if file else ()
            yield FoundError(found.start(), found.end(), types, message, frames, files, weight)

    return Shape(name, hints, find, weight)


def _types(kind: str, named: str | None, name: str) -> tuple[str, ...]:
    """`ruff/F401`; a failed test is of two types, to distinguish it from the same error elsewhere."""
    if kind and named:
        return (kind, named) if kind == TEST_FAILURE else (f"{kind}/{named}",)
    return (named or kind or name,)


ERROR_WORDS = patterns.compile(
    r"\b(?:errors?|failed|failure|fatal|cannot|can't|could not|couldn't|unable|refus\w+|invalid|not found|denied|"
    r"unknown|"
    r"unexpected|missing|undefined|abort\w*|conflict\w*|panic|exception|not allowed|rejected|does not exist|ignored|"
    r"illegal|unsupported|no such|already exists|did not match)\b|✗|❌|✖",
    patterns.I,
)
