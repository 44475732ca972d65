"""The history of the mark never runs backwards, whoever else moves it at that moment."""

from alembic import op

revision = "0005"
down_revision = "0004"

SET_MARK = """
CREATE OR REPLACE FUNCTION memctl.set_mark(target bigint) RETURNS bigint LANGUAGE plpgsql AS $$
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
"""


def upgrade() -> None:
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    driver.execute(SET_MARK)
