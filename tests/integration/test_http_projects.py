"""Projects over HTTP, stores imported over HTTP, and what people say of memories, asked of a running API."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from apis import TOKEN, Api, problem_of, serving
from asked import Remembered
from draining import catch_up
from waiting import until

from memctl.workers.folding.drain import Drainer


def got(api: Api, path: str) -> Any:
    status, _, body = api.ask(path)
    assert status == 200, body
    return json.loads(body)


def told(api: Api, where: Remembered, command: str, key: str, **given: Any) -> dict[str, Any]:
    """Carry a command out, and fold what it says."""
    status, _, body = api.ask(
        f"/v1/commands/{command}", method="POST", body=json.dumps(given).encode(), headers={"Idempotency-Key": key}
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


STORE = json.dumps(
    {"collected_info": [{"id": 1, "content": "The staging server restarts on Sundays.", "category": "ops"}]}
).encode()


def test_a_store_is_imported_over_http_once_whatever_its_key(api: Api) -> None:
    def post(key: str, query: str = "", body: bytes = STORE) -> tuple[int, dict[str, str], bytes]:
        return api.ask(f"/v1/import{query}", method="POST", body=body, headers={"Idempotency-Key": key})

    assert json.loads(post("a", "?dry_run=true")[2])["events"]["new"] == 1
    status, _, answer = post("a")
    assert status == 200
    first = json.loads(answer)
    assert (first["events"]["new"], first["lines"], first["bad"]) == (1, 1, [])
    for key in ("a", "b"):
        assert json.loads(post(key)[2])["events"] == {"new": 0, "duplicate": 1, "variant": 0, "forgotten": 0}
    named = json.loads(
        post("c", "?table=collected_info", json.dumps([{"id": 2, "content": "Backups run at noon"}]).encode())[2]
    )
    assert named["events"]["new"] == 1
    problem = problem_of(post("d", "", b"SQLite format 3\0 and no more"))
    assert problem["status"] in (400, 422)
    assert "imports" not in json.dumps(problem)


def test_a_store_that_is_being_sent_lies_in_the_data_directory_and_goes_with_its_sender(api: Api) -> None:
    imports = Path(api.environment["MEMCTL_DATA_DIR"]) / "imports"
    with socket.create_connection(("127.0.0.1", api.port)) as sender:
        sender.sendall(
            b"POST /v1/import HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"
            b"Idempotency-Key: k\r\nAuthorization: Bearer " + TOKEN.encode() + b"\r\n\r\n" + STORE
        )
        until(lambda: any(imports.glob("*/store")))
        assert imports.stat().st_mode & 0o777 == 0o700
    until(lambda: not any(imports.iterdir()))


def test_what_an_api_that_was_killed_left_of_a_store_is_gone_once_one_serves_again(
    memory: Remembered, tmp_path: Path
) -> None:
    leaves = (
        "import os, pathlib\nleft = pathlib.Path(os.environ['MEMCTL_DATA_DIR']) / 'imports' / 'tmp1'\n"
        "left.mkdir(parents=True)\n(left / 'store').write_text('not redacted yet')\n"
    )
    with serving(tmp_path, memory, first=leaves) as served:
        imports = Path(served.environment["MEMCTL_DATA_DIR"]) / "imports"
        assert not imports.exists()


def test_what_a_person_rejects_is_gone_from_every_list_and_what_is_pinned_says_so(api: Api, memory: Remembered) -> None:
    items = got(api, "/v1/memories?project=ledger&kind=bug_pattern")["items"]
    memory_of_bug = items[0]["id"]
    told(api, memory, "pin", "p1", memory=memory_of_bug)
    assert got(api, "/v1/memories?project=ledger&kind=bug_pattern")["items"][0]["pinned"]
    told(api, memory, "reject", "r1", claim=memory_of_bug)
    assert all(each["id"] != memory_of_bug for each in got(api, "/v1/memories?project=ledger&limit=200")["items"])
    assert all(
        each["id"] != memory_of_bug for each in got(api, "/v1/search?q=pyproject+error&project=ledger")["results"]
    )
    told(api, memory, "verify-knowledge", "v1", claim=memory_of_bug)
    assert any(each["id"] == memory_of_bug for each in got(api, "/v1/memories?project=ledger&limit=200")["items"])
