"""While one session's fold never ends, or a writer in another space, what is appended is folded as promptly as ever."""

from __future__ import annotations

import time
from pathlib import Path

import looping
import pytest
from events import prompt, work
from processes import memctl
from soak import FACTOR
from waiting import until

from memctl.domain.events.event import Position
from memctl.infra import queue
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append
from memctl.infra.log.mark import last_position
from memctl.infra.log.spaces import installation, space_id
from memctl.infra.readmodels import dead_letters, generations
from memctl.infra.settings import Settings

RATE, SECONDS = (1_000, 60) if FACTOR else (50, 4)
"""Events a second. The promise is of a machine that does nothing else, so the suite asks for less of it."""

P99_S = 2.0 if FACTOR else 20.0


@pytest.fixture
def shards() -> int:
    return 1


def reached(log: Connection, live: generations.Live) -> Position:
    return min(o.position for o in generations.offsets(log, live.stage1, live.stage2))


@pytest.mark.parametrize(("active", "events"), [(10, 200), (100, 50)])
def test_a_fold_that_never_ends_holds_up_no_other(
    environment: dict[str, str], log: Connection, tmp_path: Path, active: int, events: int
) -> None:
    """Beside so many sessions at a time, with so many events each, as real ones have them."""
    live = generations.live(log)
    appended: list[tuple[Position, float]] = []
    lags: list[float] = []
    endless_at = parked_at = 0.0
    script = (str(Path(looping.__file__)), "c")
    environment = {**environment, "MEMCTL_READ_BATCH": str(Settings().read_batch)}  # what is measured is users'
    woken, here = queue.connect(environment["MEMCTL_REDIS_URL"]), installation(log)
    with memctl("worker", environment=environment, log=tmp_path / "worker.log", script=script):
        append(log, 1, [prompt(1, "what comes before it is measured", session="first")])
        until(lambda: reached(log, live) >= last_position(log), "a worker that folds")
        began, number = time.monotonic(), 0
        while number < RATE * SECONDS or len(lags) < number:
            now = time.monotonic()
            if number < RATE * SECONDS and now >= began + number / RATE:
                wanted = range(number, number + RATE // 10)
                of = [(n // active % events, f"s{n // (active * events)}-{n % active}") for n in wanted]
                append(log, 1, [work(turn, session=session) for turn, session in of])
                if number == RATE * SECONDS // 2:
                    append(log, 1, [prompt(1, f"mend the checkout {looping.ENDLESS}", session="endless")])
                    endless_at = now
                appended += [(last_position(log), now)] * len(wanted)
                queue.wake(woken, here, [(1, 0)])  # as hooks do
                number = wanted.stop
            folded = reached(log, live)
            while len(lags) < len(appended) and appended[len(lags)][0] <= folded:
                lags.append(time.monotonic() - appended[len(lags)][1])
            parked_at = parked_at or (now - endless_at if dead_letters.parked(log, live.stage1, live.stage2) else 0.0)
            assert now - began < SECONDS + 120
            time.sleep(0.02)  # so that looking takes little of the machine
        until(lambda: dead_letters.parked(log, live.stage1, live.stage2), "the letter")
    lags.sort()
    report = f"parked after {parked_at:.1f} s; lag p50 {lags[len(lags) // 2]:.2f} p99 {lags[len(lags) * 99 // 100]:.2f}"
    print(f"{report} worst {lags[-1]:.2f} s of {len(lags)} events at {RATE}/s")
    assert 0 < parked_at < 60
    assert lags[len(lags) * 99 // 100] <= P99_S


BLOCKS, OF_EACH = (40, 25) if FACTOR else (4, 10)
MOST_OF_WITHOUT = 1.2 if FACTOR else 4.0
"""The p99 beside a writer that sleeps, by that without one; the suite shares its machine with other tests."""


def test_a_writer_that_sleeps_in_one_space_leaves_the_lag_of_another_as_it_was(
    environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    """With and without it in turns, in one run: from an append until its event is folded by both stages."""
    live, other = generations.live(log), space_id(log, "another")
    woken, here = queue.connect(environment["MEMCTL_REDIS_URL"]), installation(log)
    lags: dict[bool, list[float]] = {False: [], True: []}

    def folded(space: int) -> Position:
        found = generations.offsets(log, live.stage1, live.stage2)
        return min(each.reach.of(space) for each in found)

    with (
        memctl("worker", environment=environment, log=tmp_path / "worker.log"),
        connect(environment["MEMCTL_DATABASE_URL"], autocommit=False, name="a sleeper") as sleeper,
    ):
        append(log, other, [prompt(1)])
        until(lambda: folded(other) >= last_position(log), "a worker that folds")
        for block in range(2 * BLOCKS):
            sleeps = block % 2 == 1
            if sleeps:
                append(sleeper, 1, [prompt(block, session="sleeps")])
            for number in range(OF_EACH):
                began = time.monotonic()
                [kept] = append(log, other, [work(number, session=f"s{block}")])
                queue.wake(woken, here, [(1, 0)])  # as hooks do
                until(lambda position=kept.position: folded(other) >= position, "the fold")  # type: ignore[misc]
                lags[sleeps].append(time.monotonic() - began)
            if sleeps:
                assert folded(1) < last_position(log), "it sleeps"
                sleeper.commit()
        until(lambda: folded(1) >= last_position(log), "what the sleeper wrote")
    (p50, p99), (p50_beside, p99_beside) = (
        (sorted(found)[len(found) // 2] * 1000, sorted(found)[len(found) * 99 // 100] * 1000) for found in lags.values()
    )
    ratio, beside = p99_beside / p99, f"{p50_beside:.0f} and {p99_beside:.0f}"
    print(f"lag p50 {p50:.0f} p99 {p99:.0f} ms; beside a sleeper {beside} ms: {ratio:.2f}")
    assert ratio <= MOST_OF_WITHOUT
