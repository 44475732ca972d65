"""Where work happens: normalised working directories, and the project that a worktree belongs to. Pure text rules."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from memctl.domain.support import patterns
from memctl.domain.support.provenance import member_called
from memctl.domain.support.remembered import remembered

LONGEST = 1000
"""Bytes of the longest location that is kept whole, as JSON: rows hold some of them."""

_DEAR = bytes((*range(0x20), ord('"')))
"""Characters that cost up to six bytes in JSON."""

_MOUNTED = patterns.compile(r"(?:/cygdrive)?/([A-Za-z])(?=/|$)")
"""A drive as the shells of Git for Windows and Cygwin call it."""

# Beside the project, by habit: `<project>.worktrees/<name>`, also with `__`, `_` or `-` for the dot.
_BESIDE = patterns.compile(r"((.+/[^/]*[^/._-])(?:\.|-|__?)worktrees/[^/]+)(?:/.*)?")

# Where tools keep a project's worktrees inside the project: `.worktrees/<name>` (git, by habit),
# `.claude/worktrees/<name>` (Claude Code; others alike), `.git/worktrees/<name>`, `.conductor/<name>` (Conductor).
_INSIDE = patterns.compile(r"(.+?)/(?:\.[A-Za-z0-9_-]+/worktrees|\.worktrees|\.conductor)/[^/]+(?:/.*)?")

# And where they keep them outside: `~/.codex/worktrees/<id>/<project>` (Codex), `~/.cursor/worktrees/<project>/<id>`
# (Cursor), `~/conductor/workspaces/<project>/<name>` (Conductor). Two repositories of one name share such a folder.
_CODEX = patterns.compile(r"((.+/\.codex/worktrees)/[^/]+/([^/]+))(?:/.*)?")
_CURSOR = patterns.compile(r"((.+/\.cursor/worktrees/[^/]+)/[^/]+)(?:/.*)?")
_CONDUCTOR = patterns.compile(r"((.+/conductor/workspaces/[^/]+)/[^/]+)(?:/.*)?")
_KEPT = patterns.compile(r".+/\.(?:codex|cursor)/worktrees/[^/]+")
"""A folder of theirs that holds worktrees, and is none."""


def _may_be_worktree(location: str) -> bool:
    """Whether a location has what each of these patterns asks for: few have, and all are asked."""
    return "worktrees/" in location or "conductor/" in location


_IN_TOOLS = patterns.compile(r"/(?:\.[A-Za-z0-9_-]+/worktrees|\.worktrees|\.conductor)/[^/]+(?=/)")


@remembered(16_384)
def normalise(cwd: str) -> str:
    """A working directory as memctl compares it.

    Slashes instead of backslashes unless it begins with one slash, drive letter in upper case, no trailing slash, `.`
    and `..` folded; nothing else changes, not even case or a blank at its end, but what is longer than `LONGEST` bytes
    lies nowhere. The root stays `/` (or `C:/`), an empty path stays empty.
    """
    # What folding leaves may read otherwise: `x/../c:/a` is on a drive.
    while (once := _folded(cwd)) != cwd:
        cwd = once
    return cwd


def _folded(cwd: str) -> str:
    whose, path, root = cwd.removesuffix(path_of(cwd)), path_of(cwd), ""
    path = _slashed(path) if path.strip() else ""
    if _has_drive(path):
        root, path = f"{path[0].upper()}:/", path[2:]
    elif path.startswith("/"):
        # Exactly two slashes begin a share's name on Windows (and mean something of their own to POSIX).
        root = "//" if path.startswith("//") and not path.startswith("///") else "/"
    parts: list[str] = []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part != "..":
            parts.append(part)
        elif parts and parts[-1] != "..":
            parts.pop()
        elif not root:
            parts.append(part)
    return bounded(whose + root + "/".join(parts))


def _slashed(path: str, location: str = "") -> str:
    """A path with slashes for backslashes. POSIX has names with backslashes: a folder `..\\..\\shop` leads nowhere."""
    slashed = path.replace("\\", "/")
    begins = path if path.startswith("/") or _has_drive(slashed) or slashed.startswith("//") else location
    return path if begins.startswith("/") and not begins.startswith("//") else slashed


def _has_drive(path: str) -> bool:
    """Whether a path begins with a drive's letter: `c:/work`."""
    return path[1:2] == ":" and path[2:3] in ("", "/") and path[0].isascii() and path[0].isalpha()


def bounded(path: str) -> str:
    """The path as it is kept. Locations are indexed, so a longer one than any file system allows lies nowhere."""
    data = path.encode("utf-8", "surrogatepass")
    dear = len(data) - len(data.translate(None, _DEAR))
    return path if len(data) + 5 * dear <= LONGEST else nowhere(path)


def nowhere(path: str) -> str:
    """What stands for a path that is not kept as it is: a digest keeps it distinct. It lies in no directory, for with
    a part of its text left out it might lie in one that the path does not lie in."""
    digest = hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    elsewhere = _IMPORTED if is_in_another_memory(path) else path.removesuffix(path_of(path))
    return f"{elsewhere}/~{digest}"


def project_of(location: str) -> str:
    """The root path of the project that a normalised location lies in, as far as its text shows it.

    A worktree's location leads to the path of the repository it belongs to; any other location is its own project,
    until the log says more (a git remote, a worktree's root).
    """
    return _project_of(location) if _may_be_worktree(location) else location


@remembered(16_384)
def _project_of(location: str) -> str:
    for pattern in (_CURSOR, _CONDUCTOR):
        if outside := pattern.fullmatch(location):
            return outside[2]
    if outside := _CODEX.fullmatch(location):
        return f"{outside[2]}/{outside[3]}"
    beside = _BESIDE.fullmatch(location)
    # A worktree may hold worktrees of its own: the first root is the repository.
    return min(_home_of(location), beside[2] if beside else location, key=len)


def home_of(location: str) -> str:
    """The same, by nothing that a folder of any name could claim, or another repository of the same name: what is said
    of a project is kept there, before anyone looks at git's files."""
    return _home_of(location) if _may_be_worktree(location) else location


@remembered(16_384)
def _home_of(location: str) -> str:
    for pattern in (_CURSOR, _CONDUCTOR, _CODEX):
        if outside := pattern.fullmatch(location):
            return outside[1]
    within = _INSIDE.fullmatch(location) if not _KEPT.fullmatch(location) else None
    return within[1] if within else location


def tree_of(location: str) -> str:
    """The same, but of such a folder beside a project the folder itself."""
    if not _may_be_worktree(location) or (home := home_of(location)) != location:
        return home_of(location)
    beside = _BESIDE.fullmatch(location)
    return beside[1] if beside else home


NOWHERE = "?"
"""The location of what was said nobody knows where: an empty one holds in every project."""

_IMPORTED = "imported:"


def in_another_memory(location: str) -> str:
    """Where what another memory calls by that name lies here: at no path of this machine, whatever the name. Empty for
    none."""
    return normalise(f"{_IMPORTED}{normalise('/' + location)}") if location else ""


def is_in_another_memory(location: str) -> bool:
    """Whether a location is one of another memory's."""
    return location.startswith(_IMPORTED)


def name_in_another_memory(location: str) -> str:
    """What another memory calls a location of its own."""
    return location.removeprefix(_IMPORTED).strip("/")


_BY_KEY = "key:"


def by_key(location: str) -> str:
    """Where what a key limited to projects says of a path lies: at no path of this machine, for it may not know that
    path yet, and whoever works there later is of another project. Nothing lies there but what such keys say."""
    if location in ("", NOWHERE) or location.startswith(_BY_KEY):
        return location
    return normalise(f"{_BY_KEY}{location}")


def said_of(location: str) -> str:
    """The path that a location is of, where that is one that a key speaks of; else itself."""
    return location.removeprefix(_BY_KEY)


_MEMBERS = "member:"
_PARTING = str.maketrans({char: f"%{ord(char):02X}" for char in "%/:\\"})
"""Characters that would end a member's name in a location."""


def of_member(key: str, location: str) -> str:
    """Where what comes through an unlimited key of that name lies: on machines of its member, whose paths say nothing
    of what lies here or at another member's."""
    if location in ("", NOWHERE):
        return location
    return normalise(f"{_MEMBERS}{member_called(key).translate(_PARTING)}:{location}")


_SINCE = "since:"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STAMP = "%Y%m%dT%H%M%S.%f"


def of_occupant(since: int, location: str) -> str:
    """The place of what happens at a path since a checkout came there (microseconds) over another one, whose memory the
    path itself keeps. The path itself for 0."""
    if not since or not is_absolute(location):
        return location
    return normalise(f"{_SINCE}{_EPOCH + timedelta(microseconds=since):{_STAMP}}:{location}")


def since_of(location: str) -> int:
    """Since when a checkout is there in place of another one, in microseconds; 0 of a path itself."""
    if not location.startswith(_SINCE):
        return 0
    try:
        moment = datetime.strptime(location[len(_SINCE) : location.find(":", len(_SINCE))], _STAMP)
    except ValueError:  # a folder that is called so
        return 0
    return (moment.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


def path_of(location: str) -> str:
    """The path of a location on the machine that it is on, a member's or this one."""
    for kind in (_MEMBERS, _SINCE):
        if location.startswith(kind):
            return location[location.find(":", len(kind)) + 1 :]
    return said_of(location)


def file_at(location: str, path: str) -> str:
    """A file that is named at a location of this machine, as one of the checkout that lies or lay there."""
    return of_occupant(since_of(location), joined(path_of(location), path))


def is_on_this_machine(location: str) -> bool:
    """Whether a location is a path of this machine, whichever checkout lay there."""
    return not location.startswith((_MEMBERS, _BY_KEY, _IMPORTED))


def above(path: str) -> Iterator[str]:
    """The directories that hold a normalised path, innermost first; the root of the file system is none, nor what is
    named by more than any path has."""
    at = path.rfind("/", 0, 4 * LONGEST)
    while at > 0 and not (path[at - 1] == ":" and path.find("/") == at):
        yield path[:at]
        at = path.rfind("/", 0, at)


def around(path: str) -> Iterator[str]:
    """A normalised path and what holds it, innermost first; of a worktree, as far as its text shows it, the repository
    comes after its own folders."""
    home = project_of(path)
    yield path
    if home != path:
        yield from (at for at in above(path) if at != home and project_of(at) == home)
        yield home
    yield from above(path)


def inside(path: str, location: str) -> bool:
    """Whether a normalised path is a location, or lies in it."""
    return bool(location) and (path == location or path.startswith(location + "/"))


def belongs(path: str, location: str) -> bool:
    """Whether a path is of the same project as a location, as far as their texts show it: in it, in its repository, or
    in another worktree of that."""
    home = project_of(location)
    return inside(path, location) or inside(path, home) or (bool(home) and project_of(path) == home)


def is_scratch(path: str, location: str) -> bool:
    """Whether a normalised path lies where only what a session tries for itself does: in a temporary folder, and not in
    the project of the location. Without a location nothing is known to."""
    return bool(location) and _SCRATCH.search(f"{path}/") is not None and not belongs(path, location)


_SCRATCH = patterns.compile(
    r"\A(?:/private)?/(?:var/)?tmp/|\A(?:/private)?/var/folders/|/AppData/Local/Temp/|\A[A-Z]:/te?mp/|/scratchpad/",
    patterns.I,
)


def is_absolute(path: str) -> bool:
    """Whether a normalised path begins at a root: `/`, or a drive's."""
    return path.startswith("/") or path[1:3] == ":/"


def joined(location: str, path: str) -> str:
    """A path as a command at that location means it, normalised."""
    path = _slashed(path, location)
    if _has_drive(location) and (drive := _MOUNTED.match(path)):
        path = f"{drive[1]}:{path[drive.end() :] or '/'}"
    return normalise(path if path.startswith("/") or _has_drive(path) else f"{location}/{path}")


@remembered(256)
def project_name(location: str) -> str:
    """A short name for people: the last element of the project's path, or the path where it has none. For what ends a
    line or steers a terminal stands `�`."""
    project = project_of(location)
    return (project.rstrip("/").rpartition("/")[2] or project).translate(_CONTROLS)


_CONTROLS = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029), "�")


@remembered(512)
def file_of(path: str, location: str) -> str:
    """The one name of a file, whichever worktree and directory it was named from."""
    if not path.startswith("/") and path[1:2] != ":" and location:
        path = f"{location.rstrip('/')}/{path.removeprefix('./')}"
    return _IN_TOOLS.sub("", path)
