"""Ends a door that hangs on its input, and keeps the next door from hanging on the same.

A delivery or a line of a transcript may cost processor time without end. The door measures the processor time of the
step that it is at; the time of the clock says nothing, since a database may be slow. A door that hangs notes the step's
deliveries or lines as suspects, and ends. The next door tries each suspect alone. One that hangs a door alone is set
aside, and is not tried again: a delivery not before it was tried without a look at the files of its checkout
(`unlooked`). Those may be anybody's, and the user's words are not lost over them.
"""

import asyncio
import json
import logging
import os
import sys
import threading
import traceback
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from memctl.infra.data_dir import write_private
from memctl.infra.process import processor_s

log = logging.getLogger("memctl.door")

HUNG_AFTER_S = 60.0
"""Seconds of a processor after which a step does not end any more: the largest group takes some ten."""

LOOKS_EVERY_S = 1.0
EXIT = 75
"""Exit code of a door that hung: a supervisor starts the next one."""

FILE = "held"
"""In the spool's folder: the suspects."""

MOST = 1_000
"""Suspects of each kind that are remembered, the newest."""

HUNG = f"it took more than {HUNG_AFTER_S:.0f} s of a processor, and did not end"


class WatchedThread(threading.Thread):
    """A thread that reads what came from outside, and says what it is at."""

    at_since: float | None = None
    """Since when it is at one step, by the monotonic clock; None while it has nothing to do."""
    at: tuple[str, ...] = ()
    """The deliveries of that step, or the file or line."""
    helpers: tuple[str, ...] = ()
    """What its own threads' names begin with, which work at the same."""

    @property
    def alone(self) -> bool:
        """Whether nothing else than what it is at can be at fault."""
        return len(self.at) == 1

    def threads(self) -> list[threading.Thread]:
        return [self, *(each for each in threading.enumerate() if each.name.startswith(self.helpers))]

    def spent_s(self) -> float:
        """Seconds of a processor that it has taken."""
        return sum(processor_s(os.getpid(), each.native_id) or 0.0 for each in self.threads())


class Suspects:
    """What earlier doors hung on: `alone` is to be tried alone, `aside` hung a door alone."""

    def __init__(self, spool: Path) -> None:
        self._file = spool / FILE
        try:
            found = json.loads(self._file.read_bytes())
            self.alone, self.aside = {str(each) for each in found["alone"]}, {str(each) for each in found["aside"]}
        except (OSError, ValueError, TypeError, KeyError):
            self.alone, self.aside = set[str](), set[str]()

    def note(self, ids: Iterable[str], *, alone: bool) -> None:
        """A door hung on these. Set them aside if it was `alone` on one; else try each alone. Raises: OSError."""
        found = set(ids)
        if alone:
            self.aside |= found
            self.alone -= found | {each.rpartition("#")[0] for each in found}
        else:
            self.alone |= found
        self._write()

    def passed(self, id: str) -> None:
        """What was to be tried alone came to its end."""
        if id in self.alone:
            self.alone.discard(id)
            with suppress(OSError):
                self._write()

    def _write(self) -> None:
        kept = {"alone": sorted(self.alone)[-MOST:], "aside": sorted(self.aside)[-MOST:]}
        write_private(self._file, json.dumps(kept))


def line_of(path: Path, number: int) -> str:
    """What a line of a file is known by. Line 0 is the file."""
    return f"{path}#{number}"


def unlooked(delivery: str) -> str:
    """What a delivery is known by where no file is looked at for it."""
    return f"{delivery} unlooked"


async def watch(suspects: Suspects, *steps: WatchedThread) -> None:
    """End this process once the step that one of the threads is at takes `HUNG_AFTER_S` of a processor."""
    began: dict[WatchedThread, tuple[float | None, float]] = {}
    while True:
        await asyncio.sleep(LOOKS_EVERY_S)
        for step in steps:
            spent = step.spent_s()
            since, before = began.setdefault(step, (step.at_since, spent))
            if step.at_since is None or step.at_since != since:
                began[step] = step.at_since, spent
            elif spent - before > HUNG_AFTER_S:
                _end(suspects, step)


def _end(suspects: Suspects, step: WatchedThread) -> None:
    now = sys._current_frames()
    stacks = (now.get(each.ident or 0) for each in step.threads())
    frames = "\n".join("".join(traceback.format_stack(stack)) for stack in stacks if stack is not None)
    what = ", ".join(each for each in step.at if "/" not in each) or "a transcript"  # its name may be what was said
    log.critical("%s of the %s hold the door, which ends\n%s", what, step.name, frames)
    with suppress(OSError):
        suspects.note(step.at, alone=step.alone)
    logging.shutdown()
    os._exit(EXIT)
