"""What tests share. One server of each kind per worker of pytest-xdist, started by the first test that asks for it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# Modules beside this one (`servers`, …) are imported by their bare names.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test reads or changes the memory or the configuration of whoever runs it."""
    for name in [name for name in os.environ if name.startswith("MEMCTL_") and not name.startswith("MEMCTL_TEST_")]:
        monkeypatch.delenv(name)
    home = tmp_path_factory.getbasetemp() / "home"
    monkeypatch.setenv("MEMCTL_DATA_DIR", str(home / "memctl"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """URL of a Postgres server in which tests may create databases."""
    import servers

    with servers.postgres_server() as url:
        yield url


@pytest.fixture(scope="session")
def migrated_template(postgres_server: str) -> Iterator[str]:
    import servers

    with servers.migrated_database(postgres_server) as name:
        yield name


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """URL of an empty database of the test's own."""
    import servers

    with servers.fresh_database(postgres_server) as url:
        yield url


@pytest.fixture
def database_url(postgres_server: str, migrated_template: str) -> Iterator[str]:
    """URL of a database of the test's own that has memctl's schema and no event."""
    import servers

    with servers.fresh_database(postgres_server, template=migrated_template) as url:
        yield url


@pytest.fixture(scope="session")
def _redis_server() -> Iterator[str]:
    import servers

    with servers.redis_server() as url:
        yield url


@pytest.fixture
def redis_url(_redis_server: str) -> Iterator[str]:
    """URL of a Redis database of the test's own."""
    import servers

    with servers.empty_redis(_redis_server) as url:
        yield url


@pytest.fixture(scope="session")
def vectors() -> Iterator[tuple[str, str]]:
    """URL and token of the local vector server. Collections are the test's own business: name them uniquely."""
    import vector_server

    with (
        tempfile.TemporaryDirectory(prefix="memctl-test-") as folder,
        vector_server.vector_server(Path(folder)) as found,
    ):
        yield found
