"""Older deliveries in a table beside: who appends writes to a small index of ids, and only reads the large one.

It inherits from `deliveries`, so whoever looks for an id there finds those of both. No id is in both: an append looks
at the large one while it shares a lock, and whoever moves ids has that lock for himself.
"""

from alembic import op

revision = "0023"
down_revision = "0022"

# "memd" in ASCII: shared by who enters an event's id by trigger.
ENTERING = 0x6D656D64

# "memc" in ASCII: the first number of the locks that appenders share; the second is their space.
APPENDERS = 0x6D656D63

COMPACTED = f"""
CREATE TABLE memctl.compacted_deliveries (PRIMARY KEY (space_id, event_id)) INHERITS (memctl.deliveries);
COMMENT ON TABLE memctl.compacted_deliveries IS 'deliveries that were moved out of the way of appends';

CREATE OR REPLACE FUNCTION memctl.deliver() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared({ENTERING}, 0);
    IF TG_OP = 'UPDATE' THEN
        DELETE FROM memctl.deliveries WHERE space_id = OLD.space_id AND event_id = OLD.event_id;
    END IF;
    IF EXISTS (SELECT FROM memctl.compacted_deliveries
               WHERE space_id = NEW.space_id AND event_id = NEW.event_id) THEN
        RAISE EXCEPTION 'the log has an event % already', NEW.event_id USING ERRCODE = 'unique_violation';
    END IF;
    INSERT INTO memctl.deliveries (position, space_id, event_id) VALUES (NEW.position, NEW.space_id, NEW.event_id);
    RETURN NULL;
END $$;

-- Move a space's next ids in their order, at most so many: how many were moved, and the last. Who appends there is
-- waited for, who changes an event's id is not: then it is NULL.
CREATE FUNCTION memctl.compact_deliveries(
    in_space integer, after uuid, at_most integer, OUT moved bigint, OUT reached uuid
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock({APPENDERS}, in_space);
    IF NOT pg_try_advisory_xact_lock({ENTERING}, 0) THEN
        RETURN;
    END IF;
    WITH next AS (
        SELECT event_id FROM ONLY memctl.deliveries WHERE space_id = in_space AND event_id > after
        ORDER BY event_id LIMIT at_most),
    gone AS (
        DELETE FROM ONLY memctl.deliveries d USING next WHERE d.space_id = in_space AND d.event_id = next.event_id
        RETURNING d.position, d.space_id, d.event_id),
    kept AS (
        INSERT INTO memctl.compacted_deliveries (position, space_id, event_id)
        SELECT position, space_id, event_id FROM gone ORDER BY event_id RETURNING event_id)
    SELECT count(*), (array_agg(event_id ORDER BY event_id DESC))[1] INTO moved, reached FROM kept;
END $$;
"""

_ENTERED = (
    (
        "append_events",
        """WITH put AS (
        INSERT INTO memctl.deliveries (position, space_id, event_id)
        SELECT d.position, in_space, d.id FROM unnest(handed_out, in_ids) AS d(position, id)""",
        """WITH known AS MATERIALIZED (
        SELECT event_id FROM memctl.compacted_deliveries WHERE space_id = in_space AND event_id = ANY(in_ids)),
    put AS (
        INSERT INTO memctl.deliveries (position, space_id, event_id)
        SELECT d.position, in_space, d.id FROM unnest(handed_out, in_ids) AS d(position, id)
        WHERE d.id NOT IN (SELECT event_id FROM known)""",
    ),
    (
        "append_event",
        "VALUES (nextval('memctl.events_position_seq'), in_space, in_id)",
        """SELECT nextval('memctl.events_position_seq'), in_space, in_id
        WHERE NOT EXISTS (SELECT FROM memctl.compacted_deliveries c
                          WHERE c.space_id = in_space AND c.event_id = in_id)""",
    ),
)
"""Functions, where they enter ids, and what stands in its place."""


def upgrade() -> None:
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    driver.execute(COMPACTED)
    for function, enters, instead in _ENTERED:
        (body,) = driver.execute(
            "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'memctl'::regnamespace AND proname = %s",
            [function],
        ).fetchone()
        assert body.count(enters) == 1, function
        driver.execute(body.replace(enters, instead))
