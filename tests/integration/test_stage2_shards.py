"""Stage 2 dealt over shards: the same rows as one shard makes, whoever folds, dies or stands still."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
import servers
from draining import catch_up
from events import prompt
from histories import digests, events_of, everything, real_sessions
from soak import FACTOR

from memctl.domain.events.event import NewEvent
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append
from memctl.infra.log.mark import move_mark
from memctl.infra.log.reach import Reach, next_section
from memctl.infra.readmodels import dead_letters, facts, generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.readmodels.generations import LeaseLost, Live
from memctl.projections import layers
from memctl.projections.kernel import Changed, Projection, projections
from memctl.workers.folding.drain import Drainer
from memctl.workers.folding.refold import refold
from memctl.workers.folding.stage1 import Stage1
from memctl.workers.folding.stage2 import Stage2
from memctl.workers.rebuild.replay import replay

HISTORY = everything()

Digests = dict[str, tuple[int, str]]

MOST = 400
"""About how many events of the real sessions are taken, the shortest first."""


@pytest.fixture
def shards() -> int:
    return 16


@pytest.fixture(scope="module")
def expected(postgres_server: str, templates: servers.Templates) -> Digests:
    """What one shard makes of the history."""
    with servers.fresh_database(postgres_server, templates.live(1)) as url:
        return folded(url, HISTORY)


def folded(url: str, events: Sequence[NewEvent] = ()) -> Digests:
    with connect(url) as connection:
        append(connection, 1, events)
        drainer = Drainer(url)
        catch_up(drainer)
        drainer.close()
        return digests(connection)


@dataclass
class Shards:
    """The shards of stage 2, each folded by its own worker, once stage 1 has read all there is."""

    connection: Connection
    live: Live
    upto: Reach
    workers: list[Stage2]

    @property
    def numbers(self) -> range:
        return range(len(self.workers))

    def fold(self, shard: int, batches: int = 1_000) -> bool:
        """Whether a shard read something."""
        lease = generations.take(self.connection, self.live.stage2, shard, f"worker {shard}", 1)
        found = generations.offsets(self.connection, self.live.stage1, self.live.stage2)
        may, before = generations.may_read(shard, found), lease.reach
        while batches and next_section(lease.reach, may):
            lease, batches = self.workers[shard].drain_batch(self.connection, lease, self.live.stage1, may), batches - 1
        generations.release(self.connection, lease)
        return lease.reach != before

    def reaches(self) -> dict[int, Reach]:
        return {each.shard: each.reach for each in generations.offsets(self.connection, self.live.stage2)}


def read_by_stage1(connection: Connection, batch: int = 4000, **how: Any) -> Shards:
    live, upto = generations.live(connection), Reach(move_mark(connection))
    for shard in range(generations.shards(connection, live.stage1)):
        lease, stage1 = generations.take(connection, live.stage1, shard, "test", 5), Stage1()
        while next_section(lease.reach, upto):
            lease = stage1.drain_batch(connection, lease, upto)
        generations.release(connection, lease)
    of = generations.shards(connection, live.stage2)
    return Shards(connection, live, upto, [Stage2(batch, parks=True, shares=of, **how) for _ in range(of)])


@pytest.fixture
def real() -> list[NewEvent]:
    with real_sessions() as folder:
        sessions = sorted(events_of(folder), key=len)
    taken: list[NewEvent] = []
    for events in sessions if FACTOR else sessions[::3]:
        if FACTOR or len(taken) < MOST:
            taken += events
    return taken


def test_sixteen_shards_make_of_real_sessions_what_one_does(
    database_url: str, postgres_server: str, templates: servers.Templates, real: list[NewEvent]
) -> None:
    with servers.fresh_database(postgres_server, templates.live(1)) as url:
        one = folded(url, real)
    assert folded(database_url, real) == one
    result = replay(database_url, None, verify=True, processes=1)
    assert result.equal
    assert {each.name: (each.rows, each.digest_rebuilt) for each in result.compared} == one


@pytest.mark.parametrize("seed", range(3 * max(FACTOR, 1)))
@pytest.mark.parametrize("shards", [3])
def test_no_order_in_which_shards_read_changes_a_row(
    database_url: str, log: Connection, expected: Digests, shards: int, seed: int
) -> None:
    """Events come in any order while shards are ahead of and behind one another, a few facts at a time, and some is
    folded again meanwhile."""
    luck, events = random.Random(seed), list(HISTORY)
    luck.shuffle(events)
    cuts = sorted(luck.sample(range(1, len(events)), 5))
    workers: list[Stage2] | None = None
    for start, end in zip([0, *cuts], [*cuts, len(events)], strict=True):
        append(log, 1, events[start:end])
        made = read_by_stage1(log, 20)
        made.workers = workers = workers or made.workers
        for shard in luck.sample(made.numbers, luck.randint(1, len(made.numbers))):
            made.fold(shard, luck.randint(1, 3))
        if luck.random() < 0.5:
            p = luck.choice(projections(2))
            keys = log.execute(f"SELECT key FROM memctl.{p.name}_g{made.live.stage2} LIMIT 3")  # type: ignore[arg-type]
            refold(log, rows=[(p.name, (1, key)) for (key,) in keys])
    drainer = Drainer(database_url)
    catch_up(drainer)
    drainer.close()
    assert digests(log) == expected
    assert replay(database_url, None, verify=True, processes=1).equal


@pytest.mark.parametrize("shards", [1, 16])
def test_a_fact_is_stored_with_the_rows_that_it_goes_to_where_shards_read_them(log: Connection, shards: int) -> None:
    append(log, 1, HISTORY)
    made = read_by_stage1(log)
    dealt = dict(log.execute(f"SELECT id, dealt FROM memctl.facts_g{made.live.stage1}".encode()).fetchall())
    with log.transaction():
        tags = list(facts.count_facts(log, made.live.stage1, made.upto.position))
        for batch in facts.scan_facts(log, made.live.stage1, made.upto.position, tags, 100):
            for (_, id), fact in batch:
                if shards == 1:
                    assert dealt[id] is None
                    continue
                wanted = {f"{p.name}:{key}" for p in projections(2) if type(fact) in p.facts for key in p.keys(fact)}
                by_slot = json.loads(dealt[id])
                assert {target for targets in by_slot.values() for target in targets} == wanted
                assert all(
                    str(layers.slot_of_target(each)) == slot for slot, found in by_slot.items() for each in found
                )


def test_no_layer_passes_the_one_that_it_reads(log: Connection) -> None:
    append(log, 1, HISTORY)
    made = read_by_stage1(log)
    assert not any(made.fold(shard) for shard in made.numbers if layers.layer_of(shard, len(made.numbers)))
    slow, *others = (shard for shard in made.numbers if not layers.layer_of(shard, len(made.numbers)))
    assert all(made.fold(shard) for shard in others)
    behind = [shard for shard in made.numbers if layers.layer_of(shard, len(made.numbers))]
    assert not any(made.fold(shard) for shard in behind)
    assert made.fold(slow)
    assert all(made.fold(shard) for shard in behind)
    assert all(reach == made.upto for reach in made.reaches().values())


def test_a_worker_that_is_killed_in_a_batch_leaves_the_other_shards_and_nothing_of_its_own(
    database_url: str, log: Connection, expected: Digests
) -> None:
    append(log, 1, HISTORY)
    made = read_by_stage1(log)
    dies = layers.shard_of("bug_sightings", some_key(log, made), len(made.numbers))
    with connect(database_url) as dying:
        lease = generations.take(dying, made.live.stage2, dies, "dies", 1)
        dying.execute(
            "CREATE FUNCTION pg_temp.die() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$"
        )
        name = readmodels.table("bug_sightings", made.live.stage2)
        dying.execute(f"CREATE TRIGGER die AFTER INSERT ON {name} EXECUTE FUNCTION pg_temp.die()".encode())
        with pytest.raises(psycopg.OperationalError):
            Stage2(parks=True).drain_batch(dying, lease, made.live.stage1, made.upto)
    assert made.reaches()[dies] == lease.reach
    assert log.execute(f"SELECT count(*) FROM {name}".encode()).fetchone() == (0,)
    log.execute(f"DROP TRIGGER IF EXISTS die ON {name}".encode())
    others = [shard for shard in made.numbers if shard != dies and not layers.layer_of(shard, len(made.numbers))]
    assert all(made.fold(shard) for shard in others)
    log.execute("UPDATE memctl.offsets SET lease_until = NULL WHERE owner = 'dies'")  # its time is over
    assert folded(database_url) == expected


def some_key(connection: Connection, made: Shards) -> str:
    """The key of a row that a fact of the history goes to."""
    p = next(p for p in projections(2) if p.name == "bug_sightings")
    tags = [each for each in facts.count_facts(connection, made.live.stage1, made.upto.position) if "error" in each]
    with connection.transaction():
        for batch in facts.scan_facts(connection, made.live.stage1, made.upto.position, tags, 100):
            for _, fact in batch:
                if isinstance(fact, tuple(p.facts)) and (keys := p.keys(fact)):
                    return keys[0]
    raise AssertionError("no error in the history")


def test_a_lease_that_is_lost_in_one_shard_undoes_its_batch_and_no_other(
    database_url: str, log: Connection, expected: Digests
) -> None:
    append(log, 1, HISTORY)
    made = read_by_stage1(log)
    shard = layers.shard_of("bug_sightings", some_key(log, made), len(made.numbers))
    slow = generations.take(log, made.live.stage2, shard, "slow", 1)
    log.execute("UPDATE memctl.offsets SET lease_until = '-infinity' WHERE owner = 'slow'")
    with connect(database_url) as other:
        taken = generations.take(other, made.live.stage2, shard, "quick", 1)
        before = digests(log)
        with pytest.raises(LeaseLost):
            Stage2().drain_batch(log, slow, made.live.stage1, made.upto)
        assert digests(log) == before
        assert [made.fold(n) for n in made.numbers if n != shard].count(True) == 15
        generations.release(other, taken)
    assert folded(database_url) == expected


def test_a_row_that_is_parked_in_one_shard_holds_up_no_other(
    database_url: str, log: Connection, expected: Digests, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log, 1, HISTORY)
    made = read_by_stage1(log)
    bad, p = some_key(log, made), next(p for p in projections(2) if p.name == "bug_sightings")

    def check(row: Any) -> None:
        if row.signature == bad.rpartition(":")[0]:
            raise ValueError(bad)

    with monkeypatch.context() as patched:
        patched.setattr(type(p), "check", lambda self, row: check(row) if self.name == p.name else None)
        drainer = Drainer(database_url)
        catch_up(drainer)
        drainer.close()
    letters = dead_letters.parked(log, made.live.stage2)
    assert {letter.target.projection for letter in letters} == {"bug_sightings"}
    assert bad in {letter.target.key for letter in letters}
    assert all(reach == made.upto for reach in made.reaches().values())
    there = digests(log)
    assert {name for name in there if there[name] != expected[name]} <= {
        "bug_sightings", "bug_patterns", "memories", "vector_points",
    }  # fmt: skip
    refold(log, letters=letters)
    assert dead_letters.parked(log, made.live.stage2) == []
    assert digests(log) == expected


def test_a_row_that_cannot_be_routed_has_its_letter_though_one_shard_alone_meets_it(
    database_url: str, log: Connection, expected: Digests, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log, 1, HISTORY)
    made = read_by_stage1(log)
    keys = Projection.keys

    def fails(self: Projection[Any], item: Any) -> tuple[str, ...]:
        if self.name == "candidates" and isinstance(item, Changed):
            raise ValueError("no key")
        return keys(self, item)

    with monkeypatch.context() as patched:
        patched.setattr(Projection, "keys", fails)
        drainer = Drainer(database_url)
        catch_up(drainer)
        drainer.close()
    letters = dead_letters.parked(log, made.live.stage2)
    rows = log.execute(f"SELECT key FROM {readmodels.table('insights', made.live.stage2)}".encode()).fetchall()
    assert len(rows) > 1
    assert sorted(letter.fault.upstream_key or "" for letter in letters) == sorted(key for (key,) in rows)
    refold(log, letters=letters)
    assert dead_letters.parked(log, made.live.stage2) == []
    assert digests(log) == expected


def test_workers_may_come_and_go(database_url: str, log: Connection, expected: Digests) -> None:
    """One, then three that take turns, then another one: each keeps rows, and trusts none that others wrote."""
    drainers = [Drainer(database_url, 5) for _ in range(4)]
    luck = random.Random(4)
    for number, count in enumerate((1, 3, 3, 1, 4)):
        append(log, 1, HISTORY[number::5])
        behind = drainers[0].behind()
        while behind:
            for stage, shard in behind:
                luck.choice(drainers[:count]).drain(stage, shard)
            behind = drainers[0].behind()
    for drainer in drainers:
        drainer.close()
    assert digests(log) == expected


def test_what_is_gone_is_noted_no_longer_than_until_all_have_read_it(database_url: str, log: Connection) -> None:
    """Keys of rows may hold words: of a row that is gone nothing stays behind."""
    append(log, 1, HISTORY)
    made = read_by_stage1(log)
    drainer = Drainer(database_url)
    catch_up(drainer)
    log.execute(f"UPDATE memctl.changed_g{made.live.stage2} SET gone = true WHERE read_model = 'insights'".encode())
    append(log, 1, [prompt(1)])
    catch_up(drainer)
    drainer.close()
    left = log.execute(f"SELECT count(*) FROM memctl.changed_g{made.live.stage2} WHERE gone".encode()).fetchone()
    assert left == (0,)
