"""How far a standby, of which the API asks questions, is behind the database that is written to."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from memctl.infra.database import connect, single_row

if TYPE_CHECKING:
    from memctl.infra.settings_model import Settings

GRACE_S = 1.0
"""How long it gets to apply what was written by the moment of the look."""


def standby_age(settings: Settings) -> float | None:
    """For how many seconds what is written is not seen there: 0 where all is that was written when this began, None
    where no standby is set. Raises: DatabaseUnavailable, psycopg.Error."""
    if settings.standby_url is None:
        return None
    with connect(settings.require("database_url"), name="memctl health", statement_timeout_ms=3_000) as connection:
        (written,) = single_row(connection, "SELECT pg_current_wal_lsn()::text")
    deadline = time.monotonic() + GRACE_S
    with connect(settings.standby_url, name="memctl health", statement_timeout_ms=3_000) as connection:
        while True:
            # One that was promoted, or the database itself, applies nothing.
            seen, age = single_row(
                connection,
                "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END"
                " >= %s::pg_lsn,"
                " coalesce(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()), 0)::float8",
                [written],
            )
            if seen or time.monotonic() > deadline:
                return 0.0 if seen else max(float(age), GRACE_S)
            time.sleep(0.05)
