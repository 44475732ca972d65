"""L3: claims that passed, one row per subject so that a conflict lives in one row."""

import msgspec

from memctl.domain.events.event import derived_of
from memctl.domain.events.facts import InsightKind, Span
from memctl.domain.knowledge.graduation import ClaimSide, superseded
from memctl.domain.support.bounded import names
from memctl.domain.support.provenance import Provenance, trust_of
from memctl.domain.support.structs import carried_over
from memctl.projections.candidates import ClaimCandidate
from memctl.projections.kernel import Changed, projection

CLAIMS = 16
"""Claims kept about one subject, by rank. (One pushed out comes back when its insight changes.)"""


class VerifiedClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that graduated, with its dates (microseconds). `superseded_by` is the id of the claim that stands."""

    id: str
    """The insight's."""
    kind: InsightKind
    text: str
    canonical: str
    polarity: int
    said_by: Provenance
    member: str = ""
    proved: bool
    confidence: float
    warrant: str
    sessions: int
    valid_from: int
    last_seen: int
    valid_until: int | None = None
    superseded_by: str = ""
    confirmed: bool = False
    """A person confirmed it."""
    evidence: tuple[Span, ...] = ()
    files: tuple[str, ...] = ()


class VerifiedKnowledge(msgspec.Struct, frozen=True, kw_only=True):
    """What is held true about one subject: claims, those that stand first, then by trust and newness.

    `status` is conflicted where claims contradict each other, and none is of higher trust: both sides are kept, with
    their dates. What a member of the team says contradicts another member alone.
    """

    id: str
    subject: str
    location: str
    everywhere: bool
    status: str
    kind: InsightKind
    text: str
    said_by: Provenance
    member: str = ""
    confirmed: bool
    confidence: float
    first_seen: int
    last_seen: int
    claims: tuple[VerifiedClaim, ...]


def knowledge_id(subject: str, location: str | None) -> str:
    """Key of what is known about that subject; `location` is None for what holds everywhere."""
    place = "*" if location is None else f"@{location}"
    return derived_of("knowledge", place, subject)


def _key(change: Changed[ClaimCandidate]) -> str | None:
    candidate = change.row
    if candidate is None or not candidate.ready:
        return None
    return knowledge_id(candidate.subject, None if candidate.everywhere else candidate.location)


@projection(
    row=VerifiedKnowledge,
    key=_key,
    indexes=(("location", "kind", "last_seen"), ("status", "last_seen")),
)
def verified_knowledge(row: VerifiedKnowledge | None, change: Changed[ClaimCandidate]) -> VerifiedKnowledge | None:
    """Claims that passed (L3), by subject: what stands, what it replaced, and since when."""
    claims = [c for c in (row.claims if row else ()) if c.id != change.key]
    candidate = change.row
    if candidate is not None and candidate.ready:
        claims.append(_claim(candidate))
    if not claims:
        return None
    if row is None:
        assert candidate is not None
        home = (candidate.subject, candidate.location, candidate.everywhere)
    else:
        home = (row.subject, row.location, row.everywhere)
    return _settled(home, claims)


def _claim(candidate: ClaimCandidate) -> VerifiedClaim:
    insight = candidate.insight  # of those who said it, only the most trusted make it newer
    return carried_over(
        candidate,
        VerifiedClaim,
        valid_from=candidate.first_seen,
        last_seen=insight.best.at if insight is not None and insight.best is not None else candidate.last_seen,
        evidence=tuple(s.span for s in candidate.evidence if s.span is not None)[:2],
        files=names(insight.files)[:4] if insight is not None else (),
    )


def _settled(home: tuple[str, str, bool], claims: list[VerifiedClaim]) -> VerifiedKnowledge:
    """The row that these claims about one subject come to."""
    subject, location, everywhere = home
    claims = sorted(claims, key=lambda c: _side(c).rank, reverse=True)[:CLAIMS]
    sides = [_side(c) for c in claims]
    gone = superseded(subject, sides)
    by_id = {c.id: c for c in claims}
    settled = [
        msgspec.structs.replace(
            c,
            superseded_by=gone.get(c.id, ""),
            valid_until=max(c.valid_from, by_id[gone[c.id]].last_seen) if c.id in gone else None,
        )
        for c in claims
    ]
    settled.sort(key=lambda c: (not c.superseded_by, _side(c).rank), reverse=True)
    head = settled[0]
    return carried_over(
        head,
        VerifiedKnowledge,
        id=knowledge_id(subject, None if everywhere else location),
        subject=subject,
        location=location,
        everywhere=everywhere,
        status="verified" if all(_decided(by_id[lost], by_id[won]) for lost, won in gone.items()) else "conflicted",
        first_seen=min(c.valid_from for c in settled),
        last_seen=max(c.last_seen for c in settled if _theirs(c) is _theirs(head)),
        claims=tuple(settled),
    )


def _decided(lost: VerifiedClaim, won: VerifiedClaim) -> bool:
    """Whether trust decides between two claims, and not that one is newer."""
    one, other = _side(lost), _side(won)
    return (one.theirs, one.trust) != (other.theirs, other.trust)


def _side(claim: VerifiedClaim) -> ClaimSide:
    return ClaimSide(
        key=claim.id,
        canonical=claim.canonical,
        polarity=claim.polarity,
        # What a person confirmed is that person's word.
        trust=trust_of(Provenance.USER_TYPED) if claim.confirmed else trust_of(claim.said_by, proved=claim.proved),
        last_seen=claim.last_seen,
        theirs=_theirs(claim),
    )


def _theirs(claim: VerifiedClaim) -> bool:
    """Whether a member of the team said it, and no person confirmed it for all."""
    return claim.said_by is Provenance.MEMBER and not claim.confirmed
