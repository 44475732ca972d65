"""Which model's vectors are searched is known, and another's are made beside them: which those are, and which points
wait for one of which model."""

from alembic import op

revision = "0015"
down_revision = "0014"

# A recipe holds no key. What waits is of every generation that has a collection, and goes with it.
MODELS = """
CREATE TABLE memctl.vector_models (
    model      text PRIMARY KEY,
    dimensions integer NOT NULL CHECK (dimensions > 0),
    recipe     jsonb NOT NULL,
    status     text NOT NULL UNIQUE CHECK (status IN ('serving', 'filling', 'previous')),
    since      timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE memctl.waiting_for_vectors (
    generation integer NOT NULL,
    model      text NOT NULL,
    space_id   integer NOT NULL,
    key        text COLLATE "C" NOT NULL,
    version    bigint GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (generation, model, space_id, key)
);
CREATE INDEX waiting_for_vectors_newest ON memctl.waiting_for_vectors (generation, model, version);
"""


def upgrade() -> None:
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    driver.execute(MODELS)
