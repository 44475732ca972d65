"""The viewer's lists: what rows show, by what they are narrowed and ordered, and the same as CSV or JSON."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import urlencode

import msgspec

from memctl.api.queries import bugs, claims, hindsight, memories, recalls
from memctl.api.queries.work import EpisodeFilter, among_episodes, episodes
from memctl.api.reading import models
from memctl.api.reading.hindsight import RecalledBlock
from memctl.api.reading.hindsight import Record as Need
from memctl.api.reading.pages import total
from memctl.api.reading.places import Places
from memctl.api.reading.reader import Reader
from memctl.api.reading.views import BugHit, moment
from memctl.domain.events.event import Micros
from memctl.domain.events.facts import Outcome, TaskType
from memctl.domain.support.wording import seen

MOST_ROWS = 40
"""On one page."""

MOST_EXPORTED = 10_000
"""Rows of a file."""

RANGES = (("today", 1), ("7 days", 7), ("30 days", 30), ("90 days", 90), ("365 days", 365))


class Column(NamedTuple):
    """`order` is the field by which the rows are ordered under it, highest first; without one they are not."""

    label: str
    of: Callable[[Any], Any]
    order: str = ""
    kind: Literal["number", "time", "text"] = "number"


class Choice(NamedTuple):
    """A filter that is one of these words, or a part of a text where there are none."""

    name: str
    label: str
    words: tuple[str, ...] = ()


class Wanted(NamedTuple):
    """What a page asks for. `given` has a value of each filter, empty for any; times in microseconds."""

    places: Places
    since: int | None
    before: int | None
    order: str
    given: Mapping[str, str]


class Found(NamedTuple):
    """Rows, where the next ones begin, and how many there are in all, where that is known. `all` where they had to be
    found to know some."""

    items: Sequence[Any]
    next: str | None
    total: Callable[[], int | None]
    all: Sequence[Any] = ()


class List(NamedTuple):
    """`columns` stand beside what a row is about; the first of them that orders does so unless another is asked for."""

    name: str
    find: Callable[[Reader, Wanted, int, str | None], Found]
    about: Callable[[Any], str]
    columns: tuple[Column, ...]
    choices: tuple[Choice, ...] = ()
    at_once: int = 200
    """Rows that are asked for together where all are wanted."""

    def order(self, asked: str) -> str:
        orders = [column.order for column in self.columns if column.order]
        return asked if asked in orders else orders[0]

    def given(self, query: Mapping[str, str]) -> dict[str, str]:
        """The values of the filters; what is none of a filter's words asks for nothing."""
        said = {choice: query.get(choice.name, "").replace("\0", "").strip()[:1024] for choice in self.choices}
        return {choice.name: word if not choice.words or word in choice.words else "" for choice, word in said.items()}

    def everything(self, reader: Reader, wanted: Wanted) -> Iterator[Any]:
        """Every row that is asked for, as far as a file has them."""
        cursor, left = None, MOST_EXPORTED
        while left > 0:
            found = self.find(reader, wanted, min(left, self.at_once), cursor)
            yield from found.items
            left -= self.at_once
            if (cursor := found.next) is None:
                return


def as_csv(a_list: List, items: Iterator[Any]) -> str:
    """The rows as a spreadsheet reads them. What it would take for a formula is marked as text."""
    written = io.StringIO()
    writer = csv.writer(written, quoting=csv.QUOTE_ALL)  # some spreadsheets part cells by other marks than commas
    writer.writerow([a_list.name, "project", *(column.label for column in a_list.columns)])
    for item in items:
        project = ", ".join(item.projects) if isinstance(item, BugHit) else item.project or ""
        cells = [a_list.about(item), project, *(column.of(item) for column in a_list.columns)]
        writer.writerow([_inert(cell) for cell in cells])
    return written.getvalue()


def _inert(cell: object) -> object:
    text = seen(cell, "�") if isinstance(cell, str) else cell
    return f"'{text}" if isinstance(text, str) and text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def as_json(items: Iterator[Any]) -> bytes:
    return msgspec.json.encode(list(items))


def ranges(today: date, kept: Mapping[str, str]) -> list[tuple[str, str, bool]]:
    """Ways to look at the last days, up to now: a label, a query, and whether it is what is looked at."""
    rest = {name: value for name, value in kept.items() if name not in ("since", "before") and value}
    days = [(label, str(today - timedelta(days=back - 1))) for label, back in RANGES]
    return [
        (label, urlencode({"since": since, **rest} if since else rest), kept.get("since", "") == since)
        for label, since in (*days, ("all", ""))
        if not kept.get("before")
    ] or [("all", urlencode(rest), False)]


# --- the lists ---


def _find_sessions(reader: Reader, wanted: Wanted, limit: int, cursor: str | None) -> Found:
    asked = memories.SessionFilter(wanted.since, wanted.before, wanted.given["text"], wanted.given["agent"])
    page = memories.sessions_by(reader, wanted.places, wanted.order, asked, limit=limit, cursor=cursor)
    return Found(page.items, page.next, lambda: total(reader, models.sessions, asked.conditions(wanted.places)))


def _find_work(reader: Reader, wanted: Wanted, limit: int, cursor: str | None) -> Found:
    given = wanted.given
    asked = EpisodeFilter(
        task_type=given["type"] or None, outcome=given["outcome"] or None,
        status=given["status"] or None, file=given["file"] or None,
        error=given["error"] or None, since=wanted.since, before=wanted.before,
    )  # fmt: skip
    page = episodes(reader, wanted.places, asked, order=wanted.order, limit=limit, cursor=cursor)
    among = among_episodes(reader, wanted.places, asked)
    return Found(page.items, page.next, lambda: total(reader, models.episodes, among))


def _find_claims(reader: Reader, wanted: Wanted, limit: int, cursor: str | None) -> Found:
    given = wanted.given
    waiting = {"unproved": True, "verified": False}.get(given["level"])
    asked = claims.InsightFilter(given["kind"] or None, waiting, given["text"], wanted.since, wanted.before)
    page = claims.insights_by(reader, wanted.places, wanted.order, asked, limit=limit, cursor=cursor)
    return Found(page.items, page.next, lambda: claims.levels(reader, wanted.places, asked).total())


def _find_bugs(reader: Reader, wanted: Wanted, limit: int, cursor: str | None) -> Found:
    unfixed = {"never": True, "fixed": False}.get(wanted.given["fixed"])
    asked = bugs.BugFilter(wanted.given["text"], unfixed, wanted.since, wanted.before)
    skip = _whole(cursor)
    answer = bugs.known(reader, wanted.places, asked, order=wanted.order, limit=limit + 1, skip=skip)
    after = str(skip + limit) if len(answer.hits) > limit else None
    return Found(
        answer.hits[:limit], after, lambda: total(reader, models.bug_patterns, asked.conditions(wanted.places))
    )


def _find_needs(reader: Reader, wanted: Wanted, limit: int, cursor: str | None) -> Found:
    found = sorted(_needs(reader, wanted), key=lambda each: getattr(each, wanted.order), reverse=True)
    skip = _whole(cursor)
    after = str(skip + limit) if len(found) > skip + limit else None
    return Found(found[skip : skip + limit], after, lambda: len(found), found)


def _needs(reader: Reader, wanted: Wanted) -> list[Need]:
    kind, recalled = wanted.given["kind"], wanted.given["recalled"]
    upto = None if wanted.before is None else moment(wanted.before)
    return [
        each
        for each in hindsight.records(reader, wanted.places, since=wanted.since)
        if kind in ("", each.kind)
        and (not recalled or (recalled == "yes") == (each.recall is not None))
        and (upto is None or each.at < upto)
    ]


class Asked(msgspec.Struct, frozen=True):
    """A block of a session, or a prompt at which memory kept silent."""

    session: str
    project: str | None
    block: RecalledBlock


_SESSIONS_AT_ONCE = 8
"""Whose blocks are on one page."""


def _find_recalls(reader: Reader, wanted: Wanted, limit: int, cursor: str | None) -> Found:
    said = next((each for each in get_args(recalls.Whether) if each == wanted.given["said"]), None)
    since = None if wanted.since is None else Micros(wanted.since)
    most = min(limit, _SESSIONS_AT_ONCE)
    page = recalls.recalls(reader, wanted.places, said=said, since=since, limit=most, cursor=cursor)
    begin, end = moment(wanted.since or 0), None if wanted.before is None else moment(wanted.before)
    items = [
        Asked(each.session, each.project, block)
        for each in page.items
        for block in each.blocks
        if begin <= (at := datetime.fromisoformat(block.at)) and (end is None or at < end)
    ]
    return Found(items, page.next, lambda: None)


def _said_by(block: RecalledBlock) -> str:
    return "held back" if block.withheld else "silent" if block.silent else "spoke"


def _whole(cursor: str | None) -> int:
    return int(cursor) if cursor and cursor.isascii() and cursor.isdigit() and len(cursor) < 9 else 0


def _at(value: str | datetime | None) -> str:
    return value.isoformat() if isinstance(value, datetime) else value or ""


SESSIONS = List(
    "sessions",
    _find_sessions,
    lambda s: s.title or s.first_prompt or s.session_id,
    (
        Column("last at", lambda s: s.last_at, "last_at", "time"),
        Column("prompts", lambda s: s.prompts, "prompts"),
        Column("tools", lambda s: s.tool_calls, "tool_calls"),
        Column("errors", lambda s: s.errors, "errors"),
        Column("fixed", lambda s: s.fixes, "fixes"),
        Column("+lines", lambda s: s.lines_added, "lines_added"),
        Column("−lines", lambda s: s.lines_removed, "lines_removed"),
        Column("tokens in", lambda s: s.tokens_in, "tokens_in"),
    ),
    (Choice("text", "Title"), Choice("agent", "Agent")),
)

WORK = List(
    "work",
    _find_work,
    lambda e: e.description,
    (
        Column("begun", lambda e: e.started_at, "started_at", "time"),
        Column("ended", lambda e: e.outcome, kind="text"),
        Column("steps", lambda e: e.steps, "steps"),
        Column("files", lambda e: len(e.files)),
        Column("+lines", lambda e: e.lines_added, "lines_added"),
        Column("−lines", lambda e: e.lines_removed, "lines_removed"),
        Column("tokens", lambda e: e.tokens, "tokens"),
    ),
    (
        Choice("file", "File"),
        Choice("error", "Error"),
        Choice("status", "Status", ("open", "done")),
        Choice("outcome", "Ended as", get_args(Outcome)),
        Choice("type", "Type", get_args(TaskType)),
    ),
)

KNOWLEDGE = List(
    "knowledge",
    _find_claims,
    lambda c: c.text,
    (
        Column("last seen", lambda c: c.last_seen, "last_seen", "time"),
        Column("sources", lambda c: len(c.sources), "sessions"),
    ),
    (
        Choice("text", "Text"),
        Choice("kind", "Kind", get_args(claims.ClaimKind)),
        Choice("level", "Level", ("verified", "unproved")),
    ),
)

BUGS = List(
    "bugs",
    _find_bugs,
    lambda b: b.message,
    (
        Column("fixed", lambda b: b.resolutions, "resolutions"),
        Column("seen", lambda b: b.occurrences, "occurrences"),
        Column("seconds to fix", lambda b: b.mean_resolve_s),
        Column("last seen", lambda b: _at(b.last_seen), "last_seen", "time"),
    ),
    (Choice("text", "Text"), Choice("fixed", "Fixed", ("fixed", "never"))),
)

RECALLS = List(
    "recalls",
    _find_recalls,
    lambda r: r.block.prompt or r.block.hook,
    (
        Column("asked", lambda r: r.block.at, "last_at", "time"),
        Column("memory", lambda r: _said_by(r.block), kind="text"),
        Column("said", lambda r: len(r.block.memories)),
        Column("left out", lambda r: len(r.block.passed_over)),
        Column("tokens", lambda r: r.block.tokens),
    ),
    (Choice("said", "Memory", get_args(recalls.Whether)),),
    at_once=_SESSIONS_AT_ONCE,
)

HINDSIGHT = List(
    "hindsight",
    _find_needs,
    lambda r: r.what,
    (
        Column("needed", lambda r: _at(r.at), "at", "time"),
        Column("recalled", lambda r: "yes" if r.recall else "no", kind="text"),
        Column("calls", lambda r: r.calls, "calls"),
        Column("seconds", lambda r: r.seconds, "seconds"),
        Column("tokens", lambda r: r.tokens, "tokens"),
    ),
    (Choice("kind", "Kind", hindsight.KINDS), Choice("recalled", "Recalled", ("yes", "no"))),
    at_once=MOST_EXPORTED,
)
