"""A session in a few lines, by rule: its tasks and how each ended, what changed, and the last words. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memctl.domain.support.bounded import one_line

LONGEST = 600
"""Characters of a summary."""

TASKS = 4
"""Tasks described one by one: the first, and the last ones."""


class TaskOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One task of the session. `outcome` as episodes have it, `why` the reason for it."""

    description: str
    outcome: str = "unknown"
    why: str = ""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What the session came to. `resolved` of the `errors`."""

    files: int = 0
    added: int = 0
    removed: int = 0
    errors: int = 0
    resolved: int = 0
    test_runs: int = 0


def summary(work: Sequence[TaskOutcome], figures: Figures, last_words: str) -> str:
    """At most 600 characters; empty for a session in which nothing was asked, done or said."""
    parts = [_tasks(work), *_counts(figures)]
    text = ". ".join(filter(None, parts))
    room = LONGEST - len(text) - len('. It ended with: ""')
    if last_words and room > 40:
        words = f'It ended with: "{one_line(last_words, min(room, 240))}"'
        text = f"{text}. {words}" if text else words
    return one_line(text, LONGEST)


def _tasks(work: Sequence[TaskOutcome]) -> str:
    shown = work if len(work) <= TASKS else [work[0], *work[-(TASKS - 1) :]]
    tasks = [_task(each) for each in shown]
    if left := len(work) - len(shown):
        tasks.insert(1, f"{left} more")
    return "; ".join(tasks)


def _task(work: TaskOutcome) -> str:
    how = work.outcome if work.outcome != "unknown" else "how it ended is not known"
    why = f": {one_line(work.why, 50)}" if work.outcome in ("failure", "partial") and work.why else ""
    return f"{one_line(work.description, 80)} ({how}{why})"


def _counts(figures: Figures) -> list[str]:
    counts = []
    if figures.files:
        changed = f"{figures.files} file{'s' if figures.files != 1 else ''} changed"
        counts.append(f"{changed} (+{figures.added} −{figures.removed})")
    if figures.errors:
        errors = f"{figures.errors} error{'s' if figures.errors != 1 else ''}"
        counts.append(
            f"{errors}, {figures.resolved} of them resolved" if figures.resolved else f"{errors}, none resolved"
        )
    if figures.test_runs:
        counts.append(f"tests ran {figures.test_runs}×")
    return [", ".join(counts)]
