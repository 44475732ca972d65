"""A project's own `.memctl.toml`. It comes with a checkout, so anybody may have written it."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

PROJECT_FILE = ".memctl.toml"

LONGEST = 1 << 13
"""Bytes of such a file: it decides a handful of values."""

_MOST_DOTS = 200
"""Dots outside comments. `tomllib` looks each name of a dotted key up again from the outermost: 64 KB of one key took
14 s and 4 GB."""


class ProjectFileUnreadable(ValueError):
    """The file is none of memctl's; the message says why."""


def read_project_file(file: Path) -> dict[str, Any]:
    """What the file says, in time linear in its length. Raises: ProjectFileUnreadable, OSError."""
    import tomllib

    found = file.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ProjectFileUnreadable("it is not a file")
    with file.open("rb") as opened:
        data = opened.read(LONGEST + 1)
    if len(data) > LONGEST:
        raise ProjectFileUnreadable(f"it has more than {LONGEST >> 10} KB")
    if sum(line.count(b".") for line in data.splitlines() if not line.lstrip().startswith(b"#")) > _MOST_DOTS:
        raise ProjectFileUnreadable(f"it has more than {_MOST_DOTS} dots")
    try:
        return tomllib.loads(data.decode())
    except RecursionError:
        raise ProjectFileUnreadable("it is nested too deeply") from None
    except ValueError as problem:
        raise ProjectFileUnreadable(str(problem)) from problem
