"""Two spaces of one database through one API: who has a key of one sees, counts and waits for nothing of the other."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import msgspec
import pytest
import servers
from apis import Api, problem_of
from asked import LEDGER, Remembered, remembered
from draining import catch_up
from events import observed
from histories import example

from memctl.api.http.access import Keyring
from memctl.api.reading.reader import Readers
from memctl.api.write.remote_ingest import Delivery, sent
from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import PromptSubmitted
from memctl.infra import api_keys
from memctl.infra.api_keys import SCOPES
from memctl.infra.database import connect
from memctl.infra.log.append import append
from memctl.infra.log.spaces import space_id
from memctl.infra.readmodels import generations
from memctl.infra.vectors import store
from memctl.workers.folding.drain import Drainer
from memctl.workers.vectors.outbox_publisher import OutboxPublisher

LAB = "lab"

OF_DEFAULT = ("ledger", "Decimal", "coastline", "atlas", "dana", "Iceland")
"""Words of the other space."""

WORKSHOP = "/home/lee/workshop"


def prompts(*texts: str, session: str, location: str = WORKSHOP) -> list[NewEvent]:
    return [
        observed(PromptSubmitted(line=f"{session}-{n}", text=text), session=session, at=60 * n, location=location)
        for n, text in enumerate(texts)
    ]


@pytest.fixture(scope="module")
def memory(postgres_server: str, migrated_template: str, vectors: tuple[str, str]) -> Iterator[Remembered]:
    with remembered(postgres_server, migrated_template, vectors, embedded=False) as found:
        with connect(found.database_url) as connection:
            lab = space_id(connection, LAB)
            said = ("Always solder the quartz oscillator first.", "The kiln is at 900 degrees from now on.")
            append(connection, lab, prompts(*said, session="lab1"))
        fold(found)
        publish(found)
        yield found


def fold(memory: Remembered) -> None:
    drainer = Drainer(memory.database_url)
    catch_up(drainer)
    drainer.close()


def publish(memory: Remembered) -> None:
    with (
        connect(memory.database_url) as connection,
        contextlib.closing(store.connect(memory.qdrant_url, memory.qdrant_api_key)) as client,
    ):
        outbox = OutboxPublisher(connection, client, generations.live(connection).stage2)
        while outbox.sync():
            pass


def key_of(memory: Remembered, space: str, *projects: str) -> str:
    with connect(memory.database_url) as connection:
        return api_keys.make(connection, space, f"of {uuid4().hex}", SCOPES, projects or None)[1]


@pytest.fixture(scope="module")
def of_lab(memory: Remembered) -> str:
    return key_of(memory, LAB)


def ask(api: Api, token: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
    data = None if body is None else json.dumps(body).encode()
    named = {"Content-Type": "application/json"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    method = "GET" if body is None else "POST"
    return api.ask(path, method=method, body=data, headers={"Authorization": f"Bearer {token}", **named})


POSTED: dict[str, dict[str, Any]] = {
    "/v1/search": {"q": "coastline Decimal quartz oscillator", "project": "*"},
    "/v1/bugs": {"text": "TypeError: unsupported operand type(s)", "project": "*"},
    "/v1/ask": {"kind": "how_to", "text": "why is money kept as Decimal", "project": "*"},
    "/v1/forget/preview": {"match": "quartz"},
}

PAGES = (
    "/", "/search?q=coastline+quartz", "/sessions", "/work", "/bugs", "/knowledge", "/hindsight", "/projects",
    "/engine",
)  # fmt: skip

GIVEN = {
    "/v1/search": "?q=coastline+Decimal+quartz&project=*", "/v1/bugs": "?q=TypeError&project=*",
    "/v1/guidance": "?task=draw+the+coastline", "/v1/project": "?project=ledger",
}  # fmt: skip


def walked(api: Api, token: str) -> dict[str, tuple[int, str]]:
    """What a key is answered at every route that reads, but for where the log stands and what was asked itself."""
    with api.client() as owner:
        paths = owner.get("/v1/openapi.json")["paths"]
    asked = [
        f"{path}{GIVEN.get(path, '?project=*')}" for path, how in paths.items() if "get" in how and "{" not in path
    ]
    asked += [path for path in paths if "get" in paths[path] and "{" not in path]
    tails = ("/v1/tail/", "/healthz", "/readyz", "/v1/openapi.json")
    found: dict[str, tuple[int, str]] = {}
    for path in [*sorted(set(asked)), *PAGES, *POSTED]:
        if path.startswith(tails):
            continue
        status, _, body = ask(api, token, path, POSTED.get(path))
        found[path] = status, steady(body.decode())
    return found


POSITIONS = re.compile(r'"(last_position|mark|position|lag)":\d+|memctl_(log_mark|request_seconds)\w*(\{[^}]*\})? \S+')
MOMENTS = re.compile(r'"took_ms":[\d.]+| in \d+ ms|\d{4}-\d\d-\d\dT[\d:.+Z-]+|\d+ (second|minute|hour)s? ago')


def steady(text: str) -> str:
    return MOMENTS.sub("", POSITIONS.sub("", text))


def test_a_key_of_one_space_is_shown_nothing_of_another_at_any_route(api: Api, of_lab: str) -> None:
    seen = walked(api, of_lab)
    assert len(seen) > 40
    assert {status for status, _ in seen.values()} <= {200, 403, 404, 422}
    asked = ("coastline Decimal quartz oscillator", "coastline+Decimal+quartz", "coastline Decimal quartz",
             "draw the coastline", "why is money kept as Decimal", "coastline quartz", "coastline+quartz")  # fmt: skip
    for path, (status, text) in seen.items():
        if status == 200:
            for each in asked:
                text = text.replace(each, "")
            assert not [word for word in OF_DEFAULT if word in text], path
    for path in ("/v1/memories", "/v1/sessions?project=*", "/v1/stats", "/metrics", *PAGES[:-1], *POSTED):
        assert seen[path][0] == 200, (path, seen[path])
    assert "quartz oscillator" in seen["/v1/memories?project=*"][1]
    for path in ("/engine", "/v1/replays"):
        assert seen[path][0] == 403


def test_nor_is_a_key_that_is_limited_to_a_project_of_its_space(api: Api, memory: Remembered) -> None:
    for places in ((WORKSHOP,), (LEDGER,)):
        seen = walked(api, key_of(memory, LAB, *places))
        assert {status for status, _ in seen.values()} <= {200, 403, 404, 422}
        for path in ("/v1/memories", "/v1/sessions?project=*", "/v1/search", "/"):
            assert seen[path][0] == 200, path
        shown = {path: text for path, (status, text) in seen.items() if status == 200 and "q=" not in path}
        assert not [
            path for path, text in shown.items() if "Douglas" in text or ("Decimal" in text and path not in POSTED)
        ]


def test_what_another_space_gets_changes_no_answer(api: Api, memory: Remembered, of_lab: str) -> None:
    before = walked(api, of_lab)
    with connect(memory.database_url) as connection:
        append(connection, 1, [event for number in range(3, 6) for event in example(number, day=number + 2)])
    fold(memory)  # and nothing is published: its points wait
    after = walked(api, of_lab)
    assert {path: (before[path], after[path]) for path in before if before[path] != after[path]} == {}


def test_what_is_of_another_space_is_not_there_by_its_id(api: Api, of_lab: str) -> None:
    with api.client() as owner:
        items = owner.page("memories", dict, project="ledger", limit=6).json["items"]
        hidden = [item["id"] for item in items] + [e["event_id"] for item in items for e in item["evidence"]]
        hidden += [each["id"] for each in owner.page("insights", dict, project="ledger", limit=6).json["items"]]
        hidden += [each["signature"] for each in owner.known_bugs(project="ledger", limit=6).json["hits"]]
    assert len(hidden) > 10
    for id in hidden:
        for path in ("things", "explain", "memories", "events"):
            assert ask(api, of_lab, f"/v1/{path}/{id}")[0] == 404, (path, id)


def test_what_is_folded_and_published_of_one_space_is_waited_for_by_that_alone(
    api: Api, memory: Remembered, of_lab: str
) -> None:
    with connect(memory.database_url, autocommit=False) as sleeper, connect(memory.database_url) as connection:
        (appended,) = append(connection, 1, prompts("Money is kept in Decimal.", session="more", location=LEDGER))
        fold(memory)
        append(sleeper, 1, prompts("Nothing is committed yet.", session="sleeps", location=LEDGER))
        assert ask(api, of_lab, f"/v1/sessions?min_position={appended.position}")[0] == 200
        (own,) = append(connection, space_id(connection, LAB), prompts("Glaze it twice.", session="lab2"))
        fold(memory)
        publish(memory)
        status, _, body = ask(api, of_lab, f"/v1/sessions?project=*&min_position={own.position}")
        assert (status, "lab2" in body.decode()) == (200, True)
        sleeper.rollback()


def test_what_a_key_records_is_of_its_space(api: Api, memory: Remembered, of_lab: str) -> None:
    note = {"text": "the glaze is blue", "location": WORKSHOP}
    status, _, body = ask(api, of_lab, "/v1/commands/note", note, Idempotency_Key=uuid4().hex)
    assert status == 200
    events = prompts("polish the lens", session="lab3")
    delivery = json.loads(msgspec.json.encode(Delivery([sent(event) for event in events])))
    assert ask(api, of_lab, "/v1/events", delivery)[0] == 200
    with connect(memory.database_url) as connection:
        rows = connection.execute(
            "SELECT s.name, e.type FROM memctl.events e JOIN memctl.spaces s USING (space_id)"
            " WHERE event_id = %s OR stream LIKE '%%lab3'",
            [json.loads(body)["event_id"]],
        ).fetchall()
    assert len(rows) == 2
    assert {space for space, _ in rows} == {LAB}


def test_what_is_forgotten_with_a_key_is_recorded_and_gone_in_its_space_alone(
    api: Api, memory: Remembered, of_lab: str
) -> None:
    said = "The same words stand in both spaces: verdigris."
    with connect(memory.database_url) as connection:
        for space in (1, space_id(connection, LAB)):
            append(connection, space, prompts(said, session="verdigris"))
    fold(memory)
    publish(memory)
    assert ask(api, of_lab, "/v1/forget", {"match": "verdigris"}, Idempotency_Key=uuid4().hex)[0] == 200
    with connect(memory.database_url) as connection:
        left = connection.execute(
            "SELECT name, payload IS NULL FROM memctl.events JOIN memctl.spaces USING (space_id)"
            " WHERE stream LIKE '%%verdigris' AND type = 'prompt.submitted' ORDER BY 1"
        ).fetchall()
        recorded = connection.execute(
            "SELECT DISTINCT name FROM memctl.events JOIN memctl.spaces USING (space_id) WHERE type = 'content.erased'"
        ).fetchall()
    assert left == [("default", False), (LAB, True)]
    assert recorded == [(LAB,)]


def test_the_same_command_under_one_key_is_carried_out_in_each_space(api: Api, memory: Remembered) -> None:
    same, note = uuid4().hex, {"text": "tea is at four", "location": WORKSHOP}
    done = [
        json.loads(ask(api, key_of(memory, space), "/v1/commands/note", note, Idempotency_Key=same)[2])
        for space in (LAB, "default")
    ]
    assert [each["status"] for each in done] == ["new", "new"]


def test_a_key_opens_its_own_space_and_the_token_any_that_is_there(api: Api, of_lab: str) -> None:
    assert problem_of(ask(api, of_lab, "/v1/memories", Memctl_Space="default"))["status"] == 421
    assert ask(api, of_lab, "/v1/memories", Memctl_Space=LAB)[0] == 200
    own, lab = (
        json.loads(api.ask("/v1/sessions?project=*", headers={"Memctl-Space": space})[2])["items"]
        for space in ("default", LAB)
    )
    assert {each["session_id"] for each in own}.isdisjoint({each["session_id"] for each in lab})
    assert any("lab1" in each["session_id"] for each in lab)
    assert problem_of(api.ask("/v1/memories", headers={"Memctl-Space": "nowhere"}))["status"] == 421


def test_a_key_of_a_space_that_holds_nothing_is_kept_apart_and_one_that_is_alone_is_not(
    api: Api, memory: Remembered, postgres_server: str, migrated_template: str
) -> None:
    with connect(memory.database_url) as connection:
        space_id(connection, "new")
    assert ask(api, key_of(memory, "new"), "/v1/replays")[0] == 403
    with servers.fresh_database(postgres_server, template=migrated_template) as url, connect(url) as connection:
        generations.ensure_live(connection, 1)
        append(connection, space_id(connection, LAB), prompts("alone", session="lab1"))
        _, token = api_keys.make(connection, LAB, "lee", ["operate"])
        _, other = api_keys.make(connection, "default", "kim", ["operate"])
        readers = Readers(url, LAB)
        keyring = Keyring(readers)
        assert [getattr(keyring.caller(each), "apart", None) for each in (token, other)] == [False, True]
        readers.close()


def test_figures_are_labelled_by_space_and_a_key_is_given_its_own(api: Api, memory: Remembered, of_lab: str) -> None:
    def labels(text: str) -> set[str]:
        return set(re.findall(r'space="([^"]*)"', text))

    own, every = ask(api, of_lab, "/metrics")[2].decode(), api.ask("/metrics")[2].decode()
    assert labels(own) == {LAB}
    assert labels(every) >= {LAB, "default"}
    shared = {line.split("{")[0].split(" ")[0] for line in own.splitlines() if not line.startswith("#")}
    assert not shared & {"memctl_log_position", "memctl_log_bytes", "memctl_shard_lag", "memctl_llm_spent_usd"}
    assert "memctl_log_bytes" in every


def test_a_key_that_is_revoked_in_one_space_is_revoked_there_alone(memory: Remembered) -> None:
    with connect(memory.database_url) as connection:
        made, _ = api_keys.make(connection, LAB, "kim", ["read"])
        with pytest.raises(api_keys.NoKey):
            api_keys.revoke(connection, "default", made.id)
        assert api_keys.revoke(connection, LAB, "kim").id == made.id
