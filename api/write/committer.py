"""Commits deliveries in groups, on a thread of its own: many hooks at once cost one transaction."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args

import msgspec

from memctl.api.write.hang_watch import HUNG, Suspects, WatchedThread, unlooked
from memctl.api.write.ingest_writer import OUTAGES, EventSink, NotTaken, WriteResult, Writers
from memctl.api.write.transcripts import TranscriptReader
from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.observations import Agent
from memctl.infra.hooks.capture_policy import CapturePolicy
from memctl.infra.hooks.payloads import ParsedHook, parse_hook
from memctl.infra.hooks.spool import Delivery
from memctl.infra.settings import Settings

log = logging.getLogger("memctl.door")

Acknowledgement = dict[str, Any]
"""What a client gets to read; see `memctl.api.write.door`."""

MOST_EMPTY = 64
"""Deliveries that held nothing to keep and are remembered, the latest."""

AT_ONCE = 2_000
"""Events that are appended in one transaction: others wait for its end. A client without other hooks hands over all
of a conversation."""

BUSY: Acknowledgement = {"ok": False, "retry": True, "why": "busy"}


@dataclass(eq=False, slots=True)
class PendingDelivery:
    """A delivery on its way to Postgres. `gone` returns whether whoever waits for the answer has left."""

    delivery: Delivery
    answer: asyncio.Future[Acknowledgement]
    gone: Callable[[], bool] = lambda: False
    give_room: Callable[[], None] = lambda: None


class Committer(WatchedThread):
    """Takes waiting deliveries, up to `append_batch` at once, and commits them together (`AT_ONCE`)."""

    def __init__(
        self,
        settings: Settings,
        loop: asyncio.AbstractEventLoop,
        reader: TranscriptReader,
        open_writer: Callable[[Settings], EventSink],
        suspects: Suspects,
    ) -> None:
        """`reader` gets to read the transcripts that deliveries name, once these are durable. For a delivery that an
        earlier door hung on alone no file is looked at; one that hung a door so is refused."""
        super().__init__(name="committer", daemon=True)
        self._reader = reader
        self.ended = asyncio.Event()
        self._settings = settings
        self._policy = CapturePolicy(settings)
        self._loop = loop
        self._waiting: deque[PendingDelivery] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._writers = Writers(settings, open_writer)
        self._away = False
        self.empty: dict[str, str] = {}
        """The latest deliveries of which nothing could be read, with why: they are kept nowhere."""
        self.empty_count = 0
        self._alone, self._aside = suspects.alone, suspects.aside

    async def commit(
        self,
        delivery: Delivery,
        gone: Callable[[], bool],
        give_room: Callable[[], None],
    ) -> Acknowledgement:
        """Queue a delivery; returns once it is durable, or with the reason why it is not."""
        (answer,) = await self._answers([PendingDelivery(delivery, self._loop.create_future(), gone, give_room)])
        return answer

    async def commit_all(self, deliveries: Sequence[Delivery]) -> list[Acknowledgement]:
        """Queue deliveries as one group, up to `append_batch` of them; returns once each has its answer."""
        return await self._answers([PendingDelivery(each, self._loop.create_future()) for each in deliveries])

    async def _answers(self, waiting: Sequence[PendingDelivery]) -> list[Acknowledgement]:
        with self._changed:
            self._waiting.extend(waiting)
            self._changed.notify()
        return [await each.answer for each in waiting]

    def drop_abandoned(self) -> bool:
        """Give up waiting deliveries whose clients have left, for others to have their room. Whether there were any.

        None of them was acknowledged, so its hook has spooled it. Without need they stay: a hook that was killed as
        it waited could not. On the event loop only.
        """
        with self._changed:
            abandoned = [waiting for waiting in self._waiting if waiting.gone()]
            for waiting in abandoned:
                self._waiting.remove(waiting)
        for waiting in abandoned:
            waiting.give_room()
            _settle(waiting.answer, BUSY)
        return bool(abandoned)

    def stop(self) -> None:
        """End once everything that waits has its answer."""
        with self._changed:
            self._stopping = True
            self._changed.notify()

    def run(self) -> None:
        with contextlib.suppress(Exception):  # so that the first hook need not wait; what is wrong shows when one comes
            self._writers.of("").opened()
        while self._commit_next():
            pass
        self._writers.close()
        self._schedule(self.ended.set)

    def _commit_next(self) -> bool:
        """Commit what waits, or else what comes next. False at the end."""
        self.at_since = None
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopping)
            group = self._next_group()
        refused = [waiting for waiting in group if unlooked(waiting.delivery.id) in self._aside]
        self._answer_all(refused, {"ok": False, "retry": False, "why": HUNG})
        if kept := [waiting for waiting in group if waiting not in refused]:
            self._commit(kept)
        return bool(group)

    def _next_group(self) -> list[PendingDelivery]:
        """What waits, as much as is appended at once; a suspect by itself."""
        group: list[PendingDelivery] = []
        while self._waiting and len(group) < self._settings.append_batch:
            if self._waiting[0].delivery.id in self._alone | self._aside:
                return group or [self._waiting.popleft()]
            group.append(self._waiting.popleft())
        return group

    def _commit(self, group: Sequence[PendingDelivery]) -> bool:
        """Commit and answer. False where nothing can be kept now, so that trying the next would be in vain."""
        ids = (waiting.delivery.id for waiting in group)
        self.at_since, self.at = time.monotonic(), tuple(unlooked(id) if id in self._aside else id for id in ids)
        try:
            answers = self._record([waiting.delivery for waiting in group])
        except OUTAGES as problem:
            self._writers.close()
            if not self._away:
                self._away = True
                log.warning("nothing can be kept for now: %s", problem)
            self._answer_all(group, {"ok": False, "retry": True, "why": str(problem)})
            return False
        except Exception as problem:
            if len(group) > 1:  # one of them is to blame: halves find it in few steps
                middle = len(group) // 2
                if self._commit(group[:middle]):
                    return self._commit(group[middle:])
                self._answer_all(group[middle:], {"ok": False, "retry": True, "why": "nothing can be kept for now"})
                return False
            self._writers.close()
            self._answer_all(group, {"ok": False, "retry": False, "why": _why_refused(group[0].delivery, problem)})
            return True
        if self._away:
            self._away = False
            log.warning("deliveries are kept again")
        for waiting, answer in zip(group, answers, strict=True):
            self._schedule(_settle, waiting.answer, answer)
        return True

    def _record(self, deliveries: Sequence[Delivery]) -> list[Acknowledgement]:
        answers: dict[int, Acknowledgement] = {}
        for space in dict.fromkeys(each.space for each in deliveries):
            which = [n for n, each in enumerate(deliveries) if each.space == space]
            answers |= zip(which, self._record_in(space, [deliveries[n] for n in which]), strict=True)
        return [answers[n] for n in range(len(deliveries))]

    def _record_in(self, space: str, deliveries: Sequence[Delivery]) -> list[Acknowledgement]:
        writer = self._writers.of(space).opened()
        events: list[NewEvent] = []
        owners: list[Acknowledgement] = []
        answers: list[Acknowledgement] = []
        named: list[tuple[str, bool]] = []
        for delivery in deliveries:
            parsed = without_unsaved(parse(delivery, looks=delivery.id not in self._aside), self._policy)
            named += [(file, parsed.begins) for file in parsed.transcripts]
            answer: Acknowledgement = {"ok": True, "new": 0, "duplicate": 0}
            if parsed.why:
                log.warning("delivery %s holds nothing to keep: %s", delivery.id, parsed.why)
                answer["bad"] = parsed.why
                self.empty[delivery.id] = parsed.why
                self.empty_count += 1
                if len(self.empty) > MOST_EMPTY:
                    del self.empty[next(iter(self.empty))]
            elif not parsed.events:
                answer["ignored"] = parsed.kind
            answers.append(answer)
            events.extend(parsed.events)
            owners.extend([answer] * len(parsed.events))
        for start in range(0, len(events), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            _count(owners[part], writer.record(events[part]))
        for file, begins in named:
            self._reader.read(file, neighbours=begins, space=space)
        return answers

    def _answer_all(self, group: Sequence[PendingDelivery], answer: Acknowledgement) -> None:
        for waiting in group:
            self._schedule(_settle, waiting.answer, answer)

    def _schedule(self, call: Callable[..., None], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits any more
            self._loop.call_soon_threadsafe(call, *arguments)


def _count(owners: Sequence[Acknowledgement], recorded: WriteResult) -> None:
    """Say of the delivery that each event is of what became of it."""
    appended = iter(recorded.appended)
    for index, owner in enumerate(owners):
        if why := recorded.refused.get(index):
            owner["ignored"] = why
        else:
            owner["new" if next(appended).status in ("new", "variant") else "duplicate"] += 1


def _why_refused(delivery: Delivery, problem: Exception) -> str:
    """Why a delivery is refused for good, as the log has it, too: where it failed and with what kind of error, but no
    message, which may quote what was said. What the team's API says quotes nothing."""
    if isinstance(problem, NotTaken):
        log.error("delivery %s is refused: %s", delivery.id, problem)
        return str(problem)
    kind = type(problem.__cause__ or problem).__name__
    frames = "".join(traceback.format_tb(problem.__traceback__))
    log.error("delivery %s is refused for what it holds: %s\n%s", delivery.id, kind, frames)
    return f"refused for what it holds: {kind}"


def parse(delivery: Delivery, *, looks: bool = True) -> ParsedHook:
    """What a delivery says. `looks`: whether files may be looked at for it (`parse_hook`)."""
    if delivery.agent not in get_args(Agent):
        return ParsedHook(why="not of a client that memctl knows")
    agent = cast(Agent, delivery.agent)
    at = Micros(delivery.at)
    return parse_hook(delivery.payload, delivery.id, at, agent, delivery.event, delivery.started, looks=looks)


def without_unsaved(parsed: ParsedHook, policy: CapturePolicy) -> ParsedHook:
    """The delivery without what was recorded where, and while, saving was off.

    A transcript that it names is read all the same. That reading passes over what was said while saving was off
    (`memctl.api.write.ingest`). Otherwise a later reading would start from where the file was left before.
    """
    if not any(policy.saving_was_off(event.session_id, event.location, event.occurred_at) for event in parsed.events):
        return parsed
    return msgspec.structs.replace(parsed, events=(), kind="off")


def _settle(future: asyncio.Future[Acknowledgement], answer: Acknowledgement) -> None:
    if not future.done():
        future.set_result(answer)
