"""Glances: who asked for memory as it was, and where it is built for as long as it is looked at."""

from alembic import op

revision = "0009"
down_revision = "0008"

TABLE = """
CREATE TABLE memctl.glances (
    glance   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    position bigint NOT NULL,
    stage1   integer NOT NULL,
    stage2   integer NOT NULL,
    status   text NOT NULL DEFAULT 'asked' CHECK (status IN ('asked', 'building', 'ready', 'failed', 'dropped')),
    scratch1 integer,
    scratch2 integer,
    message  text NOT NULL DEFAULT '',
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    used_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX glances_open ON memctl.glances (position) WHERE status IN ('asked', 'building', 'ready');
"""


def upgrade() -> None:
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    driver.execute(TABLE)
