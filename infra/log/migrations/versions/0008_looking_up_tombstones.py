"""Tombstones are looked up, one by one: an append costs the same however many were laid."""

from alembic import op

revision = "0008"
down_revision = "0007"

# As 0006 has it, but through the index on (space_id, kind, stream, value, since, until), which names every event's
# possible tombstones; only those that hold for a time or a folder are read whole, and they are as few as the times
# something was forgotten so. Scalar subqueries with a LIMIT are never turned into a hash of the whole table, and
# without sequential scans one plan is right for every number of tombstones and events: it is made once a connection.
FORGOTTEN = """
DROP FUNCTION memctl.forgotten(integer, uuid[], text[], text[], bigint[], text[], uuid[], text[]);

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
        WHERE g.at < before
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


def upgrade() -> None:
    # The driver's own connection: no placeholders are looked for, so % means what it means in PL/pgSQL.
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    driver.execute(FORGOTTEN)
