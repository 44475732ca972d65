"""What is known, by question: each function answers one over a `Reader`.

Rows are msgspec structs of `memctl.projections`; what is put together here is shaped in `memctl.api.reading.views`.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, LiteralString, NamedTuple, TypeVar
from uuid import UUID

import msgspec
from psycopg import sql

from memctl.api.queries.claims import known
from memctl.api.reading import models
from memctl.api.reading.briefs import summaries
from memctl.api.reading.consolidation_status import standings
from memctl.api.reading.evidence import origin_of, quoted_rows, with_evidence
from memctl.api.reading.feedback import regards
from memctl.api.reading.pages import (
    Condition,
    Keyed,
    Where,
    field_of,
    keys_from,
    one,
    page,
    projection_named,
    select,
)
from memctl.api.reading.places import Places, keeps_to_themselves, limits_of, projects_of
from memctl.api.reading.questions import Cursor, Id, Limit, question
from memctl.api.reading.reader import Reader
from memctl.api.reading.records import EventItem, MemoryItem, Record, SessionItem, TimelineItem, WorkingMemoryItem
from memctl.api.reading.views import Json, Page, Thing, iso, known_time, moment, shown, shown_as
from memctl.domain.events.command import Kind
from memctl.domain.events.event import Event, Micros
from memctl.domain.events.event_order import shown_at
from memctl.domain.events.facts import quote_hash
from memctl.domain.knowledge.memory import MemoryKind, memory_id
from memctl.domain.language.notes import MemoryNoted, claim_of
from memctl.domain.support import patterns
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.structs import carried_over
from memctl.infra.database import single_row
from memctl.infra.log.erase import PLACED, at_places
from memctl.infra.log.read import read_events
from memctl.projections.insights import insight_id
from memctl.projections.kernel import Projection
from memctl.projections.sessions import Session
from memctl.projections.things import THINGS

R = TypeVar("R")
E = TypeVar("E", EventItem, TimelineItem)

Bucket = Literal["PROFILE", "PREFERENCE", "EPISODIC", "SEMANTIC", "FACT"]

_HEX = patterns.compile(r"[0-9a-f-]+", patterns.I)
_MOST_LIKE_IT = 8
"""Ids that are listed where a prefix is that of several."""


class NotFound(MemctlError):
    """Memory holds nothing under {id!r}."""

    exit_code = 3
    hint = "Ids come from `memctl search --json` and the lists; their first 6 or so characters are enough."
    id: str


class Ambiguous(MemctlError):
    """Several things have an id that begins with {id!r}: {candidates}."""

    exit_code = 2
    hint = "Give a few more characters."
    id: str
    candidates: str


# --- memories ---


@question("/memories", "memory")
def memories(
    reader: Reader,
    places: Places,
    *,
    bucket: Bucket | None = None,
    kind: MemoryKind | None = None,
    since: Micros | None = None,
    before: Micros | None = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[MemoryItem]:
    """Memories, newest first, each with its evidence. Those that a person rejected, that were pruned, or that are
    merged into another are left out. Times in microseconds."""
    p = models.memories
    conditions = Where(p).within(places, or_everywhere=True).equal("bucket", bucket).equal("kind", kind)
    conditions = conditions.between("occurred_at", since, before)
    rows, after = page(reader, p, "occurred_at", conditions, limit=limit, cursor=cursor)
    said = regards(reader, [keyed.key for keyed in rows])
    apart = standings(reader, [keyed.row for keyed in rows])
    remaining = [keyed for keyed in rows if keyed.key not in said or not said[keyed.key].rejected]
    listed = [keyed for keyed in remaining if keyed.key not in apart or apart[keyed.key].listed]
    items = [
        msgspec.structs.replace(
            item,
            pinned=item.id in said and said[item.id].pinned,
            superseded_by=apart[item.id].successor if item.id in apart else "",
            at_odds_with=list(apart[item.id].at_odds) if item.id in apart else [],
        )
        for item in with_evidence(reader, listed, MemoryItem)
    ]
    return Page(items, after, places.scope)


@question("/history", "memory")
def history(
    reader: Reader,
    places: Places,
    *,
    since: Micros | None = None,
    before: Micros | None = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Page[MemoryItem]:
    """The latest turns: what was asked, and what came of it. Newest first."""
    return memories(reader, places, kind="turn", since=since, before=before, limit=limit, cursor=cursor)


@question("/memories/{id}", "memory")
def memory(reader: Reader, id: Id) -> MemoryItem:
    """One memory, by id or by the unambiguous beginning of one. Raises: NotFound, Ambiguous."""
    p = models.memories
    return with_evidence(reader, [_by_prefix(reader, p, id)], MemoryItem)[0]


def memory_of_record(reader: Reader, kind: str, key: str) -> MemoryItem | None:
    """The active memory that was made of a record; None where none was. `kind` as in `thing`."""
    made = _REMEMBERED.get(kind)
    id = memory_id(made, key) if made is not None else ""
    row = one(reader, models.memories, id) if id else None
    return None if row is None else with_evidence(reader, [Keyed(id, row)], MemoryItem)[0]


# --- sessions ---


@question("/sessions", "sessions")
def sessions(
    reader: Reader,
    places: Places,
    *,
    since: Micros | None = None,
    before: Micros | None = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[SessionItem]:
    """Sessions by their last sign of life, newest first."""
    return sessions_by(reader, places, "last_at", SessionFilter(since, before), limit=limit, cursor=cursor)


class SessionFilter(NamedTuple):
    """Which sessions are asked for: those whose last sign of life lies in that time (microseconds), with `text` in the
    title or the first prompt, of an agent with that in its name. None, or no text, asks for nothing."""

    since: int | None = None
    before: int | None = None
    text: str = ""
    agent: str = ""

    def conditions(self, places: Places) -> Where:
        p = models.sessions
        called = sql.SQL("strpos(lower(concat_ws(' ', {}, {})), lower(%s)) > 0").format(
            field_of(p, "title"), field_of(p, "first_prompt")
        )
        found = Where(p).within(places).between("last_at", self.since, self.before).holding("agent", self.agent)
        return found.also(Condition(called, (self.text,))) if self.text else found


def sessions_by(
    reader: Reader, places: Places, order: str, wanted: SessionFilter, *, limit: int, cursor: str | None
) -> Page[SessionItem]:
    """Sessions by a field of their rows that is a whole number, highest first."""
    rows, after = page(reader, models.sessions, order, wanted.conditions(places), limit=limit, cursor=cursor)
    briefs = summaries(reader, [keyed.row for keyed in rows])
    return Page([_session(reader, keyed.key, keyed.row, briefs) for keyed in rows], after, places.scope)


@question("/sessions/{id:path}", "sessions")
def session(reader: Reader, id: Id) -> SessionItem:
    """One session, by its stream (`session/<agent>/<id>`), its id, or the unambiguous beginning of one.

    Raises: NotFound, Ambiguous.
    """
    p = models.sessions
    stream = _only(id, session_streams(reader, id, _MOST_LIKE_IT))
    row = one(reader, p, stream)
    if row is None:
        raise NotFound(id=id)
    working = one(reader, models.working_memory, stream)
    item = _session(reader, stream, row, summaries(reader, [row]))
    state = None if working is None else shown_as(working, WorkingMemoryItem)
    return msgspec.structs.replace(item, working_memory=state)


def session_streams(reader: Reader, wanted: str, limit: int) -> list[str]:
    """Streams of the sessions whose stream or id is `wanted`, else of those whose id begins so."""
    p = models.sessions
    if not wanted or "\0" in wanted:
        return []
    among = Condition(sql.SQL("(key = %s OR starts_with(split_part(key, '/', 3), %s))"), (wanted, wanted))
    query: LiteralString = (
        "SELECT key, key = %s OR split_part(key, '/', 3) = %s FROM {rows} ORDER BY 2 DESC, 1 LIMIT %s"
    )
    found = select(reader, p, query, limit, conditions=[among], before=[wanted, wanted])
    exact = [key for key, is_it in found if is_it]
    return exact or [key for key, _ in found]


def _session(reader: Reader, stream: str, row: Session, briefs: Mapping[str, str]) -> SessionItem:
    return shown_as(
        row,
        SessionItem,
        id=stream,
        project=projects_of(reader).name_of(row.location),
        last_words="" if row.summarized else row.summary,
        summary=briefs.get(stream, ""),
    )


# --- events ---


@question("/events/{id}", "log", live=True)
def event(reader: Reader, id: Id) -> EventItem:
    """One event of the log, by id or by the unambiguous beginning of one, with the payload that stage 1 takes.

    A variant's id leads to its delivery; `variants` counts the payloads that were recorded under its key.
    Raises: NotFound (also for what was erased), Ambiguous.
    """
    delivery = UUID(_only(id, event_ids(reader, id, _MOST_LIKE_IT)))
    row = reader.connection.execute(
        "SELECT coalesce(variant_of, event_id) FROM memctl.events"
        " WHERE position = ANY(ARRAY(SELECT * FROM memctl.positions_of(%s, %s)))",
        [reader.space_id, [delivery]],
    ).fetchone()
    if row is None:
        raise NotFound(id=id)
    found: Event | None = read_events(reader.connection, reader.space_id, [row[0]]).get(row[0])
    limits = limits_of(reader)
    if found is not None and limits is not None and limits.locations.isdisjoint(shown_at(found)):
        raise NotFound(id=id)  # a variant may have been recorded in another place than its delivery
    if found is not None and keeps_to_themselves(reader, found):
        raise NotFound(id=id)
    if found is None:
        raise NotFound(f"what event {id} said was erased", id=id, hint="It stays so; only its place is left.")
    counted = single_row(
        reader.connection,
        "SELECT count(*) FROM memctl.positions_of_versions(%s, %s)",
        [reader.space_id, [row[0]]],
    )
    return event_shown(
        found,
        EventItem,
        delivery_id=str(found.delivery_id),
        variants=counted[0],
        sources=[str(source) for source in found.sources],
    )


def event_shown(event: Event, item: type[E], **more: object) -> E:
    """An event of the log as an answer shows it, with what that shows besides."""
    return carried_over(
        event,
        item,
        id=str(event.event_id),
        occurred_at=known_time(event.occurred_at),
        recorded_at=iso(moment(event.recorded_at)),
        source=origin_of(event),
        payload=msgspec.to_builtins(event.payload),
        **more,
    )


def event_ids(reader: Reader, prefix: str, limit: int) -> list[str]:
    """Ids of events that begin so, variants left out unless the id is whole."""
    digits = prefix.replace("-", "").lower()
    if not _HEX.fullmatch(prefix) or not 1 <= len(digits) <= 32:
        return []
    whole = len(digits) == 32
    limits = limits_of(reader)
    found = reader.connection.execute(
        sql.SQL(
            "SELECT d.event_id FROM memctl.deliveries d JOIN LATERAL (SELECT FROM memctl.events"
            "  WHERE position = d.position AND (variant_of IS NULL OR %(whole)s) AND (%(anywhere)s OR {})) e ON true"
            " WHERE d.space_id = %(space)s AND d.event_id BETWEEN %(first)s AND %(last)s"
            " ORDER BY d.event_id LIMIT %(limit)s"
        ).format(sql.SQL(PLACED)),
        {
            "space": reader.space_id, "first": UUID(digits.ljust(32, "0")), "last": UUID(digits.ljust(32, "f")),
            "whole": whole, "anywhere": limits is None, "limit": limit,
            **at_places(() if limits is None else limits.locations),
        },
    )  # fmt: skip
    return [str(row[0]) for row in found]


# --- one thing, whatever it is ---


@question("/things/{id:path}", "memory")
def thing(reader: Reader, id: Id) -> Thing:
    """A memory, session, episode, bug pattern, claim, code rule, entity or event, by id or its unambiguous beginning.

    Raises: NotFound, Ambiguous.
    """
    wanted = id.strip()
    if not wanted or "\0" in wanted:
        raise NotFound(id=wanted)
    found = [("session", key) for key in session_streams(reader, wanted, _MOST_LIKE_IT)]
    for kind, name in THINGS.items():
        found += [(kind, key) for key in keys_from(reader, projection_named(name), wanted, _MOST_LIKE_IT)]
    found += [("event", key) for key in event_ids(reader, wanted, _MOST_LIKE_IT)]
    exact = [(kind, key) for kind, key in found if key == wanted]
    kind, key = _only_one(wanted, exact or found)
    return Thing(kind, _fields(reader, kind, key))


_TEXTS = ("text", "title", "description", "message", "summary", "name", "variant", "line", "subject")


def called(item: Mapping[str, Json]) -> str:
    """What a thing says that it is, in the most informative of its fields; empty where none does."""
    return next((str(item[name]) for name in _TEXTS if item.get(name)), "")


def id_of(reader: Reader, kind: Kind, wanted: str) -> str:
    """The whole id of a memory, a claim (an insight's id; what is known about a subject means the claim that stands,
    and a record the memory that is made of it), or anything; of a project its anchor.

    Raises: NotFound, Ambiguous, UnknownProject, SeveralProjects.
    """
    wanted = wanted.strip()
    if kind in ("project", "part", "place"):
        known = projects_of(reader)
        return {"project": known.anchor, "part": known.part, "place": known.place}[kind](wanted)
    if kind == "memory":
        try:
            return memory(reader, wanted).id
        except NotFound:  # a record means the memory that is made of it
            found = thing(reader, wanted)
            if found.kind not in _REMEMBERED:
                raise
            return memory_id(_REMEMBERED[found.kind], str(found.item["id"]))
    found = thing(reader, wanted)
    what, key = found.kind, str(found.item["id"])
    if kind == "claim" and what == "event" and found.item["type"] == "memory.noted":
        return _claim_noted(reader, UUID(str(found.item["delivery_id"])))
    if kind == "thing" or what == "insight":
        return key
    if what == "memory":
        source = _row(reader, models.memories, key).source
        if source.projection != "verified_knowledge":
            return key
        what, key = "knowledge", source.key
    if what == "knowledge":
        return _row(reader, models.verified_knowledge, key).claims[0].id
    if what in _REMEMBERED:
        return memory_id(_REMEMBERED[what], key)
    raise NotFound(
        f"{wanted!r} is a {what}, of which nobody can say that it holds",
        id=wanted,
        hint="`memctl insights` and `knowledge` list claims; search lists memories.",
    )


def _claim_noted(reader: Reader, id: UUID) -> str:
    """The id of the claim that a note makes."""
    noted = read_events(reader.connection, reader.space_id, [id])[id]
    assert isinstance(noted.payload, MemoryNoted)
    made = claim_of(noted, noted.payload)
    return insight_id(made.kind, made.canonical, made.polarity, None if made.everywhere else made.location)


def words_of(reader: Reader, claim: str) -> str:
    """The digest of a claim's words; empty of what is no claim."""
    row = one(reader, models.candidates, claim)
    return quote_hash(row.text) if row is not None else ""


def words_of_memory(reader: Reader, id: str) -> str:
    """The digest of a memory's words; empty where there is none of that id."""
    row = one(reader, models.memories, id)
    return quote_hash(row.text) if row is not None else ""


_REMEMBERED: dict[str, MemoryKind] = {
    "episode": "episode",
    "bug": "bug_pattern",
    "strategy": "strategy",
}
"""Records that memories are made of, by the names of things."""


def _fields(reader: Reader, kind: str, key: str) -> dict[str, Json]:
    """A thing as JSON: its fields differ by kind. Raises: NotFound."""
    if kind == "session":
        return _json_of(session(reader, key))
    if kind == "event":
        return _json_of(event(reader, key))
    keyed = Keyed(key, _row(reader, projection_named(THINGS[kind]), key))
    if kind == "knowledge":
        return _json_of(known(reader, [keyed])[0])
    item = quoted_rows(reader, [keyed])[0]
    if kind == "bug":
        item["solutions"] = [shown(solution) for solution in keyed.row.solutions]
        item["memory_id"] = memory_id("bug_pattern", key)
    return item


def _json_of(record: Record) -> dict[str, Json]:
    fields: dict[str, Json] = msgspec.to_builtins(record)
    return fields


def _row(reader: Reader, p: Projection[R], key: str) -> R:
    """The row under that key. Raises: NotFound."""
    row = one(reader, p, key)
    if row is None:
        raise NotFound(id=key)
    return row


def _by_prefix(reader: Reader, p: Projection[R], wanted: str) -> Keyed[R]:
    """The row whose key is `wanted`, else the only one whose key begins so. Raises: NotFound, Ambiguous."""
    exact = one(reader, p, wanted)
    if exact is not None:
        return Keyed(wanted, exact)
    key = _only(wanted, keys_from(reader, p, wanted, _MOST_LIKE_IT))
    return Keyed(key, _row(reader, p, key))


def _only(wanted: str, keys: Sequence[str]) -> str:
    return _only_one(wanted, [("", key) for key in keys])[1]


def _only_one(wanted: str, found: Sequence[tuple[str, str]]) -> tuple[str, str]:
    if not found:
        raise NotFound(id=wanted)
    if len(found) > 1:
        names = [f"{kind} {key}".strip() for kind, key in found[:_MOST_LIKE_IT]]
        raise Ambiguous(id=wanted, candidates=", ".join(names))
    return found[0]
