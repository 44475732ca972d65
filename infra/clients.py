"""memctl's hooks in the settings of coding agents: what to write there, and how to take it out again.

Only entries that call memctl's hook are touched; other people's, and everything else in the file, stays as it is.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from memctl.domain.errors import MemctlError
from memctl.infra import hook

TIMEOUT_S = 10
"""What a client is told to wait at most; the hook gives up long before (`memctl.infra.hook`)."""


class SettingsUnreadable(MemctlError):
    """{path} cannot be changed: {why}"""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(path=path, why=why, hint="mend the file, or add memctl's hooks to it by hand")


class Client(NamedTuple):
    """A coding agent: its name, where its hooks are set, and for which of them memctl is called."""

    name: str
    title: str
    file: Callable[[], Path]
    events: tuple[str, ...]
    asking: frozenset[str]
    """Those of them at which memory may have something to tell."""
    note: str = ""
    """What a person has to do besides."""


def _home(variable: str, otherwise: str) -> Path:
    return Path(os.environ.get(variable) or otherwise).expanduser()


CLIENTS = {
    client.name: client
    for client in (
        Client(
            "claude-code",
            "Claude Code",
            lambda: _home("CLAUDE_CONFIG_DIR", "~/.claude") / "settings.json",
            ("SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "SubagentStop", "PreCompact",
             "Stop", "SessionEnd"),
            frozenset(("SessionStart", "UserPromptSubmit", "PostToolUseFailure")),
        ),
        Client(
            "codex",
            "Codex",
            lambda: _home("CODEX_HOME", "~/.codex") / "hooks.json",
            ("SessionStart", "UserPromptSubmit", "PostToolUse", "SubagentStop", "PreCompact", "Stop"),
            frozenset(("SessionStart", "UserPromptSubmit")),
            note="Codex asks you to review and trust new hooks before it runs them (`/hooks`).",
        ),
    )
}  # fmt: skip


class Change(NamedTuple):
    """A settings file's text now and as it is to be; None: the file is not there."""

    path: Path
    before: str | None
    after: str | None


def command(client: Client, event: str, data_dir: Path | None) -> str:
    """The command line of a client's hook: this interpreter without its site, and the hook as a plain file.

    `data_dir` where it is not the one that a hook finds by itself.
    """
    words = [sys.executable, "-I", "-S", hook.__file__, "ingest", "--stdin", "--agent", client.name]
    words += ["--recall"] if event in client.asking else []
    words += ["--data-dir", str(data_dir)] if data_dir else []
    return shlex.join(words)


def installed(client: Client) -> list[str]:
    """The hook commands of memctl that a client's settings hold, each once. Raises: SettingsUnreadable."""
    settings, _ = _read(client.file())
    found = (each.get("command", "") for groups in _hooks(settings).values() for each in _entries(groups))
    return list(dict.fromkeys(line for line in found if _ours(line)))


def installing(client: Client, data_dir: Path | None = None) -> Change:
    """What has to change for a client to call memctl. Raises: SettingsUnreadable."""
    path = client.file()
    settings, text = _read(path)
    wanted = _without(settings)
    hooks = wanted.setdefault("hooks", {})
    for event in client.events:
        entry = {"type": "command", "command": command(client, event, data_dir), "timeout": TIMEOUT_S}
        hooks.setdefault(event, []).append({"hooks": [entry]})
    return Change(path, text, text if wanted == settings else _written(wanted, text))


def removing(client: Client) -> Change:
    """What has to change for a client not to call memctl any more. Raises: SettingsUnreadable.

    Where nothing else changed since memctl came, the file will be as it was, to the byte.
    """
    path = client.file()
    settings, text = _read(path)
    wanted = _without(settings)
    if text is None or wanted == settings:
        return Change(path, text, text)
    was = None
    with contextlib.suppress(OSError, ValueError):
        was = _copy_of(path).read_text(encoding="utf-8")
    if was is None and not wanted:
        return Change(path, text, None)
    if was is not None and _tidy(_parsed(was)) == _tidy(wanted):
        return Change(path, text, was)
    return Change(path, text, _written(wanted, text))


def apply(change: Change) -> None:
    """Write a change whole or not at all; what was there before memctl came is kept beside it. Raises: OSError."""
    path = change.path.resolve()  # settings are often links into a folder of their own
    kept = _copy_of(change.path)
    if change.after is None:
        path.unlink()
        kept.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    arrives = change.before is not None and not any(map(_ours, _commands(_parsed(change.before))))
    if arrives and change.before is not None:
        _write(kept, change.before, path)
    _write(path, change.after, path)
    if not any(map(_ours, _commands(_parsed(change.after)))):
        kept.unlink(missing_ok=True)


def _write(path: Path, text: str, like: Path) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
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


def _read(path: Path) -> tuple[dict[str, Any], str | None]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}, None
    except (OSError, ValueError) as problem:
        raise SettingsUnreadable(path, getattr(problem, "strerror", None) or str(problem)) from problem
    try:
        settings = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as problem:
        raise SettingsUnreadable(path, f"it is not JSON ({problem})") from problem
    if not isinstance(settings, dict):
        raise SettingsUnreadable(path, "it is not a JSON object")
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(groups, list) for groups in hooks.values()):
        raise SettingsUnreadable(path, "its hooks are not lists by event")
    return settings, text


def _parsed(text: str) -> Any:
    try:
        return json.loads(text) if text.strip() else {}
    except ValueError:
        return {}


def _written(settings: dict[str, Any], like: str | None) -> str:
    """JSON, indented as the file was."""
    lines = (like or "").splitlines()
    inner = next((line for line in lines[1:] if line.strip()), "  ")
    indent = inner[: len(inner) - len(inner.lstrip())] or "  "
    return json.dumps(settings, indent=indent, ensure_ascii=False) + "\n"


def _without(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings without memctl's hooks, and without what these had been alone in."""
    rest = copy.deepcopy(settings)
    hooks = rest.get("hooks", {})
    for event, groups in list(hooks.items()):
        kept = []
        for group in groups:
            entries = _entries([group])
            others = [each for each in entries if not _ours(each.get("command", ""))]
            if len(others) == len(entries):
                kept.append(group)
            elif others:
                kept.append({**group, "hooks": others})
        if kept:
            hooks[event] = kept
        elif groups:
            del hooks[event]
    if not hooks and settings.get("hooks"):
        del rest["hooks"]
    return rest


def _tidy(settings: Any) -> Any:
    """The settings, where an empty place for hooks is none."""
    return {name: value for name, value in settings.items() if name != "hooks" or value}


def _hooks(settings: Any) -> dict[str, Any]:
    hooks = settings.get("hooks") if isinstance(settings, dict) else None
    return hooks if isinstance(hooks, dict) else {}


def _entries(groups: Any) -> list[dict[str, Any]]:
    """The commands of matcher groups; what has another shape is nobody's of ours."""
    found = []
    for group in groups if isinstance(groups, list) else []:
        entries = group.get("hooks") if isinstance(group, dict) else None
        found += [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
    return found


def _commands(settings: Any) -> list[str]:
    return [each.get("command", "") for groups in _hooks(settings).values() for each in _entries(groups)]


def _ours(line: object) -> bool:
    if not isinstance(line, str):
        return False
    try:
        words = shlex.split(line)
    except ValueError:
        return False
    plain = any(word.endswith(("memctl/infra/hook.py", "/infra/hook.py")) for word in words)
    named = bool(words) and Path(words[0]).name == "memctl"
    return (plain or named) and "ingest" in words and "--stdin" in words
