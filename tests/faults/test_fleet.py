"""Workers on other machines: other users with homes of their own, who share no file and know addresses alone."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from histories import example
from waiting import until
from working import caught_up, progress, prove, run_out

from memctl.infra.database import Connection
from memctl.infra.log.append import append
from memctl.infra.log.spaces import space_id

ROOT = Path(__file__).parents[2]

HISTORY = [event for number in range(8) for event in example(number, day=number + 2)]

USERS = (65534, 1)
"""`nobody` and `daemon`, as every Linux has them."""

RUN = """
import asyncio, ctypes, signal, sys
if sys.version_info < (3, 11, 3):  # there Redis' client asks for a package that this one's environment does not need
    sys.modules["async_timeout"] = asyncio
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
from memctl.cli.main import memctl
memctl(["worker"])
"""


def interpreter() -> str:
    """A Python of this version that other users may run, of whatever patch version. Empty where there is none."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for found in (sys.executable, shutil.which(version, path="/usr/bin:/usr/local/bin")):
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            if found:
                subprocess.run([found, "-c", ""], user=USERS[0], group=USERS[0], extra_groups=[], check=True, cwd="/")
                return found
    return ""


pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not interpreter(), reason="only root is other users")


@contextlib.contextmanager
def address_of(path: str) -> Iterator[str]:
    """A port at which a Unix socket is reached, as from another machine."""

    def pass_on(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while part := source.recv(1 << 16):
                sink.sendall(part)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(path)
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=pass_on, args=pair, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def addresses(environment: dict[str, str]) -> Iterator[dict[str, str]]:
    """What a machine of the fleet is given: addresses of the servers, and nothing that lies on this one's disk."""
    database, redis = urlsplit(environment["MEMCTL_DATABASE_URL"]), urlsplit(environment["MEMCTL_REDIS_URL"])
    (folder,) = parse_qs(database.query)["host"]
    with address_of(f"{folder}/.s.PGSQL.5432") as postgres, address_of(redis.path) as valkey:
        yield {
            "MEMCTL_DATABASE_URL": f"postgresql://{database.username}:{database.password}@{postgres}{database.path}",
            "MEMCTL_REDIS_URL": f"redis://{valkey}/{parse_qs(redis.query)['db'][0]}",
            "MEMCTL_QDRANT_URL": environment["MEMCTL_QDRANT_URL"],
            "MEMCTL_QDRANT_API_KEY": environment["MEMCTL_QDRANT_API_KEY"],
            "MEMCTL_EMBEDDER": "none",
            "MEMCTL_READ_BATCH": "40",
            "PYTHONPATH": f"{ROOT / '.links'}:{next(each for each in sys.path if each.endswith('site-packages'))}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }


@contextlib.contextmanager
def machine(user: int, addresses: dict[str, str], home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A worker as that user, in a home of its own, killed on leaving."""
    home.mkdir(mode=0o700)
    os.chown(home, user, user)
    with (home / "log").open("wb") as log:
        worker = subprocess.Popen(
            [interpreter(), "-c", RUN], env={**addresses, "HOME": str(home), "PATH": os.defpath}, cwd=home, user=user,
            group=user, extra_groups=[], stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        yield worker
    except AssertionError:
        print((home / "log").read_text())
        raise
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
        worker.wait(10)


def test_workers_that_share_no_file_fold_what_one_machine_would_while_one_of_them_dies(
    environment: dict[str, str], addresses: dict[str, str], log: Connection
) -> None:
    homes = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path("/tmp")
    append(log, 1, HISTORY[: len(HISTORY) // 2])
    with contextlib.ExitStack() as running:
        home = homes / f"memctl-fleet-{os.getpid()}"
        home.mkdir(mode=0o711)
        running.callback(shutil.rmtree, home, ignore_errors=True)
        first, _ = (running.enter_context(machine(user, addresses, home / str(user))) for user in USERS)
        until(lambda: progress(log) > 0 or caught_up(log), "the first fold")
        append(log, 1, HISTORY[len(HISTORY) // 2 :])
        append(log, space_id(log, "lab"), HISTORY[:40])
        os.killpg(first.pid, signal.SIGKILL)
        until(lambda: caught_up(log), "the other machine")
        assert {user: (home / str(user)).stat().st_uid for user in USERS} == {user: user for user in USERS}
    run_out(log)
    prove(log, environment)
