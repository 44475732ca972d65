"""The routes of all declared questions (`memctl.api.reading.questions`)."""

import typing
from collections.abc import Callable, Mapping
from datetime import datetime
from inspect import Parameter, Signature
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response

from memctl.api.http import openapi
from memctl.api.http.answers import Answers, now
from memctl.api.http.parameters import IN_DIGITS, WITHOUT_NUL, Anywhere, Here, Moment, Project
from memctl.api.reading.places import Places, places_of, project_asked
from memctl.api.reading.questions import Endpoint, questions
from memctl.api.reading.reader import Reader
from memctl.domain.events.event import Micros
from memctl.domain.projects import identity

Given = Mapping[type, Callable[[Reader, str | None, str | None, bool], Any]]
"""What a parameter of a type is given, for the project that is named, the directory of the caller, and whether all are
meant where that is not known."""

_PLACES: Given = {
    Reader: lambda reader, *_: reader,
    Places: lambda reader, project, here, anywhere: places_of(reader, project, here, anywhere=anywhere),
    identity.Project: lambda reader, project, here, anywhere: project_asked(reader, project, here),
    datetime: lambda *_: now(),
}
_OF_A_PLACE = (Places, identity.Project)
_REQUEST = Parameter("request", Parameter.POSITIONAL_OR_KEYWORD, annotation=Request)
_PROJECT = Parameter("project", Parameter.KEYWORD_ONLY, default=None, annotation=Project)
_HERE = Parameter("here", Parameter.KEYWORD_ONLY, default=None, annotation=Here)
_ANYWHERE = Parameter("anywhere", Parameter.KEYWORD_ONLY, default=False, annotation=Anywhere)


def routes(answers: Answers, given: Mapping[type, Any], of_the_engine: Answers) -> APIRouter:
    """The routes. `given` are the values of types that no request names: the search engine, settings. `of_the_engine`
    answers what operators ask."""
    router = APIRouter()
    known: Given = {**_PLACES, **{of: lambda *_, value=value: value for of, value in given.items()}}
    for each in questions():
        asked = of_the_engine if "operate" in each.scopes else answers
        router.add_api_route(
            each.path, _endpoint(each, asked, known), tags=[each.tag], name=each.name, description=each.description,
            responses=openapi.answer_of(each),
        )  # fmt: skip
    return router


def _endpoint(question: Endpoint, answers: Answers, known: Given) -> Callable[..., Response]:
    parameters = question.parameters
    given = {
        each.name: known[each.annotation]
        for each in parameters
        if isinstance(each.annotation, type) and each.annotation in known
    }
    placed = any(each.annotation in _OF_A_PLACE for each in parameters if each.name in given)

    def endpoint(request: Request, **asked: Any) -> Response:
        project, here, anywhere = asked.pop("project", None), asked.pop("here", None), asked.pop("anywhere", False)

        def ask(reader: Reader) -> Any:
            found = {name: value(reader, project, here, anywhere) for name, value in given.items()}
            return question.ask(found.pop(parameters[0].name), **found, **asked)

        return (answers.fresh if question.live else answers.found)(request, ask)

    asked = [_of_request(each, f"{{{each.name}" in question.path) for each in parameters if each.name not in given]
    endpoint.__signature__ = Signature([_REQUEST, *([_PROJECT, _HERE, _ANYWHERE] if placed else ()), *asked])  # type: ignore[attr-defined]
    return endpoint


def _of_request(parameter: Parameter, in_path: bool) -> Parameter:
    """The parameter as FastAPI reads it out of the path or the query."""
    annotation = parameter.annotation
    bounds = msgspec.Meta()
    if typing.get_origin(annotation) is Annotated:
        annotation, bounds = typing.get_args(annotation)
    if annotation in (Micros, Micros | None):
        return parameter.replace(annotation=Moment, kind=Parameter.KEYWORD_ONLY)
    said = {
        name: value
        for name in ("ge", "le", "min_length", "max_length", "description", "examples")
        if (value := getattr(bounds, name)) is not None
    }
    where = (Path if in_path else Query)(**said)
    more = (
        (IN_DIGITS,) if annotation is int else (WITHOUT_NUL,) if annotation in (str, str | None) and not in_path else ()
    )
    default = Parameter.empty if in_path else parameter.default
    return parameter.replace(
        annotation=Annotated[annotation, where, *more],
        default=default,
        kind=Parameter.KEYWORD_ONLY,
    )
