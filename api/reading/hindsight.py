"""What the answers of `/v1/hindsight` and `/v1/recalls` hold."""

from datetime import date, datetime

import msgspec

from memctl.api.reading.views import Scope
from memctl.domain.retrieval.hindsight import HindsightKind


class Recall(msgspec.Struct, frozen=True):
    """The block that held the memory: for which hook, its place there from 1, and its score (0 to 1)."""

    hook: str
    rank: int
    score: float


class Held(msgspec.Struct, frozen=True):
    """The memory that held it: its id, what it says in short, its session, and since which position of the log."""

    id: str
    text: str
    session: str
    position: int


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a session needed, and that memory held. Of an error `same_way` says whether it was resolved as the
    memory says; `met` whether the session came by it at all. `calls`, `seconds` (of work) and `tokens` lie between the
    need and that. `recall` is null where the memory was not put before the agent."""

    id: str
    kind: HindsightKind
    what: str
    project: str | None
    session: str
    at: datetime
    position: int
    event: str
    end: str
    memory: Held
    recall: Recall | None
    met: bool
    same_way: bool
    likeness: float
    calls: int
    seconds: int
    tokens: int


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """So many times memory held what a session needed. `calls`, `seconds` and `tokens` were spent where it was not
    recalled; what several needs cost together counts once."""

    kind: HindsightKind
    count: int = 0
    recalled: int = 0
    calls: int = 0
    seconds: int = 0
    tokens: int = 0


class Week(msgspec.Struct, frozen=True):
    """The week that begins on that Monday: how often memory held what was needed, and how often it was recalled."""

    week: date
    count: int
    recalled: int


class Report(msgspec.Struct, frozen=True):
    """Counts by kind, by week, and the newest records."""

    counts: list[Count]
    weeks: list[Week]
    items: list[Record]
    scope: Scope


class HeldBy(msgspec.Struct, frozen=True):
    """A session that left the memory behind."""

    session: str
    memory: str
    text: str
    at: str


class NeededBy(msgspec.Struct, frozen=True):
    """A session that needed it."""

    session: str
    at: str


class Explained(Record, frozen=True, kw_only=True):
    """A record with how it was paired: `shared` are the words that need and memory have in common. `unsaid` says why it
    was not recalled, as far as that is recorded."""

    why: str
    shared: list[str]
    need: str
    held_by: list[HeldBy]
    needed_by: list[NeededBy]
    unsaid: str = ""


class RecalledMemory(msgspec.Struct, frozen=True):
    """A memory of a block: its place there from 1, and its score (0 to 1). What is gone has no kind and no title. `by`
    is `files` where it was chosen for the files that its work changed, whatever its score."""

    id: str
    rank: int
    score: float
    kind: str
    title: str
    by: str = ""


class PassedOver(msgspec.Struct, frozen=True):
    """A memory that was found and not put before the agent, and why: in one word, and in words for people."""

    id: str
    score: float
    why: str
    because: str = ""
    kind: str = ""
    title: str = ""


class RecalledBlock(msgspec.Struct, frozen=True):
    """What was put before an agent at a hook, or held back to compare; and what was found beside it. Where memory kept
    silent there are no memories, and `silent` says why. `event` is what asked, `prompt` its words in short."""

    id: str
    at: str
    hook: str
    tokens: int
    withheld: bool
    memories: list[RecalledMemory]
    passed_over: list[PassedOver] = []
    silent: str = ""
    event: str = ""
    prompt: str = ""


class SessionRecalls(msgspec.Struct, frozen=True):
    """A session's newest blocks, and how many there were; among them prompts at which memory kept silent, which are
    `kept_silent` in all."""

    session: str
    project: str | None
    count: int
    blocks: list[RecalledBlock]
    kept_silent: int = 0
