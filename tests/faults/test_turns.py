"""Workers that take turns at one shard: what each keeps in memory from its last turn is old by then."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from uuid import UUID

import psycopg
import pytest
import servers
from draining import catch_up
from events import prompt
from histories import digests, example
from psycopg import sql

from memctl.domain.events.erasure import Scope
from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import event_id_of
from memctl.infra.database import Connection, connect
from memctl.infra.log import erase
from memctl.infra.log.append import append
from memctl.infra.log.mark import move_mark
from memctl.infra.readmodels import generations
from memctl.workers.erasure.erase import erase_round, with_counterparts
from memctl.workers.folding.drain import Drainer
from memctl.workers.folding.refold import refold
from memctl.workers.folding.stage1 import Stage1
from memctl.workers.rebuild.replay import replay

LONG = [event for pair in zip(example(0), example(1), strict=True) for event in pair]
SHORT = [prompt(number, session=f"short-{number}") for number in range(len(LONG))]
HISTORY = [event for pair in zip(LONG, SHORT, strict=True) for event in pair]
"""Two sessions at once, each in its order, and many that are one prompt each."""


def test_workers_that_take_turns_fold_as_one_that_works_alone(
    postgres_server: str, templates: servers.Templates
) -> None:
    with (
        servers.fresh_database(postgres_server, templates.live(1)) as by_turns,
        servers.fresh_database(postgres_server, templates.live(1)) as alone,
        connect(by_turns) as one,
        connect(alone) as other,
    ):
        drainers = [Drainer(by_turns, 20) for _ in range(3)]
        for turn, start in enumerate(range(0, len(HISTORY), 6)):
            append(one, 1, HISTORY[start : start + 6])
            catch_up(drainers[turn % 3])
        undisturbed = Drainer(alone)
        append(other, 1, HISTORY)
        catch_up(undisturbed)
        for drainer in (*drainers, undisturbed):
            drainer.close()
        assert digests(one) == digests(other)


def test_a_standby_that_lost_what_was_folded_last_is_folded_on_from_what_it_has(
    postgres_server: str, templates: servers.Templates
) -> None:
    """Another worker folds other events to the very position and epoch that this one remembers."""

    def renamed(*names: tuple[str, str]) -> None:
        with psycopg.connect(postgres_server, autocommit=True) as server:
            for before, after in names:
                server.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(*map(sql.Identifier, (before, after))))

    with servers.fresh_database(postgres_server, templates.live(1)) as url:
        here = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
        standby = f"{here}_standby"
        workers = [Drainer(url), Drainer(url)]

        def told(worker: Drainer, number: int, text: str) -> None:
            with connect(url) as log:
                append(log, 1, [prompt(number, text)])
            catch_up(worker)
            worker.close()

        told(workers[0], 1, "please mend the parser")
        with servers.fresh_database(postgres_server, here, standby):
            told(workers[0], 2, "and tell nobody of the reactor")
            renamed((here, f"{here}_lost"), (standby, here))
            try:
                told(workers[1], 3, "and add a test for empty input")
                told(workers[0], 4, "now add another for long input")
                assert replay(url, None, verify=True, processes=1).equal
            finally:
                renamed((here, standby), (f"{here}_lost", here))


def test_turns_at_events_that_come_late_fold_as_one_that_works_alone(
    postgres_server: str, templates: servers.Templates
) -> None:
    """What another folded meanwhile sorts before what is kept: a kept state goes back, or is folded again."""
    luck = random.Random(22)
    known = [event for number in range(4) for event in example(number)]
    late = [event for start in range(0, len(known), 40) for event in luck.sample(known[start : start + 40], 40)]
    with (
        servers.fresh_database(postgres_server, templates.live(1)) as by_turns,
        connect(by_turns) as log,
    ):
        drainers = [Drainer(by_turns, 20) for _ in range(2)]
        for start in range(0, len(late), 9):
            append(log, 1, late[start : start + 9])
            catch_up(luck.choice(drainers))
        for drainer in drainers:
            drainer.close()
        assert replay(by_turns, None, verify=True, processes=1).equal


@pytest.fixture
def one_shard(postgres_server: str, templates: servers.Templates) -> Iterator[Connection]:
    with servers.fresh_database(postgres_server, templates.live(1)) as url, connect(url) as log:
        yield log


def turn(log: Connection, stage: Stage1, *events: NewEvent) -> None:
    """Append, and have one worker fold all that it has not read."""
    append(log, 1, list(events))
    upto = move_mark(log)
    lease = generations.take(log, generations.live(log).stage1, 0, f"worker {id(stage)}", 5)
    while lease.position < upto:
        lease = stage.drain_batch(log, lease, upto)
    generations.release(log, lease)


def other_sessions_folded(log: Connection) -> None:
    turn(log, Stage1(), prompt(1, session="another"))


def same_session_folded(log: Connection) -> None:
    turn(log, Stage1(), prompt(50, session="kept"))


def held_and_let_go(log: Connection) -> None:
    lease = generations.take(log, generations.live(log).stage1, 0, "trial", 5)
    generations.release(log, lease)


def letter_tried_again(log: Connection) -> None:
    refold(log, letters=[])


@pytest.mark.parametrize("act", [other_sessions_folded, same_session_folded, held_and_let_go, letter_tried_again])
def test_a_state_is_kept_whoever_had_the_lease_meanwhile(one_shard: Connection, act: Callable[..., None]) -> None:
    stage = Stage1()
    turn(one_shard, stage, *(prompt(number, session="kept") for number in range(10)))
    (kept,) = stage.states.values()
    for number in (100, 200):
        act(one_shard)
        turn(one_shard, stage, prompt(number, session="kept"))
        assert kept in stage.states.values()


def test_a_state_is_kept_no_longer_where_events_that_it_was_made_of_were_changed(one_shard: Connection) -> None:
    stage = Stage1()
    turn(one_shard, stage, *(prompt(number, session="kept") for number in range(10)))
    ((key, kept),) = stage.states.items()
    refold(one_shard, streams=[key])
    turn(one_shard, stage, prompt(100, session="kept"))
    assert kept not in stage.states.values()


def forget(log: Connection, event: NewEvent) -> None:
    receipt = UUID(int=7)
    found, stones = with_counterparts(log, 1, {event_id_of(1, event.dedupe_key)})
    erase.begin(log, 1, receipt, Scope(kind="id"), "", found)
    erase.lay_tombstones(log, 1, receipt, stones)
    erase_round(log, 1, receipt, found)
    erase.finish(log, receipt, {})


def test_what_was_forgotten_between_two_turns_is_not_folded_back(
    postgres_server: str, templates: servers.Templates
) -> None:
    with servers.fresh_database(postgres_server, templates.live(1)) as url, connect(url) as log:
        stage = Stage1()
        said = [prompt(number, session="kept") for number in range(10)]
        said[3] = prompt(3, "and tell nobody of the reactor", session="kept")
        turn(log, stage, *said)
        catch_up(Drainer(url))
        forget(log, said[3])
        turn(log, stage, prompt(100, session="kept"))
        assert replay(url, None, verify=True, processes=1).equal
