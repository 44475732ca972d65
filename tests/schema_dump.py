"""Write `tests/data/schema-NNNN.sql`: a database as this code leaves it, for `faults/test_upgrade.py` to upgrade.

To be run before a migration is added, or in a checkout of the commit before it.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import servers
from histories import example

from memctl.domain.event import NewEvent
from memctl.domain.observations import PromptSubmitted
from memctl.infra import generations
from memctl.infra.database import connect
from memctl.infra.embedded.postgres import binaries
from memctl.infra.log.append import append
from memctl.infra.log.migrate import migrate, revisions
from memctl.workers.drain import Drainer, catch_up

DATA = Path(__file__).parent / "data"
FOLDED = 20
"""Events that are folded; the rest is only in the log."""

_NOISE = ("--", "\\", "SET transaction_timeout")
"""How lines begin that older servers do not know, or that say nothing."""


def told_otherwise() -> NewEvent:
    """Another telling of the example session's first prompt."""
    first = next(event for event in example(0) if isinstance(event.payload, PromptSubmitted))
    return msgspec.structs.replace(first, payload=msgspec.structs.replace(first.payload, text="as told by another"))


def main() -> None:
    with servers.postgres_server() as server, servers.fresh_database(server) as url:
        migrate(url)
        events = example(0)
        with connect(url) as connection:
            revision, _ = revisions(connection)
            generations.ensure_live(connection, 1)
            append(connection, 1, events[:FOLDED])
            drainer = Drainer(url)
            catch_up(drainer)
            drainer.close()
            append(connection, 1, [told_otherwise()])
            append(connection, 1, events[FOLDED:])
        dump = [binaries() / "pg_dump", "--no-owner", "--no-privileges", "--inserts", "--rows-per-insert=1000"]
        told = subprocess.run([*dump, "--schema=memctl", url], capture_output=True, text=True, check=True).stdout
    lines = [line for line in told.splitlines() if line.strip() and not line.startswith(_NOISE)]
    (DATA / f"schema-{revision}.sql").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
