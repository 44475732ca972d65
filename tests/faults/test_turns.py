"""Workers that take turns at one shard: what each keeps in memory from its last turn is old by then."""

from __future__ import annotations

import servers
from events import prompt
from histories import digests, example

from memctl.infra.database import connect
from memctl.infra.log.append import append
from memctl.workers.drain import Drainer, catch_up

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
