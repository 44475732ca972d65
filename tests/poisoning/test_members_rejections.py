"""A member takes back their own word, and nobody else's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from uuid import uuid4

import pytest
from histories import drained
from poisoning.teams import PLAIN, Team, team_of, work

CLAIM = "We use quillgneiss for the stairs."


@pytest.fixture
def team(
    postgres_server: str, migrated_template: str, vectors: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Team]:
    data, before = tmp_path_factory.mktemp("api"), work("owner", PLAIN)
    of = (postgres_server, migrated_template, vectors, data)
    with team_of(*of, ("max", "liv"), projects=(PLAIN,), before=before) as team:
        yield team


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
