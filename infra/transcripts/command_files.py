"""Command files of a checkout: some clients put such a file's text in the user's place when the user types `/name`.

What they record of it has no mark. Whoever wrote to the repository wrote the text, so a prompt that holds one is the
client's word, and so are the arguments in it.

A clone may hold any files, and the door looks at them for each prompt. So each look has an end: what is read, compared
and looked for is counted as it is done, and where the count runs out, any prompt may be a command's.
"""

import codecs
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from memctl.domain.events.event import Micros
from memctl.domain.support import patterns
from memctl.infra.files import read_file

_FOLDERS = (
    ".opencode/command", ".opencode/commands", ".opencode/skill", ".opencode/skills", ".gemini/commands",
    ".claude/commands", ".claude/skills", ".agents/skills", ".cursor/commands", ".codex/prompts", ".github/prompts",
)  # fmt: skip
"""Where clients look for commands, in the session's folder and those above it."""
_SETTINGS = (
    "opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc",
    ".claude/scheduled_tasks.json",
)  # fmt: skip
"""Settings that hold commands among their texts, and what Claude Code says at its time."""
_MOST, _LARGEST, _MOST_READ, _MOST_ABOVE = 2_000, 1 << 20, 1 << 26, 12
"""Files and folders that are looked at, bytes of each file, letters of all, and folders above the session's."""
_COMPARED, _AT_LEAST = 1 << 19, 256
"""Characters that are compared with one prompt, which takes some tenths of a second; and as how many a short text
counts."""
_GONE_OVER = 1 << 24
"""Characters of the prompt that are gone over to find the pieces of commands in it."""
_LEAST, _MOST_OF, _ENOUGH = 4, 0.8, 25
"""Letters of its own by which a command is known, the part of them that stands in a prompt, and letters in one piece
that are enough."""

_OF_OTHERS = r"\x00|!`[^`]+`|\{file:[^}]+\}"
_FILLED_IN = patterns.compile(rf"\$ARGUMENTS|\$\d+|\{{\{{args\}}\}}|\{{env:[^}}]*\}}|{_OF_OTHERS}")
"""What a client puts another text for: arguments, a variable, a command's output, a file."""
_FILLED_BY_OTHERS = patterns.compile(_OF_OTHERS)
"""The same, but for what the user types or has set."""
_BRACE = patterns.compile(r"[!@]?\{|\}")
_VARIABLE = patterns.compile(r"\{env:[^}\n]*\}")
_A_FILE = patterns.compile(r"\s*\{file:([^}]+)\}\s*")
_FILLED_IN_BY = ("gemini-cli", "opencode")
"""Clients that fill in what a command printed, or what a file holds."""
_MOST_FILES = 64
"""Files that settings name which are compared; of more, any prompt may be one."""
_TOML = patterns.compile(
    r'#[^\n]*|"""(?P<lines>(?:[^\\]|\\.)*?)"{3,5}|\'\'\'(?P<plain_lines>.*?)\'{3,5}|"""|\'\'\''
    r'|"(?P<line>(?:[^"\\\n]|\\[^\n])*)"|\'(?P<plain_line>[^\'\n]*)\'|["\']',
    patterns.S,
)
"""What is looked at in TOML: comments, so that nothing in them is; texts; and quotes that begin none."""
_OF_TOML = patterns.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(\s+)|(.))", patterns.S)
"""What a backslash means in TOML, but for signs that no comparison looks at: a space, a tab, a line's end."""
_VALUE_OF = patterns.compile(r"(?:([A-Za-z0-9_-]+)|.*)=")
"""What stands in front of a text of TOML on its line, without blanks, where that is a value; and its name, as far as
that is a plain one."""
_BEGINS_FILLED_IN = str.maketrans("$!@{", "\0\0\0\0")
_FRONT = "---"
"""Stands before and behind what a command file says of itself. What follows it on its line counts for nothing."""


class _Spent(Exception):
    """There is more to look at than one prompt is worth."""


class _Budget:
    """What may still be looked at for one prompt: files, letters that are read, compared and gone over."""

    def __init__(self) -> None:
        self._left = {"file": _MOST, "read": _MOST_READ, "compare": _COMPARED, "go over": _GONE_OVER}

    def spend(self, what: Literal["file", "read", "compare", "go over"], much: int = 1) -> None:
        """Raises: _Spent."""
        self._left[what] -= max(much, _AT_LEAST) if what in ("compare", "go over") else much
        if self._left[what] < 0:
            raise _Spent


def is_expanded(prompt: str, location: str, agent: str, sent: Micros | None = None) -> bool:
    """Whether a prompt to an agent is what a command file of the checkout at that location becomes. Where there is more
    to look at than one prompt is worth, or a command is nothing but another's text, any is; and any that was `sent`
    before a file or folder of commands changed: what that held is not known."""
    words = _plain(prompt)
    if not words or not _is_a_path(location):
        return False
    try:
        return _is_expanded(words, Path(location), agent, sent, _Budget())
    except _Spent:
        return True


def _is_expanded(words: str, folder: Path, agent: str, sent: Micros | None, budget: _Budget) -> bool:
    for path in _files_at(folder, budget):
        if sent is not None and _changed_after(path, sent):
            return True
        for text in _texts_in(path, _read(path, budget), budget):
            if _may_become(text, words):
                budget.spend("compare", len(text))
                if _became(text, words, budget) or (agent in _FILLED_IN_BY and _is_anothers(text)):
                    return True
    return False


def _changed_after(path: Path, moment: Micros) -> bool:
    """Whether a file or folder changed after a moment. That time is the system's: no program sets it."""
    try:
        return path.stat().st_ctime_ns // 1_000 > moment
    except OSError:
        return False


def _may_become(command: str, words: str) -> bool:
    """Whether words begin as a command does, as far as its first letters say."""
    return words.startswith(_plain(command.lstrip()[:200].translate(_BEGINS_FILLED_IN).partition("\0")[0]))


def _became(command: str, words: str, budget: _Budget) -> bool:
    """Whether words are a command's text with something filled in: its pieces stand there in their order."""
    pieces = [_plain(piece) for piece in _FILLED_IN.sub("\0", _without_calls(command)).split("\0")]
    own, held, at = sum(map(len, pieces)), 0, 0
    if own < _LEAST or not words.startswith(pieces[0]):
        return False
    missing = set[str]()
    """What does not stand behind `at` does not stand behind a later place."""
    for piece in filter(None, pieces):
        found = -1 if piece in missing else words.find(piece, at)
        if found < 0:
            if piece not in missing:
                budget.spend("go over", len(words) - at)
                missing.add(piece)
            continue
        budget.spend("go over", found - at)
        at, held = found + len(piece), held + len(piece)
        if len(piece) >= _ENOUGH:
            return True
    return held >= _MOST_OF * own


def _is_a_path(location: str) -> bool:
    try:
        return Path(location).is_absolute() and b"\0" not in os.fsencode(location)
    except UnicodeEncodeError:
        return False


def _is_anothers(command: str) -> bool:
    """Whether a command is nothing but what another command prints, or a file holds."""
    command = _without_calls(command)
    own = _plain(_FILLED_IN.sub("", command))
    return len(own) < _LEAST and _FILLED_BY_OTHERS.search(command) is not None


def _without_calls(command: str) -> str:
    """The command with a NUL for each `@{…}` and `!{…}`, with all the braces within it. What is not closed stays."""
    kept, end, depth, start = list[str](), 0, 0, 0
    for found in _BRACE.finditer(command):
        if depth or found[0] in ("!{", "@{"):
            start = start if depth else found.start()
            depth += -1 if found[0] == "}" else 1
            if not depth:
                kept += (command[end:start], "\0")
                end = found.end()
    return "".join((*kept, command[end:]))


def _files_at(folder: Path, budget: _Budget) -> Iterator[Path]:
    for above in (folder, *folder.parents[:_MOST_ABOVE]):
        for name in _SETTINGS:
            budget.spend("file")
            yield above / name
        for name in _FOLDERS:
            if "/" in name and (above / name).parent.is_dir():
                yield (above / name).parent  # changes when a folder of commands goes
            yield from _within(above / name, budget)
        if (above / ".git").exists():
            return


def _within(folder: Path, budget: _Budget) -> Iterator[Path]:
    """A folder, and what lies in it, as far as the budget goes: also where one folder holds a million files."""
    left = [folder]
    while left:
        at = left.pop()
        with suppress(OSError), os.scandir(at) as entries:
            budget.spend("file")
            yield at
            for entry in entries:
                budget.spend("file")
                path = Path(entry.path)
                if os.path.isdir(path):  # `Path.is_dir` raises over a name that is too long
                    left.append(path)
                else:
                    yield path


def _read(path: Path, budget: _Budget) -> str:
    """The text of a file that may hold commands; empty where it cannot be read. Raises: _Spent where it is too long."""
    if path.suffix not in (".md", ".toml", ".json", ".jsonc"):
        return ""
    text = _text_of(path, _LARGEST, budget)
    if text is None:
        raise _Spent
    if path.suffix != ".md":  # to read what is no plain text takes as long as to compare it
        budget.spend("compare", len(text))
    return text


def _text_of(path: Path, most: int, budget: _Budget) -> str | None:
    """What a file holds; empty where it cannot be read, None where it is longer than that."""
    try:
        data = read_file(path, most + 1)
    except (OSError, ValueError):
        return ""
    budget.spend("read", len(data))
    encoding = "utf-16" if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
    return data.decode(encoding, "replace").replace("\r\n", "\n") if len(data) <= most else None


def _texts_in(path: Path, file: str, budget: _Budget) -> Iterator[str]:
    """The texts that a file may have as commands."""
    match path.suffix:
        case ".md":
            yield file
            if file.lstrip().startswith(_FRONT):
                yield file.lstrip().removeprefix(_FRONT).partition(f"\n{_FRONT}")[2]
        case ".toml":
            yield from _texts_in_toml(file)
        case _:
            yield from _texts_in_settings(path.parent, file, budget)
            if (unset := _VARIABLE.sub("", file)) != file:  # put in, once, before the client reads what it is
                budget.spend("compare", len(unset))
                yield from _texts_in_settings(path.parent, unset, budget)


def _texts_in_settings(folder: Path, file: str, budget: _Budget) -> Iterator[str]:
    """What stands between two quotes, be it a text or not: settings may have comments."""
    texts = file.replace("\\\\", "\0").replace('\\"', "\1").split('"')
    named = 0
    for each in (text for text in texts if len(text) >= _LEAST):
        with suppress(ValueError):
            text = json.loads('"' + each.replace("\1", '\\"').replace("\0", "\\\\") + '"')
            of_file = _A_FILE.fullmatch(text)
            named += of_file is not None
            yield _held(folder, of_file[1], budget) or text if of_file and named <= _MOST_FILES else text


def _texts_in_toml(file: str) -> Iterator[str]:
    """The prompts that a file in TOML may have, in time linear in it: `tomllib` takes more than that, and a client may
    read what is not quite TOML. Where a quote begins no text, all that stands between two may be one."""
    texts, end = list[str](), 0
    for found in _TOML.finditer(file):
        kind, start = found.lastgroup, found.start()
        before = "".join(file[max(end, file.rfind("\n", end, start) + 1) : start].split())
        end = found.end()
        if kind is None and not found[0].startswith("#"):
            yield from (text for quote in ("'", '"') for text in file.split(quote))
            return
        if kind is not None and (value := _VALUE_OF.fullmatch(before)) and value[1] in (None, "prompt"):
            text = str(found[kind])
            texts.append(text if kind.startswith("plain") else _OF_TOML.sub(_meant, text))
    yield from texts


def _meant(escape: patterns.Match[str]) -> str:
    if code := escape[1] or escape[2]:
        return chr(number) if (number := int(code, 16)) < 0x110000 else ""
    return "" if escape[3] else str(escape[4]) if escape[4] not in "btnfre" else " "


def _held(folder: Path, name: str, budget: _Budget) -> str:
    """What a file holds that settings name as a text; empty where it cannot be read, or is long."""
    with suppress(RuntimeError):
        return _text_of(folder / Path(name.strip()).expanduser(), _COMPARED, budget) or ""
    return ""


def _plain(text: str) -> str:
    return "".join(text.casefold().split())
