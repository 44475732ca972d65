"""After a scrub no file of the data directory holds a byte of what was forgotten, nor does a dump or a statistic."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psycopg
import pytest
import servers
from events import NOON, id_of, observed, prompt
from histories import drained, example
from plants import phrase

from memctl.api.erasure import scope as forget
from memctl.api.erasure.scrub import ScrubElsewhere, scrub
from memctl.api.reading.caller import OWNER
from memctl.api.reading.reader import reader_of
from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.observations import ResponseReceived, ToolCalled, ToolReturned
from memctl.domain.language.notes import MemoryNoted
from memctl.infra.data_dir import Folders, make_private
from memctl.infra.database import Connection, connect
from memctl.infra.embedded.postgres import binaries, start_postgres
from memctl.infra.embedded.scrub import copy_cluster, finish_scrub
from memctl.infra.log.append import append
from memctl.infra.log.migrate import migrate
from memctl.infra.readmodels import generations
from memctl.infra.settings import Settings, load_settings

PLANTS = 20
"""`make planted` plants ten times as many, in more places, and forgets them in more ways."""


def planted(count: int) -> list[tuple[str, NewEvent]]:
    """Phrases in prompts, answers, calls, results and notes, each in an event of its own."""
    found = []
    for n in range(count):
        word, session = phrase(n), f"plant-{n % 7}"
        said = f"Remember that the {word} service listens on port 8080, always use {word} for deploys."
        line, at = f"planted-{n}", 60 * n
        event = (
            prompt(n, said, session=session, at=at),
            observed(ResponseReceived(line=line, text=f"I will {said}"), session=session, at=at, actor="agent"),
            observed(ToolCalled(line=line, tool="Bash", call=line, input={"command": f"deploy --to {word}"}),
                     session=session, at=at, actor="agent"),
            observed(ToolReturned(line=line, tool="Bash", call=line, text=f"Error: {word} refused\n  at main.py:3"),
                     session=session, at=at, actor="tool"),
            NewEvent(stream="knowledge/notes", payload=MemoryNoted(text=said), occurred_at=Micros(NOON + at),
                     dedupe_key=f"command:planted:{n}", actor="user", location="/home/dana/ledger"),
        )[n % 5]  # fmt: skip
        found.append((word, event))
    return found


def holding(folder: Path, words: list[str]) -> dict[str, str]:
    """The words that some file in a folder holds, with one such file."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes().lower()
            found.update({word: str(path) for word in words if word.encode() in content})
    return found


def test_a_scrubbed_data_directory_holds_no_byte_of_what_was_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = Folders(tmp_path / "data")
    for folder in (
        places.data,
        places.run,
        places.log,
    ):  # not that of sockets, which lies in /tmp where this one is deep
        make_private(folder)
    monkeypatch.setenv("MEMCTL_DATA_DIR", str(places.data))
    plants = planted(PLANTS)
    gone, kept = plants[:-5], plants[-5:]
    with start_postgres(places.postgres) as server:
        migrate(server.url)
        monkeypatch.setenv("MEMCTL_DATABASE_URL", server.url)
        with connect(server.url) as log:
            generations.ensure_live(log, 2)
            append(log, 1, [*example(1), *(event for _, event in plants)])
            drained(server.url)
            log.execute("ANALYZE")
            for n, (word, event) in enumerate(gone):
                reader = reader_of(log, "default", OWNER)
                asked = {"match": word} if n % 2 else {"id": id_of(event)}
                forget.forget(load_settings(), log, forget.plan(load_settings(), reader, **asked), None)
            before = log.execute("SELECT count(*), sum(position) FROM memctl.events").fetchone()
    words = [word for word, _ in gone]
    assert holding(places.postgres, words), "without a scrub the pages still hold some: else this tests nothing"
    copy_cluster(places)
    places.postgres.rename(places.data / "postgres.before-scrub")  # as if killed between the two renames
    (places.data / "imports" / "killed").mkdir(parents=True)
    (places.data / "imports" / "killed" / "store").write_text(words[0])
    assert list(places.data.glob("postgres.*scrub*"))
    assert finish_scrub(places)
    assert not finish_scrub(places)
    assert not list(places.data.glob("postgres.*scrub*"))
    assert holding(places.data, words) == {}
    with start_postgres(places.postgres) as server, psycopg.connect(server.url) as log:
        assert log.execute("SELECT count(*), sum(position) FROM memctl.events").fetchone() == before
        dump = subprocess.run(
            [binaries() / "pg_dump", f"--dbname={server.url}"], capture_output=True, text=True, check=True
        ).stdout.lower()
        log.execute("ANALYZE")
        statistics = str(log.execute("SELECT pg_stats::text FROM pg_stats").fetchall()).lower()
        assert [word for word in words if word in dump or word in statistics] == []
        assert all(word in dump for word, _ in kept)


def test_a_space_that_moved_to_another_database_is_not_taken_for_rebuilt(
    settings: Settings, log: Connection, postgres_server: str, migrated_template: str
) -> None:
    """Else its files would hold what was forgotten, and nobody would say so."""
    with servers.fresh_database(postgres_server, template=migrated_template) as there:
        log.execute("UPDATE memctl.spaces SET database = 'there' WHERE name = 'default'")
        own = load_settings(databases={"there": there}).from_origins({})  # as if this were the embedded database
        assert not own.configured("database_url")
        notices: list[str] = []
        with pytest.raises(ScrubElsewhere, match="The space default lies on a server"):
            scrub(own, notices.append)
        assert notices == []
