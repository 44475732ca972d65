"""How everything is, in one look: how far the log is folded, what waits, what needs a person and what to do about it.

`memctl status`, `doctor`, `/readyz`, `/metrics` and the viewer all say what `troubles` says.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import msgspec

from memctl.api.checks import dead_letters
from memctl.api.checks.dead_letters import LettersStatus
from memctl.api.queries import stats
from memctl.api.reading.counts import ShardProgress
from memctl.api.reading.reader import Reader
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.wording import number, span
from memctl.infra import queue
from memctl.infra.backup import copies as backups
from memctl.infra.backup.wal_archive import WalArchive, wal_archive
from memctl.infra.beside import beside
from memctl.infra.data_dir import Folders
from memctl.infra.embedded import supervisor
from memctl.infra.embedded.instance import set_aside
from memctl.infra.embedded.programs import door_state, recalled
from memctl.infra.hooks.capture_policy import OffUnreadable, read_off
from memctl.infra.hooks.spool import refusals, spooled_since
from memctl.infra.log.mark import mark_age
from memctl.infra.log.spaces import installation
from memctl.infra.queue import Embedding
from memctl.infra.readmodels import fleet, processor_work, rebuilds
from memctl.infra.readmodels.rebuilds import RebuildProgress
from memctl.infra.standby import standby_age
from memctl.infra.vectors import outbox
from memctl.infra.vectors.store import PORT

if TYPE_CHECKING:
    from memctl.infra.settings_model import Settings

LATE_S = 30.0
"""Seconds after which an event that was appended should be folded: ten times what a restart of the worker takes."""

UNEMBEDDED_S = 300.0
"""Seconds without a text embedded, while some wait, after which it is said: a served model may take 60 s for an answer
and is asked again and again."""

RESTARTED_S = 60
"""Seconds for which it is said that a program ended and was started again, though the others went on."""

LEAST_FREE = 200_000_000
"""Bytes of free disk below which someone should make room: Postgres stops writing without any."""

MOST_NAMED = 3
"""Dead letters that are named one by one."""

VECTOR_STORE = "the vector store"

_PATIENCE_S = 3.0
"""How long a server gets to answer: what it is at may take it a second."""

LONGEST_ANSWER = 1 << 24
"""Bytes of a vector store's answer that are read: the names of a hundred thousand collections."""

ASKED_S = 7.0
"""How long all servers, programs and folders together get: half of what a question to the API does."""

ANSWERED_S = 10.0
"""Within which `memctl status` and `memctl doctor` have what they say, whatever hangs; the database gets as long."""

STEP_S = 60.0
"""Seconds for which the door may be at one delivery, or at one piece of a transcript, before it is said."""

LATEST = 20
"""Rebuilds that are looked through for one that has ended."""


class Behind(msgspec.Struct, frozen=True):
    """The oldest event that was appended more than `LATE_S` ago and that some shard has not folded. `count`: about how
    many wait, it among them. `moves`: whether that shard has moved within that time."""

    event: str
    position: int
    since: str
    seconds: float
    count: int
    moves: bool


class Servers(msgspec.Struct, frozen=True):
    """What servers beside the database say. `queue`, `vectors`: why they do not answer; empty where they do.
    `embedding`: how the texts get on that wait for their vectors.

    Of the instance on this machine: `stopped` are programs that should run and do not, `silent` those that run and do
    not answer, `restarted` those that started again within `RESTARTED_S`; `spooled` counts deliveries of hooks that
    wait on disk, the oldest for `spooled_s` seconds, `refused` those without room there, and `free` the bytes that are
    left on the disk, where it is known. `unreadable`: why it is not known what `memctl off` switched off. `steps`: for
    how many seconds the door is at each thing that it is at; `unread_count` transcripts it could not read, and of
    `empty_count` deliveries nothing; `unread` and `empty` name some. `aside`: paths of what was found damaged.
    `overdue`: whether the last backup is. `standby`: why the standby that questions are asked of does not answer,
    `standby_s`: how old what it holds is, None where there is none. `mute`: what has not ended its answer within
    `ASKED_S`, so that it is not known."""

    queue: str = ""
    vectors: str = ""
    embedding: Embedding = Embedding()
    stopped: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()
    spooled: int = 0
    spooled_s: float = 0.0
    refused: int = 0
    free: int | None = None
    unreadable: str = ""
    steps: dict[str, float] = {}
    unread: tuple[str, ...] = ()
    unread_count: int = 0
    empty: tuple[str, ...] = ()
    empty_count: int = 0
    aside: tuple[str, ...] = ()
    overdue: bool = False
    standby: str = ""
    standby_s: float | None = None
    mute: tuple[str, ...] = ()


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not well: what, since when, at which event, and what to do. `needs`: whether it needs a person;
    else it passes by itself."""

    kind: Literal[
        "behind",
        "dead letter",
        "halted",
        "writer",
        "program",
        "spool",
        "off",
        "disk",
        "queue",
        "standby",
        "vectors",
        "replay",
        "processor",
        "damaged",
        "backup",
        "archive",
        "transcript",
        "delivery",
        "fleet",
    ]
    what: str
    do: str
    since: str = ""
    position: int | None = None
    event: str = ""
    needs: bool = True

    def __str__(self) -> str:
        return f"{self.what}; {self.do}"


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """`to_write` counts points that the vector store does not have, `to_embed` those without their dense vector.
    `sizes` are bytes, for whoever asks for them: measuring takes as long as all the rest."""

    last_position: int
    mark: int
    mark_age_s: float
    """Age of the oldest event that may not be read yet."""
    shards: tuple[ShardProgress, ...]
    to_write: int
    to_embed: int
    filling: outbox.Filling | None = None
    """The model that is to serve, where there is one."""
    unembedded_s: float = 0.0
    """For how long texts wait for their vectors and none was embedded."""
    standing: LettersStatus
    behind: Behind | None = None
    servers: Servers = Servers()
    archive: WalArchive | None = None
    """Of the database's write-ahead log; None where it is not archived."""
    processors: tuple[processor_work.WorkState, ...] = ()
    held: tuple[processor_work.HeldWork, ...] = ()
    """Places that consolidation holds back."""
    waiting: tuple[str, ...] = ()
    """Addresses of workers that wait, for others of other rules lead."""
    replay: RebuildProgress | None = None
    """The one that is under way."""
    ended: RebuildProgress | None = None
    """The last one that has ended."""
    sizes: dict[str, int] = {}

    @property
    def lag(self) -> int:
        """Of the shard that is furthest behind."""
        return max((shard.lag for shard in self.shards), default=0)

    @property
    def embedding_s(self) -> float | None:
        """About how many seconds it takes to embed what waits; None where nobody knows."""
        waiting = self.to_embed + (self.filling.waiting if self.filling is not None else 0)
        rate = self.servers.embedding.per_s
        return 0.0 if not waiting else waiting / rate if rate else None

    @property
    def differed(self) -> bool:
        """Whether the last replay that has ended had found live rows that were not the log's."""
        return self.ended is not None and self.ended.message.startswith(rebuilds.DIFFERING)

    @property
    def failed(self) -> bool:
        """Whether the last replay that has ended has failed."""
        return self.ended is not None and self.ended.status == "failed"


def last_replay(reader: Reader) -> RebuildProgress | None:
    """The last one that has ended; a look at the past is none."""
    replays = rebuilds.progress(reader.connection, LATEST, past=False)
    return next((each for each in replays if each.ended_at is not None), None)


def servers(settings: Settings) -> Servers:
    """What the servers beside the database say, as far as they say it within `ASKED_S`. While one asks, others hear
    what was said last."""
    now = time.monotonic()
    with _turn:
        look = _looks.get(settings.data_dir)
        if look is None or look.over or now - look.began > LATE_S:
            look = _looks[settings.data_dir] = _Look(settings, look, now)
        elif look.before is not None:
            return look.before
    wait(look.parts.values(), max(0.0, look.began + ASKED_S - now))
    return look.result()


class _Look:
    """One look at the servers, all parts beside each other; `before` is what the last one found, where that was not
    long ago."""

    def __init__(self, settings: Settings, last: _Look | None, now: float) -> None:
        self.began = now
        self.before = last.result() if last is not None and last.over and now - last.began < LATE_S else None
        self.held = {} if last is None else {part: each for part, each in last.asked.items() if not each.done()}
        """Parts at which earlier looks still wait: they are not asked once more."""
        self.parts = {part: beside(partial(part, settings)) for part in _PARTS if part not in self.held}

    @property
    def asked(self) -> dict[_Part, Future[dict[str, Any]]]:
        return {**self.held, **self.parts}

    @property
    def over(self) -> bool:
        return all(each.done() for each in self.parts.values())

    def result(self) -> Servers:
        found: dict[str, Any] = {}
        mute = []
        for part, name in _PARTS.items():
            if part in self.held or not self.parts[part].done():
                mute.append(name)
            else:
                found |= self.parts[part].result()
        return Servers(**found, mute=tuple(mute))


_turn = threading.Lock()
_looks: dict[Path, _Look] = {}
"""By data directory, the latest look."""


def _vectors(settings: Settings) -> dict[str, Any]:
    """What the vector store says."""
    return {"vectors": "" if settings.qdrant_url is None else _refused(settings.qdrant_url, settings.qdrant_api_key)}


def _queue(settings: Settings) -> dict[str, Any]:
    from redis.exceptions import RedisError

    if settings.redis_url is None:
        return {}
    try:
        return {"embedding": queue.embedding(settings.redis_url)}
    except (RedisError, OSError) as problem:
        return {"queue": str(problem) or type(problem).__name__}


def _standby(settings: Settings) -> dict[str, Any]:
    from psycopg import Error

    try:
        return {"standby_s": standby_age(settings)}
    except (MemctlError, Error) as problem:
        return {"standby": str(problem)}


def _on_disk(settings: Settings) -> dict[str, Any]:
    unreadable = ""
    try:
        read_off(settings.data_dir)
    except OffUnreadable as problem:
        unreadable = str(problem)
    places = Folders(settings.data_dir)
    overdue = backups.kept(settings).overdue(datetime.now(UTC))
    return {"unreadable": unreadable, "aside": set_aside(places), "overdue": overdue}


def _programs(settings: Settings) -> dict[str, Any]:
    """How the programs of the instance in the data directory stand, each asked itself; nothing where there is none."""
    places, now = Folders(settings.data_dir), time.time()
    if supervisor.running(places) is None:
        return {}
    try:
        found = supervisor.states(places, supervisor.ASKED_S)
    except OSError:
        return {"stopped": ("supervisor",)}
    first = min((each.since for each in found.values()), default=0)
    stopped = {name for name, each in found.items() if each.state not in ("RUNNING", "STARTING")}
    late = {name for name, each in found.items() if now - each.since < RESTARTED_S < each.since - first}
    silent = supervisor.silent(places, [each for each in found.values() if now - each.since > LATE_S])
    waiting, lost = spooled_since(places.spool), refusals(places.spool)
    return {
        "stopped": tuple(sorted(stopped)),
        "silent": silent,
        "restarted": tuple(sorted(late - stopped)),
        "spooled": len(waiting),
        # One that is named later than now was so before the clock was set back.
        "spooled_s": max(abs(now - each) for each in waiting) if waiting else 0.0,
        "refused": lost.deliveries if lost is not None else 0,
        "free": free_bytes(places.data),
        **({} if "door" in silent else door_state(recalled(places))._asdict()),
    }


_Part = Callable[["Settings"], dict[str, Any]]
_PARTS: dict[_Part, str] = {
    _on_disk: "the data directory", _programs: "the programs of this instance", _queue: "Redis",
    _vectors: VECTOR_STORE, _standby: "the standby",
}  # fmt: skip
"""What is looked at, each by what people call it."""


def _refused(url: str, key: str | None) -> str:
    """Why the server there does not answer; empty where it does. That it is well says nothing of whose key it takes."""
    try:
        status, _ = fetched(url, "/collections", key)
    except OSError as problem:
        return problem.strerror or str(problem) or type(problem).__name__
    return f"it answers {status}" if status >= HTTPStatus.BAD_REQUEST else ""


def fetched(url: str, path: str, key: str | None = None) -> tuple[int, bytes]:
    """Status and body of what a Qdrant answers; its own client takes half a second to import.

    Raises: OSError, also where it does not answer within `_PATIENCE_S`: the kernel takes connections for one that
    hangs.
    """
    parts = urlsplit(url)
    made = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    try:
        with contextlib.closing(made(parts.hostname or "", parts.port or PORT, timeout=_PATIENCE_S)) as connection:
            connection.request("GET", parts.path.rstrip("/") + path, headers={"api-key": key} if key else {})
            answer = connection.getresponse()
            return answer.status, answer.read(LONGEST_ANSWER)
    except (HTTPException, ValueError) as problem:
        raise OSError(str(problem) or type(problem).__name__) from problem


def api_trouble(settings: Settings) -> Trouble | None:
    """That the API does not answer at the address that a person set for it, as members reach it. Asked of no API: that
    would ask itself."""
    if not (settings.configured("api_url") or settings.configured("api_listen")):
        return None  # then it is a program of this instance alone
    if settings.api_url is None:
        why = "it does not run"
    elif not (why := _unanswered(settings.api_url, settings.api_token or "")):
        return None
    here = settings.configured("api_listen")
    do = "see log/api.log, and the proxy before it; `memctl up` starts the API" if here else (
        "see whether `memctl serve` runs there, and the proxy before it"
    )  # fmt: skip
    return Trouble(kind="program", what=f"the API does not answer at {settings.api_url or settings.api_listen}: {why}",
                   do=do)  # fmt: skip


_ANSWERS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS)
"""With which memctl answers who asks whose a token is: this machine may have none."""


def _unanswered(url: str, token: str) -> str:
    from memctl.api.client import Client, Refused, Unreachable

    try:
        with Client(url, token, patience_s=_PATIENCE_S) as client:
            client.get("/v1/caller")
    except Unreachable as problem:
        return problem.why
    except Refused as problem:
        return "" if problem.status in _ANSWERS else f"it answers {problem.status}"
    return ""


_AGAIN = "if it goes on, start everything again: memctl down, then memctl up"


def troubles(found: Health) -> list[Trouble]:
    """What is not well, the worst first. None means that everything which was appended more than `LATE_S` ago is
    folded, that nothing was set aside, and that the servers answer."""
    return sorted(_troubles(found), key=lambda trouble: not trouble.needs)


def _troubles(found: Health) -> Iterator[Trouble]:
    yield from _parked(found.standing)
    for halt in found.standing.halted:
        yield Trouble(
            kind="halted", what=f"stage {halt.stage} shard {halt.shard} stands still at position {halt.position}:"
            f" {halt.message}", since=halt.since.isoformat(), position=halt.position, do="`memctl dlq list` names it",
        )  # fmt: skip
    for writer in found.standing.writers:
        who = f"{writer.application or 'a client'} (process {writer.pid} of Postgres, {writer.state or 'connected'}"
        yield Trouble(
            kind="writer",
            what=f"memctl waits for {who}, for {writer.seconds:.0f} s) to end its transaction or let go of its lock:"
            f" it holds up the readers of {writer.held}",
            do="see: memctl doctor",
        )  # fmt: skip
    if (behind := found.behind) is not None:
        yield _late(behind, found)
    if found.waiting:
        yield Trouble(
            kind="fleet", what=f"workers at {', '.join(found.waiting)} wait: their rules or libraries are not those of"
            " the workers that fold", do="give all workers of the database the same image (`memctl doctor` on each"
            " machine prints its fingerprint)",
        )  # fmt: skip
    yield from _of_servers(found.servers)
    if found.archive is not None and found.archive.wrong:
        yield Trouble(
            kind="archive", what=found.archive.wrong,
            do="see Postgres' log and archive_command, and let archive_timeout be a minute",
        )  # fmt: skip
    yield from _of_vectors(found)
    yield from _of_work(found)


def _of_servers(servers: Servers) -> Iterator[Trouble]:
    for name in servers.stopped:
        yield Trouble(kind="program", what=f"{name} does not run", do=f"see log/{name}.log, and start it: memctl up")
    for name in servers.silent:
        yield Trouble(
            kind="program", what=f"{name} runs and does not answer",
            do=f"see log/{name}.log; {_AGAIN}",
        )  # fmt: skip
    for step, seconds in servers.steps.items():
        if seconds > STEP_S:
            yield Trouble(
                kind="program", what=f"door is at {step} for {span(seconds)}, and others wait for it",
                do=f"see log/door.log; {_AGAIN}",
            )  # fmt: skip
    if servers.unread_count:
        names = ", ".join(servers.unread)
        yield Trouble(
            kind="transcript", what=f"{number(servers.unread_count, 'transcript')} could not be read: {names}",
            do="log/door.log says more; once mended: memctl ingest FILE, or the next hook of the session",
        )  # fmt: skip
    if servers.empty_count:
        lost = number(servers.empty_count, "delivery", "deliveries")
        yield Trouble(
            kind="delivery", what=f"{lost} of hooks held nothing to keep since the door started, the last:"
            f" {', '.join(servers.empty)}",
            do="`memctl ingest` reads the session's transcript; a client that goes on so needs a newer memctl",
            needs=False,
        )  # fmt: skip
    if servers.mute:
        yield Trouble(
            kind="program", what=f"{' and '.join(servers.mute)} did not end the answer within {ASKED_S:.0f} s",
            do=_AGAIN,
        )  # fmt: skip
    if servers.spooled_s > LATE_S:
        yield _spooled(servers)
    yield from room(servers.free, servers.refused)
    yield from of_files(servers.aside, servers.overdue)
    if servers.unreadable:
        yield Trouble(kind="off", what=f"nothing is kept or recalled: {servers.unreadable}", do=OffUnreadable.hint)
    for name in servers.restarted:
        yield Trouble(
            kind="program", what=f"{name} ended by itself and was started again", do=f"log/{name}.log says why",
            needs=False,
        )  # fmt: skip
    if servers.queue:
        yield Trouble(
            kind="queue", what=f"Redis does not answer ({servers.queue}): workers see what is new a second later",
            do="start it with `memctl up`, or check MEMCTL_REDIS_URL",
        )  # fmt: skip
    if servers.standby or (servers.standby_s or 0) > LATE_S:
        why = f"does not answer ({servers.standby})" if servers.standby else f"is {span(servers.standby_s or 0)} behind"
        yield Trouble(
            kind="standby", what=f"the standby that questions are asked of {why}",
            do="see its log, or let MEMCTL_STANDBY_URL name the database that is written to",
        )  # fmt: skip
    if servers.vectors:
        yield Trouble(
            kind="vectors", what=f"the vector store does not answer ({servers.vectors}): searches go by words",
            do="start it with `memctl up`, or check MEMCTL_QDRANT_URL and MEMCTL_QDRANT_API_KEY",
        )  # fmt: skip


def _of_vectors(found: Health) -> Iterator[Trouble]:
    if found.to_embed and found.unembedded_s > UNEMBEDDED_S:
        yield Trouble(
            kind="vectors", what=f"{number(found.to_embed, 'text')} without vectors, and none was embedded for"
            f" {span(found.unembedded_s)}: searches find them by their words",
            do="`memctl doctor` tries the model; the worker's log says why",
        )  # fmt: skip


def _of_work(found: Health) -> Iterator[Trouble]:
    if found.ended is not None and (found.differed or found.failed):
        how = "found that " if found.differed else "failed: "
        yield Trouble(
            kind="replay", what=f"the last replay {how}{found.ended.message}",
            since=found.ended.ended_at.isoformat() if found.ended.ended_at else "", do="see: memctl replay --status",
        )  # fmt: skip
    for held in found.held:
        yield Trouble(
            kind="processor", what=f"consolidation of {held.place} waits: it would change {held.changed:,} of"
            f" {held.of:,} memories at once", do="see `memctl consolidate --preview`; to allow it, add `--force`",
        )  # fmt: skip
    for each in found.processors:
        if each.given_up:
            yield Trouble(
                kind="processor", what=f"{each.processor} gave {each.given_up} pieces of work up",
                do="they are tried again once what they are made of changes", needs=False,
            )  # fmt: skip


def _parked(standing: LettersStatus) -> Iterator[Trouble]:
    for letter in standing.letters[:MOST_NAMED]:
        if letter.to_be_tried:
            yield Trouble(
                kind="dead letter", what=f"{letter.target} is set aside: its fold would keep all others waiting,"
                f" {letter.waiting} waiting behind it", since=letter.parked_at, position=letter.position, needs=False,
                do="it is folded or tried apart by itself: then it goes on, or the event at fault is named",
            )  # fmt: skip
            continue
        about = f"event {letter.source}" if letter.stage == 1 else f"source {letter.row or letter.source}"
        yield Trouble(
            kind="dead letter", what=f"{letter.target} is set aside: {about} raises {letter.error}"
            + (f" at {letter.place}" if letter.place else "") + f", {letter.waiting} waiting behind it",
            since=letter.parked_at, position=letter.position, event=str(letter.source) if letter.stage == 1 else "",
            do=f"see `memctl dlq show {letter.id}`; once mended, `memctl dlq retry {letter.id}`",
        )  # fmt: skip
    if more := standing.letters[MOST_NAMED:]:
        waits = all(each.to_be_tried for each in more)
        yield Trouble(
            kind="dead letter", what=f"dead letters: {len(more)} more,"
            f" with {sum(each.waiting for each in more)} waiting behind them",
            since=more[0].parked_at, needs=not waits,
            do="they are tried apart by themselves, one at a time" if waits else "see: memctl dlq list",
        )  # fmt: skip


def free_bytes(folder: Path) -> int | None:
    """Bytes free where a folder lies; None where it is not there."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def room(free: int | None, refused: int) -> Iterator[Trouble]:
    """A disk that is nearly full, and what a full spool has refused."""
    if free is not None and free < LEAST_FREE:
        left = f"{free / 1e6:,.1f} MB are left on the disk"
        yield Trouble(kind="disk", what=left, do="without any, nothing new is kept but in the spool: make room")
    if refused:
        yield Trouble(
            kind="spool", what=f"the spool had no room for {number(refused, 'delivery', 'deliveries')} of hooks",
            do="`memctl verify` says what to do",
        )  # fmt: skip


def of_files(aside: Sequence[str], overdue: bool) -> Iterator[Trouble]:
    """Files of the data directory that were found damaged or stand in a folder's place, and backups that are late."""
    for path in aside[:MOST_NAMED]:
        if path.endswith(".refused"):
            yield Trouble(
                kind="delivery", what=f"{path} was refused for what it holds",
                do="log/door.log, or a relay's output, says why; `memctl ingest` reads the session's transcript; then"
                " remove it",
            )  # fmt: skip
            continue
        yield Trouble(kind="damaged", what=f"{path} is damaged, or in the way", do="look at it, then move or remove it")
    if (more := len(aside) - MOST_NAMED) > 0:
        yield Trouble(kind="damaged", what=f"{more:,} more such files", do="`memctl status --json` names them")
    if overdue:
        yield Trouble(kind="backup", what="the last backup is overdue", do="log/worker.log says why none was made")


def _spooled(found: Servers) -> Trouble:
    away = "door" in (*found.stopped, *found.silent)
    return Trouble(
        kind="spool", what=f"{number(found.spooled, 'delivery', 'deliveries')} of hooks on this disk, the oldest for"
        f" {span(found.spooled_s)}, not in the log yet", needs=away,
        do="they are read once the door answers" if away else "the door reads them; log/door.log says why it is late",
    )  # fmt: skip


def _late(behind: Behind, found: Health) -> Trouble:
    how_long = f"for {span(behind.seconds)}" if behind.seconds > 0 else "since before the clock was set back"
    what = (
        f"{number(behind.count, 'event is', 'events are')} not folded yet, the oldest {how_long}:"
        f" event {behind.event} at position {behind.position}"
    )
    if found.replay is not None:
        do = "the read models are being rebuilt: `memctl replay --status` shows how far that is"
    elif behind.moves:
        do = "the workers are at it"
    else:
        do = "no worker moves: see the worker's log, and `memctl doctor`"
    return Trouble(
        kind="behind", what=what, since=behind.since, position=behind.position, event=behind.event, do=do,
        needs=found.replay is None and not behind.moves,
    )  # fmt: skip


def _behind(reader: Reader, last: int) -> Behind | None:
    """Of any space; of the caller's own where others are kept from it."""
    row = reader.connection.execute(
        "WITH lowest AS (SELECT position, held, updated_at FROM memctl.offsets WHERE generation = ANY(%s)"
        " ORDER BY memctl.lowest(position, held) LIMIT 1)"
        " SELECT e.event_id, e.position, e.recorded_at, extract(epoch FROM clock_timestamp() - e.recorded_at)::float8,"
        " memctl.lowest(l.position, held), abs(extract(epoch FROM clock_timestamp() - l.updated_at)) < %s"
        " FROM lowest l, LATERAL (SELECT event_id, position, recorded_at FROM memctl.events"
        " WHERE position > memctl.lowest(l.position, held) AND position > memctl.of_space(l.position, held, space_id)"
        " AND space_id = coalesce(%s, space_id)"
        " ORDER BY position LIMIT 1) e",
        [[reader.live.stage1, reader.live.stage2], LATE_S, reader.space_id if reader.apart else None],
    ).fetchone()
    if row is None or abs(row[3]) <= LATE_S:  # what was recorded later than now was so before the clock was set back
        return None
    id, position, since, seconds, folded, moves = row
    return Behind(str(id), position, since.isoformat(), seconds, last - folded, moves)


def health(reader: Reader, servers: Servers = Servers()) -> Health:  # noqa: B008  # it is frozen
    """`servers` are asked by who calls: not within the snapshot of a reader. Who is kept apart from other spaces gets
    what is of its own, and nothing of what all share."""
    found = stats.progress(reader)
    space = reader.space_id if reader.apart else None
    to_write, to_embed = outbox.backlog(reader.connection, reader.live.stage2, space)
    replays = [] if reader.apart else rebuilds.progress(reader.connection, LATEST)
    servers = Servers() if reader.apart else servers
    since = servers.embedding.since.get(installation(reader.connection))
    return Health(
        last_position=found.last_position,
        mark=found.mark,
        mark_age_s=mark_age(reader.connection, reader.space_id),
        shards=tuple(found.shards),
        to_write=to_write,
        to_embed=to_embed,
        filling=None if reader.apart else outbox.filling(reader.connection, reader.live.stage2),
        unembedded_s=0.0 if since is None else max(0.0, time.time() - since),
        standing=dead_letters.standing(reader),
        behind=_behind(reader, found.last_position),
        servers=servers,
        archive=None if reader.apart else wal_archive(reader.connection),
        processors=tuple(processor_work.standings(reader.connection, reader.space_id)),
        held=tuple(processor_work.held_back(reader.connection, reader.live, reader.space_id)),
        waiting=() if reader.apart else tuple(fleet.waiting(reader.connection)),
        replay=next((each for each in replays if each.status == "running"), None),
        ended=None if reader.apart else last_replay(reader),
    )
