"""The consolidator: finds memories that say the same, contradict each other or were never needed, and records it.

Nothing is rewritten or removed: search and lists show merged memories as one, and leave out what was pruned, until the
change is taken back. Candidates come from an index over words (`memctl.domain.support.near_duplicates`), so time grows
with the number of memories; of their texts only those are held that may be alike.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import msgspec
from psycopg import sql

from memctl.domain.knowledge.consolidation import (
    MERGEABLE,
    MOST_MERGED,
    STREAM,
    UNIMPORTANT,
    UNSEEN_DAYS,
    Consolidating,
    ContradictionFound,
    Judged,
    Member,
    MemoriesMerged,
    MemoryPruned,
    MemorySuperseded,
    Side,
    judge,
    text_digest,
    too_many,
    touched,
)
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.near_duplicates import bands, features, likely_pairs
from memctl.infra.database import single_row
from memctl.infra.log import erase
from memctl.infra.readmodels import processor_work as processing
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.readmodels.known_projects import known_projects
from memctl.infra.readmodels.processor_work import HeldWork, held_state
from memctl.projections.consolidated import Consolidated
from memctl.projections.memory_feedback import MemoryFeedback
from memctl.projections.memory_rows import Memory
from memctl.workers.processors.runner import (
    Outcome,
    ProcessorContext,
    WorkItem,
    digest_of,
    memories,
    model,
    outcome,
    record,
    scanned,
)
from memctl.workers.watchdog import progress_board as progress

if TYPE_CHECKING:
    import numpy

T = TypeVar("T")

DAY_US = 86_400_000_000

HOUR_US = 3_600_000_000

PART, REST, LONGEST_REST_S, MOST_REST_S = 250, 4.0, 2.0, 180.0
"""A round of a worker rests after so many memories, or pairs of them, so many times as long as they took; so long at a
time, and so long in all: another worker takes the round from who holds it for ten minutes (`processor_work.LEASE`)."""

BATCH = 2_000
"""Memories whose texts are held at once, where those that may be alike are no more."""


class TooManyChanges(MemctlError):
    """{place} waits: consolidation would change {changed:,} of its {of:,} memories at once; all else is recorded."""

    hint = "see `memctl consolidate --preview`; `memctl consolidate --force` does it all the same"
    place: str
    changed: int
    of: int


class Overtaken(MemctlError):
    """Something was forgotten while memories were compared; nothing was recorded."""

    hint = "say the same again; `memctl doctor` shows what was begun to be forgotten"


class ConsolidationStep(msgspec.Struct, frozen=True, kw_only=True):
    """A change that is proposed: what would be recorded, where, on which events it rests, and the titles. `place` is
    its project's anchor."""

    payload: Consolidating
    location: str
    place: str
    sources: tuple[UUID, ...]
    about: tuple[str, ...]
    titles: tuple[str, ...]


class ConsolidationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a round would record, of how many memories by place."""

    memories: dict[str, int]
    changes: tuple[ConsolidationStep, ...]

    @property
    def of(self) -> int:
        return sum(self.memories.values())

    @property
    def changed(self) -> int:
        """Memories that would be shown otherwise than before. (Of a contradiction both sides are shown as before.)"""
        return sum(self._changed(copies=True).values())

    @property
    def held(self) -> list[HeldWork]:
        """Places that would change too much at once, by how much. That copies are shown once, as those in forks of one
        session, is no change that anybody could miss something by."""
        found = [HeldWork(place, changed, self.memories[place]) for place, changed in self._changed().items()]
        return sorted((each for each in found if too_many(each.changed, each.of)), key=lambda h: (-h.changed, h.place))

    @property
    def passed(self) -> tuple[ConsolidationStep, ...]:
        """The changes of all other places."""
        held = {each.place for each in self.held}
        return tuple(change for change in self.changes if change.place not in held)

    def _changed(self, *, copies: bool = False) -> dict[str, int]:
        gone: dict[str, set[str]] = defaultdict(set)
        for change in self.changes:
            match change.payload:
                case MemoriesMerged(keeper=keeper, merged=merged):
                    gone[change.place].update(each.memory for each in merged if copies or each.text != keeper.text)
                case MemoryPruned() | MemorySuperseded() as payload:
                    gone[change.place].add(touched(payload)[0])
        return {place: len(memories) for place, memories in gone.items()}


class Consolidator:
    """Consolidates a space: every so many tasks or hours, by the settings."""

    name, version = processing.CONSOLIDATOR, 1

    def find(self, context: ProcessorContext) -> Iterator[WorkItem]:
        tasks, when = _tasks(context), context.settings.processors
        every_us = when.consolidate_hours * HOUR_US
        before = processing.state_of(context.connection, context.space_id, self.name, processing.ROUND)
        if not before:
            due = tasks > 0
        else:
            due = tasks - before["tasks"] >= when.consolidate_tasks or context.now() - before["at"] >= every_us
        if due:
            yield WorkItem(processing.ROUND, digest_of((tasks, context.now() // every_us)))

    def run(self, context: ProcessorContext, work: WorkItem, attempt: int) -> Outcome:
        found = plan(context, pace=GivesWay())
        state = {"tasks": _tasks(context), "at": context.now(), **held_state(found.held)}
        return Outcome(events(self, context, found.passed), state)


def consolidate(context: ProcessorContext, *, force: bool) -> tuple[ConsolidationPlan, list[Any]]:
    """A round by hand, due or not; without `force`, of all places but `Plan.held`. Raises: Overtaken."""
    began = erase.now(context.connection)
    found = plan(context)
    with context.connection.transaction():
        recorded = list(record(context, events(Consolidator(), context, found.changes if force else found.passed)))
        processing.remember(
            context.connection,
            context.space_id,
            Consolidator.name,
            processing.ROUND,
            held_state([] if force else found.held),
        )
        # Asked after the append, as of work that is found: whoever forgets waits for it.
        if erase.erasing_since(context.connection, began, context.space_id):
            raise Overtaken
    return found, recorded


def events(processor: Consolidator, context: ProcessorContext, changes: Iterable[ConsolidationStep]) -> list[Any]:
    """The events of changes. What is proposed again of the same memories under the same words is the same event."""
    at = context.now()
    return [
        outcome(
            processor, at, change.payload, stream=STREAM, about=change.about, location=change.location,
            sources=change.sources,
        )
        for change in changes
    ]  # fmt: skip


class _Signed(msgspec.Struct, gc=False):
    """What is held of each memory that may be merged."""

    id: str
    group: str
    weight: tuple[float, ...]


Pace = Callable[[Iterable[Any]], Iterable[Any]]
"""Gives on what it is given, as fast as it may be worked through."""


def _at_once(each: Iterable[T]) -> Iterable[T]:
    return each


def plan(context: ProcessorContext, pace: Pace = _at_once) -> ConsolidationPlan:
    """What a round would record now."""
    known = _Known(context)
    signed: list[_Signed] = []
    rows: list[numpy.ndarray] = []
    prunes: list[ConsolidationStep] = []
    counts: Counter[str] = Counter()
    for memory in pace(memories(context)):
        counts[known.place(memory.location)] += 1
        if known.hidden(memory):
            continue
        if known.prunable(memory, context.now()):
            prunes.append(_pruned(memory, known.place(memory.location)))
        elif memory.kind in MERGEABLE and (words := features(memory.text)):
            # What one member says takes no place of what another says, nor of the owner's.
            group = f"{memory.kind}\n{known.place(memory.location)}\n{memory.member}"
            signed.append(_Signed(memory.id, group, known.weight(memory)))
            rows.append(bands(group, words))
    changes: list[ConsolidationStep] = []
    for members, pairs in _batches(rows, pace):
        changes += _judged(context, known, [signed[n] for n in members], pairs, pace)
    injected = _injected_in_sessions(context, [change.about[0] for change in prunes])
    return ConsolidationPlan(
        memories=counts, changes=(*changes, *(each for each in prunes if each.about[0] not in injected))
    )


class GivesWay:
    """The pace of a round beside the folds of its process: after each part of the work it rests several times as long
    as that took, for one interpreter runs both. The guard sees that the round goes on."""

    def __init__(self) -> None:
        self._left_s = MOST_REST_S

    def __call__(self, each: Iterable[T]) -> Iterator[T]:
        slot, worked = progress.slot(), time.thread_time()
        for number, one in enumerate(each):
            if number % PART == 0:
                slot.goes_on()
                rest = min(REST * (time.thread_time() - worked), LONGEST_REST_S, self._left_s)
                self._left_s -= rest
                time.sleep(rest)
                worked = time.thread_time()
            yield one


def _injected_in_sessions(context: ProcessorContext, memories: list[str]) -> frozenset[str]:
    """Those of some memories that were ever injected for an agent. `memory_feedback` learns of it only when the work in
    which they were injected is over, and so does not know yet what was injected today. (An index has
    the recalls alone.)"""
    if not memories:
        return frozenset()
    rows = context.connection.execute(
        "SELECT DISTINCT injected->>'id' FROM memctl.events, jsonb_array_elements("
        " CASE jsonb_typeof(payload->'memories') WHEN 'array' THEN payload->'memories' ELSE '[]' END) AS injected"
        " WHERE space_id = %s AND type = 'memory.recalled' AND payload->'withheld' IS DISTINCT FROM 'true'"
        " AND injected->>'id' = ANY(%s)",
        [context.space_id, memories],
    )
    return frozenset(row[0] for row in rows)


def _judged(
    context: ProcessorContext, known: _Known, members: list[_Signed], pairs: list[tuple[int, int]], pace: Pace
) -> list[ConsolidationStep]:
    keys = [(context.space_id, each.id) for each in members]
    rows: dict[str, Memory] = {
        key: row
        for (_, key), row in readmodels.load(context.connection, model("memories"), known.generation, keys).items()
    }
    # A row that is gone since was folded again: the next round looks at it.
    order = {n: at for at, n in enumerate(n for n, each in enumerate(members) if each.id in rows)}
    sides = [
        Side(
            id=members[n].id, kind=rows[members[n].id].kind, location=members[n].group, text=rows[members[n].id].text,
            last_at=rows[members[n].id].last_at, weight=members[n].weight,
        )
        for n in order
    ]  # fmt: skip
    met = sorted((order[one], order[other]) for one, other in pairs if one in order and other in order)
    changes = (_change(each, rows, known) for each in judge(sides, pace(met), known.apart))
    return [change for change in changes if change is not None]


def _change(found: Judged, rows: dict[str, Memory], known: _Known) -> ConsolidationStep | None:
    """The change that follows; None where the memories have taken in too many to be put together."""
    memories = [rows[side.id] for side in found.sides]
    first, *others = [Member(row.id, text_digest(row.text)) for row in memories]
    payload: Consolidating
    match found.relation:
        case "same":
            together = with_all_they_took_in(others, known.merged_into)
            if not together:
                return None
            memories = [rows[first.memory], *(rows[other.memory] for other, _ in together)]
            merged = [member for other, before in together for member in (other, *before)]
            payload = MemoriesMerged(keeper=first, merged=tuple(merged), alike=found.alike)
        case "newer":
            payload = MemorySuperseded(memory=others[0], by=first, why="the later says it with other numbers")
        case "contrary":
            payload = ContradictionFound(memories=(first, *others), why="one denies what the other says")
    return ConsolidationStep(
        payload=payload,
        location=memories[0].location,
        place=known.place(memories[0].location),
        sources=tuple(dict.fromkeys(span.event for row in memories for span in row.evidence)),
        about=(*(row.id for row in memories), *sorted({str(span.event) for row in memories for span in row.evidence})),
        titles=tuple(row.title for row in memories),
    )


def with_all_they_took_in(
    others: Iterable[Member], merged_into: Callable[[str], Iterable[Member]]
) -> list[tuple[Member, list[Member]]]:
    """Those that one event can merge, each with what it had taken in before, which goes along: reads look one step far.

    The others wait for another round, or stay as they are.
    """
    found: list[tuple[Member, list[Member]]] = []
    room = MOST_MERGED
    for other in others:
        before = list(merged_into(other.memory))
        if len(before) < room:
            found.append((other, before))
            room -= 1 + len(before)
    return found


def _pruned(memory: Memory, place: str) -> ConsolidationStep:
    return ConsolidationStep(
        payload=MemoryPruned(memory=memory.id, last_at=memory.last_at, importance=memory.importance),
        location=memory.location,
        place=place,
        sources=tuple(dict.fromkeys(span.event for span in memory.evidence)),
        about=(memory.id, str(memory.last_at)),
        titles=(memory.title,),
    )


class _Known:
    """What is known beside the memories themselves: projects, what people said, and what was recorded before."""

    def __init__(self, context: ProcessorContext) -> None:
        connection, live = context.connection, context.live
        self.generation = live.stage2
        projects = known_projects(connection, live, context.space_id)

        @cache
        def place(location: str) -> str:
            project = projects.holding(location) if location else None
            return project.anchor if project is not None else location

        self.place = place
        self._regard: dict[str, MemoryFeedback] = {}
        for said in scanned(context, model("memory_feedback")):
            self._regard.update(said)
        self._recorded: dict[str, Consolidated] = {}
        for rows in scanned(context, model("consolidated")):
            self._recorded.update(rows)

    def hidden(self, memory: Memory) -> bool:
        """Whether it was merged, pruned or superseded, or a person rejected it: it takes no part any more."""
        said = self._regard.get(memory.id)
        if said is not None and said.rejected:
            return True
        row = self._recorded.get(memory.id)
        return row is not None and row.hides(memory.id, text_digest(memory.text), memory.last_at)

    def prunable(self, memory: Memory, now: int) -> bool:
        return (
            memory.importance <= UNIMPORTANT
            and memory.kind in MERGEABLE
            and now - memory.last_at > UNSEEN_DAYS * DAY_US
            and memory.id not in self._regard
            and not any(change.kind == "pruned" for change in self._changes(memory.id))
        )

    def weight(self, memory: Memory) -> tuple[float, ...]:
        """Which of several is kept: what people pinned or confirmed, then what was verified, matters, has evidence."""
        said = self._regard.get(memory.id)
        return (
            float(said is not None and (said.pinned or said.confirmed)),
            float(memory.status == "verified"),
            memory.importance,
            float(len(memory.sessions)),
            float(len(memory.evidence)),
        )

    def apart(self, one: Side, other: Side) -> bool:
        """Whether two memories are not to be put together: people speak for both, or it was done before (and stands, or
        was taken back)."""
        if one.weight[0] and other.weight[0]:
            return True
        return any({one.id, other.id} <= {party.memory for party in change.parties} for change in self._changes(one.id))

    def merged_into(self, memory: str) -> Iterator[Member]:
        """What a memory has taken in before."""
        row = self._recorded.get(memory)
        for change in row.standing if row is not None else ():
            if change.role_of(memory) == "keeper":
                yield from (Member(party.memory, party.text) for party in change.parties[1:])

    def _changes(self, memory: str) -> Iterable[Any]:
        row = self._recorded.get(memory)
        return row.changes if row is not None else ()


def _batches(rows: list[numpy.ndarray], pace: Pace) -> Iterator[tuple[list[int], list[tuple[int, int]]]]:
    """Memories that may be alike, in batches that share no pair: their numbers, and pairs of places in that list."""
    import numpy

    if len(rows) < 2:
        return
    parent = list(range(len(rows)))

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    signatures = numpy.stack(rows)
    rows.clear()
    pairs = list(pace(likely_pairs(signatures)))
    for one, other in pairs:
        parent[root(other)] = root(one)
    together: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for pair in pairs:
        together[root(pair[0])].append(pair)
    batch: list[tuple[int, int]] = []
    members: set[int] = set()
    for group in together.values():
        batch += group
        members.update(number for pair in group for number in pair)
        if len(members) >= BATCH:
            yield _placed(members, batch)
            batch, members = [], set()
    if batch:
        yield _placed(members, batch)


def _placed(members: set[int], pairs: list[tuple[int, int]]) -> tuple[list[int], list[tuple[int, int]]]:
    order = sorted(members)
    at = {number: place for place, number in enumerate(order)}
    return order, [(at[one], at[other]) for one, other in pairs]


def _tasks(context: ProcessorContext) -> int:
    """Episodes that memory holds."""
    p = model("memories")
    row = single_row(
        context.connection,
        sql.SQL("SELECT count(*) FROM {} WHERE space_id = %s AND {} = 'episode'").format(
            sql.SQL(readmodels.table(p.name, context.live.stage2)), sql.SQL(readmodels.expression(p, "kind"))
        ),
        [context.space_id],
    )
    return int(row[0])
