"""How far each transcript file has been read. A convenience: a lost one costs reading the file again."""

from __future__ import annotations

from pathlib import Path

from memctl.infra.database import Connection
from memctl.infra.transcripts.reading import START, Checkpoint


def load(connection: Connection, space_id: int, path: Path) -> Checkpoint:
    """The checkpoint of a file, or the file's start."""
    row = connection.execute(
        'SELECT "offset", lines, digest FROM memctl.checkpoints WHERE space_id = %s AND path = %s',
        [space_id, _name(path)],
    ).fetchone()
    return Checkpoint(*row) if row else START


def save(connection: Connection, space_id: int, path: Path, at: Checkpoint) -> None:
    """Note how far a file has been read; call it only once the events up to there are committed."""
    connection.execute(
        'INSERT INTO memctl.checkpoints (space_id, path, "offset", lines, digest) VALUES (%s, %s, %s, %s, %s)'
        ' ON CONFLICT (space_id, path) DO UPDATE SET "offset" = excluded."offset", lines = excluded.lines,'
        " digest = excluded.digest",
        [space_id, _name(path), at.offset, at.lines, at.digest],
    )


def _name(path: Path) -> str:
    # A path may hold bytes that are no UTF-8; this keeps different ones different.
    return str(path.resolve()).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
