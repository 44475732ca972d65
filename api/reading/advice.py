"""What an agent is answered while it works: to one of four kinds of questions, and guidance for a task."""

from typing import Literal

import msgspec

from memctl.api.reading.views import BugHit, Found, Scope
from memctl.domain.retrieval.guidance import Course, Guidance
from memctl.projections.working_memory import RecentError

Kind = Literal["similar_error", "how_to", "convention", "past_approach"]
Tier = Literal["working_memory", "episodic_memory", "semantic_memory", "none"]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """`source` is the tier that answered. `error` is how this session met the error before, `bugs` known kinds of it
    with their ways out, `course` what to do about it, `results` memories; each only where it is the answer."""

    kind: Kind
    source: Tier
    message: str
    scope: Scope
    error: RecentError | None = None
    bugs: list[BugHit] = []
    course: Course | None = None
    results: list[Found] = []


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A like task and how it went: what was learnt are its tips, and its gotchas."""

    memory: str
    description: str
    outcome: str
    approach: str
    learnt: list[str]


class Here(msgspec.Struct, frozen=True, kw_only=True):
    """What holds in a project whatever the task is, the weightiest of each."""

    name: str
    conventions: list[str]
    hotspots: list[str]
    avoid: list[str]


class TaskGuidance(msgspec.Struct, frozen=True, kw_only=True):
    """Advice for a task, with what it rests on: the earlier tasks, as found and as they went (`similar_cases`), the
    known errors, what holds in the project, and what the user is known to like and to reject."""

    task: str
    scope: Scope
    guidance: Guidance
    episodes: list[Found]
    similar_cases: list[Case]
    bugs: list[BugHit]
    project: Here | None
    preferences: list[str]
