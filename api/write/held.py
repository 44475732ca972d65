"""Deliveries that a door does not get past: it ends itself, and the next door tries them alone and sets one aside.

What a delivery holds may cost without end, whatever was promised of each pattern. A door measures the processor time
of the step that it is at. The time of the clock says nothing: a database may be slow.
"""

import asyncio
import json
import logging
import os
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from memctl.infra.data_dir import write_private
from memctl.infra.process import processor_s

log = logging.getLogger("memctl.door")

HELD_S = 60.0
"""Seconds of a processor after which a step does not end any more: the largest group takes some ten."""

LOOKS_EVERY_S = 1.0
EXIT = 75
"""With it a door ends that is held: a supervisor starts the next one."""

FILE = "held"
"""In the spool's folder: deliveries to be tried alone, and those that held a door alone."""

MOST = 1_000
"""Of them that are known, the newest."""

WHY = f"it took more than {HELD_S:.0f} s of a processor, and did not end"


class Step(Protocol):
    """What a thread is at: since when, and with which deliveries."""

    at_since: float | None
    at: tuple[str, ...]

    @property
    def native_id(self) -> int | None: ...


class Held:
    """What earlier doors were held by."""

    def __init__(self, spool: Path) -> None:
        self._file = spool / FILE
        try:
            found = json.loads(self._file.read_bytes())
            self.alone, self.aside = {str(each) for each in found["alone"]}, {str(each) for each in found["aside"]}
        except (OSError, ValueError, TypeError, KeyError):
            self.alone, self.aside = set[str](), set[str]()

    def note(self, ids: Iterable[str]) -> None:
        """These held a door: the only one of a group is set aside, several are tried alone. Raises: OSError."""
        found = tuple(ids)
        if len(found) == 1:
            self.aside.update(found)
            self.alone.difference_update(found)
        else:
            self.alone.update(found)
        kept = {"alone": sorted(self.alone)[-MOST:], "aside": sorted(self.aside)[-MOST:]}
        write_private(self._file, json.dumps(kept))


async def watch(step: Step, held: Held) -> None:
    """End this process once the step that a thread is at takes `HELD_S` of a processor."""
    since, began = step.at_since, 0.0
    while True:
        await asyncio.sleep(LOOKS_EVERY_S)
        spent = processor_s(os.getpid(), step.native_id) or 0.0
        if step.at_since is None or step.at_since != since:
            since, began = step.at_since, spent
        elif spent - began > HELD_S:
            frame = sys._current_frames().get(getattr(step, "ident", 0) or 0)
            frames = "".join(traceback.format_stack(frame)) if frame is not None else ""
            log.critical("deliveries %s hold the door, which ends\n%s", ", ".join(step.at), frames)
            held.note(step.at)
            logging.shutdown()
            os._exit(EXIT)
