"""An index of what stage 2 folds as it was recorded: all that is not said by clients as a session goes on.

Without it, who folds that reads every event. It is built beside the writers, a partition at a time.
"""

from alembic import op
from psycopg import Connection, sql

revision = "0021"
down_revision = "0020"

OBSERVED = """('context.compacted', 'notice.received', 'prompt.submitted', 'response.received', 'session.ended',
    'session.started', 'tool.called', 'tool.failed', 'tool.returned')"""

_PARTS = """
SELECT relname, EXISTS (SELECT FROM pg_index JOIN pg_class i ON i.oid = indexrelid
    WHERE indrelid = c.oid AND i.relname = c.relname || '_recorded' AND indisvalid)
FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = 'memctl.events'::regclass ORDER BY 1"""


def prepare(connection: Connection[tuple[str, bool]], step: int) -> None:
    """Index each partition; may be killed and begun again. One that was left half made goes."""
    for part, done in connection.execute(_PARTS).fetchall():
        if not done:
            name = sql.Identifier("memctl", f"{part}_recorded")
            connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(name))
            connection.execute(
                sql.SQL("CREATE INDEX CONCURRENTLY {} ON {} (position) WHERE type NOT IN {}").format(
                    sql.Identifier(f"{part}_recorded"), sql.Identifier("memctl", part), sql.SQL(OBSERVED)
                )
            )


def upgrade() -> None:
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    driver.execute(f"CREATE INDEX events_recorded ON memctl.events (position) WHERE type NOT IN {OBSERVED}")
