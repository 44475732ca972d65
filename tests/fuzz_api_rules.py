"""What schemathesis is told of this API, beyond its description: hooks that `tests/fuzz_api.py` has it load."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import schemathesis

LONGEST_TARGET = 15_000
"""Characters of a path and its query: longer ones are refused whatever they say (`tests/integration/test_http.py`)."""


@schemathesis.hook
def before_load_schema(_: Any, raw_schema: dict[str, Any]) -> None:
    """Without the space that is meant: with another nothing is asked any more (`tests/integration/test_http.py`)."""
    for operations in raw_schema["paths"].values():
        for operation in operations.values():
            operation["parameters"] = [each for each in operation["parameters"] if each["name"] != "Memctl-Space"]


@schemathesis.hook
def filter_case(_: Any, case: schemathesis.Case) -> bool:
    return len(quote(f"{case.path_parameters}{case.query}")) < LONGEST_TARGET


@schemathesis.check
def nothing_described_is_badly_asked(_: Any, response: Any, case: schemathesis.Case) -> None:
    """A request that fits the description may ask for what memory does not hold, and is told so; its form is fine.

    In place of `positive_data_acceptance`, which knows no difference between the two.
    """
    if case.meta is not None and case.meta.generation.mode.is_positive and response.status_code == 422:
        told = json.loads(response.content)
        assert told["title"] != "Badly asked", told
