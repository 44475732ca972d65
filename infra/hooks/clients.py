"""memctl in the settings of coding agents: its hooks and its MCP server, what to write where, and how to take it out.

Only entries that call memctl are touched; other people's, and everything else in a file, stays as it is.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from memctl.domain.support.errors import MemctlError
from memctl.infra import hook
from memctl.infra.hooks.client_files import (
    FileChange,
    Settings,
    SettingsUnreadable,
    changed_file,
    changed_json,
    changed_toml,
    read_json,
)

TIMEOUT_S = 10
"""The longest that a client is asked to wait. The hook gives up long before (`memctl.infra.hook`)."""

NAME = "memctl"
"""Of the MCP server, in every client."""

OPENCODE_PLUGIN = Path(__file__).parents[1] / "deploy" / "opencode" / "memctl.js"
USER_UNIT = Path(__file__).parents[1] / "deploy" / "systemd" / "memctl-user.service"
CLAUDE_PLUGIN = Path(__file__).parents[1] / "deploy" / "claude-code"
_COMMAND_OF_PLUGIN = "/* command */ []"
_BY_US = "Written by `memctl install "
"""In the first lines of files that are memctl's own."""


class InACache(MemctlError):
    """This memctl was run without being installed: it stands in a cache, {place}, and its hooks would go with that."""

    hint = "Install it first: `uv tool install` or `pipx install`, in place of `uvx --from` or `pipx run`."
    place: Path


class AgentClient(NamedTuple):
    """A coding agent: its name, for which hooks memctl is called, and which files say so."""

    name: str
    title: str
    events: tuple[str, ...]
    asking: frozenset[str]
    """Those of them at which memory may have something to inject."""
    files: Callable[[AgentClient, Path | None, bool], list[FileChange]]
    """The changes that put memctl in (True) or take it out, given a data directory that is not the usual one."""
    hooks_file: Callable[[], Path]
    before: tuple[tuple[str, str], ...] = ()
    """Hooks at which memory is asked and nothing is kept, each with the tools for which the client calls it."""
    note: str = ""
    """What a person has to do besides."""


def command(client: AgentClient, event: str, data_dir: Path | None) -> str:
    """The command line of a client's hook: this interpreter without its site, and the hook as a plain file.

    `data_dir` where it is not the one that a hook finds by itself.
    """
    words = [sys.executable, "-I", "-S", hook.__file__, "ingest", "--stdin", "--agent", client.name]
    if event in dict(client.before):
        words += ["--recall-only"]
    words += ["--recall"] if event in client.asking else []
    words += ["--data-dir", str(data_dir)] if data_dir else []
    return shlex.join(words)


def mcp_command() -> list[str]:
    """How a client starts the MCP server."""
    script = Path(sys.executable).with_name(NAME)
    return [str(script), "mcp"] if script.exists() else [sys.executable, "-m", "memctl.cli", "mcp"]


def autostart(wanted: bool, data_dir: Path | None = None) -> FileChange:
    """The change that has systemd start memctl at each login of this user (True), or no more. Raises:
    SettingsUnreadable, InACache."""
    unit = None
    if wanted:
        kept(Path(sys.prefix))
        command = " ".join(_of_systemd(word) for word in mcp_command()[:-1])
        unit = USER_UNIT.read_text(encoding="utf-8").replace("%h/.local/bin/memctl", command)
        # The comments in front of it say how it is put there by hand.
        unit = f"# {_BY_US}autostart`; with `--uninstall` it takes it away.\n\n{unit[unit.index('[Unit]') :]}"
        if data_dir:
            variable = _of_systemd(f"MEMCTL_DATA_DIR={data_dir}")
            unit = unit.replace("[Service]\n", f"[Service]\nEnvironment={variable}\n")
    file = _home("XDG_CONFIG_HOME", "~/.config") / "systemd" / "user" / "memctl.service"
    return changed_file(file, _BY_US, unit)


def _of_systemd(word: str) -> str:
    """A word as systemd's unit files quote it in `Environment`, or as a program's path: in both, `$` is no variable."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def kept(environment: Path) -> None:
    """Refuse an environment that uvx or pipx made for one run. Raises: InACache."""
    of_uv = any(part.startswith(("archive-v", "environments-v")) for part in environment.parts)
    if of_uv or {("pipx", ".cache"), (".cache", "pipx")} & set(pairwise(environment.parts)):
        raise InACache(place=environment)


def installing(client: AgentClient, data_dir: Path | None = None) -> list[FileChange]:
    """What has to change for a client to call memctl. Raises: SettingsUnreadable, InACache."""
    kept(Path(sys.prefix))
    return client.files(client, data_dir, True)


def removing(client: AgentClient) -> list[FileChange]:
    """What has to change for a client not to call memctl any more. Raises: SettingsUnreadable.

    Where nothing else changed since memctl came, each file will be as it was, to the byte.
    """
    return client.files(client, None, False)


def installed(client: AgentClient) -> list[str]:
    """The hook commands of memctl that a client's settings hold, each once. Raises: SettingsUnreadable."""
    path = client.hooks_file()
    if path.suffix == ".js":
        return _of_plugin(path)
    found = (line for _, line in _commands(read_json(path)) if _ours(line))
    return list(dict.fromkeys(found))


def _home(variable: str, otherwise: str) -> Path:
    return Path(os.environ.get(variable) or otherwise).expanduser()


def _environment(data_dir: Path | None) -> dict[str, str]:
    return {"MEMCTL_DATA_DIR": str(data_dir)} if data_dir else {}


# --- Claude Code ---


def _claude(client: AgentClient, data_dir: Path | None, wanted: bool) -> list[FileChange]:
    servers = _claude_servers()
    return [
        changed_json(
            client.hooks_file(), _strip_hooks, partial(_lay_groups, client, data_dir, TIMEOUT_S) if wanted else None
        ),
        _changed_servers(servers, "mcpServers", {"type": "stdio", **_server(data_dir)} if wanted else None),
    ]


def _claude_servers() -> Path:
    """Claude Code keeps what is a user's own beside its folder, or in it where that was moved."""
    moved = os.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(moved) if moved else Path.home()) / ".claude.json"


def plugin_enabled() -> bool:
    """Whether Claude Code has memctl's plugin switched on, which brings the same hooks. Raises: SettingsUnreadable."""
    enabled = read_json(CLIENTS["claude-code"].hooks_file()).get("enabledPlugins")
    return isinstance(enabled, dict) and any(name.startswith(f"{NAME}@") and on for name, on in enabled.items())


def plugin_commands() -> list[str]:
    """The hook commands of Claude Code's plugin, each once."""
    return list(dict.fromkeys(line for _, line in _commands(read_json(CLAUDE_PLUGIN / "hooks" / "hooks.json"))))


# --- Codex ---


def _codex(client: AgentClient, data_dir: Path | None, wanted: bool) -> list[FileChange]:
    words = mcp_command()
    body = f"command = {json.dumps(words[0])}\nargs = {json.dumps(words[1:])}\n"
    if data_dir:
        body += f"env = {{ MEMCTL_DATA_DIR = {json.dumps(str(data_dir))} }}\n"
    config = client.hooks_file().with_name("config.toml")
    return [
        changed_json(
            client.hooks_file(), _strip_hooks, partial(_lay_groups, client, data_dir, TIMEOUT_S) if wanted else None
        ),
        changed_toml(config, f"mcp_servers.{NAME}", body if wanted else None),
    ]


# --- Gemini CLI ---


def _gemini(client: AgentClient, data_dir: Path | None, wanted: bool) -> list[FileChange]:
    def lay(settings: Settings) -> None:
        _lay_groups(client, data_dir, TIMEOUT_S * 1000, settings)
        _lay_server("mcpServers", _server(data_dir), settings)

    def strip(settings: Settings) -> None:
        _strip_hooks(settings)
        _strip_server("mcpServers", settings)

    return [changed_json(client.hooks_file(), strip, lay if wanted else None)]


# --- Cursor ---


def _cursor(client: AgentClient, data_dir: Path | None, wanted: bool) -> list[FileChange]:
    def lay(settings: Settings) -> None:
        settings.setdefault("version", 1)
        hooks = settings.setdefault("hooks", {})
        for event in client.events:
            entry = {"command": command(client, event, data_dir), "timeout": TIMEOUT_S}
            hooks.setdefault(event, []).append(entry)

    def strip(settings: Settings) -> None:
        _strip_hooks(settings)
        if set(settings) == {"version"}:
            del settings["version"]

    servers = client.hooks_file().with_name("mcp.json")
    return [
        changed_json(client.hooks_file(), strip, lay if wanted else None),
        _changed_servers(servers, "mcpServers", _server(data_dir) if wanted else None),
    ]


# --- OpenCode ---


def _opencode(client: AgentClient, data_dir: Path | None, wanted: bool) -> list[FileChange]:
    server: Settings = {"type": "local", "command": mcp_command(), "enabled": True}
    server |= {"environment": _environment(data_dir)} if data_dir else {}
    plugin = None
    if wanted:
        words = json.dumps(shlex.split(command(client, "", data_dir)))
        plugin = OPENCODE_PLUGIN.read_text(encoding="utf-8").replace(_COMMAND_OF_PLUGIN, words)
    servers = client.hooks_file().parent.with_name("opencode.json")
    return [
        changed_file(client.hooks_file(), _BY_US, plugin),
        _changed_servers(servers, "mcp", server if wanted else None),
    ]


def _of_plugin(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    for line in text.splitlines():
        if line.startswith("const COMMAND = ["):
            return [shlex.join(json.loads(line.removeprefix("const COMMAND = ").rstrip(";")))]
    raise SettingsUnreadable(path, "it is no plugin of memctl's")


# --- what they share ---


def _lay_groups(client: AgentClient, data_dir: Path | None, timeout: int, settings: Settings) -> None:
    """Hooks as Claude Code keeps them: by event, groups of commands."""
    hooks = settings.setdefault("hooks", {})
    for event, tools in (*((event, "") for event in client.events), *client.before):
        entry = {"type": "command", "command": command(client, event, data_dir), "timeout": timeout}
        hooks.setdefault(event, []).append({**({"matcher": tools} if tools else {}), "hooks": [entry]})


def _strip_hooks(settings: Settings) -> None:
    """Take memctl's hooks out, and what these had been alone in."""
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict):
        raise TypeError
    was = bool(hooks)
    for event, groups in list(hooks.items()):
        if not isinstance(groups, list):
            if event in _KNOWN_EVENTS:
                raise TypeError
            continue
        kept = [rest for group in groups for rest in _without_ours(group)]
        if kept:
            hooks[event] = kept
        elif groups:
            del hooks[event]
    if was and not hooks:
        del settings["hooks"]


def _without_ours(group: Any) -> list[Any]:
    """A group of hooks, or one hook, without memctl's; empty where nothing is left."""
    if not isinstance(group, dict):
        return [group]
    if _ours(group.get("command")):
        return []
    entries = group.get("hooks")
    if not isinstance(entries, list):
        return [group]
    others = [each for each in entries if not (isinstance(each, dict) and _ours(each.get("command")))]
    if len(others) == len(entries):
        return [group]
    return [{**group, "hooks": others}] if others else []


def _server(data_dir: Path | None) -> Settings:
    """The entry of an MCP server, in the form that most clients share."""
    program, *arguments = mcp_command()
    return {"command": program, "args": arguments, **({"env": _environment(data_dir)} if data_dir else {})}


def _changed_servers(file: Path, section: str, server: Settings | None) -> FileChange:
    lay = partial(_lay_server, section, server) if server is not None else None
    return changed_json(file, partial(_strip_server, section), lay)


def _lay_server(section: str, server: Settings, settings: Settings) -> None:
    settings.setdefault(section, {})[NAME] = server


def _strip_server(section: str, settings: Settings) -> None:
    servers = settings.get(section)
    if servers is None:
        return
    if _is_server(servers.get(NAME)):
        del servers[NAME]
        if not servers:
            del settings[section]


def _is_server(entry: object) -> bool:
    """Whether an MCP server's entry is memctl's; a stranger's of the same name stays until it is overwritten."""
    if not isinstance(entry, dict):
        return False
    given = entry.get("command")
    words = [*(given if isinstance(given, list) else [given]), *(entry.get("args") or [])]
    return "mcp" in words and any(isinstance(w, str) and ("memctl" in Path(w).name) for w in words)


def _commands(settings: Settings) -> Iterator[tuple[str, str]]:
    """Event and command line of every hook; what has another shape is nobody's of ours."""
    hooks = settings.get("hooks")
    for event, groups in (hooks if isinstance(hooks, dict) else {}).items():
        for group in groups if isinstance(groups, list) else []:
            if not isinstance(group, dict):
                continue
            entries = group.get("hooks")
            for entry in [group, *(entries if isinstance(entries, list) else [])]:
                if isinstance(entry, dict) and isinstance(entry.get("command"), str):
                    yield event, entry["command"]


def _ours(line: object) -> bool:
    if not isinstance(line, str):
        return False
    try:
        words = shlex.split(line)
    except ValueError:
        return False
    plain = any(word.endswith(("memctl/infra/hook.py", "/infra/hook.py")) for word in words)
    named = bool(words) and Path(words[0]).name == NAME
    return (plain or named) and "ingest" in words and "--stdin" in words


CLIENTS = {
    client.name: client
    for client in (
        AgentClient(
            "claude-code",
            "Claude Code",
            ("SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "SubagentStop", "PreCompact",
             "Stop", "SessionEnd"),
            frozenset(("SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure")),
            _claude,
            lambda: _home("CLAUDE_CONFIG_DIR", "~/.claude") / "settings.json",
            before=(("PreToolUse", "Bash|Edit|MultiEdit|Write|NotebookEdit|Task|Agent"), ("SubagentStart", "")),
        ),
        AgentClient(
            "codex",
            "Codex",
            ("SessionStart", "UserPromptSubmit", "PostToolUse", "SubagentStop", "PreCompact", "Stop"),
            frozenset(("SessionStart", "UserPromptSubmit")),
            _codex,
            lambda: _home("CODEX_HOME", "~/.codex") / "hooks.json",
            note="Codex asks you to review and trust new hooks before it runs them (`/hooks`).",
        ),
        # Its tools' uses are in the transcript that these hooks name, under ids that its hooks for tools do not give;
        # its PreCompress runs before every request to its model.
        AgentClient(
            "gemini-cli",
            "Gemini CLI",
            ("SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd"),
            frozenset(("SessionStart", "BeforeAgent")),
            _gemini,
            lambda: _home("GEMINI_CLI_HOME", "~") / ".gemini" / "settings.json",
        ),
        # Before a prompt goes off, Cursor takes no text for the agent.
        AgentClient(
            "cursor",
            "Cursor",
            ("sessionStart", "beforeSubmitPrompt", "postToolUse", "postToolUseFailure", "afterAgentResponse",
             "preCompact", "sessionEnd"),
            frozenset(("sessionStart", "postToolUseFailure")),
            _cursor,
            lambda: Path.home() / ".cursor" / "hooks.json",
        ),
        # Its plugin adds `--recall` by itself where it asks.
        AgentClient(
            "opencode",
            "OpenCode",
            ("SessionStart", "UserPromptSubmit", "PostToolUse", "PreCompact", "Stop"),
            frozenset(("SessionStart", "UserPromptSubmit")),
            _opencode,
            lambda: _home("XDG_CONFIG_HOME", "~/.config") / "opencode" / "plugins" / "memctl.js",
        ),
    )
}  # fmt: skip

ALIASES = {"claude": "claude-code", "gemini": "gemini-cli"}
"""Other names by which `memctl install` knows a client."""

_KNOWN_EVENTS = frozenset(
    event for client in CLIENTS.values() for event in (*client.events, *(name for name, _ in client.before))
)
