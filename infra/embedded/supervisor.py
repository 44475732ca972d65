"""supervisord as memctl uses it: its configuration, its start, and questions over its Unix socket."""

import contextlib
import http.client
import os
import socket
import string
import subprocess
import sys
import time
import xmlrpc.client
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from memctl.infra.beside import beside
from memctl.infra.data_dir import Folders, open_log, write_private
from memctl.infra.embedded.programs import PROGRAMS, Instance, Program, recalled
from memctl.infra.embedded.run import LOOK_AGAIN, ServerDidNotStart, tail
from memctl.infra.process import Process, is_stopped

_PATIENCE = 15.0
"""Seconds that supervisord gets to start, and to answer."""

ASKED_S = 5.0
"""Seconds that supervisord gets to answer who only looks."""

_ALREADY_STARTED = 60
"""supervisor.xmlrpc.Faults.ALREADY_STARTED"""

_HEAD = """\
; Written by `memctl up` (memctl {version}); paths are relative to the data directory.
[supervisord]
nodaemon = true
silent = true
logfile = log/supervisor.log
logfile_maxbytes = 1MB
logfile_backups = 2
pidfile = run/supervisord.pid
identifier = memctl

[unix_http_server]
file = {socket}
chmod = 0700

[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
"""

# A crash is answered after 1 s, 2 s, 3 s, …: what mends itself within five days (a full disk) needs nobody.
_PROGRAM = """
[program:{name}]
command = {command}
priority = {priority}
autostart = false
autorestart = true
startsecs = 1
startretries = 1000
stopsignal = {stop}
stopwaitsecs = {patience}
killasgroup = true
redirect_stderr = true
stdout_logfile = log/{name}.log
stdout_logfile_maxbytes = 5MB
stdout_logfile_backups = 2
"""


@dataclass(frozen=True)
class State:
    """One program as supervisord sees it. `since`: when it last started or ended, in seconds since 1970."""

    name: str
    state: str
    pid: int
    since: int


def configuration(instance: Instance, programs: tuple[Program, ...]) -> str:
    from importlib.metadata import version

    folders = instance.folders
    text = _HEAD.format(version=version("memctl"), socket=os.path.relpath(_socket(folders), folders.data))
    for place, program in enumerate(programs):
        text += _PROGRAM.format(
            name=program.name,
            command=" ".join(_word(word) for word in program.argv(instance)),
            priority=10 * (place + 1),
            stop=program.stop.name.removeprefix("SIG"),
            patience=program.patience,
        )
    return text


def running(folders: Folders) -> Process | None:
    """The instance's supervisord, if it lives."""
    recorded = Process.recorded(folders.supervisor_record)
    return recorded if recorded is not None and recorded.lives() else None


def start(folders: Folders, text: str) -> None:
    """Start supervisord in the background with this configuration, and wait until it answers.

    It starts no program by itself. Raises ServerDidNotStart.
    """
    log = folders.log / "supervisor.err"
    folders.supervisor_record.unlink(missing_ok=True)
    write_private(folders.run / "supervisord.conf", text)
    log.unlink(missing_ok=True)
    python = [sys.executable, "-P", "-W", "ignore", "-m"]
    argv = [*python, "memctl.infra.embedded.launch", "--leads", "--record", "run/supervisor.pid", "--"]
    argv += [*python, "memctl.infra.embedded.supervise", "-n", "-c", "run/supervisord.conf"]
    with open_log(log) as output:
        subprocess.run(  # noqa: S603
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folders.data,
            env={**os.environ, "MEMCTL_DATA_DIR": str(folders.data)},
            check=True,
        )
    deadline = time.monotonic() + _PATIENCE
    seen = False
    while True:
        alive = running(folders) is not None
        if alive:
            seen = True
            with contextlib.suppress(OSError), talk(folders) as supervisor:
                supervisor.supervisor.getState()
                return
        if (seen and not alive) or time.monotonic() > deadline:
            raise ServerDidNotStart("the supervisor", tail(log) or tail(folders.log / "supervisor.log"))
        time.sleep(LOOK_AGAIN)


def states(folders: Folders, patience: float = _PATIENCE) -> dict[str, State]:
    """Each configured program. Raises OSError where supervisord does not answer within `patience` seconds."""
    with talk(folders, patience) as supervisor:
        found: list[dict[str, Any]] = supervisor.supervisor.getAllProcessInfo()
    return {
        one["name"]: State(one["name"], one["statename"], one["pid"], max(one["start"], one["stop"])) for one in found
    }


def silent(folders: Folders, found: Iterable[State]) -> tuple[str, ...]:
    """Which of these programs run and do not answer when they are asked."""
    instance, programs = recalled(folders), {program.name: program for program in PROGRAMS}
    running = [(each.name, process) for each in found if each.pid and (process := Process.of(each.pid)) is not None]

    def answers(each: tuple[str, Process]) -> bool:
        name, process = each
        return not is_stopped(process.pid) and (name not in programs or programs[name].ready(instance, process))

    asked = [(each[0], beside(partial(answers, each))) for each in running]
    return tuple(name for name, well in asked if not well.result())


def start_program(folders: Folders, name: str) -> None:
    """Have it started now, without waiting; nothing happens to one that runs. One that waits to be tried again after
    a crash is tried at once. Raises ServerDidNotStart where supervisord cannot even try."""
    with talk(folders) as supervisor:
        if supervisor.supervisor.getProcessInfo(name)["statename"] == "BACKOFF":
            with contextlib.suppress(xmlrpc.client.Fault):  # it was tried again meanwhile
                supervisor.supervisor.stopProcess(name)
        try:
            supervisor.supervisor.startProcess(name, False)
        except xmlrpc.client.Fault as fault:
            if fault.faultCode != _ALREADY_STARTED:
                raise ServerDidNotStart(name, fault.faultString) from fault


def shut_down(folders: Folders) -> None:
    """Have supervisord stop its programs, the last first, and end; without waiting."""
    with talk(folders) as supervisor:
        supervisor.supervisor.shutdown()


@contextlib.contextmanager
def talk(folders: Folders, patience: float = _PATIENCE) -> Iterator[Any]:
    """A connection to supervisord. Raises OSError where it does not answer in time, or refuses."""
    with xmlrpc.client.ServerProxy("http://localhost", transport=_Transport(_socket(folders), patience)) as supervisor:
        try:
            yield supervisor
        except (xmlrpc.client.Error, http.client.HTTPException) as failure:  # it is about to end, for instance
            raise ConnectionError(f"the supervisor refused: {failure}") from failure


class _Transport(xmlrpc.client.Transport):
    def __init__(self, path: str, patience: float) -> None:
        super().__init__()
        self._path, self._patience = path, patience

    def make_connection(self, host: Any) -> http.client.HTTPConnection:
        return _UnixConnection(self._path, self._patience)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, patience: float) -> None:
        super().__init__("localhost", timeout=patience)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _socket(folders: Folders) -> str:
    return str(folders.sockets / "supervisor.sock")


_PLAIN = frozenset(string.ascii_letters + string.digits + "_./:=@%-")


def _word(word: str) -> str:
    """One word of a command, safe from shlex, from the file's comments and from supervisor's expansions."""
    if "\n" in word or "\r" in word:
        raise ValueError(f"a line break in a program's path: {word!r}")
    return "".join(f"{'' if c in _PLAIN else chr(92)}{c}" for c in word).replace("%", "%%")
