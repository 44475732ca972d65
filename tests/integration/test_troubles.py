"""What is not well is said, and said alike by all who are asked: status, doctor, readyz, metrics and the viewer."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import UUID

import pytest
from apis import TOKEN, Api, serving
from asked import Remembered
from click.testing import CliRunner
from data_dirs import used
from draining import catch_up
from dripping import dripping
from events import AGENT, prompt
from vector_server import vector_server_process
from waiting import until

from memctl.api.checks import health
from memctl.api.checks.health import LATE_S, MOST_NAMED
from memctl.cli.main import memctl
from memctl.domain.events.event import Position
from memctl.domain.events.observations import event_id_of, session_stream
from memctl.infra import queue
from memctl.infra.data_dir import Folders
from memctl.infra.database import Connection
from memctl.infra.embedded import programs, supervisor
from memctl.infra.embedded.programs import Instance
from memctl.infra.hook import OFF_FILE
from memctl.infra.hooks.spool import Delivery, spool
from memctl.infra.listening import viewer_host
from memctl.infra.log.append import append
from memctl.infra.log.spaces import installation
from memctl.infra.readmodels import dead_letters, generations
from memctl.infra.readmodels.dead_letters import Fault, Target
from memctl.infra.readmodels.processor_work import place_key
from memctl.workers.folding.drain import Drainer

FIRST = prompt(1)


@pytest.fixture
def shards() -> int:
    return 1


@pytest.fixture
def asked(
    database_url: str, redis_url: str, vectors: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings of whoever asks."""
    for name, value in {
        "DATA_DIR": str(used(tmp_path / "data")),
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "QDRANT_URL": vectors[0],
        "QDRANT_API_KEY": vectors[1],
        "EMBEDDER": "none",
    }.items():
        monkeypatch.setenv(f"MEMCTL_{name}", value)


@pytest.fixture
def api(asked: None, database_url: str, vectors: tuple[str, str], tmp_path: Path) -> Iterator[Api]:
    with serving(tmp_path, Remembered(database_url, *vectors, ""), embedder="none") as api:
        yield api


def said_by_all(api: Api) -> dict[str, str]:
    """What each of them says."""
    cookie = api.ask("/sign-in", method="POST", body=f"token={TOKEN}".encode(), headers=BY_NAME)[1]["set-cookie"]
    return {
        "status": CliRunner().invoke(memctl, ["status"]).output,
        "status --json": json.dumps(json.loads(CliRunner().invoke(memctl, ["status", "--json"]).output)["troubles"]),
        "doctor": CliRunner().invoke(memctl, ["doctor"]).output,
        "readyz": api.ask("/readyz")[2].decode(),
        "metrics": api.ask("/metrics")[2].decode(),
        "viewer": api.ask("/engine?part=live", headers={"Cookie": cookie.split(";")[0]})[2].decode(),
        "front page": api.ask("/", headers={"Cookie": cookie.split(";")[0]})[2].decode(),
    }


BY_NAME = {"Content-Type": "application/x-www-form-urlencoded", "Host": viewer_host(TOKEN)}


def late(connection: Connection, by: str = "1 hour") -> None:
    """What is in the log was appended so long ago, and nothing has moved since."""
    connection.execute("ALTER TABLE memctl.events DISABLE TRIGGER events_no_change")
    connection.execute("UPDATE memctl.events SET recorded_at = recorded_at - %s::interval", [by])
    connection.execute("ALTER TABLE memctl.events ENABLE ALWAYS TRIGGER events_no_change")
    connection.execute("UPDATE memctl.offsets SET updated_at = updated_at - %s::interval", [by])


def test_a_vector_store_that_refuses_the_key_is_said_alike_by_all(
    log: Connection, asked: None, database_url: str, vectors: tuple[str, str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("MEMCTL_QDRANT_API_KEY", "of-another-server")
    with serving(tmp_path, Remembered(database_url, vectors[0], "of-another-server", ""), embedder="none") as api:
        said = said_by_all(api)
    for who in ("status", "status --json", "doctor", "viewer"):
        assert "it answers 401" in said[who], who
    assert json.loads(said["readyz"])["troubles"][0]["kind"] == "vectors"
    assert "all is well" not in said["status"] + said["front page"]


def test_what_was_appended_and_is_not_folded_is_said_alike_by_all(log: Connection, api: Api, database_url: str) -> None:
    append(log, 1, [FIRST, prompt(2)])
    late(log)
    said = said_by_all(api)
    id = str(event_id_of(1, FIRST.dedupe_key))
    for who in ("status", "status --json", "doctor", "viewer"):
        assert "2 events are not folded yet" in said[who], who
        assert id in said[who], who
        assert "no worker moves" in said[who], who
    assert "all is well" not in said["status"]
    told = json.loads(said["readyz"])
    assert (told["status"], told["well"], told["troubles"][0]["kind"]) == ("ready", False, "behind")
    assert 'memctl_troubles{kind="behind",needs="yes"} 1' in said["metrics"]
    (age,) = [line for line in said["metrics"].splitlines() if line.startswith("memctl_unfolded_seconds ")]
    assert float(age.split()[1]) > 3600

    catch_up(Drainer(database_url))
    said = said_by_all(api)
    assert "not folded" not in said["status"]
    assert json.loads(said["readyz"]) == {"status": "ready", "well": True, "troubles": []}
    assert "memctl_unfolded_seconds 0" in said["metrics"]
    assert "All is well" in said["viewer"]


def test_what_is_not_folded_is_said_when_the_clock_was_set_back(
    log: Connection, asked: None, database_url: str
) -> None:
    append(log, 1, [FIRST])
    late(log, "-1 hour")
    (said,) = json.loads(CliRunner().invoke(memctl, ["status", "--json"]).output)["troubles"]
    assert "1 event is not folded yet, the oldest since before the clock was set back" in said["what"]
    assert "no worker moves" in said["do"]
    catch_up(Drainer(database_url))
    assert json.loads(CliRunner().invoke(memctl, ["status", "--json"]).output)["troubles"] == []


def test_what_is_new_may_wait_for_a_moment(log: Connection, asked: None) -> None:
    append(log, 1, [FIRST])
    assert json.loads(CliRunner().invoke(memctl, ["status", "--json"]).output)["troubles"] == []
    assert LATE_S >= 10


def test_what_waits_for_its_trial_needs_nobody_however_much_it_is(log: Connection, api: Api, database_url: str) -> None:
    append(log, 1, [FIRST])
    catch_up(Drainer(database_url))
    faults = [
        Fault(
            Target("", 1, session_stream(AGENT, f"t{number}")),
            event_id_of(1, f"t{number}"),
            Position(1),
            "NoProgress",
            "x",
        )
        for number in range(MOST_NAMED + 2)
    ]
    dead_letters.park(log, generations.live(log).stage1, faults)
    said = said_by_all(api)
    assert "needs you" not in said["status"]
    assert 'kind="dead letter",needs="yes"} ' not in said["metrics"].replace('needs="yes"} 0', "")


def test_what_is_set_aside_is_named_alike_by_all(log: Connection, api: Api, database_url: str) -> None:
    append(log, 1, [FIRST])
    catch_up(Drainer(database_url))
    live = generations.live(log)
    source = event_id_of(1, FIRST.dedupe_key)
    fault = Fault(Target("", 1, session_stream(AGENT, "s1")), source, 1, "NoProgress", "memctl.domain.x:7 f", 3)  # type: ignore[arg-type]
    dead_letters.park(log, live.stage1, [fault])
    dead_letters.park(log, live.stage1, [fault])  # it was tried apart, and does not end
    said = said_by_all(api)
    for who in ("status", "status --json", "doctor", "viewer"):
        assert f"event {source} raises NoProgress at memctl.domain.x:7 f" in said[who], who
        assert "memctl dlq retry" in said[who], who
    assert '<a href="/engine">needs you: ' in said["front page"]
    assert f"event {source} raises NoProgress at memctl.domain.x:7 f" in said["front page"]
    assert json.loads(said["readyz"])["troubles"][0]["position"] == 1
    assert 'memctl_troubles{kind="dead letter",needs="yes"} 1' in said["metrics"]
    assert 'memctl_dead_letters{space="default",model="facts"} 1' in said["metrics"]


def test_a_place_that_consolidation_holds_back_is_named_alike_by_all(log: Connection, api: Api) -> None:
    log.execute(
        "INSERT INTO memctl.processing (space_id, processor, subject, digest, status, state)"
        " VALUES (1, 'consolidator', 'memories', '', 'done', %s)",
        [json.dumps({"held": {str(place_key("")): [900, 1000], str(place_key("/gone")): [20, 30]}})],
    )
    said = said_by_all(api)
    for who in ("status", "status --json", "doctor", "viewer"):
        assert "what is of no project waits: it would change 900 of 1,000 memories at once" in said[who], who
        assert "consolidate --preview" in said[who], who
    assert "all is well" not in said["status"]
    assert len(json.loads(said["readyz"])["troubles"]) == 2
    assert 'memctl_troubles{kind="processor",needs="yes"} 2' in said["metrics"]


@pytest.fixture
def places(asked: None, tmp_path: Path) -> Iterator[Folders]:
    """The data directory of whoever asks, with a folder of sockets that lies elsewhere where this path is long."""
    found = Folders(tmp_path / "data")
    shutil.rmtree(found.sockets, ignore_errors=True)
    found.make()
    yield found
    shutil.rmtree(found.sockets, ignore_errors=True)


def test_a_program_that_does_not_run_is_said_alike_by_all(log: Connection, api: Api, places: Folders) -> None:
    ended = "\n[program:worker]\ncommand = /bin/false\nautostart = true\nstartretries = 0\n"
    supervisor.start(places, supervisor.configuration(Instance(places, {}, {}), ()) + ended)
    try:
        until(lambda: supervisor.states(places)["worker"].state == "FATAL")
        said = said_by_all(api)
    finally:
        supervisor.shut_down(places)
        until(lambda: supervisor.running(places) is None)
    for who in ("status", "status --json", "doctor", "viewer"):
        assert "worker does not run" in said[who], who
    assert json.loads(said["readyz"])["troubles"][0]["kind"] == "program"
    assert 'memctl_troubles{kind="program",needs="yes"} 1' in said["metrics"]


def test_a_door_that_takes_connections_and_answers_none_is_said_alike_by_all(
    log: Connection,
    places: Folders,
    database_url: str,
    vectors: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places.spool.mkdir(exist_ok=True)
    spool(places.spool, Delivery("a" * 32, 1_000_000, AGENT, "Stop", b"{}"))
    monkeypatch.setattr(health, "LATE_S", 0.0)
    monkeypatch.setattr(programs, "PATIENCE_S", 0.5)
    hangs = "\n[program:door]\ncommand = /bin/sleep 600\nautostart = true\nstartsecs = 0\n"
    instance = Instance(places, {}, {})
    with (
        socket.socket(socket.AF_UNIX) as mute,
        serving(
            tmp_path,
            Remembered(database_url, *vectors, ""),
            "none",
            "from memctl.api.checks import health\nfrom memctl.infra.embedded import programs\n"
            "health.LATE_S, programs.PATIENCE_S = 0, 0.5\n",
        ) as api,
    ):
        mute.bind(str(instance.door))
        mute.listen()
        supervisor.start(places, supervisor.configuration(instance, ()) + hangs)
        try:
            until(lambda: supervisor.states(places)["door"].since < time.time() - 1)
            said = said_by_all(api)
        finally:
            supervisor.shut_down(places)
            until(lambda: supervisor.running(places) is None)
    for who in ("status", "status --json", "doctor", "viewer"):
        assert "door runs and does not answer" in said[who], who
        assert "1 delivery of hooks on this disk" in said[who], who
    assert {each["kind"] for each in json.loads(said["readyz"])["troubles"]} == {"program", "spool"}
    assert 'memctl_troubles{kind="program",needs="yes"} 1' in said["metrics"]
    assert 'memctl_troubles{kind="spool",needs="yes"} 1' in said["metrics"]


def test_a_damaged_file_of_what_is_off_is_said_alike_by_all(log: Connection, api: Api, tmp_path: Path) -> None:
    (tmp_path / "data" / OFF_FILE).write_text('{"everywhere": 5}')
    said = said_by_all(api)
    for who in ("status", "status --json", "doctor", "viewer"):
        assert "nothing is kept or recalled: " in said[who], who
    assert [each["kind"] for each in json.loads(said["readyz"])["troubles"]] == ["off"]


def test_files_that_were_set_aside_are_said_alike_by_all(log: Connection, api: Api, places: Folders) -> None:
    places.spool.mkdir(exist_ok=True)
    (places.spool / "1-a.damaged").write_bytes(b"x")
    said = said_by_all(api)
    for who in ("status", "status --json", "doctor", "viewer"):
        assert "spool/1-a.damaged is damaged, or in the way" in said[who], who
    assert [each["kind"] for each in json.loads(said["readyz"])["troubles"]] == ["damaged"]
    assert 'memctl_troubles{kind="damaged",needs="yes"} 1' in said["metrics"]


def test_a_spool_that_is_no_folder_is_said_alike_by_all(log: Connection, api: Api, places: Folders) -> None:
    places.spool.write_bytes(b"")
    said = said_by_all(api)
    for who in ("status", "status --json", "doctor", "viewer"):
        assert "spool is damaged, or in the way" in said[who], who
    assert [each["kind"] for each in json.loads(said["readyz"])["troubles"]] == ["damaged"]


def test_a_vector_store_whose_answer_never_ends_is_said_alike_by_all_beside_what_else_is_known(
    log: Connection, database_url: str, vectors: tuple[str, str], places: Folders, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (places.data / "keys.json.damaged").write_bytes(b"x")
    monkeypatch.setattr(health, "ASKED_S", 2.0)
    with dripping() as url:
        monkeypatch.setenv("MEMCTL_QDRANT_URL", url)
        soon = "from memctl.api.checks import health\nhealth.ASKED_S = 2.0\n"
        with serving(tmp_path, Remembered(database_url, url, "", ""), "none", soon) as api:
            said = said_by_all(api)
    for who in ("status", "status --json", "doctor", "viewer"):
        assert "the vector store did not end the answer within 2 s" in said[who], who
        assert "keys.json.damaged" in said[who], who
    assert {each["kind"] for each in json.loads(said["readyz"])["troubles"]} == {"program", "damaged"}
    assert 'memctl_troubles{kind="program",needs="yes"} 1' in said["metrics"]


def test_a_redis_that_refuses_connections_is_said(
    log: Connection, asked: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_REDIS_URL", f"unix://{tmp_path}/nobody.sock")
    told = CliRunner().invoke(memctl, ["status"])
    assert "Redis does not answer" in told.output
    assert "all is well" not in told.output
    assert told.exit_code == 1
    assert "Redis does not answer" in CliRunner().invoke(memctl, ["doctor"]).output


def test_a_vector_store_that_refuses_connections_is_said(
    log: Connection, asked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_QDRANT_URL", "http://127.0.0.1:9")
    assert "the vector store does not answer" in CliRunner().invoke(memctl, ["status"]).output


def test_a_vector_store_that_takes_connections_and_answers_none_is_said(
    log: Connection, asked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        monkeypatch.setenv("MEMCTL_QDRANT_URL", f"http://127.0.0.1:{mute.getsockname()[1]}")
        assert "the vector store does not answer (timed out)" in CliRunner().invoke(memctl, ["status"]).output


@pytest.mark.parametrize("command", ["status", "doctor"])
def test_a_server_that_is_stopped_holds_up_nobody_for_longer_than_is_promised(
    log: Connection, asked: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    with vector_server_process(tmp_path / "stopped") as server, socket.create_server(("127.0.0.1", 0)) as mute:
        assert server.process is not None
        monkeypatch.setenv("MEMCTL_QDRANT_URL", server.url)
        monkeypatch.setenv("MEMCTL_REDIS_URL", f"redis://127.0.0.1:{mute.getsockname()[1]}")
        server.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        said = CliRunner().invoke(memctl, [command]).output
        took = time.monotonic() - began
        server.process.send_signal(signal.SIGCONT)
    assert "the vector store does not answer (timed out)" in said
    assert "Redis does not answer" in said
    assert took < health.ANSWERED_S


def test_a_database_that_hangs_is_said_within_what_is_promised(
    log: Connection, asked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "ANSWERED_S", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        monkeypatch.setenv("MEMCTL_DATABASE_URL", f"postgresql://x@127.0.0.1:{mute.getsockname()[1]}/x")
        assert "the database does not answer: not within 2 s" in CliRunner().invoke(memctl, ["status"]).output


def test_a_vector_store_that_fails_is_said(log: Connection, asked: None, monkeypatch: pytest.MonkeyPatch) -> None:
    class Fails(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(503)

    with ThreadingHTTPServer(("127.0.0.1", 0), Fails) as failing:
        threading.Thread(target=failing.serve_forever, daemon=True).start()
        monkeypatch.setenv("MEMCTL_QDRANT_URL", f"http://127.0.0.1:{failing.server_address[1]}")
        said = CliRunner().invoke(memctl, ["status"]).output
        failing.shutdown()
    assert "the vector store does not answer (it answers 503)" in said


def test_the_backlog_of_embeddings_has_an_estimate(log: Connection, asked: None, redis_url: str) -> None:
    live = generations.live(log)
    log.execute("INSERT INTO memctl.vector_models (model, dimensions, recipe, status) VALUES ('m', 8, '{}', 'serving')")
    rows = [(live.stage2, "m", 1, str(UUID(int=n))) for n in range(120)]
    with log.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO memctl.waiting_for_vectors (generation, model, space_id, key) VALUES (%s, %s, %s, %s)", rows
        )
    queue.embeds(queue.connect(redis_url), 2.0)
    assert (
        "120 found by their words only, until embedded (about 1 min)" in CliRunner().invoke(memctl, ["status"]).output
    )
    told = json.loads(CliRunner().invoke(memctl, ["status", "--json"]).output)
    assert told["vectors"]["seconds_left"] == 60


def test_texts_of_which_none_is_embedded_for_minutes_are_a_trouble(
    log: Connection, asked: None, redis_url: str
) -> None:
    live, here, redis = generations.live(log), installation(log), queue.connect(redis_url)
    log.execute("INSERT INTO memctl.vector_models (model, dimensions, recipe, status) VALUES ('m', 8, '{}', 'serving')")
    log.execute(
        "INSERT INTO memctl.waiting_for_vectors (generation, model, space_id, key) VALUES (%s, 'm', 1, %s)",
        [live.stage2, str(UUID(int=1))],
    )
    began = time.time() - 2 * health.UNEMBEDDED_S
    queue.texts_wait(redis, here, began, embedded=False)
    queue.texts_wait(redis, here, time.time(), embedded=False)  # waits since before
    shown = CliRunner().invoke(memctl, ["status"])
    assert "1 text without vectors, and none was embedded for 10 min" in shown.output
    assert "all is well" not in shown.output
    queue.texts_wait(redis, here, time.time(), embedded=True)
    assert "none was embedded" not in CliRunner().invoke(memctl, ["status"]).output
    queue.texts_wait(redis, here, began, embedded=True)
    queue.no_text_waits(redis, here)
    assert "none was embedded" not in CliRunner().invoke(memctl, ["status"]).output
