"""The log, what may be done to it, and the tables that steer its readers: what every newer schema starts from."""

from alembic import op

revision = "0014"
down_revision = None

# "memctl" in ASCII; holders of this shared advisory lock may own positions that are not committed yet.
LOCK = 0x6D656D63746C

# Spaces are never deleted, so events have no foreign key to them: it cost a look-up and a row lock for each event, and
# made a multixact of every two writers at once. The functions look once a call instead.
LOG = """
CREATE TABLE memctl.spaces (
    space_id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name           text NOT NULL UNIQUE,
    has_tombstones boolean NOT NULL DEFAULT false
);
INSERT INTO memctl.spaces (name) VALUES ('default');

CREATE TABLE memctl.events (
    position        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id        uuid NOT NULL,
    space_id        integer NOT NULL,
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
CREATE INDEX events_skipped ON memctl.events (position) WHERE type = 'event.skipped';
CREATE INDEX events_sources ON memctl.events USING gin (sources) WHERE sources IS NOT NULL;
CREATE INDEX events_recalled ON memctl.events (space_id, occurred_at) WHERE type = 'memory.recalled';
"""

LZ4 = "ALTER TABLE memctl.events ALTER COLUMN payload SET COMPRESSION lz4;\n"

# No table of forgetting holds a word of what was erased: ids, streams, locations and times.
FORGETTING = """
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
"""

# The one change that an event may suffer: all that was said in it goes, under a receipt that is not finished. Its
# place, type and times stay; so does its id, which is what an equal delivery is known by. The id of a variant is made
# of what it said, so it gets another.
IMMUTABLE = """
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

CREATE FUNCTION memctl.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF memctl.is_erasure(OLD, NEW) THEN
            RETURN NEW;
        END IF;
    END IF;
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
    IF NOT EXISTS (SELECT 1 FROM (SELECT * FROM memctl.mark_history ORDER BY reached_at DESC LIMIT 1) h
                   WHERE h.reached_at > clock_timestamp() - interval '1 second' OR h.position >= reached) THEN
        SELECT position INTO reached FROM memctl.mark FOR UPDATE;
        INSERT INTO memctl.mark_history (reached_at, position)
            SELECT clock_timestamp(), reached
            WHERE NOT EXISTS (SELECT 1 FROM (SELECT * FROM memctl.mark_history ORDER BY reached_at DESC LIMIT 1) h
                              WHERE h.position >= reached)
            ON CONFLICT (reached_at) DO NOTHING;
    END IF;
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

BEGIN_APPEND = f"""
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
"""

# Which of these (from 1) were forgotten before they are appended; NULL where none was. What memctl itself records about
# forgetting is always appended.
#
# Tombstones are looked up one by one, through the index on (space_id, kind, stream, value, since, until), which names
# every event's possible tombstones: an append costs the same however many were laid. Only those that hold for a time or
# a folder are read whole, and they are as few as the times something was forgotten so. Scalar subqueries with a LIMIT
# are never turned into a hash of the whole table, and without sequential scans one plan is right for every number of
# tombstones and events: it is made once a connection.
#
# Titles, and all that some clients write, bear no time, which is kept as 0. What is said now of a session that is not
# known to lie before that time is not what was forgotten, nor what is said of anything else: other streams hold what
# came from everywhere. (What was emptied still says when it happened.)
FORGOTTEN = """
CREATE FUNCTION memctl.forgotten(
    in_space integer, in_ids uuid[], in_streams text[], in_types text[], in_occurred bigint[], in_locations text[],
    in_variants_of uuid[], in_payloads text[]
) RETURNS bigint[] LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    -- Whatever happened before this is forgotten.
    before timestamptz := (SELECT max(t.until) FROM memctl.tombstones t
                           WHERE t.space_id = in_space AND t.kind = 'before' AND t.stream = '');
BEGIN
    RETURN (
        SELECT array_agg(g.ord)
        FROM (SELECT ord, coalesce(variant_of, id)::text AS id, stream, type, location, payload::jsonb AS said,
                     timestamptz 'epoch' + occurred * interval '1 microsecond' AS at
              FROM unnest(in_ids, in_streams, in_types, in_occurred, in_locations, in_variants_of, in_payloads)
                  WITH ORDINALITY AS g(id, stream, type, occurred, location, variant_of, payload, ord)
              WHERE type NOT IN ('content.erased', 'event.skipped')
              OFFSET 0) g
        WHERE (CASE WHEN g.at > timestamptz 'epoch' THEN g.at < before
               ELSE before IS NOT NULL AND starts_with(g.stream, 'session/')
                    AND (SELECT true FROM memctl.events e WHERE e.space_id = in_space AND e.stream = g.stream
                         AND e.occurred_at > timestamptz 'epoch' AND e.occurred_at < before LIMIT 1)
                    AND (SELECT true FROM memctl.events e WHERE e.space_id = in_space AND e.stream = g.stream
                         AND e.occurred_at >= before LIMIT 1) IS NULL
               END)
           OR (SELECT true FROM memctl.tombstones t WHERE t.space_id = in_space AND t.kind = 'event'
               AND t.stream = '' AND t.value = g.id LIMIT 1)
           OR (SELECT true FROM memctl.tombstones t WHERE t.space_id = in_space AND t.kind = 'session'
               AND t.stream = '' AND t.value = g.stream AND g.at <= t.until LIMIT 1)
           OR (SELECT true FROM memctl.tombstones t WHERE t.space_id = in_space AND t.kind = 'location'
               AND t.stream = '' AND g.at <= t.until
               AND (g.location = t.value OR starts_with(g.location, t.value || '/')) LIMIT 1)
           OR (SELECT true FROM memctl.tombstones t WHERE t.space_id = in_space AND t.kind = 'line'
               AND t.stream = g.stream AND t.value = g.said ->> 'line' LIMIT 1)
           OR (SELECT true FROM memctl.tombstones t WHERE t.space_id = in_space AND t.kind = 'call'
               AND t.stream = g.stream AND t.value = g.type || ' ' || (g.said ->> 'call') LIMIT 1)
           OR (SELECT true FROM memctl.tombstones t WHERE t.space_id = in_space AND t.kind = 'moment'
               AND t.stream = g.stream AND t.value = g.type || ' ' || coalesce(g.said ->> 'via', 'transcript')
               AND g.at BETWEEN t.since AND t.until LIMIT 1));
END $$;
"""

# Of what is stored under the same id all counts that a fold or a reader may see of an event, but for what causes and
# correlates it, which nobody reads.
APPEND = """
-- Positions and statuses in the order given: n(ew), s(tored under that id already), o(ther payload is stored there).
-- OFFSET 0 keeps the payload from being parsed twice.
CREATE FUNCTION memctl.append_events(
    in_space integer, in_ids uuid[], in_streams text[], in_hashes smallint[], in_types text[], in_versions smallint[],
    in_occurred bigint[], in_actors text[], in_locations text[], in_sessions text[], in_causations uuid[],
    in_correlations uuid[], in_keys text[], in_variants_of uuid[], in_sources text[], in_salts bytea[],
    in_payloads text[], OUT positions bigint[], OUT statuses text
) LANGUAGE plpgsql AS $$
DECLARE
    new_ids       uuid[];
    new_positions bigint[];
BEGIN
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
    END IF;
    WITH put AS (
        INSERT INTO memctl.events (event_id, space_id, stream, stream_hash, type, schema_version, occurred_at, actor,
            location, session_id, causation_id, correlation_id, dedupe_key, variant_of, sources, salt, payload_hash,
            payload)
        SELECT i.id, in_space, i.stream, i.hash, i.type, i.version,
            timestamptz 'epoch' + i.occurred * interval '1 microsecond', i.actor, i.location, i.session,
            i.causation, i.correlation, i.key, i.variant_of, i.sources::uuid[], i.salt,
            sha256(i.salt || convert_to(i.payload::text, 'UTF8')), i.payload
        FROM (SELECT a.id, a.stream, a.hash, a.type, a.version, a.occurred, a.actor, a.location, a.session,
                     a.causation, a.correlation, a.key, a.variant_of, a.sources, a.salt, a.payload::jsonb AS payload
              FROM unnest(in_ids, in_streams, in_hashes, in_types, in_versions, in_occurred, in_actors, in_locations,
                          in_sessions, in_causations, in_correlations, in_keys, in_variants_of, in_sources, in_salts,
                          in_payloads)
                  AS a(id, stream, hash, type, version, occurred, actor, location, session, causation, correlation,
                       key, variant_of, sources, salt, payload)
              OFFSET 0) i
        ON CONFLICT (space_id, event_id) DO NOTHING
        RETURNING position, event_id)
    SELECT coalesce(array_agg(put.event_id), '{}'), coalesce(array_agg(put.position), '{}')
        INTO new_ids, new_positions FROM put;

    IF new_ids = in_ids THEN
        positions := new_positions;
        statuses := repeat('n', cardinality(in_ids));
        RETURN;
    END IF;

    WITH given AS (
        SELECT i.ord, i.id, row_number() OVER (PARTITION BY i.id ORDER BY i.ord) AS turn
        FROM unnest(in_ids) WITH ORDINALITY AS i(id, ord)),
    found AS (
        SELECT g.ord, coalesce(n.position, e.position) AS position,
            CASE WHEN n.position IS NOT NULL THEN 'n' WHEN e.payload IS NULL THEN 'e'
                 WHEN (e.payload_hash = sha256(e.salt || convert_to(in_payloads[g.ord]::jsonb::text, 'UTF8'))
                       AND e.type = in_types[g.ord] AND e.location = in_locations[g.ord]
                       AND e.actor = in_actors[g.ord] AND e.stream = in_streams[g.ord]
                       AND e.session_id = in_sessions[g.ord]
                       AND e.sources IS NOT DISTINCT FROM in_sources[g.ord]::uuid[]
                       AND e.occurred_at = timestamptz 'epoch' + in_occurred[g.ord] * interval '1 microsecond') IS FALSE
                 THEN 'o' ELSE 's' END AS status
        FROM given g
        LEFT JOIN unnest(new_ids, new_positions) AS n(id, position) ON n.id = g.id AND g.turn = 1
        LEFT JOIN memctl.events e ON n.position IS NULL AND e.space_id = in_space AND e.event_id = g.id)
    SELECT array_agg(f.position ORDER BY f.ord), string_agg(f.status, '' ORDER BY f.ord)
        INTO positions, statuses FROM found f;
END $$;

-- The short way: the new position, or NULL where something is stored under that id already.
CREATE FUNCTION memctl.append_event(
    in_space integer, in_id uuid, in_stream text, in_hash smallint, in_type text, in_version smallint,
    in_occurred bigint, in_actor text, in_location text, in_session text, in_causation uuid, in_correlation uuid,
    in_key text, in_variant_of uuid, in_sources text, in_salt bytea, in_payload text
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    stored  jsonb := in_payload;
    arrived bigint;
BEGIN
    IF memctl.begin_append(in_space) THEN
        IF memctl.forgotten(in_space, ARRAY[in_id], ARRAY[in_stream], ARRAY[in_type], ARRAY[in_occurred],
                            ARRAY[in_location], ARRAY[in_variant_of], ARRAY[in_payload]) IS NOT NULL THEN
            RETURN 0;
        END IF;
    END IF;
    INSERT INTO memctl.events (event_id, space_id, stream, stream_hash, type, schema_version, occurred_at, actor,
        location, session_id, causation_id, correlation_id, dedupe_key, variant_of, sources, salt, payload_hash,
        payload)
    VALUES (in_id, in_space, in_stream, in_hash, in_type, in_version,
        timestamptz 'epoch' + in_occurred * interval '1 microsecond', in_actor, in_location, in_session, in_causation,
        in_correlation, in_key, in_variant_of, in_sources::uuid[], in_salt,
        sha256(in_salt || convert_to(stored::text, 'UTF8')), stored)
    ON CONFLICT (space_id, event_id) DO NOTHING
    RETURNING position INTO arrived;
    RETURN arrived;
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
    status      text NOT NULL CHECK (status IN ('building', 'live', 'previous', 'scratch', 'dropped')),
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
-- Nothing calls this any more.
CREATE FUNCTION memctl.check_space(in_space integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM memctl.spaces WHERE space_id = in_space) THEN
        RAISE EXCEPTION 'there is no space %', in_space USING ERRCODE = 'foreign_key_violation';
    END IF;
END $$;
"""

# These hold ids, counts, names of rows and streams, and where in the code it happened: what was kept stands in the log.
WORK = """
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
    used_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    asked_by text NOT NULL DEFAULT 'owner'
);
CREATE INDEX glances_open ON memctl.glances (position) WHERE status IN ('asked', 'building', 'ready');

CREATE TABLE memctl.processing (
    space_id    integer NOT NULL,
    processor   text NOT NULL,
    subject     text NOT NULL,
    digest      text NOT NULL,
    status      text NOT NULL CHECK (status IN ('working', 'done', 'failed', 'given up')),
    attempts    integer NOT NULL DEFAULT 0,
    problem     text NOT NULL DEFAULT '',
    state       jsonb NOT NULL DEFAULT '{}',
    epoch       bigint NOT NULL DEFAULT 1,
    lease_until timestamptz,
    next_at     timestamptz,
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (space_id, processor, subject)
);

CREATE TABLE memctl.llm_calls (
    call            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    space_id        integer NOT NULL,
    processor       text NOT NULL,
    subject         text NOT NULL,
    model           text NOT NULL,
    prompt          text NOT NULL,
    asked_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    status          text NOT NULL DEFAULT 'reserved' CHECK (status IN ('reserved', 'answered', 'failed')),
    problem         text NOT NULL DEFAULT '',
    tokens_reserved bigint NOT NULL,
    usd_reserved    numeric NOT NULL,
    tokens_in       bigint NOT NULL DEFAULT 0,
    tokens_out      bigint NOT NULL DEFAULT 0,
    usd             numeric NOT NULL DEFAULT 0
);
CREATE INDEX llm_calls_at ON memctl.llm_calls (asked_at);

CREATE TABLE memctl.api_keys (
    key_id     text COLLATE "C" PRIMARY KEY,
    space      text NOT NULL,
    name       text NOT NULL,
    hash       bytea NOT NULL,
    scopes     text[] NOT NULL,
    projects   text[],
    made_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz,
    revoked_at timestamptz
);
"""


def upgrade() -> None:
    # The driver's own connection: no placeholders are looked for, so % means what it means in PL/pgSQL.
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    run = driver.execute
    lz4 = run("SELECT 'lz4' = ANY(enumvals) FROM pg_settings WHERE name = 'default_toast_compression'").fetchone()[0]
    log = LOG if lz4 else LOG.replace(LZ4, "")
    for part in (log, FORGETTING, IMMUTABLE, MARK, BEGIN_APPEND, FORGOTTEN, APPEND, READERS, WORK):
        run(part)
