"""The doctor runs the very commands that stand in clients' settings."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from memctl.api.checks.client_checks import clients
from memctl.infra.hooks.client_files import apply
from memctl.infra.hooks.clients import CLIENTS, command, installing, removing


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME", "MEMCTL_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def set_to(line: str, home: Path) -> None:
    file = CLIENTS["claude-code"].hooks_file()
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": line}]}]}}))


def test_where_no_client_calls_memctl_that_is_said() -> None:
    assert [(check.result, check.part) for check in clients()] == [("skipped", "clients")]


@pytest.mark.parametrize("name", ["cursor", "opencode"])
def test_a_hook_that_finds_no_door_is_a_gap_and_leaves_nothing_behind(name: str, home: Path) -> None:
    for change in installing(CLIENTS[name], home / "data"):
        apply(change)
    (found,) = clients()
    assert (found.name, found.result) == (name, "gap")
    assert found.found == ("nobody took it at the door: what hooks tell waits in the spool",)
    assert list((home / "data" / "spool").iterdir()) == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("/nonexistent/python -I -S /x/infra/hook.py ingest --stdin", "it ended with 127: "),
        ("echo ingest --stdin /x/infra/hook.py", "it printed ingest --stdin"),
        (f"true ingest --stdin /x/infra/hook.py {'x' * 200_000}", "it cannot be run ("),
    ],
)
def test_a_command_that_is_broken_is_told(line: str, why: str, home: Path) -> None:
    set_to(line, home)
    (found,) = clients()
    assert found.result == "gap"
    assert found.found[0].startswith(why)


def test_a_data_directory_with_blanks_in_its_name_is_looked_at(home: Path) -> None:
    for change in installing(CLIENTS["cursor"], home / "da ta's"):
        apply(change)
    (found,) = clients()
    assert found.found == ("nobody took it at the door: what hooks tell waits in the spool",)
    assert list((home / "da ta's" / "spool").iterdir()) == []


def test_a_hook_that_is_let_down_by_its_python_is_told(home: Path) -> None:
    words = shlex.split(command(CLIENTS["claude-code"], "Stop", home))
    set_to(shlex.join([words[0], "-c", "raise SystemExit(3)", *words[3:]]), home)
    assert "it ended with 3" in next(iter(clients())).found[0]


def test_settings_that_cannot_be_read_hide_no_other_client_and_are_told_where_they_call_memctl(home: Path) -> None:
    for change in installing(CLIENTS["cursor"], home / "data"):
        apply(change)
    gemini = CLIENTS["gemini-cli"].hooks_file()
    gemini.parent.mkdir()
    gemini.write_text('// mine\n{"theme": "dark"}')
    assert [found.name for found in clients()] == ["cursor"]
    gemini.write_text('// memctl\n{"theme": "dark"}')
    told, cursor = clients()
    assert (told.name, told.result, cursor.name) == ("gemini-cli", "gap", "cursor")
    assert str(gemini) in told.found[0]
    for change in removing(CLIENTS["cursor"]):
        apply(change)
    assert [found.name for found in clients()] == ["gemini-cli"]


def test_a_plugin_whose_hooks_find_no_memctl_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = CLIENTS["claude-code"].hooks_file()
    file.parent.mkdir()
    file.write_text('{"enabledPlugins": {"memctl@memctl": true}}')
    monkeypatch.setenv("PATH", "/bin")
    (found,) = clients()
    assert found.found == ("memctl is not on the PATH: the hooks of its plugin do nothing",)
    assert "memctl install" not in found.advice  # which would have them run twice
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/bin")
    monkeypatch.setenv("MEMCTL_DATA_DIR", str(home / "data"))
    (found,) = clients()
    assert found.found == ("nobody took it at the door: what hooks tell waits in the spool",)
