"""Deliveries stand in one table again, where 0023 once put older ones into another.

Appends wait meanwhile: a million ids take about a second.
"""

import time

from alembic import op
from psycopg import errors

revision = "0024"
down_revision = "0023"

# "memd" in ASCII: shared by who enters an event's id by trigger.
ENTERING = 0x6D656D64

# The first number of the locks that appenders share; the second is their space.
APPENDERS = 0x6D656D63

PATIENCE = "2s"
"""How long a lock is waited for before those who wait behind are let through."""

JOINED = f"""
SET LOCAL lock_timeout = '{PATIENCE}';
LOCK TABLE memctl.spaces IN EXCLUSIVE MODE;
DO $do$ BEGIN
    PERFORM pg_advisory_xact_lock({APPENDERS}, space) FROM (
        SELECT 0 UNION SELECT space_id FROM memctl.spaces ORDER BY 1) AS every(space);
    PERFORM pg_advisory_xact_lock({ENTERING}, 0);
END $do$;
LOCK TABLE memctl.deliveries, memctl.compacted_deliveries IN ACCESS EXCLUSIVE MODE;
CREATE TABLE memctl.joined AS SELECT position, space_id, event_id FROM memctl.deliveries;
DROP FUNCTION memctl.compact_deliveries(integer, uuid, integer);
DROP TABLE memctl.compacted_deliveries, memctl.deliveries;
ALTER TABLE memctl.joined RENAME TO deliveries;
ALTER TABLE memctl.deliveries ALTER position SET NOT NULL, ADD PRIMARY KEY (space_id, event_id);
COMMENT ON TABLE memctl.deliveries IS 'what is in the log, by id: no two events of a space have one id';
ANALYZE memctl.deliveries;

CREATE OR REPLACE FUNCTION memctl.deliver() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        PERFORM pg_advisory_xact_lock_shared({ENTERING}, 0);
        DELETE FROM memctl.deliveries WHERE space_id = OLD.space_id AND event_id = OLD.event_id;
    END IF;
    INSERT INTO memctl.deliveries (position, space_id, event_id) VALUES (NEW.position, NEW.space_id, NEW.event_id);
    RETURN NULL;
END $$;
"""

LOOKS = (
    (
        "append_events",
        """WITH known AS MATERIALIZED (
        SELECT event_id FROM memctl.compacted_deliveries WHERE space_id = in_space AND event_id = ANY(in_ids)),
    put AS (""",
        "WITH put AS (",
    ),
    ("append_events", "\n        WHERE d.id NOT IN (SELECT event_id FROM known)", ""),
    (
        "append_event",
        """SELECT nextval('memctl.events_position_seq'), in_space, in_id
        WHERE NOT EXISTS (SELECT FROM memctl.compacted_deliveries c
                          WHERE c.space_id = in_space AND c.event_id = in_id)""",
        "VALUES (nextval('memctl.events_position_seq'), in_space, in_id)",
    ),
)
"""Functions, how they look into the other table, and what stands there without it."""


def upgrade() -> None:
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    if driver.execute("SELECT to_regclass('memctl.compacted_deliveries')").fetchone() == (None,):
        return
    joined = False
    while not joined:
        try:
            with driver.transaction():
                driver.execute(JOINED)
            joined = True
        except (errors.LockNotAvailable, errors.DeadlockDetected):  # of a long look at the log, for one
            time.sleep(0.2)
    for function, looks, instead in LOOKS:
        (body,) = driver.execute(
            "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'memctl'::regnamespace AND proname = %s",
            [function],
        ).fetchone()
        assert body.count(looks) == 1, function
        driver.execute(body.replace(looks, instead))
