"""The API over HTTP and the viewer, put together: the declared questions and what else there is under `/v1`."""

from fastapi import APIRouter, Depends, FastAPI, Request, Response

from memctl.api.checks.health import health, servers, troubles
from memctl.api.http import as_of as http_as_of
from memctl.api.http import commands as http_commands
from memctl.api.http import events as http_events
from memctl.api.http import forget as http_forget
from memctl.api.http import hooks as http_hooks
from memctl.api.http import live as http_live
from memctl.api.http import long_texts as http_long_texts
from memctl.api.http import metrics
from memctl.api.http import openapi as http_openapi
from memctl.api.http import problems as http_problems
from memctl.api.http import questions as http_questions
from memctl.api.http import spaces as http_spaces
from memctl.api.http.access import caller_of
from memctl.api.http.answers import Answers, json_of
from memctl.api.reading.caller import NOBODY
from memctl.api.reading.reader import Readers
from memctl.api.search.engine import Engine
from memctl.api.viewer.sign_in import Browsers
from memctl.api.viewer.site import not_there, site
from memctl.api.write.command_handler import CommandHandler
from memctl.api.write.remote_ingest import RemoteIngest
from memctl.infra.hooks.capture_policy import CapturePolicy
from memctl.infra.settings_model import Llm, Settings


def application(
    readers: Readers,
    engine: Engine,
    commands: CommandHandler,
    browsers: Browsers,
    deliveries: RemoteIngest,
    of_a_standby: Readers | None = None,
) -> FastAPI:
    """The API and the viewer as an ASGI application. Whoever serves it puts `memctl.api.server.auth.Guard` before it.

    `of_a_standby` read what questions ask that may be seconds old. How the engine is, the past, tails, what hooks and
    keys ask, and the viewer, which shows at once what was done in it, are read where it is written.
    """
    questioned = of_a_standby or readers
    app = FastAPI(
        title="memctl",
        summary="What a coding agent did, learnt and recalled, and the events it rests on.",
        version="1",
        openapi_url="/v1/openapi.json",
        docs_url=None,  # its pages load scripts from elsewhere
        redoc_url=None,
        dependencies=[Depends(http_spaces.space_asked(readers, commands.settings.space))],
    )
    http_problems.install(app)
    app.add_exception_handler(404, not_there)
    timings = metrics.Timings()
    app.include_router(_probes(readers, commands.settings))
    app.include_router(metrics.routes(readers, timings, commands.settings))
    reading = [
        Depends(http_live.caught_up(questioned, standby=of_a_standby is not None)),
        Depends(http_as_of.as_of(commands.settings)),
    ]
    answers = Answers(questioned, readers)
    given = {Engine: engine, Llm: commands.settings.llm}
    app.include_router(
        http_questions.routes(answers, given, Answers(readers)), prefix=metrics.PREFIX, dependencies=reading
    )
    app.include_router(http_long_texts.routes(answers, engine), prefix=metrics.PREFIX, dependencies=reading)
    app.include_router(http_as_of.jobs(commands.settings), prefix=metrics.PREFIX)
    app.include_router(http_live.tails(readers), prefix=metrics.PREFIX)
    app.add_middleware(http_live.AddedHeaders)
    app.add_middleware(http_as_of.Now)
    app.add_middleware(metrics.Timed, timings=timings, own=commands.settings.space)
    app.include_router(http_commands.routes(commands), prefix=metrics.PREFIX)
    app.include_router(http_events.routes(deliveries), prefix=metrics.PREFIX)
    app.include_router(http_forget.routes(commands.settings), prefix=metrics.PREFIX)
    app.include_router(
        http_hooks.routes(readers, engine, commands, CapturePolicy(commands.settings)), prefix=metrics.PREFIX
    )
    app.include_router(_of_callers(browsers), prefix=metrics.PREFIX)
    app.router.routes.extend(site(readers, engine, browsers, commands, timings))
    app.openapi = lambda: http_openapi.document(app)  # type: ignore[method-assign]
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


def _of_callers(browsers: Browsers) -> APIRouter:
    router = APIRouter()

    @router.get("/caller", tags=["probes"])
    def caller(request: Request) -> Response:
        """Who asks, with the scopes and projects of the key that was sent."""
        return json_of(caller_of(request))

    @router.post("/tickets", tags=["viewer"])
    def ticket(request: Request) -> Response:
        """A path that signs one browser in to the viewer, with the rights of who asks, once, within a minute."""
        return json_of({"path": f"/sign-in/{browsers.ticket(caller_of(request))}"})

    return router
