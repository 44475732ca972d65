"""What bears a file's name and is none is neither waited for nor read without end."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from memctl.api.write.exporting import LONGEST_LINE, NotAnExport, import_export, is_export
from memctl.infra.data_dir import Folders
from memctl.infra.embedded.instance import set_aside
from memctl.infra.embedded.programs import recalled
from memctl.infra.files import NoRegularFile, read_file
from memctl.infra.git import checkout_of
from memctl.infra.hook import COUNTER
from memctl.infra.hooks import capture_policy
from memctl.infra.hooks.remote_progress import relay_seen
from memctl.infra.hooks.spool import refusals
from memctl.infra.process import Process
from memctl.infra.settings import SettingsInvalid, read_token
from memctl.infra.transcripts.gemini import _root_beside


def test_a_file_is_read_up_to_a_bound_also_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert read_file(tmp_path / "link", 4) == b"0123"


@pytest.mark.parametrize("path", ["pipe", "folder", "/dev/zero"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, path: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with pytest.raises(NoRegularFile):
        read_file(tmp_path / path)


def test_nothing_of_an_instance_waits_at_a_pipe(tmp_path: Path) -> None:
    places = Folders(tmp_path)
    places.run.mkdir()
    for pipe in (places.keys, places.supervisor_record, places.run / "relay.json", tmp_path / capture_policy.FILE):
        os.mkfifo(pipe)
    assert recalled(places).tokens == {}
    assert [each.name for each in tmp_path.glob("keys*")] == ["keys.damaged"]
    assert Process.recorded(places.supervisor_record) is None
    assert relay_seen(places) is None
    with pytest.raises(capture_policy.OffUnreadable, match="not a file"):
        capture_policy.read_off(tmp_path)
    os.mkfifo(tmp_path / capture_policy.PASSED_FILE)
    assert capture_policy.PassedOverTranscripts(tmp_path).of("a") == []
    assert set_aside(places) == ("keys.damaged", capture_policy.PASSED_FILE)
    os.mkfifo(tmp_path / "export.jsonl")
    assert not is_export(tmp_path / "export.jsonl")
    os.mkfifo(tmp_path / COUNTER)
    assert refusals(tmp_path) is None
    with pytest.raises(SettingsInvalid, match="not a file"):
        read_token(tmp_path / capture_policy.FILE)


def test_a_checkout_whose_files_are_pipes_is_read_without_them(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    for folder in ("objects", "refs"):
        (git / folder).mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    os.mkfifo(git / "config")
    found = checkout_of(tmp_path)
    assert found is not None
    assert found.remote == ""


def test_a_chat_of_gemini_is_read_though_its_root_is_a_pipe_or_has_no_end(tmp_path: Path) -> None:
    for number, made in enumerate((os.mkfifo, lambda path: os.symlink("/dev/zero", path))):
        folder = tmp_path / str(number)
        (folder / "chats").mkdir(parents=True)
        made(folder / ".project_root")
        assert _root_beside(folder / "chats" / "session.json") == ""


def test_each_remote_of_a_configuration_is_read_once_and_in_linear_time(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    for folder in ("objects", "refs"):
        (git / folder).mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    said = '[remote "origin"]\n\turl = https://example.com/a/b.git\n\turl = https://example.com/c/d.git\n[core]\n'
    (git / "config").write_text(said + ' [remote "a"]\n' * 60_000)
    began = time.process_time()
    found = checkout_of(tmp_path)
    assert time.process_time() - began < 2
    assert found is not None
    assert found.remote == "example.com/a/b"


def test_a_line_without_an_end_is_not_read_whole(tmp_path: Path) -> None:
    export = tmp_path / "export.jsonl"
    export.write_bytes(b'{"memctl":"export","version":1,"space":"a","space_id":1,"position":9,"made_at":""}\n')
    os.truncate(export, 64 * LONGEST_LINE)
    assert is_export(export)
    with pytest.raises(NotAnExport, match="a line of it has more than 16 MB"):
        import_export(None, export, mine=False)  # type: ignore[arg-type]
