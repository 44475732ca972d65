"""Memory is read as it is: nobody asks for a copy of how it was."""

from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.execute("DROP TABLE memctl.glances")
