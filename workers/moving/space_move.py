"""Moves a space to another database while it is written and read.

Its log is copied, the workers of the target fold it there, log and read models are compared, and one commit on the
database that it leaves makes it live on the other. Until then nobody is answered from the copy. What was left is
deleted afterwards. Every step may be killed: `move` goes on from there, and until the switch `give_up` deletes what
was copied.
"""

import contextlib
import time
from collections.abc import Callable
from typing import Self, TypeVar
from uuid import uuid4

from psycopg import errors, sql

from memctl.domain.events.event import Position
from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection, advisory_lock, connect, outages, single_row, snapshot
from memctl.infra.event_writer import EventWriter
from memctl.infra.log.mark import hold_off_space, hold_positions, last_position, move_mark
from memctl.infra.log.spaces import HERE, arrive, connect_to
from memctl.infra.readmodels import generations
from memctl.infra.readmodels.rows import OUTBOX_OF, digest_of, rows_query, table
from memctl.infra.settings import Settings
from memctl.projections.kernel import projections
from memctl.workers.erasure.erase import erase_round, nothing_rebuilt
from memctl.workers.moving.space_copy import AT_ONCE, PATIENCE_S, NotYet, SpaceCopy

T = TypeVar("T")

Report = Callable[[str], None]

FEW = 200
"""Events that may be left to copy while writers wait."""

_NAME = "memctl move"
"""Of the connections."""

_TURN = 0x6D6F7665
"""First half of the advisory lock of who moves a space ("move"); the second is the space."""

_STEERING = ("checkpoints", "processing")
"""What moves beside the log: how far files were read, and what processors did."""

_CARRIED = sql.SQL(
    "event_id, space_id, stream, stream_version, stream_hash, type, schema_version, occurred_at, recorded_at, actor,"
    " location, session_id, causation_id, correlation_id, dedupe_key, variant_of, sources, salt, payload_hash, payload"
)
"""The columns of an event that move with it: all but its position."""

_EVENTS = sql.SQL(
    "SELECT position, {} FROM memctl.events WHERE space_id = {} AND position > {} AND position <= {}"
    " ORDER BY position LIMIT {}"
)

_COMING = sql.SQL("CREATE TEMP TABLE memctl_coming ON COMMIT DROP AS SELECT {} FROM memctl.{} WITH NO DATA")

_SKIP = """
SELECT count(nextval('memctl.events_position_seq'))
FROM generate_series(1, %s - coalesce(pg_sequence_last_value('memctl.events_position_seq'), 0))"""

_PLACE = sql.SQL("""
WITH placed AS MATERIALIZED (
    SELECT nextval('memctl.events_position_seq') AS at, c.* FROM (SELECT * FROM memctl_coming ORDER BY position) c),
entered AS (INSERT INTO memctl.deliveries (position, space_id, event_id) SELECT at, space_id, event_id FROM placed)
INSERT INTO memctl.events (position, {0}) OVERRIDING SYSTEM VALUE SELECT at, {0} FROM placed
""").format(_CARRIED)

_LOG = """SELECT space_id, CASE WHEN payload IS NULL AND variant_of IS NOT NULL THEN variant_of || ' ' || recorded_at
    ELSE event_id::text END AS key, jsonb_build_array(stream, stream_hash, type, schema_version, occurred_at,
    recorded_at, actor, location, session_id, causation_id, correlation_id, variant_of, sources, payload_hash::text,
    payload) AS row FROM memctl.events"""
"""Events as `digest_of` takes them. A variant that was emptied was given another id by chance."""

_BEGIN = """
INSERT INTO memctl.spaces (space_id, name, database, arriving, move) OVERRIDING SYSTEM VALUE
    VALUES (%(number)s, %(name)s, %(from)s, true, %(move)s)
ON CONFLICT (space_id) DO UPDATE SET database = %(from)s, arriving = true, move = %(move)s, copied = 0
    WHERE memctl.spaces.name = %(name)s"""


class NoSuchSpace(MemctlError):
    """There is no space {space}."""

    exit_code = 2
    hint = "`memctl space list` names those that there are"
    space: str


class SpaceInTheWay(MemctlError):
    """The database {database} has a space of its own that is called {space}, or has its number."""

    exit_code = 2
    hint = "nothing was moved; `memctl export` and `memctl import` bring what a space holds into one that is there"
    database: str
    space: str


class DifferentRules(MemctlError):
    """The read models of {origin} and of {target} were folded by different rules."""

    hint = "give the workers of both the same image, wait for `memctl status` to show no replay, then run this again"
    origin: str
    target: str


class MoveUnderWay(MemctlError):
    """Another process is moving the space {space}."""

    space: str


class NeverQuiet(MemctlError):
    """The space could not be switched for {seconds:.0f} s: {why}."""

    hint = "the copy is kept and nothing is lost: run this again, or with --undo"
    seconds: float
    why: str


class CopyDiffers(MemctlError):
    """The copy of the space differs from what it was made of: {what}."""

    hint = "it was not switched, and nothing is lost: `memctl verify` at both, then --undo and move it again"
    what: str


class NothingToUndo(MemctlError):
    """No move of the space {space} to {database} is unfinished."""

    exit_code = 2
    hint = "a move that was switched is undone by moving the space back"
    space: str
    database: str


def move(settings: Settings, space: str, to: str, report: Report = lambda said: None) -> None:
    """Let a space live on the database of that name ("here": on that of the settings). Where it lives there already,
    what a move left unfinished is finished.

    Raises: NoSuchSpace, UnknownDatabase, SpaceInTheWay, DifferentRules, MoveUnderWay, NotFolded, NeverQuiet,
    CopyDiffers, DatabaseUnavailable; then the same may be said again.
    """
    with outages(), contextlib.ExitStack() as opened:
        found, origin = connect_to(settings, space, _NAME)
        source = opened.enter_context(found)
        target = opened.enter_context(_connect(settings, to))
        row = source.execute("SELECT space_id FROM memctl.spaces WHERE name = %s", [space]).fetchone()
        if row is None:
            raise NoSuchSpace(space=space)
        if not opened.enter_context(advisory_lock(target, _TURN, row[0])):
            raise MoveUnderWay(space=space)
        if origin != to:
            copies = (SpaceCopy(origin, source, row[0]), SpaceCopy(to, target, row[0]))
            with _Move(settings, space, *copies, report) as under_way:
                under_way.carry_out()
        _tidy(settings, space, to, report)


def give_up(settings: Settings, space: str, to: str) -> None:
    """Delete what an unfinished move has copied: the space goes on where it lives. Raises: NothingToUndo, and as
    `move`."""
    with outages(), contextlib.ExitStack() as opened:
        found, origin = connect_to(settings, space, _NAME)
        found.close()
        target = opened.enter_context(_connect(settings, to))
        row = target.execute("SELECT space_id FROM memctl.spaces WHERE name = %s AND arriving", [space]).fetchone()
        if row is None or origin == to:
            raise NothingToUndo(space=space, database=to)
        if not opened.enter_context(advisory_lock(target, _TURN, row[0])):
            raise MoveUnderWay(space=space)
        SpaceCopy(to, target, row[0]).delete()
        target.execute("UPDATE memctl.spaces SET arriving = false WHERE name = %s AND arriving", [space])


def _connect(settings: Settings, database: str) -> Connection:
    return connect(settings.on(database).require("database_url"), name=_NAME)


def _tidy(settings: Settings, space: str, to: str, report: Report) -> None:
    """Let every database know where the space lives now, and delete what is left of it on others."""
    with _connect(settings, to) as connection:
        (move,) = single_row(connection, "SELECT move FROM memctl.spaces WHERE name = %s", [space])
        arrive(connection, space, move)
    for name in (HERE, *settings.databases):
        if name == to:
            continue
        with _connect(settings, name) as connection:
            left = connection.execute(
                "UPDATE memctl.spaces SET database = %s, move = %s, arriving = false"
                " WHERE name = %s AND database <> '' RETURNING space_id, copied",
                [to, move, space],
            ).fetchone()
            if left is not None and left[1]:
                report(f"deleting what is left on {name}")
                SpaceCopy(name, connection, left[0]).delete()


class _Move:
    """A space on its way from one database to another."""

    def __init__(self, settings: Settings, space: str, source: SpaceCopy, target: SpaceCopy, report: Report) -> None:
        self._space, self._source, self._target, self._report = space, source, target, report
        self._number = source.number
        self._opened = contextlib.ExitStack()
        self._holding = self._opened.enter_context(_connect(settings, source.database))
        """Further connections to the source: this one holds the writers off, the other looks at one moment."""
        self._look = self._opened.enter_context(_connect(settings, source.database))
        self._settings = settings.on(target.database).of_space(space)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def carry_out(self) -> None:
        self._begin()
        self._workers = EventWriter(self._target.connection, self._settings)
        self._forget_there()
        self._copy_vectors()
        self._catch_up()
        self._target.await_folds(vectors=True)
        self._report("comparing")
        with contextlib.ExitStack() as seen:
            upto = self._while_nobody_writes(lambda: self._at_rest(seen))
            self._catch_up(upto)
            self._target.await_folds()
            self._compare()
        self._catch_up()
        self._target.await_folds(vectors=True)
        self._while_nobody_writes(self._switch)
        self._report("switched")

    def _begin(self) -> None:
        """Have a place for the copy, which arrives. Raises: SpaceInTheWay, DifferentRules."""
        source, target = self._source, self._target
        theirs, ours = (
            generations.fingerprints(each.connection, each.live.stage1, each.live.stage2) for each in (source, target)
        )
        if theirs != ours:
            raise DifferentRules(origin=source.database, target=target.database)
        asked = "SELECT space_id, database, arriving, copied FROM memctl.spaces WHERE name = %s"
        found = target.connection.execute(asked, [self._space]).fetchone()
        if found is not None:
            number, database, arriving, copied = found
            if number != self._number or (not database and target.events):
                raise SpaceInTheWay(database=target.database, space=self._space)
            if arriving and database == source.database and copied >= 0:
                return
            if copied:
                target.delete()
        given = {"number": self._number, "name": self._space, "from": source.database, "move": uuid4()}
        if not target.connection.execute(_BEGIN, given).rowcount:
            raise SpaceInTheWay(database=target.database, space=self._space)

    def _catch_up(self, upto: Position | None = None) -> None:
        """Copy what the space holds up to there, or all but what is just being written."""
        copied = AT_ONCE
        while copied == AT_ONCE or (upto is None and copied > FEW):
            copied = self._copy(upto or move_mark(self._source.connection, self._number))
            self._workers.wake()
            if copied == AT_ONCE:
                self._report(f"{self._target.events:,} events copied")

    def _copy(self, upto: Position) -> int:
        """Copy the next events up to a position, none of them beyond the mark, in one transaction. Returns how many.

        None comes to a position below that which it had: who follows the space from there misses none.
        """
        target = self._target.connection
        with target.transaction():
            hold_positions(target, self._number)
            asked = "SELECT copied FROM memctl.spaces WHERE space_id = %s FOR UPDATE"
            (after,) = single_row(target, asked, [self._number])
            target.execute(_COMING.format(sql.SQL("position, {}").format(_CARRIED), sql.SQL("events")))
            query = _EVENTS.format(_CARRIED, self._number, after, upto, AT_ONCE)
            self._target.pipe(self._source, query, sql.SQL("memctl_coming"))
            count, last = single_row(target, "SELECT count(*), coalesce(max(position), 0) FROM memctl_coming")
            target.execute(_SKIP, [last])
            target.execute("SELECT set_config('memctl.covered', 'entered', true)")  # as deliveries, beside them
            target.execute(_PLACE)
            reached = last if count == AT_ONCE else max(upto, after)
            target.execute("UPDATE memctl.spaces SET copied = %s WHERE space_id = %s", [reached, self._number])
        return int(count)

    def _copy_vectors(self) -> None:
        """Bring the vectors of the space's texts, so that none is embedded again."""
        target = self._target.connection
        query = sql.SQL(
            "SELECT DISTINCT e.model, e.text_hash, e.vector FROM memctl.embeddings e"
            " JOIN {} p ON e.text_hash = decode(p.row->>'dense_hash', 'hex') WHERE p.space_id = {}"
        ).format(sql.SQL(table(OUTBOX_OF, self._source.live.stage2)), self._number)
        with target.transaction():
            target.execute(_COMING.format(sql.SQL("model, text_hash, vector"), sql.SQL("embeddings")))
            self._target.pipe(self._source, query, sql.SQL("memctl_coming"))
            target.execute("INSERT INTO memctl.embeddings SELECT * FROM memctl_coming ON CONFLICT DO NOTHING")

    def _forget_there(self) -> None:
        """Bring the receipts and tombstones, and forget in the copy what was forgotten since it was copied."""
        source, target, number = self._source.connection, self._target.connection, self._number
        known = "SELECT receipt FROM memctl.receipts WHERE space_id = %s AND finished_at IS NOT NULL"
        here = {row[0] for row in target.execute(known, [number])}
        for receipt in [row[0] for row in source.execute(known, [number]) if row[0] not in here]:
            with target.transaction():
                for each in ("tombstones", "receipts"):  # of who was killed at it
                    gone = sql.SQL("DELETE FROM memctl.{} WHERE receipt = %s").format(sql.Identifier(each))
                    target.execute(gone, [receipt])
                for each in ("receipts", "tombstones"):
                    self._target.bring_rows(self._source, each, sql.SQL("receipt = {}").format(receipt))
                # Until it is finished, events may be emptied under it.
                target.execute("UPDATE memctl.receipts SET finished_at = NULL WHERE receipt = %s", [receipt])
                target.execute("UPDATE memctl.spaces SET has_tombstones = true WHERE space_id = %s", [number])
            said = "SELECT erased, finished_at FROM memctl.receipts WHERE receipt = %s"
            erased, finished = single_row(source, said, [receipt])
            if only := self._target.standing(erased).items() - self._source.standing(erased).items():
                with nothing_rebuilt(target):
                    self._target.await_folds()
                    erase_round(target, number, receipt, {of for _, of in only}, only={id for id, _ in only})
            target.execute("UPDATE memctl.receipts SET finished_at = %s WHERE receipt = %s", [finished, receipt])

    def _while_nobody_writes(self, act: Callable[[], T]) -> T:
        """What `act` returns; it is tried again where it is too early. Raises: NeverQuiet."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                with self._holding.transaction():
                    hold_off_space(self._holding, self._number)
                    return act()
            except errors.LockNotAvailable:
                why = "a program writes to it, or forgets something of it, and does not end"
            except NotYet as problem:
                why = str(problem)
            if time.monotonic() > deadline:
                raise NeverQuiet(seconds=PATIENCE_S, why=why)
            time.sleep(0.5)
            self._forget_there()
            self._catch_up()
            self._target.await_folds()

    def _at_rest(self, seen: contextlib.ExitStack) -> Position:
        """Look at the source as it is while all of the space is folded; returns up to where that is. Raises: NotYet."""
        self._check_forgotten()
        upto = self._source.folds_now()
        self._look.execute("SET idle_in_transaction_session_timeout = 0")
        seen.enter_context(snapshot(self._look))
        generations.live(self._look)
        return upto

    def _check_forgotten(self) -> None:
        """Raises: NotYet, where something is being forgotten, or is not yet in the copy."""
        begun = "SELECT receipt, finished_at IS NOT NULL FROM memctl.receipts WHERE space_id = %s"
        sides = (self._source.connection, self._target.connection)
        there, here = ({*each.execute(begun, [self._number]).fetchall()} for each in sides)
        if there != here or not all(finished for _, finished in there):
            raise NotYet("something is being forgotten in it: `memctl forget --resume` shows what")

    def _compare(self) -> None:
        """Raises: CopyDiffers."""
        sides = ((self._look, generations.live(self._look)), (self._target.connection, self._target.live))
        of_space = f" WHERE space_id = {self._number:d}"
        differing = []
        for name, queries in {
            "events": (_LOG, _LOG),
            **{p.name: tuple(rows_query(p, live.of(p.stage)) for _, live in sides) for p in projections()},
        }.items():
            there, here = (digest_of(side[0], query + of_space) for side, query in zip(sides, queries, strict=True))
            differing += [name] if there != here else []
        if differing:
            raise CopyDiffers(what=", ".join(differing))

    def _switch(self) -> None:
        """Copy the rest, while nobody writes, and let the space live there."""
        source, target, number = self._source, self._target, self._number
        self._check_forgotten()
        self._catch_up(last_position(source.connection))
        with target.connection.transaction():
            for each in _STEERING:
                gone = sql.SQL("DELETE FROM memctl.{} WHERE space_id = %s").format(sql.Identifier(each))
                target.connection.execute(gone, [number])
                target.bring_rows(source, each, sql.SQL("space_id = {}").format(number))
        target.folds_now()
        if source.events != target.events:
            raise CopyDiffers(what="the number of events")
        (move,) = single_row(target.connection, "SELECT move FROM memctl.spaces WHERE space_id = %s", [number])
        self._holding.execute(
            "UPDATE memctl.spaces SET database = %s, move = %s, copied = -1 WHERE space_id = %s",
            [target.database, move, number],
        )
