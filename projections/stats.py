"""Counts for `memctl stats`: one row for each stream, location, day, and line that set the agent to work; who asks adds
them up, and counts once what several streams hold of one such line.

They are kept by stream, so that a correction refolds no other session, however many share the day or the line.
"""

from collections.abc import Sequence
from copy import copy
from typing import assert_never

import msgspec

from memctl.domain.events.event import derived_of
from memctl.domain.events.facts import (
    ErrorOccurred,
    ErrorResolved,
    FileChanged,
    Prompted,
    ResolutionRefuted,
    SessionOpened,
    TaskOpened,
    TestsRan,
    TokensSpent,
    ToolUsed,
)
from memctl.domain.support.remembered import remembered
from memctl.projections.kernel import projection

DAY = 86_400_000_000
"""Microseconds of a day; days are UTC's."""


class DayStats(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What happened in one stream at one location on one day, from one prompt to the next.

    `day` counts from 1970-01-01; durations in microseconds; `once` as in `memctl.domain.events.facts.Fact`, empty where
    the client's lines have no ids.
    """

    location: str
    day: int
    once: str = ""
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
    | TokensSpent
)


def stats_id(fact: Counted) -> str:
    """Key of the counts that a fact belongs to."""
    return _id(fact.occurred_at // DAY, fact.stream, fact.location, fact.once)


@remembered(256)
def _id(day: int, stream: str, location: str, once: str) -> str:
    return derived_of("stats", f"{day}:{once}:{stream}", location)


@projection(
    row=DayStats,
    key=stats_id,
    stage=1,
    indexes=(("location", "day"), ("day",)),
)
def stats(row: DayStats | None, facts: Sequence[Counted]) -> DayStats:
    """Counts by session, location, day and line that set the agent to work: prompts, tool uses, errors and fixes, tasks
    begun, tokens."""
    row = copy(row) or DayStats(location=facts[0].location, day=facts[0].occurred_at // DAY, once=facts[0].once)
    for fact in facts:
        _count(row, fact)
    return row


def _count(row: DayStats, fact: Counted) -> None:
    match fact:
        case TokensSpent():
            row.tokens_in += fact.tokens_in
            row.tokens_out += fact.tokens_out
            row.tokens_cached += fact.tokens_cached
        case ToolUsed():
            row.tool_uses += 1
            row.tool_failures += not fact.ok and not fact.noise
        case FileChanged():
            row.files_changed += 1
            row.lines_added += fact.added
            row.lines_removed += fact.removed
        case Prompted():
            row.prompts += fact.kind != "command"  # as a session counts them
            row.corrections += fact.kind == "correction"
        case TestsRan():
            row.test_runs += 1
            row.test_runs_passed += fact.passed
        case ErrorOccurred():
            row.errors += 1
            row.errors_seen_before += fact.seen_before
        case ErrorResolved():
            row.errors_resolved += 1
            row.resolve_us_total += max(fact.duration_us - fact.idle_us, 0)
        case ResolutionRefuted():
            row.resolutions_refuted += 1
        case TaskOpened():
            row.tasks_opened += not fact.again
        case SessionOpened():
            row.sessions_opened += not fact.still
        case _:
            assert_never(fact)
