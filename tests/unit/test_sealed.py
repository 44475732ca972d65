"""What is sealed with age, and what of it lies unsealed: by whom it is held, and what a crash leaves behind."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pyrage
import pytest

from memctl.infra.backup import copies
from memctl.infra.backup.sealed import NotOpened, clear, plain_folders, plain_in, seal, unsealed


def killed_while_it_holds_a_plain_file(data_dir: Path) -> None:
    """A process that is killed at it."""
    if (child := os.fork()) == 0:
        with plain_in(data_dir) as folder:
            (folder / "b.memctl.zip").write_bytes(b"plain")
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_what_a_crash_left_unsealed_is_found_and_removed_and_what_is_at_work_stays(tmp_path: Path) -> None:
    killed_while_it_holds_a_plain_file(tmp_path)
    (left,) = tmp_path.iterdir()
    with plain_in(tmp_path) as folder:
        (folder / "b.memctl.zip").write_bytes(b"plain")
        assert dict(plain_folders(tmp_path)) == {left: False, folder: True}
        assert clear(tmp_path) == [folder]
        assert [each.name for each in folder.iterdir()] == ["b.memctl.zip"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_sealed_file_that_was_cut_or_changed_is_refused_by_name(tmp_path: Path, damage: str) -> None:
    key = pyrage.x25519.Identity.generate()
    (tmp_path / "key").write_text(f"{key}\n")
    (tmp_path / "plain").write_bytes(bytes(200_000))
    seal(tmp_path / "plain", sealed := tmp_path / "b.memctl.zip.age", str(key.to_public()))
    held = sealed.read_bytes()
    sealed.write_bytes(held[:150_000] if damage == "cut" else held[:-5] + b"other")
    with pytest.raises(NotOpened, match=r"b\.memctl\.zip\.age"), unsealed(sealed, tmp_path / "key", tmp_path):
        pass
    assert not list(tmp_path.glob("unsealed-*"))


def test_what_a_killed_export_left_half_written_goes_once_nobody_writes_to_it(tmp_path: Path) -> None:
    left, written, other = (tmp_path / name for name in (".a.jsonl.x1.part", ".a.jsonl.x2.part", ".b.jsonl.x3.part"))
    for each in (left, written, other):
        each.touch()
    for each in (left, other):
        os.utime(each, (0, 0))
    copies.remove_unfinished(tmp_path, 3_600.0, "a.jsonl.")
    assert [each.exists() for each in (left, written, other)] == [False, True, True]
