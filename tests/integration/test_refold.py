"""Rows and streams that are folded anew, one by one, end as a rebuild makes them."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import msgspec
import pytest
import servers
from draining import catch_up
from histories import digests, drained, example

from memctl.domain.events.event import Micros, NewEvent, Position
from memctl.domain.events.event_order import OrderedEvent
from memctl.domain.events.facts import Fact
from memctl.domain.events.observations import PromptSubmitted
from memctl.domain.session.stream_facts import StreamFacts
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append
from memctl.infra.log.mark import last_position
from memctl.infra.log.read import read_streams
from memctl.infra.readmodels import dead_letters, facts, generations
from memctl.infra.readmodels.dead_letters import Fault, NoProgress, Target
from memctl.projections.kernel import projections
from memctl.projections.stream_state import fold_stream
from memctl.workers.folding import long_sessions, stage1
from memctl.workers.folding import refold as refolding
from memctl.workers.folding.drain import Drainer
from memctl.workers.folding.long_sessions import LongSessions
from memctl.workers.folding.refold import refold
from memctl.workers.folding.stage1 import APART, FoldedAhead, Stage1
from memctl.workers.rebuild import replay as replaying
from memctl.workers.rebuild.replay import replay
from memctl.workers.runtime import long_folder
from memctl.workers.runtime.long_folder import LongFolder

Digests = dict[str, tuple[int, str]]


@pytest.fixture(scope="module")
def folded(postgres_server: str, templates: servers.Templates) -> Iterator[tuple[str, Digests]]:
    """Name of a database in which six sessions are folded, of which each test takes a copy, and its digests."""
    with servers.fresh_database(postgres_server, templates.live(4)) as url:
        with connect(url) as connection:
            append(connection, 1, [event for number in range(6) for event in example(number, day=number + 2)])
            drained(url)
            found = digests(connection)
        yield urlsplit(url).path.lstrip("/"), found


@pytest.fixture
def database_url(postgres_server: str, folded: tuple[str, Digests]) -> Iterator[str]:
    with servers.fresh_database(postgres_server, folded[0]) as url:
        yield url


@pytest.fixture
def filled(folded: tuple[str, Digests]) -> Digests:
    return folded[1]


@pytest.mark.parametrize("seed", range(3))
def test_folding_any_rows_and_streams_anew_changes_nothing(log: Connection, filled: Digests, seed: int) -> None:
    luck = random.Random(seed)
    streams, rows = every_key(log)
    assert len(streams) == 6
    refold(log, streams=luck.sample(streams, luck.randint(0, 6)), rows=luck.sample(rows, luck.randint(1, len(rows))))
    assert digests(log) == filled


@pytest.mark.parametrize("seed", range(2))
def test_damaged_rows_that_are_folded_anew_are_those_of_a_rebuild(
    log: Connection, database_url: str, filled: Digests, seed: int
) -> None:
    luck = random.Random(seed)
    live = generations.live(log)
    streams, rows = every_key(log)
    damaged = luck.sample(streams, 2)
    for _, stream in damaged:
        log.execute(f"DELETE FROM memctl.episodes_g{live.stage1} WHERE stream = %s", [stream])  # type: ignore[arg-type]
        log.execute(
            f"UPDATE memctl.facts_g{live.stage1} SET payload = NULL"  # type: ignore[arg-type]
            " WHERE stream = %s AND id IN (SELECT id FROM (SELECT id, row_number() OVER () AS n"
            f" FROM memctl.facts_g{live.stage1} WHERE stream = %s) x WHERE n %% 2 = 0)",
            [stream, stream],
        )
    lost = luck.sample(rows, 12)
    for name, (_, key) in lost:
        log.execute(f"DELETE FROM memctl.{name}_g{live.stage2} WHERE key = %s", [key])  # type: ignore[arg-type]
    assert digests(log) != filled
    refold(log, streams=damaged, rows=lost)
    assert digests(log) == filled
    assert replay(database_url, None, verify=True).equal


def every_key(connection: Connection) -> tuple[list[tuple[int, str]], list[tuple[str, tuple[int, str]]]]:
    live = generations.live(connection)
    found = connection.execute("SELECT DISTINCT space_id, stream FROM memctl.events ORDER BY 1, 2").fetchall()
    rows = [
        (p.name, (space_id, key))
        for p in projections(2)
        for space_id, key in connection.execute(
            f"SELECT space_id, key FROM memctl.{p.name}_g{live.stage2} ORDER BY 1, 2"  # type: ignore[arg-type]
        ).fetchall()
    ]
    return [(row[0], row[1]) for row in found], rows


def test_a_refold_waits_for_the_worker_that_has_the_lease_and_moves_no_offset(
    log: Connection, database_url: str, filled: Digests, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(refolding, "PATIENCE_S", 0.2)
    live = generations.live(log)
    before = [(o.shard, o.position) for o in generations.offsets(log, live.stage1, live.stage2)]
    lease = generations.acquire(log, live.stage2, 0, "worker")
    assert lease is not None
    streams, _ = every_key(log)
    with pytest.raises(generations.LeaseHeld):
        refold(log, streams=streams)
    generations.release(log, lease)
    refold(log, streams=streams)
    assert [(o.shard, o.position) for o in generations.offsets(log, live.stage1, live.stage2)] == before
    assert not any(o.owner for o in generations.offsets(log, live.stage1, live.stage2))


def test_what_took_long_is_folded_before_its_shard_is_taken_from_others(
    log: Connection, database_url: str, filled: Digests, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = generations.live(log)
    stream = every_key(log)[0][2]
    log.execute(f"DELETE FROM memctl.episodes_g{live.stage1} WHERE stream = %s", [stream[1]])  # type: ignore[arg-type]
    fault = Fault(Target("", *stream), UUID(int=0), Position(1), NoProgress.__name__, "somewhere", 5)
    with log.transaction():
        dead_letters.park(log, live.stage1, [fault])
    held: list[str | None] = []

    def noted(*given: Any) -> Any:
        with connect(database_url) as other:
            held.extend(o.owner for o in generations.offsets(other, live.stage1, live.stage2))
        return fold_stream(*given)

    monkeypatch.setattr(stage1, "fold_stream", noted)
    refold(log, letters=dead_letters.parked(log, live.stage1))
    assert not any(held), "it is folded once, while nobody holds a shard"
    assert dead_letters.parked(log, live.stage1) == []
    assert digests(log) == filled


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_rebuild_tries_what_took_long_and_keeps_what_a_trial_has_found(
    log: Connection, database_url: str, filled: Digests, attempts: int
) -> None:
    key = every_key(log)[0][2]
    first = log.execute(
        "SELECT event_id, position FROM memctl.events WHERE stream = %s ORDER BY 2", [key[1]]
    ).fetchone()
    assert first is not None
    fault = Fault(Target("", *key), first[0], Position(first[1]), NoProgress.__name__, "somewhere", 5)
    dead_letters.park(log, generations.live(log).stage1, [fault], attempts)
    replay(database_url, None)
    kept = dead_letters.parked(log, generations.live(log).stage1)
    assert [(letter.fault.source, letter.attempts) for letter in kept] == ([] if attempts == 1 else [(first[0], 2)])
    assert (digests(log) == filled) is (attempts == 1)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 1.0])
def test_what_came_since_a_stream_was_folded_is_folded_on(log: Connection, filled: Digests, share: float) -> None:
    live = generations.live(log)
    for offset in generations.offsets(log, live.stage1):
        streams = [k for k in every_key(log)[0] if generations.shard_of(k[1], 4) == offset.shard]
        read = read_streams(log, streams, offset.position)
        ready = {}
        for key, events in read.items():
            before = events[: int(len(events) * share)]
            ready[key] = FoldedAhead(before, *fold_stream(key[1], before))
        lease = generations.take(log, live.stage1, offset.shard, "test", 1.0)
        Stage1().refold(log, lease, streams, ready)
        generations.release(log, lease)
    assert digests(log) == filled


def test_what_raises_in_a_stream_that_was_parked_is_looked_for_while_nobody_waits(
    log: Connection, database_url: str, filled: Digests, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = generations.live(log)
    key = every_key(log)[0][0]
    events = read_streams(log, [key], last_position(log))[key]
    bad = events[len(events) // 2]
    fold, held = StreamFacts._fold, set[str | None]()

    def raising(self: StreamFacts, placed: OrderedEvent) -> None:
        with connect(database_url) as other:
            held.update(o.owner for o in generations.offsets(other, live.stage1, live.stage2))
        if placed.event.event_id == bad.event_id:
            raise ValueError("cannot be folded")
        fold(self, placed)

    fault = Fault(Target("", *key), events[0].event_id, events[0].position, NoProgress.__name__, APART, 1)
    dead_letters.park(log, live.stage1, [fault])
    with monkeypatch.context() as patch:
        patch.setattr(StreamFacts, "_fold", raising)
        refold(log, letters=dead_letters.parked(log, live.stage1))
    assert held == {None}
    [letter] = dead_letters.parked(log, live.stage1)
    waits = sum(event.position > bad.position for event in events)
    assert (letter.fault.source, letter.fault.error, letter.fault.waiting) == (bad.event_id, "ValueError", waits)
    refold(log, letters=[letter])
    assert (dead_letters.parked(log, live.stage1), digests(log)) == ([], filled)


@pytest.mark.parametrize("come_late", [False, True])
def test_what_came_late_since_a_stream_was_folded_waits_and_all_before_it_is_written(
    log: Connection, filled: Digests, database_url: str, monkeypatch: pytest.MonkeyPatch, come_late: bool
) -> None:
    """All of it would have to be folded again, under the lease of its shard."""
    live = generations.live(log)
    key = every_key(log)[0][0]
    before = read_streams(log, [key], last_position(log))[key]
    payload = PromptSubmitted(line="before all others", text="Look at the ledger first.")
    early = Micros(before[0].occurred_at - 1_000_000)
    new = NewEvent(stream=key[1], payload=payload, occurred_at=early, dedupe_key="early", actor="user")
    fault = Fault(Target("", *key), before[-1].event_id, before[-1].position, NoProgress.__name__, APART, 1)
    dead_letters.park(log, live.stage1, [fault])
    append(log, 1, [new])
    drained(database_url)
    late = last_position(log)
    for number in range(2):
        letters = dead_letters.parked(log, live.stage1)
        refold(log, letters=letters, ready={key: FoldedAhead(before, *fold_stream(key[1], before))})
        [letter] = dead_letters.parked(log, live.stage1)
        assert (letter.fault.position, letter.attempts) == (late, 1), number
        assert digests(log) == filled
    compare = partial(replay, database_url, None, verify=True, processes=1, switch=False)
    with monkeypatch.context() as patch:
        if come_late:  # more of it, each time before the leases are held
            patch.setattr(replaying._Replay, "_try_what_waits", lambda *_: None)
            patch.setattr(replaying, "WAITING_EVENTS", 3)
            with pytest.raises(replaying.StillWaits):
                compare()
            patch.setattr(replaying, "WAITING_EVENTS", 1_000)
        assert compare().equal, "what only waits is no difference"
    assert dead_letters.parked(log, live.stage1) == []
    assert digests(log) != filled


def prompted(stream: str, key: str, text: str, at: int) -> NewEvent:
    payload = PromptSubmitted(line=key, text=text)
    return NewEvent(stream=stream, payload=payload, occurred_at=Micros(at), dedupe_key=key, actor="user")


@pytest.mark.parametrize("long", [4, 4_000])
@pytest.mark.parametrize("begun", [False, True], ids=["a new worker", "goes on"])
def test_what_cannot_be_stored_is_looked_for_while_nobody_waits(
    log: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch, long: int, begun: bool
) -> None:
    live, key = generations.live(log), every_key(log)[0][0]
    fold, held = StreamFacts._fold, list[str | None]()

    def encoding(fact: Fact) -> bytes:
        return msgspec.json.encode(fact).replace(b"REFUSED", rb"\u0000")

    def folding(self: StreamFacts, placed: OrderedEvent) -> None:
        with connect(database_url) as other:
            held.extend(o.owner for o in generations.offsets(other, live.stage1) if o.owner)
        fold(self, placed)

    monkeypatch.setattr(facts, "msgspec", SimpleNamespace(json=SimpleNamespace(encode=encoding)))
    monkeypatch.setattr(stage1, "LONG", long)
    monkeypatch.setattr(long_sessions, "REST", 0)
    monkeypatch.setattr(StreamFacts, "_fold", folding)
    last = read_streams(log, [key], last_position(log))[key][-1].occurred_at
    drainer, folder = Drainer(database_url, long=(sessions := LongSessions())), LongFolder(database_url, sessions)

    def worked() -> None:
        catch_up(drainer)
        while waiting := sessions.next(0):
            before = len(held)
            folder.fold(log, waiting)
            assert len(held) == before, "nobody waits for these folds"

    if begun:
        append(log, 1, [prompted(key[1], "first", "Look at the ledger.", last + 1)])
        worked()
    held.clear()
    texts = ["What does the ledger say?", "It says REFUSED.", "Mend it."]
    append(log, 1, [prompted(key[1], text, text, last + 2 + n) for n, text in enumerate(texts)])
    worked()
    drainer.close()
    length = len(read_streams(log, [key], last_position(log))[key])
    most = len(texts) if begun else 0  # what is folded on; where it may be folded whole, that and once by itself
    assert len(held) <= (most if long == 4 else 2 * length), "all else is folded apart"
    [letter] = dead_letters.parked(log, live.stage1)
    assert (letter.fault.error, letter.fault.waiting) == ("UntranslatableCharacter", 1)
    monkeypatch.undo()
    refold(log, letters=[letter])
    assert dead_letters.parked(log, live.stage1) == []
    assert replay(database_url, None, verify=True, processes=1).equal


def waiting_session(log: Connection) -> tuple[tuple[int, str], list[dead_letters.DeadLetter]]:
    """A session that waits for its fold, all of whose rows and facts are of an earlier time."""
    live, key = generations.live(log), every_key(log)[0][0]
    events = read_streams(log, [key], last_position(log))[key]
    log.execute(f"DELETE FROM memctl.episodes_g{live.stage1} WHERE stream = %s", [key[1]])  # type: ignore[arg-type]
    log.execute(f"DELETE FROM memctl.facts_g{live.stage1} WHERE stream = %s", [key[1]])  # type: ignore[arg-type]
    fault = Fault(Target("", *key), events[0].event_id, events[0].position, NoProgress.__name__, APART, 5)
    dead_letters.park(log, live.stage1, [fault])
    return key, dead_letters.parked(log, live.stage1)


def test_stage_2_follows_a_session_that_was_folded_beside_others_and_keeps_nobody_waiting(
    log: Connection, database_url: str, filled: Digests, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = generations.live(log)
    _, letters = waiting_session(log)
    busy = generations.take(log, live.stage2, 0, "stage 2 at work", 1.0)
    monkeypatch.setattr(refolding, "SOON_S", 0.0)
    monkeypatch.setattr(refolding, "IDLE_S", 0.1)
    with pytest.raises(generations.LeaseHeld):  # nothing comes that it would be read with
        refold(log, letters=letters, follows=True)
    assert dead_letters.parked(log, live.stage1) == letters
    append(log, 1, [prompted("session/claude-code/another", "next", "Look at the ledger.", 1_800_000_000_000_000)])
    refold(log, letters=letters, follows=True)
    assert dead_letters.parked(log, live.stage1) == []
    assert digests(log)["facts"] == filled["facts"]
    generations.release(log, busy)
    drained(database_url)
    assert replay(database_url, None, verify=True, processes=1).equal


def test_what_is_parked_no_more_is_left_alone(log: Connection, filled: Digests) -> None:
    live = generations.live(log)
    _, letters = waiting_session(log)
    refold(log, letters=letters)
    assert digests(log) == filled
    before = log.execute("SELECT generation, shard, epoch FROM memctl.offsets ORDER BY 1, 2").fetchall()
    refold(log, letters=letters)
    assert log.execute("SELECT generation, shard, epoch FROM memctl.offsets ORDER BY 1, 2").fetchall() == before
    assert dead_letters.parked(log, live.stage1) == []


@pytest.mark.parametrize("brief", [0.0, 60.0])
def test_others_have_their_time_after_what_stage_2_took_long_to_read(
    log: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch, brief: float
) -> None:
    waits: list[float] = []

    class Noted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0.0)
            if len(waits) == 2:
                drained(database_url)
            return False

    monkeypatch.setattr(long_folder, "BRIEF_S", brief)
    append(log, 1, [prompted("session/claude-code/another", "next", "Look at the ledger.", 1_800_000_000_000_000)])
    began = time.monotonic()
    long_folder._leave_time(log, began, Noted())
    took = time.monotonic() - began
    assert waits[:2] == [long_folder.LOOK_EVERY_S / 5] * 2
    assert len(waits) == (3 if brief == 0.0 else 2)
    assert brief or 0 < waits[2] <= long_folder.OTHERS * took


def test_nobody_waits_for_what_is_not_committed(log: Connection, database_url: str) -> None:
    waits: list[float] = []

    class Noted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0.0)
            return len(waits) > 3

    with connect(database_url, autocommit=False, name="a sleeper") as sleeper:
        append(sleeper, 1, [prompted("session/claude-code/another", "next", "Look at it.", 1_800_000_000_000_000)])
        long_folder._leave_time(log, time.monotonic(), Noted())
    assert len(waits) == 1
