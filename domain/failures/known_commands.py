"""Commands that fail because the call itself is wrong, and the forms that work: known before they are run again.

A missing program, an option that does not exist or the wrong directory fails again until something changes; a red test
does not. So a failure is known by what its message names in the command (`gh run view actor`: the field of a command),
and not by the command as a whole. Each command has keys, by which it is looked up before it runs. A failure counts for
one of them, its subject; a success counts for all of them, and so takes back what is known against any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple, Protocol

from memctl.domain.shell.commands import Part, without_documents
from memctl.domain.shell.directories import bare, parts_where
from memctl.domain.shell.programs import READERS, SETTING, SYNONYMS
from memctl.domain.support import patterns
from memctl.domain.support.bounded import NARROW, clipped
from memctl.domain.support.remembered import remembered

Reason = Literal["missing program", "unknown option", "missing script", "missing path", "wrong directory"]
"""Why a call fails that is wrong in itself."""

MOST_PARTS, MOST_WORDS, MOST_KEYS = 12, 24, 64
"""Parts of a command, words of a part, and keys of a command that are looked at."""

LONGEST_KEY = 120
REACH = 8
"""Uses of tools within which another command shows the form that works."""


class Failed(Protocol):
    """An error as a tool showed it: a fact, or what was seen in an output."""

    @property
    def error_types(self) -> tuple[str, ...]: ...
    @property
    def message(self) -> str: ...


class WrongCall(NamedTuple):
    """A call that was wrong in itself: why, by which key it is known, what the message said, and the words it had."""

    reason: Reason
    subject: str
    message: str
    base: str
    words: frozenset[str]

    @property
    def program(self) -> str:
        return self.base.split(" ", 1)[0]


# --- keys ---


class _Call(NamedTuple):
    """One program as a part of a command calls it: `base` is program and subcommand, `directory` the name of where it
    runs."""

    base: str
    words: tuple[str, ...]
    directory: str
    part: Part

    @property
    def program(self) -> str:
        return self.base.split(" ", 1)[0]


_ASSIGNED = patterns.compile(r"[A-Za-z_]\w*\+?=")
_PLAIN = patterns.compile(r"-{0,2}[A-Za-z][\w:.+-]*")
_PIECE = patterns.compile(r"[\w@:./+-]+")


def keys_of(command: str, directory: str = "") -> tuple[str, ...]:
    """The keys by which a command that begins in a directory is looked up, at most 64."""
    return _all_keys(command, directory, values=True)[:MOST_KEYS]


def forms_of(command: str, directory: str = "") -> tuple[str, ...]:
    """The keys that a success speaks for: those of programs, subcommands, options and the directory, without values."""
    return _all_keys(command, directory, values=False)[:MOST_KEYS]


def _all_keys(command: str, directory: str, *, values: bool) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for call in _calls(command, directory) for key in _keys(call, values=values)))


@remembered(256)
def _calls(command: str, directory: str) -> tuple[_Call, ...]:
    found: list[_Call] = []
    for at, part in _parts(command, directory):
        words = [bare(word) for word in part.words[:MOST_WORDS]]
        while words and (words[0] in _SYNTAX or ("=" in words[0] and _ASSIGNED.match(words[0]))):
            del words[0]
        if not words:
            continue
        here = at.rstrip("/").rpartition("/")[2]
        outer, head = _name(words[0]), part.head.split(" ")
        names = map(_name, words)
        inner = next((n for n, name in enumerate(names) if SYNONYMS.get(name, name) == head[0]), None)
        if inner is None or inner:  # a program that runs another one: what it was given to run is none of its words
            own = next((n for n, word in enumerate(words[1:], 2) if not word.startswith("-")), len(words))
            found.append(_Call(outer, tuple(words[1:own]), here, part))
        if inner is not None:
            base = " ".join([_name(words[inner]), *head[1:]]).strip()
            found.append(_Call(base, tuple(words[inner + 1 :]), here, part))
    return tuple(found)


_SYNTAX = frozenset(["if", "then", "do", "else", "while", "until", "!", "{", "time"])


def _parts(command: str, directory: str) -> Iterator[tuple[str, Part]]:
    """The parts that do something, each with where it runs. `cd` has a part of its own: it may be what fails."""
    for number, (at, part) in enumerate(parts_where(command, directory)):
        if number == MOST_PARTS:
            return
        if part.words and part.head not in SETTING:
            yield at, part


def _keys(call: _Call, *, values: bool) -> Iterator[str]:
    yield call.program
    yield call.base
    if call.directory:
        yield _key(f"{call.base}@{call.directory}")
    named = call.base.split(" ")
    for word in call.words:
        if word in named:
            continue
        option = word.partition("=")[0]
        if (len(named) == 1 or option.startswith("-")) and _PLAIN.fullmatch(option):
            yield _key(f"{call.base} {option}")
        if not values:
            continue
        for piece in _PIECE.findall(word)[:12]:
            yield _key(f"{call.base} {piece}")
        if "/" in word and not word.startswith(("/", "~")) and call.directory:
            yield _key(f"{call.base} {word}@{call.directory}")


def _key(text: str) -> str:
    return clipped(text, LONGEST_KEY, NARROW)


def _name(word: str) -> str:
    return word.replace("\\", "/").rstrip("/").rpartition("/")[2] or word


# --- failures ---

_NOT_FOUND = patterns.compile(r"command not found: (\S+)|([^\s:]+): (?:command )?not found")
_SCRIPT = patterns.compile(
    r"Missing script|[Ss]cript not found|No rule to make target|no (?:such )?(?:sub)?command|no task .{1,60} found|"
    r"[Cc]ommand \"?[\w:-]+\"? not found"
)
_DIRECTORY = patterns.compile(
    r"no Go files in |go\.mod file not found|cannot find main module|does not contain (?:main module|package)|"
    r"could not find `Cargo\.toml`|not a git repository|directory prefix|ENOENT.*package\.json|no configuration file"
)
_PATH = patterns.compile(
    r"[Nn]o such file or directory|did not match any file|unknown revision or path|file or directory not found:|"
    r"[Cc]an(?:no|')t find (?:path|module)|does not exist|[Cc]an't (?:read|open) "
)
_LETTER = patterns.compile(r"(?:illegal|invalid|unknown|unrecognized) option --? ?'?(\w)'?(?:$|\W)")
_TOO_COMMON = frozenset(["", "-", "--", ".", "..", "./..."])


def wrong_call(command: str, directory: str, errors: Sequence[Failed]) -> WrongCall | None:
    """The first of the errors of a command that shows the call itself to be wrong, and by what it is known again.

    None where the program was called as it wants to be and found something: a red test, a finding, a conflict.
    """
    calls = _calls(without_documents(command), directory)
    for error in errors[:4]:
        reason = _reason(error)
        ways = _WAYS[reason] if reason else ()
        found = next(filter(None, (way(error.message, calls) for way in ways)), None)
        # Who looks for a file that is not there has learnt that it is not there.
        if reason and found and not (reason == "missing path" and found[0].program in READERS):
            call, subject = found
            said = " ".join(error.message.split())
            return WrongCall(reason, subject, clipped(said, 200), call.base, _distinctive(call))
    return None


def _reason(error: Failed) -> Reason | None:
    message, types = error.message, error.error_types
    if "test failure" in types:
        return None
    if "command not found" in types:
        return "missing program"
    if _SCRIPT.search(message):
        return "missing script"
    if "usage" in types and not message.startswith("ERROR: file or directory"):
        return "unknown option"
    if _DIRECTORY.search(message):
        return "wrong directory"
    if _PATH.search(message) and (not types or types[0] in ("file", "git", "usage", "error", "go")):
        return "missing path"
    return None


def _by_program(message: str, calls: Sequence[_Call]) -> tuple[_Call, str] | None:
    match = _NOT_FOUND.search(message)
    name = _name(match[1] or match[2]) if match else ""
    call = next((each for each in calls if each.program == name), None)
    return (call, _key(name)) if call else None


def _by_directory(message: str, calls: Sequence[_Call]) -> tuple[_Call, str] | None:
    call = next((each for each in calls if each.directory and each.program in _BY_DIRECTORY), None)
    return (call, _key(f"{call.base}@{call.directory}")) if call else None


def _by_subcommand(message: str, calls: Sequence[_Call]) -> tuple[_Call, str] | None:
    said = _words_of(message)
    call = next((c for c in calls if " " in c.base and c.base.split(" ")[-1].strip(".:-") in said), None)
    return (call, call.base) if call else None


def _words_of(message: str) -> frozenset[str]:
    return frozenset(piece.strip(".:-") for piece in _PIECE.findall(message))


def _by_letter(message: str, calls: Sequence[_Call]) -> tuple[_Call, str] | None:
    """The call whose option of one letter a message names, among others of the same word."""
    letter = _LETTER.search(message)
    for call in calls:
        if letter and message.startswith(f"{call.program}:"):
            option = next((w for w in call.words if w[:1] == "-" and w[1:2] != "-" and letter[1] in w), "")
            if option:
                return call, _key(f"{call.base} {option}")
    return None


def _named_first(message: str, calls: Sequence[_Call], *, paths: bool = False) -> tuple[_Call, str] | None:
    """The call of whose words a message names one first: that is what it complains of. `paths`: a relative one is
    known by its directory as well."""
    first: tuple[int, _Call, str] | None = None
    said = _words_of(message)
    for call in calls:
        named = (call.program, *call.base.split(" ")[1:])
        for piece in dict.fromkeys(piece for word in call.words for piece in _pieces(word)):
            plain = piece.strip(".:-")
            if plain not in said or piece in _TOO_COMMON or plain in named:
                continue
            at = message.find(plain)
            if first is None or at < first[0]:
                relative = paths and "/" in piece and piece[0] not in "/~"
                where = f"@{call.directory}" if relative and call.directory else ""
                first = at, call, _key(f"{call.base} {piece}{where}")
    return first and first[1:]


_WAYS: Mapping[Reason, tuple[Callable[[str, Sequence[_Call]], tuple[_Call, str] | None], ...]] = {
    "missing program": (_by_program,),
    "missing script": (_named_first, _by_subcommand),
    "missing path": (partial(_named_first, paths=True),),
    "wrong directory": (_by_directory,),
    "unknown option": (_by_letter, _named_first, _by_subcommand),
}
"""How the call that failed is found, with the key that the message names; the first way that finds one counts."""


def _pieces(word: str) -> tuple[str, ...]:
    return word.partition("=")[0], *_PIECE.findall(word)[:12]


_BY_DIRECTORY = frozenset(
    ["go", "cargo", "git", "gh", "npm", "pnpm", "yarn", "bun", "make", "just", "task", "docker", "mvn", "gradle", "uv"]
)


# --- what works instead ---


def works_instead(failed: WrongCall, command: str, directory: str) -> tuple[str, str] | None:
    """The part of a command that went well which does what the wrong call was to do, and the directory it ran in.

    None where no part does: it has to have the same subcommand, or most of the words, and not what was wrong.
    """
    command = without_documents(command)
    if failed.subject in _all_keys(command, directory, values=True):
        return None
    for call in _calls(command, directory):
        shared = len(failed.words & _distinctive(call))
        if call.base == failed.base:
            alike = shared * 2 >= len(failed.words)
        elif failed.reason == "missing script" and call.program == failed.program:
            alike = _named_alike(failed.base, call.base)
        else:
            reads = call.program in READERS and failed.program not in READERS
            alike = failed.reason in _BY_ANOTHER and not reads and shared * 3 >= len(failed.words) * 2 > 0
        if alike:
            return clipped(" ".join(" ".join(call.part.words).split()), LONGEST_FORM), call.directory
    return None


_BY_ANOTHER = frozenset(["missing program", "unknown option", "missing script"])
"""Reasons for which another program may do what was wanted."""

LONGEST_FORM = 160
"""Characters of a command that works, as it is shown: one line of a terminal or two."""


def one_line_of(command: str) -> str:
    """A command on one line, without here-documents, as facts keep it."""
    return clipped(" ".join(without_documents(command[:4_000]).split()), 300)


def _named_alike(one: str, other: str) -> bool:
    """Whether the last words of two heads are of one name: `test` and `test:unit`."""
    first, second = one.rpartition(" ")[2], other.rpartition(" ")[2]
    return first in second or second in first


def _distinctive(call: _Call) -> frozenset[str]:
    """The words of a call that say what it is to do: subcommands, scripts and targets, without options."""
    _, *words = (bare(word) for word in call.part.words)
    return frozenset(word for word in words if word[:1] != "-" and word not in _TOO_COMMON and not word.isdigit())


# --- odds ---

PRIOR: dict[str, tuple[float, float]] = {
    "missing program": (3.0, 1.0),
    "unknown option": (4.0, 1.0),
    "missing script": (3.0, 1.0),
    "wrong directory": (2.0, 1.0),
    "missing path": (0.7, 1.0),
}
"""How often a call of each kind fails again and does not, before anything is known of it: Beta(a, b)."""

ENOUGH = 0.6
"""The odds from which on a warning is worth its words."""


def odds(reason: str, failures: int, successes_since: int) -> float:
    """How likely a call of a known subject fails again, 0 to 1: sessions in which it failed, and in which it went well
    since it failed last. A success since takes back more than a failure has added."""
    a, b = PRIOR.get(reason, (0.0, 1.0))
    return (a + failures - 1) / (a + b + failures - 1 + 4 * successes_since)


def installs(command: str, directory: str = "") -> frozenset[str]:
    """The programs that a command, gone well, has installed: what was missing is there now."""
    found: set[str] = set()
    for call in _calls(command, directory):
        words = [call.base, *call.words]
        if any(word in _INSTALLING for word in " ".join(words[:3]).split(" ")):
            found.update(_package(word) for word in call.words if _PIECE.fullmatch(word) and word[0] != "-")
    return frozenset(found - _INSTALLING)


_INSTALLING = frozenset(["install", "add", "use", "i", "get", "upgrade", "update"])


def _package(word: str) -> str:
    return _name(word.rpartition("@")[0] or word)
