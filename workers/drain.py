"""The drain loop: take a shard's lease, fold batches until it has caught up or its time is over, let go."""

from __future__ import annotations

import os
import socket
import threading
import time

import psycopg

from memctl.domain.errors import MemctlError
from memctl.infra import generations
from memctl.infra.database import Connection, DatabaseUnavailable, connect
from memctl.infra.generations import Lease, LeaseLost
from memctl.infra.log.mark import mark, move_mark
from memctl.workers.stage1 import Stage1
from memctl.workers.stage2 import Stage2

BUDGET_S = 4.0
"""How long one drain goes on before it lets others have their turn."""


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


class Drainer:
    """Drains shards over one connection of its own, which is opened anew after a fault. Not for several threads."""

    def __init__(self, database_url: str, batch: int = 2000) -> None:
        self._url = database_url
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{id(self):x}"
        self._batch = batch
        self._connection: Connection | None = None
        self._checked: generations.Live | None = None
        self._stage1 = Stage1(batch)
        self._stage2 = Stage2(batch * 2)

    @property
    def connection(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._url, name="memctl worker")
        return self._connection

    def drain(self, stage: int, shard: int, budget_s: float = BUDGET_S) -> bool:
        """Fold what one shard has not read yet. True when the offset moved.

        Nothing happens where another worker holds the lease, the shard no longer exists, or the live read models
        were folded by other rules: those are rebuilt, not mixed.
        """
        connection = self.connection
        live = generations.live(connection)
        if self._checked != live:
            if generations.stale(connection):
                return False
            self._checked = live
        generation = live.stage1 if stage == 1 else live.stage2
        lease = generations.acquire(connection, generation, shard, self._owner)
        if lease is None:
            return False
        began = lease.position
        deadline = time.monotonic() + budget_s
        held = Heartbeat(self._url, lease)
        try:
            while time.monotonic() < deadline:
                if stage == 1:
                    upto = mark(connection)
                    if lease.position >= upto and lease.position >= (upto := move_mark(connection)):
                        break
                    lease = self._stage1.drain_batch(connection, lease, upto)
                else:
                    upto = generations.lowest_offset(connection, live.stage1)
                    if lease.position >= upto:
                        break
                    lease = self._stage2.drain_batch(connection, lease, live.stage1, upto)
        except LeaseLost:
            return True
        except BaseException:
            self.close()
            raise
        finally:
            held.end()
        generations.release(connection, lease)
        return lease.position > began

    def behind(self) -> list[tuple[int, int]]:
        """Shards (stage, shard) that have not read all they may, after the mark was moved."""
        connection = self.connection
        upto = move_mark(connection)
        live = generations.live(connection)
        lowest = generations.lowest_offset(connection, live.stage1)
        found = generations.offsets(connection, live.stage1, live.stage2)
        return [(o.stage, o.shard) for o in found if o.position < (upto if o.stage == 1 else lowest)]

    def close(self) -> None:
        """Drop the connection: whatever transaction was open is rolled back, leases run out."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def catch_up(drainer: Drainer) -> None:
    """Drain everything, in this process, until no shard is behind. Raises whatever a fold raises.

    Meant for one process by itself: it waits for as long as another holds a lease.
    """
    while behind := drainer.behind():
        if generations.stale(drainer.connection):
            raise OtherRules
        for stage, shard in behind:
            drainer.drain(stage, shard)
