"""What is read out of people's words as a claim, and, above all, what is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.insights import Claim, claims_in


def only_claim(text: str) -> Claim:
    found = claims_in(text, said_by="user")
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
        ("please don't add comments to the code", "preference", -1, "not add comments to the code"),
        ("Do not mention Claude in commit messages.", "preference", -1, "not mention claude in commit messages"),
        ("no, use bun instead of npm", "preference", 1, "bun"),
        ("i no longer use prek", "fact", -1, "not use prek"),
        ("we use Postgres for everything that must survive", "fact", 1, "postgres for everything that must survive"),
        ("We don't use ORMs in Go services", "fact", -1, "not use orms in go services"),
        ("This project is written in Rust and TypeScript", "fact", 1, "is written in rust and typescript"),
        ("in this repo we squash before merging", "fact", 0, "squash before merging"),
        ("full schema should not be updated ever", "preference", 0, "full schema should not be updated ever"),
        ("I'm a backend engineer at a bank", "profile", 0, "a backend engineer at a bank"),
        ("i'm new to Rust", "expertise", 0, "new to rust"),
        ("항상 테스트를 먼저 작성해줘", "preference", 1, "테스트를 먼저 작성해줘"),
        ("절대 main 브랜치에 푸시하지 마", "preference", -1, "not main 브랜치에 푸시"),
        ("앞으로는 커밋 메시지에 이모지 넣지 마세요", "preference", -1, "not 커밋 메시지에 이모지 넣"),
        ("저는 백엔드 개발자입니다", "profile", 0, "백엔드 개발자"),
        ("우리는 테스트에 pytest를 사용해요", "fact", 1, "테스트에 pytest를 사용해요"),
        ("답변은 한국어로 해줘", "preference", 1, "korean"),
    ],
)
def test_a_stated_claim_is_read(text: str, kind: str, polarity: int, canonical: str) -> None:
    claim = only_claim(text)
    assert (claim.kind, claim.polarity, claim.canonical) == (kind, polarity, canonical)


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
        "> Always use pnpm",
        "```\nAlways use pnpm\n```",
        "<instructions>\nNever force push to main\n</instructions>",
        "error: always use --force when pushing",
        "Implement the following plan:\n\nAlways use pnpm for installs.",
        "# Plan\n\n## Context\n\nWe use pnpm for installing.\n",
        "Always use pnpm. " * 120,
        "if the tests fail never force push to main",
        "이번에는 항상 테스트를 먼저 작성해줘",
        "왜 항상 pnpm을 사용해야 하나요?",
        "",
    ],
)
def test_what_is_asked_quoted_pasted_or_meant_for_now_is_no_claim(text: str) -> None:
    assert claims_in(text, said_by="user") == []


def test_an_agents_words_are_no_claims() -> None:
    assert claims_in("We use pnpm for installing packages.", said_by="agent") == []


def test_package_managers_answer_one_question() -> None:
    claims = [only_claim(t) for t in ("always use pnpm", "always use yarn", "never use npm")]
    assert {c.subject for c in claims} == {"one/package manager"}
    assert [c.canonical for c in claims] == ["pnpm", "yarn", "not npm"]


def test_doing_and_not_doing_the_same_have_one_subject() -> None:
    do, dont = only_claim("always run the linter before pushing"), only_claim("never run the linter before pushing")
    assert do.subject == dont.subject
    assert dont.canonical == f"not {do.canonical}"


def test_the_quote_is_found_where_the_claim_says() -> None:
    text = "Thanks, that works.\n- Never force push to main.\n\n```\nnever use tabs\n```\nalso always use pnpm please"
    claims = claims_in(text, said_by="user")
    assert [text[c.start : c.end] for c in claims] == ["Never force push to main.", "always use pnpm please"]


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ('you know, i allow. I allow you to commit with "--no-verify"', 'I allow you to commit with "--no-verify"'),
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
    for claim in claims_in(text, said_by="user"):
        assert 0 <= claim.start < claim.end <= len(text)
        assert " ".join(text[claim.start : claim.end].split()) == claim.text
