"""What of a user's words is kept as meant to last, and, above all, what is not."""

from __future__ import annotations

from itertools import permutations
from uuid import uuid4

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_events import event, facts_of, only

from memctl.domain.events.event import Micros
from memctl.domain.events.facts import InsightFound
from memctl.domain.events.observations import PromptSubmitted
from memctl.domain.knowledge.graduation import MEANT
from memctl.domain.language import claims
from memctl.domain.language.claims import PERHAPS, UNSAID, Claim, chance, claims_in, features
from memctl.domain.language.prompts import said_in
from memctl.domain.session.stream_facts import derive
from memctl.domain.support.provenance import Provenance
from memctl.projections.candidates import ClaimCandidate, candidates
from memctl.projections.insights import Insight, insights
from memctl.projections.kernel import Changed
from memctl.projections.verified_knowledge import VerifiedKnowledge, verified_knowledge


def only_claim(text: str) -> Claim:
    found = claims_in(text)
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    "text",
    [
        "the pre-commit hook fails because the tests cannot find package ts-pattern",
        "cmd shows no prompt any more since I changed the lua reader",
        "the login page does not load any more, it crashes all the time",
        "라이브 페이지가 항상 안 열려",
    ],
)
def test_who_says_what_goes_wrong_wants_nothing_for_good(text: str) -> None:
    assert claims_in(text) == []


@pytest.mark.parametrize("text", ["never commit when lint fails", "make test needs docker running or it hangs"])
def test_a_rule_about_what_goes_wrong_is_one(text: str) -> None:
    only_claim(text)


@pytest.mark.parametrize(
    ("text", "kind", "polarity"),
    [
        ("Always use pnpm for installing packages.", "preference", 1),
        ("please always run the tests before committing", "preference", 1),
        ("Never force push to main!", "preference", -1),
        ("From now on, don't push without asking me", "preference", -1),
        ("i prefer small commits over big ones", "preference", 1),
        ("I hate when you add emojis to commit messages", "preference", -1),
        ("i no longer use prek", "preference", -1),
        ("I mostly write Kotlin", "preference", 1),
        ("항상 테스트를 먼저 작성해줘", "preference", 1),
        ("절대 main 브랜치에 푸시하지 마", "preference", -1),
        ("앞으로는 커밋 메시지에 이모지 넣지 마세요", "preference", -1),
        ("우리는 테스트에 pytest를 사용해요", "fact", 1),
        ("답변은 한국어로 해줘", "preference", 1),
        ("niemals direkt auf main pushen", "preference", -1),
        ("Bitte immer auf Deutsch antworten", "preference", 1),
        ("nunca toques la carpeta vendor", "preference", -1),
        ("preferimos commits pequeños", "preference", 1),
        ("dont use emojis in commit mesages, alwasy", "preference", -1),
    ],
)
def test_what_is_meant_to_last_is_kept_as_it_was_typed(text: str, kind: str, polarity: int) -> None:
    claim = only_claim(text)
    assert (claim.text, claim.kind, claim.polarity) == (text, kind, polarity)
    assert claim.confidence >= MEANT


@pytest.mark.parametrize(
    "text",
    [
        "why do we always use pnpm here?",
        "should we always run the tests before committing",
        "can you always show me the diff first?",
        "commit this and push",
        "no don't set it, let's see if it keeps happening",
        "Always return early in this function when the list is empty",
        "we use go-git explicitly in other places to not be dependent on a checkout",
        "if the tests fail never force push to main",
        "you just should run `make setup` that will do everything",
        'I allow you to commit with "--no-verify"',
        "I don't like having two buttons there",
        "use flex instead of grid",
        "use fix-login for the branch name",
        "the config.json should be updated",
        "the list is empty, we don't show anything",
        "이 함수는 쓰지 말고 새로 만들자",
        "don't commit yet",
        "never mind",
        "it always fails on CI with the same hash",
        "I prefer option 2",
        "we use this in the next step",
        "use the second one instead of the first",
        '"We always use Svelte for new pages."',
        "- “Always use Haskell for scripts”",
        'The README says "Always use npm. Never use yarn." and so on',
        'Look at this quote:\n"We always write tests first.\nNever push to main."\nIs it any good',
        '슬랙에서 온 메시지야:\n"우리는 항상 스벨트를 씁니다"',
        "왜 항상 pnpm을 사용해야 하나요?",
        "I'd like to see the diff first",
        "can you use bun instead of npm?",
        "the button should be disabled when the api is down",
        "we moved to the next task",
        "you should run it again",
        "I'd like to see a table instead of the list",
        "always show the login button on the left",
        "i'd prefer a modal",
        "i'm an admin but can't see the page",
        "can we remove that, we don't use the cache anyway, right?",
        "이번에는 항상 테스트를 먼저 작성해줘",
        "warum ist das immer so langsam?",
        "der Test schlägt immer fehl",
        "¿por qué siempre da error 404?",
        "arregla el test que falla",
        "",
    ],
)
def test_what_is_asked_quoted_or_meant_for_now_is_not_kept_as_lasting(text: str) -> None:
    assert [claim for claim in claims_in(text) if claim.confidence >= MEANT] == []


def test_what_is_said_against_one_use_of_a_tool_lasts_only_by_its_own_words() -> None:
    text = "we use pnpm for installs. never push to main"
    assert len(claims_in(text)) == 2
    assert [claim.text for claim in claims_in(text, lasting=True)] == ["never push to main"]


def test_package_managers_answer_one_question() -> None:
    said = ("always use pnpm please", "in this repo we always use yarn", "never use npm")
    claims = [only_claim(text) for text in said]
    assert {c.subject for c in claims} == {"one/package manager"}
    assert [c.canonical for c in claims] == ["pnpm", "yarn", "not npm"]


def test_doing_and_not_doing_the_same_have_one_subject() -> None:
    do, dont = only_claim("always run the linter before pushing"), only_claim("never run the linter before pushing")
    assert do.subject == dont.subject
    assert dont.canonical == f"not {do.canonical}"


def test_the_quote_is_found_where_the_claim_says() -> None:
    text = "Thanks, that works. Never force push to main. Always use pnpm please"
    claims = claims_in(text)
    assert [text[c.start : c.end] for c in claims] == ["Never force push to main.", "Always use pnpm please"]


@given(st.text(alphabet=st.sampled_from(list("always never use pnpm. \n>`<한국어로 해줘?!-#'\"")), max_size=300))
def test_any_text_is_read_without_failing_and_quotes_stay_inside_it(text: str) -> None:
    for claim in claims_in(text):
        assert 0 <= claim.start < claim.end <= len(text)
        assert " ".join(text[claim.start : claim.end].split()) == claim.text
        assert PERHAPS <= claim.confidence <= 1


@pytest.mark.parametrize("lead", ["그리고 앞으로 ", "아 그리고 ", "참고로 ", "그럼 "])
def test_a_word_that_leads_in_is_no_part_of_a_claim(lead: str) -> None:
    text = f"합계가 틀렸어. {lead}항상 테스트를 먼저 작성해줘."
    (claim,) = claims_in(text)
    assert claim.text == f"{'앞으로 ' if '앞으로' in lead else ''}항상 테스트를 먼저 작성해줘."
    assert text[claim.start : claim.end] == claim.text


def test_words_in_quotes_belong_to_their_sentence() -> None:
    claims = claims_in("don't ever use 'any'. always use \"unknown\"")
    assert [claim.text for claim in claims] == ["don't ever use 'any'.", 'always use "unknown"']


def test_what_a_client_lays_in_front_makes_no_code_of_what_was_said() -> None:
    said = said_in("<ide_opened_file>cart.py</ide_opened_file>Always use pnpm for installs")
    assert [claim.text for claim in claims_in(said.text)] == ["Always use pnpm for installs"]


def test_each_weight_is_of_a_feature_that_a_cue_or_a_form_can_have() -> None:
    cues = set(claims.MODEL.cues)
    forms = {"all", "short", "code", "choice", "starts subject", "starts pronoun", "ends pronoun", "ban request"}
    for name in claims.MODEL.weights:
        place, _, cue = name.partition(" ")
        assert name in cues | forms or (place in ("first", "then", "starts") and cue in cues), name
    assert claims.MODEL.fitted_on


def test_a_slip_of_the_hand_and_another_spelling_of_the_apostrophe_change_nothing() -> None:
    assert features("alwasy run the tests, don’t skip them") == features("always run the tests, don't skip them")


def test_the_same_words_have_the_same_chance_whatever_stands_around() -> None:
    (alone,) = claims_in("never force push to main")
    (beside,) = claims_in("it is red again. never force push to main")
    assert alone.confidence == beside.confidence == chance("never force push to main")


# --- from words to what is held true ---

PERHAPS_MEANT = "we use Postgres for everything that must survive"


def said(text: str, number: int) -> list[InsightFound]:
    """What a session of its own says."""
    prompt = event(PromptSubmitted(line=f"{number}", text=text), "1", number, actor="user")
    facts = derive(f"session/claude-code/{number}", [msgspec.structs.replace(prompt, location="/work/shop")]).drain()
    return only(facts, InsightFound)


def candidate_of(facts: list[InsightFound]) -> ClaimCandidate:
    row: Insight | None = None
    for fact in facts:
        row = insights(row, fact)
    assert row is not None
    made = candidates(None, Changed(row.id, row))
    assert made is not None
    return made


def test_what_may_be_meant_to_last_waits_until_other_sessions_say_it() -> None:
    assert PERHAPS <= chance(PERHAPS_MEANT) < MEANT
    facts = [fact for number in (1, 2, 3) for fact in said(PERHAPS_MEANT, number)]
    once, twice = candidate_of(facts[:1]), candidate_of(facts[:2])
    assert not once.ready
    assert not once.waits
    assert once.missing
    assert (twice.ready, twice.warrant) == (True, "said by the user")
    assert len({candidate_of(list(order)).confidence for order in permutations(facts)}) == 1


def test_what_may_be_meant_to_last_and_acts_asks_nobody_yet() -> None:
    text = "all deploys use the token from vault"
    assert PERHAPS <= chance(text) < MEANT
    made = candidate_of(said(text, 1))
    assert (made.ready, made.waits) == (False, False)


@pytest.mark.parametrize("text", ["we always use pnpm and never npm?", "never push to main, right?"])
def test_a_question_states_nothing(text: str) -> None:
    assert chance(text.rstrip("?").removesuffix(", right")) >= MEANT
    assert chance(text) == 0


def test_what_does_not_say_that_it_lasts_waits_however_likely_it_is() -> None:
    assert chance("don't use ORMs or raw queries, because they hide what the tests need") == UNSAID < MEANT
    assert chance("never use ORMs or raw queries, because they hide what the tests need") > MEANT


def test_what_is_meant_to_last_holds_at_once() -> None:
    made = candidate_of(said("never force push to main", 1))
    assert (made.ready, made.warrant) == (True, "said by the user")


def test_of_two_that_contradict_each_other_the_newest_stands_whatever_comes_first() -> None:
    rows = [candidate_of(said(text, at)) for at, text in enumerate(("always use yarn", "always use pnpm"), 1)]
    for order in permutations(rows):
        known: VerifiedKnowledge | None = None
        for row in order:
            known = verified_knowledge(known, Changed(row.id, row))
        assert known is not None
        assert known.text == "always use pnpm"
        assert [(claim.text, bool(claim.superseded_by)) for claim in known.claims] == [
            ("always use pnpm", False),
            ("always use yarn", True),
        ]


@pytest.mark.parametrize("by", [Provenance.AGENT, Provenance.IMPORT, Provenance.MEMBER, Provenance.TOOL])
def test_nobody_else_makes_a_users_words_surer_or_newer(by: Provenance) -> None:
    def repeated(found: InsightFound) -> InsightFound:
        """The same claim by somebody else, who is sure of it, long after."""
        at = Micros(found.occurred_at + 10**15)
        return msgspec.structs.replace(found, id=uuid4(), said_by=by, confidence=1.0, occurred_at=at)

    (perhaps,) = said(PERHAPS_MEANT, 1)
    for order in permutations((perhaps, repeated(perhaps))):
        assert not candidate_of([*order]).ready
    (former,), (latter,) = said("always use yarn", 1), said("always use pnpm", 2)
    known: VerifiedKnowledge | None = None
    for row in (candidate_of([former, repeated(former)]), candidate_of([latter])):
        known = verified_knowledge(known, Changed(row.id, row))
    assert known is not None
    assert known.text == "always use pnpm"


def test_a_members_sessions_are_no_sources_of_what_the_user_said() -> None:
    (perhaps,) = said(PERHAPS_MEANT, 1)
    theirs = [
        msgspec.structs.replace(perhaps, id=uuid4(), said_by=Provenance.MEMBER, stream=f"session/codex/{n}", lineage="")
        for n in range(4)
    ]
    assert candidate_of(theirs).sessions == 4
    for order in ([perhaps, *theirs], [*theirs, perhaps]):
        row = candidate_of(order)
        assert (row.sessions, row.ready, row.confidence) == (1, False, candidate_of([perhaps]).confidence)


@pytest.mark.parametrize(("location", "stands"), [("/work/shop", True), ("", False)])
def test_what_is_said_nobody_knows_where_is_no_claim(location: str, stands: bool) -> None:
    text = "in this project we always use pnpm, never npm"
    prompt = event(PromptSubmitted(line="1", text=text), "1", 1, actor="user")
    found = only(facts_of([msgspec.structs.replace(prompt, location=location)]), InsightFound)
    assert found
    assert all((insights.fold(None, each) is not None) is stands for each in found if not each.everywhere)
    assert any(not each.everywhere for each in found)
