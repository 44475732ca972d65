"""The viewer's timeline: where what happened is drawn, and the ways to look at another time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs

from hypothesis import given
from hypothesis import strategies as st

from memctl.api.reading.records import Activity, FixedError, LearntClaim, WorkSpan
from memctl.api.viewer.timeline import LONGEST_S, MOST_LANES, SHORTEST_S, WIDTH, Timeline, timeline

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def span(project: str, began: datetime, took: timedelta = timedelta(hours=1), **more: object) -> WorkSpan:
    known = {
        "sessions": 1,
        "prompts": 1,
        "errors": 0,
        "fixes": 0,
        "session": "session/claude-code/s1",
        "title": "a title",
    }
    return WorkSpan(project=project, started_at=began, last_at=began + took, **{**known, **more})  # type: ignore[arg-type]


def drawn(*spans: WorkSpan, since: datetime = NOON - 10 * DAY, before: datetime = NOON, **more: object) -> Timeline:
    found = Activity(since=since, before=before, spans=list(spans), **{"fixes": [], "claims": [], "hidden": 0, **more})  # type: ignore[arg-type]
    return timeline(found, (0, 1))


def test_a_session_lies_where_its_time_lies() -> None:
    (lane,) = drawn(span("ledger", NOON - 5 * DAY, DAY)).lanes
    (mark,) = lane.work
    assert (mark.x, mark.width) == (500.0, 100.0)
    assert mark.href == "/sessions/session%2Fclaude-code%2Fs1"


def test_errors_are_marked_by_whether_all_were_fixed() -> None:
    (lane,) = drawn(
        span("ledger", NOON - 5 * DAY, errors=3, fixes=3), span("ledger", NOON - 2 * DAY, errors=3, fixes=2)
    ).lanes
    first, second = (f"M{mark.x} 28h{mark.width}v4h-{mark.width}z" for mark in lane.work)
    assert (lane.fixed, lane.errors) == (first, second)
    (lane,) = drawn(span("ledger", NOON - 5 * DAY)).lanes
    assert lane.fixed == lane.errors == ""


def test_several_sessions_lead_to_a_closer_look() -> None:
    (lane,) = drawn(span("ledger", NOON - 5 * DAY, DAY, sessions=9, session="", title="")).lanes
    query = parse_qs(lane.work[0].href.lstrip("?"))
    assert int(query["since"][0]) < (NOON - 5 * DAY).timestamp()
    assert int(query["before"][0]) > (NOON - 4 * DAY).timestamp()


def test_an_arc_leads_from_an_error_to_what_mends_it_and_a_flag_marks_what_was_learnt() -> None:
    fix = FixedError(
        id="b1", project="ledger", first_seen=NOON - 9 * DAY, fixed_at=NOON - DAY, message="boom", fix="calm"
    )
    claim = LearntClaim(id="c1", project="ledger", at=NOON - 5 * DAY, text="tabs it is", origin="said by you")
    (lane,) = drawn(span("ledger", NOON - 5 * DAY), fixes=[fix], claims=[claim]).lanes
    assert [(arc.x, arc.width, arc.href) for arc in lane.arcs] == [(100.0, 800.0, "/things/b1")]
    assert [(flag.x, flag.href) for flag in lane.flags] == [(500.0, "/things/c1")]


def test_lanes_are_those_with_the_most_prompts_and_the_rest_is_counted() -> None:
    shown = drawn(*(span(f"p{n:02}", NOON - DAY, prompts=n) for n in range(MOST_LANES + 3)))
    assert (len(shown.lanes), shown.hidden) == (MOST_LANES, 3)
    assert shown.lanes[0].project == f"p{MOST_LANES + 2:02}"


moments = st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(9000, 1, 1), timezones=st.just(UTC))


@given(since=moments, whole=st.timedeltas(timedelta(0), timedelta(days=9999)), began=moments)
def test_nothing_is_drawn_outside_and_no_way_leads_to_a_time_that_cannot_be_shown(
    since: datetime, whole: timedelta, began: datetime
) -> None:
    before = since + whole
    shown = drawn(span("ledger", began, errors=1), since=since, before=before)
    for mark in shown.lanes[0].work:
        assert 0 <= mark.x <= mark.x + mark.width <= WIDTH + 0.01
    asked = {
        name: int(query["before"][0]) - int(query["since"][0])
        for name, query in ((name, parse_qs(query.lstrip("?"))) for name, query, _ in shown.ways)
    }
    assert asked.get("closer", SHORTEST_S) >= SHORTEST_S
    assert asked.get("wider", LONGEST_S) <= LONGEST_S + 1


def test_the_time_that_is_looked_at_is_marked() -> None:
    before = NOON + DAY
    for days, chosen in ((7, "week"), (30, "month")):
        shown = drawn(span("ledger", NOON - 5 * DAY), since=before - days * DAY, before=before)
        assert chosen in [name for name, _, here in shown.ways if here]


def test_a_clock_at_the_end_of_the_calendar_is_drawn() -> None:
    last = datetime.max.replace(tzinfo=UTC)
    shown = drawn(span("ledger", last, timedelta(0), sessions=2, session=""), before=last)
    assert shown.lanes[0].work
