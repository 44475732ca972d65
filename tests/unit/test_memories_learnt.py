"""What is sure of code, entities, feelings and projects is a memory; the rest is not."""

from __future__ import annotations

from itertools import permutations
from typing import Any
from uuid import UUID

import msgspec
import pytest
from unit.test_projection_laws import MiniKernel

from memctl.domain.code.entities import EntityDescribed, RelationAsserted, SentimentNoted
from memctl.domain.code.rules import PatternRetired
from memctl.domain.events.event import Event, Micros, Payload, Position, derived_id, type_of
from memctl.domain.events.facts import (
    CodeReplaced,
    EntityMentioned,
    Fact,
    FilesCommitted,
    FileTouched,
    MoodShown,
    quote,
)
from memctl.domain.knowledge.reflections import ReflectionMade
from memctl.projections.code_rules import code_rules
from memctl.projections.entities import entities
from memctl.projections.kernel import Changed, Recorded, projections
from memctl.projections.memories import KINDS, memories
from memctl.projections.memory_rows import Memory
from memctl.projections.project_digests import ProjectDigest, project_digests
from memctl.projections.project_shares import ProjectShare, project_shares
from memctl.projections.relations import relations
from memctl.projections.sentiment import sentiment
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


def remembered(fold: Any, *items: Fact | Recorded[Any]) -> Memory | None:
    row = None
    for item in items:
        row = fold(row, item)
    assert row is not None
    return memories(None, Changed("key", row))


def replaced(number: int, session: str, path: str, **more: Any) -> CodeReplaced:
    return CodeReplaced(
        **place(number, session), path=path, language="go", before="interface{}", after="any",
        line_before="var v interface{}", line_after="var v any", **more,
    )  # fmt: skip


def test_a_rule_of_code_is_a_memory_once_it_recurs_and_no_longer_when_it_is_retired() -> None:
    one, two = replaced(1, "a", "a.go"), replaced(2, "b", "b.go")
    assert remembered(code_rules, one) is None
    memory = remembered(code_rules, one, two)
    assert memory is not None
    assert memory.title == "In go, write `any` instead of `interface{}`"
    assert (memory.kind, memory.status, memory.location, memory.files) == (
        "code_rule",
        "record",
        SHOP,
        ("b.go", "a.go"),
    )
    assert [span.event for span in memory.evidence] == [UUID(int=2), UUID(int=1)]
    assert all(span.quote_hash for span in memory.evidence)
    rule = remembered(code_rules, one, two, recorded(PatternRetired(pattern="key"), 3))
    assert rule is None


def test_what_a_user_asked_for_weighs_more() -> None:
    plain = remembered(code_rules, replaced(1, "a", "a.go"), replaced(2, "b", "b.go"))
    asked = remembered(code_rules, replaced(1, "a", "a.go"), replaced(2, "b", "b.go", asked=True))
    assert plain is not None
    assert asked is not None
    assert asked.importance > plain.importance
    assert "asked for by the user" in asked.text


def named(number: int, session: str, **more: Any) -> EntityMentioned:
    fields: dict[str, Any] = {"kind": "library", "platform": "npm", "name": "react", "how": "import"}
    return EntityMentioned(**place(number, session), **(fields | more))


def test_a_library_is_a_memory_when_sessions_agree_on_it_or_somebody_says_what_it_is() -> None:
    assert remembered(entities, named(1, "a"), named(2, "b")) is None
    thrice = remembered(entities, named(1, "a"), named(2, "b"), named(3, "c"))
    assert thrice is not None
    assert thrice.title == "react is a library (npm)"
    versions = remembered(entities, named(1, "a", version="18.1.0"), named(2, "b", version="18.2.0"))
    assert versions is not None
    assert versions.title == "react is a library (npm), version 18.2.0"
    said = EntityDescribed(kind="library", platform="npm", name="react", summary="Draws the shop's pages.", by="user")
    described = remembered(entities, recorded(said))
    assert described is not None
    assert "Draws the shop's pages." in described.text
    assert described.importance > versions.importance


def test_what_everybody_uses_is_no_memory() -> None:
    calls = [named(n, str(n), kind="service", platform="", name="github.com", how="command") for n in range(9)]
    assert remembered(entities, *calls) is None


def test_an_edge_is_a_memory_where_it_was_said_and_until_it_is_taken_back() -> None:
    said = RelationAsserted(source="library:npm/react", relation="uses", target="file:/shop/app.ts", why="for pages")
    memory = remembered(relations, recorded(said))
    assert memory is not None
    assert memory.text == "react uses file:/shop/app.ts: for pages"
    gone = msgspec.structs.replace(said, weight=0.0)
    assert remembered(relations, recorded(said), recorded(gone, 2)) is None
    assert remembered(relations, FilesCommitted(**place(1, "a"), paths=("a.go", "b.go"))) is None


def test_feelings_are_a_memory_when_there_are_enough_or_when_somebody_says_so() -> None:
    def shown(number: int) -> MoodShown:
        return MoodShown(**place(number, str(number)), score=-0.3, words="still not working")

    assert remembered(sentiment, shown(1), shown(2)) is None
    memory = remembered(sentiment, shown(1), shown(2), shown(3))
    assert memory is not None
    assert "still not working" in memory.text
    noted = remembered(sentiment, recorded(SentimentNoted(node="agent:claude-code", score=0.9, context="likes it")))
    assert noted is not None


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
    facts = [touched(1, "a"), touched(2, "b"), touched(3, "b", f"{SHOP}/once.py"), named(4, "a"), named(5, "b")]
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
        "Uses react",
    ]
    assert UUID(int=77) in {span.event for span in memory.evidence}


@pytest.mark.parametrize("facts", [(touched(1, "a"),), (touched(1, "a"), touched(2, "a", f"{SHOP}/other.py"))])
def test_one_session_makes_no_memory_of_a_project(facts: Any) -> None:
    row = None
    for change in shares(*facts):
        row = project_digests(row, change)
    assert row is not None
    assert memories(None, Changed(SHOP, row)) is None
