"""The API as a process of its own: who may ask, what is answered, errors as problems, and how it starts and ends."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
import httpx
import jsonschema
import msgspec
import pytest
from apis import RUN, TOKEN, Api, free_port, problem_of, serving
from asked import ATLAS, LEDGER, Remembered, remembered
from click.testing import CliRunner
from commandline import at_a_terminal
from draining import catch_up
from events import observed
from waiting import until

from memctl.api.client import BadlyAsked, Client, NotThere, Refused, Unreachable
from memctl.api.reading.questions import Endpoint, questions
from memctl.api.reading.records import MemoryItem
from memctl.cli.erase.undo import NotUndone
from memctl.cli.main import memctl as program
from memctl.domain.events.observations import CONTEXT_BLOCK_CLOSE, CONTEXT_BLOCK_OPEN, PromptSubmitted, SessionStarted
from memctl.domain.support.errors import MemctlError
from memctl.infra import hook
from memctl.infra.database import connect
from memctl.infra.log.append import append
from memctl.infra.log.mark import mark
from memctl.infra.readmodels import generations, rebuilds
from memctl.workers.folding.drain import Drainer


@pytest.fixture(scope="module")
def memory(postgres_server: str, migrated_template: str, vectors: tuple[str, str]) -> Iterator[Remembered]:
    with remembered(postgres_server, migrated_template, vectors) as found:
        yield found


@pytest.fixture(scope="module")
def api(memory: Remembered, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(tmp_path_factory.mktemp("api"), memory) as found:
        with found.client() as client:
            until(lambda: client.get("/v1/health")["degraded"] == [], "the embedder")
        yield found


# --- questions ---


@pytest.mark.parametrize("question", [each for each in questions() if "{" not in each.path], ids=lambda each: each.path)
def test_every_question_answers_by_its_own_schema(api: Api, question: Endpoint) -> None:
    asked = {"/search": "?q=rounding", "/guidance": "?task=rounding", "/project": f"?project={LEDGER}"}
    status, _, body = api.ask(f"/v1{question.path}{asked.get(question.path, '')}")
    assert status == 200
    (schema,), parts = msgspec.json.schema_components([question.answer])
    jsonschema.validate(json.loads(body), {**schema, "$defs": parts})


@pytest.mark.parametrize("path", ["/v1/episodes?file=%00", "/v1/episodes?error=a%00b", "/v1/strategies?domain=%00"])
def test_a_text_with_nul_is_badly_asked(api: Api, path: str) -> None:
    assert problem_of(api.ask(path))["status"] == 422


# --- who may ask ---


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer x", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer \xe9"]
)
def test_without_the_token_nothing_is_told(api: Api, header: str) -> None:
    answer = api.ask("/v1/stats", headers={"Authorization": header})
    assert problem_of(answer)["status"] == 401
    assert answer[1]["www-authenticate"].startswith("Bearer")


def test_what_is_parked_is_told(api: Api) -> None:
    with api.client() as client:
        assert client.get("/v1/dead-letters") == {"letters": [], "halted": [], "writers": []}


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_need_no_token(api: Api, path: str) -> None:
    assert api.ask(path, headers={"Authorization": ""})[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "169.254.169.254", "memctl.localhost", "localhost.evil:80"]
)
def test_a_host_that_is_not_ours_is_refused(api: Api, host: str) -> None:
    assert problem_of(api.ask("/healthz", headers={"Host": host}))["status"] == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "file://"])
def test_a_page_of_another_origin_is_refused(api: Api, origin: str) -> None:
    assert problem_of(api.ask("/v1/stats", headers={"Origin": origin}))["status"] == 403


def test_our_own_origin_may_ask(api: Api) -> None:
    assert api.ask("/v1/stats", headers={"Origin": api.url})[0] == 200


def test_too_long_requests_are_refused_before_they_are_read(api: Api) -> None:
    assert problem_of(api.ask(f"/v1/search?q={'a' * 20_000}"))["status"] == 414
    assert problem_of(api.ask("/v1/bugs", method="POST", headers={"Content-Length": "99999999"}))["status"] == 413


def test_a_refusal_arrives_while_the_body_is_still_being_sent(api: Api) -> None:
    body = b"x" * (8 << 20)
    for header, status in (("Bearer x", 401), (f"Bearer {TOKEN}", 413)):
        refused = api.ask("/v1/bugs", method="POST", body=body, headers={"Authorization": header})
        assert problem_of(refused)["status"] == status


def test_a_long_body_in_pieces_is_refused_too(api: Api) -> None:
    connection = HTTPConnection("127.0.0.1", api.port, timeout=30)
    with contextlib.closing(connection):
        pieces = iter([b'{"text": "'] + [b"a" * 65_536] * 32)
        with contextlib.suppress(ConnectionError):
            connection.request(
                "POST", "/v1/bugs", pieces, {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
                encode_chunked=True,
            )  # fmt: skip
        assert connection.getresponse().status == 413


def test_a_connection_is_closed_on_which_too_much_comes_or_nothing(memory: Remembered, tmp_path: Path) -> None:
    first = "from memctl.api.server import auth, serve\nserve.HEAD_S = auth.BODY_S = 0.2\n"
    head = f"POST /v1/bugs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
    pieces = f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + b"10000\r\n" + b"a" * 65_536 + b"\r\n"
    with serving(tmp_path, memory, embedder="none", first=first) as api:
        with socket.create_connection(("127.0.0.1", api.port), 60) as line:
            assert line.recv(1) == b""
        with socket.create_connection(("127.0.0.1", api.port), 60) as line:
            line.sendall(f"{head}Content-Length: 10\r\n\r\n".encode() + b"{")
            assert _all_of(line).startswith(b"HTTP/1.1 408 ")
        with socket.create_connection(("127.0.0.1", api.port), 60) as line, contextlib.suppress(ConnectionError):
            line.sendall(pieces)
            for _ in range(4_096):
                line.sendall(b"10000\r\n" + b"a" * 65_536 + b"\r\n")
            pytest.fail("it was read on and on")


def _all_of(line: socket.socket) -> bytes:
    """What comes until the connection is closed."""
    return b"".join(iter(lambda: line.recv(1 << 16), b""))


def test_who_hangs_up_in_the_middle_of_a_body_is_no_error_of_ours(api: Api) -> None:
    def answered() -> set[tuple[str, str]]:
        counted = (
            r'^memctl_request_seconds_count{space="default",method="POST",route="/v1/events",status="(\w+)"} (\d+)'
        )
        return set(re.findall(counted, api.ask("/metrics")[2].decode(), re.MULTILINE))

    before = answered()
    with socket.create_connection(("127.0.0.1", api.port), 20) as line:
        head = f"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        line.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n".encode() + b'{"events": ')
    until(lambda: answered() - before)
    assert [status for status, _ in answered() - before] == ["4xx"]
    assert "a request failed unexpectedly" not in api.log.read_text()


def test_every_answer_is_hardened(api: Api) -> None:
    for path in ("/healthz", "/v1/stats", "/v1/nothing"):
        headers = api.ask(path)[1]
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "server" not in headers


def test_the_unix_socket_is_its_owners_alone_and_answers(api: Api) -> None:
    assert stat.S_IMODE(api.socket.stat().st_mode) == 0o600
    with over_socket(api) as client:
        assert client.get("/v1/health").json()["status"] == "ok"
        assert client.get("/v1/health", headers={"Authorization": "Bearer wrong"}).status_code == 401


def over_socket(api: Api) -> httpx.Client:
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": "localhost"}
    return httpx.Client(
        transport=httpx.HTTPTransport(uds=str(api.socket)), base_url="http://localhost", headers=headers
    )


# --- answers ---

PAGES = ["memories", "history", "sessions", "episodes", "insights", "knowledge"]


@pytest.mark.parametrize("what", PAGES)
def test_every_list_answers_pages_that_continue(api: Api, what: str) -> None:
    with api.client() as client:
        first = client.page(what, dict, limit=1).json
        assert len(first["items"]) == 1
        assert first["scope"]["chosen"] == "everywhere"
        if first["next"]:
            second = client.page(what, dict, limit=1, cursor=first["next"]).json
            assert second["items"][0]["id"] != first["items"][0]["id"]


@pytest.mark.parametrize("what", PAGES)
def test_what_the_caller_has_already_is_not_sent_again(api: Api, what: str) -> None:
    status, headers, body = api.ask(f"/v1/{what}")
    assert (status, bool(body)) == (200, True)
    again = api.ask(f"/v1/{what}", headers={"If-None-Match": f'"other", W/{headers["etag"]}'})
    assert (again[0], again[2]) == (304, b"")
    assert api.ask(f"/v1/{what}", headers={"If-None-Match": '"other"'})[0] == 200


def test_a_search_answers_with_its_scope_and_results(api: Api) -> None:
    with api.client() as client:
        answer = client.search("coastline of Iceland", here=ATLAS, limit=2, explain=True).json
    assert answer["scope"] == {"project": "atlas", "chosen": "here", "locations": 1}
    assert answer["degraded"] == []
    found = answer["results"][0]
    assert {"id", "text", "title", "score", "class", "bucket", "kind", "project", "occurred_at", "evidence", "why",
            "source"} <= set(found)  # fmt: skip
    assert found["occurred_at"].endswith("Z")
    evidence = found["evidence"][0]
    assert set(evidence) == {"event_id", "source", "field", "start", "end", "quote", "holds"}
    assert set(evidence["source"]) == {"agent", "session", "line"}
    assert found["explain"]["ranks"]


def test_search_takes_a_time_in_the_query(api: Api) -> None:
    for since, found in (("2026-03-01", True), ("2126-03-01T00:00Z", False)):
        status, _, body = api.ask(f"/v1/search?q=Decimal&since={since}&before=2127-01-01")
        assert (status, bool(json.loads(body)["results"])) == (200, found)


def test_a_search_that_is_posted_leaves_out_what_scores_below_its_threshold(api: Api) -> None:
    with api.client() as client:
        every = client.search("coastline of Iceland", here=ATLAS, limit=20).value.results
        least = sorted(found.score for found in every)[len(every) // 2]
        kept = client.search("coastline of Iceland", here=ATLAS, limit=20, threshold=least).value.results
    assert 0 < len(kept) < len(every)
    assert min(found.score for found in kept) >= least
    for no_number in ("false", '"0.5"'):
        asked = f'{{"q": "x", "threshold": {no_number}}}'.encode()
        json_type = {"Content-Type": "application/json"}
        assert api.ask("/v1/search", method="POST", body=asked, headers=json_type)[0] == 422


def test_things_are_found_by_id_over_http(api: Api) -> None:
    with api.client() as client:
        for what in PAGES:
            item = client.page(what, dict, limit=1).json["items"][0]
            assert client.thing(item["id"]).json["item"]["id"] == item["id"]
        memory = client.page("memories", dict, limit=1).json["items"][0]
        assert client.get(f"/v1/memories/{memory['id'][:12]}")["id"] == memory["id"]
        session = client.page("sessions", dict, limit=1).json["items"][0]
        assert client.get(f"/v1/sessions/{quote(session['id'])}")["id"] == session["id"]
        event = client.get(f"/v1/events/{memory['evidence'][0]['event_id']}")
        assert event["payload"]


def test_bugs_are_looked_up_in_a_url_or_a_body(api: Api) -> None:
    text = "ModuleNotFoundError: No module named 'ledger'"
    with api.client() as client:
        posted = client.bugs("noise before it\n" * 500 + text).json
        asked = client.get("/v1/bugs", {"q": text})
    assert posted["hits"][0]["signature"] == asked["hits"][0]["signature"]
    assert "pyproject" in json.dumps(asked["hits"][0]["solution"])


def test_the_catalogue_lists_every_type_of_event(api: Api) -> None:
    from memctl.domain.events.event import event_types

    with api.client() as client:
        assert [entry["name"] for entry in client.get("/v1/events/types")] == list(event_types())


def test_the_openapi_document_is_whole_and_loads_nothing_from_elsewhere(api: Api) -> None:
    with api.client() as client:
        document = client.get("/v1/openapi.json")
    told = json.dumps(document)
    names = set(document["components"]["schemas"])
    for part in told.split("#/components/schemas/")[1:]:
        assert part.partition('"')[0] in names
    assert document["paths"]["/v1/search"]["get"]["responses"]["200"]["content"]["application/json"]["example"]
    for path in ("/docs", "/redoc", "/openapi.json"):
        assert api.ask(path)[0] == 404


# --- spaces ---


def test_who_means_another_space_is_refused_whatever_is_asked_and_told_what_to_do(api: Api) -> None:
    elsewhere, here = {"Memctl-Space": "lab"}, {"Memctl-Space": "default"}
    for method, path in (("GET", "/v1/search?q=tea"), ("GET", "/healthz"), ("POST", "/v1/commands/note")):
        told = problem_of(api.ask(path, method=method, body=b"{}" if method == "POST" else None, headers=elsewhere))
        assert told["status"] == 421
        assert "space default" in told["detail"]
        assert "MEMCTL_SPACE" in told["hint"]
    assert api.ask("/v1/search?q=tea", headers=here)[0] == 200
    with api.client() as client:
        operations = client.get("/v1/openapi.json")["paths"]["/v1/search"]["get"]
    (described,) = (each for each in operations["parameters"] if each["name"] == "Memctl-Space")
    assert described["schema"] == {"type": "string"}
    assert "421" in operations["responses"]


def test_a_verb_names_the_space_that_is_configured(verb: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for space in ("lab", "default"):
        monkeypatch.setenv("MEMCTL_SPACE", space)
        if space == "default":
            assert verb("search", "coastline", "--project", "*", "--json")[0] == 0
            continue
        for asked in (("search", "coastline", "--project", "*", "--json"), ("note", "Tea is at four.")):
            with pytest.raises(BadlyAsked, match="space default, and lab was asked for") as refused:
                verb(*asked)
            assert "MEMCTL_SPACE" in str(refused.value.hint)


# --- errors ---


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/nothing", 404),
        ("/v1/memories/no-such-id", 404),
        ("/v1/things/%00", 404),
        ("/v1/events/zz", 404),
        ("/v1/history?project=nope", 404),
        ("/v1/search", 422),
        ("/v1/search?q=", 422),
        ("/v1/search?q=a&limit=0", 422),
        ("/v1/search?q=a&limit=5.0", 422),
        ("/v1/strategies?min_position=0.0", 422),
        ("/v1/search?q=a&profile=best", 422),
        ("/v1/search?q=a&kind=dream", 422),
        ("/v1/search?q=a&since=neverday", 422),
        ("/v1/memories?cursor=%21%21", 422),
        ("/v1/memories?since=neverday", 422),
        ("/v1/memories?bucket=X", 422),
    ],
)
def test_every_error_is_a_problem_document(api: Api, path: str, status: int) -> None:
    assert problem_of(api.ask(path))["status"] == status


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/v1/search", "`q` is missing"),
        ("/v1/search?q=", "`q` is empty"),
        ("/v1/search?q=a&limit=0", "`limit` has to be at least 1"),
        ("/v1/search?q=a&limit=5.0", "`limit` cannot be read: a whole number is wanted, in digits"),
        ("/v1/search?q=a&kind=dream", "`kind` (part 1) has to be 'turn', 'episode'"),
        ("/v1/memories?bucket=X", "`bucket` has to be 'PROFILE', 'PREFERENCE'"),
    ],
)
def test_what_was_badly_asked_is_said_in_words(api: Api, path: str, words: str) -> None:
    assert problem_of(api.ask(path))["detail"].startswith(words)


def test_other_methods_and_broken_bodies_are_problems_too(api: Api) -> None:
    refused = api.ask("/v1/search?q=a", method="DELETE")
    assert problem_of(refused)["status"] == 405
    assert refused[1]["allow"] == "GET, POST"
    for body in (b"{", b"[]", b'{"text": 5}', b"\xff\xfe", b'{"text": "' + b"[" * 1000):
        answer = api.ask("/v1/bugs", method="POST", body=body, headers={"Content-Type": "application/json"})
        assert problem_of(answer)["status"] in (400, 422)


def test_an_answer_waits_for_what_was_just_written_and_says_how_far_it_is(api: Api, memory: Remembered) -> None:
    begun = observed(SessionStarted(line="w1", source="startup"), session="waited-for", at=9_999, location=LEDGER)
    with connect(memory.database_url) as connection:
        (written,) = append(connection, 1, [begun])

    def asked() -> tuple[int, dict[str, str], bytes]:
        for _ in range(10):  # it may be folded only after all of a request's patience
            answer = api.ask(f"/v1/sessions?min_position={written.position}")
            if answer[0] != 503:
                break
        return answer

    with ThreadPoolExecutor(1) as asking:
        answer = asking.submit(asked)
        with contextlib.closing(Drainer(memory.database_url)) as drainer:
            catch_up(drainer)
        status, headers, body = answer.result()
    assert status == 200
    assert int(headers["memctl-position"]) >= written.position
    assert b"waited-for" in body
    assert headers["memctl-dense-waiting"].isdecimal()
    behind = api.ask(f"/v1/sessions?min_position={written.position + 1_000_000}")
    assert problem_of(behind)["status"] == 422


def test_the_log_is_told_as_it_grows_from_a_position_on(api: Api) -> None:
    with socket.create_connection(("127.0.0.1", api.port), 20) as line:
        line.sendall(
            f"GET /v1/tail/events?after=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
            "Last-Event-ID: 3\r\n\r\n".encode()
        )
        told = b""
        while told.count(b"\n\n") < 2:
            told += line.recv(1 << 16)
    first = told.partition(b"id: ")[2].split(b"\n")
    assert int(first[0]) > 3
    row = json.loads(first[2].removeprefix(b"data: "))
    assert row["position"] == int(first[0])
    assert first[1] == b"event: " + row["type"].encode()


def test_progress_is_told_once_until_it_changes(api: Api) -> None:
    with socket.create_connection(("127.0.0.1", api.port), 20) as line:
        line.sendall(
            f"GET /v1/tail/progress HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
        )
        told = b""
        while b"event: progress" not in told:
            told += line.recv(1 << 16)
    assert b'"shards"' in told


def test_a_replay_is_told_with_its_rate_and_what_is_left(api: Api, memory: Remembered) -> None:
    with connect(memory.database_url) as log:
        live = generations.live(log)
        begun = rebuilds.begin(log, "compare", 1, mark(log), live.stage1, live.stage2)
        assert rebuilds.lock(log, begun.id)
        rebuilds.report(log, begun.id, "facts", 10, 100)
        log.execute("UPDATE memctl.rebuilds SET phase_at = phase_at - interval '10 s'")
        rebuilds.report(log, begun.id, "facts", 50, 100)
        with api.client() as client:
            [told] = client.get("/v1/replays", {"limit": 1})["replays"]
        rebuilds.end(log, begun.id, "dropped")
    assert (told["rebuild"], told["status"], told["phase"]) == (begun.id, "running", "facts")
    assert (told["done"], told["total"]) == (50, 100)
    assert told["per_second"] == pytest.approx(5, rel=0.1)
    assert told["seconds_left"] == pytest.approx(10, rel=0.1)


def test_figures_are_there_for_prometheus_and_for_nobody_without_the_token(api: Api) -> None:
    status, headers, body = api.ask("/metrics")
    assert status == 200
    assert headers["content-type"].startswith("text/plain")
    figures = dict(line.rsplit(" ", 1) for line in body.decode().splitlines() if not line.startswith("#"))
    assert float(figures['memctl_log_mark{space="default"}']) > 0
    assert figures['memctl_shard_lag{stage="1",shard="0"}'] == "0"
    assert api.ask("/metrics", headers={"Authorization": ""})[0] == 401


def test_answers_are_counted_by_the_path_that_is_asked_as_alerts_and_dashboard_select_them(api: Api) -> None:
    assert api.ask("/v1/search?q=totals")[0] == 200
    assert api.ask("/v1/nothing")[0] == 404
    figures = api.ask("/metrics")[2].decode()
    for route in ("/v1/search", "/metrics", "other"):
        assert re.search(
            rf'^memctl_request_seconds_count{{space="\w*",method="GET",route="{route}",', figures, re.MULTILINE
        ), route


def test_a_refusal_does_not_repeat_what_was_sent(api: Api) -> None:
    body = b'{"text": "", "project": 7, "command": "hunter2-hunter2"}'
    answer = api.ask("/v1/bugs", method="POST", body=body, headers={"Content-Type": "application/json"})
    assert b"hunter2" not in answer[2]


def test_the_client_raises_what_the_server_said(api: Api) -> None:
    with api.client() as client:
        with pytest.raises(NotThere) as missing:
            client.thing("no-such-id")
        assert (missing.value.exit_code, "no-such-id" in str(missing.value)) == (3, True)
        with pytest.raises(BadlyAsked, match="limit"):
            client.search("a", limit=0)
        assert client.search("still asks").json["query"] == "still asks"
    with api.client(token="wrong") as client, pytest.raises(Refused) as refused:
        client.stats()
    assert "token" in str(refused.value)


def test_the_client_says_when_nobody_answers() -> None:
    with (
        free_port() as nobody,
        Client(f"http://127.0.0.1:{nobody}", "x") as client,
        pytest.raises(Unreachable) as failed,
    ):
        client.stats()
    assert "memctl up" in (failed.value.hint or "")


# --- the process ---


def test_it_starts_without_a_vector_store_and_ends_cleanly_when_told(memory: Remembered, tmp_path: Path) -> None:
    with (
        free_port() as nobody,
        serving(
            tmp_path, Remembered(memory.database_url, f"http://127.0.0.1:{nobody}", "x", ""), embedder="none"
        ) as api,
    ):
        with api.client() as client:
            answer = client.search("coastline of Iceland").json
            assert answer["results"]
            assert answer["degraded"]
        api.process.send_signal(signal.SIGTERM)
        assert api.process.wait(timeout=20) == 0
        assert not api.socket.exists()
        assert "Traceback" not in api.log.read_text()


def test_a_socket_left_by_a_killed_process_is_replaced(memory: Remembered, tmp_path: Path) -> None:
    with serving(tmp_path, memory, embedder="none") as killed:
        killed.process.kill()
        killed.process.wait()
        assert killed.socket.exists()
    with serving(tmp_path, memory, embedder="none") as api, over_socket(api) as client:
        assert client.get("/readyz").json() == {"status": "ready", "well": True, "troubles": []}


def test_without_a_token_it_refuses_to_start(memory: Remembered, tmp_path: Path) -> None:
    environment = {**os.environ, "MEMCTL_DATABASE_URL": memory.database_url, "MEMCTL_API_URL": "http://127.0.0.1:1"}
    ended = subprocess.run([sys.executable, "-c", RUN], env=environment, capture_output=True, timeout=60, check=False)
    assert ended.returncode != 0
    assert b"NoToken" in ended.stderr


def test_with_the_embedder_loaded_it_stays_within_300_mb(api: Api) -> None:
    with api.client() as client:
        for number in range(20):
            client.search(f"coastline of Iceland {number}")
    status = Path(f"/proc/{api.process.pid}/status")
    if not status.exists():
        pytest.skip("this system has no /proc to read a process's memory from")
    resident = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    assert int(resident.split()[1]) * 1024 <= 300e6


# --- the verbs ---


@pytest.fixture
def verb(api: Api, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a reading verb against the API; answers exit code, stdout and stderr."""
    for name, value in api.environment.items():
        if name.startswith("MEMCTL_"):
            monkeypatch.setenv(name, value)

    def run(name: str, *arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
        command = program.get_command(click.Context(program), name)
        assert command is not None
        result = CliRunner().invoke(command, list(arguments), input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr

    return run


def test_search_prints_exactly_the_list_that_scripts_rely_on(verb: Any) -> None:
    code, out, _ = verb("search", "coastline", "of", "Iceland", "--json", "--project", "*")
    found = json.loads(out)
    assert code == 0
    assert isinstance(found, list)
    assert {"id", "text", "score", "class", "bucket", "project", "occurred_at", "evidence"} <= set(found[0])


def test_search_without_results_ends_with_3_and_prints_nothing_to_stdout_but_json(verb: Any) -> None:
    code, out, err = verb("search", "zqxjkvbnwtr", "--project", "atlas")
    assert (code, out) == (3, "")
    assert "nothing was found in project atlas" in err
    code, out, _ = verb("search", "zqxjkvbnwtr", "--project", "atlas", "--json")
    assert (code, json.loads(out)) == (3, [])


@pytest.mark.parametrize("name", ["history", "insights", "episodes", "stats"])
def test_the_lists_print_for_people_and_for_programs(verb: Any, name: str) -> None:
    code, out, err = verb(name, "--project", "*")
    assert (code, bool(out), err.startswith("error")) == (0, True, False)
    code, out, _ = verb(name, "--project", "*", "--json")
    assert code == 0
    assert json.loads(out)


def test_show_prints_every_kind_of_thing(api: Api, verb: Any) -> None:
    with api.client() as client:
        ids = [client.page(what, dict, limit=1).json["items"][0]["id"] for what in PAGES]
        ids.append(client.bugs("ModuleNotFoundError: No module named 'ledger'").json["hits"][0]["signature"])
        ids.append(client.page("memories", dict, limit=1).json["items"][0]["evidence"][0]["event_id"])
    for id in ids:
        code, out, _ = verb("show", id)
        assert code == 0
        assert id in out.splitlines()[0]
        assert json.loads(verb("show", id, "--json")[1])["item"]["id"]


def test_show_says_of_an_error_what_ended_it_and_of_a_memory_whose_word_it_is(api: Api, verb: Any) -> None:
    with api.client() as client:
        hit = client.bugs("ModuleNotFoundError: No module named 'ledger'").value.hits[0]
        memory = client.page("memories", MemoryItem, project="ledger", limit=1).value.items[0]
    _, error, _ = verb("show", hit.signature)
    assert f"seen {hit.occurrences}×" in error
    assert (hit.solution is None) is ("no way out is known yet" in error)
    _, out, _ = verb("show", memory.id)
    assert memory.text.splitlines()[0] in out
    assert memory.origin in out
    assert "importance" not in error + out, "what only programs need is in --json"


def test_what_was_recorded_is_taken_back_by_its_event(api: Api, verb: Any) -> None:
    with api.client() as client:
        memory = client.page("memories", dict, project="ledger", limit=1).json["items"][0]["id"]
        pinned = client.command("pin", "pin-undone", memory=memory, by="user").json["event_id"]
    with pytest.raises(BadlyAsked, match="a person says") as refused:
        verb("undo", pinned)  # at no terminal, so by an agent
    assert "in a terminal of your own" in str(refused.value.hint), "it is said what to do"
    out = at_a_terminal("undo", pinned, "--json")
    assert json.loads(out)["recorded"] == {"memory": memory, "pinned": False}
    with pytest.raises(NotUndone):
        verb("undo", json.loads(verb("note", "maps are drawn at night", "--json")[1])["event_id"])
    assert "no person's terminal is here" in verb("note", "maps are drawn by day")[2], "it is said why it waits"


def test_who_only_looks_what_would_be_forgotten_does_not_wait_for_the_vector_stores_client(api: Api) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "memctl.cli", "forget", "--match", "coastline", "--dry-run"],
        env={**os.environ, **api.environment}, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "what holds that text" in done.stdout
    assert "qdrant_client" not in done.stderr


def test_show_of_an_unknown_id_says_so_with_code_3(verb: Any) -> None:
    with pytest.raises(MemctlError) as missing:
        verb("show", "no-such-id")
    assert missing.value.exit_code == 3


def test_an_error_on_stdin_is_looked_up(verb: Any) -> None:
    code, out, _ = verb("bugs", "-", stdin="ModuleNotFoundError: No module named 'ledger'\n")
    assert code == 0
    assert "fix:" in out
    code, out, err = verb("bugs", "panic: runtime error: index out of range [9]")
    assert (code, out) == (3, "")
    assert "not seen before" in err


def test_stored_escape_sequences_do_not_reach_the_terminal(verb: Any, memory: Remembered) -> None:
    text = "Rename the fjord layer\x1b]0;owned\x07 and \x1b[2J\u202ereverse\u202c the order of its labels please"
    with connect(memory.database_url) as connection:
        append(connection, 1, [observed(PromptSubmitted(line="evil-1", text=text), session="evil", at=9_000)])
    drainer = Drainer(memory.database_url)
    catch_up(drainer)
    drainer.close()
    code, out, _ = verb("history", "--project", "*", "--limit", "100")
    assert code == 0
    assert "Rename the fjord layer" in out
    assert not set(out) & set("\x1b\x07\u202e\u202c")


def test_a_history_is_narrowed_to_days(verb: Any) -> None:
    def asked(*narrowed: str) -> list[str]:
        code, out, _ = verb("history", "--project", "*", "--limit", "200", "--json", *narrowed)
        assert code in (0, 3)
        return [item["id"] for item in json.loads(out)] if code == 0 else []

    whole = asked()
    earlier, later = asked("--before", "2026-03-03"), asked("--since", "2026-03-03")
    assert (later + earlier, bool(later), bool(earlier)) == (whole, True, True)
    assert asked("--since", "2999-01-01") == []


def test_guidance_comes_with_what_it_rests_on(api: Api) -> None:
    with api.client() as client:
        done = client.page("episodes", dict, here=LEDGER, limit=1).json["items"][0]["description"]
        told = client.guidance(done, here=LEDGER).json
        assert told["scope"]["project"] == "ledger"
        assert told["guidance"]["sources"]
        assert told["guidance"]["suggested_approach"] or told["guidance"]["things_to_try"]
        assert client.guidance("translate the invoice into French", here=LEDGER).json["guidance"]["sources"] == []
    assert problem_of(api.ask("/v1/guidance"))["status"] == 422


# --- hooks ---


def told_at(api: Api, agent: str = "claude-code", **payload: Any) -> tuple[int, str]:
    """Status, and what the agent is told."""
    body = json.dumps({"cwd": LEDGER, "session_id": "now", **payload}).encode()
    status, _, answer = api.ask(f"/v1/hooks/{agent}", method="POST", body=body)
    if status != 200:
        return status, ""
    told = json.loads(answer)["hookSpecificOutput"]
    assert set(told) == {"hookEventName", "additionalContext"}
    assert told["hookEventName"] == payload["hook_event_name"]
    return status, str(told["additionalContext"])


def test_a_session_begins_with_what_memory_holds_of_its_project_and_that_it_was_told_is_recorded(
    api: Api, memory: Remembered
) -> None:
    status, told = told_at(api, hook_event_name="SessionStart", source="startup", session_id="begins")
    assert status == 200
    assert told.startswith(CONTEXT_BLOCK_OPEN)
    assert told.endswith(CONTEXT_BLOCK_CLOSE)
    assert '"In this project we always use Decimal for money, never float."' in told
    with connect(memory.database_url) as connection:

        def recorded() -> list[str]:
            rows = connection.execute(
                "SELECT jsonb_array_elements(payload->'memories')->>'id' FROM memctl.events"
                " WHERE type = 'memory.recalled' AND stream = 'session/claude-code/begins'"
            )
            return [id for (id,) in rows]

        until(recorded, "the record of what was recalled")
        assert len(recorded()) == told.count("\n- ")
        # What is told of a claim or a piece of work counts for the memory that is made of it: figures, retention and
        # pruning know no other ids.
        (known,) = connection.execute(
            f"SELECT count(*) FROM memctl.memories_g{generations.live(connection).stage2} WHERE key = ANY(%s)".encode(),
            [recorded()],
        ).fetchone() or (0,)
        assert known == len(recorded())


def test_an_error_that_was_mended_before_comes_with_its_cause(api: Api) -> None:
    error = "Exit code 1\nTypeError: unsupported operand type(s) for *: 'float' and 'decimal.Decimal'"
    given = {"command": "python -m pytest tests/test_totals.py"}
    status, told = told_at(api, hook_event_name="PostToolUseFailure", tool_name="Bash", tool_input=given, error=error)
    assert status == 200
    assert "a float cannot be multiplied with a Decimal" in told
    assert "`rate = 1 - float(discount)` became `rate = 1 - Decimal(discount)` in totals.py" in told
    about = {"hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "tool_input": given}
    assert told_at(api, error=error.replace("decimal.Decimal", "fractions.Fraction"), **about) == (204, "")


def test_after_a_compaction_an_agent_is_told_what_its_session_was_at_and_another_session_nothing(api: Api) -> None:
    compacted = {"hook_event_name": "SessionStart", "source": "compact", "cwd": ATLAS}
    status, told = told_at(api, session_id="atlas1", **compacted)
    assert status == 200
    assert "the user's last words: \"이제부터 지도 색상은" in told
    assert told_at(api, session_id="atlas2", **compacted) == (204, "")


def test_where_recall_is_off_nothing_is_told_until_it_is_on_again(api: Api) -> None:
    begins = {"hook_event_name": "SessionStart", "source": "startup", "session_id": "quiet"}
    switch = ["--recall", "--session", "quiet"]
    assert CliRunner(env=api.environment).invoke(program, ["off", *switch]).exit_code == 0
    until(lambda: told_at(api, **begins) == (204, ""), "silence")
    assert told_at(api, **{**begins, "session_id": "other"})[0] == 200
    assert CliRunner(env=api.environment).invoke(program, ["on", *switch]).exit_code == 0
    until(lambda: told_at(api, **begins)[0] == 200, "the end of it")


def test_a_prompt_is_not_answered_with_what_its_own_session_said(api: Api) -> None:
    asked = {
        "hook_event_name": "UserPromptSubmit",
        "cwd": ATLAS,
        "prompt": "이제부터 지도 색상은 항상 등고선보다 밝게 해줘",
    }
    assert "등고선보다 밝게" in told_at(api, **asked)[1]
    assert told_at(api, **asked, session_id="atlas1") == (204, "")


def test_what_was_found_for_a_prompt_and_not_said_is_recorded_with_why(api: Api, memory: Remembered) -> None:
    asked = {"hook_event_name": "UserPromptSubmit", "cwd": ATLAS, "session_id": "weighs"}
    assert told_at(api, **asked, prompt="이제부터 지도 색상은 항상 등고선보다 밝게 해줘")[0] == 200

    def recorded() -> list[tuple[str, bool]]:
        with connect(memory.database_url) as connection:
            return connection.execute(
                "SELECT each->>'why', payload->'memories' @> jsonb_build_array(jsonb_build_object('id', each->>'id'))"
                " FROM memctl.events, jsonb_array_elements(payload->'passed_over') AS each"
                " WHERE type = 'memory.recalled' AND stream = 'session/claude-code/weighs'"
            ).fetchall()

    until(recorded, "what was passed over")
    assert {why for why, _ in recorded()} <= {"weak", "same session", "no room"}
    assert not any(said for _, said in recorded())


def test_a_command_to_the_client_is_no_prompt_at_which_memory_keeps_silent(api: Api, memory: Remembered) -> None:
    asked = {"hook_event_name": "UserPromptSubmit", "cwd": ATLAS, "session_id": "commands"}
    assert told_at(api, **asked, prompt="/compact and then go on with the colours of maps") == (204, "")
    assert told_at(api, **asked, prompt="go on") == (204, "")

    def recorded() -> int:
        with connect(memory.database_url) as connection:
            where = "type = 'memory.recalled' AND session_id = 'commands'"
            row = connection.execute(f"SELECT count(*) FROM memctl.events WHERE {where}").fetchone()
        return 0 if row is None else int(row[0])

    until(recorded, "that memory kept silent")
    assert recorded() == 1


@pytest.mark.parametrize(
    ("session", "prompt", "cwd", "silent", "considered"),
    [
        ("brief", "go on", ATLAS, "nothing asked", False),
        ("lost", "which colours do the maps have by now?", "/nowhere/known", "no project", False),
        ("weak", "등고선 말고 부엌의 주전자는 겨울이 오기 전에 고쳐야 하나?", ATLAS, None, True),
    ],
)
def test_that_nothing_is_said_at_a_prompt_is_recorded_with_why(
    session: str, prompt: str, cwd: str, silent: str | None, considered: bool, api: Api, memory: Remembered
) -> None:
    asked = {"hook_event_name": "UserPromptSubmit", "cwd": cwd, "session_id": session}
    assert told_at(api, **asked, prompt=prompt) == (204, "")

    def recorded() -> list[tuple[str | None, bool, bool]]:
        with connect(memory.database_url) as connection:
            return connection.execute(
                "SELECT payload->>'silent', payload ? 'passed_over', payload ? 'memories' FROM memctl.events"
                " WHERE type = 'memory.recalled' AND session_id = %s",
                [session],
            ).fetchall()

    until(recorded, "that memory kept silent")
    assert recorded() == [(silent, considered, False)]


def test_a_subagent_starts_with_what_bears_on_the_task_that_it_was_handed(api: Api) -> None:
    task = {"prompt": "이제부터 지도 색상은 항상 등고선보다 밝게 해줘", "subagent_type": "Explore"}
    here = {"session_id": "hands", "cwd": ATLAS}
    handed = {"hook_event_name": "PreToolUse", "tool_name": "Task", "tool_input": task, **here}
    assert told_at(api, **handed) == (204, "")
    starts = {"hook_event_name": "SubagentStart", "agent_id": "a1", "agent_type": "Explore", **here}
    status, injected = told_at(api, **starts)
    assert status == 200
    assert "등고선보다 밝게" in injected
    assert told_at(api, **starts) == (204, ""), "a task is of one subagent"


@pytest.mark.parametrize(
    "payload",
    [
        {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "python -m pytest"}},
        {"hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_input": {"file_path": 7}},
        {"hook_event_name": "PreToolUse", "tool_name": ["Bash"], "tool_input": {"command": ["a", 1]}},
        {"hook_event_name": "SubagentStart", "agent_type": "Explore", "prompt": "whether money is a Decimal"},
        {"hook_event_name": "UserPromptSubmit", "prompt": "/compact and then go on with money"},
        {"hook_event_name": "UserPromptSubmit", "prompt": "go on"},
        {"hook_event_name": "UserPromptSubmit", "prompt": ["money"]},
        {"hook_event_name": "UserPromptSubmit", "prompt": "we always use Decimal for money", "cwd": "/home/dana/new"},
        {"hook_event_name": "SessionStart", "cwd": "/home/dana/new"},
        {"hook_event_name": "UserPromptSubmit", "prompt": "Translate the invoice into French"},
        {"hook_event_name": "PostToolUseFailure", "error": "", "tool_input": None},
        {
            "hook_event_name": "PostToolUseFailure",
            "error": "Exit code 1\nTypeError: total() got an unsupported keyword 'decimal'",
            "tool_input": {"command": "python -m pytest tests/test_totals.py"},
        },
        {"hook_event_name": "Stop"},
        {"hook_event_name": 1, "cwd": 2},
    ],
)
def test_where_there_is_nothing_worth_saying_nothing_is_said(api: Api, payload: dict[str, Any]) -> None:
    assert told_at(api, **payload) == (204, "")


def test_a_hook_of_a_stranger_or_of_no_sense_is_told_nothing(api: Api) -> None:
    assert told_at(api, agent="someone", hook_event_name="SessionStart") == (204, "")
    assert api.ask("/v1/hooks/codex", method="POST", body=b"{not json")[0] == 204
    assert api.ask("/v1/hooks/codex", method="POST", body=b"{}", headers={"Authorization": ""})[0] == 401


def test_a_hook_that_asks_prints_what_its_client_is_to_read_and_nothing_else(api: Api, tmp_path: Path) -> None:
    payload = json.dumps({"hook_event_name": "SessionStart", "session_id": "h", "cwd": LEDGER}).encode()
    command = [sys.executable, "-I", "-S", hook.__file__, "ingest", "--stdin", "--recall", f"--data-dir={tmp_path}"]

    def run() -> bytes:
        done = subprocess.run(command, input=payload, capture_output=True, timeout=60, check=True)
        assert done.stderr == b""
        return done.stdout

    assert run() == b""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "api").write_text(f"{api.socket}\n{TOKEN}\n")
    assert "never float" in json.loads(run())["hookSpecificOutput"]["additionalContext"]
    (tmp_path / "run" / "api").write_text(f"{api.socket}\nanother-token\n")
    assert b"memctl is not running" in run()  # no door listens there, which is said once
    assert run() == b""


def test_a_hook_that_only_asks_leaves_nothing_in_the_spool(api: Api, tmp_path: Path) -> None:
    payload = json.dumps({"hook_event_name": "SessionStart", "session_id": "o", "cwd": LEDGER}).encode()
    command = [sys.executable, "-I", "-S", hook.__file__, "ingest", "--stdin", "--recall-only"]

    def run() -> bytes:
        done = subprocess.run(
            [*command, f"--data-dir={tmp_path}"], input=payload, capture_output=True, timeout=60, check=True
        )
        assert done.stderr == b""
        return done.stdout

    assert run() == b""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "api").write_text(f"{api.socket}\n{TOKEN}\n")
    assert "never float" in json.loads(run())["hookSpecificOutput"]["additionalContext"]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_core_memory_stands_at_the_start_of_every_session(api: Api, memory: Remembered) -> None:
    with api.client() as client:
        client.command("core-append", "core-1", by="user", section="persona", content="Answers in one paragraph.")
    with contextlib.closing(Drainer(memory.database_url)) as drainer:
        catch_up(drainer)
    starts = {"hook_event_name": "SessionStart", "source": "startup", "session_id": "another"}
    for begins in (starts, {**starts, "cwd": "/home/dana/new"}, {**starts, "source": "compact"}):
        assert 'persona: "Answers in one paragraph."' in told_at(api, **begins)[1].splitlines()[2]
    told = told_at(api, **{**starts, "session_id": "atlas1", "cwd": ATLAS, "source": "compact"})[1]
    assert "persona:" in told
    assert "the user's last words:" in told


def test_what_holds_everywhere_is_told_where_memory_knows_no_project_and_nothing_else(
    api: Api, memory: Remembered
) -> None:
    new = {"hook_event_name": "SessionStart", "source": "startup", "session_id": "new", "cwd": "/home/dana/new"}
    with api.client() as client:
        for text, everywhere in (("Tabs are four blanks wide", True), ("Maps are drawn at night", False)):
            noted = {"text": text, "everywhere": everywhere, "kind": "preference", "location": ATLAS, "by": "user"}
            client.command("note", f"note-{everywhere}", **noted)
    with contextlib.closing(Drainer(memory.database_url)) as drainer:
        catch_up(drainer)
    told = told_at(api, **new)[1]
    assert "Tabs are four blanks wide" in told
    for text in ("Maps are drawn at night", "Decimal", "worked on"):
        assert text not in told
