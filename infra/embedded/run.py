"""One server for the length of a block, without the supervisor: for tests and for one-off work."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from memctl.domain.support.errors import MemctlError
from memctl.infra.data_dir import open_log
from memctl.infra.embedded.launch import PARENT
from memctl.infra.process import Process

LOOK_AGAIN = 0.05
"""Seconds between two looks at something that is about to be ready."""


class ServerDidNotStart(MemctlError):
    """{name} did not start: {why}."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name=name, why=why)


@contextlib.contextmanager
def running(
    name: str,
    argv: list[str],
    ready: Callable[[Process], bool],
    *,
    log: Path,
    stop: signal.Signals = signal.SIGTERM,
    patience: float = 30.0,
) -> Iterator[Process]:
    """Run `argv` until the block is left. `argv` must ask to die with its parent (see `launch`).

    `ready` says whether the process serves; `patience` in seconds is how long it may take. Raises ServerDidNotStart
    with the end of its log.
    """
    environment = {**os.environ, PARENT: str(os.getpid())}
    with open_log(log) as output:
        popen = subprocess.Popen(  # noqa: S603
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, start_new_session=True
        )
    try:
        deadline = time.monotonic() + patience
        while (server := Process.of(popen.pid)) is None or not ready(server):
            if popen.poll() is not None:
                raise ServerDidNotStart(name, tail(log) or f"it ended with {popen.returncode}")
            if time.monotonic() > deadline:
                raise ServerDidNotStart(name, f"it was not ready after {patience:g} s. {tail(log)}".strip())
            time.sleep(LOOK_AGAIN)
        yield server
    finally:
        if popen.poll() is None:
            popen.send_signal(stop)
        try:
            popen.wait(patience)
        except subprocess.TimeoutExpired:
            popen.kill()
            popen.wait()


def tail(log: Path) -> str:
    """The last eight lines of a log file; empty where there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 8192))
            return "\n".join(file.read().decode(errors="replace").strip().splitlines()[-8:])
    except FileNotFoundError:
        return ""
