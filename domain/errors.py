"""The one base of memctl's errors. The message says what is wrong, the hint what to do about it."""

from __future__ import annotations

from typing import ClassVar


class MemctlError(Exception):
    """Something went wrong that a person can act on."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip().splitlines()[0])
        self.hint = hint
