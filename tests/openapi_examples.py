"""Write `api/http/openapi_examples.json`: what a running memctl that has read the packaged example answers.

    python tests/openapi_examples.py     # the instance is that of MEMCTL_DATA_DIR or the user's own

Long texts are cut, and lists have one item. One example stands for all answers of a type.
"""

from __future__ import annotations

import json
import typing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from memctl.api.client import Client
from memctl.api.http.openapi import name_of
from memctl.api.reading.questions import Endpoint, questions
from memctl.api.reading.views import Page
from memctl.infra.settings import load_settings

FILE = Path(__file__).parent.parent / "api/http/openapi_examples.json"

LONGEST, DEEPEST = 300, 6

ASKED: dict[str, str] = {
    "/search": "q=how%20are%20totals%20rounded&limit=1", "/bugs": "limit=1", "/guidance": "task=fix%20the%20rounding",
    "/rules": "state=seen", "/strategies": "waiting=true", "/project": "project=ledger",
}  # fmt: skip
"""Parameters with which there is something to answer."""

LISTS = {
    "/memories/{id}": ("/memories", "id"),
    "/things/{id:path}": ("/memories", "id"),
    "/explain/{id:path}": ("/knowledge", "memory_id"),
    "/sessions/{id:path}": ("/sessions", "id"),
    "/hindsight/{id}": ("/hindsight", "id"),
    "/core/{section}/history": ("/core", "section"),
}
"""Where an id for a path is found: a list, and the field of its items."""


def short(answer: Any, depth: int = 0) -> Any:
    """The answer with its texts cut, and one item of each list."""
    if isinstance(answer, str):
        return answer if len(answer) <= LONGEST else answer[: LONGEST - 1] + "…"
    if isinstance(answer, list):
        return [short(each, depth + 1) for each in answer[:1]]
    if isinstance(answer, dict):
        return {name: short(each, depth + 1) for name, each in answer.items()}
    return answer


def ask(client: Client, question: Endpoint) -> Any:
    path, query = question.path, ASKED.get(question.path, "")
    if path == "/events/{id}":
        memory = client.get("/v1/memories")["items"][0]
        path = f"/events/{memory['evidence'][0]['event_id']}"
    elif path in LISTS:
        of, field = LISTS[path]
        items = client.get(f"/v1{of}")["items"]
        if not items:
            return None
        begin, _, rest = path.partition("{")
        path = begin + quote(items[0][field], safe="/") + rest.partition("}")[2]
    return client.get(f"/v1{path}" + (f"?{query}" if query else ""))


def main() -> None:
    found: dict[str, Any] = {}
    with Client.of(load_settings()) as client:
        for question in questions():
            name = name_of(question.answer)
            answer = ask(client, question)
            if typing.get_origin(question.answer) is Page:
                answer = answer["items"][0] if answer["items"] else None
            if not answer:
                print(f"nothing to show of {question.path}")
                continue
            found.setdefault(name, short(answer))
    FILE.write_text(json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
