"""Statements about a session's work: what a person or an agent recorded of its tasks, hypotheses and decisions.

They stand in the session's stream among its observations, and stage 1 folds both: a rule's finding and a statement of
the same subject are one thing, and what was recorded wins.
"""

from typing import ClassVar, Literal

from memctl.domain.events.event import Payload, event
from memctl.domain.events.facts import Outcome, TaskType


class Statement(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """What every statement is to stage 1: said at its time, in no line of a transcript, by nobody's subagent."""

    line: ClassVar[str] = ""
    block: ClassVar[int] = 0
    parent: ClassVar[str] = ""
    via: ClassVar[Literal["command"]] = "command"
    subagent: ClassVar[str] = ""
    injected: ClassVar[bool] = False
    branch: ClassVar[str] = ""
    model: ClassVar[str] = ""
    agent_version: ClassVar[str] = ""

    confined: bool = False
    """Stated under a key that is limited to projects."""


@event("task.started")
class TaskStarted(Statement, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody said which piece of work begins. An empty type leaves it to the rule."""

    description: str
    task_type: TaskType | Literal[""] = ""


@event("task.completed")
class TaskCompleted(Statement, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody said that the session's open work is over, and how it went (`unknown` leaves it to the rule)."""

    outcome: Outcome = "success"
    note: str = ""


@event("hypothesis.proposed")
class HypothesisProposed(Statement, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody holds something to be so. `confidence` 0 to 1; `evidence` in words."""

    text: str
    confidence: float = 0.5
    evidence: tuple[str, ...] = ()


@event("hypothesis.updated")
class HypothesisUpdated(Statement, frozen=True, kw_only=True, omit_defaults=True):
    """A hypothesis was tested. `hypothesis` is its key (domain/language/hypotheses.py), `text` its description.

    No confidence leaves it as it was; confirmed at 0.9 or more it becomes a decision, rejected it leaves.
    """

    hypothesis: str
    text: str
    status: Literal["supported", "confirmed", "rejected"] = "supported"
    confidence: float | None = None
    evidence: tuple[str, ...] = ()


@event("decision.made")
class DecisionMade(Statement, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody settled on something: what, why, and what else there had been to choose from."""

    text: str
    rationale: str = ""
    alternatives: tuple[str, ...] = ()


@event("discovery.noted")
class DiscoveryNoted(Statement, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody found something out that the session's later work may need."""

    text: str
    kind: str = "fact"


@event("session.summarized")
class SessionSummarized(Statement, frozen=True, kw_only=True, omit_defaults=True):
    """A summary of the session, made by a person, an agent or a processor."""

    summary: str
    tags: tuple[str, ...] = ()
    made_by: str = ""
    """A model, or a rule with its version; empty where a person or agent wrote it."""
    tokens: int = 0
    cost_usd: float = 0.0
