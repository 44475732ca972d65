"""Whoever says the contrary of what the owner said, or much beside it, settles nothing and silences nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from uuid import uuid4

import msgspec
import pytest
from events import observed
from histories import drained
from poisoning.teams import PLAIN, Team, team_of, work

from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.observations import PromptSubmitted, ToolCalled, ToolReturned
from memctl.infra.database import connect
from memctl.infra.log.append import append

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


def ran(session: str, command: str) -> list[NewEvent]:
    given = ToolCalled(line=f"{session}-2", tool="Bash", call=f"{session}-1", input={"command": command})
    back = ToolReturned(
        line=f"{session}-3", tool="Bash", call=f"{session}-1", text="added 12 packages in 2s", exit_code=0
    )
    return [
        observed(PromptSubmitted(line=f"{session}-1", text="Add the ledger library."), session=session, location=PLAIN),
        observed(given, session=session, at=1, actor="agent", location=PLAIN),
        observed(back, session=session, at=2, actor="tool", location=PLAIN),
    ]


def test_an_agent_that_does_otherwise_silences_no_rule(team: Team) -> None:
    rule = "We use pnpm for packages here."
    say(team, "", "note", text=rule)
    assert rule in given(team)
    with connect(team.database) as connection:
        append(connection, 1, [event for n in range(4) for event in ran(f"runs{n}", "npm install ledger")])
    drained(team.database)
    (known,) = [
        each for each in json.loads(team.ask("", "/v1/knowledge?project=*")[1])["items"] if "package" in each["subject"]
    ]
    assert len(known["claims"]) == 2
    assert (known["text"], known["status"]) == (rule, "verified")
    assert rule in given(team)


def test_nor_a_claim_of_an_agents_that_a_person_approved(team: Team) -> None:
    rule = "We use pnpm for packages here."
    note = say(team, "", "note", text=rule, by="agent")
    say(team, "", "verify-knowledge", claim=note)
    assert rule in given(team)
    with connect(team.database) as connection:
        append(connection, 1, [event for n in range(4) for event in ran(f"runs{n}", "npm install ledger")])
    drained(team.database)
    assert rule in given(team)


def test_however_much_members_say_the_owners_word_of_a_file_is_given(team: Team) -> None:
    say(team, "", "note", text="We keep all of quillgneiss in ledger_dates.py here.")
    edits = {"hook_event_name": "PreToolUse", "session_id": uuid4().hex, "cwd": PLAIN, "tool_name": "Edit"}
    edits["tool_input"] = {"file_path": f"{PLAIN}/ledger_dates.py", "old_string": "a", "new_string": "b"}
    assert "quillgneiss" in team.ask("", "/v1/hooks/claude-code", edits)[1]
    for n in range(201):
        body = {"by": "user", "location": PLAIN, "text": f"We keep the dates of house {n} in ledger_dates.py here."}
        assert team.ask("liv", "/v1/commands/note", body, Idempotency_Key=uuid4().hex)[0] == 200
    drained(team.database)
    answer = team.ask("", "/v1/hooks/claude-code", edits | {"session_id": uuid4().hex})[1]
    assert "quillgneiss" in answer
    assert "house" not in answer


def test_however_much_members_say_the_owners_preferences_are_listed(team: Team) -> None:
    say(team, "", "note", text="I prefer quillgneiss for the stairs.", kind="preference")
    for n in range(201):
        body = {"by": "user", "location": PLAIN, "text": f"We like quillstone{n} for house {n}.", "kind": "preference"}
        assert team.ask("liv", "/v1/commands/note", body, Idempotency_Key=uuid4().hex)[0] == 200
    drained(team.database)
    assert "quillgneiss" in team.ask("", f"/v1/preferences?here={PLAIN}")[1]


def test_what_members_say_of_other_rules_puts_none_before_the_owners_newest(team: Team) -> None:
    things = ["stairs", "walls", "gates", "floors", "roofs", "windows", "cellars", "chimneys", "ponds"]
    for n, thing in enumerate(things):
        say(team, "", "note", text=f"We use quill{n}{thing} for the {thing}.")
    assert "quill8ponds" in given(team)
    for n, thing in enumerate(things[:-1]):
        say(team, "liv", "note", text=f"We never use quill{n}{thing} for the {thing}.")
    assert "quill8ponds" in given(team)


def survives(team: Team, session: str) -> str:
    hook = {"hook_event_name": "SessionStart", "session_id": session, "cwd": PLAIN, "source": "compact"}
    return team.ask("", "/v1/hooks/claude-code", hook)[1]


def test_whatever_members_settle_in_the_owners_session_what_the_owner_settled_survives_in_it(team: Team) -> None:
    begun = observed(PromptSubmitted(line="1", text="Let us look at the garden."), session="mine", location=PLAIN)
    with connect(team.database) as connection:
        append(connection, 1, [begun])
    drained(team.database)
    owns = {"decide": "The wall is made of quillgneiss.", "discovery": "The gate is made of quilloak.",
            "hypothesis-propose": "The rain wears the quilllime."}  # fmt: skip
    say(team, "liv", "decide", text="The fence", session="mine")
    say(team, "", "decide", text="The fence is made of quillbeech.", session="mine")
    for name, text in owns.items():
        say(team, "", name, text=text, session="mine")
    before = survives(team, "mine")
    assert [word for word in ("quillgneiss", "quilloak", "quilllime", "quillbeech") if word not in before] == []
    for name in owns:
        for n in range(12):
            say(team, "liv", name, text=f"The house number {n} is made of stone {name}.", session="mine")
    say(team, "liv", "decide", text=owns["decide"], session="mine")
    say(team, "liv", "discovery", text=owns["discovery"], session="mine")
    say(team, "liv", "hypothesis-update", hypothesis=owns["hypothesis-propose"], status="rejected", session="mine")
    after = survives(team, "mine")
    assert [word for word in ("quillgneiss", "quilloak", "quilllime", "quillbeech") if word not in after] == []
    assert "stone" not in after


def written(session: str, path: str, text: str) -> list[NewEvent]:
    given = {"file_path": path, "content": text}
    called = ToolCalled(line="2", tool="Write", call=f"{session}-1", input=given)
    back = ToolReturned(line="3", tool="Write", call=f"{session}-1", text="ok", file=path)
    asks = PromptSubmitted(line="1", text="Write down how the stairs are made.")
    return [
        observed(asks, session=session, location=PLAIN),
        observed(called, session=session, at=1, actor="agent", location=PLAIN),
        observed(back, session=session, at=2, actor="tool", location=PLAIN),
    ]


STAIRS = "# Stairs\n\n## Stones\n\nNobody uses quillgneiss for the stairs of the house any more, they use quillslate.\n"


def test_no_file_on_a_members_machine_stands_for_the_owners_rule(team: Team) -> None:
    say(team, "", "note", text=RULE)
    assert team.deliver("liv", written("livs", f"{PLAIN}/CLAUDE.md", STAIRS)) == {}
    drained(team.database)
    assert RULE in given(team)


def test_what_is_stated_without_a_session_goes_into_none_that_another_began(team: Team) -> None:
    now = Micros(time.time_ns() // 1000)
    mine, livs = (
        msgspec.structs.replace(
            observed(PromptSubmitted(line=f"{who}-1", text="Let us look at the garden."), session=who, location=PLAIN),
            occurred_at=Micros(now - ago),
        )
        for who, ago in (("mine", 20_000_000), ("livs", 10_000_000))
    )
    with connect(team.database) as connection:
        append(connection, 1, [mine])
    assert team.deliver("liv", [livs]) == {}
    drained(team.database)
    for who, session in (("", "mine"), ("liv", "livs")):
        body = {"by": "agent", "location": PLAIN, "text": "The wall is made of stone."}
        status, answer = team.ask(who, "/v1/commands/decide", body, Idempotency_Key=uuid4().hex)
        assert (status, json.loads(answer)["stream"]) == (200, f"session/claude-code/{session}")
