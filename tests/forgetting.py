"""Forgetting in tests: a phrase that stands nowhere else, and looking for what is left of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from events import stated
from histories import drained, workshop

from memctl.api.erasure import scope as forget
from memctl.api.reading.caller import OWNER, Caller
from memctl.api.reading.reader import reader_of
from memctl.domain.events.feedback import MemoryRated
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append
from memctl.infra.log.partitions import tables
from memctl.infra.readmodels import generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.settings import Settings
from memctl.workers.erasure import forgetting
from memctl.workers.processors.runner import model

KEY = Caller("theirs", frozenset(("ingest", "erase")), None, member="theirs", key="0123456789ab", space="default")
"""Who comes with a key of the space."""

PHRASE = "the zq7vkx19mw harbour protocol"


def keys_of(log: Connection, name: str) -> list[str]:
    """Keys of the live rows of a read model of stage 2, in their order."""
    return [key for key, _ in readmodels.all_rows(log, model(name), generations.live(log).stage2)]


def rated_session(log: Connection, url: str) -> str:
    """Stream of a session of which one memory was rated, with a reason; all of it is folded."""
    session = workshop(0)
    append(log, 1, session)
    drained(url)
    [memory, *_] = keys_of(log, "memories")
    append(log, 1, [stated("knowledge/verdicts", MemoryRated(memory=memory, value=1.0, why="Dana said so there"))])
    drained(url)
    return session[0].stream


def forgotten(settings: Settings, log: Connection, caller: Caller = OWNER, **asked: Any) -> forget.Forgotten:
    """What came of forgetting, which its preview had told no less of."""
    planned = forget.plan(settings, reader_of(log, "default", caller), **asked)
    foreseen = forget.preview(log, planned)
    done = forget.forget(settings, log, planned, None)
    assert foreseen.events <= done.events
    assert foreseen.spooled <= done.spooled
    return done


@contextlib.contextmanager
def killed_before_erasing(monkeypatch: pytest.MonkeyPatch, where: ModuleType = forgetting) -> Iterator[None]:
    """Whoever forgets in there (redacts, of that module) is killed when its receipt stands, and nothing is erased."""

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(where, "erase_round", killed)
        with pytest.raises(KeyboardInterrupt):
            yield


def holds(url: str, text: str) -> list[str]:
    """The tables of memctl's in which a text stands, in any case."""
    found = []
    with connect(url) as connection:
        for name in tables(connection):
            rows = connection.execute(
                f"SELECT count(*) FROM memctl.{name} t WHERE strpos(lower(t::text), lower(%s)) > 0", [text]
            ).fetchone()
            if rows and rows[0]:
                found.append(name)
    return sorted(found)
