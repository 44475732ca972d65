"""A relay: the local door of a machine without a database of memctl's, for a team whose memory is elsewhere.

Hooks talk to local sockets, as ever. What is to be kept is on this disk when it is acknowledged, and goes to the team's
API from there, in order, until that has it. What asks is passed on, and answered by it; a hook waits for two seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import os
import random
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import orjson

from memctl.api.client import SPACE, answered, connection_to, headers_of
from memctl.api.write.committer import BUSY, Acknowledgement, Committer, parse, without_unsaved
from memctl.api.write.door import SPOOL_EVERY_S, alone, drain, ready_spool, serve
from memctl.api.write.remote_writer import CHECKPOINTS, RemoteWriter
from memctl.api.write.transcripts import TranscriptReader
from memctl.domain.events.observations import CONTEXT_BLOCK_CLOSE, CONTEXT_BLOCK_OPEN
from memctl.domain.support.errors import MemctlError
from memctl.infra.data_dir import Folders, write_private
from memctl.infra.embedded import supervisor
from memctl.infra.hook import MOST_ASKED, RECALL_PATIENCE_S, has_room
from memctl.infra.hooks.capture_policy import CapturePolicy
from memctl.infra.hooks.dialects import answer, place_of, read_asked
from memctl.infra.hooks.remote_progress import Checkpoints, Notes
from memctl.infra.hooks.spool import Delivery, spool, sweep
from memctl.infra.listening import unix_listener
from memctl.infra.redaction import as_sent
from memctl.infra.settings import Settings, SettingsInvalid, read_token

log = logging.getLogger("memctl.relay")

BACK_OFF_S, MOST_BACK_OFF_S = 1.0, 60.0
"""Between attempts while the API does not answer or refuses: the first, doubled up to the second."""

MOST_HEAD = 8 << 10
"""Bytes of a request's head, as other servers take them."""
ASKED_AT_ONCE = 8
"""Questions passed on at once, each by a thread: as many sessions as may be at work on one machine."""
HOOKS = "/v1/hooks/"
_SPACE = SPACE.lower().encode()


class MemctlRunsHere(MemctlError):
    """A memctl of its own runs in {data_dir}."""

    hint = "a relay needs none: `memctl down` ends it, or let MEMCTL_DATA_DIR name another data directory"
    data_dir: Path


class NoRelayKey(MemctlError):
    """The relay needs a key of the team's API."""

    hint = "put it into a file that only you may read, and name that in MEMCTL_API_TOKEN_FILE"


def run_relay(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises: NotRunning where no API is named, NoRelayKey,
    MemctlRunsHere, DoorClosed."""
    url = settings.require("api_url")
    if not settings.api_token:
        raise NoRelayKey
    places = Folders(settings.data_dir)
    places.make()
    if supervisor.running(places) is not None:
        raise MemctlRunsHere(data_dir=settings.data_dir)
    door = settings.door_socket or places.sockets / "door.sock"
    api = settings.api_socket or places.sockets / "api.sock"
    with (
        alone(door),
        contextlib.closing(Checkpoints(places.data / CHECKPOINTS)) as checkpoints,
        contextlib.closing(Notes(places, url)) as notes,
        _announced_to_hooks(places, door, api) as token,
    ):
        ready_spool(settings.data_dir)
        asyncio.run(_Relay(settings, places, notes, checkpoints).run(door, api, token))


@contextlib.contextmanager
def _announced_to_hooks(places: Folders, door: Path, api: Path) -> Iterator[str]:
    """Write down where hooks find this relay, as `up` does; yields the token that they send."""
    token = secrets.token_hex(16)
    write_private(places.door_file, f"{door}\n")
    write_private(places.api_file, f"{api}\n{token}\n")
    try:
        yield token
    finally:
        for file in (places.door_file, places.api_file):
            file.unlink(missing_ok=True)


class Spooling:
    """Makes deliveries durable on this disk, and has them sent on."""

    def __init__(self, settings: Settings, folder: Path, wake: asyncio.Event, reader: TranscriptReader) -> None:
        self._folder = folder
        self._wake = wake
        self._policy = CapturePolicy(settings)
        self._reader = reader
        self._writing = ThreadPoolExecutor(2, thread_name_prefix="spool")

    async def commit(
        self,
        delivery: Delivery,
        gone: Callable[[], bool],
        give_room: Callable[[], None],
    ) -> Acknowledgement:
        """Returns once the delivery is on disk, or with the reason why it is not."""
        answer = await asyncio.get_running_loop().run_in_executor(self._writing, self._keep, delivery)
        self._wake.set()
        return answer

    def drop_abandoned(self) -> bool:
        return False

    def _keep(self, delivery: Delivery) -> Acknowledgement:
        observed = without_unsaved(parse(delivery, looks=False), self._policy)  # where and when, not who
        off = observed.kind == "off"
        for file in observed.transcripts if off else ():
            self._reader.read(file)
        if off or not (observed.events or observed.transcripts or observed.why):
            return {"ok": True, "new": 0, "duplicate": 0, "ignored": observed.kind}
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            # A hook that is sent away looks for room itself, and counts that there is none.
            if not has_room(str(self._folder), len(delivery.payload)) or spool(self._folder, delivery) is None:
                return BUSY
        except OSError as problem:
            return {"ok": False, "retry": True, "why": problem.strerror or str(problem)}
        return {"ok": True, "spooled": True}


class _Relay:
    def __init__(self, settings: Settings, places: Folders, notes: Notes, checkpoints: Checkpoints) -> None:
        self._settings = settings.of_space(settings.space_meant)  # "" is the key's, whichever that is
        self._places = places
        self._notes = notes
        self._checkpoints = checkpoints

    async def run(self, door: Path, api: Path, token: str) -> None:
        wake, spool = asyncio.Event(), self._places.spool
        asking = Asking(self._settings, self._notes, token)
        # Whoever holds the door's lock is the only relay here.
        async with await asyncio.start_unix_server(asking.converse, sock=unix_listener(api), limit=MOST_HEAD):
            await serve(
                self._settings, door, spool, self._opened,
                lambda _, reader: Spooling(self._settings, spool, wake, reader),
                lambda committer: self._forward(committer, wake),
            )  # fmt: skip
        api.unlink(missing_ok=True)

    def _opened(self, given: Settings) -> RemoteWriter:
        meant = "" if given.space == self._settings.space else given.space
        return RemoteWriter(self._settings, self._notes, self._checkpoints, meant)

    async def _forward(self, committer: Committer, wake: asyncio.Event) -> None:
        """Send on what lies in the spool, oldest first, as soon as it is there; back off while it is not taken."""
        reported: set[str] = set()
        pause = BACK_OFF_S
        while True:
            wake.clear()
            taken = False
            try:
                sweep(self._places.spool)
                taken = await drain(committer, self._places.spool, reported)
            except Exception:
                log.exception("the spool could not be sent on")
            self._notes.write_if_due()
            if taken:
                pause = BACK_OFF_S
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(wake.wait(), SPOOL_EVERY_S)
            else:
                # Not all relays of a team at the same moment, once its API is back.
                await asyncio.sleep(pause * random.uniform(0.7, 1.3))  # noqa: S311
                pause = min(2 * pause, MOST_BACK_OFF_S)


class Asking:
    """Passes hooks' questions on to the team's API, redacted as what is kept is; at a session's start says what keeps
    it from taking anything."""

    def __init__(self, settings: Settings, notes: Notes, token: str) -> None:
        self._settings = settings
        self._notes = notes
        self._token = f"Bearer {token}".encode()
        self._url = urlsplit(settings.require("api_url"))
        self._policy = CapturePolicy(settings)
        self._redactor = settings.redactor()
        self._idle: list[HTTPConnection] = []
        self._passing = ThreadPoolExecutor(ASKED_AT_ONCE, thread_name_prefix="ask")

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request of HTTP/1.1, and its answer."""
        try:
            async with asyncio.timeout(RECALL_PATIENCE_S):
                status, body = await self._answered(reader)
                head = f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
                writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # the hook goes on without an answer
        finally:
            writer.close()

    async def _answered(self, reader: asyncio.StreamReader) -> tuple[int, bytes]:
        line, *rest = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        method, target, _ = line.decode("ascii").split(" ", 2)
        headers = {name.strip().lower(): value.strip() for name, _, value in (each.partition(b":") for each in rest)}
        if not hmac.compare_digest(headers.get(b"authorization", b""), self._token):
            return 401, b"{}"
        size = int(headers.get(b"content-length", b"0"))
        if method != "POST" or not target.startswith(HOOKS) or not 0 <= size <= MOST_ASKED:
            return 404, b"{}"
        body = await reader.readexactly(size)
        if self._notes.standing.state in ("refused", "outdated"):
            return self._said(target, body)
        delivery, space = (headers.get(name, b"").decode("ascii") for name in (b"memctl-delivery", _SPACE))
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._passing, self._ask, target, body, delivery, space)

    def _ask(self, target: str, body: bytes, delivery: str, space: str) -> tuple[int, bytes]:
        parts = urlsplit(target)
        sent, payload = read_asked(parts.path.removeprefix(HOOKS), body, parse_qs(parts.query).get("event", [""])[0])
        if not sent or self._policy.off("recall", *place_of(payload)):  # where it is off is known on this machine alone
            return 204, b""
        body = orjson.dumps(as_sent(sent, self._redactor))
        file = self._settings.api_token_file
        try:
            token = read_token(file) if file else self._settings.api_token
        except SettingsInvalid:  # said by whoever sends
            return 502, b"{}"
        headers = {**headers_of(token or "", space or self._settings.space_meant), "Memctl-Delivery": delivery}
        connection = self._idle.pop() if self._idle else connection_to(self._url.geturl(), RECALL_PATIENCE_S)
        try:
            status, content = answered(connection, "POST", self._url.path.rstrip("/") + target, body, headers)
        except (OSError, HTTPException):
            connection.close()
            return 504, b"{}"
        if len(self._idle) < ASKED_AT_ONCE:
            self._idle.append(connection)
        return (status, content) if status in (200, 204) else (502, b"{}")

    def _said(self, target: str, body: bytes) -> tuple[int, bytes]:
        """That nothing is sent on, where a session begins; else nothing."""
        parts = urlsplit(target)
        payload = orjson.loads(body)
        named = parse_qs(parts.query).get("event", [""])[0]
        if not isinstance(payload, dict) or (payload.get("hook_event_name") or named) not in (
            "SessionStart",
            "sessionStart",
        ):
            return 204, b""
        why = self._notes.standing.why.rstrip(".")
        message = (
            f"memctl: {why}. What is said here is kept on this machine and sent once that is mended (`memctl status`)."
        )
        text = "\n".join((CONTEXT_BLOCK_OPEN, message, CONTEXT_BLOCK_CLOSE))
        return 200, orjson.dumps(answer(parts.path.removeprefix(HOOKS), payload, text))
