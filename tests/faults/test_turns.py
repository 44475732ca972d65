"""Workers that take turns at one shard: what each keeps in memory from its last turn is old by then."""

from __future__ import annotations

import psycopg
import servers
from events import prompt
from histories import digests, example
from psycopg import sql

from memctl.infra.database import connect
from memctl.infra.log.append import append
from memctl.workers.folding.drain import Drainer, catch_up
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
