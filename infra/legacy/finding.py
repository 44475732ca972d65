"""Where memory stores lie: those below a path that somebody names, and those of other tools in the user's home."""

import contextlib
import json
import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from memctl.infra.files import read_file
from memctl.infra.legacy.markdown import is_of_basic_memory, is_of_claude
from memctl.infra.legacy.rows import SUFFIXES, NotALegacyStore
from memctl.infra.transcripts.fields import mapping, string
from memctl.infra.transcripts.files import default_sources

_DATABASES = ("claude-mem.db", "history.db")
"""What claude-mem and mem0 keep their notes in, beside logs, settings and indexes."""

_OFFERED = "offered-memories"
"""File of a data directory: paths that were offered or taken in, one a line."""

_MOST = 50
"""Stores that are named of one home."""


class OtherMemory(NamedTuple):
    """Another tool's memory, by its name, and the path that `memctl import` takes."""

    title: str
    path: Path


def other_memories(home: Path | None = None) -> list[OtherMemory]:
    """Memories of other tools in the user's home, known by the names of files where the tools put them: none is opened.

    `CLAUDE_CONFIG_DIR`, `CLAUDE_MEM_DATA_DIR`, `BASIC_MEMORY_HOME` and `MEM0_DIR` are heeded as the tools heed them.
    """
    home = home or Path.home()
    places: list[tuple[str, Path, tuple[str, ...]]] = [
        *(("Claude Code's notes", folder, ("*/memory/*.md",)) for folder in default_sources(home, "claude-code")),
        ("claude-mem", Path(os.environ.get("CLAUDE_MEM_DATA_DIR") or home / ".claude-mem"), ("claude-mem.db",)),
        *(("basic-memory", folder, ("*.md", "*/*.md")) for folder in _of_basic_memory(home)),
        ("mem0", Path(os.environ.get("MEM0_DIR") or home / ".mem0"), ("history.db",)),
        ("code-memory", home / ".claude-code" / "memory", ("events.sqlite", "projects/*/events.sqlite")),
    ]
    found = [(title, path) for title, path, signs in places if any(next(path.glob(sign), None) for sign in signs)]
    return [OtherMemory(title, path) for title, path in found[:_MOST]]


def to_offer(data_dir: Path) -> list[OtherMemory]:
    """Those that were neither offered nor taken in here."""
    try:
        known = (data_dir / _OFFERED).read_text().splitlines()
    except OSError:
        known = []
    return [each for each in other_memories() if str(each.path) not in known]


def offered(data_dir: Path, paths: Iterable[Path]) -> None:
    """Offer these no more."""
    with contextlib.suppress(OSError), (data_dir / _OFFERED).open("a") as file:
        file.writelines(f"{path.absolute()}\n" for path in paths)


def _of_basic_memory(home: Path) -> list[Path]:
    """The folders that basic-memory's settings name, else the one that it begins with."""
    try:
        said = mapping(json.loads(read_file(home / ".basic-memory" / "config.json")))
    except (OSError, ValueError, RecursionError):
        said = {}
    each = (
        string(mapping(project).get("path")) or string(project) for project in mapping(said.get("projects")).values()
    )
    named = [Path(path) for path in islice(each, _MOST) if Path(path).is_absolute()]
    return named or [Path(os.environ.get("BASIC_MEMORY_HOME") or home / "basic-memory")]


def stores_in(path: Path) -> list[Path]:
    """The file, or the stores of a folder and those below, in order: files, and folders of Markdown notes.

    Raises: NotALegacyStore where there is none.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise NotALegacyStore(path=str(path), why="there is no such file or folder")
    path = path.resolve()
    below = (path / "memory", *sorted(path.glob("*/memory")), *sorted(path.glob("projects/*/memory")))
    found = [each for each in (path, *below) if is_of_claude(each) and next(each.glob("*.md"), None)]
    found = found or [path / name for name in _DATABASES if (path / name).is_file()]
    if not found and is_of_basic_memory(path):
        found = [path]
    if not found:
        found = sorted(each for each in path.rglob("*") if each.suffix.lower() in SUFFIXES and each.is_file())
    if not found:
        raise NotALegacyStore(path=str(path), why="the folder holds no databases, no JSON and no notes")
    return found
