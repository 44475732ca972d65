"""The drain loop: take a shard's lease, fold batches until it has caught up or its time is over, let go.

A shard that cannot go on is left for a while, longer each time, with its lease let go and its offset where it was.
"""

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Collection
from functools import partial

import psycopg

from memctl.domain.events.event import Position
from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection, DatabaseUnavailable, connect
from memctl.infra.log.mark import move_marks
from memctl.infra.log.migrate import refuse_newer
from memctl.infra.log.reach import Reach, as_json, next_section
from memctl.infra.log.read import StreamKey
from memctl.infra.readmodels import dead_letters, fleet, generations
from memctl.infra.readmodels.dead_letters import fault_message
from memctl.infra.readmodels.generations import Lease, LeaseLost
from memctl.workers.folding.long_sessions import LongSessions
from memctl.workers.folding.stage1 import Stage1
from memctl.workers.folding.stage2 import Stage2
from memctl.workers.watchdog import progress_board as progress

log = logging.getLogger("memctl.worker")

BUDGET_S = 4.0
"""How long one drain goes on before it lets others have their turn."""

TURN = 200
"""Events of one space that stage 1 folds before it looks what others have brought."""

_WAITING = """
SELECT space_id, min(position) FROM (
    SELECT space_id, position, row_number() OVER (PARTITION BY space_id ORDER BY position) AS number FROM (
        SELECT space_id, position FROM memctl.events WHERE position > %(lowest)s AND position <= %(upto)s
            AND position > memctl.of_space(%(position)s, %(held)s::jsonb, space_id)
        ORDER BY position LIMIT %(window)s) waiting) numbered
WHERE number = %(turn)s AND (SELECT count(*) FROM memctl.spaces) > 1 GROUP BY space_id
"""
"""Where the turn ends of each space that has more to be folded than one."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""How long a shard that could not go on is left alone at first, and at most; the pause doubles."""


class Heartbeat:
    """Renews a lease while a batch takes longer than it lasts: else two workers could undo each other for ever."""

    def __init__(self, url: str, lease: Lease) -> None:
        self._url = url
        self._lease = lease
        self._ended = threading.Event()
        self._thread = threading.Timer(generations.LEASE.total_seconds() / 3, self._beat)
        self._thread.daemon = True
        self._thread.start()

    def _beat(self) -> None:
        try:
            with connect(self._url, name="memctl heartbeat") as connection:
                while not self._ended.is_set():
                    generations.renew(connection, self._lease)
                    self._ended.wait(generations.LEASE.total_seconds() / 3)
        except (LeaseLost, DatabaseUnavailable, psycopg.Error):
            return  # the batch's own compare-and-set finds out

    def end(self) -> None:
        self._ended.set()
        self._thread.cancel()
        self._thread.join()


class OtherRules(MemctlError):
    """The live read models were folded by other rules than this code's."""

    hint = "run `memctl replay --all`"


def owner_of(pid: int) -> str:
    """How the owner of a lease is called, to begin with, that a process of this machine holds."""
    return f"{socket.gethostname()}:{pid}:"


class Drainer:
    """Drains shards over one connection of its own, which is opened again after a fault. Not for several threads."""

    def __init__(
        self,
        database_url: str,
        batch: int = 2000,
        trial_only: Collection[StreamKey] = (),
        long: LongSessions | None = None,
    ) -> None:
        """`trial_only`: streams that only a trial may fold whole. `long`: where those are left that are long."""
        self._trial_only = trial_only
        self._long = long
        self._url = database_url
        self._owner = f"{owner_of(os.getpid())}{id(self):x}"
        self._batch = batch
        self._connection: Connection | None = None
        self.alone = True
        """Whether stage 2 had one shard when it was looked at last."""
        self._forget()
        self._pauses: dict[tuple[int, int], tuple[float, float]] = {}
        """By stage and shard that could not go on: how long it is left alone, and until when."""
        self.cut_off = False
        """Whether stage 1 left something of a space for its next turn."""

    @property
    def connection(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._url, name="memctl worker")
            fleet.join(self._connection)
            self._forget()
        return self._connection

    def _forget(self) -> None:
        """Keep nothing: what is reached over another connection may be a standby, or restored, and lack what was
        folded last; others may then fold other events to the very offset that is remembered."""
        self._checked: generations.Live | None = None
        if self._long is not None:
            self._long.forget()
        self._stage1 = Stage1(self._batch, parks=True, trial_only=self._trial_only, long=self._long)
        self._stage2: dict[int, Stage2] = {}

    def attempt(self, stage: int, shard: int) -> bool:
        """`drain`, unless the shard could not go on a moment ago. True when the offset moved.

        A fault is logged and noted for `memctl status`; the shard is left alone for a while, longer each time.
        """
        pause, until = self._pauses.get((stage, shard), (0.0, 0.0))
        if time.monotonic() < until:
            return False
        try:
            moved = self.drain(stage, shard)
        except Exception as problem:
            pause = min(max(pause * 2, FIRST_PAUSE_S), LONGEST_PAUSE_S)
            self._pauses[stage, shard] = pause, time.monotonic() + pause
            kind, words = type(problem).__name__, fault_message(problem)
            log.error("stage %d shard %d cannot go on, next attempt in %.0f s: %s", stage, shard, pause, words)
            self._note(partial(dead_letters.halt, error=kind, message=words), stage, shard)
            return False
        if self._pauses.pop((stage, shard), None) is not None:
            log.info("stage %d shard %d goes on", stage, shard)
            self._note(dead_letters.go_on, stage, shard)
        return moved

    def _note(self, note: Callable[[Connection, int, int], None], stage: int, shard: int) -> None:
        """Write down how a shard is, if the database can be written to."""
        with contextlib.suppress(psycopg.Error, MemctlError):
            live = generations.live(self.connection)
            note(self.connection, live.of(stage), shard)

    def drain(self, stage: int, shard: int, budget_s: float = BUDGET_S) -> bool:
        """Fold what one shard has not read yet. True when the offset moved.

        What comes meanwhile is left for the next drain: who chased it would keep the other shards waiting for good.
        Nothing happens where another worker holds the lease, the shard no longer exists, or the live read models
        were folded by other rules: those are rebuilt, not mixed. What cannot be folded is parked. Raises: NewerSchema;
        whatever keeps the shard from going on, with the lease let go; the offset is after the last batch written.
        """
        connection = self.connection
        refuse_newer(connection)
        live = generations.live(connection)
        if self._checked != live:
            if generations.stale(connection):
                return False
            self._checked = live
        upto = self._may_read(stage, shard, live)
        if upto is None:
            return False
        lease = generations.acquire(connection, live.of(stage), shard, self._owner)
        if lease is None:
            return False
        began = lease.reach
        deadline = time.monotonic() + budget_s
        held = Heartbeat(self._url, lease)
        try:
            while next_section(lease.reach, upto) is not None and time.monotonic() < deadline:
                if stage == 1:
                    lease = self._stage1.drain_batch(connection, lease, upto)
                else:
                    lease = self._folds(lease).drain_batch(connection, lease, live.stage1, upto)
        except LeaseLost:
            return True
        except BaseException as problem:
            if isinstance(problem, MemoryError):
                progress.end_for_memory(problem)
            self.close()  # whatever was open is rolled back, also where it is not known what became of it
            with contextlib.suppress(psycopg.Error, DatabaseUnavailable):
                generations.release(self.connection, lease)
            raise
        finally:
            held.end()
            progress.slot().idle()
        generations.release(connection, lease)
        return lease.reach != began

    def _folds(self, lease: Lease) -> Stage2:
        if lease.shard not in self._stage2:
            self._stage2[lease.shard] = Stage2(self._batch * 2, parks=True, shares=lease.shards)
        return self._stage2[lease.shard]

    def _may_read(self, stage: int, shard: int, live: generations.Live) -> Reach | None:
        """Up to where a shard may read each space now; None where it has read that far, or no longer exists."""
        found = generations.offsets(self.connection, live.stage1, live.stage2)
        self.alone = sum(offset.stage == 2 for offset in found) == 1
        own = [offset.reach for offset in found if (offset.stage, offset.shard) == (stage, shard)]
        if not own:
            return None
        if stage == 1:
            upto = self._in_turns(own[0], move_marks(self.connection, own[0]))
        else:
            upto = generations.may_read(shard, found)
        return upto if next_section(own[0], upto) is not None else None

    def _in_turns(self, read: Reach, upto: Reach) -> Reach:
        """Up to where each space is read now. Of one that brings much it is a part, or others would wait for all of it
        though they bring little."""
        self.cut_off = False
        if upto.position - read.lowest <= TURN:
            return upto
        found = self.connection.execute(
            _WAITING,
            {"lowest": read.lowest, "upto": upto.position, "position": read.position, "held": as_json(read.held),
             "window": 4 * TURN, "turn": TURN},
        ).fetchall()  # fmt: skip
        ends = {space: Position(at) for space, at in found if at < upto.of(space)}
        self.cut_off = bool(ends)
        return Reach(upto.position, {**upto.held, **ends})

    def behind(self) -> list[tuple[int, int]]:
        """Shards (stage, shard) that have not read all they may, after the marks were moved."""
        connection = self.connection
        live = generations.live(connection)
        upto = move_marks(connection, generations.offset_of(connection, live.stage1))
        found = generations.offsets(connection, live.stage1, live.stage2)
        return [(o.stage, o.shard) for o in found if self._is_behind(o, upto if o.stage == 1 else None, found)]

    def following(self) -> list[tuple[int, int]]:
        """Shards of stage 2 that have not read all they may."""
        live = generations.live(self.connection)
        found = generations.offsets(self.connection, live.stage1, live.stage2)
        return [(2, o.shard) for o in found if o.stage == 2 and self._is_behind(o, None, found)]

    @staticmethod
    def _is_behind(offset: generations.Offset, upto: Reach | None, found: Collection[generations.Offset]) -> bool:
        return next_section(offset.reach, upto or generations.may_read(offset.shard, found)) is not None

    def close(self) -> None:
        """Drop the connection: whatever transaction was open is rolled back, leases run out."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
