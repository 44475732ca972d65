"""What bears no time is before a time where its session is, and not because it bears none."""

from alembic import op

revision = "0012"
down_revision = "0011"

# Titles, and all that some clients write, bear no time, which is kept as 0. What is said now of a session that is not
# known to lie before that time is not what was forgotten, nor what is said of anything else: other streams hold what
# came from everywhere. (What was emptied still says when it happened.)
BEFORE = """(CASE WHEN g.at > timestamptz 'epoch' THEN g.at < before
               ELSE before IS NOT NULL AND starts_with(g.stream, 'session/')
                    AND (SELECT true FROM memctl.events e WHERE e.space_id = in_space AND e.stream = g.stream
                         AND e.occurred_at > timestamptz 'epoch' AND e.occurred_at < before LIMIT 1)
                    AND (SELECT true FROM memctl.events e WHERE e.space_id = in_space AND e.stream = g.stream
                         AND e.occurred_at >= before LIMIT 1) IS NULL
               END)"""


def upgrade() -> None:
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    (source,) = driver.execute("SELECT pg_get_functiondef('memctl.forgotten'::regproc)").fetchone()
    line = "WHERE g.at < before\n"
    assert source.count(line) == 1
    driver.execute(source.replace(line, f"WHERE {BEFORE}\n"))
