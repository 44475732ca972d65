"""What work teaches for other work in the same project (ReasoningBank, 2025): by rule, and recorded."""

import msgspec

from memctl.domain.events.facts import Lesson, Span, StrategyShown
from memctl.domain.knowledge.graduation import strengthened
from memctl.domain.knowledge.strategies import kept, strategy_id
from memctl.domain.support.bounded import Seen, clipped, newest, seen
from memctl.projections.kernel import projection


class RecordedLesson(msgspec.Struct, frozen=True):
    """Once when a lesson was learnt: in which session, and in whose words. `made_by` is empty for a rule's."""

    at: int
    id: str
    stream: str
    lesson: Lesson
    made_by: str = ""
    evidence: tuple[Span, ...] = ()


class Strategy(msgspec.Struct, frozen=True, kw_only=True):
    """One lesson of a project, however often it was learnt. Times in microseconds.

    The words are those of the newest entry in `tellings`. `confidence` grows with the sessions that taught it
    (`domain.knowledge.graduation.strengthened`). `enough` says that enough sessions have shown it: memory reports it.
    """

    id: str
    location: str
    title: str = ""
    description: str = ""
    content: str = ""
    domain: str = ""
    from_failure: bool = False
    made_by: str = ""
    """The model that distilled it; empty for a rule."""
    confidence: float = 0.0
    strongest: float = 0.0
    asked: int = 0
    """The fewest sessions that any entry asked for."""
    enough: bool = False
    first_seen: int = 0
    last_seen: int = 0
    sessions: tuple[Seen, ...] = ()
    """The newest 32 streams that taught it."""
    sources: tuple[Seen, ...] = ()
    """Those of them that count: a copy, fork or resumed session is none of its own."""
    tellings: tuple[RecordedLesson, ...] = ()
    """The newest 4."""


def _key(fact: StrategyShown) -> str:
    return strategy_id(fact.location, fact.lesson)


@projection(row=Strategy, key=_key, indexes=(("location", "enough", "last_seen"), ("last_seen",)))
def strategies(row: Strategy | None, fact: StrategyShown) -> Strategy:
    """Lessons of a project: calls that work, what mends an error, rules that are enforced; and distilled ones."""
    at = int(fact.occurred_at)
    lesson, made_by = kept(fact.lesson), clipped(fact.made_by, 60)
    lesson_shown = RecordedLesson(at, str(fact.id), clipped(fact.stream, 160), lesson, made_by, fact.evidence[:4])
    row = row or Strategy(id=_key(fact), location=fact.location, first_seen=at)
    tellings = newest(row.tellings, lesson_shown, 4)
    shown, sources = tellings[0], seen(row.sources, fact.origin, at, 32)
    strongest = max(row.strongest, lesson.confidence)
    asked = min(row.asked or lesson.sessions, lesson.sessions)
    return msgspec.structs.replace(
        row,
        title=shown.lesson.title,
        description=shown.lesson.description,
        content=shown.lesson.content,
        domain=shown.lesson.domain,
        from_failure=shown.lesson.from_failure,
        made_by=shown.made_by,
        confidence=strengthened(strongest, len(sources)),
        strongest=strongest,
        asked=asked,
        enough=len(sources) >= asked,
        first_seen=min(row.first_seen, at),
        last_seen=max(row.last_seen, at),
        sessions=seen(row.sessions, fact.stream, at, 32),
        sources=sources,
        tellings=tellings,
    )
