"""What tests with real servers share: the log, settings that name it, and a small memory with an API to ask it by."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import servers
from apis import Api, serving
from asked import Remembered, remembered
from data_dirs import used
from llm_server import Server, llm_server

from memctl.api.write.ingest_writer import IngestWriter
from memctl.infra.database import Connection, connect
from memctl.infra.llm import client
from memctl.infra.settings import Settings, load_settings


@pytest.fixture
def log(database_url: str) -> Iterator[Connection]:
    with connect(database_url, name="test") as connection:
        yield connection


@pytest.fixture
def elsewhere(postgres_server: str, migrated_template: str) -> Iterator[Connection]:
    """Another database, with nothing in it."""
    with servers.fresh_database(postgres_server, template=migrated_template) as url, connect(url) as connection:
        yield connection


@pytest.fixture
def settings(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Settings:
    """Of the test's own database and a data directory of its own."""
    monkeypatch.setenv("MEMCTL_DATABASE_URL", database_url)
    monkeypatch.setenv("MEMCTL_DATA_DIR", str(used(tmp_path / "data")))
    return load_settings()


@pytest.fixture
def intake(database_url: str, tmp_path: Path) -> Iterator[IngestWriter]:
    with IngestWriter(load_settings(database_url=database_url, data_dir=used(tmp_path / "data"))) as intake:
        yield intake


@pytest.fixture(scope="module")
def memory(postgres_server: str, migrated_template: str, vectors: tuple[str, str]) -> Iterator[Remembered]:
    """A memory of the module's own, found by words."""
    with remembered(postgres_server, migrated_template, vectors, embedded=False) as found:
        yield found


@pytest.fixture(scope="module")
def api(memory: Remembered, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(tmp_path_factory.mktemp("api"), memory, embedder="none") as found:
        yield found


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A language model's server; whoever it sends away asks again at once."""
    monkeypatch.setattr(client, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(client, "LONGEST_PAUSE_S", 0.01)
    with llm_server() as server:
        yield server
