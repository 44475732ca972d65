"""Building generations from the log: steps of tasks, each task one transaction, by as many processes as help.

Stage 1 is folded a range of streams at a time. Stage 2 is folded in layers: a read model is folded whole, from all
that goes to it, only when those it reads are whole, so that no row is ever folded twice. Both use the folds that the
workers use, and reach the same rows, because no fold depends on the order or the batches of what it is given.

`python -m memctl.workers.rebuild.build NUMBER LEADER` helps the process LEADER with a rebuild on the database that
MEMCTL_DATABASE_URL names, and dies with it.
"""

import gc
import logging
import os
import signal
import subprocess
import sys
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

import msgspec
import psycopg

from memctl.domain.events.event import Event, Position
from memctl.domain.events.facts import FACT_TYPES, Fact
from memctl.domain.events.skipping import without
from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection, connect
from memctl.infra.log.mark import mark
from memctl.infra.log.reach import Section
from memctl.infra.log.read import first_unknown, scan_streams, stream_sizes
from memctl.infra.readmodels import dead_letters, facts, generations, rebuilds
from memctl.infra.readmodels import fingerprint as rules
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.readmodels.dead_letters import DeadLetter, LeftOut, NoProgress, Target, fault_message
from memctl.infra.readmodels.facts import Route, SourceKey
from memctl.infra.readmodels.rebuilds import Rebuild, RebuildTask
from memctl.infra.readmodels.rows import RowKey
from memctl.projections.kernel import Changed, Projection, Recorded, projections
from memctl.projections.layers import mask_of_part, mask_of_slots, slot_of, steps
from memctl.projections.stream_state import Delta, fold_stream, stored
from memctl.workers.folding import trial
from memctl.workers.folding.dealing import dealt_of
from memctl.workers.folding.poison import CannotFold, as_cannot_fold, fold_whole, is_content_fault, keys_of
from memctl.workers.folding.sources import Register, recorded_sources, row_source
from memctl.workers.rebuild.profile import Profile, cpu_s
from memctl.workers.watchdog import progress_board as progress
from memctl.workers.watchdog.progress_board import ThreadWork

log = logging.getLogger("memctl.replay")

EVENTS = 10_000
"""About how many events a task of stage 1 reads; a stream is never parted."""

SOURCES = 10_000
"""About how many facts and rows a task of stage 2 folds: its rows are held in memory until they are written."""

ROWS_BYTES = 6 << 20
"""About how much, as it lies on disk, the rows take that a task folds: some are as long as two thousand others."""

DEALT = 100_000
"""Events from which on facts are dealt to slots as they are made, so that a task of stage 2 reads its own: with fewer
events there are few tasks of a read model, and each reads all of its facts."""

CHUNK = 5_000
"""Facts or routes written at once."""

SCAN = 1_000
"""Facts or rows read at once, rows of a task that are at hand, and rows written at once where they are as they come."""

POLL_S = 0.01
"""How often a process without a task looks for one, and the leader for what the others did."""


class RebuildStopped(MemctlError):
    """The rebuild stopped, and the live read models are as they were: {why}"""


_TAGS: dict[type[Fact], str] = {cls: tag for tag, cls in FACT_TYPES.items()}


class UnknownReadModel(MemctlError):
    """There is no read model called {name}."""

    exit_code = 2


def known_read_models(names: Sequence[str]) -> tuple[str, ...]:
    """The names, if they are all read models. Raises: UnknownReadModel."""
    known = {p.name for p in projections()}
    for name in names:
        if name not in known:
            raise UnknownReadModel(name=name, hint="one of: " + ", ".join(sorted(known)))
    return tuple(names)


class BuildStep(msgspec.Struct, frozen=True):
    """Tasks that may be done in any order, once all of the step before are done."""

    kind: Literal["streams", "rows", "tables"]
    stage: Literal[1, 2]
    phase: str
    """`events`, `facts` (which the first layer of stage 2 is folded from), a later layer, or `tables`."""
    projections: tuple[Projection[Any], ...] = ()


def steps_of(rebuild: Rebuild) -> list[BuildStep]:
    """What a rebuild consists of: for some read models only as much as they need."""
    wanted = needed(rebuild.read_models)
    made: list[BuildStep] = []
    if rebuild.first_stage == 1:
        made += [BuildStep("streams", 1, "events"), BuildStep("tables", 1, "tables")]
    for n, layer in enumerate(steps()):
        if some := tuple(p for p in layer if p in wanted):
            made.append(BuildStep("rows", 2, "facts" if n == 0 else f"layer {n + 1}", some))
    return [*made, BuildStep("tables", 2, "tables")]


def needed(read_models: Sequence[str] | None) -> tuple[Projection[Any], ...]:
    """These read models (None: all) and those of stage 2 that they read."""
    known = projections()
    if read_models is None:
        return known
    wanted = set(read_models)
    for p in reversed(known):
        if p.name in wanted:
            wanted |= {other.name for other in known if other.row in p.upstream}
    return tuple(p for p in known if p.name in wanted)


class StepProgress(msgspec.Struct):
    """How far the current phase is."""

    what: str = "events"
    done: int = 0
    of: int = 0


class Leader:
    """Leads a rebuild: plans its steps, works at them, and has others help."""

    def __init__(self, url: str, connection: Connection, rebuild: Rebuild, processes: int | None = None) -> None:
        self._url = url
        self._connection = connection
        self._rebuild = rebuild
        self._processes = processes
        self._worker = Worker(connection, rebuild)
        self.led_s = 0.0
        """Processor time that leading took, beside tasks."""

    def build(self) -> Iterator[StepProgress]:
        """Do all tasks, and yield again and again how far it is.

        Can be led again from where it stopped. Raises: RebuildStopped when a task cannot be done.
        """
        connection, rebuild = self._connection, self._rebuild
        began = cpu_s(connection)
        helpers: list[subprocess.Popen[bytes]] = []
        if unknown := first_unknown(connection, rebuild.upto):
            raise RebuildStopped(why=unknown, hint="upgrade memctl, then try again")
        try:
            for number, step in enumerate(steps_of(rebuild)):
                state = rebuilds.step_state(connection, rebuild.id, number)
                if not state.planned:
                    rebuilds.plan(connection, rebuild.id, number, self._tasks(step))
                    state = rebuilds.step_state(connection, rebuild.id, number)
                if not helpers and state.waiting > 1:
                    helpers = self._helpers(state.total)
                while state.waiting:
                    if state.fault is not None:
                        raise RebuildStopped(why=state.fault)
                    if step.phase != "tables":
                        yield StepProgress(step.phase, state.done, state.total)
                    if not self._worker.work():
                        time.sleep(POLL_S)
                    state = rebuilds.step_state(connection, rebuild.id, number)
                if step.phase != "tables":
                    yield StepProgress(step.phase, state.total, state.total)
        finally:
            for helper in helpers:
                helper.kill()
            for helper in helpers:
                helper.wait()
        # What comes now holds leases that others wait for: one that is stopped in it (by Ctrl-Z) is ended again.
        connection.execute("RESET idle_in_transaction_session_timeout")
        with connection.transaction():
            if rebuild.first_stage == 1:
                generations.begin_at(connection, rebuild.stage1, rebuild.upto)
            # Facts may have been changed since as of a position that is passed: see `generations.read_again`.
            now = rebuilds.read(connection, rebuild.id, locked=True)
            generations.begin_at(connection, rebuild.stage2, rebuild.upto if now is None else now.upto)
        self.led_s = cpu_s(connection) - began - self._worker.spent_s

    def profile(self) -> Profile:
        """What its steps took: those of all processes, and what this one alone did to lead them."""
        found, order = Profile(), steps_of(self._rebuild)
        led = found.phase("planning", serial=True)
        for step, spent_s in rebuilds.spent(self._connection, self._rebuild.id):
            found.phase(f"stage {order[step].stage}: {order[step].phase}", serial=False).add(spent_s)
        led.add(self.led_s)
        return found

    def _helpers(self, weight: int) -> list[subprocess.Popen[bytes]]:
        processes = self._processes or min(os.cpu_count() or 1, 8, 1 + weight // (2 * EVENTS))
        command = [sys.executable, "-m", "memctl.workers.rebuild.build", str(self._rebuild.id), str(os.getpid())]
        environment = {**os.environ, "MEMCTL_DATABASE_URL": self._url}
        return [
            subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)  # noqa: S603
            for _ in range(processes - 1)
        ]

    def _tasks(self, step: BuildStep) -> Iterator[RebuildTask]:
        connection, rebuild = self._connection, self._rebuild
        if step.kind == "streams":
            yield from self._ranges()
        elif step.kind == "tables":
            yield from (RebuildTask("table", name) for name in readmodels.tables(step.stage))
        else:
            there = facts.count_facts(connection, rebuild.stage1, rebuild.upto)
            rows = {p.row: p for p in projections(2)}
            for p in step.projections:
                weight = sum(there.get(_TAGS[fact], 0) for fact in p.facts)
                weight += sum(readmodels.count(connection, rows[row], rebuild.stage2) for row in p.upstream)
                parts = max(1, round(weight / SOURCES))
                if not p.one_to_one:  # else they are written as they come
                    read = sum(readmodels.disk_size(connection, rows[row], rebuild.stage2) for row in p.upstream)
                    # A power of two, as slots are: of what is dealt to slots, each part reads its own.
                    parts = 1 << (max(parts, round(read / ROWS_BYTES)) - 1).bit_length()
                yield from (
                    RebuildTask("rows", p.name, part=n, parts=parts, weight=weight // parts) for n in range(parts)
                )

    def _ranges(self) -> Iterator[RebuildTask]:
        """Ranges of streams of about the same weight."""
        with long_reader(self._url) as reader:
            first, last, weight = (0, ""), (0, ""), 0
            for last, events in stream_sizes(reader, self._rebuild.upto):
                weight += events
                if weight >= EVENTS:
                    yield RebuildTask("streams", after=first, to=last, weight=weight)
                    first, weight = last, 0
            if weight:
                yield RebuildTask("streams", after=first, to=last, weight=weight)


class Worker:
    """Works at a rebuild's tasks, one after the other."""

    def __init__(self, connection: Connection, rebuild: Rebuild) -> None:
        self._connection = connection
        self._rebuild = rebuild
        self._by_name = {p.name: p for p in projections()}
        self._register = Register()
        self._slot = progress.slot()
        self._watched = ""
        self.spent_s = 0.0
        """Processor time that tasks took here."""
        # Beside a look at the past a worker folds what comes; for a rebuild all wait.
        self._fold_s = trial.SEARCH_CPU_S if rebuild.purpose == "as_of" else trial.TRIAL_CPU_S
        connection.execute("SET idle_in_transaction_session_timeout = 0")  # a fold takes as long as it takes

    def work(self) -> bool:
        """Do one task; False when there is none to be had now.

        A task that cannot be done is marked with the reason. Raises: psycopg.OperationalError over what is of the
        moment, and the task is free again.
        """
        claimed, began = None, cpu_s(self._connection)
        try:
            with self._connection.transaction():
                claimed = rebuilds.claim(self._connection, self._rebuild.id)
                if claimed is None:
                    return False
                # What is built is made durable when its tables are finished, and by the switch.
                self._connection.execute("SET LOCAL synchronous_commit = off")
                self._watched = f"{self._rebuild.id}/{claimed.step}/{claimed.number}"
                with _uncollected():
                    self._do(claimed.task)
                spent_s = cpu_s(self._connection) - began
                rebuilds.did(self._connection, self._rebuild.id, claimed, spent_s)
                self.spent_s += spent_s
        except Exception as fault:
            # A limit of Postgres's (SQLSTATE class 54) is an OperationalError, too, and would be met again.
            if claimed is None or (isinstance(fault, psycopg.OperationalError) and not is_content_fault(fault)):
                raise
            why = fault_message(self._named(claimed.task, fault))
            log.debug("a task of rebuild %d cannot be done: %s: %s", self._rebuild.id, claimed.task, why)
            rebuilds.could_not(self._connection, self._rebuild.id, claimed.step, claimed.number, why)
        finally:
            self._slot.idle()
        return True

    def _named(self, task: RebuildTask, fault: Exception) -> Exception:
        """The fault, by the event or the source that it is about where what a task folded to could not be stored: then
        all of it is stored once more, one by one, and undone."""
        if is_content_fault(fault) and task.kind != "table":
            try:
                with self._connection.transaction(force_rollback=True):
                    self._do(task, careful=True)
            except CannotFold as named:
                return named
        return fault

    def _do(self, task: RebuildTask, *, careful: bool = False) -> None:
        if task.kind == "streams":
            self._fold_streams(task, careful)
        elif task.kind == "rows":
            self._fold_rows(self._by_name[task.name], task.part, task.parts, careful)
        else:
            stage: Literal[1, 2] = 1 if task.name in readmodels.tables(1) else 2
            generation = self._rebuild.stage1 if stage == 1 else self._rebuild.stage2
            durable = self._rebuild.purpose == "replace"
            readmodels.finish_table(self._connection, stage, generation, task.name, durable=durable)

    # --- stage 1 ---

    def _fold_streams(self, task: RebuildTask, careful: bool) -> None:
        connection, generation, upto = self._connection, self._rebuild.stage1, self._rebuild.upto
        past = self._rebuild.purpose == "as_of"  # which is shown without what was left out since
        live = generations.live(connection).stage1
        endless = {} if past else {(at.space_id, at.key): letter for at, letter in self._endless(live).items()}
        gone = dead_letters.skipped_events(connection, mark(connection)) if past else {}
        deltas: list[tuple[int, str, Delta]] = []
        slots: dict[SourceKey, int | None] = {}
        deals = rebuilds.step_state(connection, self._rebuild.id, 0).total > DEALT
        parked = self._endless(generations.live(connection).stage2)
        unrouted = {(at.space_id, at.source) for at in parked}
        waiting = 0

        def folded(stream: str, space_id: int, events: Sequence[Event]) -> Delta:
            _, delta = fold_stream(stream, events)
            for id, fact in delta.facts.items() if deals else ():
                dealt = None if (space_id, id) in unrouted else dealt_of(self._register, fact)
                slots[space_id, id] = None if dealt is None else mask_of_slots(dealt)
            if careful:
                with connection.transaction(force_rollback=True):
                    _write(connection, generation, upto, [(space_id, stream, delta)], slots)
            return delta

        for (space_id, stream), events in scan_streams(connection, upto, task.after, task.to):
            known = without(events, gone.get((space_id, stream), ()))
            letter = endless.get((space_id, stream))
            if letter is not None and letter.to_be_tried:
                letter = trial.of_stream(letter, known)
            if letter is not None and any(each.event_id == letter.fault.source for each in known):
                dead_letters.park(connection, generation, [letter.fault], letter.attempts)
                known = [each for each in known if each.position < letter.fault.position]
            self._slot.over(
                ThreadWork("task", self._watched, [(space_id, stream)]), trial.stream_s(self._fold_s, len(events))
            )
            delta = fold_whole((space_id, stream), known, partial(folded, stream, space_id))
            deltas.append((space_id, stream, delta))
            waiting += len(events)
            self._slot.idle()
            if waiting >= CHUNK:
                _write(connection, generation, upto, deltas, slots)
                deltas, slots, waiting = [], {}, 0
        _write(connection, generation, upto, deltas, slots)

    def _endless(self, generation: int) -> dict[Target, DeadLetter]:
        """What is parked at a source that its fold does not end with: it stays so, to be tried apart, for nobody else
        shall wait for it. Streams are tried here."""
        letters = dead_letters.parked(self._connection, generation)
        return {letter.target: letter for letter in letters if letter.fault.error == NoProgress.__name__}

    # --- stage 2 ---

    def _fold_rows(self, p: Projection[Any], part: int, parts: int, careful: bool) -> None:
        connection, generation = self._connection, self._rebuild.stage2
        rows = _Rows(p)
        routes: list[tuple[SourceKey, Route]] = []

        def write_rows() -> None:
            found = dict(rows.drain())
            readmodels.copy_rows(connection, p, generation, ((key, "", row) for key, row in found.items()))
            if p.name == readmodels.OUTBOX_OF:
                readmodels.queue_points(connection, generation, found)

        # The past is shown without what was left out since, as it is without what was erased since.
        upto = mark(connection) if self._rebuild.purpose == "as_of" else self._rebuild.upto
        left_out = LeftOut(dead_letters.skips(connection, upto))
        past = self._rebuild.purpose == "as_of"
        endless = {} if past else self._endless(generations.live(connection).stage2)
        waiting: dict[Target, int] = {}
        """Rows and routes that are parked again, and how many sources came for each since."""

        def stays_parked(at: Target, source: SourceKey) -> bool:
            if at not in waiting and (at not in endless or endless[at].fault.source != source[1]):
                return False
            waiting[at] = waiting.get(at, -1) + 1
            return True

        self._slot.over(ThreadWork("task", self._watched), self._fold_s)
        for number, (source, item, upstream) in enumerate(self.sources(p, part, parts)):
            self._slot.pass_to(number)
            key: str | None = None
            try:
                if endless and stays_parked(Target(p.name, source[0], None, source[1]), source):
                    continue
                keys = keys_of(p, source, item, left_out)
                if not p.one_to_one:
                    keys = tuple(k for k in keys if slot_of(k, parts) == part)
                if not keys:
                    continue
                for key in keys:
                    at = (source[0], key)
                    if endless and stays_parked(Target(p.name, *at), source):
                        continue
                    row = p(rows.get(at), item, key)
                    rows.put(at, row)
                    if row is not None:
                        p.check(row)
                    if careful:
                        with connection.transaction(force_rollback=True):
                            facts.copy_routes(connection, generation, [(source, Route((f"{p.name}:{key}",)))])
                            if row is not None:
                                readmodels.copy_rows(connection, p, generation, [(at, "", msgspec.json.encode(row))])
            except Exception as problem:
                raise as_cannot_fold(problem, p, source, key, self._rebuild.upto, upstream) from problem
            targets = tuple(f"{p.name}:{key}" for key in keys)
            routes.append((source, Route(targets, *((None, None) if upstream is None else upstream))))
            if len(routes) >= (SCAN if p.one_to_one else CHUNK):
                facts.copy_routes(connection, generation, routes)
                routes = []
                if p.one_to_one:
                    write_rows()
        facts.copy_routes(connection, generation, routes)
        write_rows()
        # Each part of a projection meets a route that is parked; the first one says so.
        own = [at for at in waiting if at.key is not None or part == 0 or p.one_to_one]
        for target in own:
            fault = msgspec.structs.replace(endless[target].fault, waiting=waiting[target])
            dead_letters.park(connection, generation, [fault], endless[target].attempts)

    def sources(
        self, p: Projection[Any], part: int, parts: int
    ) -> Iterator[tuple[SourceKey, Any, tuple[str, str] | None]]:
        """What a task of stage 2 goes through, in an order that stays: facts, recorded events, and the rows that the
        projection reads, with their name and key."""
        share = (part, parts) if p.one_to_one else (0, 1)
        connection, rebuild = self._connection, self._rebuild
        tags = [_TAGS[fact] for fact in p.facts]
        if tags:
            mask = -1 if p.one_to_one else mask_of_part(part, parts)
            for batch in facts.scan_facts(connection, rebuild.stage1, rebuild.upto, tags, SCAN, share, mask):
                yield from ((key, fact, None) for key, fact in batch)
        if p.recorded:
            for source in recorded_sources(connection, p.recorded, Section(Position(0), rebuild.upto)):
                if isinstance(source.item, Recorded) and source.key[1].int % share[1] == share[0]:
                    yield source.key, source.item, None
        for upstream in (other for other in projections(2) if other.row in p.upstream):
            for rows in readmodels.scan(connection, upstream, rebuild.stage2, SCAN, share):
                for key, row in rows:
                    yield row_source(upstream.name, key), Changed(key[1], row), (upstream.name, key[1])


class _Rows:
    """The rows of a task: the last ones as they are, the others as JSON, which takes a third of the room."""

    def __init__(self, p: Projection[Any]) -> None:
        self._projection = p
        self._rows: OrderedDict[RowKey, Any] = OrderedDict()
        self._encoded: dict[RowKey, bytes] = {}

    def get(self, key: RowKey) -> Any:
        if key in self._rows:
            return self._rows[key]
        stored = self._encoded.pop(key, None)
        return None if stored is None else readmodels.decode_row(self._projection, stored)

    def put(self, key: RowKey, row: Any) -> None:
        self._rows[key] = row
        self._rows.move_to_end(key)
        if len(self._rows) > SCAN:
            self._encode(*self._rows.popitem(last=False))

    def drain(self) -> Iterator[tuple[RowKey, bytes]]:
        """Every row that is there, once."""
        while self._rows:
            self._encode(*self._rows.popitem(last=False))
        while self._encoded:
            yield self._encoded.popitem()

    def _encode(self, key: RowKey, row: Any) -> None:
        if row is not None:
            self._encoded[key] = msgspec.json.encode(row)


def _write(
    connection: Connection,
    generation: int,
    at: Position,
    deltas: Iterable[tuple[int, str, Delta]],
    slots: Mapping[SourceKey, int | None],
) -> None:
    rows: dict[str, list[tuple[RowKey, str, bytes]]] = {p.name: [] for p in projections(1)}
    found = []
    for space_id, stream, delta in deltas:
        found += [(space_id, fact, slots.get((space_id, fact.id))) for fact in delta.facts.values()]
        for (name, key), row in delta.rows.items():
            if row is not None:
                rows[name].append(((space_id, key), stream, stored(row)))
    if found:
        facts.copy_facts(connection, generation, at, found)
    for p in projections(1):
        if rows[p.name]:
            readmodels.copy_rows(connection, p, generation, rows[p.name])


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the cyclic collector, which looks through what a fold made again and again: a fifth of its time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@contextmanager
def long_reader(url: str) -> Iterator[Connection]:
    """A connection in a transaction for one long read, which may be idle for as long as a fold takes."""
    with connect(url, name="memctl replay reader") as reader:
        reader.execute("SET idle_in_transaction_session_timeout = 0")
        with reader.transaction():
            yield reader


def main(rebuild_id: int, leader: int) -> None:
    """Help with a rebuild until it has no more tasks, or its leader is gone."""
    from memctl.infra.embedded.launch import die_with_parent
    from memctl.workers.rebuild import stuck
    from memctl.workers.watchdog import guard

    die_with_parent(signal.SIGKILL, leader)
    before = guard.begin()
    with connect(os.environ["MEMCTL_DATABASE_URL"], name="memctl replay helper") as connection:
        stuck.set_aside(connection, before)
        rebuild = rebuilds.read(connection, rebuild_id)
        if rebuild is None:
            return
        if generations.fingerprints(connection, rebuild.stage1, rebuild.stage2) != {rules.fingerprint()}:
            return  # other code has been installed since the leader began
        worker = Worker(connection, rebuild)
        while True:  # it ends with its guard, and that with the leader
            if not worker.work():
                time.sleep(POLL_S)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
