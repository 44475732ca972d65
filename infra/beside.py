"""Questions asked beside each other, on threads that nobody has to wait for: one that hangs holds up no other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def beside(question: Callable[[], T]) -> Future[T]:
    """The answer to come; `result(timeout)` raises TimeoutError where it has not come by then."""
    answer: Future[T] = Future()

    def ask() -> None:
        try:
            answer.set_result(question())
        except BaseException as problem:
            answer.set_exception(problem)

    threading.Thread(target=ask, name="beside", daemon=True).start()
    return answer
