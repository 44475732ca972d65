"""The local vector server killed, stopped, damaged and started again: what it keeps, and what it sets aside."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from points import DIMENSIONS, a_point
from qdrant_client import QdrantClient
from vector_server import ServerProcess, raw, vector_server_process
from waiting import until

from memctl.infra.vectors import CollectionMissing, VectorStoreUnavailable, store


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ServerProcess]:
    with vector_server_process(tmp_path) as process:
        yield process


def test_nothing_acknowledged_is_lost_by_kill_9(own_server: ServerProcess) -> None:
    client = store.connect(own_server.url, own_server.token)
    store.ensure_collection(client, "kept", DIMENSIONS)
    for round in range(3):
        acknowledged = {point.id for point in store.scroll_points(client, "kept")}
        started = threading.Event()
        server, first = own_server, round * 10_000

        def write(client: QdrantClient = client, first: int = first, kept: set[str] = acknowledged) -> None:
            for start in range(first, first + 10_000, 20):
                points = [a_point(k) for k in range(start, start + 20)]
                try:
                    store.upsert(client, "kept", points)
                except VectorStoreUnavailable:
                    return
                kept.update(point.id for point in points)
                if len(kept) > 100:
                    started.set()  # noqa: B023

        writer = threading.Thread(target=write)
        writer.start()
        assert started.wait(20)
        server.kill()
        writer.join()
        client.close()
        server.start()
        client = store.connect(server.url, server.token)
        present = {point.id for point in store.scroll_points(client, "kept")}
        assert acknowledged <= present
        assert len(present) <= len(acknowledged) + 20, "at most the unanswered request may have been applied besides"
        assert "damaged" not in server.log
    client.close()


def test_deletes_and_dense_vectors_survive_kill_9(own_server: ServerProcess) -> None:
    client = store.connect(own_server.url, own_server.token)
    store.ensure_collection(client, "kept", DIMENSIONS)
    store.upsert(client, "kept", [a_point(k, dense=False) for k in range(100)])
    store.set_dense(client, "kept", {a_point(k).id: [1.0] * DIMENSIONS for k in range(50)})
    store.delete(client, "kept", [a_point(k).id for k in range(0, 100, 2)])
    own_server.kill()
    own_server.start()
    client = store.connect(own_server.url, own_server.token)
    listed = {point.id: point.has_dense for point in store.scroll_points(client, "kept")}
    assert listed == {a_point(k).id: k < 50 for k in range(1, 100, 2)}
    client.close()


def test_a_graceful_stop_keeps_everything_and_leaves_no_announcement(own_server: ServerProcess) -> None:
    client = store.connect(own_server.url, own_server.token)
    store.ensure_collection(client, "kept", DIMENSIONS)
    store.upsert(client, "kept", [a_point(k) for k in range(100)])
    client.close()
    assert own_server.stop() == 0
    assert not (own_server.folder / "server.json").exists()
    own_server.start()
    client = store.connect(own_server.url, own_server.token)
    assert store.count(client, "kept") == 100
    client.close()


def flushed_collection(server: ServerProcess, name: str) -> Path:
    """A collection of 100 points that the server has flushed, whole on disk; the server is stopped."""
    client = store.connect(server.url, server.token)
    store.ensure_collection(client, name, DIMENSIONS)
    store.upsert(client, name, [a_point(k) for k in range(100)])
    client.close()
    server.stop()
    return server.folder / "collections" / name


DAMAGE: dict[str, Callable[[Path], object]] = {
    "segment description cut": lambda path: cut(next(path.glob("shard/segments/*/segment.json"))),
    "id mappings cut": lambda path: cut(next(path.glob("shard/segments/*/mutable_id_tracker.mappings"))),
    "vectors deleted": lambda path: next(path.glob("shard/segments/*/vector_storage-dense/**/*.mmap")).unlink(),
    "log overwritten": lambda path: [file.write_bytes(b"x" * 64) for file in path.glob("shard/wal/open-*")],
    "description unreadable": lambda path: (path / "collection.json").write_text("{"),
    "description gone": lambda path: (path / "collection.json").unlink(),
    "segments gone": lambda path: [cut(f, gone=True) for f in path.glob("shard/segments/**/*") if f.is_file()],
}


def cut(file: Path, gone: bool = False) -> None:
    if gone:
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:5])


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_collection_is_set_aside_and_can_be_built_again(own_server: ServerProcess, damage: str) -> None:
    path = flushed_collection(own_server, "hurt")
    DAMAGE[damage](path)
    left = {str(file.relative_to(path)) for file in path.rglob("*") if "journal" not in file.name}
    own_server.start()
    client = store.connect(own_server.url, own_server.token)
    with pytest.raises(CollectionMissing):
        store.count(client, "hurt")

    [aside] = (own_server.folder / "damaged").iterdir()
    assert aside.name.startswith("hurt.")
    assert left <= {str(file.relative_to(aside)) for file in aside.rglob("*")}
    assert f"damaged and set aside: {aside.name}" in raw(own_server, "GET", "/readyz")[1]
    assert "collection hurt is damaged" in own_server.log

    assert store.ensure_collection(client, "hurt", DIMENSIONS)
    store.upsert(client, "hurt", [a_point(1)])
    assert store.count(client, "hurt") == 1
    client.close()


def test_an_undamaged_neighbour_goes_on_answering(own_server: ServerProcess) -> None:
    flushed_collection(own_server, "well")
    own_server.start()
    DAMAGE["description gone"](flushed_collection(own_server, "hurt"))
    own_server.start()
    client = store.connect(own_server.url, own_server.token)
    assert store.list_collections(client) == ["well"]
    assert store.count(client, "well") == 100
    client.close()


def test_what_was_half_made_or_half_deleted_is_gone_after_a_start(own_server: ServerProcess) -> None:
    path = flushed_collection(own_server, "kept")
    left = own_server.folder / "tmp" / "half.0"
    left.mkdir(parents=True)
    (left / "collection.json").write_text("{}")
    own_server.start()
    assert not left.exists()
    assert path.exists()


def test_a_second_server_over_the_same_folder_is_refused_and_does_no_harm(own_server: ServerProcess) -> None:
    second = subprocess.run(own_server.command(), capture_output=True, text=True, timeout=30, check=False)
    assert second.returncode == 1
    assert "Another vector server owns" in second.stderr
    assert second.stdout == ""
    assert raw(own_server, "GET", "/collections")[0] == 200


def test_files_are_closed_to_others(own_server: ServerProcess) -> None:
    flushed_collection(own_server, "private")
    open_to_others = [
        str(path) for path in own_server.folder.rglob("*") if not path.is_symlink() and path.stat().st_mode & 0o077
    ]
    assert open_to_others == []


def test_resting_writes_are_flushed_so_that_the_log_stays_short(own_server: ServerProcess) -> None:
    client = store.connect(own_server.url, own_server.token)
    store.ensure_collection(client, "kept", DIMENSIONS)
    store.upsert(client, "kept", [a_point(1)])
    client.close()
    until((own_server.folder / "collections" / "kept" / "checkpoint.json").exists)
