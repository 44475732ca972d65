"""Tool patterns: which tools a kind of task takes, in which order, how they fare, and what follows a failure.

One row for each session, location and kind of task; who asks adds them up by project (`memctl.api.queries.project`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memctl.domain.events.event import derived_of
from memctl.domain.events.facts import ToolUsed
from memctl.domain.support.bounded import clipped
from memctl.domain.support.remembered import remembered
from memctl.domain.support.tallies import LONGEST_NAME, Tallies, count
from memctl.projections.kernel import projection

TOOLS, PAIRS = 20, 30
"""How many tools, and pairs of tools in succession, a row counts."""

BETWEEN = "  "
"""Stands between the two tools of a pair."""


class SessionTools(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How tools were used for one kind of task, in one session at one location. A command is called by its head
    (`go test`), other tools by name.

    `after` counts what came right after what in one task; `recovery` what came right after a failure, failed where it
    failed too. Refusals and the like count as no failure. Durations in milliseconds, of the uses that report one.
    """

    stream: str
    location: str
    task_type: str
    last_at: int = 0
    tools: Tallies = msgspec.field(default_factory=dict)
    after: Tallies = msgspec.field(default_factory=dict)
    recovery: Tallies = msgspec.field(default_factory=dict)
    timed: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    """Of each tool, how many uses reported their duration, and the sum of the durations."""
    last: tuple[str, str, bool] = ("", "", False)
    """The use before: its task, its tool, whether it failed."""


def row_id(fact: ToolUsed) -> str:
    """Key of the row of a session at a location, for a kind of task."""
    return _id(fact.stream, fact.location, fact.task_type)


@remembered(256)
def _id(stream: str, location: str, task_type: str) -> str:
    return str(derived_of("tool_patterns", stream, location, task_type))


_TABLES = ("tools", "after", "recovery", "timed")


@projection(row=SessionTools, key=row_id, stage=1, indexes=(("location", "last_at"),))
def tool_patterns(row: SessionTools | None, facts: Sequence[ToolUsed]) -> SessionTools:
    """Tools by kind of task: use, order, success, duration, and what follows a failure."""
    first = facts[0]
    if row is None:
        row = SessionTools(stream=first.stream, location=first.location, task_type=first.task_type or "unknown")
    else:
        row = msgspec.structs.replace(row, **{name: dict(getattr(row, name)) for name in _TABLES})
    for fact in facts:
        at, ok = fact.occurred_at, fact.ok or fact.noise
        event = fact.evidence[0].event if fact.evidence else None
        tool = clipped(fact.head or fact.tool, LONGEST_NAME)
        count(row.tools, tool, at, event, TOOLS, ok=ok)
        task, before, failed = row.last
        if before and task == fact.task:
            pair = f"{before}{BETWEEN}{tool}"
            count(row.recovery if failed else row.after, pair, at, event, PAIRS, ok=ok)
        if fact.duration_ms is not None and (tool in row.timed or len(row.timed) < TOOLS):
            times, total = row.timed.get(tool, (0, 0))
            row.timed[tool] = (times + 1, total + max(fact.duration_ms, 0))
        row.last = (fact.task, tool, not ok)
        if at > row.last_at:
            row.last_at = at
    return row
