"""Search at scale: latency without embedding, memory, the build of indexes; over real texts repeated with variation.

    python tests/bench/search.py [FOLDER] [--memories 100000] [--queries 200] [--json FILE]

FOLDER holds sessions, by default the published ones (tests/published.py). Their memories are repeated, each time in
another project (20 of them), at another time, with a tenth of its words left out of the index. Dense vectors are drawn
around 512 random centres, since embedding so many texts takes hours: figures of time and memory mean something by them,
and no figure of quality. Queries are the titles of turns, with vectors near those of random memories. Everything runs
as it does live: Postgres, the vector server with its index built by a child, and the engine that serves searches.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import numpy
import orjson

sys.path.insert(0, str(Path(__file__).parents[1]))
from evaluation.metrics import percentile
from real_sessions import Store, published, store

from memctl.api.assist.prompts import CONSIDERED
from memctl.api.reading.caller import OWNER
from memctl.api.reading.places import Places
from memctl.api.reading.reader import Reader, Readers
from memctl.api.search.candidates import _Meaning
from memctl.api.search.corpus import CANDIDATES
from memctl.api.search.engine import Engine, Question
from memctl.domain.retrieval.ranking import ORDINARY
from memctl.domain.support.text import sparse
from memctl.infra.database import connect
from memctl.infra.embedders import NONE, Embedders
from memctl.infra.readmodels.generations import live
from memctl.infra.vectors import outbox
from memctl.infra.vectors.indexing import LEAST
from memctl.infra.vectors.searches import Searches
from memctl.infra.vectors.store import PointScope
from memctl.projections.memory_rows import Memory
from memctl.projections.vector_points import of_memory, points_of

PROJECTS = 20
CENTRES = 512
SPACE = "default"
DIMENSIONS = 384
BATCH = 500
INDEX_WAIT_S = 7_200
SPAN_US = 2 * 365 * 86_400_000_000
MODEL_CENTRES = numpy.random.default_rng(7).normal(size=(CENTRES, DIMENSIONS)).astype("f4")


class Drawn:
    """An embedder that draws vectors instead: the same for the same text."""

    name, dimensions, batch = "drawn", DIMENSIONS, 8

    def embed_query(self, text: str) -> Any:
        return vector_of(random.Random(text).randrange(CENTRES), random.Random(text).randrange(1 << 30))

    def embed_passages(self, texts: Sequence[str]) -> Any:
        return numpy.stack([self.embed_query(text) for text in texts])


def vector_of(centre: int, seed: int) -> Any:
    drawn = MODEL_CENTRES[centre] + 0.7 * numpy.random.default_rng(seed).normal(size=DIMENSIONS).astype("f4")
    return drawn / numpy.linalg.norm(drawn)


def batched(things: Iterable[Memory], size: int) -> Iterator[list[Memory]]:
    rest = iter(things)
    while part := list(islice(rest, size)):
        yield part


def varied(real: Sequence[Memory], wanted: int) -> Iterator[Memory]:
    """The memories again and again, each time elsewhere and at another time."""
    now = time.time_ns() // 1000
    chance = random.Random(3)
    for number in range(wanted):
        each = real[number % len(real)]
        place = f"/work/p{number % PROJECTS}"
        yield msgspec.structs.replace(
            each,
            id=f"{each.id}-{number}",
            location=place,
            locations=(place,),
            before=f"{each.id}-{number - PROJECTS * len(real)}" if each.kind == "turn" else "",
            occurred_at=now - chance.randrange(SPAN_US),
        )


def fill(settings: dict[str, Any], wanted: int) -> list[str]:
    """Remember so many memories more; returns titles to search for."""
    with connect(settings["database_url"]) as connection:
        generation = live(connection).stage2
        memories, points = (f"memctl.{name}_g{generation}" for name in ("memories", "vector_points"))
        rows = connection.execute(
            f"SELECT row::text FROM {memories} WHERE row->>'kind' IN ('turn', 'episode')"
        ).fetchall()
        real = [msgspec.json.decode(row[0], type=Memory) for row in rows]
        collection = outbox.collection_of(connection, generation)
        chance = random.Random(4)
        words = [sparse(of_memory(memory).sparse_text) for memory in real]
        number = 0
        for part in batched(varied(real, wanted), BATCH):
            stand = [point for memory in part for point in points_of(memory)]
            for table, things in ((memories, part), (points, stand)):
                with connection.cursor().copy(f"COPY {table} (space_id, key, row) FROM STDIN") as copy:
                    for thing in things:
                        copy.write_row((1, thing.id, msgspec.json.encode(thing).decode()))
            body = []
            for point in stand:
                vectors: dict[str, Any] = {
                    "dense": vector_of(chance.randrange(CENTRES), chance.randrange(1 << 30)).tolist()
                }
                if not point.chunk:  # a line has no words of its own
                    indices, values = words[number % len(real)]
                    kept = [place for place in range(len(indices)) if chance.random() > 0.1]
                    if kept:
                        vectors["sparse"] = {"indices": [indices[k] for k in kept], "values": [values[k] for k in kept]}
                    number += 1
                body.append({"id": point.id, "payload": outbox.payload_of(point, SPACE), "vector": vectors})
            ask(settings, "PUT", f"/collections/{collection}/points?wait=true", {"points": body})
        connection.execute(f"ANALYZE {memories}")
        return sorted({memory.title for memory in real if memory.kind == "turn" and len(memory.title) > 20})


def indexed_share(settings: dict[str, Any]) -> float:
    with connect(settings["database_url"]) as connection:
        collection = outbox.collection_of(connection, live(connection).stage2)
    told = ask(settings, "GET", f"/collections/{collection}", None)
    return float(told["indexed_vectors_count"] / 2 / max(told["points_count"], 1))


def ask(settings: dict[str, Any], method: str, path: str, body: Any) -> Any:
    url = urlsplit(settings["qdrant_url"])
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=60)
    try:
        connection.request(
            method,
            path,
            None if body is None else orjson.dumps(body),
            {"api-key": settings["qdrant_api_key"], "Content-Type": "application/json"},
        )
        answer = connection.getresponse()
        told = orjson.loads(answer.read())
        if answer.status != 200:
            sys.exit(f"the vector server said {answer.status}: {told}")
        return told["result"]
    finally:
        connection.close()


@contextmanager
def engine_of(settings: dict[str, Any]) -> Iterator[Engine]:
    engine = Engine(settings["qdrant_url"], settings["qdrant_api_key"], Embedders(NONE))
    engine.warm_up()
    drawn = _Meaning(Drawn(), Drawn().embed_passages(ORDINARY))
    # The collection is of no model: its vectors were drawn, too.
    engine._sources._meaning = drawn
    engine._sources._embedded = lambda recipe, text: (drawn, drawn.embedder.embed_query(text))  # type: ignore[method-assign]
    try:
        yield engine
    finally:
        engine.close()


def measured(settings: dict[str, Any], titles: Sequence[str], **narrowed: Any) -> dict[str, float]:
    """Percentiles of searches, each over a snapshot of its own, in milliseconds, and of the very first ten."""
    readers = Readers(settings["database_url"], SPACE)
    took: list[float] = []

    def search(title: str, number: int) -> None:
        def answer(reader: Reader) -> None:
            place = f"/work/p{number % PROJECTS}"
            places = (
                Places(None, "everywhere", None) if narrowed.get("everywhere") else Places(place, "asked", (place,))
            )
            wanted = {name: value for name, value in narrowed.items() if name != "everywhere"}
            asked = Question(query=title, places=places, now=datetime.now(UTC), **wanted)
            engine.search(reader, asked)

        began = time.perf_counter()
        readers.read(answer, OWNER)
        took.append((time.perf_counter() - began) * 1000)

    try:
        with engine_of(settings) as engine:
            for number, title in enumerate(titles):
                search(title, number)
    finally:
        readers.close()
    warm = took[10:]
    return {
        "first": took[0],
        "p50": percentile(warm, 0.50),
        "p95": percentile(warm, 0.95),
        "p99": percentile(warm, 0.99),
    }


def asked_bare(settings: dict[str, Any], titles: Sequence[str]) -> dict[str, float]:
    """Percentiles (ms) of the vector engine's own hybrid query, one round trip, for the same titles and candidates."""
    with connect(settings["database_url"]) as connection:
        collection = outbox.collection_of(connection, live(connection).stage2)
    searches, took = Searches(settings["qdrant_url"], settings["qdrant_api_key"]), []
    for number, title in enumerate(titles):
        scope = PointScope(SPACE, locations=[f"/work/p{number % PROJECTS}"])
        dense, words = Drawn().embed_query(title), sparse(title)
        began = time.perf_counter()
        searches.hybrid(collection, scope, dense=dense, sparse=words, limit=CANDIDATES)
        took.append((time.perf_counter() - began) * 1000)
    searches.close()
    return {"p50": percentile(took[10:], 0.50), "p95": percentile(took[10:], 0.95)}


@contextmanager
def writing(settings: dict[str, Any]) -> Iterator[None]:
    """Fifty points a second are written while the block runs."""
    with connect(settings["database_url"]) as connection:
        collection = outbox.collection_of(connection, live(connection).stage2)
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.wait(0.2):
            points = [
                {
                    "id": str(uuid.uuid4()),
                    "payload": {"space": SPACE, "memory_id": "", "occurred_at": 0},
                    "vector": {"dense": vector_of(1, number).tolist()},
                }
                for _ in range(10)
            ]
            ask(settings, "PUT", f"/collections/{collection}/points?wait=true", {"points": points})

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def process_of(folder: Path, program: str) -> Path | None:
    """A process of this instance in /proc, by the words of its command."""
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().decode("utf-8", "replace").replace("\0", " ")
            where = (process / "cwd").readlink()
        except OSError:
            continue
        if program in words and "launch" not in words and (str(folder) in words or where == folder):
            return process
    return None


def resident_mb(folder: Path, program: str) -> float:
    process = process_of(folder, program)
    if process is None:
        return float("nan")
    return round(int((process / "status").read_text().split("VmRSS:")[1].split()[0]) / 1024, 0)


def cpu_s(process: Path | None) -> float:
    """Seconds of the processor that a process has used."""
    if process is None:
        return float("nan")
    used = (process / "stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")


def measure(one: Store, sessions: Path, wanted: int, queries: int) -> dict[str, Any]:
    figures: dict[str, Any] = {"memories": wanted}
    one("ingest", str(sessions), "--wait")
    settings = one("config", "--json")
    settings = {name: value.get("value") if isinstance(value, dict) else value for name, value in settings.items()}
    began = time.monotonic()
    titles = fill(settings, wanted)
    figures["written (s)"] = round(time.monotonic() - began, 1)
    chosen = random.Random(5).choices(titles, k=queries + 10)

    def row(name: str, **narrowed: Any) -> None:
        server = process_of(one.folder, "infra.vectors.server")
        ours, theirs = time.process_time(), cpu_s(server)
        told = measured(settings, chosen, **narrowed)
        # Other work on the machine moves these two much less than the times.
        told["cpu"] = (time.process_time() - ours) * 1000 / len(chosen)
        told["server cpu"] = (cpu_s(server) - theirs) * 1000 / len(chosen)
        figures[name] = {key: round(value, 1) for key, value in told.items()}
        print(f"{name:<44}" + "  ".join(f"{key} {value:.1f}" for key, value in figures[name].items()), flush=True)

    began = time.monotonic()
    row("no index yet, everywhere", everywhere=True)
    while wanted >= LEAST and indexed_share(settings) < 0.8 and time.monotonic() - began < INDEX_WAIT_S:
        time.sleep(2)
    figures["indexed share"] = round(indexed_share(settings), 3)
    figures["indexed after (s)"] = round(time.monotonic() - began, 1)
    print(f"indexed {figures['indexed share']:.0%} after {figures['indexed after (s)']} s", flush=True)
    row("one project of twenty")
    row("one project, episodes only", kinds=("episode",))
    row("one project, at a prompt", settled=True, limit=CONSIDERED)
    row("everywhere", everywhere=True)
    with writing(settings):
        row("one project, 50 points/s written")
        bare = asked_bare(settings, chosen)
    figures["the engine's own hybrid query"] = {key: round(value, 1) for key, value in bare.items()}
    print(f"{'the same by the engine itself':<44}{bare}", flush=True)
    figures["vector server (MB)"] = resident_mb(one.folder, "infra.vectors.server")
    one("down")
    one("up")
    settings = one("config", "--json")
    settings = {name: value.get("value") if isinstance(value, dict) else value for name, value in settings.items()}
    row("after a restart, one project")
    one("search", chosen[0], "--project", "*", "--json")
    figures["vector server, restarted (MB)"] = resident_mb(one.folder, "infra.vectors.server")
    figures["API (MB)"] = resident_mb(one.folder, "memctl.cli serve")
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with published.sessions(given.folder) as real, tempfile.TemporaryDirectory(prefix="memctl-bench-") as name:
        work = Path(name)
        with store(work / "one") as one:
            figures = measure(one, real.resolve(), given.memories, given.queries)
        shutil.rmtree(work, ignore_errors=True)
    for label, value in figures.items():
        if not isinstance(value, dict):
            print(f"{label:<44}{value}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
