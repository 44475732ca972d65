"""Traces of a real log, as it is folded."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from uuid import UUID, uuid4

import msgspec
import pytest
from draining import catch_up
from events import id_of, prompt

from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append
from memctl.infra.readmodels import generations
from memctl.workers.folding.drain import Drainer
from memctl.workers.processors.traces import MOST_LINKS, STEPS, Follower

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


@pytest.fixture
def drainer(database_url: str, log: Connection) -> Iterator[Drainer]:
    generations.ensure_live(log, 1)
    drainer = Drainer(database_url)
    yield drainer
    drainer.close()


@pytest.fixture
def beside(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as connection:
        yield connection


def test_each_event_is_told_once_when_every_read_model_has_it(
    log: Connection, beside: Connection, drainer: Drainer
) -> None:
    append(log, 1, [prompt(1, "before anybody looked")])
    catch_up(drainer)
    exporter = InMemorySpanExporter()
    follower = Follower(beside, 1, exporter)
    assert follower.step() == 0
    positions = [entry.position for entry in append(log, 1, [prompt(n, "a secret plan") for n in (2, 3)])]
    assert follower.step() == 0  # nothing knows them yet
    catch_up(drainer)
    assert follower.step() == 2
    assert follower.step() == 0
    spans = exporter.get_finished_spans()
    assert len(spans) == 2 * (len(STEPS) + 2)
    assert [s.attributes["memctl.position"] for s in spans if s.attributes] == positions
    assert all(span.end_time >= span.start_time for span in spans if span.start_time and span.end_time)
    assert "secret" not in "".join(span.to_json() for span in spans)


def test_what_an_event_rests_on_is_linked_where_its_own_trace_has_it(
    log: Connection, beside: Connection, drainer: Drainer
) -> None:
    exporter = InMemorySpanExporter()
    follower = Follower(beside, 1, exporter)
    correlated = msgspec.structs.replace(prompt(1), correlation_id=uuid4())
    caused = msgspec.structs.replace(prompt(2), causation_id=uuid4())
    cited = [*(UUID(id_of(each)) for each in (correlated, caused, prompt(3))), *(uuid4() for _ in range(MOST_LINKS))]
    append(log, 1, [correlated, caused, prompt(3), msgspec.structs.replace(prompt(4), sources=tuple(cited))])
    catch_up(drainer)
    assert follower.step() == 4
    events = [span for span in exporter.get_finished_spans() if span.attributes]
    *rested_on, cites = events
    links = [link.context for link in cites.links]
    assert links[:3] == [span.context for span in rested_on]
    assert [link.trace_id for link in links[3:]] == [each.int for each in cited[3:MOST_LINKS]]


class Unreachable(SpanExporter):
    """Raises, as OTLP's does in some versions where nobody listens."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        raise ConnectionError("nobody listens")


def test_who_does_not_listen_has_a_gap_and_ends_nothing(
    log: Connection, beside: Connection, drainer: Drainer, caplog: pytest.LogCaptureFixture
) -> None:
    follower = Follower(beside, 1, Unreachable())
    append(log, 1, [prompt(1)])
    catch_up(drainer)
    assert follower.step() == 1
    assert "5 spans were not taken (ConnectionError)" in caplog.text


def test_a_receiver_of_otlp_gets_what_was_sent(log: Connection, beside: Connection, drainer: Drainer) -> None:
    received = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/v1/traces":
                received.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        exporter = OTLPSpanExporter(f"http://127.0.0.1:{server.server_port}/v1/traces")
        follower = Follower(beside, 1, exporter)
        append(log, 1, [prompt(1)])
        catch_up(drainer)
        follower.step()
        exporter.shutdown()
        server.shutdown()
        thread.join()
    (request,) = received
    (of_memctl,) = request.resource_spans
    named = {a.key: a.value.string_value for a in of_memctl.resource.attributes}
    assert named["service.name"] == "memctl"
    sent = [span for scope in of_memctl.scope_spans for span in scope.spans]
    assert [span.name for span in sent] == ["prompt.submitted", "delivery", *STEPS]
    assert {span.trace_id for span in sent} == {UUID(id_of(prompt(1))).bytes}
    assert {span.parent_span_id for span in sent[1:]} == {sent[0].span_id}
