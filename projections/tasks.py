"""Pieces of work, across sessions."""

import msgspec

from memctl.domain.events.event import derived_of
from memctl.domain.events.facts import Episode, Outcome, TaskClosed, TaskOpened, TaskType
from memctl.domain.support.bounded import Seen, clipped, newest, seen
from memctl.projections.kernel import projection

MOST_LEFT, LONGEST_LEFT = 3, 160
"""Things that a piece of work leaves open, as a row keeps them, and characters of each."""


class Opening(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session took the work up: when, by which fact, in whose words (`through`: of the member whose key it was)."""

    at: int
    id: str
    stream: str
    description: str
    task_type: TaskType
    through: str = ""


class Closing(msgspec.Struct, frozen=True):
    """The work ended in one session (`Episode.ended_by` says by what), or that session ended."""

    at: int
    id: str
    stream: str
    outcome: Outcome
    by: str


class Work(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session worked on it: of what type that was, or how far it came, and what it leaves open."""

    at: int
    id: str
    task_type: TaskType
    outcome: Outcome
    left: tuple[str, ...] = ()


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of work at one location. Times in microseconds; `sessions` are streams, newest 32.

    `status` is open while the latest word is an opening, or a session's end that left the work unfinished. Work that
    went well and leaves nothing is done, whatever ended the session.
    `outcome` is that of the newest `work` or closing; `task_type` that of the newest work that shows one (`typed`),
    else that of the words that opened it.
    """

    id: str
    location: str
    canonical: str
    description: str = ""
    task_type: TaskType = "unknown"
    status: str = "open"
    outcome: Outcome = "unknown"
    opened: int = 0
    closed: int = 0
    first_at: int = 0
    last_at: int = 0
    first: Opening | None = None
    latest: Opening | None = None
    sessions: tuple[Seen, ...] = ()
    closings: tuple[Closing, ...] = ()
    work: Work | None = None
    typed: Work | None = None


def task_id(location: str, canonical: str) -> str:
    """Key of the piece of work of that canonical description at that location."""
    return derived_of("task", location, canonical)


def _key(fact: TaskOpened | TaskClosed | Episode) -> str:
    return task_id(fact.location, fact.canonical)


@projection(
    row=Task,
    key=_key,
    indexes=(("location", "status", "last_at"), ("location", "last_at"), ("outcome", "last_at")),
)
def tasks(row: Task | None, fact: TaskOpened | TaskClosed | Episode) -> Task | None:
    """Pieces of work across sessions: open or done, with their outcomes."""
    at = int(fact.occurred_at) if not isinstance(fact, Episode) else max(int(fact.ended_at), int(fact.occurred_at))
    row = row or Task(
        id=_key(fact), location=fact.location, canonical=clipped(fact.canonical, 300), first_at=at, last_at=at
    )
    sessions = seen(row.sessions, fact.stream, at, 32)
    first_at, last_at = min(row.first_at, at), max(row.last_at, at)
    if isinstance(fact, TaskOpened):
        stream, description = clipped(fact.stream, 160), clipped(fact.description, 500)
        word = Opening(at, str(fact.id), stream, description, fact.task_type, fact.through)
        first = min(row.first or word, word, key=lambda o: (o.at, o.id))
        latest = max(row.latest or word, word, key=lambda o: (o.at, o.id))
        row = msgspec.structs.replace(row, first=first, latest=latest, opened=row.opened + 1)
    elif isinstance(fact, TaskClosed) or (fact.ended_by and not fact.closed):
        by = fact.by if isinstance(fact, TaskClosed) else fact.ended_by
        end = Closing(at, str(fact.id), clipped(fact.stream, 160), fact.outcome, clipped(by, 40))
        row = msgspec.structs.replace(row, closings=newest(row.closings, end, 32), closed=row.closed + 1)
    if isinstance(fact, Episode):
        left = tuple(clipped(each.text, LONGEST_LEFT) for each in fact.threads[:MOST_LEFT])
        shown = Work(at, str(fact.id), fact.task_type, fact.outcome, left)
        typed = row.typed
        if fact.task_type != "unknown":
            typed = max(typed or shown, shown, key=lambda w: (w.at, w.id))
        row = msgspec.structs.replace(row, work=max(row.work or shown, shown, key=lambda w: (w.at, w.id)), typed=typed)
    return _settled(msgspec.structs.replace(row, sessions=sessions, first_at=first_at, last_at=last_at))


def _settled(row: Task) -> Task:
    """What the openings and closings kept in the row come to."""
    last = row.closings[0] if row.closings else None
    newest_word = row.work if row.work and (last is None or row.work.at > last.at) else last
    shown = row.first
    types = (word.task_type for word in (row.typed, row.latest, row.first) if word is not None)
    return msgspec.structs.replace(
        row,
        description=shown.description if shown else row.canonical,
        task_type=next((each for each in types if each != "unknown"), "unknown"),
        status="done" if _is_done(row) else "open",
        outcome=newest_word.outcome if newest_word else "unknown",
    )


def _is_done(row: Task) -> bool:
    """Whether nothing was asked for since the last closing, or since the newest work, where that leaves nothing."""
    last, work = row.closings[0] if row.closings else None, row.work
    asked_at = row.latest.at if row.latest is not None else 0
    if last is not None and (last.by != "session_end" or last.outcome == "success") and asked_at <= last.at:
        return True
    if work is None or work.outcome != "success" or work.left or (last is not None and work.at < last.at):
        return False
    return asked_at <= work.at
