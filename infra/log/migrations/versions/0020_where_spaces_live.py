"""A directory of spaces: each lives here, or on another database, which the settings know by that name."""

from alembic import op

revision = "0020"
down_revision = "0018"

DIRECTORY = "ALTER TABLE memctl.spaces ADD COLUMN database text NOT NULL DEFAULT ''"


def upgrade() -> None:
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    driver.execute(DIRECTORY)
