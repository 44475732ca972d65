"""Reading a transcript's file from its start, as the tests of readers do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from memctl.infra.transcripts.formats import Document, Format
from memctl.infra.transcripts.reading import Parsed, Transcript
from memctl.infra.transcripts.sniff import sniff


def format_of(path: Path) -> Format | Document | None:
    """A fresh reader for one file, or None for what is no transcript. Raises: OSError."""
    found = sniff(path)
    return found(path) if found else None


def parse_file(path: Path, format: Format | Document) -> Iterator[Parsed]:
    """`Transcript.parse` of a file that is opened for it. Raises: OSError."""
    with Transcript(path) as transcript:
        yield from transcript.parse(format)
