"""Projects are worked out anew whenever rows that tell of locations say something else, and only then."""

from __future__ import annotations

from typing import Any

import msgspec
import psycopg
import pytest

from memctl.domain.projects.identity import Merging, Projects
from memctl.domain.support.bounded import Seen
from memctl.infra.database import Connection, connect
from memctl.infra.readmodels import generations
from memctl.infra.readmodels import known_projects as places_of_rows
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.readmodels.generations import Live
from memctl.infra.readmodels.known_projects import known_places, known_projects
from memctl.projections.kernel import projections
from memctl.projections.locations import Location, Root
from memctl.projections.project_words import ProjectWords

MODELS = {p.name: p for p in projections()}


@pytest.fixture
def live(log: Connection) -> Live:
    generations.ensure_live(log, 1)
    return generations.live(log)


def works_at(connection: Connection, live: Live, place: str, remote: str = "", *, space: int = 1, at: int = 1) -> None:
    """Something happened at a place, which is of a remote."""
    seen = (Seen(remote, at),) if remote else ()
    root = Root(at, f"{at:032x}", place, checked=True) if remote else None
    row = Location(location=place, first_seen=1, last_seen=at, worked=True, remotes=seen, root=root)
    readmodels.save(connection, MODELS["locations"], live.stage2, {(space, place): msgspec.json.encode(row)})


def is_gone(connection: Connection, live: Live, place: str) -> None:
    readmodels.save(connection, MODELS["locations"], live.stage2, {(1, place): None})


def remotes(connection: Connection, live: Live, space: int = 1) -> dict[str, tuple[str, ...]]:
    return {place.location: place.remotes for place in known_places(connection, live, space).places}


def test_nothing_is_worked_out_twice(log: Connection, live: Live) -> None:
    works_at(log, live, "/w/a")
    first = known_places(log, live, 1)
    assert known_places(log, live, 1) is first
    works_at(log, live, "/w/a")  # the same row, which is not written again
    assert known_places(log, live, 1) is first
    works_at(log, live, "/w/b")
    assert known_places(log, live, 1) is not first


def test_what_decides_nothing_is_not_worked_out_again(
    log: Connection, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    works_at(log, live, "/w/a", "github.com/o/a")
    works_at(log, live, "/w/b")
    worked_out: list[int] = []
    first, begin = known_projects(log, live, 1), Projects.__init__

    def counted(self: Projects, *given: Any) -> None:
        worked_out.append(1)
        begin(self, *given)

    monkeypatch.setattr(Projects, "__init__", counted)
    assert [each.last_seen for each in first.all] == [1, 1]
    works_at(log, live, "/w/a", "github.com/o/a", at=7)
    later = known_projects(log, live, 1)
    assert not worked_out
    assert [(each.anchor, each.last_seen) for each in later.all] == [("github.com/o/a", 7), ("/w/b", 1)]
    assert [each.last_seen for each in first.all] == [1, 1]
    assert later.of("/w/a") is later.all[0] is later.holding("/w/a/deep")
    works_at(log, live, "/w/a", "github.com/o/other", at=8)
    assert known_projects(log, live, 1).one("/w/a").anchor == "github.com/o/other"
    assert worked_out


def test_of_too_many_places_those_count_whose_files_were_looked_at_here(
    log: Connection, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places_of_rows, "PLACES", 4)
    monkeypatch.setattr(places_of_rows, "PLACES_OF_ONE", 2)
    works_at(log, live, "/w/a", "github.com/o/a", at=1)
    for number in range(2, 7):
        works_at(log, live, f"/w/a/{number}", at=number)
    assert set(remotes(log, live)) == {"/w/a", "/w/a/5", "/w/a/6"}
    works_at(log, live, "/w/b", "github.com/o/b", at=1)
    works_at(log, live, "/x", at=9)
    assert set(remotes(log, live)) == {"/w/a", "/w/b", "/x", "/w/a/6"}


def test_a_transaction_that_began_first_and_commits_last_is_seen(
    database_url: str, log: Connection, live: Live
) -> None:
    works_at(log, live, "/w/a")
    with connect(database_url, autocommit=False) as older:
        works_at(older, live, "/w/a", "github.com/o/a")
        works_at(log, live, "/w/b")
        assert remotes(log, live) == {"/w/a": (), "/w/b": ()}
        older.commit()
    assert remotes(log, live) == {"/w/a": ("github.com/o/a",), "/w/b": ()}


def test_who_looks_at_an_older_snapshot_is_told_of_it_and_tells_nobody_else(
    database_url: str, log: Connection, live: Live
) -> None:
    works_at(log, live, "/w/a")
    with connect(database_url, autocommit=False) as reader:
        reader.rollback()
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        assert set(remotes(reader, live)) == {"/w/a"}
        works_at(log, live, "/w/b")
        for _ in range(2):
            assert set(remotes(log, live)) == {"/w/a", "/w/b"}
            assert set(remotes(reader, live)) == {"/w/a"}


def test_what_was_undone_is_not_told(database_url: str, log: Connection, live: Live) -> None:
    works_at(log, live, "/w/a")
    with connect(database_url, autocommit=False) as other:
        works_at(other, live, "/w/b")
        assert set(remotes(other, live)) == {"/w/a", "/w/b"}
        assert set(remotes(log, live)) == {"/w/a"}
        other.rollback()
        assert set(remotes(other, live)) == {"/w/a"}


def test_a_location_that_went_is_not_told_though_another_came(log: Connection, live: Live) -> None:
    works_at(log, live, "/w/a")
    works_at(log, live, "/w/b")
    assert set(remotes(log, live)) == {"/w/a", "/w/b"}
    with log.transaction():
        is_gone(log, live, "/w/a")
        works_at(log, live, "/w/c")
    assert set(remotes(log, live)) == {"/w/b", "/w/c"}
    is_gone(log, live, "/w/c")
    assert set(remotes(log, live)) == {"/w/b"}


def test_spaces_are_told_apart(log: Connection, live: Live) -> None:
    works_at(log, live, "/w/a")
    works_at(log, live, "/w/b", space=2)
    for _ in range(2):
        assert set(remotes(log, live)) == {"/w/a"}
        assert set(remotes(log, live, space=2)) == {"/w/b"}
        assert remotes(log, live, space=3) == {}
    here, there = known_places(log, live, 1), known_places(log, live, 2)
    works_at(log, live, "/w/c", space=2)
    assert known_places(log, live, 1) is here
    assert known_places(log, live, 2) is not there


def test_a_word_about_projects_is_heeded(log: Connection, live: Live) -> None:
    works_at(log, live, "/w/a", "github.com/o/a")
    works_at(log, live, "/w/b", "github.com/o/b")
    assert len(known_places(log, live, 1).projects.all) == 2
    word = ProjectWords(anchor="github.com/o/b", into=(Merging(at=1, id="m", into="github.com/o/a"),))
    rows = {(1, word.anchor): msgspec.json.encode(word)}
    readmodels.save(log, MODELS["project_words"], live.stage2, rows)
    (one,) = known_places(log, live, 1).projects.all
    assert one.locations == ("/w/a", "/w/b")
