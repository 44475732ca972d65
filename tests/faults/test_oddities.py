"""Whatever a relay tells within the rules of the API is folded: nothing is parked, no two sessions share
a row, and live rows are those of a rebuild, in whatever order it came."""

from __future__ import annotations

import itertools
import random

import fates
import pytest
import servers
from draining import catch_up
from histories import digests, events_of, everything, real_sessions
from hypothesis import given
from hypothesis import strategies as st
from oddities import Odd
from orders import Server, folded, orders
from unit.test_history_laws import history

from memctl.domain.events.event import NewEvent
from memctl.infra.database import connect
from memctl.infra.log.append import append
from memctl.infra.readmodels import dead_letters, generations
from memctl.infra.redaction import prepare_all
from memctl.workers.folding.drain import Drainer
from memctl.workers.rebuild.replay import replay


class Sessions(list[list[NewEvent]]):
    """Real ones, by their events; told in few words where a test fails."""

    def __repr__(self) -> str:
        return f"{len(self)} sessions"


@pytest.fixture(scope="module")
def real() -> Sessions:
    with real_sessions() as folder:
        return Sessions(events for events in events_of(folder) if 8 <= len(events) <= 120)


@orders
@given(seed=st.integers(0, 2**32))
def test_what_is_told_oddly_is_folded_as_a_rebuild_folds_it(server: Server, real: Sessions, seed: int) -> None:
    luck = random.Random(seed)
    honest = [*fates.arriving(luck, history(luck, 40)), *luck.choice(real), *luck.sample(everything(), 40)]
    luck.shuffle(honest)
    odd = prepare_all(Odd(luck, luck.choice((0.02, 0.1, 0.4))).events(honest)).events
    told = list[NewEvent]()
    with servers.fresh_database(server[0], server[1].live(luck.choice((1, 3)))) as url, connect(url) as connection:
        drainer = Drainer(url, luck.choice((7, 2000)))
        edges = [0, *sorted(luck.sample(range(len(odd)), 3)), len(odd)]
        for start, end in itertools.pairwise(edges):
            some = odd[start:end]
            answers = append(connection, 1, some)
            told += [event for event, each in zip(some, answers, strict=True) if each.status in ("new", "variant")]
            catch_up(drainer)
        drainer.close()
        live = generations.live(connection)
        parked = dead_letters.parked(connection, live.stage1, live.stage2)
        assert [(each.fault.target, each.fault.error, each.fault.place) for each in parked] == []
        rows = digests(connection)
        assert replay(url, None, verify=True, processes=1).equal
    assert folded(*server, luck.sample(told, len(told)), [], shards=luck.choice((1, 16))) == rows
