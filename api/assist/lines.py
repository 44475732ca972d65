"""A line that is injected, and the memory that it is of."""

from __future__ import annotations

from memctl.domain.events.recalls import RecalledMemory

_SURENESS = {"high": "sure", "suggested": "likely", "none": "weak"}
"""The classes of search in the words in which the terminal says them."""

Line = tuple[str, RecalledMemory]
"""The text that is injected for one memory, and the memory itself."""


def line(text: str, id: str, score: float = 1.0, class_: str = "", *, origin: str = "", memory: str = "") -> Line:
    """One line. `origin` says whose words it has, `id` is what an agent may ask about. `memory` is the memory that is
    made from it, if its id is another one; that memory counts as recalled."""
    said = "; ".join(filter(None, (origin, _SURENESS.get(class_, class_), f"id {id}")))
    return f"{text} ({said})", RecalledMemory(memory or id, round(score, 3))
