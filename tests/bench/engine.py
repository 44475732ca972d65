"""The log, the projection kernel and the workers, measured: rates, ratios, lag, memory, disk.

    python tests/bench/engine.py [FOLDER] [--events 10000,100000] [--only append,replay,lag] [--json FILE]

FOLDER holds transcripts to draw events from (default: the published ones, else the packaged example). Every
server is its own, embedded, with the durability that memctl ships with.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import peers
from generated import Cut, generate, read_sessions
from servers import start_valkey

from memctl.api.write.ingest_writer import IngestWriter
from memctl.domain.events.event import NewEvent
from memctl.infra.database import connect
from memctl.infra.embedded.postgres import start_postgres
from memctl.infra.log.append import append
from memctl.infra.log.migrate import migrate
from memctl.infra.readmodels import generations
from memctl.infra.settings_model import Settings

SHARDS = 1
"""As shipped: one worker."""
LOADERS = 2
BATCH = 1000

RATE, TICK_S, SESSIONS = 500, 0.02, 20
"""Of the lag: events a second, how often some of them arrive, and in how many sessions at once."""
WARM_UP_S = 5.0
"""How long they arrive before the lag counts: what a worker loads at its first batch is not what is sustained."""

REPLAY = """
import json, sys
from memctl.workers.rebuild.replay import replay
done = replay(sys.argv[1], None)
print(json.dumps({"events": done.events, "facts": done.facts, "seconds": done.seconds}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--events", default="10000,100000", help="how many to replay: several numbers, in order")
    parser.add_argument("--only", default="append,replay,lag", help="parts to measure")
    parser.add_argument("--lag-seconds", type=float, default=30.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    parts = given.only.split(",")
    figures: dict[str, Any] = {"machine": machine()}
    sessions: list[Cut] = []
    if {"replay", "lag"} & set(parts):
        sessions = read_sessions(given.folder)
        figures["drawn from"] = {"sessions": len(sessions), "events": sum(len(cut.events) for cut in sessions)}
    if "append" in parts:
        with database() as (url, _, _):
            figures["against eventsourcing"] = peers.measure(url)
    if "replay" in parts:
        figures["replay"] = {
            f"{number} events": measure_replay(sessions, number) for number in map(int, given.events.split(","))
        }
        costs = [found["replay, µs an event"] for found in figures["replay"].values()]
        figures["cost of an event, last against first"] = round(costs[-1] / costs[0], 2)
    if "lag" in parts:
        figures["lag"] = measure_lag(sessions, given.lag_seconds)
    show(figures)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n")


def machine() -> dict[str, Any]:
    return {
        "processors": os.cpu_count(),
        "memory GB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "python": platform.python_version(),
        "load before": round(os.getloadavg()[0], 1),
    }


@contextlib.contextmanager
def database() -> Iterator[tuple[str, Path, int]]:
    """An empty memctl database on a Postgres of its own, as durable as shipped: URL, folder, pid of the server."""
    with tempfile.TemporaryDirectory(prefix="memctl-bench-") as name:
        folder = Path(name) / "pg"
        folder.mkdir(mode=0o700)
        with start_postgres(folder) as server:
            migrate(server.url)
            with connect(server.url) as connection:
                for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                    assert connection.execute(f"SHOW {setting}".encode()).fetchone() == ("on",), setting
                generations.ensure_live(connection, SHARDS)
            yield server.url, folder, server.server.pid


def load(url: str, sessions: Sequence[Cut], number: int) -> dict[str, Any]:
    """Append generated events by several processes; returns rates."""
    began = time.monotonic()
    fork = multiprocessing.get_context("fork")
    with fork.Pool(LOADERS) as pool:
        done = pool.starmap(_load_part, [(url, sessions, number, part) for part in range(LOADERS)])
    seconds = time.monotonic() - began
    return {
        "events": sum(part[0] for part in done),
        "raw MB": round(sum(part[1] for part in done) / 1e6, 1),
        "load, generated and appended (events/s)": round(number / seconds),
        "load, appending alone, one process (events/s)": round(sum(p[0] for p in done) / sum(p[2] for p in done)),
    }


def _load_part(url: str, sessions: Sequence[Cut], number: int, part: int) -> tuple[int, int, float]:
    events: list[NewEvent] = []
    new, raw, spent = 0, 0, 0.0
    with connect(url) as connection:

        def put() -> None:
            nonlocal new, spent
            began = time.monotonic()
            new += sum(entry.status != "duplicate" for entry in append(connection, 1, events))
            spent += time.monotonic() - began
            events.clear()

        for made in generate(sessions, number, part=part, parts=LOADERS):
            events += made.events
            raw += made.raw_bytes
            if len(events) >= BATCH:
                put()
        put()
    return new, raw, spent


def measure_replay(sessions: Sequence[Cut], number: int) -> dict[str, Any]:
    with database() as (url, folder, server):
        figures = load(url, sessions, number)
        with connect(url) as connection:
            connection.execute("VACUUM (ANALYZE) memctl.events")
            connection.execute("CHECKPOINT")
        with Peak(server) as peak:
            before = _cpu_of(server)
            child = subprocess.Popen([sys.executable, "-c", REPLAY, url], stdout=subprocess.PIPE)
            peak.watch(child.pid)
            answer, _ = child.communicate()
            ours, postgres = peak.cpu_s, _cpu_of(server) - before
        if child.returncode:
            sys.exit("the replay failed")
        done = json.loads(answer)
        figures |= {
            "facts": done["facts"],
            "replay (s)": round(done["seconds"], 1),
            "replay (events/s)": round(done["events"] / done["seconds"]),
            "replay, µs an event": round(done["seconds"] / done["events"] * 1e6, 1),
            "CPU of memctl, µs an event": round(ours / done["events"] * 1e6, 1),
            "CPU of Postgres, µs an event": round(postgres / done["events"] * 1e6, 1),
            "peak MB, memctl": peak.ours,
            "peak MB, Postgres": peak.postgres,
        }
        return figures | {"disk MB": disk(url, folder, figures["raw MB"])}


def _cpu_of(server: int) -> float:
    """Seconds of processor time of a server, of its processes, and of those of them that have ended."""
    return sum(_spent(pid, with_ended=pid == server) for pid in family_of(server, process_parents()))


def _spent(pid: int, *, with_ended: bool = False) -> float:
    """Seconds of processor time of a process, and of those of it that it has seen end; 0 where it is gone."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11 : 15 if with_ended else 13])) / os.sysconf("SC_CLK_TCK")
    return 0.0


class Peak:
    """The largest memory seen, in MB: proportional set sizes, so what processes share counts once. And what processor
    time ours took, as last seen: who helps with a replay is killed, and no parent is given its figures."""

    def __init__(self, server: int) -> None:
        self._roots = {"postgres": server}
        self.ours = self.postgres = 0
        self._spent: dict[int, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def watch(self, pid: int) -> None:
        self._roots["ours"] = pid

    def _look(self) -> None:
        while not self._ended.wait(0.2):
            parents = process_parents()
            self.postgres = max(self.postgres, pss_mb(family_of(self._roots["postgres"], parents)))
            if "ours" in self._roots:
                family = family_of(self._roots["ours"], parents)
                self.ours = max(self.ours, pss_mb(family))
                self._spent |= {pid: spent for pid in family if (spent := _spent(pid))}

    @property
    def cpu_s(self) -> float:
        """Seconds of processor time of all of ours."""
        return sum(self._spent.values())

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


def process_parents() -> dict[int, int]:
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                found[int(entry)] = int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
    return found


def family_of(root: int, parents: dict[int, int]) -> set[int]:
    family, before = {root}, 0
    while len(family) > before:
        before = len(family)
        family |= {pid for pid, parent in parents.items() if parent in family}
    return family


def pss_mb(pids: set[int]) -> int:
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total // 1024


_SIZES = """
SELECT CASE WHEN c.relname = 'deliveries' OR c.relname ~ '^events(_|$)' THEN 'log'
            WHEN c.relname ~ '_g[0-9]+$' THEN regexp_replace(c.relname, '_g[0-9]+$', '') ELSE 'other tables' END,
       pg_table_size(c.oid), pg_indexes_size(c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'memctl' AND c.relkind = 'r'
  AND (c.relname !~ '_g[0-9]+$' OR substring(c.relname FROM '_g([0-9]+)$')::int IN
       (SELECT unnest(ARRAY[stage1, stage2]) FROM memctl.projection_state))
"""


def disk(url: str, folder: Path, raw_mb: float) -> dict[str, Any]:
    """MB by part; of read models, the live generation's. Vectors are not part of this run."""
    parts: dict[str, float] = {}
    with connect(url) as connection:
        for name, table, indexes in connection.execute(_SIZES).fetchall():
            parts[name] = parts.get(name, 0) + table / 1e6
            parts[f"{name}, indexes"] = parts.get(f"{name}, indexes", 0) + indexes / 1e6
        row = connection.execute("SELECT sum(size) FROM pg_ls_waldir()").fetchone()
        assert row is not None
        parts["write-ahead log"] = float(row[0]) / 1e6
    live = sum(parts.values())
    found: dict[str, Any] = {name: round(size, 1) for name, size in sorted(parts.items()) if size >= 0.1}
    found["all of it"] = round(live, 1)
    found["all of it / raw transcripts"] = round(live / raw_mb, 2)
    everything = sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())
    found["data directory, former generation included"] = round(everything / 1e6, 1)
    return found


def measure_lag(sessions: Sequence[Cut], seconds: float) -> dict[str, Any]:
    """Time from an event's commit to the moment stage 2's offset passes it, at 500 events a second."""
    sys.path.append(str(Path(__file__).parents[1]))
    from vector_server import vector_server

    with (
        tempfile.TemporaryDirectory(prefix="memctl-bench-") as name,
        database() as (url, _, _),
        start_valkey(_made(Path(name) / "valkey")) as valkey,
        vector_server(_made(Path(name) / "vectors")) as (vectors, token),
    ):
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MEMCTL_")}
        environment = {
            **kept, "MEMCTL_DATA_DIR": name, "MEMCTL_DATABASE_URL": url, "MEMCTL_REDIS_URL": valkey.url,
            "MEMCTL_QDRANT_URL": vectors, "MEMCTL_QDRANT_API_KEY": token, "MEMCTL_EMBEDDER": "none",
        }  # fmt: skip
        ready = Path(name) / "ready"
        argv = [sys.executable, "-m", "memctl.cli", "worker", "--ready-file", str(ready)]
        with subprocess.Popen(argv, env=environment) as worker:
            try:
                deadline = time.monotonic() + 60
                while not ready.exists():
                    if worker.poll() is not None or time.monotonic() > deadline:
                        sys.exit("the worker did not start")
                    time.sleep(0.02)
                settings = Settings(data_dir=Path(name), database_url=url, redis_url=valkey.url)
                return _lag(settings, url, sessions, seconds)
            finally:
                worker.terminate()


def _lag(settings: Settings, url: str, sessions: Sequence[Cut], seconds: float) -> dict[str, Any]:
    number = int(RATE * (WARM_UP_S + seconds))
    arriving = _interleaved(sessions, number)
    commits: list[tuple[float, int, int]] = []
    """When a batch was committed, its last position, its events."""
    reached: list[tuple[float, int]] = []
    ended = threading.Event()

    def watch() -> None:
        with connect(url, name="bench watch") as connection:
            live = generations.live(connection)
            while not ended.wait(0.004):
                offset = generations.lowest_offset(connection, live.stage2)
                if not reached or offset > reached[-1][1]:
                    reached.append((time.monotonic(), offset))

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    late = 0.0
    with IngestWriter(settings) as intake:
        size, began = int(RATE * TICK_S), time.monotonic()
        for tick, at in enumerate(range(0, number, size)):
            due = began + tick * TICK_S
            time.sleep(max(0.0, due - time.monotonic()))
            done = intake.record(arriving[at : at + size])
            commits.append((time.monotonic(), max(entry.position for entry in done.appended), size))
            late = max(late, commits[-1][0] - due)
        deadline = time.monotonic() + 60
        while (not reached or reached[-1][1] < commits[-1][1]) and time.monotonic() < deadline:
            time.sleep(0.02)
    ended.set()
    watching.join()
    lags: list[float] = []
    moves = iter(reached)
    move = next(moves, None)
    for committed, position, events in commits:
        while move is not None and move[1] < position:
            move = next(moves, None)
        if committed - began < WARM_UP_S:
            continue
        lags += [(move[0] - committed if move is not None else 60.0) * 1000] * events
    lags.sort()
    return {
        "events/s": round(number / (commits[-1][0] - began)),
        **{f"p{p} (ms)": round(lags[min(len(lags) - 1, len(lags) * p // 100)]) for p in (50, 95, 99)},
        "longest (ms)": round(lags[-1]),
        "slowest append after it was due (ms)": round(late * 1000),
    }


def _interleaved(sessions: Sequence[Cut], number: int) -> list[NewEvent]:
    """Events of `SESSIONS` sessions side by side, each in its own order, as hooks deliver them."""
    sources = generate(sessions, number * 2)
    lanes: list[list[NewEvent]] = [[] for _ in range(SESSIONS)]
    found: list[NewEvent] = []
    while len(found) < number:
        for n, lane in enumerate(lanes):
            if not lane:
                lanes[n] = lane = list(reversed(next(sources).events))
            found.append(lane.pop())
    return found[:number]


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    return folder


def show(figures: dict[str, Any], indent: int = 0) -> None:
    for label, value in figures.items():
        if isinstance(value, dict) and "ratio" in value:
            rates = "   ".join(f"{side} {rate:,}/s" for side, rate in value.items() if side != "ratio")
            print(f"{'':{indent}}{label:<46} {value['ratio']:>6} ×   {rates}")
        elif isinstance(value, dict):
            print(f"{'':{indent}}{label}")
            show(value, indent + 2)
        else:
            print(f"{'':{indent}}{label:<50} {value}")


if __name__ == "__main__":
    main()
