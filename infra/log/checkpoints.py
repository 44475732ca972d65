"""How far each transcript file has been read. A convenience: a lost one costs reading the file again."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from memctl.infra.database import Connection
from memctl.infra.transcripts.reading import Checkpoint

_LONGEST = 1024
"""Bytes of a name. An index takes some 2,700 bytes, a path may have 4,096."""


def load_all(connection: Connection, space_id: int) -> dict[str, Checkpoint]:
    """Every file's checkpoint, by `name_of` its path."""
    found = connection.execute(
        'SELECT path, "offset", lines, digest FROM memctl.checkpoints WHERE space_id = %s', [space_id]
    )
    return {row[0]: Checkpoint(*row[1:]) for row in found}


def save(connection: Connection, space_id: int, reached: Mapping[Path, Checkpoint]) -> None:
    """Note how far files have been read, in the transaction that appends what was read."""
    by_name = {name_of(path): at for path, at in reached.items()}  # a file may have been read under two names
    at = list(by_name.values())
    connection.execute(
        'INSERT INTO memctl.checkpoints (space_id, path, "offset", lines, digest)'
        " SELECT %s, * FROM unnest(%s::text[], %s::int8[], %s::int8[], %s::text[])"
        ' ON CONFLICT (space_id, path) DO UPDATE SET "offset" = excluded."offset", lines = excluded.lines,'
        " digest = excluded.digest",
        [space_id, list(by_name), [c.offset for c in at], [c.lines for c in at], [c.digest for c in at]],
    )


def name_of(path: Path) -> str:
    """What a file is noted under: its real path. A path may hold bytes that are no UTF-8; a long one is shortened."""
    name = str(path.resolve()).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    if len(name.encode()) <= _LONGEST:
        return name
    return f"blake2b:{hashlib.blake2b(name.encode(), digest_size=32).hexdigest()}"
