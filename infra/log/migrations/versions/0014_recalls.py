"""What was recalled for agents is found without reading the log: whether a memory was ever recalled is asked before it
is pruned, and which sessions to keep."""

from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    driver.execute(
        "CREATE INDEX events_recalled ON memctl.events (space_id, occurred_at) WHERE type = 'memory.recalled'"
    )
