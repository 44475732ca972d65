"""How a user likes to work: claims about it gathered by aspect, as said and as shown."""

from __future__ import annotations

import msgspec

from memctl.domain.knowledge.acting import acts
from memctl.domain.knowledge.graduation import VERIFIED, enough_sessions
from memctl.domain.language.preferences import Group, Leaning, leaning_of
from memctl.domain.support.provenance import MAY, Provenance
from memctl.projections.insights import Insight
from memctl.projections.kernel import Changed, projection

KEPT = 24
"""Claims kept of one aspect, the weightiest."""


class Leaned(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that speaks for a value. `said` by the user outright, or shown in so many sessions (up to 32)."""

    insight: str
    value: str
    text: str
    said: bool
    sessions: int
    last_seen: int
    confidence: float

    @property
    def weight(self) -> tuple[bool, int, int, str]:
        # What was said outright beats what is only shown; the later word of the user wins.
        recency = self.last_seen if self.said else self.sessions
        return self.said, recency, self.last_seen, self.insight


class Preference(msgspec.Struct, frozen=True, kw_only=True):
    """One aspect in one place (empty: everywhere), with the claims that speak of it, weightiest first.

    `name` and `value` are empty for what fits no aspect: accepted, rejected, shortcuts, each in words of its own.
    """

    group: Group
    name: str
    location: str
    value: str
    text: str
    said: bool
    sessions: int
    last_seen: int
    claims: tuple[Leaned, ...]


def _key(change: Changed[Insight]) -> str | None:
    insight, leaning = change.row, _leaning(change.row)
    if insight is None or leaning is None:
        return None
    return f"{leaning.group}/{leaning.name}@{'' if insight.everywhere else insight.location}"


def _leaning(insight: Insight | None) -> Leaning | None:
    """What a claim says of its user's preferences. The user said it, or enough sessions show it: what was done once, or
    done otherwise as well, is none, nor is what a person would have to confirm first, or what a member said."""
    if insight is None or insight.said_by is Provenance.MEMBER or acts(insight.text, insight.polarity):
        return None
    may, enough = MAY[insight.said_by], enough_sessions(insight.kind, insight.said_by, len(insight.denials))
    if not may.as_users and (may.level < VERIFIED or len(insight.sources) < enough):
        return None
    return leaning_of(insight.kind, insight.text, insight.polarity)


@projection(row=Preference, key=_key, indexes=(("location", "last_seen"), ("last_seen",)))
def user_preferences(row: Preference | None, change: Changed[Insight]) -> Preference | None:
    """Preferences by aspect: what was said and shown of each, and what that comes to."""
    claims = {claim.insight: claim for claim in (row.claims if row else ()) if claim.insight != change.key}
    insight, leaning = change.row, _leaning(change.row)
    if insight is not None and leaning is not None:
        claims[change.key] = Leaned(
            insight=change.key,
            value=leaning.value,
            text=insight.text,
            said=MAY[insight.said_by].as_users,
            sessions=len(insight.sources),
            last_seen=insight.last_seen,
            confidence=insight.confidence,
        )
    kept = tuple(sorted(claims.values(), key=lambda claim: claim.weight, reverse=True)[:KEPT])
    if not kept:
        return None
    if row is not None:
        group, name, location = row.group, row.name, row.location
    else:
        assert insight is not None
        assert leaning is not None
        group, name, location = leaning.group, leaning.name, "" if insight.everywhere else insight.location
    best = kept[0]
    return Preference(
        group=group,
        name=name,
        location=location,
        value=best.value,
        text=best.text,
        said=best.said,
        sessions=best.sessions,
        last_seen=max(claim.last_seen for claim in kept),
        claims=kept,
    )
