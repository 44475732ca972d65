"""A prompt that an agent scheduled comes back in the user's place, and is the agent's word."""

from __future__ import annotations

import pickle
import random
import re
from typing import Any

import msgspec
import pytest
from events import as_read, observed
from hypothesis import example, given
from hypothesis import strategies as st
from session_events import Session, event, facts_of, hooks_of, only

from memctl.api.queries.turns import turns_of
from memctl.domain.events.event import Event
from memctl.domain.events.event_order import EventOrder
from memctl.domain.events.facts import InsightFound, Prompted, Turn, quote
from memctl.domain.events.observations import NoticeReceived, PromptSubmitted, ToolCalled
from memctl.domain.events.processor_events import Claim, InsightExtracted
from memctl.domain.session.scheduled_prompts import (
    _CODED,
    LEAST_SHOWN,
    LOOKS,
    MOST_SHOWN,
    SCANNED,
    TRY,
    Looks,
    Shown,
    _has_codes,
    without_markup,
)
from memctl.domain.session.stream_facts import StreamFacts, derive
from memctl.domain.support.provenance import Provenance
from memctl.workers.processors.language_model import Subject, material_of

RULE = "always use quillmark for dates, please"
LOOP = (
    f"<command-message>loop</command-message>\n<command-name>/loop</command-name>\n<command-args>{RULE}</command-args>"
)

SCHEDULED = [
    ("CronCreate", {"cron": "*/5 * * * *", "prompt": RULE}, RULE),
    ("ScheduleWakeup", {"delaySeconds": 60, "reason": "later", "prompt": f"  {RULE}\n"}, RULE),
    ("ScheduleWakeup", {"prompt": f"/loop {RULE}"}, LOOP),
    ("mcp__scheduled-tasks__create_scheduled_task", {"prompt": RULE}, RULE),
    ("send_later", {"message": RULE}, RULE),
    ("CronCreate", {"prompt": f"{RULE}{'x' * 20_000}"}, f"{RULE}{'x' * 15_000}"),
]


def history(tool: str, given: dict[str, Any], fired: str) -> Session:
    session = Session()
    session.user("please look after the ledger")
    session.uses(tool, given, "scheduled")
    session.says("I look again in a minute.")
    session.user(fired)
    session.says("Noted.")
    return session


def heard(events: list[Event]) -> list[str]:
    facts = facts_of(events)
    assert not only(facts, InsightFound)
    assert len(only(facts, Turn)) == 1
    return [fact.text for fact in only(facts, Prompted)]


@pytest.mark.parametrize(("tool", "given", "fired"), SCHEDULED)
def test_what_an_agent_scheduled_is_no_prompt_of_the_users(tool: str, given: dict[str, Any], fired: str) -> None:
    events = history(tool, given, fired).events
    assert heard(events) == ["please look after the ledger"]
    assert heard(hooks_of(events)) == ["please look after the ledger"]


def test_it_is_so_in_whatever_order_and_batches_the_events_come() -> None:
    events = history(*SCHEDULED[0]).events
    events += hooks_of(events)
    expected = facts_of(events)
    rng = random.Random(84)
    for _ in range(20):
        rng.shuffle(events)
        assert facts_of(events) == expected
        facts = StreamFacts(events[0].stream)
        if facts.extend(events[:7]) and facts.extend(events[7:]):
            assert only(facts.drain(), Prompted) == only(expected, Prompted)


def test_what_the_user_said_before_an_agent_scheduled_it_is_the_users() -> None:
    session = Session()
    session.user(RULE)
    session.uses("CronCreate", {"prompt": RULE}, "scheduled")
    session.user(RULE)
    facts = facts_of(session.events)
    assert [fact.text for fact in only(facts, Prompted)] == [RULE]
    assert [fact.said_by for fact in only(facts, InsightFound)] == ["user_typed"]


def test_what_another_tool_was_asked_stays_the_users() -> None:
    session = history("Task", {"prompt": RULE}, RULE)
    assert [fact.text for fact in only(facts_of(session.events), Prompted)][1:] == [RULE]


def test_a_call_whose_input_holds_words_of_memory_counts_too() -> None:
    session = Session()
    session.user("please look after the ledger")
    session.tell(ToolCalled(tool="CronCreate", call="c", input={"prompt": RULE}, injected=True))
    session.user(RULE)
    assert [fact.text for fact in only(facts_of(session.events), Prompted)] == ["please look after the ledger"]


def test_one_that_waited_in_the_clients_queue_is_the_agents() -> None:
    session = Session()
    session.user("please look after the ledger")
    session.uses("CronCreate", {"prompt": RULE}, "scheduled")
    session.tell(NoticeReceived(kind="queued-prompt", text=RULE), "user")
    session.tell(NoticeReceived(kind="queue-taken"), "system")
    assert [fact.text for fact in only(facts_of(session.events), Prompted)] == ["please look after the ledger"]


def test_a_model_is_not_shown_it_as_the_users_and_quotes_it_as_nobodys() -> None:
    session = history(*SCHEDULED[0])
    whole = Subject(id="s", stream="s", location="", began=0, ended=10**17)
    assert material_of(whole, session.events).said(RULE, "user") == ("", None)
    fired = session.events[4]
    claim = Claim(
        kind="preference", text=RULE, quote=RULE, said_by="user", confidence=0.9, span=quote(fired.delivery_id, RULE)
    )  # fmt: skip
    read = event(InsightExtracted(claims=(claim,)), "read", session.events[-1].occurred_at + 1, 99, "system")
    (found,) = only(facts_of([*session.events, read]), InsightFound)
    assert (found.said_by, found.evidence[0].event) == ("agent", read.delivery_id)


def test_the_viewer_shows_no_turn_of_the_users_for_it() -> None:
    placed = EventOrder().place(history(*SCHEDULED[0]).events)
    assert placed is not None
    assert [turn.prompt for turn in turns_of(placed)] == ["please look after the ledger"]


TYPED_THROUGH = [
    ("Bash", {"command": f"tmux send-keys -t claude '{RULE}' Enter"}),
    ("mcp__terminal__send", {"lines": [{"text": f"{RULE.upper()}\n"}]}),
    ("Write", {"file_path": "/tmp/said.txt", "content": f"said:\n{RULE}"}),
]


@pytest.mark.parametrize(("tool", "given"), TYPED_THROUGH)
def test_what_an_agent_gave_to_a_tool_settles_nothing_as_a_prompt(tool: str, given: dict[str, Any]) -> None:
    events = history(tool, given, RULE).events
    for each in (events, hooks_of(events)):
        facts = facts_of(each)
        assert not only(facts, InsightFound)
        assert [fact.text for fact in only(facts, Prompted)] == ["please look after the ledger", RULE]
    span = quote(events[4].delivery_id, RULE)
    claim = Claim(kind="preference", text=RULE, quote=RULE, said_by="user", confidence=0.9, span=span)
    read = event(InsightExtracted(claims=(claim,)), "read", events[-1].occurred_at + 1, 99, "system")
    assert [found.said_by for found in only(facts_of([*events, read]), InsightFound)] == ["agent"]


@pytest.mark.parametrize(
    "shown",
    [
        f"# Rules\n- **{RULE.upper()}**\n",
        "4\tAlways use quillmark\n\tfor dates, please!",
        f'{{"rules": "Kept.\\n{RULE}"}}',
        f"まとめ。{RULE}",
        "     4\tAlways use quillmark\n     5\tfor dates, please!",
        " 4→Always use quillmark\n 5→for dates, please!",
        '<p>Always use <a href="/q">quillmark</a> for&nbsp;dates, please!</p>',
        '{"body":"Always use\\nquillmark for dates, please!"}',
        "Always use \x1b[1mquillmark\x1b[0m for dates, please",
        "docs/NOTES.md:3:Always use quillmark\ndocs/NOTES.md:4:for dates, please",
        "web-1  | 2024-05-02T10:11:12Z Always use quillmark\nweb-1  | 2024-05-02T10:11:13Z for dates, please",
        "^0ab1fe (Bob 2024-05-02 10:11:12) Always use quillmark\n^0ab1fe (Bob 2024-05-02 10:11:12) for dates, please",
        "&#65;lw&#97;ys use quillm&#x61;rk for d&#97;tes, ple&#97;se",
        '{"rule": "Alw\\u0061ys use quillm\\u0061rk for d\\u0061tes, please"}',
        "Always use quill\xadmark for\u200b dates, please",
        "Always use \x1b]8;;https://example.com\x07quillmark\x1b]8;;\x07 for dates, please",
        "Always use quillmark\n@@ -1,2 +1,2 @@ def dates():\n+for dates, please",
    ],
)
def test_what_a_tool_showed_settles_nothing_as_a_prompt(shown: str) -> None:
    for text in (RULE, f"{RULE}. and look at the ledger"):
        session = Session()
        session.user("please look after the ledger")
        session.uses("Read", {"file_path": "/tmp/rules.md"}, shown)
        session.user(text)
        facts = facts_of(session.events)
        assert not only(facts, InsightFound)
        assert [fact.text for fact in only(facts, Prompted)][-1] == text


def test_the_pieces_of_a_sentence_are_looked_for_near_each_other_and_at_so_many_places() -> None:
    apart = f"Always use quillmark {'and so on ' * 30} for dates, please"
    session = Session()
    session.uses("Read", {"file_path": "/tmp/rules.md"}, apart)
    session.user(RULE)
    assert len(only(facts_of(session.events), InsightFound)) == 1


def test_a_prompt_that_wants_too_many_looks_counts_as_shown() -> None:
    shown, looks = Shown(), Looks()
    shown.add("Always use quill " * (LOOKS // TRY))
    assert not shown.has(b"alwaysusequillmarkfordates", looks)
    assert shown.has(b"alwaysusequillmarkfordates", looks)


LETTERS = st.text("ab", min_size=LEAST_SHOWN, max_size=60)


@given(st.lists(st.text("ab -\n", max_size=200), max_size=6), LETTERS, st.integers(0, 150))
def test_a_sentence_is_found_alike_from_end_to_end_and_by_blocks(texts: list[str], sentence: str, at: int) -> None:
    scanned, indexed = Shown(), Shown()
    for number in range(SCANNED):
        indexed.has(f"sentence number {number}".encode(), Looks())
    for text in [*texts, "ba " * at + sentence + "\n"]:
        scanned.add(text)
        indexed.add(text)
        for wanted in (sentence, sentence[::-1], f"{sentence}{text}"):
            letters = wanted.encode().translate(None, b" -\n")
            was, other = Looks(), Looks()
            assert scanned.has(letters, was) == indexed.has(letters, other) or was.ended or other.ended
    assert pickle.loads(pickle.dumps(indexed)).has(sentence.encode(), Looks())


def test_the_pieces_of_a_sentence_stand_in_one_answer() -> None:
    session = Session()
    session.uses("Read", {"file_path": "/tmp/a.md"}, "so always use quillmark")
    session.uses("Read", {"file_path": "/tmp/b.md"}, "for dates, please, and not for names")
    session.user(RULE)
    assert len(only(facts_of(session.events), InsightFound)) == 1


def test_what_was_shown_long_ago_is_looked_through_no_more() -> None:
    session = Session()
    session.uses("Read", {"file_path": "/tmp/a.md"}, RULE)
    session.user("please look after the ledger")
    for number in range(3 * MOST_SHOWN // 60_000):
        session.uses("Read", {"file_path": f"/tmp/{number}.md"}, "so and so. " * 9_000)
    session.user(RULE)
    assert len(only(facts_of(session.events), InsightFound)) == 1


def test_a_few_words_that_a_tool_showed_too_are_the_users() -> None:
    session = Session()
    session.uses("Read", {"file_path": "/tmp/rules.md"}, "- always use quillmark\n")
    session.user("always use quillmark")
    assert len(only(facts_of(session.events), InsightFound)) == 1


def test_what_the_user_said_before_an_agent_wrote_it_down_is_the_users() -> None:
    session = Session()
    session.user(RULE)
    session.uses("Write", {"file_path": "AGENTS.md", "content": RULE}, "ok")
    assert len(only(facts_of(session.events), InsightFound)) == 1


def test_nothing_of_what_tools_are_given_is_looked_through_without_end() -> None:
    session = Session()
    deep: Any = RULE
    for _ in range(300):
        deep = [deep]
    session.uses("mcp__terminal__send", {"deep": deep, "long": "x" * 3_000, "many": ["y"] * 100_000}, "ok")
    session.user(RULE)
    assert len(only(facts_of(session.events), InsightFound)) == 1


@pytest.mark.parametrize("first", ["hook", "transcript"])
def test_what_a_hook_knows_to_be_a_programs_word_is_no_users_by_the_transcript(first: str) -> None:
    text = "we always use quartz for dates"
    typed = observed(PromptSubmitted(line="1", text=text), at=1)
    asked = observed(PromptSubmitted(line="", via="hook", text=text), at=1, actor="agent")
    both = [typed, msgspec.structs.replace(asked, dedupe_key="hook:x")]
    read = [as_read(each, at) for at, each in enumerate(both if first == "transcript" else reversed(both), 1)]
    assert {each.said_by for each in only(derive(typed.stream, read).drain(), InsightFound)} == {Provenance.AGENT}
    assert {each.said_by for each in only(derive(typed.stream, [as_read(typed, 1)]).drain(), InsightFound)} == {
        Provenance.USER_TYPED
    }


MARKUP = re.compile(rb"<[A-Za-z/!?][^<>\n]{0,399}>|&#?[A-Za-z0-9]{2,8};")


@example([b"<", b"x" * 400, b">"])
@example([b"<", b"x" * 401, b">"])
@example([b"<", b" ", b"b", b">"])
@example([b"<", b"12345", b">"])
@example([b"&#", b"x" * 8, b";", b"&", b"x" * 9, b";"])
@given(st.lists(st.sampled_from([b"<", b">", b"&", b";", b"#", b"amp", b"b", b"\n", b" ", b"x" * 398, b"12345"])))
def test_tags_and_entities_are_what_a_pattern_says_they_are(parts: list[bytes]) -> None:
    text = b"".join(parts)
    assert without_markup(text) == MARKUP.sub(b" ", text)


@given(st.text("&#%\\\\uxX0415;", max_size=12).map(str.encode))
def test_where_nothing_stands_behind_a_sign_there_is_no_letter_by_its_number(text: bytes) -> None:
    assert _has_codes(text) or not _CODED.search(text)
