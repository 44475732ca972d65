"""Spaces move between databases: who appends is refused where a space does not live, and a copy of one may be deleted.

`database` of a copy that arrives names the database that it comes from, until the move of that id is switched there.
"""

from alembic import op

revision = "0022"
down_revision = "0021"

# "memc" in ASCII: the first number of the locks that appenders share.
LOCK = 0x6D656D63

MOVES = f"""
ALTER TABLE memctl.spaces ADD COLUMN move uuid, ADD COLUMN arriving boolean NOT NULL DEFAULT false,
    ADD COLUMN copied bigint NOT NULL DEFAULT 0;

-- Who has a space to himself, or waits for his turn, holds no position of it. (Who restores holds all: space 0.)
CREATE OR REPLACE FUNCTION memctl.position_holders() RETURNS jsonb LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(jsonb_object_agg(space, holders), '{{}}') FROM (
        SELECT objid::bigint::text AS space, jsonb_agg(virtualtransaction) AS holders FROM pg_locks
        WHERE locktype = 'advisory' AND objsubid = 2 AND classid = {LOCK}
          AND granted AND (mode = 'ShareLock' OR objid = 0)
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        GROUP BY objid) h
$$;

CREATE OR REPLACE FUNCTION memctl.begin_append(in_space integer) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    consult   boolean;
    elsewhere boolean;
    done      text;
BEGIN
    done := pg_advisory_xact_lock_shared({LOCK}, in_space);
    SELECT has_tombstones, database <> '' INTO consult, elsewhere FROM memctl.spaces WHERE space_id = in_space;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no space %', in_space USING ERRCODE = 'foreign_key_violation';
    END IF;
    IF elsewhere THEN
        RAISE EXCEPTION 'space % lives on another database', in_space USING ERRCODE = 'MC001';
    END IF;
    done := set_config('memctl.covered', 'on', true);
    RETURN consult;
END $$;

-- The space does not move away until the caller's transaction ends.
CREATE FUNCTION memctl.stay(in_space integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM memctl.spaces WHERE space_id = in_space AND database = '' FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'space % lives on another database', in_space USING ERRCODE = 'MC001';
    END IF;
END $$;

-- Beside erasing, one thing may be done to events: those of a space that lives elsewhere go with it.
CREATE OR REPLACE FUNCTION memctl.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF memctl.is_erasure(OLD, NEW) THEN
            RETURN NEW;
        END IF;
    ELSIF TG_OP = 'DELETE' THEN
        IF current_setting('memctl.moved', true) = OLD.space_id::text
                AND EXISTS (SELECT FROM memctl.spaces WHERE space_id = OLD.space_id AND database <> '') THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'events are immutable: % on memctl.events is refused', TG_OP
        USING ERRCODE = 'restrict_violation';
END $$;
"""


def upgrade() -> None:
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    driver.execute(MOVES)
