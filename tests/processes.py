"""memctl's own processes, for tests that kill them."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from forking import Forked


@contextmanager
def memctl(*arguments: str, environment: Mapping[str, str], log: Path, script: Sequence[str] = ()) -> Iterator[Forked]:
    """A `memctl` process in the foreground, killed on leaving. What it says goes to the end of `log`. `script` is what
    is run instead of it: a file and its first arguments, or `-c` and code."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMCTL_")}
    process = Forked()
    process.start(*arguments, environment={**kept, **environment}, cwd=Path.cwd(), out=log, said=log, script=script)
    try:
        yield process
    finally:
        process.kill()
        process.close()


def children(pid: int) -> list[int]:
    """Those of a process of one thread: of a worker, what works for it."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def signal_all(process: Forked, signum: signal.Signals) -> None:
    """Send a signal to a worker and to what works for it, some of which may have ended since it was looked for."""
    for pid in (process.pid, *children(process.pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signum)
