"""Where a collection and `vector_points` have drifted apart: compared point by point, while both are written to."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import groupby
from operator import itemgetter

import msgspec

from memctl.infra.database import Connection
from memctl.infra.log.spaces import space_names
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.readmodels.rows import RowKey
from memctl.infra.vectors import QdrantClient, outbox, store
from memctl.infra.vectors import models as vector_models
from memctl.infra.vectors.models import VectorModel
from memctl.infra.vectors.store import StoredPoint
from memctl.projections.vector_points import VectorPoint

STRIDE = 500
"""Points compared between two reports."""

_NO_SPACE = 0
"""Stands for the space of a point that names none of ours."""


class Drift(msgspec.Struct):
    """A stretch of points, compared. What is queued to be written is known to differ, and no drift."""

    wanted: int = 0
    stored: int = 0
    queued: int = 0
    waiting: int = 0
    """Points that wait for their dense vector."""
    missing: list[RowKey] = msgspec.field(default_factory=list)
    differing: list[RowKey] = msgspec.field(default_factory=list)
    """Their payload, the hash of the text they stand for among it, is not the wanted one."""
    without_dense: list[RowKey] = msgspec.field(default_factory=list)
    """They have no dense vector, and nothing waits to give them one."""
    extra: list[RowKey] = msgspec.field(default_factory=list)

    @property
    def keys(self) -> list[RowKey]:
        """Every point that drifted."""
        return [*self.missing, *self.differing, *self.without_dense, *self.extra]

    def add(self, other: Drift) -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def scan(
    connection: Connection, client: QdrantClient, generation: int, model: VectorModel | None = None
) -> Iterator[Drift]:
    """Compare a generation's collection of a model (of the one that serves) with its rows, stretch by stretch in order
    of id.

    `connection` is in autocommit mode and held by no transaction
    in between, so a scan may take its time. What looks like drift is looked at again before it is reported: the row and
    the queue before and after the point, and only what stood still and still differs counts.
    Raises: VectorStoreUnavailable (CollectionMissing among it).
    """
    names = space_names(connection)
    numbers = {name: number for number, name in names.items()}
    model = model or vector_models.models(connection).serving
    name, dense = (model.name, model.embeds) if model is not None else ("", False)
    collection = outbox.collection_of(connection, generation, name)
    report, suspects = Drift(), list[RowKey]()

    def settled() -> Drift:
        nonlocal report, suspects
        _confirm(connection, client, generation, name, names, suspects, report, dense=dense)
        done, report, suspects = report, Drift(), []
        return done

    wanted = _merged_wanted(connection, generation, sorted(names))
    for row, point in _side_by_side(wanted, store.scroll_points(client, collection)):
        if row is not None:
            key = row[0]
            report.wanted += 1
        if point is not None:
            report.stored += 1
        if row is None:
            assert point is not None
            suspects.append(outbox.key_of(numbers.get(point.payload.get("space", ""), _NO_SPACE), point.id))
        elif point is None or point.payload != outbox.payload_of(row[1], names[key[0]]) or dense > point.has_dense:
            suspects.append(key)
        if report.wanted >= STRIDE or report.stored >= STRIDE:
            yield settled()
    yield settled()


def queue(connection: Connection, generation: int, drift: Drift) -> int:
    """Have the outbox write every point that drifted, as it should be by then; returns how many.

    One that should not be there is deleted on the same path, which reads the row again before.
    """
    readmodels.queue_points(connection, generation, drift.keys)
    return len(drift.keys)


def _confirm(
    connection: Connection,
    client: QdrantClient,
    generation: int,
    model: str,
    names: dict[int, str],
    suspects: list[RowKey],
    report: Drift,
    *,
    dense: bool,
) -> None:
    if not suspects:
        return
    collection = outbox.collection_of(connection, generation, model)
    before = outbox.states(connection, generation, model, suspects)
    there = store.look_up(client, collection, [outbox.stored_id(key) for key in suspects])
    after = outbox.states(connection, generation, model, suspects)
    hashes = [state.row.dense_hash for state in after.values() if state.row is not None]
    refused = outbox.without_vector(connection, model, hashes) if dense else set()
    for key in suspects:
        state, point = after[key], there.get(outbox.stored_id(key))
        if state != before[key] or state.queued:
            report.queued += 1
        elif state.row is None:
            if point is not None:
                report.extra.append(key)
        elif point is None:
            report.missing.append(key)
        elif point.payload != outbox.payload_of(state.row, names[key[0]]):
            report.differing.append(key)
        elif dense and not point.has_dense and state.row.dense_hash not in refused:
            if state.waits_for_dense:
                report.waiting += 1
            else:
                report.without_dense.append(key)


Row = tuple[RowKey, VectorPoint]


def _stored_id(row: Row) -> str:
    return outbox.stored_id(row[0])


def _merged_wanted(connection: Connection, generation: int, spaces: list[int]) -> Iterator[Row]:
    yield from merge(*(outbox.wanted(connection, generation, space) for space in spaces), key=_stored_id)


def _side_by_side(
    wanted: Iterator[Row], stored: Iterator[StoredPoint]
) -> Iterator[tuple[Row | None, StoredPoint | None]]:
    """Two sequences in order of id, matched."""
    rows = ((_stored_id(row), row, None) for row in wanted)
    points = ((point.id, None, point) for point in stored)
    for _, same in groupby(merge(rows, points, key=itemgetter(0)), key=itemgetter(0)):
        pair = list(same)
        yield pair[0][1], pair[-1][2]
