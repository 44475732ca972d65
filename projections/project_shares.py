"""A share of what sessions show of a place: which files they changed, which libraries and services they named.

`project_digests` puts the shares of a place together. The sessions are dealt out over a fixed number of rows, so that a
correction folds again what a share holds, and not all that ever happened there (as `bug_sightings` does).
"""

from __future__ import annotations

import hashlib

import msgspec

from memctl.domain.events.facts import EntityMentioned, FileTouched, Span
from memctl.domain.support.bounded import clipped, newest, newest_of
from memctl.projections.kernel import projection

SHARES = 16
"""Rows that the sessions of one place are dealt out over."""

TOUCHES, NAMED = 48, 24
"""How many of the newest are kept."""


class Touch(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session changed a file, or named a library or service, for the first time."""

    at: int
    id: str
    name: str
    session: str
    detail: str = ""
    """Of a library, the version that was named."""
    span: Span | None = None


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What sessions showed of a place, newest first. Paths from the place on, for what lies there."""

    location: str
    touches: tuple[Touch, ...] = ()
    named: tuple[Touch, ...] = ()


def together(one: Shown, other: Shown) -> dict[str, tuple[Touch, ...]]:
    """The collections of two shares put together."""
    return {
        "touches": newest_of((*one.touches, *other.touches), TOUCHES),
        "named": newest_of((*one.named, *other.named), NAMED),
    }


class ProjectShare(Shown, frozen=True, kw_only=True):
    """One share of what sessions showed of a place."""


def _key(fact: FileTouched | EntityMentioned) -> str | None:
    if not fact.location or (isinstance(fact, EntityMentioned) and fact.kind == "person"):
        return None
    return f"{hashlib.sha256(fact.stream.encode('utf-8', 'surrogatepass')).digest()[0] % SHARES:02d}:{fact.location}"


@projection(row=ProjectShare, key=_key)
def project_shares(row: ProjectShare | None, fact: FileTouched | EntityMentioned) -> ProjectShare:
    """Files that were changed and libraries and services that were named at a place, by share of the sessions."""
    row = row or ProjectShare(location=fact.location)
    span = fact.evidence[0] if fact.evidence else None
    session, at, id = clipped(fact.stream, 120), int(fact.occurred_at), str(fact.id)
    if isinstance(fact, FileTouched):
        path = clipped(fact.path.removeprefix(fact.location.rstrip("/") + "/"), 120)
        touches = newest(row.touches, Touch(at, id, path, session, span=span), TOUCHES)
        return msgspec.structs.replace(row, touches=touches)
    thing = Touch(at, id, clipped(fact.name, 120), session, clipped(fact.version, 30), span)
    return msgspec.structs.replace(row, named=newest(row.named, thing, NAMED))
