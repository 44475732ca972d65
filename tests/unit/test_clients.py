"""memctl's hooks in other programs' settings: what is written there, and that nothing else changes."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.infra import clients
from memctl.infra.clients import CLIENTS, SettingsUnreadable, apply, command, installed, installing, removing

CLAUDE = CLIENTS["claude-code"]

THEIRS = {
    "model": "opus",
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "notify-send done"}]}],
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "guard ingest --stdin"}]}],
    },
    "permissions": {"allow": ["Bash(ls:*)"]},
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    return tmp_path / "settings.json"


def hooks_of(file: Path) -> dict[str, list[dict[str, object]]]:
    found = json.loads(file.read_text())["hooks"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", list(CLIENTS))
def test_every_hook_of_a_client_calls_memctl_once(name: str, file: Path) -> None:
    client = CLIENTS[name]
    apply(installing(client))
    hooks = hooks_of(client.file())
    assert sorted(hooks) == sorted(client.events)
    for event, [group] in hooks.items():
        line = command(client, event, None)
        assert group == {"hooks": [{"type": "command", "command": line, "timeout": clients.TIMEOUT_S}]}
        assert line in installed(client)
        assert ("--recall" in shlex.split(line)) is (event in client.asking)


def test_doing_it_again_changes_nothing_and_another_version_is_replaced(file: Path) -> None:
    file.write_text(json.dumps(THEIRS))
    apply(installing(CLAUDE))
    change = installing(CLAUDE)
    assert change.before == change.after
    apply(installing(CLAUDE, Path("/elsewhere")))
    assert all(shlex.split(line)[-2:] == ["--data-dir", "/elsewhere"] for line in installed(CLAUDE))


def test_what_others_put_there_stays(file: Path) -> None:
    file.write_text(json.dumps(THEIRS))
    apply(installing(CLAUDE))
    found = json.loads(file.read_text())
    assert found["hooks"]["Stop"][0] == THEIRS["hooks"]["Stop"][0]  # type: ignore[index]
    assert found["hooks"]["PreToolUse"] == THEIRS["hooks"]["PreToolUse"]  # type: ignore[index]
    assert found["permissions"] == THEIRS["permissions"]


@pytest.mark.parametrize("text", ['{"model":"opus"}', json.dumps(THEIRS, indent=4), "{}\n", "", '{"hooks": {}}', None])
def test_taken_out_again_the_file_is_as_it_was_to_the_byte(text: str | None, file: Path) -> None:
    if text is not None:
        file.write_text(text)
    apply(installing(CLAUDE))
    assert file.read_text() != text
    apply(removing(CLAUDE))
    assert (file.read_text() if file.exists() else None) == text
    assert [path.name for path in file.parent.iterdir()] == ([] if text is None else ["settings.json"])


def test_what_was_changed_meanwhile_outlives_the_taking_out(file: Path) -> None:
    file.write_text(json.dumps(THEIRS, indent=4))
    apply(installing(CLAUDE))
    changed = json.loads(file.read_text())
    changed["hooks"]["Stop"][1]["hooks"].append({"type": "command", "command": "sync"})
    file.write_text(json.dumps({**changed, "model": "haiku"}, indent=4))
    apply(removing(CLAUDE))
    left = json.loads(file.read_text())
    assert left["model"] == "haiku"
    assert [group["hooks"][0]["command"] for group in left["hooks"]["Stop"]] == ["notify-send done", "sync"]
    assert set(left["hooks"]) == {"Stop", "PreToolUse"}
    assert "\n    " in file.read_text()


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"hooks": []}', '{"hooks": {"Stop": 1}}', '// mine\n{"a": 1}', "[" * 9999][:6]
)
def test_settings_that_cannot_be_read_are_left_alone_and_named(text: str, file: Path) -> None:
    file.write_text(text)
    for doing in (installing, removing, installed):
        with pytest.raises(SettingsUnreadable, match="cannot be changed"):
            doing(CLAUDE)
    assert file.read_text() == text


def test_a_link_to_the_settings_stays_a_link_and_a_mode_stays_as_it_is(file: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_text("{}")
    real.chmod(0o640)
    file.symlink_to(real)
    apply(installing(CLAUDE))
    assert file.is_symlink()
    assert installed(CLAUDE)
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_write_that_fails_leaves_the_settings_whole(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(json.dumps(THEIRS))
    change = installing(CLAUDE)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        apply(change)
    assert json.loads(file.read_text()) == THEIRS
    assert [path.name for path in file.parent.iterdir()] == ["settings.json"]


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
    settings = {"hooks": hooks}
    assert clients._without(settings) == settings
