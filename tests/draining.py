"""Folding all there is in one process, as a worker does."""

from __future__ import annotations

from memctl.infra.readmodels import generations
from memctl.workers.folding.drain import Drainer, OtherRules


def catch_up(drainer: Drainer) -> None:
    """Drain everything, in this process, until no shard is behind. Raises whatever a fold raises.

    Meant for one process by itself: it waits for as long as another holds a lease.
    """
    while behind := drainer.behind():
        if generations.stale(drainer.connection):
            raise OtherRules
        for stage, shard in behind:
            drainer.drain(stage, shard)
