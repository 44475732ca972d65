"""Questions out of one's own memory: the problem of a piece of work that was solved is asked, its fix is to be found.

What the work says of its problem is hidden from what is searched, so nothing is found by its own words alone.
"""

from __future__ import annotations

from memctl.api.evaluation import Asked, Dataset, Passage
from memctl.api.reading import models
from memctl.api.reading.reader import Reader
from memctl.infra.readmodels.rows import rows_of
from memctl.projections.episodes import EpisodeRow

SHORTEST = 20
"""Characters of a problem and of a solution that are worth asking for."""


def own_history(reader: Reader) -> Dataset:
    """Every episode by what was done, and a question for each that solved an error: the error, answered by all episodes
    that solved the same one."""
    episodes = models.episodes
    rows = [
        row
        for row in rows_of(reader.connection, episodes, reader.live.stage1, reader.space_id)
        if len(_done(row)) >= SHORTEST
    ]
    return dataset(rows)


def dataset(rows: list[EpisodeRow]) -> Dataset:
    """The data set that episodes make. A project's episodes are one scope."""
    solved = [row for row in rows if row.resolved and len(row.solution) >= SHORTEST and len(row.problem) >= SHORTEST]
    by_error: dict[tuple[str, str], set[str]] = {}
    for row in solved:
        for signature in row.resolved:
            by_error.setdefault((row.location, signature), set()).add(row.id)
    return Dataset(
        name="your own history: errors and their fixes",
        passages=[
            Passage(id=row.id, text=_done(row), scope=row.location, session=row.stream, at=row.started_at)
            for row in rows
        ],
        questions=[
            Asked(
                id=row.id,
                query=row.problem,
                gold=frozenset().union(*(by_error[row.location, signature] for signature in row.resolved)),
                scope=row.location,
                kind=row.task_type,
            )
            for row in solved
        ],
    )


def _done(row: EpisodeRow) -> str:
    """What was asked for and how it was done, without the words of the problem."""
    said = (row.description, row.solution or row.answer)
    hidden = (text.replace(row.problem, "") if row.problem else text for text in said)
    return "\n→ ".join(text.strip() for text in hidden if text.strip())
