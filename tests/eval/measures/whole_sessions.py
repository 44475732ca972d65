"""Earlier sessions of the same work: is one found first, among five, among ten, by a later session's first request?

No reader judges. An earlier session is one of the same work where it changed a file that the later one then changed
too, and that at most a fifth of the project's sessions changed. Sessions that begin with the same request are copies
and are left out. The peer is BM25 over all that was asked and answered in a session and the paths it edited. The
memctl that MEMCTL_DATA_DIR names has read the sessions (`--sessions`, else those of the first set) and embedded them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from evaluation import Passage
from figures import Figure, Missing, share
from search_peers import BM25
from sessions import Data

from memctl.api.reading import models
from memctl.api.reading.caller import OWNER
from memctl.api.reading.pages import several
from memctl.api.reading.places import Places, places_of
from memctl.api.reading.reader import Reader, Readers
from memctl.api.search.engine import MOST_RESULTS, Engine, Question
from memctl.domain.events.facts import Answered, Fact, FileChanged, Prompted
from memctl.domain.knowledge.memory import distinctive
from memctl.domain.language.documents import named
from memctl.infra.embedders import embedders_of
from memctl.infra.settings import load_settings

COMMON, LEAST_WORDS, LONGEST = 0.2, 4, 2_000
"""The share of sessions from which on a file says nothing, and words and characters of what asks something."""

DEPTHS = (1, 5, 10)


class Session(NamedTuple):
    stream: str
    began: int
    location: str
    request: str
    text: str
    files: frozenset[str]


def measure(data: Data) -> Iterator[Figure]:
    settings = load_settings()
    if settings.database_url is None or not data.has_sessions:
        raise Missing("no memctl that has read the sessions runs here (MEMCTL_DATA_DIR)")
    readers = Readers(settings.database_url, settings.space)
    engine = Engine(settings.qdrant_url, settings.qdrant_api_key, embedders_of(settings))
    engine.warm_up(readers)
    sessions = sorted(filter(None, map(_session, data.facts.items())), key=lambda each: each.began)
    try:
        yield from readers.read(lambda reader: list(_figures(reader, engine, sessions)), OWNER)
    finally:
        engine.close()
        readers.close()


def _session(item: tuple[str, list[Fact]]) -> Session | None:
    stream, facts = item
    facts = sorted(facts, key=lambda fact: fact.occurred_at)
    prompts = [fact for fact in facts if isinstance(fact, Prompted)]
    if not prompts:
        return None
    paths = [fact.path for fact in facts if isinstance(fact, FileChanged)]
    said = [fact.text for fact in facts if isinstance(fact, Prompted | Answered)]
    asks = next((each.text for each in prompts if len(distinctive(each.text)) >= LEAST_WORDS), "")
    text = "\n".join([*said, *dict.fromkeys(paths)])
    return Session(stream, int(prompts[0].occurred_at), prompts[0].location, asks, text, frozenset(map(named, paths)))


def _figures(reader: Reader, engine: Engine, sessions: list[Session]) -> Iterator[Figure]:
    projects: dict[str, list[tuple[Session, Places]]] = defaultdict(list)
    for each in sessions:
        places = places_of(reader, None, each.location)
        if places.project is not None and places.locations:
            projects[places.locations[0]].append((each, places))
    hits: dict[str, Counter[int]] = {"memctl": Counter(), "BM25": Counter()}
    asked = 0
    for those in projects.values():
        files = Counter(name for each, _ in those for name in each.files)
        rare = {name for name, count in files.items() if count <= max(len(those) * COMMON, 2)}
        for number, (later, places) in enumerate(those):
            before = [each for each, _ in those[:number] if each.request != later.request]
            gold = {each.stream for each in before if each.files & later.files & rare}
            if not gold or not later.request:
                continue
            asked += 1
            among = {each.stream for each in before}
            peer = BM25([Passage(id=each.stream, text=each.text) for each in before])
            found = {
                "memctl": _found(reader, engine, later, places, among),
                "BM25": peer.rank(later.request[:LONGEST]),
            }
            for name, ranked in found.items():
                hits[name].update(depth for depth in DEPTHS if gold.intersection(ranked[:depth]))
    for name, counts in hits.items():
        for depth in DEPTHS:
            target = share(hits["BM25"][depth], asked) if name == "memctl" else None
            yield Figure(f"{name}: hit@{depth}", share(counts[depth], asked), asked, target)


def _found(reader: Reader, engine: Engine, later: Session, places: Places, among: set[str]) -> list[str]:
    question = Question(
        query=later.request[:LONGEST], places=places, now=datetime.fromtimestamp(later.began / 1e6, UTC),
        limit=MOST_RESULTS, before=later.began, on_request=True,
    )  # fmt: skip
    results = engine.search(reader, question).results
    rows = several(reader, models.memories, [each.id for each in results])
    streams = (stream for each in results if each.id in rows for stream in rows[each.id].sessions)
    return list(dict.fromkeys(stream for stream in streams if stream in among))
