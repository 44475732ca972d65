"""While one session's fold never ends, what is appended to others is folded as promptly as ever."""

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
from memctl.infra.database import Connection
from memctl.infra.log.append import append
from memctl.infra.log.mark import last_position
from memctl.infra.log.spaces import installation
from memctl.infra.readmodels import dead_letters, generations

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
