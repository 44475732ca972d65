"""What memory told an agent unasked: recorded, so that its use can be judged, and never learnt from."""

from __future__ import annotations

import json
from typing import ClassVar
from uuid import UUID

import msgspec

from memctl.domain.event import event
from memctl.domain.statements import Statement


class RecalledMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """One memory that was told, and how sure the answer was of it (0 to 1)."""

    id: str
    score: float = 1.0


@event("memory.recalled")
class MemoryRecalled(Statement, frozen=True, kw_only=True, omit_defaults=True):
    """Memory was put before an agent. `asked_by` is the event of the hook that asked; `tokens` what it took, about."""

    injected: ClassVar[bool] = True

    hook: str
    asked_by: UUID | None = None
    memories: tuple[RecalledMemory, ...] = ()
    tokens: int = 0


def quoted(text: str, most: int) -> str:
    """A remembered text on one line of at most about `most` characters, in quotation marks that it cannot close.

    Nor can it end the block that it stands in: no tag survives.
    """
    flat = " ".join(text.split())
    shown = flat if len(flat) <= most else flat[: most - 1].rstrip() + "…"
    return json.dumps(shown, ensure_ascii=False).replace("<", "‹")
