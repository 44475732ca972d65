"""Tool patterns: which tools a kind of task takes, in which order, how they fare, and what follows a failure.

One row for each session and location; who asks adds them up by project and kind of task (`memctl.api.project`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import msgspec

from memctl.domain.event import derived_id
from memctl.domain.facts import ToolUsed
from memctl.domain.tallies import Tallies, count
from memctl.projections.kernel import projection

TOOLS, PAIRS = 20, 30
"""How many tools, and pairs of tools in succession, a row counts for each kind of task."""

BETWEEN = "  "
"""Stands between the two tools of a pair."""


class ToolsOfTask(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How tools were used for one kind of task. A command is called by its head (`go test`), other tools by name.

    `after` counts what came right after what; `recovery` what came right after a failure, failed where it failed too.
    Refusals and the like count as no failure. Durations in milliseconds, of the uses that tell theirs.
    """

    tools: Tallies = msgspec.field(default_factory=dict)
    after: Tallies = msgspec.field(default_factory=dict)
    recovery: Tallies = msgspec.field(default_factory=dict)
    timed: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    """Of each tool, how many uses told their duration, and their sum."""


class SessionTools(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How tools were used in one session at one location, by kind of task. `last` is the use before (its tool, whether
    it failed)."""

    stream: str
    location: str
    last_at: int = 0
    tasks: dict[str, ToolsOfTask] = msgspec.field(default_factory=dict)
    last: tuple[str, bool] = ("", False)


def row_id(fact: ToolUsed) -> str:
    """Key of the row of a session at a location."""
    return _id(fact.stream, fact.location)


@functools.lru_cache(maxsize=256)
def _id(stream: str, location: str) -> str:
    return str(derived_id(f"tool_patterns:{stream}\n{location}"))


@projection(row=SessionTools, key=row_id, stage=1, indexes=(("location", "last_at"),))
def tool_patterns(row: SessionTools | None, facts: Sequence[ToolUsed]) -> SessionTools:
    """Tools by kind of task: use, order, success, duration, and what follows a failure."""
    first = facts[0]
    if row is None:
        row = SessionTools(stream=first.stream, location=first.location)
    else:
        row = msgspec.structs.replace(row, tasks={kind: _copied(used) for kind, used in row.tasks.items()})
    for fact in facts:
        used = row.tasks.get(fact.task_type or "unknown")
        if used is None:
            used = row.tasks[fact.task_type or "unknown"] = ToolsOfTask()
        at, ok = fact.occurred_at, fact.ok or fact.noise
        event = fact.evidence[0].event if fact.evidence else None
        tool = fact.head or fact.tool
        count(used.tools, tool, at, event, TOOLS, ok=ok)
        before, failed = row.last
        if before:
            pair = f"{before}{BETWEEN}{tool}"
            count(used.recovery if failed else used.after, pair, at, event, PAIRS, ok=ok)
        if fact.duration_ms is not None and (tool in used.timed or len(used.timed) < TOOLS):
            times, total = used.timed.get(tool, (0, 0))
            used.timed[tool] = (times + 1, total + max(fact.duration_ms, 0))
        row.last = (tool, not ok)
        if at > row.last_at:
            row.last_at = at
    return row


def _copied(used: ToolsOfTask) -> ToolsOfTask:
    return ToolsOfTask(
        tools=dict(used.tools), after=dict(used.after), recovery=dict(used.recovery), timed=dict(used.timed)
    )
