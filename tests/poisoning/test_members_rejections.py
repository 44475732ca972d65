"""A member takes back their own word, and nobody else's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from uuid import uuid4

import pytest
import servers
from apis import serving
from asked import Remembered
from histories import drained
from poisoning.test_members import PLAIN, Team, work

from memctl.infra import api_keys
from memctl.infra.database import connect
from memctl.infra.log.append import append
from memctl.infra.readmodels import generations

CLAIM = "We use quillgneiss for the stairs."


@pytest.fixture
def team(
    postgres_server: str, migrated_template: str, vectors: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Team]:
    url, token = vectors
    with servers.fresh_database(postgres_server, template=migrated_template) as database:
        with connect(database) as connection:
            generations.ensure_live(connection, 2)
            scopes = ("read", "write", "ingest")
            keys = {who: [api_keys.make(connection, "default", who, scopes, (PLAIN,))[1]] for who in ("max", "liv")}
            append(connection, 1, work("owner", PLAIN))
        drained(database)
        memory = Remembered(database, url, token, "none")
        with serving(tmp_path_factory.mktemp("api"), memory, embedder="none") as api:
            yield Team(api, database, keys)


def say(team: Team, who: str, name: str, **asked: object) -> tuple[int, str]:
    body = {"by": "user", "location": PLAIN, **asked}
    answer = team.ask(who, f"/v1/commands/{name}", body, Idempotency_Key=uuid4().hex)
    drained(team.database)
    return answer


def known(team: Team) -> bool:
    return "quillgneiss" in team.ask("max", "/v1/knowledge?project=*&limit=200")[1]


@pytest.mark.parametrize("times", [1, 8])
def test_who_says_it_often_enough_does_not_take_back_anothers_word(team: Team, times: int) -> None:
    assert say(team, "max", "note", text=CLAIM)[0] == 200
    assert known(team)
    for _ in range(times):
        status, answer = say(team, "liv", "note", text=CLAIM)
        assert status == 200
    status, _ = say(team, "liv", "reject", claim=json.loads(answer)["event_id"][:8])
    assert (status, known(team)) == (422, True)
