"""Figures are of what their reader may see: a member for one project is shown no count of work that went elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from doors import Door, door_to
from events import observed, prompt
from msgspec.structs import replace
from psycopg import sql

from memctl.api.queries import figures, memories, work
from memctl.api.queries.project import project_page
from memctl.api.queries.stats import totals_of
from memctl.api.reading.caller import OWNER, Caller
from memctl.api.reading.pages import built, several, table_of, total
from memctl.api.reading.places import places_of, projects_of
from memctl.api.reading.reader import Reader, reader_of
from memctl.api.reading.staleness import changed_since
from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import ToolCalled, ToolReturned
from memctl.infra.log.append import append
from memctl.infra.readmodels import generations
from memctl.projections.kernel import projections

ATLAS, LEDGER = "/home/dana/atlas", "/home/dana/ledger"


def session(name: str, *locations: str) -> list[NewEvent]:
    return [replace(prompt(n, session=name), location=at) for n, at in enumerate(locations)]


def edited(name: str, location: str) -> list[NewEvent]:
    given = {"file_path": f"{location}/src/money.py", "old_string": "a = 1", "new_string": "a = 2"}
    said = (ToolCalled(line="e", tool="Edit", call="e", input=given), ToolReturned(line="r", tool="Edit", call="e"))
    return [observed(each, session=name, at=9, location=location) for each in said]


@pytest.fixture(scope="module")
def door(postgres_server: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with door_to(postgres_server, migrated_template, tmp_path_factory.mktemp("data"), location="") as door:
        generations.ensure_live(door.connection, 2)
        for events in (
            session("a1", ATLAS, ATLAS), session("b1", LEDGER), session("both", ATLAS, LEDGER),
            session("back", LEDGER, ATLAS), [*session("c1", LEDGER), *edited("c1", LEDGER)],
        ):  # fmt: skip
            append(door.connection, 1, events)
        door.known()
        yield door


def of(door: Door, *projects: str) -> Reader:
    return reader_of(door.connection, "default", Caller("eve", frozenset(("read",)), projects, member="eve"))


@pytest.mark.parametrize("projects", [(ATLAS,), (LEDGER,), (ATLAS, LEDGER)])
def test_figures_count_the_work_that_their_reader_may_list(door: Door, projects: tuple[str, ...]) -> None:
    reader = of(door, *projects)
    everywhere, now = places_of(reader, "*"), datetime.now(UTC)
    episodes = [each.outcome for each in work.episodes(reader, everywhere, limit=50).items]
    sessions = memories.sessions(reader, everywhere, limit=50).items
    totals = totals_of(reader, everywhere)
    assert sum(totals[f"episodes_{how}"] for how in ("succeeded", "failed", "partial", "unknown")) == len(episodes) > 0
    held = memories.memories(reader, everywhere, limit=50).items
    assert sum(count for (count,) in figures.memories_by_day(reader, everywhere).values()) == len(held)
    assert sum(count for _, count in figures.memories_by_kind(reader)) == len(held)
    of_projects = [project_page(reader, each, now).stats for each in projects_of(reader).all]
    assert sum(each.episodes for each in of_projects) == len(episodes)
    assert sum(each.sessions for each in of_projects) == len(sessions)
    assert len(sessions) == {(ATLAS,): 1, (LEDGER,): 2}.get(projects, 5)


def test_what_the_database_leaves_out_is_what_a_reader_may_not_see(door: Door) -> None:
    reader, owner, seen = of(door, ATLAS), reader_of(door.connection, "default", OWNER), 0
    for p in projections():
        if built(owner, p):
            keys = owner.connection.execute(sql.SQL("SELECT key FROM {}").format(table_of(owner, p))).fetchall()
            assert total(reader, p) == len(several(reader, p, [key for (key,) in keys])), p.name
            seen += 0 < total(reader, p) < total(owner, p)
    assert seen > 5


def test_a_file_is_not_said_to_have_changed_by_work_that_its_reader_may_not_see(door: Door) -> None:
    assert changed_since(of(door, LEDGER), ["src/money.py"])
    assert not changed_since(of(door, ATLAS), ["src/money.py"])
