"""What a database holds of a space that moves: whether it is folded, how rows come to it, and how all is deleted."""

import contextlib
import time
from typing import NamedTuple
from uuid import UUID

from psycopg import sql

from memctl.domain.events.event import Position
from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection, single_row
from memctl.infra.log.mark import last_position, move_mark
from memctl.infra.readmodels import generations
from memctl.infra.readmodels.rows import OUTBOX_OF, table
from memctl.infra.vectors import outbox
from memctl.workers.erasure.erase import nothing_rebuilt

AT_ONCE = 2_000
"""Events that one transaction copies, or deletes."""

HELD_S = 15.0
"""How long writers wait for a switch at most; it is tried again later."""

PATIENCE_S = 120.0
"""How long a move waits for workers that make no progress, and for writers that do not end."""

_STAYS = ("spaces", "deliveries", "llm_calls", "receipts", "tombstones")
"""Tables whose rows of a space are not deleted with its read models. An older backup may be restored here: what was
forgotten stays so."""

_DELETE = """
WITH gone AS (DELETE FROM memctl.deliveries WHERE space_id = %(space)s AND event_id IN
        (SELECT event_id FROM memctl.deliveries WHERE space_id = %(space)s LIMIT %(most)s) RETURNING position)
DELETE FROM memctl.events WHERE position IN (SELECT position FROM gone)"""

_TABLES = """
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'space_id'
WHERE c.relnamespace = 'memctl'::regnamespace AND c.relkind = 'r' AND NOT c.relispartition AND c.relname <> ALL(%s)"""

_STANDING = """
SELECT event_id, coalesce(variant_of, event_id) FROM memctl.events WHERE payload IS NOT NULL
    AND position = ANY(ARRAY(SELECT * FROM memctl.positions_of_versions(%s, %s)))"""


class NotFolded(MemctlError):
    """The workers of the database {database} have folded nothing for {seconds:.0f} s, and are not through."""

    hint = "nothing is lost: see that they run (`memctl status` there), then run this again, or with --undo"
    database: str
    seconds: float


class NotYet(Exception):
    """What has to come about while writers wait has not."""


class SpaceCopy(NamedTuple):
    """A space on one of the databases of a move."""

    database: str
    connection: Connection
    number: int

    @property
    def live(self) -> generations.Live:
        return generations.live(self.connection)

    @property
    def events(self) -> int:
        asked = "SELECT count(*) FROM memctl.deliveries WHERE space_id = %s"
        return int(single_row(self.connection, asked, [self.number])[0])

    def await_folds(self, *, vectors: bool = False, still_s: float = 0) -> None:
        """Wait until all that it holds now is folded, and the `vectors` are written. Raises: NotFolded, where nothing
        has moved for so long."""
        still_s = still_s or PATIENCE_S
        upto, began, seen = last_position(self.connection), time.monotonic(), None
        while not self._folded(upto) or (vectors and any(self._backlog())):
            if (now := self._progress()) != seen:
                began, seen = time.monotonic(), now
            if time.monotonic() - began > still_s:
                raise NotFolded(database=self.database, seconds=still_s)
            time.sleep(0.1)

    def folds_now(self) -> Position:
        """Wait until all that it holds is folded, while writers wait; returns up to where. Raises: NotYet."""
        upto, began = last_position(self.connection), time.monotonic()
        while not self._folded(upto):
            if time.monotonic() - began > HELD_S:
                raise NotYet(f"the workers of {self.database} are behind")
            time.sleep(0.01)
        return upto

    def _folded(self, upto: Position) -> bool:
        move_mark(self.connection, self.number, patience_s=0.05)
        live = self.live
        read = (generations.lowest_offset(self.connection, g, self.number) for g in (live.stage1, live.stage2))
        return min(read) >= upto

    def _backlog(self) -> tuple[int, int]:
        return outbox.backlog(self.connection, self.live.stage2, self.number)

    def _progress(self) -> tuple[int, ...]:
        live = self.live
        read = sum(each.position for each in generations.offsets(self.connection, live.stage1, live.stage2))
        return read, *self._backlog()

    def standing(self, ids: list[UUID]) -> dict[UUID, UUID]:
        """Those events of deliveries that are not emptied: id and delivery of each."""
        return dict(self.connection.execute(_STANDING, [self.number, ids]).fetchall())

    def bring_rows(self, source: "SpaceCopy", name: str, which: sql.Composable) -> None:
        """Put rows of a table that another has, and this one does not, in the caller's transaction."""
        listed = "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
        found = source.connection.execute(listed, [f"memctl.{name}"])
        columns = sql.SQL(", ").join(sql.Identifier(row[0]) for row in found)
        of = sql.Identifier("memctl", name)
        query = sql.SQL("SELECT {} FROM {} WHERE {}").format(columns, of, which)
        self.pipe(source, query, sql.SQL("{} ({})").format(of, columns))

    def pipe(self, source: "SpaceCopy", query: sql.Composable, into: sql.Composable) -> None:
        """Put what a query answers on another database into a table."""
        out = sql.SQL("COPY ({}) TO STDOUT (FORMAT binary)").format(query)
        take = sql.SQL("COPY {} FROM STDIN (FORMAT binary)").format(into)
        with (
            source.connection.cursor() as reading,
            self.connection.cursor() as writing,
            reading.copy(out) as blocks,
            writing.copy(take) as put,
        ):
            for block in blocks:
                put.write(block)

    def delete(self) -> None:
        """Delete all of it, where the space lives elsewhere. Killed, it can be done again while `copied` is not 0."""
        connection, space = self.connection, [self.number]
        with nothing_rebuilt(connection):
            connection.execute("UPDATE memctl.spaces SET copied = -1 WHERE space_id = %s", space)
            with contextlib.suppress(NotFolded):  # without workers, nobody folds it
                self.await_folds(still_s=2 * generations.LEASE.total_seconds())
            deleted = 1
            while deleted:
                with connection.transaction():
                    connection.execute("SELECT set_config('memctl.moved', %s, true)", [str(self.number)])
                    deleted = connection.execute(_DELETE, {"space": self.number, "most": AT_ONCE}).rowcount
            live = self.live
            generations.trust_nothing(connection, live)
            with connection.transaction():
                queue, points = (sql.SQL(table(name, live.stage2)) for name in ("outbox", OUTBOX_OF))
                queued = sql.SQL(
                    "INSERT INTO {} (space_id, key) SELECT space_id, key FROM {} WHERE space_id = %s"
                    " ON CONFLICT (space_id, key) DO UPDATE SET version = DEFAULT"
                )
                connection.execute(queued.format(queue, points), space)
                for (name,) in connection.execute(_TABLES, [[*_STAYS, f"outbox_g{live.stage2}"]]).fetchall():
                    gone = sql.SQL("DELETE FROM memctl.{} WHERE space_id = %s")
                    connection.execute(gone.format(sql.Identifier(name)), space)
                connection.execute("UPDATE memctl.spaces SET copied = 0 WHERE space_id = %s", space)
            outbox.forget_unused(connection, last_position(connection))
