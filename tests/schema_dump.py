"""Write `tests/data/schema-NNNN.sql.gz`: a database as this code leaves it, for `faults/test_upgrade.py` to upgrade.

To be run before a migration is added, or in a checkout of the commit before it.
"""

from __future__ import annotations

import gzip
import subprocess
from pathlib import Path
from uuid import UUID

import msgspec
import servers
from draining import catch_up
from histories import example

from memctl.domain.events.erasure import Scope
from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import PromptSubmitted, event_id_of
from memctl.infra.database import Connection, connect
from memctl.infra.embedded.postgres import binaries
from memctl.infra.log import erase
from memctl.infra.log.append import append
from memctl.infra.log.migrate import migrate, revisions
from memctl.infra.readmodels import generations
from memctl.workers.erasure.erase import erase_round, with_counterparts
from memctl.workers.folding.drain import Drainer

DATA = Path(__file__).parent / "data"
FOLDED = 20
"""Events that are folded; the rest is only in the log."""

_NOISE = ("--", "\\", "SET transaction_timeout")
"""How lines begin that older servers do not know, or that say nothing."""

STEERING = {
    "api_keys": "(key_id, space, name, hash, scopes) VALUES ('k1', 'default', 'dana', '\\x01', '{read,write}')",
    "checkpoints": "VALUES (1, '/home/dana/a.jsonl', 70, 2, 'abc')",
    "dead_letters": "(generation, target, projection, space_id, key, source, position, error, place)"
    " VALUES (1, gen_random_uuid(), '', 1, 'session/claude/s', gen_random_uuid(), 3, 'ValueError', 'a.py:1')",
    "embeddings": "VALUES ('a-model', '\\x01', '\\x02')",
    "glances": "(position, stage1, stage2) VALUES (3, 1, 2)",
    "halts": "(generation, shard, error, message) VALUES (1, 0, 'OSError', 'no space left')",
    "llm_calls": "(space_id, processor, subject, model, prompt, tokens_reserved, usd_reserved)"
    " VALUES (1, 'judge', 's', 'a-model', 'judge-1', 900, 0.01)",
    "vector_models": 'VALUES (\'a-model\', 8, \'{"provider": "openai", "model": "a"}\', \'serving\')',
    "waiting_for_vectors": "VALUES (2, 'a-model', 1, '00000000-0000-4000-8000-000000000001')",
    "processing": "(space_id, processor, subject, digest, status) VALUES (1, 'judge', 's', 'abc', 'done')",
}
"""A row for each table that no append and no fold fills."""


def told_otherwise() -> NewEvent:
    """Another telling of the example session's first prompt."""
    first = next(event for event in example(0) if isinstance(event.payload, PromptSubmitted))
    return msgspec.structs.replace(first, payload=msgspec.structs.replace(first.payload, text="as told by another"))


def forgotten() -> list[NewEvent]:
    """What was told, and forgotten again."""
    return example(2)[:5]


def forget(connection: Connection) -> None:
    receipt = UUID(int=7)
    found, stones = with_counterparts(connection, 1, {event_id_of(1, event.dedupe_key) for event in forgotten()})
    erase.begin(connection, 1, receipt, Scope(kind="id"), "", found)
    erase.lay_tombstones(connection, 1, receipt, stones)
    erase_round(connection, 1, receipt, found)
    erase.finish(connection, receipt, {})


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
            append(connection, 1, [told_otherwise(), *forgotten()])
            append(connection, 1, events[FOLDED:])
            forget(connection)
            for table, row in STEERING.items():
                if connection.execute("SELECT to_regclass(%s)", [f"memctl.{table}"]).fetchone() != (None,):
                    connection.execute(f"INSERT INTO memctl.{table} {row}")  # type: ignore[arg-type]
        dump = [binaries() / "pg_dump", "--no-owner", "--no-privileges", "--inserts", "--rows-per-insert=1000"]
        told = subprocess.run([*dump, "--schema=memctl", url], capture_output=True, text=True, check=True).stdout
    lines = [line for line in told.splitlines() if line.strip() and not line.startswith(_NOISE)]
    (DATA / f"schema-{revision}.sql.gz").write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


if __name__ == "__main__":
    main()
