"""What a member says of themselves stays theirs beside what others say of the same subject."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote
from uuid import uuid4

import pytest
from histories import drained
from poisoning.teams import PLAIN, Team, team_of, work

THEIRS = "I prefer yarn instead of pnpm since my quillhand shakes."
SAID = {
    "the owner's": ("", "We use pnpm for packages here."),
    "one's own": ("tom", "We use npm for packages here."),
    "the owner's, and the same": ("", "I prefer yarn for packages."),
    "one's own, and the same": ("tom", "I prefer yarn for packages."),
}
PATHS = ("knowledge", "insights", "memories", "preferences", "activity", "history", "guidance?task=packages", "project")


@pytest.fixture
def team(
    postgres_server: str, migrated_template: str, vectors: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Team]:
    of = (postgres_server, migrated_template, vectors, tmp_path_factory.mktemp("api"))
    with team_of(*of, ("liv", "tom"), projects=(PLAIN,), before=work("owner", PLAIN)) as team:
        yield team


def say(team: Team, who: str, text: str) -> None:
    body = {"by": "user", "location": PLAIN, "text": text}
    status, answer = team.ask(who, "/v1/commands/note", body, Idempotency_Key=uuid4().hex)
    assert status == 200, answer
    drained(team.database)


def answers(team: Team, who: str) -> dict[str, str]:
    ids = {
        each["id"]
        for path in ("insights", "memories", "knowledge")
        for each in json.loads(team.ask("", f"/v1/{path}?project=*&limit=200")[1])["items"]
    }
    found = {path: team.ask(who, f"/v1/{path}{'&' if '?' in path else '?'}here={quote(PLAIN)}")[1] for path in PATHS}
    found |= {f"{p}/{id}": team.ask(who, f"/v1/{p}/{id}")[1] for id in ids for p in ("explain", "things", "memories")}
    asked = {"q": "yarn packages quillhand", "here": PLAIN, "limit": 20}
    found["search"] = team.ask(who, "/v1/search", asked)[1].replace(asked["q"], "")
    return found | {"hooks": team.given(who, PLAIN)}


@pytest.mark.parametrize("whose", list(SAID))
@pytest.mark.parametrize("first", [True, False])
def test_no_other_member_is_shown_it(team: Team, whose: str, first: bool) -> None:
    beside = SAID[whose]
    for who, text in (("liv", THEIRS), beside) if first else (beside, ("liv", THEIRS)):
        say(team, who, text)
    # Who says the same later is not shown to who said it first, either.
    assert any("quillhand" in answer for answer in answers(team, "liv").values()) or (first and beside[0] == "tom")
    assert any("quillhand" in answer for answer in answers(team, "").values())
    assert [path for path, answer in answers(team, "tom").items() if "quillhand" in answer] == []


def test_nor_is_anything_found_by_its_words(team: Team) -> None:
    for who, text in (SAID["the owner's"], ("liv", THEIRS)):
        say(team, who, text)
    asked = {"q": "quillhand", "here": PLAIN, "limit": 20}
    known = {**asked, "q": SAID["the owner's"][1]}
    assert json.loads(team.ask("tom", "/v1/search", known)[1])["results"]
    assert json.loads(team.ask("tom", "/v1/search", asked)[1])["results"] == []
