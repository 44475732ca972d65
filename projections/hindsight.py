"""What sessions needed, and what memory could have given them, side by side: one row for each thing and project.

A row holds needs and memories as facts report them, in order of time. Which memory stood in the log before which need
is asked when it is read (`domain.retrieval.hindsight.pairs`): positions depend on the order of arrival, rows do not.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

import msgspec

from memctl.domain.events.event import derived_of
from memctl.domain.events.facts import CommandTried, ErrorOccurred, ErrorResolved, KnowledgeHeld, KnowledgeNeeded
from memctl.domain.knowledge.memory import memory_id
from memctl.domain.retrieval.hindsight import (
    HeldMemory,
    HindsightKind,
    Need,
    form_of,
    is_nameless,
    way_of,
)
from memctl.domain.session.turns import FILES, VALUES, WORDS
from memctl.domain.support.bounded import LOCATIONS, NARROW, Seen, clipped, one_line, seen
from memctl.domain.support.location import project_name
from memctl.domain.support.mentions import path_within
from memctl.domain.support.provenance import LONGEST_NAME
from memctl.projections import known_commands
from memctl.projections.kernel import projection

OLDEST, NEWEST = 4, 8
"""Needs, and memories, of one thing that are kept: so many of the oldest and of the newest."""

MOST_NEEDS = 20
"""The newest needs that are kept of errors and of what users say, which take less room."""

OF_TWO_FACTS = ("known error", "known command")
"""Kinds of which one fact says that a thing was needed, and another how it ended."""

WAY, REQUEST, WORD_COST = 24, 40, 21
"""Words of a way out of an error, and of a request; and bytes of a word of seven letters."""


class Hindsight(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that sessions of one project needed, or left behind. Times in microseconds.

    `kind` and `subject` (the error's signature, the sentence's words, the value, the path within the project) are empty
    while nobody needed it. `several`: there are needs and memories, and they are not all of one session.
    """

    kind: HindsightKind | None = None
    subject: str = ""
    last_at: int = 0
    several: bool = False
    locations: tuple[Seen, ...] = ()
    needs: tuple[Need, ...] = ()
    memories: tuple[HeldMemory, ...] = ()


Shown = CommandTried | ErrorOccurred | ErrorResolved | KnowledgeNeeded | KnowledgeHeld

KINDS: dict[str, HindsightKind] = {"place": "known place", "value": "found out again"}
"""The kinds of hindsight by the kind of a `KnowledgeNeeded`."""


def row_id(kind: HindsightKind, location: str, subject: str) -> str:
    """Key of what is known of a thing in the project of that location."""
    return derived_of("hindsight", kind, project_name(location), subject)


def _keys(fact: Shown) -> tuple[str, ...]:
    match fact:
        case CommandTried():
            known = fact.outcome != "worked" and fact.keys
            return (row_id("known command", fact.location, fact.keys[0]),) if known else ()
        case ErrorOccurred() | ErrorResolved():
            return (row_id("known error", fact.location, fact.signature),)
        case KnowledgeNeeded():
            return (row_id(KINDS[fact.kind], fact.location, fact.subject),)
        case KnowledgeHeld():
            paths = (path_within(fact.location, path) for path in fact.files[:FILES])
            places = [row_id("known place", fact.location, path) for path in paths if path]
            return (*places, *(row_id("found out again", fact.location, value) for value in fact.values[:VALUES]))


@projection(row=Hindsight, key=_keys, indexes=(("several", "last_at"), ("kind", "last_at")))
def hindsight(row: Hindsight | None, fact: Shown) -> Hindsight:
    """What sessions needed, beside what earlier ones had left in memory: known errors and commands, known places,
    and what was found out again."""
    was = row = row or Hindsight()
    match fact:
        case CommandTried():
            if _may_stay(row, row.needs, _of_call(fact), MOST_NEEDS):
                row = _needing(row, "known command", fact.keys[0], _wrong_call(fact))
            if fact.outcome == "replaced" and _may_stay(row, row.memories, str(fact.failed), NEWEST):
                row = _holding(row, _working_form(fact))
        case ErrorOccurred():
            if _may_stay(row, row.needs, str(fact.id), MOST_NEEDS):
                row = _needing(row, "known error", fact.signature, _error(fact))
        case ErrorResolved():
            met = _met(fact) if _may_stay(row, row.needs, str(fact.error), MOST_NEEDS) else None
            if met is not None:
                row = _needing(row, "known error", fact.signature, met)
            if _may_stay(row, row.memories, str(fact.error), NEWEST):
                row = _holding(row, _resolution(fact, _way(fact) if met is None else met.words))
        case KnowledgeNeeded():
            row = _needing(row, KINDS[fact.kind], fact.subject, _need(fact))
        case KnowledgeHeld():
            if not _lies_between(row.memories, int(fact.occurred_at), str(fact.turn)):
                row = _holding(row, _held(fact))
    return msgspec.structs.replace(
        row,
        last_at=max(row.last_at, int(fact.occurred_at)),
        locations=seen(row.locations, fact.location, int(fact.occurred_at), LOCATIONS),
        several=row.several if row is was else _of_several(row),
    )


def _of_several(row: Hindsight) -> bool:
    streams = {each.stream for each in row.needs} | {each.stream for each in row.memories}
    return bool(row.needs) and bool(row.memories) and len(streams) > 1


def _of_call(fact: CommandTried) -> str:
    return str(fact.failed if fact.outcome == "replaced" and fact.failed is not None else fact.id)


def _shown_by(fact: Shown, event: Literal[0, -1] = 0) -> dict[str, Any]:
    """When and where a fact was, and which of its events shows it."""
    return {
        "at": int(fact.occurred_at),
        "stream": clipped(fact.stream, 160, NARROW),
        "location": clipped(fact.location, 200, NARROW),
        "event": str(fact.evidence[event].event) if fact.evidence else "",
    }


def _wrong_call(fact: CommandTried) -> Need:
    replaced = fact.outcome == "replaced"
    return Need(
        **_shown_by(fact),
        id=_of_call(fact),
        text=one_line(f"{fact.command}: {fact.message}", 200),
        end=str(fact.evidence[-1].event) if replaced and fact.evidence else "",
        words=form_of(fact.works),
        calls=fact.calls,
        idle_us=fact.idle_us,
    )


def _working_form(fact: CommandTried) -> HeldMemory:
    instead = f" in {fact.directory}" if fact.directory else ""
    return HeldMemory(
        **_shown_by(fact, -1),
        member=clipped(fact.through, LONGEST_NAME),
        id=str(fact.failed),
        memory=known_commands.row_id(fact.location, fact.keys[0]),
        text=one_line(f"`{fact.works}`{instead} instead of `{fact.command}`", 200),
        words=form_of(fact.works),
    )


def called(types: Sequence[str], message: str) -> str:
    """What an error is called: its types and message; what has no name of its own is distinguished by its message."""
    names = "" if is_nameless(types) else ", ".join(types[:2])
    return one_line(f"{names}: {message}" if names else message, 300)


def _error(fact: ErrorOccurred) -> Need:
    return Need(
        **_shown_by(fact),
        id=str(fact.id),
        text=called(fact.error_types, fact.message),
    )


def _way(fact: ErrorResolved) -> tuple[str, ...]:
    return way_of(fact.edits, fact.ran)[:WAY]


def _met(fact: ErrorResolved) -> Need:
    return Need(
        **_shown_by(fact) | {"at": int(fact.occurred_at) - max(fact.duration_us, 0)},
        id=str(fact.error),
        text="",
        end=str(fact.evidence[-1].event) if fact.evidence else "",
        words=_way(fact),
        calls=fact.calls,
        duration_us=max(fact.duration_us, 0),
        tokens=fact.tokens,
        idle_us=fact.idle_us,
    )


def _resolution(fact: ErrorResolved, way: tuple[str, ...]) -> HeldMemory:
    return HeldMemory(
        **_shown_by(fact, -1),
        member=clipped(fact.through, LONGEST_NAME),
        id=str(fact.error),
        memory=memory_id("bug_pattern", fact.signature),
        text=one_line(fact.approach, 200),
        words=way,
        lineage=clipped(fact.lineage, 160, NARROW),
    )


def _need(fact: KnowledgeNeeded) -> Need:
    return Need(
        **_shown_by(fact),
        id=str(fact.id),
        text=one_line(fact.subject, 200),
        end=str(fact.evidence[-1].event) if fact.evidence else "",
        words=_words(fact.words, REQUEST),
        calls=fact.calls,
        duration_us=max(fact.duration_us, 0),
        tokens=fact.tokens,
        idle_us=fact.idle_us,
    )


def _words(words: Sequence[str], most: int) -> tuple[str, ...]:
    return tuple(clipped(word, WORD_COST, NARROW) for word in words[:most])


def _held(fact: KnowledgeHeld) -> HeldMemory:
    turn = str(fact.turn)
    return HeldMemory(
        **_shown_by(fact, -1),
        member=clipped(fact.through, LONGEST_NAME),
        id=turn,
        memory=memory_id("turn", turn),
        text=one_line(fact.text, 200),
        words=_words(fact.words, WORDS),
    )


def _needing(row: Hindsight, kind: HindsightKind, subject: str, need: Need) -> Hindsight:
    if before := next((each for each in row.needs if each.id == need.id), None):
        # An error, and what resolved it, whichever came first.
        met = max(
            before,
            need,
            key=lambda each: (bool(each.end), _settled(msgspec.structs.replace(each, text="", at=0, duration_us=0))),
        )
        began, ended = min(before.at, need.at), max(before.at + before.duration_us, need.at + need.duration_us)
        text = max(before.text, need.text)
        need = msgspec.structs.replace(met, text=text, at=began, duration_us=max(ended - began, 0))
    newest = NEWEST if kind in ("known place", "found out again") else MOST_NEEDS
    needs = _kept(row.needs, need, newest, drawn=kind in OF_TWO_FACTS)
    return msgspec.structs.replace(row, kind=kind, subject=clipped(subject, 200), needs=needs)


def _holding(row: Hindsight, memory: HeldMemory) -> Hindsight:
    if before := next((each for each in row.memories if each.id == memory.id), None):
        memory = max(before, memory, key=_settled)
    return msgspec.structs.replace(row, memories=_kept(row.memories, memory, NEWEST, drawn=row.kind in OF_TWO_FACTS))


def _may_stay(row: Hindsight, kept: tuple[Need, ...] | tuple[HeldMemory, ...], id: str, newest: int) -> bool:
    """Whether one of that id is kept, where those of the greatest ids are: most of many are not, and need no making."""
    return row.kind not in OF_TWO_FACTS or len(kept) < OLDEST + newest or id >= min(each.id for each in kept)


def _lies_between(kept: tuple[HeldMemory, ...], at: int, id: str) -> bool:
    """Whether a memory of a time is left out: it is none of the oldest, nor of the newest."""
    if len(kept) < OLDEST + NEWEST:
        return False
    newer, older = kept[NEWEST - 1], kept[NEWEST]
    return (older.at, older.id) < (at, id) < (newer.at, newer.id)


def _settled(each: Need | HeldMemory) -> bytes:
    """An order among versions of the same thing that is no order of arrival."""
    return msgspec.json.encode(each)


E = TypeVar("E", Need, HeldMemory)


def _kept(kept: tuple[E, ...], item: E, newest: int, *, drawn: bool) -> tuple[E, ...]:
    """The oldest and the newest of them, newest first. What was left out lies between those that stay, so it could
    never come back. `drawn`: those of the greatest ids instead, where two facts may give one thing two times."""
    others: list[E] = [each for each in kept if each.id != item.id]
    others.append(item)
    if drawn:
        others = sorted(others, key=lambda each: each.id, reverse=True)[: OLDEST + newest]
    others.sort(key=lambda each: (each.at, each.id), reverse=True)
    return tuple(others if len(others) <= OLDEST + newest else others[:newest] + others[-OLDEST:])
