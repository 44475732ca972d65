from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from memctl.domain.support.errors import MemctlError
from memctl.infra.data_dir import Folders
from memctl.infra.endpoints import NotRunning
from memctl.infra.process import Process
from memctl.infra.settings import SettingsInvalid, load_settings, user_file


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder to stand in, a user without configuration, a data directory without an instance."""
    (tmp_path / "project" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "deep")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("MEMCTL_DATA_DIR", str(tmp_path / "data"))
    return tmp_path


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def instance(data: Path, endpoints: dict[str, str], process: Process | None) -> None:
    places = Folders(data)
    places.run.mkdir(parents=True)
    places.endpoints.write_text(json.dumps(endpoints))
    assert process is not None
    process.record(places.supervisor_record)


def test_what_a_model_costs_is_the_users_to_say(bare: Path) -> None:
    assert load_settings().prices == {}
    write(user_file(), '[prices."claude-opus-4-6"]\ninput = 15\noutput = 75\ncached = 1.5\n')
    price = load_settings().prices["claude-opus-4-6"]
    assert price.of(1_000_000, 100_000, 2_000_000) == 15 + 7.5 + 3


def test_each_source_overrides_those_after_it(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().log_level == "info"
    write(user_file(), 'log_level = "error"\nstage1_shards = 8\n')
    assert load_settings().log_level == "error"
    write(bare / "project" / ".memctl.toml", 'log_level = "warning"\n')
    assert load_settings().log_level == "warning"
    monkeypatch.setenv("MEMCTL_LOG_LEVEL", "debug")
    assert load_settings().log_level == "debug"
    settings = load_settings(log_level="info")
    assert (settings.log_level, settings.stage1_shards) == ("info", 8)


def test_each_value_knows_where_it_came_from(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(user_file(), "stage1_shards = 8\n")
    write(bare / "project" / ".memctl.toml", "save = false\n")
    monkeypatch.setenv("MEMCTL_EMBEDDER", "none")
    instance(bare / "data", {"redis_url": "unix:///run/x?db=0"}, Process.of(os.getpid()))
    settings = load_settings(append_batch=50, log_level=None)
    assert settings.origin("append_batch") == "flag"
    assert settings.origin("embedder") == "environment MEMCTL_EMBEDDER"
    assert settings.origin("save") == str(bare / "project" / ".memctl.toml")
    assert settings.origin("stage1_shards") == str(user_file())
    assert settings.origin("redis_url") == "running instance"
    assert settings.origin("log_level") == "default"


def test_a_running_instance_fills_what_nobody_set(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instance(
        bare / "data",
        {"database_url": "postgresql://memctl@/memctl", "redis_url": "unix:///run/x?db=0", "door_socket": "/run/door"},
        Process.of(os.getpid()),
    )
    monkeypatch.setenv("MEMCTL_DATABASE_URL", "postgresql://elsewhere/log")
    settings = load_settings()
    assert settings.database_url == "postgresql://elsewhere/log"
    assert settings.require("redis_url") == "unix:///run/x?db=0"
    assert settings.door_socket == Path("/run/door")
    assert settings.configured("database_url")
    assert not settings.configured("redis_url")


def test_an_instance_that_died_fills_nothing_even_if_its_pid_is_in_use(bare: Path) -> None:
    ours = Process.of(os.getpid())
    assert ours is not None
    instance(bare / "data", {"redis_url": "unix:///x"}, Process(ours.pid, ours.started - 1, ours.boot))
    settings = load_settings()
    assert settings.redis_url is None
    with pytest.raises(NotRunning, match="is not running") as raised:
        settings.require("redis_url")
    assert "memctl up" in str(raised.value.hint)


def test_a_members_machine_is_sent_to_its_server(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMCTL_API_URL", "https://memory.example")
    settings = load_settings()
    assert settings.server.rstrip("/") == "https://memory.example"
    with pytest.raises(NotRunning) as raised:
        settings.require("database_url")
    assert "https://memory.example" in str(raised.value.hint)
    assert "memctl relay" in str(raised.value.hint)
    monkeypatch.setenv("MEMCTL_DATABASE_URL", "postgresql://db.example/memctl")
    assert load_settings().server == ""


@pytest.mark.parametrize(
    "setting", ['database_url = "postgresql://evil/x"', 'data_dir = "/tmp/x"', 'api_url = "http://e"']
)
def test_a_checkout_cannot_decide_where_words_are_sent(
    bare: Path, setting: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(bare / "project" / ".memctl.toml", f'log_level = "debug"\n{setting}\n')
    settings = load_settings()
    name = setting.partition(" ")[0]
    assert settings.origin(name) != str(bare / "project" / ".memctl.toml")
    assert settings.log_level == "debug"
    assert f"a project may not decide {name}" in caplog.text


def test_a_variable_that_is_no_setting_is_warned_of_once(
    bare: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("MEMCTL_DATABSE_URL", "MEMCTL_TEST_X", "MEMCTL_OFF", "MEMCTL_LLM__PROVIDER"):
        monkeypatch.setenv(name, "")
    assert load_settings() == load_settings()
    (record,) = caplog.records
    assert record.message == ("MEMCTL_DATABSE_URL is set and does nothing: it is not a setting; MEMCTL_DATABASE_URL is")


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        (b"save = ", "cannot be read"),
        (b"\xff", "cannot be read"),
        (b"x = " + b"[" * 4_000, "nested too deeply"),
        (b"#" * 9_000, "more than 8 KB"),
        (b"save = [[1]]", "save: "),
        (b'log_level = "loud"', "log_level: "),
        (b'space = "two"', "may not decide space"),
        (b"recall = 99999999999999999999999", "recall: "),
        (b'"\\u001b]0;x\\u0007" = 1', "may not decide"),
    ],
)
def test_a_strangers_file_stops_nothing_and_is_warned_of_once(
    bare: Path, text: bytes, warned: str, caplog: pytest.LogCaptureFixture
) -> None:
    usual = load_settings()
    file = bare / "project" / ".memctl.toml"
    file.write_bytes(text)
    assert load_settings() == load_settings() == usual
    (record,) = caplog.records
    assert str(file) in record.message
    assert warned in record.message
    assert record.message.isprintable()
    assert len(record.message) < 1_000


def test_a_misspelt_key_is_told_with_its_file_and_the_likely_name(bare: Path) -> None:
    write(user_file(), 'databse_url = "postgresql://x/y"\n')
    with pytest.raises(SettingsInvalid) as raised:
        load_settings()
    assert str(user_file()) in str(raised.value)
    assert "database_url is" in str(raised.value)


def test_a_wrong_value_names_its_variable_and_not_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMCTL_DATABASE_URL", "mysql://u:hunter2@h/db")
    monkeypatch.setenv("MEMCTL_STAGE1_SHARDS", "many")
    with pytest.raises(SettingsInvalid) as raised:
        load_settings()
    told = str(raised.value)
    assert "MEMCTL_DATABASE_URL" in told
    assert "postgresql:" in told
    assert "MEMCTL_STAGE1_SHARDS" in told
    assert "hunter2" not in told
    assert raised.value.exit_code == 2


def test_an_unreadable_file_is_told(bare: Path) -> None:
    write(user_file(), "space = \n")
    with pytest.raises(SettingsInvalid, match="cannot be read"):
        load_settings()


def test_what_is_no_file_or_has_no_end_is_said(bare: Path) -> None:
    user_file().parent.mkdir(parents=True)
    os.mkfifo(user_file())
    with pytest.raises(SettingsInvalid, match="it is not a file"):
        load_settings()
    user_file().unlink()
    write(user_file(), "# " * 40_000)
    with pytest.raises(SettingsInvalid, match="more than 64 KB"):
        load_settings()


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMCTL_DATABASE_URL", "")
    assert load_settings().database_url is None


def test_secrets_stay_out_of_the_representation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMCTL_DATABASE_URL", "postgresql://u:hunter2@h/db")
    monkeypatch.setenv("MEMCTL_API_TOKEN", "hunter3")
    assert "hunter" not in repr(load_settings())


def test_a_relative_data_directory_is_made_absolute(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMCTL_DATA_DIR", "here")
    assert load_settings().data_dir == Path.cwd() / "here"


def test_importing_settings_does_not_import_pydantic() -> None:
    code = "import sys, memctl.infra.settings; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_errors_carry_their_data_through_pickling() -> None:
    error = pickle.loads(pickle.dumps(NotRunning("redis_url", Path("/data"))))
    assert isinstance(error, MemctlError)
    assert str(error) == "memctl is not running: redis_url is not set, and no instance runs in /data."
    assert error.hint == "run `memctl up`, or set MEMCTL_REDIS_URL"
