"""Routes of what was learnt of code and its surroundings: rules, patterns, entities and their graph."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response

from memctl.api.http.answers import Answers
from memctl.api.http.parameters import IN_DIGITS, Cursor, Here, Limit, Project
from memctl.api.queries import code, graph
from memctl.api.queries import strategies as learnt
from memctl.api.reading.places import places_of
from memctl.domain.code.edits import Category
from memctl.domain.code.entities import EntityKind

Language = Annotated[str | None, Query(max_length=40, examples=["go"])]
Name = Annotated[str, Path(min_length=1, max_length=512, examples=["react", "library:go/github.com/spf13/cobra"])]


def routes(answers: Answers) -> APIRouter:
    """The routes."""
    router = APIRouter(tags=["code"])

    @router.get("/rules")
    def rules(
        request: Request,
        project: Project = None,
        here: Here = None,
        language: Language = None,
        state: Literal["seen", "weak", "active", "trusted", "retired"] | None = None,
        limit: Limit = 50,
    ) -> Response:
        """Rules of replacement in code, the surest first."""
        return answers.found(
            request,
            lambda reader: code.rules(
                reader, places_of(reader, project, here), language=language, state=state, limit=limit
            ),
        )

    @router.get("/strategies")
    def strategies(
        request: Request,
        project: Project = None,
        here: Here = None,
        domain: Annotated[str | None, Query(max_length=40, examples=["commands"])] = None,
        waiting: bool = False,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Response:
        """What earlier work teaches for work to come; `waiting`: what too few sessions have taught so far."""
        return answers.found(
            request,
            lambda reader: learnt.strategies(
                reader, places_of(reader, project, here), domain=domain, waiting=waiting, limit=limit, cursor=cursor
            ),
        )

    @router.get("/patterns")
    def patterns(
        request: Request,
        project: Project = None,
        here: Here = None,
        category: Category | None = None,
        language: Language = None,
        limit: Limit = 50,
    ) -> Response:
        """Transformations of code that recur, by category."""
        return answers.found(
            request,
            lambda reader: code.patterns(
                reader, places_of(reader, project, here), category=category, language=language, limit=limit
            ),
        )

    @router.get("/entities")
    def entities(
        request: Request,
        project: Project = None,
        here: Here = None,
        kind: EntityKind | None = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Response:
        """Libraries with versions, services and people, those met in most sessions first."""
        return answers.found(
            request,
            lambda reader: graph.entities(
                reader, places_of(reader, project, here), kind=kind, limit=limit, cursor=cursor
            ),
        )

    @router.get("/entities/{name:path}")
    def entity(request: Request, name: Name, project: Project = None, here: Here = None) -> Response:
        """One entity with its edges, and the path of what users feel about it."""
        return answers.found(request, lambda reader: graph.entity(reader, places_of(reader, project, here), name))

    @router.get("/graph/{name:path}")
    def neighbours(
        request: Request,
        name: Name,
        project: Project = None,
        here: Here = None,
        hops: Annotated[int, Query(ge=1, le=graph.MOST_HOPS), IN_DIGITS] = 1,
    ) -> Response:
        """What lies within one or two hops of an entity or file."""
        return answers.found(
            request, lambda reader: graph.graph(reader, places_of(reader, project, here), name, hops=hops)
        )

    return router
