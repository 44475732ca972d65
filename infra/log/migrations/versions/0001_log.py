"""The log, its mark, and the state of those who read it."""

from alembic import op

revision = "0001"
down_revision = None

# "memctl" in ASCII; holders of this shared advisory lock may own positions that are not committed yet.
LOCK = 0x6D656D63746C

LOG = """
CREATE TABLE memctl.spaces (
    space_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name     text NOT NULL UNIQUE
);
INSERT INTO memctl.spaces (name) VALUES ('default');

CREATE TABLE memctl.events (
    position        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id        uuid NOT NULL,
    space_id        integer NOT NULL REFERENCES memctl.spaces,
    stream          text NOT NULL,
    stream_version  bigint,
    stream_hash     smallint NOT NULL CHECK (stream_hash BETWEEN 0 AND 255),
    type            text NOT NULL,
    schema_version  smallint NOT NULL,
    occurred_at     timestamptz NOT NULL,
    recorded_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor           text NOT NULL,
    location        text NOT NULL,
    session_id      text NOT NULL,
    causation_id    uuid,
    correlation_id  uuid,
    dedupe_key      text NOT NULL,
    variant_of      uuid,
    sources         uuid[],
    salt            bytea,
    payload_hash    bytea,
    payload         jsonb
);
ALTER TABLE memctl.events ALTER COLUMN payload SET COMPRESSION lz4;
CREATE UNIQUE INDEX events_id ON memctl.events (space_id, event_id);
CREATE INDEX events_stream ON memctl.events (space_id, stream, position);
CREATE INDEX events_variants ON memctl.events (space_id, variant_of) WHERE variant_of IS NOT NULL;
"""

LZ4 = "ALTER TABLE memctl.events ALTER COLUMN payload SET COMPRESSION lz4;\n"

IMMUTABLE = """
CREATE FUNCTION memctl.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'events are immutable: % on memctl.events is refused', TG_OP
        USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER events_no_change BEFORE UPDATE OR DELETE ON memctl.events
    FOR EACH ROW EXECUTE FUNCTION memctl.refuse_change();
CREATE TRIGGER events_no_truncate BEFORE TRUNCATE ON memctl.events
    FOR EACH STATEMENT EXECUTE FUNCTION memctl.refuse_change();
ALTER TABLE memctl.events ENABLE ALWAYS TRIGGER events_no_change;
ALTER TABLE memctl.events ENABLE ALWAYS TRIGGER events_no_truncate;
"""

MARK = f"""
CREATE FUNCTION memctl.hold_positions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared({LOCK});
    RETURN NULL;
END $$;
CREATE TRIGGER events_hold_positions BEFORE INSERT ON memctl.events
    FOR EACH STATEMENT EXECUTE FUNCTION memctl.hold_positions();
ALTER TABLE memctl.events ENABLE ALWAYS TRIGGER events_hold_positions;

CREATE TABLE memctl.mark (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    position bigint NOT NULL
);
INSERT INTO memctl.mark (position) VALUES (0);
CREATE TABLE memctl.mark_history (
    reached_at timestamptz PRIMARY KEY,
    position   bigint NOT NULL
);

CREATE FUNCTION memctl.position_holders() RETURNS text[] LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(array_agg(virtualtransaction), '{{}}') FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND classid = {LOCK >> 32} AND objid = {LOCK & 0xFFFFFFFF}
$$;

CREATE FUNCTION memctl.set_mark(target bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    reached bigint;
BEGIN
    UPDATE memctl.mark SET position = target WHERE position < target;
    SELECT position INTO reached FROM memctl.mark;
    -- At most one entry a second; the sweeper's calls write the last one of a burst.
    INSERT INTO memctl.mark_history (reached_at, position)
        SELECT clock_timestamp(), reached
        WHERE NOT EXISTS (SELECT 1 FROM (SELECT * FROM memctl.mark_history ORDER BY reached_at DESC LIMIT 1) h
                          WHERE h.reached_at > clock_timestamp() - interval '1 second' OR h.position >= reached)
        ON CONFLICT (reached_at) DO NOTHING;
    RETURN reached;
END $$;

-- The order matters: first the last position handed out, then who may still hold one at or below it.
CREATE FUNCTION memctl.frontier(OUT reached bigint, OUT target bigint, OUT holders text[]) LANGUAGE plpgsql AS $$
BEGIN
    SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('memctl.events', 'position')::regclass), 0)
        INTO target;
    SELECT m.position INTO reached FROM memctl.mark m;
    IF target <= reached THEN
        holders := '{{}}';
        reached := memctl.set_mark(reached);
    ELSE
        holders := memctl.position_holders();
        IF holders = '{{}}' THEN
            reached := memctl.set_mark(target);
        END IF;
    END IF;
END $$;
"""

APPEND = """
CREATE FUNCTION memctl.append_events(
    in_space integer, in_ids uuid[], in_variant_ids uuid[], in_streams text[], in_hashes smallint[], in_types text[],
    in_versions smallint[], in_occurred bigint[], in_actors text[], in_locations text[], in_sessions text[],
    in_causations uuid[], in_correlations uuid[], in_keys text[], in_sources text[], in_payloads text[]
) RETURNS TABLE (ordinal integer, at_position bigint, status "char") LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    new_ids       uuid[];
    new_positions bigint[];
    expected      integer := cardinality(in_ids);
BEGIN
    WITH put AS (
        INSERT INTO memctl.events (event_id, space_id, stream, stream_hash, type, schema_version, occurred_at, actor,
            location, session_id, causation_id, correlation_id, dedupe_key, sources, salt, payload_hash, payload)
        SELECT i.id, in_space, i.stream, i.hash, i.type, i.version,
            timestamptz 'epoch' + i.occurred * interval '1 microsecond', i.actor, i.location, i.session,
            i.causation, i.correlation, i.key, i.sources::uuid[], i.salt,
            sha256(i.salt || convert_to(i.payload::text, 'UTF8')), i.payload
        FROM (SELECT a.ord, a.id, a.stream, a.hash, a.type, a.version, a.occurred, a.actor, a.location, a.session,
                     a.causation, a.correlation, a.key, a.sources, a.payload::jsonb AS payload,
                     uuid_send(gen_random_uuid()) AS salt
              FROM unnest(in_ids, in_streams, in_hashes, in_types, in_versions, in_occurred, in_actors, in_locations,
                          in_sessions, in_causations, in_correlations, in_keys, in_sources, in_payloads)
                  WITH ORDINALITY AS a(id, stream, hash, type, version, occurred, actor, location, session,
                                       causation, correlation, key, sources, payload, ord)
              OFFSET 0) i
        ORDER BY i.ord
        ON CONFLICT (space_id, event_id) DO NOTHING
        RETURNING position, event_id)
    SELECT coalesce(array_agg(put.event_id), '{}'), coalesce(array_agg(put.position), '{}')
        INTO new_ids, new_positions FROM put;

    IF cardinality(new_ids) = expected THEN
        RETURN QUERY SELECT i.ord::integer, n.position, 'n'::"char"
            FROM unnest(in_ids) WITH ORDINALITY AS i(id, ord)
            JOIN unnest(new_ids, new_positions) AS n(id, position) USING (id);
        RETURN;
    END IF;

    RETURN QUERY
    WITH given AS (
        SELECT i.ord, i.id, row_number() OVER (PARTITION BY i.id ORDER BY i.ord) AS turn
        FROM unnest(in_ids) WITH ORDINALITY AS i(id, ord)),
    fresh AS (
        SELECT g.ord, n.position FROM given g
        JOIN unnest(new_ids, new_positions) AS n(id, position) ON n.id = g.id AND g.turn = 1),
    stored AS (
        SELECT g.ord, e.position,
            e.payload_hash = sha256(e.salt || convert_to(in_payloads[g.ord]::jsonb::text, 'UTF8'))
                AND e.type = in_types[g.ord] AND e.location = in_locations[g.ord]
                AND e.occurred_at = timestamptz 'epoch' + in_occurred[g.ord] * interval '1 microsecond' AS same,
            row_number() OVER (PARTITION BY in_variant_ids[g.ord] ORDER BY g.ord) AS turn
        FROM given g JOIN memctl.events e ON e.space_id = in_space AND e.event_id = g.id
        WHERE NOT EXISTS (SELECT 1 FROM fresh f WHERE f.ord = g.ord)),
    other AS (
        INSERT INTO memctl.events (event_id, space_id, stream, stream_hash, type, schema_version, occurred_at, actor,
            location, session_id, causation_id, correlation_id, dedupe_key, variant_of, sources, salt, payload_hash,
            payload)
        SELECT v.variant_id, in_space, in_streams[v.ord], in_hashes[v.ord], in_types[v.ord], in_versions[v.ord],
            timestamptz 'epoch' + in_occurred[v.ord] * interval '1 microsecond', in_actors[v.ord], in_locations[v.ord],
            in_sessions[v.ord], in_causations[v.ord], in_correlations[v.ord],
            in_keys[v.ord] || '#' || v.variant_id, in_ids[v.ord], in_sources[v.ord]::uuid[], v.salt,
            sha256(v.salt || convert_to(v.payload::text, 'UTF8')), v.payload
        FROM (SELECT s.ord, in_variant_ids[s.ord] AS variant_id, in_payloads[s.ord]::jsonb AS payload,
                     uuid_send(gen_random_uuid()) AS salt
              FROM stored s WHERE s.same IS FALSE AND s.turn = 1 OFFSET 0) v
        ORDER BY v.ord
        ON CONFLICT (space_id, event_id) DO NOTHING
        RETURNING position, event_id)
    SELECT f.ord::integer, f.position, 'n'::"char" FROM fresh f
    UNION ALL
    SELECT s.ord::integer, coalesce(o.position, s.position),
        (CASE WHEN o.position IS NULL THEN 'd' ELSE 'v' END)::"char"
    FROM stored s
    LEFT JOIN LATERAL (SELECT o.position FROM other o
                       WHERE s.same IS FALSE AND s.turn = 1 AND o.event_id = in_variant_ids[s.ord]) o ON true;
END $$;
"""

READERS = """
CREATE TABLE memctl.installation (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    id       uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO memctl.installation DEFAULT VALUES;
CREATE TABLE memctl.generations (
    generation  integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stage       smallint NOT NULL CHECK (stage IN (1, 2)),
    facts_of    integer REFERENCES memctl.generations,
    status      text NOT NULL CHECK (status IN ('building', 'live', 'previous', 'dropped')),
    shards      smallint NOT NULL CHECK (shards BETWEEN 1 AND 256),
    fingerprint text NOT NULL,
    made_by     text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    switched_at timestamptz
);
CREATE TABLE memctl.projection_state (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    stage1   integer NOT NULL REFERENCES memctl.generations,
    stage2   integer NOT NULL REFERENCES memctl.generations
);
CREATE TABLE memctl.offsets (
    generation  integer NOT NULL REFERENCES memctl.generations,
    shard       smallint NOT NULL,
    position    bigint NOT NULL DEFAULT 0,
    epoch       bigint NOT NULL DEFAULT 0,
    owner       text,
    lease_until timestamptz,
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (generation, shard)
);
CREATE TABLE memctl.embeddings (
    model     text NOT NULL,
    text_hash bytea NOT NULL,
    vector    bytea NOT NULL,
    PRIMARY KEY (model, text_hash)
);
CREATE TABLE memctl.checkpoints (
    space_id integer NOT NULL REFERENCES memctl.spaces,
    path     text NOT NULL,
    "offset" bigint NOT NULL,
    lines    bigint NOT NULL,
    digest   text NOT NULL,
    PRIMARY KEY (space_id, path)
);
"""


def upgrade() -> None:
    # The driver's own connection: no placeholders are looked for, so % means what it means in PL/pgSQL.
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    run = driver.execute
    lz4 = run("SELECT 'lz4' = ANY(enumvals) FROM pg_settings WHERE name = 'default_toast_compression'").fetchone()[0]
    for part in (LOG if lz4 else LOG.replace(LZ4, ""), IMMUTABLE, MARK, APPEND, READERS):
        run(part)
