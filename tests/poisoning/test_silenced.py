"""Whoever says the contrary of what the owner said, or much beside it, settles nothing and silences nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from uuid import uuid4

import pytest
from histories import drained
from poisoning.teams import PLAIN, Team, team_of, work

RULE, CONTRARY = "We use quillgneiss for the stairs.", "We never use quillgneiss for the stairs."


@pytest.fixture
def team(
    postgres_server: str, migrated_template: str, vectors: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Team]:
    of = (postgres_server, migrated_template, vectors, tmp_path_factory.mktemp("api"))
    with team_of(*of, ("liv",), projects=(PLAIN,), before=work("owner", PLAIN)) as team:
        yield team


def say(team: Team, who: str, name: str, **asked: str) -> str:
    body = {"by": "user", "location": PLAIN, **asked}
    status, answer = team.ask(who, f"/v1/commands/{name}", body, Idempotency_Key=uuid4().hex)
    assert status == 200, answer
    drained(team.database)
    return str(json.loads(answer)["event_id"])


def given(team: Team) -> str:
    starts = {"hook_event_name": "SessionStart", "session_id": uuid4().hex, "cwd": PLAIN, "source": "startup"}
    asks = starts | {"hook_event_name": "UserPromptSubmit", "prompt": "Which stones are the stairs made of here?"}
    return "\n".join(team.ask("", "/v1/hooks/claude-code", each)[1] for each in (starts, asks))


def test_the_owners_rule_is_given_as_before(team: Team) -> None:
    say(team, "", "note", text=RULE)
    assert RULE in given(team)
    say(team, "liv", "note", text=CONTRARY)
    assert RULE in given(team)
    assert CONTRARY not in given(team)


def test_so_is_what_an_agent_said_and_the_owner_approved(team: Team) -> None:
    note = say(team, "", "note", text=RULE, by="agent")
    say(team, "", "verify-knowledge", claim=note)
    assert RULE in given(team)
    say(team, "liv", "note", text=CONTRARY)
    assert RULE in given(team)
    assert CONTRARY not in given(team)


def test_what_the_owner_says_of_it_later_is_at_odds_with_what_the_owner_said(team: Team) -> None:
    say(team, "", "note", text=RULE)
    say(team, "liv", "note", text=CONTRARY)
    say(team, "", "note", text=CONTRARY)
    (known,) = json.loads(team.ask("", "/v1/knowledge?project=*")[1])["items"]
    assert (known["text"], known["status"]) == (CONTRARY, "conflicted")


def test_nothing_of_it_is_given_beside_what_the_owner_said(team: Team) -> None:
    say(team, "", "note", text="We use pnpm for packages here, never npm.")
    say(team, "liv", "note", text="We use yarn for packages here.")
    asks = {"hook_event_name": "UserPromptSubmit", "session_id": uuid4().hex, "cwd": PLAIN}
    asks["prompt"] = "Which package manager do we use for packages here, pnpm or npm?"
    answer = team.ask("", "/v1/hooks/claude-code", asks)[1]
    assert "pnpm" in answer
    assert "yarn" not in answer


def test_however_much_members_say_the_owners_rule_is_given(team: Team) -> None:
    say(team, "", "note", text=RULE)
    for n in range(101):
        body = {"by": "user", "location": PLAIN, "text": f"We use quillstone{n} for the wall of house {n}."}
        assert team.ask("liv", "/v1/commands/note", body, Idempotency_Key=uuid4().hex)[0] == 200
    drained(team.database)
    assert RULE in given(team)


def test_however_many_sections_agents_write_the_owners_core_memory_is_given(team: Team) -> None:
    say(team, "", "core-append", section="persona", content="Answer in short sentences of quillgneiss.")
    assert "quillgneiss" in given(team)
    for n in range(101):
        body = {"by": "agent", "location": PLAIN, "section": f"notes{n}", "content": f"House {n} has a wall."}
        assert team.ask("", "/v1/commands/core-append", body, Idempotency_Key=uuid4().hex)[0] == 200
    drained(team.database)
    assert "quillgneiss" in given(team)
