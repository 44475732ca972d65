"""Projects over HTTP, stores imported over HTTP, and what people say of memories, asked of a running API."""

from __future__ import annotations

import json
from typing import Any

from apis import Api, problem_of
from asked import Remembered
from draining import catch_up

from memctl.workers.folding.drain import Drainer


def got(api: Api, path: str) -> Any:
    status, _, body = api.ask(path)
    assert status == 200, body
    return json.loads(body)


def told(api: Api, where: Remembered, command: str, key: str, **given: Any) -> dict[str, Any]:
    """Carry a command out, and fold what it says."""
    status, _, body = api.ask(
        f"/v1/commands/{command}",
        method="POST",
        body=json.dumps({"by": "user", **given}).encode(),
        headers={"Idempotency-Key": key},
    )
    assert status == 200, body
    folded(where)
    answer: dict[str, Any] = json.loads(body)
    return answer


def folded(memory: Remembered) -> None:
    drainer = Drainer(memory.database_url)
    catch_up(drainer)
    drainer.close()


def test_every_project_is_listed_with_its_places(api: Api) -> None:
    found = {each["name"]: each for each in got(api, "/v1/projects")["items"]}
    assert set(found) == {"ledger", "atlas"}
    assert found["ledger"]["locations"] == ["/home/dana/ledger"]


def test_a_projects_page_is_told_by_name_by_id_and_by_where_the_caller_stands(api: Api) -> None:
    by_name = got(api, "/v1/project?project=ledger")
    assert by_name["project"]["name"] == "ledger"
    assert by_name["stats"]["sessions"] == 3
    for section in (
        "tech_stack",
        "commands",
        "structure",
        "conventions",
        "hotspots",
        "issues",
        "prefer",
        "avoid",
        "open",
    ):
        for line in by_name[section]:
            assert {"text", "count", "sessions", "last", "sources"} <= set(line)
    assert got(api, f"/v1/project?project={by_name['project']['id'][:8]}") == by_name
    assert got(api, "/v1/project?here=/home/dana/ledger/src")["project"] == by_name["project"]


def test_each_line_of_a_page_names_events_that_are_there(api: Api) -> None:
    page = got(api, "/v1/project?project=ledger")
    sources = {
        source
        for section in ("tech_stack", "commands", "prefer")
        for line in page[section]
        for source in line["sources"]
    }
    assert sources
    assert all(got(api, f"/v1/events/{source}")["location"] == "/home/dana/ledger" for source in sorted(sources)[:5])


def test_an_unknown_project_is_a_problem_that_says_so(api: Api) -> None:
    assert problem_of(api.ask("/v1/project?project=nowhere"))["status"] == 404


def test_projects_are_merged_and_split_again(api: Api, memory: Remembered) -> None:
    told(api, memory, "merge-projects", "m1", into="ledger", project="atlas")
    assert [each["name"] for each in got(api, "/v1/projects")["items"]] == ["ledger"]
    assert got(api, "/v1/project?project=ledger")["stats"]["sessions"] == 4
    told(api, memory, "split-project", "m2", project="/home/dana/atlas")
    assert {each["name"] for each in got(api, "/v1/projects")["items"]} == {"ledger", "atlas"}
