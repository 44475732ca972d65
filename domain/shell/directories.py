"""In which directory each part of a shell command runs."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from memctl.domain.shell.commands import Part, parts_of
from memctl.domain.support import patterns
from memctl.domain.support.location import joined

ENTERING = ("cd", "chdir", "pushd", "set-location", "sl", "push-location")
_NAMING = ("-path", "-literalpath", "/d", "--")
_UNCERTAIN = patterns.compile(r"[$`~*(]|^-$")


def parts_where(command: str, began: str, barred: AbstractSet[str] = frozenset()) -> Iterator[tuple[str, Part]]:
    """The parts of a command that began in a directory, each with the one it ran in; empty where that is uncertain.
    `barred` are the directories that could not be entered, as they were written."""
    at = began
    for part in parts_of(command):
        if part.head in ENTERING:
            words = [word for word in part.words[1:] if word.lower() not in _NAMING]
            target = bare(words[0]) if words else "~"
            if target in barred:
                continue
            at = "" if not at or _UNCERTAIN.search(target) else joined(at, target)
            continue
        elsewhere = part.words[part.words.index("-C") + 1 :][:1] if "-C" in part.words else ()
        if not elsewhere:
            yield at, part
        elif at and not _UNCERTAIN.search(bare(elsewhere[0])):
            yield joined(at, bare(elsewhere[0])), part
        else:
            yield "", part


_NOT_ENTERED = patterns.compile(
    r"\bcd:(?:\d+:)? (?:(?:no such file or directory|not a directory): (?P<zsh>[^\n]+)|"
    r"(?P<bash>[^\n]+?): (?:No such file or directory|Not a directory|Permission denied))|"
    r"\bcan't cd to (?P<dash>[^\n:]+)"
)
"""What shells say of a directory that they could not enter."""


def not_entered(text: str) -> frozenset[str]:
    """The directories that a shell says it could not enter, as they were written."""
    found = (match["zsh"] or match["bash"] or match["dash"] for match in _NOT_ENTERED.finditer(text[:4_000]))
    return frozenset(name.strip() for name in found if name)


def bare(word: str) -> str:
    """A word without its quotes."""
    return word[1:-1] if len(word) > 1 and word[0] in "'\"" and word[-1] == word[0] else word
