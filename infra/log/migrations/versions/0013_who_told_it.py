"""What differs in who said it, in its stream, session or sources is another statement, not the same one."""

from alembic import op

revision = "0013"
down_revision = "0012"

SAME = """AND e.type = in_types[g.ord] AND e.location = in_locations[g.ord]"""

# All that a fold or a reader may see of an event, but for what causes and correlates it, which nobody reads.
WHO = """ AND e.actor = in_actors[g.ord] AND e.stream = in_streams[g.ord]
                       AND e.session_id = in_sessions[g.ord]
                       AND e.sources IS NOT DISTINCT FROM in_sources[g.ord]::uuid[]"""


def upgrade() -> None:
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    (source,) = driver.execute("SELECT pg_get_functiondef('memctl.append_events'::regproc)").fetchone()
    assert source.count(SAME) == 1
    driver.execute(source.replace(SAME, SAME + WHO))
