"""What tests share. One server of each kind per worker of pytest-xdist, started by the first test that asks for it."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    import servers
    from qdrant_client import QdrantClient

# Modules beside this one (`servers`, …) are imported by their bare names.
sys.path.insert(0, str(Path(__file__).parent))

# Tests start some hundred processes; where no bytecode is kept, each of them compiles memctl anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# How long an example takes says how busy the machine is, and nothing of what is tested. Other examples are drawn each
# time, so few a time are many in a week; `few` is for another Python.
for name, count in (("memctl", 40 * max(int(os.environ.get("MEMCTL_TEST_SOAK", "0")), 1)), ("few", 10)):
    settings.register_profile(name, deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=count)
settings.load_profile("memctl")

MEMORY = "/dev/shm"
ROOM = 6 << 30


def in_memory() -> bool:
    """Whether what tests write can lie in memory: there a database is made and dropped at a fifth of the cost.

    What the tests kill are processes; no machine loses power, so what a disk has and has not does not matter to them.
    """
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK | os.X_OK):
        return False
    found = os.statvfs(MEMORY)
    return found.f_bavail * found.f_frsize >= ROOM and not found.f_flag & os.ST_NOEXEC


if in_memory():
    os.environ["TMPDIR"] = MEMORY
    tempfile.tempdir = None


def pytest_configure() -> None:
    """Before there are workers: they all have the folder from who starts them."""
    import data_dirs

    data_dirs.compile_once()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests are made, of which nothing is garbage: to look for it again and again is a third of the work,
    and part of it would come again in each later look."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


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


@pytest.fixture(scope="session")
def templates(postgres_server: str, migrated_template: str) -> Iterator[servers.Templates]:
    import servers

    with servers.Templates(postgres_server, migrated_template) as templates:
        yield templates


@pytest.fixture
def shards() -> int | None:
    """Shards of the read models that `database_url` comes with; none yet, unless a module or a parameter says so."""
    return None


@pytest.fixture
def database_url(
    request: pytest.FixtureRequest, postgres_server: str, templates: servers.Templates, shards: int | None
) -> Iterator[str]:
    """URL of a database of the test's own that has memctl's schema, and no event unless the test is marked `filled`."""
    import servers

    filled = request.node.get_closest_marker("filled")
    with servers.fresh_database(postgres_server, templates.filled() if filled else templates.live(shards)) as url:
        yield url


@pytest.fixture
def filled_url(postgres_server: str, templates: servers.Templates) -> Iterator[str]:
    """URL of a database of the test's own in which a history with something for every read model is folded."""
    import servers

    with servers.fresh_database(postgres_server, templates.filled()) as url:
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


@pytest.fixture
def client(vectors: tuple[str, str]) -> Iterator[QdrantClient]:
    """Of the local vector server."""
    from memctl.infra.vectors import store

    client = store.connect(*vectors)
    yield client
    client.close()
