"""Where a process stands that answers nobody: Python writes its frames without holding any lock of its own."""

import faulthandler
import os
import signal
import time
from pathlib import Path

_ROOT = str(Path(__file__).parents[2]) + os.sep

_WITHIN_S = 1.0
"""How long a process gets to write its frames; a tenth of a millisecond is usual."""


def file() -> int:
    """A file in memory, which a process that is forked from this one writes its frames to."""
    return os.memfd_create("memctl-frames")


def written_on(signum: signal.Signals, to: int, *, ends: bool = False) -> None:
    """Have this process write the frames of all its threads on a signal, also from within C; `ends`: and end by it."""
    faulthandler.register(signum, file=to, all_threads=True, chain=ends)


def written_at_a_crash(to: int) -> None:
    """Have this process write the frames of all its threads where code in C ends it."""
    faulthandler.enable(file=to, all_threads=True)


def crashed_thread(frames: str) -> tuple[int, list[str]]:
    """The thread in which a process crashed, and its frames, innermost first; 0 where nothing says so."""
    _, found, ident = frames.partition("Current thread 0x")
    number = ident[:16]
    return (int(number, 16), of_thread(frames, int(number, 16))) if found else (0, [])


def asked(pid: int, signum: signal.Signals, to: int) -> str:
    """The frames of a process that `written_on` was called in; empty where it writes none."""
    os.truncate(to, 0)
    os.lseek(to, 0, os.SEEK_SET)
    os.kill(pid, signum)
    deadline, size = time.monotonic() + _WITHIN_S, 0
    while time.monotonic() < deadline:
        time.sleep(0.01)
        was, size = size, os.fstat(to).st_size
        if size and size == was:
            break
    return read(to)


def read(to: int) -> str:
    return os.pread(to, 1 << 20, 0).decode("utf-8", "replace")


def of_thread(frames: str, ident: int) -> list[str]:
    """The frames of one thread, innermost first; of the first thread where there is no such."""
    threads: dict[str, list[str]] = {}
    here: list[str] = []
    for line in frames.splitlines():
        if line.lstrip().startswith("File "):
            here.append(line.strip())
        elif "hread 0x" in line:
            here = threads.setdefault(line.partition("hread ")[2].split()[0], [])
        elif line.startswith("Stack ("):
            here = threads.setdefault("only", [])
    return threads.get(f"0x{ident:016x}") or next(iter(threads.values()), [])


def place(frames: list[str]) -> str:
    """Where in memctl's code a thread stands: module, line and function, as a dead letter names it."""
    for frame in frames:
        path, _, rest = frame.removeprefix('File "').partition('", line ')
        if path.startswith(_ROOT) and path.endswith(".py"):
            line, _, function = rest.partition(" in ")
            module = path.removeprefix(_ROOT).removesuffix(".py").replace(os.sep, ".")
            return f"memctl.{module}:{line} {function}"
    return ""
