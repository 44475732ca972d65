"""L2: claims under validation, what people said of them, and what each is still missing."""

import msgspec

from memctl.domain.events.facts import InsightKind, quote_hash
from memctl.domain.events.feedback import KnowledgeRejected, KnowledgeVerified
from memctl.domain.knowledge.acting import acts
from memctl.domain.knowledge.graduation import (
    MEANT,
    ClaimCheck,
    ClaimSupport,
    checks_of,
    missing_of,
    needs_person,
    warrant_of,
)
from memctl.domain.support.bounded import clipped, newest
from memctl.domain.support.provenance import LONGEST_ACTOR, Provenance, spoken_through
from memctl.domain.support.structs import carried_over
from memctl.projections.insights import Insight, Saying
from memctl.projections.kernel import Changed, Recorded, projection


class Verdict(msgspec.Struct, frozen=True):
    """What a person (or an agent) said of a claim: whether it holds, and why."""

    at: int
    id: str
    holds: bool
    by: str
    why: str = ""
    words: str = ""
    """Digest of the words that were confirmed."""


class ClaimCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """A claim with its checks. `ready` when nothing is `missing`; `warrant` says what lets it into L3.

    Where only verdicts are known yet, `insight` is None and nothing is ready.
    """

    id: str
    """The insight's."""
    kind: InsightKind
    text: str
    canonical: str
    subject: str
    polarity: int
    location: str
    everywhere: bool
    said_by: Provenance
    member: str = ""
    proved: bool
    confidence: float
    sessions: int
    """Sources that count, up to 32."""
    first_seen: int
    last_seen: int
    checks: tuple[ClaimCheck, ...]
    missing: tuple[str, ...]
    ready: bool
    warrant: str
    confirmed: bool = False
    """A person confirmed it."""
    waits: bool = False
    """Only a person can let it through, and none has spoken of it yet."""
    evidence: tuple[Saying, ...]
    verdicts: tuple[Verdict, ...] = ()
    """Newest first, at most 8 of people and 8 of agents."""
    insight: Insight | None = None


Input = Changed[Insight] | Recorded[KnowledgeVerified] | Recorded[KnowledgeRejected]


def _key(item: Input) -> str:
    return item.key if isinstance(item, Changed) else clipped(item.payload.claim, 64)


@projection(
    row=ClaimCandidate,
    key=_key,
    same_key=True,
    indexes=(("location", "ready", "last_seen"), ("waits", "last_seen"), ("last_seen",)),
)
def candidates(
    row: ClaimCandidate | None, item: Changed[Insight] | Recorded[KnowledgeVerified] | Recorded[KnowledgeRejected]
) -> ClaimCandidate | None:
    """Claims under validation (L2): checks passed, what people said of them, and what is still missing for L3."""
    insight, verdicts = (row.insight, row.verdicts) if row else (None, ())
    if isinstance(item, Changed):
        insight = item.row
    else:
        verdicts = _with_verdict(verdicts, _verdict(item))
    return _made(_key(item), insight, verdicts) if insight or verdicts else None


def _with_verdict(verdicts: tuple[Verdict, ...], verdict: Verdict) -> tuple[Verdict, ...]:
    """The verdicts with one more. However much agents say, it pushes out no word of a person."""
    alike = [(v.by == "user") is (verdict.by == "user") for v in verdicts]
    same = tuple(v for v, one in zip(verdicts, alike, strict=True) if one)
    others = (v for v, one in zip(verdicts, alike, strict=True) if not one)
    return tuple(sorted((*newest(same, verdict, 8), *others), key=lambda v: (v.at, v.id), reverse=True))


def _verdict(item: Recorded[KnowledgeVerified] | Recorded[KnowledgeRejected]) -> Verdict:
    return Verdict(
        at=int(item.event.occurred_at),
        id=str(item.event.delivery_id),
        holds=isinstance(item.payload, KnowledgeVerified),
        by=_by(item.event.actor),
        why=clipped(item.payload.why, 300),
        words=clipped(getattr(item.payload, "words", ""), 64),
    )


def _by(actor: str) -> str:
    return clipped(actor, LONGEST_ACTOR)


def _waits(insight: Insight | None, standing: ClaimSupport, last: Verdict | None) -> bool:
    """Whether only a person can let it through, and none spoke of it: what acts, what an agent asked to be kept, and
    what another memory's user meant to last."""
    if insight is None or insight.best is None or last is not None or not needs_person(standing):
        return False
    meant = insight.said_by is Provenance.IMPORT or acts(insight.text, insight.polarity)
    asked = insight.best.rule == "note" or (insight.confidence >= MEANT and meant)
    return asked and all(check.passed for check in checks_of(standing))


def _takes_back(verdict: Verdict, insight: Insight | None) -> bool:
    """Whether a member says that what they alone said does not hold; who says it again later means it."""
    if verdict.holds or insight is None or insight.said_by is not Provenance.MEMBER or verdict.at < insight.last_seen:
        return False
    return verdict.by == _by(spoken_through("member", insight.member))


def _was_shown(insight: Insight, verdict: Verdict) -> bool:
    """Whether a claim's words are those that were confirmed: of older verdicts nobody knows more than when it was."""
    if verdict.words:
        return verdict.words == quote_hash(insight.text)
    known = (insight.best, *insight.evidence)
    return any(each is not None and each.text == insight.text and each.at <= verdict.at for each in known)


def _made(key: str, insight: Insight | None, verdicts: tuple[Verdict, ...]) -> ClaimCandidate:
    # Only people settle what holds; an agent's word is kept, and counts for nothing here.
    last = next((verdict for verdict in verdicts if verdict.by == "user" or _takes_back(verdict, insight)), None)
    if last is not None and last.holds and insight is not None and not _was_shown(insight, last):
        last = None  # somebody else says it now, in words that no person was shown
    found = insight or Insight(id=key, kind="fact", canonical="", polarity=0, everywhere=False, location="")
    standing = ClaimSupport(
        kind=found.kind,
        text=found.text,
        said_by=found.said_by,
        proved=found.proved,
        sessions=found.counting,
        denials=len(found.denials),
        has_quote=any(s.span is not None and bool(s.span.quote_hash) for s in found.evidence),
        polarity=found.polarity,
        confidence=found.confidence,
        confirmed=last is not None and last.holds,
        rejected=last is not None and not last.holds,
    )
    missing = missing_of(standing)
    return carried_over(
        found,
        ClaimCandidate,
        id=key,
        sessions=found.counting,
        checks=checks_of(standing),
        missing=missing,
        ready=insight is not None and not missing,
        warrant=warrant_of(standing),
        confirmed=standing.confirmed,
        waits=_waits(insight, standing, last),
        evidence=found.evidence[:4],
        verdicts=verdicts,
        insight=insight,
    )
