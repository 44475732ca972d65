"""The one-machine default as a whole: `up`, `down` and `status` of everything that belongs to one data directory."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from memctl.domain.support.errors import MemctlError
from memctl.infra.backup import sealed
from memctl.infra.beside import beside
from memctl.infra.data_dir import Folders
from memctl.infra.embedded import supervisor
from memctl.infra.embedded.postgres import after_damage, says_damaged
from memctl.infra.embedded.programs import PROGRAMS, Instance, Program, port_is_free, prepare, recalled
from memctl.infra.embedded.run import LOOK_AGAIN, tail
from memctl.infra.embedded.scrub import finish_scrub
from memctl.infra.endpoints import Endpoints, read_endpoints, write_endpoints
from memctl.infra.hooks.capture_policy import PASSED_FILE
from memctl.infra.hooks.spool import refusals
from memctl.infra.process import Process, memory

if TYPE_CHECKING:
    from memctl.infra.settings_model import Settings

_READY = 60.0
"""Seconds that a program which does nothing gets to be ready. One that computes or reads (recovery after a crash, a
first start on a busy machine) is waited for longer."""

_LONGEST = 600.0
"""Seconds that any program gets."""

_SAY_EVERY = 10.0
"""Seconds between two lines that say what is waited for."""

_CRASHES = 3
"""Starts that may fail before `up` stops waiting; supervisord goes on trying."""

_ATTEMPTS = 3
"""How often `up` picks other ports when someone takes one between the choice and its use."""

Report = Callable[[str], None]
"""Says to a person what is going on, one line at a time."""


class ProgramFailed(MemctlError):
    """{name} did not become ready: {why}"""

    name: str

    def __init__(self, name: str, why: str, hint: str) -> None:
        super().__init__(hint=hint, name=name, why=why)


class Busy(MemctlError):
    """Another `memctl up` or `memctl down` is at work in {data_dir}."""

    def __init__(self, data_dir: str) -> None:
        super().__init__(data_dir=data_dir, hint="wait for it, or end it")


@dataclass(frozen=True)
class ProgramStatus:
    """`state`: RUNNING (and ready), STARTING (not ready yet), or supervisord's word for why not; ELSEWHERE where the
    settings name a server of the user's own. Uptime in seconds, memory in bytes with shared pages counted once."""

    name: str
    state: str
    pid: int | None = None
    uptime: float | None = None
    memory: int | None = None

    @property
    def well(self) -> bool:
        return self.state in ("RUNNING", "ELSEWHERE")


@dataclass(frozen=True)
class InstanceStatus:
    folders: Folders
    running: bool
    programs: list[ProgramStatus]
    endpoints: Endpoints
    aside: tuple[str, ...] = ()
    """What was found damaged and set aside, for a person to look at; paths, relative to the data directory."""
    refused: int = 0
    """Deliveries of hooks that the spool had no room for."""

    @property
    def elsewhere(self) -> bool:
        """Whether the settings name every server, and nothing is supervised here: who serves, runs by itself."""
        return not self.running and {program.state for program in self.programs} == {"ELSEWHERE"}

    @property
    def well(self) -> bool:
        """Whether all that should run does."""
        return self.running and all(program.well for program in self.programs)


def up(settings: Settings, programs: tuple[Program, ...] = PROGRAMS, report: Report = lambda _: None) -> bool:
    """Have every program run and be ready, and the database at memctl's schema. False where that was so already.

    Programs that the settings place elsewhere are not started. Raises ProgramFailed with the end of its log; what
    already serves by then is left running.
    """
    folders = Folders(settings.data_dir)
    folders.make()
    wanted = tuple(program for program in programs if not _elsewhere(program, settings))
    fixed = _fixed_ports(settings)
    with _alone(folders, report):
        sealed.clear(folders.data)
        if supervisor.running(folders) is None:
            finish_scrub(folders)
        if supervisor.running(folders) is not None:
            instance = recalled(folders)
            if fixed.items() <= instance.ports.items() and _unchanged(instance, wanted):
                return _converge(instance, wanted, settings, report)
            report("what runs is not what is configured: starting everything again")
        avoid: frozenset[int] = frozenset()
        for attempt in range(_ATTEMPTS):
            _stop(folders)
            folders.make()
            instance = prepare(folders, wanted, avoid, fixed)
            try:
                _start(instance, wanted, settings, report)
                return True
            except ProgramFailed as failure:
                lost = instance.ports.get(failure.name)
                may_change = lost is not None and failure.name not in fixed and attempt + 1 < _ATTEMPTS
                if lost is None or not (may_change and _taken_by_another(instance, failure.name)):
                    raise
                report(f"port {lost} was taken meanwhile: trying others")
                avoid |= {lost}
    raise AssertionError("unreachable")


def down(settings: Settings, report: Report = lambda _: None) -> bool:
    """Stop everything and wait until it is gone; no socket and no pid file stays. False where nothing ran."""
    folders = Folders(settings.data_dir)
    if not folders.run.is_dir():
        return False
    with _alone(folders, report):
        stopped = _stop(folders)
        if folders.sockets.parent != folders.run:  # in /tmp, where nobody would tidy up after us
            with contextlib.suppress(OSError):
                folders.sockets.rmdir()
        return stopped


def status(settings: Settings, programs: tuple[Program, ...] = PROGRAMS) -> InstanceStatus:
    """What runs now, asked of the programs themselves."""
    folders = Folders(settings.data_dir)
    runs = supervisor.running(folders) is not None
    states: dict[str, supervisor.State] = {}
    if runs:
        with contextlib.suppress(OSError):
            states = supervisor.states(folders, supervisor.ASKED_S)
    by_themselves = not runs and all(_elsewhere(program, settings) for program in programs if not program.after_schema)
    instance = recalled(folders)

    def look(program: Program) -> ProgramStatus:
        if by_themselves or _elsewhere(program, settings):
            return ProgramStatus(program.name, "ELSEWHERE")
        state = states.get(program.name)
        process = Process.of(state.pid) if state is not None and state.pid else None
        if state is None or process is None:
            return ProgramStatus(program.name, state.state if state else "STOPPED")
        name = "RUNNING" if program.ready(instance, process) else "STARTING"
        return ProgramStatus(program.name, name, process.pid, process.age(), memory(process))

    statuses = [each.result() for each in [beside(partial(look, program)) for program in programs]]
    lost = refusals(folders.spool)
    return InstanceStatus(
        folders, runs, statuses, read_endpoints(folders), set_aside(folders), refused=lost.deliveries if lost else 0
    )


def set_aside(folders: Folders) -> tuple[str, ...]:
    """What was found damaged in a data directory and set aside, or stands where a folder should, as paths in it."""
    found = [
        *(each for each in (folders.spool,) if each.exists() and not each.is_dir()),
        *(each for each in (folders.data / PASSED_FILE,) if each.exists() and not each.is_file()),
        *folders.vectors.glob("damaged/*"), *folders.spool.glob("*.damaged"), *folders.spool.glob("*.refused"),
        *folders.valkey.glob("*.damaged-*"), *folders.data.glob("*.damaged"),
    ]  # fmt: skip
    return tuple(sorted(str(path.relative_to(folders.data)) for path in found))


def _elsewhere(program: Program, settings: Settings) -> bool:
    here = program.here is not None and settings.configured(program.here)
    return program.elsewhere is not None and settings.configured(program.elsewhere) and not here


def _fixed_ports(settings: Settings) -> dict[str, int]:
    """The port that a person set for the API of this machine, by its program's name."""
    return {"api": int(settings.api_listen.rpartition(":")[2])} if settings.api_listen else {}


def _unchanged(instance: Instance, wanted: tuple[Program, ...]) -> bool:
    """Whether the running supervisord has the configuration that we would write now, and its ports are still ours."""
    if any(program.has_port and program.name not in instance.ports for program in wanted):
        return False
    try:
        written = (instance.folders.run / "supervisord.conf").read_text()
        states = supervisor.states(instance.folders)
    except OSError:
        return False
    if written != supervisor.configuration(instance, wanted) or not read_endpoints(instance.folders):
        return False
    return not any(
        program.has_port and states[program.name].state != "RUNNING" and _taken_by_another(instance, program.name)
        for program in wanted
    )


def _taken_by_another(instance: Instance, name: str) -> bool:
    recorded = Process.recorded(instance.folders.record_of(name))
    return not port_is_free(instance.ports[name]) and (recorded is None or not recorded.lives())


def _converge(instance: Instance, wanted: tuple[Program, ...], settings: Settings, report: Report) -> bool:
    """Start what an earlier `up` did not, or what gave up since."""
    states = supervisor.states(instance.folders)
    asleep = [program for program in wanted if states[program.name].state not in ("RUNNING", "STARTING")]
    if not asleep and all(_is_ready(program, instance, states[program.name]) for program in wanted):
        return False
    for program in asleep:
        report(f"starting {program.name}")
    _start_programs(instance, wanted, settings, report)
    return True


def _start(instance: Instance, wanted: tuple[Program, ...], settings: Settings, report: Report) -> None:
    report(f"starting {', '.join(program.name for program in wanted)} in {instance.folders.data}")
    supervisor.start(instance.folders, supervisor.configuration(instance, wanted))
    try:
        _start_programs(instance, wanted, settings, report)
    except ProgramFailed as failure:
        if not any(program.after_schema for program in wanted if program.name == failure.name):
            _stop(instance.folders)  # without its servers nothing of memctl can serve
        raise


def _start_programs(instance: Instance, wanted: tuple[Program, ...], settings: Settings, report: Report) -> None:
    first = [program for program in wanted if not program.after_schema]
    then = [program for program in wanted if program.after_schema]
    for program in first:
        supervisor.start_program(instance.folders, program.name)
    migrate = _migrations()  # imports that take as long as the servers take to start
    _await(first, instance, report)
    endpoints: Endpoints = {}
    for program in wanted:
        endpoints |= program.endpoints(instance)
    write_endpoints(instance.folders, endpoints)
    url = endpoints.get("database_url") or settings.require("database_url")
    if "database_url" in endpoints:  # another's database is theirs to back up
        _keep_what_was(settings, url, report)
    migrate(url)
    for program in then:
        supervisor.start_program(instance.folders, program.name)
    _await(then, instance, report)


def _keep_what_was(settings: Settings, url: str, report: Report) -> None:
    """Back a log up that an older memctl left, before it is brought forward: only that one can read it afterwards."""
    from memctl.infra.backup.copies import before_upgrade
    from memctl.infra.database import connect

    try:
        with connect(url, name="memctl backup") as connection:
            if (file := before_upgrade(settings, connection)) is not None:
                report(f"as it was before this upgrade: {file}")
    except (OSError, MemctlError) as problem:
        report(f"no backup was made before this upgrade: {problem}")


def _migrations() -> Callable[[str], object]:
    import alembic.command  # noqa: F401
    import psycopg  # noqa: F401

    from memctl.infra.log.migrate import migrate

    return migrate


class _Wait:
    """How long a program has been waited for, and since when it does nothing: it takes no processor time."""

    def __init__(self) -> None:
        self._began = self._worked = time.monotonic()
        self._taken: tuple[int, float] = (0, 0.0)

    def over(self, process: Process | None) -> bool:
        """Whether there is no use in waiting any longer."""
        now = time.monotonic()
        taken = (process.pid, process.cpu()) if process is not None else (0, 0.0)
        if taken != self._taken:
            self._taken, self._worked = taken, now
        return now > self._worked + _READY or now > self._began + _LONGEST

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began


def _await(programs: list[Program], instance: Instance, report: Report) -> None:
    """Wait until each is ready, and say now and then for which. Raises ProgramFailed."""
    waits = {program.name: _Wait() for program in programs}
    said_at = time.monotonic()
    waiting = {program.name: program for program in programs}
    ends: dict[str, set[int]] = {name: set() for name in waiting}
    while waiting:
        try:
            states = supervisor.states(instance.folders)
        except OSError as failure:
            raise ProgramFailed("the supervisor", str(failure), _advice(instance, "supervisor")) from failure
        for name, program in list(waiting.items()):
            state = states[name]
            if _is_ready(program, instance, state):
                del waiting[name]
            elif state.state in ("BACKOFF", "EXITED", "FATAL"):
                ends[name].add(state.since)
            if name not in waiting:
                continue
            over = waits[name].over(Process.of(state.pid) if state.pid else None)
            if len(ends[name]) >= _CRASHES or state.state == "FATAL" or over:
                said = tail(instance.folders.log / f"{name}.log")
                raise ProgramFailed(name, f"{state.state}\n{said}".strip(), _advice(instance, name))
        if waiting and time.monotonic() > said_at + _SAY_EVERY:
            said_at = time.monotonic()
            report("waiting for " + ", ".join(f"{name} ({waits[name].seconds:.0f} s)" for name in waiting))
        time.sleep(LOOK_AGAIN)


def _advice(instance: Instance, name: str) -> str:
    if name == "postgres" and says_damaged(tail(instance.folders.log / "postgres.log")):
        return after_damage(instance.folders.postgres)
    return f"{instance.folders.log / name}.log has the rest; once mended, run `memctl up` again"


def _is_ready(program: Program, instance: Instance, state: supervisor.State) -> bool:
    process = Process.of(state.pid) if state.pid else None
    return process is not None and program.ready(instance, process)


def _stop(folders: Folders) -> bool:
    """End all that this data directory's record names, and what it left in the file system."""
    leader = supervisor.running(folders)
    if leader is not None:
        with contextlib.suppress(OSError):
            supervisor.shut_down(folders)
            leader.wait(float(sum(program.patience for program in PROGRAMS)))  # they end one after the other
        leader.end()
    # After a kill -9 of the supervisor its programs are on their way out; whatever will not go is made to.
    ran = leader is not None
    for record in sorted(folders.run.glob("*.pid")):
        recorded = Process.recorded(record)
        if recorded is not None and recorded.lives():
            ran = True
            if not recorded.end(signal.SIGINT if record.stem == "postgres" else signal.SIGTERM):
                raise MemctlError(
                    f"process {recorded.pid} ({record.stem}) does not end", hint="end it yourself, then try again"
                )
        record.unlink(missing_ok=True)
    shutil.rmtree(folders.sockets, ignore_errors=True)
    for file in (
        folders.endpoints,
        folders.door_file,
        folders.api_file,
        folders.run / "supervisord.conf",
        folders.run / "vectors.token",
    ):
        file.unlink(missing_ok=True)
    return ran


@contextlib.contextmanager
def _alone(folders: Folders, report: Report, patience: float = 120.0) -> Iterator[None]:
    """One `up` or `down` at a time in one data directory. The lock ends with its holder, however that ends."""
    handle = os.open(folders.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        deadline = time.monotonic() + patience
        reported = False
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not reported:
                    report("another memctl up or down is at work: waiting for it")
                    reported = True
                if time.monotonic() > deadline:
                    raise Busy(str(folders.data)) from None
                time.sleep(LOOK_AGAIN)
        yield
    finally:
        os.close(handle)
