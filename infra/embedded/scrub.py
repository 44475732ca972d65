"""A new cluster for an old one: only what is known now is copied, so that no file holds what was erased.

Erasing empties a row, but its bytes stay in pages, in the write-ahead log and in statistics until something else needs
the room. So the database is copied into a cluster of its own, which then takes the old one's place. Killed at any
moment, either the old one is in place or the new one is (`finish_scrub`, which every `up` calls).
"""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

from memctl.domain.support.errors import MemctlError
from memctl.infra.data_dir import Folders, make_private, sync_folder
from memctl.infra.embedded.postgres import binaries, start_postgres

_COPYING, _COPIED, _OLD = "postgres.scrubbing", "postgres.scrubbed", "postgres.before-scrub"
if TYPE_CHECKING:
    import psycopg


class NotCopied(MemctlError):
    """The database could not be copied: {why}."""

    hint = "nothing was replaced; the old one is in place"
    why: str


def copy_cluster(folders: Folders) -> None:
    """Copy what the stopped instance's database holds into a new cluster beside it.

    Raises: NotCopied, and as `start_postgres`; then nothing was replaced.
    """
    import psycopg

    new = folders.data / _COPYING
    shutil.rmtree(new, ignore_errors=True)
    make_private(new)
    if (local := folders.postgres / "local.conf").exists():
        shutil.copy2(local, new / "local.conf")
    with start_postgres(folders.postgres) as old, start_postgres(new) as fresh:
        dump = [str(binaries() / "pg_dump"), "--format=custom", "--compress=0", "--no-owner", f"--dbname={old.url}"]
        restore = [str(binaries() / "pg_restore"), "--no-owner", "--exit-on-error", f"--dbname={fresh.url}"]
        _pipe(dump, restore)
        with psycopg.connect(old.url) as before, psycopg.connect(fresh.url) as after:
            there, here = _counts(before), _counts(after)
            after.execute("ANALYZE")
        if there != here:
            differing = sorted(name for name in there.keys() | here.keys() if there.get(name) != here.get(name))
            raise NotCopied(why=f"rows differ in {', '.join(differing[:5])}")
    new.rename(folders.data / _COPIED)
    sync_folder(folders.data)


def finish_scrub(folders: Folders) -> bool:
    """Put a copied cluster in the place of the old one, and remove all that was made from the old one, and what an
    older memctl was sent. Whether there was one. To be called while nothing runs."""
    for left in (folders.data / _COPYING, folders.data / "imports"):
        shutil.rmtree(left, ignore_errors=True)
    copied, old = folders.data / _COPIED, folders.data / _OLD
    found = copied.exists() or old.exists()
    if copied.exists():
        if folders.postgres.exists():
            shutil.rmtree(old, ignore_errors=True)
            folders.postgres.rename(old)
        copied.rename(folders.postgres)
        sync_folder(folders.data)
    if found:
        # The vectors are written again from what is wanted and from the cache; the queue holds nothing but wake-ups.
        for folder in (folders.vectors, folders.valkey, old):
            shutil.rmtree(folder, ignore_errors=True)
        for file in folders.log.glob("*.log*"):
            file.unlink(missing_ok=True)
        sync_folder(folders.data)
    return found


def _counts(connection: psycopg.Connection[tuple[Any, ...]]) -> dict[str, int]:
    """Rows by table of memctl's."""
    from psycopg import sql

    found = {}
    for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'memctl'").fetchall():
        row = connection.execute(sql.SQL("SELECT count(*) FROM memctl.{}").format(sql.Identifier(name))).fetchone()
        found[name] = row[0] if row else 0
    return found


def _pipe(first: list[str], second: list[str]) -> None:
    with (
        subprocess.Popen(first, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as dump,  # noqa: S603
        subprocess.Popen(second, stdin=dump.stdout, stderr=subprocess.PIPE) as restore,  # noqa: S603
    ):
        assert dump.stdout is not None
        dump.stdout.close()
        _, restore_said = restore.communicate()
        assert dump.stderr is not None
        said = dump.stderr.read()
    if dump.returncode or restore.returncode:
        raise NotCopied(why=" ".join((said + restore_said).decode("utf-8", "replace").split())[:500])
