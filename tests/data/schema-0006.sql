SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE SCHEMA memctl;
CREATE FUNCTION memctl.append_event(in_space integer, in_id uuid, in_stream text, in_hash smallint, in_type text, in_version smallint, in_occurred bigint, in_actor text, in_location text, in_session text, in_causation uuid, in_correlation uuid, in_key text, in_variant_of uuid, in_sources text, in_salt bytea, in_payload text) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION memctl.append_events(in_space integer, in_ids uuid[], in_streams text[], in_hashes smallint[], in_types text[], in_versions smallint[], in_occurred bigint[], in_actors text[], in_locations text[], in_sessions text[], in_causations uuid[], in_correlations uuid[], in_keys text[], in_variants_of uuid[], in_sources text[], in_salts bytea[], in_payloads text[], OUT positions bigint[], OUT statuses text) RETURNS record
    LANGUAGE plpgsql
    AS $$
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
                       AND e.occurred_at = timestamptz 'epoch' + in_occurred[g.ord] * interval '1 microsecond') IS FALSE
                 THEN 'o' ELSE 's' END AS status
        FROM given g
        LEFT JOIN unnest(new_ids, new_positions) AS n(id, position) ON n.id = g.id AND g.turn = 1
        LEFT JOIN memctl.events e ON n.position IS NULL AND e.space_id = in_space AND e.event_id = g.id)
    SELECT array_agg(f.position ORDER BY f.ord), string_agg(f.status, '' ORDER BY f.ord)
        INTO positions, statuses FROM found f;
END $$;
CREATE FUNCTION memctl.begin_append(in_space integer) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    consult boolean;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(120282394358892);
    SELECT has_tombstones INTO consult FROM memctl.spaces WHERE space_id = in_space;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no space %', in_space USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN consult;
END $$;
CREATE FUNCTION memctl.check_space(in_space integer) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM memctl.spaces WHERE space_id = in_space) THEN
        RAISE EXCEPTION 'there is no space %', in_space USING ERRCODE = 'foreign_key_violation';
    END IF;
END $$;
CREATE FUNCTION memctl.forgotten(in_space integer, in_ids uuid[], in_streams text[], in_types text[], in_occurred bigint[], in_locations text[], in_variants_of uuid[], in_payloads text[]) RETURNS bigint[]
    LANGUAGE sql
    AS $$
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
CREATE FUNCTION memctl.frontier(OUT reached bigint, OUT target bigint, OUT holders text[]) RETURNS record
    LANGUAGE plpgsql
    AS $$
BEGIN
    SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('memctl.events', 'position')::regclass), 0)
        INTO target;
    SELECT m.position INTO reached FROM memctl.mark m;
    IF target <= reached THEN
        holders := '{}';
        reached := memctl.set_mark(reached);
    ELSE
        holders := memctl.position_holders();
        IF holders = '{}' THEN
            reached := memctl.set_mark(target);
        END IF;
    END IF;
END $$;
CREATE FUNCTION memctl.hold_positions() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(120282394358892);
    RETURN NULL;
END $$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE memctl.events (
    "position" bigint NOT NULL,
    event_id uuid NOT NULL,
    space_id integer NOT NULL,
    stream text NOT NULL,
    stream_version bigint,
    stream_hash smallint NOT NULL,
    type text NOT NULL,
    schema_version smallint NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    recorded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    actor text NOT NULL,
    location text NOT NULL,
    session_id text NOT NULL,
    causation_id uuid,
    correlation_id uuid,
    dedupe_key text NOT NULL,
    variant_of uuid,
    sources uuid[],
    salt bytea,
    payload_hash bytea,
    payload jsonb,
    CONSTRAINT events_stream_hash_check CHECK (((stream_hash >= 0) AND (stream_hash <= 255)))
);
CREATE FUNCTION memctl.is_erasure(old memctl.events, new memctl.events) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
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
CREATE FUNCTION memctl.position_holders() RETURNS text[]
    LANGUAGE sql
    AS $$
    SELECT coalesce(array_agg(virtualtransaction), '{}') FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND classid = 28005 AND objid = 1835234412
$$;
CREATE FUNCTION memctl.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF memctl.is_erasure(OLD, NEW) THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'events are immutable: % on memctl.events is refused', TG_OP
        USING ERRCODE = 'restrict_violation';
END $$;
CREATE FUNCTION memctl.set_mark(target bigint) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
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
CREATE TABLE memctl.bug_patterns_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.bug_sightings_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.candidates_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.checkpoints (
    space_id integer NOT NULL,
    path text NOT NULL,
    "offset" bigint NOT NULL,
    lines bigint NOT NULL,
    digest text NOT NULL
);
CREATE TABLE memctl.code_patterns_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.code_rules_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.consolidated_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.consolidation_log_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.core_memory_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.dead_letters (
    letter bigint NOT NULL,
    generation integer NOT NULL,
    target uuid NOT NULL,
    projection text NOT NULL,
    space_id integer NOT NULL,
    key text,
    source uuid NOT NULL,
    upstream text,
    upstream_key text,
    "position" bigint NOT NULL,
    error text NOT NULL,
    place text NOT NULL,
    parked_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    attempts integer DEFAULT 1 NOT NULL,
    waiting bigint DEFAULT 0 NOT NULL
);
ALTER TABLE memctl.dead_letters ALTER COLUMN letter ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME memctl.dead_letters_letter_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE memctl.embeddings (
    model text NOT NULL,
    text_hash bytea NOT NULL,
    vector bytea NOT NULL
);
CREATE TABLE memctl.entities_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.episodes_g1 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    stream text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
ALTER TABLE memctl.events ALTER COLUMN "position" ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME memctl.events_position_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE memctl.facts_g1 (
    space_id integer NOT NULL,
    id uuid NOT NULL,
    stream text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL,
    at bigint NOT NULL,
    payload jsonb
);
CREATE TABLE memctl.generations (
    generation integer NOT NULL,
    stage smallint NOT NULL,
    facts_of integer,
    status text NOT NULL,
    shards smallint NOT NULL,
    fingerprint text NOT NULL,
    made_by text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    switched_at timestamp with time zone,
    CONSTRAINT generations_shards_check CHECK (((shards >= 1) AND (shards <= 256))),
    CONSTRAINT generations_stage_check CHECK ((stage = ANY (ARRAY[1, 2]))),
    CONSTRAINT generations_status_check CHECK ((status = ANY (ARRAY['building'::text, 'live'::text, 'previous'::text, 'scratch'::text, 'dropped'::text])))
);
ALTER TABLE memctl.generations ALTER COLUMN generation ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME memctl.generations_generation_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE memctl.halts (
    generation integer NOT NULL,
    shard smallint NOT NULL,
    error text NOT NULL,
    message text NOT NULL,
    since timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    last timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    attempts integer DEFAULT 1 NOT NULL
);
CREATE TABLE memctl.insights_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.installation (
    only_row boolean DEFAULT true NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    CONSTRAINT installation_only_row_check CHECK (only_row)
);
CREATE TABLE memctl.locations_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.mark (
    only_row boolean DEFAULT true NOT NULL,
    "position" bigint NOT NULL,
    CONSTRAINT mark_only_row_check CHECK (only_row)
);
CREATE TABLE memctl.mark_history (
    reached_at timestamp with time zone NOT NULL,
    "position" bigint NOT NULL
);
CREATE TABLE memctl.memories_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.observed_files_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.offsets (
    generation integer NOT NULL,
    shard smallint NOT NULL,
    "position" bigint DEFAULT 0 NOT NULL,
    epoch bigint DEFAULT 0 NOT NULL,
    owner text,
    lease_until timestamp with time zone,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE memctl.outbox_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    dense boolean DEFAULT false NOT NULL
);
ALTER TABLE memctl.outbox_g2 ALTER COLUMN version ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME memctl.outbox_g2_version_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE memctl.project_digests_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.project_knowledge_g1 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    stream text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.project_shares_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.project_words_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.projection_state (
    only_row boolean DEFAULT true NOT NULL,
    stage1 integer NOT NULL,
    stage2 integer NOT NULL,
    CONSTRAINT projection_state_only_row_check CHECK (only_row)
);
CREATE UNLOGGED TABLE memctl.rebuild_tasks (
    rebuild integer NOT NULL,
    step smallint NOT NULL,
    number integer NOT NULL,
    task jsonb NOT NULL,
    weight bigint NOT NULL,
    done boolean DEFAULT false NOT NULL,
    fault text
);
CREATE TABLE memctl.rebuilds (
    rebuild integer NOT NULL,
    purpose text NOT NULL,
    first_stage smallint NOT NULL,
    read_models text[],
    upto bigint NOT NULL,
    stage1 integer NOT NULL,
    stage2 integer NOT NULL,
    status text DEFAULT 'running'::text NOT NULL,
    phase text DEFAULT 'events'::text NOT NULL,
    done bigint DEFAULT 0 NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    message text DEFAULT ''::text NOT NULL,
    started_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    phase_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT rebuilds_first_stage_check CHECK ((first_stage = ANY (ARRAY[1, 2]))),
    CONSTRAINT rebuilds_purpose_check CHECK ((purpose = ANY (ARRAY['replace'::text, 'compare'::text, 'as_of'::text]))),
    CONSTRAINT rebuilds_status_check CHECK ((status = ANY (ARRAY['running'::text, 'done'::text, 'failed'::text, 'dropped'::text])))
);
ALTER TABLE memctl.rebuilds ALTER COLUMN rebuild ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME memctl.rebuilds_rebuild_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE memctl.receipts (
    receipt uuid NOT NULL,
    space_id integer NOT NULL,
    scope jsonb NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    begun_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    finished_at timestamp with time zone,
    erased uuid[] DEFAULT '{}'::uuid[] NOT NULL,
    outcome jsonb DEFAULT '{}'::jsonb NOT NULL
);
CREATE TABLE memctl.reflections_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.regard_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.relations_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.resolutions_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.routes_g2 (
    space_id integer NOT NULL,
    source uuid NOT NULL,
    target text NOT NULL COLLATE pg_catalog."C",
    upstream text,
    upstream_key text
);
CREATE TABLE memctl.schema_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE memctl.sentiment_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.sessions_g1 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    stream text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.spaces (
    space_id integer NOT NULL,
    name text NOT NULL,
    has_tombstones boolean DEFAULT false NOT NULL
);
ALTER TABLE memctl.spaces ALTER COLUMN space_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME memctl.spaces_space_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE memctl.stats_g1 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    stream text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.tasks_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.tombstones (
    space_id integer NOT NULL,
    kind text NOT NULL,
    stream text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    value text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    since timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    until timestamp with time zone DEFAULT 'infinity'::timestamp with time zone NOT NULL,
    receipt uuid NOT NULL,
    CONSTRAINT tombstones_kind_check CHECK ((kind = ANY (ARRAY['event'::text, 'line'::text, 'call'::text, 'moment'::text, 'session'::text, 'location'::text, 'before'::text])))
);
CREATE TABLE memctl.tool_patterns_g1 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    stream text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.user_preferences_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.vector_points_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.verified_knowledge_g2 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
CREATE TABLE memctl.working_memory_g1 (
    space_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    stream text NOT NULL COLLATE pg_catalog."C",
    "row" jsonb NOT NULL
);
INSERT INTO memctl.bug_patterns_g2 VALUES
	(1, '3f44754dfbe906d5', '{"code": [], "files": [["tests/test_totals.py", 1772442045428000]], "causes": [["`float(discount)` turns the rate into a float, and a float cannot be multiplied with a Decimal.", 1772442078835000]], "frames": ["test_totals.py::test_total_with_discount"], "details": [{"at": 1772442078835000, "id": "d36f1fce-2021-5dc1-98c5-f562cf085bab", "edits": [{"path": "/home/dana/ledger/ledger/totals.py", "after": "    rate = 1 - Decimal(discount)", "before": "    rate = 1 - float(discount)"}], "command": "cd /home/dana/ledger && pytest -q", "explanation": "`float(discount)` turns the rate into a float, and a float cannot be multiplied with a Decimal. The rate has to stay a Decimal, so I parse the discount with Decimal and quantize with ROUND_HALF_UP."}], "example": {"at": 1772442045428000, "id": "f805d50b-ee90-5721-ae56-af857eb3e9fa", "text": "FAILED tests/test_totals.py::test_total_with_discount - TypeError: unsupported operand type(s) for *: ''float'' and ''decimal.Decimal''\n========================= 1 failed, 13 passed in 0.31s =========================", "tool": "Bash", "frames": ["test_totals.py::test_total_with_discount"], "command": "cd /home/dana/ledger && pytest -q", "message": "unsupported operand type(s) for *: ''float'' and ''decimal.Decimal''", "template": "unsupported operand type(s) for *: <q> and <q>", "error_types": ["test failure", "TypeError"]}, "message": "unsupported operand type(s) for *: ''float'' and ''decimal.Decimal''", "refuted": [], "related": [], "attempts": [{"at": 1772442078835000, "id": "d36f1fce-2021-5dc1-98c5-f562cf085bab", "files": ["/home/dana/ledger/ledger/totals.py"], "hunks": ["b2687aec"], "approach": "`float(discount)` turns the rate into a float, and a float cannot be multiplied with a Decimal (edited totals.py)"}], "commands": [["cd /home/dana/ledger && pytest -q", 1772442045428000]], "evidence": [{"at": 1772442078835000, "id": "d36f1fce-2021-5dc1-98c5-f562cf085bab", "span": {"end": 799, "event": "5bb5df77-cb6c-5de8-871f-97df79e6cf13", "start": 668, "quote_hash": "5171a79baed8fa4e"}}, {"at": 1772442045428000, "id": "f805d50b-ee90-5721-ae56-af857eb3e9fa", "span": {"end": 799, "event": "5bb5df77-cb6c-5de8-871f-97df79e6cf13", "start": 668, "quote_hash": "5171a79baed8fa4e"}}], "sessions": [["session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", 1772442078835000]], "template": "unsupported operand type(s) for *: <q> and <q>", "last_seen": 1772442078835000, "locations": [["/home/dana/ledger", 1772442078835000]], "signature": "3f44754dfbe906d5", "file_types": [["python", 1772442045428000]], "first_seen": 1772442045428000, "frameworks": [["pytest", 1772442045428000]], "error_types": ["test failure", "TypeError"], "occurrences": 1, "refutations": 0, "resolutions": 1, "last_resolved": 1772442078835000, "resolve_us_total": 33407000}');
INSERT INTO memctl.bug_sightings_g2 VALUES
	(1, '3f44754dfbe906d5:29', '{"code": [], "files": [["tests/test_totals.py", 1772442045428000]], "causes": [["`float(discount)` turns the rate into a float, and a float cannot be multiplied with a Decimal.", 1772442078835000]], "details": [{"at": 1772442078835000, "id": "d36f1fce-2021-5dc1-98c5-f562cf085bab", "edits": [{"path": "/home/dana/ledger/ledger/totals.py", "after": "    rate = 1 - Decimal(discount)", "before": "    rate = 1 - float(discount)"}], "command": "cd /home/dana/ledger && pytest -q", "explanation": "`float(discount)` turns the rate into a float, and a float cannot be multiplied with a Decimal. The rate has to stay a Decimal, so I parse the discount with Decimal and quantize with ROUND_HALF_UP."}], "example": {"at": 1772442045428000, "id": "f805d50b-ee90-5721-ae56-af857eb3e9fa", "text": "FAILED tests/test_totals.py::test_total_with_discount - TypeError: unsupported operand type(s) for *: ''float'' and ''decimal.Decimal''\n========================= 1 failed, 13 passed in 0.31s =========================", "tool": "Bash", "frames": ["test_totals.py::test_total_with_discount"], "command": "cd /home/dana/ledger && pytest -q", "message": "unsupported operand type(s) for *: ''float'' and ''decimal.Decimal''", "template": "unsupported operand type(s) for *: <q> and <q>", "error_types": ["test failure", "TypeError"]}, "refuted": [], "related": [], "attempts": [{"at": 1772442078835000, "id": "d36f1fce-2021-5dc1-98c5-f562cf085bab", "files": ["/home/dana/ledger/ledger/totals.py"], "hunks": ["b2687aec"], "approach": "`float(discount)` turns the rate into a float, and a float cannot be multiplied with a Decimal (edited totals.py)"}], "commands": [["cd /home/dana/ledger && pytest -q", 1772442045428000]], "evidence": [{"at": 1772442078835000, "id": "d36f1fce-2021-5dc1-98c5-f562cf085bab", "span": {"end": 799, "event": "5bb5df77-cb6c-5de8-871f-97df79e6cf13", "start": 668, "quote_hash": "5171a79baed8fa4e"}}, {"at": 1772442045428000, "id": "f805d50b-ee90-5721-ae56-af857eb3e9fa", "span": {"end": 799, "event": "5bb5df77-cb6c-5de8-871f-97df79e6cf13", "start": 668, "quote_hash": "5171a79baed8fa4e"}}], "sessions": [["session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", 1772442078835000]], "last_seen": 1772442078835000, "locations": [["/home/dana/ledger", 1772442078835000]], "signature": "3f44754dfbe906d5", "file_types": [["python", 1772442045428000]], "first_seen": 1772442045428000, "frameworks": [["pytest", 1772442045428000]], "occurrences": 1, "refutations": 0, "resolutions": 1, "last_resolved": 1772442078835000, "resolve_us_total": 33407000}');
INSERT INTO memctl.candidates_g2 VALUES
	(1, '52770c96-957c-5328-8709-53b7601b14d4', '{"id": "52770c96-957c-5328-8709-53b7601b14d4", "kind": "fact", "text": "In this project we always use Decimal for money, never float.", "tier": 4, "ready": true, "checks": [{"why": "", "name": "type", "passed": true}, {"why": "", "name": "evidence", "passed": true}, {"why": "", "name": "length", "passed": true}, {"why": "", "name": "noise", "passed": true}, {"why": "", "name": "standing", "passed": true}], "insight": {"id": "52770c96-957c-5328-8709-53b7601b14d4", "best": {"at": 1772442030666000, "id": "6fe99994-6e27-5f22-8d3d-39592744d3c9", "rule": "in this repo", "span": {"end": 170, "event": "f9498a01-8c6f-55ff-9d92-df5d08a5b963", "start": 109, "quote_hash": "51aea18fa49535ac"}, "text": "In this project we always use Decimal for money, never float.", "tier": 4, "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "said_by": "user", "subject": "always use decimal for money never float", "confidence": 0.8}, "kind": "fact", "text": "In this project we always use Decimal for money, never float.", "tier": 4, "files": [], "denials": [], "said_by": "user", "sayings": 1, "subject": "always use decimal for money never float", "evidence": [{"at": 1772442030666000, "id": "6fe99994-6e27-5f22-8d3d-39592744d3c9", "rule": "in this repo", "span": {"end": 170, "event": "f9498a01-8c6f-55ff-9d92-df5d08a5b963", "start": 109, "quote_hash": "51aea18fa49535ac"}, "text": "In this project we always use Decimal for money, never float.", "tier": 4, "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "said_by": "user", "subject": "always use decimal for money never float", "confidence": 0.8}], "location": "/home/dana/ledger", "polarity": 0, "sessions": [["session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", 1772442030666000]], "canonical": "always use decimal for money never float", "last_seen": 1772442030666000, "locations": [["/home/dana/ledger", 1772442030666000]], "strongest": 0.8, "confidence": 0.8, "everywhere": false, "first_seen": 1772442030666000}, "missing": [], "said_by": "user", "subject": "always use decimal for money never float", "warrant": "said by the user", "evidence": [{"at": 1772442030666000, "id": "6fe99994-6e27-5f22-8d3d-39592744d3c9", "rule": "in this repo", "span": {"end": 170, "event": "f9498a01-8c6f-55ff-9d92-df5d08a5b963", "start": 109, "quote_hash": "51aea18fa49535ac"}, "text": "In this project we always use Decimal for money, never float.", "tier": 4, "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "said_by": "user", "subject": "always use decimal for money never float", "confidence": 0.8}], "location": "/home/dana/ledger", "polarity": 0, "sessions": 1, "verdicts": [], "canonical": "always use decimal for money never float", "last_seen": 1772442030666000, "confidence": 0.8, "everywhere": false, "first_seen": 1772442030666000}'),
	(1, '0174efba-4e9c-5f4f-b9aa-97e6eed80125', '{"id": "0174efba-4e9c-5f4f-b9aa-97e6eed80125", "kind": "pattern", "text": "Commit messages are plain sentences, without a type in front (no `feat:`, `fix:`)", "tier": 2, "ready": false, "checks": [{"why": "", "name": "type", "passed": true}, {"why": "", "name": "evidence", "passed": true}, {"why": "", "name": "length", "passed": true}, {"why": "", "name": "noise", "passed": true}, {"why": "", "name": "standing", "passed": true}], "insight": {"id": "0174efba-4e9c-5f4f-b9aa-97e6eed80125", "best": {"at": 1772442087560000, "id": "a3b1a0a7-29cd-58af-aa4c-20c3f7dbd77f", "rule": "shown", "span": {"end": 72, "event": "85b6c781-590a-54de-9c65-e61891af2220", "field": "input.command", "start": 40, "quote_hash": "1fea7936c10eff53"}, "text": "Commit messages are plain sentences, without a type in front (no `feat:`, `fix:`)", "tier": 2, "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "said_by": "tool", "subject": "commit messages are plain sentences without a type in front no feat fix", "confidence": 0.7}, "kind": "pattern", "text": "Commit messages are plain sentences, without a type in front (no `feat:`, `fix:`)", "tier": 2, "files": [], "denials": [], "said_by": "tool", "sayings": 1, "subject": "commit messages are plain sentences without a type in front no feat fix", "evidence": [{"at": 1772442087560000, "id": "a3b1a0a7-29cd-58af-aa4c-20c3f7dbd77f", "rule": "shown", "span": {"end": 72, "event": "85b6c781-590a-54de-9c65-e61891af2220", "field": "input.command", "start": 40, "quote_hash": "1fea7936c10eff53"}, "text": "Commit messages are plain sentences, without a type in front (no `feat:`, `fix:`)", "tier": 2, "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "said_by": "tool", "subject": "commit messages are plain sentences without a type in front no feat fix", "confidence": 0.7}], "location": "/home/dana/ledger", "polarity": 0, "sessions": [["session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", 1772442087560000]], "canonical": "commit messages are plain sentences without a type in front no feat fix", "last_seen": 1772442087560000, "locations": [["/home/dana/ledger", 1772442087560000]], "strongest": 0.7, "confidence": 0.7, "everywhere": false, "first_seen": 1772442087560000}, "missing": ["one of: the user says so, 2 more sessions, a person confirms it, a judge at 0.8 or more"], "said_by": "tool", "subject": "commit messages are plain sentences without a type in front no feat fix", "warrant": "", "evidence": [{"at": 1772442087560000, "id": "a3b1a0a7-29cd-58af-aa4c-20c3f7dbd77f", "rule": "shown", "span": {"end": 72, "event": "85b6c781-590a-54de-9c65-e61891af2220", "field": "input.command", "start": 40, "quote_hash": "1fea7936c10eff53"}, "text": "Commit messages are plain sentences, without a type in front (no `feat:`, `fix:`)", "tier": 2, "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "said_by": "tool", "subject": "commit messages are plain sentences without a type in front no feat fix", "confidence": 0.7}], "location": "/home/dana/ledger", "polarity": 0, "sessions": 1, "verdicts": [], "canonical": "commit messages are plain sentences without a type in front no feat fix", "last_seen": 1772442087560000, "confidence": 0.7, "everywhere": false, "first_seen": 1772442087560000}'),
	(1, 'f1debc99-8851-5b54-855d-80994948d760', '{"id": "f1debc99-8851-5b54-855d-80994948d760", "kind": "pattern", "text": "Commit messages follow Conventional Commits (`feat: …`, `fix(scope): …`)", "tier": 0, "ready": false, "checks": [{"why": "", "name": "type", "passed": true}, {"why": "no quote with its hash stands behind it", "name": "evidence", "passed": false}, {"why": "", "name": "length", "passed": true}, {"why": "", "name": "noise", "passed": true}, {"why": "", "name": "standing", "passed": true}], "insight": {"id": "f1debc99-8851-5b54-855d-80994948d760", "best": null, "kind": "pattern", "text": "Commit messages follow Conventional Commits (`feat: …`, `fix(scope): …`)", "tier": 0, "files": [], "denials": [["session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", 1772442087560000]], "said_by": "", "sayings": 0, "subject": "commit messages follow conventional commits feat fix scope", "evidence": [], "location": "/home/dana/ledger", "polarity": 0, "sessions": [], "canonical": "commit messages follow conventional commits feat fix scope", "last_seen": 1772442087560000, "locations": [], "strongest": 0.0, "confidence": 0.0, "everywhere": false, "first_seen": 1772442087560000}, "missing": ["no quote with its hash stands behind it", "one of: the user says so, 4 more sessions, a person confirms it, a judge at 0.8 or more"], "said_by": "", "subject": "commit messages follow conventional commits feat fix scope", "warrant": "", "evidence": [], "location": "/home/dana/ledger", "polarity": 0, "sessions": 0, "verdicts": [], "canonical": "commit messages follow conventional commits feat fix scope", "last_seen": 1772442087560000, "confidence": 0.0, "everywhere": false, "first_seen": 1772442087560000}');
INSERT INTO memctl.episodes_g1 VALUES
	(1, 'd1a0bc64-c106-5c65-aef0-94e523eae985', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', '{"id": "d1a0bc64-c106-5c65-aef0-94e523eae985", "why": "the user was content", "task": "d20c790829b22ac1", "agent": "claude-code", "files": ["/home/dana/ledger/ledger/totals.py"], "steps": 5, "tools": [{"tool": "Bash", "uses": 3, "failures": 1}, {"tool": "Edit", "uses": 1}, {"tool": "Read", "uses": 1}], "answer": "You''re welcome.", "closed": true, "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "tokens": 10362, "gotchas": ["unsupported operand type(s) for *: ''float'' and ''decimal.Decimal'' → `float(discount)` turns the rate into a float, and a float cannot be multiplied with a Decimal."], "outcome": "success", "patches": [{"path": "/home/dana/ledger/ledger/totals.py", "added": 1, "edits": 1, "removed": 1, "description": "1 edit"}], "problem": "unsupported operand type(s) for *: ''float'' and ''decimal.Decimal''", "ended_at": 1772442159945000, "feedback": "positive", "location": "/home/dana/ledger", "resolved": ["3f44754dfbe906d5"], "solution": "Keep the discount rate a Decimal", "canonical": "invoice totals are off by a cent for some customers please find out why the rounding test fails and fix it", "task_type": "bugfix", "complexity": 0.092, "session_id": "00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "signatures": ["3f44754dfbe906d5"], "started_at": 1772442030666000, "description": "Invoice totals are off by a cent for some customers. Please find out why the rounding test fails and fix it.", "duration_us": 129279000, "error_types": ["test failure", "TypeError"], "lines_added": 1, "tests_passed": true, "lines_removed": 1, "stack_signature": "3f44754dfbe906d5"}'),
	(1, '31418cee-fa57-5a85-bb5c-694288b94645', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', '{"id": "31418cee-fa57-5a85-bb5c-694288b94645", "why": "1 file changed; no test, commit or word of the user tells how it went", "task": "930ac8b0a1fab792", "agent": "claude-code", "files": ["/home/dana/ledger/ledger/export.py"], "steps": 1, "tools": [{"tool": "Write", "uses": 1}], "answer": "I''ll write the export with the csv module and format amounts with two decimals.", "closed": false, "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "tokens": 2750, "outcome": "unknown", "patches": [{"path": "/home/dana/ledger/ledger/export.py", "added": 8, "edits": 1, "created": true, "description": "created: export"}], "symbols": ["export"], "ended_at": 1772442294623000, "location": "/home/dana/ledger", "canonical": "next task add a csv export of the monthly totals to ledger/export.py with a test", "task_type": "feature", "complexity": 0.033, "session_id": "00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "started_at": 1772442279813000, "description": "Next task: add a CSV export of the monthly totals to ledger/export.py, with a test.", "duration_us": 14810000, "lines_added": 8}');
INSERT INTO memctl.events OVERRIDING SYSTEM VALUE VALUES
	(1, 'f9498a01-8c6f-55ff-9d92-df5d08a5b963', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'prompt.submitted', 1, '2026-03-02 09:00:30.666+00', '2026-11-22 11:37:59.616871+00', 'user', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-6513270e-269e-4d37-b2a7-4de452e6b438:0', NULL, NULL, '\xc9fdf08b7c094b0489f5c676cd1525cb', '\xc7f40ad58777cd44b46d994214cf49846fa8f3686a84d07e382380a76f1eb616', '{"line": "0000-6513270e-269e-4d37-b2a7-4de452e6b438", "text": "Invoice totals are off by a cent for some customers. Please find out why the rounding test fails and fix it. In this project we always use Decimal for money, never float.", "branch": "fix/rounding", "agent_version": "2.1.0"}'),
	(2, '434632ab-3d39-5c49-8049-81a4e419efce', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'response.received', 1, '2026-03-02 09:00:36.096+00', '2026-11-22 11:37:59.617305+00', 'agent', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-892f902b-d23f-4824-928b-2f330c5c7fd0:0', NULL, NULL, '\xebeb1003a7389f57d2139ef670355ab9', '\x1cd9c697418a140e4bf2d34645b9dfa34f76f6c7d9a4be27a1e5b45e0c7e278b', '{"line": "0000-892f902b-d23f-4824-928b-2f330c5c7fd0", "text": "I''ll run the tests first to see how it fails.", "model": "claude-sonnet-4-5", "branch": "fix/rounding", "parent": "0000-6513270e-269e-4d37-b2a7-4de452e6b438", "message": "msg_ex001", "tokens_in": 940, "tokens_out": 61, "agent_version": "2.1.0"}'),
	(3, '9a9d3e9c-8cfc-5776-9d9d-f2363e23fd59', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'tool.called', 1, '2026-03-02 09:00:41.519+00', '2026-11-22 11:37:59.61735+00', 'agent', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-e8e25d94-0ed9-4475-9531-985d5d9dc9f8:0', NULL, NULL, '\x0fe80213d18041b3b3c0990cf084e843', '\x9655b6eb74ebfdc9d3afb63691fa6236db92a3134315cbdc93f43f5f4a5fb933', '{"call": "toolu_0ex002", "line": "0000-e8e25d94-0ed9-4475-9531-985d5d9dc9f8", "tool": "Bash", "input": {"command": "cd /home/dana/ledger && pytest -q", "description": "Run the tests"}, "model": "claude-sonnet-4-5", "branch": "fix/rounding", "parent": "0000-892f902b-d23f-4824-928b-2f330c5c7fd0", "message": "msg_ex002", "tokens_in": 980, "tokens_out": 40, "agent_version": "2.1.0"}'),
	(4, '5bb5df77-cb6c-5de8-871f-97df79e6cf13', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'tool.failed', 1, '2026-03-02 09:00:45.428+00', '2026-11-22 11:37:59.617388+00', 'tool', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-6f03675a-1600-435a-8999-50d836f675cc:0', NULL, NULL, '\x92c63d1f4d2d0d2a2ebebaeabcb5fb84', '\x885fd217c194a8934f25e44a9066b9fd5d04f0f1a333009c24a303b7c2581fa0', '{"call": "toolu_0ex002", "line": "0000-6f03675a-1600-435a-8999-50d836f675cc", "text": "Exit code 1\n============================= test session starts ==============================\ncollected 14 items\n\ntests/test_totals.py .F............                                      [100%]\n\n=================================== FAILURES ===================================\n____________________________ test_total_with_discount __________________________\n\n    def test_total_with_discount():\n>       assert total([line(\"19.99\", 3)], discount=\"0.15\") == Decimal(\"50.97\")\nE       TypeError: unsupported operand type(s) for *: ''float'' and ''decimal.Decimal''\n\nledger/totals.py:18: TypeError\n=========================== short test summary info ============================\nFAILED tests/test_totals.py::test_total_with_discount - TypeError: unsupported operand type(s) for *: ''float'' and ''decimal.Decimal''\n========================= 1 failed, 13 passed in 0.31s =========================", "branch": "fix/rounding", "parent": "0000-e8e25d94-0ed9-4475-9531-985d5d9dc9f8", "exit_code": 1, "agent_version": "2.1.0"}'),
	(5, '5ca109a1-b0e7-5cb3-8f92-2001f19667c0', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'tool.called', 1, '2026-03-02 09:00:50.434+00', '2026-11-22 11:37:59.617438+00', 'agent', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-8d116ece-1738-47d9-bd9c-172411e20b8f:0', NULL, NULL, '\x33ae66f4d568bfd55b517f1abe0c7423', '\x04618cf83a674fab13e200fc54e15c1b58c789008a53e398f5a55a8514e73e3b', '{"call": "toolu_0ex003", "line": "0000-8d116ece-1738-47d9-bd9c-172411e20b8f", "tool": "Read", "input": {"file_path": "/home/dana/ledger/ledger/totals.py"}, "model": "claude-sonnet-4-5", "branch": "fix/rounding", "parent": "0000-6f03675a-1600-435a-8999-50d836f675cc", "message": "msg_ex003", "tokens_in": 1020, "tokens_out": 40, "agent_version": "2.1.0"}'),
	(6, '79b9a5b4-6e07-5b9d-ba84-c8e417845b30', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'tool.returned', 1, '2026-03-02 09:00:54.97+00', '2026-11-22 11:37:59.617463+00', 'tool', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-1fb17c23-90c1-42cf-93ac-94af0f21ddb6:0', NULL, NULL, '\x65c33818610f8d32740923a2aae3a58a', '\x17eba65691446011f5266961f3667e3787ad093dd8bee8269365277055182df7', '{"call": "toolu_0ex003", "line": "0000-1fb17c23-90c1-42cf-93ac-94af0f21ddb6", "text": "    12→def total(lines, discount=\"0\"):\n    13→    amount = sum(line.price * line.count for line in lines)\n    14→    rate = 1 - float(discount)\n    18→    return (rate * amount).quantize(CENT)", "branch": "fix/rounding", "parent": "0000-8d116ece-1738-47d9-bd9c-172411e20b8f", "agent_version": "2.1.0"}'),
	(7, 'b571703d-d515-5108-90fc-c37a56d95eb6', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'response.received', 1, '2026-03-02 09:01:00.97+00', '2026-11-22 11:37:59.617486+00', 'agent', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-953f48f1-a09f-46b5-a170-b33839263059:0', NULL, NULL, '\x0f96612fd57976f62033eaf75d4268c9', '\x858aa68beae69dae3a6c277e167baa0291b3588825d85bf61b88e7bd99d45ded', '{"line": "0000-953f48f1-a09f-46b5-a170-b33839263059", "text": "The cause: `float(discount)` turns the rate into a float, and a float cannot be multiplied with a Decimal. The rate has to stay a Decimal, so I parse the discount with Decimal and quantize with ROUND_HALF_UP.", "model": "claude-sonnet-4-5", "branch": "fix/rounding", "parent": "0000-1fb17c23-90c1-42cf-93ac-94af0f21ddb6", "message": "msg_ex004", "tokens_in": 1060, "tokens_out": 64, "agent_version": "2.1.0"}'),
	(8, '0c516f15-687f-53bc-ad17-964bfcd08c48', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'tool.called', 1, '2026-03-02 09:01:05.05+00', '2026-11-22 11:37:59.617512+00', 'agent', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-658cda14-95e6-4af5-93bd-04cf0fd630f1:0', NULL, NULL, '\xe2bf2f143d48e0e2387d0083c8e1ce8e', '\x3d259171ff67d1e83495b0168847680f6366cfbd0c54eb0997c3cb5cc9cb2b81', '{"call": "toolu_0ex005", "line": "0000-658cda14-95e6-4af5-93bd-04cf0fd630f1", "tool": "Edit", "input": {"file_path": "/home/dana/ledger/ledger/totals.py", "new_string": "    rate = 1 - Decimal(discount)\n", "old_string": "    rate = 1 - float(discount)\n"}, "model": "claude-sonnet-4-5", "branch": "fix/rounding", "parent": "0000-953f48f1-a09f-46b5-a170-b33839263059", "message": "msg_ex005", "tokens_in": 1100, "tokens_out": 40, "agent_version": "2.1.0"}'),
	(9, '9ddfd92c-82f1-5e64-bc56-2e6defff6841', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'tool.returned', 1, '2026-03-02 09:01:09.879+00', '2026-11-22 11:37:59.617543+00', 'tool', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-8e81973e-0bec-47b0-b898-d190f9ebdacc:0', NULL, NULL, '\xdc8785e7b6509f78429bb817860f5a74', '\x280ddee52b3c75485247504781aff71ca226c7de3945630acae367f809581fda', '{"call": "toolu_0ex005", "file": "/home/dana/ledger/ledger/totals.py", "line": "0000-8e81973e-0bec-47b0-b898-d190f9ebdacc", "text": "The file /home/dana/ledger/ledger/totals.py has been updated.", "patch": [{"lines": ["-    rate = 1 - float(discount)", "+    rate = 1 - Decimal(discount)"], "new_start": 14, "old_start": 14}], "branch": "fix/rounding", "parent": "0000-658cda14-95e6-4af5-93bd-04cf0fd630f1", "agent_version": "2.1.0"}'),
	(10, 'cc893b8d-8bac-54c2-852a-e58a3f5696ba', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'tool.called', 1, '2026-03-02 09:01:14.553+00', '2026-11-22 11:37:59.61757+00', 'agent', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-24ede6a4-6b4c-4242-8a23-d5962217bead:0', NULL, NULL, '\xc6bd160d471d76180eb87c22c3d173d2', '\x6775924a7c1a6a52a4f9067849ef3c8d31d64c2e8412fd84bb061b9c8c4e9107', '{"call": "toolu_0ex006", "line": "0000-24ede6a4-6b4c-4242-8a23-d5962217bead", "tool": "Bash", "input": {"command": "cd /home/dana/ledger && pytest -q", "description": "Run the tests again"}, "model": "claude-sonnet-4-5", "branch": "fix/rounding", "parent": "0000-8e81973e-0bec-47b0-b898-d190f9ebdacc", "message": "msg_ex006", "tokens_in": 1140, "tokens_out": 40, "agent_version": "2.1.0"}'),
	(11, 'c73b52c0-0092-5f0c-b218-fedb96fe77bb', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'tool.returned', 1, '2026-03-02 09:01:18.835+00', '2026-11-22 11:37:59.632058+00', 'tool', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-8f6d0558-4ef8-4a38-9227-66581e27a1c0:0', NULL, NULL, '\x27f15efc9d6e18b28230db35b9354adb', '\x0cccd43e217d9cf714b127ee8dfb3d7c0efb471fb66572d2b234d12b6db6682d', '{"call": "toolu_0ex006", "line": "0000-8f6d0558-4ef8-4a38-9227-66581e27a1c0", "text": "14 passed in 0.28s", "branch": "fix/rounding", "parent": "0000-24ede6a4-6b4c-4242-8a23-d5962217bead", "agent_version": "2.1.0"}'),
	(12, '85b6c781-590a-54de-9c65-e61891af2220', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'tool.called', 1, '2026-03-02 09:01:23.584+00', '2026-11-22 11:37:59.632116+00', 'agent', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-94e3bf91-1a61-4be2-ae44-158bae97ba94:0', NULL, NULL, '\x186d3e6ee0f578fefe13fdc309c2dd74', '\x0fb14ea6c5f509a38a08b4179ca767b81ad3035b5b82d70ca9f7e7e658dae8ef', '{"call": "toolu_0ex007", "line": "0000-94e3bf91-1a61-4be2-ae44-158bae97ba94", "tool": "Bash", "input": {"command": "cd /home/dana/ledger && git commit -am ''Keep the discount rate a Decimal''", "description": "Commit"}, "model": "claude-sonnet-4-5", "branch": "fix/rounding", "parent": "0000-8f6d0558-4ef8-4a38-9227-66581e27a1c0", "message": "msg_ex007", "tokens_in": 1180, "tokens_out": 40, "agent_version": "2.1.0"}'),
	(13, 'c5e9aa1d-0cb1-5e6b-9847-b8d5f30e9991', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'tool.returned', 1, '2026-03-02 09:01:27.56+00', '2026-11-22 11:37:59.632141+00', 'tool', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-18f135d2-5f55-4203-b018-50c5a38fd547:0', NULL, NULL, '\x94077961fa383af1aac6a1782be19063', '\xa49d2ce1e97aa59ccce7de1fecbe251cb28f5dba2c23049427af5567bb2ec534', '{"call": "toolu_0ex007", "line": "0000-18f135d2-5f55-4203-b018-50c5a38fd547", "text": "[fix/rounding 4be1f0a] Keep the discount rate a Decimal\n 1 file changed, 1 insertion(+), 1 deletion(-)", "branch": "fix/rounding", "parent": "0000-94e3bf91-1a61-4be2-ae44-158bae97ba94", "agent_version": "2.1.0"}'),
	(14, '6314f698-1ce8-58b4-adfd-17013bbe1a23', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'response.received', 1, '2026-03-02 09:01:33.633+00', '2026-11-22 11:37:59.632162+00', 'agent', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-0f4205b4-907a-40c3-9012-f037b64ce422:0', NULL, NULL, '\xf019ad2b6a0892ba43a73457585fe71b', '\x1d77a4906ea73b4d8bc845b9d1e445a71c6a7f298090d3f408bbea0d285538e2', '{"line": "0000-0f4205b4-907a-40c3-9012-f037b64ce422", "text": "Fixed: the discount rate stays a Decimal from parsing to quantizing, all 14 tests pass, and the change is committed.", "model": "claude-sonnet-4-5", "branch": "fix/rounding", "parent": "0000-18f135d2-5f55-4203-b018-50c5a38fd547", "message": "msg_ex008", "tokens_in": 1220, "tokens_out": 68, "agent_version": "2.1.0"}'),
	(15, '73846fee-0bbe-5cf2-9e1a-8e17ba0c2014', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'prompt.submitted', 1, '2026-03-02 09:02:33.437+00', '2026-11-22 11:37:59.632181+00', 'user', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-881ed162-ae2e-4154-bf15-052434b9b5df:0', NULL, NULL, '\xa2981b6085572e676cd649e37b1d5764', '\xc98b85b628dd2f9a43961ee98c27f39d051ed33f7cd7ea8da8bf7bec3b859f3d', '{"line": "0000-881ed162-ae2e-4154-bf15-052434b9b5df", "text": "Thanks, that works!", "branch": "fix/rounding", "parent": "0000-0f4205b4-907a-40c3-9012-f037b64ce422", "agent_version": "2.1.0"}'),
	(16, 'e119cab1-383f-59e5-bbae-3554f4587a96', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'response.received', 1, '2026-03-02 09:02:39.945+00', '2026-11-22 11:37:59.632203+00', 'agent', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-95e761d1-7731-4f10-906b-f2efc6f87718:0', NULL, NULL, '\xd89575a779defb3e4fe4ebf8d7cdae12', '\x05975321aa6545a395c62e0b1f60566e3f5a44ad39afa7ce981bbb82feaa6770', '{"line": "0000-95e761d1-7731-4f10-906b-f2efc6f87718", "text": "You''re welcome.", "model": "claude-sonnet-4-5", "branch": "fix/rounding", "parent": "0000-881ed162-ae2e-4154-bf15-052434b9b5df", "message": "msg_ex009", "tokens_in": 1260, "tokens_out": 69, "agent_version": "2.1.0"}'),
	(17, 'd905dcf4-9e51-5fac-b0cb-bff59f3b4ae2', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'prompt.submitted', 1, '2026-03-02 09:04:39.813+00', '2026-11-22 11:37:59.632221+00', 'user', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-3f98e277-4cbd-47ad-9c90-a9587403e430:0', NULL, NULL, '\xc4e525025e14bc96abcccf4438490627', '\x81610008920fe0fd686166eafe307e335ff6bc52a28acb5633ff4f00ffa82b3b', '{"line": "0000-3f98e277-4cbd-47ad-9c90-a9587403e430", "text": "Next task: add a CSV export of the monthly totals to ledger/export.py, with a test.", "branch": "fix/rounding", "parent": "0000-95e761d1-7731-4f10-906b-f2efc6f87718", "agent_version": "2.1.0"}'),
	(18, '9e68baf2-3186-5faa-9c74-8cbd9aa9fc02', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'response.received', 1, '2026-03-02 09:04:45.083+00', '2026-11-22 11:37:59.63224+00', 'agent', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-3e7d1bfb-c7a2-4a20-b2f1-4c942e05319a:0', NULL, NULL, '\xbd67e3dd402c835e85b17b241c23f587', '\x4bc3a4fdca1d56a7edaea96263762bddb8730bc6330359a0369dee0c1aaf7e84', '{"line": "0000-3e7d1bfb-c7a2-4a20-b2f1-4c942e05319a", "text": "I''ll write the export with the csv module and format amounts with two decimals.", "model": "claude-sonnet-4-5", "branch": "fix/rounding", "parent": "0000-3f98e277-4cbd-47ad-9c90-a9587403e430", "message": "msg_ex010", "tokens_in": 1300, "tokens_out": 70, "agent_version": "2.1.0"}'),
	(19, '7c67d388-2c0c-5ced-aaa9-5d14158ed434', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'tool.called', 1, '2026-03-02 09:04:50.896+00', '2026-11-22 11:37:59.632261+00', 'agent', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-7ebff206-8673-4721-8cdd-2055930d6eaf:0', NULL, NULL, '\x32ffbc496d4f320ca01c95aaee1ec253', '\xb430e59dd1240acaec61fee4de38bf802ad48fed6d47deb05d5530f2ad500a3c', '{"call": "toolu_0ex011", "line": "0000-7ebff206-8673-4721-8cdd-2055930d6eaf", "tool": "Write", "input": {"content": "import csv\n\n\ndef export(rows, file):\n    writer = csv.writer(file)\n    writer.writerow([\"month\", \"total\"])\n    for month, amount in rows:\n        writer.writerow([month, f\"{amount:.2f}\"])\n", "file_path": "/home/dana/ledger/ledger/export.py"}, "model": "claude-sonnet-4-5", "branch": "fix/rounding", "parent": "0000-3e7d1bfb-c7a2-4a20-b2f1-4c942e05319a", "message": "msg_ex011", "tokens_in": 1340, "tokens_out": 40, "agent_version": "2.1.0"}'),
	(20, '68154f7c-83e4-5008-9b61-b1aa90fab2f5', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'tool.returned', 1, '2026-03-02 09:04:54.623+00', '2026-11-22 11:37:59.632287+00', 'tool', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-49b64a08-72e6-4c3a-babc-ed2057ee05cd:0', NULL, NULL, '\x1be4d1943fa7d4f16fb6d2266ddb022b', '\xc0542f97592881e5116c3a93641c89aa93fa4b5f60f6e2edc8cee56794d23b64', '{"call": "toolu_0ex011", "file": "/home/dana/ledger/ledger/export.py", "line": "0000-49b64a08-72e6-4c3a-babc-ed2057ee05cd", "text": "File created successfully at: /home/dana/ledger/ledger/export.py", "branch": "fix/rounding", "parent": "0000-7ebff206-8673-4721-8cdd-2055930d6eaf", "agent_version": "2.1.0"}'),
	(23, 'ac8ec445-9ee8-5ff5-acd0-314643465b02', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'prompt.submitted', 1, '2026-03-02 09:00:30.666+00', '2026-11-22 11:38:00.58666+00', 'user', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-6513270e-269e-4d37-b2a7-4de452e6b438:0#ac8ec445-9ee8-5ff5-acd0-314643465b02', 'f9498a01-8c6f-55ff-9d92-df5d08a5b963', NULL, '\x087322e2104fcfeaa01e525cccdea772', '\x3ee121c39968656cd6cc4f94961b7faf8f9b42754858a0977aa0cd925327c8c6', '{"line": "0000-6513270e-269e-4d37-b2a7-4de452e6b438", "text": "as told by another", "branch": "fix/rounding", "agent_version": "2.1.0"}'),
	(24, 'bdb7ef00-a6f0-56b4-9a74-2bc65858b150', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'tool.called', 1, '2026-03-02 09:04:59.428+00', '2026-11-22 11:38:00.599888+00', 'agent', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-830e07bc-1e39-4f10-92bd-4acefaecbd38:0', NULL, NULL, '\xaf380d33b64306f9356e7b285d581f7d', '\x71545e870b8accf175b5576f6d759da8cf753c26e3ef5cb96734c47907215e4f', '{"call": "toolu_0ex012", "line": "0000-830e07bc-1e39-4f10-92bd-4acefaecbd38", "tool": "Write", "input": {"content": "import io\nfrom decimal import Decimal\n\nfrom ledger.export import export\n\n\ndef test_export():\n    out = io.StringIO()\n    export([(\"2026-02\", Decimal(\"12.5\"))], out)\n    assert out.getvalue().splitlines() == [\"month,total\", \"2026-02,12.50\"]\n", "file_path": "/home/dana/ledger/tests/test_export.py"}, "model": "claude-sonnet-4-5", "branch": "fix/rounding", "parent": "0000-49b64a08-72e6-4c3a-babc-ed2057ee05cd", "message": "msg_ex012", "tokens_in": 1380, "tokens_out": 40, "agent_version": "2.1.0"}'),
	(25, '18c9012c-6bfb-59dd-9d4d-20e7270d04d3', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'tool.returned', 1, '2026-03-02 09:05:03.955+00', '2026-11-22 11:38:00.600042+00', 'tool', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-26e87555-5790-482e-81d3-fcff2a3af4d4:0', NULL, NULL, '\x787245ebe0639476a71bc393e92e6086', '\x7d2d5429553b361fe3d1e089ba02efdf4c8d06457f8f2bb548c94a001b75ffaf', '{"call": "toolu_0ex012", "file": "/home/dana/ledger/tests/test_export.py", "line": "0000-26e87555-5790-482e-81d3-fcff2a3af4d4", "text": "File created successfully at: /home/dana/ledger/tests/test_export.py", "branch": "fix/rounding", "parent": "0000-830e07bc-1e39-4f10-92bd-4acefaecbd38", "agent_version": "2.1.0"}'),
	(26, '703935b0-14d9-5b59-a973-5ee6e83e9b3f', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'tool.called', 1, '2026-03-02 09:05:08.684+00', '2026-11-22 11:38:00.600077+00', 'agent', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-f646e1f4-0a09-4c97-abf4-6c697d2caf82:0', NULL, NULL, '\xab8a3566a9a69ddd207352d99af71e32', '\xf48853b1353b21107578443e2fd180e3db9b8399c92e022f006516303e391fa9', '{"call": "toolu_0ex013", "line": "0000-f646e1f4-0a09-4c97-abf4-6c697d2caf82", "tool": "Bash", "input": {"command": "cd /home/dana/ledger/tests && pytest -q test_export.py", "description": "Run the new test"}, "model": "claude-sonnet-4-5", "branch": "fix/rounding", "parent": "0000-26e87555-5790-482e-81d3-fcff2a3af4d4", "message": "msg_ex013", "tokens_in": 1420, "tokens_out": 40, "agent_version": "2.1.0"}'),
	(27, 'edffe64b-dd83-52d4-980c-1692e1d1c2f0', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'tool.failed', 1, '2026-03-02 09:05:12.808+00', '2026-11-22 11:38:00.600103+00', 'tool', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-92b1d3f2-8ede-4d7a-83ba-ea9e13deef86:0', NULL, NULL, '\xbf73dc733849e407a2ab5b1b58b66fe1', '\x5dc151c038e38d21c0b5d121e50f06809231175f01d4ed99bb79009ce86622a1', '{"call": "toolu_0ex013", "line": "0000-92b1d3f2-8ede-4d7a-83ba-ea9e13deef86", "text": "Exit code 2\n==================================== ERRORS ====================================\n____________________ ERROR collecting tests/test_export.py _____________________\nImportError while importing test module ''/home/dana/ledger/tests/test_export.py''.\ntests/test_export.py:4: in <module>\n    from ledger.export import export\nE   ModuleNotFoundError: No module named ''ledger''\n=========================== short test summary info ============================\nERROR tests/test_export.py\n!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!", "branch": "fix/rounding", "parent": "0000-f646e1f4-0a09-4c97-abf4-6c697d2caf82", "exit_code": 2, "agent_version": "2.1.0"}'),
	(28, 'ef35658a-0349-595c-8192-540d8e5badfe', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'response.received', 1, '2026-03-02 09:05:18.711+00', '2026-11-22 11:38:00.600129+00', 'agent', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-57124242-5051-41cc-917f-9acae01f5057:0', NULL, NULL, '\x4366ca59c28ad7cfaf3dab285da91c97', '\xb1f84b7bd7732e757f407364d50f15ff5b7d813f7c8c14b4efe308197fb7f010', '{"line": "0000-57124242-5051-41cc-917f-9acae01f5057", "text": "The test was run from inside tests/, where the package is not importable. The project has no pythonpath setting, so I add one to pyproject.toml instead of relying on the working directory.", "model": "claude-sonnet-4-5", "branch": "fix/rounding", "parent": "0000-92b1d3f2-8ede-4d7a-83ba-ea9e13deef86", "message": "msg_ex014", "tokens_in": 1460, "tokens_out": 74, "agent_version": "2.1.0"}'),
	(29, 'c62209b5-ce91-5320-b403-28405f6b1ce8', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'tool.called', 1, '2026-03-02 09:05:23.816+00', '2026-11-22 11:38:00.600154+00', 'agent', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-9474031b-7f26-444b-9828-9fcd59a54a7b:0', NULL, NULL, '\x27b9115843ae6b28bad3ee2738af34c7', '\x3d2f40e1e9d106589e40c97a002cd1a2e217d42b023751a58239a04c56dfff6c', '{"call": "toolu_0ex015", "line": "0000-9474031b-7f26-444b-9828-9fcd59a54a7b", "tool": "Edit", "input": {"file_path": "/home/dana/ledger/pyproject.toml", "new_string": "[tool.pytest.ini_options]\npythonpath = [\".\"]\n", "old_string": "[tool.pytest.ini_options]\n"}, "model": "claude-sonnet-4-5", "branch": "fix/rounding", "parent": "0000-57124242-5051-41cc-917f-9acae01f5057", "message": "msg_ex015", "tokens_in": 1500, "tokens_out": 40, "agent_version": "2.1.0"}'),
	(30, 'b575a1b8-c834-5b9a-8ef7-53e2dc784126', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'tool.returned', 1, '2026-03-02 09:05:27.967+00', '2026-11-22 11:38:00.60018+00', 'tool', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-17f5e837-d708-40fe-919a-72d174c9df6a:0', NULL, NULL, '\x1268fa04177ad135c4af37ebd8eece00', '\x4f507d98ced1d4de6243545dcd13ab7c40d13c60799f2da44f7038bb2ad16d58', '{"call": "toolu_0ex015", "file": "/home/dana/ledger/pyproject.toml", "line": "0000-17f5e837-d708-40fe-919a-72d174c9df6a", "text": "The file /home/dana/ledger/pyproject.toml has been updated.", "patch": [{"lines": [" [tool.pytest.ini_options]", "+pythonpath = [\".\"]"], "new_start": 20, "old_start": 20}], "branch": "fix/rounding", "parent": "0000-9474031b-7f26-444b-9828-9fcd59a54a7b", "agent_version": "2.1.0"}'),
	(31, '3d1a3b1f-0107-5f26-bb54-15d8e21459cd', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'tool.called', 1, '2026-03-02 09:05:32.066+00', '2026-11-22 11:38:00.600205+00', 'agent', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-aa05e11a-b271-4945-b95e-8229451abd81:0', NULL, NULL, '\x77978d4709a17b15ae7d25ef0d7ed3ab', '\x1373f178fc42d4cbf52325a6fbfee36b8bf7f1c28b444bb0b0b524b7e7ff409e', '{"call": "toolu_0ex016", "line": "0000-aa05e11a-b271-4945-b95e-8229451abd81", "tool": "Bash", "input": {"command": "cd /home/dana/ledger/tests && pytest -q test_export.py", "description": "Run the new test again"}, "model": "claude-sonnet-4-5", "branch": "fix/rounding", "parent": "0000-17f5e837-d708-40fe-919a-72d174c9df6a", "message": "msg_ex016", "tokens_in": 1540, "tokens_out": 40, "agent_version": "2.1.0"}'),
	(32, 'f7eeed82-ef03-5654-a367-b6c652819dda', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'tool.returned', 1, '2026-03-02 09:05:36.662+00', '2026-11-22 11:38:00.600227+00', 'tool', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-4f426dcb-b394-4b36-bb2d-420f0f88080b:0', NULL, NULL, '\x21df96d52bd5db944a7359ccba06f71d', '\x443487f59659533420c042f3a62f7bf4880c2cf03ccd5e122610c04b6ce8e44c', '{"call": "toolu_0ex016", "line": "0000-4f426dcb-b394-4b36-bb2d-420f0f88080b", "text": "1 passed in 0.05s", "branch": "fix/rounding", "parent": "0000-aa05e11a-b271-4945-b95e-8229451abd81", "agent_version": "2.1.0"}'),
	(33, '1ecb419c-01e0-5b38-951d-52a1331f6139', 1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, 253, 'response.received', 1, '2026-03-02 09:05:42.456+00', '2026-11-22 11:38:00.600325+00', 'agent', '/home/dana/ledger', '00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', NULL, NULL, 'transcript:claude-code:00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01:0000-d269a9a5-ae65-4f33-be3b-890b93f448b3:0', NULL, NULL, '\x46d100d1aec2e8fcf277dc14ab0728a5', '\x9d00a21840da9ef8d497913b3da3c27b70fb51906fb81c2170f4c9e9c82f1696', '{"line": "0000-d269a9a5-ae65-4f33-be3b-890b93f448b3", "text": "The CSV export stands in ledger/export.py with a test; `pytest` now finds the package from any folder through pythonpath in pyproject.toml.", "model": "claude-sonnet-4-5", "branch": "fix/rounding", "parent": "0000-4f426dcb-b394-4b36-bb2d-420f0f88080b", "message": "msg_ex017", "tokens_in": 1580, "tokens_out": 77, "agent_version": "2.1.0"}');
INSERT INTO memctl.facts_g1 VALUES
	(1, 'ca9405aa-806c-59ee-a0ad-b1189d051a0b', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', 'place_seen', 20, '{"id": "ca9405aa-806c-59ee-a0ad-b1189d051a0b", "type": "place_seen", "place": "/home/dana/ledger", "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "evidence": [{"event": "f9498a01-8c6f-55ff-9d92-df5d08a5b963"}], "location": "/home/dana/ledger", "occurred_at": 1772442030666000}'),
	(1, '33aa3dd3-dd73-50e8-970a-feb9f5fc68e8', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', 'task_opened', 20, '{"id": "33aa3dd3-dd73-50e8-970a-feb9f5fc68e8", "task": "d20c790829b22ac1", "type": "task_opened", "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "evidence": [{"end": 170, "event": "f9498a01-8c6f-55ff-9d92-df5d08a5b963", "quote_hash": "008a03d0e5fb347a"}], "location": "/home/dana/ledger", "canonical": "invoice totals are off by a cent for some customers please find out why the rounding test fails and fix it", "task_type": "bugfix", "description": "Invoice totals are off by a cent for some customers. Please find out why the rounding test fails and fix it.", "occurred_at": 1772442030666000}'),
	(1, '6fe99994-6e27-5f22-8d3d-39592744d3c9', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', 'insight_found', 20, '{"id": "6fe99994-6e27-5f22-8d3d-39592744d3c9", "kind": "fact", "rule": "in this repo", "text": "In this project we always use Decimal for money, never float.", "type": "insight_found", "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "said_by": "user", "subject": "always use decimal for money never float", "evidence": [{"end": 170, "event": "f9498a01-8c6f-55ff-9d92-df5d08a5b963", "start": 109, "quote_hash": "51aea18fa49535ac"}], "location": "/home/dana/ledger", "canonical": "always use decimal for money never float", "confidence": 0.8, "occurred_at": 1772442030666000}'),
	(1, 'f805d50b-ee90-5721-ae56-af857eb3e9fa', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', 'error_occurred', 20, '{"id": "f805d50b-ee90-5721-ae56-af857eb3e9fa", "task": "d20c790829b22ac1", "text": "FAILED tests/test_totals.py::test_total_with_discount - TypeError: unsupported operand type(s) for *: ''float'' and ''decimal.Decimal''\n========================= 1 failed, 13 passed in 0.31s =========================", "tool": "Bash", "type": "error_occurred", "files": ["tests/test_totals.py"], "frames": ["test_totals.py::test_total_with_discount"], "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "command": "cd /home/dana/ledger && pytest -q", "message": "unsupported operand type(s) for *: ''float'' and ''decimal.Decimal''", "evidence": [{"end": 799, "event": "5bb5df77-cb6c-5de8-871f-97df79e6cf13", "start": 668, "quote_hash": "5171a79baed8fa4e"}], "location": "/home/dana/ledger", "template": "unsupported operand type(s) for *: <q> and <q>", "signature": "3f44754dfbe906d5", "error_types": ["test failure", "TypeError"], "occurred_at": 1772442045428000}'),
	(1, '7a4c967b-9bbc-5ee8-bc05-d60a14c77ec3', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', 'file_touched', 20, '{"id": "7a4c967b-9bbc-5ee8-bc05-d60a14c77ec3", "path": "/home/dana/ledger/ledger/totals.py", "type": "file_touched", "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "evidence": [{"end": 43, "event": "9ddfd92c-82f1-5e64-bc56-2e6defff6841", "start": 9, "quote_hash": "f89213d1edff7a87"}], "location": "/home/dana/ledger", "occurred_at": 1772442069879000}'),
	(1, 'd36f1fce-2021-5dc1-98c5-f562cf085bab', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', 'error_resolved', 20, '{"id": "d36f1fce-2021-5dc1-98c5-f562cf085bab", "task": "d20c790829b22ac1", "type": "error_resolved", "edits": [{"path": "/home/dana/ledger/ledger/totals.py", "after": "    rate = 1 - Decimal(discount)", "before": "    rate = 1 - float(discount)"}], "error": "f805d50b-ee90-5721-ae56-af857eb3e9fa", "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "command": "cd /home/dana/ledger && pytest -q", "approach": "`float(discount)` turns the rate into a float, and a float cannot be multiplied with a Decimal (edited totals.py)", "evidence": [{"end": 799, "event": "5bb5df77-cb6c-5de8-871f-97df79e6cf13", "start": 668, "quote_hash": "5171a79baed8fa4e"}, {"event": "c73b52c0-0092-5f0c-b218-fedb96fe77bb"}], "location": "/home/dana/ledger", "signature": "3f44754dfbe906d5", "duration_us": 33407000, "explanation": "`float(discount)` turns the rate into a float, and a float cannot be multiplied with a Decimal. The rate has to stay a Decimal, so I parse the discount with Decimal and quantize with ROUND_HALF_UP.", "occurred_at": 1772442078835000}'),
	(1, 'ba93aa82-e5d4-562e-a576-c63d9854e37f', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', 'insight_found', 20, '{"id": "ba93aa82-e5d4-562e-a576-c63d9854e37f", "kind": "pattern", "rule": "shown", "text": "Commit messages follow Conventional Commits (`feat: …`, `fix(scope): …`)", "type": "insight_found", "denied": true, "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "said_by": "tool", "subject": "commit messages follow conventional commits feat fix scope", "evidence": [{"end": 72, "event": "85b6c781-590a-54de-9c65-e61891af2220", "field": "input.command", "start": 40, "quote_hash": "1fea7936c10eff53"}], "location": "/home/dana/ledger", "canonical": "commit messages follow conventional commits feat fix scope", "confidence": 0.7, "occurred_at": 1772442087560000}'),
	(1, 'a3b1a0a7-29cd-58af-aa4c-20c3f7dbd77f', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', 'insight_found', 20, '{"id": "a3b1a0a7-29cd-58af-aa4c-20c3f7dbd77f", "kind": "pattern", "rule": "shown", "text": "Commit messages are plain sentences, without a type in front (no `feat:`, `fix:`)", "type": "insight_found", "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "said_by": "tool", "subject": "commit messages are plain sentences without a type in front no feat fix", "evidence": [{"end": 72, "event": "85b6c781-590a-54de-9c65-e61891af2220", "field": "input.command", "start": 40, "quote_hash": "1fea7936c10eff53"}], "location": "/home/dana/ledger", "canonical": "commit messages are plain sentences without a type in front no feat fix", "confidence": 0.7, "occurred_at": 1772442087560000}'),
	(1, 'c66edb52-a11a-554b-a6d3-32e1667d1e6a', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', 'turn', 20, '{"id": "c66edb52-a11a-554b-a6d3-32e1667d1e6a", "task": "d20c790829b22ac1", "type": "turn", "files": ["/home/dana/ledger/ledger/totals.py"], "answer": "Fixed: the discount rate stays a Decimal from parsing to quantizing, all 14 tests pass, and the change is committed.", "prompt": "Invoice totals are off by a cent for some customers. Please find out why the rounding test fails and fix it. In this project we always use Decimal for money, never float.", "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "evidence": [{"end": 170, "event": "f9498a01-8c6f-55ff-9d92-df5d08a5b963", "quote_hash": "008a03d0e5fb347a"}, {"end": 116, "event": "6314f698-1ce8-58b4-adfd-17013bbe1a23", "quote_hash": "cd964337db6fab37"}], "location": "/home/dana/ledger", "prompt_id": "81020712-6777-5a03-a299-34b0ab04843d", "occurred_at": 1772442030666000}'),
	(1, 'd18c748a-6e41-54d8-a1be-9c4f4b8d9529', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', 'mood_shown', 20, '{"id": "d18c748a-6e41-54d8-a1be-9c4f4b8d9529", "type": "mood_shown", "score": 0.4, "words": "Thanks, that works!", "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "evidence": [{"end": 19, "event": "73846fee-0bbe-5cf2-9e1a-8e17ba0c2014", "quote_hash": "20a0a6f6778575c8"}], "location": "/home/dana/ledger", "occurred_at": 1772442153437000}'),
	(1, '328092ae-4f04-54cc-80f0-b3d75b8afc71', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', 'turn', 20, '{"id": "328092ae-4f04-54cc-80f0-b3d75b8afc71", "task": "d20c790829b22ac1", "type": "turn", "answer": "You''re welcome.", "before": "c66edb52-a11a-554b-a6d3-32e1667d1e6a", "prompt": "Thanks, that works!", "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "evidence": [{"end": 19, "event": "73846fee-0bbe-5cf2-9e1a-8e17ba0c2014", "quote_hash": "20a0a6f6778575c8"}, {"end": 15, "event": "e119cab1-383f-59e5-bbae-3554f4587a96", "quote_hash": "124eb273f9a0a470"}], "location": "/home/dana/ledger", "prompt_id": "3c04327c-6bc6-59b1-b857-59991e370210", "occurred_at": 1772442153437000}'),
	(1, 'd1a0bc64-c106-5c65-aef0-94e523eae985', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', 'episode', 20, '{"id": "d1a0bc64-c106-5c65-aef0-94e523eae985", "why": "the user was content", "task": "d20c790829b22ac1", "type": "episode", "files": ["/home/dana/ledger/ledger/totals.py"], "steps": 5, "tools": [{"tool": "Bash", "uses": 3, "failures": 1}, {"tool": "Edit", "uses": 1}, {"tool": "Read", "uses": 1}], "answer": "You''re welcome.", "closed": true, "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "tokens": 10362, "gotchas": ["unsupported operand type(s) for *: ''float'' and ''decimal.Decimal'' → `float(discount)` turns the rate into a float, and a float cannot be multiplied with a Decimal."], "outcome": "success", "patches": [{"path": "/home/dana/ledger/ledger/totals.py", "added": 1, "edits": 1, "removed": 1, "description": "1 edit"}], "problem": "unsupported operand type(s) for *: ''float'' and ''decimal.Decimal''", "ended_at": 1772442159945000, "evidence": [{"end": 170, "event": "f9498a01-8c6f-55ff-9d92-df5d08a5b963", "quote_hash": "008a03d0e5fb347a"}, {"end": 15, "event": "e119cab1-383f-59e5-bbae-3554f4587a96", "quote_hash": "124eb273f9a0a470"}], "feedback": "positive", "location": "/home/dana/ledger", "resolved": ["3f44754dfbe906d5"], "solution": "Keep the discount rate a Decimal", "canonical": "invoice totals are off by a cent for some customers please find out why the rounding test fails and fix it", "task_type": "bugfix", "complexity": 0.092, "signatures": ["3f44754dfbe906d5"], "description": "Invoice totals are off by a cent for some customers. Please find out why the rounding test fails and fix it.", "error_types": ["test failure", "TypeError"], "lines_added": 1, "occurred_at": 1772442030666000, "tests_passed": true, "lines_removed": 1}'),
	(1, 'b9085ddb-a274-54f6-a834-1b568c56b456', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', 'task_closed', 20, '{"by": "next_prompt", "id": "b9085ddb-a274-54f6-a834-1b568c56b456", "task": "d20c790829b22ac1", "type": "task_closed", "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "outcome": "success", "evidence": [{"event": "d905dcf4-9e51-5fac-b0cb-bff59f3b4ae2"}], "location": "/home/dana/ledger", "canonical": "invoice totals are off by a cent for some customers please find out why the rounding test fails and fix it", "occurred_at": 1772442279813000}'),
	(1, '1bf9ab58-3d41-5e64-b37b-404f27a5e16f', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', 'task_opened', 20, '{"id": "1bf9ab58-3d41-5e64-b37b-404f27a5e16f", "task": "930ac8b0a1fab792", "type": "task_opened", "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "evidence": [{"end": 83, "event": "d905dcf4-9e51-5fac-b0cb-bff59f3b4ae2", "quote_hash": "63ebd682fd53364d"}], "location": "/home/dana/ledger", "canonical": "next task add a csv export of the monthly totals to ledger/export.py with a test", "task_type": "feature", "description": "Next task: add a CSV export of the monthly totals to ledger/export.py, with a test.", "occurred_at": 1772442279813000}'),
	(1, '31cac6dd-b72a-5e45-b903-24140d6061d4', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', 'file_touched', 20, '{"id": "31cac6dd-b72a-5e45-b903-24140d6061d4", "path": "/home/dana/ledger/ledger/export.py", "type": "file_touched", "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "evidence": [{"end": 64, "event": "68154f7c-83e4-5008-9b61-b1aa90fab2f5", "start": 30, "quote_hash": "12a7dadeee8ee020"}], "location": "/home/dana/ledger", "occurred_at": 1772442294623000}'),
	(1, 'cf84afcc-f3d2-5fb1-b77d-4f0cb65378af', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', 'turn', 20, '{"id": "cf84afcc-f3d2-5fb1-b77d-4f0cb65378af", "task": "930ac8b0a1fab792", "type": "turn", "files": ["/home/dana/ledger/ledger/export.py"], "answer": "I''ll write the export with the csv module and format amounts with two decimals.", "before": "328092ae-4f04-54cc-80f0-b3d75b8afc71", "prompt": "Next task: add a CSV export of the monthly totals to ledger/export.py, with a test.", "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "evidence": [{"end": 83, "event": "d905dcf4-9e51-5fac-b0cb-bff59f3b4ae2", "quote_hash": "63ebd682fd53364d"}, {"end": 79, "event": "9e68baf2-3186-5faa-9c74-8cbd9aa9fc02", "quote_hash": "325b6fad0be4359f"}], "location": "/home/dana/ledger", "prompt_id": "8216d1eb-9da8-538e-a8b4-468df4579ebd", "occurred_at": 1772442279813000}'),
	(1, '31418cee-fa57-5a85-bb5c-694288b94645', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', 'episode', 20, '{"id": "31418cee-fa57-5a85-bb5c-694288b94645", "why": "1 file changed; no test, commit or word of the user tells how it went", "task": "930ac8b0a1fab792", "type": "episode", "files": ["/home/dana/ledger/ledger/export.py"], "steps": 1, "tools": [{"tool": "Write", "uses": 1}], "answer": "I''ll write the export with the csv module and format amounts with two decimals.", "closed": false, "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "tokens": 2750, "patches": [{"path": "/home/dana/ledger/ledger/export.py", "added": 8, "edits": 1, "created": true, "description": "created: export"}], "symbols": ["export"], "ended_at": 1772442294623000, "evidence": [{"end": 83, "event": "d905dcf4-9e51-5fac-b0cb-bff59f3b4ae2", "quote_hash": "63ebd682fd53364d"}, {"end": 79, "event": "9e68baf2-3186-5faa-9c74-8cbd9aa9fc02", "quote_hash": "325b6fad0be4359f"}], "location": "/home/dana/ledger", "canonical": "next task add a csv export of the monthly totals to ledger/export.py with a test", "task_type": "feature", "complexity": 0.033, "description": "Next task: add a CSV export of the monthly totals to ledger/export.py, with a test.", "lines_added": 8, "occurred_at": 1772442279813000}');
INSERT INTO memctl.generations OVERRIDING SYSTEM VALUE VALUES
	(1, 1, NULL, 'live', 1, '785312d19f393694df7418ab0355cd45', '0.1.0', '2026-11-22 11:37:58.562109+00', '2026-11-22 11:37:59.0245+00'),
	(2, 2, 1, 'live', 1, '785312d19f393694df7418ab0355cd45', '0.1.0', '2026-11-22 11:37:58.651325+00', '2026-11-22 11:37:59.024625+00');
INSERT INTO memctl.insights_g2 VALUES
	(1, '52770c96-957c-5328-8709-53b7601b14d4', '{"id": "52770c96-957c-5328-8709-53b7601b14d4", "best": {"at": 1772442030666000, "id": "6fe99994-6e27-5f22-8d3d-39592744d3c9", "rule": "in this repo", "span": {"end": 170, "event": "f9498a01-8c6f-55ff-9d92-df5d08a5b963", "start": 109, "quote_hash": "51aea18fa49535ac"}, "text": "In this project we always use Decimal for money, never float.", "tier": 4, "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "said_by": "user", "subject": "always use decimal for money never float", "confidence": 0.8}, "kind": "fact", "text": "In this project we always use Decimal for money, never float.", "tier": 4, "files": [], "denials": [], "said_by": "user", "sayings": 1, "subject": "always use decimal for money never float", "evidence": [{"at": 1772442030666000, "id": "6fe99994-6e27-5f22-8d3d-39592744d3c9", "rule": "in this repo", "span": {"end": 170, "event": "f9498a01-8c6f-55ff-9d92-df5d08a5b963", "start": 109, "quote_hash": "51aea18fa49535ac"}, "text": "In this project we always use Decimal for money, never float.", "tier": 4, "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "said_by": "user", "subject": "always use decimal for money never float", "confidence": 0.8}], "location": "/home/dana/ledger", "polarity": 0, "sessions": [["session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", 1772442030666000]], "canonical": "always use decimal for money never float", "last_seen": 1772442030666000, "locations": [["/home/dana/ledger", 1772442030666000]], "strongest": 0.8, "confidence": 0.8, "everywhere": false, "first_seen": 1772442030666000}'),
	(1, '0174efba-4e9c-5f4f-b9aa-97e6eed80125', '{"id": "0174efba-4e9c-5f4f-b9aa-97e6eed80125", "best": {"at": 1772442087560000, "id": "a3b1a0a7-29cd-58af-aa4c-20c3f7dbd77f", "rule": "shown", "span": {"end": 72, "event": "85b6c781-590a-54de-9c65-e61891af2220", "field": "input.command", "start": 40, "quote_hash": "1fea7936c10eff53"}, "text": "Commit messages are plain sentences, without a type in front (no `feat:`, `fix:`)", "tier": 2, "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "said_by": "tool", "subject": "commit messages are plain sentences without a type in front no feat fix", "confidence": 0.7}, "kind": "pattern", "text": "Commit messages are plain sentences, without a type in front (no `feat:`, `fix:`)", "tier": 2, "files": [], "denials": [], "said_by": "tool", "sayings": 1, "subject": "commit messages are plain sentences without a type in front no feat fix", "evidence": [{"at": 1772442087560000, "id": "a3b1a0a7-29cd-58af-aa4c-20c3f7dbd77f", "rule": "shown", "span": {"end": 72, "event": "85b6c781-590a-54de-9c65-e61891af2220", "field": "input.command", "start": 40, "quote_hash": "1fea7936c10eff53"}, "text": "Commit messages are plain sentences, without a type in front (no `feat:`, `fix:`)", "tier": 2, "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "said_by": "tool", "subject": "commit messages are plain sentences without a type in front no feat fix", "confidence": 0.7}], "location": "/home/dana/ledger", "polarity": 0, "sessions": [["session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", 1772442087560000]], "canonical": "commit messages are plain sentences without a type in front no feat fix", "last_seen": 1772442087560000, "locations": [["/home/dana/ledger", 1772442087560000]], "strongest": 0.7, "confidence": 0.7, "everywhere": false, "first_seen": 1772442087560000}'),
	(1, 'f1debc99-8851-5b54-855d-80994948d760', '{"id": "f1debc99-8851-5b54-855d-80994948d760", "best": null, "kind": "pattern", "text": "Commit messages follow Conventional Commits (`feat: …`, `fix(scope): …`)", "tier": 0, "files": [], "denials": [["session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", 1772442087560000]], "said_by": "", "sayings": 0, "subject": "commit messages follow conventional commits feat fix scope", "evidence": [], "location": "/home/dana/ledger", "polarity": 0, "sessions": [], "canonical": "commit messages follow conventional commits feat fix scope", "last_seen": 1772442087560000, "locations": [], "strongest": 0.0, "confidence": 0.0, "everywhere": false, "first_seen": 1772442087560000}');
INSERT INTO memctl.installation VALUES
	(true, '062c2434-fd6c-4192-af06-72ca16a87238');
INSERT INTO memctl.locations_g2 VALUES
	(1, '/home/dana/ledger', '{"roots": [], "around": [], "worked": true, "remotes": [], "location": "/home/dana/ledger", "last_seen": 1772442030666000, "first_seen": 1772442030666000}');
INSERT INTO memctl.mark VALUES
	(true, 20);
INSERT INTO memctl.mark_history VALUES
	('2026-11-22 11:37:59.718856+00', 20);
INSERT INTO memctl.memories_g2 VALUES
	(1, 'fc57baf8-d46a-5a6f-b72f-65e5fe0c454e', '{"id": "fc57baf8-d46a-5a6f-b72f-65e5fe0c454e", "gist": "Next task: add a CSV export of the monthly totals to ledger/export.py, with a test. → I''ll write the export with the csv module and format amounts with two decimals.", "kind": "episode", "task": "930ac8b0a1fab792", "text": "Next task: add a CSV export of the monthly totals to ledger/export.py, with a test.\nOutcome: open (1 file changed; no test, commit or word of the user tells how it went)\nSolution: I''ll write the export with the csv module and format amounts with two decimals.\nFiles: /home/dana/ledger/ledger/export.py", "files": ["/home/dana/ledger/ledger/export.py"], "title": "Next task: add a CSV export of the monthly totals to ledger/export.py, with a test.", "before": "", "bucket": "EPISODIC", "source": {"key": "31418cee-fa57-5a85-bb5c-694288b94645", "projection": "episodes"}, "status": "record", "last_at": 1772442294623000, "outcome": "open", "evidence": [{"end": 83, "event": "d905dcf4-9e51-5fac-b0cb-bff59f3b4ae2", "quote_hash": "63ebd682fd53364d"}, {"end": 79, "event": "9e68baf2-3186-5faa-9c74-8cbd9aa9fc02", "quote_hash": "325b6fad0be4359f"}], "first_at": 1772442279813000, "location": "/home/dana/ledger", "sessions": ["session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01"], "locations": ["/home/dana/ledger"], "confidence": 1.0, "importance": 0.4533, "signatures": [], "error_types": [], "occurred_at": 1772442279813000, "search_text": "Next task: add a CSV export of the monthly totals to ledger/export.py, with a test.\nI''ll write the export with the csv module and format amounts with two decimals.\nexport\nfeature open\n/home/dana/ledger/ledger/export.py\nledger 2026-03-02 March"}'),
	(1, '4a55fc96-332d-53f8-a68a-bbb3b732fe09', '{"id": "4a55fc96-332d-53f8-a68a-bbb3b732fe09", "gist": "Invoice totals are off by a cent for some customers. Please find out why the rounding test fails and fix it. In this project we always use Decimal for money, never float. → Fixed: the discount rate stays a Decimal from parsing to quantizing, all 14 tests pass, and the change is committed.", "kind": "turn", "task": "d20c790829b22ac1", "text": "Invoice totals are off by a cent for some customers. Please find out why the rounding test fails and fix it. In this project we always use Decimal for money, never float.\n→ Fixed: the discount rate stays a Decimal from parsing to quantizing, all 14 tests pass, and the change is committed.", "files": ["/home/dana/ledger/ledger/totals.py"], "title": "Invoice totals are off by a cent for some customers. Please find out why the rounding test fails and fix it. In this…", "before": "", "bucket": "EPISODIC", "source": {"key": "c66edb52-a11a-554b-a6d3-32e1667d1e6a", "projection": "facts"}, "status": "record", "last_at": 1772442030666000, "outcome": "", "evidence": [{"end": 170, "event": "f9498a01-8c6f-55ff-9d92-df5d08a5b963", "quote_hash": "008a03d0e5fb347a"}, {"end": 116, "event": "6314f698-1ce8-58b4-adfd-17013bbe1a23", "quote_hash": "cd964337db6fab37"}], "first_at": 1772442030666000, "location": "/home/dana/ledger", "sessions": ["session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01"], "locations": ["/home/dana/ledger"], "confidence": 1.0, "importance": 0.5, "signatures": [], "error_types": [], "occurred_at": 1772442030666000, "search_text": "Invoice totals are off by a cent for some customers. Please find out why the rounding test fails and fix it. In this project we always use Decimal for money, never float.\nFixed: the discount rate stays a Decimal from parsing to quantizing, all 14 tests pass, and the change is committed.\n/home/dana/ledger/ledger/totals.py\nledger 2026-03-02 March"}'),
	(1, '87b44c1d-1d19-578b-9b4e-1936f7da7c92', '{"id": "87b44c1d-1d19-578b-9b4e-1936f7da7c92", "gist": "Next task: add a CSV export of the monthly totals to ledger/export.py, with a test. → I''ll write the export with the csv module and format amounts with two decimals.", "kind": "turn", "task": "930ac8b0a1fab792", "text": "Next task: add a CSV export of the monthly totals to ledger/export.py, with a test.\n→ I''ll write the export with the csv module and format amounts with two decimals.", "files": ["/home/dana/ledger/ledger/export.py"], "title": "Next task: add a CSV export of the monthly totals to ledger/export.py, with a test.", "before": "4677145a-a0ea-5794-a4ae-d04aa093b7e0", "bucket": "EPISODIC", "source": {"key": "cf84afcc-f3d2-5fb1-b77d-4f0cb65378af", "projection": "facts"}, "status": "record", "last_at": 1772442279813000, "outcome": "", "evidence": [{"end": 83, "event": "d905dcf4-9e51-5fac-b0cb-bff59f3b4ae2", "quote_hash": "63ebd682fd53364d"}, {"end": 79, "event": "9e68baf2-3186-5faa-9c74-8cbd9aa9fc02", "quote_hash": "325b6fad0be4359f"}], "first_at": 1772442279813000, "location": "/home/dana/ledger", "sessions": ["session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01"], "locations": ["/home/dana/ledger"], "confidence": 1.0, "importance": 0.4, "signatures": [], "error_types": [], "occurred_at": 1772442279813000, "search_text": "Next task: add a CSV export of the monthly totals to ledger/export.py, with a test.\nI''ll write the export with the csv module and format amounts with two decimals.\n/home/dana/ledger/ledger/export.py\nledger 2026-03-02 March"}'),
	(1, '8ebeef7c-72ef-5636-8ed8-985de21d48bb', '{"id": "8ebeef7c-72ef-5636-8ed8-985de21d48bb", "gist": "Invoice totals are off by a cent for some customers. Please find out why the rounding test fails and fix it. → Keep the discount rate a Decimal", "kind": "episode", "task": "d20c790829b22ac1", "text": "Invoice totals are off by a cent for some customers. Please find out why the rounding test fails and fix it.\nOutcome: success (the user was content)\nProblem: unsupported operand type(s) for *: ''float'' and ''decimal.Decimal''\nSolution: Keep the discount rate a Decimal\nFiles: /home/dana/ledger/ledger/totals.py", "files": ["/home/dana/ledger/ledger/totals.py"], "title": "Invoice totals are off by a cent for some customers. Please find out why the rounding test fails and fix it.", "before": "", "bucket": "EPISODIC", "source": {"key": "d1a0bc64-c106-5c65-aef0-94e523eae985", "projection": "episodes"}, "status": "record", "last_at": 1772442159945000, "outcome": "success", "evidence": [{"end": 170, "event": "f9498a01-8c6f-55ff-9d92-df5d08a5b963", "quote_hash": "008a03d0e5fb347a"}, {"end": 15, "event": "e119cab1-383f-59e5-bbae-3554f4587a96", "quote_hash": "124eb273f9a0a470"}], "first_at": 1772442030666000, "location": "/home/dana/ledger", "sessions": ["session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01"], "locations": ["/home/dana/ledger"], "confidence": 1.0, "importance": 0.8092, "signatures": ["3f44754dfbe906d5"], "error_types": ["test failure", "TypeError"], "occurred_at": 1772442030666000, "search_text": "Invoice totals are off by a cent for some customers. Please find out why the rounding test fails and fix it.\nunsupported operand type(s) for *: ''float'' and ''decimal.Decimal''\nKeep the discount rate a Decimal\ntest failure TypeError\nbugfix success\n/home/dana/ledger/ledger/totals.py\nledger 2026-03-02 March"}'),
	(1, '674dfcb8-0329-5607-a53b-b433c55eb166', '{"id": "674dfcb8-0329-5607-a53b-b433c55eb166", "gist": "In this project we always use Decimal for money, never float.", "kind": "knowledge", "task": "", "text": "In this project we always use Decimal for money, never float.", "files": [], "title": "In this project we always use Decimal for money, never float.", "before": "", "bucket": "FACT", "source": {"key": "8eb0a7c5-0281-587d-97e9-52ca4c64b81b", "projection": "verified_knowledge"}, "status": "verified", "last_at": 1772442030666000, "outcome": "", "evidence": [{"end": 170, "event": "f9498a01-8c6f-55ff-9d92-df5d08a5b963", "start": 109, "quote_hash": "51aea18fa49535ac"}], "first_at": 1772442030666000, "location": "/home/dana/ledger", "sessions": [], "locations": ["/home/dana/ledger"], "confidence": 0.8, "importance": 0.76, "signatures": [], "error_types": [], "occurred_at": 1772442030666000, "search_text": "In this project we always use Decimal for money, never float.\nfact\nalways use decimal for money never float\nledger 2026-03-02 March"}'),
	(1, 'c3b03873-2e5d-53c4-9818-45d03abc2da5', '{"id": "c3b03873-2e5d-53c4-9818-45d03abc2da5", "gist": "Project ledger. In this project we always use Decimal for money, never float.", "kind": "project", "task": "", "text": "Project ledger\nIn this project we always use Decimal for money, never float.", "files": [], "title": "Project ledger", "before": "", "bucket": "SEMANTIC", "source": {"key": "/home/dana/ledger", "projection": "project_digests"}, "status": "record", "last_at": 1772442294623000, "outcome": "", "evidence": [{"end": 170, "event": "f9498a01-8c6f-55ff-9d92-df5d08a5b963", "start": 109, "quote_hash": "51aea18fa49535ac"}], "first_at": 1772442030666000, "location": "/home/dana/ledger", "sessions": ["session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01"], "locations": ["/home/dana/ledger"], "confidence": 1.0, "importance": 0.6, "signatures": [], "error_types": [], "occurred_at": 1772442294623000, "search_text": "Project ledger\nIn this project we always use Decimal for money, never float.\nproject overview stack structure\nledger 2026-03-02 March"}'),
	(1, 'a1c2002c-3d98-54dc-ae56-5749b94390cf', '{"id": "a1c2002c-3d98-54dc-ae56-5749b94390cf", "gist": "test failure, TypeError: unsupported operand type(s) for *: ''float'' and ''decimal.Decimal'' → `float(discount)` turns the rate into a float, and a float cannot be multiplied with a Decimal (edited totals.py)", "kind": "bug_pattern", "task": "", "text": "test failure, TypeError: unsupported operand type(s) for *: ''float'' and ''decimal.Decimal''\nSeen 1×, fixed 1×\nFix: `float(discount)` turns the rate into a float, and a float cannot be multiplied with a Decimal (edited totals.py) (held 1 of 1)\nWhy: `float(discount)` turns the rate into a float, and a float cannot be multiplied with a Decimal. The rate has to stay a Decimal, so I parse the discount with Decimal and quantize with ROUND_HALF_UP.\nEdited: /home/dana/ledger/ledger/totals.py", "files": ["tests/test_totals.py"], "title": "test failure, TypeError: unsupported operand type(s) for *: ''float'' and ''decimal.Decimal''", "before": "", "bucket": "FACT", "source": {"key": "3f44754dfbe906d5", "projection": "bug_patterns"}, "status": "record", "last_at": 1772442078835000, "outcome": "solved", "evidence": [{"end": 799, "event": "5bb5df77-cb6c-5de8-871f-97df79e6cf13", "start": 668, "quote_hash": "5171a79baed8fa4e"}, {"end": 799, "event": "5bb5df77-cb6c-5de8-871f-97df79e6cf13", "start": 668, "quote_hash": "5171a79baed8fa4e"}], "first_at": 1772442045428000, "location": "/home/dana/ledger", "sessions": ["session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01"], "locations": ["/home/dana/ledger"], "confidence": 0.65, "importance": 0.695, "signatures": ["3f44754dfbe906d5"], "error_types": ["test failure", "TypeError"], "occurred_at": 1772442078835000, "search_text": "test failure, TypeError: unsupported operand type(s) for *: ''float'' and ''decimal.Decimal''\nunsupported operand type(s) for *: <q> and <q>\nFix: `float(discount)` turns the rate into a float, and a float cannot be multiplied with a Decimal (edited totals.py) (held 1 of 1)\nWhy: `float(discount)` turns the rate into a float, and a float cannot be multiplied with a Decimal. The rate has to stay a Decimal, so I parse the discount with Decimal and quantize with ROUND_HALF_UP.\nEdited: /home/dana/ledger/ledger/totals.py\ntest_totals.py::test_total_with_discount\ntests/test_totals.py\ncd /home/dana/ledger && pytest -q\npython pytest\nledger 2026-03-02 March"}');
INSERT INTO memctl.offsets VALUES
	(1, 0, 20, 1, NULL, NULL, '2026-11-22 11:38:00.071101+00'),
	(2, 0, 20, 1, NULL, NULL, '2026-11-22 11:38:00.396921+00');
INSERT INTO memctl.outbox_g2 OVERRIDING SYSTEM VALUE VALUES
	(1, 'c56c44c2-d67b-5259-9db9-39d54ea4f52b', 1, false),
	(1, '1c6ea775-37f0-5c9b-b155-03da42e7d042', 2, false),
	(1, '9ccb0b27-d2a8-542c-ade1-56f26ae9ed67', 3, false),
	(1, '3772143a-92ed-5333-b5c8-470aedb39523', 4, false),
	(1, '6a5a4fff-790b-5620-89c2-18c5b962e6cd', 5, false),
	(1, 'bf720f07-9e2e-5e5d-b8f6-3679e3f1abaf', 6, false),
	(1, '439ce2ca-73da-54a7-ae85-344e4e24ce72', 7, false);
INSERT INTO memctl.project_digests_g2 VALUES
	(1, '/home/dana/ledger', '{"named": [], "claims": [{"at": 1772442030666000, "id": "8eb0a7c5-0281-587d-97e9-52ca4c64b81b", "kind": "fact", "text": "In this project we always use Decimal for money, never float.", "spans": [{"end": 170, "event": "f9498a01-8c6f-55ff-9d92-df5d08a5b963", "start": 109, "quote_hash": "51aea18fa49535ac"}], "polarity": 0, "sessions": 1}], "touches": [{"at": 1772442294623000, "id": "31cac6dd-b72a-5e45-b903-24140d6061d4", "name": "ledger/export.py", "span": {"end": 64, "event": "68154f7c-83e4-5008-9b61-b1aa90fab2f5", "start": 30, "quote_hash": "12a7dadeee8ee020"}, "session": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01"}, {"at": 1772442069879000, "id": "7a4c967b-9bbc-5ee8-bc05-d60a14c77ec3", "name": "ledger/totals.py", "span": {"end": 43, "event": "9ddfd92c-82f1-5e64-bc56-2e6defff6841", "start": 9, "quote_hash": "f89213d1edff7a87"}, "session": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01"}], "location": "/home/dana/ledger"}');
INSERT INTO memctl.project_knowledge_g1 VALUES
	(1, 'dd83049d-0420-5a8d-8b81-cb64c5a5711f', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', '{"read": {"ledger/totals.py": [1, 0, 1772442054970000, "79b9a5b4-6e07-5b9d-ba84-c8e417845b30"]}, "fixed": {"ledger/totals.py": [1, 0, 1772442078835000, "c73b52c0-0092-5f0c-b218-fedb96fe77bb"]}, "lines": {"added": 9, "removed": 1}, "tests": {"pytest -q": [2, 1, 1772442078835000, "c73b52c0-0092-5f0c-b218-fedb96fe77bb"]}, "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "changed": {"ledger/export.py": [1, 0, 1772442294623000, "68154f7c-83e4-5008-9b61-b1aa90fab2f5"], "ledger/totals.py": [1, 0, 1772442069879000, "9ddfd92c-82f1-5e64-bc56-2e6defff6841"]}, "commits": {"capitalised sentences": [1, 0, 1772442087560000, "c5e9aa1d-0cb1-5e6b-9847-b8d5f30e9991"]}, "imports": {"csv": [1, 0, 1772442294623000, "68154f7c-83e4-5008-9b61-b1aa90fab2f5"]}, "last_at": 1772442294623000, "runners": {"pytest": [2, 1, 1772442078835000, "c73b52c0-0092-5f0c-b218-fedb96fe77bb"]}, "first_at": 1772442045428000, "location": "/home/dana/ledger"}');
INSERT INTO memctl.project_shares_g2 VALUES
	(1, '13:/home/dana/ledger', '{"named": [], "touches": [{"at": 1772442294623000, "id": "31cac6dd-b72a-5e45-b903-24140d6061d4", "name": "ledger/export.py", "span": {"end": 64, "event": "68154f7c-83e4-5008-9b61-b1aa90fab2f5", "start": 30, "quote_hash": "12a7dadeee8ee020"}, "session": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01"}, {"at": 1772442069879000, "id": "7a4c967b-9bbc-5ee8-bc05-d60a14c77ec3", "name": "ledger/totals.py", "span": {"end": 43, "event": "9ddfd92c-82f1-5e64-bc56-2e6defff6841", "start": 9, "quote_hash": "f89213d1edff7a87"}, "session": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01"}], "location": "/home/dana/ledger"}');
INSERT INTO memctl.projection_state VALUES
	(true, 1, 2);
INSERT INTO memctl.relations_g2 VALUES
	(1, 'd36f1fce-2021-5dc1-98c5-f562cf085bab', '{"at": 1772442078835000, "why": "`float(discount)` turns the rate into a float, and a float cannot be multiplied with a Decimal (edited totals.py)", "said": null, "nodes": ["bug:3f44754dfbe906d5", "file:/home/dana/ledger/ledger/totals.py"], "source": "bug:3f44754dfbe906d5", "weight": 1.0, "evidence": [{"end": 799, "event": "5bb5df77-cb6c-5de8-871f-97df79e6cf13", "start": 668, "quote_hash": "5171a79baed8fa4e"}, {"event": "c73b52c0-0092-5f0c-b218-fedb96fe77bb"}], "location": "/home/dana/ledger", "relation": "fixes"}');
INSERT INTO memctl.routes_g2 VALUES
	(1, '1bf9ab58-3d41-5e64-b37b-404f27a5e16f', 'tasks:885e13dd-6e1e-5035-bbb7-d9b739016ebe', NULL, NULL),
	(1, '31418cee-fa57-5a85-bb5c-694288b94645', 'memories:fc57baf8-d46a-5a6f-b72f-65e5fe0c454e', NULL, NULL),
	(1, '31cac6dd-b72a-5e45-b903-24140d6061d4', 'project_shares:13:/home/dana/ledger', NULL, NULL),
	(1, '328092ae-4f04-54cc-80f0-b3d75b8afc71', 'memories:4677145a-a0ea-5794-a4ae-d04aa093b7e0', NULL, NULL),
	(1, '33aa3dd3-dd73-50e8-970a-feb9f5fc68e8', 'tasks:52a14b8a-9877-52ed-b817-29682fddb11f', NULL, NULL),
	(1, '6fe99994-6e27-5f22-8d3d-39592744d3c9', 'insights:52770c96-957c-5328-8709-53b7601b14d4', NULL, NULL),
	(1, '7a4c967b-9bbc-5ee8-bc05-d60a14c77ec3', 'project_shares:13:/home/dana/ledger', NULL, NULL),
	(1, 'a3b1a0a7-29cd-58af-aa4c-20c3f7dbd77f', 'insights:0174efba-4e9c-5f4f-b9aa-97e6eed80125', NULL, NULL),
	(1, 'b9085ddb-a274-54f6-a834-1b568c56b456', 'tasks:52a14b8a-9877-52ed-b817-29682fddb11f', NULL, NULL),
	(1, 'ba93aa82-e5d4-562e-a576-c63d9854e37f', 'insights:f1debc99-8851-5b54-855d-80994948d760', NULL, NULL),
	(1, 'c66edb52-a11a-554b-a6d3-32e1667d1e6a', 'memories:4a55fc96-332d-53f8-a68a-bbb3b732fe09', NULL, NULL),
	(1, 'ca9405aa-806c-59ee-a0ad-b1189d051a0b', 'locations:/home/dana/ledger', NULL, NULL),
	(1, 'cf84afcc-f3d2-5fb1-b77d-4f0cb65378af', 'memories:87b44c1d-1d19-578b-9b4e-1936f7da7c92', NULL, NULL),
	(1, 'd18c748a-6e41-54d8-a1be-9c4f4b8d9529', 'sentiment:41f3c724-e4e7-5be1-863f-dee1c31c24f7', NULL, NULL),
	(1, 'd1a0bc64-c106-5c65-aef0-94e523eae985', 'memories:8ebeef7c-72ef-5636-8ed8-985de21d48bb', NULL, NULL),
	(1, 'd36f1fce-2021-5dc1-98c5-f562cf085bab', 'bug_sightings:3f44754dfbe906d5:29', NULL, NULL),
	(1, 'd36f1fce-2021-5dc1-98c5-f562cf085bab', 'relations:d36f1fce-2021-5dc1-98c5-f562cf085bab', NULL, NULL),
	(1, 'f805d50b-ee90-5721-ae56-af857eb3e9fa', 'bug_sightings:3f44754dfbe906d5:29', NULL, NULL),
	(1, '4d936420-abe1-5a83-bba4-6e3c29d20c24', 'bug_patterns:3f44754dfbe906d5', 'bug_sightings', '3f44754dfbe906d5:29'),
	(1, '48d3b44e-2a82-5a8e-a0b8-96581359ae48', 'candidates:52770c96-957c-5328-8709-53b7601b14d4', 'insights', '52770c96-957c-5328-8709-53b7601b14d4'),
	(1, '003f8254-bece-50f9-b13a-28efda1f6045', 'candidates:0174efba-4e9c-5f4f-b9aa-97e6eed80125', 'insights', '0174efba-4e9c-5f4f-b9aa-97e6eed80125'),
	(1, 'bb659037-9ca2-5c6b-a382-df05c4564725', 'candidates:f1debc99-8851-5b54-855d-80994948d760', 'insights', 'f1debc99-8851-5b54-855d-80994948d760'),
	(1, '5b7cb79c-6ff7-518b-8620-817541dd64c8', 'verified_knowledge:8eb0a7c5-0281-587d-97e9-52ca4c64b81b', 'candidates', '52770c96-957c-5328-8709-53b7601b14d4'),
	(1, '7356b10c-d92e-5aa4-87fd-fc96911a9fe2', 'project_digests:/home/dana/ledger', 'verified_knowledge', '8eb0a7c5-0281-587d-97e9-52ca4c64b81b'),
	(1, '7356b10c-d92e-5aa4-87fd-fc96911a9fe2', 'memories:674dfcb8-0329-5607-a53b-b433c55eb166', 'verified_knowledge', '8eb0a7c5-0281-587d-97e9-52ca4c64b81b'),
	(1, 'd353433a-b784-57ac-94c2-ece337ae025f', 'project_digests:/home/dana/ledger', 'project_shares', '13:/home/dana/ledger'),
	(1, 'df70c2ce-1edb-5eb8-9c6d-e66e72cff71f', 'memories:c3b03873-2e5d-53c4-9818-45d03abc2da5', 'project_digests', '/home/dana/ledger'),
	(1, 'af962dec-7583-57ae-8b7e-2a18fbbbe139', 'memories:a1c2002c-3d98-54dc-ae56-5749b94390cf', 'bug_patterns', '3f44754dfbe906d5'),
	(1, '9aef129b-20a4-56ff-a5e1-df8715e70964', 'memories:f0d3d082-8de3-52c0-ba8d-5322dbf4905b', 'relations', 'd36f1fce-2021-5dc1-98c5-f562cf085bab'),
	(1, '5a3e88c3-6ca6-571b-b0f8-12783acb80c4', 'memories:95b32539-750a-58c8-baa4-d9294a97f2e8', 'sentiment', '41f3c724-e4e7-5be1-863f-dee1c31c24f7'),
	(1, '58bbb764-911d-5448-9b56-11ae78bbb2b0', 'vector_points:c56c44c2-d67b-5259-9db9-39d54ea4f52b', 'memories', 'fc57baf8-d46a-5a6f-b72f-65e5fe0c454e'),
	(1, '6d45a75c-68ef-5d74-84ca-a1cce1032a49', 'vector_points:1c6ea775-37f0-5c9b-b155-03da42e7d042', 'memories', '4a55fc96-332d-53f8-a68a-bbb3b732fe09'),
	(1, '62339dec-2419-5c82-9cb7-c0fff245b7c9', 'vector_points:9ccb0b27-d2a8-542c-ade1-56f26ae9ed67', 'memories', '87b44c1d-1d19-578b-9b4e-1936f7da7c92'),
	(1, '3ce59f87-1cea-5622-8e25-32053cb48908', 'vector_points:3772143a-92ed-5333-b5c8-470aedb39523', 'memories', '8ebeef7c-72ef-5636-8ed8-985de21d48bb'),
	(1, '5d77eb92-1306-55e2-9d6a-bb89796a73a1', 'vector_points:6a5a4fff-790b-5620-89c2-18c5b962e6cd', 'memories', '674dfcb8-0329-5607-a53b-b433c55eb166'),
	(1, '42e91091-2481-576e-8332-51f5878c8f70', 'vector_points:bf720f07-9e2e-5e5d-b8f6-3679e3f1abaf', 'memories', 'c3b03873-2e5d-53c4-9818-45d03abc2da5'),
	(1, '950c0bb4-4135-5d6c-bb64-b4018376e9b9', 'vector_points:439ce2ca-73da-54a7-ae85-344e4e24ce72', 'memories', 'a1c2002c-3d98-54dc-ae56-5749b94390cf');
INSERT INTO memctl.schema_version VALUES
	('0006');
INSERT INTO memctl.sentiment_g2 VALUES
	(1, '41f3c724-e4e7-5be1-863f-dee1c31c24f7', '{"node": "agent:claude-code", "path": [{"at": 1772442153437000, "id": "d18c748a-6e41-54d8-a1be-9c4f4b8d9529", "span": {"end": 19, "event": "73846fee-0bbe-5cf2-9e1a-8e17ba0c2014", "quote_hash": "20a0a6f6778575c8"}, "score": 0.4, "words": "Thanks, that works!", "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01"}], "shown": 1, "location": "/home/dana/ledger", "last_seen": 1772442153437000}');
INSERT INTO memctl.sessions_g1 VALUES
	(1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', '{"agent": "claude-code", "fixes": 1, "model": "claude-sonnet-4-5", "tasks": 2, "branch": "fix/rounding", "errors": 1, "starts": 1, "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "answers": 5, "changed": ["f89213d1edff", "12a7dadeee8e"], "last_at": 1772442294623000, "prompts": 3, "summary": "I''ll write the export with the csv module and format amounts with two decimals.", "commands": 3, "location": "/home/dana/ledger", "locations": ["/home/dana/ledger"], "test_runs": 2, "tokens_in": 12540, "session_id": "00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "started_at": 1772442030666000, "tokens_out": 572, "tool_calls": 6, "lines_added": 9, "first_prompt": "Invoice totals are off by a cent for some customers. Please find out why the rounding test fails and fix it. In this project we always use Decimal for money, never float.", "agent_version": "2.1.0", "files_changed": 2, "lines_removed": 1, "tool_failures": 1, "patches_applied": 2, "patches_proposed": 2}');
INSERT INTO memctl.spaces OVERRIDING SYSTEM VALUE VALUES
	(1, 'default', false);
INSERT INTO memctl.stats_g1 VALUES
	(1, '4d0bc926-82d4-5f06-82f0-b07126ac70ca', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', '{"day": 20514, "errors": 1, "prompts": 3, "location": "/home/dana/ledger", "test_runs": 2, "tokens_in": 12540, "tool_uses": 6, "tokens_out": 572, "corrections": 0, "lines_added": 9, "tasks_failed": 0, "tasks_opened": 2, "files_changed": 2, "lines_removed": 1, "tasks_partial": 0, "tasks_unknown": 0, "tokens_cached": 0, "tool_failures": 1, "errors_resolved": 1, "sessions_opened": 1, "tasks_succeeded": 1, "resolve_us_total": 33407000, "test_runs_passed": 1, "errors_seen_before": 0, "resolutions_refuted": 0}');
INSERT INTO memctl.tasks_g2 VALUES
	(1, '885e13dd-6e1e-5035-bbb7-d9b739016ebe', '{"id": "885e13dd-6e1e-5035-bbb7-d9b739016ebe", "first": {"at": 1772442279813000, "id": "1bf9ab58-3d41-5e64-b37b-404f27a5e16f", "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "task_type": "feature", "description": "Next task: add a CSV export of the monthly totals to ledger/export.py, with a test."}, "closed": 0, "latest": {"at": 1772442279813000, "id": "1bf9ab58-3d41-5e64-b37b-404f27a5e16f", "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "task_type": "feature", "description": "Next task: add a CSV export of the monthly totals to ledger/export.py, with a test."}, "opened": 1, "status": "open", "last_at": 1772442279813000, "outcome": "unknown", "closings": [], "first_at": 1772442279813000, "location": "/home/dana/ledger", "sessions": [["session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", 1772442279813000]], "canonical": "next task add a csv export of the monthly totals to ledger/export.py with a test", "task_type": "feature", "description": "Next task: add a CSV export of the monthly totals to ledger/export.py, with a test."}'),
	(1, '52a14b8a-9877-52ed-b817-29682fddb11f', '{"id": "52a14b8a-9877-52ed-b817-29682fddb11f", "first": {"at": 1772442030666000, "id": "33aa3dd3-dd73-50e8-970a-feb9f5fc68e8", "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "task_type": "bugfix", "description": "Invoice totals are off by a cent for some customers. Please find out why the rounding test fails and fix it."}, "closed": 1, "latest": {"at": 1772442030666000, "id": "33aa3dd3-dd73-50e8-970a-feb9f5fc68e8", "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "task_type": "bugfix", "description": "Invoice totals are off by a cent for some customers. Please find out why the rounding test fails and fix it."}, "opened": 1, "status": "done", "last_at": 1772442279813000, "outcome": "success", "closings": [{"at": 1772442279813000, "by": "next_prompt", "id": "b9085ddb-a274-54f6-a834-1b568c56b456", "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "outcome": "success"}], "first_at": 1772442030666000, "location": "/home/dana/ledger", "sessions": [["session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", 1772442279813000]], "canonical": "invoice totals are off by a cent for some customers please find out why the rounding test fails and fix it", "task_type": "bugfix", "description": "Invoice totals are off by a cent for some customers. Please find out why the rounding test fails and fix it."}');
INSERT INTO memctl.tool_patterns_g1 VALUES
	(1, 'bec57f8f-cd48-5b89-8e22-f11e1fbc80db', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', '{"last": ["d20c790829b22ac1", "git commit", false], "after": {"Read  Edit": [1, 0, 1772442069879000, "9ddfd92c-82f1-5e64-bc56-2e6defff6841"], "Edit  pytest": [1, 0, 1772442078835000, "c73b52c0-0092-5f0c-b218-fedb96fe77bb"], "pytest  git commit": [1, 0, 1772442087560000, "c5e9aa1d-0cb1-5e6b-9847-b8d5f30e9991"]}, "tools": {"Edit": [1, 0, 1772442069879000, "9ddfd92c-82f1-5e64-bc56-2e6defff6841"], "Read": [1, 0, 1772442054970000, "79b9a5b4-6e07-5b9d-ba84-c8e417845b30"], "pytest": [2, 1, 1772442078835000, "c73b52c0-0092-5f0c-b218-fedb96fe77bb"], "git commit": [1, 0, 1772442087560000, "c5e9aa1d-0cb1-5e6b-9847-b8d5f30e9991"]}, "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "last_at": 1772442087560000, "location": "/home/dana/ledger", "recovery": {"pytest  Read": [1, 0, 1772442054970000, "79b9a5b4-6e07-5b9d-ba84-c8e417845b30"]}, "task_type": "bugfix"}'),
	(1, 'b7662c67-75af-5049-a3bc-52793e929747', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', '{"last": ["930ac8b0a1fab792", "Write", false], "tools": {"Write": [1, 0, 1772442294623000, "68154f7c-83e4-5008-9b61-b1aa90fab2f5"]}, "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "last_at": 1772442294623000, "location": "/home/dana/ledger", "task_type": "feature"}');
INSERT INTO memctl.vector_points_g2 VALUES
	(1, 'c56c44c2-d67b-5259-9db9-39d54ea4f52b', '{"id": "c56c44c2-d67b-5259-9db9-39d54ea4f52b", "kind": "episode", "chunk": 0, "before": "", "bucket": "EPISODIC", "location": "/home/dana/ledger", "locations": ["/home/dana/ledger"], "memory_id": "fc57baf8-d46a-5a6f-b72f-65e5fe0c454e", "text_hash": "06d447a012443647", "dense_hash": "ff94b5c16d80a0a5", "dense_text": "Next task: add a CSV export of the monthly totals to ledger/export.py, with a test. → I''ll write the export with the csv module and format amounts with two decimals.", "occurred_at": 1772442279813000, "sparse_text": "Next task: add a CSV export of the monthly totals to ledger/export.py, with a test.\nI''ll write the export with the csv module and format amounts with two decimals.\nexport\nfeature open\n/home/dana/ledger/ledger/export.py\nledger 2026-03-02 March"}'),
	(1, '1c6ea775-37f0-5c9b-b155-03da42e7d042', '{"id": "1c6ea775-37f0-5c9b-b155-03da42e7d042", "kind": "turn", "chunk": 0, "before": "", "bucket": "EPISODIC", "location": "/home/dana/ledger", "locations": ["/home/dana/ledger"], "memory_id": "4a55fc96-332d-53f8-a68a-bbb3b732fe09", "text_hash": "ac58edc5de07d1d7", "dense_hash": "9d14ff1fe1f97105", "dense_text": "Invoice totals are off by a cent for some customers. Please find out why the rounding test fails and fix it. In this project we always use Decimal for money, never float. → Fixed: the discount rate stays a Decimal from parsing to quantizing, all 14 tests pass, and the change is committed.", "occurred_at": 1772442030666000, "sparse_text": "Invoice totals are off by a cent for some customers. Please find out why the rounding test fails and fix it. In this project we always use Decimal for money, never float.\nFixed: the discount rate stays a Decimal from parsing to quantizing, all 14 tests pass, and the change is committed.\n/home/dana/ledger/ledger/totals.py\nledger 2026-03-02 March"}'),
	(1, '9ccb0b27-d2a8-542c-ade1-56f26ae9ed67', '{"id": "9ccb0b27-d2a8-542c-ade1-56f26ae9ed67", "kind": "turn", "chunk": 0, "before": "4677145a-a0ea-5794-a4ae-d04aa093b7e0", "bucket": "EPISODIC", "location": "/home/dana/ledger", "locations": ["/home/dana/ledger"], "memory_id": "87b44c1d-1d19-578b-9b4e-1936f7da7c92", "text_hash": "10c5cea99933566b", "dense_hash": "ff94b5c16d80a0a5", "dense_text": "Next task: add a CSV export of the monthly totals to ledger/export.py, with a test. → I''ll write the export with the csv module and format amounts with two decimals.", "occurred_at": 1772442279813000, "sparse_text": "Next task: add a CSV export of the monthly totals to ledger/export.py, with a test.\nI''ll write the export with the csv module and format amounts with two decimals.\n/home/dana/ledger/ledger/export.py\nledger 2026-03-02 March"}'),
	(1, '3772143a-92ed-5333-b5c8-470aedb39523', '{"id": "3772143a-92ed-5333-b5c8-470aedb39523", "kind": "episode", "chunk": 0, "before": "", "bucket": "EPISODIC", "location": "/home/dana/ledger", "locations": ["/home/dana/ledger"], "memory_id": "8ebeef7c-72ef-5636-8ed8-985de21d48bb", "text_hash": "8604f97031ff3b53", "dense_hash": "0dd6e1e09697025d", "dense_text": "Invoice totals are off by a cent for some customers. Please find out why the rounding test fails and fix it. → Keep the discount rate a Decimal", "occurred_at": 1772442030666000, "sparse_text": "Invoice totals are off by a cent for some customers. Please find out why the rounding test fails and fix it.\nunsupported operand type(s) for *: ''float'' and ''decimal.Decimal''\nKeep the discount rate a Decimal\ntest failure TypeError\nbugfix success\n/home/dana/ledger/ledger/totals.py\nledger 2026-03-02 March"}'),
	(1, '6a5a4fff-790b-5620-89c2-18c5b962e6cd', '{"id": "6a5a4fff-790b-5620-89c2-18c5b962e6cd", "kind": "knowledge", "chunk": 0, "before": "", "bucket": "FACT", "location": "/home/dana/ledger", "locations": ["/home/dana/ledger"], "memory_id": "674dfcb8-0329-5607-a53b-b433c55eb166", "text_hash": "ba76d9b453691301", "dense_hash": "51aea18fa49535ac", "dense_text": "In this project we always use Decimal for money, never float.", "occurred_at": 1772442030666000, "sparse_text": "In this project we always use Decimal for money, never float.\nfact\nalways use decimal for money never float\nledger 2026-03-02 March"}'),
	(1, 'bf720f07-9e2e-5e5d-b8f6-3679e3f1abaf', '{"id": "bf720f07-9e2e-5e5d-b8f6-3679e3f1abaf", "kind": "project", "chunk": 0, "before": "", "bucket": "SEMANTIC", "location": "/home/dana/ledger", "locations": ["/home/dana/ledger"], "memory_id": "c3b03873-2e5d-53c4-9818-45d03abc2da5", "text_hash": "eff056f7863a6701", "dense_hash": "a4a08ec680f50ab8", "dense_text": "Project ledger. In this project we always use Decimal for money, never float.", "occurred_at": 1772442294623000, "sparse_text": "Project ledger\nIn this project we always use Decimal for money, never float.\nproject overview stack structure\nledger 2026-03-02 March"}'),
	(1, '439ce2ca-73da-54a7-ae85-344e4e24ce72', '{"id": "439ce2ca-73da-54a7-ae85-344e4e24ce72", "kind": "bug_pattern", "chunk": 0, "before": "", "bucket": "FACT", "location": "/home/dana/ledger", "locations": ["/home/dana/ledger"], "memory_id": "a1c2002c-3d98-54dc-ae56-5749b94390cf", "text_hash": "da62b1154578ea1a", "dense_hash": "d527c247f7abcd2b", "dense_text": "test failure, TypeError: unsupported operand type(s) for *: ''float'' and ''decimal.Decimal'' → `float(discount)` turns the rate into a float, and a float cannot be multiplied with a Decimal (edited totals.py)", "occurred_at": 1772442078835000, "sparse_text": "test failure, TypeError: unsupported operand type(s) for *: ''float'' and ''decimal.Decimal''\nunsupported operand type(s) for *: <q> and <q>\nFix: `float(discount)` turns the rate into a float, and a float cannot be multiplied with a Decimal (edited totals.py) (held 1 of 1)\nWhy: `float(discount)` turns the rate into a float, and a float cannot be multiplied with a Decimal. The rate has to stay a Decimal, so I parse the discount with Decimal and quantize with ROUND_HALF_UP.\nEdited: /home/dana/ledger/ledger/totals.py\ntest_totals.py::test_total_with_discount\ntests/test_totals.py\ncd /home/dana/ledger && pytest -q\npython pytest\nledger 2026-03-02 March"}');
INSERT INTO memctl.verified_knowledge_g2 VALUES
	(1, '8eb0a7c5-0281-587d-97e9-52ca4c64b81b', '{"id": "8eb0a7c5-0281-587d-97e9-52ca4c64b81b", "kind": "fact", "text": "In this project we always use Decimal for money, never float.", "tier": 4, "claims": [{"id": "52770c96-957c-5328-8709-53b7601b14d4", "kind": "fact", "text": "In this project we always use Decimal for money, never float.", "tier": 4, "files": [], "said_by": "user", "warrant": "said by the user", "evidence": [{"end": 170, "event": "f9498a01-8c6f-55ff-9d92-df5d08a5b963", "start": 109, "quote_hash": "51aea18fa49535ac"}], "polarity": 0, "sessions": 1, "canonical": "always use decimal for money never float", "last_seen": 1772442030666000, "confidence": 0.8, "valid_from": 1772442030666000, "valid_until": null, "superseded_by": ""}], "status": "verified", "subject": "always use decimal for money never float", "location": "/home/dana/ledger", "last_seen": 1772442030666000, "confidence": 0.8, "everywhere": false, "first_seen": 1772442030666000}');
INSERT INTO memctl.working_memory_g1 VALUES
	(1, 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', 'session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01', '{"why": "1 file changed; no test, commit or word of the user tells how it went", "task": "930ac8b0a1fab792", "files": [{"path": "/home/dana/ledger/ledger/totals.py", "added": 1, "state": "edited", "before": "read", "last_at": 1772442069879000, "removed": 1, "accesses": 2}, {"path": "/home/dana/ledger/ledger/export.py", "added": 8, "state": "created", "last_at": 1772442294623000}], "stats": {"tool_calls": 6, "lines_added": 9, "tokens_used": 13112, "lines_removed": 1, "patches_applied": 2, "patches_proposed": 2, "errors_encountered": 1}, "steps": 1, "branch": "fix/rounding", "errors": [{"at": 1772442045428000, "id": "f805d50b-ee90-5721-ae56-af857eb3e9fa", "step": 1, "command": "cd /home/dana/ledger && pytest -q", "message": "unsupported operand type(s) for *: ''float'' and ''decimal.Decimal''", "signature": "3f44754dfbe906d5", "resolution": "`float(discount)` turns the rate into a float, and a float cannot be multiplied with a Decimal (edited totals.py)"}], "stream": "session/claude-code/00000000-6c0e-4b7e-9d6f-2f6b1f6b8a01", "outcome": "unknown", "symbols": [{"file": "/home/dana/ledger/ledger/export.py", "name": "export", "state": "written", "last_at": 1772442294623000}], "location": "/home/dana/ledger", "opened_by": "1bf9ab58-3d41-5e64-b37b-404f27a5e16f", "task_type": "feature", "started_at": 1772442030666000, "updated_at": 1772442294623000, "discoveries": [{"at": 1772442030666000, "kind": "fact", "text": "In this project we always use Decimal for money, never float."}, {"at": 1772442078835000, "kind": "resolution", "text": "`float(discount)` turns the rate into a float, and a float cannot be multiplied with a Decimal (edited totals.py)"}, {"at": 1772442087560000, "kind": "pattern", "text": "Commit messages follow Conventional Commits (`feat: …`, `fix(scope): …`)"}, {"at": 1772442087560000, "kind": "pattern", "text": "Commit messages are plain sentences, without a type in front (no `feat:`, `fix:`)"}], "last_answer": "I''ll write the export with the csv module and format amounts with two decimals.", "last_prompt": "Next task: add a CSV export of the monthly totals to ledger/export.py, with a test.", "task_status": "open", "tool_results": [{"at": 1772442045428000, "ok": false, "tool": "Bash", "result": "Exit code 1 ============================= test session starts ============================== collected 14 items tests/test_totals.py .F............ [100%] =================================== FAILURES ===================================…", "summary": "cd /home/dana/ledger && pytest -q"}, {"at": 1772442054970000, "ok": true, "tool": "Read", "result": "12→def total(lines, discount=\"0\"): 13→ amount = sum(line.price * line.count for line in lines) 14→ rate = 1 - float(discount) 18→ return (rate * amount).quantize(CENT)", "summary": "/home/dana/ledger/ledger/totals.py"}, {"at": 1772442069879000, "ok": true, "tool": "Edit", "result": "The file /home/dana/ledger/ledger/totals.py has been updated.", "summary": "/home/dana/ledger/ledger/totals.py"}, {"at": 1772442078835000, "ok": true, "tool": "Bash", "result": "14 passed in 0.28s", "summary": "cd /home/dana/ledger && pytest -q"}, {"at": 1772442087560000, "ok": true, "tool": "Bash", "result": "[fix/rounding 4be1f0a] Keep the discount rate a Decimal 1 file changed, 1 insertion(+), 1 deletion(-)", "summary": "cd /home/dana/ledger && git commit -am ''Keep the discount rate a Decimal''"}, {"at": 1772442294623000, "ok": true, "tool": "Write", "result": "File created successfully at: /home/dana/ledger/ledger/export.py", "summary": "/home/dana/ledger/ledger/export.py"}], "task_started_at": 1772442279813000, "task_description": "Next task: add a CSV export of the monthly totals to ledger/export.py, with a test."}');
SELECT pg_catalog.setval('memctl.dead_letters_letter_seq', 1, false);
SELECT pg_catalog.setval('memctl.events_position_seq', 33, true);
SELECT pg_catalog.setval('memctl.generations_generation_seq', 2, true);
SELECT pg_catalog.setval('memctl.outbox_g2_version_seq', 7, true);
SELECT pg_catalog.setval('memctl.rebuilds_rebuild_seq', 1, false);
SELECT pg_catalog.setval('memctl.spaces_space_id_seq', 1, true);
ALTER TABLE ONLY memctl.bug_patterns_g2
    ADD CONSTRAINT bug_patterns_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.bug_sightings_g2
    ADD CONSTRAINT bug_sightings_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.candidates_g2
    ADD CONSTRAINT candidates_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.checkpoints
    ADD CONSTRAINT checkpoints_pkey PRIMARY KEY (space_id, path);
ALTER TABLE ONLY memctl.code_patterns_g2
    ADD CONSTRAINT code_patterns_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.code_rules_g2
    ADD CONSTRAINT code_rules_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.consolidated_g2
    ADD CONSTRAINT consolidated_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.consolidation_log_g2
    ADD CONSTRAINT consolidation_log_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.core_memory_g2
    ADD CONSTRAINT core_memory_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.dead_letters
    ADD CONSTRAINT dead_letters_generation_target_key UNIQUE (generation, target);
ALTER TABLE ONLY memctl.dead_letters
    ADD CONSTRAINT dead_letters_pkey PRIMARY KEY (letter);
ALTER TABLE ONLY memctl.embeddings
    ADD CONSTRAINT embeddings_pkey PRIMARY KEY (model, text_hash);
ALTER TABLE ONLY memctl.entities_g2
    ADD CONSTRAINT entities_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.episodes_g1
    ADD CONSTRAINT episodes_g1_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.events
    ADD CONSTRAINT events_pkey PRIMARY KEY ("position");
ALTER TABLE ONLY memctl.facts_g1
    ADD CONSTRAINT facts_g1_pkey PRIMARY KEY (space_id, id);
ALTER TABLE ONLY memctl.generations
    ADD CONSTRAINT generations_pkey PRIMARY KEY (generation);
ALTER TABLE ONLY memctl.halts
    ADD CONSTRAINT halts_pkey PRIMARY KEY (generation, shard);
ALTER TABLE ONLY memctl.insights_g2
    ADD CONSTRAINT insights_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.installation
    ADD CONSTRAINT installation_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY memctl.locations_g2
    ADD CONSTRAINT locations_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.mark_history
    ADD CONSTRAINT mark_history_pkey PRIMARY KEY (reached_at);
ALTER TABLE ONLY memctl.mark
    ADD CONSTRAINT mark_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY memctl.memories_g2
    ADD CONSTRAINT memories_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.observed_files_g2
    ADD CONSTRAINT observed_files_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.offsets
    ADD CONSTRAINT offsets_pkey PRIMARY KEY (generation, shard);
ALTER TABLE ONLY memctl.outbox_g2
    ADD CONSTRAINT outbox_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.project_digests_g2
    ADD CONSTRAINT project_digests_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.project_knowledge_g1
    ADD CONSTRAINT project_knowledge_g1_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.project_shares_g2
    ADD CONSTRAINT project_shares_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.project_words_g2
    ADD CONSTRAINT project_words_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.projection_state
    ADD CONSTRAINT projection_state_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY memctl.rebuild_tasks
    ADD CONSTRAINT rebuild_tasks_pkey PRIMARY KEY (rebuild, step, number);
ALTER TABLE ONLY memctl.rebuilds
    ADD CONSTRAINT rebuilds_pkey PRIMARY KEY (rebuild);
ALTER TABLE ONLY memctl.receipts
    ADD CONSTRAINT receipts_pkey PRIMARY KEY (receipt);
ALTER TABLE ONLY memctl.reflections_g2
    ADD CONSTRAINT reflections_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.regard_g2
    ADD CONSTRAINT regard_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.relations_g2
    ADD CONSTRAINT relations_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.resolutions_g2
    ADD CONSTRAINT resolutions_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.routes_g2
    ADD CONSTRAINT routes_g2_pkey PRIMARY KEY (space_id, source, target);
ALTER TABLE ONLY memctl.schema_version
    ADD CONSTRAINT schema_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY memctl.sentiment_g2
    ADD CONSTRAINT sentiment_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.sessions_g1
    ADD CONSTRAINT sessions_g1_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.spaces
    ADD CONSTRAINT spaces_name_key UNIQUE (name);
ALTER TABLE ONLY memctl.spaces
    ADD CONSTRAINT spaces_pkey PRIMARY KEY (space_id);
ALTER TABLE ONLY memctl.stats_g1
    ADD CONSTRAINT stats_g1_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.tasks_g2
    ADD CONSTRAINT tasks_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.tombstones
    ADD CONSTRAINT tombstones_space_id_kind_stream_value_since_until_key UNIQUE (space_id, kind, stream, value, since, until);
ALTER TABLE ONLY memctl.tool_patterns_g1
    ADD CONSTRAINT tool_patterns_g1_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.user_preferences_g2
    ADD CONSTRAINT user_preferences_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.vector_points_g2
    ADD CONSTRAINT vector_points_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.verified_knowledge_g2
    ADD CONSTRAINT verified_knowledge_g2_pkey PRIMARY KEY (space_id, key);
ALTER TABLE ONLY memctl.working_memory_g1
    ADD CONSTRAINT working_memory_g1_pkey PRIMARY KEY (space_id, key);
CREATE INDEX bug_patterns_g2_space_id_int8_idx ON memctl.bug_patterns_g2 USING btree (space_id, ((("row" ->> 'last_seen'::text))::bigint));
CREATE INDEX bug_patterns_g2_space_id_int8_int81_idx ON memctl.bug_patterns_g2 USING btree (space_id, ((("row" ->> 'occurrences'::text))::bigint), ((("row" ->> 'last_seen'::text))::bigint));
CREATE INDEX bug_patterns_g2_space_id_int8_int81_idx1 ON memctl.bug_patterns_g2 USING btree (space_id, ((("row" ->> 'resolutions'::text))::bigint), ((("row" ->> 'last_seen'::text))::bigint));
CREATE INDEX candidates_g2_space_id_expr_bool_int8_idx ON memctl.candidates_g2 USING btree (space_id, (("row" ->> 'location'::text)), ((("row" ->> 'ready'::text))::boolean), ((("row" ->> 'last_seen'::text))::bigint));
CREATE INDEX code_patterns_g2_space_id_expr_int8_idx ON memctl.code_patterns_g2 USING btree (space_id, (("row" ->> 'location'::text)), ((("row" ->> 'last_seen'::text))::bigint));
CREATE INDEX code_patterns_g2_space_id_int8_idx ON memctl.code_patterns_g2 USING btree (space_id, ((("row" ->> 'last_seen'::text))::bigint));
CREATE INDEX code_rules_g2_space_id_int8_idx ON memctl.code_rules_g2 USING btree (space_id, ((("row" ->> 'last_seen'::text))::bigint));
CREATE INDEX consolidation_log_g2_space_id_int8_idx ON memctl.consolidation_log_g2 USING btree (space_id, ((("row" ->> 'occurred_at'::text))::bigint));
CREATE INDEX entities_g2_space_id_expr_int8_idx ON memctl.entities_g2 USING btree (space_id, (("row" ->> 'kind'::text)), ((("row" ->> 'last_seen'::text))::bigint));
CREATE INDEX entities_g2_space_id_int8_idx ON memctl.entities_g2 USING btree (space_id, ((("row" ->> 'interactions'::text))::bigint));
CREATE INDEX entities_g2_space_id_int8_idx1 ON memctl.entities_g2 USING btree (space_id, ((("row" ->> 'last_seen'::text))::bigint));
CREATE INDEX episodes_g1_space_id_expr_idx ON memctl.episodes_g1 USING btree (space_id, (("row" ->> 'task'::text)));
CREATE INDEX episodes_g1_space_id_expr_idx1 ON memctl.episodes_g1 USING btree (space_id, (("row" ->> 'stack_signature'::text)));
CREATE INDEX episodes_g1_space_id_expr_int8_idx ON memctl.episodes_g1 USING btree (space_id, (("row" ->> 'location'::text)), ((("row" ->> 'started_at'::text))::bigint));
CREATE INDEX episodes_g1_space_id_expr_int8_idx1 ON memctl.episodes_g1 USING btree (space_id, (("row" ->> 'outcome'::text)), ((("row" ->> 'started_at'::text))::bigint));
CREATE INDEX episodes_g1_space_id_expr_int8_idx2 ON memctl.episodes_g1 USING btree (space_id, (("row" ->> 'task_type'::text)), ((("row" ->> 'started_at'::text))::bigint));
CREATE INDEX episodes_g1_space_id_expr_int8_idx3 ON memctl.episodes_g1 USING btree (space_id, (("row" ->> 'stream'::text)), ((("row" ->> 'started_at'::text))::bigint));
CREATE INDEX episodes_g1_space_id_int8_idx ON memctl.episodes_g1 USING btree (space_id, ((("row" ->> 'started_at'::text))::bigint));
CREATE INDEX episodes_g1_space_id_stream_idx ON memctl.episodes_g1 USING btree (space_id, stream);
CREATE UNIQUE INDEX events_id ON memctl.events USING btree (space_id, event_id);
CREATE INDEX events_skipped ON memctl.events USING btree ("position") WHERE (type = 'event.skipped'::text);
CREATE INDEX events_sources ON memctl.events USING gin (sources) WHERE (sources IS NOT NULL);
CREATE INDEX events_stream ON memctl.events USING btree (space_id, stream, "position");
CREATE INDEX events_variants ON memctl.events USING btree (space_id, variant_of) WHERE (variant_of IS NOT NULL);
CREATE INDEX facts_g1_at_idx ON memctl.facts_g1 USING btree (at);
CREATE INDEX facts_g1_space_id_stream_idx ON memctl.facts_g1 USING btree (space_id, stream);
CREATE INDEX insights_g2_space_id_expr_expr1_int8_idx ON memctl.insights_g2 USING btree (space_id, (("row" ->> 'location'::text)), (("row" ->> 'kind'::text)), ((("row" ->> 'last_seen'::text))::bigint));
CREATE INDEX insights_g2_space_id_expr_idx ON memctl.insights_g2 USING btree (space_id, (("row" ->> 'subject'::text)));
CREATE INDEX insights_g2_space_id_expr_int8_idx ON memctl.insights_g2 USING btree (space_id, (("row" ->> 'kind'::text)), ((("row" ->> 'last_seen'::text))::bigint));
CREATE INDEX memories_g2_space_id_expr_expr1_int8_idx ON memctl.memories_g2 USING btree (space_id, (("row" ->> 'location'::text)), (("row" ->> 'kind'::text)), ((("row" ->> 'occurred_at'::text))::bigint));
CREATE INDEX memories_g2_space_id_expr_int8_idx ON memctl.memories_g2 USING btree (space_id, (("row" ->> 'bucket'::text)), ((("row" ->> 'occurred_at'::text))::bigint));
CREATE INDEX memories_g2_space_id_expr_int8_idx1 ON memctl.memories_g2 USING btree (space_id, (("row" ->> 'kind'::text)), ((("row" ->> 'occurred_at'::text))::bigint));
CREATE INDEX memories_g2_space_id_float8_idx ON memctl.memories_g2 USING btree (space_id, ((("row" ->> 'importance'::text))::double precision));
CREATE INDEX memories_g2_space_id_int8_idx ON memctl.memories_g2 USING btree (space_id, ((("row" ->> 'occurred_at'::text))::bigint));
CREATE INDEX outbox_g2_dense_version_idx ON memctl.outbox_g2 USING btree (dense, version);
CREATE INDEX project_knowledge_g1_space_id_expr_int8_idx ON memctl.project_knowledge_g1 USING btree (space_id, (("row" ->> 'location'::text)), ((("row" ->> 'last_at'::text))::bigint));
CREATE INDEX project_knowledge_g1_space_id_stream_idx ON memctl.project_knowledge_g1 USING btree (space_id, stream);
CREATE INDEX reflections_g2_space_id_expr_int8_idx ON memctl.reflections_g2 USING btree (space_id, (("row" ->> 'location'::text)), ((("row" ->> 'occurred_at'::text))::bigint));
CREATE INDEX reflections_g2_space_id_int8_idx ON memctl.reflections_g2 USING btree (space_id, ((("row" ->> 'occurred_at'::text))::bigint));
CREATE INDEX regard_g2_space_id_bool_int8_idx ON memctl.regard_g2 USING btree (space_id, ((("row" ->> 'pinned'::text))::boolean), ((("row" ->> 'pinned_since'::text))::bigint));
CREATE INDEX relations_g2_space_id_expr_idx ON memctl.relations_g2 USING btree (space_id, (("row" ->> 'source'::text)));
CREATE INDEX relations_g2_space_id_int8_idx ON memctl.relations_g2 USING btree (space_id, ((("row" ->> 'at'::text))::bigint));
CREATE INDEX resolutions_g2_space_id_expr_int8_idx ON memctl.resolutions_g2 USING btree (space_id, (("row" ->> 'resolution'::text)), ((("row" ->> 'resolved_at'::text))::bigint));
CREATE INDEX routes_g2_target_idx ON memctl.routes_g2 USING btree (target);
CREATE INDEX sentiment_g2_space_id_expr_idx ON memctl.sentiment_g2 USING btree (space_id, (("row" ->> 'node'::text)));
CREATE INDEX sentiment_g2_space_id_expr_int8_idx ON memctl.sentiment_g2 USING btree (space_id, (("row" ->> 'location'::text)), ((("row" ->> 'last_seen'::text))::bigint));
CREATE INDEX sessions_g1_space_id_expr_int8_idx ON memctl.sessions_g1 USING btree (space_id, (("row" ->> 'location'::text)), ((("row" ->> 'last_at'::text))::bigint));
CREATE INDEX sessions_g1_space_id_expr_int8_idx1 ON memctl.sessions_g1 USING btree (space_id, (("row" ->> 'agent'::text)), ((("row" ->> 'last_at'::text))::bigint));
CREATE INDEX sessions_g1_space_id_int8_idx ON memctl.sessions_g1 USING btree (space_id, ((("row" ->> 'last_at'::text))::bigint));
CREATE INDEX sessions_g1_space_id_int8_idx1 ON memctl.sessions_g1 USING btree (space_id, ((("row" ->> 'started_at'::text))::bigint));
CREATE INDEX sessions_g1_space_id_stream_idx ON memctl.sessions_g1 USING btree (space_id, stream);
CREATE INDEX stats_g1_space_id_expr_int8_idx ON memctl.stats_g1 USING btree (space_id, (("row" ->> 'location'::text)), ((("row" ->> 'day'::text))::bigint));
CREATE INDEX stats_g1_space_id_int8_idx ON memctl.stats_g1 USING btree (space_id, ((("row" ->> 'day'::text))::bigint));
CREATE INDEX stats_g1_space_id_stream_idx ON memctl.stats_g1 USING btree (space_id, stream);
CREATE INDEX tasks_g2_space_id_expr_expr1_int8_idx ON memctl.tasks_g2 USING btree (space_id, (("row" ->> 'location'::text)), (("row" ->> 'status'::text)), ((("row" ->> 'last_at'::text))::bigint));
CREATE INDEX tasks_g2_space_id_expr_int8_idx ON memctl.tasks_g2 USING btree (space_id, (("row" ->> 'location'::text)), ((("row" ->> 'last_at'::text))::bigint));
CREATE INDEX tasks_g2_space_id_expr_int8_idx1 ON memctl.tasks_g2 USING btree (space_id, (("row" ->> 'outcome'::text)), ((("row" ->> 'last_at'::text))::bigint));
CREATE INDEX tool_patterns_g1_space_id_expr_int8_idx ON memctl.tool_patterns_g1 USING btree (space_id, (("row" ->> 'location'::text)), ((("row" ->> 'last_at'::text))::bigint));
CREATE INDEX tool_patterns_g1_space_id_stream_idx ON memctl.tool_patterns_g1 USING btree (space_id, stream);
CREATE INDEX user_preferences_g2_space_id_expr_int8_idx ON memctl.user_preferences_g2 USING btree (space_id, (("row" ->> 'location'::text)), ((("row" ->> 'last_seen'::text))::bigint));
CREATE INDEX user_preferences_g2_space_id_int8_idx ON memctl.user_preferences_g2 USING btree (space_id, ((("row" ->> 'last_seen'::text))::bigint));
CREATE INDEX vector_points_g2_space_id_expr_idx ON memctl.vector_points_g2 USING btree (space_id, (("row" ->> 'memory_id'::text)));
CREATE INDEX vector_points_g2_space_id_expr_idx1 ON memctl.vector_points_g2 USING btree (space_id, (("row" ->> 'dense_hash'::text)));
CREATE INDEX vector_points_g2_space_id_int8_idx ON memctl.vector_points_g2 USING btree (space_id, ((("row" ->> 'occurred_at'::text))::bigint));
CREATE INDEX verified_knowledge_g2_space_id_expr_expr1_int8_idx ON memctl.verified_knowledge_g2 USING btree (space_id, (("row" ->> 'location'::text)), (("row" ->> 'kind'::text)), ((("row" ->> 'last_seen'::text))::bigint));
CREATE INDEX verified_knowledge_g2_space_id_expr_int8_idx ON memctl.verified_knowledge_g2 USING btree (space_id, (("row" ->> 'status'::text)), ((("row" ->> 'last_seen'::text))::bigint));
CREATE INDEX working_memory_g1_space_id_expr_int8_idx ON memctl.working_memory_g1 USING btree (space_id, (("row" ->> 'location'::text)), ((("row" ->> 'updated_at'::text))::bigint));
CREATE INDEX working_memory_g1_space_id_int8_idx ON memctl.working_memory_g1 USING btree (space_id, ((("row" ->> 'updated_at'::text))::bigint));
CREATE INDEX working_memory_g1_space_id_stream_idx ON memctl.working_memory_g1 USING btree (space_id, stream);
CREATE TRIGGER events_hold_positions BEFORE INSERT ON memctl.events FOR EACH STATEMENT EXECUTE FUNCTION memctl.hold_positions();
ALTER TABLE memctl.events ENABLE ALWAYS TRIGGER events_hold_positions;
CREATE TRIGGER events_no_change BEFORE DELETE OR UPDATE ON memctl.events FOR EACH ROW EXECUTE FUNCTION memctl.refuse_change();
ALTER TABLE memctl.events ENABLE ALWAYS TRIGGER events_no_change;
CREATE TRIGGER events_no_truncate BEFORE TRUNCATE ON memctl.events FOR EACH STATEMENT EXECUTE FUNCTION memctl.refuse_change();
ALTER TABLE memctl.events ENABLE ALWAYS TRIGGER events_no_truncate;
ALTER TABLE ONLY memctl.checkpoints
    ADD CONSTRAINT checkpoints_space_id_fkey FOREIGN KEY (space_id) REFERENCES memctl.spaces(space_id);
ALTER TABLE ONLY memctl.dead_letters
    ADD CONSTRAINT dead_letters_generation_fkey FOREIGN KEY (generation) REFERENCES memctl.generations(generation);
ALTER TABLE ONLY memctl.dead_letters
    ADD CONSTRAINT dead_letters_space_id_fkey FOREIGN KEY (space_id) REFERENCES memctl.spaces(space_id);
ALTER TABLE ONLY memctl.generations
    ADD CONSTRAINT generations_facts_of_fkey FOREIGN KEY (facts_of) REFERENCES memctl.generations(generation);
ALTER TABLE ONLY memctl.halts
    ADD CONSTRAINT halts_generation_fkey FOREIGN KEY (generation) REFERENCES memctl.generations(generation);
ALTER TABLE ONLY memctl.offsets
    ADD CONSTRAINT offsets_generation_fkey FOREIGN KEY (generation) REFERENCES memctl.generations(generation);
ALTER TABLE ONLY memctl.projection_state
    ADD CONSTRAINT projection_state_stage1_fkey FOREIGN KEY (stage1) REFERENCES memctl.generations(generation);
ALTER TABLE ONLY memctl.projection_state
    ADD CONSTRAINT projection_state_stage2_fkey FOREIGN KEY (stage2) REFERENCES memctl.generations(generation);
ALTER TABLE ONLY memctl.rebuilds
    ADD CONSTRAINT rebuilds_stage1_fkey FOREIGN KEY (stage1) REFERENCES memctl.generations(generation);
ALTER TABLE ONLY memctl.rebuilds
    ADD CONSTRAINT rebuilds_stage2_fkey FOREIGN KEY (stage2) REFERENCES memctl.generations(generation);
ALTER TABLE ONLY memctl.receipts
    ADD CONSTRAINT receipts_space_id_fkey FOREIGN KEY (space_id) REFERENCES memctl.spaces(space_id);
ALTER TABLE ONLY memctl.tombstones
    ADD CONSTRAINT tombstones_receipt_fkey FOREIGN KEY (receipt) REFERENCES memctl.receipts(receipt);
ALTER TABLE ONLY memctl.tombstones
    ADD CONSTRAINT tombstones_space_id_fkey FOREIGN KEY (space_id) REFERENCES memctl.spaces(space_id);
