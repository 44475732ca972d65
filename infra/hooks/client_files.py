"""Other programs' settings files: changed whole or not at all, and given back as they were.

What memctl puts into a file is taken out before it is put in once more, so doing it twice changes nothing. Where
nothing else changed since memctl came, taking it out gives the file back to the byte.
"""

import contextlib
import copy
import json
import os
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from memctl.domain.support import patterns
from memctl.domain.support.errors import MemctlError

Settings = dict[str, Any]
Edit = Callable[[Settings], None]
"""Changes settings in place."""


class SettingsUnreadable(MemctlError):
    """{path} cannot be changed: {why}"""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(path=path, why=why, hint="mend the file, or add memctl to it by hand")


class FileChange(NamedTuple):
    """A settings file's text now and as it is to be; None: the file is not there."""

    path: Path
    before: str | None
    after: str | None
    ours_before: bool
    """memctl is in it already."""
    ours_after: bool


def changed_json(path: Path, strip: Edit, lay: Edit | None) -> FileChange:
    """A JSON file from which memctl is taken out by `strip`, and into which it is put by `lay`.

    Raises: SettingsUnreadable.
    """
    text = _text(path)
    settings = _json(path, text)
    without = copy.deepcopy(settings)
    _edited(path, strip, without)
    if lay is not None:
        wanted = copy.deepcopy(without)
        _edited(path, lay, wanted)
        after = text if wanted == settings else _written(wanted, text)
        return FileChange(path, text, after, without != settings, True)
    if text is None or without == settings:
        return FileChange(path, text, text, False, False)
    was = _was(path)
    if was is None and not without:
        return FileChange(path, text, None, True, False)
    if was is not None and _tidy(_parsed(was)) == _tidy(without):
        return FileChange(path, text, was, True, False)
    return FileChange(path, text, _written(without, text), True, False)


def changed_toml(path: Path, table: str, body: str | None) -> FileChange:
    """A TOML file with one table of memctl's at its end, or without it. Everything else stays as it is written.

    Raises: SettingsUnreadable.
    """
    text = _text(path)
    try:
        tomllib.loads(text or "")
    except ValueError as problem:
        raise SettingsUnreadable(path, f"it is not TOML ({problem})") from problem
    ours_in_it = rf"^\n?\[{patterns.escape(table)}(\.[^\]]*)?\]\n.*?(?=^\[|\Z)"
    without = patterns.Pattern(ours_in_it, patterns.M | patterns.S).sub("", text or "")
    ours = without != (text or "")
    if body is None:
        after = None if not without and _was(path) is None and ours else (without if ours else text)
        return FileChange(path, text, after, ours, False)
    after = (without + ("\n" if without.strip() else "") if without else "") + f"[{table}]\n{body}"
    try:
        tomllib.loads(after)
    except ValueError as problem:
        raise SettingsUnreadable(path, f"memctl's table cannot be added ({problem})") from problem
    return FileChange(path, text, after, ours, True)


def changed_file(path: Path, mark: str, body: str | None) -> FileChange:
    """A file that is memctl's own, or is no more. One without `mark` is somebody else's, which comes back then.

    Raises: SettingsUnreadable.
    """
    text = _text(path)
    ours = text is not None and mark in text
    if body is None:
        return FileChange(path, text, _was(path) if ours else text, ours, False)
    return FileChange(path, text, body, ours, True)


def apply(change: FileChange) -> None:
    """Write a change whole or not at all; what was there before memctl came is kept beside it. Raises: OSError."""
    path = change.path.resolve()  # settings are often links into a folder of their own
    kept = _copy_of(change.path)
    if change.after is None:
        path.unlink(missing_ok=True)
        kept.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if change.before is not None and not change.ours_before:
        _write(kept, change.before, path)
    _write(path, change.after, path)
    if not change.ours_after:
        kept.unlink(missing_ok=True)


def _write(path: Path, text: str, like: Path) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            os.chmod(name, like.stat().st_mode & 0o777)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _copy_of(path: Path) -> Path:
    return path.with_name(path.name + ".before-memctl")


def _was(path: Path) -> str | None:
    with contextlib.suppress(OSError, ValueError):
        return _read(_copy_of(path))
    return None


def _text(path: Path) -> str | None:
    try:
        return _read(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        raise SettingsUnreadable(path, getattr(problem, "strerror", None) or str(problem)) from problem


def _read(path: Path) -> str:
    with path.open(encoding="utf-8", newline="") as file:  # line ends as they are
        return file.read()


def read_json(path: Path) -> Settings:
    """The settings of a JSON file; empty where it is not there. Raises: SettingsUnreadable."""
    return _json(path, _text(path))


def _json(path: Path, text: str | None) -> Settings:
    try:
        settings = json.loads(text) if text and text.strip() else {}
    except (ValueError, RecursionError) as problem:
        raise SettingsUnreadable(path, f"it is not JSON ({problem})") from problem
    if not isinstance(settings, dict):
        raise SettingsUnreadable(path, "it is not a JSON object")
    return settings


def _edited(path: Path, edit: Edit, settings: Settings) -> None:
    try:
        edit(settings)
    except (AttributeError, TypeError, KeyError) as problem:
        raise SettingsUnreadable(path, "what stands there has another shape than its client documents") from problem


def _parsed(text: str) -> Any:
    try:
        return json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return {}


def _written(settings: Settings, like: str | None) -> str:
    """JSON, indented as the file was."""
    lines = (like or "").splitlines()
    inner = next((line for line in lines[1:] if line.strip()), "  ")
    indent = inner[: len(inner) - len(inner.lstrip())] or "  "
    return json.dumps(settings, indent=indent, ensure_ascii=False) + "\n"


def _tidy(settings: Any) -> Any:
    """The settings, where an empty place is none."""
    return {name: value for name, value in settings.items() if value not in ({}, [])}
