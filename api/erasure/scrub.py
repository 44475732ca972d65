"""Rebuilds the database of the one-machine default after something was forgotten."""

from collections.abc import Callable

from memctl.domain.support.errors import MemctlError
from memctl.infra.backup.copies import backup, backups, folder_of, remove_unfinished
from memctl.infra.backup.sealed import clear
from memctl.infra.data_dir import Folders
from memctl.infra.database import connect
from memctl.infra.embedded import instance
from memctl.infra.embedded.scrub import copy_cluster, finish_scrub
from memctl.infra.log.spaces import HERE, connect_to
from memctl.infra.settings import Settings


class ScrubElsewhere(MemctlError):
    """The space {space} lies on a server of your own; memctl does not rebuild it."""

    hint = (
        "what was forgotten is emptied in it; for its files: stop memctl, pg_dump, restore into a new cluster, let"
        " MEMCTL_DATABASE_URL name that, and delete the old one with its WAL archive, standbys and backups; of Qdrant"
        " delete the collection, which memctl writes again"
    )
    space: str


def scrub(settings: Settings, notify: Callable[[str], None] = lambda _: None) -> None:
    """Stop everything, copy what is known into a new cluster, put it in the old one's place and start again.

    Hooks spool meanwhile. Backups where those on schedule go are replaced by one made afterwards. What lay in blocks of
    the disk that were freed is the file system's business. Raises: ScrubElsewhere, also where the space has moved to
    another database; NotCopied; then the old database is in place, and runs again.
    """
    from memctl.infra.settings import load_settings

    if settings.configured("database_url") or settings.configured("qdrant_url") or _has_moved(settings):
        raise ScrubElsewhere(space=settings.space)
    places, folder = Folders(settings.data_dir), folder_of(settings)
    ran = instance.down(settings, notify)
    try:
        notify("copying what is known into a new database")
        copy_cluster(places)
        finish_scrub(places)
        remove_unfinished(folder)
        clear(places.data)
    finally:
        if ran or backups(folder):
            instance.up(load_settings(), report=notify)
    for aside in sorted(places.data.glob("*.damaged")):
        notify(f"{aside} was set aside, and may hold what was forgotten: remove it when you need it no more")
    if old := backups(folder):
        notify(f"replacing the backups in {folder}, which hold what was forgotten, by one of now")
        fresh = load_settings()
        with connect(fresh.require("database_url"), name="memctl backup") as connection:
            backup(fresh, connection)
        for file in old:
            file.unlink(missing_ok=True)
        if not ran:
            instance.down(fresh, notify)


def _has_moved(settings: Settings) -> bool:
    connection, database = connect_to(settings, settings.space, "memctl forget")
    connection.close()
    return database != HERE
