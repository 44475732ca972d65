"""memctl's hooks and MCP server in other programs' settings: what is written there, and that nothing else changes."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.infra.hooks import clients
from memctl.infra.hooks.client_files import FileChange, SettingsUnreadable, apply
from memctl.infra.hooks.clients import CLIENTS, command, installed, installing, mcp_command, removing

CLAUDE = CLIENTS["claude-code"]

THEIRS: dict[str, Any] = {
    "model": "opus",
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "notify-send done"}]}],
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "guard ingest --stdin"}]}],
    },
    "permissions": {"allow": ["Bash(ls:*)"]},
}
BEFORE = {
    "settings.json": [
        *('{"model":"opus"}', json.dumps(THEIRS, indent=4), '{\r\n  "a": 1\r\n}\r\n', "", '{"hooks": {}}'),
        None,
    ],
    "hooks.json": ['{"version": 1, "hooks": {"stop": [{"command": "theirs"}]}}', "{}", None],
    ".claude.json": ['{"numStartups": 3, "mcpServers": {"other": {"command": "x"}}}', '{"a": 1}', None],
    "mcp.json": ['{"mcpServers": {"other": {"command": "x"}}}', None],
    "config.toml": ['model = "o3"\n\n[mcp_servers.other]\ncommand = "x"\n', "# mine\r\nmodel = 'o3'\r\n", "", None],
    "opencode.json": ['{"$schema": "x", "mcp": {"other": {"type": "remote"}}}', None],
    "memctl.js": [None],
}
"""What may stand in each file before memctl comes; None: it is not there."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def file() -> Path:
    path = CLAUDE.hooks_file()
    path.parent.mkdir()
    return path


def put(changes: list[FileChange]) -> None:
    for change in changes:
        if change.before != change.after:
            apply(change)


def files_in(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_bytes().decode() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini-cli"])
def test_every_hook_of_a_client_calls_memctl_once(name: str) -> None:
    client = CLIENTS[name]
    put(installing(client))
    hooks = json.loads(client.hooks_file().read_text())["hooks"]
    before = dict(client.before)
    assert sorted(hooks) == sorted([*client.events, *before])
    for event, [group] in hooks.items():
        line = command(client, event, None)
        timeout = clients.TIMEOUT_S * (1000 if name == "gemini-cli" else 1)  # Gemini counts in milliseconds
        matcher = {"matcher": before[event]} if before.get(event) else {}
        assert group == {**matcher, "hooks": [{"type": "command", "command": line, "timeout": timeout}]}
        assert line in installed(client)
        assert ("--recall" in shlex.split(line)) is (event in client.asking)
        assert ("--recall-only" in shlex.split(line)) is (event in before)


def test_cursor_has_commands_by_event_and_the_version_it_asks_for() -> None:
    client = CLIENTS["cursor"]
    put(installing(client))
    found = json.loads(client.hooks_file().read_text())
    assert found["version"] == 1
    assert {event: [hook["command"] for hook in hooks] for event, hooks in found["hooks"].items()} == {
        event: [command(client, event, None)] for event in client.events
    }


def test_opencode_gets_a_plugin_that_holds_the_command_and_nothing_to_be_found(home: Path) -> None:
    client = CLIENTS["opencode"]
    put(installing(client, Path("/data 'dir'")))
    text = client.hooks_file().read_text()
    assert "/* command */" not in text
    assert installed(client) == [command(client, "", Path("/data 'dir'"))]


@pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.name)
def test_every_client_knows_the_mcp_server(client: clients.AgentClient, home: Path) -> None:
    put(installing(client, Path("/data")))
    told = "\n".join(files_in(home).values())
    for word in (*mcp_command(), "MEMCTL_DATA_DIR", "/data"):
        assert word in told
    if client.name == "codex":
        entry = tomllib.loads((home / ".codex" / "config.toml").read_text())["mcp_servers"]["memctl"]
        assert [entry["command"], *entry["args"]] == mcp_command()


@pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.name)
def test_doing_it_again_changes_nothing_and_another_version_is_replaced(client: clients.AgentClient) -> None:
    put(installing(client))
    assert all(change.before == change.after for change in installing(client))
    put(installing(client, Path("/elsewhere")))
    lines = installed(client)
    assert lines
    assert all("--data-dir /elsewhere" in line for line in lines)


@pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.name)
@pytest.mark.parametrize("turn", range(6))
def test_taken_out_again_every_file_is_as_it_was_to_the_byte(
    client: clients.AgentClient, turn: int, home: Path
) -> None:
    for change in installing(client):
        texts = BEFORE[change.path.name]
        text = texts[turn % len(texts)]
        if text is not None:
            change.path.parent.mkdir(parents=True, exist_ok=True)
            change.path.write_text(text)
    before = files_in(home)
    put(installing(client))
    assert files_in(home) != before
    put(removing(client))
    assert files_in(home) == before
    assert installed(client) == []


@pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.name)
def test_where_memctl_never_came_nothing_is_taken_out(client: clients.AgentClient, home: Path) -> None:
    assert all(change.before == change.after for change in removing(client))
    assert files_in(home) == {}


def test_what_others_put_there_stays(file: Path) -> None:
    file.write_text(json.dumps(THEIRS))
    put(installing(CLAUDE))
    found = json.loads(file.read_text())
    assert found["hooks"]["Stop"][0] == THEIRS["hooks"]["Stop"][0]
    assert found["hooks"]["PreToolUse"][:-1] == THEIRS["hooks"]["PreToolUse"]
    assert found["permissions"] == THEIRS["permissions"]


def test_what_was_changed_meanwhile_outlives_the_taking_out(file: Path) -> None:
    file.write_text(json.dumps(THEIRS, indent=4))
    put(installing(CLAUDE))
    changed = json.loads(file.read_text())
    changed["hooks"]["Stop"][1]["hooks"].append({"type": "command", "command": "sync"})
    file.write_text(json.dumps({**changed, "model": "haiku"}, indent=4))
    put(removing(CLAUDE))
    left = json.loads(file.read_text())
    assert left["model"] == "haiku"
    assert [group["hooks"][0]["command"] for group in left["hooks"]["Stop"]] == ["notify-send done", "sync"]
    assert set(left["hooks"]) == {"Stop", "PreToolUse"}
    assert "\n    " in file.read_text()


def test_what_codex_was_set_to_meanwhile_outlives_the_taking_out(home: Path) -> None:
    config = home / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text('model = "o3"\n')
    put(installing(CLIENTS["codex"]))
    config.write_text(config.read_text() + '\n[projects."/x"]\ntrust_level = "trusted"\n')
    put(removing(CLIENTS["codex"]))
    assert tomllib.loads(config.read_text()) == {"model": "o3", "projects": {"/x": {"trust_level": "trusted"}}}


@pytest.mark.parametrize("text", ["{", "[]", '{"hooks": []}', '{"hooks": {"Stop": 1}}', '// mine\n{"a": 1}', "[[[[[["])
def test_settings_that_cannot_be_read_are_left_alone_and_named(text: str, file: Path) -> None:
    file.write_text(text)
    for doing in (installing, removing):
        with pytest.raises(SettingsUnreadable, match="cannot be changed"):
            doing(CLAUDE)
    assert file.read_text() == text


def test_a_configuration_that_is_no_toml_is_left_alone_and_named(home: Path) -> None:
    config = home / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text("model = ")
    with pytest.raises(SettingsUnreadable, match="it is not TOML"):
        installing(CLIENTS["codex"])


def test_a_link_to_the_settings_stays_a_link_and_a_mode_stays_as_it_is(file: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_text("{}")
    real.chmod(0o640)
    file.symlink_to(real)
    put(installing(CLAUDE))
    assert file.is_symlink()
    assert installed(CLAUDE)
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_write_that_fails_leaves_the_settings_whole(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(json.dumps(THEIRS))
    change, _ = installing(CLAUDE)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        apply(change)
    assert json.loads(file.read_text()) == THEIRS
    assert [path.name for path in file.parent.iterdir()] == ["settings.json"]


def test_a_unit_starts_this_memctl_at_each_login_and_goes_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/home/a b/50%/$1/bin/python")
    put([clients.autostart(True, Path("/data $dir"))])
    (name,) = files_in(home)
    assert name == ".config/systemd/user/memctl.service"
    lines = files_in(home)[name].splitlines()
    assert 'ExecStart="/home/a b/50%%/$1/bin/python" "-m" "memctl.cli" up' in lines
    assert 'ExecStop="/home/a b/50%%/$1/bin/python" "-m" "memctl.cli" down' in lines
    assert lines[lines.index("[Service]") + 1] == 'Environment="MEMCTL_DATA_DIR=/data $dir"'
    again = clients.autostart(True, Path("/data $dir"))
    assert again.before == again.after
    put([clients.autostart(False)])
    assert files_in(home) == {}


@pytest.mark.parametrize(
    ("file", "make"),
    [
        (".config/systemd/user/memctl.service", lambda wanted: [clients.autostart(wanted)]),
        (
            ".config/opencode/plugins/memctl.js",
            lambda wanted: (installing if wanted else removing)(CLIENTS["opencode"]),
        ),
    ],
)
def test_a_file_of_somebody_elses_under_our_name_comes_back(
    file: str, make: Callable[[bool], list[FileChange]], home: Path
) -> None:
    (home / file).parent.mkdir(parents=True)
    (home / file).write_text("theirs\n")
    before = files_in(home)
    put(make(False))
    assert files_in(home) == before
    put(make(True))
    put(make(True))
    assert files_in(home)[file] != "theirs\n"
    put(make(False))
    assert files_in(home) == before


def test_a_plugin_that_is_switched_on_is_seen(file: Path) -> None:
    assert not clients.plugin_enabled()
    file.write_text('{"enabledPlugins": {"memctl@memctl": true}}')
    assert clients.plugin_enabled()


def test_the_command_survives_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/home/a b/$HOME/bin/python")
    words = shlex.split(command(CLAUDE, "Stop", Path("/data dir/'x'")))
    assert words[0] == "/home/a b/$HOME/bin/python"
    assert words[-1] == "/data dir/'x'"


def group(command: object) -> dict[str, object]:
    return {"matcher": "*", "hooks": [{"type": "command", "command": command}, "odd"]}


groups = st.lists(
    st.sampled_from(
        [None, 1, "text", [], {}, {"hooks": None}, {"hooks": [1]}, group(None), group("'"), group("memctl search")]
    ),
    max_size=3,
)


@given(hooks=st.dictionaries(st.sampled_from(["Stop", "SessionStart", "Other"]), groups, max_size=3))
def test_whatever_the_hooks_of_others_look_like_they_stay(hooks: dict[str, list[object]]) -> None:
    settings: dict[str, Any] = {"hooks": json.loads(json.dumps(hooks))}
    clients._strip_hooks(settings)
    assert settings == {"hooks": hooks}


@pytest.mark.parametrize(
    "environment",
    [
        "/home/dana/.cache/uv/archive-v0/CzLu-A8LSa7Ofz2p",
        "/home/dana/.cache/uv/environments-v2/memctl-1",
        "/home/dana/.local/share/pipx/.cache/0f1e2d",
        "/home/dana/.cache/pipx/0f1e2d",
    ],
)
def test_no_hook_leads_into_a_cache(environment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", environment)
    for asked in (lambda: installing(CLAUDE), lambda: clients.autostart(True)):
        with pytest.raises(clients.InACache, match="cache"):
            asked()
    assert [change for change in removing(CLAUDE) if change.before != change.after] == []
    clients.autostart(False)


@pytest.mark.parametrize(
    "environment", ["/home/dana/.local/share/pipx/venvs/memctl", "/home/dana/.local/share/uv/tools/memctl", "/w/.venv"]
)
def test_an_environment_that_stays_may_be_called(environment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", environment)
    assert installing(CLAUDE)
    assert clients.autostart(True).after
