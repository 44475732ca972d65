"""Which rules this process folds by: a fingerprint of all the code that decides what a row is, as it was loaded.

Files may be replaced while a process runs (`pip install -U`, an editor). What it folds by is what it loaded, so the
files are looked at before any of them is: `memctl.infra` imports this first. Once they have changed, no new
fingerprint is computed: only one that was computed before is returned. A worker then ends, to be started again.
"""

import contextlib
import functools
import os
from pathlib import Path

from memctl.domain.support import patterns
from memctl.domain.support.errors import MemctlError

COMPUTED_WITH = ("msgspec", "rapidfuzz", "pystemmer", "hyperscan", "google-re2")
"""Packages whose versions may change what a fold computes."""

RULES = ("domain", "projections")
"""Rooms of which all that folds import counts."""

ENGINE = (
    "infra.log.reach", "infra.log.read", "infra.readmodels.dead_letters", "infra.readmodels.facts",
    "infra.readmodels.rows", "workers.folding.dealing", "workers.folding.newest_sources", "workers.folding.poison",
    "workers.folding.row_inputs", "workers.folding.sources", "workers.folding.stage1", "workers.folding.stage2",
    "workers.folding.stream_cache", "workers.folding.trial", "workers.rebuild.build",
)  # fmt: skip
"""Beside folds: what is read for them, in which order and how it is routed, and what is done where they fail."""

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

_IMPORT = patterns.compile(rb"^\s*(?:from|import) memctl\.((?:domain|projections)[\w.]*)", patterns.M)
_IMPORT_FROM = patterns.compile(
    rb"^\s*from memctl\.((?:domain|projections)[\w.]*) import (\([^)]*\)|[^\n(]+)", patterns.M
)
_EVENT = patterns.compile(rb"^@(?:event|upcast)\(", patterns.M)

Stamps = dict[str, tuple[int, int, int]]
"""By file, relative to memctl: when it was last written, its size, and which file it is."""


class RulesChanged(MemctlError):
    """memctl's files have changed since this process started."""

    hint = "run it again: it then goes by the files of today"


def _stamps() -> Stamps:
    found = {}
    files = [_path(module) for module in ENGINE]
    for room in RULES:
        for folder, _, names in os.walk(f"{_ROOT}/{room}"):
            files += [f"{folder}/{name}" for name in names if not folder.endswith("__pycache__")]
    for file in files:
        with contextlib.suppress(FileNotFoundError):  # an upgrade may be under way
            of = os.stat(file)
            found[file[len(_ROOT) + 1 :]] = of.st_mtime_ns, of.st_size, of.st_ino
    return found


def _path(module: str) -> str:
    return f"{_ROOT}/{module.replace('.', '/')}.py"


_at_start = _stamps()


def changed() -> bool:
    """Whether files that decide what a row is have changed since this process started."""
    return _stamps() != _at_start


@functools.cache
def fingerprint() -> str:
    """Hash of everything a fold computes with: the projections, what they import of the domain, what feeds them, and
    libraries.

    Raises: RulesChanged where the files are no longer those that were loaded.
    """
    import hashlib
    import importlib.metadata

    from memctl.infra.readmodels import rows as readmodels

    sources = _sources()
    for file in sources:  # what is not loaded yet is loaded now: later, it may be another
        if file.startswith(RULES) and file.endswith(".py"):
            importlib.import_module("memctl." + file.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    if changed():
        raise RulesChanged
    digest = hashlib.sha256()
    for name in sorted(sources):
        digest.update(name.encode() + b"\n" + sources[name])
    for name in COMPUTED_WITH:
        digest.update(f"{name}={importlib.metadata.version(name)}\n".encode())
    digest.update(f"layout={readmodels.LAYOUT}\n".encode())
    return digest.hexdigest()[:32]


def sources() -> list[bytes]:
    """What the rules are made of: a word that stands in it may stand in a row though nobody has said it."""
    return list(_sources().values())


def _sources() -> dict[str, bytes]:
    """The files that decide what a row is: modules that folds import, and whatever lies beside them."""
    waiting = [file for file in _at_start if file.startswith("projections/") or not file.endswith(".py")]
    waiting += [_path(module)[len(_ROOT) + 1 :] for module in ENGINE]
    # The files that register payloads state which there are, and what of them stage 1 leaves alone.
    events = [file for file in _at_start if file.startswith("domain/") and file.endswith(".py")]
    waiting += [file for file in events if _EVENT.search(Path(_ROOT, file).read_bytes())]
    sources: dict[str, bytes] = {}
    while waiting:
        file = waiting.pop()
        if file in sources or file not in _at_start:
            continue
        sources[file] = text = Path(_ROOT, file).read_bytes()
        imported = _IMPORT.findall(text)
        for package, names in _IMPORT_FROM.findall(text):
            each = names.strip(b"()").split(b",")
            imported += [package + b"." + name.split()[0] for name in each if name.strip()]
        for module in imported:
            path = module.decode().replace(".", "/")
            waiting += [f"{path}.py", f"{path}/__init__.py"]
    return sources
