"""A line that is injected, and the memory that it is of."""

from __future__ import annotations

from memctl.domain.events.recalls import RecalledMemory

Line = tuple[str, RecalledMemory]
"""The text that is injected for one memory, and the memory itself."""


def line(text: str, id: str, score: float = 1.0, class_: str = "", *, memory: str = "") -> Line:
    """One line. `id` is what an agent may ask about. `memory` is the memory that is made from it, if its id is another
    one; that memory counts as recalled."""
    sure = f"{class_}; " if class_ else ""
    return f"{text} ({sure}id {id})", RecalledMemory(memory or id, round(score, 3))
