"""How much is known, how far the folds have read, and what it takes on disk."""

from __future__ import annotations

from typing import Any

from psycopg import sql

from memctl.api.pages import projection_named, table_of
from memctl.api.places import Places
from memctl.api.reader import Reader
from memctl.domain.event import event_types
from memctl.infra import generations
from memctl.infra.log.mark import mark
from memctl.infra.outbox import backlog
from memctl.projections.kernel import Projection, projections
from memctl.projections.stats import DayStats

_SUMMED = tuple(name for name in DayStats.__struct_fields__ if name not in ("location", "day"))


def stats(reader: Reader, places: Places) -> dict[str, Any]:
    """Counts by read model and by type of event; totals of what happened and what they say of memory's help,
    for the project asked about; how far each shard has read; what waits for the vector store; sizes."""
    connection, space = reader.connection, reader.space_id
    totals = _totals(reader, places)
    models = {}
    for p in projections():
        if not _built(reader, p):  # new with this version; the workers build it
            continue
        row = connection.execute(
            sql.SQL("SELECT count(*) FROM {} WHERE space_id = %s").format(table_of(reader, p)), [space]
        ).fetchone()
        assert row is not None
        models[p.name] = row[0]
    by_type = connection.execute(
        "SELECT type, count(*) FROM memctl.events WHERE space_id = %s GROUP BY type ORDER BY type", [space]
    ).fetchall()
    to_write, to_embed = backlog(connection, reader.live.stage2)
    return {
        "scope": {"project": places.project, "chosen": places.chosen, "locations": len(places.locations or ())},
        "totals": totals,
        "measures": _measures(reader, totals),
        "read_models": models,
        "events": {"total": sum(n for _, n in by_type), "by_type": dict(by_type)},
        "log": progress(reader),
        "outbox": {"to_write": to_write, "waiting_for_dense": to_embed},
        "bytes": sizes(reader),
    }


def _built(reader: Reader, p: Projection) -> bool:
    row = reader.connection.execute("SELECT to_regclass(%s)", [table_of(reader, p).as_string()]).fetchone()
    return row is not None and row[0] is not None


def catalogue() -> list[dict[str, Any]]:
    """Every type of event that may stand in the log: its name, version, meaning, and fields."""
    found = []
    for entry in event_types().values():
        found.append(
            {
                "name": entry.name,
                "version": entry.version,
                "doc": " ".join(entry.doc.split("\n\n")[0].split()),
                "fields": list(entry.payload.__struct_fields__),
            }
        )
    return found


def version_of(reader: Reader) -> str:
    """What rows an answer was made from: the live generations, and how far their shards have read, all together."""
    offsets = generations.offsets(reader.connection, reader.live.stage1, reader.live.stage2)
    return f"{reader.live.stage1}.{reader.live.stage2}-{sum(o.position for o in offsets)}"


def _totals(reader: Reader, places: Places) -> dict[str, int]:
    sums = sql.SQL(", ").join(
        sql.SQL("coalesce(sum((row->>{})::bigint), 0)::bigint").format(sql.Literal(name)) for name in _SUMMED
    )
    inside, values = sql.SQL(""), [reader.space_id]
    if places.locations is not None:
        inside = sql.SQL("AND row->>'location' = ANY(%s::text[])")
        values.append(list(places.locations))  # type: ignore[arg-type]
    row = reader.connection.execute(
        sql.SQL("SELECT {}, count(DISTINCT row->>'day') FROM {} WHERE space_id = %s {}").format(
            sums, table_of(reader, projection_named("stats")), inside
        ),
        values,
    ).fetchone()
    assert row is not None
    return dict(zip((*_SUMMED, "days"), row, strict=True))


def _measures(reader: Reader, totals: dict[str, int]) -> dict[str, float | int | None]:
    """How well memory does, as shares of 1; None where there is nothing to tell it by yet.

    Success of tasks whose outcome is known, with memory told, without, and with it held back; `pattern_accuracy`: fixes
    that lasted. Over all projects: `recalls` counts memories told in work that is over, `recalls_useful` the share of
    those whose work went well and of ratings that are good, `rated_helpful` of the ratings alone (0.5 or more).
    """
    row = reader.connection.execute(
        sql.SQL(
            "SELECT coalesce(sum((row->>'recalls')::bigint), 0)::bigint,"
            " sum((SELECT sum((f->>2)::float8) FROM jsonb_array_elements(row->'followed') AS f)),"
            " sum(jsonb_array_length(row->'followed')),"
            " sum((SELECT count(*) FROM jsonb_array_elements(row->'ratings') AS r WHERE (r->>2)::float8 >= 0.5)),"
            " sum(jsonb_array_length(row->'ratings')) FROM {} WHERE space_id = %s"
        ).format(table_of(reader, projection_named("regard"))),
        [reader.space_id],
    ).fetchone()
    assert row is not None
    recalls, well, followed, helpful, rated = (float(each or 0) for each in row)
    lasted = totals["errors_resolved"] - min(totals["resolutions_refuted"], totals["errors_resolved"])
    return {
        "success_with_memory": _share(totals["tasks_told_succeeded"], totals["tasks_told"]),
        "success_without_memory": _share(totals["tasks_untold_succeeded"], totals["tasks_untold"]),
        "success_memory_withheld": _share(totals["tasks_withheld_succeeded"], totals["tasks_withheld"]),
        "pattern_accuracy": _share(lasted, totals["errors_resolved"]),
        "recalls": int(recalls),
        "recalls_useful": _share(well + helpful, followed + rated),
        "rated_helpful": _share(helpful, rated),
    }


def _share(part: float, whole: float) -> float | None:
    return round(part / whole, 4) if whole else None


def progress(reader: Reader) -> dict[str, Any]:
    reached = mark(reader.connection)
    row = reader.connection.execute("SELECT coalesce(max(position), 0) FROM memctl.events").fetchone()
    assert row is not None
    offsets = generations.offsets(reader.connection, reader.live.stage1, reader.live.stage2)
    lowest = min((o.position for o in offsets if o.stage == 1), default=reached)
    return {
        "last_position": row[0],
        "mark": reached,
        "generation": {"stage1": reader.live.stage1, "stage2": reader.live.stage2},
        "shards": [
            {
                "stage": o.stage,
                "shard": o.shard,
                "position": o.position,
                "lag": max((reached if o.stage == 1 else lowest) - o.position, 0),
            }
            for o in offsets
        ],
    }


def sizes(reader: Reader) -> dict[str, int]:
    row = reader.connection.execute(
        "SELECT pg_database_size(current_database()), pg_total_relation_size('memctl.events'),"
        " pg_total_relation_size('memctl.embeddings'),"
        " (SELECT coalesce(sum(pg_total_relation_size(format('%I.%I', schemaname, tablename)::regclass)), 0)::bigint"
        "  FROM pg_tables WHERE schemaname = 'memctl' AND tablename ~ '_g[0-9]+$')"
    ).fetchone()
    assert row is not None
    return dict(zip(("database", "log", "embeddings", "read_models"), row, strict=True))
