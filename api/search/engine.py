"""Search: understand, gather candidates, fuse, score, decide. Evidence is read for what is returned, and only that.

The parts that judge are pure and stand in `memctl.domain.retrieval.intent` and `memctl.domain.retrieval.ranking`;
`memctl.api.search.candidates` asks the stores.
"""

import contextlib
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta
from posixpath import basename
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from memctl.api.reading import models
from memctl.api.reading.caller import NOBODY
from memctl.api.reading.consolidation_status import without_repeats
from memctl.api.reading.evidence import events_of, evidence_of
from memctl.api.reading.met_in_places import met_in_places
from memctl.api.reading.pages import several
from memctl.api.reading.places import Places, projects_of
from memctl.api.reading.reader import Reader, Readers
from memctl.api.reading.views import Found, SearchAnswer, SourceRow, moment
from memctl.api.search.candidates import ALL_ON, Gathered, Sources, Switches
from memctl.api.search.corpus import CANDIDATES, Corpus, Wanted
from memctl.domain.events.event import Event
from memctl.domain.events.observations import PromptSubmitted, ResponseReceived
from memctl.domain.language.documents import named
from memctl.domain.language.prompts import words_in
from memctl.domain.language.speakers import said_by_named
from memctl.domain.retrieval import answering
from memctl.domain.retrieval.answering import Fitting, Part
from memctl.domain.retrieval.calibration import sort_of
from memctl.domain.retrieval.intent import PREFERRED, Understood, understand
from memctl.domain.retrieval.later import NamedMemory, later, newest_first
from memctl.domain.retrieval.passages import exchange_of, passage_of
from memctl.domain.retrieval.ranking import (
    BOUNDED,
    PROFILES,
    Candidate,
    Known,
    Profile,
    RankingFeatures,
    Scored,
    decide,
    relevance,
    score,
    worth_showing,
)
from memctl.domain.support.bounded import clipped
from memctl.domain.support.certainty import Class
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.location import project_of
from memctl.domain.support.mentions import names_in, path_within
from memctl.domain.support.provenance import Provenance
from memctl.domain.support.structs import carried_over
from memctl.domain.support.text import tokens
from memctl.infra.embedders import Embedders
from memctl.infra.vectors import models as vector_models
from memctl.infra.vectors.outbox import backlog
from memctl.projections.memories import CORRECTED, of_bug_pattern
from memctl.projections.memory_feedback import MemoryFeedback
from memctl.projections.memory_rows import Memory
from memctl.projections.vector_points import line_at

MOST_RESULTS = 50
"""Results of one search: what lies behind them no one looks at, and each is read whole."""

PASSAGE, ANSWER = 320, 600
"""Characters of the part of a memory that is shown: unasked, and to who asks."""

FIRST_FEW, FIRST_ANSWER = 3, 1_200
"""The first results, and the same of each of them to who asks: the right session is found far more often than its right
sentences."""

QUOTE = 1_000
"""Characters of a quote in a result, from where it begins: a pasted log of megabytes is no result."""

RIVALS = 24
"""Results beside those asked for that the best one is compared with."""

DEEPER_ON_REQUEST = 2
"""How many times as many candidates are looked at for a question on request: a session's later parts rank behind the
first parts of others."""

_LONGEST = 2_000
"""Characters of a query that words are taken from; the embedder reads fewer."""

HORIZON_US = 86_400_000_000
"""A memory this much later than the question was not known when it was asked; less may be a clock that is off."""


_UNSAID = MemoryFeedback()
"""Of a memory that nobody spoke of."""


class UnknownProfile(MemctlError):
    """There is no scoring profile {profile!r}; the choices are {choices}."""

    exit_code = 2
    profile: str
    choices: str


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A search. `now` has its zone: "yesterday" is the caller's. `kinds` narrows to those kinds of memory, `since` and
    `before` to what happened from the one moment on and until the other, in microseconds, `threshold` to results of
    that score (0 to 1) or a higher one."""

    query: str
    places: Places
    now: datetime
    limit: int = 5
    profile: str = "bounded"
    explain: bool = False
    kinds: tuple[str, ...] = ()
    threshold: float = 0.0
    since: int | None = None
    before: int | None = None
    switches: Switches = ALL_ON
    in_play: tuple[str, ...] = ()
    """Files that the work is at, as anybody names them."""
    settled: bool = False
    """Whether all that is settled of these projects is scored, and not only what is found first."""
    asking: str | None = None
    """The member whose agent is given what is found unasked (empty: the owner's): what other members said alone is no
    result then, and rivals none."""
    on_request: bool = False
    """Whether a person or an agent asks, and wants the sentences that answer. Else a hook looks for what bears on the
    work."""

    @property
    def until(self) -> int | None:
        """The first moment whose memories cannot answer: what came well after the question was not known to it."""
        horizon = _micros(self.now) + HORIZON_US if self.switches.time else None
        return min((each for each in (self.before, horizon) if each is not None), default=None)

    @property
    def deep(self) -> bool:
        """Whether more is asked for than an answer: then each session that was found has its place."""
        return self.on_request and self.limit > answering.FEW

    @property
    def among(self) -> int:
        """Results among which the best are: fewer asked for are the first of those that `FEW` would be."""
        return max(self.limit, answering.FEW) if self.on_request else self.limit

    def takes(self, row: Memory) -> bool:
        """Whether a memory is among those asked for."""
        return (
            (not self.kinds or row.kind in self.kinds)
            and (self.since is None or row.occurred_at >= self.since)
            and (self.before is None or row.occurred_at < self.before)
            and (self.asking in (None, row.member) or row.confirmed or row.said_by is not Provenance.MEMBER)
        )


class Ranking(msgspec.Struct, frozen=True):
    """Results with their classes, best first; the memories they are; and what had to be left out."""

    meant: Understood
    chosen: list[tuple[Scored, Class]]
    rows: dict[str, Memory]
    degraded: list[str]
    weight: Mapping[str, float]
    """Of each word of the question, how much it says which memory is meant; nothing where nobody asked."""
    followed: Mapping[str, str]
    """The results that a newer one says differently, or goes on with, each with the newest."""


class Engine:
    """Searches, with what that needs beside the database. Thread-safe once it was warmed up."""

    def __init__(self, qdrant_url: str | None, qdrant_api_key: str | None, embedders: Embedders) -> None:
        self._sources = Sources(qdrant_url, qdrant_api_key, embedders)

    def warm_up(self, readers: Readers | None = None) -> None:
        """Load the vector store's client, and the embedder of the vectors that are there. What fails is reported with
        every answer."""
        serving = None
        if readers is not None:
            with contextlib.suppress(MemctlError):
                serving = readers.read(lambda reader: vector_models.models(reader.connection).serving, NOBODY)
        self._sources.warm_up(serving.recipe if serving is not None else None)

    def close(self) -> None:
        self._sources.close()

    def condition(self, reader: Reader) -> list[str]:
        """What searches must do without right now, in words; empty when all is well."""
        everywhere = Places(None, "everywhere", None)
        gathered = self._sources.gather(Corpus(reader), Wanted(text="memctl", places=everywhere))
        missing = list(gathered.degraded)
        to_write, to_embed = backlog(reader.connection, reader.live.stage2, reader.space_id)
        if to_write:
            missing.append(f"{to_write} texts of memories are not in the vector store yet")
        if to_embed and self._sources.embeds:
            missing.append(f"{to_embed} texts of memories wait for their dense vector")
        return missing

    def search(self, reader: Reader, question: Question) -> SearchAnswer:
        """The best memories for a question. Raises: UnknownProfile."""
        began = time.perf_counter()
        ranking = self.rank(Corpus(reader), question)
        return SearchAnswer(
            query=question.query,
            scope=question.places.scope,
            intent=ranking.meant.intent,
            profile=question.profile,
            degraded=ranking.degraded,
            results=[each for each in _results(reader, question, ranking) if each.score >= question.threshold],
            took_ms=round((time.perf_counter() - began) * 1000, 1),
        )

    def rank(self, corpus: Corpus, question: Question) -> Ranking:
        """The best of any memories for a question, judged but not yet returned. Raises: UnknownProfile."""
        profile_of(question.profile)
        query = question.query[:_LONGEST]
        meant = understand(query, question.now)
        wanted = Wanted(
            # Words that name a time are looked for elsewhere. A query that has nothing else is kept whole.
            text=meant.content or query,
            places=question.places,
            kinds=question.kinds,
            period=meant.period,
            since=question.since,
            before=question.until,
            settled=question.settled,
            most=CANDIDATES * (DEEPER_ON_REQUEST if question.on_request else 1),
        )
        gathered = self._sources.gather(corpus, wanted, question.switches)
        if not question.kinds or "bug_pattern" in question.kinds:
            for id, likeness in corpus.known_errors(query, question.places).items():
                had = gathered.candidates.get(id, Candidate(id))
                gathered.candidates[id] = msgspec.structs.replace(had, matched=likeness)
        rows, chosen = _chosen(corpus, question, meant, gathered)
        weight: dict[str, float] = {}
        if question.on_request:
            # Another profile has an order and scores of its own.
            most = question.among + RIVALS
            ordered = question.profile == "bounded"
            chosen, weight = _answering(wanted.text, chosen, rows, most, ordered=ordered, deep=question.deep)
            chosen = chosen[: question.among]
        by_id = {each[0].id: each for each in chosen}
        followed = _followed(rows, {id: class_ for id, (_, class_) in by_id.items()}) if question.on_request else {}
        chosen = [by_id[id] for id in newest_first(by_id, followed)]
        if question.on_request:
            chosen = chosen[: question.limit]
        return Ranking(meant, chosen, rows, gathered.degraded, weight, followed)

    def bugs_like(self, reader: Reader, text: str, places: Places) -> dict[str, float]:
        """Signatures of known errors that a text may describe in other words, with the chance that it does (0 to 1)."""
        wanted = Wanted(text=text[:_LONGEST], places=places, kinds=("bug_pattern",))
        found = self._sources.gather(Corpus(reader), wanted).candidates
        rows: dict[str, Memory] = several(reader, models.memories, list(found))
        held = Corpus(reader).held(wanted.text, rows.values())
        return {row.source.key: 1.0 if id in held else relevance(found[id]) for id, row in rows.items()}

    def episodes_like(self, reader: Reader, text: str, places: Places, now: datetime) -> list[str]:
        """Ids of the episodes most like a text, best first."""
        question = Question(query=text, places=places, now=now, limit=MOST_RESULTS, kinds=("episode",))
        return [found.source.key for found in self.search(reader, question).results]


def _chosen(
    corpus: Corpus, question: Question, meant: Understood, gathered: Gathered
) -> tuple[dict[str, Memory], list[tuple[Scored, Class]]]:
    """Results with their classes, best first, and the memories they are."""
    worth = _shortlist(question, gathered)
    rows = corpus.rows([c.id for c in worth])
    # A row that is missing was forgotten, or refolded, since the vector store heard of it.
    held = corpus.held(question.query[:_LONGEST], rows.values())
    worth = [msgspec.structs.replace(c, matched=1.0) if c.id in held else c for c in worth]
    stale = corpus.stale(rows.values())
    said = corpus.regards(list(rows))
    rows = {id: row for id, row in rows.items() if question.takes(row) and not said.get(id, _UNSAID).rejected}
    standing = corpus.standings(rows.values())
    # Of memories that are shown as one, the one that the question meets best.
    kept = without_repeats((c.id for c in worth if c.id in rows), standing)
    rows = {id: rows[id] for id in kept}
    judgements = _Judgements(
        said,
        stale | {id for id in rows if id in standing and standing[id].doubtful},
        said_by_named(question.query[:_LONGEST], {id: row.text for id, row in rows.items() if row.kind == "turn"}),
        frozenset(map(named, question.in_play)),
    )
    classed = _classed(
        question, [_known(c, row, question, meant, judgements) for c, row in _distinct(worth, rows)], rows
    )
    if question.on_request:
        return rows, classed
    # What is settled is not crowded out by what was only said.
    settled = (each for each in classed[question.limit :] if each[0].id in gathered.settled and each[1] != "none")
    return rows, [*classed[: question.limit], *settled]


def _shortlist(question: Question, gathered: Gathered) -> list[Candidate]:
    """The candidates whose memories are read, best first. No profile lifts what is far down in relevance to the top;
    rows cost more than ranks."""
    worth = [c for c in gathered.candidates.values() if worth_showing(c, c.id in gathered.timely)]
    worth.sort(key=lambda c: (c.id not in gathered.timely, -relevance(c), c.id))
    most = question.among + CANDIDATES * (DEEPER_ON_REQUEST if question.on_request else 1)
    return worth if question.deep else [*worth[:most], *(c for c in worth[most:] if c.id in gathered.settled)]


def _classed(question: Question, known: Sequence[Known], rows: Mapping[str, Memory]) -> list[tuple[Scored, Class]]:
    """Candidates in the order of the profile, and of what class each is. More than is shown: among them is what the
    best one has to be better than."""
    profile = profile_of(question.profile)
    words = {id: frozenset(tokens(f"{row.title} {row.gist}")) for id, row in rows.items()} if profile.diverse else {}
    most = len(known) if question.settled or question.on_request else question.limit + RIVALS
    ranked = score(known, profile, lambda a, b: _overlap(words[a], words[b]), most)
    sessions = {id: frozenset(row.sessions) for id, row in rows.items()}
    # Scores of other profiles are no chances.
    together = (lambda a, b: not sessions[a].isdisjoint(sessions[b])) if profile.name == "bounded" else None
    return list(zip(ranked, decide(ranked, together), strict=True))


class _Judgements(NamedTuple):
    """What is known of the memories that were found, besides what they say."""

    said: Mapping[str, MemoryFeedback]
    doubtful: Set[str]
    """Stale, or another one speaks against it."""
    by_named: Mapping[str, bool]
    """Of turns, whether whom the question names said it."""
    in_play: frozenset[str]


def _answering(
    query: str,
    chosen: list[tuple[Scored, Class]],
    rows: Mapping[str, Memory],
    most: int,
    *,
    ordered: bool,
    deep: bool,
) -> tuple[list[tuple[Scored, Class]], dict[str, float]]:
    """Results in the order in which they answer a question, copies of one once, and how much each of its words says;
    at most so many are looked at, and where it is asked `deep` the best of each other session besides."""
    if not ordered or _is_talk([rows[each.id] for each, _ in chosen[:most]]):
        # In a talk a turn is as short as a passage, and its score says all.
        once = {each.id for each in _once((each for each, _ in chosen[:most]), rows)}
        chosen = [each for each in chosen[:most] if each[0].id in once]
        parts = [_part(each, rows[each.id]) for each, _ in chosen]
        return chosen, answering.weights(query, map(answering.words_of, parts))
    ranked = _of_many(((each.id, class_) for each, class_ in chosen), rows)
    firsts = {_session_of(rows[each[0]]): each for each in reversed(ranked)} if deep else {}
    before = dict([*ranked[:most], *firsts.values()])
    scored = {each.id: each for each in _once((each for each, _ in chosen if each.id in before), rows)}
    parts = [_part(each, rows[each.id]) for each in scored.values()]
    weight = answering.weights(query, map(answering.words_of, parts))
    fits = answering.fitting(parts, weight, ANSWER)
    # What is certain, as an equal error is, comes first whatever words it is in.
    fits.sort(key=lambda each: scored[each.id].known.candidate.matched < 1)
    fitted = [_fitted(scored[each.id], each) for each in fits]
    classed = answering.classes([each.score for each in fitted], [before[each.id] for each in fitted])
    found = list(zip(fitted, classed, strict=True))
    return _by_session(query, found, rows) if deep else found, weight


def _by_session(
    query: str, found: Iterable[tuple[Scored, Class]], rows: Mapping[str, Memory]
) -> list[tuple[Scored, Class]]:
    """The first answers as they are, behind them those of the sessions that say most of the question."""
    said: dict[str, list[str]] = {}
    for row in rows.values():
        if row.kind in ("turn", "episode"):
            said.setdefault(_session_of(row), []).extend(tokens(row.search_text))
    by_id = {each[0].id: each for each in found}
    sessions = {id: _session_of(rows[id]) for id in by_id}
    return [by_id[id] for id in answering.beside_the_first(sessions, answering.by_words(query, said))]


def _is_talk(rows: Sequence[Memory]) -> bool:
    """Whether most of these are turns that nobody answered: what is said in a talk."""
    return 2 * sum(row.kind != "turn" or bool(exchange_of(row.text).answer) for row in rows) < len(rows)


def _of_many(ranked: Iterable[tuple[str, Class]], rows: Mapping[str, Memory]) -> list[tuple[str, Class]]:
    """Memories in their order, what one session says beyond its best parts behind what others say."""
    parts: Counter[str] = Counter()
    first: list[tuple[str, Class]] = []
    behind: list[tuple[str, Class]] = []
    for each in ranked:
        session = _session_of(rows[each[0]])
        parts[session] += 1
        (first if parts[session] <= answering.MOST_PARTS else behind).append(each)
    return [*first, *behind]


def _once(ranked: Iterable[Scored], rows: Mapping[str, Memory]) -> Iterator[Scored]:
    """Of copies, as forks of a session hold them, that of the session which was at work last."""
    ranked = list(ranked)
    last: dict[str, int] = {}
    for each in ranked:
        for session in rows[each.id].sessions:
            last[session] = max(last.get(session, 0), rows[each.id].last_at)
    latest: dict[tuple[str, int, str], Scored] = {}
    for each in ranked:
        row = rows[each.id]
        key = row.kind, row.first_at, exchange_of(row.text).prompt
        if key not in latest or _worked(row, last) > _worked(rows[latest[key].id], last):
            latest[key] = each
    kept = {each.id for each in latest.values()}
    return (each for each in ranked if each.id in kept)


def _worked(row: Memory, last: Mapping[str, int]) -> int:
    return max((last[session] for session in row.sessions), default=row.last_at)


def _part(scored: Scored, row: Memory) -> Part:
    return part_of(row, scored.order, same_error=bool(scored.known.candidate.matched))


def part_of(row: Memory, order: float, *, same_error: bool = False) -> Part:
    """What a memory says, as what may answer a question: `order` is its place among what was found (0 to 1)."""
    sides = tuple(filter(None, exchange_of(row.text))) if row.kind == "turn" else (row.title, row.text)
    unanswered = row.kind == "turn" and len(sides) < 2
    settles = row.kind != "turn" or unanswered or not sides[-1].rstrip().endswith("?")
    if row.kind == "bug_pattern":
        settles = "\nWhy: " in row.text or same_error
    return Part(row.id, _session_of(row), order, tuple(map(answering.said_in, sides)), settles, unanswered)


def _session_of(row: Memory) -> str:
    return row.sessions[0] if row.sessions else row.id


def _fitted(scored: Scored, fit: Fitting) -> Scored:
    parts = {**scored.parts, "fit": fit.fit, "cover": fit.cover, "mass": fit.mass, "odds": fit.odds}
    chance = round(max(answering.chance(fit.odds), min(scored.known.candidate.matched, scored.score)), 4)
    return msgspec.structs.replace(scored, score=chance, order=chance, parts=parts)


def profile_of(name: str) -> Profile:
    """The scoring profile of that name. Raises: UnknownProfile."""
    found = PROFILES.get(name)
    if found is None:
        raise UnknownProfile(profile=name, choices=", ".join(PROFILES))
    return found


def _followed(rows: Mapping[str, Memory], classes: Mapping[str, Class]) -> dict[str, str]:
    """Those of these results that a newer one of them followed: one of the same things, or the turn in which the user
    corrected what was answered, where that is likely to answer. An episode holds turns, so it follows none."""
    found = [rows[id] for id in classes]
    corrected = {
        row.before: row.id
        for row in found
        if classes[row.id] != "none" and row.before in classes and rows[row.before].outcome == CORRECTED
    }  # fmt: skip
    return corrected | later(
        [
            NamedMemory(
                row.id,
                names_in(row.text.lower()) | {basename(path).lower() for path in row.files},
                row.occurred_at,
                project_of(row.location),
                said := exchange_of(row.text).prompt if row.kind == "turn" else row.text,
                frozenset(words_in(said)),
            )
            for row in found
            if row.kind in ("turn", "knowledge", "document")
        ]
    )


def _section(row: Memory) -> tuple[str, ...]:
    """Of which document a memory is which section, the same whichever session wrote it; empty of another memory."""
    if row.kind != "document":
        return ()
    path = row.files[0]
    return project_of(row.location), path_within(row.location, path) or path, row.title


def _distinct(worth: Iterable[Candidate], rows: Mapping[str, Memory]) -> Iterator[tuple[Candidate, Memory]]:
    """The candidates whose memories are there; a claim of several worktrees of a project is one to who asks, and of a
    section that several sessions wrote the newest counts."""
    texts: set[str] = set()
    newest = {_section(row): row.id for row in sorted(rows.values(), key=lambda row: row.last_at)}
    for candidate in worth:
        row = rows.get(candidate.id)
        if row is None or row.text in texts or (row.kind == "document" and newest[_section(row)] != row.id):
            continue
        if row.kind == "knowledge":
            texts.add(row.text)
        yield candidate, row


def _known(
    candidate: Candidate,
    row: Memory,
    question: Question,
    meant: Understood,
    judgements: _Judgements,
) -> Known:
    """A candidate with what its memory says, and what was said of it. What is stale is demoted as if something spoke
    against it."""
    said, doubtful = judgements.said.get(row.id, _UNSAID), row.id in judgements.doubtful
    now = _micros(question.now)
    period = meant.period if question.switches.time else None
    in_period = None if period is None else period.since <= row.occurred_at < period.before
    if question.profile == "hybrid_search":
        from rapidfuzz import fuzz

        alike = fuzz.token_set_ratio(question.query[:300].lower(), row.title.lower()) / 100
        candidate = msgspec.structs.replace(candidate, fuzzy=alike)
    if in_period and len(tokens(meant.content)) < 2:
        # Little else was asked for than the time, and this is of it.
        candidate = msgspec.structs.replace(candidate, matched=max(candidate.matched, row.importance))
    features = RankingFeatures(
        age_days=max(now - row.occurred_at, 0) / 86_400e6 if question.switches.time else BOUNDED.usual_days,
        importance=row.importance,
        confidence=row.confidence,
        confirmed=(row.kind == "bug_pattern" and row.outcome == "solved")
        or (not doubtful and (row.status == "verified" or said.confirmed)),
        conflicted=row.status == "conflicted" or doubtful,
        preferred=row.bucket in PREFERRED[meant.intent],
        in_period=in_period,
        by_named=judgements.by_named.get(row.id),
        uses=len(said.ratings),
        usefulness=said.usefulness,
        recalled=said.recalls,
        reliability=said.reliability,
        pinned=said.pinned,
        sort=sort_of(row.kind, answered=row.kind != "turn" or "\n→ " in row.text),
        in_play=len(judgements.in_play & {named(each) for each in row.files}),
    )
    return Known(candidate, features)


def _overlap(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / len(a | b) if a or b else 0.0


def _results(reader: Reader, question: Question, ranking: Ranking) -> list[Found]:
    chosen = ranking.chosen
    rows = _in_words_of(reader, {each.id: ranking.rows[each.id] for each, _ in chosen}, question.places)
    events = events_of(reader, [span for each, _ in chosen for span in rows[each.id].evidence])
    found: list[Found] = []
    for each, class_ in chosen:
        row = rows[each.id]
        room = FIRST_ANSWER if len(found) < FIRST_FEW else ANSWER
        found.append(
            carried_over(
                row,
                Found,
                score=each.score,
                class_=class_,
                project=projects_of(reader).name_of(row.location),
                occurred_at=moment(row.occurred_at),
                evidence=evidence_of(row.evidence, events, QUOTE),
                why=_why(each, row, ranking, reader.whose(row)),
                source=SourceRow(row.source.projection, row.source.key),
                origin=reader.whose(row),
                passage=shown(row, events, ranking.weight, question, room, each.known.candidate.nearest),
                explain=_explained(each) if question.explain else msgspec.UNSET,
            )
        )
    return found


def _in_words_of(reader: Reader, rows: dict[str, Memory], places: Places) -> dict[str, Memory]:
    """The rows, errors that other projects met too as these places showed them."""
    allowed = None if places.locations is None else set(places.locations)
    shared = {
        row.source.key: id
        for id, row in rows.items()
        if row.kind == "bug_pattern" and allowed is not None and not allowed.issuperset(row.locations)
    }
    patterns = several(reader, models.bug_patterns, list(shared)) if shared else {}
    for pattern in met_in_places(reader, patterns.values(), places):
        rows[shared[pattern.signature]] = of_bug_pattern(pattern)
    return rows


def shown(
    row: Memory,
    events: Mapping[UUID, Event],
    weight: Mapping[str, float],
    question: Question,
    room: int,
    nearest: str = "",
) -> str:
    """The part of a memory that meets a question, of a turn out of all that was said in it; `nearest` is its point that
    is nearest in meaning."""
    prompts = "pasted" if row.said_by == Provenance.USER_PASTED else "user"
    if not question.on_request:
        return passage_of(row.text, question.query[:_LONGEST], PASSAGE, prompts)
    if len(row.text) <= ANSWER:
        return row.text
    if row.kind == "episode":
        return answering.lines(row.text, weight, room, line_at(row, nearest)) or clipped(row.text, room)
    sides = tuple(filter(None, exchange_of(row.text))) if row.kind == "turn" else (row.text,)
    if row.kind == "turn":
        said = [events[span.event].payload for span in row.evidence if span.event in events]
        asked = [each.text for each in said if isinstance(each, PromptSubmitted)]
        answered = [each.text for each in said if isinstance(each, ResponseReceived)]
        whole = tuple(filter(None, (*asked[:1], "\n\n".join(answered))))
        sides = whole if len(whole) == len(sides) else sides
    found = answering.passage(tuple(map(answering.said_in, sides)), weight, ANSWER, room)
    if not found.text:
        return clipped(row.text, room)
    speaker = (f"{prompts}: ", "agent: ")[found.side] if len(sides) > 1 else ""
    return speaker + found.text


def _why(scored: Scored, row: Memory, ranking: Ranking, whose: str) -> str:
    """How it was found and what speaks for it, in a few words; first what replaced it, or that it was corrected."""
    candidate, meant = scored.known.candidate, ranking.meant
    how = [f"older, see {ranking.followed[row.id]}"] if row.id in ranking.followed else []
    if row.kind == "turn" and row.outcome:
        how.append(row.outcome)
    if candidate.matched:
        how.append("the same error" if candidate.matched >= 1 else "a like error")
    if "sparse" in candidate.ranks or "words" in candidate.ranks:
        how.append("same words")
    if "dense" in candidate.ranks:
        how.append("near in meaning")
    if meant.period is not None and scored.known.features.in_period:
        how.append(f"from {meant.period.words}")
    if row.status == "verified" and not scored.known.features.conflicted:
        how.append(whose)
    elif row.status == "conflicted":
        how.append("contradicted")
    how += _said_of(scored.known.features)
    if scored.known.features.conflicted and row.status != "conflicted":
        how.append("its file has changed since")
    if row.kind in ("bug_pattern", "episode") and row.outcome:
        how.append(row.outcome)
    return ", ".join(how)


def _said_of(features: RankingFeatures) -> list[str]:
    reasons = ["pinned"] if features.pinned else []
    if features.uses:
        reasons.append(f"rated {features.usefulness:.2f}")
    elif features.reliability < _UNSAID.reliability and not features.confirmed:
        reasons.append(f"work that was given it ended badly ({features.reliability:.2f})")
    return reasons


def _explained(scored: Scored) -> dict[str, Any]:
    candidate = scored.known.candidate
    return {
        "ranks": candidate.ranks,
        "raw": candidate.scores,
        "word_strength": round(candidate.words, 4),
        "near": None if candidate.near is None else round(candidate.near, 4),
        "matched": candidate.matched,
        "parts": {name: round(value, 4) for name, value in scored.parts.items()},
        "age_days": round(scored.known.features.age_days, 1),
    }


def _micros(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
