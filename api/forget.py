"""Forgetting: what is meant, what would follow, and doing it until nothing of it is found.

What is forgotten is gone from the log, from everything folded from it, from the vectors, their cache and the spool; and
tombstones keep it from coming back. A receipt says what was forgotten by ids and scope, never what it said. It is
finished only once nothing can be found any more; one that was begun can be taken up again (`resume`).
"""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import msgspec

from memctl.api import probing, queries
from memctl.api.pages import one, projection_named
from memctl.api.places import places_of
from memctl.api.probing import Probe, StillThere
from memctl.api.reader import Reader, reader_of
from memctl.domain.erasing import (
    SHORTEST_MATCH,
    ContentErased,
    NothingToForget,
    Scope,
    Tombstone,
    TooShort,
    scope_tombstones,
)
from memctl.domain.errors import MemctlError
from memctl.domain.event import Micros, NewEvent, derived_id
from memctl.infra.database import Connection, outages
from memctl.infra.log import erase
from memctl.infra.log.append import append
from memctl.infra.log.mark import move_mark
from memctl.infra.log.receipts import write_receipts
from memctl.infra.settings import Settings
from memctl.infra.spool import Delivery, read_spooled
from memctl.workers.erasure import (
    Consequence,
    Round,
    erase_round,
    lineage,
    nothing_rebuilt,
    with_twins,
    with_what_cites,
)

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

log = logging.getLogger("memctl.forget")

VECTORS_WITHIN_S = 60.0
MOST_ROUNDS = 20
SAMPLED = 300
"""Events whose words are looked for afterwards."""

ROW_KINDS = {
    "memory": "memories", "bug": "bug_patterns", "insight": "insights", "knowledge": "verified_knowledge",
    "task": "tasks", "rule": "code_rules", "code_pattern": "code_patterns", "entity": "entities",
}  # fmt: skip


class StillWriting(MemctlError):
    """A program has been appending for too long: what it writes may belong to what is to be forgotten."""

    hint = "see `memctl dlq list`, which names slow writers; then say the same again"


class VectorsBehind(MemctlError):
    """The vector store has not let go of {points} points yet."""

    hint = "look at `memctl status`; then `memctl forget --resume`"
    points: int


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is meant: a scope, and of an id or a text the deliveries that it led to. `text` is never stored."""

    scope: Scope
    what: str
    ids: frozenset[UUID] = frozenset()
    stones: tuple[Tombstone, ...] = ()
    text: str = ""


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What would go: events by type, sessions, and what becomes of the rows that rest on them."""

    what: str
    events: int
    types: dict[str, int]
    sessions: int
    first_at: str
    last_at: str
    statements_about: int
    """Statements about things that would be gone, which go with them."""
    consequences: list[Consequence]


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """A finished receipt."""

    receipt: UUID
    what: str
    events: int
    types: dict[str, int]
    rounds: int
    spooled: int
    """Deliveries that waited on disk and were removed."""
    looked_for: int
    """Ids and words that were looked for and found nowhere."""
    consequences: list[Consequence]


def plan(
    reader: Reader,
    *,
    id: str = "",
    session: str = "",
    project: str = "",
    before: datetime | None = None,
    match: str = "",
    here: str | None = None,
) -> Plan:
    """What one of these means. Raises: NothingToForget, TooShort, NotFound, Ambiguous, UnknownProject."""
    now = Micros(time.time_ns() // 1000)
    connection, space_id = reader.connection, reader.space_id
    if session:
        streams = _streams(reader, session)
        return Plan(scope=Scope(kind="session", streams=streams, until=now), what=f"session {streams[0]}")
    if project:
        places = places_of(reader, project, here)
        if not places.locations:
            raise NothingToForget(what=f"project {project}", hint="`memctl forget --before` forgets by time")
        return Plan(
            scope=Scope(kind="project", locations=places.locations, until=now), what=f"project {places.project}"
        )
    if before is not None:
        moment = before if before.tzinfo else before.replace(tzinfo=UTC)
        until = Micros(min(now, (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)))
        return Plan(scope=Scope(kind="before", until=until), what=f"everything before {moment.isoformat()}")
    if match:
        if len("".join(match.split())) < SHORTEST_MATCH:
            raise TooShort
        ids = erase.holding(connection, space_id, match)
        what = "what holds that text"
        return _of_ids(connection, space_id, ids, Scope(kind="match"), what, text=match)
    return _of_id(reader, id.strip())


def preview(connection: Connection, space_id: int, plan: Plan) -> Preview:
    """What would follow, worked out by doing it and undoing it. Raises: NothingToForget, as `erase_round`."""
    ids = _ids(connection, space_id, plan)
    found = erase_round(connection, space_id, uuid4(), ids, dry=True)
    about = _said_about(connection, space_id, found) - ids
    times = connection.execute(
        "SELECT min(occurred_at), max(occurred_at) FROM memctl.events WHERE space_id = %s AND event_id = ANY(%s)",
        [space_id, list(ids)],
    ).fetchone()
    first, last = times or (None, None)
    return Preview(
        what=plan.what,
        events=found.events,
        types=dict(found.types.most_common()),
        sessions=sum(stream.startswith("session/") for stream in found.streams),
        first_at=first.isoformat() if first else "",
        last_at=last.isoformat() if last else "",
        statements_about=len(about),
        consequences=found.consequences,
    )


def forget(
    settings: Settings,
    connection: Connection,
    space_id: int,
    plan: Plan,
    qdrant: QdrantClient | None,
    reason: str = "",
    key: str = "",
) -> Forgotten:
    """Forget it, and return once nothing of it is found.

    `connection` is in autocommit mode; under a `key` it is done once (see `told_before`). Raises: NothingToForget,
    StillWriting, RebuildAtWork, OtherRules, LeaseHeld, VectorsBehind, StillThere; from the second on the receipt stays
    open, and `resume` goes on with it.
    """
    receipt = _receipt_of(space_id, key) if key else uuid4()
    with outages(), nothing_rebuilt(connection):
        ids = _ids(connection, space_id, plan)
        with connection.transaction():
            erase.begin(connection, space_id, receipt, plan.scope, reason, ids)
            erase.lay(connection, space_id, receipt, [*scope_tombstones(plan.scope), *plan.stones])
        return _carry_out(settings, connection, space_id, receipt, plan, qdrant, reason)


def told_before(connection: Connection, space_id: int, key: str) -> dict[str, Any] | None:
    """What was answered under that idempotency key; None where nothing was forgotten under it, or not to its end."""
    receipt = _receipt_of(space_id, key)
    with outages():
        found = [each for each in erase.receipts(connection) if each.id == receipt and each.finished_at is not None]
    return found[0].outcome if found else None


def _receipt_of(space_id: int, key: str) -> UUID:
    return derived_id(f"forget:{space_id}:{key}")


def resume(settings: Settings, connection: Connection, space_id: int, qdrant: QdrantClient | None) -> list[Forgotten]:
    """Go on with what was begun to be forgotten and not finished."""
    done = []
    with outages():
        for each in erase.receipts(connection, unfinished=True):
            if each.space != _space_name(connection, space_id) or each.scope.kind == "rules":
                continue
            with nothing_rebuilt(connection):
                plan = Plan(scope=each.scope, what=_in_words(each.scope), ids=frozenset(each.erased))
                done.append(_carry_out(settings, connection, space_id, each.id, plan, qdrant, each.reason))
    return done


def _carry_out(
    settings: Settings,
    connection: Connection,
    space_id: int,
    receipt: UUID,
    plan: Plan,
    qdrant: QdrantClient | None,
    reason: str,
) -> Forgotten:
    if not erase.settled(connection):
        raise StillWriting
    ids = _ids(connection, space_id, plan, some=False)
    events = (event for event in erase.read(connection, space_id, sorted(ids)[:SAMPLED]))
    words = probing.words_of((event.payload for event in events), plan.text)
    types: Counter[str] = Counter()
    told: Counter[tuple[str, str]] = Counter()
    points: list[str] = []
    gone: set[UUID] = set()
    rounds = 0
    while ids:
        rounds += 1
        if rounds > MOST_ROUNDS:
            raise StillThere(where="what was recorded about it, without an end")
        found = erase_round(connection, space_id, receipt, ids)
        gone |= ids
        types += found.types
        points += found.points
        for each in found.consequences:
            told[each.read_model, "dropped"] += each.dropped
            told[each.read_model, "changed"] += each.changed
        about = _said_about(connection, space_id, found)
        if plan.scope.id:
            about |= _of_thing(connection, space_id, plan.scope.id)
        ids = with_what_cites(connection, space_id, about) - gone if about else set()
    spooled = _spool_without(settings.data_dir / "spool", plan)
    recorded(connection, space_id, receipt, plan.scope, types.total(), reason)
    _await_vectors(connection, qdrant, points)
    probe = Probe(probing.ids_of(gone), words, tuple(points))
    folders = [settings.data_dir / "spool", settings.data_dir / "log"]
    if left := probing.found_in(connection, space_id, probe, folders, qdrant):
        raise StillThere(where="; ".join(left))
    consequences = [
        Consequence(name, told[name, "dropped"], told[name, "changed"])
        for name in dict.fromkeys(name for name, _ in told)
    ]
    done = Forgotten(
        receipt=receipt,
        what=plan.what,
        events=types.total(),
        types=dict(types.most_common()),
        rounds=rounds,
        spooled=spooled,
        looked_for=len(probe.ids) + len(probe.words) + len(points),
        consequences=consequences,
    )
    erase.finish(connection, receipt, msgspec.to_builtins(done))
    write_receipts(connection, settings.data_dir)
    return done


def _said_about(connection: Connection, space_id: int, found: Round) -> set[UUID]:
    """What was recorded about things that are gone, or told what they no longer tell."""
    said = erase.naming(connection, space_id, found.dropped)
    return said | erase.reflecting(connection, space_id, [*found.dropped, *found.retold])


# --- what is meant ---


def _ids(connection: Connection, space_id: int, plan: Plan, *, some: bool = True) -> set[UUID]:
    by_ids = plan.scope.kind in ("id", "match")
    found = set(plan.ids) if by_ids else erase.found_by(connection, space_id, plan.scope)
    if some and not found:
        raise NothingToForget(what=plan.what)
    return with_what_cites(connection, space_id, found)


def _of_ids(connection: Connection, space_id: int, ids: set[UUID], scope: Scope, what: str, *, text: str = "") -> Plan:
    if not ids:
        raise NothingToForget(what=what)
    whole, stones = with_twins(connection, space_id, ids)
    return Plan(scope=scope, what=what, ids=frozenset(whole), stones=tuple(stones), text=text)


def _streams(reader: Reader, wanted: str) -> tuple[str, ...]:
    """A session's stream, and those of its subagents."""
    rows = reader.connection.execute(
        "SELECT DISTINCT stream FROM memctl.events WHERE space_id = %s AND stream LIKE 'session/%%/%%'"
        " AND (stream = %s OR session_id = %s)",
        [reader.space_id, wanted, wanted],
    ).fetchall()
    found = [row[0] for row in rows] or [str(queries.session(reader, wanted)["id"])]
    waiting = list(found)
    while waiting:
        ids = [stream.split("/", 2)[2] for stream in waiting]
        rows = reader.connection.execute(
            "SELECT DISTINCT stream FROM memctl.events WHERE space_id = %s AND type = 'session.started'"
            " AND payload->>'parent_session' = ANY(%s)",
            [reader.space_id, ids],
        ).fetchall()
        waiting = [row[0] for row in rows if row[0] not in found]
        found += waiting
    return tuple(found)


def _of_id(reader: Reader, wanted: str) -> Plan:
    try:
        found = queries.thing(reader, wanted)
        kind, id = found["kind"], str(found["item"]["id"])
    except queries.NotFound:
        # What no read model shows may be an event all the same, one that cannot be read.
        ids = [UUID(id) for id in queries.event_ids(reader, wanted, 2)]
        if len(ids) != 1:
            raise
        kind, id = "event", str(ids[0])
    if kind == "session":
        return plan(reader, session=id)
    what = f"{kind} {id}"
    ids_found = (
        {_delivery(reader.connection, reader.space_id, UUID(id))}
        if kind == "event"
        else _of_thing(reader.connection, reader.space_id, id, kind)
    )
    return _of_ids(reader.connection, reader.space_id, ids_found, Scope(kind="id", id=id), what)


def _delivery(connection: Connection, space_id: int, id: UUID) -> UUID:
    row = connection.execute(
        "SELECT coalesce(variant_of, event_id) FROM memctl.events WHERE space_id = %s AND event_id = %s",
        [space_id, id],
    ).fetchone()
    assert row is not None
    found: UUID = row[0]
    return found


def _kind_of(reader: Reader, id: str) -> str:
    """What stands under that id in the read models; "" where nothing does."""
    kinds = {**ROW_KINDS, "episode": "episodes"}
    return next((kind for kind, name in kinds.items() if one(reader, projection_named(name), id) is not None), "")


def _of_thing(connection: Connection, space_id: int, id: str, kind: str = "") -> set[UUID]:
    """The events that a row rests on: of an episode all of its time, else those that it was folded from; none where
    nothing stands under that id."""
    reader = reader_of(connection, _space_name(connection, space_id))
    kind = kind or _kind_of(reader, id)
    if not kind:
        return set()
    if kind == "memory" and (memory := one(reader, projection_named("memories"), id)) is not None:
        source = memory.source
        episode = source.key if source.projection == "facts" else ""
    else:
        episode = id if kind == "episode" else ""
    if episode and (row := one(reader, projection_named("episodes"), episode)) is not None:
        return erase.between(connection, space_id, row.stream, row.started_at, row.ended_at)
    return lineage(connection, space_id, ROW_KINDS[kind], id)


def _in_words(scope: Scope) -> str:
    return {"session": "a session", "project": "a project", "before": "all before a time"}.get(scope.kind, scope.kind)


def _space_name(connection: Connection, space_id: int) -> str:
    row = connection.execute("SELECT name FROM memctl.spaces WHERE space_id = %s", [space_id]).fetchone()
    assert row is not None
    return str(row[0])


# --- beside the log ---


def recorded(connection: Connection, space_id: int, receipt: UUID, scope: Scope, events: int, reason: str) -> None:
    """Record in the log that something was erased under a receipt; twice is once."""
    event = NewEvent(
        stream=f"erased/{receipt}",
        payload=ContentErased(receipt=receipt, scope=scope, events=events, reason=reason),
        occurred_at=Micros(time.time_ns() // 1000),
        dedupe_key=f"erased:{receipt}",
        actor="user",
    )
    append(connection, space_id, [event])
    move_mark(connection)


def _spool_without(folder: Path, plan: Plan) -> int:
    """Remove the deliveries on disk that hold the text, belong to the session or place, or are that old. How many.

    Those that wait for the door meet the tombstones there; what was set aside, nobody would look at again.
    """
    if not folder.is_dir():
        return 0
    quoted = [json.dumps(name, ensure_ascii=False) for name in _names(plan.scope)]
    inside = [place[:-1] + "/" for place in quoted if place[1:2] == "/"]
    wanted = [each.lower() for each in (*quoted, *inside, " ".join(plan.text.split())) if each]
    before = plan.scope.until if plan.scope.kind == "before" else 0
    removed = 0
    paths = sorted(path for path in folder.iterdir() if path.suffix in (".delivery", ".damaged", ".refused"))
    for path in paths if wanted or before else []:
        with contextlib.suppress(FileNotFoundError):  # the door has just taken it
            at, said = _delivered(path)
            if at < before or any(each in said for each in wanted):
                path.unlink()
                removed += 1
    return removed


def _names(scope: Scope) -> list[str]:
    """A scope's sessions and places, as deliveries name them."""
    return [stream.split("/", 2)[2] for stream in scope.streams] + list(scope.locations)


def _delivered(path: Path) -> tuple[int, str]:
    """When a delivery was made, in microseconds, and its words in lower case with single blanks between them."""
    found = next((each for _, each in read_spooled([path])), None)
    at, payload = path.stat().st_mtime_ns // 1000, b""
    if isinstance(found, Delivery):
        at, payload = found.at, found.payload
    elif path.is_file():
        payload = path.read_bytes()
    try:
        said = json.dumps(json.loads(payload), ensure_ascii=False).replace("\\n", " ").replace("\\t", " ")
    except ValueError:
        said = payload.decode("utf-8", "replace")
    return at, " ".join(said.split()).lower()


def _await_vectors(connection: Connection, qdrant: QdrantClient | None, points: Sequence[str]) -> None:
    """Have the store let go of the points, by the outbox's writer or in its place."""
    if qdrant is None or not points:
        return
    from memctl.infra import generations, outbox
    from memctl.workers.outbox import WRITING, Outbox, only_one

    generation = generations.live(connection).stage2
    deadline = time.monotonic() + VECTORS_WITHIN_S
    while queued := _queued(connection, generation, points):
        with only_one(connection, WRITING, generation) as mine:
            if mine:
                while Outbox(connection, qdrant, generation, "").sync():
                    pass
        if time.monotonic() > deadline:
            raise VectorsBehind(points=queued)
        time.sleep(0.05)
    for each in (g for g, _, _ in generations.generations(connection, "dropped")):
        from memctl.infra.vectors import store

        store.drop_collection(qdrant, outbox.collection_of(connection, each))


def _queued(connection: Connection, generation: int, points: Sequence[str]) -> int:
    from psycopg import sql

    row = connection.execute(
        sql.SQL("SELECT count(*) FROM memctl.outbox_g{} WHERE NOT dense AND key = ANY(%s)").format(
            sql.SQL(str(generation))
        ),
        [list(points)],
    ).fetchone()
    assert row is not None
    return int(row[0])
