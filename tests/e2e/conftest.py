"""memctl as its user runs it, for tests of the whole."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import Memctl
from data_dirs import used


@pytest.fixture(scope="module")
def memctl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memctl]:
    """Everything of the module's own runs, and the example was read."""
    memctl = Memctl(tmp_path_factory.mktemp("home"))
    used(memctl.data)
    try:
        memctl("up")
        memctl("ingest", "--example", "--wait")
        yield memctl
    finally:
        memctl("down")


@pytest.fixture
def servers_folder() -> Iterator[Path]:
    """A folder that lets other users through to what is theirs in it."""
    with tempfile.TemporaryDirectory(prefix="memctl-servers-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Memctl]:
    """A memctl that nothing has been read into; it is stopped when the test ends."""
    memctl = Memctl(tmp_path)
    used(memctl.data)
    yield memctl
    memctl("down")
