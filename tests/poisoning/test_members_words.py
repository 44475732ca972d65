"""What a member says of themselves comes to no other member by any way that they may ask."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote
from uuid import uuid4

import pytest
from histories import drained
from poisoning.teams import Team, team_of

HERE = "/home/ida/private"
SAID = {
    "an I": "I like quillshort commit messages in every change.",
    "a small i": "i like quillsmall commit messages in every change.",
    "an I'm": "I'm slow to read quillmaps without their colours.",
}
CANARIES = {
    name: next(word.strip(".") for word in text.split() if word.startswith("quill")) for name, text in SAID.items()
}
PATHS = (
    "knowledge",
    "insights",
    "candidates",
    "memories",
    "preferences",
    "waiting",
    "core",
    "consolidation",
    "resolutions",
    "guidance",
    "context",
    "activity",
    "strategies",
    "recalls",
    "hindsight",
    "history",
    "tasks",
    "sessions",
    "projects",
    "episodes",
    "stats",
    "health",
    "project",
)


@pytest.fixture(scope="module")
def team(
    postgres_server: str, migrated_template: str, vectors: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Team, dict[str, str]]]:
    scopes, data = ("read", "write", "ingest", "operate"), tmp_path_factory.mktemp("api")
    with team_of(postgres_server, migrated_template, vectors, data, ("ida", "jon"), scopes=scopes) as team:
        events = {}
        for text in SAID.values():
            body = {"by": "user", "location": HERE, "text": text}
            status, answer = team.ask("ida", "/v1/commands/note", body, Idempotency_Key=uuid4().hex)
            assert status == 200, answer
            events[text] = json.loads(answer)["event_id"]
        drained(team.database)
        yield team, events


def answers(team: Team, who: str, events: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    items = json.loads(team.ask("ida", "/v1/insights?project=*&limit=200")[1])["items"]
    known = json.loads(team.ask("ida", "/v1/memories?project=*&limit=200")[1])["items"]
    ids = [each["id"] for each in (*items, *known)]
    for path in PATHS:
        for asked in ("?project=*&limit=200", "?project=*", "", f"?here={quote(HERE)}"):
            found[f"{path}{asked}"] = team.ask(who, f"/v1/{path}{asked}")[1]
    for id in (*ids, *events.values()):
        for path in ("explain", "things", "memories", "events"):
            found[f"{path}/{id}"] = team.ask(who, f"/v1/{path}/{id}")[1]
    words = " ".join((*CANARIES.values(), "commit messages change sources"))
    for path in ("search", "ask", "bugs"):
        body = {"q": "commit messages in every change", "text": "x", "project": "*"}
        found[path] = team.ask(who, f"/v1/{path}", body)[1]
    found["hooks"] = team.given(who, HERE)
    starts = {"hook_event_name": "SessionStart", "session_id": uuid4().hex, "cwd": HERE, "source": "startup"}
    found["start"] = team.ask(who, "/v1/hooks/claude-code", starts)[1]
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": uuid4().hex, "cwd": HERE, "prompt": words}
    found["prompt"] = team.ask(who, "/v1/hooks/claude-code", prompt)[1].replace(words, "")
    return found


@pytest.mark.parametrize("name", list(SAID))
def test_no_answer_shows_it_to_another_member(team: tuple[Team, dict[str, str]], name: str) -> None:
    canary = CANARIES[name]
    own = answers(team[0], "ida", team[1])
    assert any(canary in answer for answer in own.values())
    shown = answers(team[0], "jon", team[1])
    leaks = [path for path, answer in shown.items() if canary in answer]
    assert leaks == []


def count(page: str) -> str:
    return page.partition('<span class="count">')[2].partition("<")[0]


@pytest.mark.parametrize("name", list(SAID))
def test_no_count_of_what_holds_a_text_says_that_it_is_there(team: tuple[Team, dict[str, str]], name: str) -> None:
    """Who may ask for any text, and hears how many claims hold it, reads them letter by letter."""
    pages = {who: team[0].ask(who, f"/knowledge?project=*&text={CANARIES[name]}")[1] for who in ("ida", "jon")}
    assert {who: count(page) for who, page in pages.items()} == {"ida": "1", "jon": "0"}


def test_no_page_leads_on_to_what_it_does_not_show(team: tuple[Team, dict[str, str]]) -> None:
    """With as many claims of one's own before it as a page has."""
    for n in range(40):
        body = {"by": "user", "location": HERE, "text": f"We use quillshore{n} and quillshort for stair {n}."}
        assert team[0].ask("jon", "/v1/commands/note", body, Idempotency_Key=uuid4().hex)[0] == 200
    drained(team[0].database)
    asked = "/knowledge?project=*&text={}"
    holding, not_holding = (team[0].ask("jon", asked.format(text))[1] for text in ("quillshort", "quillshore"))
    assert ("cursor=" in holding, count(holding)) == ("cursor=" in not_holding, count(not_holding)) == (False, "40")
