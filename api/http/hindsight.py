"""Routes of hindsight and recalls: what sessions needed while memory held it, and what was put before agents."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from memctl.api.http.answers import Answers
from memctl.api.http.parameters import Cursor, Here, Limit, Moment, Project, micros
from memctl.api.queries import hindsight as queries
from memctl.api.queries import recalls as queried
from memctl.api.reading.hindsight import Explained
from memctl.api.reading.places import places_of
from memctl.api.reading.reader import Reader
from memctl.domain.support.errors import MemctlError


class NoSuchRecord(MemctlError):
    """There is no record of hindsight {id}."""

    exit_code = 3
    hint = "`memctl hindsight` lists those that there are"
    id: str


def routes(answers: Answers) -> APIRouter:
    """The routes."""
    router = APIRouter(tags=["learning"])

    @router.get("/hindsight")
    def hindsight(
        request: Request, project: Project = None, here: Here = None, since: Moment = None, limit: Limit = 50
    ) -> Response:
        """What sessions needed while memory held it: counts by kind and week, and the newest records. A memory counts
        where its last event stands before the need in the log, whatever their clocks say."""
        return answers.found(
            request,
            lambda reader: queries.hindsight(
                reader, places_of(reader, project, here), since=micros(since), limit=limit
            ),
        )

    @router.get("/recalls")
    def recalls(
        request: Request,
        project: Project = None,
        here: Here = None,
        since: Moment = None,
        limit: Limit = 20,
        cursor: Cursor = None,
    ) -> Response:
        """What memory put before agents, by session, the one that got something last first: each block with its hook,
        its tokens, and its memories with rank and score; `withheld` where it was held back to compare."""
        return answers.found(
            request,
            lambda reader: queried.recalls(
                reader, places_of(reader, project, here), since=micros(since), limit=limit, cursor=cursor
            ),
        )

    @router.get("/hindsight/{id}")
    def explain(
        request: Request,
        id: Annotated[str, Path(min_length=4, max_length=36, examples=["6f1c2a9e"])],
        project: Project = None,
        here: Here = None,
    ) -> Response:
        """One record of hindsight by the beginning of its id: why need and memory were paired, and who else had it."""

        def ask(reader: Reader) -> Explained:
            record = queries.explained(reader, places_of(reader, project, here), id)
            if record is None:
                raise NoSuchRecord(id=id)
            return record

        return answers.found(request, ask)

    return router
