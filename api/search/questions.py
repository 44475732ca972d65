"""The questions that words and meaning answer: searches, errors like one, and episodes like a text."""

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from memctl.api.queries import bugs as bug_queries
from memctl.api.queries import work
from memctl.api.reading.places import Places
from memctl.api.reading.questions import LONGEST_PLACE, Cursor, Limit, Part, question
from memctl.api.reading.reader import Reader
from memctl.api.reading.records import EpisodeItem
from memctl.api.reading.views import BugAnswer, Page, SearchAnswer
from memctl.api.search.engine import MOST_RESULTS, Engine, Question
from memctl.domain.events.event import Micros
from memctl.domain.events.facts import TaskType
from memctl.domain.knowledge.memory import MemoryKind
from memctl.domain.retrieval.ranking import PROFILES

LONGEST_QUERY = 8_000
"""Characters of a query; what is beyond them would not change what is found."""

Query = Annotated[str, Meta(min_length=1, max_length=LONGEST_QUERY, examples=["which port does the dev server use"])]
Profile = Annotated[Literal[*PROFILES], Meta(description="How results are scored.")]  # type: ignore[valid-type]
Kinds = Annotated[list[MemoryKind] | None, Meta(description="Only memories of these kinds.")]
Threshold = Annotated[float, Meta(ge=0, le=1, description="Only results of this score or a higher one.")]
Error = Annotated[str | None, Meta(min_length=1, max_length=LONGEST_QUERY, examples=["KeyError: 'user_id'"])]
PartOfError = Annotated[
    str | None, Meta(max_length=LONGEST_QUERY, description="A part of an error's type, or an error as it was printed.")
]
Text = Annotated[str | None, Meta(max_length=LONGEST_QUERY, description="Most like this, best first.")]


class Condition(Struct, frozen=True):
    """`degraded` names, in words, what searches must do without."""

    status: Literal["ok", "degraded"]
    degraded: list[str]


@question("/search", "search", live=True)
def search(
    reader: Reader,
    engine: Engine,
    places: Places,
    now: datetime,
    *,
    q: Query,
    limit: Annotated[int, Meta(ge=1, le=MOST_RESULTS)] = 5,
    profile: Profile = "bounded",
    explain: bool = False,
    kind: Kinds = None,
    threshold: Threshold = 0.0,
    since: Micros | None = None,
    before: Micros | None = None,
) -> SearchAnswer:
    """What memory holds about `q`, best first. `class` says how far to trust that it answers the query."""
    asked = Question(
        query=q, places=places, now=now, limit=limit, profile=profile, explain=explain, kinds=tuple(kind or ()),
        threshold=threshold, since=since, before=before, on_request=True,
    )  # fmt: skip
    return engine.search(reader, asked)


@question("/bugs", "bugs", live=True)
def bugs(
    reader: Reader,
    engine: Engine,
    places: Places,
    *,
    q: Error = None,
    command: Annotated[str, Meta(max_length=LONGEST_PLACE)] = "",
    limit: Annotated[int, Meta(ge=1, le=50)] = 5,
) -> BugAnswer:
    """Known errors like `q`, with what resolved them; without `q`, those that were resolved most often."""
    if q is None:
        return bug_queries.known(reader, places, limit=limit)
    chances = engine.bugs_like(reader, q, places)
    return bug_queries.bugs(reader, q, places, command=command, chances=chances, limit=limit)


@question("/episodes", "work")
def episodes(
    reader: Reader,
    engine: Engine,
    places: Places,
    now: datetime,
    *,
    type: TaskType | None = None,
    outcome: Literal["success", "failure", "partial", "unknown"] | None = None,
    file: Part = None,
    symbol: Part = None,
    error: PartOfError = None,
    since: Micros | None = None,
    before: Micros | None = None,
    similar: Text = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[EpisodeItem]:
    """Episodes, newest first: one task's work in one session. `file`, `symbol`: a part of a path or name."""
    wanted = work.EpisodeFilter(
        task_type=type, outcome=outcome, file=file, symbol=symbol, error=error, since=since, before=before
    )
    if similar:
        return work.episodes_among(
            reader, places, engine.episodes_like(reader, similar, places, now), wanted, limit=limit
        )
    return work.episodes(reader, places, wanted, limit=limit, cursor=cursor)


@question("/health", "log", scopes=("read", "operate"), live=True)
def condition(reader: Reader, engine: Engine) -> Condition:
    """What works and what is missing: the database, the vector store, the embedder."""
    missing = engine.condition(reader)
    return Condition("degraded" if missing else "ok", missing)
