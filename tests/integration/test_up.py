"""`up`, `down` and `status` over real processes.

The programs are limited to Postgres and Valkey, which have everything that is hard about the others: state on disk,
children of their own, a user they refuse to run as.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import psycopg
import pytest
import redis
from apis import free_port
from waiting import until

from memctl.infra.data_dir import FolderNotPrivate, Folders, make_private
from memctl.infra.embedded import instance as instance_module
from memctl.infra.embedded import supervisor
from memctl.infra.embedded.instance import ProgramFailed, down, status, up
from memctl.infra.embedded.postgres import binaries, start_postgres
from memctl.infra.embedded.programs import PROGRAMS, Instance, Program, port_is_free, prepare
from memctl.infra.embedded.run import ServerDidNotStart
from memctl.infra.endpoints import NotRunning
from memctl.infra.process import Process
from memctl.infra.settings import Settings, load_settings

BASE = tuple(program for program in PROGRAMS if program.name in ("postgres", "valkey"))

UP = """
import sys
from memctl.infra.embedded.instance import up
from memctl.infra.embedded.programs import PROGRAMS
from memctl.infra.settings import load_settings
print(up(load_settings(), PROGRAMS[:2], lambda line: print(line, file=sys.stderr)))
"""

IN_USE = """
import sys, psycopg, redis
from memctl.infra.embedded.instance import down, status
from memctl.infra.embedded.programs import PROGRAMS
from memctl.infra.settings import load_settings
settings = load_settings()
assert psycopg.connect(settings.database_url).execute("SELECT 1").fetchone() == (1,)
assert redis.Redis.from_url(settings.redis_url).ping()
assert status(settings, PROGRAMS[:2]).well
assert down(settings)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short private folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="memctl-test-") as name:
        yield Path(name)


@contextlib.contextmanager
def instance_in(data: Path) -> Iterator[Settings]:
    """The settings of an instance in `data` whose processes and sockets are gone when the block is left."""
    settings = load_settings(data_dir=data)
    try:
        yield settings
    finally:
        down(settings)


def recorded(settings: Settings) -> dict[str, Process]:
    found = {file.stem: Process.recorded(file) for file in Folders(settings.data_dir).run.glob("*.pid")}
    return {name: process for name, process in found.items() if process is not None}


def endpoints(settings: Settings) -> Settings:
    return load_settings(data_dir=settings.data_dir)


def connect(settings: Settings) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(endpoints(settings).require("database_url"), autocommit=True)


def everything_in(data: Path) -> list[Path]:
    return [Path(root) / name for root, folders, files in os.walk(data) for name in (*folders, *files)]


def test_up_makes_everything_once_and_down_leaves_only_what_is_stored(folder: Path) -> None:
    data = folder / "data"
    with instance_in(data) as settings:
        assert up(settings, BASE) is True
        first = recorded(settings)
        assert {"supervisor", "postgres", "valkey"} <= set(first)
        with connect(settings) as connection:
            is_superuser = "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"
            assert connection.execute(is_superuser).fetchone() == (False,)
            assert connection.execute("SHOW data_checksums").fetchone() == ("on",)
            assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
            assert connection.execute("SELECT to_regclass('events') IS NOT NULL").fetchone() == (True,)
        with contextlib.closing(redis.Redis.from_url(endpoints(settings).require("redis_url"))) as client:
            assert client.config_get("port") == {"port": "0"}
        found = status(settings, BASE)
        assert found.well
        assert [(program.name, program.state) for program in found.programs] == [
            ("postgres", "RUNNING"),
            ("valkey", "RUNNING"),
        ]
        assert all(program.memory and program.uptime is not None for program in found.programs)

        assert up(settings, BASE) is False
        assert recorded(settings) == first

        assert {path for path in (data, *everything_in(data)) if path.lstat().st_mode & 0o077} == set()

        assert down(settings) is True
        assert not any(process.lives() for process in first.values())
        assert [path for path in everything_in(data) if path.is_socket() or path.suffix == ".pid"] == []
        assert down(settings) is False
        assert not status(settings, BASE).well
        with pytest.raises(NotRunning):
            endpoints(settings).require("database_url")


def test_what_was_stored_is_there_after_down_and_up(folder: Path) -> None:
    with instance_in(folder / "data") as settings:
        up(settings, BASE)
        with connect(settings) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        down(settings)
        up(settings, BASE)
        with connect(settings) as connection:
            assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)


def test_instances_live_side_by_side_whatever_their_paths_are(folder: Path) -> None:
    strange = folder / "it's a; #very %(here)s, 긴 " / ("long" * 40)
    with instance_in(folder / "plain") as one, instance_in(strange) as other:
        up(one, BASE)
        up(other, BASE)
        with connect(one) as connection, connect(other) as elsewhere:
            connection.execute("CREATE TABLE mine ()")
            assert elsewhere.execute("SELECT to_regclass('mine')").fetchone() == (None,)
        sockets = Folders(strange).sockets
        assert sockets.stat().st_mode & 0o777 == 0o700
        down(other)
        assert not sockets.exists()
        assert status(one, BASE).well


def test_programs_end_when_the_supervisor_is_killed_and_up_starts_them_again(folder: Path) -> None:
    with instance_in(folder / "data") as settings:
        up(settings, BASE)
        before = recorded(settings)
        os.kill(before["supervisor"].pid, signal.SIGKILL)
        until(lambda: not any(process.lives() for process in before.values()), "the end of all programs")
        assert not status(settings, BASE).well
        with pytest.raises(NotRunning):
            endpoints(settings).require("database_url")
        assert up(settings, BASE) is True
        assert status(settings, BASE).well


def test_up_works_after_everything_was_killed_in_the_middle_of_work(folder: Path) -> None:
    with instance_in(folder / "data") as settings:
        up(settings, BASE)
        with connect(settings) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        busy = connect(settings)
        session = Process.of(busy.info.backend_pid)
        assert session is not None

        def compute() -> None:
            with contextlib.suppress(psycopg.Error):
                busy.execute("SELECT count(*) FROM generate_series(1, 1000000000000)")

        computing = threading.Thread(target=compute)
        computing.start()
        with connect(settings) as watcher:
            active = "SELECT state FROM pg_stat_activity WHERE pid = %s"
            until(lambda: watcher.execute(active, [session.pid]).fetchone() == ("active",), "a busy session")
        for process in recorded(settings).values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)

        assert session.lives()  # it does not look up from its work: `up` has to see to it
        assert up(settings, BASE) is True
        assert not session.lives()
        computing.join()
        busy.close()
        with connect(settings) as connection:
            assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)


def test_a_program_that_is_killed_is_started_again_by_the_supervisor(folder: Path) -> None:
    with instance_in(folder / "data") as settings:
        up(settings, BASE)
        before = recorded(settings)["valkey"]
        os.kill(before.pid, signal.SIGKILL)
        until(lambda: recorded(settings)["valkey"] != before and status(settings, BASE).well, "a new Valkey")


def test_a_process_that_only_shares_a_recorded_pid_is_left_alone(folder: Path) -> None:
    with instance_in(folder / "data") as settings, subprocess.Popen(["sleep", "600"]) as bystander:
        try:
            up(settings, BASE)
            down(settings)
            places = Folders(settings.data_dir)
            this = Process.of(bystander.pid)
            assert this is not None
            for name in ("supervisor", "postgres", "valkey"):
                Process(this.pid, this.started - 1, this.boot).record(places.record_of(name))
            # What Postgres itself would leave behind if the machine lost power, and would then refuse to start for:
            lock = [
                str(bystander.pid),
                str(places.postgres / "data"),
                "1",
                "5432",
                str(places.sockets),
                "",
                "",
                "ready",
            ]
            (places.postgres / "data" / "postmaster.pid").write_text("\n".join(lock) + "\n")
            assert up(settings, BASE) is True
            assert status(settings, BASE).well
            down(settings)
            assert this.lives()
        finally:
            bystander.kill()


def test_two_ups_at_once_start_one_instance(folder: Path) -> None:
    data = folder / "data"
    environment = {**os.environ, "MEMCTL_DATA_DIR": str(data)}
    with instance_in(data) as settings:
        both = [
            subprocess.Popen(
                [sys.executable, "-P", "-c", UP],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(2)
        ]
        told = [popen.communicate(timeout=90) for popen in both]
        assert [popen.returncode for popen in both] == [0, 0], told
        assert sorted(out.strip() for out, _ in told) == ["False", "True"]
        assert status(settings, BASE).well


@pytest.mark.parametrize("known", [True, False], ids=["with an entry in the user database", "without one"])
def test_up_works_as_a_plain_user(known: bool) -> None:
    if os.geteuid() != 0:
        pytest.skip("the whole suite runs as a plain user already")
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv (util-linux) is needed to become another user")
    user = pwd.getpwnam("nobody").pw_uid if known else 54_321
    become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    child = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', 'import memctl.infra']).returncode)"
    if subprocess.run([*become, sys.executable, "-c", child], capture_output=True, check=False).returncode != 0:
        # The interpreter itself lies in a closed folder here: let the user pass through folders, and nothing else.
        become += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search", "--securebits=+no_setuid_fixup"]
    initdb = str(binaries() / "initdb")
    if not known and subprocess.run([*become[:4], "test", "-x", initdb], check=False).returncode != 0:
        pytest.skip("the virtual environment lies in a folder that is closed to plain users")
    with tempfile.TemporaryDirectory(prefix="memctl-test-") as name:
        os.chown(name, user, user)
        environment = {
            **os.environ,
            "MEMCTL_DATA_DIR": f"{name}/data",
            "HOME": name,
            "XDG_CONFIG_HOME": f"{name}/config",
        }
        try:
            for script in (UP, IN_USE):
                done = subprocess.run(
                    [*become, sys.executable, "-P", "-c", script],
                    env=environment,
                    cwd="/",
                    capture_output=True,
                    text=True,
                    timeout=90,
                    check=False,
                )
                assert done.returncode == 0, done.stderr
            assert {path.lstat().st_uid for path in everything_in(Path(name))} == {user}
        finally:
            if supervising := supervisor.running(Folders(Path(name) / "data")):
                supervising.end()


def test_root_starts_postgres_where_the_kernel_refuses_user_namespaces(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root has to become someone else for Postgres")
    script = f"""
import psycopg
from pathlib import Path
from memctl.infra.embedded.postgres import start_postgres
for _ in range(2):
    with start_postgres(Path({str(folder / "pg")!r})) as postgres:
        assert psycopg.connect(postgres.url).execute("SELECT 1").fetchone() == (1,)
        print(Path(f"/proc/{{postgres.server.pid}}/status").read_text())
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        preexec_fn=refuse_user_namespaces,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "\nUid:\t0\t" not in done.stdout
    # The next start, where namespaces are granted again, takes its files back.
    with start_postgres(folder / "pg") as postgres, psycopg.connect(postgres.url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def refuse_user_namespaces() -> None:
    """Have unshare(2) fail for this process and all that come from it, as containers do."""
    numbers = {"x86_64": (0xC000003E, 272), "aarch64": (0xC00000B7, 97)}
    architecture, unshare = numbers[platform.machine()]
    load, equal, answer = 0x20, 0x15, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000 | 1  # EPERM
    steps = [
        (load, 0, 0, 4),
        (equal, 0, 3, architecture),
        (load, 0, 0, 0),
        (equal, 0, 1, unshare),
        (answer, 0, 0, refuse),
        (answer, 0, 0, allow),
    ]

    class Step(ctypes.Structure):
        _fields_ = (("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("k", ctypes.c_uint32))

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_uint16), ("steps", ctypes.POINTER(Step)))

    program = (Step * len(steps))(*steps)
    libc = ctypes.CDLL(None, use_errno=True)
    set_seccomp, mode_filter = 22, 2
    if libc.prctl(set_seccomp, mode_filter, ctypes.byref(Filter(len(steps), program))) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def test_a_server_that_the_settings_name_is_used_and_not_started(
    folder: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_DATABASE_URL", postgres_url)
    with instance_in(folder / "data") as settings:
        up(settings, BASE)
        assert [program.state for program in status(settings, BASE).programs] == ["ELSEWHERE", "RUNNING"]
        assert not (settings.data_dir / "postgres").exists()
        with psycopg.connect(postgres_url) as connection:
            assert connection.execute("SELECT to_regclass('events') IS NOT NULL").fetchone() == (True,)


def failing(*, after_schema: bool) -> Program:
    return Program(
        "broken",
        lambda _: [sys.executable, "-c", "raise SystemExit('a wheel came off')"],
        lambda _, __: False,
        after_schema=after_schema,
    )


def late(work: str, monkeypatch: pytest.MonkeyPatch) -> Program:
    """A program that is ready after four seconds, in which it does `work` again and again. The servers start before it
    with the usual limit. From its first look on, a program that does nothing gets 1.5 seconds."""
    until = "iter(lambda: time.monotonic() < t + 4, False)"
    code = f"import time; t = time.monotonic(); [{work} for _ in {until}]; open('run/late', 'w'); time.sleep(99)"

    def ready(instance: Instance, _: object) -> bool:
        monkeypatch.setattr(instance_module, "_READY", 1.5)
        return (instance.folders.run / "late").exists()

    return Program("late", lambda _: [sys.executable, "-c", code], ready)


def test_a_program_that_is_at_work_is_waited_for_and_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instance_module, "_SAY_EVERY", 1.0)
    reported: list[str] = []
    with instance_in(folder / "data") as settings:
        assert up(settings, (*BASE, late("t", monkeypatch)), reported.append) is True
    assert any(line.startswith("waiting for late (") for line in reported)


def test_a_program_that_does_nothing_is_waited_for_so_long_and_no_longer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with instance_in(folder / "data") as settings, pytest.raises(ProgramFailed, match="late did not become ready"):
        up(settings, (*BASE, late("time.sleep(60)", monkeypatch)))


def test_a_program_that_fails_is_named_with_the_end_of_its_log(folder: Path) -> None:
    with instance_in(folder / "data") as settings:
        with pytest.raises(ProgramFailed, match=r"broken did not become ready[\s\S]*a wheel came off") as raised:
            up(settings, (*BASE, failing(after_schema=True)))
        assert "broken.log" in str(raised.value.hint)
        found = {
            program.name: program.well for program in status(settings, (*BASE, failing(after_schema=True))).programs
        }
        assert found == {"postgres": True, "valkey": True, "broken": False}


def test_nothing_is_left_running_when_a_server_that_all_need_fails(folder: Path) -> None:
    with instance_in(folder / "data") as settings:
        with pytest.raises(ProgramFailed, match="a wheel came off"):
            up(settings, (*BASE, failing(after_schema=False)))
        assert not status(settings, BASE).running
        assert recorded(settings) == {}


def test_ports_stay_from_one_up_to_the_next_unless_someone_took_them(folder: Path) -> None:
    places = Folders(folder / "data")
    places.make()
    first = prepare(places, PROGRAMS)
    assert prepare(places, PROGRAMS) == first
    assert len(set(first.ports.values())) == len(first.ports) == 2
    with socket.create_server(("127.0.0.1", first.ports["api"])):
        second = prepare(places, PROGRAMS)
    assert second.ports["api"] != first.ports["api"]
    assert (second.ports["vectors"], second.tokens) == (first.ports["vectors"], first.tokens)
    assert places.keys.stat().st_mode & 0o777 == 0o600


def test_a_port_taken_between_choice_and_use_is_replaced(folder: Path) -> None:
    taken: list[socket.socket] = []

    def serve(instance: Instance) -> list[str]:
        if not taken:  # someone is faster than the program, once
            taken.append(socket.create_server(("127.0.0.1", instance.ports["web"])))
        launcher = [sys.executable, "-P", "-m", "memctl.infra.embedded.launch", "--record", "run/web.pid", "--"]
        return [*launcher, sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(instance.ports["web"])]

    web = Program(
        "web",
        serve,
        lambda instance, process: not port_is_free(instance.ports["web"]) and process.age() > 1,
        has_port=True,
    )
    told: list[str] = []
    with instance_in(folder / "data") as settings:
        try:
            assert up(settings, (*BASE, web), told.append) is True
            assert any("was taken" in line for line in told)
            assert status(settings, (*BASE, web)).well
        finally:
            for listener in taken:
                listener.close()


def test_a_cluster_whose_making_was_interrupted_is_made_again(folder: Path) -> None:
    (folder / "pg" / "data.new" / "base").mkdir(parents=True)
    with start_postgres(folder / "pg") as postgres, psycopg.connect(postgres.url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_cluster_of_another_major_version_is_refused_with_what_to_do(folder: Path) -> None:
    with start_postgres(folder / "pg"):
        pass
    made = folder / "pg" / "data" / "PG_VERSION"
    installed = made.read_text().strip()
    made.write_text("9\n")
    told = f"made by PostgreSQL 9, and the one installed is {installed}"
    with pytest.raises(ServerDidNotStart, match=told), start_postgres(folder / "pg"):
        pass


def test_a_lost_password_is_replaced(folder: Path) -> None:
    with start_postgres(folder / "pg") as postgres:
        before = postgres.url
    (folder / "pg" / "password").unlink()
    with start_postgres(folder / "pg") as postgres, psycopg.connect(postgres.url) as connection:
        assert postgres.url != before
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_the_log_of_postgres_holds_no_statement_and_no_value(folder: Path) -> None:
    with start_postgres(folder / "pg") as postgres, psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE words (word text PRIMARY KEY)")
        for _ in range(2):
            with contextlib.suppress(psycopg.Error):
                connection.execute("INSERT INTO words VALUES ('hunter2')")
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT 'hunter2'::int")
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT hunter2")
    log = (folder / "pg" / "log").read_text()
    assert "ready to accept connections" in log
    assert "hunter2" not in log


def test_a_folder_that_is_not_ours_alone_is_refused_or_closed(folder: Path) -> None:
    loose = folder / "loose"
    loose.mkdir(mode=0o755)
    make_private(loose)
    assert loose.stat().st_mode & 0o777 == 0o700

    (folder / "file").touch()
    with pytest.raises(FolderNotPrivate, match="not a folder"):
        make_private(folder / "file")

    with tempfile.TemporaryDirectory(prefix="memctl-test-") as name:
        link = Path(name + "-link")
        link.symlink_to(name)
        try:
            with pytest.raises(FolderNotPrivate, match="symbolic link"):
                make_private(link)
        finally:
            link.unlink()

    if os.geteuid() == 0:
        os.chown(loose, 54_321, -1)
        with pytest.raises(FolderNotPrivate, match="belongs to the user with number 54321"):
            make_private(loose)


def test_where_settings_say_that_the_api_listens_here_up_starts_it_there(folder: Path) -> None:
    """A server of a team: members reach it by a proxy, at another address."""
    with free_port() as port:
        environment = {
            **os.environ, "MEMCTL_DATA_DIR": str(folder / "data"), "MEMCTL_EMBEDDER": "none", "HOME": str(folder),
            "MEMCTL_API_URL": "https://memory.example", "MEMCTL_API_LISTEN": f"127.0.0.1:{port}",
        }  # fmt: skip
        command = [sys.executable, "-m", "memctl.cli"]

        def run(*words: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run([*command, *words], env=environment, text=True, capture_output=True, timeout=300)

        try:
            started = run("up")
            assert (started.returncode, f"listening on 127.0.0.1:{port}" in started.stderr) == (0, True), started.stderr
            with contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
                connection.request("GET", "/v1/caller", headers={"Host": "memory.example"})
                assert connection.getresponse().status == 401
            programs = {each["name"]: each["state"] for each in json.loads(run("status", "--json").stdout)["programs"]}
            assert programs["api"] == "RUNNING"
            assert run("up").stderr.startswith("memctl is already running")
            del environment["MEMCTL_API_LISTEN"]
            assert "no API is started here" in run("up").stderr
        finally:
            run("down")
