"""memctl's own processes, forked from one that has imported everything: each costs milliseconds instead of seconds."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn


class Forked:
    """One process at a time, started by `start`."""

    def __init__(self, source: Path | None = None) -> None:
        """Of an installation at whose `source` it is forked; without one, of the installation that tests run in."""
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(source or _of_tests()))
        # Unbuffered: how a short process ended may be there as well when its number is read.
        self._answers = self._socket.makefile("rb", buffering=0)
        self.pid = 0
        self._code: int | None = None

    def start(
        self,
        *arguments: str,
        environment: Mapping[str, str],
        cwd: Path,
        out: Path,
        said: Path,
        typed: str = os.devnull,
        script: Sequence[str] = (),
    ) -> None:
        """Run `memctl` with these arguments; what it prints and says goes to the end of these files, which are there
        from now on, also where it is killed before it opens them. `typed` is what it reads from, `script` what is run
        instead of it: a file and its first arguments, or `-c` and code."""
        for file in (out, said):
            file.touch(0o600)
        request = [(*script, *arguments), dict(environment), str(cwd), (typed, str(out), str(said)), bool(script)]
        self._socket.settimeout(None)
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        self.pid, self._code = int(self._answers.readline()), None

    def send(self, number: signal.Signals) -> None:
        """Nothing where it has ended: its place is kept until that was asked for."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    send_signal = send

    def terminate(self) -> None:
        self.send(signal.SIGTERM)

    def poll(self) -> int | None:
        """Its exit code, below 0 for a signal; None while it runs."""
        self._socket.settimeout(0.001)
        with contextlib.suppress(TimeoutError):
            return self._ended()
        return None

    def wait(self, timeout: float = 60) -> int:
        """Its exit code. Raises: TimeoutError."""
        self._socket.settimeout(timeout)
        return self._ended()

    def kill(self) -> int:
        self.send(signal.SIGKILL)
        return self.wait(60)

    def close(self) -> None:
        """Kills what still runs."""
        self._answers.close()
        self._socket.close()

    def _ended(self) -> int:
        if self._code is None:
            # Not through the file: one that timed out once may not be read again.
            self._code = os.waitstatus_to_exitcode(int.from_bytes(self._socket.recv(8), "big"))
        return self._code


class Ran(NamedTuple):
    """What a process that has ended left behind."""

    code: int
    out: str
    said: str


def ran(
    *arguments: str,
    environment: Mapping[str, str],
    cwd: Path | None = None,
    stdin: bytes = b"",
    terminal: int | None = None,
    script: Sequence[str] = (),
) -> Ran:
    """Run `memctl`, or a script, to its end. It reads from `terminal`, a file that is one, or what is given."""
    with tempfile.TemporaryDirectory(prefix="memctl-test-") as folder, contextlib.closing(Forked()) as process:
        given, out, said = (Path(folder) / name for name in ("given", "out", "said"))
        given.write_bytes(stdin)
        typed = str(given) if terminal is None else os.ttyname(terminal)
        here = cwd or Path.cwd()
        process.start(*arguments, environment=environment, cwd=here, out=out, said=said, typed=typed, script=script)
        return Ran(process.wait(180), out.read_text(), said.read_text())


@functools.cache
def _of_tests() -> Path:
    """The socket at which processes of the installation that tests run in are forked, for as long as this one runs."""
    held = contextlib.ExitStack()
    atexit.register(held.close)
    folder = Path(tempfile.mkdtemp(prefix="memctl-test-"))
    held.callback(shutil.rmtree, folder, ignore_errors=True)
    return held.enter_context(source(folder))


@contextlib.contextmanager
def source(folder: Path, installation: Path | None = None) -> Iterator[Path]:
    """The socket at which processes of an installation are forked, in `folder`."""
    listens = folder / f"{installation.name if installation else 'tests'}.fork"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMCTL_")}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(listens))
        listener.listen(64)
        process = subprocess.Popen(
            [sys.executable, __file__, str(listener.fileno()), str(os.getpid())],
            env={**kept, "PYTHONPATH": str(installation)} if installation else kept,
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


def _reap(*_: object) -> None:
    """Not ignored: what they took counts as taken by the tests."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _serve(listener: socket.socket) -> NoReturn:
    signal.signal(signal.SIGCHLD, _reap)
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


def _live(
    arguments: list[str], environment: dict[str, str], cwd: str, files: tuple[str, str, str], script: bool
) -> NoReturn:
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(cwd)
    for number, file in enumerate(files):
        opened = os.open(file, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    code: object = 1
    try:
        sys.argv = arguments if script else ["memctl", *arguments]
        if script and arguments[0] == "-c":
            sys.argv = ["-c", *arguments[2:]]
            exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
        elif script:
            runpy.run_path(arguments[0], run_name="__main__")
        else:
            from memctl.cli import __main__

            __main__.run()
        code = 0
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
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    import qdrant_client  # noqa: F401
    import rq  # noqa: F401

    import memctl.cli.__main__
    from memctl.domain.support import patterns

    for pattern in list(patterns.made()):
        _ = pattern._program

    gc.collect()
    gc.freeze()
    _serve(socket.socket(fileno=listener))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
