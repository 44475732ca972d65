"""A key that erases in its own space takes nothing from another's, over HTTP."""

from __future__ import annotations

import json
import time
from pathlib import Path
from uuid import uuid4

from apis import Api
from poisoning.test_spaces import shared

from memctl.infra.hooks.spool import Delivery

__all__ = ["shared"]


def test_a_key_of_one_space_takes_no_delivery_that_waits_for_another(shared: tuple[Api, str, list[str]]) -> None:
    """The door is down, busy or hangs: what hooks left on the server's disk is nowhere else."""
    api, key, _ = shared
    spool = Path(api.environment["MEMCTL_DATA_DIR"], "spool")
    spool.mkdir(parents=True, exist_ok=True)
    waiting = {}
    for space in ("", "third"):  # the door's own, and one more
        payload = {"hook_event_name": "UserPromptSubmit", "session_id": "w", "cwd": "/w", "prompt": "Use quillwaits."}
        at = time.time_ns() // 1000 - 60_000_000
        delivery = Delivery(uuid4().hex, at, "claude-code", "", json.dumps(payload).encode(), space=space)
        waiting[space] = spool / f"{at:020}-{delivery.id}.delivery"
        waiting[space].write_bytes(delivery.encode())
    headers = {
        "Authorization": f"Bearer {key}", "Content-Type": "application/json", "Idempotency-Key": uuid4().hex,
    }  # fmt: skip
    asked = json.dumps({"before": "2999-01-01T00:00:00Z"}).encode()
    status, _, body = api.ask("/v1/forget", method="POST", body=asked, headers=headers)
    assert [space for space, file in waiting.items() if not file.exists()] == [], (status, body)  # must not come out
