"""A door in a process of its own, and deliveries to knock at it with."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from data_dirs import used
from forking import Forked
from processes import memctl
from waiting import until

from memctl.infra.hooks.spool import Delivery

NOWHERE = "postgresql://u@127.0.0.1:1/none"


def said(text: str = "hello there", *, session: str = "s1", cwd: str = "/x") -> bytes:
    payload = {"hook_event_name": "UserPromptSubmit", "session_id": session, "cwd": cwd, "prompt": text}
    return json.dumps(payload).encode()


def delivery(
    number: int, payload: bytes | None = None, *, at: int | None = None, agent: str = "claude-code"
) -> Delivery:
    now = time.time_ns() // 1000
    return Delivery(f"{number:032x}", now if at is None else at, agent, "", said() if payload is None else payload)


class Client:
    """One connection to a door."""

    def __init__(self, door: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(30)
        self.socket.connect(str(door))
        self._answers = self.socket.makefile("rb")

    def send(self, delivery: Delivery) -> None:
        self.socket.sendall(delivery.encode())

    def answer(self) -> dict[str, Any]:
        return dict(json.loads(self._answers.readline()))

    def close(self) -> None:
        self._answers.close()
        self.socket.close()


def ask(door: Path, delivery: Delivery) -> dict[str, Any]:
    with closing(Client(door)) as client:
        client.send(delivery)
        return client.answer()


class Place:
    """A data directory with a door's socket, and what the door's log says."""

    def __init__(self, folder: Path) -> None:
        self.data = used(folder / "memory")
        self.spool = self.data / "spool"
        self.door = folder / "door.sock"
        self.log_file = folder / "door.log"
        self.environment = {
            "MEMCTL_DATA_DIR": str(self.data),
            "MEMCTL_DOOR_SOCKET": str(self.door),
            "XDG_CONFIG_HOME": str(folder / "config"),
        }

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def names(self) -> list[str]:
        return sorted(name for name in os.listdir(self.spool) if name != "refused")

    @contextmanager
    def open(self, database_url: str) -> Iterator[Forked]:
        """A door in a process of its own, once it listens."""
        environment = {**self.environment, "MEMCTL_DATABASE_URL": database_url}
        with memctl("door", environment=environment, log=self.log_file) as process:
            until(lambda: process.poll() is not None or self.answers())
            assert process.poll() is None, self.log
            yield process

    def answers(self) -> bool:
        try:
            Client(self.door).close()
        except OSError:
            return False
        return True


def kept(database_url: str) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT count(*) FROM memctl.events").fetchone()
        assert row is not None
        return int(row[0])
