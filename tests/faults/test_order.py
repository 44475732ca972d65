"""Sessions arrive late, reordered, twice, by hook or by transcript first, with clocks that run backwards; they move
about, people speak of what memory made of them, and meanwhile it is folded anew, in part or whole."""

from __future__ import annotations

import contextlib
import itertools
import random
from typing import Any, Literal
from uuid import UUID

import fates
import msgspec
import pytest
import servers
from draining import catch_up
from events import NOON, prompt
from histories import digests, drained, events_of, example, real_sessions
from hypothesis import given
from hypothesis import strategies as st
from orders import Server, folded, orders
from soak import FACTOR
from unit.test_history_laws import history

from memctl.domain.events.erasure import Scope, Tombstone
from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.feedback import MemoryRated
from memctl.domain.events.observations import Observation, PromptSubmitted, event_id_of, hook_key
from memctl.domain.events.skipping import EventSkipped
from memctl.domain.projects.identity import ProjectIdentified
from memctl.infra.database import Connection, connect
from memctl.infra.log import erase
from memctl.infra.log.append import append
from memctl.infra.log.mark import move_mark
from memctl.infra.log.spaces import space_id
from memctl.infra.readmodels import dead_letters, generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.redaction import prepare
from memctl.projections import stream_state
from memctl.projections.kernel import projections
from memctl.workers.erasure.erase import erase_round, nothing_rebuilt, with_counterparts, with_what_cites
from memctl.workers.erasure.forgetting import rounds
from memctl.workers.folding import long_sessions, newest_sources, stream_cache
from memctl.workers.folding import refold as refolding
from memctl.workers.folding import stage1 as folding1
from memctl.workers.folding import stage2 as folding2
from memctl.workers.folding.drain import Drainer
from memctl.workers.folding.long_sessions import LongSessions
from memctl.workers.folding.refold import refold
from memctl.workers.rebuild.as_of import as_of
from memctl.workers.rebuild.replay import NothingToRollBackTo, replay, rollback
from memctl.workers.runtime.long_folder import LongFolder

EVENTS = 80
"""About how many of the real sessions' events are taken: whole sessions, the shortest first."""


@pytest.fixture(scope="module")
def real() -> list[NewEvent]:
    with real_sessions() as folder:
        sessions = sorted((events for events in events_of(folder) if len(events) >= 8), key=len)
    taken: list[NewEvent] = []
    for events in sessions[::3]:
        taken += events
        if len(taken) >= EVENTS:
            break
    return taken


def by_hook(event: NewEvent, number: int) -> NewEvent:
    """The same happening as a hook would have told of it, a moment later and without its line."""
    assert isinstance(event.payload, Observation)
    payload = msgspec.structs.replace(event.payload, via="hook", line="", block=0, parent="")
    return msgspec.structs.replace(
        event,
        payload=payload,
        dedupe_key=hook_key(str(UUID(int=number))),
        occurred_at=Micros(event.occurred_at + 1_000),
    )


def check_orders(server: Server, events: list[NewEvent], seed: int, hooks: bool, backwards: bool) -> None:
    luck = random.Random(seed)
    if backwards:  # the clock of each event is set at random within two minutes
        events = [
            msgspec.structs.replace(e, occurred_at=Micros(max(0, e.occurred_at - luck.randrange(120) * 1_000_000)))
            for e in events
        ]
    if hooks:
        told = [e for e in events if isinstance(e.payload, Observation) and luck.random() < 0.6]
        events = events + [by_hook(event, number) for number, event in enumerate(told)]
    expected = folded(*server, events, [])
    arriving = events + luck.sample(events, len(events) // 4)
    luck.shuffle(arriving)
    cuts = luck.sample(range(len(arriving)), 5)
    shards, batch = luck.choice([1, 3, 16]), luck.choice([1, 50, 5000])
    assert folded(*server, arriving, cuts, shards=shards, batch=batch) == expected
    hooks_first = sorted(events, key=lambda e: not e.dedupe_key.startswith("hook:"))
    assert folded(*server, hooks_first, [len(events) // 2], shards=16) == expected


@orders
@given(seed=st.integers(0, 2**32), hooks=st.booleans(), backwards=st.booleans())
def test_real_sessions_in_any_order_end_in_the_same_rows(
    server: Server, real: list[NewEvent], seed: int, hooks: bool, backwards: bool
) -> None:
    check_orders(server, real, seed, hooks, backwards)


@orders
@given(
    seed=st.integers(0, 2**32),
    most=st.sampled_from([5, 30, 100, newest_sources.MOST_HELD]),
    long=st.sampled_from([3, 12, folding1.LONG]),
    kept=st.sampled_from([50, stream_cache.KEPT_EVENTS]),
    processes=st.sampled_from([1, 2]),
)
def test_what_processes_fold_piece_by_piece_ends_in_the_same_rows(
    server: Server, real: list[NewEvent], seed: int, most: int, long: int, kept: int, processes: int
) -> None:
    """Each folds what is revised onto the rows as they were before, of as many as it holds; long sessions are folded
    beside all others, now and then."""
    luck = random.Random(seed)
    events = [*real, *example(0), *example(1), *example(0)]
    luck.shuffle(events)
    with (
        pytest.MonkeyPatch.context() as patch,
        servers.fresh_database(server[0], server[1].live(1)) as url,
        connect(url) as connection,
    ):
        patch.setattr(newest_sources, "MOST_HELD", most)
        patch.setattr(newest_sources, "MOST_BYTES", luck.choice([5_000, newest_sources.MOST_BYTES]))
        patch.setattr(long_sessions, "REST", 0)
        patch.setattr(refolding, "SOON_S", 0.0)
        patch.setattr(folding1, "LONG", long)
        patch.setattr(stream_cache, "KEPT_EVENTS", kept)
        batch = luck.choice([3, 50, 5_000])

        def begun() -> tuple[Drainer, LongSessions, LongFolder]:
            folder = LongFolder(url, sessions := LongSessions())
            folder.take_over(connection)
            return Drainer(url, batch, long=sessions), sessions, folder

        workers = [begun() for _ in range(processes)]
        while events:
            count = luck.randint(1, 20)
            append(connection, 1, events[:count])
            del events[:count]
            number = luck.randrange(processes)
            if luck.random() < 0.1:
                workers[number][0].close()
                workers[number] = begun()
            drainer, sessions, folder = workers[number]
            catch_up(drainer)
            while luck.random() < 0.7 and (waiting := sessions.next(0)):
                if luck.random() < 0.5:  # stage 2 reads on, else it is held as well
                    append(connection, 1, events[:1])
                    del events[:1]
                folder.fold(connection, waiting)
        for drainer, sessions, folder in [*workers, begun()]:
            while waiting := sessions.next(0):
                folder.fold(connection, waiting)
            catch_up(drainer)
            drainer.close()
        assert dead_letters.parked(connection, generations.live(connection).stage1) == []
        assert replay(url, None, verify=True, processes=1).equal


@orders
@given(seed=st.integers(0, 2**32))
def test_hooks_and_transcripts_of_one_session_in_any_order_end_in_the_same_rows(server: Server, seed: int) -> None:
    check_orders(server, [*example(0), *example(1)], seed, hooks=True, backwards=True)


def test_an_event_that_comes_last_of_all_is_folded_where_it_belongs(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each session another one, and nothing follows it: a fold that takes it for the end is never mended."""
    monkeypatch.setattr(stream_state, "POINT_EVERY", 8)
    sessions = [example(number) for number in range(len(example()) - 1)]
    for number in range(0, len(sessions), 3):
        sessions[number] = [by_hook(event, 100 * number + n) for n, event in enumerate(sessions[number])]
    late = [told[number] for number, told in enumerate(sessions)]
    others = [event for told in sessions for event in told if event not in late]
    expected = folded(*server, [*others, *late], [])
    assert folded(*server, [*others, *late], [len(others)], batch=200) == expected


def test_a_long_session_that_comes_with_its_end_first_is_folded_anew_by_few_batches(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding1, "LONG_REFOLD", 40)
    parts = [[prompt(number) for number in range(start, start + 10)] for start in range(0, 400, 10)]
    last_first = [event for part in reversed(parts) for event in part]
    batches: list[int] = []
    with servers.fresh_database(server[0], server[1].live(1)) as url, connect(url) as connection:
        append(connection, 1, last_first)
        live, upto, stage = generations.live(connection), move_mark(connection), folding1.Stage1(10)
        lease = generations.take(connection, live.stage1, 0, "test", 5)
        while (before := lease.position) < upto:
            lease = stage.drain_batch(connection, lease, upto)
            batches.append(lease.position - before)
        generations.release(connection, lease)
        drained(url)
        assert digests(connection) == folded(*server, [event for part in parts for event in part], [])
    assert batches == [10, 10, 10, 10, 40, 80, 160, 80]


def test_batches_stay_as_they_are_while_many_sessions_go_on_that_are_no_longer_kept(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is folded anew as it goes on; a longer batch has more of them, and holds all of their events at once."""
    monkeypatch.setattr(folding1, "LONG_REFOLD", 40)
    monkeypatch.setattr(stream_cache, "KEPT_EVENTS", 60)
    with servers.fresh_database(server[0], server[1].live(1)) as url, connect(url) as connection:
        append(connection, 1, [prompt(number, session=f"s{n}") for number in range(20) for n in range(20)])
        live, upto, stage = generations.live(connection), move_mark(connection), folding1.Stage1(20)
        lease = generations.take(connection, live.stage1, 0, "test", 5)
        while (before := lease.position) < upto:
            lease = stage.drain_batch(connection, lease, upto)
            assert lease.position - before == 20
        generations.release(connection, lease)


def test_a_batch_ends_with_the_event_that_fills_it(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding1, "BATCH_BYTES", 10_000)
    with servers.fresh_database(server[0], server[1].live(1)) as url, connect(url) as connection:
        append(connection, 1, [prompt(number, "so " * 1_000) for number in range(30)])
        live, upto, stage = generations.live(connection), move_mark(connection), folding1.Stage1(5_000)
        lease = generations.take(connection, live.stage1, 0, "test", 5)
        batches = 0
        while (before := lease.position) < upto:
            lease = stage.drain_batch(connection, lease, upto)
            assert 1 <= lease.position - before <= 4
            batches += 1
        generations.release(connection, lease)
        assert batches >= 8


def test_what_a_worker_keeps_of_many_small_sessions_and_of_long_rows_is_bounded(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session of one event takes as much as forty events do; a row may hold as much as a thousand others."""
    monkeypatch.setattr(stream_cache, "KEPT_EVENTS", 10 * stream_cache.OF_A_STREAM)
    monkeypatch.setattr(folding2, "KEPT_BYTES", 20_000)
    monkeypatch.setattr(newest_sources, "MOST_BYTES", 20_000)
    with servers.fresh_database(server[0], server[1].live(1)) as url, connect(url) as connection:
        append(connection, 1, [prompt(1, "so " * 2_000, session=f"s{number}") for number in range(60)])
        live, upto, first = generations.live(connection), move_mark(connection), folding1.Stage1(20)
        lease = generations.take(connection, live.stage1, 0, "test", 5)
        while lease.position < upto:
            lease = first.drain_batch(connection, lease, upto)
        generations.release(connection, lease)
        second = folding2.Stage2()
        lease = generations.take(connection, live.stage2, 0, "test", 5)
        while lease.position < upto:
            lease = second.drain_batch(connection, lease, live.stage1, upto)
        generations.release(connection, lease)
        assert 0 < len(first.states) <= 10  # the largest beside what is kept
        assert 0 < second._rows.bytes <= 20_000
        assert 0 < second._newest._bytes <= 20_000


def test_a_stream_longer_than_all_that_is_kept_is_not_read_again_for_each_event_of_another(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_cache, "KEPT_EVENTS", 100)
    with servers.fresh_database(server[0], server[1].live(1)) as url, connect(url) as connection:
        append(connection, 1, [prompt(number, session="long") for number in range(200)])
        live, stage = generations.live(connection), folding1.Stage1(500)
        for number in range(3):
            append(connection, 1, [prompt(200 + number, session="long"), prompt(number, session=f"short{number}")])
            lease = generations.take(connection, live.stage1, 0, "test", 5)
            lease = stage.drain_batch(connection, lease, move_mark(connection))
            generations.release(connection, lease)
            assert {(1, f"session/claude-code/{name}") for name in ("long", f"short{number}")} <= stage.states.keys()
            assert stage._last_refolded[live.stage1, 0] < 200 or number == 0


def test_of_what_is_told_under_one_key_the_same_counts_whichever_came_first(server: Server) -> None:
    """By another actor, in another session, as something that the other stage folds: a relay may send all of it."""
    said = [event for event in example(0) if isinstance(event.payload, PromptSubmitted)]
    place = ProjectIdentified(location="/w", remote="github.com/dana/w")
    told = [
        *said,
        *(msgspec.structs.replace(event, actor="agent") for event in said),
        *(msgspec.structs.replace(event, stream=example(1)[0].stream, session_id="other") for event in said),
        *(msgspec.structs.replace(event, stream="project/w", payload=place) for event in said),
        *(
            NewEvent(stream="project/w", payload=payload, occurred_at=Micros(NOON), dedupe_key="k", actor="user")
            for payload in (place, MemoryRated(memory="m", value=1.0))
        ),
    ]
    rows = []
    for order in (told, told[::-1]):
        with servers.fresh_database(server[0], server[1].live(3)) as url, connect(url) as connection:
            drainer = Drainer(url)
            for event in order:
                append(connection, 1, [event])
                catch_up(drainer)
            drainer.close()
            rows.append(digests(connection))
            assert replay(url, None, verify=True, processes=1).equal
    assert rows[0] == rows[1]


@orders
@given(seed=st.integers(0, 2**32))
def test_what_one_space_is_told_changes_nothing_in_another(server: Server, seed: int) -> None:
    """The same sessions in both, in which rows and facts have the same keys."""
    luck = random.Random(seed)
    own = [prepare(event) for event in fates.arriving(luck, history(luck, 40))]

    def rows(told: list[tuple[int, NewEvent]], shards: int) -> list[list[tuple[Any, ...]]]:
        """Of the first space, once all that was told is folded, some of it anew and something forgotten elsewhere."""
        with servers.fresh_database(server[0], server[1].live(shards)) as url, connect(url) as connection:
            assert space_id(connection, "other", 2) == 2
            drainer = Drainer(url, luck.choice((7, 2000)))
            for number, (space, event) in enumerate(told):
                append(connection, space, [event])
                if number % 40 == 0:
                    catch_up(drainer)
            catch_up(drainer)
            drainer.close()
            live = generations.live(connection)
            if any(space == 2 for space, _ in told):
                streams = connection.execute(
                    "SELECT DISTINCT stream FROM memctl.events WHERE space_id = 2 AND stream ~ '^session/' ORDER BY 1"
                ).fetchall()
                refold(connection, streams=[(2, row[0]) for row in streams[:2]])
                there = connection.execute(
                    "SELECT event_id FROM memctl.events WHERE space_id = 2 ORDER BY 1"
                ).fetchall()
                with nothing_rebuilt(connection):
                    erase.begin(connection, 2, UUID(int=1), Scope(kind="id"), "")
                    erase_round(connection, 2, UUID(int=1), {row[0] for row in luck.sample(there, 5)})
            names = [(p.name, live.stage1 if p.stage == 1 else live.stage2) for p in projections()]
            return [
                connection.execute(
                    f"SELECT key, row FROM memctl.{name}_g{generation} WHERE space_id = 1 ORDER BY key".encode()
                ).fetchall()
                for name, generation in names
            ]

    told = [(1, event) for event in own]
    for event in own:
        told.insert(luck.randint(0, len(told)), (2, event))
    first = [each for each in told if each[0] == 1]
    assert rows(told, luck.choice((1, 3))) == rows(first, 1)


MEDDLING = ("refold", "forget", "replay", "forget", "rollback", "forget")
"""What is done between two deliveries, each after some shards were drained. Every day in this order, in which what was
forgotten has to reach rows that were folded before, those that are live and those that are kept for a rollback; in a
soak in any order, and in its place whatever comes."""


def drain(luck: random.Random, drainers: list[Drainer], share: float) -> None:
    """Some shards are drained, by one worker or the other."""
    for _ in range(3):
        drainer = luck.choice(drainers)
        for stage, shard in drainer.behind():
            if luck.random() < share:
                drainer.drain(stage, shard)


def meddle(what: str, url: str, connection: Connection, luck: random.Random) -> None:
    """Streams and rows are folded anew; all is rebuilt, and kept, dropped or taken back; something is forgotten."""
    match what:
        case "refold":
            stage2 = generations.live(connection).stage2
            found = connection.execute("SELECT DISTINCT space_id, stream FROM memctl.events WHERE stream ~ '^session/'")
            streams = sorted((row[0], row[1]) for row in found.fetchall())
            rows = [(p.name, (1, key)) for p in projections(2) for key, _ in readmodels.all_rows(connection, p, stage2)]
            some = luck.sample(rows, min(len(rows), luck.randint(0, 6)))
            refold(connection, streams=luck.sample(streams, min(len(streams), luck.randint(0, 2))), rows=some)
        case "replay":
            first_stage: Literal[1, 2] = luck.choice((1, 2))
            shards, switch = luck.choice((None, None, 1, 3)), not FACTOR or luck.random() < 0.7
            done = replay(url, None, first_stage=first_stage, shards=shards, switch=switch, verify=True, processes=1)
            assert done.equal, [c for c in done.compared if not c.equal]
        case "rollback":
            with contextlib.suppress(NothingToRollBackTo):
                rollback(url, None)
        case _:
            there = connection.execute(
                "SELECT DISTINCT coalesce(variant_of, event_id) FROM memctl.events"
                " WHERE payload IS NOT NULL AND type <> ALL(%s) ORDER BY 1",
                [list(erase.RECORDS)],
            ).fetchall()
            forgotten(connection, {row[0] for row in luck.sample(there, min(len(there), luck.randint(1, 5)))}, luck)


def forgotten(connection: Connection, ids: set[UUID], luck: random.Random) -> None:
    """Erase deliveries, what cites them, their twins and what was recorded about them; they cannot be told again."""
    receipt = UUID(int=luck.getrandbits(128))
    with nothing_rebuilt(connection):
        begun = erase.receipt(connection, receipt)  # by whoever was stopped in between
        wanted = ids.union(begun.erased if begun else ())
        found, stones = with_counterparts(connection, 1, with_what_cites(connection, 1, wanted))
        erase.begin(connection, 1, receipt, Scope(kind="id"), "", found)
        erase.lay_tombstones(
            connection, 1, receipt, [*stones, *(Tombstone(kind="event", value=str(id)) for id in found)]
        )
        assert erase.settled(connection, 1), "a writer that began before may tell it in another version"
        for _ in rounds(connection, 1, receipt, found):
            pass
        erase.finish(connection, receipt, {})


@orders
@given(seed=st.integers(0, 2**32))
def test_whatever_is_told_and_folded_anew_in_between_the_rows_are_those_of_a_rebuild(server: Server, seed: int) -> None:
    luck = random.Random(seed)
    arriving = [prepare(event) for event in fates.arriving(luck, history(luck, 40))]
    with (
        pytest.MonkeyPatch.context() as patch,
        servers.fresh_database(server[0], server[1].live(luck.choice((1, 2, 16)))) as url,
        connect(url) as connection,
        contextlib.ExitStack() as held,
    ):
        patch.setattr(stream_state, "POINT_EVERY", 3)
        patch.setattr(stream_cache, "KEPT_EVENTS", luck.choice((20, 60_000)))
        patch.setattr(folding2, "KEPT_ROWS", luck.choice((10, 20_000)))
        drainers = [Drainer(url, luck.choice((1, 7, 5000))) for _ in range(2)]
        for drainer in drainers:
            held.callback(drainer.close)
        meddling = luck.choices(MEDDLING, k=len(MEDDLING)) if FACTOR else list(MEDDLING)
        meddling = meddling[: len(arriving) - 1]  # once in a while next to nothing is told
        edges = [0, *sorted(luck.sample(range(1, len(arriving)), len(meddling))), len(arriving)]
        kept = list[NewEvent]()
        for number, ((start, end), what) in enumerate(itertools.zip_longest(itertools.pairwise(edges), meddling)):
            told = arriving[start:end]
            done = zip(told, append(connection, 1, told), strict=True)
            kept += [event for event, appended in done if appended.status in ("new", "variant")]
            drain(luck, drainers, 0.8)
            if what:
                meddle(what, url, connection, luck)
            if number == len(meddling) // 2:
                past, kept_then = move_mark(connection), len(kept)
        catch_up(drainers[0])
        live = generations.live(connection)
        assert not dead_letters.parked(connection, live.stage1, live.stage2)
        rows = digests(connection)
        erased = {row[0] for row in connection.execute("SELECT unnest(erased) FROM memctl.receipts")}
        assert replay(url, None, verify=True, processes=1).equal
        with as_of(url, past, processes=1) as (then, scratch):
            seen = digests(then, scratch)

    def standing(events: list[NewEvent]) -> list[NewEvent]:
        found = [event for event in events if event_id_of(1, event.dedupe_key) not in erased]
        return luck.sample(found, len(found))

    assert folded(*server, standing(kept), []) == rows
    left_out_since = [event for event in kept[kept_then:] if isinstance(event.payload, EventSkipped)]
    past_now = standing([*kept[:kept_then], *left_out_since])
    assert folded(*server, past_now, []) == seen, "the past is shown without what was erased or left out since"
