"""The API's process: one application on a loopback port and, where it is set, on a Unix socket."""

import asyncio
import contextlib
import logging
import signal
import socket
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from memctl.domain.support.errors import MemctlError
from memctl.infra.http_lines import read_linearly
from memctl.infra.listening import tcp_listener, unix_listener
from memctl.infra.settings import Settings

log = logging.getLogger("memctl.api")

CONNECTIONS = 8
"""To the database, and so questions that are answered at once."""


SWITCH_S = 0.0005
"""How long a thread computes while others wait for the interpreter. A question waits for it at each of its statements,
beside long ones as often as there are of those: with Python's 5 ms, seven of them held a search up for over 2 s."""


HEAD_S = 15.0
"""How long a client that has connected may take to ask."""


class CannotListen(MemctlError):
    """The API cannot listen on {where}: {why}."""

    where: str
    why: str


class NoToken(MemctlError):
    """The API needs a token, and api_token is not set."""

    hint = "set MEMCTL_API_TOKEN; or let `memctl up` start the API with a token of its own: set MEMCTL_API_LISTEN, too"


def run_api(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; requests under way get five seconds to end.

    The port is open before the embedder and the vector store's client are loaded: meanwhile searches go by words.
    Raises: NotRunning where no database or API is set, NoToken, CannotListen.
    """
    import uvicorn

    from memctl.api.http.access import Keyring
    from memctl.api.reading.reader import Readers, StandbyReaders
    from memctl.api.search.engine import Engine
    from memctl.api.server.application import application
    from memctl.api.server.auth import Guard, names_of
    from memctl.api.server.deadlines import Deadline, Pulse
    from memctl.api.server.proxied import Proxy
    from memctl.api.viewer.sign_in import Browsers
    from memctl.api.write.command_handler import CommandHandler
    from memctl.api.write.remote_ingest import RemoteIngest
    from memctl.infra.embedders import embedders_of

    sys.setswitchinterval(SWITCH_S)
    url = settings.require("api_url")
    if not settings.api_token:
        raise NoToken
    readers = Readers(settings.require("database_url"), settings.space, CONNECTIONS, databases=settings.databases)
    standby = None
    if settings.standby_url:
        standby = StandbyReaders(
            settings.standby_url, readers, settings.space, CONNECTIONS, databases=settings.databases
        )
    commands = CommandHandler(settings, readers)
    deliveries = RemoteIngest(settings, readers)
    keyring = Keyring(readers)
    browsers = Browsers(settings.api_token, keyring=keyring, secure=url.startswith("https:"))
    engine = Engine(settings.qdrant_url, settings.qdrant_api_key, embedders_of(settings))
    with contextlib.ExitStack() as stack:
        for each in (readers, standby, engine, commands, deliveries):
            if each is not None:
                stack.callback(each.close)
        listeners = [stack.enter_context(_tcp(f"//{settings.api_listen}" if settings.api_listen else url))]
        if settings.api_socket is not None:
            listeners.append(stack.enter_context(_unix(settings.api_socket)))
        threading.Thread(target=engine.warm_up, args=[readers], name="warm-up", daemon=True).start()
        deadline = Deadline(application(readers, engine, commands, browsers, deliveries, standby))
        secret = settings.proxy_secret.get_secret_value() if settings.proxy_secret else ""
        guard = Guard(
            deadline, settings.api_token, names_of(url), browsers.signed_in, keyring.caller,
            Proxy(settings.proxy_header, secret), keyring.named,
        )  # fmt: skip
        config = uvicorn.Config(
            guard, http=_connection(), log_config=None, access_log=False, server_header=False, date_header=False,
            ws="none", lifespan="off", timeout_graceful_shutdown=5, h11_max_incomplete_event_size=64 << 10,
            callback_notify=Pulse(deadline).beat, timeout_notify=1,
        )  # fmt: skip
        # uvicorn raises the signal that ended it once more when it is done: then everything here is to be closed.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _end)
        log.info("listening on %s", settings.api_listen or url)
        uvicorn.Server(config).run(sockets=listeners)


def _connection() -> type[asyncio.Protocol]:
    """A connection of uvicorn's that is closed where nobody asks on it: those that wait for their first request take
    a place each."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    read_linearly()

    class Connection(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.loop.call_later(HEAD_S, self._close_unasked)

        def _close_unasked(self) -> None:
            asked: object = self.cycle  # which uvicorn declares to be there always
            if asked is None and not self.transport.is_closing():
                self.transport.close()

    return Connection


def _end(*_: object) -> None:
    raise SystemExit(0)


@contextlib.contextmanager
def _tcp(url: str) -> Iterator[socket.socket]:
    parts = urlsplit(url)
    host, port = parts.hostname or "127.0.0.1", parts.port or 80
    try:
        listener = tcp_listener(host, port)
    except OSError as why:
        raise CannotListen(where=f"{host}:{port}", why=why.strerror or str(why)) from why
    with listener:
        yield listener


@contextlib.contextmanager
def _unix(path: Path) -> Iterator[socket.socket]:
    """A listening socket that only its owner may open; its file goes when we go."""
    _clear(path)
    try:
        listener = unix_listener(path)
    except OSError as why:
        raise CannotListen(where=str(path), why=why.strerror or str(why)) from why
    with listener:
        ours = path.stat().st_ino
        try:
            yield listener
        finally:
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_ino == ours:  # not the socket of one who came after us
                    path.unlink()


def _clear(path: Path) -> None:
    """Remove a socket that an ended process left behind. Raises: CannotListen where someone answers on it."""
    try:
        if not stat.S_ISSOCK(path.stat().st_mode):
            raise CannotListen(where=str(path), why="something else is there")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink(missing_ok=True)
        else:
            raise CannotListen(where=str(path), why="another process listens there")
