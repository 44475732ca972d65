"""How Postgres archives its write-ahead log, from which its own means bring a database back to a point in time."""

import msgspec

from memctl.infra.database import Connection, single_row

LATE_FILES = 4
"""Files of the write-ahead log (16 MB each) that may wait to be archived."""

UNTIMED_S = 3600
"""How long what was recorded may wait for its file to fill, where archive_timeout sets no time."""


class WalArchive(msgspec.Struct, frozen=True):
    """Where archiving stands. `failed`: the file that could not be archived, where none was since; `waiting`: bytes
    written since the last one that was; `unarchived_s`: for how many seconds something is recorded that is in none."""

    failed: str
    waiting: int
    unarchived_s: float
    timeout_s: int
    file_bytes: int

    @property
    def wrong(self) -> str:
        """What is wrong, in words; empty where nothing is."""
        if self.failed:
            return f"Postgres cannot archive its write-ahead log: it failed at {self.failed}"
        if self.waiting > LATE_FILES * self.file_bytes or self.unarchived_s > 60 + 2 * (self.timeout_s or UNTIMED_S):
            return f"the archive is {self.waiting / 1e6:,.1f} MB and {self.unarchived_s / 60:,.0f} min behind the log"
        return ""


def wal_archive(connection: Connection) -> WalArchive | None:
    """None where this server archives nothing."""
    on, *found = single_row(connection, _ASKED)
    return WalArchive(*found) if on else None


_ASKED = """
SELECT current_setting('archive_mode') <> 'off' AND NOT (pg_is_in_recovery() AND current_setting('archive_mode') = 'on')
        AND current_setting('archive_command') || current_setting('archive_library') NOT IN ('', '(disabled)'),
    CASE WHEN last_failed_time > coalesce(last_archived_time, '-infinity') THEN last_failed_wal ELSE '' END,
    CASE WHEN pg_is_in_recovery() OR last_archived_wal !~ '^[0-9A-F]{24}' THEN 0 ELSE greatest(0,
        pg_wal_lsn_diff(pg_current_wal_lsn(), (substr(last_archived_wal, 9, 8) || '/0')::pg_lsn)
        - (('x' || substr(last_archived_wal, 17, 8))::bit(32)::bigint + 1) * file_bytes)::bigint END,
    coalesce(extract(epoch FROM clock_timestamp() - (SELECT min(reached_at) FROM memctl.mark_history
        WHERE reached_at > coalesce(last_archived_time, stats_reset))), 0)::float8,
    (SELECT setting::int FROM pg_settings WHERE name = 'archive_timeout'),
    file_bytes
FROM pg_stat_archiver, (SELECT pg_size_bytes(current_setting('wal_segment_size'))::bigint) AS f(file_bytes)
"""
