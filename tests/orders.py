"""Events that arrive in any order, folded on the real server."""

from __future__ import annotations

import itertools

import servers
from draining import catch_up
from histories import digests
from hypothesis import HealthCheck, Phase
from hypothesis import settings as limits
from soak import examples

from memctl.domain.events.event import NewEvent
from memctl.infra.database import connect
from memctl.infra.log.append import append
from memctl.workers.folding.drain import Drainer

Server = tuple[str, servers.Templates]

# A seed is no simpler for being smaller: nothing is gained by looking for the smallest that fails.
orders = limits(
    examples(2),
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def folded(
    server: str,
    templates: servers.Templates,
    events: list[NewEvent],
    cuts: list[int],
    *,
    shards: int = 1,
    batch: int = 2000,
) -> object:
    """The digests after the events arrived in parts, each folded before the next one came."""
    with servers.fresh_database(server, templates.live(shards)) as url, connect(url) as connection:
        drainer = Drainer(url, batch)
        edges = [0, *sorted(cuts), len(events)]
        for start, end in itertools.pairwise(edges):
            append(connection, 1, events[start:end])
            catch_up(drainer)
        drainer.close()
        return digests(connection)
