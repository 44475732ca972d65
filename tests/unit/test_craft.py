"""What a session shows of its code and surroundings, as facts, and what stage 2 makes of them."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from telling import Session, facts_of, only

from memctl.domain.code.entities import (
    BadNode,
    EntityDescribed,
    RelateEntities,
    RelationAsserted,
    file_of,
    node_of,
    parts_of,
)
from memctl.domain.code.rules import (
    ChangeUndone,
    PatternRetired,
    RetirePattern,
    RuleReinforced,
    UndoChange,
    confidence,
    rule_id,
    state_of,
)
from memctl.domain.events.command import BadCommand
from memctl.domain.events.event import Event, Micros, Payload, Position, type_of
from memctl.domain.events.event_order import EventOrder
from memctl.domain.events.facts import CodeReplaced, CodeTransformed, EntityMentioned, Fact, FilesCommitted, MoodShown
from memctl.domain.session.tool_uses import Use
from memctl.projections.code_rules import CodeRule, code_rules
from memctl.projections.entities import entities
from memctl.projections.kernel import Recorded
from memctl.projections.relations import relations

NOON = 1_772_452_800_000_000


def replaced(session: Session) -> list[CodeReplaced]:
    return only(facts_of(session.events), CodeReplaced)


def variants(session: Session) -> list[str]:
    return [fact.variant for fact in only(facts_of(session.events), CodeTransformed)]


@pytest.fixture
def session() -> Session:
    told = Session()
    told.user("please modernise the code of the shop")
    return told


def test_a_replacement_is_told_once_for_a_file_with_its_places(session: Session) -> None:
    session.edits(
        "/work/shop/a.go", "a := map[string]interface{}{\nb := []interface{}{", "a := map[string]any{\nb := []any{"
    )
    session.edits("/work/shop/a.go", "c := map[string]interface{}{", "c := map[string]any{")
    session.edits("/work/shop/b.go", "d := map[string]interface{}{", "d := map[string]any{")
    assert [(f.path, f.before, f.after, f.places) for f in replaced(session)] == [
        ("/work/shop/a.go", "interface{}", "any", 2),
        ("/work/shop/b.go", "interface{}", "any", 1),
    ]
    assert variants(session) == ["newer idiom", "newer idiom"]


def test_a_path_to_words_is_short_whatever_a_tool_was_passed(session: Session) -> None:
    """Rows keep dozens of such paths, and the names in them are a model's."""
    words = "v := map[string]any{"

    def use(given: dict[str, Any]) -> Use:
        session.uses("Edit", given, "done")
        *_, called, came = EventOrder().place(session.events) or ()
        return Use(came, called)

    long = "n" * 16_000
    assert use({long: words, "edits": [{long: words}]}).quote(words).field == "text"
    assert use({"edits": [{"new_string": words}]}).quote(words).field == "input.edits.0.new_string"


def test_an_edit_after_the_users_correction_is_asked_for(session: Session) -> None:
    session.edits("/work/shop/a.go", "func RedactBytes(b []byte) []byte {", "func Bytes(b []byte) []byte {")
    session.user("no, that is wrong, use the named constant")
    session.edits("/work/shop/a.go", 'if a.Name == "codex" {', "if a.Name == agentCodex {")
    assert [fact.asked for fact in replaced(session)] == [False, True]


def test_one_variable_for_another_is_no_rule(session: Session) -> None:
    session.edits("/work/shop/a.go", "total += line", "total += entry")
    assert replaced(session) == []


def test_prose_and_data_teach_no_rules_of_code(session: Session) -> None:
    session.edits("/work/shop/README.md", "Use the RedactBytes call", "Use the Bytes call")
    session.edits("/work/shop/package.json", '"name": "oldname"', '"name": "newname"')
    assert replaced(session) == []


def test_code_that_a_new_function_holds_was_extracted(session: Session) -> None:
    body = "    total = sum(item.price for item in items)\n    total += shipping(total, country)\n    tax(total)"
    called = "    total = price_of(items, country)"
    session.edits(
        "/work/shop/prices.py",
        "import math",
        f"import math\n\n\ndef price_of(items, country):\n{body}\n    return total",
    )
    session.edits("/work/shop/cart.py", body, called)
    (made,) = only(facts_of(session.events), CodeTransformed)
    assert (made.variant, made.path, made.after) == ("code to function", "/work/shop/cart.py", called.strip())


def test_a_function_that_is_only_written_anew_was_not_extracted(session: Session) -> None:
    body = "    total = sum(item.price for item in items)\n    return round(total, 2) + 1"
    old, new = f"def price_of(\n    items,\n    country,\n):\n{body}", f"def price_of(items, country):\n{body}"
    session.edits("/work/shop/prices.py", old, new)
    assert "code to function" not in variants(session)


def test_a_definition_that_left_one_file_for_another_was_moved(session: Session) -> None:
    session.edits("/work/shop/cart.go", "func priceOf(items []Item) int {\n\treturn 1\n}", "// prices are in prices.go")
    session.edits(
        "/work/shop/prices.go", "package shop", "package shop\n\nfunc priceOf(items []Item) int {\n\treturn 1\n}"
    )
    (made,) = only(facts_of(session.events), CodeTransformed)
    assert (made.variant, made.before, made.after) == (
        "moved to another file",
        "priceOf in /work/shop/cart.go",
        "/work/shop/prices.go",
    )


def test_a_patch_that_the_agent_wrote_is_read_file_by_file(session: Session) -> None:
    patch = (
        "*** Begin Patch\n*** Update File: a.go\n@@\n-x := []interface{}{}\n+x := []any{}\n"
        "*** Update File: b.go\n@@\n-y := []interface{}{}\n+y := []any{}\n*** End Patch"
    )
    session.uses("apply_patch", {"input": patch}, "Success. Updated the following files:\nM a.go\nM b.go")
    assert [fact.path for fact in replaced(session)] == ["/work/shop/a.go", "/work/shop/b.go"]


def test_files_changed_and_committed_together_are_told_at_the_commit(session: Session) -> None:
    for path in ("/work/shop/a.py", "/work/shop/b.py", "/work/shop/b.py"):
        session.edits(path, "old = 1", "new = compute()")
    session.runs("git commit -m 'prices'", "[main 1a2b3c4] prices\n 2 files changed")
    session.edits("/work/shop/c.py", "old = 1", "new = compute()")
    session.runs("git commit -m 'more'", "[main 1a2b3c5] more\n 1 file changed")
    (together,) = only(facts_of(session.events), FilesCommitted)
    assert together.paths == ("/work/shop/b.py", "/work/shop/a.py")


def test_an_entity_is_told_once_in_a_session_and_again_with_a_version(session: Session) -> None:
    code = 'package shop\n\nimport (\n\t"fmt"\n\t"github.com/spf13/cobra"\n)\n'
    session.uses("Read", {"file_path": "/work/shop/a.go"}, code)
    session.uses("Read", {"file_path": "/work/shop/b.go"}, code)
    session.uses(
        "Read", {"file_path": "/work/shop/go.mod"}, "module shop\n\nrequire (\n\tgithub.com/spf13/cobra v1.8.0\n)\n"
    )
    session.runs("gh pr list")
    found = only(facts_of(session.events), EntityMentioned)
    assert [(f.kind, f.name, f.how, f.version) for f in found] == [
        ("library", "github.com/spf13/cobra", "import", ""),
        ("library", "github.com/spf13/cobra", "manifest", "v1.8.0"),
        ("service", "github.com", "command", ""),
    ]


def test_what_failed_names_nothing(session: Session) -> None:
    session.runs("npm install left-pad", "npm error 404 Not Found", exit_code=1)
    assert only(facts_of(session.events), EntityMentioned) == []


def test_a_mood_is_told_with_the_words_that_show_it(session: Session) -> None:
    session.user("This is still not working.\nLook at the log again.")
    (mood,) = only(facts_of(session.events), MoodShown)
    assert (mood.score, mood.words) == (-0.3, "This is still not working.")
    assert mood.evidence[0].quote_hash


# --- stage 2 ---


def _id(*about: object) -> UUID:
    return UUID(int=random.Random(str(about)).getrandbits(128))


def recorded(payload: Payload, at: int = 0) -> Recorded[Payload]:
    event = Event(
        position=Position(1), event_id=_id(payload, at), space_id=1, stream="knowledge/x",
        type=type_of(payload).name, occurred_at=Micros(NOON + at), recorded_at=Micros(NOON + at), actor="user",
        location="/work/shop", session_id="", dedupe_key=str(at), payload=payload,
    )  # fmt: skip
    return Recorded(event, payload)


def seen_in(file: str, before: str = "interface{}", after: str = "any", at: int = 0, **fields: object) -> CodeReplaced:
    told = {"variables": (), "line_before": before, "line_after": after, "language": "go", **fields}
    return CodeReplaced(
        id=_id(file, at, before), stream="session/claude-code/1", location="/work/shop",
        occurred_at=Micros(NOON + at), path=file, before=before, after=after, **told,  # type: ignore[arg-type]
    )  # fmt: skip


def folded(*items: Fact | Recorded[Payload]) -> CodeRule:
    row: CodeRule | None = None
    for item in items:
        row = code_rules(row, item)  # type: ignore[arg-type]
    assert row is not None
    return row


def test_a_rule_is_shown_from_the_second_file_on_and_trusted_from_the_fifth() -> None:
    files = [seen_in(f"{n}.go", at=n) for n in range(5)]
    assert [folded(*files[:n]).state for n in range(1, 6)] == ["seen", "active", "active", "active", "trusted"]
    assert folded(*files).confidence == 0.8362
    assert folded(*files).texts_ahead == ("interface{}", "any")


def test_taking_changes_back_speaks_against_a_rule_until_it_turns_round() -> None:
    ahead = [seen_in(f"{n}.go", at=n) for n in range(3)]
    back = [seen_in(f"{n}.go", "any", "interface{}", at=10 + n) for n in range(4)]
    assert folded(*ahead, back[0]).confidence < folded(*ahead).confidence
    assert folded(*ahead, *back).texts_ahead == ("any", "interface{}")
    assert rule_id("go", "any", "interface{}") == rule_id("go", "interface{}", "any")


def test_a_users_wish_decides_the_direction() -> None:
    ahead = [seen_in(f"{n}.go", at=n) for n in range(3)]
    assert folded(*ahead, seen_in("x.go", "any", "interface{}", at=9, asked=True)).texts_ahead == ("any", "interface{}")


def test_a_rule_seen_with_different_names_is_a_pattern_of_names() -> None:
    found = folded(
        seen_in("a.go", '"refs/"+$1', "ref($1)", variables=("name",)),
        seen_in("b.go", '"refs/"+$1', "ref($1)", at=1, variables=("branch",)),
    )
    assert found.kind == "regex"
    assert found.texts_ahead == ('"refs/"+$1', "ref($1)")
    import re

    assert re.search(found.regex, 'x := "refs/"+other')


def test_statements_move_a_rule_and_retirement_is_the_last_word_about_it() -> None:
    rule = [seen_in(f"{n}.go", at=n) for n in range(2)]
    key = rule_id("go", "interface{}", "any")
    bad = [recorded(RuleReinforced(rule=key, success=False), at=20 + n) for n in range(4)]
    assert folded(*rule, *bad).state == "weak"
    undone = recorded(ChangeUndone(change=UUID(int=1), rules=(key,)), at=30)
    assert folded(*rule, undone).confidence < folded(*rule).confidence
    gone, back = recorded(PatternRetired(pattern=key), at=40), recorded(PatternRetired(pattern=key, back=True), at=50)
    assert folded(*rule, gone).state == "retired"
    assert folded(*rule, back, gone).state == "active"


@given(st.lists(st.booleans(), max_size=40))
def test_confidence_stays_between_0_and_1_and_success_never_lowers_it(outcomes: list[bool]) -> None:
    sure = confidence(outcomes)
    assert 0 <= sure <= 1
    assert confidence([*outcomes, True]) >= sure >= confidence([*outcomes, False])
    assert state_of(sure, 1, retired=False) == "seen"


def test_commands_that_make_no_sense_are_refused() -> None:
    with pytest.raises(BadCommand):
        RetirePattern(pattern="a", into="a").decide([])
    with pytest.raises(BadCommand):
        UndoChange(change=UUID(int=1)).decide([])
    with pytest.raises(BadNode):
        RelateEntities(source="react", relation="uses", target="library:npm/react").decide([])
    with pytest.raises(BadCommand):
        RelateEntities(source="person:Dana", relation="works_on", target="person:Dana").decide([])


def test_what_was_said_last_of_an_entity_counts_and_empty_fields_leave_what_was_said_before() -> None:
    first = EntityDescribed(kind="library", platform="npm", name="react", summary="renders pages", trust=0.9)
    later = EntityDescribed(kind="library", platform="npm", name="react", display_name="React")
    row = entities(entities(None, recorded(later, 2)), recorded(first, 1))  # type: ignore[arg-type]
    assert row is not None
    assert (row.display_name, row.summary, row.trust) == ("React", "renders pages", 0.9)


def test_how_an_entity_is_spelled_hangs_on_no_order() -> None:
    told = [EntityDescribed(kind="person", platform="", name=name) for name in ("dana kim", "Dana Kim")]
    for order in (told, told[::-1]):
        row = None
        for at, each in enumerate(order):
            row = entities(row, recorded(each, at))  # type: ignore[arg-type]
        assert row is not None
        assert row.name == "Dana Kim"


def test_a_relation_that_was_taken_back_stays_so_whatever_came_first() -> None:
    told = RelationAsserted(source="project:shop", relation="uses", target="library:npm/react")
    gone = RelationAsserted(source="project:shop", relation="uses", target="library:npm/react", weight=0)
    for order in ((recorded(told, 1), recorded(gone, 2)), (recorded(gone, 2), recorded(told, 1))):
        row = None
        for item in order:
            row = relations(row, item)  # type: ignore[arg-type]
        assert row is not None
        assert row.weight == 0


@pytest.mark.parametrize(
    "node", ["library:go/github.com/spf13/cobra", "service:github.com", "person:Dana Kim", "file:/a/b.go"]
)
def test_a_node_reads_as_it_is_written(node: str) -> None:
    assert node_of(*parts_of(node)) == node


@pytest.mark.parametrize("node", ["react", "nothing:here", "library:", ""])
def test_what_is_no_node_is_refused(node: str) -> None:
    with pytest.raises(BadNode):
        parts_of(node)


def test_a_file_has_one_name_in_all_worktrees_and_directories() -> None:
    assert file_of("/r/.worktrees/fix/a.go", "/r/.worktrees/fix") == file_of("a.go", "/r") == "/r/a.go"
