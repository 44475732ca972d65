"""Poison on a real Postgres: what cannot be folded is parked, the rest goes on, and nothing is skipped or lost."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal
from uuid import uuid4

import msgspec
import psycopg
import pytest
import servers
from draining import catch_up
from events import AGENT, observed, prompt
from forgetting import forgotten
from histories import digests, example, statements
from waiting import until

from memctl.domain.events import event as event_module
from memctl.domain.events.erasure import Scope
from memctl.domain.events.event import FutureSchemaVersion, Micros, NewEvent, Payload, UnknownEventType, event
from memctl.domain.events.facts import Prompted
from memctl.domain.events.observations import SessionStarted, event_id_of, session_stream
from memctl.domain.events.skipping import EventSkipped
from memctl.infra.database import Connection, connect
from memctl.infra.log import erase
from memctl.infra.log.append import append
from memctl.infra.log.mark import mark
from memctl.infra.readmodels import dead_letters, generations
from memctl.infra.readmodels.dead_letters import DeadLetter
from memctl.infra.settings import Settings
from memctl.projections import kernel, stream_state
from memctl.projections.kernel import Changed, Recorded, projection, projections
from memctl.workers.erasure.erase import erase_round
from memctl.workers.folding import drain
from memctl.workers.folding.drain import Drainer
from memctl.workers.folding.poison import CannotFold
from memctl.workers.folding.refold import refold
from memctl.workers.rebuild.as_of import as_of
from memctl.workers.rebuild.build import RebuildStopped
from memctl.workers.rebuild.replay import replay

Digests = dict[str, tuple[int, str]]

one_shard = pytest.mark.parametrize("shards", [1], ids=["one shard"])

POISON = "and poison"
"""Prompts that end so cannot be folded, while `faults` say so."""

FAR = "/" + "".join(random.Random(1).choices("abcdefghijklmnop", k=9000))
"""A place too long for an index: it cannot be compressed."""

SESSIONS = [[prompt(n, session=session, at=n) for n in range(1, 7)] for session in ("s1", "s2", "s3")]
MIXED = [event for events in zip(*SESSIONS, strict=True) for event in events]
"""Three sessions of six prompts, in turns."""


class Heard(msgspec.Struct, frozen=True):
    """What was said somewhere; `texts` are sorted, so that the order of arrival does not matter."""

    texts: tuple[str, ...] = ()


class Echoed(msgspec.Struct, frozen=True):
    count: int = 0


class Told(Payload, frozen=True, kw_only=True):
    text: str


@pytest.fixture
def faults() -> Iterator[set[str]]:
    """Read models of tests: `heard` in stage 2, `echoed` downstream of it, `said` in stage 1.

    What is in the set makes one of them raise: "fold", "key", "echo", "said", or store what Postgres cannot hold
    ("nul", "long key", "said nul").
    """
    found: set[str] = set()
    projections()
    before = dict(kernel._register)
    by_name, by_class = dict(event_module._by_name), dict(event_module._by_class)
    event("told.test")(Told)

    def text_of(item: Prompted | Recorded[Told]) -> str:
        return item.payload.text if isinstance(item, Recorded) else item.text

    def poisoned(fault: str, text: str) -> bool:
        return fault in found and text.endswith(POISON)

    def place(item: Prompted | Recorded[Told]) -> str:
        text = text_of(item)
        if poisoned("key", text):
            raise LookupError(text)
        # No index holds so long a key that cannot be compressed.
        return "".join(random.Random(1).choices("abcdefghijklmnop", k=9000)) if poisoned("long key", text) else "here"

    @projection(row=Heard, key=place)
    def heard(row: Heard | None, item: Prompted | Recorded[Told]) -> Heard:
        text = text_of(item)
        if poisoned("fold", text):
            raise ValueError(text)
        texts = row.texts if row is not None else ()
        return Heard(tuple(sorted({*texts, text + "\0" if poisoned("nul", text) else text})))

    def echo_key(change: Changed[Heard]) -> str:
        if "echo key" in found:
            raise LookupError(change.key)
        return f"of {change.key}"

    @projection(row=Echoed, key=echo_key)
    def echoed(row: Echoed | None, change: Changed[Heard]) -> Echoed:
        assert change.row is not None
        if "echo" in found and len(change.row.texts) > 3:
            raise ValueError("too many")
        return Echoed(len(change.row.texts))

    @projection(row=Heard, key=lambda fact: fact.stream, stage=1)
    def said(row: Heard | None, fact: Prompted) -> Heard:
        if poisoned("said", fact.text):
            raise ValueError(fact.text)
        text = fact.text + "\0" if poisoned("said nul", fact.text) else fact.text
        return Heard((*(row.texts if row is not None else ()), text))

    kernel.stored_facts.cache_clear()
    stream_state._stage1.cache_clear()
    yield found
    kernel._register.clear()
    kernel._register.update(before)
    event_module._by_name.clear()
    event_module._by_name.update(by_name)
    event_module._by_class.clear()
    event_module._by_class.update(by_class)
    kernel.stored_facts.cache_clear()
    stream_state._stage1.cache_clear()


@pytest.fixture
def shards() -> int:
    return 4


@pytest.fixture
def database_url(
    request: pytest.FixtureRequest, postgres_server: str, templates: servers.Templates, shards: int
) -> Iterator[str]:
    """With tables for the read models of the test, where it brings some."""
    if "faults" in request.fixturenames:
        request.getfixturevalue("faults")
    with servers.fresh_database(postgres_server, templates.live(shards)) as url:
        yield url


@pytest.fixture
def elsewhere(postgres_server: str, templates: servers.Templates) -> Callable[..., Digests]:
    """Fold a history in a database of its own, and give the digests."""

    def folded(events: Sequence[NewEvent], *, after: Callable[[Connection], object] = lambda _: None) -> Digests:
        with servers.fresh_database(postgres_server, templates.live(4)) as url, connect(url) as connection:
            return fold(connection, url, events, after=after)

    return folded


def fold(
    connection: Connection,
    url: str,
    events: Sequence[NewEvent] = (),
    *,
    after: Callable[[Connection], object] = lambda _: None,
    batch: int = 2000,
) -> Digests:
    """Append, do something to the log, drain, and give the digests."""
    append(connection, 1, events)
    after(connection)
    drainer = Drainer(url, batch)
    catch_up(drainer)
    drainer.close()
    return digests(connection)


def letters(connection: Connection) -> list[DeadLetter]:
    live = generations.live(connection)
    return dead_letters.parked(connection, live.stage1, live.stage2)


def row(connection: Connection, name: str, key: str) -> Any:
    live = generations.live(connection)
    p = kernel._register[name]
    found = connection.execute(
        f"SELECT row FROM memctl.{name}_g{live.stage1 if p.stage == 1 else live.stage2} WHERE key = %s",  # type: ignore[arg-type]
        [key],
    ).fetchone()
    return msgspec.json.decode(found[0]) if found else None


def rewrite(*numbers: int, session: str = "s2", to: str = '{"line": "x", "text": 5}') -> Callable[[Connection], None]:
    """Put another payload under events of a session that are stored already."""

    def change(connection: Connection) -> None:
        ids = [event_id_of(1, prompt(n, session=session).dedupe_key) for n in numbers]
        with connection.transaction():
            connection.execute("ALTER TABLE memctl.events DISABLE TRIGGER events_no_change")
            connection.execute("UPDATE memctl.events SET payload = %s::jsonb WHERE event_id = ANY(%s)", [to, ids])
            connection.execute("ALTER TABLE memctl.events ENABLE ALWAYS TRIGGER events_no_change")

    return change


def skip(each: NewEvent, *, projection: str = "", key: str | None = None, source: Any = None) -> NewEvent:
    """The event that leaves another one out (of stage 1), or a source out of a row."""
    skipped = source or event_id_of(1, each.dedupe_key)
    return NewEvent(
        stream=f"skipped/{projection}" if projection else each.stream,
        payload=EventSkipped(skipped=skipped, projection=projection, key=key, reason="a test"),
        occurred_at=Micros(1_772_500_000_000_000),
        dedupe_key=f"skip:{skipped}:{projection}",
        actor="user",
    )


# --- stage 1 ---


def test_what_cannot_be_read_parks_its_stream_and_no_other(log: Connection, database_url: str) -> None:
    clean = fold(log, database_url, MIXED[:6])
    fold(log, database_url, MIXED[6:], after=rewrite(4))
    (letter,) = letters(log)
    assert (letter.target.projection, letter.target.key) == ("", session_stream(AGENT, "s2"))
    assert letter.fault.source == event_id_of(1, SESSIONS[1][3].dedupe_key)
    assert (letter.fault.error, letter.fault.waiting, letter.attempts) == ("ValidationError", 2, 1)
    prompts = {key: row(log, "sessions", session_stream(AGENT, key))["prompts"] for key in ("s1", "s2", "s3")}
    assert prompts == {"s1": 6, "s2": 3, "s3": 6}
    assert clean["sessions"][0] == 3
    live = generations.live(log)
    assert {o.position for o in generations.offsets(log, live.stage1, live.stage2)} == {len(MIXED)}


def test_the_events_that_come_later_wait_and_are_counted(log: Connection, database_url: str) -> None:
    before = fold(log, database_url, MIXED, after=rewrite(1))
    later = [prompt(n, session="s2") for n in range(7, 12)]
    assert fold(log, database_url, later) == before
    (letter,) = letters(log)
    assert (letter.fault.waiting, letter.attempts) == (5 + len(later), 1)


@pytest.mark.parametrize(("batch", "shards"), [(1, 1), (3, 4), (5000, 16)])
def test_what_is_parked_depends_on_no_batch_and_no_shards(
    log: Connection, database_url: str, elsewhere: Callable[..., Digests], batch: int, shards: int
) -> None:
    found = fold(log, database_url, MIXED, after=rewrite(2, 5), batch=batch)
    assert found == elsewhere([*SESSIONS[0], SESSIONS[1][0], *SESSIONS[2]])
    (letter,) = letters(log)
    assert letter.fault.source == event_id_of(1, SESSIONS[1][1].dedupe_key)
    assert letter.fault.waiting == 4


def test_what_was_parked_and_retried_is_what_a_rebuild_makes(
    log: Connection, database_url: str, elsewhere: Callable[..., Digests]
) -> None:
    fold(log, database_url, MIXED, after=rewrite(2))
    rewrite(2, to=msgspec.json.encode(SESSIONS[1][1].payload).decode())(log)
    refold(log, letters=letters(log))
    assert letters(log) == []
    assert digests(log) == elsewhere(MIXED)
    assert replay(database_url, None, verify=True).equal
    more = [prompt(n, session="s2") for n in range(7, 9)]
    assert fold(log, database_url, more) == elsewhere([*MIXED, *more])


def test_a_retry_that_fails_parks_again_and_counts(log: Connection, database_url: str) -> None:
    before = fold(log, database_url, MIXED, after=rewrite(2))
    fold(log, database_url, [prompt(7, session="s2")])
    refold(log, letters=letters(log))
    (letter,) = letters(log)
    assert (letter.attempts, letter.fault.waiting) == (2, 5)
    assert digests(log) == before
    with pytest.raises(CannotFold, match=str(letter.fault.source)):
        refold(log, letters=[letter], parks=False)
    assert letters(log) == [letter]


@pytest.mark.parametrize("when", ["before", "between", "after"])
def test_an_event_that_was_dropped_is_as_if_it_had_never_come(
    log: Connection, database_url: str, elsewhere: Callable[..., Digests], when: str
) -> None:
    drop = skip(SESSIONS[1][1])
    expected = elsewhere([e for e in MIXED if e is not SESSIONS[1][1]])
    parts = {"before": [[drop, *MIXED]], "between": [MIXED[:9], [drop], MIXED[9:]], "after": [MIXED, [drop]]}[when]
    for part in parts:
        found = fold(log, database_url, part, after=rewrite(2))
    assert letters(log) == []
    assert found == expected
    assert replay(database_url, None, verify=True).equal
    assert digests(log) == expected


def test_what_was_left_out_of_a_stream_stays_in_another_that_tells_it_otherwise(
    log: Connection, database_url: str
) -> None:
    once = prompt(1, session="s1")
    again = msgspec.structs.replace(prompt(1, "otherwise", session="s2"), dedupe_key=once.dedupe_key)
    fold(log, database_url, [once, again, prompt(2, session="s2")])
    then = mark(log)
    for stream, prompts in ((again.stream, 1), (once.stream, 0)):
        now = fold(log, database_url, [msgspec.structs.replace(skip(once), stream=stream, dedupe_key=f"skip:{stream}")])
        assert (row(log, "sessions", stream) or {"prompts": 0})["prompts"] == prompts
        with as_of(database_url, then, processes=1) as (past, scratch):
            assert digests(past, scratch) == now, "the past is shown without what was left out since"
        assert replay(database_url, None, verify=True).equal


def test_after_a_drop_the_next_event_at_fault_is_parked(log: Connection, database_url: str) -> None:
    fold(log, database_url, MIXED, after=rewrite(2, 5))
    fold(log, database_url, [skip(SESSIONS[1][1])])
    (letter,) = letters(log)
    assert letter.fault.source == event_id_of(1, SESSIONS[1][4].dedupe_key)
    assert row(log, "sessions", session_stream(AGENT, "s2"))["prompts"] == 3


def test_a_fold_of_stage_one_that_raises_parks_its_stream(
    log: Connection, database_url: str, faults: set[str], elsewhere: Callable[..., Digests]
) -> None:
    faults.add("said")
    bad = prompt(3, f"look there {POISON}", session="s2")
    history = [e if e is not SESSIONS[1][2] else bad for e in MIXED]
    fold(log, database_url, history)
    (letter,) = letters(log)
    assert letter.fault.source == event_id_of(1, bad.dedupe_key)
    assert (letter.fault.error, letter.fault.waiting) == ("ValueError", 3)
    assert "look there" not in str(letter)
    assert len(row(log, "said", session_stream(AGENT, "s2"))["texts"]) == 2
    assert len(row(log, "said", session_stream(AGENT, "s3"))["texts"]) == 6
    faults.clear()
    refold(log, letters=letters(log))
    assert digests(log) == elsewhere(history)


def test_a_row_of_stage_one_that_postgres_refuses_parks_its_stream(
    log: Connection, database_url: str, faults: set[str]
) -> None:
    faults.add("said nul")
    bad = prompt(3, f"look there {POISON}", session="s2")
    fold(log, database_url, [e if e is not SESSIONS[1][2] else bad for e in MIXED])
    (letter,) = letters(log)
    assert letter.fault.source == event_id_of(1, bad.dedupe_key)
    assert (letter.fault.error, letter.fault.waiting) == ("UntranslatableCharacter", 3)
    assert len(row(log, "said", session_stream(AGENT, "s2"))["texts"]) == 2
    assert len(row(log, "said", session_stream(AGENT, "s3"))["texts"]) == 6


def test_a_rebuild_stops_at_the_event_and_names_it(log: Connection, database_url: str) -> None:
    before = fold(log, database_url, MIXED, after=rewrite(2))
    live = generations.live(log)
    with pytest.raises(RebuildStopped, match=str(event_id_of(1, SESSIONS[1][1].dedupe_key))):
        replay(database_url, None)
    assert generations.live(log) == live
    assert generations.generations(log, "building") == []
    assert digests(log) == before
    fold(log, database_url, [skip(SESSIONS[1][1])])
    assert replay(database_url, None, verify=True).equal


def test_letters_go_with_the_rows_that_they_are_about(log: Connection, database_url: str) -> None:
    fold(log, database_url, MIXED, after=rewrite(2))
    rewrite(2, to=msgspec.json.encode(SESSIONS[1][1].payload).decode())(log)
    assert replay(database_url, None).position == len(MIXED)
    assert letters(log) == []
    assert row_count(log, "dead_letters") == 1  # of the former rows, which are kept for a while
    assert replay(database_url, None, verify=True).equal
    assert row_count(log, "dead_letters") == 0


# --- what this memctl does not know ---


@pytest.mark.parametrize("batch", [1, 5000])
@pytest.mark.parametrize(
    ("change", "raised", "said"),
    [("type = 'told.test'", UnknownEventType, "told.test"), ("schema_version = 99", FutureSchemaVersion, "version 99")],
)
@one_shard
def test_what_this_memctl_does_not_know_stops_the_shard_and_is_never_skipped(
    log: Connection,
    database_url: str,
    batch: int,
    change: str,
    raised: type[Exception],
    said: str,
    elsewhere: Callable[..., Digests],
) -> None:
    def newer(connection: Connection) -> None:
        unknown = event_id_of(1, SESSIONS[1][3].dedupe_key)
        with connection.transaction():
            connection.execute("ALTER TABLE memctl.events DISABLE TRIGGER events_no_change")
            connection.execute(f"UPDATE memctl.events SET {change} WHERE event_id = %s", [unknown])  # type: ignore[arg-type]
            connection.execute("ALTER TABLE memctl.events ENABLE ALWAYS TRIGGER events_no_change")

    append(log, 1, MIXED)
    newer(log)
    at = MIXED.index(SESSIONS[1][3]) + 1
    drainer = Drainer(database_url, batch)
    live = generations.live(log)
    with pytest.raises(raised, match=f"position {at}"):
        drainer.drain(1, 0)
    assert [o.position for o in generations.offsets(log, live.stage1)] == [at - 1]
    assert not drainer.attempt(1, 0)
    (halt,) = dead_letters.halts(log, live)
    assert (halt.stage, halt.shard, halt.position) == (1, 0, at - 1)
    assert said in halt.message
    assert letters(log) == []

    # The upgrade: this memctl knows the type and the version.
    change = "type = 'prompt.submitted', schema_version = 1"
    newer(log)
    assert fold(log, database_url) == elsewhere(MIXED)
    assert dead_letters.halts(log, live) == []
    assert replay(database_url, None, verify=True).equal


# --- faults of the moment ---


@pytest.mark.parametrize(("state", "table"), [("40001", "sessions"), ("53100", "memories")])
@one_shard
def test_a_fault_of_the_moment_parks_nothing_and_moves_nothing(
    log: Connection, database_url: str, state: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "FIRST_PAUSE_S", 0.01)
    history = example(1)
    live = generations.live(log)
    append(log, 1, history)
    stage, generation = (1, live.stage1) if table == "sessions" else (2, live.stage2)
    if stage == 2:
        assert Drainer(database_url).drain(1, 0)
    log.execute(
        f"CREATE FUNCTION memctl.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"  # type: ignore[arg-type]
        f" RAISE EXCEPTION 'not now' USING ERRCODE = '{state}'; END $$;"
        f" CREATE TRIGGER fail BEFORE INSERT ON memctl.{table}_g{generation} EXECUTE FUNCTION memctl.fail()"
    )
    drainer = Drainer(database_url)
    pauses: list[float] = []

    def tried_three_times() -> bool:
        drainer.attempt(stage, 0)
        pause = drainer._pauses[stage, 0][0]
        if pause not in pauses:
            pauses.append(pause)
        return len(pauses) >= 3

    until(tried_three_times)
    assert pauses == [0.01, 0.02, 0.04]
    assert letters(log) == []
    (offset,) = generations.offsets(log, generation)
    assert (offset.position, offset.owner) == (0, None)
    assert [(h.stage, h.attempts) for h in dead_letters.halts(log, live)] == [(stage, 3)]
    log.execute(f"DROP TRIGGER fail ON memctl.{table}_g{generation}")  # type: ignore[arg-type]
    until(lambda: drainer.attempt(stage, 0))
    assert dead_letters.halts(log, live) == []
    assert row_count(log, "halts") == 0
    fold(log, database_url)
    assert replay(database_url, None, verify=True).equal


def row_count(connection: Connection, table: str) -> int:
    found = connection.execute(f"SELECT count(*) FROM memctl.{table}").fetchone()  # type: ignore[arg-type]
    assert found is not None
    return int(found[0])


@one_shard
def test_a_worker_whose_connection_was_cut_lets_its_lease_go_and_goes_on(log: Connection, database_url: str) -> None:
    live = generations.live(log)
    append(log, 1, example(1))
    log.execute(
        "CREATE FUNCTION memctl.cut() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); RETURN NULL; END $$;"
    )
    log.execute(
        f"CREATE TRIGGER cut BEFORE INSERT ON memctl.sessions_g{live.stage1} EXECUTE FUNCTION memctl.cut()"  # type: ignore[arg-type]
    )
    drainer = Drainer(database_url)
    with pytest.raises(psycopg.OperationalError):
        drainer.drain(1, 0)
    (offset,) = generations.offsets(log, live.stage1)
    assert (offset.position, offset.owner) == (0, None)
    assert letters(log) == []
    log.execute(f"DROP TRIGGER cut ON memctl.sessions_g{live.stage1}")  # type: ignore[arg-type]
    assert drainer.drain(1, 0)


@one_shard
def test_a_fault_of_our_tables_parks_nothing(log: Connection, database_url: str) -> None:
    live = generations.live(log)
    append(log, 1, example(1))
    log.execute(f"DROP TABLE memctl.sessions_g{live.stage1}")  # type: ignore[arg-type]
    with pytest.raises(psycopg.errors.UndefinedTable):
        Drainer(database_url).drain(1, 0)
    assert letters(log) == []


# --- stage 2 ---


def said(number: int, text: str = "", *, session: str = "s1") -> NewEvent:
    return prompt(number, text or f"please look into number {number}", session=session)


BAD = said(4, f"look there {POISON}", session="s2")
SAID = [said(1), said(2, session="s2"), said(3), BAD, said(5, session="s2"), said(6), said(7, session="s2")]


def source_of(connection: Connection) -> Any:
    """The source that a parked row of `heard` is about."""
    (letter,) = [letter for letter in letters(connection) if letter.target.projection == "heard"]
    return letter.fault.source


def test_a_row_that_cannot_be_folded_stands_and_the_others_go_on(
    log: Connection, database_url: str, faults: set[str], elsewhere: Callable[..., Digests]
) -> None:
    clean = elsewhere(SAID)
    faults.add("fold")
    found = fold(log, database_url, SAID)
    (letter,) = letters(log)
    assert (letter.target.projection, letter.target.key, letter.fault.error) == ("heard", "here", "ValueError")
    assert letter.fault.waiting == 3
    assert "look there" not in str(letter)
    assert len(row(log, "heard", "here")["texts"]) == 3
    assert row(log, "echoed", "of here") == {"count": 3}
    assert {name for name in clean if clean[name] != found[name]} == {"heard", "echoed"}
    fold(log, database_url, [said(8)])
    assert letters(log)[0].fault.waiting == 4
    assert len(row(log, "heard", "here")["texts"]) == 3


@pytest.mark.parametrize("batch", [1, 5000])
def test_a_parked_row_does_not_depend_on_the_size_of_batches(
    log: Connection, database_url: str, faults: set[str], batch: int, elsewhere: Callable[..., Digests]
) -> None:
    faults.add("fold")
    assert fold(log, database_url, SAID, batch=batch) == elsewhere(SAID)


def test_a_row_that_is_retried_is_what_a_rebuild_makes_and_so_is_what_follows(
    log: Connection, database_url: str, faults: set[str], elsewhere: Callable[..., Digests]
) -> None:
    faults.add("fold")
    fold(log, database_url, SAID)
    refold(log, letters=letters(log))
    assert [letter.attempts for letter in letters(log)] == [2]
    faults.clear()
    refold(log, letters=letters(log))
    assert letters(log) == []
    assert digests(log) == elsewhere(SAID)
    assert replay(database_url, None, verify=True).equal


@pytest.mark.parametrize("when", ["before", "between", "after"])
def test_a_source_that_was_dropped_from_a_row_stays_out_of_it(
    log: Connection, database_url: str, faults: set[str], when: str, elsewhere: Callable[..., Digests]
) -> None:
    clean = elsewhere(SAID)
    faults.add("fold")
    fold(log, database_url, SAID)
    then, source = mark(log), source_of(log)
    drop = skip(BAD, projection="heard", key="here", source=source)
    expected = fold(log, database_url, [drop])
    assert letters(log) == []
    assert len(row(log, "heard", "here")["texts"]) == len(SAID) - 1
    assert row(log, "echoed", "of here") == {"count": len(SAID) - 1}
    assert {name for name in clean if clean[name] != expected[name]} == {"heard", "echoed"}
    faults.clear()  # also when it could be folded by now
    assert replay(database_url, None, verify=True).equal
    assert digests(log) == expected
    with as_of(database_url, then, processes=1) as (past, scratch):
        assert digests(past, scratch) == expected, "the past is shown without what was left out since"
    order = {"before": [drop, *SAID], "between": [*SAID[:5], drop, *SAID[5:]], "after": [*SAID, drop]}[when]
    assert elsewhere(order) == expected


def test_a_source_that_cannot_be_routed_is_parked_alone(
    log: Connection, database_url: str, faults: set[str], elsewhere: Callable[..., Digests]
) -> None:
    faults.add("key")
    fold(log, database_url, SAID)
    (letter,) = letters(log)
    assert (letter.target.projection, letter.target.key, letter.fault.error) == ("heard", None, "LookupError")
    assert len(row(log, "heard", "here")["texts"]) == len(SAID) - 1
    dropped = elsewhere([*SAID, skip(BAD, projection="heard", source=letter.fault.source)])
    assert dropped == digests(log)
    faults.clear()
    refold(log, letters=letters(log))
    assert letters(log) == []
    assert digests(log) == elsewhere(SAID)
    assert fold(log, database_url, [skip(BAD, projection="heard", source=letter.fault.source)]) == dropped
    assert replay(database_url, None, verify=True).equal


def test_a_row_downstream_is_parked_by_itself(
    log: Connection, database_url: str, faults: set[str], elsewhere: Callable[..., Digests]
) -> None:
    faults.add("echo")
    fold(log, database_url, SAID[:3])
    fold(log, database_url, SAID[3:])
    (letter,) = letters(log)
    assert (letter.target.projection, letter.fault.upstream, letter.fault.upstream_key) == ("echoed", "heard", "here")
    assert len(row(log, "heard", "here")["texts"]) == len(SAID)
    faults.clear()
    refold(log, letters=letters(log))
    assert digests(log) == elsewhere(SAID)


def test_a_row_that_cannot_be_routed_on_is_parked_and_retried(
    log: Connection, database_url: str, faults: set[str], elsewhere: Callable[..., Digests]
) -> None:
    faults.add("echo key")
    fold(log, database_url, SAID)
    (letter,) = letters(log)
    assert (letter.target.projection, letter.target.key, letter.fault.upstream) == ("echoed", None, "heard")
    faults.clear()
    refold(log, letters=letters(log))
    assert letters(log) == []
    assert digests(log) == elsewhere(SAID)


def test_a_parked_row_is_folded_again_when_what_was_at_fault_has_changed(
    log: Connection, database_url: str, faults: set[str], elsewhere: Callable[..., Digests]
) -> None:
    faults.add("echo")
    fold(log, database_url, SAID)
    assert [letter.target.projection for letter in letters(log)] == ["echoed"]
    faults.clear()
    assert fold(log, database_url, [said(8)]) == elsewhere([*SAID, said(8)])
    assert letters(log) == []


@pytest.mark.parametrize(
    ("fault", "key", "error"),
    [("nul", "here", "UntranslatableCharacter"), ("long key", None, "TooLongForAnIndex")],
)
def test_a_row_that_postgres_refuses_is_parked(
    log: Connection, database_url: str, faults: set[str], fault: str, key: str | None, error: str
) -> None:
    faults.add(fault)
    fold(log, database_url, SAID)
    (letter,) = letters(log)
    assert (letter.target.projection, letter.target.key, letter.fault.error) == ("heard", key, error)
    assert len(row(log, "heard", "here")["texts"]) == (3 if key else len(SAID) - 1)
    assert row(log, "sessions", session_stream(AGENT, "s2"))["prompts"] == 4


def test_a_recorded_event_that_cannot_be_read_is_parked_where_it_would_be_folded(
    log: Connection, database_url: str, faults: set[str]
) -> None:
    told = [
        NewEvent(
            stream="core/test",
            payload=Told(text=f"told {n}"),
            occurred_at=Micros(n),
            dedupe_key=f"told:{n}",
            actor="user",
        )
        for n in range(3)
    ]

    def spoil(connection: Connection) -> None:
        with connection.transaction():
            connection.execute("ALTER TABLE memctl.events DISABLE TRIGGER events_no_change")
            connection.execute("""UPDATE memctl.events SET payload = '{"text": 1}' WHERE dedupe_key = 'told:1'""")
            connection.execute("ALTER TABLE memctl.events ENABLE ALWAYS TRIGGER events_no_change")

    fold(log, database_url, told, after=spoil)
    (letter,) = letters(log)
    assert (letter.target.projection, letter.fault.source) == ("heard", event_id_of(1, "told:1"))
    assert row(log, "heard", "here") == {"texts": ["told 0", "told 2"]}
    with pytest.raises(RebuildStopped, match=str(letter.fault.source)):
        replay(database_url, None)
    before = digests(log)
    fold(log, database_url, [skip(told[1], projection="heard")])
    assert letters(log) == []
    assert digests(log) == before
    assert replay(database_url, None, verify=True).equal


def test_a_rebuild_stops_at_a_row_of_stage_two_and_names_it(
    log: Connection, database_url: str, faults: set[str]
) -> None:
    fold(log, database_url, SAID)
    faults.add("fold")
    before = digests(log)
    with pytest.raises(RebuildStopped, match="heard:here") as stopped:
        replay(database_url, None, first_stage=2)
    assert "look there" not in str(stopped.value)
    assert digests(log) == before


def test_a_rebuild_that_stops_over_what_postgres_refuses_tells_not_a_word_of_it(
    log: Connection, database_url: str, faults: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    fold(log, database_url, SAID)
    faults.add("nul")
    with pytest.raises(RebuildStopped, match="UntranslatableCharacter at memctl") as stopped:
        replay(database_url, None, first_stage=2, processes=1)
    kept = log.execute("SELECT string_agg(fault, ''), (SELECT string_agg(message, '') FROM memctl.rebuilds)"
                       " FROM memctl.rebuild_tasks").fetchone()  # fmt: skip
    assert "UntranslatableCharacter" in caplog.text
    for told in (str(stopped.value), str(kept), caplog.text):
        assert "look there" not in told


@pytest.mark.parametrize("first_stage", [1, 2])
def test_a_rebuild_names_what_postgres_refuses(
    log: Connection, database_url: str, faults: set[str], first_stage: Literal[1, 2]
) -> None:
    """As rules of a newer memctl may make it of what those of before could store: no letter tells of it."""
    before = fold(log, database_url, SAID)
    live = generations.live(log)
    fact = f"SELECT id FROM memctl.facts_g{live.stage1} WHERE type = 'prompted' AND payload->>'text' LIKE '%%' || %s"
    ((source,),) = log.execute(fact.encode(), [POISON]).fetchall()
    faults.add("said nul" if first_stage == 1 else "nul")
    dropped = f"{event_id_of(1, BAD.dedupe_key)} --reason" if first_stage == 1 else f"{source} --from heard --row here"
    with pytest.raises(RebuildStopped, match=f"memctl dlq drop {dropped}"):
        replay(database_url, None, first_stage=first_stage, processes=1)
    assert digests(log) == before
    append(log, 1, [skip(BAD) if first_stage == 1 else skip(BAD, projection="heard", key="here", source=source)])
    replay(database_url, None, processes=1)
    assert letters(log) == []
    assert len(row(log, "heard", "here")["texts"]) == len(SAID) - 1


def test_a_rebuild_names_the_session_whose_name_leaves_no_room_for_its_row(log: Connection, database_url: str) -> None:
    """A name of one letter fits an index of Postgres's, however often that comes."""
    begun = observed(SessionStarted(line="1"), session="x" * 40_000)
    before = fold(log, database_url, [begun])
    (letter,) = letters(log)
    with pytest.raises(RebuildStopped, match=f"memctl dlq drop {event_id_of(1, begun.dedupe_key)} --reason"):
        replay(database_url, None, processes=1)
    assert (digests(log), letter.fault.error) == (before, "AssertionError")


def test_a_rebuild_names_what_is_too_long_for_an_index(log: Connection, database_url: str, faults: set[str]) -> None:
    faults.add("long key")
    before = fold(log, database_url, SAID)
    (letter,) = letters(log)
    with pytest.raises(RebuildStopped, match=f"dlq drop {letter.fault.source} --from heard"):
        replay(database_url, None, processes=1)
    assert digests(log) == before
    fold(log, database_url, [skip(BAD, projection="heard", source=letter.fault.source)])
    assert letters(log) == []
    assert replay(database_url, None, verify=True).equal


def test_a_place_too_long_for_an_index_parks_its_session_and_is_named_by_a_rebuild(
    log: Connection, database_url: str
) -> None:
    away = msgspec.structs.replace(prompt(3, session="s2"), location=FAR)
    before = fold(log, database_url, [prompt(1, session="s1"), prompt(2, session="s2"), away])
    (letter,) = letters(log)
    assert (letter.target.key, letter.fault.source) == (away.stream, event_id_of(1, away.dedupe_key))
    with pytest.raises(RebuildStopped, match=f"event {letter.fault.source} at position 3 raises TooLongForAnIndex"):
        replay(database_url, None, processes=1)
    assert digests(log) == before


@pytest.mark.parametrize("number", [0, 1], ids=["note", "preference"])
def test_a_statement_about_a_place_too_long_for_an_index_is_named_by_a_rebuild(
    log: Connection, database_url: str, number: int
) -> None:
    """Appended before places were cut, by an import. What the live rows parked, the rebuild names."""
    told = msgspec.structs.replace(statements()[number], location=FAR)
    before = fold(log, database_url, [told])
    (letter,) = letters(log)
    assert letter.fault.error == "TooLongForAnIndex"
    name, key, source = letter.target.projection, letter.target.key, letter.fault.source
    with pytest.raises(RebuildStopped, match=f"dlq drop {source} --from {name} --row {key}"):
        replay(database_url, None, processes=1)
    assert digests(log) == before
    fold(log, database_url, [skip(told, projection=name, key=key, source=source)])
    assert letters(log) == []
    assert replay(database_url, None, verify=True).equal


def test_a_limit_of_postgres_stops_a_rebuild_for_good(
    log: Connection, database_url: str, faults: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    faults.add("long key")
    fold(log, database_url, SAID)
    monkeypatch.setattr(kernel, "INDEX_LIMIT", 1 << 20)
    with pytest.raises(RebuildStopped, match=r"ProgramLimitExceeded at memctl\.infra\.readmodels"):
        replay(database_url, None, processes=1)
    assert log.execute("SELECT status FROM memctl.rebuilds").fetchall() == [("failed",)]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("shards", [3])
def test_whatever_is_parked_retried_and_dropped_when_ends_in_the_rows_of_a_rebuild(
    log: Connection, database_url: str, faults: set[str], seed: int, elsewhere: Callable[..., Digests]
) -> None:
    luck = random.Random(seed)
    faults |= {"fold", "key"} if seed else {"fold", "echo"}
    history = [said(n, f"{n} {POISON}" * (luck.random() < 0.15), session=f"s{n % 3}") for n in range(1, 30)]
    spoilt = luck.sample(history, 4)
    ids = [event_id_of(1, each.dedupe_key) for each in spoilt]
    luck.shuffle(history)

    def spoil(connection: Connection) -> None:
        with connection.transaction():
            connection.execute("ALTER TABLE memctl.events DISABLE TRIGGER events_no_change")
            connection.execute("""UPDATE memctl.events SET payload = '{"text": 1}' WHERE event_id = ANY(%s)""", [ids])
            connection.execute("ALTER TABLE memctl.events ENABLE ALWAYS TRIGGER events_no_change")

    drops: list[NewEvent] = []
    waiting = list(history)
    while waiting or letters(log):
        count = luck.randint(0, 9)
        chunk, waiting = waiting[:count], waiting[count:]
        parked = letters(log)
        if parked and luck.random() < 0.5:
            refold(log, letters=luck.sample(parked, luck.randint(1, len(parked))))
        if parked and (not waiting or luck.random() < 0.4):
            fault = luck.choice(parked).fault
            at = fault.target
            drop = skip(
                history[0], projection=at.projection, key=at.key if at.projection else None, source=fault.source
            )
            drops.append(msgspec.structs.replace(drop, stream=drop.stream if at.projection else str(at.key)))
            chunk = [*chunk, drops[-1]]
        if len(drops) > 6:
            faults.clear()  # a better memctl: what is left can be folded, but for what cannot be read
            refold(log, letters=letters(log))
        fold(log, database_url, chunk, after=spoil, batch=luck.choice([1, 4, 100]))
    faults.clear()
    assert drops
    assert replay(database_url, None, verify=True).equal
    assert digests(log) == elsewhere([*drops, *history], after=spoil)


def test_what_was_forgotten_leaves_a_row_that_is_parked_over_something_else(
    log: Connection, database_url: str, faults: set[str], elsewhere: Callable[..., Digests]
) -> None:
    faults.add("fold")
    fold(log, database_url, SAID)
    receipt, gone = uuid4(), [event_id_of(1, SAID[0].dedupe_key)]
    erase.begin(log, 1, receipt, Scope(kind="id"), "", gone)
    erase_round(log, 1, receipt, gone)
    assert row(log, "heard", "here") == {"texts": [f"please look into number {n}" for n in (2, 3)]}
    assert [letter.target.projection for letter in letters(log)] == ["heard"]
    faults.clear()
    refold(log, letters=letters(log))
    assert digests(log) == elsewhere(SAID[1:])


@pytest.mark.parametrize("fault", ["said", "fold", "key"])
def test_a_parked_event_that_holds_a_phrase_is_forgotten_and_its_letter_goes(
    settings: Settings,
    log: Connection,
    database_url: str,
    faults: set[str],
    elsewhere: Callable[..., Digests],
    fault: str,
) -> None:
    secret = prompt(9, f"**the** zq7vkx19mw, harbour protocol {POISON}", session="s9")
    faults.add(fault)
    rest = [each for each in SAID if each is not BAD]
    fold(log, database_url, [*rest, secret])
    assert len(letters(log)) == 1
    assert forgotten(settings, log, match="the zq7vkx19mw harbour protocol").events == 1
    refold(log, letters=letters(log))
    assert letters(log) == []
    rows = log.execute("SELECT t::text FROM memctl.dead_letters t UNION ALL SELECT payload::text FROM memctl.events")
    assert not any("zq7vkx19mw" in (row or "") for (row,) in rows)
    faults.clear()
    assert digests(log) == elsewhere(rest)
