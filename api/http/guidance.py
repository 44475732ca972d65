"""Routes of what an agent asks while it works: guidance for a task, and four kinds of questions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from memctl.api.assist import guidance as guiding
from memctl.api.http.answers import Answers, now
from memctl.api.http.parameters import LONGEST_PLACE, Here, Number, Project
from memctl.api.reading.advice import Kind
from memctl.api.reading.places import places_of
from memctl.api.search.engine import Engine

LONGEST = 50_000
"""Characters of a text that is asked about: whole prompts with a pasted log; what is longer says no more."""


class Asked(BaseModel):
    """A question of one kind. `session` is the session that asks, whose own errors count first."""

    model_config = ConfigDict(extra="forbid")

    kind: Kind
    text: str = Field(min_length=1, max_length=LONGEST)
    session: str = Field(default="", max_length=300)
    project: str | None = Field(default=None, max_length=LONGEST_PLACE)
    here: str | None = Field(default=None, max_length=LONGEST_PLACE)
    limit: Number = Field(default=3, ge=1, le=20)


def routes(engine: Engine, answers: Answers) -> APIRouter:
    """The routes. Both questions depend on the clock."""
    router = APIRouter(tags=["search"])

    @router.post("/ask")
    def ask(request: Request, body: Asked) -> Response:
        """An earlier error like this one (`similar_error`), how something is done (`how_to`), what is agreed on
        (`convention`), or how a like task went (`past_approach`); with the tier of memory that answered."""
        return answers.fresh(
            request,
            lambda reader: guiding.answer(
                reader,
                engine,
                body.kind,
                body.text,
                places_of(reader, body.project, body.here),
                now(),
                session=body.session,
                limit=body.limit,
            ),
        )

    @router.get("/guidance")
    def guidance(
        request: Request,
        task: Annotated[str, Query(min_length=1, max_length=4000, examples=["fix the flaky login test"])],
        project: Project = None,
        here: Here = None,
    ) -> Response:
        """Advice for a task: approach, what to try and to avoid, challenges, complexity, and how sure that is."""
        return answers.fresh(
            request, lambda reader: guiding.guidance(reader, engine, task, places_of(reader, project, here), now())
        )

    return router
