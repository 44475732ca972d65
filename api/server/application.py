"""The read API over HTTP: routes under `/v1`, each one question of `queries`, `bugs`, `stats` or `search`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Depends, FastAPI, Path, Query, Request, Response
from pydantic import BaseModel, Field

from memctl.api.checks import dead_letters
from memctl.api.checks.health import health, servers, troubles
from memctl.api.http import as_of as http_as_of
from memctl.api.http import code as http_code
from memctl.api.http import commands as http_commands
from memctl.api.http import events as http_events
from memctl.api.http import forget as http_forget
from memctl.api.http import guidance as http_guiding
from memctl.api.http import hindsight as http_hindsight
from memctl.api.http import hooks as http_hooks
from memctl.api.http import imports as http_import
from memctl.api.http import live as http_live
from memctl.api.http import metrics
from memctl.api.http import openapi as http_openapi
from memctl.api.http import problems as http_problems
from memctl.api.http import project as http_project
from memctl.api.http import spaces as http_spaces
from memctl.api.http import work as http_work
from memctl.api.http.access import caller_of
from memctl.api.http.answers import Answers, json_of, now
from memctl.api.http.parameters import (
    IN_DIGITS,
    LONGEST_PLACE,
    Cursor,
    Flag,
    Here,
    Iso,
    Limit,
    Moment,
    Number,
    Project,
    micros,
)
from memctl.api.queries import bugs as bug_queries
from memctl.api.queries import claims, costs, stats
from memctl.api.queries import memories as queries
from memctl.api.queries.explain import explain
from memctl.api.queries.waiting import waiting
from memctl.api.reading import consolidation_status as standing
from memctl.api.reading.caller import NOBODY
from memctl.api.reading.counts import Allowance, Stats
from memctl.api.reading.places import places_of
from memctl.api.reading.reader import Reader, Readers
from memctl.api.reading.views import Listing
from memctl.api.search.engine import MOST_RESULTS, Engine, Question
from memctl.api.viewer.sign_in import Browsers
from memctl.api.viewer.site import not_there, site
from memctl.api.write.command_handler import CommandHandler
from memctl.api.write.remote_ingest import RemoteIngest
from memctl.domain.knowledge.memory import MemoryKind
from memctl.domain.retrieval.ranking import PROFILES
from memctl.infra.hooks.capture_policy import CapturePolicy
from memctl.infra.readmodels import rebuilds
from memctl.infra.settings_model import Llm, Settings

Bucket = Literal["PROFILE", "PREFERENCE", "EPISODIC", "SEMANTIC", "FACT"]

LONGEST_QUERY = 8_000
"""Characters of a query; what is beyond them would not change what is found."""

LONGEST_ERROR = 200_000
"""Characters of a posted error text."""

Id = Annotated[str, Path(min_length=1, max_length=512, description="An id, or its unambiguous beginning.")]


class ErrorText(BaseModel):
    """An error to be looked up."""

    text: str = Field(min_length=1, max_length=LONGEST_ERROR, examples=["ModuleNotFoundError: No module named 'yaml'"])
    command: str = Field(default="", max_length=LONGEST_PLACE, description="What printed it.", examples=["pytest -q"])
    project: str | None = Field(default=None, max_length=LONGEST_PLACE)
    here: str | None = Field(default=None, max_length=LONGEST_PLACE)
    limit: Number = Field(default=5, ge=1, le=50)


class SearchText(BaseModel):
    """A search whose query is too long for a URL."""

    q: str = Field(min_length=1, max_length=LONGEST_ERROR)
    project: str | None = Field(default=None, max_length=LONGEST_PLACE)
    here: str | None = Field(default=None, max_length=LONGEST_PLACE)
    limit: Number = Field(default=5, ge=1, le=MOST_RESULTS)
    profile: str = Field(default="bounded")
    explain: Flag = False
    kinds: list[MemoryKind] = Field(default_factory=list)
    since: Iso = None
    before: Iso = None


def application(
    readers: Readers, engine: Engine, doors: CommandHandler, browsers: Browsers, deliveries: RemoteIngest
) -> FastAPI:
    """The API and the viewer as an ASGI application. Whoever serves it puts `memctl.api.server.auth.Guard` before
    it."""
    app = FastAPI(
        title="memctl",
        summary="What a coding agent did, learnt and recalled, and the events it rests on.",
        version="1",
        openapi_url="/v1/openapi.json",
        docs_url=None,  # its pages load scripts from elsewhere
        redoc_url=None,
        dependencies=[Depends(http_spaces.own_space(doors.settings.space))],
    )
    http_problems.install(app)
    app.add_exception_handler(404, not_there)
    timings = metrics.Timings()
    app.include_router(_probes(readers, doors.settings))
    app.include_router(metrics.routes(readers, timings, doors.settings))
    reading = [Depends(http_live.caught_up(readers)), Depends(http_as_of.as_of(doors.settings))]
    app.include_router(_routes(readers, engine, doors.settings.llm), prefix=metrics.PREFIX, dependencies=reading)
    app.include_router(http_as_of.jobs(doors.settings), prefix=metrics.PREFIX)
    app.include_router(http_live.tails(readers), prefix=metrics.PREFIX)
    app.add_middleware(http_live.AddedHeaders)
    app.add_middleware(http_as_of.Now)
    app.add_middleware(metrics.Timed, timings=timings)
    app.include_router(http_commands.routes(doors), prefix=metrics.PREFIX)
    app.include_router(http_events.routes(deliveries), prefix=metrics.PREFIX)
    app.include_router(http_forget.routes(doors.settings), prefix=metrics.PREFIX)
    app.include_router(http_import.routes(doors.settings), prefix=metrics.PREFIX)
    app.include_router(http_hooks.routes(readers, engine, doors, CapturePolicy(doors.settings)), prefix=metrics.PREFIX)
    app.include_router(_callers(), prefix=metrics.PREFIX)
    app.include_router(_tickets(browsers), prefix=metrics.PREFIX)
    app.router.routes.extend(site(readers, engine, browsers, doors, timings))
    app.openapi = lambda: http_openapi.document(app, doors.settings.space)  # type: ignore[method-assign]
    return app


def _probes(readers: Readers, settings: Settings) -> APIRouter:
    router = APIRouter(tags=["probes"])

    @router.get("/healthz")
    async def healthz() -> Response:
        """Whether this process answers."""
        return json_of({"status": "ok"})

    @router.get("/readyz")
    def readyz() -> Response:
        """Whether it can answer questions: the database is there, and has read models. Beside that, whether all is well
        as `memctl status` says it, or what kind of thing is not, since when, and at which position."""
        asked = servers(settings)
        found = troubles(readers.read(lambda reader: health(reader, asked), NOBODY))
        listed = [{"kind": each.kind, "since": each.since, "position": each.position} for each in found]
        return json_of({"status": "ready", "well": not found, "troubles": listed})

    return router


def _callers() -> APIRouter:
    router = APIRouter(tags=["probes"])

    @router.get("/caller")
    def caller(request: Request) -> Response:
        """Who asks, with the scopes and projects of the key that was sent."""
        return json_of(caller_of(request))

    return router


def _tickets(browsers: Browsers) -> APIRouter:
    router = APIRouter(tags=["viewer"])

    @router.post("/tickets")
    def ticket() -> Response:
        """A path that signs one browser in to the viewer, once, within a minute."""
        return json_of({"path": f"/sign-in/{browsers.ticket()}"})

    return router


def _routes(readers: Readers, engine: Engine, llm: Llm) -> APIRouter:
    router = APIRouter()

    answers = Answers(readers)
    found, fresh = answers.found, answers.fresh

    # --- search ---

    def searched(request: Request, asked: SearchText) -> Response:
        def ask(reader: Reader) -> Any:
            question = Question(
                query=asked.q,
                places=places_of(reader, asked.project, asked.here),
                now=now(),
                limit=asked.limit,
                profile=asked.profile,
                explain=asked.explain,
                kinds=tuple(asked.kinds),
                since=micros(asked.since),
                before=micros(asked.before),
            )
            return engine.search(reader, question)

        return fresh(request, ask)

    @router.get("/search", tags=["search"], responses=http_openapi.search())
    def search(
        request: Request,
        q: Annotated[
            str, Query(min_length=1, max_length=LONGEST_QUERY, examples=["which port does the dev server use"])
        ],
        project: Project = None,
        here: Here = None,
        limit: Annotated[int, Query(ge=1, le=MOST_RESULTS), IN_DIGITS] = 5,
        profile: Annotated[Literal[*PROFILES], Query(description="How results are scored.")] = "bounded",  # type: ignore[valid-type]
        explain: bool = False,
        kind: Annotated[list[MemoryKind] | None, Query(description="Only memories of these kinds.")] = None,
        since: Moment = None,
        before: Moment = None,
    ) -> Response:
        """What memory holds about `q`, best first. `class` says how far to trust that it answers the query."""
        return searched(
            request, SearchText(
                q=q, project=project, here=here, limit=limit, profile=profile, explain=explain, kinds=kind or [],
                since=since, before=before,
            )
        )  # fmt: skip

    @router.post("/search", tags=["search"], responses=http_openapi.search())
    def search_text(request: Request, body: SearchText) -> Response:
        """The same for texts that are too long for a URL."""
        return searched(request, body)

    # --- what is remembered ---

    @router.get("/memories", tags=["memory"], responses=http_openapi.page("Memory"))
    def memories(
        request: Request,
        project: Project = None,
        here: Here = None,
        bucket: Bucket | None = None,
        kind: MemoryKind | None = None,
        since: Moment = None,
        before: Moment = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Response:
        """Memories, newest first, with their evidence."""
        return found(
            request,
            lambda reader: queries.memories(
                reader,
                places_of(reader, project, here),
                bucket=bucket,
                kind=kind,
                since=micros(since),
                before=micros(before),
                limit=limit,
                cursor=cursor,
            ),
        )

    @router.get("/memories/{id}", tags=["memory"], responses=http_openapi.one("Memory"))
    def memory(request: Request, id: Id) -> Response:
        """One memory."""
        return found(request, lambda reader: queries.memory(reader, id))

    @router.get("/history", tags=["memory"], responses=http_openapi.page("Memory"))
    def history(
        request: Request, project: Project = None, here: Here = None, limit: Limit = 20, cursor: Cursor = None
    ) -> Response:
        """The latest turns: what was asked, and what came of it."""
        return found(
            request,
            lambda reader: queries.history(reader, places_of(reader, project, here), limit=limit, cursor=cursor),
        )

    @router.get("/things/{id:path}", tags=["memory"], responses=http_openapi.one("Thing"))
    def thing(request: Request, id: Id) -> Response:
        """A memory, session, episode, bug pattern, claim, task or event, whichever it is."""
        return found(request, lambda reader: queries.thing(reader, id))

    # --- sessions ---

    @router.get("/sessions", tags=["sessions"], responses=http_openapi.page("Session"))
    def sessions(
        request: Request,
        project: Project = None,
        here: Here = None,
        since: Moment = None,
        before: Moment = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Response:
        """Sessions by their last sign of life, newest first."""
        return found(
            request,
            lambda reader: queries.sessions(
                reader,
                places_of(reader, project, here),
                since=micros(since),
                before=micros(before),
                limit=limit,
                cursor=cursor,
            ),
        )

    @router.get("/sessions/{id:path}", tags=["sessions"], responses=http_openapi.one("Session"))
    def session(request: Request, id: Id) -> Response:
        """One session and its working memory; by stream, id, or the beginning of its id."""
        return found(request, lambda reader: queries.session(reader, id))

    router.include_router(
        http_work.routes(answers, lambda reader, text, where: engine.episodes_like(reader, text, where, now()))
    )

    # --- claims ---

    @router.get("/insights", tags=["claims"], responses=http_openapi.page("Insight"))
    def insights(
        request: Request,
        project: Project = None,
        here: Here = None,
        kind: Literal["preference", "pattern", "expertise", "fact", "profile"] | None = None,
        waiting: Annotated[bool | None, Query(description="Only those below level 3, or only the others.")] = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Response:
        """Claims read out of words and work, with their level (1 to 4) and what each is still missing."""
        return found(
            request,
            lambda reader: claims.insights(
                reader, places_of(reader, project, here), kind=kind, waiting=waiting, limit=limit, cursor=cursor
            ),
        )

    @router.get("/knowledge", tags=["claims"], responses=http_openapi.page("VerifiedKnowledge"))
    def knowledge(
        request: Request,
        project: Project = None,
        here: Here = None,
        kind: Literal["preference", "pattern", "expertise", "fact", "profile"] | None = None,
        status: Literal["verified", "conflicted"] | None = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Response:
        """What is held true, by subject, with both sides of a conflict."""
        return found(
            request,
            lambda reader: claims.knowledge(
                reader, places_of(reader, project, here), kind=kind, status=status, limit=limit, cursor=cursor
            ),
        )

    @router.get("/preferences", tags=["claims"])
    def preferences(request: Request, project: Project = None, here: Here = None, limit: Limit = 50) -> Response:
        """How the user likes to work, as said and as shown: by group and aspect, weightiest first."""
        return found(request, lambda reader: claims.preferences(reader, places_of(reader, project, here), limit=limit))

    @router.get("/explain/{id:path}", tags=["claims"], responses=http_openapi.one("Explanation"))
    def explained(request: Request, id: Id) -> Response:
        """Why memory holds a thing, level by level, down to the characters of the events it rests on."""
        return found(request, lambda reader: explain(reader, id))

    @router.get("/core", tags=["claims"])
    def core(request: Request, project: Project = None, here: Here = None) -> Response:
        """The sections of core memory; with a project, without what agents wrote in others."""
        return found(request, lambda reader: Listing(claims.core_memory(reader, places_of(reader, project, here))))

    @router.get("/waiting", tags=["claims"])
    def waits(request: Request, project: Project = None, here: Here = None, limit: Limit = 50) -> Response:
        """What waits for a person: claims that act or that agents wrote, what they wrote into core memory, and what
        they ask to have forgotten."""
        return found(request, lambda reader: waiting(reader, places_of(reader, project, here), limit=limit))

    @router.get("/core/{section}/history", tags=["claims"])
    def core_history(request: Request, section: Annotated[str, Path(max_length=40)]) -> Response:
        """What a section of core memory was, version by version, newest first."""
        return found(request, lambda reader: Listing(claims.core_history(reader, section)))

    @router.get("/resolutions", tags=["claims"])
    def resolutions(request: Request, limit: Limit = 50, cursor: Cursor = None) -> Response:
        """What became of what was left open, latest first."""
        return found(request, lambda reader: claims.resolutions(reader, limit=limit, cursor=cursor))

    # --- bugs ---

    def looked_up(request: Request, asked: ErrorText) -> Response:
        def ask(reader: Reader) -> Any:
            where = places_of(reader, asked.project, asked.here)
            chances = engine.bugs_like(reader, asked.text, where)
            return bug_queries.bugs(
                reader, asked.text, where, command=asked.command, chances=chances, limit=asked.limit
            )

        return fresh(request, ask)

    @router.get("/bugs", tags=["bugs"], responses=http_openapi.bugs())
    def bugs(
        request: Request,
        q: Annotated[
            str | None, Query(min_length=1, max_length=LONGEST_QUERY, examples=["KeyError: 'user_id'"])
        ] = None,
        project: Project = None,
        here: Here = None,
        command: Annotated[str, Query(max_length=LONGEST_PLACE)] = "",
        limit: Annotated[int, Query(ge=1, le=50), IN_DIGITS] = 5,
    ) -> Response:
        """Known errors like `q`, with what resolved them; without `q`, those that were resolved most often."""
        if q is None:
            return fresh(
                request, lambda reader: bug_queries.known(reader, places_of(reader, project, here), limit=limit)
            )
        return looked_up(request, ErrorText(text=q, command=command, project=project, here=here, limit=limit))

    @router.post("/bugs", tags=["bugs"], responses=http_openapi.bugs())
    def bugs_of_text(request: Request, body: ErrorText) -> Response:
        """The same for a long output."""
        return looked_up(request, body)

    router.include_router(http_code.routes(answers))
    router.include_router(http_guiding.routes(engine, answers))
    router.include_router(http_hindsight.routes(answers))
    router.include_router(http_project.routes(answers))

    # --- the log ---

    @router.get("/events/types", tags=["log"])
    def event_types() -> Response:
        """Every type of event that may stand in the log."""
        return json_of(stats.catalogue())

    @router.get("/events/{id}", tags=["log"], responses=http_openapi.one("Event"))
    def event(request: Request, id: Id) -> Response:
        """One event, with its payload."""
        return fresh(request, lambda reader: queries.event(reader, id))

    @router.get("/stats", tags=["log"])
    def statistics(request: Request, project: Project = None, here: Here = None) -> Response:
        """Counts, what memory was good for and what it has learnt, progress of the folds, the budget, and sizes."""
        return fresh(
            request,
            lambda reader: _with_budget(
                stats.stats(reader, places_of(reader, project, here)), costs.allowance(reader, llm)
            ),
        )

    @router.get("/consolidation", tags=["memory"])
    def consolidation(request: Request, limit: Limit = 50, cursor: Cursor = None) -> Response:
        """What was merged, pruned, superseded or found at odds, newest first, and what of it was taken back."""
        return fresh(request, lambda reader: standing.consolidation(reader, limit=limit, cursor=cursor))

    @router.get("/costs", tags=["log"])
    def cost(request: Request, limit: Limit = 50) -> Response:
        """What a language model cost this month, by what it worked on, and how much of the budget is used."""
        return fresh(request, lambda reader: costs.costs(reader, llm, limit))

    @router.get("/processors", tags=["log"])
    def working(request: Request) -> Response:
        """How the processors stand: pieces of work by status, and when each last did something."""
        return fresh(request, lambda reader: {"processors": costs.standings(reader)})

    @router.get("/dead-letters", tags=["log"])
    def parked(request: Request) -> Response:
        """What no fold could take and waits to be retried or dropped, and shards that stand still."""
        return fresh(request, dead_letters.standing)

    @router.get("/replays", tags=["log"])
    def replays(request: Request, limit: Annotated[int, Query(ge=1, le=100), IN_DIGITS] = 10) -> Response:
        """How far rebuilds of the read models are, with rate and time left, or how they ended; newest first."""
        return fresh(request, lambda reader: {"replays": rebuilds.progress(reader.connection, limit)})

    @router.get("/health", tags=["log"])
    def health(request: Request) -> Response:
        """What works and what is missing: the database, the vector store, the embedder."""
        vectors = readers.read(engine.condition, caller_of(request))
        return json_of({"status": "ok" if not vectors else "degraded", "degraded": vectors})

    return router


def _with_budget(counted: Stats, budget: dict[str, Allowance]) -> Stats:
    return msgspec.structs.replace(counted, budget=budget)
