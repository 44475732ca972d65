"""Which faults are of what is folded, whose they are, and what is left of a stream once something was left out."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from uuid import UUID, uuid4

import msgspec
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import errors

from memctl.domain.events.event import Event, FutureSchemaVersion, Micros, Payload, Position, UnknownEventType
from memctl.domain.events.observations import PromptSubmitted
from memctl.domain.events.skipping import EventSkipped, Undecodable, UndecodablePayload, foldable, remaining
from memctl.infra.database import DatabaseUnavailable
from memctl.infra.readmodels.dead_letters import DeadLetter, Fault, LeftOut, Skip, Target
from memctl.infra.readmodels.generations import LeaseLost
from memctl.projections.stream_state import fold_stream
from memctl.workers.folding.poison import CannotFold, DeadLetterIndex, first_fault, fold_whole, is_content_fault

STREAM = "session/claude-code/s1"


def event(position: int, payload: Payload | None = None) -> Event:
    return Event(
        position=Position(position),
        event_id=UUID(int=position),
        space_id=1,
        stream=STREAM,
        type="prompt.submitted",
        occurred_at=Micros(1_772_452_800_000_000 + position),
        recorded_at=Micros(0),
        actor="user",
        location="/home/dana/ledger",
        session_id="s1",
        dedupe_key=str(position),
        payload=payload or PromptSubmitted(line=f"l{position}", text=f"please look into number {position}"),
    )


@pytest.mark.parametrize(
    "problem",
    [
        errors.SerializationFailure(), errors.DeadlockDetected(), errors.LockNotAvailable(), errors.QueryCanceled(),
        errors.DiskFull(), errors.OutOfMemory(), errors.AdminShutdown(), errors.ConnectionFailure(),
        errors.IdleInTransactionSessionTimeout(), psycopg.OperationalError("the connection is closed"),
        psycopg.InterfaceError("the connection is closed"), DatabaseUnavailable(), LeaseLost(shard=1), MemoryError(),
        OSError(28, "No space left on device"), UnknownEventType("?"), FutureSchemaVersion("?"), KeyboardInterrupt(),
        errors.UndefinedTable(), errors.CheckViolation(), errors.UniqueViolation(), errors.InsufficientPrivilege(),
    ],
    ids=lambda problem: type(problem).__name__,
)  # fmt: skip
def test_what_is_of_the_moment_or_of_our_tables_is_no_fault_of_what_is_folded(problem: BaseException) -> None:
    assert not is_content_fault(problem)


@pytest.mark.parametrize(
    "problem",
    [
        ValueError(), KeyError(), RecursionError(), AssertionError(), UnicodeEncodeError("utf-8", "", 0, 1, ""),
        UndecodablePayload("no prompt"), errors.UntranslatableCharacter(), errors.NumericValueOutOfRange(),
        errors.InvalidTextRepresentation(), errors.ProgramLimitExceeded(), errors.StatementTooComplex(),
        psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes"),
    ],
    ids=lambda problem: type(problem).__name__,
)  # fmt: skip
def test_what_would_be_raised_again_is(problem: BaseException) -> None:
    assert is_content_fault(problem)


@given(st.integers(1, 300), st.data())
def test_the_first_at_fault_is_found(count: int, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(0, count - 1))
    tried: list[int] = []

    def trial(some: int) -> None:
        tried.append(some)
        if some > culprit:
            raise ValueError(some)

    index, problem = first_fault(count, trial)
    assert index == culprit
    assert problem.args == (culprit + 1,)
    assert len(tried) <= count.bit_length() + 1


def test_a_fault_of_the_moment_ends_the_search() -> None:
    def trial(some: int) -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        first_fault(3, trial)


@given(st.permutations(range(1, 7)), st.sets(st.integers(1, 5)))
def test_what_is_left_to_fold_depends_on_no_order(order: list[int], gone: set[int]) -> None:
    events = [event(n) for n in range(1, 6)]
    skips = [event(100 + n, EventSkipped(skipped=UUID(int=n), reason="a test")) for n in gone]
    of_a_row = event(200, EventSkipped(skipped=UUID(int=6), projection="memories", key="k"))
    shuffled = [[*events, event(6), *skips, of_a_row][i - 1] for i in order] + [event(6), *skips, of_a_row, *events]
    left = {e.event_id for e in foldable(shuffled)}
    assert left == {UUID(int=n) for n in range(1, 7)} - {UUID(int=n) for n in gone}
    assert not any(isinstance(e.payload, EventSkipped) for e in foldable(shuffled))


def test_a_stream_without_an_event_is_folded_as_if_it_had_never_come() -> None:
    kept = [event(n) for n in (1, 2, 4)]
    skipped = [*kept, event(3), event(5, EventSkipped(skipped=UUID(int=3)))]
    assert fold_stream(STREAM, skipped)[1] == fold_stream(STREAM, kept)[1]
    assert fold_stream(STREAM, skipped)[1] != fold_stream(STREAM, [*kept, event(3)])[1]


def test_what_is_left_out_is_gone_in_all_its_versions_but_an_earlier_memctl_named_one() -> None:
    first = event(3)
    second = msgspec.structs.replace(event(4), event_id=UUID(int=44), variant_of=first.event_id)
    of_all, of_one = (EventSkipped(skipped=id) for id in (first.event_id, second.event_id))
    assert remaining([first, second, event(5), event(6, of_all)]) == [event(5)]
    assert remaining([first, second, event(5), event(6, of_one)]) == [first, event(5)]


def test_what_could_not_be_read_is_folded_by_nobody_until_it_is_left_out() -> None:
    unread = event(2, Undecodable(problem="ValidationError"))
    with pytest.raises(UndecodablePayload, match="position 2"):
        fold_stream(STREAM, [event(1), unread, event(3)])
    out = event(4, EventSkipped(skipped=unread.event_id))
    assert fold_stream(STREAM, [event(1), unread, event(3), out])[1] == fold_stream(STREAM, [event(1), event(3)])[1]


def test_a_rebuild_names_the_first_by_position_that_cannot_be_folded() -> None:
    unread = [event(n, Undecodable(problem="ValidationError")) for n in (5, 3)]
    with pytest.raises(CannotFold, match=f"event {UUID(int=3)} at position 3 raises ValidationError") as stopped:
        fold_whole((1, STREAM), [*unread, event(1), event(2), event(4)], partial(fold_stream, STREAM))
    assert f"memctl dlq drop {UUID(int=3)}" in str(stopped.value.hint)


def test_a_source_is_left_out_of_one_row_or_of_a_whole_read_model() -> None:
    one, other = (1, uuid4()), (1, uuid4())
    gone = LeftOut([Skip(Position(1), one, "memories", "a"), Skip(Position(2), other, "memories", None)])
    assert (one, "memories", "a") in gone
    assert (one, "memories", "b") not in gone
    assert (one, "insights", "a") not in gone
    assert (other, "memories", "b") in gone
    assert (other, "insights", "b") not in gone


parked = st.tuples(st.sampled_from(("", "memories", "tasks")), st.sampled_from("ab"), st.booleans(), st.integers(0, 3))


@given(st.lists(parked, max_size=12), st.sets(st.integers(0, 4)), st.sets(st.sampled_from("abc")))
def test_letters_are_found_by_source_and_by_row_as_if_all_were_looked_through(
    told: list[tuple[str, str, bool, int]], asked: set[int], keys: set[str]
) -> None:
    letters = []
    for number, (projection, key, unrouted, source) in enumerate(told):
        target = Target(projection, 1, None if unrouted else key, UUID(int=source) if unrouted else None)
        fault = Fault(target, UUID(int=source), Position(1), "ValueError", "")
        letters.append(DeadLetter(number, 2, fault, datetime.now(UTC), 1))
    known = {letter.target: letter for letter in letters}
    found = DeadLetterIndex(letters)
    sources = {(1, UUID(int=source)) for source in asked}
    over = found.over(sources)
    assert len(over) == len(set(over))
    assert set(over) == {t for t, letter in known.items() if (1, letter.fault.source) in sources}
    rows = found.rows("memories", {(1, key) for key in keys})
    assert set(rows) == {t for t in known if t.projection == "memories" and t.key in keys}
