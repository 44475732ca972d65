"""What git's own files say of a directory, and that it is told once for each session."""

from __future__ import annotations

from pathlib import Path

import pytest
from events import observed

from memctl.api.write.identify import Identifier
from memctl.domain.events.observations import PromptSubmitted
from memctl.domain.projects.identity import ProjectIdentified
from memctl.infra.git import Checkout, checkout_of

CONFIG = """[core]
\tbare = false
[remote "fork"]
\turl = https://github.com/dana/cli.git
[remote "origin"]
\turl = https://dana:hunter2@github.com/acme/cli.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
\tremote = origin
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git = tmp_path / "cli" / ".git"
    (git / "worktrees" / "two").mkdir(parents=True)
    (git / "config").write_text(CONFIG)
    (git / "worktrees" / "two" / "commondir").write_text("../..\n")
    (tmp_path / "cli" / "cmd").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / ".git").write_text(f"gitdir: {git}/worktrees/two\n")
    return tmp_path


def test_a_directory_in_a_repository_leads_to_its_root_and_origin(repository: Path) -> None:
    root = f"{repository}/cli"
    assert checkout_of(repository / "cli" / "cmd") == Checkout(root, "", "github.com/acme/cli")


def test_a_worktree_leads_to_its_repository(repository: Path) -> None:
    found = checkout_of(repository / "two")
    assert found == Checkout(f"{repository}/two", f"{repository.resolve()}/cli", "github.com/acme/cli")


def test_a_submodule_is_a_repository_of_its_own(repository: Path) -> None:
    own = repository / "cli" / ".git" / "modules" / "lib"
    own.mkdir(parents=True)
    (own / "config").write_text('[remote "up"]\n\turl = git@github.com:acme/lib.git\n')
    (repository / "cli" / "lib").mkdir()
    (repository / "cli" / "lib" / ".git").write_text("gitdir: ../.git/modules/lib\n")
    assert checkout_of(repository / "cli" / "lib") == Checkout(f"{repository}/cli/lib", "", "github.com/acme/lib")


def test_without_an_origin_only_a_single_remote_counts(repository: Path) -> None:
    config = repository / "cli" / ".git" / "config"
    config.write_text(CONFIG.replace('"origin"', '"upstream"'))
    assert checkout_of(repository / "cli") == Checkout(f"{repository}/cli", "", "")


@pytest.mark.parametrize("mark", ["", "gitdir: ", "gitdir: \0", "gitdir: /nowhere/at/all", "\udcff"])
def test_a_broken_mark_says_no_more_than_the_root(tmp_path: Path, mark: str) -> None:
    (tmp_path / ".git").write_text(mark, errors="surrogateescape")
    found = checkout_of(tmp_path)
    assert found is None or (found.root, found.remote) == (str(tmp_path), "")


def test_what_was_found_is_told_once_for_each_session_and_location(repository: Path) -> None:
    identifier = Identifier()
    here, gone = f"{repository}/cli/cmd", f"{repository}/nowhere"
    event = observed(PromptSubmitted(text="go", line="l1"), location=here)
    (told,) = identifier.about([event, event, observed(PromptSubmitted(text="go", line="l2"), location=gone)])
    assert told.payload == ProjectIdentified(location=here, root=f"{repository}/cli", remote="github.com/acme/cli")
    assert "hunter2" not in str(told)
    assert identifier.about([event]) == []
    (other,) = identifier.about([observed(PromptSubmitted(text="go", line="l1"), session="s2", location=here)])
    assert other.dedupe_key != told.dedupe_key
    assert Identifier().about([event])[0].dedupe_key == told.dedupe_key
