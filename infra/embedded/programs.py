"""The programs of one instance: how each is started, when it is ready, and what it answers on.

A new program is one entry of PROGRAMS.
"""

from __future__ import annotations

import json
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from memctl.infra.data_dir import Folders, write_private
from memctl.infra.embedded.postgres import STOP as POSTGRES_STOP
from memctl.infra.embedded.postgres import Cluster
from memctl.infra.embedded.valkey import Queue
from memctl.infra.endpoints import Endpoints
from memctl.infra.files import NoRegularFile, read_file
from memctl.infra.process import Process


@dataclass(frozen=True)
class Instance:
    """What programs are given: folders, tokens that stay from one `up` to the next, and a loopback port by program."""

    folders: Folders
    tokens: dict[str, str] = field(repr=False)
    ports: dict[str, int]

    @property
    def cluster(self) -> Cluster:
        return Cluster(self.folders.postgres, self.folders.sockets)

    @property
    def queue(self) -> Queue:
        return Queue(self.folders.valkey, self.folders.sockets)

    @property
    def door(self) -> Path:
        return self.folders.sockets / "door.sock"

    @property
    def api(self) -> Path:
        return self.folders.sockets / "api.sock"

    @property
    def vectors_token_file(self) -> Path:
        return self.folders.run / "vectors.token"

    def address(self, program: str) -> str:
        return f"http://127.0.0.1:{self.ports[program]}"


def _nothing(_: Instance) -> Endpoints:
    return {}


@dataclass(frozen=True)
class Program:
    """One program of the table.

    `argv` is run in the data directory, so that a path's characters never reach the supervisor's configuration.
    `elsewhere` is the setting that, once a person set it, means the program runs somewhere else, but where `here` is
    set, too.
    `after_schema`: start it only once the database has memctl's schema.
    `ready` is asked with the living process. `endpoints` need not be reachable yet when it is called.
    """

    name: str
    argv: Callable[[Instance], list[str]]
    ready: Callable[[Instance, Process], bool]
    endpoints: Callable[[Instance], Endpoints] = _nothing
    elsewhere: str | None = None
    here: str | None = None
    has_port: bool = False
    after_schema: bool = True
    stop: signal.Signals = signal.SIGTERM
    patience: int = 10  # seconds it may take to stop


def _own(program: str, *arguments: str) -> Callable[[Instance], list[str]]:
    """A verb of memctl's own, started through the launcher."""

    def argv(_: Instance) -> list[str]:
        return [*_launched(program), *_module("memctl.cli"), program, *arguments]

    return argv


def _vectors(instance: Instance) -> list[str]:
    where = ("--dir", instance.folders.vectors.name, "--port", str(instance.ports["vectors"]))
    token = ("--token-file", str(instance.vectors_token_file.relative_to(instance.folders.data)))
    return [*_launched("vectors"), *_module("memctl.infra.vectors.server"), *where, *token]


def _server(module: str, name: str) -> Callable[[Instance], list[str]]:
    def argv(instance: Instance) -> list[str]:
        return [*_module(module), name, str(instance.folders.sockets), f"run/{name}.pid"]

    return argv


def _launched(program: str) -> list[str]:
    return [*_module("memctl.infra.embedded.launch"), "--record", f"run/{program}.pid", "--"]


PATIENCE_S = 5.0
"""Within which a program has to answer that it is alive."""


def _module(name: str) -> list[str]:
    return [sys.executable, "-P", "-m", name]  # -P: a stranger's folder never comes before memctl's own modules


def _answers(program: str) -> Callable[[Instance, Process], bool]:
    """Whether its HTTP server says that it is alive."""

    def ready(instance: Instance, _: Process) -> bool:
        port = instance.ports.get(program)
        if port is None:  # nobody knows it any more: what knew it was damaged
            return False
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
                return _alive(client)
        except (OSError, OverflowError):
            return False

    return ready


def _answers_hooks(instance: Instance, _: Process) -> bool:
    """Whether the API says that it is alive at its socket, whichever port it listens on."""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE_S)
            client.connect(str(instance.api))
            return _alive(client)
    except OSError:
        return False


def _alive(client: socket.socket) -> bool:
    client.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    return client.recv(64).split(b" ")[1:2] == [b"200"]


def _takes(instance: Instance, _: Process) -> bool:
    """Whether the door answers an empty line."""
    return bool(_asked_door(instance))


class DoorState(NamedTuple):
    """For how many seconds the door is at each step that it is at, how many transcripts it could not read, and of how
    many deliveries nothing since it started, with the names of some."""

    steps: dict[str, float]
    unread: tuple[str, ...] = ()
    unread_count: int = 0
    empty: tuple[str, ...] = ()
    empty_count: int = 0


def door_state(instance: Instance) -> DoorState:
    """How the threads of the door stand; nothing where it does not say."""
    try:
        said = json.loads(_asked_door(instance))
        steps = {str(what): float(seconds) for what, seconds in said["steps"].items()}
        unread, empty = (tuple(map(str, said[each])) for each in ("unread", "empty"))
        return DoorState(steps, unread, int(said["unread_count"]), empty, int(said["empty_count"]))
    except (ValueError, TypeError, LookupError, AttributeError):
        return DoorState({})


LONGEST_ANSWER = 1 << 16
"""Bytes of what the door says of itself: six names, each letter of which may take six."""


def _asked_door(instance: Instance) -> bytes:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(PATIENCE_S)
        try:
            client.connect(str(instance.door))
            client.sendall(b"\n")
            answer, deadline = b"", time.monotonic() + PATIENCE_S
            while not answer.endswith(b"\n") and len(answer) < LONGEST_ANSWER:
                client.settimeout(max(0.01, deadline - time.monotonic()))
                if not (more := client.recv(4096)):
                    break
                answer += more
            return answer
        except OSError:
            return b""


def _says_so(instance: Instance, process: Process) -> bool:
    """Whether the worker of this very process has written that it works."""
    try:
        return (instance.folders.run / WORKER_READY).read_text() == str(process.pid)
    except OSError:
        return False


WORKER_READY = "worker.ready"

PROGRAMS = (
    Program(
        "postgres",
        _server("memctl.infra.embedded.postgres", "postgres"),
        lambda instance, process: instance.cluster.ready(process),
        lambda instance: {"database_url": instance.cluster.url},
        elsewhere="database_url",
        after_schema=False,
        stop=POSTGRES_STOP,
        patience=30,
    ),
    Program(
        "valkey",
        _server("memctl.infra.embedded.valkey", "valkey"),
        lambda instance, process: instance.queue.ready(process),
        lambda instance: {"redis_url": instance.queue.url},
        elsewhere="redis_url",
        after_schema=False,
    ),
    Program(
        "vectors",
        _vectors,
        _answers("vectors"),
        lambda instance: {"qdrant_url": instance.address("vectors"), "qdrant_api_key": instance.tokens["vectors"]},
        elsewhere="qdrant_url",
        has_port=True,
        after_schema=False,
    ),
    Program(
        "door",
        _own("door"),
        _takes,
        lambda instance: {"door_socket": str(instance.door)},
        elsewhere="door_socket",
    ),
    Program(
        "api",
        lambda instance: [*_launched("api"), *_module("memctl.cli"), "serve"],
        _answers_hooks,
        lambda instance: {
            "api_url": instance.address("api"),
            "api_token": instance.tokens["api"],
            "api_socket": str(instance.api),
        },
        elsewhere="api_url",
        here="api_listen",
        has_port=True,
    ),
    # A batch under way is finished first, and then every thread may end what it is at; its guard kills it after 20 s.
    Program("worker", _own("worker", "--ready-file", f"run/{WORKER_READY}"), _says_so, patience=25),
)
"""In the order of their start; they are stopped in the other."""

SERVERS = tuple(program for program in PROGRAMS if not program.after_schema)
"""Those that keep what memctl knows; nothing comes in through them alone."""


def prepare(
    folders: Folders,
    programs: tuple[Program, ...],
    avoid: frozenset[int] = frozenset(),
    fixed: Mapping[str, int] = MappingProxyType({}),
) -> Instance:
    """The instance of these folders, with the tokens and ports it had before where it had any.

    A port that someone else took meanwhile, or that is to be avoided, is replaced by a free one, but for the `fixed`
    ones, which a person set.
    """
    kept = recalled(folders)
    tokens = {name: kept.tokens.get(name) or secrets.token_urlsafe(32) for name in ("api", "vectors")}
    ports = {**kept.ports, **fixed}
    for name in (program.name for program in programs if program.has_port and program.name not in fixed):
        before = ports.get(name)
        if before is None or before in avoid or not port_is_free(before):
            ports[name] = _free_port()
    write_private(folders.keys, json.dumps({"tokens": tokens, "ports": ports}, indent=2) + "\n")
    instance = Instance(folders, tokens, ports)
    write_private(instance.vectors_token_file, tokens["vectors"] + "\n")
    return instance


def recalled(folders: Folders) -> Instance:
    """The instance as the last `up` left it."""
    try:
        known = json.loads(read_file(folders.keys))
        return Instance(folders, dict(known["tokens"]), {name: int(port) for name, port in known["ports"].items()})
    except FileNotFoundError:
        pass
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, NoRegularFile):
        # Nothing but clients that run right now depends on the old tokens. Set aside, so that someone can look.
        aside = folders.keys.with_suffix(".damaged")
        folders.keys.replace(aside if not aside.exists() else folders.keys.with_suffix(f".{time.time_ns()}.damaged"))
    return Instance(folders, {}, {})


def port_is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: waiting remnants do not count
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
