"""The log on a real Postgres: append, duplicates, variants, immutability, the mark."""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import UUID

import psycopg
import pytest
from events import id_of, prompt
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from waiting import until

from memctl.domain.events.event import YEAR_9999, Micros, NewEvent, Payload, Position, stream_hash
from memctl.domain.events.observations import PromptSubmitted
from memctl.infra.database import Connection, connect, past_deadlocks
from memctl.infra.log.append import append
from memctl.infra.log.audit import decoded
from memctl.infra.log.mark import last_position, mark, mark_age, move_mark, position_at, slow_writers
from memctl.infra.log.migrate import migrate
from memctl.infra.log.read import read_events, read_range
from memctl.infra.log.spaces import space_id
from memctl.infra.redaction import prepare

NUMBERS = itertools.count()


@pytest.fixture
def log(database_url: str) -> Connection:
    return connect(database_url)


def read_all(log: Connection) -> list[str]:
    return [e.payload.text for e in read_range(log, Position(0), move_mark(log), limit=100_000).events]  # type: ignore[attr-defined]


def test_events_are_read_in_the_order_of_their_positions(log: Connection) -> None:
    done = append(log, 1, [prompt(1, "one"), prompt(2, "two")])
    assert [entry.status for entry in done] == ["new", "new"]
    assert done[0].position < done[1].position
    assert read_all(log) == ["one", "two"]


def test_the_same_delivery_is_a_duplicate_and_returns_the_first_position(log: Connection) -> None:
    first = append(log, 1, [prompt(1, "one")])
    again = append(log, 1, [prompt(2, "two"), prompt(1, "one"), prompt(2, "two")])
    assert [entry.status for entry in again] == ["new", "duplicate", "duplicate"]
    assert again[1].position == first[0].position
    assert again[2].position == again[0].position
    assert read_all(log) == ["one", "two"]


def test_versions_under_one_key_are_each_redacted_once_for_a_batch(log: Connection) -> None:
    versions = [replace(prompt(number), dedupe_key="one") for number in range(40)]
    append(log, 1, versions)
    redacted: list[str] = []

    def again(payload: Payload, location: str) -> tuple[Payload, str]:
        redacted.append(location)
        return payload, location

    come = [*versions[:20], *(replace(prompt(number), dedupe_key="one") for number in range(100, 120))]
    assert [entry.status for entry in append(log, 1, come, again)] == ["duplicate"] * 20 + ["variant"] * 20
    assert len(redacted) == len(versions)


def test_a_moment_long_after_it_was_recorded_is_read_as_none_and_comes_again_as_a_duplicate(log: Connection) -> None:
    """Appended past the door, as a log of before may hold it."""
    far = replace(prompt(1, "in years to come"), occurred_at=Micros(YEAR_9999 - 1))
    append(log, 1, [far, prompt(2, "now")])
    assert [e.occurred_at for e in read_range(log, Position(0), move_mark(log), limit=9).events] == [
        0,
        prompt(2).occurred_at,
    ]
    redacted = [prepare(far)]
    assert [entry.status for entry in append(log, 1, redacted, lambda payload, location: (payload, location))] == [
        "duplicate"
    ]


def test_one_delivery_by_itself_is_new_once_then_a_duplicate(log: Connection) -> None:
    [first], [again] = append(log, 1, [prompt(1, "one")]), append(log, 1, [prompt(1, "one")])
    assert (first.status, again.status) == ("new", "duplicate")
    assert again.position == first.position
    [variant], [once_more] = append(log, 1, [prompt(1, "grown")]), append(log, 1, [prompt(1, "grown")])
    assert (variant.status, once_more.status) == ("variant", "duplicate")
    assert once_more.position == variant.position


def test_nothing_is_appended_to_a_space_that_is_not_there(log: Connection) -> None:
    for events in ([prompt(1)], [prompt(1), prompt(2)]):
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            append(log, 999, events)
    assert read_all(log) == []


def test_a_batch_that_postgres_refuses_leaves_nothing_behind(log: Connection) -> None:
    append(log, 1, [prompt(1, "one")])
    refused = prompt(3, session=random.Random(1).randbytes(6000).hex())
    with pytest.raises(psycopg.errors.ProgramLimitExceeded):
        append(log, 1, [prompt(1, "another telling"), prompt(2), refused])
    assert read_all(log) == ["one"]


def test_appending_in_an_open_transaction_does_not_end_it(database_url: str, log: Connection) -> None:
    append(log, 1, [prompt(1, "one")])
    with connect(database_url, autocommit=False) as mine:
        append(mine, 1, [prompt(1, "grown"), prompt(2)])
        append(mine, 1, [prompt(3)])
        mine.rollback()
    assert read_all(log) == ["one"]


def test_what_surrounds_a_payload_is_stored_as_it_was_given(log: Connection) -> None:
    causes = [prompt(1), prompt(2)]
    ids = [UUID(id_of(event)) for event in causes]
    append(log, 1, causes)
    told = replace(prompt(3), causation_id=ids[0], correlation_id=ids[1], sources=tuple(ids), occurred_at=Micros(-5))
    append(log, 1, [told])
    append(log, 1, [replace(told, dedupe_key="again"), prompt(4)])
    found = log.execute(
        "SELECT causation_id, correlation_id, sources, dedupe_key, stream_hash, schema_version, actor, location,"
        " session_id, (extract(epoch FROM occurred_at) * 1000000)::bigint FROM memctl.events ORDER BY position",
        binary=True,
    ).fetchall()
    surroundings = (stream_hash(told.stream), 1, "user", told.location, "s1")
    assert found[2] == (*ids, ids, told.dedupe_key, *surroundings, -5)
    assert found[3] == (*ids, ids, "again", *surroundings, -5)
    assert found[4][:4] == (None, None, None, prompt(4).dedupe_key)


def test_another_payload_under_one_key_is_kept_beside_it_as_a_variant(log: Connection) -> None:
    append(log, 1, [prompt(1, "one")])
    done = append(log, 1, [prompt(1, "one, grown"), prompt(1, "one, grown"), prompt(1, "one")])
    assert [entry.status for entry in done] == ["variant", "duplicate", "duplicate"]
    first, variant = read_range(log, Position(0), move_mark(log), limit=10).events
    assert variant.variant_of == first.event_id
    assert variant.delivery_id == first.delivery_id


def test_whichever_variant_came_first_reading_by_id_gives_the_same_one(log: Connection) -> None:
    team = space_id(log, "team")
    append(log, 1, [prompt(1, "short")])
    append(log, 1, [prompt(1, "the longer telling")])
    append(log, team, [prompt(1, "the longer telling")])
    append(log, team, [prompt(1, "short")])
    texts = []
    for space in (1, team):
        ids = [
            e.delivery_id for e in read_range(log, Position(0), move_mark(log), limit=10).events if e.space_id == space
        ]
        texts += [e.payload.text for e in read_events(log, space, ids[:1]).values()]  # type: ignore[attr-defined]
    assert texts == ["the longer telling", "the longer telling"]


def test_who_told_it_where_and_on_what_grounds_is_told_with_it_and_each_is_kept_once(log: Connection) -> None:
    told = [
        replace(prompt(1, text), **said)
        for text in ("one", "one, grown")
        for said in (
            {}, {"actor": "agent"}, {"stream": "session/claude-code/s2"}, {"session_id": "s2"},
            {"sources": (UUID(int=1),)}, {"sources": (UUID(int=1), UUID(int=2))},
        )
    ]  # fmt: skip
    done = append(log, 1, told)
    assert [entry.status for entry in done] == ["new", *["variant"] * 11]
    assert len({entry.position for entry in done}) == len(told)
    for again in (append(log, 1, told), [append(log, 1, [event])[0] for event in told]):
        assert [(entry.status, entry.position) for entry in again] == [("duplicate", e.position) for e in done]
    read = read_range(log, Position(0), move_mark(log), limit=100).events
    assert {e.delivery_id for e in read} == {UUID(id_of(told[0]))}
    assert Counter((e.actor, e.stream, e.session_id, e.sources) for e in read) == Counter(
        (e.actor, e.stream, e.session_id, e.sources) for e in told
    )
    assert not decoded(log, move_mark(log)).misnamed.count


def test_spaces_do_not_see_each_others_keys(log: Connection) -> None:
    append(log, 1, [prompt(1, "one")])
    assert append(log, space_id(log, "team"), [prompt(1, "one")])[0].status == "new"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE memctl.events SET actor = 'someone else'",
        "DELETE FROM memctl.events",
        "TRUNCATE memctl.events CASCADE",
    ],
)
def test_what_is_in_the_log_cannot_be_changed(log: Connection, statement: str) -> None:
    append(log, 1, [prompt(1, "one")])
    with pytest.raises(psycopg.errors.RestrictViolation):
        log.execute(statement)
    assert read_all(log) == ["one"]


def test_the_triggers_that_guard_the_log_fire_also_in_a_replica_session(log: Connection) -> None:
    found = log.execute(
        "SELECT tgname, tgenabled::text FROM pg_trigger WHERE tgrelid = 'memctl.events'::regclass AND NOT tgisinternal"
    ).fetchall()
    assert sorted(found) == [
        ("events_deliver", "A"),
        ("events_deliver_again", "A"),
        ("events_hold_positions", "A"),
        ("events_no_change", "A"),
        ("events_no_truncate", "A"),
    ]


def test_a_rolled_back_append_was_never_there(log: Connection) -> None:
    with log.transaction(force_rollback=True):
        assert append(log, 1, [prompt(1, "one")])[0].status == "new"
    assert append(log, 1, [prompt(1, "one")])[0].status == "new"
    assert read_all(log) == ["one"]


def test_the_mark_of_an_empty_log_is_nought(log: Connection) -> None:
    assert move_mark(log) == mark(log) == 0


def test_the_mark_is_as_old_as_the_first_event_above_it(log: Connection) -> None:
    append(log, 1, [prompt(1)])
    assert mark_age(log, 1) > 0
    move_mark(log)
    assert mark_age(log, 1) == 0


def test_the_mark_waits_for_a_writer_that_has_a_position_but_no_commit(database_url: str, log: Connection) -> None:
    with connect(database_url, autocommit=False) as slow:
        held = append(slow, 1, [prompt(1, "slow")])[0].position
        done = append(log, 1, [prompt(2, "fast")])[0].position
        assert held < done
        assert move_mark(log, patience_s=0.05) < held
        assert read_all(log) == []
        slow.commit()
    assert move_mark(log) >= done
    assert read_all(log) == ["slow", "fast"]


def test_the_first_event_of_an_empty_log_is_not_skipped(database_url: str, log: Connection) -> None:
    with connect(database_url, autocommit=False) as slow:
        append(slow, 1, [prompt(1, "first")])
        assert move_mark(log, patience_s=0.05) == 0
        slow.commit()
    assert read_all(log) == ["first"]


def test_a_long_transaction_that_appends_nothing_does_not_hold_the_mark(database_url: str, log: Connection) -> None:
    with connect(database_url, autocommit=False) as other:
        other.execute("CREATE TEMPORARY TABLE unrelated (n int)")
        other.execute("SELECT pg_advisory_xact_lock_shared(12345)")
        position = append(log, 1, [prompt(1, "one")])[0].position
        assert move_mark(log, patience_s=0.0) == position


def test_a_writer_that_idles_is_told_of_then_ended_and_the_mark_moves_on(
    database_url: str, log: Connection, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memctl.infra.log.mark.SLOW_WRITER_S", 0.0)
    idler = connect(database_url, autocommit=False, name="an idler")
    assert idler.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("1min",)
    append(idler, 1, [prompt(1, "never committed")])
    position = append(log, 1, [prompt(2, "kept")])[0].position
    assert move_mark(log, patience_s=0.05) < position
    [found] = slow_writers(log)
    assert (found.pid, found.application, found.state) == (idler.info.backend_pid, "an idler", "idle in transaction")
    assert [record.message for record in caplog.records if "an idler" in record.message]

    caplog.clear()
    assert move_mark(log, patience_s=0.05) < position
    assert not caplog.records, "told once, not at every attempt"

    idler.execute("SET idle_in_transaction_session_timeout = '100ms'")
    until(lambda: move_mark(log, patience_s=0.05) >= position)
    assert slow_writers(log) == []
    assert read_all(log) == ["kept"]
    with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
        idler.execute("SELECT 1")
    idler.close()


@pytest.mark.parametrize("holds", [f"SELECT pg_advisory_lock({0x6D656D63}, 1)", "BEGIN; LOCK TABLE memctl.events"])
def test_who_holds_a_lock_that_memctl_waits_for_is_named_and_who_waits_is_not(
    database_url: str, log: Connection, holds: str
) -> None:
    with (
        psycopg.connect(database_url, autocommit=True, application_name="somebody") as other,
        connect(database_url, name="memctl intake") as waiting,
        ThreadPoolExecutor() as thread,
    ):
        other.execute(holds)
        kept = thread.submit(append, waiting, 1, [prompt(1, "one")])
        until(lambda: [each.application for each in slow_writers(log, longer_than_s=0.1)] == ["somebody"])
        other.execute("SELECT pg_advisory_unlock_all(); ROLLBACK")
        assert len(kept.result()) == 1
    assert slow_writers(log, longer_than_s=0.0) == []


def test_whoever_holds_locks_of_another_kind_is_no_slow_writer(database_url: str, log: Connection) -> None:
    with connect(database_url, autocommit=False) as other, connect(database_url, autocommit=False) as writer:
        other.execute("SELECT pg_advisory_xact_lock(1), pg_advisory_xact_lock(1, 2)")
        other.execute("LOCK TABLE memctl.spaces IN SHARE MODE")
        append(writer, 1, [prompt(1, "one")])
        [found] = slow_writers(log, longer_than_s=0.0)
        assert found.pid == writer.info.backend_pid
        writer.rollback()
        other.rollback()


def test_where_the_mark_stood_is_known_for_every_moment(log: Connection) -> None:
    noon = datetime(2026, 3, 2, 12, tzinfo=UTC)
    for minute, position in ((0, 10), (5, 20)):
        log.execute(
            "INSERT INTO memctl.mark_history (reached_at, position) VALUES (%s, %s)",
            [noon + timedelta(minutes=minute), position],
        )
    asked = [(-1, 0), (0, 10), (4, 10), (5, 20), (60, 20)]
    assert [position_at(log, noon + timedelta(minutes=minute)) for minute, _ in asked] == [p for _, p in asked]


def test_the_last_position_counts_what_is_not_committed_and_moves_nothing(database_url: str, log: Connection) -> None:
    assert last_position(log) == 0
    with connect(database_url, autocommit=False) as writer:
        [open_] = append(writer, 1, [prompt(1)])
        assert last_position(log) == open_.position
        assert mark(log) == 0
        writer.rollback()


def test_a_batch_is_stored_whole_or_not_at_all_also_when_only_its_variants_fail(log: Connection) -> None:
    append(log, 1, [prompt(1, "one")])
    log.execute(
        "CREATE FUNCTION pg_temp.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no room'; END $$;"
        "CREATE TRIGGER refuse BEFORE INSERT ON memctl.events FOR EACH ROW WHEN (NEW.variant_of IS NOT NULL)"
        " EXECUTE FUNCTION pg_temp.refuse()"
    )
    with pytest.raises(psycopg.errors.RaiseException):
        append(log, 1, [prompt(2, "two"), prompt(1, "one, grown")])
    assert read_all(log) == ["one"]


def test_a_nul_that_no_door_cleaned_is_stored_as_the_mark_of_what_cannot_be(log: Connection) -> None:
    append(log, 1, [prompt(1, "a\0b"), prompt(2, "a literal \\u0000 stays")])
    assert read_all(log) == ["a\ufffdb", "a literal \\u0000 stays"]


def test_an_appender_gives_up_on_a_lock_that_another_does_not_let_go(database_url: str, log: Connection) -> None:
    with connect(database_url, autocommit=False) as holder:
        append(holder, 1, [prompt(1, "one")])
        log.execute("SET lock_timeout = '50ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            append(log, 1, [prompt(1, "one")])
        holder.rollback()
    assert append(log, 1, [prompt(1, "one")])[0].status == "new"


def test_writers_that_come_after_are_not_waited_for(database_url: str, log: Connection) -> None:
    with connect(database_url, autocommit=False) as early, connect(database_url, autocommit=False) as late:
        first = append(early, 1, [prompt(1, "early")])[0].position
        reached: list[int] = []

        def move() -> None:
            with connect(database_url, name="mover") as mover:
                reached.append(move_mark(mover, patience_s=20))

        mover = threading.Thread(target=move)
        mover.start()
        waits = (
            "SELECT 1 FROM pg_stat_activity"
            " WHERE application_name = 'mover' AND state = 'idle' AND query LIKE '%frontier()%'"
        )
        until(lambda: log.execute(waits).fetchone() is not None)
        append(late, 1, [prompt(2, "late")])
        early.commit()
        mover.join(15)
        assert reached
        assert reached[0] >= first


def test_twelve_writers_with_rollbacks_leave_no_event_unread(database_url: str, log: Connection) -> None:
    writers, batches = 12, 60
    ended = threading.Event()
    read: list[str] = []

    def write(writer: int) -> list[str]:
        luck = random.Random(writer)
        kept = []
        with connect(database_url, autocommit=False) as mine:
            for batch in range(batches):
                texts = [f"{writer}:{batch}:{n}" for n in range(luck.randint(1, 8))]
                for number, text in enumerate(texts):
                    append(mine, 1, [prompt(batch * 10 + number, text, session=f"w{writer}")])
                if luck.random() < 0.1:
                    mine.rollback()
                else:
                    mine.commit()
                    kept += texts
        return kept

    def read_on() -> None:
        at = Position(0)
        with connect(database_url) as reader:
            while True:
                last_round = ended.is_set()
                upto = move_mark(reader)
                while found := read_range(reader, at, upto, limit=100).events:
                    read.extend(e.payload.text for e in found)  # type: ignore[attr-defined]
                    at = found[-1].position
                at = max(at, upto)
                if last_round:
                    return

    reader = threading.Thread(target=read_on)
    reader.start()
    with ThreadPoolExecutor(writers) as pool:
        kept = [text for texts in pool.map(write, range(writers)) for text in texts]
    ended.set()
    reader.join(60)
    assert sorted(read) == sorted(kept)


def test_two_appends_of_the_same_keys_at_once_store_each_once(database_url: str, log: Connection) -> None:
    events = [prompt(n) for n in range(60)]

    def put(order: int) -> int:
        mine = list(events)
        random.Random(order).shuffle(mine)
        with connect(database_url) as connection:
            return sum(entry.status == "new" for entry in past_deadlocks(lambda: append(connection, 1, mine)))

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(put, range(4))) == len(events)
    assert len(read_all(log)) == len(events)


def test_migrating_again_changes_nothing(database_url: str, log: Connection) -> None:
    append(log, 1, [prompt(1, "one")])
    assert migrate(database_url) == migrate(database_url)
    assert read_all(log) == ["one"]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 5), st.text(max_size=20)), max_size=12))
def test_a_text_is_kept_as_it_is_whatever_it_holds(log: Connection, tellings: list[tuple[int, str]]) -> None:
    session = f"h{next(NUMBERS)}"
    events: list[NewEvent] = []
    for number, text in tellings:
        text = text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
        events.append(prompt(number, text, session=session))
    append(log, 1, events)
    stored: dict[str, set[str]] = {}
    for event in read_range(log, Position(0), move_mark(log), limit=100_000).events:
        if event.session_id == session:
            assert isinstance(event.payload, PromptSubmitted)
            stored.setdefault(event.payload.line, set()).add(event.payload.text)
    told: dict[str, set[str]] = {}
    for given_event in events:
        assert isinstance(given_event.payload, PromptSubmitted)
        told.setdefault(given_event.payload.line, set()).add(given_event.payload.text)
    assert stored == told
