"""L1: what was extracted from people's and agents' words."""

import msgspec

from memctl.domain.events.event import derived_of
from memctl.domain.events.facts import InsightFound, InsightKind, Span
from memctl.domain.knowledge.graduation import strengthened
from memctl.domain.language.notes import MemoryNoted, claim_of
from memctl.domain.support.bounded import LOCATIONS, Seen, clipped, newest, seen
from memctl.domain.support.provenance import RIGHTS, Provenance, trust_of
from memctl.projections.kernel import Recorded, projection

SAYINGS = 8
"""Sayings that a claim keeps, the newest."""

MEMBERS = "member:"


class Saying(msgspec.Struct, frozen=True):
    """Once when the claim was made: by whom, in which words, and whether a run proved it."""

    at: int
    id: str
    said_by: Provenance
    text: str
    subject: str
    confidence: float
    span: Span | None = None
    rule: str = ""
    stream: str = ""
    proved: bool = False
    member: str = ""

    @property
    def trust(self) -> int:
        return trust_of(self.said_by, proved=self.proved)


class Insight(msgspec.Struct, frozen=True, kw_only=True):
    """One claim, however often it was made. Times in microseconds.

    `confidence` is of the most trusted sayings, and grows with the sources
    (`domain.knowledge.graduation.strengthened`); `sessions` are the newest 32 streams; `evidence` the newest 8 sayings;
    `best` the one most to be trusted, whose words are shown.
    """

    id: str
    kind: InsightKind
    canonical: str
    polarity: int
    everywhere: bool
    location: str
    """Empty for what holds everywhere."""
    text: str = ""
    subject: str = ""
    said_by: Provenance = Provenance.TOOL
    member: str = ""
    """Of the team, who said it."""
    proved: bool = False
    confidence: float = 0.0
    sayings: int = 0
    first_seen: int = 0
    last_seen: int = 0
    best: Saying | None = None
    strongest: float = 0.0
    sessions: tuple[Seen, ...] = ()
    sources: tuple[Seen, ...] = ()
    """The newest 32 that count: a copy, fork or resumed session is none of its own, nor is what an agent says. Those
    of members begin with `MEMBERS`."""
    locations: tuple[Seen, ...] = ()
    evidence: tuple[Saying, ...] = ()
    files: tuple[Seen, ...] = ()
    """Files that it is about, at most 8."""
    denials: tuple[Seen, ...] = ()
    """The newest 32 sources that showed the contrary."""

    @property
    def counting(self) -> int:
        """How many sources make it surer: a member's do where nobody more trusted says it."""
        theirs = sum(source.name.startswith(MEMBERS) for source in self.sources)
        return len(self.sources) - (0 if self.said_by is Provenance.MEMBER else theirs)


def insight_id(kind: str, canonical: str, polarity: int, location: str | None) -> str:
    """Key of a claim; `location` is None where it holds everywhere."""
    place = "*" if location is None else f"@{location}"
    return derived_of("insight", kind, str(polarity), place, canonical)


def _found(item: InsightFound | Recorded[MemoryNoted]) -> InsightFound:
    return claim_of(item.event, item.payload) if isinstance(item, Recorded) else item


def _key(item: InsightFound | Recorded[MemoryNoted]) -> str:
    fact = _found(item)
    return insight_id(fact.kind, fact.canonical, fact.polarity, None if fact.everywhere else fact.location)


def _files(kept: tuple[Seen, ...], fact: InsightFound) -> tuple[Seen, ...]:
    for path in fact.files:
        kept = seen(kept, path, int(fact.occurred_at), 8)
    return kept


@projection(
    row=Insight,
    key=_key,
    indexes=(("location", "kind", "last_seen"), ("kind", "last_seen"), ("subject",)),
)
def insights(row: Insight | None, item: InsightFound | Recorded[MemoryNoted]) -> Insight | None:
    """Claims read out of words, or noted (L1): the same claim merges and strengthens."""
    fact = _found(item)
    if not (fact.everywhere or fact.location):
        return row  # said nobody knows where, it holds nowhere
    at = int(fact.occurred_at)
    saying = Saying(
        at=at,
        id=str(fact.id),
        said_by=fact.said_by,
        text=clipped(fact.text, 600),
        subject=clipped(fact.subject, 200),
        confidence=round(min(max(fact.confidence, 0.0), 1.0), 4) + 0.0,
        span=fact.evidence[0] if fact.evidence else None,
        rule=clipped(fact.rule, 60),
        stream=clipped(fact.stream, 160),
        proved=fact.proved,
        member=clipped(fact.member, 60),
    )
    row = row or Insight(
        id=_key(fact),
        kind=fact.kind,
        canonical=clipped(fact.canonical, 300),
        polarity=fact.polarity,
        everywhere=fact.everywhere,
        location="" if fact.everywhere else fact.location,
        first_seen=at,
        last_seen=at,
    )
    if fact.denied:
        return msgspec.structs.replace(
            row,
            text=row.text if row.best else max(row.text, saying.text),
            subject=row.subject if row.best else max(row.subject, saying.subject),
            first_seen=min(row.first_seen, at),
            last_seen=max(row.last_seen, at),
            denials=seen(row.denials, fact.origin, at, 32),
        )
    best = max(row.best or saying, saying, key=lambda s: (s.trust, s.at, s.id))
    origin = f"{MEMBERS}{fact.origin}" if fact.said_by is Provenance.MEMBER else fact.origin
    sources = seen(row.sources, origin, at, 32) if RIGHTS[fact.said_by].counts else row.sources
    before = row.strongest if row.best is None or row.best.trust == best.trust else 0.0
    strongest = max(before, saying.confidence) if saying.trust == best.trust else before
    row = msgspec.structs.replace(
        row,
        text=best.text,
        subject=best.subject,
        said_by=best.said_by,
        proved=best.proved,
        member=best.member,
        sayings=row.sayings + 1,
        first_seen=min(row.first_seen, at),
        last_seen=max(row.last_seen, at),
        best=best,
        strongest=strongest,
        sessions=seen(row.sessions, fact.stream, at, 32),
        sources=sources,
        locations=seen(row.locations, fact.location, at, LOCATIONS),
        evidence=newest(row.evidence, saying, SAYINGS),
        files=_files(row.files, fact),
    )
    return msgspec.structs.replace(row, confidence=strengthened(strongest, row.counting))
