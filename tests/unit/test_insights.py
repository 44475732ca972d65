"""What is read out of people's words as a claim, and, above all, what is not."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_events import event, facts_of, only

from memctl.domain.events.facts import InsightFound
from memctl.domain.events.observations import PromptSubmitted
from memctl.domain.language.claims import Claim, claims_in
from memctl.domain.language.prompts import said_in
from memctl.projections.insights import insights


def only_claim(text: str) -> Claim:
    found = claims_in(text)
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    ("text", "kind", "polarity", "canonical"),
    [
        ("Always use pnpm for installing packages.", "preference", 1, "pnpm"),
        ("ok, please always run the tests before committing", "preference", 1, "run the tests before committing"),
        ("Never force push to main!", "preference", -1, "not force push to main"),
        ("From now on, don't push without asking me", "preference", -1, "not push without asking me"),
        ("i prefer small commits over big ones", "preference", 1, "small commits over big ones"),
        ("I hate when you add emojis to commit messages", "preference", -1, "not add emojis to commit messages"),
        ("no, use bun instead of npm", "preference", 1, "bun"),
        ("i no longer use prek", "fact", -1, "not use prek"),
        ("we use Postgres for everything that must survive", "fact", 1, "postgres for everything that must survive"),
        ("We don't use ORMs in Go services", "fact", -1, "not use orms in go services"),
        ("This project is written in Rust and TypeScript", "fact", 1, "is written in rust and typescript"),
        ("in this repo we squash before merging", "fact", 0, "squash before merging"),
        ("full schema should not be updated ever", "preference", 0, "full schema should not be updated ever"),
        ("I'm a backend engineer at a bank", "profile", 0, "a backend engineer at a bank"),
        ("항상 테스트를 먼저 작성해줘", "preference", 1, "테스트를 먼저 작성해줘"),
        ("절대 main 브랜치에 푸시하지 마", "preference", -1, "not main 브랜치에 푸시"),
        ("앞으로는 커밋 메시지에 이모지 넣지 마세요", "preference", -1, "not 커밋 메시지에 이모지 넣"),
        ("저는 백엔드 개발자입니다", "profile", 0, "백엔드 개발자"),
        ("우리는 테스트에 pytest를 사용해요", "fact", 1, "테스트에 pytest를 사용해요"),
        ("답변은 한국어로 해줘", "preference", 1, "korean"),
        ("npm 말고 pnpm을 써줘", "preference", 1, "pnpm"),
        ("moment.js는 쓰지 마세요", "preference", -1, "not moment.js"),
        ("For all tests I'd like to see literal values instead of Contains checks", "preference", 1, None),
        ("I generally prefer early returns", "preference", 1, "early returns"),
        ("I mostly write Kotlin", "preference", 1, "kotlin"),
        ("우리는 항상 PR을 스쿼시 머지합니다", "fact", 1, "pr을 스쿼시 머지합니다"),
        (
            "that is not correct, we don't gitignore the whole data folder, especially data/settings.json",
            "fact",
            -1,
            "not gitignore the whole data folder",
        ),
    ],
)
def test_a_stated_claim_is_read(text: str, kind: str, polarity: int, canonical: str | None) -> None:
    claim = only_claim(text)
    assert (claim.kind, claim.polarity) == (kind, polarity)
    assert canonical is None or claim.canonical == canonical


@pytest.mark.parametrize(
    "text",
    [
        "why do we always use pnpm here?",
        "should we always run the tests before committing",
        "can you always show me the diff first?",
        "commit this and push",
        "no don't set it, let's see if it keeps happening",
        "Always return early in this function when the list is empty",
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
        "we use go-git explicitly in other places to not be dependent on a checkout",
        "we don't want to play catch up and add new types constantly",
        "if the tests fail never force push to main",
        "이번에는 항상 테스트를 먼저 작성해줘",
        "왜 항상 pnpm을 사용해야 하나요?",
        "I'd like to see the diff first",
        "can you use bun instead of npm?",
        "the button should be disabled when the api is down",
        "we moved to the next task",
        "you should run it again",
        "you just should run `make setup` that will do everything",
        'I allow you to commit with "--no-verify"',
        "I'd like to see a table instead of the list",
        "always show the login button on the left",
        "never return null from the parser",
        "I don't like having two buttons there",
        "i'd prefer a modal",
        "use flex instead of grid",
        "use fix-login for the branch name",
        "the config.json should be updated",
        "i'm an admin but can't see the page",
        "always run it before a commit",
        "can we remove that, we don't use the cache anyway, right?",
        "the list is empty, we don't show anything",
        "이 함수는 쓰지 말고 새로 만들자",
        "",
    ],
)
def test_what_is_asked_quoted_or_meant_for_now_is_no_claim(text: str) -> None:
    assert claims_in(text) == []


def test_what_is_said_against_one_use_of_a_tool_lasts_only_by_its_own_words() -> None:
    text = "we use pnpm for installs. never push to main"
    assert [claim.text for claim in claims_in(text, lasting=True)] == ["never push to main"]


def test_package_managers_answer_one_question() -> None:
    claims = [only_claim(t) for t in ("always use pnpm, never npm", "always use yarn", "never use npm")]
    assert {c.subject for c in claims} == {"one/package manager"}
    assert [c.canonical for c in claims] == ["pnpm", "yarn", "not npm"]


def test_doing_and_not_doing_the_same_have_one_subject() -> None:
    do, dont = only_claim("always run the linter before pushing"), only_claim("never run the linter before pushing")
    assert do.subject == dont.subject
    assert dont.canonical == f"not {do.canonical}"


def test_the_quote_is_found_where_the_claim_says() -> None:
    text = "Thanks, that works. Never force push to main. also always use pnpm please"
    claims = claims_in(text)
    assert [text[c.start : c.end] for c in claims] == ["Never force push to main.", "always use pnpm please"]


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("(we use go-git for reading trees)", "we use go-git for reading trees"),
        (
            "yes and do not wrap long lines as that ruins it (on GitHub)",
            "do not wrap long lines as that ruins it (on GitHub)",
        ),
        (
            "add the missing cases, use table driven tests where possible (also there)",
            "use table driven tests where possible",
        ),
    ],
)
def test_the_quote_holds_the_claim_and_little_else(text: str, quote: str) -> None:
    claim = only_claim(text)
    assert (claim.text, text[claim.start : claim.end]) == (quote, quote)


@given(st.text(alphabet=st.sampled_from(list("always never use pnpm. \n>`<한국어로 해줘?!-#'\"")), max_size=300))
def test_any_text_is_read_without_failing_and_quotes_stay_inside_it(text: str) -> None:
    for claim in claims_in(text):
        assert 0 <= claim.start < claim.end <= len(text)
        assert " ".join(text[claim.start : claim.end].split()) == claim.text


@pytest.mark.parametrize("lead", ["그리고 앞으로 ", "아 그리고 ", "참고로 ", "그럼 "])
def test_a_word_that_leads_in_is_no_part_of_a_claim(lead: str) -> None:
    text = f"합계가 틀렸어. {lead}항상 pnpm을 써줘."
    (claim,) = claims_in(text)
    assert claim.text == f"{'앞으로 ' if '앞으로' in lead else ''}항상 pnpm을 써줘."
    assert text[claim.start : claim.end] == claim.text


def test_words_in_quotes_belong_to_their_sentence() -> None:
    claims = claims_in("don't ever use 'any'. always use \"unknown\"")
    assert [claim.text for claim in claims] == ["don't ever use 'any'.", 'always use "unknown"']


def test_what_a_client_lays_in_front_makes_no_code_of_what_was_said() -> None:
    said = said_in("<ide_opened_file>cart.py</ide_opened_file>Always use pnpm for installs")
    assert [claim.text for claim in claims_in(said.text)] == ["Always use pnpm for installs"]


@pytest.mark.parametrize(("location", "stands"), [("/work/shop", True), ("", False)])
def test_what_is_said_nobody_knows_where_is_no_claim(location: str, stands: bool) -> None:
    said = event(PromptSubmitted(line="1", text="in this project we always use pnpm, never npm"), "1", 1, actor="user")
    found = only(facts_of([msgspec.structs.replace(said, location=location)]), InsightFound)
    assert found
    assert all((insights.fold(None, each) is not None) is stands for each in found if not each.everywhere)
    assert any(not each.everywhere for each in found)
