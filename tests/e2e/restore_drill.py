"""A restore drill: a database that archives its write-ahead log is destroyed and brought back to a point in time.

`make restore-drill` runs this, on Debian's PostgreSQL. (It is no test that `make test` collects.)
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
from clusters import Cluster, cluster, ended, make_folder
from commandline import Memctl
from data_dirs import used
from documents import ROOT
from waiting import until
from working import caught_up

from memctl.infra.database import connect

CONF = ROOT / "infra" / "deploy" / "postgres" / "archive.conf"

EARLIER, KEPT, FORGOTTEN, LATER = (
    f"We rely on the {word} protocol everywhere."
    for word in ("bq3jhy54nd lantern", "rr2mzk83xa cellar", "zq7vkx19mw harbour", "fh2wkq83zt beacon")
)


class Site(NamedTuple):
    """memctl on a PostgreSQL of its own that archives its write-ahead log."""

    memctl: Memctl
    postgres: Cluster
    archive: Path


@pytest.fixture
def site(servers_folder: Path, tmp_path: Path) -> Iterator[Site]:
    archive = make_folder(servers_folder / "archive")
    words = CONF.read_text().replace("/archive", str(archive))
    settings = dict(re.findall(r"^(\w+) = '?(.*?)'?$", words, re.MULTILINE))
    memctl = Memctl(tmp_path)
    used(memctl.data)
    with cluster(servers_folder / "pg", **settings) as postgres:
        memctl.environment["MEMCTL_DATABASE_URL"] = postgres.url
        try:
            memctl("up")
            yield Site(memctl, postgres, archive)
        finally:
            memctl("down")


def test_a_destroyed_database_comes_back_to_a_point_in_time_without_what_was_forgotten_since(
    site: Site, servers_folder: Path
) -> None:
    memctl, postgres = site.memctl, site.postgres
    memctl("ingest", "--example", "--wait")
    memctl("note", EARLIER)
    until(lambda: folded(site))
    copy = postgres.copy(servers_folder / "base")
    memctl("note", KEPT)
    memctl("note", FORGOTTEN)
    until(lambda: folded(site))
    moment = postgres.ask("SELECT clock_timestamp()::text")
    memctl("forget", "--match", "-", "--yes", stdin=b"zq7vkx19mw")
    memctl("note", LATER)
    archived(site)

    postgres.kill()
    shutil.rmtree(postgres.data)
    copy.port = postgres.port
    (copy.data / "recovery.signal").touch()
    with ended(copy):
        copy.start(
            restore_command=f"cp {site.archive}/%f %p", recovery_target_time=moment,
            recovery_target_action="promote", archive_mode="off",
        )  # fmt: skip
        until(lambda: not copy.ask("SELECT pg_is_in_recovery()"))

        assert [held(site, text) for text in (EARLIER, KEPT, FORGOTTEN, LATER)] == [True, True, True, False]
        said = memctl("verify", code=1)
        assert "which was set back in time" in said
        until(lambda: folded(site))
        memctl("forget", "--resume")
        assert not held(site, FORGOTTEN)
        memctl("verify", "--repair")
        memctl("replay", "--all", "--verify")
        memctl("verify")
        memctl("note", FORGOTTEN.replace("zq7vkx19mw", "gone"))
        until(lambda: folded(site))
        memctl("ingest", "--example", "--again", "--wait")
        memctl("verify")
        assert [held(site, text) for text in (EARLIER, KEPT, FORGOTTEN)] == [True, True, False]
        assert memctl.json("search", KEPT)


def test_an_archive_that_fails_or_stands_off_is_said(site: Site) -> None:
    memctl, postgres = site.memctl, site.postgres
    memctl("ingest", "--example", "--wait")
    archived(site)
    assert line(memctl("doctor", code=None), "archive").startswith("ok")

    postgres.stop()
    postgres.start(archive_command="false")
    until(lambda: memctl("note", KEPT, code=None) == "" or "error" not in memctl.said)
    postgres.ask("SELECT pg_switch_wal()")
    until(lambda: postgres.ask("SELECT failed_count FROM pg_stat_archiver"))
    assert "cannot archive" in memctl("doctor", code=1)
    assert "cannot archive" in memctl("status", code=1)
    assert "memctl_archive_failing 1" in memctl.asked("/metrics")[1]

    postgres.stop()
    postgres.start(archive_mode="off")
    until(lambda: "off: nothing brings" in memctl("doctor", code=None))
    assert "memctl_archive_failing 1" not in memctl.asked("/metrics")[1]


def held(site: Site, text: str) -> bool:
    """Whether the log holds a text."""
    with psycopg.connect(site.postgres.url) as connection:
        row = connection.execute(
            "SELECT EXISTS (SELECT FROM memctl.events WHERE strpos(payload::text, %s) > 0)", [text]
        ).fetchone()
        return bool(row and row[0])


def folded(site: Site) -> bool:
    with connect(site.postgres.url) as connection:
        return caught_up(connection)


def archived(site: Site) -> None:
    """Wait until all that was written so far is in the archive."""
    name = site.postgres.ask("SELECT pg_walfile_name(pg_switch_wal())")
    until(lambda: (site.postgres.ask("SELECT last_archived_wal FROM pg_stat_archiver") or "") >= name, "the archive")


def line(said: str, name: str) -> str:
    return next(each.strip() for each in said.splitlines() if f" {name}" in each)
