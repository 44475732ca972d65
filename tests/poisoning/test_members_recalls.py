"""What memory says to a member's agent takes nothing from anybody else's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from uuid import uuid4

import pytest
from events import observed
from histories import drained
from poisoning.teams import ALPHA, PLAIN, Team, team_of, work
from waiting import until

from memctl.domain.events.observations import PromptSubmitted

ASKED = "Check the ownervault ledger balance, what is still wrong there?"


@pytest.fixture(params=["every project", "one project"])
def team(
    postgres_server: str,
    migrated_template: str,
    vectors: tuple[str, str],
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Team]:
    begun = observed(PromptSubmitted(line="1", text="Let us look at the garden."), session="mine", location=PLAIN)
    of = (postgres_server, migrated_template, vectors, tmp_path_factory.mktemp("api"))
    limits = (PLAIN, ALPHA) if request.param == "one project" else None
    with team_of(*of, ("liv",), projects=limits, before=[*work("owner", PLAIN, ALPHA), begun]) as team:
        theirs = observed(PromptSubmitted(line="1", text="Look."), session="livs", location=PLAIN)
        assert not team.deliver("liv", [theirs])
        drained(team.database)
        yield team


def said(team: Team, session: str, who: str = "") -> tuple[int, str]:
    hook = {"hook_event_name": "UserPromptSubmit", "session_id": session, "cwd": PLAIN, "prompt": ASKED}
    return team.ask(who, "/v1/hooks/claude-code", hook, Memctl_Delivery=uuid4().hex)


def recalled(team: Team) -> set[str]:
    drained(team.database)
    return {each["session"] for each in json.loads(team.ask("", "/v1/recalls?project=*")[1])["items"]}


def test_who_asks_in_the_owners_session_does_not_silence_memory_there(team: Team) -> None:
    said(team, "mine", "liv")
    said(team, "livs", "liv")
    until(lambda: "session/claude-code/livs" in recalled(team), "the record of what memory said to a member's agent")
    assert "session/claude-code/mine" not in recalled(team)
    assert "ownervault" in said(team, "mine")[1]


@pytest.mark.parametrize("team", ["one project"], indirect=True)
def test_what_a_members_agent_said_is_given_to_the_owner_under_the_members_name(team: Team) -> None:
    team.deliver("liv", work("liv", PLAIN))
    drained(team.database)
    hook = {"hook_event_name": "UserPromptSubmit", "cwd": PLAIN, "prompt": ASKED.replace("ownervault", "livvault")}

    def given() -> list[str]:
        asked = {**hook, "session_id": uuid4().hex}
        found = team.ask("", "/v1/hooks/claude-code", asked, Memctl_Delivery=uuid4().hex)[1]
        return [line for line in found.split("\\n") if "livvault" in line]

    until(given, "what a member's agent said")
    assert (lines := given())
    assert all("written by an agent of liv" in line for line in lines)
