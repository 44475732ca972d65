"""Routes of work: what a session is at, tasks, and episodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response

from memctl.api.http import openapi as http_openapi
from memctl.api.http.answers import Answers
from memctl.api.http.parameters import Cursor, Here, Limit, Moment, Project, micros
from memctl.api.queries import work
from memctl.api.queries.context import context
from memctl.api.reading.places import Places, places_of
from memctl.api.reading.reader import Reader
from memctl.domain.events.facts import TaskType

Part = Annotated[str | None, Query(max_length=1024)]

Like = Callable[[Reader, str, Places], list[str]]


def routes(answers: Answers, like: Like) -> APIRouter:
    """The routes; `like` names the episodes most like a text, best first."""
    router = APIRouter(tags=["work"])

    @router.get("/context", responses=http_openapi.one("WorkingMemory"))
    def of_session(
        request: Request,
        project: Project = None,
        here: Here = None,
        session: Annotated[
            str | None, Query(max_length=512, description="A session's id, or that of a task or episode in it.")
        ] = None,
    ) -> Response:
        """What a session is at: its working memory. Without a session, the latest one of the project."""
        return answers.found(request, lambda reader: context(reader, places_of(reader, project, here), session))

    @router.get("/tasks", responses=http_openapi.page("Task"))
    def tasks(
        request: Request,
        project: Project = None,
        here: Here = None,
        status: Literal["open", "done"] | None = None,
        type: TaskType | None = None,
        since: Moment = None,
        before: Moment = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Response:
        """Pieces of work across sessions, by their last sign of life."""
        return answers.found(
            request,
            lambda reader: work.tasks(
                reader,
                places_of(reader, project, here),
                status=status,
                task_type=type,
                since=micros(since),
                before=micros(before),
                limit=limit,
                cursor=cursor,
            ),
        )

    @router.get("/episodes", responses=http_openapi.page("EpisodeRow"))
    def episodes(
        request: Request,
        project: Project = None,
        here: Here = None,
        type: TaskType | None = None,
        outcome: Literal["success", "failure", "partial", "unknown"] | None = None,
        file: Part = None,
        symbol: Part = None,
        error: Annotated[
            str | None, Query(max_length=8_000, description="A part of an error's type, or an error as it was printed.")
        ] = None,
        since: Moment = None,
        before: Moment = None,
        similar: Annotated[str | None, Query(max_length=8_000, description="Most like this, best first.")] = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Response:
        """Episodes, newest first: one task's work in one session. `file`, `symbol`: a part of a path or name."""
        wanted = work.Wanted(
            task_type=type,
            outcome=outcome,
            file=file,
            symbol=symbol,
            error=error,
            since=micros(since),
            before=micros(before),
        )

        def ask(reader: Reader) -> Any:
            where = places_of(reader, project, here)
            if similar:
                return work.episodes_among(reader, where, like(reader, similar, where), wanted, limit=limit)
            return work.episodes(reader, where, wanted, limit=limit, cursor=cursor)

        return answers.found(request, ask)

    return router
