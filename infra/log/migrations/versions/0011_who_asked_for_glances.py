"""Who asked for a glance: nobody may have all wait for theirs."""

from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    driver.execute("ALTER TABLE memctl.glances ADD COLUMN asked_by text NOT NULL DEFAULT 'owner'")
