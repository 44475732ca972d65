"""Patches as clients show them, brought to the hunks of `memctl.domain.events.observations`."""

from typing import Any

from memctl.domain.events.observations import Hunk
from memctl.domain.support import patterns
from memctl.infra.transcripts.fields import count, items, mapping

_HEADER = patterns.compile(r"@@ -(\d{1,9})(?:,\d+)? \+(\d{1,9})(?:,\d+)? @@")


def hunks_of(diff: str) -> tuple[Hunk, ...]:
    """The hunks of a unified diff of one file. What stands in front of the first is left out."""
    hunks: list[Hunk] = []
    start: tuple[int, int] | None = None
    lines: list[str] = []
    for line in diff.split("\n"):
        if header := _HEADER.match(line):
            if start and lines:
                hunks.append(Hunk(*start, tuple(lines)))
            start, lines = (int(header[1]), int(header[2])), []
        elif start and line.startswith(("diff --git ", "Index: ")):
            break
        elif start and line[:1] in (" ", "+", "-"):
            lines.append(line)
    if start and lines:
        hunks.append(Hunk(*start, tuple(lines)))
    return tuple(hunks)


def structured_hunks(value: Any) -> tuple[Hunk, ...]:
    """Hunks given as objects of `oldStart`, `newStart` and `lines`, as Claude Code gives them."""
    hunks = []
    for hunk in map(mapping, items(value)):
        lines = tuple(line for line in items(hunk.get("lines")) if isinstance(line, str))
        if lines:
            hunks.append(Hunk(count(hunk.get("oldStart")), count(hunk.get("newStart")), lines))
    return tuple(hunks)
