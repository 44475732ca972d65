"""Members of a team who work at one path, each on a machine of their own, share what one has only where it is of one
repository."""

from __future__ import annotations

import json
from collections.abc import Iterator
from uuid import uuid4

import msgspec
import pytest
from histories import drained
from poisoning.teams import ALPHA, AT, BETA, PLAIN, WORKED, Team, team_of, work
from waiting import until

from memctl.api.write.remote_ingest import Delivery, sent
from memctl.domain.support.location import of_member
from memctl.infra.database import connect
from memctl.infra.log.append import append


@pytest.fixture(scope="module")
def team(
    postgres_server: str, migrated_template: str, vectors: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Team]:
    members = [who for who in (*WORKED, "new") for _ in range(2)]
    before = [*work("owner", AT, "github.com/owner/gamma"), *work("owner", PLAIN)]
    data = tmp_path_factory.mktemp("api")
    with team_of(postgres_server, migrated_template, vectors, data, members, before=before) as team:
        for who, (at, remote) in WORKED.items():
            assert team.deliver(who, work(who, at, remote)) == {}
        for who in ("dana", "kim"):
            assert team.deliver(who, work(who, PLAIN)) == {}
        drained(team.database)
        yield team


def test_two_repositories_at_one_path_of_two_machines_share_nothing(team: Team) -> None:
    assert team.vaults("kim", AT) == {"kim"}
    assert team.vaults("dana", AT) == {"dana", "lee"}
    assert team.vaults("", AT) == {"owner"}


def test_nor_do_two_folders_without_git(team: Team) -> None:
    assert team.vaults("kim", PLAIN) == {"kim"}
    assert team.vaults("", PLAIN) == {"owner"}


def test_who_is_new_is_given_nothing_of_that_path(team: Team) -> None:
    assert team.vaults("new", AT) == set()
    assert team.ask("new", f"/v1/project?project={AT}")[0] == 404


def test_a_member_with_a_second_key_has_one_project(team: Team) -> None:
    """A key is replaced, or each machine has one: the place is of the member."""
    more = [msgspec.structs.replace(each, occurred_at=each.occurred_at + 10**9) for each in work("kim", f"{AT}/src")]
    assert team.deliver("kim", more, number=1) == {}
    drained(team.database)
    assert team.vaults("kim", AT, number=1) == {"kim"}
    (known,) = [each for each in listed(team, "kim") if BETA in each["remotes"]]
    assert known["name"] == "beta"
    assert known["locations"] == [of_member("kim", AT), of_member("kim", f"{AT}/src")]


def listed(team: Team, who: str) -> list[dict[str, list[str]]]:
    items: list[dict[str, list[str]]] = json.loads(team.ask(who, "/v1/projects")[1])["items"]
    return items


def test_one_repository_at_one_path_is_one_project_and_elsewhere_one_question(team: Team) -> None:
    (alpha,) = [each for each in listed(team, "") if ALPHA in each["remotes"]]
    assert alpha["locations"] == [of_member("dana", AT), of_member("lee", AT)]
    waiting = json.loads(team.ask("", "/v1/projects/waiting")[1])["items"]
    assert [(each["root"], each["claims"]) for each in waiting] == [(of_member("mo", "/home/mo/alpha"), ALPHA)]
    assert team.vaults("mo", "/home/mo/alpha") == {"mo"}
    assert "memctl project join" in team.given("mo", "/home/mo/alpha")


def test_what_a_member_says_at_a_path_of_the_owner_s_is_of_the_member_s_machine(team: Team) -> None:
    said = {"by": "user", "location": PLAIN, "text": "We use basalt for the banks of rivers."}
    assert team.ask("kim", "/v1/commands/note", said, Idempotency_Key=uuid4().hex)[0] == 200
    drained(team.database)
    at = f"/v1/knowledge?here={PLAIN}&limit=200"
    assert ["basalt" in team.ask(who, at)[1] for who in ("kim", "dana", "")] == [True, False, False]
    starts = {"hook_event_name": "SessionStart", "session_id": "of-kim", "cwd": PLAIN, "source": "startup"}
    assert "basalt" in team.ask("kim", "/v1/hooks/claude-code", starts)[1]
    with connect(team.database) as connection:

        def places(where: str) -> list[str]:
            found = connection.execute(f"SELECT DISTINCT location FROM memctl.events WHERE {where} ORDER BY 1")
            return [place for (place,) in found]

        until(lambda: places("session_id = 'of-kim'"), "the record of what was recalled")
        assert places("session_id = 'of-kim'") == [of_member("kim", PLAIN)]
        assert places("actor LIKE '%:kim' AND location LIKE '%/srv%'") == [of_member("kim", PLAIN)]


def test_what_came_before_at_a_bare_path_comes_again_as_the_same(team: Team) -> None:
    """A relay sends its transcripts again to a log that was restored."""
    events = [
        msgspec.structs.replace(each, actor="agent:dana" if each.actor == "agent" else "member:dana")
        for each in work("dana", "/old", "github.com/dana/old")
    ]
    with connect(team.database) as connection:
        before = append(connection, 1, events)
    raw = work("dana", "/old", "github.com/dana/old")
    answer = team.ask("dana", "/v1/events", msgspec.json.encode(Delivery([sent(each) for each in raw])))[1]
    assert {each["status"] for each in json.loads(answer)["appended"]} == {"duplicate"}
    assert [each["position"] for each in json.loads(answer)["appended"]] == [each.position for each in before]
