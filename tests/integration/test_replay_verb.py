"""`memctl replay` as a person runs it: into the past, into other shards, only to compare, back again, how far it is."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner
from histories import digests, drained, example

from memctl.cli.operate.replay import replay
from memctl.cli.output import when
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append
from memctl.infra.log.mark import mark
from memctl.infra.readmodels import generations
from memctl.infra.vectors import store
from memctl.projections import layers
from memctl.workers.vectors.outbox_publisher import drop_collections


@pytest.fixture
def log(filled_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    monkeypatch.setenv("MEMCTL_DATABASE_URL", filled_url)
    monkeypatch.setenv("MEMCTL_EMBEDDER", "none")
    with connect(filled_url) as connection:
        yield connection


def said(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(replay, list(arguments))
    assert done.exit_code == code, done.output
    return done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        (), ("stats", "--all"), ("--status", "--rollback"), ("--rollback", "stats"), ("--status", "--shards", "2"),
        ("--all", "--rows"), ("--all", "--to", "1", "--verify"), ("--all", "--to", "1", "--shards", "2"),
        ("--all", "--to", "yesterday"), ("--all", "--to", "²"), ("--all", "--shards", "257"),
        ("--all", "--processes", "0"), ("--status", "--profile"), ("--all", "--to", "1", "--profile"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_a_usage_error(arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMCTL_DATABASE_URL", "postgresql:///nowhere?host=/nowhere")
    said(*arguments, code=2)


def test_the_past_is_shown_at_a_position_or_a_time_and_leaves_nothing(log: Connection, filled_url: str) -> None:
    then, rows, now = mark(log), digests(log), datetime.now(UTC)
    log.execute("UPDATE memctl.mark_history SET reached_at = reached_at - interval '1 hour'")
    append(log, 1, example(9))
    drained(filled_url)
    for moment in (str(then), now.isoformat()):
        shown = json.loads(said("sessions", "stats", "--to", moment, "--processes", "1", "--json"))
        assert shown["position"] == then
        assert {name: (each["rows"], each["digest"]) for name, each in shown["read_models"].items()} == {
            name: rows[name] for name in ("sessions", "stats")
        }
    lines = said("sessions", "--to", str(then), "--processes", "1", "--rows").splitlines()
    assert len(lines) == rows["sessions"][0]
    assert {json.loads(line)["read_model"] for line in lines} == {"sessions"}
    for beyond in (str(mark(log) + 1), "9" * 5_000):
        said("sessions", "--to", beyond, code=1)
    assert generations.generations(log, "scratch") == []


def test_shards_are_changed_compared_told_of_and_taken_back(
    log: Connection, vectors: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_QDRANT_URL", vectors[0])
    monkeypatch.setenv("MEMCTL_QDRANT_API_KEY", vectors[1])
    rows, before = digests(log), generations.live(log)
    said("--rollback", code=1)  # there is nothing to go back to
    compared = json.loads(said("stats", "--keep-live", "--processes", "1", "--json"))
    assert compared["read_models"]["stats"]["equal"]
    assert generations.live(log) == before
    phases = said("--all", "--shards", "7", "--processes", "1", "--profile").splitlines()
    assert [line.split("  ")[0] for line in phases[1:4]] == ["planning", "stage 1: events", "stage 1: tables"]
    assert 0 < float(phases[-1].rpartition("serial share ")[2]) < 1
    live = generations.live(log)
    assert (generations.shards(log, live.stage1), digests(log)) == (7, rows)
    assert generations.shards(log, live.stage2) == layers.shards_of(7)
    said("--rollback")
    assert (generations.live(log), digests(log)) == (before, rows)
    newest, first = json.loads(said("--status", "--json"))
    assert [(each["purpose"], each["status"]) for each in (newest, first)] == [
        ("replace", "done"),
        ("compare", "dropped"),
    ]
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    try:
        assert f"  {when(newest['started_at'])}  " in said("--status")
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()
    client = store.connect(*vectors)
    for generation in (before.stage2, live.stage2):
        drop_collections(log, client, generation)
    client.close()
