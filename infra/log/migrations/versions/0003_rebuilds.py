"""Rebuilds: what is being built, how far it is, and the tasks it is made of."""

from alembic import op

revision = "0003"
down_revision = "0002"

REBUILDS = """
ALTER TABLE memctl.generations DROP CONSTRAINT generations_status_check;
ALTER TABLE memctl.generations ADD CONSTRAINT generations_status_check
    CHECK (status IN ('building', 'live', 'previous', 'scratch', 'dropped'));

CREATE TABLE memctl.rebuilds (
    rebuild     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    purpose     text NOT NULL CHECK (purpose IN ('replace', 'compare', 'as_of')),
    first_stage smallint NOT NULL CHECK (first_stage IN (1, 2)),
    read_models text[],
    upto        bigint NOT NULL,
    stage1      integer NOT NULL REFERENCES memctl.generations,
    stage2      integer NOT NULL REFERENCES memctl.generations,
    status      text NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'done', 'failed', 'dropped')),
    phase       text NOT NULL DEFAULT 'events',
    done        bigint NOT NULL DEFAULT 0,
    total       bigint NOT NULL DEFAULT 0,
    message     text NOT NULL DEFAULT '',
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    phase_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at    timestamptz
);

-- Unlogged, as the tables that the tasks fill: what a crash empties is not believed to be done.
CREATE UNLOGGED TABLE memctl.rebuild_tasks (
    rebuild integer NOT NULL,
    step    smallint NOT NULL,
    number  integer NOT NULL,
    task    jsonb NOT NULL,
    weight  bigint NOT NULL,
    done    boolean NOT NULL DEFAULT false,
    fault   text,
    PRIMARY KEY (rebuild, step, number)
);
"""


def upgrade() -> None:
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    driver.execute(REBUILDS)
