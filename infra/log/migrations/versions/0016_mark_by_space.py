"""A mark for each space. Nothing of the log is rewritten: every space begins with the mark that all had."""

from alembic import op

revision = "0016"
down_revision = "0015"

OLD_LOCK = 0x6D656D63746C

# Before 0016 appenders shared OLD_LOCK. Here it is held to the end, so that none is under way. One that waits for it
# meanwhile goes on by the functions it began with, but meets the new trigger before it is given a position.
COLUMNS = f"""
SELECT pg_advisory_xact_lock({OLD_LOCK});
LOCK TABLE memctl.events IN SHARE ROW EXCLUSIVE MODE;
ALTER TABLE memctl.mark ADD COLUMN held jsonb NOT NULL DEFAULT '{{}}';
ALTER TABLE memctl.mark_history ADD COLUMN held jsonb NOT NULL DEFAULT '{{}}';
ALTER TABLE memctl.offsets ADD COLUMN held jsonb NOT NULL DEFAULT '{{}}';
COMMENT ON COLUMN memctl.mark.held IS 'by space, where its mark stands if that is below position';

CREATE FUNCTION memctl.of_space(at bigint, held jsonb, in_space integer) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT coalesce((held ->> in_space::text)::bigint, at) $$;
CREATE FUNCTION memctl.lowest(at bigint, held jsonb) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT least(at, (SELECT min(below::bigint) FROM jsonb_each_text(held) AS h(s, below))) $$;
"""

# The first number of the locks that appenders share ("memc" in ASCII); the second is their space, or 0 for any space.
LOCK = 0x6D656D63

APPENDERS = f"""
-- 'memctl.covered' says of the insert that follows that the lock of its space is held.
CREATE OR REPLACE FUNCTION memctl.begin_append(in_space integer) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    consult boolean;
    done    text;
BEGIN
    done := pg_advisory_xact_lock_shared({LOCK}, in_space);
    SELECT has_tombstones INTO consult FROM memctl.spaces WHERE space_id = in_space;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no space %', in_space USING ERRCODE = 'foreign_key_violation';
    END IF;
    done := set_config('memctl.covered', 'on', true);
    RETURN consult;
END $$;

-- Who inserts without begin_append holds up every space: of which one its events are is known only once they have
-- positions.
CREATE OR REPLACE FUNCTION memctl.hold_positions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    done text;
BEGIN
    IF current_setting('memctl.covered', true) = 'on' THEN
        done := set_config('memctl.covered', '', true);
    ELSE
        done := pg_advisory_xact_lock_shared({LOCK}, 0);
    END IF;
    RETURN NULL;
END $$;

-- Where all that was given is forgotten, no insert follows.
DO $do$
DECLARE
    definition text;
BEGIN
    FOR definition IN SELECT pg_get_functiondef(oid) FROM pg_proc
        WHERE pronamespace = 'memctl'::regnamespace AND proname IN ('append_event', 'append_events')
    LOOP
        definition := replace(definition, 'RETURN 0;', 'PERFORM set_config(''memctl.covered'', '''', true); RETURN 0;');
        EXECUTE replace(definition, 'IF gone IS NOT NULL THEN',
                        'IF gone IS NOT NULL THEN PERFORM set_config(''memctl.covered'', '''', true);');
    END LOOP;
END $do$;
"""

MARK = f"""
DROP FUNCTION memctl.frontier();
DROP FUNCTION memctl.set_mark(bigint);
DROP FUNCTION memctl.position_holders();

-- By space (0: any), the transactions that may hold positions of it which are not committed yet.
CREATE FUNCTION memctl.position_holders() RETURNS jsonb LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(jsonb_object_agg(space, holders), '{{}}') FROM (
        SELECT objid::bigint::text AS space, jsonb_agg(virtualtransaction) AS holders FROM pg_locks
        WHERE locktype = 'advisory' AND objsubid = 2 AND classid = {LOCK}
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        GROUP BY objid) h
$$;

-- Which spaces are held below the mark, and where, once all but those `waiting` are settled up to `target`.
CREATE FUNCTION memctl.held_below(at bigint, held jsonb, target bigint, waiting jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(jsonb_object_agg(space, reached), '{{}}') FROM (
        SELECT space, CASE WHEN waiting ? space THEN was ELSE greatest(was, target) END AS reached
        FROM (SELECT jsonb_object_keys(held) UNION SELECT jsonb_object_keys(waiting)) AS s(space),
             LATERAL (SELECT coalesce((held ->> space)::bigint, at)) AS w(was)) r
    WHERE reached < greatest(at, target)
$$;

-- Every space but those `waiting` is settled up to `target`. No space's mark ever goes back.
CREATE FUNCTION memctl.set_mark(target bigint, waiting jsonb, OUT reached bigint, OUT below jsonb)
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE memctl.mark m
        SET position = greatest(position, target), held = memctl.held_below(position, held, target, waiting)
        WHERE position < target OR (held <> '{{}}' AND held <> memctl.held_below(position, held, target, waiting));
    SELECT position, held INTO reached, below FROM memctl.mark;
    -- At most one entry a second; the sweeper's calls write the last one of a burst.
    IF NOT EXISTS (SELECT 1 FROM (SELECT * FROM memctl.mark_history ORDER BY reached_at DESC LIMIT 1) h
                   WHERE h.reached_at > clock_timestamp() - interval '1 second'
                      OR (h.position, h.held) = (reached, below)) THEN
        SELECT position, held INTO reached, below FROM memctl.mark FOR UPDATE;
        INSERT INTO memctl.mark_history (reached_at, position, held)
            SELECT clock_timestamp(), reached, below
            WHERE NOT EXISTS (SELECT 1 FROM (SELECT * FROM memctl.mark_history ORDER BY reached_at DESC LIMIT 1) h
                              WHERE h.position > reached OR (h.position, h.held) = (reached, below))
            ON CONFLICT (reached_at) DO NOTHING;
    END IF;
END $$;

-- Move the mark of every space that nobody holds. The order matters: first the last position handed out, then who may
-- still hold one at or below it. Where every space is held nothing is written.
CREATE FUNCTION memctl.frontier(OUT reached bigint, OUT below jsonb, OUT target bigint, OUT holders jsonb)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('memctl.events', 'position')::regclass), 0)
        INTO target;
    SELECT position, held INTO reached, below FROM memctl.mark;
    holders := '{{}}';
    IF target > reached OR below <> '{{}}' THEN
        holders := memctl.position_holders();
    END IF;
    IF holders = '{{}}' OR (NOT holders ? '0'
            AND EXISTS (SELECT FROM memctl.spaces WHERE NOT holders ? space_id::text)) THEN
        SELECT s.reached, s.below INTO reached, below FROM memctl.set_mark(target, holders) s;
    END IF;
END $$;
"""


def upgrade() -> None:
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    for part in (COLUMNS, APPENDERS, MARK):
        driver.execute(part)
