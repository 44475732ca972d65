"""Recorded outcomes of processors: which word on a piece of work wins, whenever it comes."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import msgspec
import pytest
from events import as_read, prompt

from memctl.domain.events.event import Event, Micros, NewEvent
from memctl.domain.events.facts import Episode, InsightFound, Lesson, Span, StrategyShown, TaskClosed, quote
from memctl.domain.events.observations import ResponseReceived
from memctl.domain.events.processor_events import (
    Claim,
    EpisodeDistilled,
    InsightExtracted,
    StrategyDistilled,
    TrajectoryJudged,
)
from memctl.domain.events.statements import Statement, TaskCompleted
from memctl.domain.session.stream_facts import StreamFacts, derive
from memctl.projections.stream_state import StreamState, fold_stream

ASKED = "fix the crash of the export when the ledger is empty"


def of(payload: Statement | ResponseReceived, at: int, actor: str = "memctl") -> NewEvent:
    first = prompt(1)
    return NewEvent(
        stream=first.stream,
        payload=payload,
        occurred_at=Micros(first.occurred_at + at * 1_000_000),
        dedupe_key=f"test:{at}:{actor}",
        actor=actor,
        location=first.location,
        session_id="s1",
    )


WORK = (
    prompt(1, ASKED, at=1),
    of(ResponseReceived(text="The export now skips empty ledgers.", line="a", kind="text"), 3, "agent"),
    prompt(2, "now write the changelog for the release of version two", at=100),
)


def read(*told: NewEvent) -> list[Event]:
    return [as_read(event, position) for position, event in enumerate(told, 1)]


def first_episode(events: Sequence[Event]) -> Episode:
    """The episode of the first prompt, as it was told last."""
    found = [fact for fact in derive(events[0].stream, events).drain() if isinstance(fact, Episode)]
    return next(fact for fact in reversed(found) if fact.id == found[0].id)


EPISODE = first_episode(read(*WORK)).id
POINTS_AT = first_episode(read(*WORK)).evidence


def judged(outcome: str, at: int = 200, why: str = "", evidence: tuple[Span, ...] = POINTS_AT) -> NewEvent:
    verdict = TrajectoryJudged(episode=EPISODE, outcome=outcome, made_by="a-model", why=why, evidence=evidence)  # type: ignore[arg-type]
    return of(verdict, at)


def test_a_judges_verdict_wins_over_the_rules_and_closes_the_task_so() -> None:
    events = read(*WORK, judged("partial", why="the header is missing"))
    rule, verdict = first_episode(events[:3]), first_episode(events)
    assert (rule.outcome, verdict.outcome) == ("success", "partial")
    assert verdict.why == "judged by a-model: the header is missing"
    closed = [fact for fact in derive(events[0].stream, events).drain() if isinstance(fact, TaskClosed)]
    assert [fact.outcome for fact in closed] == ["partial"]


def test_a_verdict_that_points_at_nothing_wins_over_nothing() -> None:
    assert first_episode(read(*WORK, judged("failure", evidence=()))).outcome == "success"
    unknown = (prompt(1, ASKED, at=1), judged("failure", evidence=()))
    assert first_episode(read(*unknown)).outcome == "failure", "where the rule says nothing, a guess is more"


def test_the_newest_of_several_verdicts_counts() -> None:
    assert first_episode(read(*WORK, judged("success", 300), judged("failure", 200))).outcome == "success"


@pytest.mark.parametrize(("actor", "outcome"), [("user", "success"), ("agent", "failure")])
def test_a_persons_word_wins_over_a_judge_and_a_judge_over_an_agents(actor: str, outcome: str) -> None:
    done = of(TaskCompleted(outcome="success"), 50, actor)
    assert first_episode(read(*WORK[:2], done, WORK[2], judged("failure"))).outcome == outcome


def test_a_verdict_on_an_episode_that_was_told_has_the_stream_told_anew() -> None:
    before, late = read(*WORK), read(*WORK, judged("failure"))[3:]
    facts = StreamFacts(before[0].stream)
    assert facts.extend(before)
    assert not facts.extend(late)


def test_a_verdict_on_the_open_episode_revises_it_at_once() -> None:
    before, late = read(*WORK[:2]), read(*WORK[:2], judged("failure", 50))[2:]
    state, _ = fold_stream(before[0].stream, before)
    delta = state.extend(late)
    assert delta is not None
    assert [row.outcome for (name, _), row in delta.rows.items() if name == "episodes"] == ["failure"]


def test_a_verdict_that_came_before_what_it_is_about_is_the_same() -> None:
    events = read(*WORK, judged("failure"))
    early = StreamState(StreamFacts(events[0].stream))
    assert early.extend(events[3:]) is not None
    assert early.extend(events[:3]) is None, "it sorts behind the work, so the stream is told anew"
    assert first_episode(events).outcome == "failure"


def test_a_verdict_on_what_nobody_knows_changes_nothing() -> None:
    strange = of(TrajectoryJudged(episode=UUID(int=7), outcome="failure"), 200)
    assert first_episode(read(*WORK, strange)) == first_episode(read(*WORK))


def test_what_is_distilled_fills_in_for_the_rule_and_leaves_it_where_it_says_nothing() -> None:
    rule = first_episode(read(*WORK))
    said = EpisodeDistilled(episode=EPISODE, problem="Empty ledgers have no first row.", tips=("Test empty input.",))
    episode = first_episode(read(*WORK, of(said, 200)))
    assert (episode.problem, episode.tips) == ("Empty ledgers have no first row.", ("Test empty input.",))
    assert (episode.solution, episode.outcome) == (rule.solution, rule.outcome)


def claims(*found: Claim) -> list[InsightFound]:
    facts = derive(WORK[0].stream, read(*WORK, of(InsightExtracted(claims=found), 200))).drain()
    return [fact for fact in facts if isinstance(fact, InsightFound) and fact.rule == "extracted"]


def test_what_is_learnt_of_earlier_work_belongs_to_where_that_was() -> None:
    """However far the session has moved since; and to its project, not to a folder of it."""

    def at(event: NewEvent, location: str) -> NewEvent:
        return msgspec.structs.replace(event, location=location)

    claim = Claim(kind="fact", text="The export is written in Rust today.", quote=ASKED, said_by="agent")
    lesson = Lesson(title="Test empty input", content="Test the empty ledger first.")
    events = (
        at(WORK[0], "/work/shop"),
        at(WORK[1], "/work/shop/export"),
        at(WORK[2], "/work/blog"),
        at(of(StrategyDistilled(episode=EPISODE, strategies=(lesson,)), 200), "/work/shop/export"),
        at(of(InsightExtracted(claims=(claim,)), 201), "/work/shop/export"),
    )
    facts = derive(events[0].stream, read(*events)).drain()
    found = [f.location for f in facts if isinstance(f, StrategyShown) or getattr(f, "rule", "") == "extracted"]
    assert found == ["/work/shop"] * 2


def test_an_extracted_claim_rests_on_its_quote_and_one_without_a_place_on_none() -> None:
    source = read(WORK[0])[0].event_id
    span = quote(source, ASKED)
    aligned = Claim(kind="fact", text="The export crashes on empty ledgers.", quote=ASKED, said_by="user", span=span)
    loose = Claim(kind="fact", text="The export is written in Rust today.", quote="not there", said_by="agent")
    first, second = claims(aligned, loose)
    assert (first.evidence, first.said_by, first.text) == ((span,), "user_typed", ASKED), "in the user's own words"
    assert second.evidence == (Span(second.evidence[0].event),), "no quote, so no check of evidence passes"


@pytest.mark.parametrize("typed", ["Should we use quartz for dates?", "can you use quartz for dates", "use quartz for"])
def test_what_a_user_asked_is_no_claim_of_theirs_whatever_a_model_reads_in_it(typed: str) -> None:
    span = quote(read(WORK[0])[0].event_id, typed)
    (found,) = claims(Claim(kind="fact", text="use quartz for dates", quote=typed, said_by="user", span=span))
    assert (found.said_by, found.evidence[0].quote_hash) == ("agent", "")
