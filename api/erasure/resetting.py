"""Resets memctl: it knows nothing afterwards."""

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

from memctl.infra.backup.copies import backup as write_backup
from memctl.infra.data_dir import Folders
from memctl.infra.database import connect, outages
from memctl.infra.embedded import instance
from memctl.infra.endpoints import NotRunning
from memctl.infra.log.migrate import migrate
from memctl.infra.log.spaces import installation
from memctl.infra.settings import Settings


def reset(settings: Settings, *, backup: bool = True, notify: Callable[[str], None] = lambda _: None) -> Path | None:
    """Remove everything that is known; returns the backup that was written first, if one was.

    Backups, receipts and settings stay: what was forgotten stays so in what is restored. Of servers of the user's own,
    only memctl's schema and its collections are removed. Raises: NotRunning (with `backup`, of one that is down).
    """
    places = Folders(settings.data_dir)
    kept = None
    if backup or settings.configured("database_url"):
        with connect(settings.require("database_url"), name="memctl reset") as connection:
            kept = write_backup(settings, connection) if backup else None
            if settings.qdrant_url and settings.configured("database_url"):
                _drop_collections(settings, installation(connection))
    ran = instance.down(settings, notify)
    if settings.configured("database_url"):
        with outages(), connect(settings.require("database_url"), name="memctl reset") as connection:
            connection.execute("DROP SCHEMA IF EXISTS memctl CASCADE")
        migrate(settings.require("database_url"))
    for folder in (places.postgres, places.vectors, places.valkey, places.spool):
        shutil.rmtree(folder, ignore_errors=True)
    for file in places.log.glob("*.log*"):
        file.unlink(missing_ok=True)
    for aside in sorted(places.data.glob("*.damaged")):
        notify(f"{aside} was set aside, and stays: remove it when you need it no more")
    if ran:
        from memctl.infra.settings import load_settings

        instance.up(load_settings(), report=notify)
    return kept


def _drop_collections(settings: Settings, ours: str) -> None:
    from memctl.infra.vectors import VectorStoreUnavailable, store

    with contextlib.suppress(VectorStoreUnavailable, NotRunning):
        client = store.connect(settings.require("qdrant_url"), settings.qdrant_api_key)
        for name in store.list_collections(client, prefix=f"memctl-{ours}-g"):
            store.drop_collection(client, name)
