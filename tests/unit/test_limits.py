"""What a key that is limited to projects may be told of and tell: nothing that words about places could add to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.projects.identity import REMOTES, Merging, Named, Place, Projects, Words
from memctl.domain.projects.key_limits import Limits
from memctl.domain.projects.key_limits import given as given_of
from memctl.domain.support.location import by_key

A, B = "github.com/org/a", "github.com/org/b"
HERE, THERE = "/home/me/a", "/home/me/b"


def limits(*places: Place, words: tuple[Words, ...] = (), given: tuple[str, ...] = (A,)) -> Limits:
    return Limits(Projects(places, words), given)


def of(location: str, *remotes: str, root: str = "", **more: object) -> Place:
    named = {remote: Named(False, 1) for remote in remotes}
    return Place(location, root=root or (location if remotes else ""), remotes=remotes, named=named, **more)  # type: ignore[arg-type]


def joined(*paths: str) -> tuple[Words, ...]:
    """A person said that checkouts at these paths are of A."""
    return tuple(Words(path, (Merging(at=9, id=path, into=A),)) for path in paths)


def claim(location: str, *claims: str) -> Place:
    return Place(location, claims=claims, free=False)


def test_clones_folders_and_worktrees_of_its_remote_are_a_keys_and_other_projects_are_not() -> None:
    places = [
        of(HERE, A), of("/srv/clone", A), Place(f"{HERE}/src", root=HERE), Place(f"{HERE}/docs"),
        Place(f"{HERE}/.worktrees/x"), of(THERE, B), Place(f"{THERE}/src", root=THERE), Place("/tmp"),
    ]  # fmt: skip
    mine = {HERE, "/srv/clone", f"{HERE}/src", f"{HERE}/docs", f"{HERE}/.worktrees/x"}
    waiting = limits(*places)
    assert waiting.locations == mine - {"/srv/clone"}
    assert not waiting.holds("/srv/clone/deep")
    found = limits(*places, words=joined("/srv/clone"))
    assert found.locations == mine
    assert all(found.holds(f"{at}/deep") for at in mine)
    assert not any(found.holds(at) for at in (THERE, f"{THERE}/deep", "/tmp/x", "/home/me", "/", "", "/srv"))


def test_a_place_with_another_remote_beside_its_own_is_nobodys_who_is_limited() -> None:
    places = (of(HERE, A), of("/workspace", A, B), Place("/workspace/src", root="/workspace"), of(THERE, B))
    assert limits(*places).locations == {HERE}
    assert limits(*places, given=(B,)).locations == {THERE}
    found = limits(*places, given=(A, B), words=joined("/workspace"))
    assert found.locations == {each.location for each in places}
    assert not limits(*places).holds("/workspace/src/new")


def test_a_checkout_that_waits_is_no_keys_though_the_one_that_has_its_remote_is_none_either() -> None:
    places = (of(HERE, A, B), of("/tmp/evil", A), Place("/tmp/evil/src", root="/tmp/evil"))
    assert limits(*places).locations == frozenset()
    assert not limits(*places).holds("/tmp/evil/new")


def test_what_lies_nearer_to_another_checkout_is_of_that() -> None:
    inner = f"{HERE}/vendor/b"
    found = limits(of(HERE, A), of(inner, B), Place(f"{inner}/docs"), Place(f"{HERE}/vendor"))
    assert found.locations == {HERE, f"{HERE}/vendor"}
    assert not found.holds(f"{inner}/new")
    assert found.holds(f"{HERE}/vendor/c")


def test_a_checkout_of_which_a_folder_alone_was_met_is_a_keys_whole() -> None:
    worktree = Place("/srv/wt", "/srv/wt", "/srv/main", checked=True)
    places = (of(HERE, A), of("/srv/clone/src", A, root="/srv/clone"), worktree)
    assert not limits(*places).holds("/srv/clone/docs")
    found = limits(*places, words=joined("/srv/clone"))
    assert found.holds("/srv/clone/docs")
    assert not found.holds("/srv/main/docs")
    assert not found.holds("/srv/x")


def test_a_root_that_two_repositories_share_joins_neither_to_what_else_is_there() -> None:
    found = limits(of("/ws/api", A, root="/ws"), of("/ws/web", B, root="/ws"), Place("/ws/notes", root="/ws"))
    assert found.locations == {"/ws/api"}
    assert limits(of("/ws", A), of("/ws/web", B, root="/ws")).locations == frozenset()
    assert not any(found.holds(at) for at in ("/ws", "/ws/new", "/ws/web/x"))


def test_more_remotes_than_are_kept_may_have_pushed_out_another() -> None:
    remotes = tuple(f"github.com/org/a{number}" for number in range(REMOTES))
    assert limits(of(HERE, *remotes), given=remotes).locations == frozenset()
    assert limits(of(HERE, *remotes[1:]), given=remotes).locations == {HERE}


def test_what_somebody_merged_to_its_project_later_is_a_keys_where_no_remote_speaks_against_it() -> None:
    merged = Words("/home/me/notes", into=(Merging(at=1, id="1", into=A),))
    also = Words(B, into=(Merging(at=1, id="2", into=A),))
    found = limits(of(HERE, A), Place("/home/me/notes"), of(THERE, B), words=(merged, also))
    assert found.locations == {HERE, "/home/me/notes"}


def test_a_key_is_given_every_remote_and_path_of_its_project_and_keeps_to_them() -> None:
    merged = Words(B, into=(Merging(at=1, id="1", into=A),))
    places = (of(HERE, A), of(THERE, B))
    (project,) = Projects(places, (merged,)).all
    assert set(given_of(project, "acme")) == {A, B}
    assert limits(*places, words=(merged,), given=given_of(project, "acme")).locations == {HERE, THERE}
    (plain,) = Projects([Place("/home/me/notes")]).all
    assert given_of(plain, "notes") == ("/home/me/notes",)
    assert limits(Place("/home/me/notes"), given=given_of(plain, "notes")).locations == {"/home/me/notes"}
    assert limits(of("/home/me/notes", B), given=given_of(plain, "notes")).locations == frozenset()


def test_a_part_that_was_split_from_its_repository_is_one_by_itself() -> None:
    places = (of("/mono", A), of("/mono/api", A, root="/mono"), of("/mono/web", A, root="/mono"))
    words = (Words("/mono/api", split_at=5),)
    part = next(each for each in Projects(places, words).all if each.anchor == "/mono/api")
    found = limits(*places, words=words, given=given_of(part, "api"))
    assert found.locations == {"/mono/api"}
    assert found.holds("/mono/api/new")
    alone = limits(places[1], words=words, given=("/mono/api",))
    assert alone.locations == {"/mono/api"}
    assert not alone.holds("/mono/web")
    assert not found.holds("/mono/web")


# --- what limited keys claim ---


def test_a_claim_makes_a_new_place_a_keys_until_somebody_else_tells_of_it() -> None:
    there = "/home/bob/a"
    known = (of(HERE, A), of(THERE, B))
    found = limits(*known, claim(there, A), Place(f"{there}/src", free=False))
    assert found.locations == {HERE, there, f"{there}/src"}
    freed = limits(*known, Place(there, claims=(A,), free=True))
    assert freed.locations == {HERE}
    assert not freed.holds(there)
    told = limits(*known, Place(there, root=there, remotes=(A,), claims=(A,), free=True))
    assert told.locations == {HERE}
    words = joined(there)
    told = limits(*known, Place(there, root=there, remotes=(A,), claims=(A,), free=True), words=words)
    assert told.locations == {HERE, there}


def test_a_claim_joins_nothing_that_others_told_of() -> None:
    inside = f"{THERE}/.worktrees/x"
    for path in (inside, f"{THERE}/x", "/home/me", "/home"):
        places = (of(HERE, A), Place(THERE), Place(f"{THERE}/src", root=THERE), claim(path, A))
        assert THERE not in limits(*places).locations
        assert f"{THERE}/src" not in limits(*places).locations
        projects = Projects(places)
        assert projects.of(THERE) != projects.of(HERE)
    assert Projects((of(HERE, A), of(THERE, B), claim("/ws", A, B))).of(HERE) != Projects((of(HERE, A),)).of(THERE)
    both = Projects((of(HERE, A), of(THERE, B), claim("/ws", A, B)))
    assert both.of(HERE) != both.of(THERE)


def test_a_worktree_of_another_repository_is_of_that_wherever_it_lies_and_whoever_claims_it() -> None:
    inner, outer = f"{HERE}/.worktrees/y", "/wt/x"
    found = limits(of(HERE, A), of(THERE, B), Place(inner, root=inner, repository=THERE))
    assert found.locations == {HERE}
    worked = Place(f"{outer}/src", root=outer, repository=THERE)
    assert limits(of(HERE, A), of(THERE, B), worked, claim(outer, A)).locations == {HERE}


def test_a_key_claims_its_own_remote_at_paths_that_are_new_or_its_own() -> None:
    found = limits(of(HERE, A), of(THERE, B), Place("/srv/plain"), Place("/home/eve", root="/home/eve"))
    assert all(found.may_claim(path, A) for path in ("/home/bob/a", HERE, f"{HERE}/new", "/srv/plain2", "/home/eve/a"))
    assert found.may_claim(f"{HERE}/new", "")
    refused = [
        (THERE, A), (f"{THERE}/new", A), (f"{THERE}/.worktrees/x", A), ("/srv/plain", A),
        ("/srv/plain/.worktrees/x", A), ("/home/bob/a", B), (HERE, B), ("/home/bob/a", ""), ("", A), ("", ""),
        ("/home/eve", A),
    ]  # fmt: skip
    assert [each for each in refused if found.may_claim(*each)] == []
    assert [path for path in ("/", "/home", "/srv") if found.may_claim(path, A)] == []
    below = limits(of("/srv/shops/a", A), of("/srv/shops/b", B))
    assert not below.may_claim("/srv/shops", A)
    assert below.may_claim("/srv/others", A)


def test_what_was_just_claimed_is_held_before_it_is_folded() -> None:
    found = limits(of(HERE, A), Place("/home/bob/other"))
    assert found.holds("/home/bob/a/src", {"/home/bob/a"})
    assert not found.holds("/home/bob/other", {"/home/bob/other", "/home/bob/a", "/home/bob"})
    mixed = limits(of(HERE, A), of("/workspace", A, B))
    assert not mixed.holds("/workspace/src", {"/workspace"})


def test_a_claimed_worktree_lays_no_hand_on_the_repository_it_is_named_after() -> None:
    worktree = f"{THERE}/.worktrees/x"
    found = limits(of(HERE, A), Place(THERE), claim(worktree, A))
    assert found.locations == {HERE, worktree}
    assert not any(found.holds(at) for at in (THERE, f"{THERE}/src"))


paths = st.sampled_from([HERE, THERE, f"{HERE}/x", f"{THERE}/x", "/ws", "/ws/x", f"{THERE}/.worktrees/w", "/home/me"])
claims = st.lists(st.builds(claim, paths, st.just(A)), max_size=4, unique_by=lambda place: place.location)
free = st.lists(
    st.builds(
        lambda location, remotes, root: Place(location, root=location if root else "", remotes=tuple(remotes)),
        paths, st.lists(st.sampled_from([A, B]), max_size=2, unique=True), st.booleans(),
    ),
    max_size=6,
    unique_by=lambda place: place.location,
)  # fmt: skip


@given(free, claims)
def test_no_claim_shows_a_key_a_place_that_others_told_of(told: list[Place], claimed: list[Place]) -> None:
    there = {place.location for place in told}
    merged = [Place(p.location, p.root, p.repository, p.remotes, claims=(A,)) if any(c.location == p.location for c in
              claimed) else p for p in told]  # fmt: skip
    places = (*merged, *(place for place in claimed if place.location not in there))
    assert limits(*places).locations & there <= limits(*told).locations
    assert not any(B in p.remotes for p in told if p.location in limits(*places).locations)


def test_a_key_claims_nothing_around_or_beside_what_another_key_claimed() -> None:
    found = limits(of(HERE, A), of(THERE, B), claim(by_key("/srv/x/b"), B))
    paths = ("/srv/x/b", "/srv/x/b/deep", "/srv/x", "/srv/x/b.worktrees/y", "/srv/x/b/.worktrees/y", "/srv/x/c")
    assert [path for path in paths if found.may_claim(path, A)] == ["/srv/x/b/deep", "/srv/x/c"]
    assert not found.holds("/srv/x/b")
