"""Traces of a real log, as it is folded."""

from __future__ import annotations

import pytest
from events import observed

from memctl.domain.observations import PromptSubmitted
from memctl.infra import generations
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append
from memctl.workers.drain import Drainer, catch_up
from memctl.workers.traces import STEPS, Follower

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


def test_each_event_is_told_once_when_every_read_model_has_it(database_url: str, log: Connection) -> None:
    generations.ensure_live(log, 1)
    append(log, 1, [observed(PromptSubmitted(line="p0", text="before anybody looked"), session="s1", at=1)])
    drainer, exporter = Drainer(database_url), InMemorySpanExporter()
    catch_up(drainer)
    with connect(database_url) as connection:
        follower = Follower(connection, 1, exporter)
        assert follower.step() == 0
        said = [observed(PromptSubmitted(line=f"p{n}", text="a secret plan"), session="s1", at=n) for n in (2, 3)]
        positions = [entry.position for entry in append(log, 1, said)]
        assert follower.step() == 0  # nothing knows them yet
        catch_up(drainer)
        assert follower.step() == 2
        assert follower.step() == 0
    drainer.close()
    spans = exporter.get_finished_spans()
    assert len(spans) == 2 * (len(STEPS) + 2)
    assert [s.attributes["memctl.position"] for s in spans if s.attributes] == positions
    assert all(span.end_time >= span.start_time for span in spans if span.start_time and span.end_time)
    assert "secret" not in "".join(span.to_json() for span in spans)
