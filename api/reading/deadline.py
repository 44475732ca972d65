"""The question that a thread works for: when it is late, and how its work is ended then."""

import contextlib
import ctypes
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar

import psycopg

from memctl.infra.database import Connection

CANCEL_S = 2.0
"""How long Postgres may take to hear that a statement is to end."""

QUESTION_S = 15.0
"""From the end of a question to its answer. A statement of Postgres gets as long, and the slowest question that was
measured, a search beside a rebuild of a million events, took a fifth."""


class Overdue(BaseException):
    """The question that this thread works for has passed its deadline. No `except Exception` may keep it."""


class TimedQuestion:
    """One request under its deadline: the thread at work for it, if any, and whether it is late."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._connection: Connection | None = None
        self.late_since: float | None = None

    @property
    def worked_on(self) -> bool:
        """Whether a thread is at it."""
        return self._thread is not None

    @contextlib.contextmanager
    def work(self, connection: Connection) -> Iterator[None]:
        """What is done within, over this connection, may be ended at any point. Raises: Overdue."""
        with self._lock:
            if self._late():
                raise Overdue
            self._thread, self._connection = threading.get_ident(), connection
        try:
            yield
        finally:
            with self._lock:
                self._thread = self._connection = None
                if self._late():  # it may be on its way, and is to reach nobody else
                    _raise_in(threading.get_ident(), None)

    def _late(self) -> bool:
        return self.late_since is not None

    def end(self) -> None:
        """Say that it is late, and end the work for it, in Python and in Postgres."""
        with self._lock:
            self.late_since = time.monotonic()
            if self._thread is None or self._connection is None:
                return
            _raise_in(self._thread, Overdue)
            # On a thread of its own, for the server may take its time.
            threading.Thread(target=_cancel, args=[self._connection], name="cancel", daemon=True).start()


AT_HAND: ContextVar[TimedQuestion | None] = ContextVar("question at hand", default=None)


def work(connection: Connection) -> contextlib.AbstractContextManager[None]:
    """Work for the question at hand, which ends where that passes its deadline. Raises: Overdue."""
    question = AT_HAND.get()
    return contextlib.nullcontext() if question is None else question.work(connection)


def is_late() -> bool:
    """Whether the question at hand has passed its deadline. A statement of it may be cancelled at any later moment, so
    nobody else may have its connection."""
    question = AT_HAND.get()
    return question is not None and question.late_since is not None


def _cancel(connection: Connection) -> None:
    with contextlib.suppress(psycopg.Error):
        connection.cancel_safe(timeout=CANCEL_S)


def _raise_in(thread: int, what: type[BaseException] | None) -> None:
    given = None if what is None else ctypes.py_object(what)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), given)
