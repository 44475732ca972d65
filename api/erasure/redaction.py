"""Applies today's rules of redaction to the past.

An event with something that the rules cut is appended again without it, and the old event is emptied.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from uuid import UUID, uuid4

import msgspec

from memctl.domain.events.erasure import Scope
from memctl.domain.events.event import Event, NewEvent, Position
from memctl.domain.events.skipping import Undecodable
from memctl.domain.support.errors import MemctlError
from memctl.infra.backup.receipts import write_receipts
from memctl.infra.database import Connection, advisory_lock
from memctl.infra.event_writer import EventWriter
from memctl.infra.log import erase
from memctl.infra.log.erase import Receipt
from memctl.infra.log.mark import move_mark
from memctl.infra.log.read import read_range
from memctl.infra.log.spaces import at_home
from memctl.infra.readmodels import generations
from memctl.infra.settings import Settings
from memctl.infra.vectors import outbox
from memctl.workers.erasure.erase import erase_round, nothing_rebuilt
from memctl.workers.erasure.forgetting import recorded

PAGE = 5_000

LOCK = 0x72756C65
"""Advisory lock of whoever redacts the past ("rule")."""


class RedactionAtWork(MemctlError):
    """The past is being redacted already."""

    hint = "say the same again once that is done"


class Redacted(msgspec.Struct, frozen=True, kw_only=True):
    """How many events were looked at, how many held something, and what was cut, by kind."""

    looked_at: int
    events: int
    cut: dict[str, int]
    receipt: UUID | None = None


def redact_past(settings: Settings, *, dry: bool = False, notify: Callable[[str], None] = lambda _: None) -> Redacted:
    """Redact every event of the space by the rules of today.

    The changed event is first appended beside the stored one, as a variant of it. Only then is the stored event
    emptied, and the rows are folded again without it. A run that is stopped at any moment loses nothing. The next run
    continues, and closes what the stopped run had opened.
    Raises: RedactionAtWork, RebuildAtWork, OtherRules, LeaseHeld, DatabaseUnavailable.
    """
    cut: Counter[str] = Counter()
    looked_at, changed = 0, 0
    with at_home(settings, "memctl redact") as (log, settings), advisory_lock(log, LOCK) as mine:
        if not mine:
            raise RedactionAtWork
        generations.ensure_live(log, settings.stage1_shards)
        writer = EventWriter(log, settings)
        begun = open_redactions(log, settings.space)
        receipt = begun[0].id if begun else uuid4()
        upto = move_mark(log, writer.space_id)
        for events in _pages(log, upto, writer.space_id):
            looked_at += len(events)
            pairs = _changed(writer, events, cut)
            if not pairs or dry:
                changed += len(pairs)
                continue
            if not changed:
                with log.transaction():
                    erase.stay(log, writer.space_id)
                    erase.begin(log, writer.space_id, receipt, Scope(kind="rules"), "")
            changed += len(pairs)
            notify(f"{changed:,} of {looked_at:,} events hold what today's rules cut")
            writer.append([redacted for _, redacted in pairs])
            with nothing_rebuilt(log):
                ids = {event.delivery_id for event, _ in pairs}
                erase_round(log, writer.space_id, receipt, ids, only=[event.event_id for event, _ in pairs])
        opened = not dry and bool(changed or begun)
        if opened:
            _finish(log, writer, begun, receipt, changed, cut)
            write_receipts(log, settings.data_dir)
            outbox.forget_unused(log, upto)
            writer.wake()
    return Redacted(looked_at=looked_at, events=changed, cut=dict(cut), receipt=receipt if opened else None)


def _changed(writer: EventWriter, events: Sequence[Event], cut: Counter[str]) -> list[tuple[Event, NewEvent]]:
    """Events that hold what today's rules cut, each with what is left of it; what was cut is added to `cut`."""
    prepared = writer.prepare([_as_recorded(event) for event in events])
    cut.update(prepared.redactions)
    return [
        (event, redacted)
        for event, redacted in zip(events, prepared.events, strict=True)
        if (redacted.payload, redacted.location) != (event.payload, event.location)
    ]


def _finish(
    log: Connection, writer: EventWriter, begun: Sequence[Receipt], receipt: UUID, changed: int, cut: Counter[str]
) -> None:
    """Record and close this redaction, and those that were begun before; `changed` and `cut` are of `receipt`."""
    before = {each.id: len(each.erased) for each in begun}
    for id in before or [receipt]:
        total = before.get(id, 0) + (changed if id == receipt else 0)
        recorded(writer, id, Scope(kind="rules"), total, "")
        erase.finish(log, id, {"events": total, "cut": dict(cut) if id == receipt else {}})


def open_redactions(connection: Connection, space: str) -> list[Receipt]:
    """Receipts of redactions of that space that were begun and not finished, oldest first."""
    found = erase.receipts(connection, unfinished=True)
    return [each for each in found if each.space == space and each.scope.kind == "rules"]


def _pages(connection: Connection, upto: Position, space_id: int) -> Iterator[list[Event]]:
    after = Position(0)
    while after < upto:
        events, after = read_range(connection, after, upto, limit=PAGE)
        yield [
            e
            for e in events
            if e.space_id == space_id and e.type not in erase.RECORDS and not isinstance(e.payload, Undecodable)
        ]


def _as_recorded(event: Event) -> NewEvent:
    """The event as it came to the log; a variant under the key that it was a variant of."""
    key = event.dedupe_key if event.variant_of is None else event.dedupe_key.removesuffix(f"#{event.event_id}")
    return NewEvent(
        stream=event.stream, payload=event.payload, occurred_at=event.occurred_at, dedupe_key=key, actor=event.actor,
        location=event.location, session_id=event.session_id, sources=event.sources,
    )  # fmt: skip
