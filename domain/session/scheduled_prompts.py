"""What an agent had its client say to it later: it comes back in the user's place, and is the agent's word.

Hooks deliver such a prompt without a mark. It is known by its text: a tool that schedules was called with it before.
"""

from uuid import UUID

from memctl.domain.events.event_order import OrderedEvent, text_digest
from memctl.domain.events.observations import PromptSubmitted, ToolCalled
from memctl.domain.language.prompts import said_in
from memctl.domain.support import patterns
from memctl.domain.support.remembered import remembered

MOST = 4_000
"""Scheduled prompts of one session that are known again: the newest."""

LONGEST = 1_000
"""Characters by which one is known: calls and prompts are cut at different lengths."""

_SCHEDULES = patterns.compile(r"cron|schedul|wake_?up|remind|trigger|later|loop", patterns.I)
_FIELDS = ("prompt", "message", "text", "body")


@remembered(1024)
def schedules(tool: str) -> bool:
    """Whether a tool of that name has its client say something later. One too many costs little: only what it was
    called with is no longer the user's."""
    return _SCHEDULES.search(tool) is not None


class ScheduledPrompts:
    """What the agent of one stream scheduled so far."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self.deliveries: set[UUID] = set()
        """Prompts that were scheduled, by their deliveries."""

    def called(self, seen: ToolCalled) -> None:
        """The agent used a tool."""
        if not schedules(seen.tool):
            return
        for name in _FIELDS:
            given = seen.input.get(name)
            if isinstance(given, str) and (known := _known_by(given)):
                self._texts.pop(known, None)
                self._texts[known] = None
        while len(self._texts) > MOST:
            del self._texts[next(iter(self._texts))]

    def has(self, seen: PromptSubmitted) -> bool:
        """Whether a prompt was scheduled before it came."""
        return bool(self._texts) and _known_by(seen.text) in self._texts

    def fired(self, placed: OrderedEvent, seen: PromptSubmitted) -> bool:
        """The same, of a prompt at its place."""
        if not self.has(seen):
            return False
        self.deliveries.update(filter(None, (placed.cite, placed.hook)))
        return True


def _known_by(text: str) -> str:
    words = said_in(text).words
    return text_digest(" ".join(words.split())[:LONGEST]) if words else ""
