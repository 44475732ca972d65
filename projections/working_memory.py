"""The live state of a session: what is being done, how far, with which files, what came back lately (seed 000 §2)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from copy import copy
from typing import assert_never

import msgspec

from memctl.domain.bounded import clipped, one_line
from memctl.domain.facts import (
    DecisionTaken,
    ErrorOccurred,
    ErrorResolved,
    Fact,
    FileChanged,
    InsightFound,
    PlanChanged,
    Prompted,
    TaskClosed,
    TaskOpened,
    ToolUsed,
)
from memctl.projections.kernel import projection

TOOL_RESULTS, ERRORS, DISCOVERIES = 10, 5, 10
"""Sizes of the ring buffers (seed 000 §2: 10, 5, 10)."""

FILES, DECISIONS, STEPS, DONE = 24, 10, 30, 12
"""Files, decisions, steps of the plan, and steps done that a row keeps."""


class ActiveFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file in use. `state` is read, edited or created, `before` what it was until the last change of state."""

    path: str
    state: str
    before: str = ""
    accesses: int = 1
    last_at: int = 0


class PlanStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """A step of the agent's plan; `status` is pending, in_progress or completed."""

    status: str
    text: str


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a use of a tool gave back, cut short."""

    at: int
    tool: str
    ok: bool
    summary: str = ""
    result: str = ""


class RecentError(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error, and how it was resolved where it was."""

    at: int
    id: str
    signature: str
    message: str
    command: str = ""
    resolution: str = ""


class Noted(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something found out: a claim of the user's, or how an error was resolved."""

    at: int
    kind: str
    text: str


class Decided(msgspec.Struct, frozen=True, omit_defaults=True):
    """A decision with what was at hand then: the step, and the names of the files in use."""

    at: int
    text: str
    rationale: str = ""
    said_by: str = ""
    step: int = 0
    files: tuple[str, ...] = ()


class WorkingMemory(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The state of one session now. Times in microseconds; lists newest last, each bounded."""

    stream: str
    location: str = ""
    updated_at: int = 0
    task: str = ""
    task_description: str = ""
    task_type: str = ""
    task_status: str = ""
    """open or closed."""
    task_started_at: int = 0
    last_prompt: str = ""
    steps: int = 0
    """Uses of tools in this task."""
    plan: tuple[PlanStep, ...] = ()
    current_step: str = ""
    steps_done: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    files: tuple[ActiveFile, ...] = ()
    decisions: tuple[Decided, ...] = ()
    tool_results: tuple[ToolResult, ...] = ()
    errors: tuple[RecentError, ...] = ()
    discoveries: tuple[Noted, ...] = ()


Other = (
    Prompted
    | TaskOpened
    | TaskClosed
    | FileChanged
    | PlanChanged
    | ErrorOccurred
    | ErrorResolved
    | DecisionTaken
    | InsightFound
)
Told = ToolUsed | Other


def _stream(fact: Fact) -> str:
    return fact.stream


@projection(row=WorkingMemory, key=_stream, stage=1, indexes=(("location", "updated_at"),))
def working_memory(row: WorkingMemory | None, facts: Sequence[Told]) -> WorkingMemory:
    """The live state of each session: task, plan, active files, decisions, recent results, errors and discoveries."""
    row = copy(row) or WorkingMemory(stream=facts[0].stream)
    results = deque[ToolResult | ToolUsed](row.tool_results, TOOL_RESULTS)
    for fact in facts:
        row.updated_at = max(row.updated_at, fact.occurred_at)
        row.location = fact.location or row.location
        if isinstance(fact, ToolUsed):
            row.steps += 1
            results.append(fact)
            if fact.ok and fact.family == "read":
                row.files = _accessed(row.files, fact.files, "read", fact.occurred_at)
        else:
            _take(row, fact)
    row.tool_results = tuple(_result(each) if isinstance(each, ToolUsed) else each for each in results)
    return row


def _result(use: ToolUsed) -> ToolResult:
    # Summary and result stand on one line already.
    return ToolResult(
        use.occurred_at, clipped(use.tool, 60), use.ok, clipped(use.summary, 160), clipped(use.result, 240)
    )


def _take(row: WorkingMemory, fact: Other) -> None:
    at = fact.occurred_at
    match fact:
        case FileChanged():
            row.files = _accessed(row.files, (fact.path,), "created" if fact.created else "edited", at)
        case Prompted():
            if fact.kind != "command":
                row.last_prompt = clipped(fact.text, 600)
        case PlanChanged():
            row.plan = tuple(PlanStep(status, one_line(text, 140)) for status, text in fact.steps[:STEPS])
            row.current_step = next((step.text for step in row.plan if step.status == "in_progress"), "")
            row.steps_done = tuple(one_line(s.text, 100) for s in row.plan if s.status == "completed")[-DONE:]
            row.pending = tuple(one_line(s.text, 100) for s in row.plan if s.status == "pending")[:DONE]
        case TaskOpened():
            row.task = fact.task
            row.task_description = clipped(fact.description, 200)
            row.task_type = fact.task_type
            row.task_status = "open"
            row.task_started_at = at
            row.steps = 0
            row.plan = row.steps_done = row.pending = ()
            row.current_step = ""
        case TaskClosed():
            if fact.task == row.task:
                row.task_status = "closed"
        case ErrorOccurred():
            error = RecentError(
                at, str(fact.id), fact.signature, one_line(fact.message, 240), one_line(fact.command, 160)
            )
            row.errors = (*row.errors, error)[-ERRORS:]
        case ErrorResolved():
            row.errors = tuple(
                msgspec.structs.replace(error, resolution=one_line(fact.approach, 240))
                if error.id == str(fact.error)
                else error
                for error in row.errors
            )
            row.discoveries = _found(row, at, "resolution", fact.approach)
        case DecisionTaken():
            recent = tuple(clipped(file.path.rpartition("/")[2], 80) for file in row.files[-3:])
            decided = Decided(
                at, one_line(fact.text, 200), one_line(fact.rationale, 120), fact.said_by, row.steps, recent
            )
            row.decisions = (*row.decisions, decided)[-DECISIONS:]
        case InsightFound():
            row.discoveries = _found(row, at, fact.kind, fact.text)
        case _:
            assert_never(fact)


def _found(row: WorkingMemory, at: int, kind: str, text: str) -> tuple[Noted, ...]:
    if not text:
        return row.discoveries
    noted = Noted(at, kind, one_line(text, 240))
    return (*(known for known in row.discoveries if known.text != noted.text), noted)[-DISCOVERIES:]


def _accessed(files: tuple[ActiveFile, ...], paths: tuple[str, ...], state: str, at: int) -> tuple[ActiveFile, ...]:
    """The files in use after an access: the latest last, the longest unused pushed out."""
    kept = list(files)
    for path in paths[:20]:
        path = clipped(path, 160)
        known = next((file for file in kept if file.path == path), None)
        if known is None:
            kept.append(ActiveFile(path, state, last_at=at))
            continue
        kept.remove(known)
        # Reading what was edited leaves it edited.
        now = known.state if state == "read" else state
        before = known.before if now == known.state else known.state
        kept.append(ActiveFile(path, now, before, known.accesses + 1, at))
    return tuple(kept[-FILES:])
