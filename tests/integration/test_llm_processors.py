"""What a language model adds: recorded beside the rules' results, which stand whenever it fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
import servers
from events import NOON, observed
from histories import drained, example
from llm_server import Server, answers, fails, garbage, slow
from msgspec.structs import replace

from memctl.api.erasure import scope as forget
from memctl.api.reading.caller import OWNER
from memctl.api.reading.pages import page, projection_named
from memctl.api.reading.reader import reader_of
from memctl.domain.events.event import Event, Payload
from memctl.domain.events.observations import PromptSubmitted
from memctl.domain.events.processor_events import EpisodeDistilled, InsightExtracted, ProcessorFailed, TrajectoryJudged
from memctl.infra.database import Connection, connect
from memctl.infra.llm import budget, client
from memctl.infra.log.append import append
from memctl.infra.log.read import read_events
from memctl.infra.readmodels.processor_work import MOST_ATTEMPTS
from memctl.infra.settings import Settings, load_settings
from memctl.workers.processors.language_model import EpisodeReader, Extractor, Judge, Summariser, llm_processors
from memctl.workers.processors.runner import ProcessorContext, process

MONTH = 30 * 86_400_000_000
JUDGED = {"outcome": "failure", "why": "nothing was mended", "confidence": 0.9, "quotes": ["no such words anywhere"]}
SUMMARY = {"summary": "The total of an empty cart was mended.", "tags": ["cart"]}


@pytest.fixture
def settings(settings: Settings, server: Server, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("MEMCTL_LLM__PROVIDER", "openai")
    monkeypatch.setenv("MEMCTL_LLM__MODEL", "m")
    monkeypatch.setenv("MEMCTL_LLM__BASE_URL", f"{server.url}/v1")
    monkeypatch.setenv("MEMCTL_LLM__TIMEOUT_S", "5")
    return load_settings()


@pytest.fixture(scope="module")
def told(postgres_server: str, templates: servers.Templates) -> Iterator[str]:
    """Name of a database in which the example is folded: each test takes a copy."""
    with servers.fresh_database(postgres_server, templates.live(1)) as url:
        with connect(url) as connection:
            append(connection, 1, example())
        drained(url)
        yield urlsplit(url).path.lstrip("/")


@pytest.fixture
def database_url(postgres_server: str, told: str) -> Iterator[str]:
    with servers.fresh_database(postgres_server, told) as url:
        yield url


@pytest.fixture
def desk(settings: Settings) -> Iterator[ProcessorContext]:
    with connect(settings.require("database_url"), name="test") as connection:
        yield ProcessorContext(connection, settings, now=lambda: NOON + MONTH)


def recorded(connection: Connection, kind: type[Payload]) -> list[Event]:
    ids = [row[0] for row in connection.execute("SELECT event_id FROM memctl.events WHERE actor = 'memctl'")]
    return [event for event in read_events(connection, 1, ids).values() if isinstance(event.payload, kind)]


def rows(desk: ProcessorContext, name: str, order: str) -> list[Any]:
    drained(desk.settings.require("database_url"))
    return [
        k.row
        for k in page(reader_of(desk.connection, "default", OWNER), projection_named(name), order, [], limit=50)[0]
    ]


def outcomes(desk: ProcessorContext) -> list[str]:
    return [row.outcome for row in rows(desk, "episodes", "started_at")]


def test_a_verdict_wins_over_the_rule_and_is_asked_for_once(desk: ProcessorContext, server: Server) -> None:
    server.then(answers({**JUDGED, "quotes": ["test", "export"]}))
    count = process(desk, Judge())
    assert count == len(outcomes(desk)) > 0
    assert set(outcomes(desk)) == {"failure"}
    (first, *_) = recorded(desk.connection, TrajectoryJudged)
    assert isinstance(first.payload, TrajectoryJudged)
    assert (first.payload.made_by, first.payload.prompt) == ("openai:m", "judge@1")
    assert first.payload.tokens == 120
    assert first.payload.confidence == 0.9
    assert first.sources
    asked = len(server.asked)
    assert process(desk, Judge()) == 0
    assert len(server.asked) == asked


def test_a_verdict_that_points_at_nothing_that_was_said_is_a_guess(desk: ProcessorContext, server: Server) -> None:
    by_rule = outcomes(desk)
    server.then(answers(JUDGED))
    assert process(desk, Judge()) == len(by_rule)
    assert {event.payload.confidence for event in recorded(desk.connection, TrajectoryJudged)} == {0.5}  # type: ignore[attr-defined]
    assert outcomes(desk) == by_rule


def test_a_claim_whose_quote_stands_nowhere_never_passes(desk: ProcessorContext, server: Server) -> None:
    prompt = next(e.payload.text for e in example() if e.payload.__class__.__name__ == "PromptSubmitted")
    claim = {"kind": "fact", "said_by": "user", "confidence": 0.9}
    made_up = {**claim, "text": "The cart is mended by robots", "quote": "words that nobody said"}
    quoted = {**claim, "text": "Invoice totals are off by a cent for some customers", "quote": prompt[:40]}
    server.then(answers({"claims": [made_up, quoted]}))
    process(desk, Extractor())
    (event,) = recorded(desk.connection, InsightExtracted)
    assert isinstance(event.payload, InsightExtracted)
    invented, said = event.payload.claims
    assert invented.span is None
    assert said.span is not None
    assert invented.text != said.text
    known = [claim.text for row in rows(desk, "verified_knowledge", "last_seen") for claim in row.claims]
    assert invented.text not in known
    assert said.quote in known, "the sentence that the user typed, and not the model's words for a part of it"
    assert prompt.startswith(said.quote)
    assert said.text not in known


def test_what_an_episode_taught_and_a_summary_take_the_rules_place(desk: ProcessorContext, server: Server) -> None:
    server.then(answers({"problem": "None has no plus", "solution": "Start from 0", "tips": ["Run the tests"]}))
    process(desk, EpisodeReader())
    server.then(answers(SUMMARY))
    process(desk, Summariser())
    assert "None has no plus" in {row.problem for row in rows(desk, "episodes", "started_at")}
    (session,) = rows(desk, "sessions", "last_at")
    assert (session.summary, session.tags) == (SUMMARY["summary"], ("cart",))
    assert recorded(desk.connection, EpisodeDistilled)
    # It says no more of the session than was there: nothing is found in it again, and it is no younger.
    assert list(Summariser().find(desk)) == []
    assert session.last_at < NOON + MONTH


def test_work_that_was_given_up_is_found_again_once_there_is_more_of_it(desk: ProcessorContext, server: Server) -> None:
    server.then(answers(SUMMARY))
    process(desk, Summariser())
    desk.connection.execute("UPDATE memctl.processing SET status = 'given up'")
    assert list(Summariser().find(desk)) == []
    more = PromptSubmitted(line="one-more", text="and now the tax, please")
    stream, session_id = example()[0].stream, example()[0].session_id
    append(desk.connection, 1, [replace(observed(more, at=86_400), stream=stream, session_id=session_id)])
    drained(desk.settings.require("database_url"))
    assert [work.subject for work in Summariser().find(desk)] == [stream]


def test_an_outage_is_no_attempt_and_is_met_by_one_piece_of_work_at_a_time(
    desk: ProcessorContext, server: Server
) -> None:
    server.then(fails(503))
    for _ in range(2 * MOST_ATTEMPTS):
        process(desk, Judge())
        desk.connection.execute("UPDATE memctl.processing SET next_at = clock_timestamp()")
    assert len(server.asked) == 2 * MOST_ATTEMPTS * client.TRIES
    server.then(answers(JUDGED))
    assert process(desk, Judge()) == len(outcomes(desk))


def test_a_request_that_its_server_always_fails_on_is_given_up_and_the_rest_is_asked(
    desk: ProcessorContext, server: Server
) -> None:
    pieces = len(outcomes(desk))
    server.then(fails(500))
    for _ in range(2 * MOST_ATTEMPTS * pieces):
        process(desk, Judge())
        desk.connection.execute("UPDATE memctl.processing SET next_at = clock_timestamp()")
    assert len(server.asked) == MOST_ATTEMPTS * client.TRIES * pieces


def test_without_a_model_nothing_is_asked_and_rules_do_the_work(
    desk: ProcessorContext, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_LLM__PROVIDER", "none")
    assert llm_processors(load_settings()) == []
    assert outcomes(desk)
    assert server.asked == []


# Graceful degradation: what fails, and what goes on all the same. What concerns the database (made
# at the first start; damaged, set aside and restored) and on look-ups are tested in integration/test_up, faults/
# test_damage and integration/test_outages; a consolidation that failed is due again (test_processors).


@pytest.mark.parametrize(
    ("behave", "kind"),
    [
        (fails(500), "unavailable"),
        (fails(401), "refused"),
        (garbage(b'{"choices": 7}'), "bad_output"),
        (slow(7.0, JUDGED), "timeout"),
    ],
    ids=["down", "refused", "garbage", "slow"],
)
def test_learning_that_fails_leaves_the_rule_standing_and_says_only_that_it_failed(
    desk: ProcessorContext, server: Server, behave: Any, kind: str
) -> None:
    before = outcomes(desk)
    server.then(behave)
    processor = Judge()
    (first, *_), find = processor.find(desk), processor.find
    processor.find = lambda desk: (work for work in find(desk) if work.subject == first.subject)  # type: ignore[method-assign]
    process(desk, processor)
    assert outcomes(desk) == before
    (failure,) = recorded(desk.connection, ProcessorFailed)
    assert isinstance(failure.payload, ProcessorFailed)
    assert (failure.payload.kind, failure.payload.attempt, failure.payload.why) == (kind, 1, "")
    assert process(desk, processor) == 0  # it waits before it tries again


def test_a_model_without_a_key_or_money_leaves_the_rules_to_it_and_is_tried_when_there_is_some(
    desk: ProcessorContext, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = outcomes(desk)
    monkeypatch.setenv("MEMCTL_LLM__DAILY_TOKENS", "10")
    desk.settings = load_settings()
    assert process(desk, Judge()) == 0
    assert (server.asked, outcomes(desk)) == ([], before)
    assert recorded(desk.connection, ProcessorFailed) == []
    monkeypatch.delenv("MEMCTL_LLM__DAILY_TOKENS")
    desk.settings = load_settings()
    desk.connection.execute("UPDATE memctl.processing SET next_at = clock_timestamp()")
    server.then(answers(JUDGED))
    assert process(desk, Judge()) == len(before)


def test_the_ledger_equals_what_the_server_counted(desk: ProcessorContext, server: Server) -> None:
    server.then(fails(429), answers(JUDGED), answers({"outcome": "great"}), answers(JUDGED))
    process(desk, Judge())
    server.then(answers(SUMMARY))
    process(desk, Summariser())
    spent = budget.spent(desk.connection)
    assert spent.daily_tokens == server.billed
    lines = budget.ledger(desk.connection, 1, 50)
    assert sum(line["calls"] for line in lines) == len(server.asked)
    assert {line["processor"] for line in lines} == {"judge", "summariser"}


def test_what_is_forgotten_takes_along_what_a_model_made_of_it(desk: ProcessorContext, server: Server) -> None:
    server.then(answers(SUMMARY))
    process(desk, Summariser())
    drained(desk.settings.require("database_url"))
    (session,) = rows(desk, "sessions", "last_at")
    planned = forget.plan(desk.settings, reader_of(desk.connection, "default", OWNER), session=session.session_id)
    forget.forget(desk.settings, desk.connection, planned, None)
    held = desk.connection.execute(
        "SELECT count(*) FROM memctl.events WHERE strpos(payload::text, %s) > 0", [SUMMARY["summary"]]
    ).fetchone()
    assert held == (0,)


def test_hostile_content_stays_between_the_marks_and_hostile_answers_are_bounded(
    desk: ProcessorContext, server: Server
) -> None:
    server.then(answers({**JUDGED, "why": "x" * 5_000}), answers(JUDGED))
    process(desk, Judge())
    for event in recorded(desk.connection, TrajectoryJudged):
        assert isinstance(event.payload, TrajectoryJudged)
        assert len(event.payload.why) <= 300
    for asked in server.asked:
        (user,) = [m["content"] for m in asked.body["messages"] if m["role"] == "user"][:1]
        mark = user.splitlines()[0]
        assert user.splitlines()[-1] == mark
        assert json.dumps(asked.body["messages"][0]).count(mark) >= 1


def test_a_lost_database_asks_nothing(desk: ProcessorContext, server: Server) -> None:
    server.then(answers(JUDGED))
    desk.connection.close()
    with pytest.raises(psycopg.Error):
        process(desk, Judge())
    assert server.asked == []
