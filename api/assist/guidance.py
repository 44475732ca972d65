"""What an agent asks while it works: guidance for a task, and four kinds of questions, each with the tier that answered
(this session's own memory first, then what happened, then what was learnt, else none)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated

from msgspec import Meta, structs

from memctl.api.assist.conversations import amended_first
from memctl.api.queries import bugs, claims, project
from memctl.api.queries.memories import session_streams
from memctl.api.queries.strategies import acts, strategies
from memctl.api.reading import models
from memctl.api.reading.advice import Answer, Case, Here, Kind, TaskGuidance, Tier
from memctl.api.reading.pages import one, several
from memctl.api.reading.places import Places, projects_of
from memctl.api.reading.projects import ProjectPage
from memctl.api.reading.questions import question
from memctl.api.reading.reader import Reader
from memctl.api.reading.views import BugHit, Found
from memctl.api.search.engine import Engine, Question
from memctl.domain.failures.signatures import signature_of
from memctl.domain.knowledge.strategies import VERIFICATION
from memctl.domain.retrieval.answering import FEW
from memctl.domain.retrieval.guidance import KnownBug, Precedent, Taught, course, synthesised
from memctl.domain.support.certainty import SUGGESTED
from memctl.domain.support.structs import carried_over
from memctl.projections.episodes import EpisodeRow
from memctl.projections.strategies import Strategy
from memctl.projections.working_memory import RecentError

_LEARNT = {
    "knowledge": "this is held to be true",
    "strategy": "this was learnt",
    "reflection": "this was concluded",
    "document": "this was written down",
    "commit": "a commit says why",
}
"""What an answer of these kinds is; any other is of something that happened."""

TaskText = Annotated[str, Meta(min_length=1, max_length=4_000, examples=["fix the flaky login test"])]

MOST_LINES = 5
"""Conventions, hot spots, things avoided and preferences that come with guidance, of each."""

NEAREST = 3
"""Results that are given where none is known to answer."""

PRECEDENTS = 3
"""Tasks like it that guidance is made of, at most."""

LIKE = 0.20
"""How sure it has to be that an episode is of a task like the one asked about. Nobody asks twice in the same words."""


def answer(
    reader: Reader, engine: Engine, kind: Kind, text: str, places: Places, now: datetime, *, session: str = "",
    limit: int = FEW,
) -> Answer:  # fmt: skip
    """What memory holds for that kind of question, in the order of a search. Where nothing is `suggested`, what comes
    nearest, and that nothing is known.

    How something is done may stand in a claim, a document, a lesson or a turn: whoever asks does not know where. What
    shows no error, as "how did we mend the build" does not, is no less a question for having been asked as one.
    """
    errors = _similar_error(reader, engine, text, places, session, limit) if kind == "similar_error" else None
    if errors is not None and errors.source != "none":
        return errors
    asked = Question(query=text, places=places, now=now, limit=limit, on_request=True)
    found = engine.search(reader, asked).results
    known = amended_first(reader, [each for each in found if each.class_ != "none"], text)
    if not known:
        said = errors or Answer(kind=kind, source="none", message="nothing like it is known", scope=places.scope)
        return structs.replace(said, results=found[:NEAREST])
    tier: Tier = "semantic_memory" if known[0].kind in _LEARNT else "episodic_memory"
    message = _LEARNT.get(known[0].kind, "this was done before")
    return Answer(kind=kind, source=tier, message=message, scope=places.scope, results=known)


def _similar_error(reader: Reader, engine: Engine, text: str, places: Places, session: str, limit: int) -> Answer:
    held = {each: chance for each, chance in engine.bugs_like(reader, text, places).items() if chance >= 1}
    found = bugs.bugs(reader, text, places, chances=held, limit=limit)
    hits = [hit for hit in found.hits if hit.score >= SUGGESTED]
    known = _known_bugs(hits)
    if earlier := _earlier(reader, text, session):
        # The known way out is shown beside it, because what this session tried did not prevent the error.
        return Answer(
            kind="similar_error", source="working_memory", scope=places.scope, error=earlier, bugs=hits,
            message="this error occurred earlier in this session; try something else",
            course=course(known, met_here=True, tried=earlier.resolution),
        )  # fmt: skip
    if not hits:
        message = "this error was not seen before" if found.errors else "no error was recognised in that text"
        todo = course([]) if found.errors else None
        return Answer(kind="similar_error", source="none", message=message, scope=places.scope, course=todo)
    # The very error that happened is an episode's; one that is only like it is a pattern.
    same = hits[0].score >= 1 and hits[0].solution is not None
    message = "this error was met and resolved before" if same else "errors like it are known"
    tier: Tier = "episodic_memory" if same else "semantic_memory"
    return Answer(
        kind="similar_error", source=tier, message=message, scope=places.scope, bugs=hits, course=course(known)
    )


def _known_bugs(hits: Sequence[BugHit]) -> list[KnownBug]:
    return [
        KnownBug(
            memory=hit.id, score=hit.score, causes=tuple(hit.causes),
            solution=hit.solution.approach or hit.solution.description if hit.solution else "",
            held=hit.solution.success_rate if hit.solution else 1.0,
        )
        for hit in hits
    ]  # fmt: skip


def _earlier(reader: Reader, text: str, session: str) -> RecentError | None:
    """The same error in the session's own ring of errors; the newest one is the error being asked about."""
    if not session:
        return None
    streams = session_streams(reader, session, 2)
    working = one(reader, models.working_memory, streams[0]) if len(streams) == 1 else None
    if working is None:
        return None
    asked = {each.signature for each in signature_of(text, "")}
    same = sorted((each for each in working.errors if each.signature in asked), key=lambda each: each.at)
    return same[-2] if len(same) > 1 else None


@question("/guidance", "search", live=True)
def guidance(reader: Reader, engine: Engine, task: TaskText, places: Places, now: datetime) -> TaskGuidance:
    """Advice for a task: approach, what to try and to avoid, challenges, complexity, and how sure that is. It rests on
    episodes like it, known errors, what the project is known for and what the user rejects."""
    asked = Question(query=task, places=places, now=now, limit=PRECEDENTS, kinds=("episode",))
    like = [each for each in engine.search(reader, asked).results if each.score >= LIKE]
    rows: dict[str, EpisodeRow] = several(reader, models.episodes, [each.source.key for each in like])
    precedents = [_precedent(each.id, rows[each.source.key]) for each in like if each.source.key in rows]
    hits = [hit for hit in bugs.bugs(reader, task, places, limit=PRECEDENTS).hits if hit.score >= SUGGESTED]
    taught = _strategies(reader, engine, task, places, now)
    page = _page(reader, places, now)
    liked = claims.preferences(reader, places).items
    rejected = [item.text for item in liked if item.group == "rejected"]
    made = synthesised(
        precedents,
        _known_bugs(hits),
        strategies=taught,
        avoid=[line.text for line in page.avoid] if page else (),
        rejected=rejected,
        hot_files=[line.text.split("`")[1] for line in page.hotspots if line.text.count("`") >= 2] if page else (),
    )
    return TaskGuidance(
        task=task,
        scope=places.scope,
        guidance=made,
        episodes=like,
        similar_cases=_cases(like, rows, precedents),
        bugs=hits,
        project=_held_here(page) if page else None,
        preferences=[item.text for item in liked if item.group != "rejected"][:MOST_LINES],
    )


def _cases(like: Sequence[Found], rows: Mapping[str, EpisodeRow], precedents: Sequence[Precedent]) -> list[Case]:
    return [
        carried_over(each, Case, description=rows[found.source.key].description, learnt=[*each.tips, *each.gotchas])
        for found, each in zip([f for f in like if f.source.key in rows], precedents, strict=True)
    ]


def _strategies(reader: Reader, engine: Engine, task: str, places: Places, now: datetime) -> list[Taught]:
    """Strategies of the project that bear on the task, as far as memory is sure, and on whatever is changed there."""
    asked = Question(query=task, places=places, now=now, limit=PRECEDENTS, kinds=("strategy",))
    like = [each for each in engine.search(reader, asked).results if each.class_ != "none"]
    rows: dict[str, Strategy] = several(reader, models.strategies, [each.source.key for each in like])
    taught = [
        Taught(memory=each.id, content=row.content, from_failure=row.from_failure)
        for each in like
        if (row := rows.get(each.source.key)) is not None and not acts(row)
    ]
    known = {each.memory for each in taught}
    always = strategies(reader, places, domain=VERIFICATION, limit=PRECEDENTS).items if places.project else []
    return taught + [
        Taught(memory=each.memory_id, content=each.content, from_failure=each.from_failure)
        for each in always
        if each.memory_id not in known and not each.acts
    ]


def _precedent(memory: str, row: EpisodeRow) -> Precedent:
    return Precedent(
        memory=memory,
        outcome=row.outcome,
        approach=row.solution or row.answer,
        tips=row.tips,
        gotchas=row.gotchas or ((row.why,) if row.outcome == "failure" and row.why else ()),
        complexity=row.complexity,
        files=row.files,
    )


def _page(reader: Reader, places: Places, now: datetime) -> ProjectPage | None:
    """The page of the project that is asked about, where it is one."""
    locations = set(places.locations or ()) if places.project is not None else set()
    found = next((each for each in projects_of(reader).all if locations.intersection(each.locations)), None)
    return None if found is None else project.shown(reader, found, int(now.timestamp() * 1e6))


def _held_here(page: ProjectPage) -> Here:
    conventions, hotspots, avoid = (
        [line.text for line in section[:MOST_LINES]] for section in (page.conventions, page.hotspots, page.avoid)
    )
    return Here(name=page.project.name, conventions=conventions, hotspots=hotspots, avoid=avoid)
