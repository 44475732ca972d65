"""What is sure of projects is a memory; the rest is not."""

from __future__ import annotations

from itertools import permutations
from typing import Any
from uuid import UUID

import msgspec
import pytest
from unit.test_projection_laws import MiniKernel

from memctl.domain.events.event import Event, Micros, Payload, Position, derived_id, type_of
from memctl.domain.events.facts import FileTouched, quote
from memctl.domain.knowledge.reflections import ReflectionMade
from memctl.domain.support.provenance import Provenance
from memctl.projections.kernel import Changed, Recorded, projections
from memctl.projections.memories import KINDS, memories
from memctl.projections.memory_rows import Memory
from memctl.projections.project_digests import ProjectDigest, project_digests
from memctl.projections.project_shares import ProjectShare, project_shares
from memctl.projections.verified_knowledge import VerifiedClaim, VerifiedKnowledge

SHOP = "/home/dana/shop"
NOON = 1_769_083_200_000_000


def place(number: int, session: str) -> dict[str, Any]:
    return {
        "id": derived_id(f"{number} {session}"),
        "stream": f"session/claude-code/{session}",
        "occurred_at": Micros(NOON + number),
        "location": SHOP,
        "evidence": (quote(UUID(int=number), f"the words of {number}"),),
    }


def recorded(payload: Payload, at: int = 1) -> Recorded[Any]:
    event = Event(
        position=Position(at),
        event_id=derived_id(f"{at} {payload}"),
        space_id=1,
        stream="knowledge/x",
        type=type_of(payload).name,
        occurred_at=Micros(NOON + at),
        recorded_at=Micros(NOON + at),
        actor="user",
        location=SHOP,
        session_id="",
        dedupe_key=str(at),
        payload=payload,
    )
    return Recorded(event, payload)


def test_what_a_memory_can_be_made_of_is_subscribed_to() -> None:
    (found,) = (p for p in projections(2) if p.name == "memories")
    assert found.upstream == set(KINDS)


def test_a_reflection_is_a_memory_of_its_files() -> None:
    kernel = MiniKernel()
    made = ReflectionMade(
        topic=f"pair:{SHOP}/cart.py\n{SHOP}/ledger.py", title="cart.py and ledger.py change together",
        text="Both were changed in 3 episodes of 3 sessions.", memories=("m1", "m2"),
    )  # fmt: skip
    kernel.batch([recorded(made)])
    (memory,) = kernel.tables["memories"].values()
    assert (memory.kind, memory.title, memory.source.projection) == ("reflection", made.title, "reflections")
    assert memory.files == (f"{SHOP}/cart.py", f"{SHOP}/ledger.py")
    (point,) = kernel.tables["vector_points"].values()
    assert point.memory_id == memory.id


def known(id: str, text: str, sessions: int = 2) -> VerifiedKnowledge:
    claim = VerifiedClaim(
        id=f"i-{id}", kind="pattern", text=text, canonical=text, polarity=1, proved=True, said_by="tool",
        confidence=0.7, warrant="proved", sessions=sessions, valid_from=NOON, last_seen=NOON,
        evidence=(quote(UUID(int=77), "make"),),
    )  # fmt: skip
    return VerifiedKnowledge(
        id=id, subject=text, location=SHOP, everywhere=False, status="verified", kind="pattern", text=text,
        said_by="tool", confirmed=False,
        confidence=0.7, first_seen=NOON, last_seen=NOON, claims=(claim,),
    )  # fmt: skip


def touched(number: int, session: str, path: str = f"{SHOP}/src/cart.py") -> FileTouched:
    return FileTouched(**place(number, session), path=path)


def shares(*facts: Any) -> list[Changed[ProjectShare]]:
    rows: dict[str, ProjectShare] = {}
    keys = next(p for p in projections(2) if p.name == "project_shares").keys
    for fact in facts:
        for key in keys(fact):
            rows[key] = project_shares(rows.get(key), fact)
    return [Changed(key, row) for key, row in rows.items()]


def test_a_project_is_told_by_what_holds_there_and_by_what_several_sessions_change() -> None:
    facts = [touched(1, "a"), touched(2, "b"), touched(3, "b", f"{SHOP}/once.py")]
    changes: list[Any] = [*shares(*facts), Changed("k1", known("k1", "The tests run with `make test`"))]
    rows = set()
    for order in permutations(changes):
        row: ProjectDigest | None = None
        for change in order:
            row = project_digests(row, change)
        rows.add(msgspec.json.encode(row))
    (row_of_all,) = rows
    memory = memories(None, Changed(SHOP, msgspec.json.decode(row_of_all, type=ProjectDigest)))
    assert memory is not None
    assert memory.text.splitlines() == [
        "Project shop is written in Python",
        "The tests run with `make test`",
        "Often changed: src/cart.py (2 sessions)",
    ]
    assert UUID(int=77) in {span.event for span in memory.evidence}


@pytest.mark.parametrize("by", [Provenance.MEMBER, Provenance.AGENT, Provenance.IMPORT, Provenance.FILE])
def test_no_project_is_told_by_words_whose_speaker_would_not_be_named(by: Provenance) -> None:
    own = Changed("k1", known("k1", "The tests run with `make test`"))
    others = Changed("k2", msgspec.structs.replace(known("k2", "We keep all checks off"), said_by=by))
    turned = Changed("k1", msgspec.structs.replace(known("k1", "The tests run with `make test`"), said_by=by))
    row = project_digests(project_digests(None, own), others)
    assert row is not None
    assert [claim.text for claim in row.claims] == ["The tests run with `make test`"]
    row = project_digests(row, turned)
    assert row is not None
    assert row.claims == ()


@pytest.mark.parametrize("facts", [(touched(1, "a"),), (touched(1, "a"), touched(2, "a", f"{SHOP}/other.py"))])
def test_one_session_makes_no_memory_of_a_project(facts: Any) -> None:
    row = None
    for change in shares(*facts):
        row = project_digests(row, change)
    assert row is not None
    assert memories(None, Changed(SHOP, row)) is None


def test_a_row_of_a_kind_that_is_made_no_more_is_read_until_it_is_rebuilt() -> None:
    row = memories(None, Changed("k1", known("k1", "The tests run with `make test`")))
    assert row is not None
    former = msgspec.json.encode(row).replace(b'"kind":"knowledge"', b'"kind":"code_rule"')
    assert msgspec.json.decode(former, type=Memory).kind == "code_rule"
