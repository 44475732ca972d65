"""Commands about a session's work: tasks, hypotheses, decisions, and what was found out."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import msgspec

from memctl.domain.events.command import BadCommand, Command, Kind, command
from memctl.domain.events.event import Event
from memctl.domain.events.facts import Fact, HypothesisMoved, Outcome, TaskClosed, TaskOpened, TaskType
from memctl.domain.events.skipping import foldable
from memctl.domain.events.statements import (
    DecisionMade,
    DiscoveryNoted,
    HypothesisProposed,
    HypothesisUpdated,
    TaskCompleted,
    TaskStarted,
)
from memctl.domain.language.hypotheses import CONFIRMED, key_of
from memctl.domain.session.stream_facts import derive
from memctl.domain.support.errors import MemctlError

LONGEST = 1_000
"""Characters of a statement."""

Words = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]
Reasons = Annotated[tuple[Words, ...], msgspec.Meta(max_length=8)]
Confidence = Annotated[float, msgspec.Meta(ge=0, le=1)]


class NothingOpen(MemctlError):
    """No task is open in session {session}."""

    exit_code = 3
    hint = "`memctl context` shows what a session is at; `memctl task start` begins a task."
    session: str


class NoSuchHypothesis(MemctlError):
    """No open hypothesis {wanted!r} in session {session}; open: {held}."""

    exit_code = 3
    wanted: str
    session: str
    held: str


class AboutSession(Command, frozen=True, kw_only=True):
    """Base of these commands. `session` is a session's id or its beginning, or the id of a task or episode in it.

    Without one, it is the latest session here, if it was heard of lately; else what is kept of this place by hand.
    """

    to: ClassVar[str] = "{session}"
    of_place: ClassVar[bool] = True
    refers: ClassVar[dict[str, Kind]] = {"session": "session"}

    session: str = ""


@command("task-start")
class StartTask(AboutSession, frozen=True, kw_only=True):
    """Begin a piece of work. It is the one that the session's latest prompt asked for, if that was just asked."""

    description: Words
    type: TaskType | Literal[""] = ""

    def decide(self, history: Sequence[Event]) -> TaskStarted:
        return TaskStarted(description=_said(self.description), task_type=self.type)


@command("task-done")
class CompleteTask(AboutSession, frozen=True, kw_only=True):
    """End the session's open piece of work, and say how it went. Refused where none is open."""

    reads: ClassVar[bool] = True

    outcome: Outcome = "success"
    note: Annotated[str, msgspec.Meta(max_length=LONGEST)] = ""

    def decide(self, history: Sequence[Event]) -> TaskCompleted:
        opened = [fact for fact in _facts(self.stream, history) if isinstance(fact, (TaskOpened, TaskClosed))]
        if not opened or isinstance(opened[-1], TaskClosed):
            raise NothingOpen(session=self.session)
        return TaskCompleted(outcome=self.outcome, note=self.note.strip())


@command("hypothesis-propose")
class ProposeHypothesis(AboutSession, frozen=True, kw_only=True):
    """Hold something to be so until it is shown. The same description again strengthens it."""

    text: Words
    confidence: Confidence = 0.5
    evidence: Reasons = ()

    def decide(self, history: Sequence[Event]) -> HypothesisProposed:
        return HypothesisProposed(text=_said(self.text), confidence=self.confidence, evidence=self.evidence)


@command("hypothesis-update")
class UpdateHypothesis(AboutSession, frozen=True, kw_only=True):
    """Say what became of an open hypothesis: `hypothesis` is the beginning of its key or of its words.

    Confirmed, at 0.9 unless said otherwise, it becomes a decision; rejected it leaves.
    """

    reads: ClassVar[bool] = True

    hypothesis: Words
    status: Literal["supported", "confirmed", "rejected"]
    confidence: Confidence | None = None
    evidence: Reasons = ()

    def decide(self, history: Sequence[Event]) -> HypothesisUpdated:
        held = open_hypotheses(_facts(self.stream, history))
        wanted = self.hypothesis.strip()
        alike = [
            each
            for each in held
            if each.hypothesis == key_of(wanted)
            or (len(wanted) >= 4 and each.hypothesis.startswith(wanted))
            or each.text.lower().startswith(wanted.lower())
        ]
        if len(alike) != 1:
            listed = "; ".join(f"{each.hypothesis[:8]} {each.text[:60]}" for each in held) or "none"
            raise NoSuchHypothesis(wanted=wanted, session=self.session, held=listed)
        confidence = self.confidence
        if self.status == "confirmed" and confidence is None:
            confidence = CONFIRMED
        return HypothesisUpdated(
            hypothesis=alike[0].hypothesis,
            text=alike[0].text,
            status=self.status,
            confidence=confidence,
            evidence=self.evidence,
        )


@command("decide")
class RecordDecision(AboutSession, frozen=True, kw_only=True):
    """Record what was settled on, why, and what else there had been to choose from."""

    text: Words
    rationale: Annotated[str, msgspec.Meta(max_length=LONGEST)] = ""
    alternatives: Reasons = ()

    def decide(self, history: Sequence[Event]) -> DecisionMade:
        return DecisionMade(text=_said(self.text), rationale=self.rationale.strip(), alternatives=self.alternatives)


@command("discovery")
class NoteDiscovery(AboutSession, frozen=True, kw_only=True):
    """Note something found out that the rest of the session may need."""

    text: Words
    kind: Annotated[str, msgspec.Meta(min_length=1, max_length=40)] = "fact"

    def decide(self, history: Sequence[Event]) -> DiscoveryNoted:
        return DiscoveryNoted(text=_said(self.text), kind=self.kind)


def open_hypotheses(facts: Sequence[Fact]) -> list[HypothesisMoved]:
    """The hypotheses that stand open at the end of a stream's facts, the latest last."""
    held: dict[str, HypothesisMoved] = {}
    for fact in facts:
        if isinstance(fact, TaskOpened):
            held.clear()
        elif isinstance(fact, HypothesisMoved):
            held.pop(fact.hypothesis, None)
            if fact.status != "rejected" and not (fact.status == "confirmed" and fact.confidence >= CONFIRMED):
                held[fact.hypothesis] = fact
    return list(held.values())


def _facts(stream: str, history: Sequence[Event]) -> list[Fact]:
    return derive(stream, foldable(history)).drain()


def _said(text: str) -> str:
    said = text.strip()
    if not said:
        raise BadCommand(why="there is nothing in it but white space")
    return said
