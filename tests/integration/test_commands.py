"""Commands through the API's own doors: carried out once, refused whole, and folded into what is known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
import servers

from memctl.api.deciding import BadKey, Commands, KeyReused, UnknownCommand
from memctl.api.reader import Reader, Readers, reader_of
from memctl.domain.commanding import BadCommand
from memctl.infra.database import Connection, connect
from memctl.infra.settings import load_settings
from memctl.workers.drain import Drainer, catch_up


@dataclass
class Door:
    """A database of the module's own, the door for commands to it, and the way to see what came of them."""

    commands: Commands
    connection: Connection

    def say(self, name: str, key: str, **asked: Any) -> Any:
        return self.commands.carry_out(name, json.dumps({"location": "/home/dev/shop", **asked}).encode(), key)

    def known(self) -> Reader:
        catch_up(self.connection, Drainer())
        return reader_of(self.connection, "default")

    def count(self) -> int:
        row = self.connection.execute("SELECT count(*) FROM memctl.events").fetchone()
        assert row is not None
        return int(row[0])


@pytest.fixture(scope="module")
def door(postgres_server: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with (
        servers.fresh_database(postgres_server, template=migrated_template) as url,
        pytest.MonkeyPatch.context() as here,
    ):
        here.setenv("MEMCTL_DATA_DIR", str(tmp_path_factory.mktemp("data")))
        here.setenv("MEMCTL_DATABASE_URL", url)
        settings = load_settings()
        readers = Readers(url, settings.space)
        commands = Commands(settings, readers)
        with connect(url, name="test") as connection:
            yield Door(commands, connection)
        commands.close()
        readers.close()


def test_a_command_is_carried_out_once_however_often_and_by_however_many_it_is_sent(door: Door) -> None:
    before = door.count()
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(door.say, "note", "once", text="Releases are cut on Fridays") for _ in range(4)]
        done = [each.result() for each in asked]
    assert sorted(each.status for each in done) == ["duplicate", "duplicate", "duplicate", "new"]
    assert len({each.event_id for each in done}) == 1
    assert door.count() == before + 1


def test_another_command_under_the_same_key_is_refused_and_nothing_is_kept(door: Door) -> None:
    door.say("note", "reused", text="The port is 8080 in development")
    before = door.count()
    with pytest.raises(KeyReused):
        door.say("note", "reused", text="The port is 9090 in development")
    assert door.count() == before


@pytest.mark.parametrize(
    ("name", "key", "asked", "error"),
    [
        ("note", "", {"text": "long enough to mean something"}, BadKey),
        ("note", "k" * 201, {"text": "long enough to mean something"}, BadKey),
        ("note", "short", {"text": "short"}, BadCommand),
        ("note", "typo", {"txt": "long enough to mean something"}, BadCommand),
        ("notes", "name", {"text": "long enough to mean something"}, UnknownCommand),
    ],
)
def test_what_cannot_be_carried_out_leaves_nothing(
    door: Door, name: str, key: str, asked: dict[str, str], error: type[Exception]
) -> None:
    before = door.count()
    with pytest.raises(error):
        door.say(name, key, **asked)
    assert door.count() == before


def test_a_secret_in_a_note_is_not_stored_and_the_same_key_still_finds_it(door: Door) -> None:
    secret = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    first = door.say("note", "secret", text=f"the deploy token is {secret}")
    again = door.say("note", "secret", text=f"the deploy token is {secret}")
    assert secret not in json.dumps(first.recorded)
    assert (first.status, again.status, first.event_id) == ("new", "duplicate", again.event_id)


def test_a_door_whose_database_went_away_opens_again(door: Door) -> None:
    door.say("note", "before", text="Backups are kept for a month")
    door.connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'memctl intake'"
    )
    assert door.say("note", "away", text="Backups are tested every quarter").status == "new"
