"""What the API answers with: shapes that scripts rely on. Times are UTC, ISO 8601.

Rows of read models are shown as they are, by `shown`: their type is the shape, with moments written out.
"""

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar
from uuid import UUID

import msgspec

from memctl.domain.support.certainty import Class

if TYPE_CHECKING:
    from pydantic import JsonValue

    Json: TypeAlias = JsonValue
else:
    Json = Any  # msgspec takes any JSON for it, and pydantic is not imported for a command
"""Any JSON: an event's payload, a schema, a record of a kind that only its reader knows."""

T = TypeVar("T")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Fields of rows that hold a moment in microseconds, by their names.
_MOMENTS = frozenset(
    ("at", "first_seen", "last_seen", "last_resolved", "valid_from", "valid_until", "first_used", "last_used")
)


class Origin(msgspec.Struct, frozen=True):
    """Where an event came from: the client, its session, and the transcript's line (uuid, or `#` and its ordinal)."""

    agent: str
    session: str
    line: str


class Evidence(msgspec.Struct, frozen=True):
    """A quote, cut from its source event as that stands now; none (`start` is `end`) where all of it shows it.

    `start` and `end` count characters of the event's `field`. `holds` says whether the quote still is what was quoted:
    false where the event was erased (then the quote is empty) or reads otherwise.
    """

    event_id: UUID
    source: Origin
    field: str
    start: int
    end: int
    quote: str
    holds: bool


class SourceRow(msgspec.Struct, frozen=True):
    """What a memory was made of: a read model and its key, or `facts` and a fact's id."""

    projection: str
    key: str


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One memory that answers a search. `score` in 0 to 1; `why` says in words how it was found. `passage` is the part
    of the text that meets the question, about 600 characters at most, of a turn out of all that was said in it. Quotes
    of the evidence are cut at 1,000 characters; `/v1/explain` and an event have them whole.

    `explain` is there on request: ranks per source (from 1), and the parts of the score.
    """

    id: str
    text: str
    title: str
    score: float
    class_: Class = msgspec.field(name="class")
    bucket: str
    kind: str
    project: str
    occurred_at: datetime
    evidence: list[Evidence]
    why: str
    source: SourceRow
    status: str = ""
    outcome: str = ""
    confidence: float = 0.0
    said_by: str = ""
    member: str = ""
    """Of the team, who said it."""
    confirmed: bool = False
    origin: str = ""
    """Whose words it is in, as people are shown it."""
    passage: str = ""
    explain: dict[str, Json] | msgspec.UnsetType = msgspec.UNSET


class Scope(msgspec.Struct, frozen=True):
    """Which projects an answer is about. `project` is None for all or none; `chosen`: asked, here (where the caller
    stands), unknown (memory knows no project there: only what holds everywhere), or everywhere."""

    project: str | None
    chosen: Literal["asked", "here", "unknown", "everywhere"]
    locations: int


class SearchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Results best first. `degraded` names, in words, what the search had to do without."""

    query: str
    scope: Scope
    intent: str
    profile: str
    degraded: list[str]
    results: list[Found]
    took_ms: float


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Items, and the cursor that the next page is asked with; None on the last one."""

    items: list[T]
    next: str | None = None
    scope: Scope | None = None


class Listing(msgspec.Struct, Generic[T], frozen=True):
    """All items there are."""

    items: list[T]


class Thing(msgspec.Struct, frozen=True):
    """Whatever has an id: the word for what it is, and its fields, which differ by kind."""

    kind: str
    item: dict[str, Json]


class Done(msgspec.Struct, frozen=True):
    """What a command became. `status` is `duplicate` where it had been carried out before, `forgotten` where what it
    had become was erased since."""

    event_id: str
    type: str
    stream: str
    position: int
    status: str
    recorded: dict[str, Json]


class Ticket(msgspec.Struct, frozen=True):
    """A path that signs one browser in."""

    path: str


class Job(msgspec.Struct, frozen=True):
    """How far memory as it was is; `message` says why it failed."""

    status: str
    message: str = ""


class ShownEdit(msgspec.Struct, frozen=True):
    """An edit, cut to what shows the idea."""

    path: str
    before: str
    after: str


class ShownSolution(msgspec.Struct, frozen=True):
    """A way out of an error. `success_rate` is a moving average that starts at 0.5."""

    approach: str
    description: str
    edits: list[ShownEdit]
    files: list[str]
    conditions: list[str]
    uses: int
    successes: int
    success_rate: float
    first_used: str | None
    last_used: str | None
    attempts: list[str]


class RecognisedError(msgspec.Struct, frozen=True):
    """An error that was recognised in a text."""

    signature: str
    error_types: list[str]
    template: str
    message: str


class RelatedBug(msgspec.Struct, frozen=True):
    """Another kind of error that the same run showed."""

    signature: str
    error_types: list[str]
    message: str
    resolutions: int


class BugHit(msgspec.Struct, frozen=True, kw_only=True):
    """A known kind of error that the given one matches, with the best way out that is known.

    `score` in 0 to 1, `aspects` what matched. `class`: `high` for the same error, `suggested` from 0.75 on, `none` for
    a likeness below, which is shown if asked for and never injected unasked. `code` are lines of source that the tool
    pointed at; `causes` what was said to be behind it. `solutions` best first.
    """

    id: str
    """Of the memory made of it."""
    signature: str
    score: float
    class_: Class = msgspec.field(name="class")
    aspects: list[str]
    error_types: list[str]
    message: str
    template: str
    stack: list[str]
    code: list[str]
    file_types: list[str]
    frameworks: list[str]
    causes: list[str]
    occurrences: int
    resolutions: int
    mean_resolve_s: float | None
    first_seen: datetime
    last_seen: datetime
    projects: list[str]
    files: list[str]
    solution: ShownSolution | None
    lesson: str
    """What the best solution that explains anything teaches, in one line; empty where none may be volunteered."""
    solutions: list[ShownSolution]
    related: list[RelatedBug]
    evidence: list[Evidence]


class BugAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`errors` are what was recognised in the text; `hits` the known patterns, best first."""

    errors: list[RecognisedError]
    hits: list[BugHit]
    scope: Scope | None = None


def moment(micros: int) -> datetime:
    """A moment given in microseconds since 1970; the nearest that a calendar has where it is out of range."""
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if micros > 0 else datetime.min.replace(tzinfo=UTC)


def shown(row: Any) -> dict[str, Json]:
    """A row as JSON values, whole (also fields that were stored as left out), moments as ISO 8601, None for never."""
    return {name: _written_out(name, getattr(row, name)) for name in row.__struct_fields__}


def is_moment(name: str) -> bool:
    """Whether a field of that name holds a moment."""
    return name in _MOMENTS or name.endswith("_at")


def _written_out(name: str, value: Any) -> Any:
    if type(value) is int and is_moment(name):
        return iso(moment(value)) if value else None
    if isinstance(value, msgspec.Struct):
        return shown(value)
    if isinstance(value, (list, tuple)):
        return [_written_out("", each) for each in value]
    if isinstance(value, dict):
        return {key: _written_out(key, each) for key, each in value.items()}
    return value if isinstance(value, (str, int, float, bool, type(None))) else msgspec.to_builtins(value)


def shown_as(row: Any, item: type[T], **more: object) -> T:
    """A row as the record that answers show: its fields as `shown` writes them out, and what they say besides."""
    return msgspec.convert({**shown(row), **more}, item)


def week_of(day: date) -> date:
    """The Monday of its week, as far as calendars go."""
    return day - timedelta(days=min(day.weekday(), day.toordinal() - 1))


def known_time(at: int) -> str | None:
    """The moment of an event (microseconds); None of one that came without a time."""
    return iso(moment(at)) if at > 0 else None


def iso(at: datetime) -> str:
    """ISO 8601 in UTC, with a Z."""
    return at.isoformat().replace("+00:00", "Z")
