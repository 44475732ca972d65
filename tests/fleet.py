"""A fleet on one machine: three Postgres, three Valkey, six workers, two APIs and the vectors of many spaces.

Every process is killed in turn and two spaces move, while all spaces are written: nothing may be lost or doubled, and
the read models have to be those that one machine makes. Before that, a writer falls asleep in one space: the others may
not wait for it. `make fleet` runs it: RATE events/s over SPACES spaces for SECONDS.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from uuid import UUID

import msgspec
import servers
from apis import RUN, TOKEN, free_port
from data_dirs import used
from draining import catch_up
from events import work
from forking import Forked
from vector_server import ServerProcess
from working import caught_up

from memctl.api.write import spaces
from memctl.api.write.remote_ingest import Delivery, sent
from memctl.domain.events.event import NewEvent, Position
from memctl.domain.events.observations import event_id_of
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append
from memctl.infra.log.mark import last_position
from memctl.infra.log.migrate import migrate
from memctl.infra.log.read import read_range
from memctl.infra.log.spaces import connect_to, space_id
from memctl.infra.readmodels import generations
from memctl.infra.readmodels.rows import digest_of, rows_query
from memctl.infra.settings import Settings, load_settings
from memctl.projections.kernel import projections
from memctl.workers.folding.drain import Drainer

NAMES = ("here", "east", "west")
BATCH = 10
"""Events of one request at least."""

MOST = 500
"""Events of one request at most, as a spool sends what waited while nothing was there to take it."""

PROBES = 3
"""Who writes and waits until it can be read, at once."""


class Program:
    """A process of the fleet that is killed and started again at the same place."""

    def __init__(self, name: str, start: Callable[[], None], kill: Callable[[], None]) -> None:
        self.name, self.start, self.kill = name, start, kill


class Fleet:
    """The programs, and how they are reached."""

    def __init__(self, folder: Path, held: contextlib.ExitStack, embedder: str) -> None:
        self.folder, self.programs = folder, list[Program]()
        self.postgres = [held.enter_context(servers.Mortal(folder / f"postgres{n}")) for n in range(3)]
        self.vectors = ServerProcess(folder)
        self.vectors.start()
        held.callback(self.vectors.stop)
        port = int(self.vectors.url.rpartition(":")[2])
        self.ports = [held.enter_context(free_port()) for _ in range(2)]
        queues = [self._queue(held, n) for n in range(3)]
        self.common = {
            "MEMCTL_QDRANT_URL": self.vectors.url, "MEMCTL_QDRANT_API_KEY": self.vectors.token,
            "MEMCTL_EMBEDDER": embedder,
        }  # fmt: skip
        self.directory = {
            **self.common,
            "MEMCTL_DATABASE_URL": self.postgres[0].url, "MEMCTL_REDIS_URL": queues[0],
            **{f"MEMCTL_DATABASES__{NAMES[n].upper()}": self.postgres[n].url for n in (1, 2)},
            **{f"MEMCTL_QUEUES__{NAMES[n].upper()}": queues[n] for n in (1, 2)},
        }  # fmt: skip
        for server in self.postgres:
            migrate(server.url)
            with connect(server.url) as connection:
                generations.ensure_live(connection, 1)
        for n, server in enumerate(self.postgres):
            self.programs.append(Program(f"postgres {NAMES[n]}", server.start, server.crash))
        self.programs.append(Program("vectors", lambda: self.vectors.start(port), self.vectors.kill))
        for n in range(6):
            settings = {"MEMCTL_DATABASE_URL": self.postgres[n % 3].url, "MEMCTL_REDIS_URL": queues[n % 3]}
            self._program(held, f"worker {n}", {**self.common, **settings}, ("worker",))
        for n, at in enumerate(self.ports):
            settings = {
                "MEMCTL_API_URL": f"http://127.0.0.1:{at}", "MEMCTL_API_TOKEN": TOKEN,
                "MEMCTL_API_SOCKET": str(folder / f"api{n}.sock"),
            }  # fmt: skip
            self._program(held, f"api {n}", {**self.directory, **settings}, (), ("-c", RUN))
        for program in self.programs[-8:]:
            program.start()

    def _queue(self, held: contextlib.ExitStack, n: int) -> str:
        folder, running = self.folder / f"valkey{n}", contextlib.ExitStack()
        held.callback(lambda: running.close())
        served = running.enter_context(servers.start_valkey(folder))

        def kill() -> None:
            nonlocal served
            served.server.end(signal.SIGKILL)
            running.close()

        def start() -> None:
            nonlocal served
            served = running.enter_context(servers.start_valkey(folder))

        self.programs.append(Program(f"valkey {NAMES[n]}", start, kill))
        return served.url

    def _program(
        self, held: contextlib.ExitStack, name: str, environment: dict[str, str], words: tuple[str, ...],
        script: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        process = Forked()
        held.callback(process.close)
        held.callback(process.kill)
        home, log = self.folder / name.replace(" ", ""), self.folder / f"{name}.log"
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MEMCTL_")}
        whole = {**kept, **environment, "MEMCTL_DATA_DIR": str(used(home)), "HOME": str(home)}

        def start() -> None:
            process.start(*words, environment=whole, cwd=self.folder, out=log, said=log, script=script)

        self.programs.append(Program(name, start, lambda: void(process.kill())))

    def settings(self) -> Settings:
        return load_settings(
            database_url=self.postgres[0].url, redis_url=self.directory["MEMCTL_REDIS_URL"],
            qdrant_url=self.vectors.url, qdrant_api_key=self.vectors.token, embedder="none",
            databases={NAMES[n]: self.postgres[n].url for n in (1, 2)},
        )  # fmt: skip


def void(_: object) -> None: ...


class Api:
    """A connection to one of the APIs, or to the other where that is gone."""

    def __init__(self, ports: list[int], first: int) -> None:
        self._ports = itertools.cycle(ports[first % 2 :] + ports[: first % 2])
        self._connection: HTTPConnection | None = None

    def ask(self, method: str, path: str, space: str, body: bytes | None = None) -> bytes | None:
        """The answer; None where there was none, or an error that trying again may end."""
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", "Memctl-Space": space}
        try:
            if self._connection is None:
                self._connection = HTTPConnection("127.0.0.1", next(self._ports), timeout=60)
            self._connection.request(method, path, body, headers)
            response = self._connection.getresponse()
            said = response.read()
            if response.status == 200:
                return said
            if response.status < 500 and response.status not in (421, 429):
                raise AssertionError(f"{response.status} {said[:500]!r}")
        except (OSError, HTTPException):
            pass
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        return None


class Load:
    """A writer to every space, at a rate in all, and some who write and read what they wrote, by space.

    What falls due while a space cannot be written to waits, and is sent later.
    """

    def __init__(self, fleet: Fleet, names: list[str], rate: float) -> None:
        self.kept: dict[str, list[NewEvent]] = {name: [] for name in names}
        self.waits: list[tuple[str, float]] = []
        """By space, how long it took until what was written could be read."""
        self.problems: list[str] = []
        self.refused = 0
        self.rate = rate
        self._fleet, self._ended = fleet, threading.Event()
        self._locks = {name: threading.Lock() for name in names}
        self._threads = [threading.Thread(target=self._write, args=[n, each]) for n, each in enumerate(names)]
        self._threads += [threading.Thread(target=self._probe, args=[n, names[n::PROBES]]) for n in range(PROBES)]

    def _write(self, number: int, name: str) -> None:
        api, spaces, due, looked = Api(self._fleet.ports, number), len(self.kept), 0.0, time.monotonic()
        try:
            while not self._ended.wait(max(0.0, (BATCH - due) * spaces / self.rate)):
                now = time.monotonic()
                due, looked = due + (now - looked) * self.rate / spaces, now
                if due >= BATCH:
                    due -= self._send(api, name, min(int(due), MOST))[0]
        except BaseException as problem:
            self.problems.append(f"writer of {name}: {problem!r}")

    def _send(self, api: Api, name: str, events: int = BATCH) -> tuple[int, int]:
        """Write the next events of a space, until that is acknowledged: how many, and the last one's position."""
        with self._locks[name]:
            at = len(self.kept[name])
            batch = [work(at + n, session=f"{name}-{(at + n) // 500}") for n in range(events)]
            body = msgspec.json.encode(Delivery([sent(each) for each in batch]))
            while (answer := api.ask("POST", "/v1/events", name, body)) is None:
                self.refused += 1
                time.sleep(0.2)
            self.kept[name] += batch
        return len(batch), max(int(each["position"]) for each in json.loads(answer)["appended"])

    def _probe(self, number: int, names: list[str]) -> None:
        api = Api(self._fleet.ports, number)
        try:
            for name in itertools.cycle(names):
                if self._ended.wait(0.02):
                    return
                began = time.monotonic()
                _, at = self._send(api, name)
                answered = api.ask("GET", f"/v1/sessions?limit=1&min_position={at}", name) is not None
                self.waits.append((name, time.monotonic() - began if answered else math.inf))
        except BaseException as problem:
            self.problems.append(f"reader: {problem!r}")

    def __enter__(self) -> Load:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for each in self._threads:
            each.join()


@contextlib.contextmanager
def asleep(settings: Settings, space: str) -> Iterator[None]:
    """A writer that has appended to a space and does not commit."""
    connection, _ = connect_to(settings, space, "asleep")
    with contextlib.suppress(Exception), connection, connection.transaction():
        append(connection, space_id(connection, space), [work(1 << 20, session="asleep")])
        yield
        connection.execute("ROLLBACK")


def beside_a_sleeper(fleet: Fleet, load: Load, names: list[str], seconds: float) -> dict[str, float]:
    """How long it takes until others can be read with a writer asleep in one space, and without, in turns: of those on
    the same database (every third), and of all."""
    settings, turns = fleet.settings(), 20
    found: dict[tuple[bool, bool], list[float]] = {key: [] for key in itertools.product((False, True), repeat=2)}
    same = set(names[3::3])
    for turn in range(turns):
        sleeps = turn % 2 == 1
        with asleep(settings, names[0]) if sleeps else contextlib.nullcontext():
            time.sleep(0.5)
            load.waits.clear()
            time.sleep(seconds / turns)
            for name, took in list(load.waits):
                if name != names[0]:
                    found[sleeps, name in same].append(took)
    said: dict[str, float] = {}
    for where, of in (("all", (False, True)), ("same database", (True,))):
        calm, beside = (sorted(took for each in of for took in found[sleeps, each]) for sleeps in (False, True))
        said[f"{where}: looks"] = len(calm) + len(beside)
        said[f"{where}: unanswered, calm"] = sum(map(math.isinf, calm))
        said[f"{where}: unanswered, beside a sleeper"] = sum(map(math.isinf, beside))
        for share in (0.5, 0.9, 0.99):
            one, other = (took[min(int(len(took) * share), len(took) - 1)] * 1000 for took in (calm, beside))
            said[f"{where}: p{share * 100:.0f} ms"], said[f"{where}: p{share * 100:.0f} ms beside a sleeper"] = (
                one,
                other,
            )
            said[f"{where}: ratio of p{share * 100:.0f}"] = other / one if one < math.inf else 0.0
    return said


def moved(fleet: Fleet, space: str, to: str, kill_after: float | None, report: Callable[[str], None]) -> None:
    """Move a space by the command line; the first one is killed, and it is said again until it is there."""
    log, process = fleet.folder / f"move-{space}.log", Forked()
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MEMCTL_")}
    environment = {**kept, **fleet.directory, "MEMCTL_DATA_DIR": str(used(fleet.folder / f"move{space}"))}
    began = time.monotonic()
    for attempt in range(200):
        words = ("space", "move", space, "--to", to)
        process.start(*words, environment=environment, cwd=fleet.folder, out=log, said=log)
        if attempt == 0 and kill_after is not None:
            with contextlib.suppress(TimeoutError):
                process.wait(kill_after)
            process.kill()
        elif process.wait(600) == 0:
            report(f"{space} lives on {to}: {attempt + 1} attempts, {time.monotonic() - began:.0f} s")
            process.close()
            return
        time.sleep(1)
    raise AssertionError(f"{space} did not move:\n{log.read_text()[-2000:]}")


def disturbed(fleet: Fleet, names: list[str], seconds: float, report: Callable[[str], None]) -> int:
    """Kill every program in turn, and move two spaces, for so long; returns how often something was killed."""
    luck, began, kills = random.Random(7), time.monotonic(), 0
    problems: list[BaseException] = []

    def moving(space: str, *to: str) -> None:
        try:
            for each in itertools.cycle(to):
                if time.monotonic() - began > seconds:
                    return
                moved(fleet, space, each, luck.uniform(1, 8), report)
                time.sleep(luck.uniform(0, seconds / 20))
        except BaseException as problem:
            problems.append(problem)

    movers = [
        threading.Thread(target=moving, args=[names[3], "east", "west", "here"]),
        threading.Thread(target=moving, args=[names[4], "west", "here", "east"]),
    ]
    for each in movers:
        each.start()
    pause = max(seconds / (2 * len(fleet.programs)), 2.0)
    for program in itertools.cycle(fleet.programs):
        if time.monotonic() - began > seconds and kills >= len(fleet.programs):
            break
        program.kill()
        time.sleep(luck.uniform(0, pause / 4))
        program.start()
        kills += 1
        report(f"{program.name} was killed and started")
        time.sleep(pause)
    for each in movers:
        each.join()
    if problems:
        raise problems[0]
    return kills


def log_of(connection: Connection, number: int) -> list[NewEvent]:
    events = read_range(connection, Position(0), last_position(connection), limit=1 << 40).events
    return [
        NewEvent(
            stream=each.stream, payload=each.payload, occurred_at=each.occurred_at, dedupe_key=each.dedupe_key,
            actor=each.actor, location=each.location, session_id=each.session_id, sources=each.sources,
        )
        for each in events if each.space_id == number
    ]  # fmt: skip


def digests(connection: Connection, number: int) -> dict[str, str]:
    live, where = generations.live(connection), f" WHERE space_id = {number:d}"
    return {p.name: digest_of(connection, rows_query(p, live.of(p.stage)) + where).hex for p in projections()}


def proven(fleet: Fleet, load: Load, report: Callable[[str], None]) -> dict[str, int]:
    """What was lost or doubled, and which read models are not those that one machine makes."""
    lost = doubled = left = 0
    differing: list[str] = []
    with contextlib.ExitStack() as opened:
        databases = {
            name: opened.enter_context(connect(server.url)) for name, server in zip(NAMES, fleet.postgres, strict=True)
        }
        for connection in databases.values():
            deadline = time.monotonic() + 900
            while not caught_up(connection):
                assert time.monotonic() < deadline, "the workers do not catch up"
                time.sleep(0.2)
        report("all is folded; one machine folds it as well")
        alone = opened.enter_context(servers.fresh_database(fleet.postgres[0].url))
        migrate(alone)
        one = opened.enter_context(connect(alone))
        generations.ensure_live(one, 1)
        numbers = {}
        for name, written in load.kept.items():
            found, database = connect_to(fleet.settings(), name, "proof")
            with found:
                number = space_id(found, name)
                events = log_of(found, number)
            numbers[name] = (number, database)
            ids: list[UUID] = [event_id_of(number, event.dedupe_key) for event in events]
            wanted = {event_id_of(number, event.dedupe_key) for event in written}
            lost += len(wanted - set(ids))
            doubled += len(ids) - len(set(ids)) + sum(event.actor == "user" for event in events) - len(wanted)
            for other, connection in databases.items():
                if other != database:
                    row = connection.execute(
                        "SELECT count(*) FROM memctl.deliveries JOIN memctl.spaces USING (space_id) WHERE name = %s",
                        [name],
                    ).fetchone()
                    left += row[0] if row else 0
            assert space_id(one, name, number) == number
            for at in range(0, len(events), 2_000):
                append(one, number, events[at : at + 2_000])
        drainer = Drainer(alone)
        catch_up(drainer)
        drainer.close()
        for name, (number, database) in numbers.items():
            there, here = digests(databases[database], number), digests(one, number)
            differing += [f"{name}: {each}" for each in there if there[each] != here[each]]
    report(f"differing: {differing[:20] or 'nothing'}")
    written = sum(map(len, load.kept.values()))
    return {"events": written, "lost": lost, "doubled": doubled, "left behind": left, "differing": len(differing)}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rate", type=float, default=1000.0, help="events/s over all spaces")
    asked.add_argument("--seconds", type=float, default=600.0, help="how long everything is disturbed")
    asked.add_argument("--calm", type=float, default=120.0, help="how long a writer sleeps, and does not, in turns")
    asked.add_argument("--calm-rate", type=float, help="events/s then, where it is not the rate")
    asked.add_argument("--spaces", type=int, default=40)
    asked.add_argument("--embedder", default="none")
    asked.add_argument("--json", type=Path)
    given = asked.parse_args()
    began = time.monotonic()

    def report(said: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {said}", file=sys.stderr, flush=True)

    for name in [name for name in os.environ if name.startswith("MEMCTL_")]:
        del os.environ[name]
    with contextlib.ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="memctl-fleet-")))
        os.environ.update({"MEMCTL_DATA_DIR": str(used(folder / "own")), "XDG_CONFIG_HOME": str(folder)})
        fleet = Fleet(folder, held, given.embedder)
        names = [f"s{n:02d}" for n in range(given.spaces)]
        for n, name in enumerate(names):
            spaces.create(fleet.settings(), name, ("", *NAMES[1:])[n % 3])
        report(f"{len(fleet.programs)} programs serve {len(names)} spaces")
        with Load(fleet, names, given.calm_rate or given.rate) as load:
            time.sleep(5)
            found: dict[str, float] = {"rate asked": given.rate}
            if given.calm:
                found |= beside_a_sleeper(fleet, load, names, given.calm)
                report(", ".join(f"{name} {value:,.2f}" for name, value in found.items()))
            load.rate = given.rate
            at, from_then = sum(map(len, load.kept.values())), time.monotonic()
            found["kills"] = disturbed(fleet, names, given.seconds, report)
            found["seconds"] = time.monotonic() - from_then
            found["rate"] = (sum(map(len, load.kept.values())) - at) / found["seconds"]
            found["requests tried again"] = load.refused
        found |= proven(fleet, load, report)
        assert load.problems == [], load.problems[:3]
        if given.json:
            given.json.write_text(json.dumps(found, indent=2))
    print("\n".join(f"{name}: {value:,.2f}" for name, value in found.items()))
    bad = [name for name in ("lost", "doubled", "left behind", "differing") if found[name]]
    sys.exit(f"not held: {', '.join(bad)}" if bad else 0)


if __name__ == "__main__":
    main()
