"""What would follow from erasing much, counted where trying it out would take minutes and hold up every worker.

Counting folds nothing, so it reports bounds. A row goes for certain where all that it was folded from goes: of
stage 1 its whole stream, of stage 2 every fact, event and row that is routed to it. Any other row that something of it
reaches may go, change, or stay as it is.
"""

from collections import Counter
from collections.abc import Collection
from uuid import UUID

from psycopg import sql

from memctl.infra.database import Connection
from memctl.infra.log.erase import RECORDS
from memctl.infra.readmodels import facts, generations
from memctl.infra.readmodels import rows as readmodels
from memctl.projections.kernel import projections
from memctl.projections.things import NAMED
from memctl.workers.erasure.erase import Consequence, Round


def foreseen(connection: Connection, space_id: int, ids: Collection[UUID]) -> Round:
    """What `erase_round` of these deliveries would erase, exactly, and bounds of what would follow: of each read model
    at least the rows that are `dropped`, and at most as many more as are `changed`. `Round.dropped` names those that go
    for certain; `retold` and `points` stay empty. Changes nothing. `connection` is in autocommit mode."""
    result = Round(ids=set(ids))
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        live = generations.live(connection)
        connection.execute("CREATE TEMP TABLE memctl_going (id uuid NOT NULL) ON COMMIT DROP")
        with connection.cursor() as cursor, cursor.copy("COPY memctl_going FROM STDIN") as copy:
            copy.write("".join(f"{id}\n" for id in ids))
        connection.execute("ANALYZE memctl_going")
        whole, partly = _streams(connection, space_id, result)
        result.dropped += _reached(connection, space_id, live, whole, partly)
        for p in projections():
            if p.stage == 1:
                table = sql.SQL(readmodels.table(p.name, live.stage1))
                rows = _of_stage_1(connection, space_id, table, whole, partly)
            else:
                table = sql.SQL(readmodels.table(p.name, live.stage2))
                rows = _of_stage_2(connection, space_id, table, p.name)
            gone = [key for key, may_stay in rows if not may_stay]
            if rows:
                result.consequences.append(Consequence(p.name, len(gone), len(rows) - len(gone)))
            if p.name in NAMED:
                result.dropped += gone
    return result


def _streams(connection: Connection, space_id: int, result: Round) -> tuple[list[str], list[str]]:
    """Count what goes, and return the sessions' streams of which nothing is left, and the others."""
    going: Counter[str] = Counter()
    for stream, kind, count, first_at, last_at in connection.execute(
        "SELECT e.stream, e.type, count(*), min(e.occurred_at), max(e.occurred_at) FROM memctl.events e"
        " WHERE e.position = ANY(ARRAY("
        "  SELECT * FROM memctl.positions_of_versions(%s, ARRAY(SELECT id FROM memctl_going))))"
        " AND e.payload IS NOT NULL AND e.type <> ALL(%s) GROUP BY e.stream, e.type",
        [space_id, list(RECORDS)],
    ):
        result.count(stream, kind, count, first_at, last_at)
        going[stream] += count
    sessions = [stream for stream in going if stream.startswith("session/")]
    held = connection.execute(
        "SELECT stream, count(*) FROM memctl.events"
        " WHERE space_id = %s AND stream = ANY(%s) AND payload IS NOT NULL GROUP BY stream",
        [space_id, sessions],
    ).fetchall()
    whole = [stream for stream, count in held if count == going[stream]]
    return whole, [stream for stream, count in held if count != going[stream]]


def _reached(
    connection: Connection, space_id: int, live: generations.Live, whole: list[str], partly: list[str]
) -> list[str]:
    """Note in a temporary table which rows of stage 2 are reached by what goes, and which of them rest on more. The ids
    of the facts that go for certain."""
    names = {
        "facts": sql.SQL(f"memctl.facts_g{live.stage1}"),
        "routes": sql.SQL(f"memctl.routes_g{live.stage2}"),
        "space": sql.Literal(space_id),
    }
    connection.execute(
        sql.SQL(
            "CREATE TEMP TABLE memctl_sources ON COMMIT DROP AS SELECT id, true AS goes, false AS is_fact"
            " FROM memctl_going UNION ALL SELECT id, stream = ANY({whole}), true FROM {facts}"
            " WHERE space_id = {space} AND stream = ANY({streams}) AND {held}"
        ).format(**names, held=facts.held(live.stage2), whole=sql.Literal(whole), streams=sql.Literal(whole + partly))
    )
    connection.execute("ANALYZE memctl_sources")
    connection.execute(
        sql.SQL(
            "CREATE TEMP TABLE memctl_reached ON COMMIT DROP AS WITH RECURSIVE t(target) AS ("
            " SELECT target FROM {routes} WHERE space_id = {space} AND source IN (SELECT id FROM memctl_sources)"
            " UNION SELECT r.target FROM {routes} r JOIN t ON r.upstream || ':' || r.upstream_key = t.target"
            " WHERE r.space_id = {space}) SELECT target, false AS rests_on_more FROM t"
        ).format(**names)
    )
    connection.execute("ANALYZE memctl_reached")
    connection.execute(
        sql.SQL(
            "WITH RECURSIVE held AS MATERIALIZED ("
            " SELECT r.target, r.source, r.upstream || ':' || r.upstream_key AS above FROM {routes} r"
            " JOIN memctl_reached USING (target) WHERE r.space_id = {space}), more(target) AS ("
            " SELECT target FROM held WHERE CASE WHEN above IS NULL"
            " THEN source NOT IN (SELECT id FROM memctl_sources WHERE goes)"
            " ELSE above NOT IN (SELECT target FROM memctl_reached) END"
            " UNION SELECT held.target FROM held JOIN more ON held.above = more.target)"
            " UPDATE memctl_reached n SET rests_on_more = true FROM more WHERE n.target = more.target"
        ).format(**names)
    )
    return [row[0] for row in connection.execute("SELECT id::text FROM memctl_sources WHERE is_fact AND goes")]


def _of_stage_1(
    connection: Connection, space_id: int, table: sql.SQL, whole: list[str], partly: list[str]
) -> list[tuple[str, bool]]:
    """Keys of the rows that are reached, and whether each may stay."""
    statement = sql.SQL("SELECT key, NOT stream = ANY(%s) FROM {} WHERE space_id = %s AND stream = ANY(%s)")
    return connection.execute(statement.format(table), [whole, space_id, whole + partly]).fetchall()


def _of_stage_2(connection: Connection, space_id: int, table: sql.SQL, name: str) -> list[tuple[str, bool]]:
    """As `_of_stage_1`."""
    statement = sql.SQL(
        "SELECT t.key, n.rests_on_more FROM memctl_reached n JOIN {} t"
        " ON t.space_id = %s AND t.key = substr(n.target, %s) WHERE starts_with(n.target, %s)"
    )
    return connection.execute(statement.format(table), [space_id, len(name) + 2, f"{name}:"]).fetchall()
