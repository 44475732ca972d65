"""What was settled: what was stated of hypotheses, decisions and discoveries, and claims that a processor read."""

from uuid import UUID

from memctl.domain.events.event_order import OrderedEvent
from memctl.domain.events.fact_builder import FactBuilder
from memctl.domain.events.facts import Discovered, HypothesisMoved, InsightFound, Span, Summarized, quote, quote_hash
from memctl.domain.events.processor_events import InsightExtracted, OfEpisode, StrategyDistilled
from memctl.domain.events.statements import (
    DecisionMade,
    DiscoveryNoted,
    HypothesisProposed,
    HypothesisUpdated,
    SessionSummarized,
    Statement,
    TaskCompleted,
    TaskStarted,
)
from memctl.domain.language.claims import rests_on_quote, stated, vetoed
from memctl.domain.language.decisions import Decision
from memctl.domain.language.hypotheses import CONFIRMED, Hypotheses, Status, key_of
from memctl.domain.session.conversation import Conversation
from memctl.domain.session.episode_outcomes import EpisodeOutcomes
from memctl.domain.session.scheduled_prompts import ScheduledPrompts
from memctl.domain.support.provenance import RIGHTS, Provenance, attributed, by_actor, member_of

_SAID_BY = {"user": Provenance.USER_TYPED, "agent": Provenance.AGENT, "tool": Provenance.TOOL}
"""Whose words a processor's claim is in, by the names in its event."""


class Reasoning:
    """The hypotheses of one stream's open task, and where they and its decisions come from."""

    def __init__(
        self,
        assertions: FactBuilder,
        conversation: Conversation,
        episode_outcomes: EpisodeOutcomes,
        scheduled: ScheduledPrompts,
    ) -> None:
        self._assert = assertions
        self._talk = conversation
        self._outcomes = episode_outcomes
        self._scheduled = scheduled
        self._hypotheses = Hypotheses()
        self._episode: UUID | None = None

    def stated(self, placed: OrderedEvent, seen: Statement) -> None:
        """A person or an agent recorded something of the session's work."""
        by = by_actor(placed.event.actor)
        match seen:
            case TaskStarted():
                self._talk.task_started(placed, seen)
            case TaskCompleted():
                self._talk.task_completed(placed, seen)
            case HypothesisProposed():
                self._follow()
                span = quote(placed.cite, seen.text)
                key = key_of(seen.text)
                self._move(placed, span, key, seen.text, "proposed", seen.confidence, by)
            case HypothesisUpdated():
                self._follow()
                span = quote(placed.cite, seen.text)
                self._move(placed, span, seen.hypothesis, seen.text, seen.status, seen.confidence, by)
            case DecisionMade():
                decision = Decision(seen.text, seen.rationale, 0, len(seen.text), seen.alternatives)
                self._talk.decided(placed, quote(placed.cite, seen.text), decision, by, stated=True)
            case DiscoveryNoted():
                span = quote(placed.cite, seen.text)
                self._assert.note(
                    Discovered, placed, span, text=seen.text, kind=seen.kind, said_by=by, task=self._talk.task
                )
            case SessionSummarized():
                span = quote(placed.cite, seen.summary, field="summary")
                self._assert.note(Summarized, placed, span, summary=seen.summary, tags=seen.tags)
            case InsightExtracted():
                self._extracted(placed, seen)
            case StrategyDistilled():
                self._outcomes.taught(placed, seen)
            case OfEpisode():
                pass  # `derive` had it recorded before anything of this batch was folded
            case _:
                raise AssertionError(f"nothing folds {type(seen).__name__}")

    def _extracted(self, placed: OrderedEvent, seen: InsightExtracted) -> None:
        """A processor read claims out of somebody's words. A user's is said in the words that it quotes, never in the
        model's: these may turn it round, or answer what the user asked. One whose quote stands nowhere, or says
        something else, rests on no words: it stays a guess of the model's."""
        for number, claim in enumerate(seen.claims):
            span, users = claim.span, claim.said_by == "user"
            if not rests_on_quote(claim.text, claim.quote):
                span = None
            if users and span is not None and (vetoed(claim.quote) or span.quote_hash != quote_hash(claim.quote)):
                span = None
            if users and span is not None and span.event in self._scheduled.deliveries:
                span = None
            users = users and span is not None
            read = stated(claim.quote if users else claim.text, claim.kind)
            said_by = attributed(_SAID_BY[claim.said_by], self._talk.speaker) if span is not None else Provenance.AGENT
            self._assert.make(
                InsightFound,
                placed,
                f"extracted:{placed.cite}:{number}",
                *((span,) if span is not None else ()),
                kind=claim.kind,
                text=read.text,
                canonical=read.canonical,
                subject=read.subject,
                confidence=claim.confidence,
                said_by=said_by,
                polarity=read.polarity,
                rule="extracted",
                everywhere=(claim.everywhere or read.everywhere)
                and RIGHTS[said_by].crosses
                and not self._assert.confined,
                files=claim.files,
                member=member_of(self._talk.speaker) if said_by is Provenance.MEMBER else "",
                location=self._assert.home_of(placed.event.location),
            )

    def _follow(self) -> None:
        """A task has its own hypotheses."""
        episode = self._talk.episode.id if self._talk.episode is not None else None
        if episode != self._episode:
            self._episode = episode
            self._hypotheses.clear()

    def _move(
        self,
        placed: OrderedEvent,
        span: Span,
        key: str,
        text: str,
        status: Status,
        confidence: float | None,
        by: Provenance,
    ) -> None:
        moved = self._hypotheses.move(key, text, status, confidence, by)
        self._assert.note(
            HypothesisMoved,
            placed,
            span,
            hypothesis=moved.key,
            text=moved.text,
            status=moved.status,
            confidence=moved.confidence,
            said_by=moved.said_by,
            told=moved.mentions,
            task=self._talk.task,
        )
        if moved.status == "confirmed" and moved.confidence >= CONFIRMED:
            cause = Decision(moved.text, "", span.start, span.end)
            self._talk.decided(placed, span, cause, moved.said_by, kind="cause", stated=True)
