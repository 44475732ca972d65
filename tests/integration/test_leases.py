"""Leases and offsets: one holder at a time, epochs that only grow, and an offset that moves for its holder alone."""

from __future__ import annotations

import itertools
import threading
from datetime import timedelta
from typing import Any

import pytest
from histories import example
from msgspec.structs import replace
from waiting import PATIENCE_S, until

from memctl.domain.events.event import Position
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append
from memctl.infra.log.mark import move_mark
from memctl.infra.readmodels import generations
from memctl.infra.readmodels.generations import Lease, LeaseHeld, LeaseLost
from memctl.workers.folding.drain import Drainer

SHARDS = 3


@pytest.fixture
def shards() -> int:
    return SHARDS


def acquired(log: Connection, shard: int = 1, owner: str = "one") -> Lease:
    lease = generations.acquire(log, generations.live(log).stage1, shard, owner)
    assert lease is not None
    return lease


def offsets(log: Connection) -> list[tuple[Any, ...]]:
    """Of every shard of every generation: what a lease is about, with the seconds it lasts (None: not held)."""
    return log.execute(
        "SELECT generation, shard, position, epoch, owner,"
        " round(extract(epoch FROM lease_until - clock_timestamp()))::int FROM memctl.offsets ORDER BY 1, 2"
    ).fetchall()


def changed(before: list[tuple[Any, ...]], after: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    assert len(before) == len(after)
    return [new for old, new in zip(before, after, strict=True) if old != new]


def ends_in(log: Connection, interval: str, owner: str = "one") -> None:
    log.execute(
        "UPDATE memctl.offsets SET lease_until = clock_timestamp() + %s::interval WHERE owner = %s", [interval, owner]
    )


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 16, 100, 256])
def test_every_hash_belongs_to_one_shard(shards: int) -> None:
    ranges = [generations.hashes_of(shard, shards) for shard in range(shards)]
    assert [n for low, high in ranges for n in range(low, high + 1)] == list(range(256))


def test_a_taken_shard_is_told_of_as_it_stands_and_no_other_is_touched(log: Connection) -> None:
    live = generations.live(log)
    before = offsets(log)
    lease = acquired(log)
    assert lease == Lease(live.stage1, 1, Position(0), 1, generations.hashes_of(1, SHARDS), {}, SHARDS)
    assert changed(before, offsets(log)) == [(live.stage1, 1, 0, 1, "one", 15)]


def test_a_shard_that_is_held_is_given_to_nobody_until_it_is_let_go(log: Connection) -> None:
    lease = acquired(log)
    ends_in(log, "1 second")
    assert generations.acquire(log, lease.generation, 1, "two") is None
    before = offsets(log)
    generations.release(log, lease)
    assert [row[:5] for row in changed(before, offsets(log))] == [(lease.generation, 1, 0, 1, None)]
    assert acquired(log, owner="two").epoch == lease.epoch + 1


@pytest.mark.parametrize("ends", ["-1 microsecond", "31 seconds", "1 day"])
def test_a_lease_that_ran_out_or_was_given_by_another_clock_is_taken_over(log: Connection, ends: str) -> None:
    lease = acquired(log)
    ends_in(log, ends)
    assert acquired(log, owner="two").epoch == lease.epoch + 1


@pytest.mark.parametrize("ends", ["15 seconds", "29 seconds"])
def test_a_clock_that_is_a_little_off_takes_nobodys_lease(log: Connection, ends: str) -> None:
    lease = acquired(log)
    ends_in(log, ends)
    assert generations.acquire(log, lease.generation, 1, "two") is None


def test_what_is_not_there_is_not_taken(log: Connection) -> None:
    live = generations.live(log)
    assert generations.acquire(log, live.stage1, SHARDS, "one") is None
    assert generations.acquire(log, 99, 0, "one") is None


def test_the_holder_moves_its_offset_and_holds_on_to_it(log: Connection) -> None:
    lease, other = acquired(log), acquired(log, 2, "two")
    ends_in(log, "1 second")
    before = offsets(log)
    moved = generations.advance(log, lease, Position(7))
    assert moved == replace(lease, position=Position(7))
    assert changed(before, offsets(log)) == [(lease.generation, 1, 7, 1, "one", 15)]
    assert generations.advance(log, moved, Position(9)).position == 9
    assert generations.advance(log, other, Position(3)).position == 3
    # The same place again is a batch that found nothing, or a fold anew.
    assert generations.advance(log, replace(moved, position=Position(9)), Position(9)).position == 9


def test_of_one_position_and_epoch_only_one_batch_is_written(log: Connection) -> None:
    """A batch that was written, and whose answer was lost, is not written again by who still holds the lease."""
    lease = acquired(log)
    generations.advance(log, lease, Position(7))
    before = offsets(log)
    with pytest.raises(LeaseLost, match="shard 1"):
        generations.advance(log, lease, Position(9))
    assert changed(before, offsets(log)) == []


def moves(log: Connection, lease: Lease) -> None:
    generations.advance(log, lease, Position(7))


def renews(log: Connection, lease: Lease) -> None:
    generations.renew(log, lease)


@pytest.mark.parametrize("act", [moves, renews])
def test_who_lost_the_lease_moves_and_renews_nothing(log: Connection, act: Any) -> None:
    lease = acquired(log)
    ends_in(log, "-1 second")
    acquired(log, owner="two")
    before = offsets(log)
    with pytest.raises(LeaseLost, match="shard 1"):
        act(log, lease)
    assert changed(before, offsets(log)) == []


@pytest.mark.parametrize("act", [moves, renews])
def test_a_lease_that_ran_out_and_that_nobody_took_still_counts(log: Connection, act: Any) -> None:
    lease = acquired(log)
    ends_in(log, "-1 second")
    act(log, lease)
    assert generations.acquire(log, lease.generation, 1, "two") is None


def test_a_renewed_lease_lasts_its_full_time_and_stays_where_it_was(log: Connection) -> None:
    lease, _ = acquired(log), acquired(log, 2, "two")
    ends_in(log, "1 second")
    before = offsets(log)
    assert generations.renew(log, lease) == lease
    assert changed(before, offsets(log)) == [(lease.generation, 1, 0, 1, "one", 15)]


def test_a_lease_that_is_anothers_by_now_is_not_let_go(log: Connection) -> None:
    lease = acquired(log)
    ends_in(log, "-1 second")
    acquired(log, owner="two")
    before = offsets(log)
    generations.release(log, lease)
    assert changed(before, offsets(log)) == []


def test_letting_go_lets_go_of_that_shard_of_that_generation_only(log: Connection) -> None:
    live = generations.live(log)
    held = [acquired(log, shard) for shard in range(SHARDS)]
    assert generations.acquire(log, live.stage2, 0, "one") is not None
    generations.release(log, held[0])
    assert [(row[0], row[1]) for row in offsets(log) if row[4] == "one"] == [
        (live.stage1, 1), (live.stage1, 2), (live.stage2, 0)
    ]  # fmt: skip


def test_taking_and_letting_go_wait_for_no_disk_and_moving_does(log: Connection) -> None:
    """`synchronous_commit` as each statement's transaction had it when it ended, told by a trigger that fires then."""
    log.execute(
        "CREATE TABLE told (n serial, how text);"
        "CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " INSERT INTO told (how) VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;"
        "CREATE CONSTRAINT TRIGGER tell AFTER UPDATE ON memctl.offsets DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION tell()"
    )
    lease = acquired(log)
    lease = generations.advance(log, lease, Position(7))
    generations.renew(log, lease)
    generations.release(log, lease)
    assert [row[0] for row in log.execute("SELECT how FROM told ORDER BY n")] == ["off", "on", "on", "off"]
    assert log.execute("SHOW synchronous_commit").fetchone() == ("on",)


def test_who_waits_for_a_lease_gets_it_or_is_told_of_whom_it_waited_for(log: Connection) -> None:
    lease = acquired(log)
    with pytest.raises(LeaseHeld, match="shard 1 of generation 1"):
        generations.take(log, lease.generation, 1, "two", 0.05)
    generations.release(log, lease)
    assert generations.take(log, lease.generation, 1, "two", 0).epoch == lease.epoch + 1


def test_epochs_only_grow(log: Connection) -> None:
    epochs = []
    for turn in range(4):
        lease = acquired(log, owner=f"{turn}")
        epochs.append(lease.epoch)
        if turn % 2:
            generations.release(log, lease)
        else:
            ends_in(log, "-1 second", f"{turn}")
    assert all(one < other for one, other in itertools.pairwise(epochs))


LEASE = timedelta(seconds=3)


def lease_ends(log: Connection) -> Any:
    """When the lease that somebody has ends; `None` where nobody has one."""
    row = log.execute("SELECT max(lease_until) FROM memctl.offsets WHERE owner IS NOT NULL").fetchone()
    return row and row[0]


@pytest.mark.parametrize("shards", [1])
def test_a_drain_keeps_its_lease_while_a_batch_takes_longer_than_it_lasts(
    log: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generations, "LEASE", LEASE)
    live = generations.live(log)
    append(log, 1, example(1))
    move_mark(log)
    # The batch has to read a table that we hold: it takes as long as we want, with nothing locked of its own.
    with connect(database_url, autocommit=False) as holder:
        holder.execute("LOCK TABLE memctl.dead_letters IN ACCESS EXCLUSIVE MODE")
        drainer = Drainer(database_url)
        moved: list[bool] = []
        working = threading.Thread(target=lambda: moved.append(drainer.drain(1, 0)), daemon=True)
        working.start()
        until(lambda: lease_ends(log))
        first = lease_ends(log)
        # Two thirds of a lease later it was renewed twice, and has nearly all of its time before it.
        until(lambda: lease_ends(log) - first > LEASE / 2)
        assert generations.acquire(log, live.stage1, 0, "thief") is None
        holder.rollback()
    working.join(PATIENCE_S)
    assert moved == [True]
