"""Which locations are one project: by checkout, repository, layout and word; and what waits for a word."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from memctl.domain.events.command import BadCommand
from memctl.domain.projects.identity import (
    MergeProjects,
    Merging,
    Named,
    Place,
    Projects,
    SeveralProjects,
    SplitProject,
    UnknownProject,
    WaitingCheckout,
    Words,
    remote_of,
    why_waiting,
)
from memctl.domain.projects.key_limits import SeveralRemotes
from memctl.domain.projects.key_limits import given as limits_given
from memctl.domain.support.location import of_member, of_occupant

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


def of(path: str, *remotes: str, at: int = 1, **more: Any) -> Place:
    """A checkout as git's files on this machine show it."""
    named = {remote: Named(False, at) for remote in remotes}
    return Place(path, root=more.pop("root", path), remotes=remotes, checked=True, **{"named": named, **more})


def yes(projects: Projects, *roots: str) -> list[Words]:
    """The rows of what `memctl project join` records."""
    return [Words(w.root, (Merging(9, w.root, w.project),)) for w in projects.waiting if w.root in roots]


def test_worktrees_and_folders_of_one_repository_are_one_project_without_a_question() -> None:
    projects = Projects(
        [
            of("/home/dana/cli", CLI),
            Place("/home/dana/cli/cmd/serve"),
            Place("/home/dana/cli/.worktrees/2"),
            of("/home/dana/cli__worktrees/fix", CLI, repository="/home/dana/cli", at=2),
            Place("/home/dana/cli__worktrees/fix/docs"),
            of("/tmp/wt-7", CLI, repository="/home/dana/cli", at=2),
            Place("/home/dana/site"),
        ]
    )
    assert [len(group) for group in grouped(projects)] == [6, 1]
    assert projects.waiting == []
    assert projects.holding("/home/dana/cli/never/seen") == projects.of("/tmp/wt-7")
    assert projects.one(CLI).name == "cli"


def test_a_folder_beside_a_project_that_nobody_looked_at_waits_for_a_yes() -> None:
    fix = "/home/dana/cli.worktrees/fix"
    places = [of("/home/dana/cli", CLI), Place(fix), Place(f"{fix}/docs"), Place("/home/dana/cli-worktrees/x/docs")]
    projects = Projects(places)
    assert grouped(projects) == [{"/home/dana/cli"}, {"/home/dana/cli-worktrees/x/docs"}, {fix, f"{fix}/docs"}]
    assert {(w.root, w.project) for w in projects.waiting} == {(fix, CLI), ("/home/dana/cli-worktrees/x", CLI)}
    joined = Projects(places, yes(projects, fix))
    assert len(joined.one(CLI).locations) == 3
    assert [w.root for w in joined.waiting] == ["/home/dana/cli-worktrees/x"]


CLONES = [of("/home/dana/cli", CLI), of("/mnt/other/copy", CLI, at=2), Place("/mnt/other/copy/docs")]


def test_a_second_clone_waits_for_a_yes() -> None:
    projects = Projects(CLONES)
    assert grouped(projects) == [{"/home/dana/cli"}, {"/mnt/other/copy", "/mnt/other/copy/docs"}]
    assert projects.waiting == [WaitingCheckout("/mnt/other/copy", CLI, CLI)]
    copy = projects.one("/mnt/other/copy")
    assert (copy.anchor, copy.remotes, copy.waits_for) == ("/mnt/other/copy", (), CLI)
    assert projects.asks("/mnt/other/copy/docs") == projects.waiting
    joined = Projects(CLONES, yes(projects, "/mnt/other/copy"))
    assert (len(joined.all), joined.waiting) == (1, [])
    assert joined.one("copy") == joined.one("CLI")


def test_a_no_lasts_until_a_yes() -> None:
    before = Projects(CLONES)
    no = Words("/mnt/other/copy", split_at=5)
    projects = Projects(CLONES, [no])
    assert (len(projects.all), projects.waiting, projects.asks("/mnt/other/copy")) == (2, [], [])
    assert projects.one("/mnt/other/copy").waits_for == ""
    (after,) = yes(before, "/mnt/other/copy")
    assert len(Projects(CLONES, [Words(no.anchor, after.into, no.split_at)]).all) == 1
    # It does not get the remote either when the clone that had it is forgotten.
    assert Projects(CLONES[1:], [no]).one("copy").remotes == ()


def test_a_remote_is_of_the_root_that_named_it_first_whatever_the_order_and_whatever_it_names_later() -> None:
    own = {CLI: Named(False, 3), "github.com/eve/x": Named(False, 0)}
    turned = of("/home/eve/x", CLI, *own, named=own)  # it named its own first, and this one later
    for order in ([turned, *CLONES], [*CLONES, turned]):
        projects = Projects(order)
        assert projects.one(CLI).locations == ("/home/dana/cli",)
        assert {(w.root, w.claims) for w in projects.waiting} == {("/mnt/other/copy", CLI), ("/home/eve/x", CLI)}
        assert projects.one("github.com/eve/x").waits_for == CLI


def test_a_remote_that_a_root_got_later_is_of_it_from_then_on() -> None:
    former = "github.com/dana/cli"
    renamed = of("/home/dana/cli", CLI, former, named={former: Named(False, 1), CLI: Named(False, 5)})
    for order in itertools.permutations([renamed, of("/tmp/evil", CLI, at=7), of("/tmp/old", former, at=8)]):
        projects = Projects(order)
        assert projects.one(CLI).locations == projects.one(former).locations == ("/home/dana/cli",)
        assert {w.root for w in projects.waiting} == {"/tmp/evil", "/tmp/old"}


def test_what_waits_is_not_meant_by_the_name_it_shares() -> None:
    projects = Projects([of("/home/dana/cli", CLI), of("/tmp/cli", CLI, at=2)])
    assert [p.root for p in projects.named("cli")] == ["/home/dana/cli"]
    assert [p.root for p in projects.named(CLI)] == ["/home/dana/cli"]
    assert projects.one("/tmp/cli/src").locations == ("/tmp/cli",)
    assert not projects.same("/home/dana/cli", "/tmp/cli")


@pytest.mark.parametrize(
    "forged",
    [
        of("/tmp/evil", CLI, at=2),  # its .git/config
        of("/tmp/evil", at=2, borrows="/home/dana/cli"),  # its gitdir, or its alternates
        Place("/tmp/evil", root="/tmp/evil", repository="/home/dana/cli"),  # a pointer that nobody checked
        Place("/tmp/evil", remotes=(CLI,), named={CLI: Named(False, 2)}),  # what its client read there
        of("/home/dana/cli.worktrees/x", CLI, at=2),
        Place("/home/dana/cli.worktrees/x", checked=True),
        of("/home/dana/cli/vendor/evil", CLI, at=2, inside=("/home/dana/cli",)),
        of("/home/dana/cli/vendor/evil", inside=("/home/dana/cli",)),
    ],
)
def test_what_anyone_can_write_into_files_joins_nothing(forged: Place) -> None:
    places = [of("/home/dana/cli", CLI), Place("/home/dana/cli/cmd"), forged, Place(f"{forged.location}/src")]
    for order in (places, places[::-1]):
        projects = Projects(order)
        assert projects.one(CLI).locations == ("/home/dana/cli", "/home/dana/cli/cmd")
        assert projects.holding(f"{forged.location}/deep") == projects.of(forged.location)
        assert projects.asks("/home/dana/cli") == []


@pytest.mark.parametrize("remotes", [(CLI,), (CLI, "github.com/eve/x")])
def test_a_remote_is_of_the_root_that_this_machine_saw_whatever_keys_date(remotes: tuple[str, ...]) -> None:
    thief = of("/tmp/evil", *remotes, at=0, by_key=True)
    projects = Projects([of("/home/dana/cli", CLI, at=9), thief])
    assert projects.one(CLI).locations == ("/home/dana/cli",)
    assert projects.asks("/home/dana/cli") == []


def test_a_folder_called_as_people_call_a_project_is_not_meant_in_its_place() -> None:
    projects = Projects([of("/home/dana/tool", CLI), Place("/tmp/tool", root="/tmp/tool", checked=True)])
    assert projects.one("/home/dana/tool").name != "tool"
    assert {each.root for each in projects.named("tool")} == {"/home/dana/tool", "/tmp/tool"}


@pytest.mark.parametrize(
    "spoken",
    [
        Place("/work", root="/work", checked=True, by_key=True),
        Place("/work", root="/work", remotes=(CLI,), named={CLI: Named(False, 0)}, checked=True, by_key=True),
        Place("/evil", root="/work/one", repository="/work/two", checked=True, by_key=True),
        Place("/evil", root="/evil", repository="/work/one", checked=True, by_key=True),
        Place("/work/one/deep", inside=("/work/one", "/work/two"), by_key=True),
        Place("/far/.claude/worktrees/x", root="/far/x", repository="/work/two", checked=True, by_key=True),
    ],
)
def test_what_keys_say_joins_nothing_that_this_machine_saw(spoken: Place) -> None:
    ours = [Place("/work/one"), Place("/work/two"), Place("/far/.claude/worktrees/x/deep"), of("/work/three", CLI)]
    for places in ([*ours, spoken], [spoken, *ours]):
        projects = Projects(places)
        met = [{each.location for each in ours}.intersection(projects.of(each.location).locations) for each in ours]
        assert met == [{each.location} for each in ours]
        assert projects.holding("/work/three/new") == projects.of("/work/three")


def test_a_checkout_that_was_never_met_is_of_no_project_around_it_and_is_asked_about() -> None:
    projects = Projects([of("/home/dana/cli", CLI)])
    new = of("/home/dana/cli/vendor/evil", CLI)
    assert projects.holding("/home/dana/cli/vendor/evil/src", new) is None
    assert projects.asks("/home/dana/cli/vendor/evil/src", new) == [WaitingCheckout(new.location, CLI, CLI)]
    plain = of("/home/dana/cli/vendor/own", "github.com/acme/own")
    assert projects.holding(plain.location, plain) is None
    assert projects.asks(plain.location, plain) == []
    worktree = of("/tmp/wt", CLI, repository="/home/dana/cli")
    assert projects.holding("/tmp/wt/src", worktree) == projects.one(CLI)
    borrowing = of("/tmp/copy", borrows="/home/dana/cli")
    assert projects.asks("/tmp/copy", borrowing) == [WaitingCheckout("/tmp/copy", "/home/dana/cli", CLI)]


def test_a_repository_that_was_renamed_is_one_project_under_the_name_it_has_now() -> None:
    old, new = "github.com/acme/a-tool", "github.com/acme/tool"
    places = [of("/w/tool", new, old, last_seen=3), of("/w/clone", old, at=2, last_seen=1)]
    words = yes(Projects(places), "/w/clone")
    for order in (places, places[::-1]):
        (project,) = Projects(order, words).all
        assert (project.name, project.anchor) == ("tool", new)
        assert Projects(order, words).one("a-tool") == project
    words.append(Words("/w/other", (Merging(2, "m", old),)))  # said when it had its former name
    (project,) = Projects([*places, Place("/w/other", last_seen=2)], words).all
    assert (project.anchor, set(project.parts)) == (new, {"/w/other", "/w/clone", new})


def test_a_folder_under_another_is_a_project_of_its_own_unless_something_shows_otherwise() -> None:
    assert len(Projects([Place("/home/dana"), Place("/home/dana/cli")]).all) == 2
    assert len(Projects([Place("/w/cli"), Place("/w/cli/cmd", inside=("/w/cli",))]).all) == 1
    dotfiles = Place("/home/dana", root="/home/dana", remotes=("github.com/dana/dotfiles",))
    assert len(Projects([dotfiles, Place("/home/dana/cli")]).all) == 2


def test_a_repository_inside_another_stays_its_own() -> None:
    outer = Place("/w/env", root="/w/env", remotes=("github.com/acme/env",))
    inner = Place("/w/env/cli", remotes=(CLI,), inside=("/w/env",))
    assert len(Projects([outer, inner]).all) == 2
    own_root = of("/w/env/lib")
    assert len(Projects([outer, own_root, Place("/w/env/lib/src")]).all) == 2


def test_homes_and_folders_for_anything_hold_nothing_that_memory_does_not_know() -> None:
    checkouts = [Place(at, root=at, checked=True) for at in ("/home/dana", "/w/shop")]
    mixed = ("/tmp", "/srv/mixed", "/home/eve", "/home/eve/Downloads")
    checkouts.append(Place("/srv/mixed/a", root="/srv/mixed/a", checked=True))
    known = Projects([Place("/w/notes"), *map(Place, mixed), *checkouts])
    assert [known.holding(f"{path}/unpacked-1.0") for path in (*mixed, "/home/dana")] == [None] * 5
    assert known.holding("/w/notes/old") is known.of("/w/notes")
    assert known.holding("/w/shop/src") is known.of("/w/shop")
    tracked = Place("/home/dana/.config", root="/home/dana", checked=True)
    assert known.holding("/home/dana/.config", tracked) is known.of("/home/dana"), "git says that it is of it"
    assert known.one("/srv/mixed/b").root == "/srv/mixed", "a person names a path in it"


def test_a_key_for_a_path_that_had_two_remotes_names_one_of_them() -> None:
    project = Projects([Place("/w/x", root="/w/x", remotes=("github.com/eve/oss", "git.example.org/dana/own"))]).one(
        "oss"
    )
    with pytest.raises(SeveralRemotes, match="eve/oss"):
        limits_given(project, "oss")
    assert limits_given(project, "github.com/eve/oss") == ("github.com/eve/oss",)
    [alone] = Projects([Place("/w/y", root="/w/y", remotes=("github.com/eve/oss",))]).all
    assert limits_given(alone, "oss") == ("github.com/eve/oss",)


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


LOCATIONS = st.sampled_from(
    [
        "/a",
        "/a/b",
        "/a/b/.worktrees/1",
        "/a/b/c",
        "/d/b",
        "/d/e",
        "D:/x",
        "/",
        "member:dana:/a/b",
        "member:kim:/a/b",
        of_occupant(5, "/a/b"),
        of_occupant(7, "/a/b"),
    ]
)
MERGINGS = st.builds(Merging, st.integers(1, 4), st.text(max_size=2), LOCATIONS)


@given(
    st.lists(
        st.builds(
            Place,
            LOCATIONS,
            root=st.sampled_from(["", "/a/b", "/d", "member:dana:/a/b"]),
            remotes=st.sampled_from([(), (CLI,), ("github.com/acme/web", CLI)]),
            inside=st.sampled_from([(), ("/a",)]),
            borrows=st.sampled_from(["", "/d"]),
            checked=st.booleans(),
            named=st.sampled_from([{}, {CLI: Named(False, 1)}, {CLI: Named(True, 2)}]),
            by_key=st.booleans(),
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
    assert Projects(shuffled, words).waiting == projects.waiting
    kept = {each.anchor: each for each in words}
    for each in projects.waiting:  # a person says yes to it, whatever was said of it before
        said = kept.get(each.root, Words(each.root))
        kept[each.root] = structs.replace(said, into=(*said.into, Merging(9, each.root, each.project)))
    assert len(Projects(places, kept.values()).all) <= len(projects.all)


@given(
    st.lists(
        st.builds(Place, LOCATIONS, remotes=st.sampled_from([(), (CLI,), ("x.org/w", CLI)])),
        unique_by=lambda place: place.location, max_size=5,
    ),
    st.randoms(),
)  # fmt: skip
def test_projects_seen_again_are_those_of_the_same_places(places, rng) -> None:  # type: ignore[no-untyped-def]
    later = [structs.replace(each, last_seen=rng.randrange(9), looked_at=rng.randrange(9)) for each in places]
    again, fresh = Projects(places).seen_again(later), Projects(later)
    assert (again.all, again.places, again.waiting) == (fresh.all, fresh.places, fresh.waiting)
    assert all(again.of(place.location) is again.holding(place.location) for place in places)


def test_a_path_with_a_blank_at_its_end_names_no_other_project() -> None:
    projects = Projects([of("/work/shop"), of("/work/shop\u3000")])
    assert [each.root for each in projects.named("/work/shop\u3000")] == ["/work/shop\u3000"]
    assert [each.root for each in projects.named(" shop ")] == ["/work/shop"]


def of_a_member(name: str, path: str, *remotes: str, at: int = 1) -> Place:
    return of(of_member(name, path), *remotes, at=at, by_key=True)


def test_checkouts_of_members_at_one_path_are_one_project_where_they_have_the_same_one_remote() -> None:
    other = "github.com/kim/beta"
    places = [
        of_a_member("dana", "/workspace", CLI),
        of_a_member("kim", "/workspace", other),
        of_a_member("lee", "/workspace", CLI, at=2),
        of_a_member("mo", "/workspace"),
        of_a_member("ned", "/home/ned/cli", CLI, at=3),
        of("/workspace", "github.com/owner/gamma"),
        Place(of_member("lee", "/workspace/src"), by_key=True),
    ]
    dana, kim, lee, mo = (of_member(name, "/workspace") for name in ("dana", "kim", "lee", "mo"))
    for order in (places, places[::-1]):
        projects = Projects(order)
        assert projects.one(CLI).locations == (dana, lee, of_member("lee", "/workspace/src"))
        assert [projects.of(at).locations for at in (kim, mo, "/workspace")] == [(kim,), (mo,), ("/workspace",)]
        assert projects.waiting == [WaitingCheckout(of_member("ned", "/home/ned/cli"), CLI, CLI)]
        assert projects.of(mo).name == "workspace"
        apart = Projects(order, split(projects, lee, at=1))
        assert apart.of(lee) != apart.of(dana)


def test_what_keys_said_before_at_a_bare_path_goes_on_at_the_member_s_where_one_remote_is_known() -> None:
    before = of("/home/dana/cli", CLI, by_key=True)
    now = of_a_member("dana", "/home/dana/cli", CLI, at=2)
    assert grouped(Projects([before, now])) == [{before.location, now.location}]
    mixed = of("/home/dana/cli", CLI, "github.com/kim/beta", by_key=True)
    assert len(Projects([mixed, now]).all) == 2
    assert len(Projects([mixed, of_a_member("dana", "/home/dana/cli", *mixed.remotes, at=2)]).all) == 2
    seen = of("/home/dana/cli", CLI)
    assert len(Projects([seen, now]).all) == 2, "this machine saw that"


def test_a_member_s_home_or_root_holds_no_project_of_its_member() -> None:
    for path in ("/", "/home/dana", "/tmp"):
        projects = Projects([Place(of_member("dana", path), by_key=True)])
        assert projects.holding(of_member("dana", "/home/dana/shop/src")) is None
        assert projects.holding(of_member("dana", path)) is not None
    home = Projects([of_a_member("dana", "/home/dana", CLI), Place(of_member("dana", "/home/dana/shop"), by_key=True)])
    assert len(home.all) == 2


OTHER = "github.com/eve/beta"
SINCE, AGAIN = of_occupant(5, "/w/shop"), of_occupant(7, "/w/shop")


def test_what_lies_where_another_checkout_lay_is_a_project_of_its_own_and_asked_about() -> None:
    for former, new in itertools.product([(CLI,), ()], [(OTHER,), ()]):
        places = [of("/w/shop", *former), of(f"{SINCE}/src", *new, root=SINCE, at=6)]
        for order in (places, places[::-1]):
            projects = Projects(order)
            assert grouped(projects) == [{"/w/shop"}, {f"{SINCE}/src"}]
            (asked,) = projects.waiting
            assert (asked.root, asked.claims) == (SINCE, "/w/shop")
            assert projects.of("/w/shop").anchor == asked.project
            assert why_waiting(asked.root, asked.claims) == "lies where another project's checkout lay"
            assert projects.asks(f"{SINCE}/src") == [asked]
            assert projects.asks("/w/shop") == []
            joined = Projects(order, yes(projects, SINCE))
            assert (len(joined.all), joined.waiting) == (1, [])
            for said in (SINCE, projects.of(f"{SINCE}/src").anchor):
                refused = Projects(order, [Words(said, split_at=9)])
                assert (len(refused.all), refused.waiting) == (2, [])


def test_a_checkout_that_was_never_met_is_asked_about_where_another_lay() -> None:
    projects = Projects([of("/w/shop", CLI)])
    for remotes in ((OTHER,), ()):
        there = Place(SINCE, root=SINCE, remotes=remotes, checked=True)
        assert projects.holding(SINCE, there) is None
        assert projects.asks(SINCE, there) == [WaitingCheckout(SINCE, "/w/shop", CLI)]
    known = Projects([of("/w/shop", CLI), of("/w/other", OTHER)])
    assert known.asks(SINCE, Place(SINCE, root=SINCE, remotes=(OTHER,), checked=True)) == [
        WaitingCheckout(SINCE, OTHER, OTHER)
    ]


def test_what_claims_a_project_by_its_remote_is_asked_about_that_alone() -> None:
    places = [of("/w/other", OTHER), of("/w/shop", CLI), of(SINCE, OTHER, at=6)]
    projects = Projects(places)
    assert projects.waiting == [WaitingCheckout(SINCE, OTHER, OTHER)]
    joined = Projects(places, yes(projects, SINCE))
    assert joined.waiting == []
    assert grouped(joined) == [{"/w/other", SINCE}, {"/w/shop"}]


def test_a_checkout_that_lies_again_where_it_lay_has_its_memory() -> None:
    places = [of("/w/shop", CLI), of(f"{SINCE}/src", OTHER, root=SINCE, at=6), of(AGAIN, CLI, at=8)]
    for order in itertools.permutations(places):
        projects = Projects(order)
        assert grouped(projects) == [{"/w/shop", AGAIN}, {f"{SINCE}/src"}]
        assert [each.root for each in projects.waiting] == [SINCE]
    twice = Projects([of("/w/shop"), of(SINCE, OTHER), of(AGAIN, OTHER)])
    assert grouped(twice) == [{"/w/shop"}, {SINCE, AGAIN}], "two moments of one coming"


def test_by_a_name_that_two_checkouts_at_one_path_have_either_is_meant() -> None:
    projects = Projects([of("/w/shop"), of(SINCE)])
    assert [each.root for each in projects.named("shop")] == ["/w/shop", SINCE]
    assert [each.root for each in projects.named(SINCE)] == [SINCE]
    assert [each.root for each in projects.named("/w/shop")] == ["/w/shop"]


def test_a_worktree_of_what_lies_there_is_of_it_and_a_folder_below_asks_nothing() -> None:
    tree = of("/w/tree", OTHER, root="/w/tree", repository=SINCE, at=6)
    below = Place(f"{SINCE}/src/cmd")
    projects = Projects([of("/w/shop", CLI), Place("/w/shop/src/cmd"), of(SINCE, OTHER, at=6), tree, below])
    assert grouped(projects) == [{"/w/shop", "/w/shop/src/cmd"}, {"/w/tree", SINCE, below.location}]
    assert [(each.root, each.claims) for each in projects.waiting] == [(SINCE, "/w/shop")]
