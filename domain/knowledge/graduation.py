"""Graduation of claims from L1 to L3: checks, what is missing, and which side of a conflict stands.

docs/explanation/graduation.md states the rules. A claim is an insight; an L2 candidate carries the checks it passed; L3
keeps the claims about one subject together, so that a conflict lives in one row.
"""

import msgspec

from memctl.domain.events.facts import InsightKind
from memctl.domain.knowledge.acting import acts
from memctl.domain.support import patterns
from memctl.domain.support.provenance import RIGHTS, Provenance

ENOUGH_SESSIONS, ENOUGH_FOR_FACTS = 3, 2
"""Sessions that show a habit or preference which nobody stated, and a fact (a command that ran, a name that fell)."""

_MAJORITY = 4
"""Sessions that show a claim for each that shows the contrary, at least."""

VERIFIED = 3
"""The level of what is held true."""

MEANT = 0.6
"""From this confidence on what a user said is held true at once; below it other sessions have to say it as well."""

CERTAIN = 0.99
_DAMPING = 0.8

ONE_ANSWER = "one/"
"""Subjects that begin so have one answer (the package manager, the language to answer in): others contradict it."""

DENIED = "not "
"""How the canonical form of a claim with negative polarity begins."""

SHORTEST = 10
"""Characters (a Hangul syllable counts twice) below which a claim means nothing by itself."""

_KINDS = frozenset(("preference", "pattern", "expertise", "fact", "profile"))
_NOISE = patterns.compile(
    r"\[(?:redacted|request interrupted|image|…|\.\.\.)|characters left out|^\W*$|<[a-z][\w-]*>|^(?:\d+[\s.:]*)+$",
    patterns.I,
)
_HANGUL = patterns.compile(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]")


def strengthened(strongest: float, sessions: int) -> float:
    """Confidence of a claim made in that many sessions: 1 - (1 - strongest)·0.8^(sessions - 1), at most 0.99.

    Counted by sessions and not by sayings: repeating a thing in one breath makes it no truer.
    """
    grown = 1 - (1 - strongest) * _DAMPING ** max(sessions - 1, 0)
    return round(min(grown, max(strongest, CERTAIN)), 4) + 0.0


class ClaimSupport(msgspec.Struct, frozen=True, kw_only=True):
    """What speaks for a claim, as far as is known."""

    kind: InsightKind
    text: str
    said_by: Provenance
    sessions: int
    """Sources of their own, as `RIGHTS` counts them: a fork of a session is none."""
    has_quote: bool
    proved: bool = False
    """A run that passed shows it."""
    denials: int = 0
    """Sessions that show the contrary."""
    confirmed: bool = False
    """A person confirmed it."""
    rejected: bool = False
    """A person rejected it."""
    polarity: int = 1
    confidence: float = 1.0


class ClaimCheck(msgspec.Struct, frozen=True):
    """A check of L2 and whether it passed; `why` says in words what failed."""

    name: str
    passed: bool
    why: str = ""


def length_of(text: str) -> int:
    """Length of a text as a reader feels it: a Hangul syllable says twice what a Latin letter does, blanks nothing."""
    solid = "".join(text.split())
    return len(solid) if solid.isascii() else len(solid) + len(_HANGUL.findall(solid))


def checks_of(claim: ClaimSupport) -> tuple[ClaimCheck, ...]:
    """The checks of L2: a valid type, evidence with a quote's hash, long enough, not noise."""
    return (
        _check("type", claim.kind in _KINDS, f"{claim.kind!r} is no type of claim"),
        _check("evidence", claim.has_quote, "no quote with its hash stands behind it"),
        _check("length", length_of(claim.text) >= SHORTEST, "too short to mean anything by itself"),
        _check("noise", not _NOISE.search(claim.text), "reads like noise, not like a claim"),
        _check("standing", not claim.rejected, "a person rejected it"),
    )


def warrant_of(claim: ClaimSupport) -> str:
    """What lets a claim into L3, in words; empty where nothing does yet."""
    may = RIGHTS[claim.said_by]
    if claim.confirmed and (not may.as_users or _acts(claim)):
        return "confirmed by a person"
    if _acts(claim) or may.level < VERIFIED:
        return ""
    if claim.confidence >= MEANT:
        if may.as_users:
            return "said by the user"
        if may.unasked == "to its member":
            return may.words
    if claim.sessions >= enough_sessions(claim.kind, claim.said_by, claim.denials):
        proof = ", proved by a run that passed" if claim.proved else ""
        return f"seen in {claim.sessions} sessions{proof}"
    return ""


def missing_of(claim: ClaimSupport) -> tuple[str, ...]:
    """What is still missing for L3, in words; empty for a claim that graduates."""
    missing = tuple(c.why for c in checks_of(claim) if not c.passed)
    if claim.rejected or warrant_of(claim):
        return missing
    if _acts(claim):
        return (*missing, "a person's yes: whoever follows it fetches, runs, sends or takes away something")
    if RIGHTS[claim.said_by].level < VERIFIED:
        return (*missing, f"a person's yes: it is {RIGHTS[claim.said_by].words}")
    more = enough_sessions(claim.kind, claim.said_by, claim.denials) - claim.sessions
    return (*missing, f"{more} more session{'s' if more > 1 else ''} or a person's yes")


def needs_person(claim: ClaimSupport) -> bool:
    """Whether nothing but a person's word lets it into L3."""
    return _acts(claim) or 0 < RIGHTS[claim.said_by].level < VERIFIED


def _acts(claim: ClaimSupport) -> bool:
    return acts(claim.text, claim.polarity)


def enough_sessions(kind: InsightKind, said_by: Provenance, denials: int) -> int:
    """Sessions that let a claim into L3 which nobody stated outright, where so many show the contrary."""
    shown = ENOUGH_FOR_FACTS if kind == "fact" and RIGHTS[said_by].counts else ENOUGH_SESSIONS
    return max(shown, _MAJORITY * denials)


class ClaimSide(msgspec.Struct, frozen=True, kw_only=True):
    """What decides between claims about one subject. `last_seen` in microseconds."""

    key: str
    canonical: str
    polarity: int
    trust: int
    last_seen: int
    theirs: bool = False
    """A member of the team said it, and no person confirmed it: then it settles nothing."""

    @property
    def rank(self) -> tuple[bool, int, int, str]:
        return not self.theirs, self.trust, self.last_seen, self.key


def contradict(subject: str, a: ClaimSide, b: ClaimSide) -> bool:
    """Whether two claims about one subject cannot both hold: do and do not, or two answers where one is possible."""
    same = _value(a.canonical) == _value(b.canonical)
    if a.polarity * b.polarity < 0:
        return same or not subject.startswith(ONE_ANSWER)
    return subject.startswith(ONE_ANSWER) and not same and a.polarity > 0 and b.polarity > 0


def superseded(subject: str, sides: list[ClaimSide]) -> dict[str, str]:
    """For each claim that gives way, the key of the one that stands: what no member said, then the more trusted,
    then the newer, wins."""
    standing: list[ClaimSide] = []
    gone: dict[str, str] = {}
    for side in sorted(sides, key=lambda s: s.rank, reverse=True):
        winner = next((s for s in standing if contradict(subject, s, side)), None)
        if winner is None:
            standing.append(side)
        else:
            gone[side.key] = winner.key
    return gone


def _value(canonical: str) -> str:
    return canonical.removeprefix(DENIED)


def _check(name: str, passed: bool, why: str) -> ClaimCheck:
    return ClaimCheck(name, passed, "" if passed else why)
