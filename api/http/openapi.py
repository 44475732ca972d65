"""The OpenAPI document: schemas come from the types that are answered with, examples from what they look like."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from memctl.api.http import spaces as http_spaces
from memctl.api.http.access import is_open, rule_of
from memctl.api.reading.explanation import Explanation
from memctl.api.reading.views import BugAnswer, Evidence, Found, SearchAnswer, is_moment

if TYPE_CHECKING:
    from fastapi import FastAPI

Responses = dict[int | str, dict[str, Any]]

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

_EVIDENCE = {
    "event_id": "5d3c1f0e-6b1c-5f7e-9a51-0d6f4c2b8a11",
    "source": {"agent": "claude-code", "session": "0f6c…", "line": "a41b…"},
    "field": "text",
    "start": 0,
    "end": 34,
    "quote": "we always run the tests with -race",
    "holds": True,
}
_FOUND = {
    "id": "9b0f6a57-3a0e-5a0c-8c8d-3f8a2f1f7a55",
    "title": "we always run the tests with -race",
    "text": "we always run the tests with -race",
    "score": 0.94,
    "class": "high",
    "bucket": "PREFERENCE",
    "kind": "knowledge",
    "project": "checkout",
    "occurred_at": "2026-03-02T09:14:07Z",
    "evidence": [_EVIDENCE],
    "why": "words and meaning; said by the user",
    "source": {"projection": "verified_knowledge", "key": "0c6e…"},
    "status": "verified",
    "outcome": "",
    "confidence": 0.9,
}
_SEARCHED = {
    "query": "how do we run the tests",
    "scope": {"project": "checkout", "chosen": "here", "locations": 2},
    "intent": "KNOWLEDGE",
    "profile": "bounded",
    "degraded": [],
    "results": [_FOUND],
    "took_ms": 9.1,
}


def search() -> Responses:
    return _answers({"$ref": "#/components/schemas/SearchAnswer"}, _SEARCHED)


def bugs() -> Responses:
    return _answers({"$ref": "#/components/schemas/BugAnswer"}, _examples()["BugAnswer"])


def page(of: str) -> Responses:
    """Answers of a list of things of that schema."""
    item = {"$ref": f"#/components/schemas/{of}"}
    schema = {
        "type": "object",
        "required": ["items", "next"],
        "properties": {
            "items": {"type": "array", "items": item},
            "next": {"type": ["string", "null"], "description": "Cursor of the next page."},
            "scope": {"$ref": "#/components/schemas/Scope"},
        },
    }
    example = {"items": [_examples()[of]], "next": "MjAyNi0wMy0wMg", "scope": _SEARCHED["scope"]}
    return {**_answers(schema, example), 304: {"description": "The caller has it already (`If-None-Match`)."}}


def one(of: str) -> Responses:
    answers = _answers({"$ref": f"#/components/schemas/{of}"}, _examples()[of])
    return {**answers, 404: described("Nothing has that id.")}


@cache
def _examples() -> dict[str, Any]:
    """An answer for each schema, as the packaged example gives it; long texts are cut, and lists have one item."""
    found: dict[str, Any] = orjson.loads(Path(__file__).with_name("openapi_examples.json").read_bytes())
    return found


def document(app: FastAPI, space: str) -> dict[str, Any]:
    """The whole document of the API of a space, made once."""
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
                operation.setdefault("parameters", []).append(http_spaces.parameter(space))
                later = {"202": _PROMISED, "429": _PROMISED_TOO_MUCH} if promised else {}
                operation["responses"] = {
                    **_EVERYWHERE, **later, **operation["responses"], "422": _EVERYWHERE["422"],
                }  # fmt: skip
        made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        made["security"] = [{"token": []}]
        app.openapi_schema = made
    return app.openapi_schema


def _answers(schema: dict[str, Any], example: Any = None) -> Responses:
    content: dict[str, Any] = {"schema": schema}
    if example is not None:
        content["example"] = example
    return {
        200: {"description": "Found.", "content": {"application/json": content}},
        503: described("The database does not answer; try again."),
    }


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
    "421": described("Another space is meant than this API answers for."),
    "422": described("Badly asked."),
    "503": described("The database does not answer, or there is too much to do; try again."),
}
"""What any request may be answered with."""


def _schemas() -> dict[str, Any]:
    from memctl.projections.kernel import projections

    rows = {p.row.__name__: p.row for p in projections()}
    types = [SearchAnswer, Found, BugAnswer, Evidence, Explanation, *rows.values()]
    _, schemas = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    lists = _kept_as_lists(msgspec.Struct)
    for name, schema in schemas.items():
        _as_shown(schema, lists.get(name, ()))
    for name in (*rows, "VerifiedClaim"):
        # Beside the row's own fields, the doors show its key, its project, and quotes in place of spans.
        schemas.get(name, {}).get("properties", {}).update(
            {
                "id": {"type": "string"},
                "evidence": {"type": "array", "items": {"$ref": "#/components/schemas/Evidence"}},
            }
        )
    schemas["Problem"] = _PROBLEM
    schemas["Thing"] = {
        "type": "object",
        "required": ["kind", "item"],
        "properties": {"kind": {"type": "string"}, "item": {"type": "object"}},
    }
    schemas["Event"] = {"type": "object", "properties": {"id": {"type": "string"}, "payload": {"type": "object"}}}
    return schemas


def _kept_as_lists(base: type[msgspec.Struct]) -> dict[str, tuple[str, ...]]:
    """Structs that are kept as lists, by the names that schemas have for them, with their fields."""
    found: dict[str, tuple[str, ...]] = {}
    for cls in base.__subclasses__():
        if cls.__struct_config__.array_like:
            found |= dict.fromkeys((cls.__name__, f"{cls.__module__}.{cls.__qualname__}"), cls.__struct_fields__)
        found |= _kept_as_lists(cls)
    return found


def _as_shown(schema: dict[str, Any], fields: tuple[str, ...]) -> None:
    """Rows keep moments as numbers, answers show them as ISO 8601. Answers show what is kept as a list by its names."""
    if schema.get("type") == "array":
        items = schema.pop("prefixItems")
        for name in ("minItems", "items"):
            schema.pop(name, None)
        schema.update(type="object", properties=dict(zip(fields, items, strict=False)), required=list(fields))
    for name, field in schema.get("properties", {}).items():
        if is_moment(name) and (field.get("type") == "integer" or "anyOf" in field):
            field.clear()
            field.update({"type": ["string", "null"], "format": "date-time"})
