"""Stage 2's rows against their sources: each damage is named, and nothing else is, also while workers are at it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from uuid import UUID

import pytest
from histories import digests, example

from memctl.domain.events.event import Position
from memctl.infra.database import Connection, connect
from memctl.infra.log import audit as log_audit
from memctl.infra.log.append import append
from memctl.infra.log.mark import move_mark
from memctl.infra.log.reach import next_section
from memctl.infra.readmodels import dead_letters, generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.readmodels.coverage import coverage
from memctl.infra.readmodels.dead_letters import Fault, Target
from memctl.projections import stream_state
from memctl.projections.kernel import Stage, projections
from memctl.workers.folding.refold import refold
from memctl.workers.folding.stage1 import Stage1
from memctl.workers.folding.stage2 import Stage2
from memctl.workers.rebuild.audit import Audit, audit


@pytest.fixture
def memory(filled_url: str) -> Iterator[Connection]:
    with connect(filled_url) as connection:
        yield connection


def changed(connection: Connection, statement: str) -> list[str]:
    """Damage the live rows; the first column of what the statement returns."""
    live = generations.live(connection)
    named = statement.replace("_g1", f"_g{live.stage1}").replace("_g2", f"_g{live.stage2}")
    return sorted(str(row[0]) for row in connection.execute(named.encode()).fetchall())


def named(found: Audit) -> list[str]:
    return [*found.routes.first, *found.unfounded.first, *found.differing.first]


def total(found: Audit) -> int:
    return found.routes.count + found.unfounded.count + found.differing.count


def test_sound_rows_are_counted_in_full_and_folded_again_by_a_sample(memory: Connection) -> None:
    found = audit(memory)
    assert named(found) == []
    live = generations.live(memory)
    assert found.rows == sum(readmodels.count(memory, p, live.stage2) for p in projections(2)) > 50
    assert found.folded_again >= found.rows  # a small memory is its own sample, with keys that rightly have no row
    assert found.read_models == len(projections(2))
    sources = changed(memory, "SELECT count(DISTINCT (space_id, source)) FROM memctl.routes_g2")
    assert found.sources >= int(sources[0]) > 50


def test_missing_rows_are_named(memory: Connection) -> None:
    gone = changed(
        memory,
        "DELETE FROM memctl.memories_g2 WHERE key IN (SELECT key FROM"
        " (SELECT key, row_number() OVER (ORDER BY key) AS n FROM memctl.memories_g2) o WHERE n % 2 = 0) RETURNING key",
    )
    found = audit(memory)
    assert len(gone) > 5
    differing = {f"memories:{key}: is not what its sources give" for key in gone}
    assert set(found.differing.first) <= differing | {line for line in found.differing.first if "vector_points" in line}
    assert found.differing.count >= len(gone)
    # What was folded from them is named too: they are no source any more.
    assert found.routes.count == sum(1 for key in gone for _ in changed(
        memory, f"SELECT 1 FROM memctl.routes_g2 WHERE upstream = 'memories' AND upstream_key = '{key}'"
    )) > 0  # fmt: skip


def test_a_changed_row_is_named(memory: Connection) -> None:
    (key,) = changed(
        memory,
        "UPDATE memctl.bug_patterns_g2 SET row = row || '{\"saving_was_off\": 1}'"
        " WHERE key = (SELECT min(key) FROM memctl.bug_patterns_g2) RETURNING key",
    )
    assert named(audit(memory)) == [f"bug_patterns:{key}: is not what its sources give"]


DAMAGES = {
    "changed": "UPDATE {table} SET row = row || '{{\"saving_was_off\": 1}}' WHERE key = %(key)s",
    "gone": "DELETE FROM {table} WHERE key = %(key)s",
    "made up": "INSERT INTO {table} SELECT (jsonb_populate_record(t,"
    " jsonb_build_object('key', 'ghost-' || key, 'stream', 'ghost-' || %(stream)s::text))).* FROM {table} t"
    " WHERE key = %(key)s",
}


def damaged(memory: Connection, damage: str, stage: Stage) -> dict[str, tuple[str, str]]:
    """Damage a row of each read model of a stage, of each another: key and stream of those by read model."""
    live, found = generations.live(memory), {}
    for n, p in enumerate(projections(stage)):
        table = readmodels.table(p.name, live.stage1 if stage == 1 else live.stage2)
        there = memory.execute(f"SELECT * FROM {table} ORDER BY {'stream, key' if stage == 1 else 'key'}".encode())
        rows = {(row[2] if stage == 1 else row[1]): row[1] for row in there.fetchall()}
        stream, key = sorted(rows.items())[n % len(rows)]
        done = memory.execute(DAMAGES[damage].format(table=table).encode(), {"key": key, "stream": stream})
        assert done.rowcount == 1
        ghost = "ghost-" if damage == "made up" else ""
        found[p.name] = ghost + key, ghost + stream
    return found


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_to_any_read_model_is_named(memory: Connection, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    monkeypatch.setattr(log_audit, "NAMED", 1_000)
    wanted = damaged(memory, damage, 2)
    found = audit(memory)
    told = {line.split(": ", 1)[0] for line in (*found.unfounded.first, *found.differing.first)}
    lost = {f"{name}:{key}" for name, (key, _) in wanted.items()}
    for target in lost - told:  # what it was folded from is lost too, and named
        upstream = changed(
            memory, f"SELECT upstream || ':' || upstream_key FROM memctl.routes_g2 WHERE target = '{target}'"
        )
        assert {*upstream} & lost, target


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_to_any_row_of_a_session_is_named(memory: Connection, damage: str) -> None:
    streams = {stream for _, stream in damaged(memory, damage, 1).values()}
    assert len(streams) == len(projections(1))
    found = coverage(memory)
    assert streams == {told.split(": ")[0] for told in (*found.differing, *found.missing, *found.unfounded)}


def test_a_row_that_was_cut_to_its_limit_is_no_damage(memory: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_state, "ROW_LIMIT", 5_000)
    streams = [(1, stream) for stream in changed(memory, "SELECT stream FROM memctl.sessions_g1")]
    before = digests(memory)
    refold(memory, streams=streams)
    assert digests(memory)["working_memory"] != before["working_memory"]
    assert coverage(memory).differing == []


def test_a_row_that_is_no_row_is_named(memory: Connection) -> None:
    (key,) = changed(
        memory,
        "UPDATE memctl.memories_g2 SET row = '[]' WHERE key = (SELECT min(key) FROM memctl.memories_g2) RETURNING key",
    )
    found = audit(memory)
    assert f"memories:{key}: cannot be read: ValidationError" in found.differing.first
    assert f"memories:{key}: is not what its sources give" in found.differing.first


def test_missing_routes_are_named_and_the_rows_that_lose_all_of_them(memory: Connection) -> None:
    (target,) = set(changed(
        memory,
        "DELETE FROM memctl.routes_g2 WHERE target ="
        " (SELECT min(target) FROM memctl.routes_g2 WHERE starts_with(target, 'bug_patterns:')) RETURNING target",
    ))  # fmt: skip
    found = audit(memory)
    assert found.unfounded.first == [f"{target}: nothing goes to it"]
    assert found.routes.count >= 1
    assert all(told.startswith(f"{target}: ") and told.endswith(" should go there") for told in found.routes.first)
    assert found.differing.count == 0


def test_a_row_of_no_source_is_named(memory: Connection) -> None:
    changed(
        memory,
        "INSERT INTO memctl.memories_g2 SELECT space_id, 'ghost', row FROM memctl.memories_g2 LIMIT 1 RETURNING key",
    )
    found = audit(memory)
    assert found.unfounded.first == ["memories:ghost: nothing goes to it"]
    assert all("vector_points" in told for told in found.routes.first)  # it is a source, and goes nowhere


def test_routes_that_no_source_or_no_key_gives_are_named(memory: Connection) -> None:
    (source,) = changed(
        memory,
        "INSERT INTO memctl.routes_g2 (space_id, source, target, slot)"
        " SELECT space_id, source, 'memories:elsewhere', 0 FROM memctl.routes_g2 WHERE upstream IS NULL LIMIT 1"
        " RETURNING source",
    )
    nobody = UUID(int=7)
    changed(
        memory,
        "INSERT INTO memctl.routes_g2 (space_id, source, target, slot, upstream, upstream_key) VALUES"
        f" (1, '{nobody}', 'memories:a', 0, NULL, NULL), (1, '{nobody}', 'memories:b', 0, 'insights', 'gone'),"
        f" (1, '{nobody}', 'memories:c', 0, 'unheard_of', 'gone') RETURNING source",
    )
    assert sorted(audit(memory).routes.first) == [
        f"memories:a: {nobody} goes there, and is not there",
        f"memories:b: {nobody} goes there, and is not there",
        f"memories:c: {nobody} goes there, and is not there",
        f"memories:elsewhere: {source} should not go there",
    ]


def test_a_fact_that_is_gone_leaves_routes_that_are_named(memory: Connection) -> None:
    (source,) = changed(
        memory,
        "DELETE FROM memctl.facts_g1 WHERE id = (SELECT source FROM memctl.routes_g2 WHERE upstream IS NULL"
        " ORDER BY target LIMIT 1) RETURNING id",
    )
    found = audit(memory)
    assert found.routes.count >= 1
    assert all(f"{source} goes there, and is not there" in told for told in found.routes.first)


def test_what_is_parked_is_not_folded_again(memory: Connection) -> None:
    (key,) = changed(
        memory,
        "UPDATE memctl.bug_patterns_g2 SET row = row || '{\"saving_was_off\": 1}'"
        " WHERE key = (SELECT min(key) FROM memctl.bug_patterns_g2) RETURNING key",
    )
    live = generations.live(memory)
    fault = Fault(Target("bug_patterns", 1, key), UUID(int=1), Position(1), "ValueError", "memctl.x:1 f")
    dead_letters.park(memory, live.stage2, [fault])
    assert named(audit(memory)) == []


def test_nothing_is_written_by_looking(memory: Connection) -> None:
    def written() -> object:
        memory.execute("SELECT pg_stat_force_next_flush()")
        counted = "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables WHERE schemaname = 'memctl'"
        return memory.execute(counted).fetchone()

    audit(memory)
    before = written()
    audit(memory)
    assert written() == before


def test_there_is_no_false_alarm_between_any_two_batches(memory: Connection) -> None:
    """Events of a session come in any order, so that its facts are revised again and again while stage 2 lags."""
    events = [event for number in (7, 8) for event in example(number, day=9)]
    chance = random.Random(5)
    chance.shuffle(events)
    live = generations.live(memory)
    first, second = Stage1(7), Stage2(5)
    ahead = 0
    for at in range(0, len(events), 9):
        append(memory, 1, events[at : at + 9])
        upto = move_mark(memory)
        for shard in range(4):
            lease = generations.take(memory, live.stage1, shard, "test", 5)
            while lease.position < upto:
                lease = first.drain_batch(memory, lease, upto)
            generations.release(memory, lease)
        found = audit(memory)  # stage 2 has read none of this yet
        assert named(found) == []
        for shard in range(generations.shards(memory, live.stage2)):
            lease = generations.take(memory, live.stage2, shard, "test", 5)
            offsets = generations.offsets(memory, live.stage1, live.stage2)
            if chance.random() < 0.5 and next_section(lease.reach, generations.may_read(shard, offsets)):
                lease = second.drain_batch(memory, lease, live.stage1, generations.may_read(shard, offsets))
                if shard % 5 == 0:
                    assert named(audit(memory)) == []
            ahead += lease.position < upto
            generations.release(memory, lease)
        assert named(audit(memory)) == []
    assert ahead > 2
