import posixpath
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.support.location import (
    NOWHERE,
    above,
    by_key,
    file_of,
    home_of,
    in_another_memory,
    inside,
    is_absolute,
    is_on_this_machine,
    normalise,
    of_member,
    of_occupant,
    path_of,
    project_name,
    project_of,
    since_of,
    tree_of,
)
from memctl.domain.support.provenance import member_called


@pytest.mark.parametrize(
    ("cwd", "location"),
    [
        ("D:\\oh-my-posh\\src\\", "D:/oh-my-posh/src"),
        ("d:/Work", "D:/Work"),
        ("C:\\", "C:/"),
        ("/Users/Ann/Code/", "/Users/Ann/Code"),
        ("/a/./b/../c//d", "/a/c/d"),
        ("/..", "/"),
        ("/", "/"),
        ("../x/..", ".."),
        ("\\\\server\\share\\x", "//server/share/x"),
        ("/work/evil/..\\..\\shop", "/work/evil/..\\..\\shop"),  # a folder's name on POSIX
        ("  ", ""),
        ("", ""),
    ],
)
def test_a_working_directory_is_brought_to_one_spelling(cwd: str, location: str) -> None:
    assert normalise(cwd) == location


def test_directories_longer_than_any_are_not_held_in_memory() -> None:
    tracemalloc.start()
    try:
        for number in range(20):
            normalise(f"/{number}/" + "a" * 1_000_000)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1_000_000


@given(st.text() | st.lists(st.sampled_from([" ", "a ", "..", ".", "c:", "", "/", "\\"])).map("/".join))
def test_normalising_twice_changes_nothing(cwd: str) -> None:
    once = normalise(cwd)
    assert normalise(once) == once


NAMES = ["shop", '"' * 180 + "shop", "\x01" * 170, "deep" * 60, "é" * 90, "x\\..", "..", ".", "", "~", "c:", "\udcff"]


@given(st.lists(st.sampled_from(NAMES), max_size=12))
def test_a_path_lies_in_no_directory_that_the_true_one_does_not_lie_in(names: list[str]) -> None:
    true = posixpath.normpath("/work/" + "/".join(names))
    kept = normalise("/work/" + "/".join(names))
    assert all(inside(true, at) for at in above(kept))
    assert kept == true or not [*above(kept)]


@pytest.mark.parametrize(
    ("location", "project"),
    [
        ("/work/cli/.worktrees/2", "/work/cli"),
        ("/work/cli/.worktrees/2/cmd/x", "/work/cli"),
        ("/work/cli/.claude/worktrees/feature", "/work/cli"),
        ("/work/cli/.claude/worktrees/a/.worktrees/b", "/work/cli"),
        ("/work/cli/.git/worktrees/x", "/work/cli"),
        ("/work/cli/.conductor/lisbon/src", "/work/cli"),
        ("/home/ann/.codex/worktrees/3f2a/agentv/src", "/home/ann/.codex/worktrees/agentv"),
        ("/home/ann/.cursor/worktrees/agentv/q1/src", "/home/ann/.cursor/worktrees/agentv"),
        ("/home/ann/conductor/workspaces/agentv/oslo", "/home/ann/conductor/workspaces/agentv"),
        ("D:/oh-my-posh", "D:/oh-my-posh"),
        ("/work/worktrees/x", "/work/worktrees/x"),
        ("/work/cli/.worktrees", "/work/cli/.worktrees"),
        ("", ""),
    ],
)
def test_a_worktree_belongs_to_its_repository(location: str, project: str) -> None:
    assert project_of(location) == project


@given(st.text(alphabet="ab./wortes-", max_size=60))
def test_a_project_is_its_own_project(location: str) -> None:
    project = project_of(normalise(location))
    assert project_of(project) == project or "worktrees" in project


@pytest.mark.parametrize("folder", ["/home/ann/.codex/worktrees/3f2a/shop", "/home/ann/.cursor/worktrees/shop/q1"])
def test_what_is_said_in_a_tools_worktree_is_kept_there_and_in_no_folder_of_several(folder: str) -> None:
    assert home_of(f"{folder}/src") == tree_of(f"{folder}/src") == folder
    project = project_of(folder)
    assert home_of(folder) == folder
    assert home_of(project) == project_of(project) == project, "which is no worktree of the home directory"


def test_a_project_is_named_by_the_end_of_its_path() -> None:
    assert project_name("/work/cli/.worktrees/2") == "cli"
    assert project_name("C:/") == "C:"
    assert project_name("") == ""
    assert project_name("/") == "/"
    assert project_name("/w/a\n[high]\x1b[1m\u2028b") == "a�[high]�[1m�b"


def test_a_file_has_one_name_in_all_worktrees_and_directories() -> None:
    assert file_of("/r/.worktrees/fix/a.go", "/r/.worktrees/fix") == file_of("a.go", "/r") == "/r/a.go"


@pytest.mark.parametrize("blank", [" ", "\u3000", "\u00a0", "\n", "\u0085", "\t"])
def test_a_folder_whose_name_holds_a_blank_at_its_end_is_another_folder(blank: str) -> None:
    for path in (f"/work/shop{blank}", f"/work/{blank}shop", f"/work/shop{blank}/src/.."):
        assert normalise(path) != "/work/shop"
        assert not inside(normalise(path), "/work/shop")


NAMES = st.text(st.sampled_from("a:/%\\ \t.") | st.characters(codec="utf-8"), max_size=70)


PATHS = ("/w/shop", "C:/w/shop", "/", "//host/x", "/w/evil/..\\..\\shop", "rel/x", "/" + "deep/" * 300)


@given(NAMES, NAMES, st.sampled_from(PATHS))
def test_a_member_s_place_is_of_one_member_and_one_path(one: str, other: str, path: str) -> None:
    path = normalise(path)
    at = of_member(one, path)
    assert normalise(at) == at
    assert at not in (path, by_key(path), in_another_memory(path))
    assert (at == of_member(other, path)) == (member_called(one) == member_called(other))
    assert path_of(at) == path or "~" in path
    assert all(map(path_of, above(at)))
    assert not is_on_this_machine(at)
    assert (of_member(one, ""), of_member(one, NOWHERE)) == ("", NOWHERE)


@given(st.integers(1, 4 * 10**15), st.sampled_from(PATHS))
def test_a_place_since_a_checkout_lies_there_is_of_that_moment_and_path(since: int, path: str) -> None:
    path = normalise(path)
    at = of_occupant(since, path)
    assert normalise(at) == at
    assert of_occupant(0, path) == path
    assert since_of(path) == 0
    assert is_on_this_machine(at)
    if is_absolute(path):
        assert (since_of(at), path_of(at)) == (since, path) or "~" in path
        assert of_occupant(since, at) == at
        assert all(since_of(each) == since for each in above(at))
    else:
        assert at == path


def test_a_folder_that_is_called_like_a_moment_has_none() -> None:
    assert since_of("since:yesterday:/w/shop") == 0
    assert since_of("/w/since:20260302T120000.000000:/x") == 0
