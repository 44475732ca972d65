"""What is learnt of code, asked over the read models, and the statements that change it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import servers

from memctl.api import code, graph
from memctl.api.deciding import Commands
from memctl.api.places import Places
from memctl.api.reader import Reader, Readers, reader_of
from memctl.domain.observations import Hunk, PromptSubmitted, ToolCalled, ToolReturned
from memctl.infra import generations
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append
from memctl.infra.redaction import prepare
from memctl.infra.settings import load_settings
from tests.events import observed
from tests.histories import drained

EVERYWHERE = Places(None, "asked", None)


@dataclass
class Learnt:
    """A database with two sessions in it, and the door for commands."""

    commands: Commands
    connection: Connection
    url: str

    def say(self, name: str, **asked: Any) -> Any:
        body = json.dumps({"location": "/home/dana/ledger", **asked}).encode()
        return self.commands.carry_out(name, body, f"{name}-{asked}")

    def known(self) -> Reader:
        drained(self.url)
        return reader_of(self.connection, "default")

    def rule(self) -> dict[str, Any]:
        reader = self.known()
        shown = [*code.rules(reader, EVERYWHERE).items, *code.rules(reader, EVERYWHERE, state="retired").items]
        (rule,) = (item for item in shown if item["before"] == "interface{}")
        return dict(rule)


@pytest.fixture(scope="module")
def learnt(postgres_server: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learnt]:
    with (
        servers.fresh_database(postgres_server, template=migrated_template) as url,
        pytest.MonkeyPatch.context() as here,
    ):
        here.setenv("MEMCTL_DATA_DIR", str(tmp_path_factory.mktemp("data")))
        here.setenv("MEMCTL_DATABASE_URL", url)
        settings = load_settings()
        readers = Readers(url, settings.space)
        commands = Commands(settings, readers)
        with connect(url, name="test") as connection:
            generations.ensure_live(connection, 2)
            append(connection, 1, [event for session in ("s1", "s2") for event in _session(session)])
            yield Learnt(commands, connection, url)
        commands.close()
        readers.close()


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


def test_a_rule_that_two_sessions_followed_is_shown_with_where_it_was_seen(learnt: Learnt) -> None:
    rule = learnt.rule()
    assert (rule["after"], rule["state"], rule["languages"]) == ("any", "active", ["go"])
    assert len(rule["sessions"]) == 2
    assert rule["examples"][0]["event_id"]
    assert code.rules(learnt.known(), EVERYWHERE, language="python").items == []
    (pattern,) = code.patterns(learnt.known(), EVERYWHERE, category="simplify").items
    assert (pattern["name"], pattern["stats"]["application_count"]) == ("newer idiom", 4)


def test_the_graph_ties_libraries_files_and_projects(learnt: Learnt) -> None:
    reader = learnt.known()
    found = graph.graph(reader, EVERYWHERE, "cobra", hops=2)
    assert found["start"] == "library:go/github.com/spf13/cobra"
    ties = {(edge["source"], edge["relation"], edge["target"]) for edge in found["edges"]}
    assert (found["start"], "used_by", "project:ledger") in ties
    assert ("file:/home/dana/ledger/s1.go", "changed_with", "file:/home/dana/ledger/both.go") in ties
    with pytest.raises(graph.UnknownEntity):
        graph.graph(reader, EVERYWHERE, "no such thing")


def test_what_users_feel_about_an_agent_is_a_path_on_their_words(learnt: Learnt) -> None:
    (felt,) = graph.entity(learnt.known(), EVERYWHERE, "claude-code")["sentiment"]
    assert (felt["label"], len(felt["path"])) == ("positive", 2)
    assert felt["path"][0]["evidence"][0]["holds"]


def test_statements_change_what_is_known_and_can_be_taken_back(learnt: Learnt) -> None:
    before = learnt.rule()
    learnt.say("reinforce_rule", rule=before["id"][:8], success=False, why="it broke generics")
    after = learnt.rule()
    assert after["confidence"] < before["confidence"]
    assert after["verdicts"][0]["why"] == "it broke generics"
    learnt.say("retire_pattern", pattern=before["id"], reason="done everywhere")
    assert learnt.rule()["state"] == "retired"
    learnt.say("retire_pattern", pattern=before["id"], back=True)
    assert learnt.rule()["state"] == "active"


def test_what_is_said_of_an_entity_stands_beside_what_was_seen(learnt: Learnt) -> None:
    node = "library:go/github.com/spf13/cobra"
    learnt.say("describe_entity", node=node, display_name="Cobra", summary="parses command lines", trust=0.9)
    learnt.say("relate", source="project:ledger", relation="depends_on", target=node)
    item = graph.entity(learnt.known(), EVERYWHERE, "cobra")
    assert (item["display_name"], item["trust"], item["interactions"]) == ("Cobra", 0.9, 2)
    assert "needed_by" in {edge["relation"] for edge in item["edges"]}
    learnt.say("relate", source="project:ledger", relation="depends_on", target=node, weight=0)
    assert "needed_by" not in {e["relation"] for e in graph.entity(learnt.known(), EVERYWHERE, "cobra")["edges"]}
