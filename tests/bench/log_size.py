"""What an append costs as the log grows, and what its indexes take: one log of 100,000 events beside one that grows.

    python tests/bench/log_size.py [--events 1000000,10000000,20000000] [--json FILE]

Both stand in one server, embedded, as durable as shipped. Appends to them alternate, so what else the machine does
falls on both. Payloads are small (some 100 B): the share of indexes is the largest then.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from engine import machine, show

from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.observations import PromptSubmitted
from memctl.infra.database import Connection, connect
from memctl.infra.embedded.postgres import start_postgres
from memctl.infra.log.append import append
from memctl.infra.log.migrate import migrate
from memctl.infra.log.partitions import make_partitions
from memctl.infra.log.read import read_stream

SMALL = 100_000
CALL = 2_000
"""Events of a call that fills."""
FILLERS = 2
ROUNDS, SINGLES, BATCHES, BATCH = 20, 150, 3, 1000
"""Of a measurement: how often it turns from one log to the other, and what it appends each time."""
STREAMS, OF_A_STREAM = 20, 600
"""Sessions at once, and how many events each has."""

FILL = """
SELECT memctl.append_events(1, array_agg(md5(n || %(salt)s)::uuid), array_agg(stream), array_agg(get_byte(
        sha256(convert_to(stream, 'UTF8')), 0)::int2), array_agg('prompt.submitted'::text), array_agg(1::int2),
    array_agg(1700000000000000 + n * 1000), array_agg('user'::text), array_agg('/home/dana/project'::text),
    array_agg(substr(stream, 21)), NULL, NULL, array_agg('line:' || n || ':' || %(salt)s), NULL, NULL,
    array_agg(decode(md5(n::text), 'hex')),
    array_agg(format('{"line": "%%s", "text": "%%s"}', md5(n::text), repeat(md5((n + 1)::text), 2))))
FROM (SELECT n, 'session/claude-code/' || md5(%(salt)s || (n %% %(streams)s) || '-' || n / (%(streams)s * %(of)s))
      FROM generate_series(%(first)s::int8, %(last)s::int8) AS n) AS g(n, stream)
"""

SIZES = """
SELECT coalesce(sum(pg_indexes_size(c.oid)) FILTER (WHERE relname NOT LIKE '%deliveries'), 0)::int8,
       coalesce(sum(pg_indexes_size(c.oid)) FILTER (WHERE relname LIKE '%deliveries'), 0)::int8,
       coalesce(sum(pg_table_size(c.oid)) FILTER (WHERE relname LIKE '%deliveries'), 0)::int8,
       coalesce(sum(pg_table_size(c.oid)) FILTER (WHERE relname NOT LIKE '%deliveries'), 0)::int8
FROM pg_class c WHERE relnamespace = 'memctl'::regnamespace AND relkind = 'r'
    AND (relname LIKE '%deliveries' OR relname = 'events' OR relname LIKE 'events\\_%')
"""


class Log:
    """A database of the server's, how many events were put there, and a connection to it."""

    def __init__(self, server: str, name: str, schema: str | None = None) -> None:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        self.url = server.replace("/memctl?", f"/{name}?", 1)
        migrate(self.url, schema)
        self.connection: Connection = connect(self.url)
        self.events = 0
        self.parted = schema is None

    def fill(self, upto: int) -> None:
        """Append small events until there are so many, by several connections."""
        share = (upto - self.events) // FILLERS
        parts = [(self.events + n * share, share, f"{upto}-{n}") for n in range(FILLERS)]
        threads = [threading.Thread(target=self._fill, args=part) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.events = upto
        self.connection.execute("VACUUM (ANALYZE) memctl.events")
        self.connection.execute("VACUUM (ANALYZE) memctl.deliveries")
        self.connection.execute("CHECKPOINT")

    def _fill(self, first: int, count: int, salt: str) -> None:
        with connect(self.url) as connection:
            for at in range(first, first + count, CALL):
                last = min(at + CALL, first + count) - 1
                given = {"first": at, "last": last, "salt": salt, "streams": STREAMS, "of": OF_A_STREAM}
                connection.execute(FILL, given)
                if self.parted:  # as the workers' sweeper does
                    make_partitions(connection)

    def written(self) -> int:
        """Bytes that Postgres has put into its own log, of all databases."""
        row = self.connection.execute("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')").fetchone()
        return int(row[0]) if row else 0

    def sizes(self) -> dict[str, float]:
        """Bytes an event of its indexes and of its tables."""
        row = self.connection.execute(SIZES).fetchone()
        count = self.connection.execute("SELECT count(*) FROM memctl.events").fetchone()
        assert row is not None
        assert count is not None
        names = ("indexes of events", "index of deliveries", "table of deliveries", "table of events")
        found = {name: round(size / count[0], 1) for name, size in zip(names, row, strict=True)}
        return found | {"indexes, all": round(found["indexes of events"] + found["index of deliveries"], 1)}


def event(session: str, number: int) -> NewEvent:
    return NewEvent(
        stream=f"session/claude-code/{session}", occurred_at=Micros(1_700_000_000_000_000 + number), actor="user",
        location="/home/dana/project", session_id=session, dedupe_key=f"{session}:{number}",
        payload=PromptSubmitted(text=f"{uuid4()} {uuid4()}"),
    )  # fmt: skip


def processor_us(log: Log) -> float:
    """µs of processor time that the server's process of the log's connection has used."""
    return int(Path(f"/proc/{log.connection.info.backend_pid}/schedstat").read_text().split()[0]) / 1000


def measure(logs: dict[str, Log]) -> dict[str, Any]:
    """µs of a single append and of an event of a batch, and ms to read a stream of 600, by log; medians, in turns."""
    single: dict[str, list[float]] = {name: [] for name in logs}
    worked: dict[str, list[float]] = {name: [] for name in logs}
    worked_batched: dict[str, list[float]] = {name: [] for name in logs}
    batched: dict[str, list[float]] = {name: [] for name in logs}
    read: dict[str, list[float]] = {name: [] for name in logs}
    written: dict[str, list[float]] = {name: [] for name in logs}
    for _ in range(ROUNDS):
        for name, log in logs.items():
            session, before = uuid4().hex, processor_us(log)
            for number in range(SINGLES):
                began = time.perf_counter()
                append(log.connection, 1, [event(session, number)])
                single[name].append((time.perf_counter() - began) * 1e6)
            worked[name].append((processor_us(log) - before) / SINGLES)
            for part in range(BATCHES):
                session = uuid4().hex
                events, wal = [event(session, number + part) for number in range(BATCH)], log.written()
                began, before = time.perf_counter(), processor_us(log)
                append(log.connection, 1, events)
                worked_batched[name].append((processor_us(log) - before) / BATCH)
                batched[name].append((time.perf_counter() - began) * 1e6 / BATCH)
                written[name].append((log.written() - wal) / BATCH)
                began = time.perf_counter()
                assert len(read_stream(log.connection, 1, events[0].stream)) == BATCH
                read[name].append((time.perf_counter() - began) * 1e6 / BATCH)
            log.events += SINGLES + BATCHES * BATCH
    return {
        name: {
            "one append, µs": round(statistics.median(single[name])),
            "one append, mean µs": round(statistics.mean(single[name])),
            "of a batch, µs an event": round(statistics.median(batched[name]), 1),
            "of a batch, mean µs an event": round(statistics.mean(batched[name]), 1),
            "one append, µs of its server process": round(statistics.mean(worked[name])),
            "of a batch, µs of its server process": round(statistics.mean(worked_batched[name]), 1),
            "reading a stream, µs an event": round(statistics.median(read[name]), 2),
            "of a batch, bytes of WAL an event": round(statistics.mean(written[name])),
        }
        for name in logs
    }


def ratios(ours: dict[str, float], theirs: dict[str, float]) -> dict[str, float]:
    return {of: round(ours[of] / each, 2) for of, each in theirs.items() if each}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", default="1000000,10000000,20000000", help="sizes to grow to, in order")
    parser.add_argument("--against", help="measure the small log against one of this schema, such as 0017")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    figures: dict[str, Any] = {"machine": machine()}
    with tempfile.TemporaryDirectory(prefix="memctl-bench-") as name:
        folder = Path(name) / "pg"
        folder.mkdir(mode=0o700)
        with start_postgres(folder) as server:
            small, grown = Log(server.url, "small"), Log(server.url, "grown")
            small.fill(SMALL)
            if given.against:
                before = Log(server.url, "before", given.against)
                before.fill(SMALL)
                found = measure({"before": before, "now": small})
                figures[f"schema {given.against} and this, {SMALL:,} events"] = {
                    **found,
                    "now / before": ratios(found["now"], found["before"]),
                    "bytes an event before": before.sizes(),
                    "bytes an event now": small.sizes(),
                }
                before.connection.close()
            for number in map(int, filter(None, given.events.split(","))):
                began = time.monotonic()
                grown.fill(number)
                filled = round((time.monotonic() - began) / 60, 1)
                found = measure({"small": small, "grown": grown})
                figures[f"{number:,} events"] = {
                    "minutes to fill": filled, **found,
                    "grown / small": ratios(found["grown"], found["small"]), "bytes an event": grown.sizes(),
                }  # fmt: skip
                print(json.dumps(figures[f"{number:,} events"]), flush=True)
            small.connection.close()
            grown.connection.close()
    show(figures)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
