"""Processes are killed, or stopped for longer than their lease, at each statement they send."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import TypeVar

import dying
import pytest
import servers
from draining import catch_up
from histories import EXAMPLE, digests, example
from soak import FACTOR
from waiting import until
from working import run_out

from memctl.domain.events.observations import event_id_of
from memctl.infra.database import Connection, connect
from memctl.infra.log import checkpoints
from memctl.infra.log.append import append
from memctl.infra.readmodels import generations
from memctl.infra.transcripts.claude import Claude
from memctl.infra.transcripts.reading import parse_lines, raw_lines
from memctl.workers.folding.drain import Drainer

S = TypeVar("S")


@pytest.fixture
def shards() -> int:
    return 2


@pytest.fixture
def log(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as connection:
        yield connection


@pytest.fixture(scope="module")
def mortals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dying.Mortals]:
    with dying.mortals(tmp_path_factory.mktemp("mortals")) as mortals:
        yield mortals


def kill_at_each_statement(
    mortals: dying.Mortals,
    act: dying.Act,
    url: str,
    state: Callable[[], S],
    check: Callable[[S, S], None],
    stride: int = 1,
) -> int:
    """Run `act` again and again, killed a statement later each time, until it comes to its end.

    Where a run got on, the next one begins anew: it has other statements before it. Returns how often it was killed.
    """
    before, after, killed = state(), 0, 0
    while mortals.dies(act, url, after):
        killed += 1
        now = state()
        check(before, now)
        after = after + stride if now == before else 0
        before = now
    check(before, state())
    return killed


def ids(log: Connection) -> list[str]:
    return [row[0] for row in log.execute("SELECT event_id::text FROM memctl.events ORDER BY position")]


@pytest.mark.parametrize("act", [dying.append_one_by_one, dying.append_at_once])
def test_an_append_is_there_whole_once_it_was_answered_and_not_before(
    mortals: dying.Mortals, database_url: str, log: Connection, act: dying.Act
) -> None:
    wanted = [str(event_id_of(1, event.dedupe_key)) for event in dying.FEW]

    def is_whole(before: list[str], now: list[str]) -> None:
        assert now == wanted[: len(now)]
        if act is dying.append_at_once:
            assert now in ([], wanted)

    killed = kill_at_each_statement(mortals, act, database_url, lambda: ids(log), is_whole)
    assert killed > len(wanted)
    assert ids(log) == wanted


def test_an_ingest_killed_at_any_statement_has_noted_what_it_kept_and_goes_on_from_there(
    mortals: dying.Mortals, database_url: str, log: Connection
) -> None:
    def reached() -> tuple[int, int]:
        at = checkpoints.load_all(log, 1).get(checkpoints.name_of(EXAMPLE))
        return len(ids(log)), at.offset if at else 0

    def belong_together(before: tuple[int, int], now: tuple[int, int]) -> None:
        assert now >= before
        read = io.BytesIO(EXAMPLE.read_bytes()[: now[1]])
        told = [event for line in parse_lines(raw_lines(read), Claude()) for event in line.events]
        assert ids(log) == [str(event_id_of(1, event.dedupe_key)) for event in told]

    killed = kill_at_each_statement(mortals, dying.ingest_the_example, database_url, reached, belong_together)
    assert killed > 10
    assert reached() == (len(example()), EXAMPLE.stat().st_size)


def test_a_worker_killed_at_any_statement_has_moved_rows_and_offset_together_or_neither(
    mortals: dying.Mortals, database_url: str, log: Connection, postgres_server: str, templates: servers.Templates
) -> None:
    append(log, 1, example())

    def state() -> tuple[object, object]:
        run_out(log)
        live = generations.live(log)
        return {
            (o.generation, o.shard): o.position for o in generations.offsets(log, live.stage1, live.stage2)
        }, digests(log)

    def together(before: tuple[object, object], now: tuple[object, object]) -> None:
        if before[0] == now[0]:
            assert before[1] == now[1]

    killed = kill_at_each_statement(mortals, dying.drain, database_url, state, together, stride=1 if FACTOR else 7)
    with servers.fresh_database(postgres_server, templates.live(1)) as url, connect(url) as other:
        append(other, 1, example())
        undisturbed = Drainer(url)
        catch_up(undisturbed)
        undisturbed.close()
        assert digests(log) == digests(other)
    assert killed > 12


def test_a_replay_killed_at_any_statement_leaves_the_rows_that_were_live(
    mortals: dying.Mortals, database_url: str, log: Connection
) -> None:
    append(log, 1, example())
    drainer = Drainer(database_url)
    catch_up(drainer)
    drainer.close()
    expected, first = digests(log), generations.live(log)
    at_work = "SELECT 1 FROM pg_stat_activity WHERE application_name LIKE 'memctl re%' AND datname = current_database()"

    def state() -> generations.Live:
        until(lambda: log.execute(at_work).fetchone() is None, "the end of the killed backends")
        run_out(log)
        return generations.live(log)

    def is_served(before: generations.Live, now: generations.Live) -> None:
        assert digests(log) == expected
        assert now == before or before == first

    killed = kill_at_each_statement(mortals, dying.replay, database_url, state, is_served, stride=1 if FACTOR else 47)
    assert killed > 5
    assert generations.live(log) != first
    assert generations.generations(log, "building") == []


def test_a_worker_stopped_past_its_lease_at_any_statement_and_continued_changes_nothing(
    mortals: dying.Mortals, database_url: str, log: Connection, postgres_server: str, templates: servers.Templates
) -> None:
    history = [event for number in range(40) for event in example(number % 20, day=2 + number % 20)]
    other = Drainer(database_url)
    told, refused = 0, 0
    for after in range(1, 1000, 1 if FACTOR else 17):
        append(log, 1, history[told : told + 3])
        if not mortals.stops(dying.drain, database_url, after):
            break
        end_open_transactions(log)
        run_out(log)
        append(log, 1, history[told + 3 : told + 6])
        told += 6
        catch_up(other)
        before = state_of(log)
        refused += not mortals.go_on()
        assert state_of(log) == before
    other.close()
    assert after > 60
    with servers.fresh_database(postgres_server, templates.live(1)) as url, connect(url) as fresh:
        append(fresh, 1, history[: told + 3])
        undisturbed = Drainer(url)
        catch_up(undisturbed)
        undisturbed.close()
        assert digests(log) == digests(fresh)
    assert refused > 0


def end_open_transactions(log: Connection) -> None:
    """What idle_in_transaction_session_timeout does after a minute."""
    log.execute(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND state LIKE 'idle in transaction%'"
    )


def state_of(log: Connection) -> object:
    live = generations.live(log)
    found = generations.offsets(log, live.stage1, live.stage2)
    return live, [(offset.generation, offset.shard, offset.position) for offset in found], digests(log)
