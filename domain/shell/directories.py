"""In which directory each part of a shell command runs."""

from collections.abc import Iterator

from memctl.domain.shell.commands import Part, parts_of
from memctl.domain.support import patterns
from memctl.domain.support.location import joined

ENTERING = ("cd", "chdir", "pushd", "set-location", "sl", "push-location")
_NAMING = ("-path", "-literalpath", "/d", "--")
_UNCERTAIN = patterns.compile(r"[$`~*(]|^-$")


def parts_where(command: str, began: str) -> Iterator[tuple[str, Part]]:
    """The parts of a command that began in a directory, each with the one it ran in; empty where that is uncertain."""
    at = began
    for part in parts_of(command):
        if part.head in ENTERING:
            words = [word for word in part.words[1:] if word.lower() not in _NAMING]
            target = bare(words[0]) if words else "~"
            at = "" if not at or _UNCERTAIN.search(target) else joined(at, target)
            continue
        elsewhere = part.words[part.words.index("-C") + 1 :][:1] if "-C" in part.words else ()
        if not elsewhere:
            yield at, part
        elif at and not _UNCERTAIN.search(bare(elsewhere[0])):
            yield joined(at, bare(elsewhere[0])), part
        else:
            yield "", part


def bare(word: str) -> str:
    """A word without its quotes."""
    return word[1:-1] if len(word) > 1 and word[0] in "'\"" and word[-1] == word[0] else word
