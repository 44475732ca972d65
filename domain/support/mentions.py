"""What a text names that can be looked for again: files of a project, and values that are rare enough to be one's own.

Values are addresses, names of environment variables, long options, and names of code of several words.
"""

from itertools import islice
from string import ascii_letters, digits

from memctl.domain.support import patterns
from memctl.domain.support.literals import mentions
from memctl.domain.support.location import inside, joined, path_of, project_of
from memctl.domain.support.remembered import remembered
from memctl.domain.support.text import Runs

LONGEST_VALUE, SHORTEST_NAME = 120, 10
"""Characters of a value, and of a name of code."""

MOST_VALUES = 48
"""Values of one text."""

_VALUE = patterns.compile(
    r"https?://[A-Za-z0-9.-]+(?::\d+)?(?:/[A-Za-z0-9._~/-]*)?"
    r"|--[a-z][a-z0-9]*(?:-[a-z0-9]+)+"
    r"|\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b"
    r"|\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b"
    r"|\b[A-Za-z][a-z0-9]+(?:[A-Z][a-z0-9]*)+\b"
)
LONG_NAME, PARTS = 14, 3
"""Characters of a name of code, and its parts, that is one's own."""

LEAST_NAMED = 5
"""Characters of a name that two texts share."""

_NAME = patterns.compile(
    r"@?[A-Za-z_][\w.@-]*(?:/[\w.@-]+)+|[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|"
    r"[\w-]{2,}\.[a-z]{1,5}\b|\b[A-Z]{2,}\d{2,}\b"
)
_NUMBERED = patterns.compile(r"(?:/(?:issues|pull|discussions|merge_requests)/|(?:^|[\s(\[])#)(\d{2,7})\b")
_QUOTED = patterns.compile(r"[`'\"“‘]([^`'\"”’\s]{4,80})[`'\"”’]")
_REDACTED = "REDACTED"
"""What stands in a path for a name that nobody may read."""

_PART = patterns.compile(r"[A-Z]+[a-z0-9]*|[a-z0-9]+")
_WORKTREE = patterns.compile(r"(?:\.[A-Za-z0-9_-]+/worktrees|\.worktrees|\.conductor)/[^/]+/")


_HOME = patterns.compile(r"(?:/home|/Users|\b[A-Za-z]:[/\\]+Users)[/\\]+[^/\\\s:,;'\"`)\]]+")


def without_homes(text: str) -> str:
    """A text with `~` for the homes of its paths: whose they are says nothing of what it is about."""
    return _HOME.sub("~", text) if "/home" in text or "Users" in text else text


_RUNS = Runs(f"{ascii_letters}{digits}_-:/.~")


@remembered(512, longest=16_384)
def values_in(text: str) -> tuple[str, ...]:
    """The values that a text names, each once, in order; a user's name in a path is none."""
    long = (run for run in _RUNS.within(without_homes(text[:20_000])) if len(run) >= SHORTEST_NAME)
    found = (value for run in long if not run[1:].islower() or mentions(run, _SIGNS) for value in _values_of(run))
    return tuple(islice(dict.fromkeys(found), MOST_VALUES))


_SIGNS = ("_", "--", "://")
"""One of these has each value that has no capital letter behind its first character."""


@remembered(2_048, longest=512)
def _values_of(run: str) -> tuple[str, ...]:
    """The values in what stands between two blanks."""
    found = (match[0].rstrip("./") for match in _VALUE.finditer(run))
    return tuple(value for value in found if SHORTEST_NAME <= len(value) <= LONGEST_VALUE)


@remembered(1_024, longest=4_096)
def names_in(text: str) -> frozenset[str]:
    """The files, tests, packages and names of code that a text names or quotes, without the folders they lie in."""
    text = text[:20_000]
    found = {name.strip("./-").rpartition("/")[2] for name in _NAME.findall(text)}
    found |= {quoted.rstrip("./").rpartition("/")[2] for quoted in _QUOTED.findall(text)}
    return frozenset(name for name in found if len(name) >= LEAST_NAMED)


def numbered_in(text: str) -> frozenset[str]:
    """The issues and pull requests that a text names, each as #123."""
    return frozenset(f"#{match[1]}" for match in _NUMBERED.finditer(text[:20_000]))


def distinctive_values_in(text: str) -> tuple[str, ...]:
    """Those values that are hardly anything else's: names of code only where they have three parts or more."""
    return tuple(filter(is_distinctive, values_in(text)))


@remembered(2_048)
def is_distinctive(value: str) -> bool:
    """Whether a value is an address, a variable or an option, or a long name of code."""
    if "://" in value or value.startswith("--") or value.isupper():
        return True
    return len(value) >= LONG_NAME and len(_PART.findall(value)) >= PARTS


@remembered(4096)
def path_within(location: str, path: str) -> str:
    """A file's path within the project that a location lies in, the same in each of its worktrees; empty outside."""
    if _REDACTED in path:
        return ""  # several files may be called so now
    location = path_of(location)
    whole = joined(location, path)
    for root in (project_of(location), location):
        if inside(whole, root):
            rest = whole[len(root) + 1 :]
            return rest[worktree.end() :] if (worktree := _WORKTREE.match(rest)) else rest
    return ""
