"""What git's own files say of a directory, and that it is recorded once for each session."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from events import NOON, observed
from msgspec import structs
from waiting import until

from memctl.api.write.identify import Identifier
from memctl.domain.events.event import Micros
from memctl.domain.events.observations import PromptSubmitted
from memctl.domain.projects.identity import Place, ProjectIdentified
from memctl.domain.projects.occupants import Occupant, came, is_latest, merged, occupants_of, reaching
from memctl.domain.support import patterns
from memctl.domain.support.location import of_member, of_occupant, since_of
from memctl.infra.git import Checkout, checkout_of, there_since

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
    (git / "worktrees" / "two" / "gitdir").write_text(f"{tmp_path}/two/.git\n")
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "objects").mkdir()
    (git / "refs").mkdir()
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
    (own / "config").write_text(
        '[core]\n\tworktree = ../../../lib\n[remote "up"]\n\turl = git@github.com:acme/lib.git\n'
    )
    (repository / "cli" / "lib").mkdir()
    (repository / "cli" / "lib" / ".git").write_text("gitdir: ../.git/modules/lib\n")
    assert checkout_of(repository / "cli" / "lib") == Checkout(f"{repository}/cli/lib", "", "github.com/acme/lib")


def test_a_repository_at_home_reaches_only_what_its_index_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memctl.infra.git.HOME", patterns.compile(r".*/home"))
    home = tmp_path / "home"
    for folder in ("kept", "Downloads/unpacked", "kept-not"):
        (home / folder).mkdir(parents=True)
        (home / folder / "file").touch()
    for words in (["init", "-q"], ["add", "kept/file"]):
        subprocess.run(["git", *words], cwd=home, check=True)
    folders = ("", "kept", "Downloads/unpacked", "Downloads", "kept-not")
    assert [each for each in folders if checkout_of(home / each)] == ["", "kept"]


@pytest.mark.parametrize("back", ["", "/somewhere/else/.git", "../../../cli/.git"])
def test_a_pointer_to_a_worktree_that_does_not_point_back_is_a_claim(repository: Path, back: str) -> None:
    (repository / "cli" / ".git" / "worktrees" / "two" / "gitdir").write_text(back)
    found = checkout_of(repository / "two")
    assert found == Checkout(f"{repository}/two", "", "", f"{repository.resolve()}/cli")


def test_a_worktree_may_point_back_by_a_relative_path(repository: Path) -> None:
    (repository / "cli" / ".git" / "worktrees" / "two" / "gitdir").write_text("../../../../two/.git\n")
    assert checkout_of(repository / "two") == Checkout(
        f"{repository}/two", f"{repository.resolve()}/cli", "github.com/acme/cli"
    )


def test_a_git_directory_of_somebody_else_is_not_ones_own(repository: Path) -> None:
    git, victim = repository / "cli" / ".git", f"{repository.resolve()}/cli"
    modules = git / "modules" / "lib"
    modules.mkdir(parents=True)
    (modules / "config").write_text(CONFIG.replace("[core]", "[core]\n\tworktree = ../../../lib"))
    for name, to, claimed in (("a", git, victim), ("b", modules, str(modules.resolve()))):
        (repository / name).mkdir()
        (repository / name / ".git").write_text(f"gitdir: {to}\n")
        assert checkout_of(repository / name) == Checkout(f"{repository}/{name}", "", "", claimed)
    (repository / "c").mkdir()
    (repository / "c" / ".git").symlink_to(git)
    assert checkout_of(repository / "c") == Checkout(f"{repository}/c", "", "", victim)
    (repository / "d").mkdir()
    (repository / "d" / ".git").symlink_to(git / "worktrees" / "two")
    assert checkout_of(repository / "d") == Checkout(f"{repository}/d", "", "", victim)


def worktree_of(shared: Path, tree: Path) -> Path:
    """A worktree of the repository of a git directory, as git lays it out."""
    inner = shared / "worktrees" / tree.name
    for each in (shared / "objects", shared / "refs", inner, tree):
        each.mkdir(parents=True, exist_ok=True)
    (shared / "HEAD").write_text("ref: refs/heads/main\n")
    (inner / "commondir").write_text("../..\n")
    (inner / "gitdir").write_text(f"{tree}/.git\n")
    (tree / ".git").write_text(f"gitdir: {inner}\n")
    return tree


@pytest.mark.parametrize("kept", ["modules/lib", "worktrees/two/modules/lib", "modules/worktrees"])
def test_a_worktree_of_a_submodule_is_of_the_submodule(repository: Path, kept: str) -> None:
    shared, lib = repository / "cli" / ".git" / kept, repository / "cli" / "lib"
    lib.mkdir()
    (lib / ".git").write_text(f"gitdir: {shared}\n")
    tree = worktree_of(shared, repository / "fix")
    (shared / "config").write_text(f"[core]\n\tworktree = {lib}\n" + CONFIG.replace("acme/cli", "eve/lib"))
    remote = "github.com/eve/lib"
    assert checkout_of(tree) == Checkout(str(tree), str(lib.resolve()), remote)
    for lie in (repository / "cli", repository, repository / "nowhere"):
        (shared / "config").write_text(f"[core]\n\tworktree = {lie}\n" + CONFIG.replace("acme/cli", "eve/lib"))
        assert checkout_of(tree) == Checkout(str(tree), str(shared.resolve()), remote)


def test_a_repository_called_bare_is_of_the_folder_that_points_to_it(repository: Path) -> None:
    beside = repository / "own" / ".bare"
    tree = worktree_of(beside, repository / "own" / "main")
    assert checkout_of(tree) == Checkout(str(tree), str(beside.resolve().parent), "")
    (repository / "own" / ".git").write_text("gitdir: ./.bare\n")
    assert checkout_of(tree) == Checkout(str(tree), str(beside.resolve().parent), "")
    for inner in (repository / "cli" / ".bare", repository / "cli" / "cmd" / ".bare"):
        tree = worktree_of(inner, inner.parent / "main")
        assert checkout_of(tree) == Checkout(str(tree), str(inner.resolve()), "")


def test_whose_objects_a_checkout_uses_is_a_claim(repository: Path) -> None:
    git = repository / "copy" / ".git"
    (git / "objects" / "info").mkdir(parents=True)
    (git / "objects" / "info" / "alternates").write_text(f"{repository}/cli/.git/objects\n")
    assert checkout_of(repository / "copy") == Checkout(f"{repository}/copy", "", "", f"{repository.resolve()}/cli")


def test_a_bare_repository_is_its_own_and_its_worktrees_are_its(repository: Path) -> None:
    bare, worktree = repository / "cli.git", repository / "main"
    for name in ("objects", "refs", "worktrees/main"):
        (bare / name).mkdir(parents=True)
    (bare / "HEAD").write_text("ref: refs/heads/main\n")
    (bare / "config").write_text(CONFIG)
    assert checkout_of(bare / "refs") == Checkout(str(bare), "", "github.com/acme/cli")
    (bare / "worktrees" / "main" / "commondir").write_text("../..\n")
    (bare / "worktrees" / "main" / "gitdir").write_text(f"{worktree}/.git\n")
    worktree.mkdir()
    (worktree / ".git").write_text(f"gitdir: {bare}/worktrees/main\n")
    assert checkout_of(worktree) == Checkout(str(worktree), str(bare.resolve()), "github.com/acme/cli")


def test_a_folder_that_is_only_called_like_a_worktree_is_recorded_as_none(repository: Path) -> None:
    here = repository / "cli.worktrees" / "x"
    here.mkdir(parents=True)
    (told,) = Identifier().about([observed(PromptSubmitted(text="go", line="l1"), location=str(here))])
    assert told.payload == ProjectIdentified(location=str(here), checked=True)


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
    at = int(time.time() - NOON / 1e6) + 60
    event = observed(PromptSubmitted(text="go", line="l1"), location=here, at=at)
    (told,) = identifier.about([event, event, observed(PromptSubmitted(text="go", line="l2"), location=gone)])
    assert told.payload == ProjectIdentified(
        location=here, root=f"{repository}/cli", remote="github.com/acme/cli", checked=True
    )
    assert "hunter2" not in str(told)
    assert identifier.about([event]) == []
    (other,) = identifier.about([observed(PromptSubmitted(text="go", line="l1"), session="s2", location=here)])
    assert other.dedupe_key != told.dedupe_key
    assert Identifier().about([event])[0].dedupe_key == told.dedupe_key


def test_what_happened_before_the_repository_came_there_shows_it_from_then_on(repository: Path) -> None:
    def identified(at: int) -> ProjectIdentified:
        event = observed(PromptSubmitted(text="go", line="l1"), location=f"{repository}/cli")
        (each,) = Identifier().about([structs.replace(event, occurred_at=Micros(at))])
        assert isinstance(each.payload, ProjectIdentified)
        return each.payload

    oldest = min(each.stat().st_ctime_ns for each in (repository / "cli" / ".git").iterdir()) // 1000
    assert identified(1).there_since == oldest
    assert identified(oldest + 1).there_since == 0
    (repository / "cli" / ".git" / "config").touch()
    os.utime(repository / "cli" / ".git" / "HEAD", (1, 1))
    assert identified(1).there_since > 1


def test_what_was_looked_at_for_a_file_is_looked_at_again_for_a_hook(repository: Path) -> None:
    identifier = Identifier()
    hook = observed(PromptSubmitted(text="go", line="l1"), location=f"{repository}/cli")
    looked_at = [
        each.payload.brought
        for event in (structs.replace(hook, brought=True), hook, hook, structs.replace(hook, stream="history/x"))
        for each in identifier.about([event])
        if isinstance(each.payload, ProjectIdentified)
    ]
    assert looked_at == [True, False, True]


NOW = 1_790_000_000_000_000
"""A moment, in microseconds."""


A, B = frozenset({"x.org/a"}), frozenset({"x.org/b"})


@pytest.mark.parametrize(("known", "remote", "since", "moments"), [
    ((), "x.org/b", NOW, ()),
    ((Occupant(0, NOW - 9, A),), "x.org/b", NOW, (NOW,)),
    ((Occupant(0, NOW - 9, A),), "", NOW, (NOW,)),
    ((Occupant(0, NOW - 9),), "x.org/b", NOW, (NOW,)),
    ((Occupant(0, NOW - 9),), "", NOW, ()),
    ((Occupant(0, NOW - 9, A),), "x.org/a", NOW, ()),
    ((Occupant(0, NOW - 9, A | B),), "x.org/b", NOW, ()),
    ((Occupant(0, NOW, A),), "x.org/b", NOW, ()),
    ((Occupant(0, NOW - 9, A), Occupant(0, NOW + 9)), "x.org/b", NOW, ()),
    ((Occupant(0, 1, A), Occupant(9, NOW - 9, B)), "x.org/b", NOW, (9,)),
    ((Occupant(0, 1, A), Occupant(9, NOW - 9, B)), "x.org/a", NOW, (9, NOW)),
    ((Occupant(NOW, 0),), "x.org/b", NOW, (NOW,)),
])  # fmt: skip
def test_another_checkout_came_where_its_directory_is_younger_than_the_last_look_and_its_remote_another(
    known: tuple[Occupant, ...], remote: str, since: int, moments: tuple[int, ...]
) -> None:
    assert came(merged(known), remote, lambda: since) == moments


def test_what_lies_over_another_checkout_is_recorded_since_then_and_what_happened_before_at_the_path(
    repository: Path,
) -> None:
    root, tree = f"{repository}/cli", f"{repository}/two"
    since = there_since(root)
    known = {root: [Occupant(0, since - 9, A)]}
    process = Identifier(lambda paths: {at: known[at] for at in paths if at in known})

    def recorded(at: str, moment: int, line: str, stream: str = "") -> tuple[str, list[ProjectIdentified]]:
        event = observed(PromptSubmitted(text="go", line=line), session=line, location=at)
        event = structs.replace(event, occurred_at=Micros(moment), stream=stream or event.stream)
        (placed,), found = process.placed([event])
        assert all(each.location == placed.location for each in found)
        return placed.location, [each.payload for each in found if isinstance(each.payload, ProjectIdentified)]

    now = of_occupant(since, root)
    assert recorded(root, since - 1, "before") == (root, [])
    assert recorded(root, since + 1, "before") == (
        now, [ProjectIdentified(location=now, root=now, remote="github.com/acme/cli", checked=True)]
    )  # fmt: skip
    assert recorded(root, since + 2, "before") == (now, [])
    assert recorded(f"{root}/cmd", since + 1, "below")[0] == of_occupant(since, f"{root}/cmd")
    again = Identifier(lambda paths: {at: known[at] for at in paths if at in known})
    event = observed(PromptSubmitted(text="go", line="gone"), location=f"{root}/gone")
    (gone,), found = again.placed([structs.replace(event, occurred_at=Micros(since + 1))])
    assert (gone.location, found) == (of_occupant(since, f"{root}/gone"), [])
    at, (of_tree,) = recorded(tree, since + 1, "tree")
    assert (at, of_tree.root, of_tree.repository) == (of_occupant(since, tree), at, now)
    assert recorded(root, since - 1, "old", "history/x")[0] == now, "what a checkout holds is of it"
    shutil.rmtree(root)
    assert recorded(root, since + 1, "gone-too")[0] == now
    assert recorded(f"{root}/gone", since - 1, "gone-before")[0] == f"{root}/gone"
    assert recorded(now, since + 1, "again") == (now, [])


def test_a_checkout_in_another_one_is_none_of_what_came_there(repository: Path) -> None:
    root, inner = f"{repository}/cli", repository / "cli" / "lib"
    subprocess.run(["git", "init", "-q", str(inner)], check=True)
    known = {root: [Occupant(0, 1, A), Occupant(9, 9, B)], str(inner): [Occupant(0, 1)]}
    for gone in (False, True):
        identifier = Identifier(lambda paths: {at: known[at] for at in paths if at in known})
        placed, _ = identifier.placed([observed(PromptSubmitted(text="go", line="l1"), location=f"{inner}")])
        assert [each.location for each in placed] == [str(inner)], gone
        shutil.rmtree(inner, ignore_errors=True)


def test_what_places_show_of_checkouts_at_a_path() -> None:
    later = of_occupant(NOW, "/w/shop")
    places = [
        Place("/w/shop/src", root="/w/shop", remotes=("x.org/a",), looked_at=5),
        Place("/w/shop/src/cmd", remotes=("x.org/c",), looked_at=9),
        Place(f"{later}/src", root=later, remotes=("x.org/b",), looked_at=7),
        Place("/w/tree", root="/w/tree", repository="/w/shop", remotes=("x.org/d",), looked_at=6),
        Place("/w/recorded", remotes=("x.org/e",), looked_at=8),
        Place("/w/plain", looked_at=8),
        Place(of_member("kim", "/w/shop"), root=of_member("kim", "/w/shop"), remotes=("x.org/k",), by_key=True),
    ]
    assert occupants_of(places) == {
        "/w/shop": [Occupant(0, 6, frozenset({"x.org/a", "x.org/d"})), Occupant(NOW, 7, B)],
        "/w/tree": [Occupant(0, 6, frozenset({"x.org/d"}))],
        "/w/recorded": [Occupant(0, 8, frozenset({"x.org/e"}))],
    }
    assert is_latest(occupants_of(places), f"{later}/src")
    assert not is_latest(occupants_of(places), "/w/shop/src")
    assert is_latest(occupants_of(places), "/w/plain")


def test_what_bears_no_time_is_of_the_moment_of_its_session_and_else_of_who_lies_there(repository: Path) -> None:
    root = f"{repository}/cli"
    since = there_since(root)
    known = {root: [Occupant(0, since - 9, A)]}

    def lies(*moments: int) -> list[int]:
        events = [
            structs.replace(
                observed(PromptSubmitted(text="go", line=f"l{n}"), location=root), occurred_at=Micros(moment)
            )
            for n, moment in enumerate(moments)
        ]
        return [since_of(each.location) for each in identifier.placed(events)[0]]

    for moment, expected in ((since - 1, 0), (since + 1, since)):
        identifier = Identifier(lambda paths: {at: known[at] for at in paths if at in known})
        assert lies(0, moment) == [expected] * 2
        assert lies(0) == [expected]
    identifier = Identifier(lambda paths: {at: known[at] for at in paths if at in known})
    assert lies(0) == [since]


@pytest.mark.parametrize(("again_s", "placed"), [(0.0, True), (3_600.0, False)])
def test_a_session_that_lays_another_checkout_where_it_works_goes_on_in_that(
    repository: Path, again_s: float, placed: bool
) -> None:
    root = f"{repository}/cli"
    known: dict[str, list[Occupant]] = {}
    identifier = Identifier(lambda paths: {at: known[at] for at in paths if at in known}, again_s=again_s)
    event = observed(PromptSubmitted(text="go", line="l1"), location=root)

    def lies() -> tuple[int, int]:
        event_now = structs.replace(event, occurred_at=Micros(time.time_ns() // 1000))
        (each,), found = identifier.placed([event_now])
        return since_of(each.location), len(found)

    assert lies() == (0, 1)
    assert lies() == (0, 0)
    looked, probe = time.time_ns(), repository / "probe"
    until(lambda: probe.touch() or probe.stat().st_ctime_ns > looked)  # files have the time of the clock's last tick
    shutil.rmtree(f"{root}/.git")
    subprocess.run(["git", "init", "-q", root], check=True)
    assert lies() == ((there_since(root), 1) if placed else (0, 0))
    assert lies() == ((there_since(root), 0) if placed else (0, 0))


def test_a_checkout_at_home_reaches_nothing_below() -> None:
    assert list(reaching("/home/dana/shop/src")) == ["/home/dana/shop/src", "/home/dana/shop", "/home"]
    assert list(reaching("/home/dana")) == ["/home/dana", "/home"]
    assert list(reaching("/rooted/shop")) == ["/rooted/shop", "/rooted"]
