"""Files of an instance that a disk or a person damaged: what reads them goes on as if they were not there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from memctl.infra.data_dir import Folders
from memctl.infra.embedded.instance import set_aside
from memctl.infra.embedded.programs import PROGRAMS, recalled
from memctl.infra.endpoints import read_endpoints
from memctl.infra.hooks.spool import refusals
from memctl.infra.process import Process

CONTENTS = (b"", b"[]", b"null", b"5", b"\xff\xfe\0junk", b"[" * 100_000, b'{"tokens": 5, "ports": {"api": "x"}}', None)


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Folders]:
    found = Folders(tmp_path)
    found.make()
    found.spool.mkdir()
    yield found
    shutil.rmtree(found.sockets, ignore_errors=True)  # they lie elsewhere where this path is long


def damage(file: Path, content: bytes | None) -> None:
    """None makes it a folder."""
    file.mkdir() if content is None else file.write_bytes(content)


@pytest.mark.parametrize("content", CONTENTS, ids=range(len(CONTENTS)))
def test_what_is_damaged_counts_as_not_there(places: Folders, content: bytes | None) -> None:
    this = Process.of(os.getpid())
    assert this is not None
    damage(places.record_of("api"), content)
    assert Process.recorded(places.record_of("api")) is None
    this.record(places.supervisor_record)
    damage(places.endpoints, content)
    assert set(read_endpoints(places)) <= {"tokens", "ports"}
    damage(places.spool / "refused", content)
    assert refusals(places.spool) is None
    for times in (1, 2):  # what was set aside before stays
        damage(places.keys, content)
        known = recalled(places)
        assert (known.tokens, known.ports) == ({}, {})
        assert not places.keys.exists()
        assert len(set_aside(places)) == times
    assert not any(program.ready(known, this) for program in PROGRAMS)
