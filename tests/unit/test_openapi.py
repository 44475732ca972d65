"""The examples of the API's description are answers by its own schemas."""

from __future__ import annotations

import jsonschema
import pytest
from reference import described_api

DOCUMENT = described_api()
ANSWERS = {
    path: operations["get"]["responses"]["200"]["content"]["application/json"]
    for path, operations in DOCUMENT["paths"].items()
    if "application/json" in operations.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
}


@pytest.mark.parametrize("path", [path for path, answer in ANSWERS.items() if answer["schema"]])
def test_an_answer_that_has_a_schema_has_an_example_of_it(path: str) -> None:
    answer = ANSWERS[path]
    jsonschema.validate(answer["example"], {**answer["schema"], "components": DOCUMENT["components"]})


def test_most_of_what_is_read_has_a_schema() -> None:
    assert {"/v1/search", "/v1/bugs", "/v1/memories", "/v1/sessions/{id}", "/v1/explain/{id}"} <= {
        path for path, answer in ANSWERS.items() if answer["schema"]
    }
