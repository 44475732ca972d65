"""Retention: old sessions go by a rule, recorded and receipted; what lasts, and what was stated, stays."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import servers
from events import NOON, prompt
from forgetting import killed_before_erasing
from histories import digests, drained, example, rebuilt, workshop

from memctl.api.checks import backups
from memctl.api.checks.verify import Verification
from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.feedback import MemoryPinned, MemoryRated
from memctl.domain.events.recalls import MemoryRecalled, RecalledMemory
from memctl.domain.events.statements import DecisionMade
from memctl.infra.backup.copies import backup
from memctl.infra.database import Connection, connect
from memctl.infra.log import erase
from memctl.infra.log.append import append
from memctl.infra.readmodels import generations
from memctl.infra.settings import Settings, load_settings
from memctl.workers.erasure import retention
from memctl.workers.rebuild.replay import replay

DAY = 24
"""Hours, as `workshop` counts sessions."""
FAR = Micros(2**52)


@pytest.fixture
def shards() -> int:
    return 4


@pytest.fixture
def settings(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("MEMCTL_STORAGE__KEEP_DAYS", "10")
    return load_settings()


def stated(payload: MemoryPinned | MemoryRated | DecisionMade | MemoryRecalled, like: NewEvent, at: int) -> NewEvent:
    """A statement in the session of another event."""
    return msgspec.structs.replace(
        like, payload=payload, dedupe_key=f"command:test:{payload}", actor="user", occurred_at=Micros(at)
    )


def old_and_new() -> tuple[list[NewEvent], list[NewEvent], list[NewEvent]]:
    """Two sessions of which nothing lasts, a decision stated in one of them, and what is verified or new."""
    old = [*workshop(0), *workshop(DAY)]
    decision = stated(DecisionMade(text="We write any"), old[0], NOON + 5_000_000)
    return old, [decision], [*example(1, day=2), *workshop(20 * DAY)]


def test_sessions_that_are_old_and_on_which_nothing_lasting_rests_are_as_if_they_had_never_been(
    settings: Settings, log: Connection, database_url: str, postgres_server: str, migrated_template: str, tmp_path: Path
) -> None:
    old, decision, kept = old_and_new()
    append(log, 1, [*old, *decision, *kept])
    drained(database_url)
    file = backup(settings, log, tmp_path / "kept")
    found = retention.due(log, 1, 10, FAR)
    assert found.streams == (old[0].stream, old[-1].stream)
    assert (found.of, found.kept) == (4, 1), "of the example a claim was verified"
    assert retention.size(log, 1, found.streams) > 1_000
    before = digests(log)
    ((sessions, done),) = retention.prune(settings, log, 1, found, None)
    assert (sessions, done.events) == (2, len(old))
    assert list(retention.prune(settings, log, 1, found, None)) == [], "what has gone is passed over"
    assert digests(log) != before
    assert digests(log) == rebuilt(postgres_server, migrated_template, [*decision, *kept])
    assert [each.name for each in replay(database_url, None, verify=True).compared if not each.equal] == []
    assert {each.status for each in append(log, 1, old)} == {"forgotten"}
    assert retention.due(log, 1, 10, FAR).streams == (), "what was stated keeps no session from being done with"
    assert append(log, 1, [prompt(1, "never read before", session="workshop-0")])[0].status == "forgotten"
    assert append(log, 1, [prompt(1, "taken up again", session="workshop-0", at=10**6)])[0].status == "new"
    counted = next(each for each in Verification(settings).checks() if each.name == "forgetting")
    assert (counted.result, counted.counted) == ("ok", "1 receipt, 1 by age")

    with servers.fresh_database(postgres_server, template=migrated_template) as url, connect(url) as elsewhere:
        assert backups.restore(settings, elsewhere, file).left_out == len(old)
        generations.ensure_live(elsewhere, 4)
        drained(url)
        assert digests(elsewhere) == rebuilt(postgres_server, migrated_template, [*decision, *kept])


def test_what_another_session_tells_goes_with_no_old_one_that_tells_it_too(
    settings: Settings, log: Connection, database_url: str
) -> None:
    old, decision, kept = old_and_new()
    mine = prompt(1, "the owner's words", session="owner", at=40 * DAY * 3_600_000_000)
    append(log, 1, [*old, *decision, *kept, mine])
    append(log, 1, [msgspec.structs.replace(mine, stream=old[0].stream, occurred_at=old[0].occurred_at, location="/x")])
    drained(database_url)
    found = retention.due(log, 1, 10, FAR)
    assert old[0].stream in found.streams
    list(retention.prune(settings, log, 1, found, None))
    said = log.execute("SELECT payload->>'text' FROM memctl.events WHERE stream = %s", [mine.stream]).fetchall()
    assert said == [("the owner's words",)]


def test_what_is_pinned_or_found_useful_or_was_told_since_keeps_its_session(log: Connection, database_url: str) -> None:
    old, decision, kept = old_and_new()
    append(log, 1, [*old, *decision, *kept])
    drained(database_url)
    live = generations.live(log)

    def episode_of(stream: str) -> str:
        row = log.execute(
            f"SELECT key FROM memctl.memories_g{live.stage2} WHERE row->>'kind' = 'episode'"
            " AND row->'sessions' ? %s ORDER BY key",
            [stream],
        ).fetchone()
        assert row is not None
        return str(row[0])

    one, other = (episode_of(stream) for stream in (old[0].stream, old[-1].stream))
    assert len(retention.due(log, 1, 10, FAR).streams) == 2
    with connect(database_url, autocommit=False) as meanwhile:
        append(meanwhile, 1, [prompt(1, "taken up again", session="workshop-0", at=19 * 86_400)])
        assert retention.due(meanwhile, 1, 10, FAR).streams == (old[-1].stream,), "no row tells of it yet"
        meanwhile.rollback()
    append(log, 1, [stated(MemoryRated(memory=one, value=0.0), kept[0], NOON)])
    drained(database_url)
    assert len(retention.due(log, 1, 10, FAR).streams) == 2, "what was found useless is not dear"
    append(log, 1, [stated(MemoryPinned(memory=one), kept[0], NOON + 1)])
    drained(database_url)
    assert retention.due(log, 1, 10, FAR).streams == (old[-1].stream,)
    recalled = MemoryRecalled(hook="UserPromptSubmit", memories=(RecalledMemory(id=other),))
    append(log, 1, [stated(recalled, old[-1], old[-1].occurred_at)])
    assert retention.due(log, 1, 10, FAR).streams == (old[-1].stream,), "it was told long ago"
    again = msgspec.structs.replace(recalled, tokens=1)
    append(log, 1, [stated(again, kept[-1], kept[-1].occurred_at)])
    assert retention.due(log, 1, 10, FAR).streams == ()
    with pytest.raises(retention.NothingOldEnough):
        retention.asked(log, 1, 10)


@pytest.mark.parametrize("how", ["pinned", "taken up again"])
def test_a_session_that_becomes_dear_or_goes_on_while_others_are_pruned_stays(
    settings: Settings, log: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(retention, "AT_ONCE", 1)
    old, decision, kept = old_and_new()
    append(log, 1, [*old, *decision, *kept])
    drained(database_url)
    (memory,) = log.execute(
        f"SELECT min(key) FROM memctl.memories_g{generations.live(log).stage2} WHERE row->'sessions' ? %s",
        [old[-1].stream],
    ).fetchone() or ("",)
    found = retention.due(log, 1, 10, FAR)
    pruning = retention.prune(settings, log, 1, found, None)
    assert next(pruning)[1].types
    last = old[-1]
    meanwhile = (
        stated(MemoryPinned(memory=memory), kept[0], NOON)
        if how == "pinned"
        else msgspec.structs.replace(prompt(1, "taken up again", at=10**7), stream=last.stream)
    )
    append(log, 1, [meanwhile])
    assert list(pruning) == []
    held = "SELECT count(*) FROM memctl.events WHERE stream = %s AND payload IS NOT NULL"
    expected = sum(each.stream == last.stream for each in [*old, *decision, meanwhile])
    assert log.execute(held, [last.stream]).fetchone() == (expected,)
    assert append(log, 1, [meanwhile])[0].status == "duplicate"


def test_what_stayed_after_all_is_not_told_as_pruned(settings: Settings, log: Connection, database_url: str) -> None:
    old, decision, kept = old_and_new()
    append(log, 1, [*old, *decision, *kept])
    drained(database_url)
    found = retention.due(log, 1, 10, FAR)
    append(log, 1, [msgspec.structs.replace(prompt(1, "taken up again", at=10**7), stream=old[-1].stream)])
    assert [sessions for sessions, _ in retention.prune(settings, log, 1, found, None)] == [len(found.streams) - 1]


def test_by_the_settings_a_tenth_goes_in_a_day_and_a_memory_that_nobody_used_stays_as_it_is(
    settings: Settings, log: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log, 1, [prompt(1, session=f"old-{n:02d}", at=n) for n in range(12)])
    drained(database_url)
    assert retention.prune_if_due(settings, log, FAR) == 0, "a clock that is years ahead makes nothing old"
    untimed = msgspec.structs.replace(prompt(1, session="untimed"), occurred_at=Micros(0))
    append(log, 1, [prompt(1, session="new", at=20 * 86_400), untimed])
    drained(database_url)
    now = Micros(NOON + 20 * retention.DAY_US)
    with connect(database_url, name="other") as other, other.transaction():
        other.execute("SELECT pg_advisory_xact_lock(%s)", [retention.LOCK])
        assert retention.prune_if_due(settings, log, now) == 0, "another worker is at it"
    assert retention.prune_if_due(settings, log, now) == retention.ALWAYS
    assert retention.prune_if_due(settings, log, now) == 0, "the rest waits for tomorrow"
    log.execute("UPDATE memctl.receipts SET begun_at = to_timestamp(%s / 1e6) - interval '25 hours'", [now])

    with killed_before_erasing(monkeypatch):
        retention.prune_if_due(settings, log, now)
    assert len(erase.receipts(log, unfinished=True)) == 1
    assert retention.prune_if_due(settings, log, now, stop=lambda: True) == 0
    assert len(erase.receipts(log, unfinished=True)) == 1, "it was told to stop"
    drained(database_url)  # what the first forgetting recorded came before the second, if that was a second later
    assert retention.prune_if_due(settings, log, now) == 0, "the two that were begun have gone, and were all"
    assert erase.receipts(log, unfinished=True) == []
    left = log.execute(
        "SELECT stream FROM memctl.events WHERE payload IS NOT NULL AND type LIKE 'prompt.%' ORDER BY position"
    )
    assert left.fetchall() == [("session/claude-code/new",), (untimed.stream,)], (
        "what bears no time is not therefore old"
    )
