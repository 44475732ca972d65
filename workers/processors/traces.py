"""What became of each event, as OpenTelemetry traces: from what a hook or client said to the rows that know it.

Watched from outside: a process of its own reads the log behind the folds, and looks where the mark and the offsets
stand. Doors and workers do nothing for it, and where it does not run it costs nothing. Spans hold times, position, type
and stream, and nothing of what was said. Needs the extra `otel`; where spans are sent, and how, is the exporter's own
business (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_RESOURCE_ATTRIBUTES, …).
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection, DatabaseUnavailable, connect, outages
from memctl.infra.log.mark import mark
from memctl.infra.log.migrate import refuse_newer
from memctl.infra.log.spaces import space_id
from memctl.infra.readmodels import generations

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import SpanContext

    from memctl.infra.settings import Settings

log = logging.getLogger("memctl.traces")

EVERY_S = 0.05
"""Between looks: spans are as exact as this."""

AT_ONCE = 500
"""Events that are sent in one request."""

LATE_S = 60.0
"""What was recorded longer after it happened was read from a file: how long that lay there is nobody's delay."""

MOST_LINKS = 16
"""Of what an event rests on."""

MOST_LOOKS = 20_000
"""Looks that are kept while stage 2 is behind: a quarter of an hour. Beyond that, the oldest stand for all before."""

_EVENTS = """SELECT e.position, e.event_id, e.type, e.stream, e.actor,
    (extract(epoch FROM e.occurred_at) * 1000000)::bigint, (extract(epoch FROM e.recorded_at) * 1000000)::bigint,
    e.causation_id, e.correlation_id, coalesce(e.sources[:%(links)s], '{}'),
    ARRAY(SELECT coalesce(s.correlation_id, s.causation_id, cited.id)
          FROM unnest(e.sources[:%(links)s]) WITH ORDINALITY AS cited(id, n)
          LEFT JOIN memctl.events s ON s.space_id = e.space_id AND s.event_id = cited.id ORDER BY cited.n)
    FROM memctl.events e WHERE e.position > %(after)s AND e.position <= %(upto)s AND e.space_id = %(space)s
    ORDER BY e.position LIMIT %(most)s"""
"""The traces of what an event rests on are named as `spans_of` names its own."""


class NoExporter(MemctlError):
    """Traces need the extra `otel`."""

    hint = "pip install '.[otel]' in memctl's checkout"


class Appended(NamedTuple):
    """An event without what was said in it. Times in microseconds; `traces_of_sources` are named as the sources' own
    spans name them, one for each of `sources`."""

    position: int
    event_id: UUID
    type: str
    stream: str
    actor: str
    occurred_at: int
    recorded_at: int
    causation_id: UUID | None = None
    correlation_id: UUID | None = None
    sources: Sequence[UUID] = ()
    traces_of_sources: Sequence[UUID] = ()


class Look(NamedTuple):
    """Up to which position events could be read, and were folded by each stage, at a time in nanoseconds."""

    at: int
    positions: tuple[int, int, int]


STEPS = ("readable", "stage 1", "stage 2")
"""What an event waits for after its append, in order: the mark, facts, read models."""


class Timeline:
    """When each position was passed, as looks show."""

    def __init__(self) -> None:
        self._reached: tuple[deque[tuple[int, int]], ...] = tuple(deque(maxlen=MOST_LOOKS) for _ in STEPS)
        """For each step the positions that it was seen to reach, each with when (ns), ascending."""

    def add(self, look: Look) -> None:
        """Looks come in order of time; what one shows that is not new is left out."""
        for reached, position in zip(self._reached, look.positions, strict=True):
            if not reached or reached[-1][0] < position:
                reached.append((position, look.at))

    def passed(self, position: int) -> tuple[int, ...] | None:
        """When each of `STEPS` had passed a position (ns); None where one has not."""
        found = []
        for reached in self._reached:
            at = next((at for until, at in reached if until >= position), None)
            if at is None:
                return None
            found.append(at)
        return tuple(found)

    def forget(self, position: int) -> None:
        """Nothing at or before a position is asked for any more."""
        for reached in self._reached:
            while reached and reached[0][0] <= position:
                reached.popleft()


def spans_of(event: Appended, passed: Sequence[int], resource: Resource) -> list[ReadableSpan]:
    """The spans of one event: itself, its delivery, and one for each step. Ids are made of the event's, so sending it
    twice adds nothing.

    A trace is named by the correlation id, else by the event that caused it, else by the event; the span of the
    causing event is the parent. What it rests on is linked.
    """
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import Link, SpanKind

    trace = (event.correlation_id or event.causation_id or event.event_id).int
    cause = _context(trace, event.causation_id, "event") if event.causation_id is not None else None
    own = _context(trace, event.event_id, "event")
    recorded = event.recorded_at * 1_000
    began = event.occurred_at * 1_000
    if not 0 <= recorded - began <= LATE_S * 1e9:
        began = recorded
    ended = max(recorded, *passed)
    cited = zip(event.traces_of_sources, event.sources, strict=True)
    links = [Link(_context(of.int, each, "event")) for of, each in cited]
    attributes: dict[str, str | int] = {
        "memctl.position": event.position,
        "memctl.type": event.type,
        "memctl.stream": event.stream,
        "memctl.actor": event.actor,
    }
    spans = [
        ReadableSpan(
            event.type, context=own, parent=cause, resource=resource, attributes=attributes, links=links,
            kind=SpanKind.CONSUMER, start_time=began, end_time=ended,
        ),
        ReadableSpan(
            "delivery", context=_context(trace, event.event_id, "delivery"), parent=own, resource=resource,
            start_time=began, end_time=recorded,
        ),
    ]  # fmt: skip
    since = recorded
    for step, at in zip(STEPS, passed, strict=True):
        until = max(since, at)
        spans.append(
            ReadableSpan(
                step, context=_context(trace, event.event_id, step), parent=own, resource=resource,
                start_time=since, end_time=until,
            )
        )  # fmt: skip
        since = until
    return spans


def _context(trace: int, event: UUID, part: str) -> SpanContext:
    from opentelemetry.trace import SpanContext, TraceFlags

    span = int.from_bytes(hashlib.sha256(event.bytes + part.encode()).digest()[:8])
    return SpanContext(trace, span, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def is_traced(stream: str, share: float) -> bool:
    """Whether a stream is among the share that is traced: whole sessions are, or are not."""
    return int.from_bytes(hashlib.sha256(stream.encode()).digest()[:4]) < share * 2**32


class Follower:
    """Exports every event that is appended from now on, once stage 2 knows it."""

    def __init__(self, connection: Connection, space_id: int, exporter: SpanExporter, share: float = 1.0) -> None:
        from opentelemetry.sdk.resources import Resource

        self._connection = connection
        self._space_id = space_id
        self._exporter = exporter
        self._share = share
        self._resource = Resource.create({"service.name": "memctl"})
        self._timeline = Timeline()
        first = self._look()
        self._exported = first.positions[-1]
        self._timeline.add(first)

    def step(self) -> int:
        """Look once, and export what stage 2 has reached since; returns how many events were exported."""
        look = self._look()
        self._timeline.add(look)
        count = 0
        while self._exported < look.positions[-1]:
            wanted = {"after": self._exported, "upto": look.positions[-1], "space": self._space_id}
            found = self._connection.execute(_EVENTS, {**wanted, "most": AT_ONCE, "links": MOST_LINKS})
            events = [Appended(*row) for row in found]
            self._export(events)
            count += len(events)
            self._exported = events[-1].position if len(events) == AT_ONCE else look.positions[-1]
            self._timeline.forget(self._exported)
        return count

    def _look(self) -> Look:
        live = generations.live(self._connection)
        # Backwards, so that no step is seen to pass what the one before it had not.
        known = int(generations.lowest_offset(self._connection, live.stage2))
        folded = int(generations.lowest_offset(self._connection, live.stage1))
        readable = int(mark(self._connection))
        return Look(time.time_ns(), (readable, folded, known))

    def _export(self, events: Iterable[Appended]) -> None:
        spans: list[ReadableSpan] = []
        for event in events:
            if is_traced(event.stream, self._share) and (passed := self._timeline.passed(event.position)) is not None:
                spans += spans_of(event, passed, self._resource)
        if spans and (why := self._refused(spans)):
            log.warning("%d spans were not taken (%s): traces have a gap, memory has none", len(spans), why)

    def _refused(self, spans: Sequence[ReadableSpan]) -> str:
        """Send spans; returns why they were not taken, empty where they were."""
        from opentelemetry.sdk.trace.export import SpanExportResult

        try:
            ended = self._exporter.export(spans)
        except Exception as why:  # exporters differ in what they do where nobody answers
            return type(why).__name__
        return "" if ended is SpanExportResult.SUCCESS else "refused"


def follow(settings: Settings, share: float, stop: threading.Event) -> None:
    """Export events until `stop` is set, whoever is away meanwhile. Raises: NoExporter, NotRunning, NewerSchema."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError:
        raise NoExporter from None
    exporter = OTLPSpanExporter()
    url, wait_s = settings.require("database_url"), 0.0
    try:
        while not stop.wait(wait_s):
            try:
                with outages(), connect(url, name="memctl traces") as connection:
                    refuse_newer(connection)
                    follower = Follower(connection, space_id(connection, settings.space), exporter, share)
                    while not stop.wait(EVERY_S):
                        follower.step()
            except DatabaseUnavailable as why:
                log.warning("traces have a gap: %s", why)
                wait_s = 2.0
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]
