"""Finding transcripts on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from memctl.infra.transcripts.sniff import sniff

_SUFFIXES = (".jsonl", ".json", ".ndjson")


def default_sources(home: Path | None = None) -> list[Path]:
    """The folders where clients keep transcripts, of those that exist.

    `CLAUDE_CONFIG_DIR`, `CODEX_HOME` and `XDG_CONFIG_HOME` are heeded as the clients heed them.
    """
    home = home or Path.home()
    claude = [Path(part) for part in os.environ.get("CLAUDE_CONFIG_DIR", "").split(",") if part]
    codex = os.environ.get("CODEX_HOME")
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    folders = [
        *(root / "projects" for root in claude or [home / ".claude", config / "claude"]),
        *(Path(codex or home / ".codex") / name for name in ("sessions", "archived_sessions")),
        home / ".copilot" / "session-state",
        home / ".copilot" / "history-session-state",
    ]
    return [folder for folder in folders if folder.is_dir()]


def discover(paths: Iterable[Path]) -> Iterator[Path]:
    """Transcripts among files and, recursively, folders: each real file once, in order of path within a folder.

    A file that is named is given if it is a transcript whatever its name; in folders only `.jsonl`, `.json` and
    `.ndjson` files are looked at. Links are followed, and loops of them end; archives are not opened; what may not be
    read is passed over.

    Raises: FileNotFoundError for a named path that is not there.
    """
    seen: set[tuple[int, int]] = set()
    for path in paths:
        path = path.expanduser()
        status = path.stat()
        if path.is_dir():
            yield from _walk(path, seen)
        elif path.is_file() and (status.st_dev, status.st_ino) not in seen and _is_transcript(path):
            seen.add((status.st_dev, status.st_ino))
            yield path


def _walk(root: Path, seen: set[tuple[int, int]]) -> Iterator[Path]:
    pending = [root]
    while pending:
        folder = pending.pop()
        try:
            status = folder.stat()
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
        except OSError:
            continue
        folders = []
        for entry in entries:
            try:
                if entry.is_dir():
                    folders.append(entry)
                elif entry.suffix.lower() in _SUFFIXES and entry.is_file():
                    status = entry.stat()
                    if (status.st_dev, status.st_ino) not in seen and _is_transcript(entry):
                        seen.add((status.st_dev, status.st_ino))
                        yield entry
            except OSError:
                continue
        pending.extend(reversed(folders))


def _is_transcript(path: Path) -> bool:
    try:
        return sniff(path) is not None
    except OSError:
        return False
