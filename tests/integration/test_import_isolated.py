"""A store that anybody may have written is read in a process of its own, which may take only so much."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import until

from memctl.infra.legacy import isolated
from memctl.infra.legacy.isolated import rows_in_isolation
from memctl.infra.legacy.rows import NotALegacyStore, rows_of

ROW = {"content": "the parser must not use eval", "chat_platform": "cli", "memory_type": "note"}


def test_rows_come_as_they_are_read_here(tmp_path: Path) -> None:
    lines = tmp_path / "bot_memory.jsonl"
    odd = {"n": 1 << 80, "x": [1.5, None, True, {"deep": ["ok"]}], "lone": "\ud800"}
    rows = [{**ROW, "id": n, **(odd if n % 7 == 0 else {})} for n in range(1000)]
    lines.write_text("\n".join(map(json.dumps, rows)) + "\nnot json\n")
    database = tmp_path / "store.db"
    with sqlite3.connect(database) as made:
        made.execute("CREATE TABLE bot_memory (id INTEGER, content TEXT, picture BLOB)")
        made.executemany("INSERT INTO bot_memory VALUES (?, ?, ?)", ((n, "x" * n, bytes([n])) for n in range(100)))
    made.close()
    for path, count in ((lines, 1001), (database, 100)):
        found = list(rows_in_isolation(path))
        assert found == list(rows_of(path))
        assert len(found) == count


def test_what_is_no_store_is_said_as_it_is_here(tmp_path: Path) -> None:
    duck = tmp_path / "duck.db"
    duck.write_bytes(b"\0" * 8 + b"DUCK" + b"\0" * 100)
    with pytest.raises(NotALegacyStore, match="DuckDB"):
        list(rows_in_isolation(duck))
    with pytest.raises(FileNotFoundError):
        list(rows_in_isolation(tmp_path / "nowhere.db"))


def test_a_document_that_takes_more_memory_than_allowed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "many.json"
    path.write_bytes(b"[" + b"[],[]," * (40 << 20) + b"[]]")  # 250 MB of JSON, 5 GB of lists
    before = _peak_of_children()
    with pytest.raises(NotALegacyStore, match=r"more than \d+ MB of memory"):
        list(rows_in_isolation(path))
    assert before < isolated.MOST_MEMORY >> 10
    assert _peak_of_children() < isolated.MOST_MEMORY >> 10


def test_a_reader_that_a_signal_ended_is_said_to_need_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bot_memory.jsonl"
    path.write_text(json.dumps(ROW))
    dies = tmp_path / "python"
    dies.write_text("#!/bin/sh\nkill -SEGV $$\n")
    dies.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(dies))
    with pytest.raises(NotALegacyStore, match=r"SIGSEGV .* needs more memory: JSON by the line takes less"):
        list(rows_in_isolation(path))


def test_a_store_takes_half_of_what_is_free() -> None:
    assert isolated.memory_of(4 << 30) == 2 << 30
    assert isolated.memory_of(64 << 30) == isolated.memory_of(None) == isolated.MOST_MEMORY
    assert isolated.memory_of(1 << 20) == isolated.LEAST_MEMORY


def test_a_file_that_is_a_hole_is_refused_and_gives_no_time_to_read_it(tmp_path: Path) -> None:
    hole = tmp_path / "hole.db"
    hole.touch()
    os.truncate(hole, 300 << 30)
    assert isolated.cpu_of(hole.stat()) == isolated.CPU_S
    with pytest.raises(NotALegacyStore, match="begins with zeros"):
        list(rows_in_isolation(hole))


def test_a_row_that_is_longer_than_any_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "bot_memory.jsonl"
    lists = b'{"content": [' + b"[]," * (3 << 20) + b'[]], "memory_type": "note"}\n'
    long = b'{"content": "' + b"x" * (17 << 20) + b'"}\n'
    path.write_bytes(lists + json.dumps(ROW).encode() + b"\n" + long)
    rows = list(rows_in_isolation(path))
    assert [row.why for row in rows] == ["longer than 4 MB", "", "longer than 16 MB"]
    assert rows[1].fields == ROW


def test_a_reading_that_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is of processor time: the limit is set here by a process that loops in place of reading."""
    path = tmp_path / "loop.jsonl"
    path.write_text(json.dumps(ROW))
    loops = tmp_path / "python"
    loops.write_text(f"#!/bin/sh\nulimit -t 1\nexec {sys.executable} -c 'while True: pass'\n")
    loops.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(loops))
    with pytest.raises(NotALegacyStore, match="more time than a store of its size"):
        list(rows_in_isolation(path))


def test_a_reader_ends_with_who_reads_and_where_nobody_reads_on(tmp_path: Path) -> None:
    path = tmp_path / "bot_memory.jsonl"
    path.write_text((json.dumps({**ROW, "content": "x" * 10_000}) + "\n") * 5_000)
    rows = rows_in_isolation(path)
    next(rows)
    (child,) = _children(os.getpid())
    rows.close()
    assert not Path(f"/proc/{child}").exists()
    code = (
        "import time\nfrom pathlib import Path\nfrom memctl.infra.legacy.isolated import rows_in_isolation\n"
        f"rows = rows_in_isolation(Path({str(path)!r}))\nnext(rows)\nprint('reads', flush=True)\ntime.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"reads\n"
        (child,) = _children(parent.pid)
        parent.send_signal(signal.SIGKILL)
    until(lambda: not Path(f"/proc/{child}").exists(), "the end of the reader")


def _children(pid: int) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
        if b"legacy.isolated" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


def _peak_of_children() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
