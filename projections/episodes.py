"""Episodes: one task's work in one session, with its context, course, outcome and lessons."""

import msgspec

from memctl.domain.events.facts import Episode, EpisodeDecision, FilePatch, Pivot, ToolTally
from memctl.domain.events.open_threads import Thread
from memctl.domain.support.bounded import clipped
from memctl.domain.support.structs import carried_over
from memctl.projections.kernel import projection


class EpisodeRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One episode. Times in microseconds. `closed` episodes change no more.

    `outcome` is by a person's word, else a judge's recorded verdict, else the rule's, with its reason in `why`.
    """

    id: str
    stream: str
    agent: str
    session_id: str
    location: str
    task: str
    canonical: str
    closed: bool
    description: str
    task_type: str
    started_at: int
    ended_at: int
    duration_us: int
    outcome: str
    why: str = ""
    confidence: float = 0.0
    feedback: str = "neutral"
    complexity: float = 0.0
    steps: int = 0
    files: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    error_types: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()
    stack_signature: str = ""
    """Signature of the first error, by which episodes with the same error are found."""
    resolved: tuple[str, ...] = ()
    tools: tuple[ToolTally, ...] = ()
    plan: tuple[str, ...] = ()
    plan_summary: str = ""
    decisions: tuple[EpisodeDecision, ...] = ()
    pivots: tuple[Pivot, ...] = ()
    patches: tuple[FilePatch, ...] = ()
    lines_added: int = 0
    lines_removed: int = 0
    tests_passed: bool | None = None
    problem: str = ""
    solution: str = ""
    gotchas: tuple[str, ...] = ()
    tips: tuple[str, ...] = ()
    answer: str = ""
    tokens: int = 0
    ended_by: str = ""
    """next_prompt, statement, session_end, commit or verdict; empty while nothing ended it."""
    recalled: str = "none"
    """Whether memory was injected for the agent in it (told), or was held back (withheld)."""
    threads: tuple[Thread, ...] = ()
    """What is left open, while it is the work that the session ends with."""
    elsewhere: tuple[str, ...] = ()
    once: str = ""
    """As in `memctl.domain.events.facts.Fact`, of the line and the words that opened it."""


def _id(fact: Episode) -> str:
    return str(fact.id)


@projection(
    row=EpisodeRow,
    key=_id,
    stage=1,
    indexes=(
        ("location", "started_at"),
        ("started_at",),
        ("outcome", "started_at"),
        ("task_type", "started_at"),
        ("task",),
        ("stream", "started_at"),
        ("stack_signature",),
        ("once",),
    ),
)
def episodes(row: EpisodeRow | None, fact: Episode) -> EpisodeRow:
    """One task's work in one session: context, course, outcome, and what was learnt."""
    return carried_over(
        fact,
        EpisodeRow,
        id=str(fact.id),
        canonical=clipped(fact.canonical, 300),
        description=clipped(fact.description, 300),
        started_at=fact.occurred_at,
        duration_us=max(0, fact.ended_at - fact.occurred_at),
        why=clipped(fact.why, 400),
        stack_signature=fact.signatures[0] if fact.signatures else "",
        plan_summary=clipped(fact.plan_summary, 400),
        problem=clipped(fact.problem, 400),
        solution=clipped(fact.solution, 1_500),
        answer=clipped(fact.answer, 2_000),
    )
