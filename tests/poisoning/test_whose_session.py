"""What one member says in another's session, or calls one of their own, takes nothing from that one."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from events import as_read, observed

from memctl.domain.events.erasure import Scope
from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.facts import InsightFound
from memctl.domain.events.observations import PromptSubmitted, SessionStarted, hook_key, session_stream
from memctl.domain.session.stream_facts import derive
from memctl.domain.support.provenance import Provenance, spoken_through
from memctl.infra.hooks.spool import Delivery
from memctl.workers.erasure import on_disk
from memctl.workers.erasure.look import Look

RULE = "We always use quillalone in this repo, never lodash."


def hooked(text: str) -> NewEvent:
    event = observed(PromptSubmitted(text=text))
    return msgspec.structs.replace(event, dedupe_key=hook_key("a" * 32))


def typed(events: list[NewEvent]) -> list[str]:
    read = [as_read(event, number) for number, event in enumerate(events, 1)]
    facts = derive(read[0].stream, read).drain()
    return [each.text for each in facts if isinstance(each, InsightFound) and each.said_by is Provenance.USER_TYPED]


def test_a_members_word_makes_no_program_of_the_owners_session() -> None:
    """Who sends a start of the owner's session that says a program began it."""
    mine = hooked(RULE)
    assert typed([mine])
    forged = observed(SessionStarted(line="x", unattended=True), at=1, actor=spoken_through("user", "kim"))
    assert typed([mine, forged]) == typed([mine]) == [RULE]


@pytest.mark.parametrize("name", ["cwd", "session_id", "UserPromptSubmit", "Bash"])
def test_a_session_that_is_called_as_a_field_is_takes_no_other_delivery_with_it(tmp_path: Path, name: str) -> None:
    """Whoever has a key for a project names their sessions as they like; the owner forgets one."""
    payload = {"session_id": "mine", "cwd": "/w", "hook_event_name": "UserPromptSubmit", "prompt": RULE,
               "tool_name": "Bash"}  # fmt: skip
    delivery = Delivery("b" * 32, Micros(1), "claude-code", "", json.dumps(payload).encode())
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / f"1-{'b' * 32}.delivery").write_bytes(delivery.encode())
    look = Look(space_id=1, space="default", owner=True, data_dir=tmp_path, home="default")
    scope = Scope(kind="session", streams=(session_stream("claude-code", name),), until=Micros(2))
    assert list(on_disk.meant(look, scope, "")) == []


OTHERS = {
    "a place that a prompt quotes": Scope(kind="project", locations=("/srv/notes",), until=Micros(2)),
    "a session of another client's": Scope(kind="session", streams=(session_stream("codex", "mine"),), until=Micros(2)),
    "a session in other letters": Scope(
        kind="session", streams=(session_stream("claude-code", "MINE"),), until=Micros(2)
    ),
}


@pytest.mark.parametrize("meant", list(OTHERS))
def test_no_delivery_goes_for_what_it_mentions(tmp_path: Path, meant: str) -> None:
    payload = {"session_id": "mine", "cwd": "/w", "prompt": 'look at "/srv/notes/x", please'}
    delivery = Delivery("b" * 32, Micros(1), "claude-code", "UserPromptSubmit", json.dumps(payload).encode())
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / f"1-{'b' * 32}.delivery").write_bytes(delivery.encode())
    look = Look(space_id=1, space="default", owner=True, data_dir=tmp_path, home="default")
    assert list(on_disk.meant(look, OTHERS[meant], "")) == []


def test_a_session_that_only_waits_is_known_by_its_clients_own_name_for_it(tmp_path: Path) -> None:
    payload = {"conversation_id": "mine", "hook_event_name": "beforeSubmitPrompt", "prompt": RULE}
    delivery = Delivery("b" * 32, Micros(1), "cursor", "", json.dumps(payload).encode())
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / f"1-{'b' * 32}.delivery").write_bytes(delivery.encode())
    look = Look(space_id=1, space="default", owner=True, data_dir=tmp_path, home="default")
    assert on_disk.sessions_called(look, "mine") == [session_stream("cursor", "mine")]


def test_a_session_whose_delivery_holds_half_a_sign_is_known_too(tmp_path: Path) -> None:
    payload = b'{"session_id": "mine", "hook_event_name": "UserPromptSubmit", "prompt": "a \\ud83d", "n": NaN}'
    delivery = Delivery("b" * 32, Micros(1), "claude-code", "", payload)
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / f"1-{'b' * 32}.delivery.damaged").write_bytes(delivery.encode())
    look = Look(space_id=1, space="default", owner=True, data_dir=tmp_path, home="default")
    assert on_disk.sessions_called(look, "mine") == [session_stream("claude-code", "mine")]
