"""Erasing: what was said can be emptied under a receipt, and tombstones keep it from coming back."""

from alembic import op

revision = "0006"
down_revision = "0005"

LOCK = 0x6D656D63746C
"""The appenders' lock of 0001."""

# Neither table holds a word of what was erased: ids, streams, locations and times.
TABLES = """
CREATE TABLE memctl.receipts (
    receipt     uuid PRIMARY KEY,
    space_id    integer NOT NULL REFERENCES memctl.spaces,
    scope       jsonb NOT NULL,
    reason      text NOT NULL DEFAULT '',
    begun_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at timestamptz,
    erased      uuid[] NOT NULL DEFAULT '{}',
    outcome     jsonb NOT NULL DEFAULT '{}'
);
CREATE TABLE memctl.tombstones (
    space_id integer NOT NULL REFERENCES memctl.spaces,
    kind     text NOT NULL CHECK (kind IN ('event', 'line', 'call', 'moment', 'session', 'location', 'before')),
    stream   text COLLATE "C" NOT NULL DEFAULT '',
    value    text COLLATE "C" NOT NULL DEFAULT '',
    since    timestamptz NOT NULL DEFAULT '-infinity',
    until    timestamptz NOT NULL DEFAULT 'infinity',
    receipt  uuid NOT NULL REFERENCES memctl.receipts,
    UNIQUE (space_id, kind, stream, value, since, until)
);
ALTER TABLE memctl.spaces ADD COLUMN has_tombstones boolean NOT NULL DEFAULT false;
CREATE INDEX events_sources ON memctl.events USING gin (sources) WHERE sources IS NOT NULL;
"""

# The one change that an event may suffer: all that was said in it goes, under a receipt that is not finished. Its
# place, type and times stay; so does its id, which is what an equal delivery is known by. The id of a variant is made
# of what it said, so it gets another.
ERASING = """
CREATE FUNCTION memctl.is_erasure(old memctl.events, new memctl.events) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT new.payload IS NULL AND new.salt IS NULL AND new.payload_hash IS NULL AND new.sources IS NULL
        AND new.causation_id IS NULL AND new.correlation_id IS NULL AND new.location = ''
        AND (new.position, new.space_id, new.stream, new.stream_hash, new.type, new.schema_version, new.occurred_at,
             new.recorded_at, new.actor, new.session_id, new.stream_version, new.variant_of) IS NOT DISTINCT FROM
            (old.position, old.space_id, old.stream, old.stream_hash, old.type, old.schema_version, old.occurred_at,
             old.recorded_at, old.actor, old.session_id, old.stream_version, old.variant_of)
        AND (old.variant_of IS NOT NULL OR (new.event_id, new.dedupe_key) = (old.event_id, old.dedupe_key))
        AND EXISTS (SELECT FROM memctl.receipts r WHERE r.finished_at IS NULL AND r.space_id = new.space_id
                    AND r.receipt = nullif(current_setting('memctl.receipt', true), '')::uuid)
$$;

CREATE OR REPLACE FUNCTION memctl.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF memctl.is_erasure(OLD, NEW) THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'events are immutable: % on memctl.events is refused', TG_OP
        USING ERRCODE = 'restrict_violation';
END $$;
"""

CONSULTING = f"""
-- Whoever appends holds the lock before it looks: who lays a tombstone and then waits for the holders of the lock has
-- either waited for them, or been seen by them.
CREATE FUNCTION memctl.begin_append(in_space integer) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    consult boolean;
BEGIN
    PERFORM pg_advisory_xact_lock_shared({LOCK});
    SELECT has_tombstones INTO consult FROM memctl.spaces WHERE space_id = in_space;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no space %', in_space USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN consult;
END $$;

-- Which of these (from 1) were forgotten before they are appended; NULL where none was. What memctl itself records
-- about forgetting is always appended.
CREATE FUNCTION memctl.forgotten(
    in_space integer, in_ids uuid[], in_streams text[], in_types text[], in_occurred bigint[], in_locations text[],
    in_variants_of uuid[], in_payloads text[]
) RETURNS bigint[] LANGUAGE sql VOLATILE AS $$
    WITH given AS MATERIALIZED (
        SELECT ord, coalesce(variant_of, id) AS id, stream, type, location, payload,
            timestamptz 'epoch' + occurred * interval '1 microsecond' AS at
        FROM unnest(in_ids, in_streams, in_types, in_occurred, in_locations, in_variants_of, in_payloads)
            WITH ORDINALITY AS g(id, stream, type, occurred, location, variant_of, payload, ord)
        WHERE type NOT IN ('content.erased', 'event.skipped')),
    laid AS MATERIALIZED (SELECT * FROM memctl.tombstones WHERE space_id = in_space)
    SELECT array_agg(DISTINCT ord) FROM (
        SELECT g.ord FROM given g JOIN laid t ON t.kind = 'event' AND t.value = g.id::text
        UNION ALL
        SELECT g.ord FROM given g JOIN laid t ON t.kind = 'session' AND t.value = g.stream AND g.at <= t.until
        UNION ALL
        SELECT g.ord FROM given g JOIN laid t ON t.kind = 'before' AND g.at < t.until
        UNION ALL
        SELECT g.ord FROM given g JOIN laid t ON t.kind = 'location' AND g.at <= t.until
            AND (g.location = t.value OR starts_with(g.location, t.value || '/'))
        UNION ALL
        SELECT g.ord FROM given g JOIN laid t ON t.kind = 'line' AND t.stream = g.stream
            AND t.value = g.payload::jsonb ->> 'line'
        UNION ALL
        SELECT g.ord FROM given g JOIN laid t ON t.kind = 'call' AND t.stream = g.stream
            AND t.value = g.type || ' ' || (g.payload::jsonb ->> 'call')
        UNION ALL
        SELECT g.ord FROM given g JOIN laid t ON t.kind = 'moment' AND t.stream = g.stream
            AND g.at BETWEEN t.since AND t.until
            AND t.value = g.type || ' ' || coalesce(g.payload::jsonb ->> 'via', 'transcript')) f
$$;
"""


def upgrade() -> None:
    # The driver's own connection: no placeholders are looked for, so % means what it means in PL/pgSQL.
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    for part in (TABLES, ERASING, CONSULTING):
        driver.execute(part)
    # The bodies of 0004 stay as they are but for the line that looks whether there is such a space.
    for function, gone in (
        (
            "append_events",
            """
    IF memctl.begin_append(in_space) THEN
        DECLARE
            gone bigint[] := memctl.forgotten(
                in_space, in_ids, in_streams, in_types, in_occurred, in_locations, in_variants_of, in_payloads);
        BEGIN
            IF gone IS NOT NULL THEN
                -- Nothing is put: whoever asks leaves these out and asks again.
                SELECT string_agg(CASE WHEN ord = ANY(gone) THEN 'f' ELSE '-' END, '' ORDER BY ord) INTO statuses
                    FROM generate_series(1, cardinality(in_ids)) AS ord;
                RETURN;
            END IF;
        END;
    END IF;""",
        ),
        (
            "append_event",
            """
    IF memctl.begin_append(in_space) THEN
        IF memctl.forgotten(in_space, ARRAY[in_id], ARRAY[in_stream], ARRAY[in_type], ARRAY[in_occurred],
                            ARRAY[in_location], ARRAY[in_variant_of], ARRAY[in_payload]) IS NOT NULL THEN
            RETURN 0;
        END IF;
    END IF;""",
        ),
    ):
        (source,) = driver.execute(
            "SELECT pg_get_functiondef(p.oid) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
            " WHERE n.nspname = 'memctl' AND p.proname = %s",
            [function],
        ).fetchone()
        line = "\n    PERFORM memctl.check_space(in_space);"
        assert source.count(line) == 1
        # What is stored may be empty by now: then nothing is compared, and nothing is appended again.
        source = source.replace(line, gone).replace(
            "CASE WHEN n.position IS NOT NULL THEN 'n'",
            "CASE WHEN n.position IS NOT NULL THEN 'n' WHEN e.payload IS NULL THEN 'e'",
        )
        driver.execute(source)
