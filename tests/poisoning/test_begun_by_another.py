"""A session is of whoever began it: no member brings anything into another's, nor settles what it left open."""

from __future__ import annotations

import json
from collections.abc import Iterator
from uuid import uuid4

import pytest
from events import observed
from histories import drained
from poisoning.teams import PLAIN, Team, team_of, work

from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import PromptSubmitted, SessionEnded, ToolCalled, ToolFailed, ToolReturned

NOT_BEGUN = "of a session that somebody else began"


def used(
    line: str, tool: str, given: dict[str, str], text: str, *, failed: bool = False, at: int = 5, session: str = "mine"
) -> list[NewEvent]:
    called = ToolCalled(line=f"{line}1", tool=tool, call=line, input=given)
    back = (ToolFailed if failed else ToolReturned)(line=f"{line}2", tool=tool, call=line, text=text)
    return [
        observed(called, session=session, at=at, actor="agent", location=PLAIN),
        observed(back, session=session, at=at + 1, actor="tool", location=PLAIN),
    ]


def failing(session: str, name: str) -> list[NewEvent]:
    text = f"Exit code 1\nE   KeyError: '{name}'"
    return [
        observed(PromptSubmitted(line="1", text="Let us mend the ledger."), session=session, location=PLAIN),
        *used("test", "Bash", {"command": "pytest"}, text, failed=True, at=3, session=session),
    ]


MINE = [
    *failing("mine", "quillgneiss"),
    *used("own", "Read", {"file_path": f"{PLAIN}/quillown.py"}, "x = 1", at=7),
]


@pytest.fixture(scope="module")
def team(
    postgres_server: str, migrated_template: str, vectors: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Team]:
    of = (postgres_server, migrated_template, vectors, tmp_path_factory.mktemp("api"))
    with team_of(*of, ("kim", "kim"), before=[*work("owner", PLAIN), *MINE]) as team:
        yield team


def at_work(team: Team) -> tuple[list[str], list[str], bool]:
    """The files of the owner's session, the errors that stand open in it, and whether it goes on."""
    drained(team.database)
    found = json.loads(team.ask("", "/v1/context?session=mine")[1])
    errors = [each["message"] for each in found["errors"] if not each.get("resolution")]
    return [each["path"] for each in found["files"]], errors, found["ended_at"] is None


def test_what_a_key_sends_into_the_owners_session_is_left_out(team: Team) -> None:
    before = at_work(team)
    assert "quillown.py" in str(before)
    assert "KeyError" in str(before)
    ring = [e for n in range(30) for e in used(f"k{n}", "Read", {"file_path": f"{PLAIN}/ring{n}.py"}, "y", at=20 + n)]
    mends = used("fix", "Bash", {"command": "pytest"}, "12 passed in 1s", at=60)
    ends = observed(SessionEnded(line="end", reason="exit"), session="mine", at=70, actor="system", location=PLAIN)
    sent = [*ring, *mends, ends]
    assert team.deliver("kim", sent) == {str(n): NOT_BEGUN for n in range(len(sent))}
    assert at_work(team) == before


def test_what_stands_there_is_a_duplicate_as_ever(team: Team) -> None:
    """A transcript that its owner read here, and that a relay of the owner's sends, too."""
    assert team.deliver("kim", MINE) == {}


def test_a_member_goes_on_in_a_session_of_the_members_own_with_another_key(team: Team) -> None:
    own = [observed(PromptSubmitted(line=f"{n}", text=f"Look {n}."), session="kims", at=n) for n in range(2)]
    assert team.deliver("kim", own[:1]) == {}
    assert team.deliver("kim", own[1:], number=1) == {}


def settle(team: Team, who: str, episode: str) -> int:
    body = {"by": "user", "location": PLAIN, "condition": episode, "resolution": "rejected"}
    return team.ask(who, "/v1/commands/resolve", body, Idempotency_Key=uuid4().hex)[0]


def open_there(team: Team, who: str, session: str) -> tuple[str, list[str]]:
    """What is said of the project there, and the ids of what that session worked on."""
    drained(team.database)
    items = json.loads(team.ask(who, f"/v1/episodes?here={PLAIN}&limit=200")[1])["items"]
    known = team.ask(who, f"/v1/project?here={PLAIN}")[1]
    return known, [each["id"] for each in items if each["stream"].endswith(f"/{session}")]


def test_no_member_settles_what_the_owners_session_left_open(team: Team) -> None:
    known, ids = open_there(team, "", "mine")
    assert "quillgneiss" in known
    for who, status in (("kim", 422), ("", 200)):
        assert "quillgneiss" in open_there(team, "", "mine")[0]
        assert [settle(team, who, each) for each in ids] == [status]
    assert "quillgneiss" not in open_there(team, "", "mine")[0]


def test_a_member_settles_what_a_session_of_the_members_own_left_open(team: Team) -> None:
    assert team.deliver("kim", failing("at-kims", "quillslate")) == {}
    known, ids = open_there(team, "kim", "at-kims")
    assert "quillslate" in known
    assert [settle(team, "kim", each) for each in ids] == [200]
    assert "quillslate" not in open_there(team, "kim", "at-kims")[0]
