"""Counts for `memctl stats`: one row for each stream, location and day; who asks adds them up.

They are kept by stream, so that a correction refolds no other session, however many share the day.
"""

from __future__ import annotations

import functools

import msgspec

from memctl.domain.event import derived_id
from memctl.domain.facts import (
    ErrorOccurred,
    ErrorResolved,
    FileChanged,
    Prompted,
    ResolutionRefuted,
    SessionOpened,
    TaskClosed,
    TaskOpened,
    TestsRan,
    TokensSpent,
    ToolUsed,
)
from memctl.projections.kernel import projection

DAY = 86_400_000_000
"""Microseconds of a day; days are UTC's."""


class DayStats(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in one stream at one location on one day.

    `day` counts from 1970-01-01; durations in microseconds.
    """

    location: str
    day: int
    sessions_opened: int = 0
    prompts: int = 0
    corrections: int = 0
    tool_uses: int = 0
    tool_failures: int = 0
    """Failures that say something of the work: refusals and cancelled calls left out."""
    test_runs: int = 0
    test_runs_passed: int = 0
    files_changed: int = 0
    lines_added: int = 0
    lines_removed: int = 0
    errors: int = 0
    errors_seen_before: int = 0
    errors_resolved: int = 0
    resolve_us_total: int = 0
    resolutions_refuted: int = 0
    tasks_opened: int = 0
    tasks_succeeded: int = 0
    tasks_failed: int = 0
    tasks_partial: int = 0
    tasks_unknown: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0


Counted = (
    SessionOpened
    | Prompted
    | ToolUsed
    | TestsRan
    | FileChanged
    | ErrorOccurred
    | ErrorResolved
    | ResolutionRefuted
    | TaskOpened
    | TaskClosed
    | TokensSpent
)


def stats_id(fact: Counted) -> str:
    """Key of the counts that a fact belongs to."""
    return _id(fact.occurred_at // DAY, fact.stream, fact.location)


@functools.lru_cache(maxsize=256)
def _id(day: int, stream: str, location: str) -> str:
    return str(derived_id(f"stats:{day}:{stream}:{location}"))


@projection(
    row=DayStats,
    key=stats_id,
    stage=1,
    indexes=(("location", "day"), ("day",)),
)
def stats(row: DayStats | None, fact: Counted) -> DayStats | None:
    """Counts by session, location and day: prompts, tool uses, errors and fixes, tasks by outcome, tokens."""
    row = row or DayStats(location=fact.location, day=fact.occurred_at // DAY)
    return msgspec.structs.replace(row, **_counted(row, fact))


def _counted(row: DayStats, fact: Counted) -> dict[str, int]:
    """The counts that a fact moves, as they stand after it."""
    match fact:
        case TokensSpent():
            return {
                "tokens_in": row.tokens_in + fact.tokens_in,
                "tokens_out": row.tokens_out + fact.tokens_out,
                "tokens_cached": row.tokens_cached + fact.tokens_cached,
            }
        case ToolUsed():
            failed = not fact.ok and not fact.noise
            return {"tool_uses": row.tool_uses + 1, "tool_failures": row.tool_failures + failed}
        case FileChanged():
            return {
                "files_changed": row.files_changed + 1,
                "lines_added": row.lines_added + fact.added,
                "lines_removed": row.lines_removed + fact.removed,
            }
        case Prompted():
            corrects = fact.kind == "correction"
            return {"prompts": row.prompts + 1, "corrections": row.corrections + corrects}
        case TestsRan():
            return {"test_runs": row.test_runs + 1, "test_runs_passed": row.test_runs_passed + fact.passed}
        case ErrorOccurred():
            again = fact.seen_before
            return {"errors": row.errors + 1, "errors_seen_before": row.errors_seen_before + again}
        case ErrorResolved():
            return {
                "errors_resolved": row.errors_resolved + 1,
                "resolve_us_total": row.resolve_us_total + max(fact.duration_us, 0),
            }
        case ResolutionRefuted():
            return {"resolutions_refuted": row.resolutions_refuted + 1}
        case TaskOpened():
            return {"tasks_opened": row.tasks_opened + 1}
        case TaskClosed():
            names = {"success": "tasks_succeeded", "failure": "tasks_failed", "partial": "tasks_partial"}
            name = names.get(fact.outcome, "tasks_unknown")
            return {name: getattr(row, name) + 1}
        case SessionOpened():
            return {"sessions_opened": row.sessions_opened + 1}
