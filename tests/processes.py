"""memctl's own processes, for tests that kill them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from vector_server import die_with_parent


@contextmanager
def memctl(
    *arguments: str, environment: Mapping[str, str], log: Path, script: Sequence[str] = ("-m", "memctl.cli")
) -> Iterator[subprocess.Popen[bytes]]:
    """A `memctl` process in the foreground, killed on leaving. What it says goes to the end of `log`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMCTL_")}
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, *script, *arguments],
            env={**kept, **environment},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            preexec_fn=die_with_parent,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait(20)


def children(pid: int) -> list[int]:
    """Those of a process of one thread: of a worker, what works for it."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def signal_all(process: subprocess.Popen[bytes], signum: signal.Signals) -> None:
    """Send a signal to a worker and to what works for it."""
    for pid in (process.pid, *children(process.pid)):
        os.kill(pid, signum)
