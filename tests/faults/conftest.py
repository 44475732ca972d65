"""What worker processes need, for tests that disturb them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import servers
from data_dirs import used
from orders import Server

from memctl.infra.database import Connection, DatabaseUnavailable, connect
from memctl.infra.vectors import store
from memctl.workers.vectors.outbox_publisher import drop_collections


@pytest.fixture
def environment_for(
    redis_url: str, vectors: tuple[str, str], tmp_path: Path
) -> Iterator[Callable[[str], dict[str, str]]]:
    """Gives the environment of a worker on the database under a URL, and clears its vectors away afterwards."""
    url, token = vectors
    asked_for: list[str] = []

    def environment_for(database_url: str) -> dict[str, str]:
        asked_for.append(database_url)
        return {
            "MEMCTL_DATA_DIR": str(used(tmp_path / "data")),
            "MEMCTL_DATABASE_URL": database_url,
            "MEMCTL_REDIS_URL": redis_url,
            "MEMCTL_QDRANT_URL": url,
            "MEMCTL_QDRANT_API_KEY": token,
            "MEMCTL_EMBEDDER": "none",
            "MEMCTL_READ_BATCH": "40",
        }

    yield environment_for
    client = store.connect(url, token)
    for database_url in asked_for:
        # A Postgres of the test's own may be gone by now.
        with contextlib.suppress(DatabaseUnavailable), connect(database_url) as connection:
            for generation in range(1, 16):
                drop_collections(connection, client, generation)
    client.close()


@pytest.fixture
def shards() -> int:
    return 4


@pytest.fixture
def environment(database_url: str, environment_for: Callable[[str], dict[str, str]]) -> dict[str, str]:
    return environment_for(database_url)


@pytest.fixture
def log(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as connection:
        yield connection


@pytest.fixture(scope="module")
def server(postgres_server: str, templates: servers.Templates) -> Server:
    return postgres_server, templates
