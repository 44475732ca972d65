"""Which format a transcript is in, told by its first lines and never by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import orjson

from memctl.infra.transcripts.claude import Claude
from memctl.infra.transcripts.codex import Codex
from memctl.infra.transcripts.copilot import Copilot
from memctl.infra.transcripts.reading import Format

_LINES = 40
_LONGEST = 4 * 1024 * 1024

# Lines that Claude Code writes without a session's id.
_CLAUDE_BARE = {"summary": "leafUuid", "file-history-snapshot": "snapshot"}


def sniff(path: Path) -> type[Claude] | type[Codex] | type[Copilot] | None:
    """The format's reader class, or None for what is no transcript (or has no whole line yet).

    Raises: OSError.
    """
    with path.open("rb") as file:
        return sniff_lines(file)


def format_of(path: Path) -> Format | None:
    """A fresh reader for one file, or None for what is no transcript.

    Raises: OSError.
    """
    found = sniff(path)
    return found() if found else None


def sniff_lines(file: BinaryIO) -> type[Claude] | type[Codex] | type[Copilot] | None:
    """`sniff` for an open file, read from where it stands."""
    for _ in range(_LINES):
        line = file.readline(_LONGEST)
        if not line:
            return None
        if b"\0" in line[:1024]:
            return None  # some binary file
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(record, dict) and (found := _of(record)):
            return found
    return None


def _of(record: dict[str, Any]) -> type[Claude] | type[Codex] | type[Copilot] | None:
    type = record.get("type")
    if isinstance(record.get("payload"), dict) and type in ("session_meta", "response_item", "event_msg"):
        return Codex
    if isinstance(record.get("data"), dict) and "parentId" in record and "id" in record:
        return Copilot
    if isinstance(type, str) and (isinstance(record.get("sessionId"), str) or _CLAUDE_BARE.get(type) in record):
        return Claude
    if type is None and "instructions" in record and "id" in record and "timestamp" in record:
        return Codex  # the bare head of the first rollouts
    return None
