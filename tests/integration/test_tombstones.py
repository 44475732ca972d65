"""Tombstones: what was forgotten is not told again, whichever way it comes, and everything else is."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import psycopg
import pytest
from events import NOON, observed, prompt
from msgspec.structs import replace

from memctl.domain.events.erasure import ContentErased, Scope, Tombstone
from memctl.domain.events.event import Micros, NewEvent, Payload
from memctl.domain.events.observations import PromptSubmitted, ToolCalled, ToolReturned, event_id_of
from memctl.domain.knowledge.consolidation import STREAM as CONSOLIDATION
from memctl.domain.knowledge.reflections import ReflectionMade
from memctl.infra.database import Connection, connect
from memctl.infra.log import erase
from memctl.infra.log.append import append
from memctl.infra.log.spaces import space_id

RECEIPT = UUID(int=7)


def lay(log: Connection, *stones: Tombstone) -> None:
    erase.begin(log, 1, RECEIPT, Scope(kind="id"), "")
    erase.lay_tombstones(log, 1, RECEIPT, stones)


def told(log: Connection, events: Sequence[NewEvent]) -> str:
    """By letters, what became of each event that was appended: n(ew), d(uplicate), v(ariant), f(orgotten).

    Alone and among others it is the same.
    """
    with log.transaction(force_rollback=True):
        alone = [append(log, 1, [event])[0].status[0] for event in events]
    found = append(log, 1, events)
    assert [answer.status[0] for answer in found] == alone
    assert all((answer.position == 0) == (answer.status == "forgotten") for answer in found)
    indices = {n for n, status in enumerate(alone) if status == "f" and not events[n].sources}
    assert erase.forgotten(log, 1, events) == indices
    return "".join(alone)


def at(seconds: float) -> Micros:
    return Micros(NOON + int(seconds * 1_000_000))


STREAM = prompt(1).stream


def placed(number: int, location: str) -> NewEvent:
    return replace(prompt(number), location=location)


def call(number: int, session: str = "s1") -> list[NewEvent]:
    asked = ToolCalled(line=f"{session}-ask-{number}", tool="Bash", call=f"c{number}", input={"command": "make"})
    got = ToolReturned(line=f"{session}-got-{number}", tool="Bash", call=f"c{number}", text="done")
    return [observed(asked, session=session, at=number), observed(got, session=session, at=number)]


def hook(number: int, session: str = "s1") -> NewEvent:
    return observed(PromptSubmitted(text="hello", line=f"hook-{number}", via="hook"), session=session, at=number)


@pytest.mark.parametrize(
    ("stone", "events", "became"),
    [
        (Tombstone(kind="session", value=STREAM, until=at(2)),
         [prompt(1), prompt(2), prompt(3), prompt(1, session="s2")], "ffnn"),
        (Tombstone(kind="before", until=at(2)), [prompt(1), prompt(2), prompt(3), prompt(1, session="s2")], "fnnf"),
        (Tombstone(kind="location", value="/home/dana/shop", until=at(9)),
         [placed(1, "/home/dana/shop"), placed(2, "/home/dana/shop/src"), placed(3, "/home/dana/shopping"),
          placed(4, "/home/dana"), placed(9, "/home/dana/shop"), placed(10, "/home/dana/shop")], "ffnnfn"),
        (Tombstone(kind="line", stream=STREAM, value="s1-line-1"),
         [prompt(1), prompt(2), observed(PromptSubmitted(line="s1-line-1", block=1, text="more")),
          observed(PromptSubmitted(line="s1-line-1", text="other"), session="s2")], "fnfn"),
        (Tombstone(kind="call", stream=STREAM, value="tool.returned c1"), [*call(1), *call(2), *call(1, "s2")],
         "nfnnnn"),
        (Tombstone(kind="moment", stream=STREAM, value="prompt.submitted hook", since=at(2), until=at(4)),
         [hook(1), hook(2), hook(4), hook(5), hook(3, "s2"), prompt(3)], "nffnnn"),
        (Tombstone(kind="moment", stream=STREAM, value="prompt.submitted transcript", since=at(2), until=at(4)),
         [hook(3), prompt(3)], "nf"),
        (Tombstone(kind="event", value=str(event_id_of(1, prompt(1).dedupe_key))),
         [prompt(1), prompt(2), prompt(1, "in other words")], "fnf"),
    ],
    ids=["session", "before", "location", "line", "call", "moment", "moment of a transcript", "event"],
)  # fmt: skip
def test_each_kind_of_tombstone_keeps_out_what_it_is_about_and_nothing_else(
    log: Connection, stone: Tombstone, events: list[NewEvent], became: str
) -> None:
    lay(log, stone)
    assert told(log, events) == became


def test_what_rests_on_what_was_forgotten_is_kept_out_and_so_is_what_rests_on_that(log: Connection) -> None:
    forgotten, redacted, kept = prompt(1), prompt(2), prompt(3)

    def learnt(name: str, *rests_on: NewEvent) -> NewEvent:
        payload = ReflectionMade(topic="file:a.go", title="It fails", text=f"As was said: {name}", memories=("a",))
        sources = tuple(event_id_of(1, event.dedupe_key) for event in rests_on)
        return replace(prompt(9), stream=CONSOLIDATION, payload=payload, dedupe_key=name, sources=sources)

    append(log, 1, [forgotten, redacted, prompt(2, "without its secret"), kept])
    ids = [event_id_of(1, event.dedupe_key) for event in (forgotten, redacted)]
    with log.transaction():
        lay(log, Tombstone(kind="line", stream=STREAM, value="s1-line-1"))
        erase.empty(log, 1, RECEIPT, ids, only=ids)
    gone = learnt("a", kept, forgotten)
    assert told(log, [gone, learnt("b", gone), learnt("c", redacted), learnt("d", kept)]) == "ffnn"
    backwards = append(log, 1, [learnt("e", learnt("f", gone)), learnt("f", gone), prompt(4)])
    assert [answer.status for answer in backwards] == ["forgotten", "forgotten", "new"]


def test_of_two_tellings_under_a_key_the_one_that_rests_on_what_was_forgotten_stays_out_in_any_order(
    log: Connection,
) -> None:
    forgotten, kept = prompt(1), prompt(2)
    append(log, 1, [kept])
    lay(log, Tombstone(kind="event", value=str(event_id_of(1, forgotten.dedupe_key))))
    rests, other = (
        replace(prompt(9), stream=CONSOLIDATION, sources=(event_id_of(1, event.dedupe_key),))
        for event in (forgotten, kept)
    )
    assert told(log, [rests, other]) == "fn"
    for order in ([[rests], [other]], [[other], [rests]], [[other, rests]]):
        with log.transaction(force_rollback=True):
            answers = [answer.status for batch in order for answer in append(log, 1, batch)]
            assert sorted(answers) == ["duplicate", "forgotten"]
            stands = log.execute("SELECT sources FROM memctl.events WHERE stream = %s", [CONSOLIDATION]).fetchall()
            assert stands == [(list(other.sources),)]


def test_what_bears_no_time_is_kept_out_by_a_time_only_where_all_of_its_session_lies_before_it(log: Connection) -> None:
    append(
        log,
        1,
        [prompt(1, session="old"), prompt(1, session="both"), prompt(9, session="both"), prompt(9, session="new")],
    )
    lay(log, Tombstone(kind="before", until=at(5)))
    sessions = ("old", "both", "new", "never heard of")
    assert told(log, [replace(prompt(20, session=name), occurred_at=Micros(0)) for name in sessions]) == "fnnn"


def test_what_bears_no_time_is_not_old_for_what_else_stands_in_a_stream_that_is_no_session(log: Connection) -> None:
    dated, undated = (replace(prompt(n, session="imported"), stream="knowledge/graph") for n in (1, 20))
    append(log, 1, [dated])
    lay(log, Tombstone(kind="before", until=at(5)))
    assert told(log, [replace(undated, occurred_at=Micros(0))]) == "n"


def test_what_lies_under_several_tombstones_is_one_that_is_forgotten(log: Connection) -> None:
    lay(
        log,
        Tombstone(kind="session", value=STREAM),
        Tombstone(kind="before", until=at(2)),
        Tombstone(kind="line", stream=STREAM, value="s1-line-1"),
    )
    assert told(log, [prompt(3, session="s2"), prompt(1), prompt(2), prompt(4, session="s2")]) == "nffn"


def test_tombstones_of_another_space_keep_nothing_out(log: Connection) -> None:
    other = space_id(log, "other")
    lay(log, Tombstone(kind="before", until=at(9)))
    log.execute("UPDATE memctl.spaces SET has_tombstones = true")
    assert [answer.status for answer in append(log, other, [prompt(1), prompt(2)])] == ["new", "new"]
    assert told(log, [prompt(1), prompt(2)]) == "ff"


def test_an_append_looks_its_tombstones_up_however_many_there_are(log: Connection) -> None:
    read = "SELECT seq_tup_read, idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'tombstones'"
    stones = [Tombstone(kind="line", stream=STREAM, value=f"gone-{n}") for n in range(10_000)]
    lay(log, *stones, *(replace(stone, kind="event", stream="") for stone in stones))
    lay(log, Tombstone(kind="line", stream=STREAM, value="s1-line-3"), Tombstone(kind="before", until=at(-9)))
    with log.transaction():
        before = log.execute(read.encode()).fetchone()
        assert [a.status[0] for a in append(log, 1, [prompt(n) for n in range(20)])] == [*"nnnf", *"n" * 16]
        after = log.execute(read.encode()).fetchone()
    assert before is not None
    assert after is not None
    # Of each kind once or twice for each of the two calls, and not one of the 20,000 others.
    assert after[0] == before[0]
    assert after[1] - before[1] < 10


def test_what_memctl_records_about_forgetting_is_told_always(log: Connection) -> None:
    lay(log, Tombstone(kind="before", until=at(9)))
    erased: Payload = ContentErased(receipt=RECEIPT, scope=Scope(kind="id"), events=1)
    assert told(log, [replace(prompt(1), payload=erased, dedupe_key="erased"), prompt(2)]) == "nf"


def test_positions_and_answers_of_the_others_are_their_own(log: Connection) -> None:
    first = append(log, 1, [prompt(1), prompt(2)])
    lay(log, Tombstone(kind="line", stream=STREAM, value="s1-line-3"))
    found = append(log, 1, [prompt(3), prompt(2), prompt(4), prompt(1, "in other words"), prompt(3)])
    assert [answer.status for answer in found] == ["forgotten", "duplicate", "new", "variant", "forgotten"]
    assert found[1].position == first[1].position
    stored = log.execute("SELECT position, payload->>'text' FROM memctl.events ORDER BY position").fetchall()
    assert [(row[0], row[1]) for row in stored[2:]] == [
        (found[2].position, prompt(4).payload.text), (found[3].position, "in other words")  # type: ignore[attr-defined]
    ]  # fmt: skip


def test_what_was_emptied_is_told_to_be_there_and_is_kept_in_no_other_words(log: Connection) -> None:
    """Also where no tombstone says so: the place is taken."""
    (there, _) = append(log, 1, [prompt(1), prompt(2)])
    erase.begin(log, 1, RECEIPT, Scope(kind="id"), "")
    with log.transaction():
        erase.empty(log, 1, RECEIPT, [event_id_of(1, prompt(1).dedupe_key)])
    again = append(log, 1, [prompt(1), prompt(2), prompt(1, "in other words"), prompt(3)])
    assert [answer.status for answer in again] == ["forgotten", "duplicate", "forgotten", "new"]
    assert append(log, 1, [prompt(1)])[0].status == "forgotten"
    assert log.execute("SELECT payload FROM memctl.events WHERE position = %s", [there.position]).fetchone() == (None,)
    assert log.execute("SELECT count(*) FROM memctl.events").fetchone() == (3,)


def test_emptying_what_is_empty_already_changes_nothing(log: Connection) -> None:
    append(log, 1, [prompt(1)])
    for receipt in (RECEIPT, UUID(int=8)):
        erase.begin(log, 1, receipt, Scope(kind="id"), "")
        with log.transaction():
            emptied = erase.empty(log, 1, receipt, [event_id_of(1, prompt(1).dedupe_key)])
        assert len(emptied) == (receipt == RECEIPT)
    assert [len(each.erased) for each in erase.receipts(log)] == [1, 0]


def test_a_variant_of_what_is_forgotten_meanwhile_is_not_kept(log: Connection, database_url: str) -> None:
    """The tombstone is laid between the look at what is stored and the variant's own append."""
    append(log, 1, [prompt(1), prompt(2)])

    def laid_meanwhile(payload: Payload, location: str) -> tuple[Payload, str]:
        with connect(database_url) as other:
            lay(other, Tombstone(kind="event", value=str(event_id_of(1, prompt(1).dedupe_key))))
        return payload, location

    found = append(log, 1, [prompt(1, "in other words"), prompt(3)], laid_meanwhile)
    assert [answer.status for answer in found] == ["forgotten", "new"]
    assert log.execute("SELECT count(*) FROM memctl.events").fetchone() == (3,)


EMPTIED = (
    "payload = NULL, salt = NULL, payload_hash = NULL, sources = NULL, causation_id = NULL, correlation_id = NULL,"
    " location = ''"
)


OTHERWISE = [
    "space_id = 2", "stream = 'x'", "stream_hash = 1", "type = 'x'", "schema_version = 9", "occurred_at = now()",
    "recorded_at = now()", "actor = 'x'", "session_id = 'x'", "stream_version = 9", "variant_of = gen_random_uuid()",
    "event_id = gen_random_uuid()", "dedupe_key = 'x'", "payload = '{}'", "salt = '1'", "payload_hash = '1'",
    "sources = '{}'", "causation_id = gen_random_uuid()", "correlation_id = gen_random_uuid()", "location = 'x'",
]  # fmt: skip
"""Each column, changed to what an erasure does not make of it."""


def set_to(log: Connection, *, receipt: str, columns: str, where: str = "true") -> None:
    with log.transaction():
        log.execute("SELECT set_config('memctl.receipt', %s, true)", [receipt])
        log.execute(f"UPDATE memctl.events SET {columns} WHERE {where}".encode())


def test_an_event_is_emptied_whole_and_nothing_else_of_it_is_changed(log: Connection) -> None:
    append(log, 1, [prompt(1)])
    space_id(log, "other")
    erase.begin(log, 1, RECEIPT, Scope(kind="id"), "")
    for change in OTHERWISE:
        others = [each for each in EMPTIED.split(", ") if each.split()[0] != change.split()[0]]
        with pytest.raises(psycopg.errors.RestrictViolation):
            set_to(log, receipt=str(RECEIPT), columns=", ".join([*others, change]))
    set_to(log, receipt=str(RECEIPT), columns=EMPTIED)


def test_only_a_variant_is_given_another_id_as_it_is_emptied(log: Connection) -> None:
    [first], [variant] = append(log, 1, [prompt(1)]), append(log, 1, [prompt(1, "in other words")])
    erase.begin(log, 1, RECEIPT, Scope(kind="id"), "")
    other_id = f"{EMPTIED}, event_id = gen_random_uuid()"
    with pytest.raises(psycopg.errors.RestrictViolation):
        set_to(log, receipt=str(RECEIPT), columns=other_id, where=f"position = {first.position}")
    set_to(log, receipt=str(RECEIPT), columns=other_id, where=f"position = {variant.position}")


def test_nothing_is_emptied_but_under_an_open_receipt_of_its_space(log: Connection) -> None:
    append(log, 1, [prompt(1)])
    of_another_space, finished = UUID(int=8), UUID(int=9)
    erase.begin(log, space_id(log, "other"), of_another_space, Scope(kind="id"), "")
    erase.begin(log, 1, finished, Scope(kind="id"), "")
    erase.finish(log, finished, {})
    for receipt in ("", str(UUID(int=10)), str(of_another_space), str(finished)):
        with pytest.raises(psycopg.errors.RestrictViolation):
            set_to(log, receipt=receipt, columns=EMPTIED)
