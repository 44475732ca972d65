"""The question that a thread works for: when it is late, and how its work is ended then."""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar

QUESTION_S = 15.0
"""From the end of a question to its answer. A statement of Postgres gets as long, and the slowest question that was
measured, a search beside a rebuild of a million events, took a fifth."""


class Overdue(BaseException):
    """The question that this thread works for has passed its deadline. No `except Exception` may keep it."""


class Question:
    """One request under its deadline: the thread at work for it, if any, and whether it is late."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: int | None = None
        self.late_since: float | None = None

    @contextlib.contextmanager
    def worked_on(self) -> Iterator[None]:
        """What is done within may be ended at any point. Raises: Overdue."""
        with self._lock:
            if self._late():
                raise Overdue
            self._thread = threading.get_ident()
        try:
            yield
        finally:
            with self._lock:
                self._thread = None
                if self._late():  # it may be on its way, and is to reach nobody else
                    _raise_in(threading.get_ident(), None)

    def _late(self) -> bool:
        return self.late_since is not None

    def end(self) -> None:
        """Say that it is late, and end the work for it."""
        with self._lock:
            self.late_since = time.monotonic()
            if self._thread is not None:
                _raise_in(self._thread, Overdue)


AT_HAND: ContextVar[Question | None] = ContextVar("question at hand", default=None)


def worked_on() -> contextlib.AbstractContextManager[None]:
    """Work for the question at hand, which ends where that passes its deadline. Raises: Overdue."""
    question = AT_HAND.get()
    return contextlib.nullcontext() if question is None else question.worked_on()


def _raise_in(thread: int, what: type[BaseException] | None) -> None:
    given = None if what is None else ctypes.py_object(what)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), given)
