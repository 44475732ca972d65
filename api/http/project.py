"""Routes of projects: which there are, what is known of one, and how tools are used there."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from memctl.api.http.answers import Answers, now
from memctl.api.http.parameters import Here, Limit, Project
from memctl.api.queries import project as pages
from memctl.api.reading.places import places_of, project_asked, projects_of
from memctl.api.reading.views import Listing


def routes(answers: Answers) -> APIRouter:
    """The routes."""
    router = APIRouter(tags=["projects"])

    @router.get("/projects")
    def projects(request: Request) -> Response:
        """Every project, newest first, with its locations and what was merged into it."""
        return answers.found(request, lambda reader: Listing(pages.listed(projects_of(reader).all)))

    @router.get("/projects/waiting")
    def waiting(request: Request) -> Response:
        """Every checkout that says it is of a known project and waits for a person's word. Until then nothing of the
        one is used in the other. `merge-projects` says yes, `split-project` no."""
        return answers.found(request, lambda reader: Listing(pages.waiting(projects_of(reader))))

    @router.get("/project")
    def project(request: Request, project: Project = None, here: Here = None) -> Response:
        """What is known of one project: stack, commands, structure, conventions, hot spots, issues, what is preferred
        and avoided; each line with how often and in how many sessions it was seen, when last, and events that show
        it."""
        return answers.fresh(
            request, lambda reader: pages.shown(reader, project_asked(reader, project, here), _micros(now()))
        )

    @router.get("/tools")
    def tools(
        request: Request,
        project: Project = None,
        here: Here = None,
        type: Annotated[str | None, Query(max_length=40, examples=["bugfix"])] = None,
        limit: Limit = 15,
    ) -> Response:
        """How tools are used: how often, how well, in which order, and what follows a failure."""
        return answers.found(request, lambda reader: pages.tools(reader, places_of(reader, project, here), type, limit))

    return router


def _micros(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000)
