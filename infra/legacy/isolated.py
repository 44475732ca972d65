"""The rows of a store that anybody may have written, read in a process of its own that may take only so much.

`python -m memctl.infra.legacy.isolated FILE` writes batches of rows to its output: each a length of four bytes, and
then plain values by pickle. The reader of it unpickles no objects.
"""

import contextlib
import io
import os
import pickle
import resource
import signal
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from memctl.infra.embedded.launch import PARENT, die_with_parent
from memctl.infra.legacy.markdown import notes_in
from memctl.infra.legacy.rows import NotALegacyStore, Row, rows_of
from memctl.infra.process import free_memory

MOST_MEMORY = 3 << 30
"""Bytes of memory of the process that reads: the largest JSON document that is read takes a third of it. It has half of
what is free where that is less."""

LEAST_MEMORY = 512 << 20
"""What it has in any case."""

CPU_S, BYTES_A_CPU_S = 30, 1 << 20
"""Its processor time: so many seconds, and one more for so many bytes of the file. Reading takes a twentieth."""

LONGEST_ROW = 4 << 20
"""Bytes of a row as it is sent: a list of nothing takes thirty times as much of who reads it."""

MOST_BATCH = LONGEST_ROW + (2 << 20)
"""Bytes of one batch."""

_ROWS, _LONG = 200, 1 << 20
"""Rows of a batch, and bytes with which it is full."""

LESS_MEMORY = "JSON by the line takes less"

_LENGTH = struct.Struct(">I")


def rows_in_isolation(path: Path) -> Iterator[Row]:
    """A store's rows, in its own order, as `rows_of` reads them, or `notes_in` those of a folder.

    Raises: NotALegacyStore, also where reading it takes more memory or time than a store's may; OSError.
    """
    if not path.is_dir():
        if path.exists() and not path.is_file():  # to open a pipe would wait for somebody who writes
            raise NotALegacyStore(path=str(path), why="it is no file")
        with path.open("rb"):  # what keeps it from being read is this process's to say
            pass
    command = [sys.executable, "-P", "-m", "memctl.infra.legacy.isolated", str(path)]
    environment = {**os.environ, PARENT: str(os.getpid())}
    with subprocess.Popen(  # noqa: S603 - our own module
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment
    ) as reading:
        assert reading.stdout is not None
        try:
            for kind, found in _batches(reading.stdout):
                if kind == "refused":
                    raise NotALegacyStore(path=str(path), why=str(found))
                yield from (Row(*fields) for fields in found)
                if kind == "last":
                    return
        finally:
            reading.kill()
    raise NotALegacyStore(path=str(path), why=_ended_by(reading.returncode))


class _Plain(pickle.Unpickler):
    """Numbers, texts, bytes, and lists and objects of them."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is no plain value")


def _batches(pipe: IO[bytes]) -> Iterator[tuple[str, Any]]:
    while len(head := pipe.read(_LENGTH.size)) == _LENGTH.size:
        (size,) = _LENGTH.unpack(head)
        if size > MOST_BATCH or len(data := pipe.read(size)) < size:
            return
        yield _Plain(io.BytesIO(data)).load()


def _ended_by(code: int) -> str:
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return "reading it takes more time than a store of its size may"
    if code in (-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT):
        return f"{signal.Signals(-code).name} ended what read it, which as a rule needs more memory: {LESS_MEMORY}"
    return "reading it failed" if code >= 0 else f"reading it was ended by {signal.Signals(-code).name}"


def _send(kind: str, what: object) -> None:
    data = pickle.dumps((kind, what))
    sys.stdout.buffer.write(_LENGTH.pack(len(data)) + data)
    sys.stdout.buffer.flush()


def _batched(rows: Iterable[Row]) -> Iterator[list[tuple[object, ...]]]:
    batch: list[tuple[object, ...]] = []
    size = 0
    for row in rows:
        taken = len(pickle.dumps(row.fields))
        if taken > LONGEST_ROW:
            row = Row(row.number, row.table, {}, f"longer than {LONGEST_ROW >> 20} MB")
            taken = 0
        batch.append(tuple(row))
        size += taken
        if len(batch) >= _ROWS or size > _LONG:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def memory_of(free: int | None) -> int:
    """Bytes that reading may take where so many are free; None where that is not known."""
    return MOST_MEMORY if free is None else max(LEAST_MEMORY, min(MOST_MEMORY, free // 2))


def cpu_of(file: os.stat_result) -> int:
    """Seconds of processor time that reading a file may take. A hole of 300 GB takes nobody any effort to make."""
    return CPU_S + min(file.st_size, file.st_blocks * 512) // BYTES_A_CPU_S


def main() -> None:
    """Read the store that is named, and write its rows."""
    path = Path(sys.argv[1])
    die_with_parent(signal.SIGKILL, int(os.environ[PARENT]))
    cpu_s = cpu_of(path.stat())
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    memory = memory_of(free_memory())
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    try:
        for batch in _batched(notes_in(path) if path.is_dir() else rows_of(path)):
            _send("rows", batch)
        _send("last", [])
    except NotALegacyStore as problem:
        _send("refused", problem.why)
    except (MemoryError, RecursionError):
        _send("refused", f"reading it takes more than {memory >> 20} MB of memory: {LESS_MEMORY}")
    except (ValueError, LookupError, TypeError, OSError) as problem:  # a damaged file may lead anywhere
        _send("refused", f"reading it failed: {type(problem).__name__}")


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
