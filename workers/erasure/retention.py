"""Retention: sessions older than they are to be kept are pruned, which is forgetting them by a rule.

What was observed in them goes, with all that rests on it alone; what people and agents stated stays. So does a session
on which something lasting rests: a verified claim, or a memory that is pinned, confirmed, rated useful, or was injected
since. Each prune is recorded with its receipt, so replays, backups and transcripts that are read again know of it.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
from psycopg import sql

from memctl.domain.events.erasure import NothingToForget, Scope
from memctl.domain.events.event import Micros
from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection, advisory_lock, connect
from memctl.infra.log import erase
from memctl.infra.log.spaces import of_every_space
from memctl.infra.log.spaces import space_id as space_of
from memctl.infra.logs import message_of
from memctl.infra.readmodels import generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.settings import Settings
from memctl.infra.vectors import QdrantClient
from memctl.projections.memory_rows import Memory
from memctl.workers.erasure.forgetting import Forgotten, Plan, forget, resume, store_of
from memctl.workers.erasure.look import Look
from memctl.workers.processors.runner import model

log = logging.getLogger("memctl.retention")

LOOK_AGAIN_S = 3600.0
LOCK = 0x7072756E
"""Advisory lock of whoever prunes ("prun")."""

PATIENCE_S = 120.0
"""How long somebody who asks waits for another who prunes."""

AT_ONCE = 25
"""Sessions that go under one receipt."""

LARGEST_SHARE, ALWAYS = 0.1, 10
"""By the settings no more than this share of the sessions, or so many, go in a day: a clock or a setting that is wrong
is seen before everything is gone."""

USEFUL = 0.5
"""Usefulness that no rating has moved yet; above it somebody found the memory useful."""

DAY_US = 86_400_000_000


class NothingOldEnough(MemctlError):
    """No session that could go is older than {days} days."""

    exit_code = 3
    days: int


class PruneAtWork(MemctlError):
    """Old sessions are being pruned already."""

    hint = "say the same again once that is done"


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """What may go: streams of sessions whose last sign of life is before `until`, oldest first."""

    days: int
    until: Micros
    streams: tuple[str, ...]
    of: int
    """Sessions that memory holds."""
    kept: int
    """Sessions as old that stay, since something lasting rests on them."""

    def plan(self, look: Look, streams: Sequence[str] | None = None) -> Plan:
        """The forgetting of these, or of all of them."""
        chosen = self.streams if streams is None else tuple(streams)
        rule = f"older than {self.days} days"
        return Plan(
            look=look,
            scope=Scope(kind="session", streams=chosen, until=self.until, rule=rule),
            what=f"{len(chosen)} sessions {rule}",
        )


def due(connection: Connection, space_id: int, days: int, now: Micros) -> Due:
    """The sessions that are older than so many days, without those that something lasting rests on.

    Days are counted back from `now`, or from the last thing that happened where that was before: a memory that nobody
    used for long does not go while it is away.
    """
    table = sql.SQL(readmodels.table("sessions", generations.live(connection).stage1))
    of, last = connection.execute(
        sql.SQL("SELECT count(*), coalesce(max((row->>'last_at')::bigint), 0) FROM {} WHERE space_id = %s").format(
            table
        ),
        [space_id],
    ).fetchone() or (0, 0)
    until = Micros(min(now, last) - days * DAY_US)
    going, kept = _by(connection, space_id, until)
    return Due(days=days, until=until, streams=going, of=of, kept=kept)


def _by(
    connection: Connection, space_id: int, until: Micros, among: Sequence[str] | None = None
) -> tuple[tuple[str, ...], int]:
    """The sessions (of these) that may go as they stand now, and how many as old may not."""
    live = generations.live(connection)
    wanted = None if among is None else list(among)
    old = [
        row[0]
        for row in connection.execute(
            sql.SQL(
                # The row may be behind the log: a session that was just taken up again is not old. One of which
                # nothing bears a time is as old as it has been known.
                "SELECT s.stream FROM {} s WHERE space_id = %s AND (row->>'last_at')::bigint < %s"
                " AND (%s::text[] IS NULL OR s.stream = ANY(%s)) AND"
                " (SELECT coalesce(max(e.occurred_at) FILTER (WHERE e.occurred_at > timestamptz 'epoch'),"
                " max(e.recorded_at)) FROM memctl.events e WHERE e.space_id = s.space_id AND e.stream = s.stream"
                " AND e.payload IS NOT NULL AND e.type = ANY(%s)) <= %s ORDER BY (row->>'last_at')::bigint, s.stream"
            ).format(sql.SQL(readmodels.table("sessions", live.stage1))),
            [space_id, until, wanted, wanted, erase.observed(), _moment(until)],
        )
    ]
    lasting = _lasting(connection, space_id, live, until) if old else set()
    going = tuple(stream for stream in old if stream not in lasting)
    return going, len(old) - len(going)


def asked(connection: Connection, space_id: int, days: int) -> Due:
    """What is due as of now, for somebody who asks. Raises: NothingOldEnough."""
    found = due(connection, space_id, days, Micros(time.time_ns() // 1000))
    if not found.streams:
        why = f"{found.kept:,} as old stay, since something lasting rests on them" if found.kept else None
        raise NothingOldEnough(days=days, hint=why)
    return found


def size(connection: Connection, space_id: int, streams: Sequence[str]) -> int:
    """Bytes that the log holds of what was observed in these."""
    row = connection.execute(
        "SELECT coalesce(sum(pg_column_size(payload)), 0)::bigint FROM memctl.events"
        " WHERE space_id = %s AND stream = ANY(%s) AND type = ANY(%s)",
        [space_id, list(streams), erase.observed()],
    ).fetchone()
    return int(row[0]) if row else 0


def prune(
    settings: Settings,
    connection: Connection,
    space_id: int,
    found: Due,
    qdrant: QdrantClient | None,
) -> Iterator[tuple[int, Forgotten]]:
    """Prune what is due, a few sessions under each receipt, while nobody else does: how many, and what became of it.

    Stopped in between, what has gone is gone and the rest is still due. What was gone already is passed over. Raises:
    PruneAtWork, and as `forget`.
    """
    with alone(connection):
        for batch in _batches(found.streams):
            with contextlib.suppress(NothingToForget):
                plan = _planned(connection, Look.of_owner(settings, space_id), found, batch)
                yield len(plan.scope.streams), forget(settings, connection, plan, qdrant)


def _batches(streams: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(streams[at : at + AT_ONCE]) for at in range(0, len(streams), AT_ONCE)]


def _planned(connection: Connection, look: Look, found: Due, batch: Sequence[str]) -> Plan:
    """The forgetting of those of a batch that may still go: one may have been taken up again since, or become dear to
    somebody."""
    going, _ = _by(connection, look.space_id, found.until, batch)
    return found.plan(look, going)


@contextlib.contextmanager
def alone(connection: Connection, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """While nobody else prunes; within itself, too. Raises: PruneAtWork."""
    with advisory_lock(connection, LOCK, patience_s=patience_s) as mine:
        if not mine:
            raise PruneAtWork
        yield


def keep_pruning(settings: Settings, stop: threading.Event) -> None:
    """Prune as the settings say until asked to stop; what goes wrong is logged, and tried again later."""
    if not settings.storage.keep_days:
        return
    last = ""
    while not stop.wait(LOOK_AGAIN_S):
        try:
            with connect(settings.require("database_url"), name="memctl retention") as connection:
                for each in of_every_space(connection, settings):
                    prune_if_due(each, connection, Micros(time.time_ns() // 1000), stop.is_set)
            last = ""
        except Exception as problem:
            if (why := message_of(problem)) != last:
                log.warning("nothing was pruned: %s", why)
            last = why


def prune_if_due(
    settings: Settings, connection: Connection, now: Micros, stop: Callable[[], bool] = lambda: False
) -> int:
    """Go on with prunes that were begun, then prune what is due by the settings, as much of it as may go in a day,
    until asked to stop; nothing where somebody else is at it.

    Returns how many sessions that were due have gone. Raises: as `forget`.
    """
    with advisory_lock(connection, LOCK) as mine, store_of(settings) as qdrant:
        if not mine:
            return 0
        space_id = space_of(connection, settings.space)
        for taken_up in resume(settings, connection, space_id, qdrant, by_rule=True, stop=stop):
            log.info("went on with a prune that was begun: %d events", taken_up.events)
        found = due(connection, space_id, settings.storage.keep_days, now)
        left = max(ALWAYS, int(found.of * LARGEST_SHARE)) - _pruned_since(connection, settings.space, now - DAY_US)
        chosen = found.streams[: max(0, left)]
        if not chosen or stop():
            return 0
        waiting = len(found.streams) - len(chosen)
        log.info("pruning %d sessions older than %d days; %d wait for tomorrow", len(chosen), found.days, waiting)
        going = msgspec.structs.replace(found, streams=chosen)
        events = gone = 0
        for sessions, done in prune(settings, connection, space_id, going, qdrant):
            events, gone = events + done.events, gone + sessions
            if stop():
                break
        log.info("pruned %d sessions, %d events", gone, events)
        return gone


def _pruned_since(connection: Connection, space: str, moment: int) -> int:
    since = _moment(moment)
    return sum(
        len(each.scope.streams)
        for each in erase.receipts(connection)
        if each.space == space and each.scope.rule and each.begun_at >= since
    )


def _lasting(connection: Connection, space_id: int, live: generations.Live, until: Micros) -> set[str]:
    """The streams that something lasting rests on: what was verified, is dear to somebody, or was injected since."""
    dear: list[str] = []
    with connection.transaction():
        for rows in readmodels.scan(connection, model("memory_feedback"), live.stage2, 2_000):
            dear += [
                key
                for (space, key), row in rows
                if space == space_id and (row.pinned or row.confirmed or row.usefulness > USEFUL)
            ]
    # Rows may be behind the log: whatever was said of a memory counts, even where they do not show it yet.
    said = connection.execute(
        "SELECT DISTINCT coalesce(payload->>'memory', payload->>'claim') FROM memctl.events WHERE space_id = %s"
        " AND position > %s AND type IN ('memory.pinned', 'memory.rated', 'knowledge.verified')",
        [space_id, generations.lowest_offset(connection, live.stage2, space_id)],
    )
    dear += [row[0] for row in said if row[0]]
    injected = connection.execute(
        "SELECT DISTINCT m->>'id' FROM memctl.events, jsonb_array_elements(payload->'memories') m WHERE space_id = %s"
        " AND type = 'memory.recalled' AND occurred_at >= %s AND payload ? 'memories' AND NOT payload ? 'withheld'",
        [space_id, _moment(until)],
    )
    p = model("memories")
    memories = connection.execute(
        sql.SQL("SELECT row FROM {} WHERE space_id = %b AND (key = ANY(%b) OR row->>'status' <> 'record')").format(
            sql.SQL(readmodels.table(p.name, live.stage2))
        ),
        [space_id, [*dear, *(row[0] for row in injected)]],
        binary=True,
    )
    streams: set[str] = set()
    events: set[UUID] = set()
    for (encoded,) in memories:
        memory: Memory = readmodels.decode_row(p, encoded)
        streams.update(memory.sessions)
        events.update(span.event for span in memory.evidence)
    found = connection.execute(
        "SELECT DISTINCT stream FROM memctl.events"
        " WHERE position = ANY(ARRAY(SELECT * FROM memctl.positions_of(%s, %s)))",
        [space_id, list(events)],
    )
    return streams | {row[0] for row in found}


def _moment(at: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)
