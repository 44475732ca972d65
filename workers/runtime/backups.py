"""Backups on schedule, made by whichever worker looks first."""

import logging
import threading
from datetime import UTC, datetime

from memctl.infra.backup import copies as backups
from memctl.infra.database import Connection, advisory_lock, connect
from memctl.infra.readmodels.dead_letters import fault_message
from memctl.infra.settings import Settings

log = logging.getLogger("memctl.backups")

LOOK_AGAIN_S = 300.0
LOCK = 0x6261636B
"""Advisory lock of whoever makes a backup on schedule ("back")."""


def keep_making(settings: Settings, stop: threading.Event) -> None:
    """Make backups as the settings say until asked to stop; what goes wrong is logged, and tried again later."""
    if backups.every(settings) is None:
        return
    last = ""
    while not stop.wait(LOOK_AGAIN_S):
        try:
            with connect(settings.require("database_url"), name="memctl backup") as connection:
                make_if_due(settings, connection, datetime.now(UTC))
            last = ""
        except Exception as problem:
            why = str(problem) if isinstance(problem, OSError) else fault_message(problem)
            if why != last:
                log.warning("no backup was made: %s", why)
            last = why


def make_if_due(settings: Settings, connection: Connection, now: datetime) -> bool:
    """Make a backup if one is due and nobody else is at it. Raises: NoRoom, DatabaseUnavailable, OSError."""
    with advisory_lock(connection, LOCK) as mine:
        if not mine or not backups.due(settings, connection, now):
            return False
        file = backups.backup(settings, connection, keep=settings.backup.keep)
        log.info("backup written: %s, %d bytes", file, file.stat().st_size)
        return True
