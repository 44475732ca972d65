"""A team's API with members' keys, for attacks by who has one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import msgspec
import servers
from apis import Api, serving
from asked import Remembered
from events import observed
from histories import drained

from memctl.api.write.remote_ingest import Delivery, sent
from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import PromptSubmitted, ResponseReceived
from memctl.domain.projects.identity import ProjectIdentified, identified_key, project_stream
from memctl.infra import api_keys
from memctl.infra.database import connect
from memctl.infra.log.append import append
from memctl.infra.readmodels import generations

SCOPES = ("read", "write", "ingest")
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


@contextmanager
def team_of(
    server: str,
    template: str,
    vectors: tuple[str, str],
    data_dir: Path,
    members: Sequence[str],
    *,
    scopes: tuple[str, ...] = SCOPES,
    projects: tuple[str, ...] | None = None,
    before: Sequence[NewEvent] = (),
) -> Iterator[Team]:
    """Members with a key each, another for each time that one is named, limited to these projects, if any;
    `before` are events that the owner had recorded."""
    url, token = vectors
    keys: dict[str, list[str]] = {}
    with servers.fresh_database(server, template=template) as database:
        with connect(database) as connection:
            generations.ensure_live(connection, 2)
            for who in members:
                key = api_keys.make(connection, "default", who, scopes, projects)[1]
                keys.setdefault(who, []).append(key)
            append(connection, 1, before)
        drained(database)
        with serving(data_dir, Remembered(database, url, token, "none"), embedder="none") as api:
            yield Team(api, database, keys)
