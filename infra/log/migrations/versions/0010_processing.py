"""Processors: what each works on, how often it failed there, and what language models were asked and cost."""

from alembic import op

revision = "0010"
down_revision = "0009"

# Ids, counts and names only: what was worked on stands in the log, what came of it is an event.
PROCESSING = """
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
"""


def upgrade() -> None:
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    driver.execute(PROCESSING)
