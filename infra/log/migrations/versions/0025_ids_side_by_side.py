"""What transcripts say gets ids that lie side by side. What is in a log has the ids that it was given, and keeps them.

A memctl of before gives others. It is refused what is new of a transcript, as where a space moves: it keeps what it has
until it is exchanged.
"""

from alembic import op

revision = "0025"
down_revision = "0024"

SPACES = """
ALTER TABLE memctl.spaces ADD COLUMN former_ids boolean NOT NULL DEFAULT true;
COMMENT ON COLUMN memctl.spaces.former_ids IS 'events, or tombstones, may have ids as made before schema 0025';
UPDATE memctl.spaces s SET former_ids =
    EXISTS (SELECT FROM memctl.deliveries d WHERE d.space_id = s.space_id)
    OR EXISTS (SELECT FROM memctl.tombstones t WHERE t.space_id = s.space_id);

-- Whether one of these is new of a transcript and has an id as it was made before.
CREATE FUNCTION memctl.refuse_former(in_ids uuid[], in_keys text[], in_variants_of uuid[], in_space integer)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('memctl.former_ids', true) IS DISTINCT FROM 'on' AND EXISTS (
        SELECT FROM unnest(in_ids, in_keys, in_variants_of) AS e(id, key, variant_of)
        WHERE starts_with(e.key, 'transcript:') AND e.variant_of IS NULL AND get_byte(uuid_send(e.id), 6) >> 4 = 5)
    THEN
        RAISE EXCEPTION 'space % is written to by a newer memctl', in_space USING ERRCODE = 'MC001';
    END IF;
END $$;
"""

CHECKS = (
    (
        "append_events",
        "    IF all_new THEN\n        positions := handed_out;\n",
        "    IF all_new THEN\n        PERFORM memctl.refuse_former(in_ids, in_keys, in_variants_of, in_space);\n"
        "        positions := handed_out;\n",
    ),
    (
        "append_events",
        "\n    WITH found AS (\n",
        "\n    PERFORM memctl.refuse_former(array_agg(g.id), array_agg(g.key), array_agg(g.variant_of), in_space)\n"
        "        FROM unnest(handed_out, in_ids, in_keys, in_variants_of) AS g(position, id, key, variant_of)\n"
        "        WHERE g.position IN (SELECT unnest(entered));\n"
        "    WITH found AS (\n",
    ),
    (
        "append_event",
        "    RETURN arrived;\n",
        "    IF arrived IS NOT NULL THEN\n"
        "        PERFORM memctl.refuse_former(ARRAY[in_id], ARRAY[in_key], ARRAY[in_variant_of], in_space);\n"
        "    END IF;\n"
        "    RETURN arrived;\n",
    ),
)
"""Functions, where they are done with entering, and what stands there now."""


def upgrade() -> None:
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    driver.execute(SPACES)
    for function, place, instead in CHECKS:
        (body,) = driver.execute(
            "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'memctl'::regnamespace AND proname = %s",
            [function],
        ).fetchone()
        assert body.count(place) == 1, function
        driver.execute(body.replace(place, instead))
