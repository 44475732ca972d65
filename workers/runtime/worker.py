"""The worker process: an RQ worker for wake-ups, the sweeper, the outbox, the embedder and the processors."""

import gc
import logging
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from memctl.domain.events.event import Position
from memctl.infra import queue
from memctl.infra.database import Connection, connect
from memctl.infra.embedders import embedders_of
from memctl.infra.log.migrate import NewerSchema, migrate, refuse_newer
from memctl.infra.log.spaces import installation
from memctl.infra.readmodels import dead_letters, fleet, generations
from memctl.infra.readmodels import fingerprint as rules
from memctl.infra.readmodels.dead_letters import fault_message
from memctl.infra.readmodels.generations import Live
from memctl.infra.settings import Settings
from memctl.infra.vectors import QdrantClient, VectorStoreUnavailable, store
from memctl.infra.vectors import models as vector_models
from memctl.workers import jobs
from memctl.workers.erasure import retention
from memctl.workers.folding.drain import Drainer
from memctl.workers.folding.long_sessions import LongSessions
from memctl.workers.folding.poison import CannotFold
from memctl.workers.processors.registry import by_model, by_rule
from memctl.workers.processors.runner import ProcessorLoop
from memctl.workers.rebuild import stuck
from memctl.workers.rebuild.build import RebuildStopped
from memctl.workers.rebuild.replay import ReplayRunning, replay
from memctl.workers.runtime import backups
from memctl.workers.runtime.as_of_builder import AsOfBuilder
from memctl.workers.runtime.long_folder import LongFolder
from memctl.workers.runtime.sweeper import Sweeper
from memctl.workers.vectors.outbox_publisher import OutboxLoop
from memctl.workers.watchdog import guard
from memctl.workers.watchdog.guard import NONE_EARLIER, EarlierProcesses

log = logging.getLogger("memctl.worker")


REBUILD_PAUSE_S = 10.0
"""Between looks whether a rebuild is due."""

GONE_LOOKS, LOOK_PAUSE_S = 2, 5.0
"""Looks that see no worker of the live rules before one of others takes over, and the pause between them."""

FIRST_REBUILD_PAUSE_S, LONGEST_REBUILD_PAUSE_S = 20.0, 3600.0
"""How long a rebuild that stops at what it cannot fold is left alone at first, and at most; the pause doubles."""

SWITCH_S = 0.0005
"""How long a thread of the worker may compute while another could."""

STOP_WITHIN_S = 10.0
"""How long all threads together may take to end what they are at; whoever stops a worker waits longer."""

QUEUE_PAUSE_S = 2.0
"""Between attempts to reach a queue that is down; the sweeper drains meanwhile."""


def prepared(settings: Settings) -> tuple[str, Live]:
    """Bring the schema of the database up to this version, with generations to fold into. Returns both."""
    url = settings.require("database_url")
    revision = migrate(url)
    with connect(url, name="memctl init") as connection:
        return revision, generations.ensure_live(connection, settings.stage1_shards)


def run_worker(settings: Settings, ready_file: Path | None = None) -> None:
    """Work until SIGTERM or SIGINT: a batch under way is finished first.

    What works is a process of its own, of which this one is the guard. `ready_file` gets the guard's process id once
    everything is set up; beside it stands what that process is at, for when both die. Raises: DatabaseUnavailable.
    """
    database_url, redis_url = settings.require("database_url"), settings.require("redis_url")
    _load()
    guard_id = os.getpid()
    board = ready_file.with_suffix(".board") if ready_file is not None else None
    before = guard.begin(lambda: stuck.try_apart(database_url), board)
    trial_only, long = stuck.streams(before), LongSessions()
    drainer = Drainer(database_url, settings.read_batch, trial_only, long)
    refuse_newer(drainer.connection)
    generations.ensure_live(drainer.connection, settings.stage1_shards)
    _wait_for_others(drainer)
    stuck.set_aside(drainer.connection, before)
    here = installation(drainer.connection)
    embedders = embedders_of(settings)
    vector_models.begin(drainer.connection, embedders, load=False)
    stuck.leave_to_words(drainer.connection, before, embedders)

    outbox = OutboxLoop(
        database_url, settings.require("qdrant_url"), settings.qdrant_api_key, embedders,
        partial(_say_pace, redis_url, here),
    )  # fmt: skip
    jobs.set_up(jobs.Wakes(drainer, queue.connect(redis_url), here, outbox.moved))

    stop = threading.Event()
    sweeper = Sweeper(
        Drainer(database_url, settings.read_batch, trial_only, long), queue.connect(redis_url), here, outbox.moved
    )
    sweeping = _started("sweeper", sweeper.run, stop)
    outbox.start(after_s=stuck.pause_of_points(before))
    endless = Counter(each.work.name.split()[0] for each in before.stuck if each.work.kind == "processor")
    # Apart, for an answer of a model may take minutes.
    kinds = (by_rule(settings), by_model(settings))
    processors = [ProcessorLoop(settings, each, stop, endless) for each in kinds if each]
    for each in processors:
        each.start()
    _started("rebuild", _watch, settings, stop, before)
    _started("backups", backups.keep_making, settings, stop)
    _started("retention", retention.keep_pruning, settings, stop)
    _started("long folds", LongFolder(database_url, long, trial_only).run, stop)
    building = _started("as of", AsOfBuilder(database_url).run, stop)
    # A thread that computes keeps the interpreter for 5 ms from one whose answer has come, and a batch asks Postgres
    # some seventy times: with the outbox or the embedder at work that would be most of its time.
    sys.setswitchinterval(SWITCH_S)
    collect_seldom()
    if ready_file is not None:
        ready_file.write_text(str(guard_id))
    try:
        _answer_wakes(redis_url, here, stop)
    finally:
        stop.set()
        outbox.ask_to_stop()
        deadline = time.monotonic() + STOP_WITHIN_S
        sweeping.join(_left(deadline))
        building.join(_left(deadline))
        outbox.stop(_left(deadline))
        for each in processors:
            each.stop(_left(deadline))


def _started(name: str, run: Callable[..., object], *given: object) -> threading.Thread:
    thread = threading.Thread(target=run, args=given, name=name, daemon=True)
    thread.start()
    return thread


def _say_pace(redis_url: str, here: str, texts_wait: bool, per_s: float | None) -> None:
    """Say in the queue whether texts wait to be embedded, and how many a second are."""
    from redis.exceptions import RedisError

    with suppress(RedisError):
        redis = queue.connect(redis_url)
        if per_s is not None:
            queue.embeds(redis, per_s)
        if texts_wait:
            queue.texts_wait(redis, here, time.time(), embedded=per_s is not None)
        else:
            queue.no_text_waits(redis, here)


def _wait_for_others(drainer: Drainer) -> None:
    """Do nothing while workers of the same version fold by other rules: each would replace what the other built. One
    that is not seen at two looks has ended, and did not just lose its connection."""
    missing, said = 0, False
    while missing < GONE_LOOKS and fleet.differs(drainer.connection):
        missing = 0 if fleet.leads(drainer.connection) else missing + 1
        if not (missing or said):
            said = True
            log.error(
                "this worker's rules or libraries are not those of the live read models, and a worker of those is"
                " there: this one waits until none is; give all workers of a database the same image"
            )
        if missing < GONE_LOOKS:
            time.sleep(LOOK_PAUSE_S)


def _load() -> None:
    """Have all at hand that a process needs to fold, before it is forked: one that takes another's place begins at
    once. Nothing of this starts a thread or opens a connection."""
    import qdrant_client  # noqa: F401
    import rq  # noqa: F401

    with suppress(rules.RulesChanged):  # which is noticed again, and said, by who asks
        rules.fingerprint()


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


class Attempts:
    """When a rebuild that stopped at what it cannot fold is tried again: it meets that again, unless it was left out.

    `earlier`: how often processes before this one have stopped at it. `left_out` is where the last event stands by
    which something was left out.
    """

    def __init__(self, earlier: int = 0) -> None:
        self._pause = min(FIRST_REBUILD_PAUSE_S * 2**earlier, LONGEST_REBUILD_PAUSE_S) if earlier else 0.0
        self._until = 0.0
        self._left_out = Position(0)

    def due(self, left_out: Position) -> bool:
        return left_out != self._left_out or time.monotonic() >= self._until

    def stopped(self, left_out: Position) -> float:
        """Note that it stopped; returns for how many seconds it is not due."""
        self._pause = min(max(self._pause * 2, FIRST_REBUILD_PAUSE_S), LONGEST_REBUILD_PAUSE_S)
        self._until = time.monotonic() + self._pause
        self._left_out = left_out
        return self._pause


def _watch(settings: Settings, stop: threading.Event, before: EarlierProcesses = NONE_EARLIER) -> None:
    """Where the rules have changed since the live rows were folded, rebuild; the old rows are served meanwhile.

    Later changes are another process' doing: this one ends, so that its supervisor starts it with the code of today.
    """
    url = settings.require("database_url")
    sound, files_changed = False, False
    attempts, left_out = Attempts(sum(each.work.kind == "task" for each in before.stuck)), Position(0)
    while not stop.is_set():
        try:
            with connect(url, name="memctl rebuild") as connection:
                why = why_end(connection, sound, files_changed)
                outdated = not why and generations.stale(connection)
                left_out = dead_letters.last_skip(connection)
            if why:
                log.error("%s: this worker ends", why)
                os.kill(os.getpid(), signal.SIGTERM)
                return
            if outdated and attempts.due(left_out):
                _rebuild(settings, url)
                outdated = False
            sound = sound or not outdated
        except ReplayRunning:
            log.info("another process is rebuilding")
        except (RebuildStopped, CannotFold) as problem:
            again = f"it is tried again in {attempts.stopped(left_out):.0f} s, or once something is left out"
            log.error("the rebuild failed; the old rows are served, and %s: %s", again, fault_message(problem))
        except Exception as problem:
            log.error("the rebuild failed; the old rows are served, and it is tried again: %s", fault_message(problem))
        files_changed = rules.changed()
        stop.wait(REBUILD_PAUSE_S)


def why_end(connection: Connection, sound: bool, files_changed: bool) -> str:
    """Why a worker has to end, or "" where it may go on. What it has loaded is no longer what is asked for.

    `sound`: the live rows were of its own rules before. `files_changed`: memctl's files had changed when it looked
    last; it ends at the second look, when an installation is likely to be through.
    """
    try:
        refuse_newer(connection)
    except NewerSchema as problem:
        return str(problem)
    if files_changed and rules.changed():
        return "memctl's files have changed since it started"
    if generations.stale(connection):
        if generations.made_by_newer(connection):
            return "the read models were made by a newer memctl"
        if sound:
            return "the read models were made by another memctl"
    return ""


def _rebuild(settings: Settings, url: str) -> None:
    log.warning("the rules have changed: rebuilding the read models")
    client: QdrantClient | None = store.connect(settings.require("qdrant_url"), settings.qdrant_api_key)
    assert client is not None
    try:
        store.list_collections(client)
    except VectorStoreUnavailable as problem:
        log.warning("rebuilding without vectors, which follow later: %s", problem)
        client.close()
        client = None
    try:
        done = replay(url, client)
    finally:
        if client is not None:
            client.close()
    log.warning("rebuilt from %d events in %.1f s", done.events, done.seconds)


def _answer_wakes(redis_url: str, installation: str, stop: threading.Event) -> None:
    """Run an RQ worker, and another when the queue went away, until a signal asks to stop."""
    from redis.exceptions import RedisError
    from rq import SimpleWorker

    class Answering(SimpleWorker):
        """One job at a time in this process: forking for each costs five times the latency."""

        def request_stop(self, signum: Any, frame: Any) -> None:
            stop.set()
            super().request_stop(signum, frame)  # type: ignore[no-untyped-call]  # rq is untyped here

    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    while not stop.is_set():
        try:
            wakes = queue.connect_waiting(redis_url)
            Answering([queue.queue(wakes, installation)], connection=wakes).work(logging_level="WARNING")
        except RedisError as problem:
            log.warning("the queue does not answer: %s", problem)
        stop.wait(QUEUE_PAUSE_S)


def collect_seldom() -> None:
    """Of what is kept to fold on, little is garbage in cycles: looking it through each time would hold up folds."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
