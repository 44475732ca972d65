"""What a command changes that may be why another one passes."""

from __future__ import annotations

from itertools import islice, pairwise
from typing import NamedTuple

from memctl.domain.shell.commands import formats, heads_of, parts_of
from memctl.domain.shell.directories import bare
from memctl.domain.support import patterns
from memctl.domain.support.remembered import remembered

_MOST_MOVED = 8
"""Paths that a command moves or removes, of which one may be what an error names."""

_TREE = patterns.compile(
    r"(?:\S+ )*?git (?:-\S+ \S+ )*(?:checkout|switch|restore|reset|merge|rebase|pull|clean|cherry-pick|"
    r"revert|am|apply|rm|mv)\b"
)
_UNDOES = patterns.compile(
    r"(?:\S+ )*?git (?:-\S+ \S+ )*(?:(?:.* )?--(?:abort|quit)\b|checkout (?:.* )?(?:--|\.)(?: |$)|restore\b|reset\b|"
    r"stash(?: (?:push|save|-\S+)\b|$))"
)
"""What takes changes back, or gives an operation up: it mends nothing."""
_SLIGHT = patterns.compile(r"(?:\S+ )*?(?:git|export)\b")
_MOVES = patterns.compile(r"(?:\S+=\S+ )*(?:rm|mv|cp|ln|touch|mkdir|tee|truncate|chmod|kill|pkill|killall)\b")
_BUILT = patterns.compile(r"\bnode_modules\b|\b(?:dist|build|target|vendor)\b|cache|\.next\b|\.lock\b|\block\.")


class CommandChange(NamedTuple):
    """What a command that changes things may mend."""

    undoes: bool
    """It takes changes back, or brings them back."""
    moved: tuple[str, ...] | None
    """It only moves or removes these paths; None where it does more."""
    formats: bool
    """It only formats."""
    slight: bool
    """Git's own dealings and the like, which mend only errors of git."""


@remembered(1024)
def change_by(command: str) -> CommandChange:
    """What a command that changes things may mend."""
    moved = None
    if _MOVES.match(command) and not _BUILT.search(command):
        paths = (word.strip("'\"/") for word in command.split()[1:])
        moved = tuple(islice((path for path in paths if len(path) > 3), _MOST_MOVED))
    return CommandChange(
        undoes=bool(_UNDOES.match(command)) or " stash pop" in command,
        moved=moved,
        formats=not _MOVES.match(command) and bool(heads_of(command)) and all(map(formats, heads_of(command))),
        slight=_SLIGHT.match(command) is not None and not _MOVES.match(command) and not _TREE.match(command),
    )


def undone_by(ran: str) -> tuple[str, ...] | None:
    """The files whose changes a command of git takes back, none where those of all; None where it takes back none."""
    if not _UNDOES.match(ran) or " --staged" in ran or (" reset" in ran and " --hard" not in ran):
        return None
    words = [bare(word) for part in parts_of(ran) for word in part.words]
    words = words[words.index("git") + 1 :] if "git" in words else words
    verb = next((n for n, word in enumerate(words) if word in _OF_FILES), len(words))
    given = words[verb + 1 :]
    if "--" in given:
        given = given[given.index("--") + 1 :]
    else:
        given = [w for before, w in pairwise(words[verb:]) if before not in _OF_TEXT and ("/" in w or "." in w)]
    return tuple(filter(None, (word.strip("./") for word in given)))


_OF_FILES = ("checkout", "restore", "push")
"""Commands of git that take names of files; `push` is that of `stash`."""
_OF_TEXT = ("-m", "--message")


@remembered(1024)
def named_by(path: str) -> frozenset[str]:
    """Every name by which a command may mean a file or a folder above it: the runs of its parts."""
    parts = [part for part in path[-_LONGEST_PATH:].split("/") if part][-_DEEPEST:]
    return frozenset("/".join(parts[begin:end]) for end in range(len(parts) + 1) for begin in range(end))


_LONGEST_PATH, _DEEPEST = 400, 12
"""Characters and parts of a path that are looked at, the last."""
