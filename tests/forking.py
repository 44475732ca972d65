"""memctl's own processes, forked from one that has imported everything: each costs milliseconds instead of seconds."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, NoReturn


class Forked:
    """One process at a time, started by `start`."""

    def __init__(self, source: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(source))
        self._answers: BinaryIO = self._socket.makefile("rb")
        self.pid = 0
        self._code: int | None = None

    def start(self, *arguments: str, environment: Mapping[str, str], cwd: Path, out: Path, said: Path) -> None:
        """Run `memctl` with these arguments; what it prints and says goes to the end of these files, which are there
        from now on, also where it is killed before it opens them."""
        for file in (out, said):
            file.touch(0o600)
        request = [arguments, dict(environment), str(cwd), str(out), str(said)]
        self._socket.settimeout(None)
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        self.pid, self._code = int(self._answers.readline()), None

    def send(self, number: signal.Signals) -> None:
        """Nothing where it has ended: its place is kept until that was asked for."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def poll(self) -> int | None:
        """Its exit code, below 0 for a signal; None while it runs."""
        self._socket.settimeout(0.001)
        with contextlib.suppress(TimeoutError):
            return self._ended()
        return None

    def wait(self, patience_s: float) -> int:
        """Its exit code. Raises: TimeoutError."""
        self._socket.settimeout(patience_s)
        return self._ended()

    def kill(self) -> int:
        self.send(signal.SIGKILL)
        return self.wait(60)

    def close(self) -> None:
        self._answers.close()
        self._socket.close()

    def _ended(self) -> int:
        if self._code is None:
            # Not through the file: one that timed out once may not be read again.
            self._code = os.waitstatus_to_exitcode(int.from_bytes(self._socket.recv(8), "big"))
        return self._code


@contextlib.contextmanager
def source(folder: Path, installation: Path) -> Iterator[Path]:
    """The socket at which processes of an installation are forked, in `folder`."""
    listens = folder / f"{installation.name}.fork"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMCTL_")}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(listens))
        listener.listen(64)
        process = subprocess.Popen(
            [sys.executable, __file__, str(listener.fileno()), str(os.getpid())],
            env={**kept, "PYTHONPATH": str(installation)},
            cwd=folder,
            pass_fds=[listener.fileno()],
        )
    try:
        yield listens
    finally:
        process.kill()
        process.wait()


def _die_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _serve(listener: socket.socket) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listener.accept()
        parent = os.getpid()
        if os.fork():
            connection.close()
            continue
        _die_with(parent)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        listener.close()
        for line in connection.makefile("rb"):
            here = os.getpid()
            if not (child := os.fork()):
                _die_with(here)
                connection.close()
                _live(*json.loads(line))
            connection.sendall(f"{child}\n".encode())
            _, status = os.waitpid(child, 0)
            connection.sendall(status.to_bytes(8, "big"))
        os._exit(0)


def _live(arguments: list[str], environment: dict[str, str], cwd: str, out: str, said: str) -> NoReturn:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    for number, file in ((0, os.devnull), (1, out), (2, said)):
        opened = os.open(file, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    code: object = 1
    try:
        from memctl.cli import main

        sys.argv = ["memctl", *arguments]
        main.run()
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def main(listener: int, parent: int) -> NoReturn:
    _die_with(parent)
    import memctl.api
    import memctl.cli
    import memctl.infra
    import memctl.projections
    import memctl.workers

    for package in (memctl.infra, memctl.projections, memctl.workers, memctl.api, memctl.cli):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    import qdrant_client  # noqa: F401
    import rq  # noqa: F401

    _serve(socket.socket(fileno=listener))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
