"""Why memory holds a thing: from the active memory down, level by level, to the characters that it rests on."""

from collections.abc import Mapping, Sequence
from uuid import UUID

import msgspec

from memctl.api.queries import claims
from memctl.api.queries import memories as queries
from memctl.api.reading import models
from memctl.api.reading.evidence import events_of, evidence_of, field_text
from memctl.api.reading.explanation import Explanation, Level, Quoted, Rival
from memctl.api.reading.pages import one
from memctl.api.reading.places import is_anothers, projects_of
from memctl.api.reading.questions import Id, question
from memctl.api.reading.reader import Reader
from memctl.api.reading.records import MemoryItem
from memctl.api.reading.staleness import changed_since
from memctl.api.reading.views import Evidence, Json, iso, known_time, moment, shown
from memctl.domain.events.event import Event
from memctl.domain.events.facts import Span, quote_hash
from memctl.domain.knowledge.memory import memory_id
from memctl.domain.language.prompt_origin import origin_of
from memctl.domain.support import patterns
from memctl.domain.support.provenance import RIGHTS, Provenance, attributed, member_of, words_of
from memctl.projections.candidates import ClaimCandidate
from memctl.projections.insights import Insight, Saying
from memctl.projections.verified_knowledge import VerifiedClaim, VerifiedKnowledge, knowledge_id

AROUND = 120
"""Characters of its surroundings that a quote is shown with, on each side."""


@question("/explain/{id:path}", "claims")
def explain(reader: Reader, id: Id) -> Explanation:
    """Why memory holds a thing, level by level, down to the characters of the events it rests on.

    Raises: NotFound, Ambiguous.
    """
    found = queries.thing(reader, id)
    id = str(found.item["id"])
    claim = _claim_of(reader, found.kind, id)
    answer = _record(reader, found.kind, id, found.item) if claim is None else _claim(reader, found.kind, id, claim)
    kept, to = claims.effective_id(reader, id)
    return msgspec.structs.replace(answer, resolution=kept, resolved_to=to)


def _claim_of(reader: Reader, kind: str, id: str) -> str | None:
    """The claim that a thing is, or whose standing side it shows; None for a record."""
    if kind == "insight":
        return id
    home = id if kind == "knowledge" else ""
    if kind == "memory" and (memory := one(reader, models.memories, id)) is not None:
        home = memory.source.key if memory.source.projection == "verified_knowledge" else ""
    known = one(reader, models.verified_knowledge, home) if home else None
    return None if known is None else known.claims[0].id


def _claim(reader: Reader, kind: str, id: str, claim: str) -> Explanation:
    insight: Insight | None = one(reader, models.insights, claim)
    if insight is None:
        raise queries.NotFound(id=id)
    candidate: ClaimCandidate | None = one(reader, models.candidates, claim)
    home = knowledge_id(insight.subject, None if insight.everywhere else insight.location)
    known: VerifiedKnowledge | None = one(reader, models.verified_knowledge, home)
    verified = next((c for c in known.claims if c.id == claim), None) if known is not None else None
    memory = memory_id("knowledge", home)
    active = verified is not None and one(reader, models.memories, memory) is not None
    levels = [
        _active(memory, active=active, verified=verified),
        _verified(reader, home, known, verified),
        _candidate(candidate),
        _insight(insight),
    ]
    sayings = [saying for saying in _once(insight) if saying.span is not None]
    events = events_of(reader, [saying.span for saying in sayings if saying.span is not None])
    found = [(evidence_of([s.span], events)[0], reader.whose(s), s.rule) for s in sayings if s.span is not None]
    quoted = _in_place(reader, found, events)
    levels.append(_events(quoted, insight))
    reached = next((level.level for level in levels if level.reached), 0)
    files = tuple(f.name for f in insight.files)
    changed = changed_since(reader, files, None if insight.everywhere else [insight.location])
    return Explanation(
        id=id,
        kind=kind,
        text=insight.text,
        project=projects_of(reader).name_of(insight.location),
        level=reached,
        levels=levels,
        evidence=quoted,
        missing=list(candidate.missing) if candidate is not None else [],
        conflicts=_conflicts(reader, known, claim),
        stale=[path for path in files if changed.get(path, 0) > insight.last_seen],
    )


def _active(memory: str, *, active: bool, verified: VerifiedClaim | None) -> Level:
    why = "it is found by search" if active else "it is not found by search: it has not passed L3"
    if active and verified is not None and verified.superseded_by:
        why = "search shows it as what held before"
    return Level(level=4, name="active memory", reached=active, why=why, id=memory if active else "")


def _verified(reader: Reader, home: str, known: VerifiedKnowledge | None, verified: VerifiedClaim | None) -> Level:
    if known is None or verified is None:
        return Level(level=3, name="verified", reached=False, why="it is not verified")
    said = reader.whose(verified)
    why = said if RIGHTS[verified.said_by].as_users else f"{verified.warrant}; {said}"
    if verified.superseded_by:
        why += "; a later or more trusted claim stands in its place"
    row = shown(verified) | {"subject": known.subject, "status": known.status}
    return Level(level=3, name="verified", reached=True, why=why, id=home, row=row)


def _candidate(candidate: ClaimCandidate | None) -> Level:
    if candidate is None:
        return Level(level=2, name="candidate", reached=False, why="it is not under validation")
    failed = [check.why for check in candidate.checks if not check.passed]
    why = "; ".join(failed) if failed else "it passed " + ", ".join(check.name for check in candidate.checks)
    row = shown(candidate)
    kept = {name: row[name] for name in ("checks", "missing", "warrant", "verdicts")}
    return Level(level=2, name="candidate", reached=not failed, why=why, id=candidate.id, row=kept)


def _insight(insight: Insight) -> Level:
    rule = insight.best.rule if insight.best is not None else ""
    count, places = _count(insight), len(insight.sources)
    why = f"rule {rule!r} read it {_times(count, 'time')} in {_times(places, 'session')}"
    why += f"; confidence {insight.confidence:.2f}"
    row = shown(insight)
    names = ("kind", "canonical", "subject", "polarity", "said_by", "confidence", "first_seen", "last_seen")
    kept = {name: row[name] for name in names} | {"rule": rule, "sayings": count, "sessions": places}
    return Level(level=1, name="insight", reached=True, why=why, id=insight.id, row=kept)


def _once(insight: Insight) -> list[Saying]:
    """The quotes that are kept, each once: copies of a session and forks of it repeat the line and its time."""
    return list({(each.at, each.text): each for each in reversed(insight.evidence)}.values())[::-1]


def _count(insight: Insight) -> int:
    return insight.sayings - len(insight.evidence) + len(_once(insight))


def _times(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _events(quoted: Sequence[Quoted], insight: Insight) -> Level:
    broken = sum(not quote.evidence.holds for quote in quoted)
    why = f"{len(quoted)} of {_count(insight)} quotes are kept"
    why += f", {broken} of them no longer read so" if broken else ", and each still reads so"
    return Level(level=0, name="events", reached=True, why=why)


def _conflicts(reader: Reader, known: VerifiedKnowledge | None, claim: str) -> list[Rival]:
    """The other sides, each with its dates and trust, and which stands."""
    if known is None or known.status != "conflicted":
        return []
    mine = next((c for c in known.claims if c.id == claim), None)
    if mine is None:
        return []
    rivals = [c for c in known.claims if c.superseded_by == claim or c.id == mine.superseded_by]
    rivals = [c for c in rivals if not is_anothers(reader, c)]
    return [
        Rival(
            id=c.id,
            text=c.text,
            stands=not c.superseded_by,
            trust=reader.whose(c),
            valid_from=iso(moment(c.valid_from)),
            valid_until=iso(moment(c.valid_until)) if c.valid_until is not None else None,
        )
        for c in rivals
    ]


def _record(reader: Reader, kind: str, id: str, item: Mapping[str, Json]) -> Explanation:
    """A record stands on its sources, and is at most suggested until a person confirms it: no levels lie between."""
    level, memory = _of_record(reader, kind, id)
    listed = item.get("evidence")
    own = [each for each in listed if isinstance(each, dict) and "quote" in each] if isinstance(listed, list) else []
    found = [*msgspec.convert(own, list[Evidence]), *(memory.evidence if memory is not None else ())]
    kept = [(each, "", "") for n, each in enumerate(found) if each not in found[:n]]
    quoted = _in_place(reader, kept, events_of(reader, [_span(evidence) for evidence, _, _ in kept]))
    places = (
        f"{_times(len(quoted), 'place')} in the log" if quoted else "no place in the log is kept for the whole of it"
    )
    failures = item.get("failures") or item.get("failed")
    newest = failures[0] if isinstance(failures, (list, tuple)) and failures and isinstance(failures[0], dict) else {}
    text = queries.called(item) or queries.called(newest)
    return Explanation(
        id=id,
        kind=kind,
        text=text,
        project=str(item.get("project", "")),
        level=level.level,
        levels=[level, Level(level=0, name="events", reached=bool(quoted), why=places)],
        evidence=quoted,
    )


def _of_record(reader: Reader, kind: str, id: str) -> tuple[Level, MemoryItem | None]:
    """How far a record came, and the active memory that it was made into; None where it is one itself, or none."""
    if kind == "memory" and (row := one(reader, models.memories, id)) is not None:
        why = f"folded from {row.source.projection} {row.source.key}"
        return Level(level=4, name="active memory", reached=True, why=why), None
    memory = queries.memory_of_record(reader, kind, id)
    if memory is None:
        return Level(level=1, name="record", reached=True, why=f"a record of what happened ({kind})"), None
    why = f"this {kind} is found by search"
    return Level(level=4, name="active memory", reached=True, why=why, id=memory.id), memory


def _span(evidence: Evidence) -> Span:
    return Span(evidence.event_id, evidence.start, evidence.end, evidence.field, quote_hash(evidence.quote))


def _in_place(reader: Reader, cited: Sequence[tuple[Evidence, str, str]], events: Mapping[UUID, Event]) -> list[Quoted]:
    """Quotes, with who said them and which rule read them, in their surroundings."""
    found = []
    for evidence, said_by, rule in cited:
        event = events.get(evidence.event_id)
        text = field_text(event.payload, evidence.field) if event is not None else None
        before, after = ("", "") if text is None else surroundings(text, evidence.start, evidence.end)
        found.append(
            Quoted(
                evidence=evidence,
                type=event.type if event is not None else "",
                occurred_at=(known_time(event.occurred_at) or "") if event is not None else "",
                before=before,
                after=after,
                said_by=said_by or _said(reader, event, evidence),
                rule=rule,
            )
        )
    return found


def _said(reader: Reader, event: Event | None, evidence: Evidence) -> str:
    """Whose words a record's quote is in. None is called the user's own here: an agent may have had its client send a
    prompt later, which only who has seen the whole session knows."""
    if event is None or evidence.field != "text":
        return ""
    said_by = origin_of(event.payload, evidence.start, evidence.end)
    if said_by in (Provenance.USER_TYPED, Provenance.USER_PASTED):
        said_by = attributed(Provenance.USER_TYPED, event.actor)
    if RIGHTS[said_by].as_users:
        said_by = Provenance.USER_PASTED
    return words_of(said_by, member=member_of(event.actor), asking=reader.member)


_FIRST_WORD = patterns.compile(r"\A\S*(?=\s)")
_LAST_WORD = patterns.compile(r"(?<=\s)\S*\Z")


def surroundings(text: str, start: int, end: int) -> tuple[str, str]:
    """What stands before and after those characters: up to `AROUND` of each, cut at words, with an ellipsis there."""
    before, after = text[:start], text[end:]
    if len(before) > AROUND:
        before = "…" + _FIRST_WORD.sub("", before[-AROUND:])
    if len(after) > AROUND:
        after = _LAST_WORD.sub("", after[:AROUND]) + "…"
    return before, after
