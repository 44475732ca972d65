"""What /metrics says is what Prometheus reads, and names what METRICS names."""

from __future__ import annotations

import re
from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.api.http.metrics import (
    BOUNDS,
    METRICS,
    Sample,
    Timed,
    Timings,
    exposition,
    of_backups,
    of_language_models,
    of_worth,
)
from memctl.api.queries.endings import ENDINGS
from memctl.api.queries.stats import measures
from memctl.api.reading.caller import OWNER
from memctl.api.reading.counts import Use
from memctl.infra.backup.copies import KeptBackups
from memctl.infra.llm.budget import Spent
from memctl.infra.settings_model import Llm
from memctl.projections.stats import DayStats

_LINE = re.compile(r'[a-z_]+(\{[a-z]+="[^"\n]*"(,[a-z]+="[^"\n]*")*\})? (\d+(\.\d+)?(e[+-]\d+)?|\+Inf)\Z')


def test_every_line_is_a_comment_or_a_sample() -> None:
    timings = Timings()
    timings.took(0.2, "default", "GET", "/v1/search", "2xx")
    told = exposition([Sample("shard_lag", 3, ("1", "0")), Sample("log_mark_age_seconds", 0.25, ("lab",))], timings)
    lines = told.splitlines()
    assert 'memctl_shard_lag{stage="1",shard="0"} 3' in lines
    assert 'memctl_log_mark_age_seconds{space="lab"} 0.25' in lines
    for line in lines:
        assert line.startswith("# ") or _LINE.match(line), line


def test_what_language_models_may_take_is_told_beside_what_they_took() -> None:
    spent = Spent(daily_tokens=900, monthly_tokens=5_000, daily_usd=Decimal("0.25"), monthly_usd=Decimal("1.5"))
    allowed = Llm(daily_usd=1, monthly_usd=10, daily_tokens=1_000, monthly_tokens=20_000)
    lines = exposition(of_language_models(spent, allowed), Timings()).splitlines()
    assert {line for line in lines if line.startswith("memctl_llm")} == {
        'memctl_llm_spent_usd{period="daily"} 0.25',
        'memctl_llm_spent_usd{period="monthly"} 1.5',
        'memctl_llm_spent_tokens{period="daily"} 900',
        'memctl_llm_spent_tokens{period="monthly"} 5000',
        'memctl_llm_allowed_usd{period="daily"} 1',
        'memctl_llm_allowed_usd{period="monthly"} 10',
        'memctl_llm_allowed_tokens{period="daily"} 1000',
        'memctl_llm_allowed_tokens{period="monthly"} 20000',
    }


def test_a_backup_is_told_by_its_age_and_how_often_one_is_made() -> None:
    now = datetime(2026, 3, 2, 9, tzinfo=UTC)
    made = KeptBackups(Path("backups"), 1, 10, now - timedelta(hours=3), timedelta(days=1))
    assert of_backups(made, now) == [("backup_age_seconds", 10800.0, ()), ("backup_interval_seconds", 86400.0, ())]
    assert of_backups(KeptBackups(Path("backups"), 0, 0, None, None), now) == [("backup_interval_seconds", 0, ())]


def test_help_is_told_by_what_was_told_and_how_the_work_went() -> None:
    totals = dict.fromkeys((*DayStats.__struct_fields__, *ENDINGS), 0)
    totals |= {"episodes_with_memory": 3, "episodes_with_memory_succeeded": 2}
    totals |= {"errors_resolved": 4, "resolutions_refuted": 5}
    uses = [
        Use(kind="strategy", recalls=5, followed=4, worth=2.5, ratings=2, helpful=1),
        Use(kind="turn", recalls=3, followed=2, worth=0.0),
        Use(kind="", ratings=1),
    ]
    samples = [Sample(each.name, each.value, ("lab", *each.labels)) for each in of_worth(totals, uses)]
    lines = set(exposition(samples, Timings()).splitlines())
    assert lines >= {
        'memctl_episodes{space="lab",memory="with_memory",outcome="success"} 2',
        'memctl_episodes{space="lab",memory="with_memory",outcome="other"} 1',
        'memctl_fixes{space="lab",held="yes"} 0',
        'memctl_fixes{space="lab",held="no"} 4',
        'memctl_recalls{space="lab",kind="strategy"} 5',
        'memctl_recalls_followed{space="lab",kind="strategy"} 4',
        'memctl_recalls_worth{space="lab",kind="strategy"} 2.5',
        'memctl_ratings{space="lab",kind="strategy",helpful="yes"} 1',
        'memctl_ratings{space="lab",kind="other",helpful="no"} 1',
    }
    told = measures(totals, uses)
    assert told["success_with_memory"] == 0.6667
    assert told["success_without_memory"] is None
    assert told["pattern_accuracy"] == 0.0
    assert told["recalls"] == 8
    assert told["recalls_useful"] == round(3.5 / 9, 4)
    assert told["guidance_helpful"] == told["strategies_useful"] == round(3.5 / 6, 4)
    assert told["rated_helpful"] == round(1 / 3, 4)


def test_a_sample_that_no_metric_names_is_refused() -> None:
    with pytest.raises(AssertionError, match="made_up"):
        exposition([Sample("made_up", 1)], Timings())


def test_names_and_kinds_are_prometheus_own() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert re.fullmatch(r"[a-z][a-z_]+", metric.name)
        assert metric.meaning.endswith(".")


@given(st.lists(st.floats(0, 20), max_size=40))
def test_a_histogram_counts_each_answer_in_every_bucket_that_holds_it(seconds: list[float]) -> None:
    timings = Timings()
    for each in seconds:
        timings.took(each, "default", "GET", "/v1/stats", "2xx")
    (metric,) = [metric for metric in METRICS if metric.kind == "histogram"]
    lines = list(timings.lines(metric))
    if not seconds:
        assert lines == []
        return
    buckets = [int(line.rsplit(" ", 1)[1]) for line in lines if "_bucket{" in line]
    assert buckets == [sum(each <= bound for each in seconds) for bound in BOUNDS] + [len(seconds)]
    assert lines[-1].endswith(f" {len(seconds)}")
    assert float(lines[-2].rsplit(" ", 1)[1]) == pytest.approx(sum(seconds), abs=1e-5)


@given(st.lists(st.floats(0, 9.9), min_size=1, max_size=60))
def test_what_half_and_nearly_all_took_lies_between_the_bounds_that_hold_it(seconds: list[float]) -> None:
    timings = Timings()
    for number, each in enumerate(seconds):
        timings.took(each, "default", "GET", "/v1/search", ("2xx", "4xx")[number % 2])
    (took,) = timings.by_route()
    assert (took.method, took.route, took.answers) == ("GET", "/v1/search", len(seconds))
    for share, told in ((0.5, took.p50), (0.95, took.p95)):
        at = bisect_left(BOUNDS, sorted(seconds)[ceil(share * len(seconds)) - 1])
        assert (0.0, *BOUNDS)[at] <= told <= (*BOUNDS, BOUNDS[-1])[at]


@pytest.mark.anyio
async def test_a_request_is_counted_by_its_route_and_not_by_what_was_asked() -> None:
    timings = Timings()

    async def app(scope, receive, send) -> None:  # type: ignore[no-untyped-def]
        scope["route"] = type("Route", (), {"path": "/v1/things/{id}"})
        await send({"type": "http.response.start", "status": 404})

    async def nothing(_: object = None) -> None: ...

    asked = {"type": "http", "method": "GET", "path": "/v1/things/secret", "state": {"caller": OWNER}}
    await Timed(app, timings, "default")(asked, nothing, nothing)  # type: ignore[arg-type]
    told = exposition([], timings)
    assert 'space="default",method="GET",route="/v1/things/{id}",status="4xx"' in told
    assert "secret" not in told


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
