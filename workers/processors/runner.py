"""Processors: workers with effects. Each finds its work in read models, does it outside of any transaction, and records
the outcome as events, under keys that say what they were made of.

A replay runs none of them: what they did stands in the log. While one is under way they wait.
"""

from __future__ import annotations

import hashlib
import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import cache
from types import MappingProxyType
from typing import Any, Protocol
from uuid import UUID

import msgspec
import psycopg

from memctl.domain.events.event import Micros, NewEvent, Payload
from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection, connect
from memctl.infra.event_writer import EventWriter
from memctl.infra.llm.client import longest_s
from memctl.infra.log import erase
from memctl.infra.log.spaces import at_home, of_every_space
from memctl.infra.readmodels import generations, rebuilds
from memctl.infra.readmodels import processor_work as processing
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.readmodels.generations import Live
from memctl.infra.readmodels.known_projects import known_projects
from memctl.infra.readmodels.processor_work import WorkClaim, WorkLost
from memctl.infra.settings import Settings
from memctl.projections.kernel import Projection, projections
from memctl.projections.memory_rows import Memory
from memctl.workers.watchdog import progress_board as progress

log = logging.getLogger("memctl.processors")

EVERY_S = 60.0
"""Between two looks for work."""

TURN_S = 60.0
"""How long a processor works for one space while others wait for their turn."""

MOST_SOURCES = 2_000
"""Events that an outcome may rest on. It names them all, or what was forgotten would live on in it: whoever makes one
looks at no more."""


class WorkItem(msgspec.Struct, frozen=True):
    """A piece of work: what it is about, a digest of what it is made of, and whatever its processor wants to remember.

    The digest is made of ids and moments, never of texts: it stays in keys when the texts are erased.
    """

    subject: str
    digest: str
    about: Any = None


class Outcome(msgspec.Struct, frozen=True):
    """What a piece of work came to: events to record, and what the next work on the same subject is given.

    `names_all`: the events name all that was looked at, so forgetting anything else meanwhile leaves them true.
    """

    events: Sequence[NewEvent] = ()
    state: dict[str, Any] = {}
    names_all: bool = False


class WorkFailed(Exception):
    """A piece of work failed in a way that may pass. `kind` is a word for it, `events` are recorded all the same.

    `counts`: whether it counts as an attempt; else it is tried again after `pause_s`. That long the processor looks at
    no other work, either: what it lacked, it would lack again.
    """

    def __init__(self, kind: str, events: Sequence[NewEvent] = (), *, counts: bool = True, pause_s: float = 0) -> None:
        super().__init__(kind)
        self.kind, self.events, self.counts, self.pause_s = kind, events, counts, pause_s


class ProcessorContext:
    """What a processor works at: a connection outside of transactions, the live read models, the space, a clock."""

    def __init__(self, connection: Connection, settings: Settings, now: Callable[[], int] | None = None) -> None:
        self.connection = connection
        self.settings = settings
        self.writer = EventWriter(connection, settings)
        self.space_id = self.writer.space_id
        self.now: Callable[[], int] = now or (lambda: time.time_ns() // 1000)
        self.claimed: WorkClaim | None = None
        """What is being worked on."""

    @property
    def live(self) -> Live:
        return generations.live(self.connection)

    @classmethod
    @contextmanager
    def opened(cls, settings: Settings) -> Iterator[ProcessorContext]:
        """One over a connection of its own, for work that somebody waits for."""
        with at_home(settings, "memctl processor") as (connection, there):
            yield cls(connection, there)

    def anchor(self, project: str) -> str:
        """The place by which a project is known. Raises: UnknownProject."""
        return known_projects(self.connection, self.live, self.space_id).one(project).anchor

    @property
    def lease(self) -> timedelta:
        """How long a piece of work is one worker's: a language model's answer may take the most of it."""
        return processing.LEASE + timedelta(seconds=longest_s(self.settings.llm))


class Processor(Protocol):
    """A kind of work. Its name and version are part of what is recorded under which key."""

    name: str
    version: int

    def find(self, context: ProcessorContext) -> Iterable[WorkItem]:
        """Work that may be due, most urgent first; what is done already is passed over."""

    def run(self, context: ProcessorContext, work: WorkItem, attempt: int) -> Outcome:
        """Do it. Raises: WorkFailed."""


def outcome(
    processor: Processor, at: int, payload: Payload, *, stream: str, about: Sequence[str], location: str = "",
    sources: Iterable[UUID] = (), session_id: str = "",
) -> NewEvent:  # fmt: skip
    """An event that a processor records: its key is made of the processor and of the ids that it is `about`."""
    rests_on = tuple(dict.fromkeys(sources))
    if len(rests_on) > MOST_SOURCES:
        raise ValueError(f"an outcome of {processor.name} rests on {len(rests_on)} events")
    return NewEvent(
        stream=stream,
        payload=payload,
        occurred_at=Micros(at),
        dedupe_key=f"processor:{processor.name}@{processor.version}:{digest_of(about)}",
        actor="memctl",
        location=location,
        session_id=session_id,
        sources=rests_on,
    )


def digest_of(parts: Iterable[object]) -> str:
    """32 hex digits for these ids, in this order."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(str(part).encode("utf-8", "surrogatepass"))
        digest.update(b"\0")
    return digest.hexdigest()[:32]


@cache
def model(name: str) -> Projection[Any]:
    """The projection of that name."""
    return next(p for p in projections() if p.name == name)


def scanned(context: ProcessorContext, p: Projection[Any]) -> Iterator[dict[str, Any]]:
    """The rows of a read model of stage 2, of this space, by key, in batches."""
    with context.connection.transaction():
        for rows in readmodels.scan(context.connection, p, context.live.stage2, 2_000):
            yield {key: row for (space, key), row in rows if space == context.space_id}


def memories(context: ProcessorContext) -> Iterator[Memory]:
    """Every memory of this space."""
    for rows in scanned(context, model("memories")):
        yield from rows.values()


def process(
    context: ProcessorContext,
    processor: Processor,
    stop: Callable[[], bool] = lambda: False,
    rest: Callable[[float], None] = lambda _: None,
) -> int:
    """Do what a processor finds, one piece after the other; returns how many events were recorded.

    Nothing is done while the read models are being rebuilt, or something is being forgotten: it would be done on what
    is about to be replaced, or to go. `rest` is called with the number of seconds in which another look
    would find nothing.
    """
    began = erase.now(context.connection)
    if rebuilds.running(context.connection, "replace") or erase.erasing_since(
        context.connection, began, context.space_id
    ):
        return 0
    recorded = 0
    slot, looking = progress.slot(), progress.ThreadWork("processor", processor.name)
    slot.over(looking)
    for work in processor.find(context):
        # What was found may hold what was forgotten since: the next look finds it without.
        if stop() or erase.erasing_since(context.connection, began, context.space_id):
            break
        claimed = processing.claim(
            context.connection, context.space_id, processor.name, work.subject, work.digest, context.lease
        )
        if claimed is None:
            continue
        context.claimed = claimed
        slot.over(progress.ThreadWork("processor", f"{processor.name} {work.subject}"))
        try:
            recorded += _do(context, processor, work, claimed, began)
        except WorkLost as problem:
            log.warning("%s", problem)
        except WorkFailed as problem:
            rest(problem.pause_s)
            break
        finally:
            context.claimed = None
            slot.over(looking)
    slot.idle()
    return recorded


def _do(context: ProcessorContext, processor: Processor, work: WorkItem, claimed: WorkClaim, began: datetime) -> int:
    """Raises: WorkFailed where no work can be done now, and that is noted; WorkLost."""
    connection = context.connection
    try:
        made = processor.run(context, work, claimed.attempt)
    except WorkFailed as problem:
        log.warning("%s failed on %s (%s)", processor.name, work.subject, problem.kind)
        with connection.transaction():
            if problem.counts:
                processing.failed(connection, claimed, problem.kind)
            else:
                processing.later(connection, claimed, problem.kind, timedelta(seconds=problem.pause_s))
            recorded = len(record(context, problem.events))
        if problem.pause_s or not problem.counts:
            raise
        return recorded
    except (psycopg.OperationalError, WorkLost):
        raise
    except Exception as problem:
        # What it was given may be quoted in the message: only the kind of error is kept.
        log.exception("%s could not work on %s", processor.name, work.subject)
        processing.failed(connection, claimed, type(problem).__name__)
        return 0
    try:
        with connection.transaction():
            processing.done(connection, claimed, made.state)
            recorded = len(record(context, made.events))
            # Asked after the append: whoever forgets waits for appends, and then finds this one by what it rests on.
            named = [source for event in made.events for source in event.sources] if made.names_all else None
            if erase.erasing_since(connection, began, context.space_id, named):
                raise WorkFailed("something was forgotten meanwhile", counts=False)
    except WorkFailed as problem:
        processing.later(connection, claimed, problem.kind, timedelta(0))
        raise
    return recorded


def record(context: ProcessorContext, events: Sequence[NewEvent]) -> list[NewEvent]:
    """Redact and append; returns those that were new."""
    if not events:
        return []
    prepared = context.writer.prepare(events).events
    appended = context.writer.append(prepared)
    return [event for event, entry in zip(prepared, appended, strict=True) if entry.status == "new"]


class ProcessorLoop:
    """Lets processors look for work once a minute, space by space and one after the other, until asked to stop."""

    def __init__(
        self,
        settings: Settings,
        processors: Sequence[Processor],
        stop: threading.Event,
        never_ended: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """`never_ended`: how often, by processor, a process before this one had to be ended in the middle of it."""
        self._settings = settings
        self._processors = processors
        self._stop = stop
        self._context: ProcessorContext | None = None
        self._cut_off = False
        """Whether the last look ended because other spaces wait."""
        # By processor, on the monotonic clock.
        self._rests_until = {
            name: time.monotonic() + processing.PAUSES[min(count, len(processing.PAUSES)) - 1].total_seconds()
            for name, count in never_ended.items()
        }
        self._thread = threading.Thread(target=self._run, name="processors", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, within_s: float) -> None:
        """End what it does; work that is not done in time is given back, for this process will not see its end."""
        self._stop.set()
        self._thread.join(within_s)
        claimed = self._context.claimed if self._context is not None else None
        if self._thread.is_alive() and claimed is not None:
            with (
                suppress(MemctlError, psycopg.Error),
                connect(self._settings.require("database_url"), name="memctl processors") as connection,
            ):
                processing.later(connection, claimed, "stopped", timedelta(0))

    def _run(self) -> None:
        pause = EVERY_S
        while not self._stop.wait(pause):
            pause = EVERY_S
            try:
                with connect(self._settings.require("database_url"), name="memctl processors") as connection:
                    spaces = of_every_space(connection, self._settings)
                    for settings in spaces:
                        self._context = context = ProcessorContext(connection, settings)
                        for processor in self._processors:
                            if time.monotonic() >= self._rests_until.get(processor.name, 0.0):
                                self._look(context, processor, TURN_S if len(spaces) > 1 else math.inf)
                                pause = 0.0 if self._cut_off else pause
            except Exception as problem:
                log.warning("processors could not work; they try again in %.0f s: %s", EVERY_S, problem)

    def _look(self, context: ProcessorContext, processor: Processor, within_s: float) -> None:
        until = time.monotonic() + within_s
        self._cut_off = False

        def ends() -> bool:
            self._cut_off = time.monotonic() > until
            return self._cut_off or self._stop.is_set()

        def rest(seconds: float) -> None:
            self._rests_until[processor.name] = time.monotonic() + seconds

        if process(context, processor, ends, rest):
            context.writer.wake()
