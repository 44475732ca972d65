"""Which locations are one project: by layout, checkout, remote, what a session showed, and by word."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.events.command import BadCommand
from memctl.domain.projects.identity import (
    MergeProjects,
    Merging,
    Place,
    Projects,
    SeveralProjects,
    SplitProject,
    UnknownProject,
    Words,
    remote_of,
)

CLI = "github.com/acme/cli"


@pytest.mark.parametrize(
    ("url", "remote"),
    [
        ("git@github.com:Acme/CLI.git", CLI),
        ("https://github.com/acme/cli", CLI),
        ("https://dana:hunter2@github.com/acme/cli.git/", CLI),
        ("ssh://git@github.com:22/acme/cli.git", CLI),
        ("github.com:acme/cli", CLI),
        ("acme/cli", CLI),
        ("https://gitlab.example.org/group/sub/tool.git", "gitlab.example.org/group/sub/tool"),
        ("/srv/git/cli.git", ""),
        ("../origin.git", ""),
        ("file:///srv/git/cli.git", ""),
        ("C:/git/cli.git", ""),
        ("--all", ""),
        ("origin", ""),
        ("", ""),
    ],
)
def test_a_remote_has_one_spelling_and_no_password(url: str, remote: str) -> None:
    assert remote_of(url) == remote


@given(st.text(max_size=80))
def test_normalising_a_remote_twice_changes_nothing(url: str) -> None:
    once = remote_of(url)
    assert remote_of(f"https://{once}") == once or not once


def grouped(projects: Projects) -> list[set[str]]:
    return sorted((set(project.locations) for project in projects.all), key=sorted)


def test_worktrees_clones_and_folders_of_one_repository_are_one_project() -> None:
    projects = Projects(
        [
            Place("/home/dana/cli", root="/home/dana/cli", remotes=(CLI,)),
            Place("/home/dana/cli/cmd/serve"),
            Place("/home/dana/cli/.worktrees/2"),
            Place("/home/dana/cli__worktrees/fix/docs"),
            Place("/mnt/other/copy", remotes=(CLI,)),
            Place("/tmp/wt-7", root="/tmp/wt-7", repository="/home/dana/cli"),
            Place("/home/dana/site"),
        ]
    )
    assert [len(group) for group in grouped(projects)] == [6, 1]
    assert projects.holding("/home/dana/cli/never/seen") == projects.of("/mnt/other/copy")
    assert projects.one(CLI).name == "cli"
    assert projects.one("copy") == projects.one("CLI")


def test_a_repository_that_was_renamed_is_one_project_under_the_name_it_has_now() -> None:
    old, new = "github.com/acme/a-tool", "github.com/acme/tool"
    places = [
        Place("/w/tool", remotes=(new, old), last_seen=3),
        Place("/w/clone", remotes=(old,), last_seen=1),
    ]
    for order in (places, places[::-1]):
        (project,) = Projects(order).all
        assert (project.name, project.anchor) == ("tool", new)
        assert Projects(order).one("a-tool") == project
    words = [Words(old, (Merging(2, "m", "/w/other"),))]  # said when it had its former name
    (project,) = Projects([*places, Place("/w/other", last_seen=2)], words).all
    assert project.parts == ("/w/other", new)


def test_a_folder_under_another_is_a_project_of_its_own_unless_something_shows_otherwise() -> None:
    assert len(Projects([Place("/home/dana"), Place("/home/dana/cli")]).all) == 2
    assert len(Projects([Place("/w/cli"), Place("/w/cli/cmd", inside=("/w/cli",))]).all) == 1
    dotfiles = Place("/home/dana", root="/home/dana", remotes=("github.com/dana/dotfiles",))
    assert len(Projects([dotfiles, Place("/home/dana/cli")]).all) == 2


def test_a_repository_inside_another_stays_its_own() -> None:
    outer = Place("/w/env", root="/w/env", remotes=("github.com/acme/env",))
    inner = Place("/w/env/cli", remotes=(CLI,), inside=("/w/env",))
    assert len(Projects([outer, inner]).all) == 2
    own_root = Place("/w/env/lib", root="/w/env/lib")
    assert len(Projects([outer, own_root, Place("/w/env/lib/src")]).all) == 2


FORK = "github.com/dana/cli"


def test_a_clone_whose_remote_nobody_saw_belongs_to_those_that_test_the_same_module() -> None:
    seen = Place("/w/cli", remotes=(CLI,), modules=("example.org/cli",))
    unseen = Place("/w/try-it", modules=("example.org/cli",))
    assert len(Projects([seen, unseen, Place("/w/other", modules=("example.org/lib",))]).all) == 2
    assert Projects([seen, unseen]).one(CLI).locations == ("/w/cli", "/w/try-it")
    assert len(Projects([Place("/w/cli", remotes=(CLI,)), Place("/w/b", modules=(CLI,))]).all) == 1
    assert len(Projects([unseen, Place("/w/third", modules=("example.org/cli",))]).all) == 1


def test_a_place_that_only_a_limited_key_told_of_joins_nothing_by_its_module_and_parts_nothing() -> None:
    seen, unseen = Place("/w/cli", remotes=(CLI,)), Place("/w/try-it", modules=(CLI,))
    told = Place("/w/theirs", remotes=(FORK,), modules=(CLI,), free=False)
    assert grouped(Projects([seen, unseen, told])) == [{"/w/cli", "/w/try-it"}, {"/w/theirs"}]
    assert grouped(Projects([seen, Place("/w/theirs", modules=(CLI,), free=False)])) == [{"/w/cli"}, {"/w/theirs"}]


def test_a_fork_that_tests_the_module_of_its_parent_stays_its_own() -> None:
    parent = Place("/w/cli", remotes=(CLI,), modules=(CLI,))
    fork = Place("/w/mine", remotes=(FORK,), modules=(CLI,))
    assert len(Projects([parent, fork]).all) == 2
    # One of which nobody knows whether it is of the one or of the other is of neither.
    assert grouped(Projects([parent, fork, Place("/w/x", modules=(CLI,))])) == [{"/w/cli"}, {"/w/mine"}, {"/w/x"}]


def test_two_projects_of_one_name_are_told_apart_by_path_and_id() -> None:
    projects = Projects([Place("/a/api"), Place("/b/api")])
    assert len(projects.named("API")) == 2
    with pytest.raises(SeveralProjects):
        projects.one("api")
    there = projects.one("/b/api/src")
    assert there.locations == ("/b/api",)
    assert projects.one(there.id[:8]) == there
    with pytest.raises(UnknownProject):
        projects.one("nothing")


PLACES = [Place("/a/api", last_seen=5), Place("/b/web", remotes=("github.com/acme/web",)), Place("/c/web-old")]


def said(projects: Projects, into: str, project: str, *, at: int = 1, split_at: int = 0) -> Words:
    """The row of what `memctl project merge` records, resolved as its door does."""
    asked = MergeProjects(into=projects.anchor(into), project=projects.part(project))
    word = asked.decide([])
    return Words(word.merged, (Merging(at, project, word.into),), split_at)


def split(projects: Projects, project: str, *words: Words, at: int) -> list[Words]:
    """The rows of words after `memctl project split`."""
    part = SplitProject(project=projects.place(project)).decide([]).part
    known = {each.anchor: each for each in words}
    known[part] = Words(part, known[part].into if part in known else (), at)
    return list(known.values())


def test_a_merge_joins_under_the_name_it_was_merged_into_and_a_split_gives_back_the_former_answers() -> None:
    before = Projects(PLACES)
    word = said(before, "web", "web-old")
    joined = Projects(PLACES, [word])
    assert joined.one("web-old") == joined.one("web")
    assert joined.one("web").name == "web"
    assert joined.one(before.one("web-old").id[:8]) == joined.one("web")
    assert joined.part(before.one("web-old").id[:8]) == "/c/web-old"
    assert joined.one("web").parts == ("github.com/acme/web", "/c/web-old")
    parted = split(joined, "web-old", word, at=2)
    assert Projects(PLACES, parted).all == before.all
    assert Projects(PLACES, split(joined, "/c/web-old", word, at=2)).all == before.all
    assert Projects(PLACES, [said(before, "web", "web-old", at=3, split_at=2)]).all == joined.all


def test_a_command_means_the_same_when_it_is_sent_again_after_it_was_carried_out() -> None:
    before = Projects(PLACES)
    word = said(before, "web", "web-old")
    joined = Projects(PLACES, [word])
    assert said(joined, "web", "web-old") == word
    parted = split(joined, "web-old", word, at=2)
    assert split(Projects(PLACES, parted), "web-old", word, at=2) == parted


def test_a_project_is_not_merged_into_itself() -> None:
    with pytest.raises(BadCommand):
        said(Projects(PLACES), "web", "/b/web")


def test_splitting_the_whole_takes_away_all_that_was_merged_into_it() -> None:
    alone = Projects(PLACES)
    words = [said(alone, "api", "web-old"), said(alone, "api", "web")]
    joined = Projects(PLACES, words)
    assert len(joined.all) == 1
    assert Projects(PLACES, split(joined, "api", *words, at=2)).all == alone.all


def test_a_word_still_holds_when_a_remote_becomes_known() -> None:
    word = said(Projects(PLACES), "api", "web-old")
    later = [Place("/a/api", remotes=("github.com/acme/api",)), *PLACES[1:]]
    joined = Projects(later, [word])
    assert joined.of("/c/web-old") == joined.of("/a/api")
    assert joined.one("web-old").name == "api"


def test_what_rules_joined_can_be_set_apart_and_joined_again() -> None:
    places = [Place("/w/cli", remotes=(CLI,)), Place("/w/cli/site", remotes=(CLI,)), Place("/w/cli/site/docs")]
    together = Projects(places)
    words = split(together, "/w/cli/site", at=1)
    apart = Projects(places, words)
    assert grouped(apart) == [{"/w/cli"}, {"/w/cli/site", "/w/cli/site/docs"}]
    assert apart.one("site").name == "site"
    again = said(apart, "cli", "site", at=2, split_at=1)
    assert grouped(Projects(places, [again])) == grouped(together)


LOCATIONS = st.sampled_from(["/a", "/a/b", "/a/b/.worktrees/1", "/a/b/c", "/d/b", "/d/e", "D:/x", "/"])
MERGINGS = st.builds(Merging, st.integers(1, 4), st.text(max_size=2), LOCATIONS)


@given(
    st.lists(
        st.builds(
            Place,
            LOCATIONS,
            root=st.sampled_from(["", "/a/b", "/d"]),
            remotes=st.sampled_from([(), (CLI,), ("github.com/acme/web", CLI)]),
            inside=st.sampled_from([(), ("/a",)]),
        ),
        unique_by=lambda place: place.location,
        max_size=5,
    ),
    st.lists(
        st.builds(Words, LOCATIONS, st.lists(MERGINGS, max_size=2).map(tuple), st.integers(0, 4)),
        unique_by=lambda words: words.anchor,
        max_size=4,
    ),
    st.randoms(),
)
def test_projects_part_the_locations_whatever_the_order(places, words, rng) -> None:  # type: ignore[no-untyped-def]
    projects = Projects(places, words)
    assert sorted(itertools.chain(*(p.locations for p in projects.all))) == sorted(p.location for p in places)
    assert all(projects.of(location) == project for project in projects.all for location in project.locations)
    assert len({project.id for project in projects.all}) == len(projects.all)
    shuffled = list(places)
    rng.shuffle(shuffled)
    assert Projects(shuffled, words).all == projects.all
