"""The ingest door: takes hook deliveries over a Unix socket, commits them in groups, acknowledges after the commit.

Each delivery is answered with one line of JSON: `{"ok": true, "new": 1, "duplicate": 0}` once it is durable, also where
it holds nothing to keep (`ignored` or `bad` then says so), else `{"ok": false, "retry": …, "why": …}`. With `retry` it
may be kept later (Postgres is away, the door is busy), without it never: what it holds is refused. An empty line is
answered with `{"ok": true}`.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import select
import signal
import time
from collections.abc import Callable, Coroutine, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, cast

from memctl.api.write.committer import BUSY, Acknowledgement, Committer
from memctl.api.write.hang_watch import Suspects, watch
from memctl.api.write.ingest_writer import EventSink, IngestWriter
from memctl.api.write.transcripts import TranscriptReader
from memctl.domain.support.errors import MemctlError
from memctl.infra.data_dir import Folders, write_private
from memctl.infra.files import NoRegularFile
from memctl.infra.hook import DOWN_FILE, MAX_PAYLOAD
from memctl.infra.hooks.spool import (
    MAX_HEADER,
    BadDelivery,
    Delivery,
    NewerDelivery,
    decode_header,
    make_counter,
    read_spooled,
    set_aside,
    spooled,
    sweep,
)
from memctl.infra.listening import unix_listener
from memctl.infra.settings import Settings

log = logging.getLogger("memctl.door")

SPOOL_EVERY_S = 2.0
DRAINED_AT_ONCE = 200
DRAINED_BYTES = 8 << 20
"""What of the spool is read and committed at once; one delivery of any size is."""

PATIENCE_S = 10.0
"""How long a client may take over one delivery."""

MOST_WAITING = 1_000
MOST_WAITING_BYTES = MAX_PAYLOAD
"""What the door holds at once for its clients, from a delivery's header to its answer. One more delivery of any size
comes from the spool, which is read file by file."""

LINGER_S = 0.5
"""How long a client that has connected may still begin a delivery after the door was asked to stop."""

MOST_SHOWN, LONGEST_SHOWN = 3, 300
"""Unread transcripts and deliveries that are named, and characters of each."""

STOP_WITHIN_S = 8.0
"""How long stopping may take in all: supervisors kill after ten seconds."""


class DoorClosed(MemctlError):
    """The ingest door cannot open at {path}: {why}."""


class Capacity:
    """How much more the door may hold. Used on the event loop only."""

    def __init__(self) -> None:
        self._deliveries, self._bytes = MOST_WAITING, MOST_WAITING_BYTES

    def take(self, size: int) -> Callable[[], None] | None:
        """Room for one delivery and what gives it back (once, however often it is called); None where there is none."""
        if self._deliveries < 1 or self._bytes < size:
            return None
        self._deliveries -= 1
        self._bytes -= size
        held = True

        def give() -> None:
            nonlocal held
            if held:
                held = False
                self._deliveries += 1
                self._bytes += size

        return give


class DeliverySink(Protocol):
    """Makes deliveries durable: in the log (`Committer`), or on disk until they can be sent on
    (`memctl.api.write.relay`)."""

    async def commit(
        self, delivery: Delivery, gone: Callable[[], bool], give_room: Callable[[], None]
    ) -> Acknowledgement: ...

    def drop_abandoned(self) -> bool: ...


class Door:
    """The conversations with clients."""

    def __init__(self, sink: DeliverySink, committer: Committer, reader: TranscriptReader) -> None:
        """`committer` and `reader` are the threads behind it, of which it says how they stand."""
        self._sink, self._committer, self._reader = sink, committer, reader
        self._capacity = Capacity()
        self._conversations: set[asyncio.Task[None]] = set()
        self._idle: set[asyncio.Task[None]] = set()
        self._stopping = False

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one client's deliveries, one after another, until it leaves or the door closes."""
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._conversations.add(task)
        try:
            while not self._stopping:
                self._idle.add(task)
                line = await asyncio.wait_for(reader.readline(), PATIENCE_S)
                self._idle.discard(task)
                if not line or not await self._take(line, reader, writer):
                    break
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError, ValueError):
            pass  # the client went away, or sent no header; it has no answer, so it spools
        except asyncio.CancelledError:
            if not self._stopping:  # asyncio's streams report a cancelled conversation as an error
                raise
        finally:
            self._idle.discard(task)
            self._conversations.discard(task)
            writer.close()

    async def close(self, within_s: float) -> None:
        """Answer what is under way; clients that do not begin a delivery now are let go."""
        self._stopping = True
        if idle := set(self._idle):
            await asyncio.wait(idle, timeout=LINGER_S)
        for task in idle & self._idle:
            task.cancel()
        if under_way := set(self._conversations):
            await asyncio.wait(under_way, timeout=within_s - LINGER_S)
        for task in set(self._conversations):
            task.cancel()

    async def _take(self, line: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Take the delivery of that header. False where nothing can follow on this connection."""
        if line == b"\n":  # somebody asks whether a door is here
            await _answer(writer, self._standing())
            return True
        try:
            delivery, size = decode_header(line)
        except BadDelivery as problem:
            log.warning("what was delivered is not a delivery: %s", problem)
            await _answer(writer, {"ok": False, "retry": False, "why": str(problem)})
            return False
        give_room = self._capacity.take(size)
        if give_room is None and self._sink.drop_abandoned():
            give_room = self._capacity.take(size)
        if give_room is None:
            await _answer(writer, BUSY)
            await asyncio.wait_for(_pass_over(reader, size), PATIENCE_S)
            return True
        try:
            payload = await asyncio.wait_for(reader.readexactly(size), PATIENCE_S)
            whole = delivery._replace(payload=payload)
            answer = await self._sink.commit(whole, lambda: _hung_up(writer), give_room)
        finally:
            give_room()
        await _answer(writer, answer)
        return True

    def _standing(self) -> Acknowledgement:
        """What both threads are at, and what they could not read."""
        now, threads = time.monotonic(), {"a delivery": self._committer, "a transcript": self._reader}
        unread, empty = self._reader.passed_over() | self._reader.unread, dict(self._committer.empty)
        return {
            "ok": True,
            "steps": {what: now - since for what, each in threads.items() if (since := each.at_since) is not None},
            "unread": _shown(unread),
            "unread_count": len(unread),
            "empty": _shown(dict(reversed(empty.items()))),
            "empty_count": self._committer.empty_count,
        }


def run_door(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; deliveries under way are answered first, within STOP_WITHIN_S.

    Without a socket that the settings name it listens where hooks look by themselves.

    Raises: DoorClosed (another door serves there, or the socket cannot be made), NotRunning without a database.
    """
    settings.require("database_url")
    path = settings.door_socket or _own_place(Folders(settings.data_dir))
    with alone(path):
        ready_spool(settings.data_dir)
        spool = settings.data_dir / "spool"
        asyncio.run(serve(settings, path, spool, IngestWriter, lambda committer, _: committer, _drain_spool(spool)))


def _own_place(places: Folders) -> Path:
    """The socket of a door that was given none. The door file names it, so that hooks find it as they do after `up`."""
    places.make()
    path = places.sockets / "door.sock"
    write_private(places.door_file, f"{path}\n")
    return path


def ready_spool(data_dir: Path) -> None:
    """Remove the mark of an outage, so that the next time that nobody listens is reported again; and make what counts
    deliveries for which there is no room."""
    make_counter(Folders(data_dir).spool)
    (Folders(data_dir).run / DOWN_FILE).unlink(missing_ok=True)


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold the door's lock. Its file stays: removing a lock file lets two hold it."""
    try:
        handle = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as problem:
        raise DoorClosed(path=path, why=problem.strerror or str(problem)) from problem
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DoorClosed(
                path=path,
                why="a door runs there already",
                hint="one is enough: hooks find it by themselves; `memctl down` ends it, and MEMCTL_DOOR_SOCKET names"
                " another place for another instance",
            ) from None
        yield
    finally:
        os.close(handle)


async def serve(
    settings: Settings,
    path: Path,
    spool: Path,
    open_writer: Callable[[Settings], EventSink],
    sink_of: Callable[[Committer, TranscriptReader], DeliverySink],
    beside: Callable[[Committer], Coroutine[Any, Any, None]],
) -> None:
    """Let clients in, and run what goes on beside, until SIGTERM or SIGINT; then answer what is under way, and end both
    threads, within `STOP_WITHIN_S`."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    suspects = Suspects(spool)
    reader = TranscriptReader(settings, open_writer, suspects)
    committer = Committer(settings, loop, reader, open_writer, suspects)
    committer.start()
    reader.start()
    watched = asyncio.create_task(watch(suspects, committer, reader))
    door = Door(sink_of(committer, reader), committer, reader)
    server = await _listen(door, path)
    ours = _identity(path)
    task = asyncio.create_task(beside(committer))
    try:
        await stop.wait()
    finally:
        if ours is not None and _identity(path) == ours:
            path.unlink(missing_ok=True)
        # Not `async with server`: from Python 3.12 on it waits for clients, and for as long as they like.
        server.close()
    task.cancel()
    deadline = loop.time() + STOP_WITHIN_S
    await door.close(STOP_WITHIN_S)
    watched.cancel()
    reader.stop()
    committer.stop()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(committer.ended.wait(), deadline - loop.time())


async def _listen(door: Door, path: Path) -> asyncio.Server:
    try:
        # A socket that was left behind is replaced: whoever holds the lock is the only door.
        return await asyncio.start_unix_server(door.converse, sock=unix_listener(path), limit=MAX_HEADER, backlog=512)
    except OSError as problem:
        raise DoorClosed(path=path, why=problem.strerror or str(problem)) from problem


def _identity(path: Path) -> tuple[int, int, int] | None:
    """What a file is known by: the number of one that was removed may be given again, but not at the same time."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _shown(found: dict[str, str]) -> list[str]:
    return [f"{name[-LONGEST_SHOWN:]} ({why[:LONGEST_SHOWN]})" for name, why in islice(found.items(), MOST_SHOWN)]


async def _answer(writer: asyncio.StreamWriter, answer: Acknowledgement) -> None:
    writer.write(json.dumps(answer).encode() + b"\n")
    await writer.drain()


async def _pass_over(reader: asyncio.StreamReader, size: int) -> None:
    """Read what a client sends all the same, so that it gets to read its answer."""
    while size:
        part = await reader.read(min(size, 1 << 16))
        if not part:
            raise asyncio.IncompleteReadError(b"", size)
        size -= len(part)


def _hung_up(writer: asyncio.StreamWriter) -> bool:
    """Whether the client has closed its end altogether; one that only has no more to say still waits for its answer."""
    end = writer.get_extra_info("socket")
    if end is None or end.fileno() < 0:
        return True
    look = select.poll()
    look.register(end.fileno(), 0)
    return bool(look.poll(0))


def _drain_spool(folder: Path) -> Callable[[Committer], Coroutine[Any, Any, None]]:
    """Commits what hooks left on disk while nobody listened. Its id makes each count once."""

    async def draining(committer: Committer) -> None:
        reported: set[str] = set()
        while True:
            try:
                sweep(folder)
                await drain(committer, folder, reported)
            except Exception:
                log.exception("the spool could not be drained")
            await asyncio.sleep(SPOOL_EVERY_S)

    return draining


async def drain(committer: Committer, folder: Path, reported: set[str]) -> bool:
    """Drain once, oldest first, group by group. Returns False as soon as nothing more can be kept.

    `reported` holds the names of the files whose trouble is in the log already.
    """
    group: list[tuple[Path, Delivery]] = []
    size = 0
    for path, found in read_spooled(spooled(folder)):
        if isinstance(found, Delivery):
            group.append((path, found))
            size += len(found.payload)
            if len(group) >= DRAINED_AT_ONCE or size >= DRAINED_BYTES:
                if not await _commit_group(committer, group, reported):
                    return False
                group, size = [], 0
            continue
        trouble: OSError | BadDelivery | None
        if isinstance(found, BadDelivery | NoRegularFile) and not isinstance(found, NewerDelivery):
            log.error("spool file %s is damaged: %s", path.name, found)
            trouble = _out_of_the_way(path, "damaged")
        else:
            trouble = found
        if trouble is not None:
            _report_trouble(path, trouble, reported)
    return not group or await _commit_group(committer, group, reported)


async def _commit_group(committer: Committer, group: list[tuple[Path, Delivery]], reported: set[str]) -> bool:
    answers = await committer.commit_all([delivery for _, delivery in group])
    trouble: OSError | None
    for (path, _), answer in zip(group, answers, strict=True):
        if answer["ok"]:
            try:
                path.unlink(missing_ok=True)
                continue
            except OSError as problem:
                trouble = problem
        elif answer["retry"]:
            continue
        else:
            log.error("spool file %s is set aside: %s", path.name, answer["why"])
            trouble = _out_of_the_way(path, "refused")
        if trouble is not None:
            _report_trouble(path, trouble, reported)
    return not any(not answer["ok"] and answer["retry"] for answer in answers)


def _out_of_the_way(path: Path, why: str) -> OSError | None:
    try:
        set_aside(path, why)
    except OSError as problem:
        return problem
    return None


def _report_trouble(path: Path, problem: OSError | NewerDelivery, reported: set[str]) -> None:
    if path.name not in reported:
        reported.add(path.name)
        log.error("spool file %s cannot be drained: %s", path.name, problem)
