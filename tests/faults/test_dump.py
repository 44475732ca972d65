"""A dump is restored into a fresh cluster, and goes on there: nothing is skipped, nothing comes twice."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import psycopg
import pytest
import servers
from draining import catch_up
from events import prompt
from histories import digests, example

from memctl.domain.events.observations import event_id_of
from memctl.infra.database import Connection, connect
from memctl.infra.embedded.postgres import binaries
from memctl.infra.log.append import append
from memctl.infra.log.mark import last_position, mark
from memctl.infra.readmodels import generations
from memctl.workers.folding.drain import Drainer

HISTORY = [event for number in range(4) for event in example(number, day=number + 2)]


def programs_of(server: Connection) -> Path:
    """Where pg_dump and pg_restore of this server's version are; the test is skipped where they are not."""
    major = str(server.info.server_version // 10_000)
    for folder in (binaries(), Path(f"/usr/lib/postgresql/{major}/bin")):
        program = shutil.which("pg_dump", path=folder)
        if program and f" {major}." in subprocess.run([program, "--version"], capture_output=True, text=True).stdout:
            return folder
    pytest.skip(f"there is no pg_dump of PostgreSQL {major} on this machine")


def test_a_dump_made_while_events_come_in_is_restored_elsewhere_and_goes_on_without_a_gap(
    database_url: str, log: Connection, tmp_path: Path, postgres_server: str, migrated_template: str
) -> None:
    programs, dump = programs_of(log), tmp_path / "dump"
    kept = HISTORY[:70]
    drainer = Drainer(database_url, 10)
    append(log, 1, kept[:40])
    catch_up(drainer)
    drainer.close()
    append(log, 1, kept[40:])
    with connect(database_url, autocommit=False) as writer:
        append(writer, 1, [prompt(1, "never to be seen")])  # below the last position, and not there yet
        append(log, 1, kept[-1:])  # a duplicate: it burns a value of the sequence
        reached, handed_out = mark(log), last_position(log)
        run(
            programs / "pg_dump",
            "--format=custom",
            "--no-toast-compression",
            f"--file={dump}",
            f"--dbname={database_url}",
        )

    with servers.Mortal(tmp_path / "pg") as fresh:
        run(programs / "pg_restore", "--no-owner", "--exit-on-error", f"--dbname={fresh.url}", str(dump))
        with connect(fresh.url) as restored:
            assert mark(restored) == reached > 0
            assert last_position(restored) >= handed_out
            with pytest.raises(psycopg.errors.RestrictViolation):
                restored.execute("UPDATE memctl.events SET actor = 'someone else'")
            answers = append(restored, 1, [*HISTORY[60:], prompt(1, "never to be seen")])
            assert [answer.status for answer in answers[:10]] == ["duplicate"] * 10
            assert all(answer.position > handed_out for answer in answers[10:])
            drainer = Drainer(fresh.url)
            catch_up(drainer)
            drainer.close()
            found = {row[0] for row in restored.execute("SELECT event_id FROM memctl.events")}
            everything = [*HISTORY, prompt(1, "never to be seen")]
            assert found == {event_id_of(1, event.dedupe_key) for event in everything}
            with servers.fresh_database(postgres_server, template=migrated_template) as url, connect(url) as other:
                generations.ensure_live(other, 1)
                append(other, 1, everything)
                undisturbed = Drainer(url)
                catch_up(undisturbed)
                undisturbed.close()
                assert digests(restored) == digests(other)


def run(program: Path, *arguments: str) -> None:
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
