"""Open threads of a project: what its latest sessions left undone, and nobody has taken up or settled since."""

import msgspec
from psycopg import sql

from memctl.api.reading import models
from memctl.api.reading.evidence import with_evidence
from memctl.api.reading.feedback import standing
from memctl.api.reading.pages import Condition, Keyed, Where, field_of, page, several
from memctl.api.reading.places import Places
from memctl.api.reading.reader import Reader
from memctl.api.reading.records import LeftOpen
from memctl.domain.events.open_threads import Thread
from memctl.domain.knowledge.orders import might_be_obeyed, what_failed
from memctl.projections.episodes import EpisodeRow
from memctl.projections.tasks import Task, task_id

_LOOKED_AT = 40
"""Pieces of work that are looked through, newest first."""

LATELY_US = 60 * 86_400_000_000
"""What was left open so many microseconds before the project's last work is given up."""


def open_threads(reader: Reader, places: Places, *, limit: int = 5, of_last_session: bool = False) -> list[LeftOpen]:
    """What sessions ended with and left open, newest first: one item for each piece of work, with its `threads`.

    Its id is the episode's. It is gone once somebody resolves or rejects that (`memctl resolve`, `reject`), once the
    task is done, and once another session has taken the task up: then the end of that session says what is left.
    A thread that might be obeyed is left out, and of an error message what does not say what failed: it can ask for
    anything.
    With `of_last_session`, only what the session left that worked last.
    """
    p = models.episodes
    among = Where(p).within(places).fullest(reader, places, "ended_at")
    newest, _ = page(reader, p, "started_at", among, limit=1)
    since = newest[0].row.started_at - LATELY_US if newest else 0
    lately = Condition(sql.SQL("{} >= %s").format(field_of(p, "started_at")), (since,))
    left = Condition(sql.SQL("row->>'closed' = 'false' AND jsonb_array_length(row->'threads') > 0"))
    rows, _ = page(reader, p, "started_at", among.also(lately, left), limit=_LOOKED_AT)
    rows = standing(reader, "episode", rows)
    settled = several(reader, models.resolutions, [keyed.key for keyed in rows])
    tasks: dict[str, Task] = several(reader, models.tasks, [_task_of(keyed.row) for keyed in rows])
    kept = [
        keyed
        for keyed in rows
        if (keyed.key not in settled or settled[keyed.key].resolution == "pending")
        and not _taken_up(keyed.row, tasks.get(_task_of(keyed.row)))
        and (not of_last_session or keyed.row.stream == newest[0].row.stream)
    ]
    safe = [replaced for keyed in kept if (replaced := _without_risks(keyed)).row.threads]
    return with_evidence(reader, safe[:limit], LeftOpen)


def _without_risks(keyed: Keyed[EpisodeRow]) -> Keyed[EpisodeRow]:
    said = (Thread(t.kind, what_failed(t.text) if t.kind == "error" else t.text) for t in keyed.row.threads)
    threads = tuple(each for each in said if each.text and not might_be_obeyed(each.text))
    return Keyed(keyed.key, msgspec.structs.replace(keyed.row, threads=threads))


def _task_of(row: EpisodeRow) -> str:
    return task_id(row.location, row.canonical)


def _taken_up(row: EpisodeRow, task: Task | None) -> bool:
    """Whether the task is done, or was opened again after this."""
    if task is None:
        return False
    return task.status == "done" or (task.latest is not None and task.latest.at > row.started_at)
