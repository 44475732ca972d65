"""Dead letters: what a fold could not take, shards that stand still, and where to find what was left out."""

from alembic import op

revision = "0002"
down_revision = "0001"

# Neither table holds a word of what was kept: ids, names of rows and streams, and where in the code it happened.
DEAD_LETTERS = """
CREATE TABLE memctl.dead_letters (
    letter       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    generation   integer NOT NULL REFERENCES memctl.generations,
    target       uuid NOT NULL,
    projection   text NOT NULL,
    space_id     integer NOT NULL REFERENCES memctl.spaces,
    key          text,
    source       uuid NOT NULL,
    upstream     text,
    upstream_key text,
    position     bigint NOT NULL,
    error        text NOT NULL,
    place        text NOT NULL,
    parked_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempts     integer NOT NULL DEFAULT 1,
    waiting      bigint NOT NULL DEFAULT 0,
    UNIQUE (generation, target)
);
CREATE TABLE memctl.halts (
    generation integer NOT NULL REFERENCES memctl.generations,
    shard      smallint NOT NULL,
    error      text NOT NULL,
    message    text NOT NULL,
    since      timestamptz NOT NULL DEFAULT clock_timestamp(),
    last       timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempts   integer NOT NULL DEFAULT 1,
    PRIMARY KEY (generation, shard)
);
CREATE INDEX events_skipped ON memctl.events (position) WHERE type = 'event.skipped';
"""


def upgrade() -> None:
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    driver.execute(DEAD_LETTERS)
