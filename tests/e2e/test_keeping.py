"""What a user keeps elsewhere and brings back by the command line: backups, exports, a damaged database, a reset."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
from commandline import Memctl
from waiting import until

from memctl.infra.hooks.spool import Delivery, spool

FORGOTTEN, KEPT = "the zq7vkx19mw harbour protocol", "the bq3jhy54nd lantern protocol"
MEANWHILE = "what does the fh2wkq83zt beacon say?"


@pytest.fixture(scope="module")
def backup(memctl: Memctl) -> dict[str, Any]:
    """A backup of before something was forgotten, in which something was noted by hand."""
    assert memctl.json("status")["backups"]["count"] == 0
    memctl("note", f"We rely on {FORGOTTEN} everywhere.")
    memctl("note", f"We rely on {KEPT} everywhere.")
    made: dict[str, Any] = memctl.json("backup")
    memctl("forget", "--match", "-", "--yes", stdin=FORGOTTEN.encode())
    return made


def log_of(memctl: Memctl) -> list[tuple[int, bool]]:
    """Positions, and whether there is something at them."""
    with psycopg.connect(memctl.database_url) as connection:
        return connection.execute(
            "SELECT position, payload IS NOT NULL FROM memctl.events WHERE type <> 'content.erased' ORDER BY position"
        ).fetchall()


def said(memctl: Memctl, text: str) -> bool:
    with psycopg.connect(memctl.database_url) as connection:
        row = connection.execute(
            "SELECT EXISTS (SELECT FROM memctl.events WHERE strpos(payload::text, %s) > 0)", [text]
        ).fetchone()
        return bool(row and row[0])


def test_a_backup_is_private_checked_and_told_by_status(memctl: Memctl, backup: dict[str, Any]) -> None:
    file = Path(backup["file"])
    assert backup["bytes"] == file.stat().st_size
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert "sound" in memctl("backup", "--check", str(file))
    told = memctl.json("status")["backups"]
    assert (told["count"], told["bytes"], told["every_hours"], told["overdue"]) == (1, backup["bytes"], 24, False)
    assert "1, the last" in memctl("status")


def test_an_export_that_another_tool_reads_is_taken_back_once(
    memctl: Memctl, backup: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "log.jsonl"
    memctl("export", str(file))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) > 20
    assert FORGOTTEN not in file.read_text()
    assert KEPT in file.read_text()
    memctl("export", "--session", "no-such-session", code=3)
    before = log_of(memctl)
    memctl("import", str(file))
    assert log_of(memctl) == before
    file.write_text(file.read_text().replace("lantern", "torch"))
    memctl("import", str(file), code=1)
    assert log_of(memctl) == before


def test_a_damaged_database_is_put_aside_and_the_newest_sound_backup_comes_back_without_what_was_forgotten(
    memctl: Memctl, backup: dict[str, Any]
) -> None:
    before = log_of(memctl)
    broken = Path(backup["file"]).with_name("memctl-29990101T000000000000Z.memctl.zip")
    broken.write_bytes(Path(backup["file"]).read_bytes()[:-500])
    memctl("restore", code=1)
    assert "--set-aside" in memctl.said, "nothing is restored over what is there"
    memctl("down")
    control = memctl.data / "postgres" / "data" / "global" / "pg_control"
    control.write_bytes(b"\xa5" * len(control.read_bytes()))
    memctl("up", code=1)
    assert "memctl restore --set-aside" in memctl.said
    hook = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": "/work/shop", "prompt": MEANWHILE}
    told = Delivery("0" * 32, time.time_ns() // 1000, "claude-code", "", json.dumps(hook).encode())
    assert spool(memctl.data / "spool", told) is not None
    done = memctl.json("restore", "--set-aside")
    until(lambda: said(memctl, MEANWHILE), "what was told while nothing ran")
    assert done["file"] == backup["file"], "the newest cannot be read"
    assert (done["receipts"], done["left_out"], done["begun"]) == (1, 1, 0)
    assert log_of(memctl)[: len(before)] == before
    assert not said(memctl, FORGOTTEN)
    assert said(memctl, KEPT)
    (aside,) = memctl.json("status", code=1)["set_aside"]
    assert (memctl.data / aside / "data" / "global" / "pg_control").read_bytes() == b"\xa5" * len(control.read_bytes())
    memctl("ingest", "--example", "--again", "--wait")
    assert memctl.json("search", "csv export of monthly totals")
    memctl("verify")
    broken.unlink()


def test_a_new_start_keeps_a_backup_from_which_all_comes_back(memctl: Memctl, backup: dict[str, Any]) -> None:
    before = log_of(memctl)
    memctl("reset", code=1, at_a_terminal=False)  # nobody is there to say yes
    assert log_of(memctl) == before
    memctl("reset", "--confirm")
    assert log_of(memctl) == []
    memctl("search", "csv export of monthly totals", code=3)
    assert memctl.json("restore")["events"] >= len(before)
    assert log_of(memctl) == before
    memctl("note", f"We rely on {FORGOTTEN} here too.")
    assert said(memctl, FORGOTTEN), "said again later, it is something new"


def test_after_all_that_nobody_but_the_owner_may_read_or_enter_anything(memctl: Memctl) -> None:
    settings = memctl.json("config")
    sockets = Path(settings["door_socket"]).parent
    paths = [memctl.data, sockets, *memctl.data.rglob("*"), *sockets.iterdir()]
    modes = {path: path.lstat().st_mode for path in paths}
    assert sum(map(stat.S_ISSOCK, modes.values())) >= 4
    assert {"receipts.jsonl", "keys.json", "PG_VERSION", "worker.log"} <= {path.name for path in paths}
    assert [path for path, mode in modes.items() if not stat.S_ISLNK(mode) and mode & 0o077] == []
    links = [path for path, mode in modes.items() if stat.S_ISLNK(mode)]
    assert [path for path in links if not path.resolve().is_relative_to(memctl.data)] == []
