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
_SETTINGS = ("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc")
"""Settings that hold commands among their texts."""
_MOST, _LARGEST, _MOST_ABOVE = 2_000, 1 << 16, 12
"""Files and folders that are looked at, bytes of each file, and folders above the session's."""
_COMPARED, _AT_LEAST = 1 << 19, 256
"""Characters that are compared with one prompt, which takes some tenths of a second; and as how many a short text
counts."""
_LEAST, _MOST_OF, _ENOUGH = 4, 0.8, 25
"""Letters of its own by which a command is known, the part of them that stands in a prompt, and letters in one piece
that are enough."""

_FILLED_IN = patterns.compile(r"\$ARGUMENTS|\$\d+|\{\{args\}\}|[!@]\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|!`[^`]+`")
"""What a client puts another text for: arguments, a command's output, a file."""
_BEGINS_FILLED_IN = str.maketrans("$!@{", "\0\0\0\0")
_FRONT_MATTER = patterns.compile(r"\A\s*---\s*\n(?:.*?\n)?---\s*(?:\n|\z)", patterns.S)


def is_expanded(prompt: str, location: str, sent: Micros | None = None) -> bool:
    """Whether a prompt is what a command file of the checkout at that location becomes. Where there is more to look at
    than one prompt is worth, any is; and any that was `sent` before a file or folder of commands changed: what that
    held is not known."""
    words = _plain(prompt)
    if not words or prompt.lstrip()[:1] == "/" or not Path(location).is_absolute():
        return False
    left = _COMPARED
    for looked_at, path in enumerate(_files_at(Path(location))):
        if looked_at == _MOST or (sent is not None and _changed_after(path, sent)):
            return True
        file = _read(path)
        if path.suffix != ".md":  # to read what is no plain text takes as long as to compare it
            left -= len(file)
        for text in _texts_in(path, file) if left >= 0 else ():
            if _may_become(text, words):
                left -= max(len(text), _AT_LEAST)
                if left < 0 or _became(text, words):
                    return True
        if left < 0:
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


def _read(path: Path) -> str:
    """The text of a file that may hold commands; empty where it cannot be read."""
    if path.suffix not in (".md", ".toml", ".json", ".jsonc"):
        return ""
    try:
        return read_file(path, _LARGEST).decode("utf-8", "replace").replace("\r\n", "\n")
    except (OSError, ValueError):
        return ""


def _texts_in(path: Path, file: str) -> Iterator[str]:
    """The texts that a file may have as commands."""
    match path.suffix:
        case ".md":
            yield _FRONT_MATTER.sub("", file) if file.lstrip().startswith("---") else file
        case ".toml":
            with suppress(ValueError, RecursionError):
                yield str(tomllib.loads(file).get("prompt", ""))
        case _:  # with comments: what stands between two quotes, be it a text or not
            texts = file.replace("\\\\", "\0").replace('\\"', "\1").split('"')
            for each in (text for text in texts if len(text) >= _LEAST):
                with suppress(ValueError):
                    yield json.loads('"' + each.replace("\1", '\\"').replace("\0", "\\\\") + '"')


def _plain(text: str) -> str:
    return "".join(text.casefold().split())
