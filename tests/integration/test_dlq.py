"""`memctl dlq`: what is parked is listed, shown, retried and dropped, as a person does it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import msgspec
import pytest
from click.testing import CliRunner, Result
from draining import catch_up
from events import id_of, prompt
from waiting import until

from memctl.api.write.ingest_writer import IngestWriter
from memctl.cli.capture.ingest import wait_until_folded
from memctl.cli.main import memctl
from memctl.cli.operate.dlq import dlq
from memctl.domain.events.event import NewEvent, Position
from memctl.infra.database import Connection, connect
from memctl.infra.log import mark
from memctl.infra.log.append import append
from memctl.infra.readmodels import dead_letters, generations
from memctl.infra.readmodels.dead_letters import Fault, Target
from memctl.infra.settings import load_settings
from memctl.workers.folding.drain import Drainer
from memctl.workers.rebuild.as_of import as_of
from memctl.workers.rebuild.build import RebuildStopped
from memctl.workers.rebuild.replay import replay
from memctl.workers.runtime import worker

SECRET = "the words that nobody but their session may show"
EVENTS = [prompt(n, f"{SECRET} {n}") for n in range(1, 6)]
SPOILT = EVENTS[2]


@pytest.fixture
def shards() -> int:
    return 1


@pytest.fixture
def log(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    """A log in which the third prompt of a session cannot be read."""
    monkeypatch.setenv("MEMCTL_DATABASE_URL", database_url)
    with connect(database_url) as connection:
        append(connection, 1, EVENTS)
        store(connection, json.dumps({"line": "x", "text": {"said": SECRET}}))
        catch_up(Drainer(database_url))
        yield connection


def store(connection: Connection, payload: str) -> None:
    with connection.transaction():
        connection.execute("ALTER TABLE memctl.events DISABLE TRIGGER events_no_change")
        connection.execute("UPDATE memctl.events SET payload = %s::jsonb WHERE event_id = %s", [payload, id_of(SPOILT)])
        connection.execute("ALTER TABLE memctl.events ENABLE ALWAYS TRIGGER events_no_change")


def mend(connection: Connection, event: NewEvent) -> None:
    store(connection, msgspec.json.encode(event.payload).decode())


def run(*arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(dlq, list(arguments), input=answer)


def prompts(connection: Connection) -> int:
    row = connection.execute(f"SELECT row FROM memctl.sessions_g{generations.live(connection).stage1}").fetchone()  # type: ignore[arg-type]
    assert row is not None
    return int(json.loads(row[0])["prompts"])


def test_what_is_parked_is_listed_and_shown_without_a_word_of_it(log: Connection) -> None:
    assert prompts(log) == 2
    listed = run("list")
    assert listed.exit_code == 0, listed.output
    assert "stream session/claude-code/s1" in listed.output
    assert "ValidationError" in listed.output
    (letter,) = json.loads(run("list", "--json").output)["letters"]
    assert (letter["stage"], letter["source"], letter["waiting"]) == (1, id_of(SPOILT), 2)
    shown = run("show", str(letter["id"]))
    assert "prompt.submitted version 1" in shown.output
    event = json.loads(run("show", str(letter["id"]), "--json").output)["event"]
    assert (event["stream"], event["session"]) == ("session/claude-code/s1", "s1")
    stored = log.execute("SELECT d::text FROM memctl.dead_letters d").fetchall()
    for told in (listed.output, shown.output, str(stored)):
        assert SECRET not in told


def test_status_says_how_many_are_parked_and_where_to_look(log: Connection) -> None:
    told = CliRunner().invoke(memctl, ["status"])
    assert "is set aside: event" in told.output
    assert "2 waiting behind it; see `memctl dlq show" in told.output
    assert json.loads(CliRunner().invoke(memctl, ["status", "--json"]).output)["dead_letters"] == 1


def test_what_only_took_long_is_no_gap(log: Connection) -> None:
    """The workers fold it apart by themselves."""
    log.execute("DELETE FROM memctl.dead_letters")
    took_long = Fault(Target("", 1, "session/claude-code/s2"), UUID(id_of(SPOILT)), Position(1), "NoProgress", "x")
    dead_letters.park(log, generations.live(log).stage1, [took_long])

    def said(verb: str, name: str) -> str:
        checks = json.loads(CliRunner().invoke(memctl, [verb, "--json"]).output)["checks"]
        return next(each["result"] for each in checks if each["name"] == name)

    assert said("verify", "dead letters") == "ok"
    assert said("doctor", "dead letter") == "ok"


def test_who_waited_until_all_is_folded_is_told_what_is_not(
    log: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    def said() -> str:
        log.execute(f"DELETE FROM memctl.outbox_g{generations.live(log).stage2}")  # no vector store is there
        with IngestWriter(load_settings()) as intake:
            wait_until_folded(intake)
        return capsys.readouterr().err

    assert "1 set aside; `memctl status` says why" in said()
    mend(log, SPOILT)
    assert run("retry", "--all").exit_code == 0
    assert "set aside" not in said()


def test_status_fails_where_something_waits_for_a_person(log: Connection) -> None:
    told = CliRunner().invoke(memctl, ["status", "--json"])
    assert told.exit_code == 1
    assert json.loads(told.output)["needs_a_person"]


def set_aside() -> list[dict[str, Any]]:
    troubles = json.loads(CliRunner().invoke(memctl, ["status", "--json"]).output)["troubles"]
    return [each for each in troubles if each["kind"] == "dead letter"]


def test_what_took_too_long_once_needs_nobody_until_it_was_tried_apart(log: Connection) -> None:
    log.execute("UPDATE memctl.dead_letters SET error = 'NoProgress'")
    (trouble,) = set_aside()
    assert not trouble["needs"]
    assert "its fold would keep all others waiting, 2 waiting behind it" in trouble["what"]
    log.execute("UPDATE memctl.dead_letters SET attempts = 2")
    (trouble,) = set_aside()
    assert trouble["needs"]
    assert "raises NoProgress" in trouble["what"]


def test_status_names_a_writer_that_others_wait_for(
    log: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mark, "SLOW_WRITER_S", 0.0)
    with connect(database_url, name="forgetful", autocommit=False) as writer:
        append(writer, 1, [prompt(9)])
        told = CliRunner().invoke(memctl, ["status"])
        assert "memctl waits for forgetful (process " in told.output
        (found,) = json.loads(CliRunner().invoke(memctl, ["status", "--json"]).output)["slow_writers"]
        assert (found["application"], found["state"]) == ("forgetful", "idle in transaction")
        writer.rollback()
    assert "forgetful" not in CliRunner().invoke(memctl, ["status"]).output


def test_a_retry_says_what_still_cannot_be_folded(log: Connection) -> None:
    failed = run("retry", "--all")
    assert failed.exit_code == 1
    assert "these still cannot be folded" in failed.output
    (letter,) = json.loads(run("list", "--json").output)["letters"]
    assert letter["attempts"] == 2
    mend(log, SPOILT)
    assert run("retry", str(letter["id"])).exit_code == 0
    assert prompts(log) == 5
    assert "nothing is parked" in run("list").output


def test_a_drop_is_asked_about_recorded_and_obeyed(log: Connection, database_url: str) -> None:
    (letter,) = json.loads(run("list", "--json").output)["letters"]
    id = str(letter["id"])
    asked = run("drop", id, "--reason", "torn line", answer="n\n")
    assert asked.exit_code == 1
    assert "cannot be undone" in asked.output
    reasons = "SELECT payload->>'reason' FROM memctl.events WHERE type = 'event.skipped'"
    assert log.execute(reasons).fetchall() == []
    for _ in range(2):
        assert run("drop", id, "--reason", "torn line", "--yes").exit_code == 0
    assert log.execute(reasons).fetchall() == [("torn line",)]
    catch_up(Drainer(database_url))
    assert prompts(log) == 4
    assert "nothing is parked" in run("list").output
    assert replay(database_url, None, verify=True).equal


def test_what_a_rebuild_stopped_at_is_left_out_by_its_id(log: Connection, database_url: str) -> None:
    assert run("drop", id_of(SPOILT), "--reason", "torn line", "--yes").exit_code == 0
    catch_up(Drainer(database_url))
    assert prompts(log) == 4
    assert replay(database_url, None, verify=True).equal


def test_what_a_replay_stopped_at_is_told_until_another_has_ended(log: Connection, database_url: str) -> None:
    with pytest.raises(RebuildStopped):
        replay(database_url, None, processes=1)
    with as_of(database_url, Position(1), processes=1):
        pass
    advice = f"memctl dlq drop {id_of(SPOILT)} --reason"
    assert advice in run("list").output
    assert advice in CliRunner().invoke(memctl, ["status"]).output
    mend(log, SPOILT)
    replay(database_url, None, processes=1)
    assert "the last replay failed" not in run("list").output + CliRunner().invoke(memctl, ["status"]).output


def test_a_rebuild_that_stopped_is_tried_again_once_that_is_left_out_and_not_before(
    log: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would stop there again, and takes all processors until it does."""
    monkeypatch.setattr(worker, "REBUILD_PAUSE_S", 0.01)
    log.execute("UPDATE memctl.generations SET fingerprint = 'of a memctl that can fold it'")
    settings = load_settings(database_url=database_url, qdrant_url="http://127.0.0.1:9")
    stop = threading.Event()

    def ended(status: str) -> bool:
        told = log.execute("SELECT status FROM memctl.rebuilds ORDER BY rebuild DESC LIMIT 1").fetchone()
        return told == (status,)

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(worker._watch, settings, stop)
        try:
            until(lambda: ended("failed"))
            assert run("drop", id_of(SPOILT), "--reason", "torn line", "--yes").exit_code == 0
            until(lambda: ended("done"))
        finally:
            stop.set()
        watching.result()
    assert log.execute("SELECT status FROM memctl.rebuilds ORDER BY rebuild").fetchall() == [("failed",), ("done",)]


def test_a_rebuild_that_stops_again_and_again_is_left_alone_for_longer_each_time() -> None:
    attempts = worker.Attempts()
    assert attempts.due(Position(0))
    assert [attempts.stopped(Position(7)) for _ in range(10)] == [20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600]
    assert not attempts.due(Position(7))
    assert attempts.due(Position(8))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["show", "999"], "NoSuchLetter"),
        (["retry", "999"], "NoSuchLetter"),
        (["drop", "999", "--reason", "x", "--yes"], "NoSuchLetter"),
        (["drop", "00000000-0000-0000-0000-000000000000", "--reason", "x", "--yes"], "NothingToLeaveOut"),
        (["drop", id_of(SPOILT), "--from", "nothing", "--reason", "x", "--yes"], "NothingToLeaveOut"),
        (["retry"], 2),
        (["retry", "--all", "1"], 2),
        (["drop", "not an id", "--reason", "x"], 2),
        (["drop", "1", "--from", "memories", "--reason", "x"], 2),
    ],
)
def test_what_cannot_be_done_is_refused_and_changes_nothing(
    log: Connection, arguments: list[str], code: int | str
) -> None:
    before = log.execute("SELECT count(*) FROM memctl.events").fetchone()
    refused = run(*arguments)
    if isinstance(code, int):
        assert refused.exit_code == code
    else:
        assert type(refused.exception).__name__ == code
    assert log.execute("SELECT count(*) FROM memctl.events").fetchone() == before
