"""What tests of worker processes share: how far they are, and whether what they made is right."""

from __future__ import annotations

from memctl.infra.database import Connection
from memctl.infra.log.mark import last_position
from memctl.infra.readmodels import generations
from memctl.infra.vectors import store
from memctl.infra.vectors.outbox import backlog
from memctl.workers.rebuild.replay import replay


def progress(connection: Connection) -> int:
    """Grows with every batch that is folded."""
    live = generations.live(connection)
    return sum(offset.position for offset in generations.offsets(connection, live.stage1, live.stage2))


def caught_up(connection: Connection) -> bool:
    """Whether everything in the log is folded, and the vector store holds what it should."""
    live = generations.live(connection)
    lowest = min(offset.position for offset in generations.offsets(connection, live.stage1, live.stage2))
    return lowest >= last_position(connection) and backlog(connection, live.stage2)[0] == 0


def run_out(connection: Connection) -> None:
    """Let every lease run out."""
    connection.execute("UPDATE memctl.offsets SET lease_until = '-infinity' WHERE lease_until IS NOT NULL")


def prove(connection: Connection, environment: dict[str, str]) -> None:
    """The live rows and vectors are those that a rebuild makes, and those that one undisturbed process makes."""
    client = store.connect(environment["MEMCTL_QDRANT_URL"], environment["MEMCTL_QDRANT_API_KEY"])
    result = replay(environment["MEMCTL_DATABASE_URL"], client, verify=True)
    client.close()
    assert {c.name: c.differing for c in result.compared if not c.equal} == {}
    assert {c.name for c in result.compared} >= {"sessions", "memories", "vectors"}
