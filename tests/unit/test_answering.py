"""What answers somebody who asks: which sentences are shown, and in which order memories come."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from uuid import uuid4

from events import as_read, observed
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memctl.api.reading.places import Places
from memctl.api.search.engine import Question, shown
from memctl.domain.events.event import Micros
from memctl.domain.events.facts import Turn, quote
from memctl.domain.events.observations import PromptSubmitted, ResponseReceived
from memctl.domain.retrieval import answering
from memctl.domain.retrieval.answering import (
    Part,
    Passage,
    beside_the_first,
    by_words,
    chance,
    classes,
    fitting,
    said_in,
    weights,
    words_of,
)
from memctl.domain.support.provenance import Provenance
from memctl.domain.support.text import tokens
from memctl.projections.memories import of_turn

FILLER = "Nothing of note stands in this sentence here. " * 40


def part(id: str, session: str, order: float, *sides: str, settles: bool = True) -> Part:
    return Part(id, session, order, tuple(map(said_in, sides)), settles)


def passage(sides: list[str], weight: dict[str, float], most: int, room: int = 0) -> Passage:
    return answering.passage(list(map(said_in, sides)), weight, most, room)


def ordered(query: str, *parts: Part) -> list[str]:
    weight = weights(query, map(words_of, parts))
    return [each.id for each in fitting(parts, weight, 300)]


def test_a_word_that_few_memories_hold_says_more_and_one_that_none_holds_most() -> None:
    texts = [frozenset({"commit"}), frozenset({"commit", "rebas"}), frozenset({"commit"})]
    weight = weights("rebase commit kafka", texts)
    assert weight["kafka"] > weight["rebas"] > weight["commit"]


def test_the_sentences_that_stand_together_and_hold_most_of_the_question_are_shown() -> None:
    text = FILLER + "The hook looks for `.git/rebase-merge`. That folder is there while a rebase goes on. " + FILLER
    found = passage([text], {"hook": 2.0, "folder": 1.0}, 200)
    assert "`.git/rebase-merge`. That folder is there while a rebase goes on." in found.text
    assert len(found.text) <= 200


def test_a_row_of_a_table_and_a_line_of_code_answer_as_a_sentence_does() -> None:
    text = FILLER + "\n| File share | wrong key type |\n```sh\nentire debug auto-commit\n```\n" + FILLER
    assert "File share wrong key type" in passage([text], {"key": 1.0, "share": 1.0}, 120).text
    assert "entire debug auto-commit" in passage([text], {"debug": 1.0}, 120).text


def test_what_was_answered_is_shown_before_what_was_asked_in_the_same_words() -> None:
    found = passage(["The prompt is slow.", "The prompt is slow since telemetry waits."], {"prompt": 1.0}, 100)
    assert (found.side, found.text) == (1, "The prompt is slow since telemetry waits.")


def test_room_behind_the_last_sentence_is_given_to_those_before_it() -> None:
    found = passage(
        ["It checks two folders. They are rebase-merge and rebase-apply. So the hook knows."], {"hook": 1}, 90
    )
    assert found.text.startswith("It checks two folders.")


LIST = """Make the checkout retry
Outcome: success
Said: The pool holds five connections.
Said: Two clocks differ by a second.
Said: A retry waits for a second, then for two."""


def weighing(**words: float) -> dict[str, float]:
    return {token: weight for word, weight in words.items() for token in tokens(word)}


def test_of_a_list_the_lines_that_answer_are_shown_in_their_order_before_what_stands_first() -> None:
    weight, said = weighing(retry=1.0, waits=2.0, clocks=2.0), LIST.splitlines()
    assert answering.lines(LIST, weight, 85) == f"{said[3]}\n{said[4]}"
    assert answering.lines(LIST, weight, len(said[4]) + 1) == said[4]
    assert answering.lines(LIST, weight, 120) == "\n".join((said[0], said[3], said[4]))
    assert answering.lines(LIST, weighing(pipes=1.0), 85) == ""


def test_of_a_list_the_line_that_is_nearest_in_meaning_is_shown_whatever_its_words() -> None:
    said, nearest = LIST.splitlines(), "The pool holds five connections."
    assert answering.lines(LIST, weighing(clocks=2.0), 80, nearest) == f"{said[2]}\n{said[3]}"
    assert answering.lines(LIST, weighing(pipes=1.0), 42, nearest) == said[2]
    assert answering.lines(LIST, weighing(clocks=2.0), 42, "No line ends in this.") == said[3]
    assert answering.lines(LIST, {}, 10, nearest) == "Said: The…"


def test_a_memory_counts_for_more_where_its_session_holds_the_rest_of_the_question() -> None:
    alone = part("alone", "s1", 0.3, "", "The biome check failed.")
    helped = part("helped", "s2", 0.3, "", "The biome check failed.")
    beside = part("beside", "s2", 0.1, "", "The folders are excluded.")
    assert ordered("which folders does biome check", alone, helped, beside)[0] == "helped"


def test_a_question_that_few_sentences_hold_goes_before_one_spread_over_a_long_text() -> None:
    spread = part("a: spread", "s1", 0.4, "", f"A hook ran. {FILLER} A rebase came. {FILLER} A commit followed.")
    dense = part("b: dense", "s2", 0.4, "", f"{FILLER} The commit hook waits for the rebase. {FILLER}")
    assert ordered("commit hook rebase", spread, dense) == ["b: dense", "a: spread"]


def test_an_answer_that_asks_back_stands_behind_what_settled_it_unless_it_fits_far_better() -> None:
    asks = part("asks", "s1", 0.6, "", "The branch is made at enable. Shall I change it?", settles=False)
    settled = part("settled", "s1", 0.5, "", "The branch is made at enable for both.")
    other = part("other", "s1", 0.01, "", "The licence is MIT.")
    assert ordered("is the branch made at enable", asks, settled) == ["settled", "asks"]
    assert ordered("is the branch made at enable", asks, other) == ["asks", "other"]


def test_one_session_does_not_crowd_out_the_others() -> None:
    many = [part(f"{number}", "s1", 0.5, "", "The hook waits for the rebase.") for number in range(3)]
    other = part("other", "s2", 0.5, "", "The hook waits for the rebase.")
    assert ordered("hook rebase", *many, other).index("other") == 1


PARTS = st.lists(
    st.builds(
        Part, st.uuids().map(str), st.sampled_from("abc"), st.floats(0, 1),
        st.tuples(st.text(max_size=60).map(said_in), st.text(max_size=200).map(said_in)), st.booleans(),
    ),
    max_size=6, unique_by=lambda each: each.id,
)  # fmt: skip


@given(PARTS, st.text(max_size=60), st.randoms())
def test_the_order_does_not_depend_on_that_in_which_memories_were_found(
    parts: list[Part], query: str, chance: Random
) -> None:
    first = ordered(query, *parts)
    chance.shuffle(parts)
    assert ordered(query, *parts) == first


@given(st.lists(st.text(max_size=900), max_size=2), st.text(max_size=60))
def test_a_passage_never_exceeds_its_room(sides: list[str], query: str) -> None:
    weight = weights(query, [])
    assert len(passage(sides, weight, 300).text) <= 300
    assert len(passage(sides, weight, 300, 700).text) <= 700


def test_with_more_room_what_answers_is_shown_with_what_stands_behind_it_and_then_before() -> None:
    before, behind = "It was seen in May. " * 9, "Then it was mended by hand. " * 9
    text = f"{before}The hook waits for the rebase. {behind}"
    short, longer = (passage([text], {"hook": 1.0}, 60, room).text for room in (0, 220))
    assert short in longer
    assert longer.count("mended") > longer.count("May") == 1, "what stands behind goes first"
    assert len(short) <= 60 < len(longer) - 100
    assert passage([text], {"hook": 1.0}, 60, 900).text == " ".join(text.split())


def test_a_passage_is_looked_for_in_all_that_was_said_and_not_in_what_a_row_keeps_of_it() -> None:
    said = [
        observed(PromptSubmitted(line="1", text="Why is the prompt slow?"), session="s1", at=0, actor="user"),
        observed(ResponseReceived(line="2", text=f"{FILLER * 2}The shutdown waits for PostHog."), session="s1", at=1),
    ]
    events = {each.event_id: each for each in (as_read(event, number) for number, event in enumerate(said, 1))}
    turn = Turn(
        id=uuid4(), stream="s1", occurred_at=Micros(0), location="", prompt=said[0].payload.text,
        answer=said[1].payload.text, evidence=tuple(quote(id, each.payload.text) for id, each in events.items()),
    )  # fmt: skip
    row = of_turn(turn)
    assert "PostHog" not in row.text
    asked = Question(query="slow", places=Places(None, "everywhere", None), now=datetime.now(UTC), on_request=True)
    assert "The shutdown waits for PostHog." in shown(row, events, {"shutdown": 1.0}, asked, 600)
    assert "PostHog" not in shown(row, {}, {"shutdown": 1.0}, asked, 600)


def test_something_is_known_where_an_answer_is_likely_among_the_first_and_nothing_becomes_high_by_it() -> None:
    assert classes([0.3, 0.2, 0.2, 0.02], ["none"] * 4) == ["suggested"] * 3 + ["none"]
    assert classes([0.3, 0.1, 0.1, 0.1], ["high"] * 4) == ["none"] * 4, "together they are no likely answer"
    assert classes([0.1] * 9, ["none"] * 9) == ["none"] * 9, "who asks looks at the first few"
    assert classes([0.9, 0.9], ["high", "none"]) == ["high", "suggested"]
    assert classes([], []) == []


def test_better_odds_are_a_greater_chance_to_answer() -> None:
    assert chance(-4.0) < chance(0.0) < 0.5 < chance(5.0)


def test_the_fifth_part_of_a_session_stands_behind_what_another_says() -> None:
    many = [part(f"{number}", "s1", 0.9, "", "The hook waits for the rebase.") for number in range(6)]
    other = part("other", "s2", 0.05, "", "A hook.")
    assert ordered("hook rebase", *many, other).index("other") == 4


def test_behind_the_first_sessions_stand_those_that_hold_the_words_of_a_long_request() -> None:
    said = {
        "apart": ["telemetri", "slow", "shutdown", "prompt"] * 2,
        "once": ["telemetri", "branch"] + ["rebas"] * 6,
        "none": ["licenc"] * 8,
    }
    found = by_words("telemetry makes the prompt slow at shutdown", said)
    assert found == ["apart", "once"]
    results = {
        "a": "s1",
        "b": "s1",
        "c": "s2",
        "d": "s3",
        "e": "s1",
        "f": "none",
        "g": "once",
        "h": "once",
        "i": "apart",
    }
    assert beside_the_first(results, found) == ["a", "b", "c", "d", "e", "i", "g", "f", "h"]
    assert beside_the_first(results, []) == list(results)


def test_only_who_asks_for_more_than_an_answer_is_given_whole_sessions() -> None:
    asked = Question(query="slow", places=Places(None, "everywhere", None), now=datetime.now(UTC), on_request=True)
    assert not asked.deep
    assert replace(asked, limit=6).deep
    assert not replace(asked, limit=6, on_request=False).deep


def test_a_question_that_nobody_answered_stands_behind_the_answer_to_the_same_words() -> None:
    asked = "the commit hook fails, it cannot find the package ts-pattern"
    echo = part("echo", "now", 0.9, f"{asked}, help")._replace(unanswered=True)
    mend = part("mend", "then", 0.3, "it is red", "The clones lack the package ts-pattern: the hook finds their tests.")
    other = part("other", "third", 0.2, "and the page?", "The page is blue now.")
    assert ordered(asked, echo, mend, other) == ["mend", "echo", "other"]
    assert ordered(asked, echo, other) == ["echo", "other"]
    asks_back = part("back", "then", 0.3, "it is red", "Is the package ts-pattern there that the hook cannot find?")
    assert ordered(asked, echo, asks_back._replace(settles=False), other)[0] == "echo"


def test_what_other_members_say_rivals_nothing_that_is_given_unasked() -> None:
    turn = Turn(
        id=uuid4(), stream="session/claude-code/s1", occurred_at=Micros(1), location="/w", prompt="Which stones?",
        answer="Those of the lake.",
    )  # fmt: skip
    row = replace(of_turn(turn), kind="knowledge", said_by=Provenance.MEMBER, member="liv")
    asked = Question(query="stones", places=Places(None, "everywhere", None), now=datetime.now(UTC))
    taken = {who: replace(asked, asking=who).takes(row) for who in (None, "", "liv", "tom")}
    assert taken == {None: True, "": False, "liv": True, "tom": False}
    assert replace(asked, asking="").takes(replace(row, confirmed=True))
