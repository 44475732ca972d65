"""Real sessions arrive late, reordered, twice, by hook or by transcript first, with clocks that run backwards."""

from __future__ import annotations

import itertools
import random
from uuid import UUID

import msgspec
import pytest
import servers
from histories import digests, events_of, example, real_sessions
from hypothesis import HealthCheck, given
from hypothesis import settings as limits
from hypothesis import strategies as st
from soak import examples

from memctl.domain.event import Micros, NewEvent
from memctl.domain.observations import Observation, hook_key
from memctl.infra import generations
from memctl.infra.database import connect
from memctl.infra.log.append import append
from memctl.workers.drain import Drainer, catch_up

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


def folded(
    server: str, template: str, events: list[NewEvent], cuts: list[int], *, shards: int = 1, batch: int = 2000
) -> object:
    """The digests after the events arrived in parts, each folded before the next one came."""
    with servers.fresh_database(server, template=template) as url, connect(url) as connection:
        generations.ensure_live(connection, shards)
        drainer = Drainer(url, batch)
        edges = [0, *sorted(cuts), len(events)]
        for start, end in itertools.pairwise(edges):
            append(connection, 1, events[start:end])
            catch_up(drainer)
        drainer.close()
        return digests(connection)


@pytest.fixture(scope="module")
def server(postgres_server: str, migrated_template: str) -> tuple[str, str]:
    return postgres_server, migrated_template


def check_orders(server: tuple[str, str], events: list[NewEvent], seed: int, hooks: bool, backwards: bool) -> None:
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


orders = limits(examples(2), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@orders
@given(seed=st.integers(0, 2**32), hooks=st.booleans(), backwards=st.booleans())
def test_real_sessions_in_any_order_end_in_the_same_rows(
    server: tuple[str, str], real: list[NewEvent], seed: int, hooks: bool, backwards: bool
) -> None:
    check_orders(server, real, seed, hooks, backwards)


@orders
@given(seed=st.integers(0, 2**32))
def test_hooks_and_transcripts_of_one_session_in_any_order_end_in_the_same_rows(
    server: tuple[str, str], seed: int
) -> None:
    check_orders(server, [*example(0), *example(1)], seed, hooks=True, backwards=True)
