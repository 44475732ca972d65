"""No question holds the API: each is answered in time, with 503 where it has no answer, and its work is ended.

Three things end what never would, each where the one before cannot. `Deadline` answers who asked. The thread that works
for them gets an exception, wherever in Python it is. And a process whose threads do not end, or whose event loop does
not run, ends itself: the supervisor starts it again.
"""

import asyncio
import faulthandler
import logging
import math
import os
import sys
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memctl.api.http.problems import problem
from memctl.api.reading import deadline
from memctl.api.reading.deadline import TimedQuestion
from memctl.api.server.key_use import route_of

log = logging.getLogger("memctl.api")

CHANGE_S = 60.0
"""The same for what writes, and for what asks a language model."""

UNENDED_S = 20.0
"""How long a thread may go on after it was to end."""

SILENT_S = 30.0
"""How long the event loop may stand: something holds the interpreter, and no question at all is answered."""

_QUESTIONS = ("/v1/search", "/v1/bugs", "/v1/hooks/")
"""What is posted and yet asks."""

_UNBOUNDED = ("/v1/forget", "/forget")
"""What takes as long as what it was given takes: to be read, or to be folded again without."""


def allowed_s(method: str, path: str) -> float:
    """Seconds that a request may take; infinite for what bounds itself."""
    if path.startswith(_UNBOUNDED):
        return math.inf
    return deadline.QUESTION_S if method in ("GET", "HEAD") or path.startswith(_QUESTIONS) else CHANGE_S


class Deadline:
    """Answers 503 in place of an application that does not answer in time. Outermost of all that answers with more."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._overdue: dict[asyncio.Task[None], TimedQuestion] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        allowed = allowed_s(scope["method"], scope["path"]) if scope["type"] == "http" else math.inf
        if allowed == math.inf:
            await self._app(scope, receive, send)
            return
        until, started, question = time.monotonic() + allowed, False, TimedQuestion()

        async def receiving() -> Message:
            nonlocal until
            until = math.inf  # however long they take to say it
            try:
                return await receive()
            finally:
                until = time.monotonic() + allowed

        async def sending(message: Message) -> None:
            nonlocal started
            if question.late_since is None:
                started = True
                await send(message)

        async def answering() -> None:
            deadline.AT_HAND.set(question)
            await self._app(scope, receiving, sending)

        task = asyncio.create_task(answering())
        try:
            while not started and (left := until - time.monotonic()) > 0:
                done, _ = await asyncio.wait({task}, timeout=min(left, 1.0))
                if done:
                    break
            if started or task.done():
                await task
                return
        except asyncio.CancelledError:
            task.cancel()
            raise
        question.end()
        self._overdue[task] = question
        task.add_done_callback(self._ended)
        log.error("%s %s had no answer after %.0f s; it is ended", *route_of(scope["method"], scope), allowed)
        refusal = problem(
            503, "Service Unavailable", f"no answer within {allowed:.0f} s",
            hint="the log of the API names the question; what was to be written may be sent again under its key",
        )  # fmt: skip
        await refusal(scope, receive, send)

    def unended_s(self) -> float:
        """For how long a thread has gone on that was to end; 0 where none does. What only waits for a thread, and what
        writes, is none."""
        now, overdue = time.monotonic(), self._overdue.values()
        return max((now - (each.late_since or now) for each in overdue if each.worked_on), default=0.0)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._overdue[task]
        if not task.cancelled():
            task.exception()  # Overdue, or whatever it made of that: nobody waits for it


class Pulse:
    """Ends this process where its event loop stands, or a thread goes on that was to end; its frames go to stderr."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline

    async def beat(self) -> None:
        """Called by the event loop every second."""
        if (unended := self._deadline.unended_s()) > UNENDED_S:
            log.error("a question goes on %.0f s after it was to end; the API ends", unended)
            faulthandler.dump_traceback(sys.stderr)
            os._exit(1)
        # A timer of C, which needs no interpreter to run out.
        faulthandler.dump_traceback_later(SILENT_S, exit=True, file=sys.stderr)
