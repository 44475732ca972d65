"""The path of a user's feelings towards an agent, in one place: points in time, and where they lead."""

from __future__ import annotations

import msgspec

from memctl.domain.code.entities import SentimentNoted, node_of
from memctl.domain.events.event import derived_id
from memctl.domain.events.facts import MoodShown, Span
from memctl.domain.support.bounded import clipped, newest
from memctl.projections.kernel import Recorded, projection


class Feeling(msgspec.Struct, frozen=True, omit_defaults=True):
    """Once when a feeling showed, or was noted: its score from -1 to 1, and the words."""

    at: int
    id: str
    score: float
    words: str
    by: str = "rule"
    stream: str = ""
    span: Span | None = None


class Sentiment(msgspec.Struct, frozen=True, kw_only=True):
    """How the user feels about one entity (`node`, such as `agent:claude-code`) in one place. Times in microseconds.

    `path` has the newest 64 feelings, newest first.
    """

    node: str
    location: str
    shown: int = 0
    last_seen: int = 0
    path: tuple[Feeling, ...] = ()


def sentiment_id(node: str, location: str) -> str:
    """Key of the feelings towards a node in a place."""
    return str(derived_id(f"sentiment:{node}\0{location}"))


def _key(item: MoodShown | Recorded[SentimentNoted]) -> str:
    return sentiment_id(*_subject(item))


def _subject(item: MoodShown | Recorded[SentimentNoted]) -> tuple[str, str]:
    if isinstance(item, Recorded):
        return clipped(item.payload.node, 300), item.event.location
    return node_of("agent", "", item.agent), item.location


@projection(row=Sentiment, key=_key, indexes=(("location", "last_seen"), ("node",)))
def sentiment(row: Sentiment | None, item: MoodShown | Recorded[SentimentNoted]) -> Sentiment | None:
    """How users feel about the agent over time: thanks, praise, blame."""
    node, location = _subject(item)
    if isinstance(item, Recorded):
        at = int(item.event.occurred_at)
        payload = item.payload
        feeling = Feeling(
            at,
            str(item.event.delivery_id),
            _bounded(payload.score),
            clipped(payload.context, 200),
            clipped(payload.by, 40) or "user",
        )
    else:
        at = int(item.occurred_at)
        feeling = Feeling(
            at,
            str(item.id),
            _bounded(item.score),
            clipped(item.words, 200),
            stream=clipped(item.stream, 120),
            span=item.evidence[0] if item.evidence else None,
        )
    row = row or Sentiment(node=node, location=location)
    return msgspec.structs.replace(
        row, shown=row.shown + 1, last_seen=max(row.last_seen, at), path=newest(row.path, feeling, 64)
    )


def _bounded(score: float) -> float:
    return round(min(max(score, -1.0), 1.0), 4) + 0.0
