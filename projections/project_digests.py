"""What is sure of each place where work is done, on one row: the commands and rules that hold there, and the files that
the work turns on. `memctl project show` has the rest, put together over a project.
"""

import msgspec

from memctl.domain.events.facts import Span
from memctl.domain.support.bounded import clipped, newest, newest_of
from memctl.domain.support.provenance import Provenance
from memctl.projections.kernel import Changed, projection
from memctl.projections.project_shares import TOUCHES, ProjectShare, Touch, Touched
from memctl.projections.verified_knowledge import VerifiedKnowledge

CLAIMS = 16
"""Claims of a place that are kept, those last seen first."""

HOT = 2
"""Sessions in which a file must have been changed to be listed for a project."""


class StandingClaim(msgspec.Struct, frozen=True, omit_defaults=True):
    """A claim about the place that stands; `at` is when it was last seen."""

    at: int
    id: str
    text: str
    kind: str
    polarity: int
    sessions: int
    spans: tuple[Span, ...] = ()


class Often(msgspec.Struct, frozen=True):
    """A file, in how many of the newest sessions it was changed, and when last."""

    name: str
    sessions: int
    last: Touch


class ProjectDigest(Touched, frozen=True, kw_only=True):
    """What is sure of a place. Times in microseconds."""

    claims: tuple[StandingClaim, ...] = ()

    @property
    def hot_files(self) -> tuple[Often, ...]:
        """Files that several of the newest sessions changed, those of most sessions first."""
        return often(self.touches)

    @property
    def first_seen(self) -> int:
        return min(self._moments, default=0)

    @property
    def last_seen(self) -> int:
        return max(self._moments, default=0)

    @property
    def _moments(self) -> list[int]:
        return [touch.at for touch in self.touches] + [claim.at for claim in self.claims]


def often(touches: tuple[Touch, ...]) -> tuple[Often, ...]:
    """Names that come in several sessions, those of most sessions first, then the newest."""
    sessions: dict[str, set[str]] = {}
    last: dict[str, Touch] = {}
    for touch in touches:
        sessions.setdefault(touch.name, set()).add(touch.session)
        last.setdefault(touch.name, touch)
    found = [Often(name, len(met), last[name]) for name, met in sessions.items() if len(met) >= HOT]
    return tuple(sorted(found, key=lambda each: (-each.sessions, -each.last.at, each.name)))


_OF_A_PROJECT = (Provenance.TOOL, Provenance.USER_TYPED)
"""Whose words a place's digest gives, which names nobody: a member's or an agent's are given with their speaker."""

Input = Changed[ProjectShare] | Changed[VerifiedKnowledge]


def _key(change: Input) -> str | None:
    row = change.row
    if row is None or (isinstance(row, VerifiedKnowledge) and (row.everywhere or not row.location)):
        return None
    return row.location


@projection(row=ProjectDigest, key=_key)
def project_digests(row: ProjectDigest | None, change: Input) -> ProjectDigest | None:
    """What is sure of each place: what holds there, and where the work is done."""
    changed = change.row
    if changed is None:
        return row
    row = row or ProjectDigest(location=changed.location)
    if isinstance(changed, ProjectShare):
        touches = newest_of((*row.touches, *changed.touches), TOUCHES)
        return msgspec.structs.replace(row, touches=touches)
    claim = changed.claims[0]
    if changed.said_by not in _OF_A_PROJECT:
        return msgspec.structs.replace(row, claims=tuple(each for each in row.claims if each.id != changed.id))
    held = StandingClaim(
        at=claim.last_seen,
        id=changed.id,
        text=clipped(claim.text, 240),
        kind=claim.kind,
        polarity=claim.polarity,
        sessions=claim.sessions,
        spans=claim.evidence[:1],
    )
    return msgspec.structs.replace(row, claims=newest(row.claims, held, CLAIMS))
