"""An error that two projects met is known in both, and what each of them did about it stays there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
import servers
from apis import Api, serving
from asked import Remembered
from events import observed
from histories import drained
from poisoning.asking import pages, tools
from poisoning.test_poisoning import unasked
from poisoning.volunteered import asks, edits, good, red, runs, says

from memctl.domain.events.event import NewEvent
from memctl.infra.database import connect
from memctl.infra.log.append import append
from memctl.infra.readmodels import generations
from memctl.infra.redaction import prepare

OURS, THEIRS = "/work/ours", "/work/theirs"
Step = tuple[Any, str]
CHECK = "python3 -m dateparts.check"


def error(name: str) -> str:
    return f"Traceback (most recent call last):\n  File \"m.py\", line 3\nModuleNotFoundError: No module named '{name}'"


def fixed(word: str, name: str) -> list[Step]:
    cause = f"The cause is that {name} is called {word} now."
    change = (edits("m.py", "import dateparts", f"import {word} as dateparts", "b"), good("ok", "b"))
    return [asks(), runs(CHECK, "a"), red(error(name), "a"), says(cause), *change, runs(CHECK, "c"), good("ok", "c")]


def session(name: str, steps: list[Step], place: str) -> list[NewEvent]:
    return [
        observed(msgspec.structs.replace(payload, line=str(at)), session=name, at=at, actor=actor, location=place)
        for at, (payload, actor) in enumerate(steps)
    ]


@pytest.fixture(scope="module")
def met(
    postgres_server: str, migrated_template: str, vectors: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Api]:
    events = session("o1", fixed("quillours", "dateparts"), OURS)
    events += session("o2", [asks(), runs(CHECK, "a"), red(error("quillname"), "a"), says("It fails.")], OURS)
    for number in range(3):
        events += session(f"t{number}", fixed("quilltheirs", "quilltheirsname"), THEIRS)
    url, token = vectors
    with servers.fresh_database(postgres_server, template=migrated_template) as database:
        with connect(database) as connection:
            generations.ensure_live(connection, 2)
            append(connection, 1, [prepare(event) for event in events])
        drained(database)
        memory = Remembered(database, url, token, "none")
        with serving(tmp_path_factory.mktemp("api"), memory, embedder="none") as api:
            yield api


def shown(api: Api, place: str) -> str:
    """All that somebody who works there is given about the error, asked or not."""
    text, here = error("dateparts"), quote(place, safe="")
    calls = {
        "find_fix": {"error": text, "command": CHECK}, "search": {"query": text}, "guidance": {"task": text},
        "archival_memory_search": {"query": text},
    }  # fmt: skip
    answers = [*tools(api, place, calls).values(), *unasked(api, place, text, CHECK, text).values()]
    for route, body in (("bugs", {"text": text, "here": place}), ("search", {"q": text, "here": place})):
        sent = json.dumps(body).encode()
        status, _, answer = api.ask(
            f"/v1/{route}", method="POST", body=sent, headers={"Content-Type": "application/json"}
        )
        assert status == 200, answer
        answers.append(answer.decode())
    paths = (f"/projects/{here}", *(f"{path}?project={here}" for path in ("/", "/bugs", "/knowledge")))
    return "\n".join([*answers, *pages(api, *paths).values()])


@pytest.mark.parametrize(
    ("place", "own", "others"),
    [
        (OURS, "quillours", ("quilltheirs",)),
        (THEIRS, "quilltheirs", ("quillours", "quillname")),
    ],
)
def test_what_a_project_did_about_an_error_stays_in_it(met: Api, place: str, own: str, others: tuple[str, ...]) -> None:
    found = shown(met, place)
    assert own in found
    assert [word for word in others if word in found] == []


def test_who_asks_about_all_projects_is_given_all(met: Api) -> None:
    given = {"find_fix": {"error": error("dateparts"), "project": "*"}}
    assert "quill" in tools(met, OURS, given)["find_fix"]
