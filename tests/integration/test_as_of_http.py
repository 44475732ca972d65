"""Memory as it was, over HTTP: the job first, then the answer, for as long as it is looked at."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from apis import TOKEN, Api, problem_of
from asked import Remembered
from click.testing import CliRunner
from waiting import until

from memctl.api.client import NotYet
from memctl.cli import connection as asking
from memctl.cli.ask import read, work
from memctl.domain.events.event import Position
from memctl.infra.database import Connection, connect
from memctl.infra.readmodels import as_of_snapshots as glances
from memctl.infra.readmodels import generations
from memctl.workers.erasure.erase import nothing_rebuilt
from memctl.workers.runtime.as_of_builder import AsOfBuilder


@pytest.fixture(scope="module")
def log(memory: Remembered) -> Iterator[Connection]:
    with connect(memory.database_url) as connection:
        yield connection


@contextlib.contextmanager
def building(memory: Remembered, kept_s: float = 60.0) -> Iterator[None]:
    """A worker that builds what is asked for."""
    stop = threading.Event()
    thread = threading.Thread(target=AsOfBuilder(memory.database_url, kept_s).run, args=[stop])
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)


@pytest.fixture(scope="module")
def worker(memory: Remembered) -> Iterator[None]:
    with building(memory):
        yield


@pytest.fixture(scope="module")
def before_atlas(log: Connection) -> int:
    """The last position at which project atlas was not heard of yet."""
    row = log.execute("SELECT min(position) - 1 FROM memctl.events WHERE session_id = 'atlas1'").fetchone()
    assert row is not None
    return int(row[0])


def answered(api: Api, path: str) -> Any:
    """The answer once it is there; that it was promised first is part of it."""

    def ready() -> bool:
        return api.ask(path)[0] != 202

    until(ready, "memory as it was")
    status, _, body = api.ask(path)
    assert status == 200, body
    return json.loads(body)


def test_a_verb_says_why_memory_as_it_was_could_not_be_built(
    api: Api, log: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = "UPDATE memctl.glances SET status = 'failed', message = 'no room' WHERE status = 'asked'"
    monkeypatch.setattr(asking.time, "sleep", lambda _: log.execute(failing))
    done = CliRunner(env=api.environment).invoke(read.history, ["--as-of", "5"])
    assert isinstance(done.exception, asking.NotBuilt)
    assert "no room" in str(done.exception)
    assert done.stdout == ""
    log.execute(failing)


def test_a_verb_waits_until_memory_as_it_was_is_there(api: Api, worker: None, before_atlas: int) -> None:
    def projects(*more: str) -> set[str]:
        done = CliRunner(env=api.environment).invoke(work.tasks, ["--project", "*", "--json", *more])
        assert done.exit_code == 0, done.output
        return {each["project"] for each in json.loads(done.stdout)}

    assert projects("--as-of", str(before_atlas - 1)) == {"ledger"}
    assert projects() == {"ledger", "atlas"}


def test_first_the_job_is_named_then_memory_answers_as_it_was(api: Api, worker: None, before_atlas: int) -> None:
    path = f"/v1/sessions?as_of={before_atlas}"
    status, headers, body = api.ask(path)
    assert status == 202
    job = json.loads(body)
    assert headers["location"] == f"/v1/jobs/{job['id']}"
    assert (job["status"], job["position"]) == ("asked", before_atlas)

    def at() -> str:
        return str(json.loads(api.ask(headers["location"])[2])["status"])

    until(lambda: at() == "ready", "the job")
    then = answered(api, path)["items"]
    assert {each["project"] for each in then} == {"ledger"}
    now = json.loads(api.ask("/v1/sessions")[2])["items"]
    assert {each["project"] for each in now} == {"ledger", "atlas"}


def test_a_search_finds_what_was_known_then_and_no_more(api: Api, worker: None, before_atlas: int) -> None:
    coast = "/v1/search?q=coastline+of+Iceland&limit=20"
    money = f"/v1/search?q=Decimal+for+money&as_of={before_atlas}"
    assert "atlas" not in {each["project"] for each in answered(api, f"{coast}&as_of={before_atlas}")["results"]}
    assert "atlas" in {each["project"] for each in json.loads(api.ask(coast)[2])["results"]}
    assert answered(api, money)["results"]
    assert answered(api, f"/v1/projects?as_of={before_atlas}")["items"][0]["name"] == "ledger"


def test_the_next_request_on_the_same_connection_reads_memory_as_it_is(
    api: Api, worker: None, before_atlas: int
) -> None:
    answered(api, f"/v1/sessions?as_of={before_atlas}")

    def asked(path: str, connection: str) -> bytes:
        lines = (
            f"GET {path} HTTP/1.1",
            "Host: localhost",
            f"Authorization: Bearer {TOKEN}",
            f"Connection: {connection}",
        )
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    # Both at once: the server takes the second up while it is at the first, in its context.
    with socket.create_connection(("127.0.0.1", api.port), 30) as line, line.makefile("rb") as answers:
        line.sendall(asked(f"/v1/sessions?as_of={before_atlas}", "keep-alive") + asked("/v1/sessions", "close"))
        told = answers.read()
    bodies = re.findall(rb'^\{"items".*\}(?=HTTP/1.1|$)', told, re.MULTILINE)
    projects = [{each["project"] for each in json.loads(body)["items"]} for body in bodies]
    assert projects == [{"ledger"}, {"ledger", "atlas"}]


def test_before_the_first_word_nothing_was_known(api: Api, worker: None) -> None:
    assert answered(api, "/v1/memories?as_of=2001-01-01")["items"] == []


@pytest.mark.parametrize("moment", ["yesterday", "-1", "99999999999999999999", "2026-13-01", "1e3"])
def test_what_is_no_moment_that_was_is_badly_asked(api: Api, moment: str) -> None:
    assert problem_of(api.ask(f"/v1/memories?as_of={moment}"))["status"] == 422


def test_a_job_that_never_was_is_not_there(api: Api) -> None:
    assert problem_of(api.ask("/v1/jobs/424242"))["status"] == 404
    assert problem_of(api.ask("/v1/jobs/0"))["status"] == 422


def test_two_that_ask_for_one_moment_get_one_job(api: Api, log: Connection) -> None:
    first, second = (json.loads(api.ask("/v1/memories?as_of=1")[2])["id"] for _ in range(2))
    assert first == second
    with api.client() as client, pytest.raises(NotYet):
        client.page("memories", dict, as_of="1")


def test_a_request_that_is_badly_asked_asks_for_no_moment(api: Api, log: Connection) -> None:
    before = log.execute("SELECT count(*) FROM memctl.glances").fetchone()
    assert problem_of(api.ask("/v1/memories?as_of=33&limit=0"))["status"] == 422
    assert log.execute("SELECT count(*) FROM memctl.glances").fetchone() == before


def test_what_nobody_looks_at_any_more_is_dropped(api: Api, memory: Remembered, log: Connection) -> None:
    with building(memory, kept_s=0.0):
        _, headers, _ = api.ask("/v1/tasks?as_of=2")
        until(lambda: _status(api, headers["location"]) == "dropped", "the end of it")
    until(lambda: not _scratch(log, headers["location"]), "the end of its tables")
    assert json.loads(api.ask("/v1/tasks?as_of=2")[2])["status"] == "asked"


def test_what_a_killed_worker_kept_is_asked_for_anew(api: Api, memory: Remembered, log: Connection) -> None:
    with connect(memory.database_url) as gone:
        first = glances.ask(gone, Position(3), generations.live(gone))
        while (claimed := glances.claim(gone)) is not None and claimed.id != first.id:
            glances.end(gone, claimed.id, "dropped")
        glances.built(gone, first.id, generations.live(gone))
        assert api.ask("/v1/tasks?as_of=3")[0] == 200
    until(lambda: api.ask("/v1/tasks?as_of=3")[0] == 202, "another job")
    assert json.loads(api.ask("/v1/tasks?as_of=3")[2])["id"] > first.id


def test_what_a_forgetting_dropped_is_built_anew(api: Api, worker: None, log: Connection, before_atlas: int) -> None:
    path = f"/v1/sessions?as_of={before_atlas}"
    then = answered(api, path)["items"]
    job = int(log.execute("SELECT max(glance) FROM memctl.glances WHERE status = 'ready'").fetchone()[0])  # type: ignore[index]
    with nothing_rebuilt(log):
        assert _scratch(log, f"/v1/jobs/{job}") == []
    assert answered(api, path)["items"] == then
    until(lambda: _status(api, f"/v1/jobs/{job}") == "dropped", "the end of the former")


def _status(api: Api, job: str) -> str:
    return str(json.loads(api.ask(job)[2])["status"])


def _scratch(log: Connection, job: str) -> list[Any]:
    """The generations of a job that are still there."""
    return log.execute(
        "SELECT generation FROM memctl.generations JOIN memctl.glances ON generation IN (scratch1, scratch2)"
        " WHERE glance = %s AND generations.status = 'scratch'",
        [int(job.rpartition("/")[2])],
    ).fetchall()
