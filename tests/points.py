"""Vector points for tests, drawn by their seed."""

from __future__ import annotations

import random
import uuid
from typing import Any

from memctl.infra.vectors.store import NewPoint, PointPayload

DIMENSIONS = 8


def a_point(seed: int, *, dense: bool = True, **payload: Any) -> NewPoint:
    chance = random.Random(seed)
    sparse = sorted(chance.sample(range(40), 6))
    given: PointPayload = {
        "space": "here",
        "location": [f"place {seed % 3}"],
        "bucket": "EPISODIC",
        "kind": "turn",
        "memory_id": f"memory {seed}",
        "text_hash": f"{seed:064x}",
        "occurred_at": 1_700_000_000_000 + seed,
        "before": "",
    }
    given.update(payload)  # type: ignore[typeddict-item]
    return NewPoint(
        str(uuid.UUID(int=seed + 1)),
        given,
        (sparse, [chance.uniform(0.5, 2) for _ in sparse]),
        [chance.gauss(0, 1) for _ in range(DIMENSIONS)] if dense else None,
    )
