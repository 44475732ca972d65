"""The log in partitions: made ahead, never missed by an append, and read as if it were one table."""

from __future__ import annotations

import itertools
from pathlib import Path

import psycopg
import pytest
from events import prompt
from histories import digests, drained, example, workshop
from working import run_out

from memctl.api.checks import backups
from memctl.api.checks.doctor import examine
from memctl.api.erasure import scope as forget
from memctl.api.reading.caller import OWNER
from memctl.api.reading.reader import reader_of
from memctl.domain.events.event import Position, event_types
from memctl.infra.backup.copies import backup
from memctl.infra.database import Connection, connect
from memctl.infra.log import partitions as module
from memctl.infra.log.append import append
from memctl.infra.log.audit import astray, hashed, open_guards, stranded_variants
from memctl.infra.log.mark import last_position, move_mark
from memctl.infra.log.migrate import migrate
from memctl.infra.log.partitions import make_partitions, partitions
from memctl.infra.log.reach import Section
from memctl.infra.log.read import _RECORDED, _TYPES, names_of, read_stream, read_stream_after, read_streams
from memctl.infra.readmodels import generations
from memctl.infra.settings import Settings
from memctl.projections.kernel import folded_as_recorded
from memctl.workers.rebuild.replay import replay

SIZE = 20
HISTORY = [event for number in range(4) for event in example(number)]


@pytest.fixture
def shards() -> int:
    return 2


def end_first_at(log: Connection, beyond: int) -> None:
    log.execute("ALTER TABLE memctl.events DETACH PARTITION memctl.events_from_1")
    log.execute(
        f"ALTER TABLE memctl.events ATTACH PARTITION memctl.events_from_1 FOR VALUES FROM (1) TO ({beyond})".encode()
    )


@pytest.fixture
def parted(log: Connection) -> Connection:
    """A log whose first partition ends at position 20."""
    end_first_at(log, SIZE)
    return log


def bounds(log: Connection) -> list[tuple[int | None, int | None]]:
    return [(part.first, part.beyond) for part in partitions(log).parts]


def positions(log: Connection, table: str = "events") -> list[int]:
    return [row[0] for row in log.execute(f"SELECT position FROM memctl.{table} ORDER BY position".encode())]


def test_another_partition_is_made_as_soon_as_half_of_the_last_is_used(parted: Connection) -> None:
    append(parted, 1, [prompt(n) for n in range(9)])
    assert make_partitions(parted, SIZE) == 0
    append(parted, 1, [prompt(9)])
    assert make_partitions(parted, SIZE) == 1
    assert bounds(parted) == [(1, 20), (20, 40), (None, None)]
    assert make_partitions(parted, SIZE) == 0
    append(parted, 1, [prompt(n) for n in range(10, 24)])
    assert positions(parted, "events_from_20") == [20, 21, 22, 23, 24]
    assert open_guards(parted) == []


def test_events_for_which_no_partition_was_made_are_kept_and_become_one(parted: Connection) -> None:
    append(parted, 1, [prompt(n) for n in range(70)])
    assert positions(parted, "events_rest") == list(range(20, 71))
    for _ in range(2):  # and once more: what was made is found
        make_partitions(parted, SIZE)
        assert bounds(parted) == [(1, 20), (20, 80), (80, 100), (None, None)]
    assert positions(parted, "events_rest") == []
    assert positions(parted) == list(range(1, 71))
    assert open_guards(parted) == []
    append(parted, 1, [prompt(n) for n in range(70, 110)])
    make_partitions(parted, SIZE)
    assert bounds(parted) == [(1, 20), (20, 80), (80, 100), (100, 120), (120, 140), (None, None)]
    assert positions(parted) == list(range(1, 111))


def test_positions_that_jumped_far_ahead_make_no_partition_each(parted: Connection) -> None:
    """As a backup may bring them that holds few events."""
    parted.execute("SELECT setval('memctl.events_position_seq', %s)", [1 << 52])
    append(parted, 1, [prompt(1)])
    assert 0 < make_partitions(parted, SIZE) < 5
    assert positions(parted) == [(1 << 52) + 1]
    assert positions(parted, "events_rest") == []


def test_no_append_waits_long_for_a_partition_that_cannot_be_made_now(
    parted: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader holds the rest: who makes a partition lets those through who wait behind it."""
    monkeypatch.setattr(module, "PATIENCE_MS", 50)
    append(parted, 1, [prompt(n) for n in range(30)])
    with connect(database_url, autocommit=False) as reader:
        reader.execute("SELECT count(*) FROM memctl.events")
        assert make_partitions(parted, SIZE) == -1
        assert [answer.status for answer in append(parted, 1, [prompt(30)])] == ["new"]
    assert make_partitions(parted, SIZE) > 0


def test_what_guards_the_log_guards_each_partition(parted: Connection) -> None:
    append(parted, 1, [prompt(n) for n in range(15)])
    make_partitions(parted, SIZE)
    for table, act in itertools.product(
        ("events", "events_from_1", "events_from_20", "events_rest"),
        ("UPDATE memctl.{} SET actor = 'x'", "DELETE FROM memctl.{}", "TRUNCATE memctl.{}"),
    ):
        if positions(parted, table) or act.startswith("TRUNCATE"):
            with pytest.raises(psycopg.errors.RestrictViolation):
                parted.execute(act.format(table).encode())


def test_whoever_inserts_an_event_enters_its_delivery_and_none_is_there_twice(parted: Connection) -> None:
    append(parted, 1, [prompt(1)])
    copied = (
        "INSERT INTO memctl.events (event_id, space_id, stream, stream_hash, type, schema_version, occurred_at, actor,"
        " location, session_id, dedupe_key, payload) SELECT {}, space_id, stream, stream_hash, type, schema_version,"
        " occurred_at, actor, location, session_id, dedupe_key, payload FROM memctl.events LIMIT 1"
    )
    with pytest.raises(psycopg.errors.UniqueViolation):
        parted.execute(copied.format("event_id").encode())
    parted.execute(copied.format("gen_random_uuid()").encode())
    assert astray(parted, last_position(parted)) == []
    with parted.transaction():  # behind an append in the same transaction, too
        append(parted, 1, [prompt(2)])
        append(parted, 1, [prompt(2)])
        parted.execute(copied.format("gen_random_uuid()").encode())
    assert astray(parted, last_position(parted)) == []


def test_a_stream_is_read_in_order_from_wherever_it_lies(parted: Connection) -> None:
    """Over the border of a thousand positions by which the index goes, and of partitions."""
    parted.execute("SELECT setval('memctl.events_position_seq', 1000)")
    for batch in range(30):
        append(parted, 1, [prompt(n, session="a" if n % 2 else "b") for n in range(batch * 10, batch * 10 + 10)])
        make_partitions(parted, 90)
    stream = prompt(1, session="a").stream
    whole = [event.position for event in read_stream(parted, 1, stream)]
    assert whole == list(range(1002, 1301, 2))
    for after in (0, 1000, 1002, 1023, 1024, 1025, 1100, 1299, 1300):
        beyond = [at for at in whole if at > after]
        found = read_streams(parted, [(1, stream)], Position(1290), {(1, stream): Position(after)})
        assert [event.position for event in found[1, stream]] == [at for at in beyond if at <= 1290]
        for limit in (1, 7, 1000):
            page = read_stream_after(parted, 1, stream, Position(after), limit)
            assert [event.position for event in page] == beyond[:limit]


def test_read_models_forgetting_and_backups_are_those_of_a_log_in_one_piece(
    parted: Connection, elsewhere: Connection, settings: Settings, database_url: str, tmp_path: Path
) -> None:
    events = [*HISTORY, *workshop(0)]
    for at in range(0, len(events), 7):
        append(parted, 1, events[at : at + 7])
        if at % 3:
            make_partitions(parted, SIZE)
    assert len(bounds(parted)) > 6
    append(elsewhere, 1, events)
    generations.ensure_live(elsewhere, 2)
    url = database_url.replace(parted.info.dbname, elsewhere.info.dbname)
    for each, log in ((database_url, parted), (url, elsewhere)):
        drained(each)
        session = forget.plan(settings, reader_of(log, "default", OWNER), session=example(2)[0].stream)
        forget.forget(settings, log, session, None)
        drained(each)
    assert digests(parted) == digests(elsewhere)
    run_out(parted)
    replay(database_url, None, processes=1)
    assert digests(parted) == digests(elsewhere)
    mark = move_mark(parted)
    assert (hashed(parted, mark).altered.count, stranded_variants(parted, mark), astray(parted, mark)) == (0, [], [])

    file = backup(settings, parted, tmp_path / "kept")
    before = parted.execute("SELECT e::text FROM memctl.events e ORDER BY position").fetchall()
    with connect(url) as other:
        other.execute("DROP SCHEMA memctl CASCADE")
    migrate(url)
    with connect(url) as other:
        end_first_at(other, SIZE)
        generations.ensure_live(other, 2)
        backups.restore(settings, other, file)
        assert other.execute("SELECT e::text FROM memctl.events e ORDER BY position").fetchall() == before
        assert astray(other, last_position(other)) == []
        assert {each.status for each in append(other, 1, [*example(1), *example(2)])} == {"duplicate", "forgotten"}


def test_partitions_that_are_due_and_events_without_one_are_named_by_doctor(
    parted: Connection, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memctl.api.checks.doctor.POSITIONS", SIZE)

    def said() -> tuple[str, str]:
        (found,) = [one for one in examine() if one.name == "partitions"]
        return found.counted, " ".join(found.found)

    assert said() == ("1 up to 20", "")
    append(parted, 1, [prompt(n) for n in range(16)])
    assert said() == ("1 up to 20", "positions are used up to 16, the last partition ends at 20")
    append(parted, 1, [prompt(n) for n in range(16, 22)])
    assert said()[1] == "3 events lie beyond every partition, in events_rest"
    make_partitions(parted, SIZE)
    counted, found = said()
    assert counted.startswith("2 up to 40; full: events_from_1, ")
    assert found == ""


def test_who_folds_what_was_recorded_reads_no_event_of_sessions(log: Connection) -> None:
    append(log, 1, [prompt(number) for number in range(20)])
    log.execute("SET enable_seqscan = off")
    section = Section(Position(0), Position(1_000))
    plan = log.execute(
        f"EXPLAIN {_TYPES.format(of=section.where)}".encode(), [0, 1_000, list(names_of(folded_as_recorded()))]
    ).fetchall()
    found = log.execute("SELECT indexname FROM pg_indexes WHERE indexdef LIKE '%context.compacted%'").fetchall()
    scans = [line for (line,) in plan if " e_" in line and "Scan" in line]
    assert len(scans) == len(partitions(log).parts)
    assert all(any(name in line for (name,) in found) for line in scans), plan
    observed = {name for name in event_types() if f"'{name}'" in _RECORDED}
    assert len(observed) == 9
    assert not observed & names_of(folded_as_recorded())
