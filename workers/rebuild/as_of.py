"""Read models as they were: built up to a past position into scratch tables, which are dropped after use."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, NamedTuple

import psycopg

from memctl.domain.events.event import Position
from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection, connect
from memctl.infra.log import erase
from memctl.infra.log.mark import move_mark, position_at
from memctl.infra.readmodels import generations, rebuilds
from memctl.infra.readmodels.generations import Live
from memctl.infra.readmodels.rebuilds import Rebuild
from memctl.infra.readmodels.rows import Digest, all_rows, digest
from memctl.projections.kernel import Projection
from memctl.workers.rebuild.build import Leader, RebuildStopped, known_read_models


class NotReached(MemctlError):
    """The log has not reached position {position} yet: it stands at {mark}."""

    exit_code = 2


class ForgottenMeanwhile(MemctlError):
    """Something is being forgotten, or was forgotten since this look at the past began: it might show it still."""

    hint = "look again once it is done; one that was stopped half way, `memctl forget --resume` goes on with"


@contextmanager
def as_of(
    database_url: str,
    position: Position,
    read_models: Sequence[str] | None = None,
    *,
    processes: int | None = None,
    progress: Callable[[str, int, int], None] = lambda what, done, of: None,
) -> Iterator[tuple[Connection, Live]]:
    """Read models (None: all) as they were when the log stood at a position, for as long as the context lasts.

    Yields a connection and the generations whose tables hold them; live read models and vectors are not touched.
    They are folded by the rules of today, without what has been erased since.
    Raises: NotReached, UnknownReadModel, ForgottenMeanwhile, RebuildStopped.
    """
    names = None if read_models is None else known_read_models(read_models)
    with connect(database_url, name="memctl as of") as connection:
        _sweep(connection)
        if position > (reached := move_mark(connection)):
            raise NotReached(position=position, mark=reached)
        began = erase.now(connection)
        with connection.transaction():
            stage1 = generations.create(connection, 1, status="scratch")
            stage2 = generations.create(connection, 2, facts_of=stage1, status="scratch")
            rebuild = rebuilds.begin(connection, "as_of", 1, position, stage1, stage2, names)
            rebuilds.lock(connection, rebuild.id)
        try:
            if erase.erasing_since(connection, began):  # whoever forgets would find it in what is built here
                raise ForgottenMeanwhile
            try:
                for step in Leader(database_url, connection, rebuild, processes).build():
                    rebuilds.report(connection, rebuild.id, step.what, step.done, step.of)
                    progress(step.what, step.done, step.of)
            finally:  # whoever forgets drops what is being built, too
                if erase.erasing_since(connection, began) or rebuilds.read(connection, rebuild.id) is None:
                    raise ForgottenMeanwhile
            try:
                yield connection, Live(stage1, stage2)
            except psycopg.errors.UndefinedTable as gone:  # and what is being looked at
                if rebuilds.read(connection, rebuild.id) is None:
                    raise ForgottenMeanwhile from gone
                raise
        except RebuildStopped as stopped:
            rebuilds.end(connection, rebuild.id, "failed", str(stopped))
            raise
        finally:
            with suppress(psycopg.OperationalError):  # then the next one drops it
                _drop(connection, rebuild)


class PastRows(NamedTuple):
    """Read models as they were at a position."""

    connection: Connection
    live: Live
    position: Position

    def rows(self, p: Projection[Any]) -> Iterator[tuple[str, bytes]]:
        """Key and JSON of every row."""
        return all_rows(self.connection, p, self.live.of(p.stage))

    def digest(self, p: Projection[Any]) -> Digest:
        return digest(self.connection, p, self.live.of(p.stage))


@contextmanager
def past(
    database_url: str,
    at: Position | datetime,
    read_models: Sequence[str] | None,
    *,
    processes: int | None,
    progress: Callable[[str, int, int], None],
) -> Iterator[PastRows]:
    """Read models as they were at a position or a time. Raises: as `as_of`."""
    if isinstance(at, datetime):
        with connect(database_url, name="memctl as of") as connection:
            at = position_at(connection, at)
    with as_of(database_url, at, read_models, processes=processes, progress=progress) as (connection, live):
        yield PastRows(connection, live, at)


def _sweep(connection: Connection) -> None:
    """Drop what killed ones left behind."""
    for rebuild in rebuilds.running(connection, "as_of"):
        if rebuilds.lock(connection, rebuild.id):
            _drop(connection, rebuild)


def _drop(connection: Connection, rebuild: Rebuild) -> None:
    with connection.transaction():
        generations.drop(connection, rebuild.stage2)
        generations.drop(connection, rebuild.stage1)
        if rebuilds.read(connection, rebuild.id) is not None:
            rebuilds.end(connection, rebuild.id, "dropped")
    rebuilds.unlock(connection, rebuild.id)
