"""What memory injected for an agent unasked: recorded, so that its use can be judged, and never learnt from."""

import hashlib
import json
from typing import ClassVar, Literal
from uuid import UUID

import msgspec

from memctl.domain.events.event import event
from memctl.domain.events.facts import Recalled
from memctl.domain.events.statements import Statement
from memctl.domain.support import patterns
from memctl.domain.support.wording import seen

RecalledBy = Literal["", "files"]
"""What a memory was found by, beside its words: the files that its work changed, whatever its score."""


class RecalledMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """One memory that was injected, and how sure the answer was of it (0 to 1)."""

    id: str
    score: float = 1.0
    by: RecalledBy = ""


PassedOverFor = Literal[
    "weak", "same session", "no room", "said before", "no lead", "short prompt", "another error", "unconfirmed",
    "an order", "enough said", "below limit",
]  # fmt: skip
"""Why a memory that was found was not injected."""

BECAUSE: dict[str, str] = {
    "weak": "it hardly bears on what is asked, by its words alone",
    "same session": "another memory of its session says what came of it",
    "no room": "the block was full",
    "said before": "this session was given it before",
    "no lead": "others that were found hold as much of what is asked: it may be any of them",
    "short prompt": "so short a prompt is given lessons about the files at hand only",
    "another error": "what is asked does not show this error",
    "unconfirmed": "nobody confirmed it, and it is not the user's word",
    "an order": "its words ask for something to be done, and an agent might do it",
    "enough said": "as much of its kind is said as is said at once",
    "below limit": "its score is below the setting `injection.min_score`",
}
"""The same in words, for people."""

Silence = Literal["", "nothing asked", "nothing found", "no project"]
"""Why nothing was looked for or found; empty where what was found says why it was left out."""

SILENT: dict[str, str] = {
    "": "nothing that was found is sure enough",
    "nothing asked": "a plan, or too few words to ask anything of memory",
    "nothing found": "memory holds nothing of what is asked",
    "no project": "memory knows no project at this place",
}
"""The same in words, for people."""


MOST_PASSED_OVER = 8
"""Memories that were found and not injected, of one block, the best first."""


class PassedOver(msgspec.Struct, frozen=True, omit_defaults=True):
    """One memory that was found and not injected, its score (0 to 1), and why."""

    id: str
    score: float
    why: PassedOverFor


@event("memory.recalled")
class MemoryRecalled(Statement, frozen=True, kw_only=True, omit_defaults=True):
    """Memory was put before an agent, or kept silent at a prompt: then `silent` or `passed_over` says why. `asked_by`
    is the event of the hook that asked; `tokens` what it took, about.

    `withheld`: it was held back, so that work without memory can be compared; the memories are those that there were.
    """

    injected: ClassVar[bool] = True

    hook: str
    asked_by: UUID | None = None
    memories: tuple[RecalledMemory, ...] = ()
    tokens: int = 0
    withheld: bool = False
    passed_over: tuple[PassedOver, ...] = ()
    """What was found beside them; empty where nothing was searched for."""
    silent: Silence = ""


MOST_FOLLOWED = 24
"""Memories recalled in one piece of work whose fate is followed."""


class Recalls(msgspec.Struct):
    """The memories that were injected for an agent in a piece of work."""

    memories: dict[str, None] = msgspec.field(default_factory=dict)
    asked: bool = False
    """Some of it for a prompt, or an error: not only as the session began."""
    withheld: bool = False
    """There was some that was held back."""

    def add(self, seen: MemoryRecalled) -> None:
        if seen.withheld:
            self.withheld = self.withheld or bool(seen.memories)
            return
        fresh = [each.id for each in seen.memories if each.id][: MOST_FOLLOWED - len(self.memories)]
        self.memories.update(dict.fromkeys(fresh))
        self.asked = self.asked or (bool(fresh) and seen.hook != "SessionStart")

    @property
    def recalled(self) -> Recalled:
        """What a session begins with is injected whether or not memory is held back afterwards."""
        if self.withheld and not self.asked:
            return "withheld"
        return "told" if self.memories else "none"


def held_back(session: str, prompt: str, share: float) -> bool:
    """Whether memory is held back from a prompt, of which that share (0 to 1) gets nothing. The same prompt of the same
    session is always treated alike."""
    drawn = int.from_bytes(hashlib.sha256(f"{session}\n{prompt}".encode("utf-8", "surrogatepass")).digest()[:8], "big")
    return drawn < share * 2**64


def quoted_name(name: str) -> str:
    """A name that others chose (of a project, a file, a section), as an agent is given it: in quotation marks where it
    is more than one word."""
    return name if _WORD.fullmatch(name) else quoted(name, 300)


_WORD = patterns.compile(r"[\w.@+~:/\\-]{1,300}")


def quoted(text: str, most: int) -> str:
    """A remembered text on one line of at most about `most` characters, in quotation marks that it cannot close.

    Nor can it end the block that it stands in: no tag survives, and nothing that people do not see.
    """
    flat = " ".join(seen(text).split())
    shown = flat if len(flat) <= most else flat[: most - 1].rstrip() + "…"
    return json.dumps(shown, ensure_ascii=False).replace("<", "‹")
