"""One task's work in one session: what is gathered while it goes on, and how it ended."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

import msgspec

from memctl.domain.bounded import clipped
from memctl.domain.event import Micros
from memctl.domain.explanations import sentences
from memctl.domain.facts import Episode, FilePatch, Outcome, Span, TaskType, ToolTally

FILES, PATCHES, NAMES, LINES = 32, 24, 30, 10
"""How many files, patches, names (symbols, signatures, steps of the plan) and lines (decisions, pivots) are kept."""

PIVOT_STEPS = 5
"""More steps than this between one error and the next are a change of strategy (seed 001)."""


class EpisodeSoFar(msgspec.Struct):
    """An open episode. Times in microseconds; `steps` counts uses of tools."""

    id: UUID
    stream: str
    task: str
    canonical: str
    description: str
    task_type: TaskType
    began: Micros
    location: str
    opening: Span
    ended: Micros = Micros(0)
    steps: int = 0
    prompts: int = 0
    files: dict[str, FilePatch] = msgspec.field(default_factory=dict)
    symbols: dict[str, None] = msgspec.field(default_factory=dict)
    error_types: dict[str, None] = msgspec.field(default_factory=dict)
    signatures: dict[str, None] = msgspec.field(default_factory=dict)
    unresolved: dict[str, str] = msgspec.field(default_factory=dict)
    """Signatures of errors that are not resolved, with their messages."""
    resolved: dict[str, None] = msgspec.field(default_factory=dict)
    tools: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    plan: tuple[tuple[str, str], ...] = ()
    decisions: list[str] = msgspec.field(default_factory=list)
    pivots: list[str] = msgspec.field(default_factory=list)
    added: int = 0
    removed: int = 0
    errors: int = 0
    error_at: int | None = None
    changed_at: int | None = None
    tested_at: int | None = None
    tests_passed: bool | None = None
    committed_at: int | None = None
    failed_at: int | None = None
    """The last command that failed and was not seen to pass."""
    interrupted_at: int | None = None
    feedback: Literal["positive", "negative", "neutral"] = "neutral"
    feedback_at: int = 0
    problem: str = ""
    solution: str = ""
    gotchas: dict[str, None] = msgspec.field(default_factory=dict)
    tips: dict[str, None] = msgspec.field(default_factory=dict)
    answer: str = ""
    answered: Span | None = None
    tokens: int = 0
    dirty: bool = True

    def touch(self, when: Micros) -> None:
        if when > self.ended:
            self.ended = when
        self.dirty = True

    def used(self, tool: str, *, ok: bool) -> None:
        uses, failures = self.tools.get(tool, (0, 0))
        self.tools[tool] = (uses + 1, failures + (not ok))
        self.steps += 1

    def changed(self, path: str, added: int, removed: int, symbols: tuple[str, ...], *, created: bool) -> None:
        path = clipped(path, 200)
        before = self.files.get(path, FilePatch(path))
        if path in self.files or len(self.files) < FILES:
            created = created or before.created
            self.files[path] = FilePatch(path, before.added + added, before.removed + removed, created)
        _keep(self.symbols, symbols, NAMES)
        self.added += added
        self.removed += removed
        self.changed_at = self.steps

    def erred(self, signature: str, types: tuple[str, ...], message: str) -> None:
        _keep(self.error_types, types, NAMES)
        _keep(self.signatures, (signature,), NAMES)
        if len(self.unresolved) < NAMES:
            self.unresolved[signature] = message[:200]
        if self.error_at is not None and self.steps - self.error_at > PIVOT_STEPS:
            self.pivot(
                "Strategy change after errors", f"Another error {self.steps - self.error_at} steps on: {message}"
            )
        self.errors += 1
        self.error_at = self.steps
        self.problem = self.problem or message[:300]

    def resolve(self, signature: str, message: str, approach: str, explanation: str) -> None:
        self.unresolved.pop(signature, None)
        _keep(self.resolved, (signature,), NAMES)
        self.solution = approach
        first = message.split("\n", 1)[0]
        _keep(self.gotchas, (f"{first[:140]} → {approach[:150]}",), LINES // 2)
        _keep(self.tips, tuple(sentences(explanation)[:1]), LINES // 2)

    def decided(self, text: str, rationale: str) -> None:
        if len(self.decisions) < LINES and text not in self.decisions:
            self.decisions.append(clipped(text, 200))
            self.pivot(f"Decision: {text}", rationale)

    def pivot(self, description: str, reason: str) -> None:
        """Descriptions are cut at 50 characters, reasons at 100 (seed 001)."""
        if len(self.pivots) < LINES:
            self.pivots.append(f"{description[:50]}: {reason[:100]}" if reason else description[:50])

    def heard(self, feedback: Literal["positive", "negative"]) -> None:
        self.feedback = feedback
        self.feedback_at = self.steps

    def outcome(self, *, closed: bool) -> tuple[Outcome, str]:
        """How it went, and why, in words. Later signs count more than earlier ones."""
        changed = self.changed_at is not None
        since = self.changed_at or 0
        worked_on = self.steps > self.feedback_at
        if self.feedback == "negative" and not worked_on:
            return ("partial" if changed else "failure"), "the user said it was not right"
        if self.feedback == "positive" and not worked_on:
            return "success", "the user was content"
        if self.interrupted_at is not None and self.interrupted_at >= self.steps:
            return ("partial" if changed else "failure"), "the user interrupted the work"
        failing = self.failed_at is not None and self.failed_at >= max(since, self.committed_at or 0)
        if self.committed_at is not None and self.committed_at >= since and not failing:
            tested = ", tests passed" if self.tests_passed else ""
            return "success", f"the work was committed{tested}"
        if self.tests_passed is not None and self.tested_at is not None and self.tested_at >= since and changed:
            if self.tests_passed and not failing:
                return "success", "tests passed after the last change"
            if not self.tests_passed:
                return ("partial" if self.resolved else "failure"), f"tests failed at last: {self._last_error()}"
        if failing and self.unresolved:
            return ("partial" if changed or self.resolved else "failure"), f"an error stayed: {self._last_error()}"
        if changed:
            if self.resolved and not self.unresolved:
                return "success", "what had failed passed after the changes"
            files = "1 file" if len(self.files) == 1 else f"{len(self.files)} files"
            return "unknown", f"{files} changed; no test, commit or word of the user tells how it went"
        if closed and self.answer:
            return "success", "answered, and nobody objected"
        return "unknown", "nothing tells how it went"

    def _last_error(self) -> str:
        return next(reversed(self.unresolved.values()), "")[:120]

    def complexity(self) -> float:
        """0 to 1: steps (full at 60), files (at 12), errors (at 8)."""
        parts = 0.5 * min(self.steps / 60, 1) + 0.3 * min(len(self.files) / 12, 1) + 0.2 * min(self.errors / 8, 1)
        return round(parts, 3)

    def fact(self, *, closed: bool) -> Episode:
        outcome, why = self.outcome(closed=closed)
        return Episode(
            id=self.id,
            stream=self.stream,
            occurred_at=self.began,
            location=self.location,
            evidence=(self.opening, self.answered) if self.answered is not None else (self.opening,),
            task=self.task,
            canonical=self.canonical,
            closed=closed,
            description=self.description,
            task_type=self.task_type,
            ended_at=self.ended,
            steps=self.steps,
            outcome=outcome,
            why=why,
            complexity=self.complexity(),
            files=tuple(self.files),
            symbols=tuple(self.symbols),
            error_types=tuple(self.error_types),
            signatures=tuple(self.signatures),
            resolved=tuple(self.resolved),
            tools=tuple(
                ToolTally(clipped(tool, 60), uses, failures)
                for tool, (uses, failures) in sorted(self.tools.items(), key=lambda item: (-item[1][0], item[0]))[
                    :NAMES
                ]
            ),
            plan=tuple(clipped(text, 140) for _, text in self.plan[:NAMES]),
            decisions=tuple(self.decisions),
            pivots=tuple(self.pivots),
            patches=tuple(self.files.values())[:PATCHES],
            lines_added=self.added,
            lines_removed=self.removed,
            tests_passed=self.tests_passed,
            feedback=self.feedback,
            problem=self.problem,
            solution=self.solution or (" ".join(sentences(self.answer)[:2])[:300] if self.files else ""),
            gotchas=(
                *self.gotchas,
                *(f"{message[:140]} (not resolved)" for message in list(self.unresolved.values())[-3:]),
            ),
            tips=tuple(self.tips),
            answer=clipped(self.answer, 2_000),
            tokens=self.tokens,
        )


def _keep(names: dict[str, None], more: tuple[str, ...], limit: int) -> None:
    for name in more:
        if len(names) >= limit:
            return
        if name:
            names[clipped(name, 300)] = None
