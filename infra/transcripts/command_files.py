"""Command files of a checkout: some clients put such a file's text in the user's place when the user types `/name`.

What they record of it has no mark. Whoever wrote to the repository wrote the text, so a prompt that holds one is the
client's word, and so are the arguments in it.
"""

import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

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
_LEAST, _MOST_OF, _ENOUGH = 4, 0.8, 25
"""Letters of its own by which a command is known, the part of them that stands in a prompt, and letters in one piece
that are enough."""

_FILLED_IN = patterns.compile(r"\$ARGUMENTS|\$\d+|\{\{args\}\}|[!@]\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|!`[^`]+`")
"""What a client puts another text for: arguments, a command's output, a file."""
_FRONT_MATTER = patterns.compile(r"\A\s*---\s*\n(?:.*?\n)?---\s*(?:\n|\z)", patterns.S)
_TEXT_OF_JSON = patterns.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"')


def is_expanded(prompt: str, location: str) -> bool:
    """Whether a prompt is what a command file of the checkout at that location becomes. Among too many files any is."""
    words = _plain(prompt)
    if not words or prompt.lstrip()[:1] == "/" or not Path(location).is_absolute():
        return False
    for looked_at, path in enumerate(_files_at(Path(location))):
        if looked_at == _MOST or any(_became(text, words) for text in _texts_in(path)):
            return True
    return False


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
            for within, _, files in os.walk(above / name, followlinks=True):
                yield from (Path(within), *(Path(within, file) for file in files))
        if (above / ".git").exists():
            return


def _texts_in(path: Path) -> list[str]:
    """The texts that a file may have as commands; none where it cannot be read."""
    if path.suffix not in (".md", ".toml", ".json", ".jsonc"):
        return []
    try:
        text = read_file(path, _LARGEST).decode("utf-8", "replace").replace("\r\n", "\n")
        match path.suffix:
            case ".md":
                return [_FRONT_MATTER.sub("", text)]
            case ".toml":
                return [str(tomllib.loads(text).get("prompt", ""))]
            case _:
                return [str(json.loads(each)) for each in _TEXT_OF_JSON.findall(text)]
    except (OSError, ValueError, RecursionError):
        return []


def _plain(text: str) -> str:
    return "".join(text.casefold().split())
