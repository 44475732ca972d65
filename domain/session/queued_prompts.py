"""What the user typed while the agent worked: it waits in the client's queue, and is a prompt once, however it comes.

Mostly the client hands it out when the agent is done, and it stands as a prompt then. What it hands out amid the work
stands nowhere else.
"""

import msgspec

from memctl.domain.events.event_order import OrderedEvent, text_digest
from memctl.domain.events.observations import NoticeReceived, PromptSubmitted

MOST = 32
"""Prompts that wait, and prompts that were handed out early and may come again."""


class QueuedPrompts:
    """The queue of one stream."""

    def __init__(self) -> None:
        self._waiting: dict[str, OrderedEvent] = {}
        self._early: dict[str, None] = {}

    def queued(self, placed: OrderedEvent, seen: NoticeReceived) -> None:
        """The user typed it, and it waits."""
        if len(self._waiting) < MOST:
            self._waiting.setdefault(text_digest(seen.text), placed)

    def taken(self, placed: OrderedEvent) -> tuple[OrderedEvent, PromptSubmitted] | None:
        """The client took one out in the middle of the work: the prompt that has waited longest, as of now."""
        if not self._waiting:
            return None
        digest = next(iter(self._waiting))
        waited = self._waiting.pop(digest)
        seen = waited.payload
        assert isinstance(seen, NoticeReceived)
        if len(self._early) < MOST:
            self._early[digest] = None
        prompt = PromptSubmitted(text=seen.text, length=seen.length, line=seen.line, block=seen.block)
        return msgspec.structs.replace(waited, payload=prompt, when=placed.when), prompt

    def said_before(self, seen: PromptSubmitted) -> bool:
        """Whether a prompt was handed out early; one that waited waits no more."""
        if not (self._waiting or self._early):
            return False
        digest = text_digest(seen.text)
        self._waiting.pop(digest, None)
        if digest not in self._early:
            return False
        del self._early[digest]
        return True
