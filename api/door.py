"""The ingest door: takes hook deliveries over a Unix socket, commits them in groups, acknowledges after the commit.

Each delivery is answered with one line of JSON: `{"ok": true, "new": 1, "duplicate": 0}`, or `{"ok": false, "why": …}`
when it was not kept and the hook should spool it. A delivery that holds nothing to keep is `ok` with `ignored`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import queue
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast, get_args

from memctl.api.commands import Intake
from memctl.domain.event import Micros, NewEvent
from memctl.domain.observations import Agent
from memctl.infra.settings import Settings
from memctl.infra.spool import BadDelivery, Delivery, decode_header, read_spooled, spooled
from memctl.infra.transcripts.hooks import ParsedHook, parse_hook

log = logging.getLogger("memctl.door")

HEADER_LIMIT = 4096
SPOOL_EVERY_S = 2.0
PATIENCE_S = 10.0
"""How long a client may take over one delivery."""

Answer = dict[str, Any]


class Committer(threading.Thread):
    """Takes waiting deliveries, up to `batch` at once, and commits them as one transaction."""

    def __init__(self, settings: Settings, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(name="committer", daemon=True)
        self._settings = settings
        self._loop = loop
        self._waiting: queue.SimpleQueue[tuple[Delivery, asyncio.Future[Answer]] | None] = queue.SimpleQueue()
        self._intake: Intake | None = None

    async def commit(self, delivery: Delivery) -> Answer:
        """Queue a delivery; returns once it is durable, or with the reason why it is not."""
        answer: asyncio.Future[Answer] = self._loop.create_future()
        self._waiting.put((delivery, answer))
        return await answer

    def stop(self) -> None:
        self._waiting.put(None)

    def run(self) -> None:
        while True:
            first = self._waiting.get()
            if first is None:
                return
            group, ended = [first], False
            while len(group) < self._settings.append_batch:
                try:
                    item = self._waiting.get_nowait()
                except queue.Empty:
                    break
                if item is None:
                    ended = True
                    break
                group.append(item)
            self._commit_group(group)
            if ended:
                return

    def _commit_group(self, group: Sequence[tuple[Delivery, asyncio.Future[Answer]]]) -> None:
        try:
            answers = self._record([delivery for delivery, _ in group])
        except Exception as problem:
            if len(group) > 1:  # one of them may be what Postgres refuses: each by itself
                for one in group:
                    self._commit_group([one])
                return
            log.exception("delivery %s was not kept", group[0][0].id)
            self._drop_intake()
            answers = [{"ok": False, "why": str(problem)}]
        for (_, future), answer in zip(group, answers, strict=True):
            self._loop.call_soon_threadsafe(_settle, future, answer)

    def _record(self, deliveries: Sequence[Delivery]) -> list[Answer]:
        if self._intake is None or self._intake.connection.closed:
            self._intake = Intake(self._settings)
        events: list[NewEvent] = []
        answers: list[Answer] = []
        owners: list[int] = []
        for index, delivery in enumerate(deliveries):
            parsed = (
                parse_hook(
                    delivery.payload, delivery.id, Micros(delivery.at), cast(Agent, delivery.agent), delivery.event
                )
                if delivery.agent in get_args(Agent)
                else ParsedHook(why=f"{delivery.agent!r} is not a client that memctl knows")
            )
            answers.append({"ok": True, "new": 0, "duplicate": 0})
            if parsed.why:
                answers[-1]["bad"] = parsed.why
            elif not parsed.events:
                answers[-1]["ignored"] = parsed.kind
            events.extend(parsed.events)
            owners.extend([index] * len(parsed.events))
        for owner, done in zip(owners, self._intake.record(events).appended, strict=True):
            answers[owner]["duplicate" if done.status == "duplicate" else "new"] += 1
        return answers

    def _drop_intake(self) -> None:
        if self._intake is not None:
            with contextlib.suppress(Exception):
                self._intake.close()
            self._intake = None


def run_door(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; deliveries under way are answered first."""
    asyncio.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    committer = Committer(settings, loop)
    committer.start()
    path = Path(settings.require("door_socket"))
    path.unlink(missing_ok=True)
    before = os.umask(0o177)
    try:
        server = await asyncio.start_unix_server(
            lambda reader, writer: _converse(committer, reader, writer), path=path, limit=HEADER_LIMIT
        )
    finally:
        os.umask(before)
    draining = asyncio.create_task(_drain_spool(committer, settings.data_dir / "spool"))
    async with server:
        await stop.wait()
    draining.cancel()
    committer.stop()
    await asyncio.to_thread(committer.join, 10)
    path.unlink(missing_ok=True)


async def _converse(committer: Committer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while line := await asyncio.wait_for(reader.readline(), PATIENCE_S):
            try:
                delivery, size = decode_header(line)
            except BadDelivery as problem:
                await _answer(writer, {"ok": False, "why": str(problem)})
                break
            payload = await asyncio.wait_for(reader.readexactly(size), PATIENCE_S)
            await _answer(writer, await committer.commit(delivery._replace(payload=payload)))
    except (TimeoutError, asyncio.IncompleteReadError, ConnectionError, ValueError):
        pass  # the client went away, or sent no header; it has no answer, so it spools
    finally:
        writer.close()


async def _answer(writer: asyncio.StreamWriter, answer: Answer) -> None:
    writer.write(json.dumps(answer).encode() + b"\n")
    await writer.drain()


async def _drain_spool(committer: Committer, folder: Path) -> None:
    """Commit what hooks left on disk while nobody listened. Its id makes each count once."""
    while True:
        for path, delivery in read_spooled(spooled(folder)):
            if isinstance(delivery, BadDelivery):
                log.error("spool file %s is damaged (%s): set aside", path.name, delivery)
                path.rename(path.with_suffix(".damaged"))
                continue
            answer = await committer.commit(delivery)
            if not answer["ok"]:
                break
            path.unlink(missing_ok=True)
        await asyncio.sleep(SPOOL_EVERY_S)


def _parse(delivery: Delivery) -> ParsedHook:
    if delivery.agent not in get_args(Agent):
        return ParsedHook(why=f"{delivery.agent!r} is not a client that memctl knows")
    agent = cast(Agent, delivery.agent)
    return parse_hook(delivery.payload, delivery.id, Micros(delivery.at), agent, delivery.event)


def _settle(future: asyncio.Future[Answer], answer: Answer) -> None:
    if not future.done():
        future.set_result(answer)
