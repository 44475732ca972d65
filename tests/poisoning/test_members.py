"""Members of a team who work at one path, each on a machine of their own, share what one has only where it is of one
repository."""

from __future__ import annotations

import json
from collections.abc import Iterator
from uuid import uuid4

import msgspec
import pytest
import servers
from apis import Api, serving
from asked import Remembered
from events import observed
from histories import drained
from waiting import until

from memctl.api.write.remote_ingest import Delivery, sent
from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import PromptSubmitted, ResponseReceived
from memctl.domain.projects.identity import ProjectIdentified, identified_key, project_stream
from memctl.domain.support.location import of_member
from memctl.infra import api_keys
from memctl.infra.database import connect
from memctl.infra.log.append import append
from memctl.infra.readmodels import generations

AT = "/workspace"
"""Where each container has its checkout."""
PLAIN = "/srv/notes"
"""Where each has a folder without git."""
ALPHA, BETA = "github.com/dana/alpha", "github.com/kim/beta"
WORKED = {"dana": (AT, ALPHA), "kim": (AT, BETA), "lee": (AT, ALPHA), "mo": ("/home/mo/alpha", ALPHA)}


def work(who: str, at: str, remote: str = "") -> list[NewEvent]:
    found = []
    for n in range(3):
        name = f"{who}{at}{n}"
        left = f"The {who}vault balance is still wrong; the next step is to open the {who}vault ledger by hand."
        found += [
            observed(PromptSubmitted(line="1", text=f"Check the {who}vault ledger."), session=name, location=at),
            observed(ResponseReceived(line="2", text=left), session=name, at=1, actor="agent", location=at),
        ]
        if remote:
            git = ProjectIdentified(location=at, root=at, remote=remote, checked=True)
            key = identified_key(found[-1].stream, at)
            found.append(
                msgspec.structs.replace(
                    found[-1], stream=project_stream(remote), payload=git, actor="memctl", dedupe_key=key
                )
            )
    return found


class Team(msgspec.Struct):
    api: Api
    database: str
    keys: dict[str, list[str]]

    def ask(self, who: str, path: str, body: object = None, number: int = 0, **headers: str) -> tuple[int, str]:
        token = {"Authorization": f"Bearer {self.keys[who][number]}"} if who else {}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        given = {"Content-Type": "application/json", **token, **named}
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
        status, _, answer = self.api.ask(path, method="POST" if data else "GET", body=data, headers=given)
        return status, answer.decode()

    def deliver(self, who: str, events: list[NewEvent], number: int = 0) -> dict[str, str]:
        body = msgspec.json.encode(Delivery([sent(each) for each in events]))
        status, answer = self.ask(who, "/v1/events", body, number)
        assert status == 200, answer
        refused: dict[str, str] = json.loads(answer)["refused"]
        return refused

    def given(self, who: str, at: str, number: int = 0) -> str:
        """What a hook and a search give a member at a path, and what is known of the project there."""
        hook = {"hook_event_name": "UserPromptSubmit", "session_id": uuid4().hex, "cwd": at}
        hook["prompt"] = "check the vault ledger balance danavault kimvault leevault movault ownervault"
        search = {"q": hook["prompt"], "here": at, "limit": 20}
        starts = {"hook_event_name": "SessionStart", "session_id": uuid4().hex, "cwd": at, "source": "startup"}
        hooks = (("hooks/claude-code", starts), ("hooks/claude-code", hook))
        found = [self.ask(who, f"/v1/{path}", body, number) for path, body in (*hooks, ("search", search))]
        assert {status for status, _ in found} <= {200, 204}
        return "\n".join(answer for _, answer in found)

    def vaults(self, who: str, at: str, number: int = 0) -> set[str]:
        """Whose work that shows."""
        text = self.given(who, at, number).replace("danavault kimvault leevault movault ownervault", "")
        return {name for name in (*WORKED, "owner") if f"{name}vault" in text}


@pytest.fixture(scope="module")
def team(
    postgres_server: str, migrated_template: str, vectors: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Team]:
    url, token = vectors
    with servers.fresh_database(postgres_server, template=migrated_template) as database:
        with connect(database) as connection:
            generations.ensure_live(connection, 2)
            keys = {
                who: [api_keys.make(connection, "default", who, ("read", "write", "ingest"))[1] for _ in range(2)]
                for who in (*WORKED, "new")
            }
            append(connection, 1, [*work("owner", AT, "github.com/owner/gamma"), *work("owner", PLAIN)])
        memory = Remembered(database, url, token, "none")
        with serving(tmp_path_factory.mktemp("api"), memory, embedder="none") as api:
            team = Team(api, database, keys)
            for who, (at, remote) in WORKED.items():
                assert team.deliver(who, work(who, at, remote)) == {}
            for who in ("dana", "kim"):
                assert team.deliver(who, work(who, PLAIN)) == {}
            drained(database)
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
