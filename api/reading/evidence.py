"""Evidence on read: quotes cut from their source events now, and whether they still hold."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from memctl.api.reading import models
from memctl.api.reading.pages import LONGEST_PAGE, Keyed, page
from memctl.api.reading.places import keeps_to_themselves, limits_of, projects_of
from memctl.api.reading.reader import Reader
from memctl.api.reading.views import Evidence, Json, Origin, shown
from memctl.domain.events.event import Event
from memctl.domain.events.event_order import preferred, shown_at
from memctl.domain.events.facts import Span, quote_hash
from memctl.domain.support.bounded import clipped
from memctl.domain.support.provenance import Provenance
from memctl.infra.log.read import read_versions

T = TypeVar("T")

MOST_CHECKED = 2_000
"""Subjects whose quotes one check looks up."""


_KEPT = ("evidence", "sightings", "mentions", "examples")
"""Fields in which rows keep what they rest on: spans, or things with a span each."""


def events_of(reader: Reader, spans: Iterable[Span]) -> dict[UUID, Event]:
    """The events that those spans quote, in one look-up.

    Erased events are left out, and so is what the caller may not see: what another member said of themselves, and for
    a limited one another payload under the same key, recorded in another place. Of several versions the one that counts
    is returned, or one that says what is quoted: each stage folds events of its own types.
    """
    quoting: dict[UUID, list[Span]] = {}
    for span in spans:
        quoting.setdefault(span.event, []).append(span)
    found = read_versions(reader.connection, reader.space_id, quoting) if quoting else {}
    limits = limits_of(reader)
    if limits is not None:
        found = {
            id: [each for each in versions if any(map(limits.may_show, shown_at(each)))]
            for id, versions in found.items()
        }
    if reader.member:
        found = {
            id: [each for each in versions if not keeps_to_themselves(reader, each)] for id, versions in found.items()
        }
    return {id: _quoted(versions, quoting[id]) for id, versions in found.items() if versions}


def _quoted(versions: Sequence[Event], spans: Sequence[Span]) -> Event:
    counts = preferred(versions)
    if len(versions) == 1:
        return counts
    return next((each for each in (counts, *versions) if any(_cut(span, each).holds for span in spans)), counts)


def evidence_of(spans: Sequence[Span], events: Mapping[UUID, Event], longest: int | None = None) -> list[Evidence]:
    """The spans' quotes, cut from `events`; the same quote once. Of a longer one its first `longest` characters."""
    found = [_cut(span, events.get(span.event)) for span in dict.fromkeys(spans)]
    if longest is None:
        return found
    return [msgspec.structs.replace(each, quote=clipped(each.quote, longest)) for each in found]


def with_evidence(reader: Reader, rows: Sequence[Keyed[Any]], item: type[T]) -> list[T]:
    """Rows that have `evidence` spans as the records that answers show, with the quotes in their place."""
    return [msgspec.convert(each, item) for each in quoted_rows(reader, rows)]


def quoted_rows(reader: Reader, rows: Sequence[Keyed[Any]]) -> list[dict[str, Json]]:
    """The same for rows of any kind."""
    spans = [span for keyed in rows for span in spans_of(keyed.row)]
    events = events_of(reader, spans)
    found = []
    for keyed in rows:
        evidence: list[Evidence] = evidence_of(spans_of(keyed.row), events)
        item = {"id": keyed.key, **shown(keyed.row), "evidence": msgspec.to_builtins(evidence)}
        if hasattr(keyed.row, "location"):
            item["project"] = projects_of(reader).name_of(keyed.row.location)
        if isinstance(getattr(keyed.row, "said_by", None), Provenance):
            item["origin"] = reader.whose(keyed.row)
        found.append(item)
    return found


def spans_of(row: Any) -> tuple[Span, ...]:
    """The spans a row rests on, however its evidence is kept."""
    kept = next((getattr(row, name) for name in _KEPT if hasattr(row, name)), ())
    spans = (each if isinstance(each, Span) else getattr(each, "span", None) for each in kept)
    return tuple(span for span in spans if span is not None)


def broken_quotes(reader: Reader) -> tuple[int, list[str]]:
    """Quotes of verified claims that are looked up in their events again: how many, and those that no longer hold.

    The claims last seen come first; beyond `MOST_CHECKED` subjects none is looked at.
    """
    p = models.verified_knowledge
    count, broken, cursor = 0, [], None
    for _ in range(0, MOST_CHECKED, LONGEST_PAGE):
        rows, cursor = page(reader, p, "last_seen", [], limit=LONGEST_PAGE, cursor=cursor)
        claims = [claim for keyed in rows for claim in keyed.row.claims]
        quoted = [(claim.text, span) for claim in claims for span in claim.evidence if span.quote_hash]
        events = events_of(reader, [span for _, span in quoted])
        count += len(quoted)
        for text, span in quoted:
            if not _cut(span, events.get(span.event)).holds:
                why = "reads otherwise now" if span.event in events else "was erased"
                broken.append(f"{text[:80]!r} rests on event {span.event}, which {why}")
        if cursor is None:
            break
    return count, broken


def field_text(payload: Any, path: str) -> str | None:
    """The text of a payload's field: `text`, or a path such as `input.command` or `input.edits.0.new_string`."""
    value = payload
    for name in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(name)
        elif isinstance(value, (list, tuple)) and name.isdigit():
            value = value[int(name)] if int(name) < len(value) else None
        elif isinstance(value, msgspec.Struct) and name in value.__struct_fields__:
            value = getattr(value, name)
        else:
            return None
    return value if isinstance(value, str) else None


def origin_of(event: Event) -> Origin:
    """Where an event came from."""
    agent = event.stream.split("/", 2)[1] if event.stream.startswith("session/") else ""
    return Origin(agent, event.session_id, str(getattr(event.payload, "line", "")))


def _cut(span: Span, event: Event | None) -> Evidence:
    if event is None:
        return Evidence(span.event, Origin("", "", ""), span.field, span.start, span.end, "", False)
    text = field_text(event.payload, span.field)
    quote = "" if text is None else text[span.start : span.end]
    of_it_all = span.start == span.end and not span.quote_hash  # the event is what shows it, none of its words
    holds = of_it_all or (bool(quote) and (not span.quote_hash or quote_hash(quote) == span.quote_hash))
    return Evidence(span.event, origin_of(event), span.field, span.start, span.end, quote, holds)
