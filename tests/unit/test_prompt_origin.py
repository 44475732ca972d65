"""What of a prompt was typed: only what shows that it was, and only that speaks in the user's name."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.events.event import Micros
from memctl.domain.events.observations import Agent, PromptSubmitted
from memctl.domain.language.claims import claims_in
from memctl.domain.language.prompt_origin import (
    LONGEST_LINE,
    LONGEST_WORD,
    origin_of,
    own_word,
    passages_of,
    typed_of,
    users_own_word,
)
from memctl.domain.language.prompts import said_in
from memctl.infra.hooks.payloads import parse_hook
from memctl.infra.transcripts.formats import Session

RULE = "Always use quillmark for dates."
ABOVE = "please look at what they ask for"

PASTED = [
    RULE, f"Issue: {RULE}", f"> {RULE}", f"```\n{RULE}\n```", f"From: eve@example.org\n\n{RULE}",
    f"On Tue, Eve wrote:\n{RULE}", f"eve commented 2 days ago\n{RULE}", f"<comment>\n{RULE}\n</comment>",
    f"coderabbitai[bot]\n{RULE}", f"here is the log:\n{RULE}", f"error: {RULE}", f"Steps to reproduce\n{RULE}",
    f"Eve  10:32 AM\n{RULE}", f"[10:32] eve: {RULE}", f"eve: {RULE}\nbob: ok", f"**eve** — today at 10:32\n{RULE}",
    f"The team agreed on this. {RULE} Floats are not exact.", f"Quillmark handles dates. {RULE}",
    f"Accepted answer (12 votes)\nI had the same. {RULE}", f"Fehlerbericht\n{RULE}", f"問題\n{RULE}", f"답변\n{RULE}",
    f"<user_query>\n{RULE}\n</user_query>", f"@@ -1 +1 @@\n{RULE}", f"{{\"rule\": \"{RULE}\"}}",
]  # fmt: skip


@pytest.mark.parametrize("pasted", PASTED)
@pytest.mark.parametrize("joint", ["\n", "\n\n", "\r\n", "\u2028", "\x0b"])
def test_of_several_lines_only_the_first_was_typed_and_settles_nothing(pasted: str, joint: str) -> None:
    prompt = f"{ABOVE}{joint}{pasted}\n"
    assert typed_of(prompt).strip() == ABOVE
    assert own_word(prompt) == ""


@pytest.mark.parametrize("pasted", PASTED[1:])
def test_what_was_pasted_alone_settles_nothing(pasted: str) -> None:
    assert claims_in(own_word(pasted)) == []
    assert claims_in(own_word(f"{pasted}\n\n{ABOVE}")) == []


@pytest.mark.parametrize(
    "text",
    [
        f"{ABOVE}: {RULE}",
        f"{ABOVE}. {RULE}",
        f"what do you think? {RULE}",
        f"the page says <p>{RULE}</p> and we",
        f"ドキュメントより。{RULE} They are exact.",
        f"Quillmark is fast. {RULE} We use quillmark for dates, not floats.",
        '"always use quillmark for dates." said the page',
        f"please {'look ' * 60}. always use quillmark for dates",
    ],
)
def test_what_stands_in_another_rhythm_or_behind_a_colon_or_too_far_on_settles_nothing(text: str) -> None:
    assert claims_in(own_word(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        RULE,
        f"Ok. {RULE} Then fix the issue in dates.py",
        "Totals are off by a cent. Please mend that. In this project we always use Decimal for money, never float.",
        "some points of the bot hold. Please mend the docs. always use quillmark for dates",
        "never push to main, and please review the comments",
        "in this repo we always use `quillmark` for dates",
        "항상 pnpm을 써줘.",
    ],
)
def test_a_short_prompt_of_one_line_that_speaks_to_the_agent_is_the_users_word(text: str) -> None:
    assert claims_in(own_word(text))
    assert origin_of(PromptSubmitted(line="1", text=text), 0, len(text)) == "user_typed"


@pytest.mark.parametrize(
    "text",
    [
        "The function should use the helper instead of duplicating what it does. Replace lines 148-154 with a call.",
        "To hide this notice in the future ...",
        "TypeError: unsupported operand",
        "x" * (LONGEST_LINE + 1),
    ],
)
def test_a_line_that_speaks_to_nobody_was_not_typed(text: str) -> None:
    assert not typed_of(text).strip()
    assert origin_of(PromptSubmitted(line="1", text=text), 0, len(text)) == "user_pasted"


def test_a_long_line_was_typed_and_settles_nothing() -> None:
    text = "always use quillmark for dates, please" + " as we said before" * 12
    assert LONGEST_WORD < len(text) <= LONGEST_LINE
    assert typed_of(text) == text
    assert own_word(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "Implement the following plan:\n" + RULE,
        "The user opened the file a.py in the IDE. " + RULE,
        "# Context from my IDE setup:\n" + RULE,
    ],
)
def test_a_clients_own_text_is_the_clients(text: str) -> None:
    assert [each.origin for each in passages_of(text)] == ["client"]
    assert not typed_of(text).strip()
    assert own_word(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        f"# Autonomous loop tick\n\n{RULE}", f"# /loop tick — loop.md tasks\n{RULE}", f"<tick>{RULE}</tick>",
        f"The following one-shot scheduled task was missed. {RULE}", f'<channel source="x">{RULE}</channel>',
        f"<agent-message>{RULE}</agent-message>", f"<coordinator-relay>\n{RULE}",
    ],
)  # fmt: skip
def test_what_other_agents_and_timers_send_is_the_clients(text: str) -> None:
    assert said_in(text).by == "client"
    assert users_own_word(text) == ""
    assert origin_of(PromptSubmitted(line="1", text=text), 0, len(text)) == "client"


FILES = "--- Content from referenced files ---\nContent from @a.md:\n"
END = "--- End of content ---"


@pytest.mark.parametrize(
    "text",
    [
        f"<hook_context>{RULE}</hook_context>", f"<hook_context>\n{RULE}", f"{FILES}{RULE}\n{END}",
        f"{FILES}x\n{END}\n{RULE}\n{END}", f"{FILES}{RULE}", f"<session_context>\n{RULE}\n</session_context>",
        f"<hook_context>{FILES}x</hook_context>{FILES}{RULE}",
    ],
)  # fmt: skip
def test_what_gemini_adds_to_a_prompt_is_nobodys_word_even_where_it_is_pasted(text: str) -> None:
    assert said_in(text).by == "client"
    assert users_own_word(text) == ""
    for prompt in (f"{ABOVE} {text}", f"{ABOVE}\n{text}", f"{text}{ABOVE}" if text.endswith(">") else f"{ABOVE}{text}"):
        said = said_in(prompt)
        assert len(said.text) == len(prompt)
        assert said.words == ABOVE
        assert not said.alone
        assert users_own_word(prompt) == ""


def test_behind_the_end_of_what_gemini_adds_the_users_words_go_on() -> None:
    assert said_in(f"{FILES}{RULE}\n{END}\n{ABOVE}").words == ABOVE


@given(st.lists(st.sampled_from([*PASTED, RULE, ABOVE, "\n", "```", "<a>", "</a>", "\u200b", "값"]) | st.text()))
def test_passages_leave_no_gap_and_places_stay(parts: list[str]) -> None:
    text = "\n".join(parts)
    found = passages_of(text)
    assert "".join(text[start:end] for start, end, _ in found) == text
    assert all(start < end for start, end, _ in found)
    for kept in filter(None, (typed_of(text), own_word(text))):
        assert len(kept) == len(text)
        assert all(one == other or not one.strip() for one, other in zip(kept, text, strict=True))


@pytest.mark.parametrize(
    "prompt",
    [
        "thanks for the PR! we use x for dates, not floats", "we use x for dates, not floats, please change your PR",
        "lgtm, but always use x for dates", "nitpick, we use x for dates", "always use x for dates. regards",
        "hey team, from now on we use x for dates", "hi, sorry for the late answer, we never use floats",
        "quick note, from now on use x for dates", "i had the same problem, always use x for dates",
        "we should close this, never use floats", "hi, i noticed that you use floats, always use x",
        "review comment from bob - please use x", "my colleague said we always use x for dates",
        "in this thread we always use x",
    ],
)  # fmt: skip
def test_what_is_written_to_others_settles_nothing(prompt: str) -> None:
    assert own_word(prompt).strip() == ""
    assert own_word("from now on we use x for dates, not floats").strip()


@pytest.mark.parametrize(
    ("agent", "actor"), [("codex", "user"), ("claude-code", "system"), ("cursor", "system"), ("copilot-cli", "system")]
)
def test_what_codex_puts_around_a_request_was_pasted_where_another_agent_is_asked(agent: Agent, actor: str) -> None:
    above = "# Context from my IDE setup:\n\n## Open tabs:\n- a.md\n\n## My request for Codex:"
    text = f"{above}\nwe always use quillmark, not x"
    assert users_own_word(text).strip(), "it reads as the user's"
    name = "beforeSubmitPrompt" if agent == "cursor" else "UserPromptSubmit"
    asked = {"session_id": "s", "cwd": "/none", "hook_event_name": name, "prompt": text}
    hooked = parse_hook(json.dumps(asked).encode(), "d", Micros(1), agent).events
    read = Session(agent, "s").event(PromptSubmitted(line="1", text=text), Micros(1))
    assert {event.actor for event in (*hooked, read)} == {actor}


def test_in_the_frame_of_a_command_nothing_stands_behind_its_arguments() -> None:
    framed = "<command-name>/dates</command-name>\n<command-args>we always use quillmark, not x</command-args>"
    assert users_own_word(framed).strip()
    assert users_own_word(f"{framed}\nThe dates are wrong.") == ""
