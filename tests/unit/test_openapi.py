"""The examples of the API's description are answers by its own schemas."""

from __future__ import annotations

import jsonschema
import pytest
from reference import described_api

from memctl.api.reading.questions import Endpoint, questions

DOCUMENT = described_api()
ANSWERS = {
    path: operations["get"]["responses"]["200"]["content"]["application/json"]
    for path, operations in DOCUMENT["paths"].items()
    if "application/json" in operations.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
}


@pytest.mark.parametrize("path", [path for path, answer in ANSWERS.items() if "example" in answer])
def test_an_example_is_an_answer_by_its_schema(path: str) -> None:
    answer = ANSWERS[path]
    jsonschema.validate(answer["example"], {**answer["schema"], "components": DOCUMENT["components"]})


def test_what_is_asked_most_has_an_example() -> None:
    assert {"/v1/search", "/v1/bugs", "/v1/memories", "/v1/sessions/{id}", "/v1/explain/{id}"} <= {
        path for path, answer in ANSWERS.items() if "example" in answer
    }


@pytest.mark.parametrize("question", questions(), ids=lambda question: question.path)
def test_a_declared_question_is_a_route_with_a_schema_and_a_description(question: Endpoint) -> None:
    path = f"/v1{question.path.replace(':path', '')}"
    described = DOCUMENT["paths"][path]["get"]
    assert ANSWERS[path]["schema"]
    assert described["description"]
    assert described["x-scopes"] == sorted(question.scopes)
