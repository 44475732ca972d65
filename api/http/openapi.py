"""The OpenAPI document: schemas come from the types that are answered with, examples from what they look like."""

import typing
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import orjson
from fastapi import FastAPI

from memctl.api.http import spaces as http_spaces
from memctl.api.http.access import is_open, rule_of
from memctl.api.reading.questions import Endpoint, questions
from memctl.api.reading.views import Page

Responses = dict[int | str, dict[str, Any]]

_REF = "#/components/schemas/{name}"

_PROBLEM = {
    "type": "object",
    "title": "Problem (RFC 9457)",
    "required": ["type", "title", "status"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "hint": {"type": "string", "description": "What to do about it."},
        "errors": {"type": "array", "items": {"type": "object"}},
    },
}
_BAD = {"type": "about:blank", "title": "Not Found", "status": 404, "detail": "Memory holds nothing under '7f3'."}


def answer_of(question: Endpoint) -> Responses:
    """The answers of a declared question: its type, and an example where there is one."""
    answers = answer_as(question.answer)
    if not question.live:
        answers[304] = {"description": "The caller has it already (`If-None-Match`)."}
    if "{" in question.path:
        answers[404] = described("Nothing has that id.")
    return answers


def answer_as(of: Any) -> Responses:
    """Answers of that type."""
    (schema,), _ = msgspec.json.schema_components([of], ref_template=_REF)
    found = {"description": "Found.", "content": {"application/json": {"schema": schema}}}
    return {200: found, 503: described("The database does not answer; try again.")}


def name_of(of: Any) -> str:
    """The name under which an example of a type stands; that of a page stands under the type of its items."""
    if typing.get_origin(of) is Page:
        return str(typing.get_args(of)[0].__name__)
    return "_".join(each.__name__ for each in (of, *typing.get_args(of)))


def _example_of(of: Any) -> Any:
    example = _examples().get(name_of(of))
    if example is None or typing.get_origin(of) is not Page:
        return example
    scope = {"project": "checkout", "chosen": "here", "locations": 2}
    return {"items": [example], "next": "MjAyNi0wMy0wMg", "scope": scope}


@cache
def _examples() -> dict[str, Any]:
    """An answer of a type by its name, as the packaged example gives it. Long texts are cut; a list has one item."""
    found: dict[str, Any] = orjson.loads(Path(__file__).with_name("openapi_examples.json").read_bytes())
    return found


def document(app: FastAPI) -> dict[str, Any]:
    """The whole document of the API, made once."""
    if app.openapi_schema is None:
        from fastapi.openapi.utils import get_openapi

        made = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        schemas = made.setdefault("components", {}).setdefault("schemas", {})
        for own in ("HTTPValidationError", "ValidationError"):
            schemas.pop(own, None)
        schemas.update(_schemas())
        for path, operations in made["paths"].items():
            for method, operation in operations.items():
                if is_open(method.upper(), path):
                    operation["security"] = []
                else:
                    rule = rule_of(method.upper(), path)
                    operation["x-scopes"] = sorted(rule.scopes) if rule else ["owner"]
                promised = any(each["name"] == "as_of" for each in operation.get("parameters", ()))
                operation.setdefault("parameters", []).append(http_spaces.parameter())
                later = {"202": _PROMISED, "429": _PROMISED_TOO_MUCH} if promised else {}
                operation["responses"] = {
                    **_EVERYWHERE, **later, **operation["responses"], "422": _EVERYWHERE["422"],
                }  # fmt: skip
        for each in questions():  # FastAPI would leave out of them what is null
            answers = made["paths"][f"/v1{each.path.replace(':path', '')}"]["get"]["responses"]["200"]["content"]
            if (example := _example_of(each.answer)) is not None:
                answers["application/json"]["example"] = example
        made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        made["security"] = [{"token": []}]
        app.openapi_schema = made
    return app.openapi_schema


def described(description: str) -> dict[str, Any]:
    """A status that is answered with a problem document."""
    content = {"schema": {"$ref": "#/components/schemas/Problem"}, "example": _BAD}
    return {"description": description, "content": {"application/problem+json": content}}


_PROMISED = {
    "description": "Memory as of that moment is being built: ask again, or see the job.",
    "headers": {"Location": {"schema": {"type": "string"}, "description": "The job's path."}},
    "content": {
        "application/json": {
            "schema": {"type": "object", "properties": {"id": {"type": "integer"}, "status": {"type": "string"}}},
            "example": {"id": 7, "status": "building", "position": 18502, "message": ""},
        }
    },
}
_PROMISED_TOO_MUCH = described("Too many moments of the past wait to be built already.")
_EVERYWHERE = {
    "400": described("The body cannot be read as what its type says it is."),
    "401": described("The token is missing or wrong."),
    "403": described("The key has no scope for this, or is limited to other projects."),
    "404": described("Nothing has that id, or no such project is known."),
    "413": described("The body is too long."),
    "414": described("The path and its query are too long; post longer texts."),
    "421": described("A space is meant that is not the key's, or not there."),
    "422": described("Badly asked."),
    "503": described("The database does not answer, or there is too much to do; try again."),
    "507": described("The disk has no room for what was sent."),
}
"""What any request may be answered with."""


def _schemas() -> dict[str, Any]:
    """Every type that a question answers with, and what it is made of."""
    _, schemas = msgspec.json.schema_components([each.answer for each in questions()], ref_template=_REF)
    return {**schemas, "Problem": _PROBLEM}
