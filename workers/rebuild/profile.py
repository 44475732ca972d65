"""Processor time of a rebuild, by phase: of the process at work and of its session in Postgres, where that is here.

What Postgres does beside sessions (writing out, vacuum, the workers of an index build) is in no phase.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from memctl.infra.database import Connection


class Phase(msgspec.Struct):
    """Processor time in seconds that a phase took: all together, and its longest piece. What cannot be dealt out is one
    piece by one process (`serial`)."""

    name: str
    serial: bool
    pieces: int = 0
    cpu_s: float = 0.0
    longest_s: float = 0.0

    def add(self, cpu_s: float) -> None:
        self.pieces += 1
        self.cpu_s += cpu_s
        self.longest_s = max(self.longest_s, cpu_s)


class Profile(msgspec.Struct):
    """The phases of a rebuild, in order."""

    phases: list[Phase] = msgspec.field(default_factory=list)

    @contextmanager
    def serial(self, name: str, connection: Connection) -> Iterator[None]:
        """A phase in which one process works and the others wait."""
        began = cpu_s(connection)
        try:
            yield
        finally:
            self.phase(name, serial=True).add(cpu_s(connection) - began)

    def phase(self, name: str, *, serial: bool) -> Phase:
        found = next((each for each in self.phases if (each.name, each.serial) == (name, serial)), None)
        if found is None:
            self.phases.append(found := Phase(name, serial))
        return found

    @property
    def cpu_s(self) -> float:
        return sum(each.cpu_s for each in self.phases)

    @property
    def serial_share(self) -> float:
        """Of all processor time, what one process takes while the others wait."""
        return sum(each.cpu_s for each in self.phases if each.serial) / (self.cpu_s or 1.0)


def cpu_s(connection: Connection) -> float:
    """Processor time in seconds that this thread has used, with that of its session in Postgres."""
    return time.thread_time() + _of_session(connection)


def _of_session(connection: Connection) -> float:
    if connection.closed or not connection.info.host.startswith(("/", "127.", "localhost")):
        return 0.0
    process = Path("/proc") / str(connection.info.backend_pid)
    with suppress(OSError, ValueError):
        if (process / "comm").read_text().startswith("postgres"):
            return int((process / "schedstat").read_text().split()[0]) / 1e9
    return 0.0
