"""A line that is injected, and the memory that it is of."""

from typing import NamedTuple

from memctl.domain.events.recalls import RecalledBy, RecalledMemory, quoted_name

_SURENESS = {"high": "sure", "suggested": "likely", "none": "weak"}
"""The classes of search in the words in which the terminal says them."""


class Line(NamedTuple):
    """The text that is injected for one memory, and the memory itself. `settled`: a person put it there, or it is of
    the very session that it is given to."""

    text: str
    memory: RecalledMemory
    settled: bool = False


def line(
    text: str, id: str, score: float = 1.0, class_: str = "", *, origin: str = "", memory: str = "",
    settled: bool = False, by: RecalledBy = "",
) -> Line:  # fmt: skip
    """One line. `origin` says whose words it has, `id` is what an agent may ask about. `memory` is the memory that is
    made from it, if its id is another one; that memory counts as recalled."""
    said = "; ".join(filter(None, (origin, _SURENESS.get(class_, class_), f"id {quoted_name(id)}")))
    return Line(f"{text} ({said})", RecalledMemory(memory or id, round(score, 3), by), settled)
