"""A project's own `.memctl.toml`. It comes with a checkout, so anybody may have written it."""

from pathlib import Path
from typing import Any

from memctl.infra.files import NoRegularFile, read_file

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

    try:
        data = read_file(file, LONGEST + 1)
    except NoRegularFile:
        raise ProjectFileUnreadable("it is not a file") from None
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
