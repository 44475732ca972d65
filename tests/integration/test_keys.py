"""Keys of a team: made and revoked by hand, and what each opens of a running API."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import click
import pytest
from apis import Api, problem_of, serving
from asked import ATLAS, LEDGER, Remembered, remembered
from click.testing import CliRunner
from events import observed
from servers import wait_until

from memctl.api.delivering import Delivery, sent
from memctl.cli.main import memctl as program
from memctl.domain.errors import MemctlError
from memctl.domain.event import NewEvent
from memctl.domain.notes import MemoryNoted
from memctl.domain.observations import PromptSubmitted
from memctl.domain.projects import ProjectIdentified, identified_key, project_stream
from memctl.infra.database import connect

OF_LEDGER = ("ledger", "Decimal", "invoice", "float")
"""Words of a project that a key for another is never to see."""


@pytest.fixture(scope="module")
def memory(postgres_server: str, migrated_template: str, vectors: tuple[str, str]) -> Iterator[Remembered]:
    with remembered(postgres_server, migrated_template, vectors, embedded=False) as found:
        yield found


@pytest.fixture(scope="module")
def api(memory: Remembered, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(tmp_path_factory.mktemp("api"), memory, embedder="none") as found:
        yield found


Verb = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def verb(api: Api) -> Verb:
    def run(name: str, *arguments: str) -> tuple[int, str]:
        command = program.get_command(click.Context(program), name)
        assert command is not None
        result = CliRunner(env=api.environment).invoke(command, list(arguments))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout

    return run


@pytest.fixture(scope="module")
def key(verb: Verb) -> Callable[..., str]:
    """Makes a key with those scopes, for those projects; answers its token."""

    def make(*scopes: str, projects: tuple[str, ...] = ()) -> str:
        options = [part for scope in scopes for part in ("--scope", scope)]
        options += [part for project in projects for part in ("--project", project)]
        code, out = verb("keys", "add", f"of {uuid4().hex}", *options)
        assert code == 0
        return out.strip()

    return make


def ask(api: Api, token: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
    data = None if body is None else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    method = "GET" if body is None else "POST"
    return api.ask(path, method=method, body=data, headers={"Authorization": f"Bearer {token}", **named})


def test_a_key_opens_what_its_scopes_say(api: Api, key: Callable[..., str]) -> None:
    reads, watches = key("read"), key("operate")
    assert ask(api, reads, "/v1/memories")[0] == 200
    assert json.loads(ask(api, reads, "/v1/caller")[2])["scopes"] == ["read"]
    assert problem_of(ask(api, reads, "/metrics"))["detail"] == "this key has no scope operate"
    assert ask(api, watches, "/metrics")[0] == 200
    note = {"text": "tests run with make test", "location": LEDGER}
    assert ask(api, reads, "/v1/commands/note", note, Idempotency_Key=uuid4().hex)[0] == 403
    assert ask(api, key("write"), "/v1/commands/note", note, Idempotency_Key=uuid4().hex)[0] == 200
    assert ask(api, watches, "/v1/memories")[0] == 403
    for path in ("/", "/v1/tickets", "/sessions"):
        assert ask(api, key("read", "write", "ingest", "erase", "operate"), path)[0] == 403


def test_a_key_is_listed_without_its_secret_and_refused_once_it_is_revoked(api: Api, verb: Verb) -> None:
    _, out = verb("keys", "add", "laptop", "--scope", "read", "--expires", "90d", "--json")
    made = json.loads(out)
    token = made.pop("key")
    assert ask(api, token, "/v1/health")[0] == 200
    _, out = verb("keys", "list", "--json")
    assert made in json.loads(out)
    assert token not in out
    assert token.split("_", 2)[2] not in out
    assert verb("keys", "revoke", "laptop")[0] == 0
    wait_until(lambda: ask(api, token, "/v1/health")[0] == 401, what="the refusal")
    assert made["id"] not in verb("keys", "list")[1]
    assert "revoked" in verb("keys", "list", "--all")[1]
    with pytest.raises(MemctlError, match="laptop"):
        verb("keys", "revoke", "laptop")


def test_no_secret_of_a_key_is_in_the_database(api: Api, memory: Remembered, key: Callable[..., str]) -> None:
    secret = key("read").split("_", 2)[2].encode()
    with connect(memory.database_url) as connection:
        kept = connection.execute("SELECT api_keys::text, hash FROM memctl.api_keys").fetchall()
    assert all(secret not in row.encode() and secret != hash for row, hash in kept)


def test_a_project_that_is_not_known_gets_no_key(verb: Verb) -> None:
    with pytest.raises(MemctlError, match="nothing-like-it"):
        verb("keys", "add", "x", "--project", "nothing-like-it")
    assert verb("keys", "add", "x", "--expires", "2001-01-01")[0] == 2


# --- keys for projects ---


@pytest.fixture(scope="module")
def of_atlas(key: Callable[..., str]) -> str:
    return key("read", "write", "ingest", "erase", "operate", projects=("atlas",))


READS = (
    "memories", "history", "sessions", "episodes", "tasks", "insights", "knowledge", "preferences", "bugs", "rules",
    "patterns", "projects", "search?q=how+is+money+kept", "search?q=coastline&limit=20", "guidance?task=fix+money",
    "bugs?q=TypeError", "memories?project=*", "search?q=Decimal&project=*", "context?project=*",
    "search?q=Decimal&here=/home/dana/ledger", "memories?here=/home/dana/ledger", "insights?project=*",
)  # fmt: skip


@pytest.mark.parametrize("path", READS)
def test_a_key_for_a_project_sees_nothing_of_another(api: Api, of_atlas: str, path: str) -> None:
    status, _, body = ask(api, of_atlas, f"/v1/{path}")
    assert status in (200, 404), body
    told = json.loads(body)
    for asked in ("query", "task"):
        told.pop(asked, None)
        told.get("guidance", {}).pop(asked, None)
    assert not any(word in json.dumps(told) for word in OF_LEDGER)


def test_a_key_for_a_project_sees_that_one(api: Api, of_atlas: str) -> None:
    (project,) = json.loads(ask(api, of_atlas, "/v1/projects")[2])["items"]
    assert project["name"] == "atlas"
    assert json.loads(ask(api, of_atlas, "/v1/memories")[2])["items"]
    results = json.loads(ask(api, of_atlas, "/v1/search?q=coastline+of+Iceland")[2])["results"]
    assert {each["project"] for each in results} == {"atlas"}
    assert json.loads(ask(api, of_atlas, f"/v1/things/{quote(results[0]['id'])}")[2])["item"]["project"] == "atlas"


def test_what_is_of_another_project_is_not_there_by_its_id_either(api: Api, of_atlas: str) -> None:
    with api.client() as owner:
        hidden = [
            item["id"]
            for what in ("memories", "sessions", "episodes", "tasks", "insights", "knowledge")
            for item in owner.page(what, project="ledger", limit=200)["items"]
        ]
        hidden += [hit["signature"] for hit in owner.known_bugs(project="ledger", limit=50)["hits"]]
        memories = owner.page("memories", project="ledger", limit=200)["items"]
        hidden += [each["event_id"] for item in memories for each in item["evidence"]]
    assert len(hidden) > 20
    for id in hidden:
        for path in ("things", "explain", "memories", "sessions", "events"):
            assert ask(api, of_atlas, f"/v1/{path}/{quote(id)}")[0] == 404, (path, id)
    for id in {id[:6] for id in hidden}:
        body = ask(api, of_atlas, f"/v1/things/{quote(id)}")[2].decode()
        assert not any(whole in body for whole in hidden)


def test_what_tells_of_memory_as_a_whole_is_not_for_a_key_for_a_project(api: Api, of_atlas: str) -> None:
    for path in ("stats", "core", "tail/events", "entities", "graph/x", "dead-letters", "replays"):
        assert "limited to projects" in problem_of(ask(api, of_atlas, f"/v1/{path}"))["detail"]
    assert ask(api, of_atlas, "/v1/forget/preview", {"project": "atlas"})[0] == 403
    assert ask(api, of_atlas, "/v1/memories?project=ledger")[0] == 404


def test_a_key_for_a_project_speaks_of_that_one_alone(api: Api, of_atlas: str) -> None:
    def say(name: str, **asked: Any) -> int:
        return ask(api, of_atlas, f"/v1/commands/{name}", asked, Idempotency_Key=uuid4().hex)[0]

    assert say("note", text="maps are drawn at night", location=ATLAS) == 200
    assert say("note", text="maps are drawn at night", location=LEDGER) == 403
    assert say("note", text="maps are drawn at night") == 403
    assert say("core-append", section="human", content="x", location=ATLAS) == 403
    with api.client() as owner:
        memory = owner.page("memories", project="ledger", limit=1)["items"][0]["id"]
    assert say("rate", memory=memory, value=0.0, location=ATLAS) == 404


# --- what relays deliver ---


def deliver(api: Api, token: str, *events: NewEvent) -> tuple[int, Any]:
    import msgspec

    body = json.loads(msgspec.json.encode(Delivery([sent(event) for event in events])))
    status, _, answer = ask(api, token, "/v1/events", body)
    return status, json.loads(answer)


def a_prompt(line: str, location: str, session: str = "relayed") -> NewEvent:
    payload = PromptSubmitted(line=line, text="draw the rivers first")
    return observed(payload, session=session, location=location)


def test_what_is_delivered_twice_is_kept_once(api: Api, key: Callable[..., str]) -> None:
    token, events = key("ingest"), [a_prompt("l1", ATLAS), a_prompt("l2", ATLAS)]
    assert [each["status"] for each in deliver(api, token, *events)[1]["appended"]] == ["new", "new"]
    assert [each["status"] for each in deliver(api, token, *events)[1]["appended"]] == ["duplicate", "duplicate"]


def test_a_secret_that_a_relay_let_through_is_cut_here(api: Api, memory: Remembered, key: Callable[..., str]) -> None:
    payload = PromptSubmitted(line="s1", text="use ghp_abcdefghijklmnopqrstuvwxyz0123456789 for it")
    status, _ = deliver(api, key("ingest"), observed(payload, session="secrets", location=ATLAS))
    assert status == 200
    with connect(memory.database_url) as connection:
        row = connection.execute("SELECT payload::text FROM memctl.events WHERE session_id = 'secrets'").fetchone()
    assert row is not None
    assert "ghp_" not in row[0]


def test_relays_deliver_what_clients_tell_and_nothing_else(api: Api, key: Callable[..., str]) -> None:
    stated = NewEvent(
        stream="session/claude-code/x", payload=MemoryNoted(text="x"), occurred_at=a_prompt("x", "").occurred_at,
        dedupe_key="command:note:x", actor="user",
    )  # fmt: skip
    assert deliver(api, key("ingest"), stated)[0] == 422
    assert deliver(api, key("read", "write"), a_prompt("l9", ATLAS))[0] == 403


def test_what_this_version_does_not_know_is_left_with_the_relay(api: Api, key: Callable[..., str]) -> None:
    token = key("ingest")
    for change in ({"type": "thought.read"}, {"version": 99}):
        one = {**_json(a_prompt("l1", ATLAS)), **change}
        assert problem_of(ask(api, token, "/v1/events", {"events": [one]}))["status"] == 409
    assert ask(api, token, "/v1/events", {"events": [{"type": 1}]})[0] == 422


def _json(event: NewEvent) -> dict[str, Any]:
    import msgspec

    told: dict[str, Any] = json.loads(msgspec.json.encode(sent(event)))
    return told


def test_a_key_for_a_project_delivers_that_ones_sessions_alone(api: Api, of_atlas: str) -> None:
    status, told = deliver(api, of_atlas, a_prompt("m1", ATLAS, "mixed"), a_prompt("m2", LEDGER, "mixed"))
    assert status == 200
    assert [each["status"] for each in told["appended"]] == ["new"]
    assert list(told["refused"]) == ["1"]


def test_a_new_checkout_of_the_project_is_known_by_its_remote(api: Api, memory: Remembered, verb: Verb) -> None:
    def cloned(location: str, remote: str) -> NewEvent:
        return NewEvent(
            stream=project_stream(remote), payload=ProjectIdentified(location=location, root=location, remote=remote),
            occurred_at=a_prompt("x", "").occurred_at, dedupe_key=identified_key(f"session/x{location}", location),
            actor="memctl", location=location,
        )  # fmt: skip

    from memctl.workers.drain import Drainer, catch_up

    owner = verb("keys", "add", "all", "--scope", "ingest")[1].strip()
    first = cloned("/home/ann/rivers", "github.com/acme/rivers")
    assert deliver(api, owner, first, a_prompt("r1", "/home/ann/rivers", "rivers1"))[0] == 200
    drainer = Drainer(memory.database_url)
    catch_up(drainer)
    drainer.close()
    token = verb("keys", "add", "rivers", "--scope", "ingest", "--project", "github.com/acme/rivers")[1].strip()
    clone = cloned("/home/bob/rivers", "github.com/acme/rivers")
    other = cloned("/home/bob/secret", "github.com/acme/secret")
    told = deliver(
        api, token, clone, a_prompt("b1", "/home/bob/rivers", "b"), other, a_prompt("b2", "/home/bob/secret")
    )
    assert list(told[1]["refused"]) == ["2", "3"]
