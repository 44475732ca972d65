"""A share of what sessions show of a place: which files they changed.

`project_digests` puts the shares of a place together. The sessions are dealt out over a fixed number of rows, so that a
correction folds again what a share holds, and not all that ever happened there (as `bug_sightings` does).
"""

import hashlib

import msgspec

from memctl.domain.events.facts import FileTouched, Span
from memctl.domain.support.bounded import clipped, newest
from memctl.domain.support.location import path_of
from memctl.projections.kernel import projection

SHARES = 16
"""Rows that the sessions of one place are dealt out over."""

TOUCHES = 48
"""How many of the newest are kept."""


class Touch(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session changed a file for the first time."""

    at: int
    id: str
    name: str
    session: str
    span: Span | None = None


class Touched(msgspec.Struct, frozen=True, kw_only=True):
    """What sessions showed of a place, newest first. Paths from the place on, for what lies there."""

    location: str
    touches: tuple[Touch, ...] = ()


class ProjectShare(Touched, frozen=True, kw_only=True):
    """One share of what sessions showed of a place."""


def _key(fact: FileTouched) -> str | None:
    if not fact.location:
        return None
    return f"{hashlib.sha256(fact.stream.encode('utf-8', 'surrogatepass')).digest()[0] % SHARES:02d}:{fact.location}"


@projection(row=ProjectShare, key=_key)
def project_shares(row: ProjectShare | None, fact: FileTouched) -> ProjectShare:
    """Files that were changed at a place, by share of the sessions."""
    row = row or ProjectShare(location=fact.location)
    path = clipped(fact.path.removeprefix(path_of(fact.location).rstrip("/") + "/"), 120)
    span = fact.evidence[0] if fact.evidence else None
    touch = Touch(int(fact.occurred_at), str(fact.id), path, clipped(fact.stream, 120), span)
    return msgspec.structs.replace(row, touches=newest(row.touches, touch, TOUCHES))
