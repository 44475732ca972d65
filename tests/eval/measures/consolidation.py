"""Consolidation of the real sessions, round after round: is what could be found before still found after?

Each memory is asked for by its own title, before and after twenty rounds ten days apart (so that what may be pruned is
old enough). It counts as found where it, or the memory that it is told as, is among the first ten answers; by words
alone, without a vector store. The guard against many changes at once is off.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import servers
from draining import catch_up
from figures import Figure, Missing, share
from sessions import Data

from memctl.api.reading.caller import OWNER
from memctl.api.reading.consolidation_status import standings
from memctl.api.reading.places import Places
from memctl.api.reading.reader import Reader, reader_of
from memctl.api.search.engine import Engine, Question
from memctl.infra.database import connect
from memctl.infra.embedders import NONE, Embedders
from memctl.infra.log.append import append
from memctl.infra.log.migrate import migrate
from memctl.infra.readmodels import generations
from memctl.infra.settings import load_settings
from memctl.projections.memory_rows import Memory
from memctl.workers.folding.drain import Drainer
from memctl.workers.processors.consolidator import consolidate
from memctl.workers.processors.runner import ProcessorContext, memories

ROUNDS, DAYS_APART, ASKED, FIRST = 20, 10, 300, 10
EVERYWHERE = Places(None, "everywhere", None)


def measure(data: Data) -> Iterator[Figure]:
    if not data.has_sessions:
        raise Missing("there are no sessions")
    with servers.postgres_server() as server, servers.fresh_database(server) as url, TemporaryDirectory() as folder:
        migrate(url)
        os.environ |= {"MEMCTL_DATABASE_URL": url, "MEMCTL_DATA_DIR": folder}
        with connect(url, name="eval") as connection:
            generations.ensure_live(connection, 1)
            for at in range(0, len(data.events), 2_000):
                append(connection, 1, data.events[at : at + 2_000])
            _drained(url)
            yield from _measured(ProcessorContext(connection, load_settings()), url, Path(folder))


def _measured(desk: ProcessorContext, url: str, folder: Path) -> Iterator[Figure]:
    whole = list(memories(desk))
    asked = sorted(whole, key=lambda memory: hashlib.sha256(memory.id.encode()).digest())[:ASKED]
    now = max(memory.last_at for memory in whole)
    before = _found(reader_of(desk.connection, "default", OWNER), asked, now)
    changes: Counter[str] = Counter()
    for number in range(1, ROUNDS + 1):
        desk.now = lambda number=number: now + number * DAYS_APART * 86_400_000_000  # type: ignore[misc]
        found, _ = consolidate(desk, force=True)
        changes.update(type(each.payload).__name__ for each in found.changes)
        _drained(url)
    after = _found(reader_of(desk.connection, "default", OWNER), asked, now)
    yield Figure(f"recall@{FIRST} before", share(len(before), len(asked)), len(asked))
    yield Figure(f"recall@{FIRST} after {ROUNDS} rounds", share(len(after), len(asked)), len(asked))
    yield Figure("found before and not after", share(len(before - after), len(before)), len(before), 0.0, at_most=True)
    texts = {memory.id: memory.text for memory in memories(desk)}
    rewritten = sum(texts.get(memory.id) != memory.text for memory in whole)
    yield Figure("memories whose text is another", share(rewritten, len(whole)), len(whole), 0.0, at_most=True)
    for kind, count in sorted(changes.items()):
        yield Figure(f"  {kind}", count, len(whole))


def _found(reader: Reader, asked: list[Memory], now: int) -> set[str]:
    """Those that are among the first answers to their titles, by themselves or as what they are told as."""
    engine = Engine(None, None, Embedders(NONE))
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=now + 1)
    found = set()
    for memory in asked:
        question = Question(query=memory.title, places=EVERYWHERE, now=moment, limit=FIRST)
        answers = [answer.id for answer in engine.search(reader, question).results]
        rows = {memory.id: memory}
        apart = standings(reader, rows.values())
        same = {memory.id}
        if memory.id in apart:
            same.add(apart[memory.id].shown_as)
        same |= _told_with(reader, same)
        if same & set(answers):
            found.add(memory.id)
    return found


def _told_with(reader: Reader, keepers: set[str]) -> set[str]:
    """What was merged with these."""
    from memctl.api.reading.pages import projection_named, several

    rows = several(reader, projection_named("consolidated"), sorted(keepers))
    return {
        party.memory
        for row in rows.values()
        for change in row.standing
        if change.kind == "merged"
        for party in change.parties
    }


def _drained(url: str) -> None:
    drainer = Drainer(url)
    catch_up(drainer)
    drainer.close()
