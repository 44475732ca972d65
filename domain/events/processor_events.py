"""What processors record of a session's work: verdicts, lessons, claims, and that one of them failed.

They stand in the session's stream, each with the events that it rests on as its `sources`, so that it is erased with
them. Stage 1 folds them: what was recorded wins over the rule's finding of the same episode, the newest of several over
the earlier; where nothing was recorded, or a processor only failed, the rule's stands.
"""

from typing import Annotated, Literal
from uuid import UUID

import msgspec

from memctl.domain.events.event import Payload, event
from memctl.domain.events.facts import InsightKind, Lesson, Span
from memctl.domain.events.statements import Statement

PROCESSORS = "knowledge/processors"
"""Stream of what processors failed at."""

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Processed(Statement, frozen=True, kw_only=True, omit_defaults=True):
    """Base of recorded outcomes. `made_by` is a model, or a rule with its version; `prompt` the prompt's file and
    version (`judge@2`); `tokens` in and out together, and what they cost."""

    made_by: str = ""
    prompt: str = ""
    tokens: int = 0
    cost_usd: float = 0.0


class OfEpisode(Processed, frozen=True, kw_only=True, omit_defaults=True):
    """What is said of one episode when it is over: it holds of it whenever it comes."""

    episode: UUID


@event("trajectory.judged")
class TrajectoryJudged(OfEpisode, frozen=True, kw_only=True, omit_defaults=True):
    """A judge said how a piece of work went, on the evidence of these spans. It wins over the rule, and over what the
    agent said of its own work; a person's word wins over it. Without evidence it wins over nothing."""

    outcome: Literal["success", "failure", "partial"]
    why: str = ""
    confidence: Share = 1.0
    evidence: tuple[Span, ...] = ()


@event("episode.distilled")
class EpisodeDistilled(OfEpisode, frozen=True, kw_only=True, omit_defaults=True):
    """What a piece of work was about, and what it taught. What is left empty stays the rule's."""

    problem: str = ""
    solution: str = ""
    gotchas: tuple[str, ...] = ()
    tips: tuple[str, ...] = ()
    confidence: Share = 1.0


@event("strategy.distilled")
class StrategyDistilled(OfEpisode, frozen=True, kw_only=True, omit_defaults=True):
    """What a piece of work teaches for others like it, at most three. They stand beside those of the rules."""

    strategies: tuple[Lesson, ...]


class Claim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A claim as it was read out of somebody's words, `quote`, verbatim.

    `span` is where the quote stands (`domain.support.alignment`), None where it stands nowhere: such a claim never
    passes L2. `said_by` is whose words they are.
    """

    kind: InsightKind
    text: str
    quote: str
    said_by: Literal["user", "agent", "tool"]
    span: Span | None = None
    confidence: Share = 0.7
    everywhere: bool = False
    files: tuple[str, ...] = ()


@event("insight.extracted")
class InsightExtracted(Processed, frozen=True, kw_only=True, omit_defaults=True):
    """Claims were read out of a session's words."""

    claims: tuple[Claim, ...]


@event("processor.failed")
class ProcessorFailed(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """A processor came to nothing; what rules found stands. `subject` is the id of what it worked on, `kind` why it
    failed: unavailable, timeout, refused, bad_output or over_budget. `why` never holds what it was given."""

    processor: str
    subject: str
    kind: Literal["unavailable", "timeout", "refused", "bad_output", "over_budget"]
    why: str = ""
    attempt: int = 1
    made_by: str = ""
    prompt: str = ""
    tokens: int = 0
    cost_usd: float = 0.0
