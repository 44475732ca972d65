"""What memory holds to be true, how its user likes to work, and what is always in context: lists for the doors."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence, Set
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec
from psycopg import sql

from memctl.api.reading import models
from memctl.api.reading.evidence import events_of, evidence_of, with_evidence
from memctl.api.reading.pages import (
    Condition,
    Keyed,
    Where,
    all_of,
    earlier,
    either,
    field_of,
    keys_among,
    one,
    page,
    select,
    several,
)
from memctl.api.reading.places import Places, is_anothers, projects_of
from memctl.api.reading.questions import Cursor, Limit, question
from memctl.api.reading.reader import Reader
from memctl.api.reading.records import (
    ClaimItem,
    CoreSectionItem,
    CoreVersion,
    InsightItem,
    KnowledgeItem,
    PreferenceItem,
    ResolutionItem,
)
from memctl.api.reading.staleness import changed_since
from memctl.api.reading.views import Listing, Page, iso, moment, shown_as
from memctl.domain.events.core_memory import CORE, CoreMemoryAppended, CoreMemoryReplaced
from memctl.domain.knowledge.acting import acts
from memctl.domain.knowledge.memory import memory_id
from memctl.domain.projects.identity import Projects
from memctl.domain.support.provenance import RIGHTS, Provenance
from memctl.domain.support.structs import carried_over
from memctl.infra.log.read import read_stream
from memctl.infra.readmodels.rows import decode_row
from memctl.projections.candidates import ClaimCandidate
from memctl.projections.insights import Insight
from memctl.projections.kernel import Projection
from memctl.projections.resolutions import effective
from memctl.projections.verified_knowledge import VerifiedClaim, VerifiedKnowledge, knowledge_id

T = TypeVar("T")

ClaimKind = Literal["preference", "pattern", "expertise", "fact", "profile"]
Waiting = Annotated[bool | None, msgspec.Meta(description="Only those below level 3, or only the others.")]
Section = Annotated[str, msgspec.Meta(max_length=40)]

MOST_PREFERENCES = 200
"""Subjects that are looked through for preferences."""

MOST_ALIKE = 1_000
"""Claims of earlier pages that are compared with those of a page."""

MOST_SECTIONS = 100
"""Sections of core memory that are shown."""


@question("/insights", "claims")
def insights(
    reader: Reader,
    places: Places,
    *,
    kind: ClaimKind | None = None,
    waiting: Waiting = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[InsightItem]:
    """Claims read out of words and work, by when they were last made: each with its level (1 to 4), and what it is
    missing. With `waiting` only those below level 3, without it (False) only the others. Those that a person
    rejected are left out."""
    return insights_by(reader, places, "last_seen", InsightFilter(kind, waiting), limit=limit, cursor=cursor)


class InsightFilter(NamedTuple):
    """Which claims are asked for; None, or no text, asks for nothing. Times in microseconds, of when they were last
    made."""

    kind: str | None = None
    waiting: bool | None = None
    text: str = ""
    since: int | None = None
    before: int | None = None

    def conditions(self, reader: Reader, places: Places) -> Where:
        p = models.candidates
        found = Where(p).within(places, or_everywhere=True).equal("kind", self.kind).holding("text", self.text)
        found = found.equal("ready", None if self.waiting is None else not self.waiting)
        found = found.also(*either(Where(p).above("sessions", 0).equal("waits", True)))
        found = found.between("last_seen", self.since, self.before)
        return found.also(*_not_of_others(reader, p, found)) if self.text else found


def _not_of_others(reader: Reader, p: Projection[Any], asked: Sequence[Condition]) -> list[Condition]:
    """No row that another member said of themselves: who may try any text would read it by what is counted."""
    if not reader.member:
        return []
    theirs = Condition(sql.SQL("row->>'said_by' = %s"), (Provenance.MEMBER.value,))
    found = select(reader, p, "SELECT key, row FROM {rows}", conditions=[*asked, theirs], binary=True)
    hidden = [key for key, row in found if is_anothers(reader, decode_row(p, row))]
    return [Condition(sql.SQL("key <> ALL(%s::text[])"), (hidden,))]


def insights_by(
    reader: Reader, places: Places, order: str, wanted: InsightFilter, *, limit: int = 50, cursor: str | None = None
) -> Page[InsightItem]:
    """Claims by a field of their rows that is a whole number, highest first, those alike in places of one project
    once."""
    found, after = page(reader, models.candidates, order, wanted.conditions(reader, places), limit=limit, cursor=cursor)
    items = _shown(reader, found)
    # Another worktree or clone of the same project may say the same, on a page before this one, too.
    said = {_same(item) for item in _alike_before(reader, places, order, wanted, cursor, items)}
    return Page(_first_of_each([item for item in items if _same(item) not in said], _same), after, places.scope)


def _alike_before(
    reader: Reader, places: Places, order: str, wanted: InsightFilter, cursor: str | None, items: list[InsightItem]
) -> list[InsightItem]:
    """Those of the pages before the one that the cursor begins that say what one of these items says."""
    if cursor is None or not items:
        return []
    p = models.candidates
    conditions = wanted.conditions(reader, places).also(*earlier(p, order, cursor))
    conditions = conditions.one_of("canonical", [item.canonical for item in items])
    return _shown(reader, page(reader, p, order, conditions, limit=MOST_ALIKE, longest=MOST_ALIKE)[0])


def _shown(reader: Reader, found: Sequence[Keyed[ClaimCandidate]]) -> list[InsightItem]:
    candidates = {keyed.key: keyed.row for keyed in found}
    insights = ((keyed.key, keyed.row.insight) for keyed in found if _stands(keyed.row))
    rows = [Keyed(key, insight) for key, insight in insights if insight is not None]
    homes = {keyed.key: _memory_of(keyed.row) for keyed in rows}
    active = several(reader, models.memories, list(homes.values()))
    return [
        msgspec.structs.replace(
            item,
            level=_level(candidates[item.id], homes[item.id] in active),
            missing=list(candidates[item.id].missing),
            warrant=candidates[item.id].warrant,
        )
        for item in with_evidence(reader, rows, InsightItem)
    ]


def _same(item: InsightItem) -> Hashable:
    return item.project, item.kind, item.polarity, item.canonical


def levels(reader: Reader, places: Places, wanted: InsightFilter) -> Counter[int]:
    """How many of the claims that `insights_by` lists are at each level, those alike in places of one project counted
    once, as they were made last."""
    p, known = models.candidates, projects_of(reader)
    found = select(
        reader, p,
        "SELECT row->>'location', row->>'kind', row->>'polarity', row->>'canonical',"
        " (row->>'ready')::boolean, NOT jsonb_path_exists(row->'checks', '$[*] ? (@.passed == false)'),"
        " (row->'insight'->>'everywhere')::boolean, row->'insight'->>'subject', row->'insight'->>'location'"
        " FROM {rows} WHERE row->>'insight' IS NOT NULL"
        """ AND NOT jsonb_path_exists(row->'checks', '$[*] ? (@.name == "standing" && @.passed == false)')"""
        " ORDER BY {newest} DESC, key DESC",
        conditions=wanted.conditions(reader, places), newest=field_of(p, "last_seen"),
    )  # fmt: skip
    counted: Counter[int] = Counter()
    homes = []
    for _, *_, ready, passed, everywhere, subject, place in _first_of_each(
        found, lambda row: (known.name_of(row[0]), *row[1:4])
    ):
        if ready:
            homes.append(memory_id("knowledge", knowledge_id(subject, None if everywhere else place)))
        else:
            counted[2 if passed else 1] += 1
    active = keys_among(reader, models.memories, homes)
    counted.update(4 if home in active else 3 for home in homes)
    return counted


def _first_of_each(items: Sequence[T], same: Callable[[T], Hashable]) -> list[T]:
    """The items without those that are the same as one before."""
    best: dict[Hashable, T] = {}
    for item in items:
        best.setdefault(same(item), item)
    return list(best.values())


def _memory_of(insight: Insight) -> str:
    """Id of the memory that this claim is part of once it has graduated."""
    place = None if insight.everywhere else insight.location
    return memory_id("knowledge", knowledge_id(insight.subject, place))


def _level(candidate: ClaimCandidate, active: bool) -> int:
    if candidate.ready:
        return 4 if active else 3
    return 2 if all(check.passed for check in candidate.checks) else 1


@question("/knowledge", "claims")
def knowledge(
    reader: Reader,
    places: Places,
    *,
    kind: ClaimKind | None = None,
    status: Literal["verified", "conflicted"] | None = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[KnowledgeItem]:
    """What is held true, by subject: claims that stand, what they replaced, and the words they rest on. `sessions` are
    those of the whole project that show what stands first, where each claim has those of one clone."""
    p = models.verified_knowledge
    asked = Where(p).equal("kind", kind).equal("status", status)
    return knowledge_among(reader, places, asked, limit=limit, cursor=cursor)


def knowledge_among(
    reader: Reader, places: Places, asked: Where, *, limit: int, cursor: str | None = None
) -> Page[KnowledgeItem]:
    """The same under these conditions."""
    p, conditions = models.verified_knowledge, asked.within(places, or_everywhere=True)
    rows, after = page(reader, p, "last_seen", conditions, limit=limit, cursor=cursor)
    projects = projects_of(reader)
    sessions = _sessions_of_projects(reader, projects, rows)
    found = [
        msgspec.structs.replace(item, project=projects.name_of(item.location), sessions=sessions[item.id])
        for item in known(reader, rows)
    ]
    items = _first_of_each(found, lambda item: (item.project, item.subject, item.text, item.status))
    return Page(items, after, places.scope)


def _sessions_of_projects(reader: Reader, projects: Projects, rows: Sequence[Keyed[Any]]) -> dict[str, int]:
    """In how many sessions of its project the first claim of each subject was seen, up to 32 of each clone."""
    p, firsts = models.candidates, {keyed.key: keyed.row.claims[0] for keyed in rows}
    places: dict[str, frozenset[str]] = {}
    for keyed in rows:
        project = projects.of(keyed.row.location)
        places[keyed.key] = frozenset(() if project is None or keyed.row.everywhere else project.locations)
    made: dict[tuple[str, str, int], list[_Made]] = defaultdict(list)
    for each in _claims_alike(reader, p, firsts.values(), frozenset().union(*places.values())):
        made[each.kind, each.canonical, each.polarity].append(each)
    return {
        key: sum(
            each.sessions
            for each in made[claim.kind, claim.canonical, claim.polarity]
            if each.id == claim.id or (each.location in places[key] and not each.everywhere)
        )
        for key, claim in firsts.items()
    }


class _Made(NamedTuple):
    """What is asked of a candidate for a count; a project may have a thousand of them."""

    id: str
    kind: str
    canonical: str
    polarity: int
    location: str
    everywhere: bool
    sessions: int


def _claims_alike(
    reader: Reader, p: Projection[Any], claims: Collection[VerifiedClaim], locations: Set[str]
) -> Iterator[_Made]:
    """Those claims, and those of the same canonical texts at these locations, as far as the caller may see them."""
    there = Where(p).one_of("location", [*locations]).one_of("canonical", [*{claim.canonical for claim in claims}])
    these = Condition(sql.SQL("key = ANY(%s::text[])"), ([claim.id for claim in claims],))
    alike, values = all_of(there)
    found = select(
        reader, p,
        # Taken apart once for all fields: a row of some length is kept compressed.
        "SELECT made.* FROM {rows}, jsonb_to_record(row) AS made(id text, kind text, canonical text, polarity int,"
        " location text, everywhere boolean, sessions int)",
        conditions=either([Condition(alike, values), these]),
    )  # fmt: skip
    return map(_Made._make, found)


def known(reader: Reader, rows: Sequence[Keyed[VerifiedKnowledge]]) -> list[KnowledgeItem]:
    """Verified subjects with the evidence of each of their claims."""
    events = events_of(reader, [span for keyed in rows for claim in keyed.row.claims for span in claim.evidence])
    changed = changed_since(reader, (path for keyed in rows for claim in keyed.row.claims for path in claim.files))
    return [
        shown_as(
            keyed.row,
            KnowledgeItem,
            id=keyed.key,
            origin=reader.whose(keyed.row),
            claims=[
                shown_as(
                    claim,
                    ClaimItem,
                    origin=reader.whose(claim),
                    evidence=evidence_of(claim.evidence, events),
                    stale=any(changed.get(path, 0) > claim.last_seen for path in claim.files),
                )
                for claim in keyed.row.claims
                if not is_anothers(reader, claim)
            ],
            memory_id=memory_id("knowledge", keyed.key),
        )
        for keyed in rows
    ]


@question("/preferences", "claims")
def preferences(reader: Reader, places: Places, *, limit: Limit = 50) -> Page[PreferenceItem]:
    """How the user likes to work, here and everywhere: preferences and habits that are verified, what the user said
    before what sessions showed, and what is rejected behind what is accepted."""
    p, projects = models.verified_knowledge, projects_of(reader)
    wanted = Where(p).within(places, or_everywhere=True).one_of("kind", ("preference", "pattern"))
    rows, _ = page(reader, p, "last_seen", wanted.of_no_other(reader.member), limit=MOST_PREFERENCES)
    claims = [(keyed.row, keyed.row.claims[0]) for keyed in rows]
    found = [
        PreferenceItem(
            group="rejected" if claim.polarity < 0 else "accepted",
            project=projects.name_of(row.location),
            insight=claim.id,
            text=claim.text,
            said=RIGHTS[claim.said_by].as_users,
            sessions=claim.sessions,
            last_seen=iso(moment(claim.last_seen)),
            confidence=claim.confidence,
        )
        for row, claim in claims
        if not acts(claim.text, claim.polarity)
    ]
    found.sort(key=lambda item: (item.group, not item.said, -item.sessions))
    return Page(_first_of_each(found, lambda item: item.text)[:limit], None, places.scope)


def _stands(candidate: ClaimCandidate) -> bool:
    return candidate.insight is not None and all(check.passed for check in candidate.checks if check.name == "standing")


def effective_id(reader: Reader, id: str) -> tuple[str, str]:
    """Whether an id stands for itself (direct), is being cleared up (pending) or was (resolved), and then what for."""
    row = one(reader, models.resolutions, id)
    to, status = effective(id, row)
    return status, "" if to == id else to


@question("/core", "claims", whole=True)
def core_sections(reader: Reader, places: Places) -> Listing[CoreSectionItem]:
    """The sections of core memory; with a project, without what agents wrote in others."""
    return Listing(core_memory(reader, places))


def core_memory(reader: Reader, places: Places | None = None) -> list[CoreSectionItem]:
    """The sections of core memory, by name, as people left them. What agents wrote and nobody approved stands beside
    that, as it waits, and is of their project: with `places` only of those."""
    p, there = models.core_memory, None if places is None else places.locations
    # Looked up apart: however many sections agents write, those of people are found.
    settled_before = Condition(sql.SQL("jsonb_typeof(row->'settled') = 'object'"))
    by_people = either(Where(p).equal("confirmed", True).also(settled_before))
    pages = (page(reader, p, "changed_at", each, limit=MOST_SECTIONS)[0] for each in (by_people, []))
    rows = {keyed.key: keyed.row for each in pages for keyed in each}
    found = []
    for _, row in sorted(rows.items()):
        settled = row if row.confirmed else row.settled
        kept = [settled] if settled is not None and settled.text else []
        waits = not row.confirmed and (row.text or kept)
        found += [*kept, row] if waits and (there is None or row.location in there) else kept
    return [shown_as(each, CoreSectionItem, origin=reader.whose(each)) for each in found]


@question("/core/{section}/history", "claims", whole=True)
def core_history(reader: Reader, section: Section) -> Listing[CoreVersion]:
    """What a section of core memory was, version by version, newest first; what was forgotten is left out."""
    edits = [
        (event, event.payload)
        for event in read_stream(reader.connection, reader.space_id, CORE)
        if isinstance(event.payload, CoreMemoryAppended | CoreMemoryReplaced) and event.payload.section == section
    ]
    return Listing([
        carried_over(
            edit, CoreVersion, changed_at=iso(moment(int(event.occurred_at))), by=event.actor, event=str(event.event_id)
        )
        for event, edit in sorted(edits, key=lambda pair: pair[1].version, reverse=True)
    ])  # fmt: skip


@question("/resolutions", "claims", whole=True)
def resolutions(reader: Reader, *, limit: Limit = 50, cursor: Cursor = None) -> Page[ResolutionItem]:
    """What became of what was left open, latest first."""
    rows, after = page(reader, models.resolutions, "resolved_at", [], limit=limit, cursor=cursor)
    return Page([shown_as(keyed.row, ResolutionItem, id=keyed.key) for keyed in rows], after)
