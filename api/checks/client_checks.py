"""Whether the hooks in clients' settings work: each command that stands there is run with a payload of no meaning."""

import json
import shlex
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from memctl.api.checks.check import Check, check, skipped
from memctl.domain.support.wording import number
from memctl.infra import hook
from memctl.infra.hooks.client_files import SettingsUnreadable
from memctl.infra.hooks.clients import CLIENTS, NAME, AgentClient, installed, plugin_commands, plugin_enabled
from memctl.infra.hooks.spool import spooled

PART = "clients"
PATIENCE_S = 15.0
SLOW_S = 1.0
"""A hook that takes longer is felt at every turn."""

_LONGEST_PATH = 4_096
"""Characters of a path, as on Linux."""


def clients() -> Iterator[Check]:
    """One check for each client whose settings call memctl, or seem to and cannot be read."""
    any_installed = False
    for client in CLIENTS.values():
        try:
            lines, plugin = installed(client), client.name == "claude-code" and plugin_enabled()
        except SettingsUnreadable as why:
            if _mentions_memctl(client.hooks_file()):  # others read more than JSON: comments, for one
                any_installed = True
                yield check(PART, client.name, "could not be looked at", [why], advice=why.hint or "")
            continue
        any_installed = any_installed or plugin or bool(lines)
        if lines or plugin:
            yield _tried(client, lines, plugin)
    if not any_installed:
        yield skipped(PART, "hooks", "no client calls memctl; `memctl install` makes one do so")


def _mentions_memctl(file: Path) -> bool:
    try:
        return b"memctl" in file.read_bytes()
    except OSError:
        return True


def _tried(client: AgentClient, lines: list[str], plugin: bool) -> Check:
    wrong: list[str] = []
    mend = (
        f"`memctl install {client.name}` writes them again" if lines else "those of the plugin call memctl on the PATH"
    )
    if plugin:
        lines = list(dict.fromkeys([*lines, *plugin_commands()]))
        if shutil.which(NAME) is None:
            wrong.append("memctl is not on the PATH: the hooks of its plugin do nothing")
    slowest = 0.0
    for line in lines:
        began = time.monotonic()
        why = _trouble(client, line)
        slowest = max(slowest, time.monotonic() - began)
        if why and why not in wrong:
            wrong.append(why)
    if slowest > SLOW_S and not wrong:
        wrong.append(f"a hook took {slowest:.1f} s")
    return check(
        PART, client.name, f"{number(len(lines), 'hook')} tried, {slowest * 1000:.0f} ms at most", wrong,
        advice=f"{mend}; start memctl with `memctl up`",
    )  # fmt: skip


def _trouble(client: AgentClient, line: str) -> str:
    """What is wrong with a hook's command; nothing where the door took what it was given."""
    mark = f"memctl-doctor-{uuid.uuid4().hex}"
    # A notification is about the client's own doings: the door takes it, and keeps nothing of it.
    payload = json.dumps({"hook_event_name": "Notification", "session_id": mark, "cwd": "/", "message": mark}).encode()
    try:
        # As its client runs it, from the user's own settings.
        done = subprocess.run(["/bin/sh", "-c", line], input=payload, capture_output=True, timeout=PATIENCE_S)  # noqa: S603
    except subprocess.TimeoutExpired:
        return f"it did not end within {PATIENCE_S:.0f} s"
    except (OSError, ValueError) as problem:  # longer than a program's argument can be, or with a zero byte
        return f"it cannot be run ({problem})"
    if done.returncode:
        return f"it ended with {done.returncode}: {_first_line(done.stderr)}"
    if done.stdout or done.stderr:
        return f"it printed {_first_line(done.stdout + done.stderr)}"
    left = [path for path in spooled(_data_dir(line) / "spool") if _holds(path, mark)]
    for path in left:
        path.unlink(missing_ok=True)
    return "nobody took it at the door: what hooks tell waits in the spool" if left else ""


def _data_dir(line: str) -> Path:
    """The data directory that a hook's command names, or that of the user's settings."""
    _, named, rest = line.partition(" --data-dir ")
    if not named:
        return Path(hook.data_directory(hook.user_settings()))
    words = shlex.shlex(rest[:_LONGEST_PATH], posix=True)
    words.whitespace_split, words.commenters = True, ""
    return Path(words.get_token() or "")


def _holds(path: Path, mark: str) -> bool:
    try:
        return mark.encode() in path.read_bytes()
    except OSError:
        return False


def _first_line(said: bytes) -> str:
    return said.decode("utf-8", "replace").strip().partition("\n")[0][:200]
