"""What processors work on: one at a time for each subject, until it is done or was tried often enough.

Truth is in the log: an outcome's dedupe key says what it was made of. Where this table is lost, work is found again,
and what was recorded before is recorded once.
"""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NewType
from uuid import UUID

import msgspec

from memctl.domain.events.event import derived_id
from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection
from memctl.infra.readmodels.generations import Live
from memctl.infra.readmodels.known_projects import known_projects

LEASE = timedelta(minutes=10)
"""How long one piece of work may take before another may take it up."""

PAUSES = tuple(timedelta(minutes=minutes) for minutes in (1, 10, 60, 180))
"""After each attempt that failed; after one more the work is given up, until what it is made of changes. Together less
than the six hours after which a round of consolidation is another one: what fails each time is given up, and said."""

MOST_ATTEMPTS = len(PAUSES) + 1
"""One behind each pause, and the first."""

CONSOLIDATOR, ROUND = "consolidator", "memories"
"""The processor that consolidates, and what its rounds are noted under."""

MOST_HELD = 20
"""Places held back that are noted, those with the most changes."""

Epoch = NewType("Epoch", int)


class WorkLost(MemctlError):
    """Another process took over {processor}'s work on {subject}; nothing was recorded."""

    processor: str
    subject: str


class WorkState(msgspec.Struct, frozen=True, kw_only=True):
    """How a processor stands: pieces of work by status, and when anything moved last (seconds ago)."""

    processor: str
    working: int = 0
    done: int = 0
    failed: int = 0
    given_up: int = 0
    seconds_ago: float | None = None


class HeldWork(msgspec.Struct, frozen=True):
    """A place of which more would change at once than anybody would believe: none of it is recorded, all else is."""

    place: str
    changed: int
    of: int


class WorkClaim(msgspec.Struct, frozen=True, kw_only=True):
    """The right to work on a subject. `attempt` counts from 1."""

    space_id: int
    processor: str
    subject: str
    digest: str
    epoch: Epoch
    attempt: int


def claim(
    connection: Connection, space_id: int, processor: str, subject: str, digest: str, lease: timedelta = LEASE
) -> WorkClaim | None:
    """Take up a piece of work; None where it is done, given up, under way, or not to be tried again yet.

    `digest` says what it is made of: once that has changed, all starts over. Work whose processes keep ending under it
    is given up like any other.
    """
    row = connection.execute(
        "INSERT INTO memctl.processing AS p (space_id, processor, subject, digest, status, attempts, lease_until)"
        " VALUES (%(space)s, %(processor)s, %(subject)s, %(digest)s, 'working', 1, clock_timestamp() + %(lease)s)"
        " ON CONFLICT (space_id, processor, subject) DO UPDATE SET status = 'working', digest = %(digest)s,"
        " attempts = CASE WHEN p.digest = %(digest)s THEN p.attempts + 1 ELSE 1 END, epoch = p.epoch + 1,"
        " lease_until = clock_timestamp() + %(lease)s, updated_at = clock_timestamp()"
        " WHERE (p.status <> 'working' OR p.lease_until < clock_timestamp()) AND (p.digest <> %(digest)s"
        " OR p.status = 'failed' AND p.next_at <= clock_timestamp() OR p.status = 'working')"
        " RETURNING epoch, attempts",
        {"space": space_id, "processor": processor, "subject": subject, "digest": digest, "lease": lease},
    ).fetchone()
    if row is None:
        return None
    claimed = WorkClaim(
        space_id=space_id, processor=processor, subject=subject, digest=digest, epoch=Epoch(row[0]), attempt=row[1]
    )
    if claimed.attempt > MOST_ATTEMPTS:
        _settle(connection, claimed, "given up", "it never ended", None, None)
        return None
    return claimed


def done(connection: Connection, claimed: WorkClaim, state: dict[str, Any]) -> None:
    """The work is done; call it in the transaction that records the outcome. Raises: WorkLost."""
    _settle(connection, claimed, "done", "", None, state)


def failed(connection: Connection, claimed: WorkClaim, problem: str) -> None:
    """The work failed: it is tried again later, and later still, and after five times no more. Raises: WorkLost.

    `problem` is a word for the kind of failure, never what was worked on.
    """
    if claimed.attempt >= MOST_ATTEMPTS:
        _settle(connection, claimed, "given up", problem[:200], None, None)
    else:
        _settle(connection, claimed, "failed", problem[:200], PAUSES[claimed.attempt - 1], None)


def never_ended(connection: Connection, processor: str, subject: str, problem: str) -> None:
    """Work failed whose process had to be ended: of every space in which it was under way."""
    connection.execute(
        "UPDATE memctl.processing SET status = CASE WHEN attempts >= %s THEN 'given up' ELSE 'failed' END,"
        " problem = %s, lease_until = NULL, next_at = clock_timestamp() + (%s::interval[])[least(attempts, %s)],"
        " epoch = epoch + 1, updated_at = clock_timestamp()"
        " WHERE processor = %s AND subject = %s AND status = 'working'",
        [MOST_ATTEMPTS, problem[:200], list(PAUSES), len(PAUSES), processor, subject],
    )


def later(connection: Connection, claimed: WorkClaim, problem: str, pause: timedelta) -> None:
    """The work could not be tried (no money left, nobody to ask): that counts as no attempt. Raises: WorkLost."""
    _settle(connection, claimed, "failed", problem[:200], pause, None, attempts=claimed.attempt - 1)


def _settle(
    connection: Connection,
    claimed: WorkClaim,
    status: str,
    problem: str,
    pause: timedelta | None,
    state: dict[str, Any] | None,
    attempts: int | None = None,
) -> None:
    moved = connection.execute(
        "UPDATE memctl.processing SET status = %s, problem = %s, lease_until = NULL, next_at = clock_timestamp() + %s,"
        " state = coalesce(%s::jsonb, state), attempts = coalesce(%s, attempts), updated_at = clock_timestamp()"
        " WHERE space_id = %s AND processor = %s AND subject = %s AND epoch = %s AND status = 'working'",
        [
            status, problem, pause, None if state is None else json.dumps(state), attempts, claimed.space_id,
            claimed.processor, claimed.subject, claimed.epoch,
        ],
    ).rowcount  # fmt: skip
    if not moved:
        raise WorkLost(processor=claimed.processor, subject=claimed.subject)


def state_of(connection: Connection, space_id: int, processor: str, subject: str) -> dict[str, Any]:
    """What the last work that was done on a subject left for the next; empty where none was."""
    row = connection.execute(
        "SELECT state FROM memctl.processing WHERE space_id = %s AND processor = %s AND subject = %s",
        [space_id, processor, subject],
    ).fetchone()
    return {} if row is None else dict(json.loads(row[0]))


def remember(connection: Connection, space_id: int, processor: str, subject: str, state: dict[str, Any]) -> None:
    """Replace a part of what the last work on a subject left, where there was any."""
    connection.execute(
        "UPDATE memctl.processing SET state = state || %s::jsonb WHERE (space_id, processor, subject) = (%s, %s, %s)",
        [json.dumps(state), space_id, processor, subject],
    )


def held_state(held: Sequence[HeldWork]) -> dict[str, Any]:
    """What consolidation holds back, as it is noted. Forgetting does not look there, so no place is named."""
    return {"held": {str(place_key(each.place)): (each.changed, each.of) for each in held[:MOST_HELD]}}


def held_back(connection: Connection, live: Live, space_id: int) -> list[HeldWork]:
    """What the last round held back, each by its project's name."""
    noted = state_of(connection, space_id, CONSOLIDATOR, ROUND).get("held", {})
    if not noted:
        return []
    names = {str(place_key(each.anchor)): each.name for each in known_projects(connection, live, space_id).all}
    names[str(place_key(""))] = "what is of no project"
    return [HeldWork(names.get(place, "a project"), *counts) for place, counts in noted.items()]


def place_key(place: str) -> UUID:
    """What stands for a place where its name may not stand."""
    return derived_id(f"place:{place}")


def standings(connection: Connection, space_id: int) -> list[WorkState]:
    """Every processor that has worked, by name."""
    rows = connection.execute(
        "SELECT processor, count(*) FILTER (WHERE status = 'working' AND lease_until > clock_timestamp()),"
        " count(*) FILTER (WHERE status = 'done'),"
        " count(*) FILTER (WHERE status = 'failed' OR status = 'working' AND lease_until <= clock_timestamp()),"
        " count(*) FILTER (WHERE status = 'given up'),"
        " extract(epoch FROM clock_timestamp() - max(updated_at))::float8"
        " FROM memctl.processing WHERE space_id = %s GROUP BY processor ORDER BY processor",
        [space_id],
    ).fetchall()
    return [
        WorkState(processor=row[0], working=row[1], done=row[2], failed=row[3], given_up=row[4], seconds_ago=row[5])
        for row in rows
    ]
