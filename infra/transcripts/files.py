"""Finding transcripts on this machine."""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from memctl.domain.support import patterns
from memctl.infra.transcripts.sniff import damaged_head, sniff

Refused = Callable[[Path, OSError], None]

EXAMPLE = Path(__file__).parents[1] / "example" / "session.jsonl"
"""A session that memctl brings."""

_SUFFIXES = (".jsonl", ".json", ".ndjson", ".md", ".traj")
_PACKED = tuple(f"{lines}{packed}" for lines in (".jsonl", ".ndjson") for packed in (".gz", ".xz", ".bz2", ".zst"))
_ARCHIVES = (".tar", ".tgz", ".txz", ".tbz2", ".zip", ".7z", ".rar", ".gz", ".xz", ".bz2", ".zst")

_LAYOUTS = {
    "claude-code": patterns.compile(
        r"[^/]+/(?:[^/]+\.jsonl|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/subagents/(?:[^/]+/)*agent-[^/]+\.jsonl)"
    ),
    "codex": patterns.compile(r"(?:\d+/)*rollout-[^/]+\.jsonl?"),
    "copilot-cli": patterns.compile(r"[^/]+\.jsonl?|[^/]+/events\.jsonl"),
    "gemini-cli": patterns.compile(r"[^/]+/chats/(?:session-[^/]+|[^/]+/[^/]+)\.jsonl?"),
}
"""Which files below the folders of each client are its sessions. Beside them lie memories, plans, outputs of tools and
other files, which agents write."""

_HISTORIES = {"aider": ".aider.chat.history.md", "specstory": ".specstory/history/*.md"}
"""Where clients keep histories in a project."""

_DEPENDENCIES = frozenset((".git", "node_modules", "bower_components", "site-packages", "dist-packages", ".venv"))
"""Folders of a project that hold what others wrote, by names that nothing else has."""

BESIDE_SESSIONS = "lies where a client keeps sessions, and is none of them: agents write there"
AMONG_SOURCES = "lies among projects' files, which others write: name the file itself if it is a session of yours"


def _folders(home: Path | None = None) -> dict[str, list[Path]]:
    """The folders where each client keeps sessions."""
    home = home or Path.home()
    claude = [Path(part) for part in os.environ.get("CLAUDE_CONFIG_DIR", "").split(",") if part]
    codex = Path(os.environ.get("CODEX_HOME") or home / ".codex")
    gemini = Path(os.environ.get("GEMINI_CLI_HOME") or home)
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    return {
        "claude-code": [root / "projects" for root in claude or [home / ".claude", config / "claude"]],
        "codex": [codex / "sessions", codex / "archived_sessions"],
        "copilot-cli": [home / ".copilot" / "session-state", home / ".copilot" / "history-session-state"],
        "gemini-cli": [gemini / ".gemini" / "tmp"],
    }


def default_sources(home: Path | None = None, agent: str = "") -> list[Path]:
    """The folders where clients keep transcripts, of those that exist; of one client, where `agent` names it.

    `CLAUDE_CONFIG_DIR`, `CODEX_HOME`, `GEMINI_CLI_HOME` and `XDG_CONFIG_HOME` are heeded as the clients heed them.
    Clients that keep none in the user's home have none here: SpecStory and aider write into the project, OpenCode and
    SWE-agent where they are asked to.
    """
    folders = _folders(home)
    wanted = folders.get(agent, []) if agent else [folder for each in folders.values() for folder in each]
    return [folder for folder in wanted if folder.is_dir()]


def kept_by_a_client(path: Path) -> bool:
    """Whether a client keeps its user's sessions in a folder, or a file as one of them: anyone may have put a file
    elsewhere."""
    at = path.expanduser().resolve()
    there, agent = _kept_at(at)
    return there and (bool(agent) or at.is_dir())


def _kept_at(at: Path) -> tuple[bool, str]:
    """Whether a resolved path lies where a client keeps sessions, and of which client it is one by its name."""
    there = False
    for agent, folders in _folders().items():
        for folder in folders:
            if at.is_relative_to(kept := folder.resolve()):
                there = True
                if _LAYOUTS[agent].fullmatch(at.relative_to(kept).as_posix()):
                    return True, agent
    return there, ""


def discover(paths: Iterable[Path], agent: str = "", refused: Refused = lambda path, why: None) -> Iterator[Path]:
    """Transcripts among files and, recursively, folders: each real file once, in order of path within a folder.

    A file that is named is given if it is a transcript whatever its name; in folders only files with the suffixes that
    clients use are looked at. With `agent`, only that client's; without, also one whose beginning is damaged
    (`damaged_head`). Links are followed, and loops of them end; archives are not opened. What cannot be read is passed
    over, and `refused` is called with it; so is what lies where none of the user's clients puts a session.

    Raises: FileNotFoundError for a named path that is not there.
    """
    seen: set[tuple[int, int]] = set()
    for path in paths:
        path = path.expanduser()
        status = path.stat()
        if path.is_dir():
            yield from _walk(path, agent, seen, refused)
        elif path.is_file() and (status.st_dev, status.st_ino) not in seen:
            if _agent_of(path, agent, refused) is None:
                continue
            seen.add((status.st_dev, status.st_ino))
            yield path


def _walk(root: Path, agent: str, seen: set[tuple[int, int]], refused: Refused) -> Iterator[Path]:
    """The transcripts of a folder. Of a checkout, or one that holds some, which is a tree of sources, these are the
    histories of its projects alone, and what clients keep. A folder within a checkout was named for what it holds."""
    base, files = root.resolve(), list[Path]()
    sources = _is_a_checkout(base)
    for entry in _files(root, seen, refused):
        if entry.name == ".git":
            sources = True
        else:
            files.append(entry)
    for entry in files:
        try:
            status = entry.stat()
            if (status.st_dev, status.st_ino) in seen or (found := _agent_of(entry, agent, refused)) is None:
                continue
            if why := _misplaced(entry, found, root, base, sources=sources):
                refused(entry, OSError(errno.EPERM, why))
                continue
            seen.add((status.st_dev, status.st_ino))
            yield entry
        except OSError as problem:
            refused(entry, problem)


def _misplaced(file: Path, agent: str, root: Path, base: Path, *, sources: bool) -> str:
    """Why a transcript that was found below `root`, which is `base`, is none of the user's by where it lies."""
    there, kept = _kept_at(base / file.relative_to(root))
    if there:
        return "" if kept and agent in (kept, "") else BESIDE_SESSIONS
    if not sources:
        return ""
    if (history := _HISTORIES.get(agent, "")) and file.match(history):
        project = file.parents[history.count("/")]
        if root.is_relative_to(project) or (project / ".git").exists():
            return ""
    return AMONG_SOURCES


def archives(folder: Path) -> list[Path]:
    """The packed files below a folder, by their names: sessions may lie in them, and `discover` opens none."""
    found = _files(folder.expanduser(), set(), lambda path, why: None, _ARCHIVES)
    return [path for path in found if path.name != ".git"]


def _files(
    root: Path, seen: set[tuple[int, int]], refused: Refused, suffixes: tuple[str, ...] = _SUFFIXES
) -> Iterator[Path]:
    """The files below a folder that may be transcripts by their suffix, and the `.git` of each checkout."""
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
                if entry.name in _DEPENDENCIES:
                    if entry.name == ".git":
                        yield entry
                elif entry.is_dir():
                    folders.append(entry)
                elif entry.name.lower().endswith(suffixes) and entry.is_file():
                    yield entry
                elif entry.name.lower().endswith(_PACKED):
                    refused(entry, OSError(errno.EINVAL, "packed: unpack it"))
            except OSError as why:
                refused(entry, why)
        pending.extend(reversed(folders))


def _is_a_checkout(at: Path) -> bool:
    """Whether a resolved folder is one: the user's home is none, though some keep its settings so."""
    home = Path.home().resolve()
    return at not in (home, *home.parents) and (at / ".git").exists()


def _agent_of(path: Path, agent: str, refused: Refused) -> str | None:
    """The client whose transcript a file is; empty where its beginning is damaged, None where it is none, or none of
    `agent`."""
    try:
        found = sniff(path)
        if found is not None:
            return found.agent if agent in ("", found.agent) else None
        return "" if not agent and damaged_head(path) else None
    except OSError as why:
        refused(path, why)
        return None
