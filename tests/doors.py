"""The door for commands, to a database of the test module's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import servers
from data_dirs import used
from histories import drained

from memctl.api.reading.caller import OWNER
from memctl.api.reading.reader import Reader, Readers, reader_of
from memctl.api.write.command_handler import CommandHandler
from memctl.infra.database import Connection, connect
from memctl.infra.readmodels import generations
from memctl.infra.settings import load_settings


@dataclass
class Door:
    """A database, the door for commands to it, and the way to see what came of them."""

    commands: CommandHandler
    connection: Connection
    url: str
    location: str

    def say(self, name: str, key: str | None = None, **asked: Any) -> Any:
        """Carry a command out where the door stands; without a key, under one made of its words."""
        body = json.dumps({"by": "user", "location": self.location, **asked}).encode()
        return self.commands.carry_out(name, body, f"{name}-{asked}" if key is None else key, OWNER)

    def known(self) -> Reader:
        """What memory answers once all that was told is folded."""
        drained(self.url)
        return reader_of(self.connection, "default", OWNER)

    def count(self) -> int:
        """How many events the log holds."""
        row = self.connection.execute("SELECT count(*) FROM memctl.events").fetchone()
        assert row is not None
        return int(row[0])


@contextmanager
def door_to(server: str, template: str, data_dir: Path, *, location: str) -> Iterator[Door]:
    with servers.fresh_database(server, template=template) as url, pytest.MonkeyPatch.context() as here:
        here.setenv("MEMCTL_DATA_DIR", str(used(data_dir)))
        here.setenv("MEMCTL_DATABASE_URL", url)
        settings = load_settings()
        readers = Readers(url, settings.space)
        commands = CommandHandler(settings, readers)
        with connect(url, name="test") as connection:
            yield Door(commands, connection, url, location)
        commands.close()
        readers.close()


def door_at(location: str) -> Any:
    """A fixture: a door to a database of its own, whose statements lie at that location."""

    @pytest.fixture
    def door(postgres_server: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
        data = tmp_path_factory.mktemp("data")
        with door_to(postgres_server, migrated_template, data, location=location) as door:
            generations.ensure_live(door.connection, 2)
            yield door

    return door
