"""Forgetting at work: what is meant by a scope goes, and what follows from it, until nothing of it is found.

What is forgotten is gone from the log, from everything folded from it, from the vectors, their cache and the spool; and
tombstones keep it from coming back. A receipt says what was forgotten by ids and scope, never what it said. It is
finished only once nothing can be found any more; one that was begun can be taken up again (`resume`).
"""

import contextlib
import hashlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any
from uuid import UUID, uuid4

import msgspec
from psycopg import sql

from memctl.domain.events.command import KeyReused
from memctl.domain.events.erasure import ContentErased, NothingToForget, Scope, Tombstone, scope_tombstones
from memctl.domain.events.event import Micros, NewEvent, Position, derived_id
from memctl.domain.events.observations import event_id_of
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.written_forms import WrittenForms
from memctl.infra.backup import sealed
from memctl.infra.backup.receipts import begin_again, unknown, write_receipts
from memctl.infra.database import Connection, advisory_lock, outages, single_row
from memctl.infra.event_writer import EventWriter
from memctl.infra.log import erase
from memctl.infra.log.erase import Receipt, SoFar
from memctl.infra.log.mark import move_mark, position_at
from memctl.infra.log.read import read_headers
from memctl.infra.log.spaces import space_id as space_of
from memctl.infra.log.spaces import space_names
from memctl.infra.readmodels import dead_letters, generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.redaction import redact
from memctl.infra.settings import Settings
from memctl.infra.vectors import QdrantClient, outbox
from memctl.projections.episodes import EpisodeRow
from memctl.projections.things import THINGS
from memctl.workers.erasure import erasure_check as probing
from memctl.workers.erasure import erasure_register as register
from memctl.workers.erasure import on_disk
from memctl.workers.erasure.erase import (
    Consequence,
    Round,
    drop_all_but_live,
    erase_round,
    lineage,
    nothing_rebuilt,
    said_about,
    with_counterparts,
    with_what_cites,
)
from memctl.workers.erasure.erasure_check import Probe, StillThere
from memctl.workers.erasure.erasure_preview import foreseen
from memctl.workers.erasure.look import Look
from memctl.workers.processors.runner import model

VECTORS_WITHIN_S = 60.0
MOST_ROUNDS = 20
MOST_TRIED = 2_000
"""Deliveries whose erasing a preview tries out, which keeps workers waiting meanwhile; of more it counts."""

SAMPLED = 300
"""Events whose words are looked for afterwards."""


class StillWriting(MemctlError):
    """A program has been appending for too long: what it writes may belong to what is to be forgotten."""

    hint = "see `memctl dlq list`, which names slow writers; then say the same again"


class VectorsBehind(MemctlError):
    """The vector store has not let go of {points} points yet."""

    hint = "look at `memctl status`; then `memctl forget --resume`"
    points: int


class NotFolded(MemctlError):
    """What was recorded before this was to be forgotten is not folded yet: nobody knows what follows from it."""

    hint = "wait until `memctl status` shows that the workers are through; then `memctl forget --resume`"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is meant, and whose look finds it: a scope, of an id or a text the deliveries that it led to, and those
    that only a file on this disk holds. `text` is never stored. One that was `begun` before has as ids all that was
    erased by then, or was to be."""

    look: Look
    scope: Scope
    what: str
    ids: frozenset[UUID] = frozenset()
    tombstones: tuple[Tombstone, ...] = ()
    text: str = ""
    spooled: int = 0
    """Deliveries on this disk that go with it."""
    read_upto: Position = Position(0)
    """How far the log was read for the text."""
    begun: bool = False
    so_far: SoFar = SoFar()


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What would go: events by type, sessions, and what becomes of the rows that rest on them.

    Not `exact`, as of more than some thousands of events: events and sessions are exact all the same, but of the rows
    at least those that are `dropped` go, no others than those and the `changed` ones are touched, and there are at
    least as many `statements_about`.
    """

    what: str
    events: int
    types: dict[str, int]
    sessions: int
    first_at: str
    last_at: str
    spooled: int
    """Deliveries that wait on disk, or were set aside there, and go with it."""
    statements_about: int
    """Statements about things that would be gone, which go with them."""
    exact: bool
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
    stays: list[str] = []
    """Where something like it stays, and why: forms that people read otherwise, names and paths, older backups."""
    consequences: list[Consequence]


def preview(connection: Connection, plan: Plan) -> Preview:
    """What would follow, worked out by doing it and undoing it, or counted where that is much.

    Raises: NothingToForget, as `erase_round`.
    """
    space_id = plan.look.space_id
    ids = _ids(connection, plan)
    exact = len(ids) <= MOST_TRIED
    if space_id not in space_names(connection):  # of one, only files on this disk may be known
        found = Round()
    elif exact:
        found = erase_round(connection, space_id, uuid4(), ids, dry=True)
    else:
        found = foreseen(connection, space_id, ids)
    about = (found.about if exact else said_about(connection, space_id, found)) - ids
    return Preview(
        what=plan.what,
        events=found.events,
        types=dict(found.types.most_common()),
        sessions=sum(stream.startswith("session/") for stream in found.streams),
        first_at=found.first_at.isoformat() if found.first_at else "",
        last_at=found.last_at.isoformat() if found.last_at else "",
        spooled=plan.spooled,
        statements_about=len(about),
        exact=exact,
        consequences=found.consequences,
    )


def forget(
    settings: Settings,
    connection: Connection,
    plan: Plan,
    qdrant: QdrantClient | None,
    reason: str = "",
) -> Forgotten:
    """Forget it, and return once nothing of it is found.

    `connection` is in autocommit mode. Raises: NothingToForget, StillWriting, RebuildAtWork, OtherRules, LeaseHeld,
    VectorsBehind, StillThere; from the second on the receipt stays open, and `resume` goes on with it.
    """
    receipt = uuid4()
    with outages(), nothing_rebuilt(connection):
        plan = _in_its_space(connection, plan)
        reason = _begin(settings, connection, receipt, plan, reason)
        return _carry_out(settings, connection, receipt, plan, qdrant, reason)


def forget_once(
    settings: Settings,
    connection: Connection,
    look: Look,
    key: str,
    asked: bytes,
    planned: Callable[[], Plan],
    qdrant: QdrantClient | None,
    reason: str = "",
) -> dict[str, Any]:
    """As `forget`, once under an idempotency key: what was begun is gone on with, and what was done is reported again.

    `asked` says what is asked for, and `planned` what that means. Raises: KeyReused where something else was asked for
    under that key, whatever `planned` raises, and as `forget`.
    """
    receipt = derived_id(f"forget:{look.space_id}:{key}")
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass") + b"\0" + asked).hexdigest()

    def before() -> Receipt | None:
        found = erase.receipt(connection, receipt)
        if found is not None and found.scope.asked not in ("", digest):
            raise KeyReused
        return found

    with outages():
        found, plan = before(), None
        if found is None:
            try:
                plan = planned()
            except MemctlError:
                # Who asked at the same time under this key may have begun, and what was meant be gone by now.
                if before() is None:
                    raise
        elif found.finished_at is not None:
            return found.outcome
        with nothing_rebuilt(connection):
            found = before()  # whoever held the lock may have been carrying out this very ask
            if found is not None and found.finished_at is not None:
                return found.outcome
            if found is not None:
                plan, reason = _taken_up(found, look), found.reason
            else:
                assert plan is not None
                plan = _in_its_space(connection, plan)
                plan = msgspec.structs.replace(plan, scope=msgspec.structs.replace(plan.scope, asked=digest))
                reason = _begin(settings, connection, receipt, plan, reason)
            done = _carry_out(settings, connection, receipt, plan, qdrant, reason)
    response: dict[str, Any] = msgspec.to_builtins(done)
    return response


def _in_its_space(connection: Connection, plan: Plan) -> Plan:
    """The plan by the space's number; of one of which only files on this disk are known, it is made now."""
    if (number := space_of(connection, plan.look.space)) == plan.look.space_id:
        return plan
    look = msgspec.structs.replace(plan.look, space_id=number)
    return with_what_is_on_disk(msgspec.structs.replace(plan, look=look, ids=frozenset(), tombstones=()))


def _begin(settings: Settings, connection: Connection, receipt: UUID, plan: Plan, reason: str) -> str:
    """Open the receipt and lay the tombstones. Returns the reason as it is kept. Raises: NothingToForget."""
    space_id = plan.look.space_id
    ids = _ids(connection, plan)
    if reason:
        reason, _ = redact(reason, settings.redactor())
    stones = [*scope_tombstones(plan.scope), *plan.tombstones]
    if plan.scope.kind not in ("id", "match"):
        stones += erase.dated_ahead(connection, space_id, plan.scope)
    with connection.transaction():
        erase.stay(connection, space_id)
        erase.begin(connection, space_id, receipt, plan.scope, reason, ids)
        erase.lay_tombstones(connection, space_id, receipt, stones)
    # Should the database be lost before the end, who restores an older one learns of it.
    write_receipts(connection, settings.data_dir)
    return reason


def _taken_up(receipt: Receipt, look: Look) -> Plan:
    return Plan(
        look=look, scope=receipt.scope, what=_in_words(receipt.scope), ids=frozenset(receipt.erased), begun=True,
        so_far=receipt.so_far,
    )  # fmt: skip


def resume(
    settings: Settings,
    connection: Connection,
    space_id: int,
    qdrant: QdrantClient | None,
    *,
    by_rule: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> list[Forgotten]:
    """Go on with forgetting that was begun and not finished, or only with what goes by a rule, until asked to stop.

    What new rules of redaction were to cut is `redact`'s to go on with. Raises: NotFolded, and as `forget`.
    """
    done: list[Forgotten] = []
    with outages():
        look = Look.of_owner(settings, space_id, _space_name(connection, space_id))
        for each in erase.receipts(connection, unfinished=True):
            if each.space != look.space or each.scope.kind == "rules":
                continue
            if by_rule and not each.scope.rule:
                continue
            if stop():
                break
            with nothing_rebuilt(connection):
                if not _folded(connection, space_id, position_at(connection, each.begun_at, space_id)):
                    raise NotFolded
                # What was asked for over HTTP is reported to who asked, who may have come with a key.
                plan = _taken_up(each, look.as_key() if each.scope.asked else look)
                done.append(_carry_out(settings, connection, each.id, plan, qdrant, each.reason))
    return done


def reopen(settings: Settings, connection: Connection) -> None:
    """Open the receipts of the data directory that the database knows nothing of, as one that was set back in time:
    `resume` forgets again what they name, `redact` applies today's rules. Raises: BadReceipts."""
    with outages(), connection.transaction():
        for each in unknown(connection, settings.data_dir):
            begin_again(connection, each)


def _folded(connection: Connection, space_id: int, upto: Position) -> bool:
    """Whether both stages have read a space that far, or stand at what they cannot read."""
    live = generations.live(connection)
    read = min(generations.lowest_offset(connection, each, space_id) for each in (live.stage1, live.stage2))
    return read >= upto or bool(dead_letters.halts(connection, live))


def _carry_out(
    settings: Settings,
    connection: Connection,
    receipt: UUID,
    plan: Plan,
    qdrant: QdrantClient | None,
    reason: str,
) -> Forgotten:
    space_id = plan.look.space_id
    # Who takes this up after it was left off knows no text any more.
    spooled = _spool_without(connection, receipt, plan)
    if not erase.settled(connection, space_id):
        raise StillWriting
    recorded_upto = move_mark(connection, space_id)
    # A look at the past that was built before the receipt stood does not learn of the receipt.
    drop_all_but_live(connection)
    if plan.scope.kind in ("id", "match"):
        came = _with_what_came(connection, space_id, receipt, plan.ids, plan.text, plan.read_upto)
        plan = msgspec.structs.replace(plan, ids=frozenset(came))
    ids = _ids(connection, plan, some=False)
    words = () if plan.scope.rule else _words(connection, space_id, ids, plan.text)
    types: Counter[str] = Counter()
    counts: Counter[tuple[str, str]] = Counter()
    points: list[str] = []
    gone: set[UUID] = set()
    made = 0
    for erased, found in rounds(connection, space_id, receipt, ids, plan.scope.id, plan.so_far):
        made += 1
        gone |= erased
        types += found.types
        points += found.points
        for each in found.consequences:
            counts[each.read_model, "dropped"] += each.dropped
            counts[each.read_model, "changed"] += each.changed
    # What waits on disk is new, and meets the tombstones where it is not.
    spooled += _spool_without(connection, receipt, plan)
    recorded(EventWriter(connection, settings.of_space(plan.look.space)), receipt, plan.scope, types.total(), reason)
    # Nothing shows which points went in earlier rounds: all that is queued by now is waited for.
    _await_vectors(settings, connection, qdrant, None if plan.begun else points)
    probe = Probe(probing.ids_of(gone), words, tuple(points))
    outbox.forget_unused(connection, recorded_upto)  # else the outbox's writer does, once the rows are folded so far
    if left := probing.found_in(connection, plan.look, probe, qdrant):
        raise StillThere(where="; ".join(left))
    stays = [] if plan.scope.rule else _what_stays(settings, connection, plan, probe)
    consequences = [
        Consequence(name, counts[name, "dropped"], counts[name, "changed"])
        for name in dict.fromkeys(name for name, _ in counts)
    ]
    done = Forgotten(
        receipt=receipt,
        what=plan.what,
        events=types.total(),
        types=dict(types.most_common()),
        rounds=made,
        spooled=spooled,
        looked_for=len(probe.ids) + len(probe.words) + len(points),
        stays=stays,
        consequences=consequences,
    )
    erase.finish(connection, receipt, msgspec.to_builtins(done))
    write_receipts(connection, settings.data_dir)
    return done


def rounds(
    connection: Connection, space_id: int, receipt: UUID, ids: set[UUID], thing: str = "", so_far: SoFar | None = None
) -> Iterator[tuple[set[UUID], Round]]:
    """Erase these deliveries under a receipt, then what was recorded about what went with them, meanwhile too, and so
    on until nothing follows. Of each round what it was to erase, and what it did. `thing`: a row of which nothing is to
    be left; `so_far`: what went in rounds of before.

    Raises: StillThere, StillWriting, as `erase_round`.
    """
    stood = Round(dropped=[*so_far.dropped], retold=[*so_far.retold]) if so_far else Round()
    for _ in range(MOST_ROUNDS):
        if not ids:
            return
        found = erase_round(connection, space_id, receipt, ids)
        stood.ids |= found.ids
        stood.dropped += found.dropped
        stood.retold += found.retold
        yield ids, found
        # Whoever began to record something about it while it stood has ended by then. Whoever begins now finds it gone.
        if not erase.settled(connection, space_id):
            raise StillWriting
        about = said_about(connection, space_id, stood)
        if thing and (fed := of_thing(connection, space_id, thing) - stood.ids):
            about |= _with_what_came(connection, space_id, receipt, fed)
        ids = with_what_cites(connection, space_id, stood.ids | about) - stood.ids
    if ids:
        raise StillThere(where="what was recorded about it, without an end")


def _with_what_came(
    connection: Connection, space_id: int, receipt: UUID, ids: Collection[UUID], text: str = "", read_upto: int = 0
) -> set[UUID]:
    """Deliveries with the other deliveries of the same, and what holds the text, with all of it that was still being
    recorded when it was looked up. Lays their tombstones, and notes them under the receipt. Raises: StillWriting."""
    known, sought = set(ids), WrittenForms([text] if text else [])
    for _ in range(MOST_ROUNDS):
        more = erase.holding(connection, space_id, sought, read_upto).ids if text else set()
        found, tombstones = with_counterparts(connection, space_id, known | more)
        with connection.transaction():
            erase.lay_tombstones(connection, space_id, receipt, tombstones)
            erase.to_come(connection, receipt, found)
        if found <= known:
            break
        known = found
        # Whoever was recording it once more, and saw no tombstone, has ended by then.
        if not erase.settled(connection, space_id):
            raise StillWriting
    return known


def _what_stays(settings: Settings, connection: Connection, plan: Plan, probe: Probe) -> list[str]:
    """What the receipt says of forms that stay. Books of work that hold some lose those rows, and plain backups that a
    crash left behind go."""
    folded = plan.scope.kind in ("match", "session", "project")
    words = probing.that_say_most(probe.words)
    if not folded:  # few stand where anything stays; whether others say them takes a look through the log
        words = register.named(connection, plan.look, words)
    said = probing.unsaid(connection, plan.look, words)
    sought = WrittenForms([plan.text, *said] if plan.text else said)
    register.drop_from_books(connection, plan.look, sought)
    in_use = sealed.clear(settings.data_dir)
    return [
        *register.what_stays(connection, plan.look, sought, folded=folded),
        *register.backups_before(settings, plan.look, in_use),
    ]


def _words(connection: Connection, space_id: int, ids: set[UUID], text: str) -> tuple[str, ...]:
    """The words to look for afterwards."""
    events = erase.read(connection, space_id, sorted(ids)[:SAMPLED])
    return probing.words_of((event.payload for event in events), text)


# --- what is meant ---


def _ids(connection: Connection, plan: Plan, *, some: bool = True) -> set[UUID]:
    space_id = plan.look.space_id
    by_ids = plan.scope.kind in ("id", "match")
    # What was begun names by id what its rounds have found to follow.
    found = set(plan.ids) | (set() if by_ids else erase.found_by(connection, space_id, plan.scope))
    if some and not found:
        raise NothingToForget(what=plan.what)
    return with_what_cites(connection, space_id, found)


def of_thing(connection: Connection, space_id: int, id: str, kind: str = "") -> set[UUID]:
    """The events that a row rests on: of an episode all of its time, else those that it was folded from; none where
    nothing stands under that id."""
    kind = kind or _kind_of(connection, space_id, id)
    if not kind:
        return set()
    if kind == "memory" and (memory := _row(connection, space_id, "memories", id)) is not None:
        source = memory.source
        episode = source.key if source.projection == "episodes" else ""
    else:
        episode = id if kind == "episode" else ""
    if episode and (row := _row(connection, space_id, "episodes", episode)) is not None:
        within = erase.between(connection, space_id, row.stream, row.started_at, row.ended_at)
        # Calls that nobody answered are its last ones; they do not make it longer.
        following = _next_episode(connection, space_id, row)
        return within | erase.calls_between(connection, space_id, row.stream, row.ended_at, following)
    return lineage(connection, space_id, THINGS[kind], id)


def holding(connection: Connection, space_id: int, sought: WrittenForms) -> set[UUID]:
    """The deliveries in which a text stands, and those that a document rests on in which edits have put it together."""
    held = erase.holding(connection, space_id, sought).ids
    table = sql.SQL(readmodels.table("memories", generations.live(connection).stage2))
    query = sql.SQL(
        "SELECT key, concat_ws(E'\\n', row->>'title', row->>'text') FROM {}"
        " WHERE space_id = %s AND row->>'kind' = 'document'"
    ).format(table)
    with connection.cursor() as cursor:
        put_together = [
            key for key, text in cursor.stream(query, [space_id]) if sought.within(text.encode("utf-8", "replace")).held
        ]
    for key in put_together:
        rests_on = of_thing(connection, space_id, key, "memory")
        held |= set() if rests_on & held else rests_on
    return held


def _next_episode(connection: Connection, space_id: int, episode: EpisodeRow) -> Micros | None:
    """When the episode after this one began; None where it is its session's last."""
    table = sql.SQL(readmodels.table("episodes", generations.live(connection).stage1))
    found = connection.execute(
        sql.SQL(
            "SELECT min((row->>'started_at')::bigint) FROM {} WHERE space_id = %s AND stream = %s"
            " AND (row->>'started_at')::bigint > %s"
        ).format(table),
        [space_id, episode.stream, episode.started_at],
    ).fetchone()
    return None if found is None or found[0] is None else Micros(found[0])


def _kind_of(connection: Connection, space_id: int, id: str) -> str:
    """What stands under that id in the read models; "" where nothing does."""
    return next((kind for kind, name in THINGS.items() if _row(connection, space_id, name, id) is not None), "")


def _row(connection: Connection, space_id: int, name: str, key: str) -> Any | None:
    p, live = model(name), generations.live(connection)
    if "\0" in key:  # Postgres has no such text
        return None
    found = readmodels.load(connection, p, live.of(p.stage), [(space_id, key)])
    return found.get((space_id, key))


def _in_words(scope: Scope) -> str:
    return {"session": "a session", "project": "a project", "before": "all before a time"}.get(scope.kind, scope.kind)


def _space_name(connection: Connection, space_id: int) -> str:
    row = single_row(connection, "SELECT name FROM memctl.spaces WHERE space_id = %s", [space_id])
    return str(row[0])


# --- beside the log ---


def recorded(writer: EventWriter, receipt: UUID, scope: Scope, events: int, reason: str) -> None:
    """Record in the log that something was erased under a receipt, unless whoever was at it before has recorded it: it
    would be recorded at another time, and so be another version."""
    key = f"erased:{receipt}"
    if read_headers(writer.connection, writer.space_id, [event_id_of(writer.space_id, key)]):
        return
    event = NewEvent(
        stream=f"erased/{receipt}",
        payload=ContentErased(
            receipt=receipt, scope=msgspec.structs.replace(scope, asked=""), events=events, reason=reason
        ),
        occurred_at=Micros(time.time_ns() // 1000),
        dedupe_key=key,
        actor="user",
    )
    writer.append([event])
    move_mark(writer.connection, writer.space_id)


def with_what_is_on_disk(plan: Plan) -> Plan:
    """The plan with the deliveries on this disk that it means, by their ids: they may be nowhere else."""
    ids, spooled = set[UUID](), 0
    for each in on_disk.meant(plan.look, plan.scope, plan.text):
        ids |= each.events(plan.look.space_id)
        spooled += 1
    stones = (Tombstone(kind="event", value=str(id)) for id in sorted(ids))
    return msgspec.structs.replace(plan, ids=plan.ids | ids, tombstones=(*plan.tombstones, *stones), spooled=spooled)


def _spool_without(connection: Connection, receipt: UUID, plan: Plan) -> int:
    """Remove the deliveries on disk that are meant, once tombstones keep who has read them from recording them. How
    many.

    Those that wait for the door meet the tombstones there; what was set aside, nobody would look at again.
    """
    removed, space_id = 0, plan.look.space_id
    for each in on_disk.meant(plan.look, plan.scope, plan.text, plan.ids):
        ids = each.events(space_id)
        with connection.transaction():
            erase.lay_tombstones(connection, space_id, receipt, [Tombstone(kind="event", value=str(id)) for id in ids])
            erase.to_come(connection, receipt, ids)
        with contextlib.suppress(FileNotFoundError):  # the door has just taken it
            each.path.unlink()
            removed += 1
    return removed


@contextlib.contextmanager
def store_of(settings: Settings) -> Iterator[QdrantClient | None]:
    """A client of the vector store; None where there is none."""
    from memctl.infra.vectors import store

    client = store.connect(settings.qdrant_url, settings.qdrant_api_key) if settings.qdrant_url else None
    try:
        yield client
    finally:
        if client is not None:
            client.close()


def _await_vectors(
    settings: Settings, connection: Connection, qdrant: QdrantClient | None, points: Sequence[str] | None
) -> None:
    """Have the store let go of the points (of all that are queued by now, without), by the outbox's writer or in its
    place."""
    if qdrant is None:
        return
    generation = generations.live(connection).stage2
    if points is None:
        points = _queued(connection, generation, None)
    if not points:
        return
    from memctl.workers.vectors.outbox_publisher import WRITING, OutboxPublisher, drop_leftovers

    deadline = time.monotonic() + VECTORS_WITHIN_S
    while queued := _queued(connection, generation, points):
        with advisory_lock(connection, WRITING, generation) as mine:
            if mine:
                while OutboxPublisher(connection, qdrant, generation).sync():
                    pass
        if time.monotonic() > deadline:
            raise VectorsBehind(points=len(queued))
        time.sleep(0.05)
    drop_leftovers(connection, qdrant)


def _queued(connection: Connection, generation: int, points: Sequence[str] | None) -> list[str]:
    """Those of the points (None: of all) that are to be written yet."""
    queue = sql.SQL("SELECT key FROM memctl.outbox_g{} WHERE %s::text[] IS NULL OR key = ANY(%s)")
    given = None if points is None else list(points)
    return [key for (key,) in connection.execute(queue.format(sql.SQL(str(generation))), [given, given])]
