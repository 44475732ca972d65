"""What is done about work that made no progress: it is set aside as a dead letter, for it would hold up all else again.

The process that was at it is gone (see `memctl.workers.watchdog.guard`), and the next one comes here before it folds
anything. A stream or row stands as it was; it is tried apart, with more time (`try_apart`), and folded if it ends. Else
the letter names the event or source that it does not end with. A rebuild ends, and names it likewise.
"""

import logging
import os
import time
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, get_args
from uuid import UUID

from memctl.domain.events.event import Position
from memctl.domain.events.skipping import remaining
from memctl.infra.database import Connection, DatabaseUnavailable, connect, single_row
from memctl.infra.embedders import EmbedderFailed, Embedders
from memctl.infra.log.read import StreamKey, read_streams, stream_lengths
from memctl.infra.readmodels import dead_letters, generations, rebuilds
from memctl.infra.readmodels import processor_work as processing
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.readmodels.dead_letters import DeadLetter, Fault, NoProgress, Target, fault_message
from memctl.infra.readmodels.generations import LeaseHeld
from memctl.infra.readmodels.rebuilds import Purpose
from memctl.infra.vectors import models as vector_models
from memctl.infra.vectors import outbox
from memctl.projections import layers
from memctl.projections.kernel import projections
from memctl.workers.folding.drain import OtherRules, owner_of
from memctl.workers.folding.poison import CannotFold, fault_of
from memctl.workers.folding.refold import refold
from memctl.workers.folding.stage1 import APART
from memctl.workers.folding.trial import TRIAL_CPU_S, endless_event, tried
from memctl.workers.rebuild.build import RebuildStopped, Worker
from memctl.workers.watchdog import guard
from memctl.workers.watchdog import progress_board as progress
from memctl.workers.watchdog.guard import EarlierProcesses, Stuck

log = logging.getLogger("memctl.worker")

UNKNOWN = UUID(int=0)
"""Stands for the source of a row's letter until it has been tried apart."""

_LEASE_S = 5.0
"""How long to wait for the lease of what is set aside: whoever holds it will find it out by itself."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 600.0
"""How long points wait after a crash at first (twice that), and at most."""

MOST_COUNTED = 1_000_000
"""Events of a stream that are counted to know which is short."""

LEFT_FOR_S = 60.0
"""How long what is folded beside others is left to who does that."""

TRY_FOR_S, LOOK_EVERY_S = 60.0, 0.5
"""How long those that were set aside are waited for, until all that came with them has been read."""


def watched(database_url: str) -> None:
    """Have the rebuild that this process is about to lead watched. To be called before there are threads or
    connections. Raises: RebuildStopped where it has made no progress, unless the next one to lead it finds that out."""
    before = guard.begin()
    if not before.fresh:
        return
    with connect(database_url, name="memctl replay") as connection:
        set_aside(connection, before)
        tasks = [each.work.name for each in before.fresh if each.work.kind == "task"]
        for id, step, _ in (map(int, name.split("/")) for name in tasks):
            rebuild, state = rebuilds.read(connection, id), rebuilds.step_state(connection, id, step)
            if rebuild is not None and rebuild.purpose != "replace" and state.fault is not None:
                rebuilds.end(connection, id, "failed", state.fault)
                raise RebuildStopped(why=state.fault)


def set_aside(connection: Connection, before: EarlierProcesses) -> None:
    """Park, in the live generations, what processes before this one could not end; a rebuild that was at it fails. The
    leases that the last of them held are free."""
    if before.pid:
        generations.release_all(connection, owner_of(before.pid))
    for each in before.fresh:
        live = generations.live(connection)
        fault = _fault(connection, each)
        if each.work.kind == "processor":
            processor, _, subject = each.work.name.partition(" ")
            processing.never_ended(connection, processor, subject, each.why)
        elif each.work.kind == "task":
            _end_task(connection, each)
        elif fault is not None and each.work.generation not in (live.stage1, live.stage2):
            _end_rebuild(connection, each.work.generation, fault)
        elif fault is not None:
            _park(connection, each.work.generation, fault)
        elif each.work.kind in ("stage 1", "stage 2"):
            why = f"no progress at {each.place}, and no stream or row is known to be at fault"
            dead_letters.halt(connection, each.work.generation, int(each.work.name), NoProgress.__name__, why)
    progress.dealt_with()


def streams(before: EarlierProcesses) -> set[StreamKey]:
    """The streams at whose folds processes before this one were ended: they take long, and may end."""
    pieces: list[Any] = [each.work.piece(each.piece) for each in before.stuck if each.work.kind == "stream"]
    return {(int(piece[0]), str(piece[1])) for piece in pieces if piece is not None}


def leave_to_words(connection: Connection, before: EarlierProcesses, embedders: Embedders) -> None:
    """Try each text apart with which the embedder ended the process before this one. One that ends its process again
    gets no vector: it is found by its words. To be called before there are threads, for it forks."""
    models = {each.name: each for each in vector_models.models(connection).written}
    for each in before.fresh:
        model = models.get(each.work.name) if each.work.kind == "texts" else None
        embedder = embedders.load(model.recipe) if model is not None else None
        if embedder is None:
            continue
        generation = generations.live(connection).stage2
        keys = [(int(space_id), str(key)) for space_id, key in each.work.pieces]
        for key, row in readmodels.load(connection, outbox.points(), generation, keys).items():
            try:
                tried(partial(embedder.embed_passages, [row.dense_text]), TRIAL_CPU_S)
            except NoProgress:
                outbox.remember(connection, generation, [key], embedder.name, {row.dense_hash: b""})
                log.error("memory %s is found by its words alone: its text ends the embedder's process", key[1])
            except EmbedderFailed as problem:
                log.warning("a text could not be tried: %s", problem)


def pause_of_points(before: EarlierProcesses) -> float:
    """Seconds for which no point is written to the vector store, where processes before this one crashed as they wrote
    some: folds go on meanwhile, and searches by the rows that there are."""
    crashed = sum(bool(each.crash) and each.work.kind == "points" for each in before.stuck)
    return min(FIRST_PAUSE_S * 2**crashed, LONGEST_PAUSE_S) if crashed else 0.0


def _park(connection: Connection, generation: int, fault: Fault) -> None:
    target, of = fault.target, generations.shards(connection, generation)
    shard = generations.shard_of(target.key or "", of)
    if target.projection:
        shard = layers.shard_of(target.projection, str(target.source) if target.key is None else target.key, of)
    lease = None
    with suppress(LeaseHeld):
        lease = generations.take(connection, generation, shard, f"{owner_of(os.getpid())}aside", _LEASE_S)
    with connection.transaction():
        # One that was folded beside others was never tried: its new letter is a first one, too.
        waiting = [each for each in dead_letters.parked_at(connection, generation, [fault.target]) if each.to_be_tried]
        dead_letters.settle(connection, [each.id for each in waiting])
        dead_letters.park(connection, generation, [fault])
    if lease is not None:
        generations.release(connection, lease)
    log.error("what made no progress at %s is set aside; `memctl dlq list` names it", fault.place)


def _fault(connection: Connection, stuck: Stuck) -> Fault | None:
    """The fault as far as it is known before it is tried apart; None where nothing is known to be at fault."""
    work, place, end = stuck.work, stuck.place, Position(stuck.work.end)
    piece: Any = work.piece(stuck.piece)
    if piece is None:
        return None
    error = NoProgress.__name__
    if work.kind == "stream":
        key, position = (piece[0], piece[1]), Position(piece[2])
        events = read_streams(connection, [key], end, {key: Position(position - 1)})[key]
        if not events:
            return None
        first = events[0]
        return Fault(
            Target("", *key), first.event_id, first.position, error, place
        )  # what waits is counted as it is read
    if work.kind == "row":
        return Fault(Target(work.name, piece[0], piece[1]), UNKNOWN, end, error, place)
    if work.kind == "source":
        source = UUID(piece[1])
        target = Target(projections(2)[stuck.piece % work.steps].name, piece[0], None, source)
        return Fault(target, source, end, error, place)
    if work.kind == "upstream":
        name, _, upstream = work.name.partition(":")
        source = UUID(piece[2][1])
        return Fault(Target(name, piece[0], None, source), source, end, error, place, 0, upstream, piece[1])
    return None


def _end_task(connection: Connection, stuck: Stuck) -> None:
    """Note with the task that it cannot be done, for what its fold does not end with: then its rebuild fails."""
    id, step, number = map(int, stuck.work.name.split("/"))
    rebuild, task = rebuilds.read(connection, id), rebuilds.task(connection, id, step, number)
    if rebuild is None or task is None:
        return
    why = f"a fold made no progress at {stuck.place}"
    if stuck.work.pieces:
        space_id, stream = stuck.work.pieces[0]
        why = f"{Target('', space_id, stream)} made no progress at {stuck.place}"
        if rebuild.purpose != "as_of":  # beside which others go on, who would have to wait for this
            events = remaining(read_streams(connection, [(space_id, stream)], rebuild.upto)[space_id, stream])
            with suppress(AssertionError):
                why = fault_message(CannotFold(endless_event((space_id, stream), events)))
    elif task.kind == "rows":
        p = next(p for p in projections(2) if p.name == task.name)
        sources = Worker(connection, rebuild).sources(p, task.part, task.parts)
        for source, _, upstream in islice(sources, stuck.piece, stuck.piece + 1):
            target = Target(p.name, source[0], None, source[1])
            problem = NoProgress(stuck.seconds, stuck.place)
            why = fault_message(CannotFold(fault_of(target, source, rebuild.upto, problem, upstream)))
    rebuilds.could_not(connection, id, step, number, why)


def _end_rebuild(connection: Connection, generation: int, fault: Fault) -> None:
    """End the rebuild that was bringing this generation up to the end of the log."""
    for purpose in get_args(Purpose):
        for each in rebuilds.running(connection, purpose):
            if generation in (each.stage1, each.stage2):
                rebuilds.end(connection, each.id, "failed", fault_message(CannotFold(fault)))


def try_apart(database_url: str) -> None:
    """Try what was set aside and was never tried since, each once, when the workers have read past it."""
    deadline = time.monotonic() + TRY_FOR_S
    while time.monotonic() < deadline:
        with suppress(DatabaseUnavailable, LeaseHeld), connect(database_url, name="memctl trial") as connection:
            if not _try(connection):
                return
        time.sleep(LOOK_EVERY_S)


def _length(connection: Connection, letter: DeadLetter) -> int:
    """How much its trial goes through: what is short comes first, for a long one may take minutes."""
    key = (letter.target.space_id, letter.target.key or "")
    if letter.target.projection:
        return letter.fault.waiting
    return stream_lengths(connection, [key], Position(2**63 - 1), MOST_COUNTED)[key]


def _try(connection: Connection) -> bool:
    """Whether there is one left to be tried, later. What is folded beside others is left to who does that, for a
    while."""
    live = generations.live(connection)
    found = [letter for letter in dead_letters.parked(connection, live.stage1, live.stage2) if letter.to_be_tried]
    before = single_row(connection, "SELECT clock_timestamp() - make_interval(secs => %s)", [LEFT_FOR_S])[0]
    letters = [letter for letter in found if letter.fault.place != APART or letter.parked_at < before]
    read = {generation: generations.offset_of(connection, generation) for generation in (live.stage1, live.stage2)}
    for letter in sorted(letters, key=partial(_length, connection)):
        if letter.fault.position <= read[letter.generation].of(letter.target.space_id):
            with suppress(OtherRules):
                refold(connection, letters=[letter], follows=True)
    return bool(letters)
