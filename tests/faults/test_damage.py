"""Files of every server are damaged on disk: nothing is overwritten, it is said in words, and vectors come back."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import redis
from draining import catch_up
from embedding import SIGNS, Signs
from histories import example
from servers import start_valkey
from vector_server import ServerProcess, vector_server_process

from memctl.api.checks.verify import Verification
from memctl.cli.operate.status import status as status_command
from memctl.infra import hook
from memctl.infra.data_dir import Folders
from memctl.infra.database import DatabaseDamaged, connect
from memctl.infra.embedded.instance import ProgramFailed, down, status, up
from memctl.infra.embedded.postgres import start_postgres
from memctl.infra.embedded.programs import PROGRAMS
from memctl.infra.embedded.run import ServerDidNotStart
from memctl.infra.hooks import spool
from memctl.infra.log.append import append
from memctl.infra.log.migrate import migrate
from memctl.infra.readmodels import generations
from memctl.infra.settings import load_settings
from memctl.infra.vectors import models as vector_models
from memctl.infra.vectors import outbox, store
from memctl.workers.folding.drain import Drainer
from memctl.workers.vectors.outbox_publisher import OutboxPublisher

POSTGRES = tuple(program for program in PROGRAMS if program.name == "postgres")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short private folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="memctl-test-") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def pristine() -> Iterator[Path]:
    """A cluster with a log in it, stopped; to be copied."""
    with tempfile.TemporaryDirectory(prefix="memctl-test-") as name:
        folder = Path(name) / "pg"
        with start_postgres(folder) as server:
            migrate(server.url)
            with connect(server.url) as connection:
                generations.ensure_live(connection, 1)
                for number in range(40):
                    append(connection, 1, example(number))
        yield folder


@pytest.fixture
def shards() -> int:
    return 1


@pytest.fixture
def cluster(pristine: Path, folder: Path) -> Path:
    return shutil.copytree(pristine, folder / "pg", symlinks=True)


def fingerprint(folder: Path) -> dict[str, str]:
    """What is in every file of a cluster but for what each start writes: the lock, the configuration, the log."""
    written = {"postmaster.pid", "postmaster.opts", "postgresql.conf", "pg_hba.conf", "log"}
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in written
    }


def garbage(file: Path, at: int = 0, size: int | None = None) -> None:
    """Overwrite a stretch of a file, the whole of it by default; its length stays."""
    size = file.stat().st_size - at if size is None else size
    with file.open("r+b") as damaged:
        damaged.seek(at)
        damaged.write(b"\xa5\x17" * (size // 2))


CLUSTER_DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "version gone": (lambda data: (data / "PG_VERSION").unlink(), "PG_VERSION is missing"),
    "version overwritten": (lambda data: garbage(data / "PG_VERSION"), "PG_VERSION holds no version"),
    "control file overwritten": (lambda data: garbage(data / "global/pg_control"), "pg_control cannot be read"),
    "control file gone": (lambda data: (data / "global/pg_control").unlink(), "pg_control cannot be read"),
    "tables gone": (lambda data: shutil.rmtree(data / "base"), "base is missing"),
    "log gone": (lambda data: shutil.rmtree(data / "pg_wal"), "pg_wal is missing"),
    "everything gone": (lambda data: shutil.rmtree(data), "was there once, and is gone"),
}


@pytest.mark.parametrize("damage", CLUSTER_DAMAGE)
def test_a_damaged_cluster_is_left_as_it_is_and_said_with_what_to_do(cluster: Path, damage: str) -> None:
    hurt, told = CLUSTER_DAMAGE[damage]
    hurt(cluster / "data")
    before = fingerprint(cluster)
    with pytest.raises(ServerDidNotStart, match=told) as raised, start_postgres(cluster):
        pass
    assert "is damaged" in str(raised.value)
    assert "first keep a copy" in str(raised.value)
    assert fingerprint(cluster) == before


def test_a_cluster_that_was_put_back_starts_again(cluster: Path) -> None:
    (cluster / "data").rename(cluster.with_name("elsewhere"))
    with pytest.raises(ServerDidNotStart), start_postgres(cluster):
        pass
    cluster.with_name("elsewhere").rename(cluster / "data")
    with start_postgres(cluster) as server, psycopg.connect(server.url) as connection:
        assert connection.execute("SELECT count(*) > 1000 FROM memctl.events").fetchone() == (True,)


def test_up_says_what_to_do_where_only_postgres_itself_finds_the_damage(pristine: Path, folder: Path) -> None:
    data = folder / "data"
    data.mkdir(mode=0o700)
    cluster = shutil.copytree(pristine, data / "postgres", symlinks=True)
    for segment in (cluster / "data" / "pg_wal").iterdir():
        if segment.is_file():
            garbage(segment)
    before = fingerprint(cluster)
    settings = load_settings(data_dir=data)
    try:
        with pytest.raises(ProgramFailed, match="checkpoint record") as raised:
            up(settings, POSTGRES)
        assert "first keep a copy" in str(raised.value.hint)
        assert fingerprint(cluster) == before
    finally:
        down(settings)


def test_damaged_pages_stop_the_readers_and_verify_names_the_positions(cluster: Path, folder: Path) -> None:
    with start_postgres(cluster) as server, connect(server.url) as connection:
        row = connection.execute(
            "SELECT pg_relation_filepath('memctl.events_from_1'), max((ctid::text::point)[0])::int / 2"
            " FROM memctl.events_from_1"
        ).fetchone()
        assert row is not None
        path, page = row
        lost = [
            row[0]
            for row in connection.execute(
                "SELECT position FROM memctl.events WHERE (ctid::text::point)[0]::int = %s ORDER BY 1", [page]
            )
        ]
        live = generations.live(connection)
    garbage(cluster / "data" / path, at=page * 8192, size=8192)

    with start_postgres(cluster) as server, connect(server.url) as connection:
        settings = load_settings(database_url=server.url, data_dir=folder / "memctl")
        drainer = Drainer(server.url, batch=100_000)
        with pytest.raises((psycopg.Error, DatabaseDamaged)):
            catch_up(drainer)
        drainer.close()
        assert generations.lowest_offset(connection, live.stage1) == 0, "an event that cannot be read is not passed by"
        found = {one.name: one for one in Verification(settings).checks() if one.part == "log"}
        assert found["damaged pages"].result == "gap"
        named = [int(told.split(":")[0].removeprefix("position ")) for told in found["damaged pages"].found]
        assert named == lost[: len(named)]
        assert len(named) + found["damaged pages"].more == len(lost) > 0
        row = connection.execute("SELECT count(*) FROM memctl.mark WHERE position > 0").fetchone()
        assert row == (1,)


def test_damage_that_a_person_meets_is_told_as_damage(cluster: Path) -> None:
    with start_postgres(cluster) as server, connect(server.url) as connection:
        row = connection.execute("SELECT pg_relation_filepath('memctl.checkpoints_pkey')").fetchone()
        assert row is not None
    garbage(cluster / "data" / row[0])
    with start_postgres(cluster) as server, connect(server.url) as connection:
        from memctl.infra.database import outages
        from memctl.infra.log import checkpoints
        from memctl.infra.transcripts.reading import Checkpoint

        with pytest.raises(DatabaseDamaged) as raised, outages():
            checkpoints.save(connection, 1, {Path("/x"): Checkpoint(1, 1, "d")})
        assert "copy the database's files" in str(raised.value.hint)


@pytest.mark.parametrize("name", ["dump.rdb", "appendonlydir"])
def test_a_queue_starts_beside_files_that_it_cannot_load(folder: Path, name: str) -> None:
    place = folder / "valkey"
    place.mkdir(mode=0o700)
    if name == "dump.rdb":
        (place / name).write_bytes(b"REDIS0011 and then nonsense" * 9)
    else:
        (place / name).mkdir()
        (place / name / "appendonly.aof.manifest").write_text("nonsense")
    with start_valkey(place) as server:
        client = redis.Redis.from_url(server.url)
        assert client.ping()
        client.close()
        assert "set aside" in (place / "log").read_text()
    assert not (place / name).exists()
    (kept,) = place.glob(f"{name}.damaged-*")
    assert kept.is_dir() or kept.read_bytes().startswith(b"REDIS0011 and")


@pytest.fixture
def vector_files(tmp_path: Path) -> Iterator[ServerProcess]:
    with vector_server_process(tmp_path) as process:
        yield process


def test_vectors_that_are_overwritten_on_disk_are_built_again_from_rows_and_cache(
    database_url: str, vector_files: ServerProcess
) -> None:
    with connect(database_url) as connection:
        stage2 = generations.live(connection).stage2
        vector_models.serve(connection, SIGNS, 384)
        append(connection, 1, example())
        catch_up(Drainer(database_url))
        client = store.connect(vector_files.url, vector_files.token)
        points = OutboxPublisher(connection, client, stage2)
        while points.sync() or points.embed(Signs()):
            pass
        before = store.point_digests(client, points.collection)
        assert len(before) == store.count(client, points.collection) > 5
        client.close()

        vector_files.stop(signal.SIGTERM)
        for file in (vector_files.folder / "collections" / points.collection).glob("shard/segments/**/*"):
            if file.is_file() and file.stat().st_size:
                garbage(file)
        vector_files.start()

        assert f"collection {points.collection} is damaged and was set aside as" in vector_files.log
        (kept,) = (vector_files.folder / "damaged").iterdir()
        assert any(file.read_bytes().startswith(b"\xa5\x17") for file in kept.rglob("*") if file.is_file())
        client = store.connect(vector_files.url, vector_files.token)
        points = OutboxPublisher(connection, client, stage2)
        while points.sync():
            pass
        assert points.backlog() == (0, 0), "each dense vector comes from the cache"
        assert store.point_digests(client, points.collection) == before
        assert outbox.backlog(connection, stage2) == (0, 0)
        client.close()


def test_status_names_what_was_set_aside_and_what_the_spool_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner

    data = folder / "data"
    delivery = spool.Delivery("ab" * 16, 1_700_000_000_000_000, "claude-code", "Stop", b"{}")
    spool.spool(data / "spool", delivery)
    spool.set_aside(spool.spooled(data / "spool")[0], "damaged")
    monkeypatch.setattr(hook, "MOST_FILES", 1)
    assert spool.spool(data / "spool", delivery._replace(id="cd" * 16)) is None
    (data / "vectors" / "damaged" / "memctl-1-g2.20260101T000000Z").mkdir(parents=True)
    (data / "keys.json").write_text("nonsense")
    found = status(load_settings(data_dir=data), ())
    assert found.refused == 1
    assert found.aside == (
        "keys.damaged",
        f"spool/{1_700_000_000_000_000:020d}-{'ab' * 16}.damaged",
        "vectors/damaged/memctl-1-g2.20260101T000000Z",
    )
    told = CliRunner().invoke(status_command, ["--data-dir", str(data)])
    assert "keys.damaged" in told.output
    assert "had no room for 1 delivery of hooks" in told.output
    assert os.path.exists(Folders(data).data / found.aside[0])
