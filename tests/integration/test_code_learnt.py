"""What is learnt of code, asked over the read models, and the statements that change it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from doors import Door, door_to
from events import observed

from memctl.api.queries import code, graph
from memctl.api.reading.learnt import RuleItem
from memctl.api.reading.places import Places
from memctl.domain.events.observations import Hunk, PromptSubmitted, ToolCalled, ToolReturned
from memctl.infra.log.append import append
from memctl.infra.readmodels import generations
from memctl.infra.redaction import prepare

EVERYWHERE = Places(None, "asked", None)


@pytest.fixture(scope="module")
def learnt(postgres_server: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    data = tmp_path_factory.mktemp("data")
    with door_to(postgres_server, migrated_template, data, location="/home/dana/ledger") as door:
        generations.ensure_live(door.connection, 2)
        append(door.connection, 1, [event for session in ("s1", "s2") for event in _session(session)])
        yield door


def rule_in(learnt: Door) -> RuleItem:
    reader = learnt.known()
    shown = [*code.rules(reader, EVERYWHERE).items, *code.rules(reader, EVERYWHERE, state="retired").items]
    (found,) = (item for item in shown if item.before == "interface{}")
    return found


def _session(session: str) -> list[Any]:
    hunk = Hunk(1, 1, ("-	all := []interface{}{}", "+	all := []any{}"))
    path = f"/home/dana/ledger/{session}.go"
    told = [
        PromptSubmitted(line="1", text="please modernise the code, thank you so much"),
        ToolCalled(line="2", tool="Read", call="a", input={"file_path": path}),
        ToolReturned(line="3", call="a", text='package a\n\nimport (\n\t"github.com/spf13/cobra"\n)\n', file=path),
        ToolCalled(line="4", tool="Edit", call="b", input={"file_path": path}),
        ToolReturned(line="5", call="b", text="updated", file=path, patch=(hunk,)),
        ToolCalled(line="6", tool="Edit", call="c", input={"file_path": "/home/dana/ledger/both.go"}),
        ToolReturned(line="7", call="c", text="updated", file="/home/dana/ledger/both.go", patch=(hunk,)),
        ToolCalled(line="8", tool="Bash", call="d", input={"command": "git commit -qam any"}),
        ToolReturned(line="9", call="d", text="[main 1a2b3c4] any\n 2 files changed", exit_code=0),
    ]
    return [prepare(observed(payload, session=session, at=at)) for at, payload in enumerate(told)]


def test_a_rule_that_two_sessions_followed_is_shown_with_where_it_was_seen(learnt: Door) -> None:
    rule = rule_in(learnt)
    assert (rule.after, rule.state, rule.languages) == ("any", "active", ["go"])
    assert len(rule.sessions) == 2
    assert rule.examples[0].event_id
    assert code.rules(learnt.known(), EVERYWHERE, language="python").items == []
    (pattern,) = code.patterns(learnt.known(), EVERYWHERE, category="simplify").items
    assert (pattern.name, pattern.stats.application_count) == ("newer idiom", 4)


def test_the_graph_ties_libraries_files_and_projects(learnt: Door) -> None:
    reader = learnt.known()
    found = graph.graph(reader, EVERYWHERE, "cobra", hops=2)
    assert found.start == "library:go/github.com/spf13/cobra"
    ties = {(edge.source, edge.relation, edge.target) for edge in found.edges}
    assert (found.start, "used_by", "project:ledger") in ties
    assert ("file:/home/dana/ledger/s1.go", "changed_with", "file:/home/dana/ledger/both.go") in ties
    with pytest.raises(graph.UnknownEntity):
        graph.graph(reader, EVERYWHERE, "no such thing")


def test_what_users_feel_about_an_agent_is_a_path_on_their_words(learnt: Door) -> None:
    (felt,) = graph.entity(learnt.known(), EVERYWHERE, "claude-code").sentiment
    assert (felt.label, len(felt.path)) == ("positive", 2)
    assert felt.path[0].evidence[0].holds


def test_statements_change_what_is_known_and_can_be_taken_back(learnt: Door) -> None:
    before = rule_in(learnt)
    learnt.say("reinforce_rule", rule=before.id[:8], success=False, why="it broke generics")
    after = rule_in(learnt)
    assert after.confidence < before.confidence
    assert after.verdicts[0].why == "it broke generics"
    learnt.say("retire_pattern", pattern=before.id, reason="done everywhere")
    assert rule_in(learnt).state == "retired"
    learnt.say("retire_pattern", pattern=before.id, back=True)
    assert rule_in(learnt).state == "active"


def test_what_is_said_of_an_entity_stands_beside_what_was_seen(learnt: Door) -> None:
    node = "library:go/github.com/spf13/cobra"
    learnt.say("describe_entity", node=node, display_name="Cobra", summary="parses command lines", trust=0.9)
    learnt.say("relate", source="project:ledger", relation="depends_on", target=node)
    item = graph.entity(learnt.known(), EVERYWHERE, "cobra")
    assert (item.display_name, item.trust, item.interactions) == ("Cobra", 0.9, 2)
    assert "needed_by" in {edge.relation for edge in item.edges}
    learnt.say("relate", source="project:ledger", relation="depends_on", target=node, weight=0)
    assert "needed_by" not in {e.relation for e in graph.entity(learnt.known(), EVERYWHERE, "cobra").edges}
