"""The log in partitions, and what keeps deliveries apart in a narrow table of its own.

The log of before is not rewritten. `prepare` works beside its writers in steps that may be killed and begun again: it
makes the narrow table and keeps it in step by triggers, fills it, lets appends go by it, and has Postgres check below
which position every event lies. `upgrade` then attaches that table as the first partition, in one short transaction.
"""

import time
from collections.abc import Callable

from alembic import op
from psycopg import Connection, errors

revision = "0018"
down_revision = "0017"

SIZE = 10_000_000
"""Positions of a partition."""

PATIENCE_S = 2.0
"""How long a lock of the log is waited for before those who wait behind are let through."""

# "memd" in ASCII: who fills the narrow table holds it, and who gives an event another id shares it.
FILLING = 0x6D656D64

# The first number of the locks that appenders share; the second is their space.
APPENDERS = 0x6D656D63

KEPT_IN_STEP = f"""
LOCK TABLE memctl.events IN SHARE ROW EXCLUSIVE MODE;
CREATE TABLE memctl.deliveries (
    position bigint NOT NULL,
    space_id integer NOT NULL,
    event_id uuid NOT NULL,
    PRIMARY KEY (space_id, event_id)
);
COMMENT ON TABLE memctl.deliveries IS 'what is in the log, by id: no two events of a space have one id';
CREATE TABLE memctl.filling AS
    SELECT 0::bigint AS done, coalesce(pg_sequence_last_value(
        pg_get_serial_sequence('memctl.events', 'position')::regclass), 0) AS upto;

CREATE FUNCTION memctl.deliver() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        PERFORM pg_advisory_xact_lock_shared({FILLING}, 0);
        DELETE FROM memctl.deliveries WHERE space_id = OLD.space_id AND event_id = OLD.event_id;
    END IF;
    INSERT INTO memctl.deliveries (position, space_id, event_id) VALUES (NEW.position, NEW.space_id, NEW.event_id);
    RETURN NULL;
END $$;

-- 'memctl.covered' says of the insert that follows: 'on', that the lock of its space is held; 'entered', that its
-- deliveries have been entered as well. While such an insert runs it is 'entering'.
CREATE OR REPLACE FUNCTION memctl.hold_positions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    covered text := current_setting('memctl.covered', true);
    done    text;
BEGIN
    IF covered = 'entered' THEN
        done := set_config('memctl.covered', 'entering', true);
        RETURN NULL;
    END IF;
    IF covered IS DISTINCT FROM 'on' THEN
        done := pg_advisory_xact_lock_shared({APPENDERS}, 0);
    END IF;
    done := set_config('memctl.covered', '', true);
    RETURN NULL;
END $$;
"""

ROW_TRIGGERS = """
CREATE TRIGGER events_deliver AFTER INSERT ON memctl.events FOR EACH ROW
    WHEN (current_setting('memctl.covered', true) IS DISTINCT FROM 'entering') EXECUTE FUNCTION memctl.deliver();
CREATE TRIGGER events_deliver_again AFTER UPDATE OF event_id ON memctl.events FOR EACH ROW
    WHEN (OLD.event_id <> NEW.event_id) EXECUTE FUNCTION memctl.deliver();
ALTER TABLE memctl.events ENABLE ALWAYS TRIGGER events_deliver;
ALTER TABLE memctl.events ENABLE ALWAYS TRIGGER events_deliver_again;
"""

# One position is handed out for each event. Of those whose id is taken it is not used.
APPEND = """
-- Positions and statuses in the order given: n(ew), s(tored under that id already), o(ther payload is stored there),
-- e(mptied). OFFSET 0 keeps the payload from being parsed twice.
CREATE OR REPLACE FUNCTION memctl.append_events(
    in_space integer, in_ids uuid[], in_streams text[], in_hashes smallint[], in_types text[], in_versions smallint[],
    in_occurred bigint[], in_actors text[], in_locations text[], in_sessions text[], in_causations uuid[],
    in_correlations uuid[], in_keys text[], in_variants_of uuid[], in_sources text[], in_salts bytea[],
    in_payloads text[], OUT positions bigint[], OUT statuses text
) LANGUAGE plpgsql AS $$
DECLARE
    handed_out bigint[];
    entered    bigint[];
    all_new    boolean;
    done       text;
BEGIN
    IF memctl.begin_append(in_space) THEN
        DECLARE
            gone bigint[] := memctl.forgotten(
                in_space, in_ids, in_streams, in_types, in_occurred, in_locations, in_variants_of, in_payloads);
        BEGIN
            IF gone IS NOT NULL THEN
                -- Nothing is put: whoever asks leaves these out and asks again. No insert follows.
                done := set_config('memctl.covered', '', true);
                SELECT string_agg(CASE WHEN ord = ANY(gone) THEN 'f' ELSE '-' END, '' ORDER BY ord) INTO statuses
                    FROM generate_series(1, cardinality(in_ids)) AS ord;
                RETURN;
            END IF;
        END;
    END IF;
    handed_out := ARRAY(SELECT nextval('memctl.events_position_seq') FROM generate_series(1, cardinality(in_ids)));
    WITH put AS (
        INSERT INTO memctl.deliveries (position, space_id, event_id)
        SELECT d.position, in_space, d.id FROM unnest(handed_out, in_ids) AS d(position, id)
        ON CONFLICT DO NOTHING
        RETURNING position)
    SELECT coalesce(array_agg(put.position), '{}') INTO entered FROM put;
    all_new := cardinality(entered) = cardinality(handed_out);
    done := set_config('memctl.covered', 'entered', true);
    INSERT INTO memctl.events (position, event_id, space_id, stream, stream_hash, type, schema_version, occurred_at,
        actor, location, session_id, causation_id, correlation_id, dedupe_key, variant_of, sources, salt, payload_hash,
        payload)
    OVERRIDING SYSTEM VALUE
    SELECT i.position, i.id, in_space, i.stream, i.hash, i.type, i.version,
        timestamptz 'epoch' + i.occurred * interval '1 microsecond', i.actor, i.location, i.session,
        i.causation, i.correlation, i.key, i.variant_of, i.sources::uuid[], i.salt,
        sha256(i.salt || convert_to(i.payload::text, 'UTF8')), i.payload
    FROM (SELECT a.position, a.id, a.stream, a.hash, a.type, a.version, a.occurred, a.actor, a.location, a.session,
                 a.causation, a.correlation, a.key, a.variant_of, a.sources, a.salt, a.payload::jsonb AS payload
          FROM unnest(handed_out, in_ids, in_streams, in_hashes, in_types, in_versions, in_occurred, in_actors,
                      in_locations, in_sessions, in_causations, in_correlations, in_keys, in_variants_of, in_sources,
                      in_salts, in_payloads)
              AS a(position, id, stream, hash, type, version, occurred, actor, location, session, causation,
                   correlation, key, variant_of, sources, salt, payload)
          WHERE all_new OR a.position IN (SELECT unnest(entered))
          OFFSET 0) i;
    IF all_new THEN
        positions := handed_out;
        statuses := repeat('n', cardinality(in_ids));
        RETURN;
    END IF;

    WITH found AS (
        SELECT g.ord, coalesce(n.position, d.position) AS position,
            CASE WHEN n.position IS NOT NULL THEN 'n' WHEN e.payload IS NULL THEN 'e'
                 WHEN (e.payload_hash = sha256(e.salt || convert_to(in_payloads[g.ord]::jsonb::text, 'UTF8'))
                       AND e.type = in_types[g.ord] AND e.location = in_locations[g.ord]
                       AND e.actor = in_actors[g.ord] AND e.stream = in_streams[g.ord]
                       AND e.session_id = in_sessions[g.ord]
                       AND e.sources IS NOT DISTINCT FROM in_sources[g.ord]::uuid[]
                       AND e.occurred_at = timestamptz 'epoch' + in_occurred[g.ord] * interval '1 microsecond') IS FALSE
                 THEN 'o' ELSE 's' END AS status
        FROM unnest(in_ids, handed_out) WITH ORDINALITY AS g(id, position, ord)
        LEFT JOIN unnest(entered) AS n(position) ON n.position = g.position
        LEFT JOIN memctl.deliveries d ON n.position IS NULL AND d.space_id = in_space AND d.event_id = g.id
        LEFT JOIN memctl.events e ON e.position = d.position)
    SELECT array_agg(f.position ORDER BY f.ord), string_agg(f.status, '' ORDER BY f.ord)
        INTO positions, statuses FROM found f;
END $$;

-- The short way: the new position, or NULL where something is stored under that id already.
CREATE OR REPLACE FUNCTION memctl.append_event(
    in_space integer, in_id uuid, in_stream text, in_hash smallint, in_type text, in_version smallint,
    in_occurred bigint, in_actor text, in_location text, in_session text, in_causation uuid, in_correlation uuid,
    in_key text, in_variant_of uuid, in_sources text, in_salt bytea, in_payload text
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    stored  jsonb := in_payload;
    arrived bigint;
    done    text;
BEGIN
    IF memctl.begin_append(in_space) THEN
        IF memctl.forgotten(in_space, ARRAY[in_id], ARRAY[in_stream], ARRAY[in_type], ARRAY[in_occurred],
                            ARRAY[in_location], ARRAY[in_variant_of], ARRAY[in_payload]) IS NOT NULL THEN
            done := set_config('memctl.covered', '', true);
            RETURN 0;
        END IF;
    END IF;
    done := set_config('memctl.covered', 'entered', true);
    WITH put AS (
        INSERT INTO memctl.deliveries (position, space_id, event_id)
        VALUES (nextval('memctl.events_position_seq'), in_space, in_id)
        ON CONFLICT DO NOTHING
        RETURNING position)
    INSERT INTO memctl.events (position, event_id, space_id, stream, stream_hash, type, schema_version, occurred_at,
        actor, location, session_id, causation_id, correlation_id, dedupe_key, variant_of, sources, salt, payload_hash,
        payload)
    OVERRIDING SYSTEM VALUE
    SELECT put.position, in_id, in_space, in_stream, in_hash, in_type, in_version,
        timestamptz 'epoch' + in_occurred * interval '1 microsecond', in_actor, in_location, in_session, in_causation,
        in_correlation, in_key, in_variant_of, in_sources::uuid[], in_salt,
        sha256(in_salt || convert_to(stored::text, 'UTF8')), stored
    FROM put
    RETURNING position INTO arrived;
    RETURN arrived;
END $$;
"""

FILL = """
WITH step AS (
    UPDATE memctl.filling f SET done = least(f.done + %(step)s, f.upto) FROM memctl.filling was
    WHERE f.done < f.upto RETURNING was.done AS after, f.done AS upto)
INSERT INTO memctl.deliveries (position, space_id, event_id)
SELECT e.position, e.space_id, e.event_id FROM step JOIN memctl.events e ON e.position > step.after
    AND e.position <= step.upto
ORDER BY e.space_id, e.event_id ON CONFLICT DO NOTHING
"""

# Partitions are ranges of positions. The rest takes what lies beyond all of them, so that no append fails for want of
# one. Indexes: by position; a session's events by 1,024 positions at a time, which many of its events have in common,
# so that each takes some 10 bytes of the index and not the name of its session; what is rare by what it is.
PARTITIONED = """
CREATE TABLE memctl.events (LIKE memctl.{first} INCLUDING DEFAULTS INCLUDING STORAGE INCLUDING COMPRESSION)
    PARTITION BY RANGE (position);
ALTER TABLE memctl.events ADD PRIMARY KEY (position);
ALTER TABLE memctl.events ADD CONSTRAINT events_stream_hash_check CHECK (stream_hash BETWEEN 0 AND 255);
ALTER TABLE memctl.events ALTER COLUMN position
    ADD GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME memctl.events_position_seq);
"""

INDEXES = """
CREATE INDEX events_stream ON memctl.events (space_id, stream, (position >> 10));
CREATE INDEX events_variants ON memctl.events (space_id, variant_of) WHERE variant_of IS NOT NULL;
CREATE INDEX events_skipped ON memctl.events (position) WHERE type = 'event.skipped';
CREATE INDEX events_sources ON memctl.events USING gin (sources) WHERE sources IS NOT NULL;
CREATE INDEX events_recalled ON memctl.events (space_id, occurred_at) WHERE type = 'memory.recalled';
"""

GUARDS = """
CREATE TRIGGER events_no_change BEFORE UPDATE OR DELETE ON memctl.events
    FOR EACH ROW EXECUTE FUNCTION memctl.refuse_change();
ALTER TABLE memctl.events ENABLE ALWAYS TRIGGER events_no_change;
"""

OF_A_TABLE = """
CREATE TRIGGER events_no_truncate BEFORE TRUNCATE ON memctl.{table}
    FOR EACH STATEMENT EXECUTE FUNCTION memctl.refuse_change();
CREATE TRIGGER events_hold_positions BEFORE INSERT ON memctl.{table}
    FOR EACH STATEMENT EXECUTE FUNCTION memctl.hold_positions();
ALTER TABLE memctl.{table} ENABLE ALWAYS TRIGGER events_no_truncate;
ALTER TABLE memctl.{table} ENABLE ALWAYS TRIGGER events_hold_positions;
"""

REST = """
CREATE TABLE memctl.events_rest (LIKE memctl.events INCLUDING ALL EXCLUDING IDENTITY);
""" + OF_A_TABLE.format(table="events_rest")

PARTITIONS = f"""
CREATE VIEW memctl.partitions AS
    SELECT c.oid::regclass AS name, c.relname::text AS short, found.bounds IS NULL AS is_rest,
        found.bounds[1]::bigint AS first, found.bounds[2]::bigint AS beyond
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    LEFT JOIN LATERAL regexp_match(
        pg_get_expr(c.relpartbound, c.oid), 'FROM \\(''(\\d+)''\\) TO \\(''(\\d+)''\\)') AS found(bounds) ON true
    WHERE i.inhparent = 'memctl.events'::regclass;

-- Make partitions ahead: another one as soon as half of the last is used. What the rest has taken becomes one as well.
-- Returns how many were made.
CREATE FUNCTION memctl.make_partitions(size bigint, upto bigint DEFAULT 0) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    used    bigint;
    reached bigint;
    next    bigint;
    highest bigint;
    made    integer := 0;
BEGIN
    used := greatest(upto, pg_sequence_last_value('memctl.events_position_seq'));
    IF coalesce(used, 0) < (SELECT max(p.beyond) FROM memctl.partitions p) - size / 2
            AND NOT EXISTS (SELECT FROM memctl.events_rest) THEN
        RETURN 0;
    END IF;
    LOCK TABLE memctl.events IN SHARE UPDATE EXCLUSIVE MODE;
    IF EXISTS (SELECT FROM memctl.events_rest) THEN
        LOCK TABLE memctl.events IN ACCESS EXCLUSIVE MODE;
        SELECT max(position) INTO highest FROM memctl.events_rest;
        SELECT max(p.beyond) INTO reached FROM memctl.partitions p;
        ALTER TABLE memctl.events DETACH PARTITION memctl.events_rest;
        EXECUTE format('ALTER TABLE memctl.events_rest RENAME TO events_from_%s', reached);
        EXECUTE format('ALTER TABLE memctl.events ATTACH PARTITION memctl.events_from_%s FOR VALUES FROM (%s) TO (%s)',
                       reached, reached, (highest / size + 1) * size);
        {REST.strip()}
        ALTER TABLE memctl.events ATTACH PARTITION memctl.events_rest DEFAULT;
        made := 1;
    END IF;
    LOOP
        SELECT max(p.beyond) INTO reached FROM memctl.partitions p;
        EXIT WHEN coalesce(used, 0) < reached - size / 2;
        -- One takes all of a gap that so many would not fill.
        next := greatest(reached / size + 1, CASE WHEN used > reached + 1000 * size THEN used / size END) * size;
        EXECUTE format('CREATE TABLE memctl.events_from_%s (LIKE memctl.events INCLUDING ALL EXCLUDING IDENTITY)',
                       reached);
        EXECUTE replace($t${OF_A_TABLE.strip()}$t$, '{{table}}', 'events_from_' || reached);
        EXECUTE format('ALTER TABLE memctl.events ATTACH PARTITION memctl.events_from_%s FOR VALUES FROM (%s) TO (%s)',
                       reached, reached, next);
        made := made + 1;
    END LOOP;
    RETURN made;
END $$;

-- Where the events of these ids stand; the second with all further versions of the deliveries.
CREATE FUNCTION memctl.positions_of(in_space integer, ids uuid[]) RETURNS SETOF bigint LANGUAGE sql STABLE AS $$
    SELECT position FROM memctl.deliveries WHERE space_id = in_space AND event_id = ANY(ids)
$$;
CREATE FUNCTION memctl.positions_of_versions(in_space integer, ids uuid[]) RETURNS SETOF bigint
LANGUAGE sql STABLE AS $$
    SELECT position FROM memctl.deliveries WHERE space_id = in_space AND event_id = ANY(ids)
    UNION SELECT position FROM memctl.events WHERE space_id = in_space AND variant_of = ANY(ids)
$$;
"""


def prepare(connection: Connection[tuple[object, ...]], step: int) -> None:
    """What can be done beside the writers, of the database as 0017 left it; may be killed and begun again. One
    transaction enters the deliveries of `step` positions."""
    if not _is(connection, "SELECT to_regclass('memctl.deliveries') IS NOT NULL"):
        _patiently(connection, lambda: _run(connection, KEPT_IN_STEP, ROW_TRIGGERS))
    while _is(connection, "SELECT done < upto FROM memctl.filling"):
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", [FILLING])
            connection.execute(FILL, {"step": step})
    connection.execute(APPEND)
    _index_streams(connection)
    beyond = _beyond(connection)
    if beyond is None or _is(connection, f"SELECT {_LAST} > {beyond - SIZE // 4}"):
        _patiently(connection, lambda: _bound(connection))
    connection.execute("ALTER TABLE memctl.events VALIDATE CONSTRAINT events_first")


def _index_streams(connection: Connection[tuple[object, ...]]) -> None:
    """Make the index that the first partition is to have beside the one of before; one that was left half made goes."""
    found = "SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass('memctl.events_stream_new') AND {})"
    if _is(connection, found.format("NOT indisvalid")):
        connection.execute("DROP INDEX CONCURRENTLY memctl.events_stream_new")
    if not _is(connection, found.format("indisvalid")):
        connection.execute(
            "CREATE INDEX CONCURRENTLY events_stream_new ON memctl.events (space_id, stream, (position >> 10))"
        )


_LAST = "coalesce(pg_sequence_last_value('memctl.events_position_seq'), 0)"


def _bound(connection: Connection[tuple[object, ...]]) -> None:
    """Say below which position every event of the table lies, with room for those to come until it is attached."""
    _run(
        connection,
        "ALTER TABLE memctl.events DROP CONSTRAINT IF EXISTS events_first",
        f"""DO $do$ BEGIN
            EXECUTE format('ALTER TABLE memctl.events ADD CONSTRAINT events_first CHECK (position >= 1 AND'
                           ' position < %s) NOT VALID', (({_LAST} + {SIZE // 2}) / {SIZE} + 1) * {SIZE});
        END $do$""",
    )


def _beyond(connection: Connection[tuple[object, ...]]) -> int | None:
    """The position below which the table's events lie by its constraint; None where it has none yet."""
    row = connection.execute(
        "SELECT substring(pg_get_constraintdef(oid) FROM '< ''?(\\d+)')::bigint FROM pg_constraint"
        " WHERE conname = 'events_first' AND conrelid = 'memctl.events'::regclass"
    ).fetchone()
    return None if row is None else int(str(row[0]))


def _is(connection: Connection[tuple[object, ...]], query: str) -> bool:
    row = connection.execute(query.encode()).fetchone()
    return bool(row and row[0])


def _run(connection: Connection[tuple[object, ...]], *statements: str) -> None:
    for statement in statements:
        connection.execute(statement.encode())


def _patiently(connection: Connection[tuple[object, ...]], act: Callable[[], None]) -> None:
    """Do something under a lock that others hold up, and that holds up others: for a little while, again and again."""
    while True:
        try:
            with connection.transaction():
                connection.execute(f"SET LOCAL lock_timeout = {int(PATIENCE_S * 1000)}".encode())
                act()
                return
        except (errors.LockNotAvailable, errors.DeadlockDetected):
            time.sleep(PATIENCE_S / 10)


def upgrade() -> None:
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    _patiently(driver, lambda: _switch(driver))


def _switch(connection: Connection[tuple[object, ...]]) -> None:
    """No append is under way in any space, and nobody reads, for as long as this transaction takes."""
    _run(
        connection,
        "LOCK TABLE memctl.spaces IN EXCLUSIVE MODE",
        f"SELECT pg_advisory_xact_lock({APPENDERS}, space) FROM (SELECT 0 UNION SELECT space_id FROM memctl.spaces"
        " ORDER BY 1) AS every(space)",
        "LOCK TABLE memctl.events IN ACCESS EXCLUSIVE MODE",
    )
    beyond, first = _beyond(connection), "events_from_1"
    row = connection.execute(f"SELECT {_LAST}, pg_get_functiondef('memctl.is_erasure'::regproc)".encode()).fetchone()
    assert row is not None
    last, is_erasure = row
    _run(
        connection,
        f"ALTER TABLE memctl.events RENAME TO {first}",
        f"DROP TRIGGER events_no_change ON memctl.{first}",
        f"DROP TRIGGER events_deliver ON memctl.{first}",
        f"DROP TRIGGER events_deliver_again ON memctl.{first}",
        f"DROP FUNCTION memctl.is_erasure(memctl.{first}, memctl.{first})",
        f"ALTER TABLE memctl.{first} ALTER COLUMN position DROP IDENTITY",
        "DROP INDEX memctl.events_id",
        "DROP INDEX memctl.events_stream",
        f"ALTER INDEX memctl.events_stream_new RENAME TO {first}_stream",
        *(f"ALTER INDEX memctl.events_{name} RENAME TO {first}_{name}"
          for name in ("pkey", "variants", "skipped", "sources", "recalled")),
        PARTITIONED.format(first=first),
        f"SELECT setval('memctl.events_position_seq', greatest({last}, 1), {last} > 0)",
        INDEXES,
        str(is_erasure),
        GUARDS,
        ROW_TRIGGERS,
        OF_A_TABLE.format(table="events"),
        f"ALTER TABLE memctl.events ATTACH PARTITION memctl.{first} FOR VALUES FROM (1) TO ({beyond})",
        REST,
        "ALTER TABLE memctl.events ATTACH PARTITION memctl.events_rest DEFAULT",
        f"ALTER TABLE memctl.{first} DROP CONSTRAINT events_first",
        "DROP TABLE memctl.filling",
        PARTITIONS,
    )  # fmt: skip
