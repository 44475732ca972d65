"""Processes known for certain: a pid means nothing without the moment its process started."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from dataclasses import dataclass
from pathlib import Path

from memctl.infra.files import read_file

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Process:
    """One process. `started` is in clock ticks since boot `boot`, which together no later process shares."""

    pid: int
    started: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> Process | None:
        """The process that has this pid now; None where there is none, or only a zombie."""
        fields = _stat(pid)
        if fields is None or fields[0] in "ZX":
            return None
        return cls(pid, int(fields[19]), _boot_id())

    @classmethod
    def recorded(cls, record: Path) -> Process | None:
        """What `record` wrote to this file; None where the file is missing or cannot be read as that."""
        try:
            pid, started, boot = read_file(record, 200).decode("ascii").split()
            return cls(int(pid), int(started), boot)
        except (OSError, ValueError):
            return None

    def record(self, record: Path) -> None:
        new = record.with_name(record.name + ".new")
        with open(new, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(f"{self.pid} {self.started} {self.boot}\n")
        new.replace(record)

    def lives(self) -> bool:
        return Process.of(self.pid) == self

    def age(self) -> float:
        """Seconds since it started, by the clock that stops for nothing but suspension."""
        with open("/proc/uptime") as uptime:
            return max(0.0, float(uptime.read().split()[0]) - self.started / _TICKS)

    def cpu(self) -> float:
        """Seconds of processor time that it and those of its children that have ended took; 0 where it is gone."""
        fields = _stat(self.pid)
        return sum(map(int, fields[11:15])) / _TICKS if fields is not None else 0.0

    def wait(self, patience: float) -> bool:
        """Wait until it is gone; False where it is not after `patience` seconds."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        try:
            return not self.lives() or bool(select.select([handle], [], [], patience)[0])
        finally:
            os.close(handle)

    def end(self, first: signal.Signals = signal.SIGTERM, patience: float = 10.0) -> bool:
        """Ask it to end, insist after `patience` seconds, and wait until it is gone.

        Signals go through a pidfd, so a pid that passes to another process in between is never hit. False where it
        would not go even then (stuck in the kernel, or not ours to signal).
        """
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        try:
            if not self.lives():
                return True
            for demand, seconds in ((first, patience), (signal.SIGKILL, 10.0)):
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, demand)
                if select.select([handle], [], [], seconds)[0]:
                    return True
            return not self.lives()
        except PermissionError:
            return False
        finally:
            os.close(handle)


def memory(process: Process) -> int:
    """Bytes in use by a process and all that descend from it, a page that n share counted as an n-th for each."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (fields := _stat(int(entry))):
            parents.setdefault(int(fields[1]), []).append(int(entry))
    total, family = 0, [process.pid]
    while family:
        pid = family.pop()
        family += parents.get(pid, [])
        total += _proportional(pid)
    return total


def free_memory() -> int | None:
    """Bytes of this machine's memory that can be had without swapping; None where it does not say."""
    try:
        with open("/proc/meminfo") as said:
            return next(int(line.split()[1]) * 1024 for line in said if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None


def is_stopped(pid: int) -> bool:
    """Whether somebody has stopped a process, with a signal or a debugger; one that is gone is."""
    fields = _stat(pid)
    return fields is None or fields[0] in "Tt"


def processor_s(pid: int, thread: int | None = None) -> float | None:
    """Seconds of a processor that a process, or one of its threads, has had so far; None where it is gone, or this
    system does not say."""
    fields = _stat(pid, thread)
    return (int(fields[11]) + int(fields[12])) / _TICKS if fields else None


def _proportional(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup") as rollup:
            return next(int(line.split()[1]) * 1024 for line in rollup if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def _stat(pid: int, thread: int | None = None) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on; the name before them may hold spaces and brackets."""
    try:
        with open(f"/proc/{pid}/stat" if thread is None else f"/proc/{pid}/task/{thread}/stat", "rb") as stat:
            return stat.read().rpartition(b") ")[2].decode().split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id") as boot_id:
        return boot_id.read().strip()
