"""The directory of spaces: one API answers for a space on another database as for its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import click
import msgspec
import pytest
import servers
from apis import Api, serving
from asked import Remembered
from click.testing import CliRunner, Result
from draining import catch_up
from events import observed

from memctl.api.http.access import Keyring
from memctl.api.reading.reader import Readers
from memctl.api.write.ingest_writer import IngestWriter
from memctl.api.write.remote_ingest import Delivery, sent
from memctl.api.write.spaces import SpaceIsThere, create, listed
from memctl.cli.commands import COMMANDS
from memctl.cli.main import memctl as program
from memctl.domain.events.observations import PromptSubmitted
from memctl.infra import api_keys
from memctl.infra.database import connect, single_row
from memctl.infra.log.append import append
from memctl.infra.log.mark import move_mark
from memctl.infra.log.spaces import of_every_space, space_id
from memctl.infra.readmodels import generations
from memctl.infra.settings import load_settings
from memctl.infra.settings_model import UnknownDatabase
from memctl.workers.folding.drain import Drainer


class Two(NamedTuple):
    """An API, its database, another one that its settings call `east`, and how to call memctl there."""

    api: Api
    home: str
    east: str
    run: Callable[..., Result]


@pytest.fixture(scope="module")
def two(
    postgres_server: str, migrated_template: str, vectors: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Two]:
    with (
        servers.fresh_database(postgres_server, template=migrated_template) as home,
        servers.fresh_database(postgres_server, template=migrated_template) as east,
        pytest.MonkeyPatch.context() as here,
    ):
        with connect(home) as connection, connect(east) as other:
            for each in (connection, other):
                generations.ensure_live(each, 2)
            other.execute("UPDATE memctl.installation SET id = gen_random_uuid()")  # both are copies of one
        here.setenv("MEMCTL_DATABASES__EAST", east)
        memory = Remembered(home, *vectors, collection="")
        with serving(tmp_path_factory.mktemp("api"), memory, embedder="none") as api:
            for name, value in api.environment.items():
                here.setenv(name, value)

            def run(*arguments: str, space: str = "default") -> Result:
                command = program.get_command(click.Context(program), arguments[0])
                assert command is not None
                environment = {"MEMCTL_SPACE": space}
                return CliRunner(env=environment).invoke(command, list(arguments[1:]), catch_exceptions=False)

            assert run("space", "create", "research", "--on", "east").exit_code == 0
            yield Two(api, home, east, run)


@pytest.fixture(autouse=True)
def named(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of each test are those of the API."""
    for name, value in two.api.environment.items():
        if name.startswith("MEMCTL_"):
            monkeypatch.setenv(name, value)


def events_in(url: str, name: str) -> int:
    with connect(url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM memctl.events JOIN memctl.spaces USING (space_id) WHERE name = %s", [name]
        ).fetchone()
        assert row is not None
        return int(row[0])


def test_a_key_of_a_space_on_another_database_writes_and_reads_there(two: Two) -> None:
    token = two.run("keys", "add", "kim", space="research").stdout.strip()
    bearer = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    note = json.dumps({"text": "Nebulae are kept by their catalogue number.", "location": "/home/kim/sky"}).encode()
    asked = {**bearer, "Idempotency-Key": uuid4().hex}
    for status in ("new", "duplicate"):
        answer = two.api.ask("/v1/commands/note", method="POST", body=note, headers=asked)
        assert (answer[0], json.loads(answer[2])["status"]) == (200, status)
    assert (events_in(two.home, "research"), events_in(two.east, "research")) == (0, 1)
    id = json.loads(answer[2])["event_id"]
    assert two.api.ask(f"/v1/events/{id}", headers=bearer)[0] == 200
    assert two.api.ask(f"/v1/events/{id}")[0] == 404
    prompt = observed(PromptSubmitted(line="1", text="find nebulae"), session="sky0", location="/home/kim/sky")
    body = msgspec.json.encode(Delivery([sent(prompt)]))
    assert two.api.ask("/v1/events", method="POST", body=body, headers=bearer)[0] == 200
    drainer = Drainer(two.east)
    catch_up(drainer)
    drainer.close()
    seen = [
        "sky0" in two.api.ask("/v1/sessions?project=*", headers=headers)[2].decode()
        for headers in (bearer, {"Memctl-Space": "research"}, {})
    ]
    assert seen == [True, True, False]
    assert 'space="research"' in two.api.ask("/metrics")[2].decode()


def test_keys_are_those_of_the_directory_wherever_the_apis_own_space_lives(two: Two) -> None:
    """It may have moved to a database with keys of its own, for spaces that are called the same."""
    token = two.run("keys", "add", "lee", space="research").stdout.strip()
    with connect(two.east) as east:
        foreign = api_keys.make(east, "default", "eve", ("read",))[1]
    readers = Readers(two.home, "research", databases={"east": two.east})
    keyring = Keyring(readers)
    found = keyring.caller(token)
    assert found is not None
    assert (found.member, found.space) == ("lee", "research")
    assert keyring.caller(foreign) is None
    readers.close()


def test_a_door_and_commands_of_that_space_find_it(two: Two) -> None:
    settings = load_settings(space="research")
    before = events_in(two.east, "research")
    with IngestWriter(settings) as writer:
        payload = PromptSubmitted(line="1", text="plot the cluster")
        writer.record([observed(payload, session="sky1", location="/home/kim/sky")])
    assert events_in(two.east, "research") == before + 1
    assert events_in(two.home, "research") == 0


def test_workers_work_for_the_spaces_that_live_on_their_database(two: Two) -> None:
    settings = load_settings()
    with connect(two.home) as home, connect(two.east) as east:
        assert "research" not in {each.space for each in of_every_space(home, settings)}
        assert "research" in {each.space for each in of_every_space(east, settings)}


def test_the_directory_says_where_each_space_lives(two: Two) -> None:
    found = {each.name: each for each in listed(load_settings())}
    assert found["research"].database == "east"
    assert found["research"].collection not in ("", found["default"].collection)
    assert found["default"].database == ""
    shown = two.run("space", "list").stdout
    assert "research: east, memctl-" in shown
    assert "default: here, memctl-" in shown


def test_a_space_is_made_once_and_on_a_database_that_settings_name(two: Two) -> None:
    with pytest.raises(SpaceIsThere):
        create(load_settings(), "research")
    with pytest.raises(UnknownDatabase):
        create(load_settings(), "elsewhere", "west")
    assert "elsewhere" not in {each.name for each in listed(load_settings())}
    create(load_settings(), "payments")
    assert two.api.ask("/v1/memories", headers={"Memctl-Space": "payments"})[0] == 200


def test_where_nobody_says_where_a_database_is_it_is_said_and_nothing_is_written_elsewhere(
    two: Two, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("MEMCTL_DATABASES__EAST")
    with pytest.raises(UnknownDatabase, match="east"):
        IngestWriter(load_settings(space="research"))
    assert events_in(two.home, "research") == 0


# --- every verb that reads or writes a space asks where it lives ---

RULE, PLACE = "Never force push to main!", "/home/kim/orrery"
API = {
    "search", "ask", "bugs", "show", "history", "sessions", "episodes", "tasks", "context", "stats", "insights",
    "knowledge", "prefs", "strategies", "guidance", "explain", "recalls", "hindsight", "waiting", "verify-knowledge",
    "reject", "rate", "pin", "resolve", "core", "undo", "task", "hypothesis", "decide", "discovery", "events", "costs",
    "project", "note", "status", "view", "mcp",
}  # fmt: skip
"""Verbs that ask the running API, which finds the space by the name that a client sends."""
FOUND = {
    "export": ((), RULE),
    "redact": (("--dry-run",), "1 with something to cut"),
    "forget": (("--match", "force push", "--dry-run"), "1 event"),
    "consolidate": (("--preview", "--json"), '"memories": '),
    "verify": (("--json",), '"events": EAST'),
    "sessions": (("--project", "*"), "orrery0"),
    "knowledge": (("--project", "*"), RULE),
}
"""Verbs that open the database by themselves, and two of the API's: with what, and what they say only where they find
it. EAST: how many events the other database holds."""
SAME_WAY = {
    "reflect": "consolidate", "judge": "consolidate", "maintain": "consolidate", "import": "ingest", "save": "ingest",
    "session-end": "ingest", "session-start": "ingest", "ingest": "ingest", "dlq": "forget", "prune": "forget",
}  # fmt: skip
"""Verbs that open it as another does; what is taken in goes through `IngestWriter`, which a test above looks at."""
OF_NO_SPACE = {
    "up", "down", "install", "doctor", "off", "on", "init", "config", "keys", "space", "completion", "backup",
    "restore", "reset", "replay", "reindex", "worker", "serve", "door", "relay",
}  # fmt: skip
"""Verbs about an installation or a whole database. Keys lie where the directory is, whatever their space."""


@pytest.fixture(scope="module")
def orrery(two: Two) -> Two:
    """What somebody said in the space that lives elsewhere, folded there; the space has another number here."""
    said = [observed(PromptSubmitted(line="1", text=RULE), session="orrery0", location=PLACE)]
    with connect(two.east) as connection:
        append(connection, space_id(connection, "research"), said)
        move_mark(connection)
    drainer = Drainer(two.east)
    catch_up(drainer)
    drainer.close()
    return two


def test_of_each_verb_it_is_known_how_it_finds_its_space() -> None:
    known = [*API, *FOUND.keys() - API, *SAME_WAY, *OF_NO_SPACE]
    assert sorted(known) == sorted(COMMANDS)


@pytest.mark.parametrize("verb", FOUND)
def test_a_verb_that_opens_the_database_finds_what_lies_on_another(
    orrery: Two, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_PRIVACY__EXCLUDE_PATTERNS", '["force push"]')
    arguments, said = FOUND[verb]
    with connect(orrery.east) as connection:
        (events,) = single_row(connection, "SELECT count(*) FROM memctl.events")
    done = orrery.run(verb, *arguments, space="research")
    assert said.replace("EAST", str(events)) in done.output
    assert '"memories": 0' not in done.output


def test_a_teams_files_are_those_of_the_space_wherever_it_lives(orrery: Two, tmp_path: Path) -> None:
    done = orrery.run("export", "--team", str(tmp_path), "--project", PLACE, space="research")
    assert done.exit_code == 0, done.output
    (file,) = tmp_path.rglob("*.md")
    assert RULE in file.read_text()


def test_a_backup_names_the_spaces_that_it_leaves_out(orrery: Two, tmp_path: Path) -> None:
    done = orrery.run("backup", str(tmp_path))
    assert "not in it: research (on east)" in done.output
