"""Commits of repositories whose history was read: what each says, what took it back, and its tags."""

import msgspec

from memctl.domain.events.event import derived_of
from memctl.domain.events.event_order import place_of
from memctl.domain.events.facts import Span, quote
from memctl.domain.events.observations import CommitRecorded, TagRecorded
from memctl.domain.language.commits import message_of
from memctl.domain.support.bounded import NARROW, Seen, clipped, newest, seen
from memctl.domain.support.provenance import LONGEST_NAME, through
from memctl.projections.kernel import Changed, Recorded, projection

TAGS, REVERTS, FILES = 8, 4, 16
"""Tags of a commit that are kept, commits that took it back, and files that it changed."""


class Revert(msgspec.Struct, frozen=True, array_like=True):
    """A commit that took another back, and why. `at` in microseconds."""

    at: int
    id: str
    subject: str
    why: str = ""
    member: str = ""


class Reverts(msgspec.Struct, frozen=True):
    """The commits that took one commit back, newest first."""

    by: tuple[Revert, ...] = ()


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit. `at` is in microseconds. `subject` is empty where only others name it, `why` where its message gives no
    reason. `member` is whose key it came through."""

    location: str = ""
    id: str = ""
    at: int = 0
    subject: str = ""
    why: str = ""
    files: tuple[str, ...] = ()
    tags: tuple[Seen, ...] = ()
    reverts: tuple[Revert, ...] = ()
    member: str = ""
    evidence: tuple[Span, ...] = ()


def commit_key(location: str, commit: str) -> str:
    """The row of a commit of the repository at a place."""
    return derived_of("commit", location, commit)


def _reverted(item: Recorded[CommitRecorded]) -> tuple[str, ...]:
    return tuple(commit_key(place_of(item.event), each) for each in message_of(item.payload.text).reverts)


@projection(row=Reverts, key=_reverted)
def reverts(row: Reverts | None, item: Recorded[CommitRecorded]) -> Reverts:
    """What took commits back, by the commit that was taken back.

    Of two reports of one commit that differ, as an import may hold them, the later one counts in any order, and of
    equal ones that of this machine.
    """
    said = message_of(item.payload.text)
    member = clipped(through(item.event.actor), LONGEST_NAME)
    at, why = int(item.event.occurred_at), clipped(said.why, 600)
    made = Revert(at, clipped(item.payload.line, 64), said.subject, why, member)
    kept = row.by if row is not None else ()
    if any(each.id == made.id and _rank(each) > _rank(made) for each in kept):
        return Reverts(kept)
    return Reverts(newest(kept, made, REVERTS))


def _rank(made: Revert) -> tuple[object, ...]:
    return made.at, made.subject, made.why, not made.member, made.member


Input = Recorded[CommitRecorded] | Recorded[TagRecorded] | Changed[Reverts]


def _key(item: Input) -> str | None:
    if isinstance(item, Changed):
        return item.key
    payload = item.payload
    return commit_key(place_of(item.event), payload.parent if isinstance(payload, TagRecorded) else payload.line)


@projection(row=Commit, key=_key, same_key=True, indexes=(("location", "at"),))
def commits(row: Commit | None, item: Input) -> Commit:
    """Commits with the reasons they give, what took them back, and their tags."""
    row = row or Commit()
    if isinstance(item, Changed):
        return msgspec.structs.replace(row, reverts=item.row.by if item.row is not None else ())
    at, payload = int(item.event.occurred_at), item.payload
    if isinstance(payload, TagRecorded):
        return msgspec.structs.replace(row, tags=seen(row.tags, payload.name, at, TAGS, 80))
    id, said = item.event.delivery_id, message_of(payload.text)
    member = clipped(through(item.event.actor), LONGEST_NAME)
    if row.evidence:
        known = row.at, str(row.evidence[0].event), not row.member, row.subject, row.why, row.member
        if known >= (at, str(id), not member, said.subject, said.why, member):
            return row
    start = payload.text.find(said.why[:80]) if said.why else -1
    span = quote(id, payload.text, max(start, 0))
    return msgspec.structs.replace(
        row, location=place_of(item.event), id=clipped(payload.line, 64), at=at, subject=said.subject,
        why=said.why, files=tuple(clipped(each, 160, NARROW) for each in payload.files[:FILES]), evidence=(span,),
        member=member,
    )  # fmt: skip
