"""Projects are worked out anew whenever rows that tell of locations say something else, and only then."""

from __future__ import annotations

import msgspec
import psycopg
import pytest

from memctl.domain.projects.identity import Merging
from memctl.domain.support.bounded import Seen
from memctl.infra.database import Connection, connect
from memctl.infra.readmodels import generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.readmodels.generations import Live
from memctl.infra.readmodels.known_projects import known_places
from memctl.projections.kernel import projections
from memctl.projections.locations import Location
from memctl.projections.project_words import ProjectWords

MODELS = {p.name: p for p in projections()}


@pytest.fixture
def live(log: Connection) -> Live:
    generations.ensure_live(log, 1)
    return generations.live(log)


def works_at(connection: Connection, live: Live, place: str, remote: str = "", *, space: int = 1) -> None:
    """Something happened at a place, which is of a remote."""
    seen = (Seen(remote, 1),) if remote else ()
    row = Location(location=place, first_seen=1, last_seen=1, worked=True, remotes=seen)
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
