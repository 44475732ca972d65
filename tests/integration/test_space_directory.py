"""The directory of spaces: one API answers for a space on another database as for its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import click
import msgspec
import pytest
import servers
from apis import Api, serving
from asked import Remembered
from click.testing import CliRunner, Result
from draining import catch_up
from events import observed

from memctl.api.write.ingest_writer import IngestWriter
from memctl.api.write.remote_ingest import Delivery, sent
from memctl.api.write.spaces import SpaceIsThere, create, listed
from memctl.cli.main import memctl as program
from memctl.domain.events.observations import PromptSubmitted
from memctl.infra.database import connect
from memctl.infra.log.spaces import of_every_space
from memctl.infra.readmodels import generations
from memctl.infra.settings import load_settings
from memctl.infra.settings_model import UnknownDatabase
from memctl.workers.folding.drain import Drainer


class Two(NamedTuple):
    """An API, its database, another one that its settings call `east`, and how to call memctl there."""

    api: Api
    home: str
    east: str
    run: Callable[..., Result]


@pytest.fixture(scope="module")
def two(
    postgres_server: str, migrated_template: str, vectors: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Two]:
    with (
        servers.fresh_database(postgres_server, template=migrated_template) as home,
        servers.fresh_database(postgres_server, template=migrated_template) as east,
        pytest.MonkeyPatch.context() as here,
    ):
        with connect(home) as connection, connect(east) as other:
            for each in (connection, other):
                generations.ensure_live(each, 2)
            other.execute("UPDATE memctl.installation SET id = gen_random_uuid()")  # both are copies of one
        here.setenv("MEMCTL_DATABASES__EAST", east)
        memory = Remembered(home, *vectors, collection="")
        with serving(tmp_path_factory.mktemp("api"), memory, embedder="none") as api:
            for name, value in api.environment.items():
                here.setenv(name, value)

            def run(*arguments: str, space: str = "default") -> Result:
                command = program.get_command(click.Context(program), arguments[0])
                assert command is not None
                environment = {"MEMCTL_SPACE": space}
                return CliRunner(env=environment).invoke(command, list(arguments[1:]), catch_exceptions=False)

            assert run("space", "create", "research", "--on", "east").exit_code == 0
            yield Two(api, home, east, run)


@pytest.fixture(autouse=True)
def named(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of each test are those of the API."""
    for name, value in two.api.environment.items():
        if name.startswith("MEMCTL_"):
            monkeypatch.setenv(name, value)


def events_in(url: str, name: str) -> int:
    with connect(url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM memctl.events JOIN memctl.spaces USING (space_id) WHERE name = %s", [name]
        ).fetchone()
        assert row is not None
        return int(row[0])


def test_a_key_of_a_space_on_another_database_writes_and_reads_there(two: Two) -> None:
    token = two.run("keys", "add", "kim", space="research").stdout.strip()
    bearer = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    note = json.dumps({"text": "Nebulae are kept by their catalogue number.", "location": "/home/kim/sky"}).encode()
    asked = {**bearer, "Idempotency-Key": uuid4().hex}
    for status in ("new", "duplicate"):
        answer = two.api.ask("/v1/commands/note", method="POST", body=note, headers=asked)
        assert (answer[0], json.loads(answer[2])["status"]) == (200, status)
    assert (events_in(two.home, "research"), events_in(two.east, "research")) == (0, 1)
    id = json.loads(answer[2])["event_id"]
    assert two.api.ask(f"/v1/events/{id}", headers=bearer)[0] == 200
    assert two.api.ask(f"/v1/events/{id}")[0] == 404
    prompt = observed(PromptSubmitted(line="1", text="find nebulae"), session="sky0", location="/home/kim/sky")
    body = msgspec.json.encode(Delivery([sent(prompt)]))
    assert two.api.ask("/v1/events", method="POST", body=body, headers=bearer)[0] == 200
    drainer = Drainer(two.east)
    catch_up(drainer)
    drainer.close()
    seen = [
        "sky0" in two.api.ask("/v1/sessions?project=*", headers=headers)[2].decode()
        for headers in (bearer, {"Memctl-Space": "research"}, {})
    ]
    assert seen == [True, True, False]
    assert 'space="research"' in two.api.ask("/metrics")[2].decode()


def test_a_door_and_commands_of_that_space_find_it(two: Two) -> None:
    settings = load_settings(space="research")
    before = events_in(two.east, "research")
    with IngestWriter(settings) as writer:
        payload = PromptSubmitted(line="1", text="plot the cluster")
        writer.record([observed(payload, session="sky1", location="/home/kim/sky")])
    assert events_in(two.east, "research") == before + 1
    assert events_in(two.home, "research") == 0


def test_workers_work_for_the_spaces_that_live_on_their_database(two: Two) -> None:
    settings = load_settings()
    with connect(two.home) as home, connect(two.east) as east:
        assert "research" not in {each.space for each in of_every_space(home, settings)}
        assert "research" in {each.space for each in of_every_space(east, settings)}


def test_the_directory_says_where_each_space_lives(two: Two) -> None:
    found = {each.name: each for each in listed(load_settings())}
    assert found["research"].database == "east"
    assert found["research"].collection not in ("", found["default"].collection)
    assert found["default"].database == ""
    shown = two.run("space", "list").stdout
    assert "research: east, memctl-" in shown
    assert "default: here, memctl-" in shown


def test_a_space_is_made_once_and_on_a_database_that_settings_name(two: Two) -> None:
    with pytest.raises(SpaceIsThere):
        create(load_settings(), "research")
    with pytest.raises(UnknownDatabase):
        create(load_settings(), "elsewhere", "west")
    assert "elsewhere" not in {each.name for each in listed(load_settings())}
    create(load_settings(), "payments")
    assert two.api.ask("/v1/memories", headers={"Memctl-Space": "payments"})[0] == 200


def test_where_nobody_says_where_a_database_is_it_is_said_and_nothing_is_written_elsewhere(
    two: Two, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("MEMCTL_DATABASES__EAST")
    with pytest.raises(UnknownDatabase, match="east"):
        IngestWriter(load_settings(space="research"))
    assert events_in(two.home, "research") == 0
