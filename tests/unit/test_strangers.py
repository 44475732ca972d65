"""Files that another user of the machine put into a folder that is open to all, as `/tmp` is, say nothing here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memctl.infra.files import of_a_stranger
from memctl.infra.git import checkout_of
from memctl.infra.hooks.capture_policy import CapturePolicy
from memctl.infra.settings import load_settings, project_file

NOBODY = 65_534

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def open_to_all(tmp_path: Path) -> Path:
    """A folder of root's, in which somebody else made a repository and a project's file."""
    tmp_path.chmod(0o1777)
    git = tmp_path / ".git"
    git.mkdir()
    (git / "config").write_text('[remote "origin"]\n\turl = https://github.com/dana/cli.git\n')
    (tmp_path / ".memctl.toml").write_text("save = false\n")
    (tmp_path / "mine").mkdir()
    for each in (git, git / "config", tmp_path / ".memctl.toml"):
        os.chown(each, NOBODY, NOBODY)
    return tmp_path


def test_a_strangers_repository_holds_no_folder_of_others(open_to_all: Path) -> None:
    assert checkout_of(open_to_all / "mine") is None
    os.chown(open_to_all, NOBODY, NOBODY)  # the stranger's own folder
    found = checkout_of(open_to_all / "mine")
    assert found is not None
    assert found.remote == "github.com/dana/cli"


def test_a_strangers_bare_repository_holds_no_folder_of_others(open_to_all: Path) -> None:
    (open_to_all / ".git").rename(open_to_all / "mine" / "away")
    for name in ("objects", "refs"):
        (open_to_all / name).mkdir()
    (open_to_all / "HEAD").write_text("ref: refs/heads/main\n")
    assert checkout_of(open_to_all / "mine") is not None
    os.chown(open_to_all / "HEAD", NOBODY, NOBODY)
    assert checkout_of(open_to_all / "mine") is None


def test_a_strangers_file_switches_nothing_off(open_to_all: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = CapturePolicy(load_settings(data_dir=open_to_all / "data"))
    assert not policy.off("save", "s", str(open_to_all / "mine"))
    monkeypatch.chdir(open_to_all / "mine")
    assert project_file() is None
    os.chown(open_to_all / ".memctl.toml", 0, 0)
    assert project_file() == open_to_all / ".memctl.toml"


def test_what_is_of_the_folders_owner_is_no_strangers(tmp_path: Path) -> None:
    """As in a container that runs as root on a folder of its host's user."""
    (tmp_path / "file").touch()
    os.chown(tmp_path / "file", NOBODY, NOBODY)
    assert of_a_stranger(tmp_path / "file")
    os.chown(tmp_path, NOBODY, NOBODY)
    assert not of_a_stranger(tmp_path / "file")
