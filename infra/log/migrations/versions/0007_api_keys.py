"""Keys of the API for the members of a team: what each may do, and over which projects. No key stands here, only its
hash."""

from alembic import op

revision = "0007"
down_revision = "0006"

TABLE = """
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
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    driver.execute(TABLE)
