"""Nothing: 0024 takes back what this revision made, once."""

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Leave the log as 0022 does."""
