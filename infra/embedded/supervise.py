"""supervisord as memctl runs it: it lives through a disk without room.

`python -m memctl.infra.embedded.supervise -n -c FILE`. What supervisord cannot log it prints to its standard error, a
file on the same disk. Where that failed too it ended, and with it all that it supervises: nothing came back by itself.
"""

import contextlib
import functools
import io
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

supervisord: Any = import_module("supervisor.supervisord")
RotatingFileHandler: Any = import_module("supervisor.loggers").RotatingFileHandler


class _WhatFits(io.TextIOBase):
    """Standard error, of which is lost what finds no room."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            os.write(2, text.encode("utf-8", "replace"))
        return len(text)


def _where_there_is_room(roll_over: Callable[[Any], None]) -> Callable[[Any], None]:
    """A log that cannot be begun, or was closed by an attempt to, goes on where it was."""

    @functools.wraps(roll_over)
    def rolling(handler: Any) -> None:
        try:
            roll_over(handler)
        except (OSError, ValueError):
            with contextlib.suppress(OSError):
                handler.stream = open(handler.baseFilename, "ab")  # noqa: SIM115 - the handler closes it

    return rolling


def main() -> None:
    """Run supervisord with this process's arguments."""
    sys.stderr = _WhatFits()
    setattr(RotatingFileHandler, "doRollover", _where_there_is_room(RotatingFileHandler.doRollover))  # noqa: B010
    run: Callable[[list[str]], None] = supervisord.main
    run(sys.argv[1:])


if __name__ == "__main__":
    main()
