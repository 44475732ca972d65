"""The timeline of work: a lane for each project, drawn from `activity`. All places are in thousandths of its width."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar
from urllib.parse import quote

import msgspec

from memctl.api.reading.records import Activity, FixedError, LearntClaim, WorkSpan
from memctl.domain.support.bounded import one_line
from memctl.domain.support.wording import number

WIDTH, HEIGHT = 1000, 34
"""Of a lane, in units of its view box."""

MOST_LANES = 12
"""Those with the most prompts; what others did is counted."""

NARROWEST = 3.0
TICKS = 5

DAY_S = 86_400
SHORTEST_S, LONGEST_S = 600, 366 * 12 * DAY_S
"""That is shown at once."""

LAST_S = 253_402_300_799
"""The last second that a calendar has: what somebody's clock said may lie there."""

STEPS = (("day", 1), ("week", 7), ("month", 30), ("quarter", 91), ("year", 365))


T = TypeVar("T", WorkSpan, FixedError, LearntClaim)


class Mark(msgspec.Struct, frozen=True):
    """Something to look at and to follow: where it lies, what hovering says, where it leads."""

    x: float
    width: float
    title: str
    href: str


class Lane(msgspec.Struct, frozen=True):
    """What happened in one project. Arcs lead from where an error was first seen to where what mends it was used.
    `errors` and `fixed` are the strips below work that had errors, as one path each: whatever a browser lays out takes
    its time."""

    project: str
    sessions: int
    work: list[Mark]
    errors: str
    fixed: str
    arcs: list[Mark]
    flags: list[Mark]


class Timeline(msgspec.Struct, frozen=True):
    """Lanes, the dates below them, and the ways to look at another time: a label, a query, whether it is looked at."""

    since: int
    before: int
    """In seconds since 1970."""
    lanes: list[Lane]
    hidden: int
    ticks: list[str]
    ways: list[tuple[str, str, bool]]


def timeline(found: Activity, reach: tuple[int, int]) -> Timeline:
    """What is drawn of an answer; `reach` is when all work began and ended, in microseconds."""
    spans, fixes, claims = _by_project(found.spans), _by_project(found.fixes), _by_project(found.claims)
    at, whole = _Scale(found.since, found.before), (reach[0] // 1_000_000, reach[1] // 1_000_000)
    shown = (_seconds(found.since), _seconds(found.before))
    names = sorted(spans, key=lambda name: (-sum(span.prompts for span in spans[name]), name))
    lanes = [_lane(name, spans[name], fixes[name], claims[name], at) for name in names[:MOST_LANES]]
    return Timeline(
        since=shown[0],
        before=shown[1],
        lanes=lanes,
        hidden=len(names) - len(lanes) + found.hidden,
        ticks=_ticks(found.since, found.before),
        ways=[*_ways(*shown), ("all", _query(*whole), shown[0] <= whole[0] and shown[1] >= whole[1])],
    )


def _by_project(items: Iterable[T]) -> dict[str, list[T]]:
    found: dict[str, list[T]] = defaultdict(list)
    for each in items:
        found[each.project].append(each)
    return found


class _Scale:
    def __init__(self, since: datetime, before: datetime) -> None:
        self._since = since
        self._whole = max((before - since).total_seconds(), 1.0)

    def __call__(self, at: datetime) -> float:
        return round(min(max((at - self._since).total_seconds() / self._whole, 0.0), 1.0) * WIDTH, 1)


def _lane(
    name: str, spans: Sequence[WorkSpan], fixes: Iterable[FixedError], claims: Iterable[LearntClaim], at: _Scale
) -> Lane:
    work = [_work(span, at) for span in spans]
    strips: dict[bool, list[str]] = {True: [], False: []}
    for span, mark in zip(spans, work, strict=True):
        if span.errors:
            strips[span.fixes >= span.errors].append(f"M{mark.x} 28h{mark.width}v4h-{mark.width}z")
    return Lane(
        project=name,
        sessions=sum(span.sessions for span in spans),
        work=work,
        errors=" ".join(strips[False]),
        fixed=" ".join(strips[True]),
        arcs=[_arc(fix, at) for fix in fixes],
        flags=[_flag(claim, at) for claim in claims],
    )


def _work(span: WorkSpan, at: _Scale) -> Mark:
    x = min(at(span.started_at), WIDTH - NARROWEST)
    width = round(max(at(span.last_at) - x, NARROWEST), 1)
    if span.session:
        href, what = f"/sessions/{quote(span.session, safe='')}", one_line(span.title, 120) or "a session"
    else:
        href = _query(_seconds(span.started_at) - 300, _seconds(span.last_at) + 300)
        what = f"{span.sessions} sessions"
    said = (
        f"{what} · {span.started_at:%-d %b %Y %H:%M} · {number(span.prompts, 'prompt')},"
        f" {number(span.errors, 'error')}, {span.fixes} fixed"
    )
    return Mark(x, width, said, href)


def _arc(fix: FixedError, at: _Scale) -> Mark:
    x = at(fix.first_seen)
    said = f"{one_line(fix.message, 120)} · an agent's fix: {one_line(fix.fix, 160)}"
    return Mark(x, round(max(at(fix.fixed_at) - x, NARROWEST), 1), said, f"/things/{fix.id}")


def _flag(claim: LearntClaim, at: _Scale) -> Mark:
    return Mark(at(claim.at), 0.0, f"learnt: {one_line(claim.text, 160)} ({claim.origin})", f"/things/{claim.id}")


def _ticks(since: datetime, before: datetime) -> list[str]:
    apart = (before - since) / (TICKS - 1)
    form = "%-d %b %Y" if apart > timedelta(days=2) else "%-d %b %H:%M"
    return [f"{at:{form}}" for at in (*(since + apart * n for n in range(TICKS - 1)), before)]


def _ways(begin: int, end: int) -> Iterable[tuple[str, str, bool]]:
    whole, middle = max(end - begin, 1), (begin + end) // 2
    yield "earlier", _query(begin - whole // 2, end - whole // 2), False
    yield "later", _query(begin + whole // 2, end + whole // 2), False
    if whole // 2 >= SHORTEST_S:
        yield "closer", _query(middle - whole // 4, middle + whole // 4), False
    if whole * 2 <= LONGEST_S:
        yield "wider", _query(middle - whole, middle + whole), False
    for name, days in STEPS:
        yield name, _query(end - days * DAY_S, end), abs(whole - days * DAY_S) <= 1


def _query(since: int, before: int) -> str:
    return f"?since={max(since, 0)}&before={min(max(before, 0) + 1, LAST_S)}"


def _seconds(at: datetime) -> int:
    return max(int(at.timestamp()), 0)
