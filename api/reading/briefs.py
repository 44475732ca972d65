"""Sessions in a few lines: as a model has put them, else by rule."""

from collections import defaultdict
from collections.abc import Sequence

from memctl.api.reading import models
from memctl.api.reading.pages import Where, field_of, select
from memctl.api.reading.reader import Reader
from memctl.domain.language.brief import Figures, TaskOutcome, summary
from memctl.projections.sessions import Session


def summaries(reader: Reader, rows: Sequence[Session]) -> dict[str, str]:
    """What sessions came to, at most 600 characters each, by stream. Whoever may see a session may see its tasks."""
    work = _work(reader, [row.stream for row in rows if not row.summarized])
    return {row.stream: row.summary if row.summarized else _by_rule(row, work[row.stream]) for row in rows}


def _by_rule(row: Session, work: Sequence[TaskOutcome]) -> str:
    figures = Figures(
        files=row.files_changed,
        added=row.lines_added,
        removed=row.lines_removed,
        errors=row.errors,
        resolved=row.fixes,
        test_runs=row.test_runs,
    )
    return summary(work, figures, row.summary)


def _work(reader: Reader, streams: Sequence[str]) -> dict[str, list[TaskOutcome]]:
    found: dict[str, list[TaskOutcome]] = defaultdict(list)
    if not streams:
        return found
    p = models.episodes
    for stream, description, outcome, why in select(
        reader, p,
        "SELECT row->>'stream', row->>'description', row->>'outcome', row->>'why' FROM {rows} ORDER BY {begun}, key",
        conditions=Where(p).one_of("stream", streams), begun=field_of(p, "started_at"),
    ):  # fmt: skip
        found[stream].append(TaskOutcome(description=description or "", outcome=outcome or "unknown", why=why or ""))
    return found
