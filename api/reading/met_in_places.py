"""Kinds of errors as the places of a question showed them: what other projects did about the same error is theirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from uuid import UUID

import msgspec

from memctl.api.reading.places import Places
from memctl.api.reading.reader import Reader
from memctl.domain.events.facts import ErrorOccurred, Fact
from memctl.domain.support.bounded import clipped, names
from memctl.infra.readmodels.facts import read_facts
from memctl.projections.bug_patterns import BugPattern


def met_in_places(reader: Reader, patterns: Iterable[BugPattern], places: Places) -> list[BugPattern]:
    """The patterns, each with the words, fixes and quotes of these places alone. How often it was seen, and in which
    projects, is said of all."""
    found = list(patterns)
    if places.locations is None:
        return found
    allowed = set(places.locations)
    shared = {each.signature: each for each in found if not allowed.issuperset(names(each.locations))}
    ids = {UUID(id) for each in shared.values() for id in _ids(each)}
    facts = read_facts(reader.connection, reader.live.stage1, [(reader.space_id, id) for id in ids])
    here = {str(id): fact for (_, id), fact in facts.items() if fact.location in allowed}
    return [_of_here(each, here) if each.signature in shared else each for each in found]


def _ids(pattern: BugPattern) -> Iterator[str]:
    yield from (each.id for each in pattern.attempts)
    yield from (each.id for each in pattern.details)
    yield from (each.id for each in pattern.evidence)


def _of_here(pattern: BugPattern, here: dict[str, Fact]) -> BugPattern:
    shown = [each for each in here.values() if isinstance(each, ErrorOccurred)]
    mine = {str(each.id) for each in shown} & {sighting.id for sighting in pattern.evidence}
    latest = max((each for each in shown if str(each.id) in mine), key=lambda each: each.occurred_at, default=None)
    attempts = tuple(each for each in pattern.attempts if each.id in here)
    return msgspec.structs.replace(
        pattern,
        message=clipped(latest.message, 500) if latest is not None else "",
        frames=latest.frames[:6] if latest is not None else (),
        attempts=attempts,
        details=tuple(each for each in pattern.details if each.id in here),
        evidence=tuple(each for each in pattern.evidence if each.id in here),
        resolutions=len(attempts),
        resolve_us_total=0,
        causes=(),
        code=(),
        files=(),
        commands=(),
        related=(),
    )
