"""Read models on a real Postgres: the same rows whatever the order, the batches, the shards, the late arrivals."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Self

import psycopg
import pytest
import servers
from draining import catch_up
from events import NOON, observed, prompt
from histories import digests, everything, example
from waiting import until

from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import PromptSubmitted
from memctl.domain.support.location import normalise
from memctl.infra import database
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append
from memctl.infra.log.mark import move_mark
from memctl.infra.readmodels import generations, rebuilds
from memctl.infra.readmodels.generations import LeaseLost, Live
from memctl.workers.folding.drain import Drainer, Heartbeat, OtherRules
from memctl.workers.folding.stage1 import Stage1
from memctl.workers.folding.stage2 import Stage2
from memctl.workers.rebuild.replay import ReplayRunning, replay

HISTORY = everything()

one_shard = pytest.mark.parametrize("shards", [1], ids=["one shard"])

Digests = dict[str, tuple[int, str]]


def fill(url: str, batches: Sequence[Sequence[NewEvent]], *, batch: int = 2000) -> Digests:
    """Append the batches, draining after each, and return what the read models hold then."""
    with connect(url) as connection:
        drainer = Drainer(url, batch)
        for events in batches:
            append(connection, 1, events)
            catch_up(drainer)
        catch_up(drainer)
        drainer.close()
        return digests(connection)


@pytest.fixture
def shards() -> int:
    return 4


@pytest.fixture(scope="module")
def expected(postgres_server: str, templates: servers.Templates) -> Digests:
    """The read models of the history, folded at once."""
    with servers.fresh_database(postgres_server, templates.live(1)) as url:
        return fill(url, [HISTORY])


@pytest.fixture
def filled(filled_url: str) -> Iterator[tuple[str, Connection]]:
    with connect(filled_url) as connection:
        yield filled_url, connection


def test_the_history_leaves_something_in_every_read_model(expected: Digests) -> None:
    empty = {name for name, (rows, _) in expected.items() if not rows}
    assert not empty, f"no row in {empty}: say something that they fold in `statements` (tests/histories.py)"


@pytest.mark.parametrize("shards", [1, 4, 16])
def test_the_number_of_shards_changes_no_row(database_url: str, expected: Digests, shards: int) -> None:
    assert fill(database_url, [HISTORY]) == expected


@pytest.mark.parametrize("batch", [1, 7, 5000])
def test_the_size_of_batches_changes_no_row(database_url: str, expected: Digests, batch: int) -> None:
    assert fill(database_url, [HISTORY], batch=batch) == expected


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_arrival_changes_no_row(database_url: str, expected: Digests, seed: int) -> None:
    luck = random.Random(seed)
    events = list(HISTORY)
    luck.shuffle(events)
    cuts = sorted(luck.sample(range(1, len(events)), 12))
    batches = [events[start:end] for start, end in zip([0, *cuts], [*cuts, len(events)], strict=True)]
    assert fill(database_url, batches) == expected


def test_one_event_at_a_time_ends_in_the_same_rows(database_url: str) -> None:
    one = example(1)
    live = fill(database_url, [[event] for event in one])
    result = replay(database_url, None, verify=True)
    assert {c.name: (c.rows, c.digest_rebuilt) for c in result.compared} == live
    assert result.equal


def test_delivering_everything_again_changes_no_row(database_url: str, expected: Digests) -> None:
    assert fill(database_url, [HISTORY, HISTORY, HISTORY[::-1]]) == expected


def test_a_rebuild_ends_in_the_rows_that_were_live(filled: tuple[str, Connection], expected: Digests) -> None:
    url, connection = filled
    before = generations.live(connection)
    result = replay(url, None, verify=True)
    assert result.equal
    assert generations.live(connection) != before
    assert digests(connection) == expected


def test_rebuilding_stage_two_leaves_stage_one_alone(filled: tuple[str, Connection], expected: Digests) -> None:
    url, connection = filled
    before = generations.live(connection)
    assert replay(url, None, first_stage=2, verify=True).equal
    after = generations.live(connection)
    assert after.stage1 == before.stage1
    assert after.stage2 != before.stage2
    assert digests(connection) == expected


@pytest.mark.parametrize(
    ("read_model", "change"),
    [
        ("sessions", "UPDATE {table} SET row = jsonb_set(row, '{{prompts}}', '999') WHERE key = %s"),
        ("bug_patterns", "DELETE FROM {table} WHERE key = %s"),
        ("memories", "UPDATE {table} SET row = jsonb_set(row, '{{title}}', '\"other\"') WHERE key = %s"),
    ],
)
def test_a_row_that_was_tampered_with_is_found_named_and_mended(
    filled: tuple[str, Connection], expected: Digests, read_model: str, change: str
) -> None:
    url, connection = filled
    live = generations.live(connection)
    table = f"memctl.{read_model}_g{live.stage1 if read_model == 'sessions' else live.stage2}"
    row = connection.execute(f"SELECT key FROM {table} ORDER BY key LIMIT 1").fetchone()  # type: ignore[arg-type]
    assert row is not None
    connection.execute(change.format(table=table), row)  # type: ignore[arg-type]
    result = replay(url, None, verify=True)
    assert {c.name: c.differing for c in result.compared if not c.equal} == {read_model: (row[0],)}
    assert digests(connection) == expected


def test_what_arrives_after_a_rebuild_is_folded_on_top_of_it(database_url: str, expected: Digests) -> None:
    half = len(HISTORY) // 2
    fill(database_url, [HISTORY[:half]])
    assert replay(database_url, None, verify=True).equal
    assert fill(database_url, [HISTORY[half:]]) == expected
    assert replay(database_url, None, verify=True).equal


def test_a_late_prompt_that_makes_another_a_follow_up_takes_back_what_that_had_opened(
    database_url: str, postgres_server: str, templates: servers.Templates
) -> None:
    first = prompt(1, "please write a parser for the ledger's export files, with tests for each column")
    second = prompt(2, "and also rename it, please, to something shorter than that")
    late = fill(database_url, [[second], [first]])
    with servers.fresh_database(postgres_server, templates.live(4)) as other:
        alone = fill(other, [[second]])
    with servers.fresh_database(postgres_server, templates.live(4)) as other:
        assert late == fill(other, [[first, second]])
    assert alone["tasks"][0] == 1
    assert late["tasks"][0] == 1
    assert late["tasks"] != alone["tasks"]
    assert replay(database_url, None, verify=True).equal


@one_shard
def test_an_erased_payload_hides_no_other_event(database_url: str) -> None:
    with connect(database_url) as connection:
        append(connection, 1, [prompt(1, "please look into it", session=f"s{n}") for n in range(10)])
        connection.execute("ALTER TABLE memctl.events DISABLE TRIGGER events_no_change")
        connection.execute("UPDATE memctl.events SET payload = NULL WHERE position = 2")
        connection.execute("ALTER TABLE memctl.events ENABLE ALWAYS TRIGGER events_no_change")
    assert fill(database_url, [], batch=4)["sessions"][0] == 9


@pytest.mark.parametrize("length", [3000, 9000])
def test_a_working_directory_of_any_length_is_folded(database_url: str, length: int) -> None:
    luck = random.Random(length)
    location = normalise("/" + "".join(luck.choice("abcdefghijklmnop한글") for _ in range(length)))
    payload = PromptSubmitted(line="l1", text="please look into it")
    assert fill(database_url, [[observed(payload, location=location)]])["sessions"][0] == 1
    assert replay(database_url, None, verify=True).equal


def test_a_session_in_which_nothing_has_a_time_is_folded_all_the_same(database_url: str) -> None:
    payload = PromptSubmitted(line="l1", text="please look into it")
    undated = observed(payload, at=-NOON // 1_000_000)
    assert undated.occurred_at == 0
    assert fill(database_url, [[undated]])["sessions"][0] == 1
    assert fill(database_url, [[prompt(2)]])["sessions"][0] == 1
    assert replay(database_url, None, verify=True).equal


def test_rows_of_other_rules_are_not_folded_into_but_replaced(
    filled: tuple[str, Connection], expected: Digests
) -> None:
    url, connection = filled
    connection.execute("UPDATE memctl.generations SET fingerprint = 'of another day'")
    append(connection, 1, [prompt(1, "please look into it", session="late")])
    before = digests(connection)
    assert Drainer(url).drain(1, 0) is False
    with pytest.raises(OtherRules):
        catch_up(Drainer(url))
    assert digests(connection) == before
    result = replay(url, None, verify=True)
    assert result.outdated
    assert digests(connection)["sessions"][0] == expected["sessions"][0] + 1
    assert replay(url, None, verify=True).equal


@one_shard
def test_a_worker_whose_lease_was_taken_writes_nothing(database_url: str, expected: Digests) -> None:
    with connect(database_url) as connection, connect(database_url) as thief:
        live = generations.live(connection)
        append(connection, 1, HISTORY)
        lease = generations.acquire(connection, live.stage1, 0, "slow")
        assert lease is not None
        thief.execute("UPDATE memctl.offsets SET lease_until = clock_timestamp() - interval '1 second'")
        assert generations.acquire(thief, live.stage1, 0, "thief") is not None
        with pytest.raises(LeaseLost):
            Stage1().drain_batch(connection, lease, move_mark(connection))
        facts = connection.execute(f"SELECT count(*) FROM memctl.facts_g{live.stage1}").fetchone()  # type: ignore[arg-type]
        assert facts == (0,)
        thief.execute("UPDATE memctl.offsets SET lease_until = NULL, owner = NULL")
    assert fill(database_url, []) == expected


def test_stage_two_never_passes_the_slowest_shard_of_stage_one(database_url: str, expected: Digests) -> None:
    with connect(database_url) as connection:
        append(connection, 1, HISTORY)
        drainer = Drainer(database_url)
        live = generations.live(connection)
        for shard in range(4):
            drainer.drain(1, shard)
            for of_rows in range(generations.shards(connection, live.stage2)):
                drainer.drain(2, of_rows)
        drainer.close()
        assert digests(connection) == expected


class Weighed(psycopg.Cursor[Any]):
    """Notes how many bytes of text the heaviest statement put, and all of them."""

    heaviest = whole = 0

    def execute(self, query: Any, params: Any = None, **how: Any) -> Self:
        lists = [each for each in params or () if isinstance(each, list)]
        size = sum(len(text.encode()) for each in lists for text in each if isinstance(text, str))
        Weighed.heaviest, Weighed.whole = max(Weighed.heaviest, size), Weighed.whole + size
        return super().execute(query, params, **how)


@one_shard
def test_no_statement_holds_all_that_a_session_comes_to(
    database_url: str, expected: Digests, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more than a gigabyte Postgres lets go of the connection, and the shard would never go on."""
    monkeypatch.setattr(database, "AT_ONCE", 30_000)
    with connect(database_url) as connection:
        connection.cursor_factory = Weighed
        append(connection, 1, HISTORY)
        Weighed.heaviest = Weighed.whole = 0
        live, upto = generations.live(connection), move_mark(connection)
        lease = generations.take(connection, live.stage1, 0, "one", 0)
        assert Stage1().drain_batch(connection, lease, upto).position == upto
        lease = generations.take(connection, live.stage2, 0, "one", 0)
        assert Stage2().drain_batch(connection, lease, live.stage1, upto).position == upto
        assert Weighed.heaviest < 2 * database.AT_ONCE < Weighed.whole / 4
        assert digests(connection) == expected


@one_shard
def test_a_held_lease_is_not_given_to_another(database_url: str) -> None:
    with connect(database_url) as connection:
        live = generations.live(connection)
        assert generations.acquire(connection, live.stage1, 0, "one") is not None
        assert generations.acquire(connection, live.stage1, 0, "two") is None


@one_shard
def test_a_lease_is_renewed_for_as_long_as_its_batch_takes(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generations, "LEASE", timedelta(seconds=3))
    with connect(database_url) as connection:
        live = generations.live(connection)
        lease = generations.acquire(connection, live.stage1, 0, "slow")
        assert lease is not None
        ends = connection.execute("SELECT lease_until FROM memctl.offsets WHERE owner = 'slow'").fetchone()
        renewed = "SELECT lease_until > %s + interval '1.5 seconds' FROM memctl.offsets WHERE owner = 'slow'"
        held = Heartbeat(database_url, lease)
        try:
            until(lambda: connection.execute(renewed, ends).fetchone() == (True,))  # twice, each a second later
            assert generations.acquire(connection, live.stage1, 0, "thief") is None
        finally:
            held.end()
        until(lambda: generations.acquire(connection, live.stage1, 0, "thief") is not None)


@one_shard
def test_a_batch_that_fails_leaves_rows_and_offset_as_they_were(database_url: str, expected: Digests) -> None:
    with connect(database_url) as connection:
        live = generations.live(connection)
        append(connection, 1, HISTORY)
        connection.execute(  # the last table that stage 1 writes refuses its rows
            f"ALTER TABLE memctl.working_memory_g{live.stage1} ADD CONSTRAINT refuse CHECK (false) NOT VALID"  # type: ignore[arg-type]
        )
        with pytest.raises(psycopg.errors.CheckViolation):
            Drainer(database_url).drain(1, 0)
        assert [o.position for o in generations.offsets(connection, live.stage1)] == [0]
        for name in ("facts", "sessions", "episodes"):
            count = connection.execute(f"SELECT count(*) FROM memctl.{name}_g{live.stage1}").fetchone()  # type: ignore[arg-type]
            assert count == (0,)
        connection.execute(f"ALTER TABLE memctl.working_memory_g{live.stage1} DROP CONSTRAINT refuse")  # type: ignore[arg-type]
        connection.execute("UPDATE memctl.offsets SET lease_until = NULL")
    assert fill(database_url, []) == expected


def test_only_one_replay_runs_at_a_time(filled: tuple[str, Connection]) -> None:
    url, _ = filled
    with connect(url) as other:
        other.execute("SELECT pg_advisory_lock(%s, 0)", [0x7265706C])
        with pytest.raises(ReplayRunning):
            replay(url, None)


def test_a_replay_that_was_stopped_leaves_the_live_rows_and_is_gone_on_with(
    filled: tuple[str, Connection], expected: Digests
) -> None:
    url, connection = filled
    before = generations.live(connection)
    folded = []

    def stop_at_the_facts(what: str, done: int, of: int) -> None:
        folded.append(what)
        if what == "facts":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replay(url, None, progress=stop_at_the_facts)
    assert generations.live(connection) == before
    assert digests(connection) == expected
    [stopped] = rebuilds.progress(connection)
    assert (stopped.status, stopped.phase) == ("stopped", "facts")

    append(connection, 1, [prompt(1, "meanwhile", session="meanwhile")])
    asked: list[str] = []
    done = replay(url, None, verify=True, progress=lambda what, done, of: asked.append(f"{what} {done}"))
    assert done.equal
    assert "events 0" not in asked  # stage 1 was whole
    [ended] = rebuilds.progress(connection)
    assert (ended.rebuild, ended.status) == (stopped.rebuild, "done")
    assert generations.live(connection) == Live(*stopped.generations)
    assert digests(connection)["sessions"][0] == expected["sessions"][0] + 1


def test_a_stopped_replay_is_not_gone_on_with_by_other_rules(filled: tuple[str, Connection], expected: Digests) -> None:
    url, connection = filled

    def stop_at_the_facts(what: str, done: int, of: int) -> None:
        if what == "facts":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replay(url, None, progress=stop_at_the_facts)
    connection.execute("UPDATE memctl.generations SET fingerprint = 'of another day' WHERE status = 'building'")
    assert replay(url, None, verify=True).equal
    assert [p.status for p in rebuilds.progress(connection, 5)] == ["done", "dropped"]
    assert generations.generations(connection, "building") == []
    assert digests(connection) == expected
