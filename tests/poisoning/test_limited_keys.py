"""What a key limited to projects says of a path decides nothing of who works there later, and stays with the key's own
project."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import msgspec
import pytest
import servers
from apis import Api, serving
from asked import Remembered
from click.testing import CliRunner
from events import AGENT, NOON, observed
from histories import drained
from poisoning.foreign import REMOTE, git, victim_in
from poisoning.test_foreign import OURS, SHARED, keep, session, shown
from waiting import until

from memctl.api.erasure import scope as forget
from memctl.api.reading.caller import OWNER
from memctl.api.reading.reader import reader_of
from memctl.api.write.exporting import export
from memctl.api.write.remote_ingest import Delivery, confined, sent
from memctl.cli.main import memctl as program
from memctl.domain.events.erasure import scope_tombstones
from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.observations import (
    MESSAGE,
    CommitRecorded,
    Observation,
    PromptSubmitted,
    ToolCalled,
    ToolReturned,
    event_id_of,
    history_key,
    history_stream,
    hook_key,
    transcript_key,
)
from memctl.domain.knowledge.team_entries import key_of as key_of_entry
from memctl.domain.projects.identity import ProjectIdentified, identified_key, project_stream
from memctl.infra.database import Connection, connect
from memctl.infra.log import erase
from memctl.infra.readmodels import generations
from memctl.infra.redaction import prepare
from memctl.infra.settings import load_settings

MINE = f"{MESSAGE}claude-code:victim:{'0' * 32}:1"
CANARY, SUITE = "quillkeyed", "quillsuite"


def events_at(place: Path) -> list[NewEvent]:
    """What a client with the key says of a place: that it is a checkout of the project, and what was done there."""
    found = ProjectIdentified(location=str(place), root=str(place), remote=SHARED, checked=True)
    said: list[tuple[Observation, str]] = [
        (PromptSubmitted(line="1", text=f"We use {CANARY} for dates, not floats."), "user")
    ]
    for number in range(3):
        command, call = {"command": f"pytest tests/{SUITE}"}, f"c{number}"
        said += [
            (ToolCalled(line=f"2{number}", tool="Bash", call=call, input=command), "agent"),
            (ToolReturned(line=f"3{number}", tool="Bash", call=call, text="12 passed in 1s"), "tool"),
        ]
    name = f"keyed-{place.name}"
    events = [
        observed(payload, session=name, at=50 + number, actor=actor, location=str(place))
        for number, (payload, actor) in enumerate(said)
    ]
    identified = NewEvent(
        stream=project_stream(SHARED), payload=found, occurred_at=events[0].occurred_at,
        dedupe_key=identified_key(events[0].stream, str(place)), actor="memctl", location=str(place),
    )  # fmt: skip
    return [identified, *events]


class Stage(msgspec.Struct):
    api: Api
    database: str
    folder: Path
    victim: Path
    key: str

    def ask(self, path: str, body: bytes = b"") -> str:
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        status, _, answer = self.api.ask(path, method="POST" if body else "GET", body=body or None, headers=headers)
        assert status == 200, answer
        return answer.decode()

    def deliver(self, *events: NewEvent) -> dict[str, str]:
        """Which of the events were refused, by index, and why."""
        answer = self.ask("/v1/events", msgspec.json.encode(Delivery([sent(event) for event in events])))
        refused: dict[str, str] = json.loads(answer)["refused"]
        return refused


def key_of(api: Api, name: str, project: str) -> str:
    command = program.get_command(None, "keys")  # type: ignore[arg-type]
    assert command is not None
    scopes = ["--scope", "read", "--scope", "ingest", "--project", project]
    made = CliRunner(env=api.environment).invoke(command, ["add", name, *scopes])
    assert made.exit_code == 0, made.output
    return made.stdout.strip()


@pytest.fixture(scope="module")
def stage(
    postgres_server: str, migrated_template: str, vectors: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("keyed").resolve()
    victim = victim_in(folder)
    url, token = vectors
    with servers.fresh_database(postgres_server, template=migrated_template) as database:
        with connect(database) as connection:
            generations.ensure_live(connection, 2)
        keep(database, session("victim", victim, OURS))
        with serving(tmp_path_factory.mktemp("api"), Remembered(database, url, token, "none"), embedder="none") as api:
            stage = Stage(api, database, folder, victim, key_of(api, "eve", SHARED))
            for name in ("other", "plain", "same", "never"):
                assert stage.deliver(*events_at(folder / name)) == {}
            silent = [each for each in events_at(victim / "nested" / "src") if each.stream.startswith("session/")]
            assert stage.deliver(*silent) == {}
            drained(database)
            yield stage


def made(stage: Stage, name: str) -> Path:
    """A new directory at a path that the key spoke of: a foreign checkout, a plain one, or a clone."""
    place = stage.victim / name if name == "nested" else stage.folder / name
    place.mkdir(parents=True)
    if name != "plain":
        git(place, "init", "-q", "-b", "main")
        git(place, "remote", "add", "origin", REMOTE if name == "same" else "https://git.example.org/eve/other")
    return place


@pytest.mark.parametrize("name", ["other", "plain", "same", "nested"])
def test_a_new_directory_is_no_keys_to_give_away(stage: Stage, name: str) -> None:
    place = made(stage, name)
    assert OURS not in shown(stage.api, place), "before anything of it is folded"
    keep(stage.database, session(name, place, f"canary{name}", at=100))
    there = shown(stage.api, place)
    assert f"canary{name}" in there
    assert not [word for word in (OURS, CANARY, SUITE) if word in there]
    assert f"canary{name}" not in shown(stage.api, stage.victim)


def test_what_the_key_said_stays_with_its_own_project(stage: Stage) -> None:
    assert CANARY in shown(stage.api, stage.victim)
    for where in (stage.victim, stage.folder / "never"):
        assert OURS in stage.ask(f"/v1/knowledge?here={where}&limit=200")
    listed = json.loads(stage.ask("/v1/projects"))["items"]
    assert [each["anchor"] for each in listed] == [SHARED]


def test_the_key_says_nothing_in_a_session_of_who_works_there_later(stage: Stage) -> None:
    place = stage.folder / "other"
    for location in (str(place), ""):
        event = observed(PromptSubmitted(line="9", text="go on"), session="other", at=200, location=location)
        assert list(stage.deliver(event)) == ["0"]


def test_the_key_says_nothing_in_a_session_of_its_own_project_that_the_owner_began(stage: Stage) -> None:
    """Else what the owner says later, wherever that is, would be the key's."""
    place = stage.folder / "eta"
    claim = NewEvent(
        stream=project_stream(SHARED), dedupe_key=identified_key("session/claude-code/eta", str(place)),
        actor="memctl", location=str(place), occurred_at=Micros(100),
        payload=ProjectIdentified(location=str(place), root=str(place), remote=SHARED, checked=True),
    )  # fmt: skip
    event = observed(PromptSubmitted(line="9", text="go on"), session="victim", at=150, location=str(stage.victim))
    assert list(stage.deliver(claim, event)) == ["1"]


def test_the_key_takes_no_name_that_a_line_of_the_owner_s_session_will_have(stage: Stage) -> None:
    """Lines that bear ordinals can be foretold. Forgetting what took the name would forget the owner's line."""
    place = str(stage.victim)
    foretold = observed(PromptSubmitted(line="#7", text="go on"), session="victim", at=300, location=place)
    own = msgspec.structs.replace(foretold, stream="session/claude-code/eves")
    named = [
        msgspec.structs.replace(own, dedupe_key=key) for key in (own.dedupe_key, "processor:x@1:y", "history/a:b", MINE)
    ]
    alike = msgspec.structs.replace(foretold, stream="session/claude-code/victim:#7", session_id="victim:#7")
    assert list(stage.deliver(*named, alike)) == ["0", "1", "2", "3", "4"]


NOTE = "Amounts of money are kept with quillteam, never as floats."
ELSEWHERE = "/home/dana/elsewhere"


@pytest.mark.parametrize(
    "key",
    [
        key_of_entry("0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f9", NOTE),  # a team's file in the shared repository
        "import:knowledge_nodes:1:0:0",  # a row of another tool's store
        identified_key(history_stream(ELSEWHERE), ELSEWHERE),  # what will be found at a place of another project
        "anything that no relay gives",
    ],
)
def test_the_key_takes_no_name_of_what_is_no_session_of_its_own(stage: Stage, key: str) -> None:
    """Who brings that later would find it taken."""
    said = observed(PromptSubmitted(line="1", text="go on"), session="eve", at=900, location=str(stage.victim))
    assert list(stage.deliver(msgspec.structs.replace(said, dedupe_key=key))) == ["0"]


@pytest.mark.parametrize("own", [True, False])
def test_the_key_names_in_a_history_what_lies_at_its_own_place(stage: Stage, own: bool) -> None:
    commit = "4" * 40
    stream = history_stream(str(stage.victim) if own else ELSEWHERE)
    said = NewEvent(
        stream=stream, payload=CommitRecorded(line=commit, text="Drop the ledger"), occurred_at=Micros(900),
        dedupe_key=history_key(stream, commit), actor="tool", location=str(stage.victim),
    )  # fmt: skip
    assert list(stage.deliver(said)) == ([] if own else ["0"])


@pytest.mark.parametrize("session", ["eves", "victim"])
def test_the_key_says_where_sessions_were_of_its_own_alone(stage: Stage, session: str) -> None:
    place = str(stage.folder / "unheard of")
    found = NewEvent(
        stream=project_stream(SHARED), dedupe_key=identified_key(f"session/claude-code/{session}", place),
        payload=ProjectIdentified(location=place, root=place, remote=SHARED, checked=True), actor="memctl",
        location=place, occurred_at=Micros(900),
    )  # fmt: skip
    assert list(stage.deliver(found)) == ([] if session == "eves" else ["0"])


@pytest.mark.parametrize("key", [hook_key("0a" * 16), f"{hook_key('0b' * 16)}:1"])
def test_the_key_delivers_what_its_hooks_saw_by_their_ids(stage: Stage, key: str) -> None:
    said = observed(PromptSubmitted(text="go on"), session="eves hook", at=300, location=str(stage.victim))
    assert stage.deliver(msgspec.structs.replace(said, dedupe_key=key)) == {}


@pytest.mark.parametrize("name", ["plainly", "with:colons", "long" * 100])
def test_the_key_delivers_lines_of_its_own_sessions_by_their_names(stage: Stage, name: str) -> None:
    event = observed(PromptSubmitted(line="a:1", text="go on"), session=name, at=300, location=str(stage.victim))
    assert stage.deliver(event) == {}
    assert stage.deliver(prepare(event)) == {}


def test_who_may_see_a_path_sees_nothing_that_another_key_said_of_it(stage: Stage) -> None:
    """Whoever said it was of another project, on another machine."""
    place, remote = stage.folder / "twice", "git.example.org/dana/twice"
    said = observed(PromptSubmitted(line="1", text="We use nothing."), session="twice", at=400, location=str(place))
    assert stage.deliver(*[each for each in events_at(place) if not each.stream.startswith("session/")], said) == {}
    drained(stage.database)
    place.mkdir()
    git(place, "init", "-q", "-b", "main")
    git(place, "remote", "add", "origin", f"https://{remote}")
    keep(stage.database, session("twice-mine", place, OURS, at=500))
    id, mine = (event_id_of(1, transcript_key(AGENT, name, "1", 0)) for name in ("twice", "twice-mine"))
    other = msgspec.structs.replace(stage, key=key_of(stage.api, "bob", remote))
    with pytest.raises(AssertionError, match="Not Found"):
        other.ask(f"/v1/events/{id}")
    assert OURS in other.ask(f"/v1/events/{mine}")
    assert "We use nothing" in stage.ask(f"/v1/events/{id}")
    with connect(stage.database) as connection:
        assert "We use nothing" in exported(connection, SHARED)
        assert "We use nothing" not in (of_others := exported(connection, remote))
        assert OURS in of_others


def test_what_is_recalled_for_the_key_is_of_no_place_that_lies_here(stage: Stage) -> None:
    """The client is on another machine: what lies at that path of this one says nothing of it."""
    place = stage.folder / "shared"
    assert stage.deliver(*events_at(place)) == {}
    drained(stage.database)
    place.mkdir()
    git(place, "init", "-q", "-b", "main")
    git(place, "remote", "add", "origin", REMOTE)
    hook = {"hook_event_name": "UserPromptSubmit", "session_id": "recalled", "cwd": str(place), "prompt": "dates?"}
    starts = hook | {"hook_event_name": "SessionStart", "source": "startup"}
    assert CANARY in stage.ask("/v1/hooks/claude-code", msgspec.json.encode(starts))
    with connect(stage.database) as connection:

        def recorded() -> list[tuple[str, bool]]:
            asked = "SELECT type, payload::text LIKE '%%confined%%' FROM memctl.events WHERE session_id = 'recalled'"
            return connection.execute(asked).fetchall()

        until(recorded, "the record of what was recalled")
        assert recorded() == [("memory.recalled", True)]


def test_what_is_recalled_for_the_key_takes_no_session_that_the_owner_begins_later(stage: Stage) -> None:
    """Where the key's client knew its id beforehand."""
    starts = {
        "hook_event_name": "SessionStart",
        "session_id": "foreseen",
        "cwd": str(stage.victim),
        "source": "startup",
    }
    assert CANARY in stage.ask("/v1/hooks/claude-code", msgspec.json.encode(starts))
    with connect(stage.database) as connection:
        count = "SELECT 1 FROM memctl.events WHERE session_id = 'foreseen'"
        until(lambda: connection.execute(count).fetchall(), "the record of what was recalled")
    place = stage.folder / "foreseen"
    place.mkdir()
    keep(stage.database, session("foreseen", place, "canaryforeseen", at=int(time.time()) - NOON // 1_000_000 + 1))
    assert "canaryforeseen" in shown(stage.api, place)


def exported(connection: Connection, project: str) -> str:
    lines: list[bytes] = []
    export(connection, "default", lines.append, project=project)
    return b"".join(lines).decode()


def test_what_a_key_said_of_a_project_goes_with_the_project_and_stays_away(stage: Stage) -> None:
    events = events_at(stage.folder / "never")
    with connect(stage.database) as connection:
        reader = reader_of(connection, "default", OWNER)
        planned = forget.plan(load_settings(), reader, project=SHARED)
        gone = erase.found_by(connection, 1, planned.scope)
        assert {event_id_of(1, event.dedupe_key) for event in events} <= gone
        at_home = observed(PromptSubmitted(line="1", text="go on"), session="x", location=str(stage.folder / "never"))
        with connection.transaction(force_rollback=True):
            erase.begin(connection, 1, UUID(int=7), planned.scope, "")
            erase.lay_tombstones(connection, 1, UUID(int=7), scope_tombstones(planned.scope))
            later = [confined(msgspec.structs.replace(each, dedupe_key=f"again {each.dedupe_key}")) for each in events]
            assert erase.forgotten(connection, 1, [*later, at_home]) == {*range(len(later))}
