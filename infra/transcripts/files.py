"""Finding transcripts on this machine."""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from memctl.infra.transcripts.sniff import damaged_head, sniff

Refused = Callable[[Path, OSError], None]

EXAMPLE = Path(__file__).parents[1] / "example" / "session.jsonl"
"""A session that memctl brings."""

_SUFFIXES = (".jsonl", ".json", ".ndjson", ".md", ".traj")
_PACKED = tuple(f"{lines}{packed}" for lines in (".jsonl", ".ndjson") for packed in (".gz", ".xz", ".bz2", ".zst"))


def default_sources(home: Path | None = None, agent: str = "") -> list[Path]:
    """The folders where clients keep transcripts, of those that exist; of one client, where `agent` names it.

    `CLAUDE_CONFIG_DIR`, `CODEX_HOME`, `GEMINI_CLI_HOME` and `XDG_CONFIG_HOME` are heeded as the clients heed them.
    Clients that keep none in the user's home have none here: SpecStory and aider write into the project, OpenCode and
    SWE-agent where they are asked to.
    """
    home = home or Path.home()
    claude = [Path(part) for part in os.environ.get("CLAUDE_CONFIG_DIR", "").split(",") if part]
    codex = Path(os.environ.get("CODEX_HOME") or home / ".codex")
    gemini = Path(os.environ.get("GEMINI_CLI_HOME") or home)
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    folders = {
        "claude-code": [root / "projects" for root in claude or [home / ".claude", config / "claude"]],
        "codex": [codex / "sessions", codex / "archived_sessions"],
        "copilot-cli": [home / ".copilot" / "session-state", home / ".copilot" / "history-session-state"],
        "gemini-cli": [gemini / ".gemini" / "tmp"],
    }
    wanted = folders.get(agent, []) if agent else [folder for each in folders.values() for folder in each]
    return [folder for folder in wanted if folder.is_dir()]


def kept_by_a_client(path: Path) -> bool:
    """Whether a path lies where a client keeps its user's transcripts: anyone may have put a file elsewhere."""
    at = path.expanduser().resolve()
    return any(at.is_relative_to(folder.resolve()) for folder in default_sources())


def discover(paths: Iterable[Path], agent: str = "", refused: Refused = lambda path, why: None) -> Iterator[Path]:
    """Transcripts among files and, recursively, folders: each real file once, in order of path within a folder.

    A file that is named is given if it is a transcript whatever its name; in folders only files with the suffixes that
    clients use are looked at. With `agent`, only that client's; without, also one whose beginning is damaged
    (`damaged_head`). Links are followed, and loops of them end; archives are not opened; what cannot be read is passed
    over, and `refused` is called with it.

    Raises: FileNotFoundError for a named path that is not there.
    """
    seen: set[tuple[int, int]] = set()
    for path in paths:
        path = path.expanduser()
        status = path.stat()
        if path.is_dir():
            yield from _walk(path, agent, seen, refused)
        elif path.is_file() and (status.st_dev, status.st_ino) not in seen and _is_transcript(path, agent, refused):
            seen.add((status.st_dev, status.st_ino))
            yield path


def _walk(root: Path, agent: str, seen: set[tuple[int, int]], refused: Refused) -> Iterator[Path]:
    pending = [root]
    while pending:
        folder = pending.pop()
        try:
            status = folder.stat()
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
        except OSError as why:
            refused(folder, why)
            continue
        folders = []
        for entry in entries:
            try:
                if entry.is_dir():
                    folders.append(entry)
                elif entry.suffix.lower() in _SUFFIXES and entry.is_file():
                    status = entry.stat()
                    if (status.st_dev, status.st_ino) not in seen and _is_transcript(entry, agent, refused):
                        seen.add((status.st_dev, status.st_ino))
                        yield entry
                elif entry.name.lower().endswith(_PACKED):
                    refused(entry, OSError(errno.EINVAL, "packed: unpack it"))
            except OSError as why:
                refused(entry, why)
        pending.extend(reversed(folders))


def _is_transcript(path: Path, agent: str, refused: Refused) -> bool:
    try:
        found = sniff(path)
        return agent in ("", found.agent) if found is not None else bool(not agent and damaged_head(path))
    except OSError as why:
        refused(path, why)
        return False
