"""Command files of a checkout: some clients put such a file's text in the user's place when the user types `/name`.

What they record of it has no mark. Whoever wrote to the repository wrote the text, so a prompt that holds one is the
client's word, and so are the arguments in it.
"""

import json
import os
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

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
_LEAST, _MOST_OF, _ENOUGH = 4, 0.8, 25
"""Letters of its own by which a command is known, the part of them that stands in a prompt, and letters in one piece
that are enough."""

_OF_OTHERS = r"[!@]\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|!`[^`]+`|\{file:[^{}]+\}"
_FILLED_IN = patterns.compile(rf"\$ARGUMENTS|\$\d+|\{{\{{args\}}\}}|{_OF_OTHERS}")
"""What a client puts another text for: arguments, a command's output, a file."""
_FILLED_BY_OTHERS = patterns.compile(_OF_OTHERS)
"""The same, but for what the user types."""
_A_FILE = patterns.compile(r"\s*\{file:([^{}]+)\}\s*")
_FILLED_IN_BY = ("gemini-cli", "opencode")
"""Clients that fill in what a command printed, or what a file holds."""
_MOST_FILES = 64
"""Files that settings name which are compared; of more, any prompt may be one."""
_BEGINS_FILLED_IN = str.maketrans("$!@{", "\0\0\0\0")
_FRONT = "---"
"""Stands before and behind what a command file says of itself. What follows it on its line counts for nothing."""


def is_expanded(prompt: str, location: str, agent: str, sent: Micros | None = None) -> bool:
    """Whether a prompt to an agent is what a command file of the checkout at that location becomes. Where there is more
    to look at than one prompt is worth, or a command is nothing but another's text, any is; and any that was `sent`
    before a file or folder of commands changed: what that held is not known."""
    words = _plain(prompt)
    if not words or not _is_a_path(location):
        return False
    left, unread = _COMPARED, _MOST_READ
    for looked_at, path in enumerate(_files_at(Path(location))):
        if looked_at == _MOST or (sent is not None and _changed_after(path, sent)):
            return True
        file = _read(path)
        if file is None:
            return True
        unread -= len(file)
        if path.suffix != ".md":  # to read what is no plain text takes as long as to compare it
            left -= len(file)
        if min(left, unread) < 0:
            return True
        for text in _texts_in(path, file):
            if _may_become(text, words):
                left -= max(len(text), _AT_LEAST)
                if left < 0 or _became(text, words) or (agent in _FILLED_IN_BY and _is_anothers(text)):
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


def _became(command: str, words: str) -> bool:
    """Whether words are a command's text with something filled in: its pieces stand there in their order."""
    pieces = [_plain(piece) for piece in _FILLED_IN.sub("\0", command).split("\0")]
    own, held, at = sum(map(len, pieces)), 0, 0
    if own < _LEAST or not words.startswith(pieces[0]):
        return False
    for piece in pieces:
        if (found := words.find(piece, at)) >= 0:
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
    own = _plain(_FILLED_IN.sub("", command))
    return len(own) < _LEAST and _FILLED_BY_OTHERS.search(command) is not None


def _files_at(folder: Path) -> Iterator[Path]:
    for above in (folder, *folder.parents[:_MOST_ABOVE]):
        yield from (above / name for name in _SETTINGS)
        for name in _FOLDERS:
            if "/" in name and (above / name).parent.is_dir():
                yield (above / name).parent  # changes when a folder of commands goes
            for within, _, files in os.walk(above / name, followlinks=True):
                yield from (Path(within), *(Path(within, file) for file in files))
        if (above / ".git").exists():
            return


def _read(path: Path) -> str | None:
    """The text of a file that may hold commands; empty where it cannot be read, None where it is too long."""
    if path.suffix not in (".md", ".toml", ".json", ".jsonc"):
        return ""
    try:
        data = read_file(path, _LARGEST + 1)
    except (OSError, ValueError):
        return ""
    return data.decode("utf-8", "replace").replace("\r\n", "\n") if len(data) <= _LARGEST else None


def _texts_in(path: Path, file: str) -> Iterator[str]:
    """The texts that a file may have as commands."""
    match path.suffix:
        case ".md":
            yield file
            if file.lstrip().startswith(_FRONT):
                yield file.lstrip().removeprefix(_FRONT).partition(f"\n{_FRONT}")[2]
        case ".toml":
            try:
                yield str(tomllib.loads(file).get("prompt", ""))
            except (ValueError, RecursionError):  # a client may read what is not quite TOML
                yield from (text for quote in ("'", '"') for text in file.split(quote))
        case _:  # with comments: what stands between two quotes, be it a text or not
            texts = file.replace("\\\\", "\0").replace('\\"', "\1").split('"')
            named = 0
            for each in (text for text in texts if len(text) >= _LEAST):
                with suppress(ValueError):
                    text = json.loads('"' + each.replace("\1", '\\"').replace("\0", "\\\\") + '"')
                    of_file = _A_FILE.fullmatch(text)
                    named += of_file is not None
                    yield _held(path.parent, of_file[1]) or text if of_file and named <= _MOST_FILES else text


def _held(folder: Path, name: str) -> str:
    """What a file holds that settings name as a text; empty where it cannot be read, or is long."""
    try:
        text = read_file(folder / Path(name.strip()).expanduser(), _COMPARED + 1)
    except (OSError, ValueError, RuntimeError):
        return ""
    return text.decode("utf-8", "replace").replace("\r\n", "\n") if len(text) <= _COMPARED else ""


def _plain(text: str) -> str:
    return "".join(text.casefold().split())
