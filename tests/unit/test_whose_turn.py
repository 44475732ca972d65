"""Whose word the prompt of a turn is, and what of it becomes a tip."""

from __future__ import annotations

import pytest
from events import as_read, observed

from memctl.domain.events.event import Payload
from memctl.domain.events.facts import Episode, Turn
from memctl.domain.events.observations import PromptSubmitted, ToolCalled, ToolReturned
from memctl.domain.session.stream_facts import derive
from memctl.domain.support.provenance import Provenance
from memctl.projections.memories import of_turn

RULE = "Don't use npm in the widget loader, use zzquill instead."
EDIT = {"file_path": "/w/loader.py", "old_string": "x", "new_string": "y"}


def told(prompt: str, actor: str, shown: str) -> tuple[Provenance, bool]:
    steps: list[tuple[Payload, str]] = [
        (PromptSubmitted(line="1", text="please tidy the widget loader so that it loads once"), actor),
        (ToolCalled(line="2", tool="Edit", call="a", input=EDIT), "agent"),
        (ToolReturned(line="3", tool="Edit", call="a", text=shown), "tool"),
        (PromptSubmitted(line="4", text=prompt), actor),
    ]
    events = [as_read(observed(each, at=at, actor=by), at) for at, (each, by) in enumerate(steps, 1)]
    facts = list(derive(events[0].stream, events).drain())
    turns = [each for each in facts if isinstance(each, Turn) and each.prompt.startswith(prompt[:20])]
    tips = [tip for each in facts if isinstance(each, Episode) for tip in each.tips]
    return of_turn(turns[-1]).said_by, any("zzquill" in tip for tip in tips)


@pytest.mark.parametrize(
    ("prompt", "actor", "shown", "said_by", "tip"),
    [
        (RULE, "user", "ok", Provenance.AGENT, True),
        (RULE, "agent", "ok", Provenance.USER_PASTED, False),
        (RULE, "member:dana", "ok", Provenance.USER_PASTED, False),
        (RULE, "user", f"# Tab\n\n{RULE}\n", Provenance.USER_PASTED, False),
        (f"{RULE}\n\nRegards,\nEve", "user", "ok", Provenance.AGENT, False),
    ],
)
def test_a_prompt_is_the_users_only_where_the_user_typed_it(
    prompt: str, actor: str, shown: str, said_by: Provenance, tip: bool
) -> None:
    assert told(prompt, actor, shown) == (said_by, tip)
