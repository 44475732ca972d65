"""What becomes of a piece of work: how it went, as rules and processors judge it, and what it teaches for others."""

from uuid import UUID

import msgspec

from memctl.domain.events.event_order import OrderedEvent
from memctl.domain.events.fact_builder import FactBuilder
from memctl.domain.events.facts import Episode, Lesson, MemoriesFollowed, Span, StrategyShown, fact_id
from memctl.domain.events.processor_events import EpisodeDistilled, OfEpisode, StrategyDistilled, TrajectoryJudged
from memctl.domain.knowledge.strategies import MOST, kept
from memctl.domain.session.episodes import EpisodeSoFar


class EpisodeOutcomes:
    """What was recorded of the episodes of one stream, and which of them are over."""

    def __init__(self, assertions: FactBuilder) -> None:
        self._assert = assertions
        self._over: set[UUID] = set()
        """Episodes that were closed, and are not asserted again."""
        self._recorded: dict[tuple[UUID, type[OfEpisode]], OfEpisode] = {}
        """What was recorded of episodes, the latest of each kind."""

    def recorded(self, outcome: OfEpisode, episode: EpisodeSoFar | None) -> bool:
        """A processor said something of an episode, this open one or another. False where the fact
        that it bears on was asserted already: then the stream is derived again."""
        known = (outcome.episode, type(outcome)) in self._recorded
        if known if isinstance(outcome, StrategyDistilled) else outcome.episode in self._over:
            return False
        self._recorded[outcome.episode, type(outcome)] = outcome
        if episode is not None and episode.id == outcome.episode:
            episode.dirty = True
        return True

    def conclude(self, episode: EpisodeSoFar, *, closed: bool) -> Episode:
        """Assert the episode as it stands, and what became of what was recalled in it."""
        fact = self._fact(episode, closed=closed)
        self._assert.add(fact)
        if closed:
            self._over.add(episode.id)
        memories = tuple(episode.recalls.memories)
        if memories and (closed or episode.left):
            # Dated as the episode began, so that asserting it again asserts the same fact.
            self._assert.add(
                MemoriesFollowed(
                    id=fact_id(episode.stream, "memories_followed", str(episode.id)), stream=episode.stream,
                    occurred_at=episode.began, location=episode.location, evidence=(episode.opening,),
                    memories=memories, outcome=fact.outcome,
                )
            )  # fmt: skip
        return fact

    def taught(self, placed: OrderedEvent, seen: StrategyDistilled) -> None:
        """Assert what a model distilled of an episode, if that is its latest word on it."""
        if self._recorded.get((seen.episode, StrategyDistilled)) is not seen:
            return
        for number, lesson in enumerate([each for each in seen.strategies if each.title.strip()][:MOST]):
            self._assert.make(
                StrategyShown,
                placed,
                f"{placed.cite}:{number}",
                location=self._assert.home_of(placed.event.location),
                # Its name is its title's: a key is a rule's, and so is how many sessions it takes.
                lesson=msgspec.structs.replace(kept(lesson), key="", sessions=1),
                made_by=seen.made_by or "a model",
            )

    def learnt(self, placed: OrderedEvent, episode: EpisodeSoFar, lesson: Lesson | None, *spans: Span) -> None:
        """A rule read a lesson out of the open task's work, once, of the first three."""
        if lesson is None or len(episode.lessons) >= MOST or lesson.key in episode.lessons:
            return
        episode.lessons.add(lesson.key)
        about = f"{episode.id}:{lesson.key}"
        self._assert.make(StrategyShown, placed, about, *spans, location=self._assert.home, lesson=lesson)

    def _fact(self, episode: EpisodeSoFar, *, closed: bool) -> Episode:
        judged = self._recorded.get((episode.id, TrajectoryJudged))
        distilled = self._recorded.get((episode.id, EpisodeDistilled))
        assert judged is None or isinstance(judged, TrajectoryJudged)
        assert distilled is None or isinstance(distilled, EpisodeDistilled)
        return episode.fact(closed=closed, judged=judged, distilled=distilled)
