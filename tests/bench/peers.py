"""Append and read against the `eventsourcing` package: same Postgres, same payloads, same durability, turn by turn.

Both sides get typed payloads and hand typed payloads back, encoded by msgspec. The peer is its Postgres application
recorder by itself, without aggregates or mapper, in both of its modes: as it comes, and with
POSTGRES_ENABLE_DB_FUNCTIONS, which its documentation names as the faster. The better of the two is compared with.
Ours goes through the same call as every door's: keys, hashes, salts and duplicates included. Beside a single append
stands a bare INSERT: the same row, made before, into a table of the same columns with a primary key and no other index.
"""

from __future__ import annotations

import random
import statistics
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from memctl.domain.events.event import Micros, NewEvent, Position
from memctl.domain.events.observations import ToolReturned, session_stream, transcript_key
from memctl.infra.database import connect
from memctl.infra.log.append import append
from memctl.infra.log.mark import move_mark
from memctl.infra.log.read import read_range, read_streams

SIZES = (100, 1500)
"""Characters of text in a payload."""

ROUNDS = 3
ONE, BATCHED, BATCH, WRITERS, PER_WRITER = 200, 5000, 500, 16, 25
PER_STREAM = 100
REREAD = 10

_PIPELINED = 100_000
"""Bytes. As it comes the peer sends a batch in libpq's pipeline mode, which stood still for ever beyond some hundred
thousand bytes (psycopg 3.3); larger batches are measured with its database functions only."""

_turn = count()
_decoder = msgspec.json.Decoder(ToolReturned)


def measure(url: str) -> dict[str, Any]:
    """Rates in events a second by size and kind of work: ours, the peer's two, and the ratio to its better one."""
    figures: dict[str, Any] = {}
    with _peer(url, functions=False) as plain, _peer(url, functions=True) as quick:
        sides: dict[str, _Side] = {"memctl": _Ours(url), "eventsourcing": plain, "eventsourcing, functions": quick}
        bare = _bare_insert(url)
        for size in SIZES:
            rates: dict[str, dict[str, list[float]]] = {}
            inserted = []
            for _ in range(ROUNDS):
                inserted.append(bare(_events(ONE, size)))
                for side, works in sides.items():
                    for work, rate in _round(works, size, skip_batches=side == "eventsourcing"):
                        rates.setdefault(work, {}).setdefault(side, []).append(rate)
            for work, by_side in rates.items():
                found = {side: round(statistics.median(measured)) for side, measured in by_side.items()}
                best = max(rate for side, rate in found.items() if side != "memctl")
                figures[f"{work}, {size} B"] = {**found, "ratio": round(found["memctl"] / best, 2)}
            ours = figures[f"append, one event a commit, {size} B"]
            ours["bare INSERT"] = round(statistics.median(inserted))
            ours["ratio to a bare INSERT"] = round(ours["memctl"] / ours["bare INSERT"], 2)
        sides["memctl"].close()
    return figures


def _bare_insert(url: str) -> Callable[[Sequence[NewEvent]], float]:
    """Inserts rows one a commit, and returns how many a second."""
    columns = (
        "position, event_id, space_id, stream, stream_hash, type, schema_version, occurred_at, actor, location,"
        " session_id, dedupe_key, salt, payload_hash, payload"
    )
    connection, copied = connect(url), connect(url)
    connection.execute("CREATE TABLE public.bare (LIKE memctl.events INCLUDING DEFAULTS, PRIMARY KEY (position))")
    statement = f"INSERT INTO public.bare ({columns}) VALUES ({', '.join(['%b'] * 14)}, %s::jsonb)".encode()

    def rate(events: Sequence[NewEvent]) -> float:
        positions = [answer.position for answer in append(copied, 1, events)]
        rows = copied.execute(
            f"SELECT {columns}::text FROM memctl.events WHERE position = ANY(%s)".encode(), [positions]
        ).fetchall()
        return _rate(len(rows), lambda: [connection.execute(statement, row) for row in rows])

    return rate


class _Side:
    """One log. `put` appends one batch in one transaction; `readers` give it back."""

    def put(self, events: Sequence[NewEvent]) -> None:
        raise NotImplementedError

    def writer(self) -> tuple[Callable[[Sequence[NewEvent]], None], Callable[[], None]]:
        """What one of several threads appends with, and what ends it."""
        raise NotImplementedError

    def read_all(self) -> int:
        raise NotImplementedError

    def read_stream(self, stream: str) -> int:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class _Ours(_Side):
    def __init__(self, url: str) -> None:
        self.url = url
        self.connection = connect(url)

    def put(self, events: Sequence[NewEvent]) -> None:
        append(self.connection, 1, events)

    def writer(self) -> tuple[Callable[[Sequence[NewEvent]], None], Callable[[], None]]:
        connection = connect(self.url)
        return lambda events: append(connection, 1, events) and None, connection.close

    def read_all(self) -> int:
        at, read = Position(0), 0
        upto = move_mark(self.connection)
        while found := read_range(self.connection, at, upto, limit=2000).events:
            at, read = found[-1].position, read + len(found)
        return read

    def read_stream(self, stream: str) -> int:
        return sum(map(len, read_streams(self.connection, [(1, stream)], Position(2**62)).values()))

    def close(self) -> None:
        self.connection.close()


class _Peer(_Side):
    def __init__(self, recorder: Any) -> None:
        from eventsourcing.persistence import StoredEvent

        self.recorder, self.stored = recorder, StoredEvent

    def put(self, events: Sequence[NewEvent]) -> None:
        self.recorder.insert_events(
            [
                self.stored(uuid.UUID(e.session_id), e.payload.block, "tool.returned", msgspec.json.encode(e.payload))
                for e in events
                if isinstance(e.payload, ToolReturned)
            ]
        )

    def writer(self) -> tuple[Callable[[Sequence[NewEvent]], None], Callable[[], None]]:
        return self.put, lambda: None

    def read_all(self) -> int:
        at, read = 1, 0
        while found := self.recorder.select_notifications(at, 2000):
            payloads = [_decoder.decode(each.state) for each in found]
            at, read = found[-1].id + 1, read + len(payloads)
        return read

    def read_stream(self, stream: str) -> int:
        found = self.recorder.select_events(uuid.UUID(stream.rpartition("/")[2]))
        return len([_decoder.decode(each.state) for each in found])


@contextmanager
def _peer(url: str, *, functions: bool) -> Iterator[_Side]:
    from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore

    parts = urlsplit(url)
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    schema = f"peer_{'functions' if functions else 'plain'}"
    with connect(url) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
    store = PostgresDatastore(
        parts.path.strip("/"), parse_qs(parts.query)["host"][0], 5432, user, unquote(password),
        pool_size=WRITERS, schema=schema, enable_db_functions=functions,
    )  # fmt: skip
    with store:
        recorder = PostgresApplicationRecorder(store)
        recorder.create_table()
        yield _Peer(recorder)


def _round(side: _Side, size: int, *, skip_batches: bool) -> Iterator[tuple[str, float]]:
    singles = _events(ONE, size)
    yield "append, one event a commit", _rate(ONE, lambda: [side.put([event]) for event in singles])
    if not skip_batches or BATCH * size < _PIPELINED:
        many = _events(BATCHED, size)
        batches = [many[at : at + BATCH] for at in range(0, BATCHED, BATCH)]
        yield f"append, {BATCH} a commit", _rate(BATCHED, lambda: [side.put(batch) for batch in batches])
    writers = [(side.writer(), _events(PER_WRITER, size)) for _ in range(WRITERS)]
    with ThreadPoolExecutor(WRITERS) as pool:
        work = [lambda put=put, events=events: [put([e]) for e in events] for (put, _), events in writers]
        rate = _rate(WRITERS * PER_WRITER, lambda: [done.result() for done in [pool.submit(each) for each in work]])
    yield f"append, one event a commit, {WRITERS} writers", rate
    for (_, close), _ in writers:
        close()
    streams = sorted({e.stream for e in singles}) * REREAD
    yield "read, a stream at a time", _rate(ONE * REREAD, lambda: [side.read_stream(stream) for stream in streams])
    began = time.perf_counter()
    read = side.read_all()
    yield "read, the whole log in order", read / (time.perf_counter() - began)


def _rate(events: int, work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return events / (time.perf_counter() - began)


def _events(number: int, size: int) -> list[NewEvent]:
    """Events of new streams of `PER_STREAM` each, numbered within it by `block`."""
    luck = random.Random(next(_turn))
    words = ["return", "import", "error", "the", "module", "path/to", "assert", "None", "self"]
    found = []
    for n in range(number):
        if n % PER_STREAM == 0:
            session = str(uuid.UUID(int=luck.getrandbits(128)))
        text = " ".join(f"{luck.choice(words)}{luck.randrange(10**5)}" for _ in range(size // 9 + 1))[:size]
        line = str(uuid.UUID(int=luck.getrandbits(128)))
        found.append(
            NewEvent(
                stream=session_stream("claude-code", session),
                payload=ToolReturned(line=line, block=n % PER_STREAM, text=text, tool="Bash"),
                occurred_at=Micros(1_772_452_800_000_000 + n),
                dedupe_key=transcript_key("claude-code", session, line, n % PER_STREAM),
                actor="tool",
                location="/home/dana/ledger",
                session_id=session,
            )
        )
    return found
