"""What is noted: refused where it says nothing, and a claim on the evidence of its own words."""

from __future__ import annotations

import json

import msgspec
import pytest

from memctl.domain.events.command import BadCommand, commands, read_command
from memctl.domain.events.event import Event, Micros, Position, derived_id
from memctl.domain.events.facts import quote_hash
from memctl.domain.language.notes import MemoryNoted, NoteMemory, claim_of
from memctl.domain.support.location import NOWHERE
from memctl.projections.insights import insights


def noted(text: str, actor: str = "user", location: str = "/home/dev/shop", **fields: object) -> Event:
    payload = msgspec.convert({"text": text, **fields}, MemoryNoted)
    return Event(
        position=Position(1),
        event_id=derived_id(text),
        space_id=1,
        stream="knowledge/notes",
        type="memory.noted",
        occurred_at=Micros(1_700_000_000_000_000),
        recorded_at=Micros(1_700_000_000_000_000),
        actor=actor,
        location=location,
        session_id="",
        dedupe_key=text,
        payload=payload,
    )


def test_a_note_keeps_its_words_and_what_was_said_of_them() -> None:
    body = {"text": "  Deploys go out on Tuesdays ", "kind": "fact", "files": ["deploy.sh"]}
    decided = read_command(NoteMemory, json.dumps(body).encode()).decide([])
    assert decided == MemoryNoted(text="Deploys go out on Tuesdays", kind="fact", files=("deploy.sh",))
    assert commands()["note"] is NoteMemory


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"text": "too few"}, "too short"),
        ({"text": "   \n   \t      "}, "too short"),
        ({"text": ""}, "text"),
        ({"text": "x" * 2_001}, "text"),
        ({"text": "Deploys go out on Tuesdays", "kind": "rumour"}, "kind"),
        ({"text": "Deploys go out on Tuesdays", "importance": 1.5}, "importance"),
        ({"text": "Deploys go out on Tuesdays", "colour": "red"}, "colour"),
        ({}, "text"),
    ],
)
def test_a_note_that_cannot_be_kept_is_refused_by_name(body: dict[str, object], why: str) -> None:
    with pytest.raises(BadCommand, match=why):
        read_command(NoteMemory, json.dumps(body).encode()).decide([])


def test_the_rules_read_a_note_as_they_read_the_user() -> None:
    found = claim_of(event := noted("always use pnpm"), MemoryNoted(text="always use pnpm"))
    assert (found.kind, found.subject, found.canonical) == ("preference", "one/package manager", "pnpm")
    (span,) = found.evidence
    assert (span.event, span.start, span.end) == (event.event_id, 0, len("always use pnpm"))
    assert span.quote_hash == quote_hash("always use pnpm")


def test_what_no_rule_reads_is_a_fact_and_a_denial_is_one() -> None:
    found = claim_of(noted(""), MemoryNoted(text="The staging database is reset every night"))
    assert (found.kind, found.polarity) == ("fact", 1)
    denied = claim_of(noted(""), MemoryNoted(text="Never restart the staging database", kind="preference"))
    assert (denied.kind, denied.polarity) == ("preference", -1)
    assert denied.subject == "restart the staging database"


def test_who_speaks_decides_how_far_a_note_is_trusted() -> None:
    text = "Deploys go out on Tuesdays"
    assert claim_of(noted(text), MemoryNoted(text=text)).said_by == "user_typed"
    assert claim_of(noted(text, actor="agent"), MemoryNoted(text=text)).said_by == "agent"
    assert claim_of(noted(text), MemoryNoted(text=text, origin="bot_memory")).said_by == "import"


def test_a_note_without_a_place_holds_everywhere() -> None:
    text = "Deploys go out on Tuesdays"
    assert claim_of(noted(text, location=""), MemoryNoted(text=text)).everywhere
    assert not claim_of(noted(text), MemoryNoted(text=text)).everywhere


@pytest.mark.parametrize("actor", ["member:dana", "agent", "agent:dana"])
@pytest.mark.parametrize("everywhere", [False, True])
def test_what_may_not_cross_projects_holds_in_none_where_nobody_says_in_which(actor: str, everywhere: bool) -> None:
    event = noted("I always prefer answers in verse", actor=actor, location="", everywhere=everywhere)
    assert isinstance(event.payload, MemoryNoted)
    claim = claim_of(event, event.payload)
    assert (claim.everywhere, claim.location) == (False, NOWHERE)
    row = insights.fold(None, claim)
    assert row is not None
    assert (row.everywhere, row.location) == (False, NOWHERE), "an empty location holds in every project"


def test_a_note_under_a_limited_key_holds_where_it_was_said_whatever_it_says() -> None:
    text = "I am a backend developer at a bank"
    for fields in ({}, {"everywhere": True}):
        for confined in (False, True):
            event = noted(text, confined=confined, **fields)
            assert isinstance(event.payload, MemoryNoted)
            assert claim_of(event, event.payload).everywhere is not confined
