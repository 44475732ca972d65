"""L2: claims under validation, and what each is still missing."""

from __future__ import annotations

import msgspec

from memctl.domain.facts import InsightKind
from memctl.domain.graduation import Check, Standing, checks_of, missing_of, warrant_of
from memctl.projections.insights import Insight, Saying
from memctl.projections.kernel import Changed, projection


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A claim with its checks. `ready` when nothing is `missing`; `warrant` says what lets it into L3."""

    id: str
    """The insight's."""
    kind: InsightKind
    text: str
    canonical: str
    subject: str
    polarity: int
    location: str
    everywhere: bool
    said_by: str
    tier: int
    confidence: float
    sessions: int
    """Distinct sessions, counted up to 32."""
    first_seen: int
    last_seen: int
    checks: tuple[Check, ...]
    missing: tuple[str, ...]
    ready: bool
    warrant: str
    evidence: tuple[Saying, ...]


@projection(row=Candidate, key=lambda change: change.key, indexes=(("location", "ready", "last_seen"),))
def candidates(row: Candidate | None, change: Changed[Insight]) -> Candidate | None:
    """Claims under validation (L2): checks passed, and what is still missing for L3."""
    insight = change.row
    if insight is None:
        return None
    standing = Standing(
        kind=insight.kind,
        text=insight.text,
        tier=insight.tier,
        sessions=len(insight.sessions),
        has_quote=any(s.span is not None and bool(s.span.quote_hash) for s in insight.evidence),
    )
    missing = missing_of(standing)
    return Candidate(
        id=insight.id,
        kind=insight.kind,
        text=insight.text,
        canonical=insight.canonical,
        subject=insight.subject,
        polarity=insight.polarity,
        location=insight.location,
        everywhere=insight.everywhere,
        said_by=insight.said_by,
        tier=insight.tier,
        confidence=insight.confidence,
        sessions=len(insight.sessions),
        first_seen=insight.first_seen,
        last_seen=insight.last_seen,
        checks=checks_of(standing),
        missing=missing,
        ready=not missing,
        warrant=warrant_of(standing),
        evidence=insight.evidence[:4],
    )
