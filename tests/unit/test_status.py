"""What `memctl status` shows of a look at everything."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from memctl.api.checks.dead_letters import LettersStatus
from memctl.api.checks.health import Health, Servers
from memctl.api.reading.counts import ShardProgress
from memctl.cli.main import memctl
from memctl.cli.operate.status import Installation, screen, troubles_of
from memctl.cli.output import width_of
from memctl.domain.events.event import Position
from memctl.infra.backup.copies import KeptBackups
from memctl.infra.backup.wal_archive import WalArchive
from memctl.infra.data_dir import Folders
from memctl.infra.embedded.instance import InstanceStatus, ProgramStatus
from memctl.infra.log.mark import SlowWriter
from memctl.infra.readmodels.dead_letters import Halt
from memctl.infra.readmodels.rebuilds import DIFFERING, RebuildProgress
from memctl.infra.vectors.outbox import Filling

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
PLACES = Folders(Path("/home/dana/.local/share/memctl"))
RUNNING = InstanceStatus(
    PLACES,
    True,
    [
        ProgramStatus("postgres", "RUNNING", 11, 7_200.0, 43_000_000),
        ProgramStatus("worker", "RUNNING", 12, 90.0, 124_000_000),
    ],
    {"api_url": "http://127.0.0.1:56941", "database_url": "postgresql://memctl:secret@/memctl?host=/run"},
)
HALTED = Halt(1, 0, Position(7), "UnknownEventType", "a newer memctl", NOW, 1)


def shard(stage: int, position: int, lag: int) -> ShardProgress:
    return ShardProgress(stage=stage, shard=0, position=position, lag=lag)


WELL = Health(
    last_position=18_502,
    mark=18_502,
    mark_age_s=0.0,
    shards=(shard(1, 18_502, 0), shard(2, 18_502, 0)),
    to_write=0,
    to_embed=0,
    standing=LettersStatus([], [], []),
    sizes={"database": 98_000_000, "log": 40_000_000},
)


def ended(status: str, message: str) -> RebuildProgress:
    return RebuildProgress(
        1, "replace", status, "events", 1, 1, None, None, Position(1), (1, 2), NOW, NOW, message  # type: ignore[arg-type]
    )  # fmt: skip


def kept(megabytes: int, hours: int) -> KeptBackups:
    newest = datetime.now(UTC) - timedelta(hours=hours)
    return KeptBackups(Path("/w/backups"), 2, megabytes * 1_000_000, newest, timedelta(hours=24))


def shown(look: Installation) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(screen(look, troubles_of(look))))


def with_health(**changes: Any) -> Installation:
    return Installation(RUNNING, msgspec.structs.replace(WELL, **changes))


def test_where_nothing_is_wrong_the_first_word_says_so_and_a_screen_holds_it() -> None:
    printed = shown(Installation(RUNNING, WELL, free=69_000_000_000))
    assert printed.startswith("all is well\n")
    assert "up to 18,502; all read" in printed
    assert "secret" not in printed
    lines = printed.splitlines()
    assert len(lines) <= 24
    assert max(map(width_of, lines)) <= 80


@pytest.mark.parametrize("archive", [("", 4, 180.0, 60, 1), ("", 0, 7260.0, 0, 1)])
def test_an_archive_that_keeps_up_is_well(archive: tuple[str, int, float, int, int]) -> None:
    assert shown(with_health(archive=WalArchive(*archive))).startswith("all is well")


def test_what_nobody_knows_has_no_line() -> None:
    printed = shown(Installation(InstanceStatus(PLACES, False, [], {})))
    assert [row for row in printed.splitlines() if row and len(row.split()) < 2] == []
    assert "disk" not in printed


@pytest.mark.parametrize(
    ("look", "named"),
    [
        (Installation(InstanceStatus(PLACES, False, [], {})), "memctl is not running"),
        (Installation(InstanceStatus(PLACES, True, [ProgramStatus("door", "FATAL")], {})), "door does not run"),
        (with_health(servers=Servers(stopped=("door",))), "door does not run"),
        (with_health(servers=Servers(silent=("api",))), "api runs and does not answer"),
        (with_health(servers=Servers(steps={"a transcript": 90.0})), "door is at a transcript for 2 min"),
        (
            with_health(servers=Servers(unread=("/a.jsonl (X)",), unread_count=1)),
            "1 transcript could not be read: /a.jsonl",
        ),
        (
            with_health(servers=Servers(aside=("spool/1.refused",))),
            "spool/1.refused was refused for what it holds",
        ),
        (with_health(servers=Servers(overdue=True)), "the last backup is overdue"),
        (with_health(servers=Servers(standby_s=40.0)), "the standby that questions are asked of is 40 s behind"),
        (with_health(servers=Servers(standby="no route")), "does not answer (no route)"),
        (with_health(archive=WalArchive("0A", 0, 0.0, 60, 1)), "cannot archive its write-ahead log: it failed at 0A"),
        (with_health(archive=WalArchive("", 5, 0.0, 60, 1)), "the archive is 0.0 MB and 0 min behind the log"),
        (with_health(archive=WalArchive("", 0, 181.0, 60, 1)), "and 3 min behind the log"),
        (with_health(archive=WalArchive("", 0, 7261.0, 0, 1)), "and 121 min behind the log"),
        (
            with_health(servers=Servers(stopped=("door",), spooled=3, spooled_s=50.0)),
            "3 deliveries of hooks on this disk, the oldest for 50 s, not in the log yet",
        ),
        (Installation(RUNNING), "the database does not answer"),
        (
            with_health(standing=LettersStatus([], [HALTED], [])),
            "stage 1 shard 0 stands still at position 7: a newer memctl",
        ),
        (with_health(standing=LettersStatus([], [], [SlowWriter(99, "psql", "idle", 60.0)])), "process 99 of Postgres"),
        (with_health(ended=ended("done", DIFFERING + "bug_patterns")), "rows differed: bug_patterns"),
        (with_health(ended=ended("failed", "event x cannot be folded")), "the last replay failed: event x"),
        (Installation(InstanceStatus(PLACES, True, [], {}, ("spool/x.damaged",)), WELL), "spool/x.damaged"),
        (Installation(InstanceStatus(PLACES, True, [], {}, (), 3), WELL), "no room for 3 deliveries"),
        (Installation(RUNNING, WELL, free=12_000_000), "12.0 MB are left"),
        (Installation(RUNNING, WELL, kept=kept(3, 1), most=100_000_000), "takes 101.0 MB of 100.0 MB"),
        (Installation(RUNNING, WELL, kept=kept(1, 100)), "the last backup is overdue"),
        (Installation(RUNNING, WELL, kept=kept(1, -100)), "the last backup is overdue"),
    ],
)
def test_whatever_needs_a_person_stands_first_and_is_named(look: Installation, named: str) -> None:
    assert shown(look).startswith("needs you: ")
    assert named in shown(look)


def test_what_waits_is_named_beside_what_needs_a_person() -> None:
    found = shown(with_health(servers=Servers(empty=("1a (no object)",), empty_count=2, stopped=("door",))))
    assert found.startswith("needs you: door does not run")
    assert "\nnot all is done: 2 deliveries of hooks held nothing to keep" in found


def test_deliveries_that_held_nothing_are_named_and_need_nobody() -> None:
    found = shown(with_health(servers=Servers(empty=("1a (no object)",), empty_count=2)))
    assert found.startswith("not all is done: 2 deliveries of hooks held nothing to keep since the door started, the")
    assert "1a (no object)" in found


def test_backups_and_limits_that_are_kept_need_nobody() -> None:
    look = Installation(RUNNING, WELL, free=300_000_000, kept=kept(1, 47), most=100_000_000)
    assert troubles_of(look) == []
    assert "2, the last 2 d ago, 1.0 MB" in shown(look)
    never = KeptBackups(Path("/w/backups"), 0, 0, None, None)
    assert "none, and none on schedule" in shown(Installation(RUNNING, WELL, kept=never))
    assert "none yet" in shown(Installation(RUNNING, WELL, kept=never._replace(every=timedelta(hours=24))))


def test_what_mends_itself_needs_nobody() -> None:
    busy = Installation(
        RUNNING,
        msgspec.structs.replace(
            WELL,
            mark=18_400,
            mark_age_s=2.0,
            shards=(shard(1, 18_000, 400),),
            to_write=7,
            to_embed=857,
            filling=Filling("openai/another", 2_000, 1_500),
        ),
        spooled=2,
        errors=[(NOW, "worker", "the vector store does not answer")],
    )
    printed = shown(busy)
    assert troubles_of(busy) == []
    for words in (
        "102 not readable yet",
        "shard 0 is 400 behind",
        "7 to write",
        "857 found by",
        "openai/another: 500 of 2,000 embedded",
        "2 deliveries wait",
    ):
        assert words in printed
    assert "worker: the vector store does not answer" in printed


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(shell: str) -> None:
    printed = CliRunner().invoke(memctl, ["completion", shell])
    assert printed.exit_code == 0
    assert f"{shell}_complete" in printed.output
    assert "_MEMCTL_COMPLETE" in printed.output
