"""Whole sessions for tests: the example session under other names, and the real ones where they lie beside."""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memctl.domain.event import NewEvent
from memctl.infra import facts, generations, readmodels
from memctl.infra.database import Connection
from memctl.infra.generations import Live
from memctl.infra.log.append import append
from memctl.infra.redaction import prepare
from memctl.infra.transcripts.claude import Claude
from memctl.infra.transcripts.files import discover
from memctl.infra.transcripts.reading import parse_file, parse_lines, raw_lines
from memctl.infra.transcripts.sniff import format_of
from memctl.projections.kernel import projections
from memctl.workers.drain import Drainer, catch_up

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "infra" / "example" / "session.jsonl"
REAL = ROOT.parent / "shared" / "data" / "agent-sessions.tar.xz"

_SESSION = "3f6f1d52-6c0e-4b7e-9d6f-2f6b1f6b8a01"


def example(number: int = 0, day: int = 2) -> list[NewEvent]:
    """The example session's events, as a session of its own for each number, on that day of March 2026."""
    text = EXAMPLE.read_text(encoding="utf-8").replace(_SESSION, f"{number:08d}{_SESSION[8:]}")
    text = text.replace("2026-03-02T", f"2026-03-{day:02d}T").replace('"uuid": "', f'"uuid": "{number:04d}-')
    text = text.replace('"parentUuid": "', f'"parentUuid": "{number:04d}-').replace("toolu_ex", f"toolu_{number}ex")
    parsed = parse_lines(raw_lines(io.BytesIO(text.encode())), Claude())
    return [prepare(event) for line in parsed for event in line.events]


@contextmanager
def real_sessions() -> Iterator[Path]:
    """The folder of unpacked real sessions; the test is skipped where there are none."""
    if not REAL.exists():
        pytest.skip("the real sessions (../shared/data/agent-sessions.tar.xz) are not on this machine")
    with tempfile.TemporaryDirectory(prefix="memctl-test-") as folder, tarfile.open(REAL) as archive:
        archive.extractall(folder)  # as the archive beside the project says; `filter` came with 3.11.4
        yield Path(folder)


def events_of(folder: Path) -> Iterator[list[NewEvent]]:
    """The prepared events of each transcript in a folder."""
    for path in discover([folder]):
        format = format_of(path)
        assert format is not None
        yield [prepare(event) for parsed in parse_file(path, format) for event in parsed.events]


def filled(url: str, connection: Connection, shards: int = 4) -> None:
    """Make the first generations and fold six example sessions into them."""
    generations.ensure_live(connection, shards)
    append(connection, 1, [event for number in range(6) for event in example(number, day=number + 2)])
    drained(url)


def drained(url: str) -> None:
    """Fold all that is in the log."""
    drainer = Drainer(url)
    catch_up(drainer)
    drainer.close()


def digests(connection: Connection, of: Live | None = None) -> dict[str, tuple[int, str]]:
    """Rows and digest of every read model, and of the facts; of the live generations, or of others."""
    of = of or generations.live(connection)
    found = {p.name: readmodels.digest(connection, p, of.stage1 if p.stage == 1 else of.stage2) for p in projections()}
    found["facts"] = readmodels.digest_of(connection, facts.rows_query(of.stage1))
    return {name: (digest.rows, digest.hex) for name, digest in found.items()}
