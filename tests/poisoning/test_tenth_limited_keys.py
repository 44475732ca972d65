"""A limited key takes no name that something else will have here: whoever brings that finds it taken, and loses it when
what took it is forgotten."""

from __future__ import annotations

import msgspec
import pytest
from events import observed
from poisoning.test_limited_keys import Stage, stage

from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.observations import (
    CommitRecorded,
    PromptSubmitted,
    history_key,
    history_stream,
)
from memctl.domain.knowledge.team_entries import key_of
from memctl.domain.projects.identity import identified_key

__all__ = ["stage"]

NOTE = "Amounts of money are kept with quillteam, never as floats."
TEAM = key_of("0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f9", NOTE)
ELSEWHERE = "/home/dana/elsewhere"


def eves(stage: Stage, key: str, session: str) -> NewEvent:
    said = observed(PromptSubmitted(line="1", text="go on"), session=session, at=900, location=str(stage.victim))
    return msgspec.structs.replace(said, dedupe_key=key)


@pytest.mark.parametrize(
    "key",
    [
        TEAM,  # a team's file that lies in the shared repository
        "import:knowledge_nodes:1:0:0",  # a row of another tool's store
        identified_key(history_stream(ELSEWHERE), ELSEWHERE),  # what will be found at a place of another project
    ],
)
def test_the_key_takes_no_name_of_what_is_no_session_of_its_own(stage: Stage, key: str) -> None:
    assert list(stage.deliver(eves(stage, key, "eves-names"))) == ["0"]  # must not come out: that it was kept


def test_the_key_takes_no_name_in_the_history_of_another_repository(stage: Stage) -> None:
    stream, commit = history_stream(ELSEWHERE), "4" * 40
    taken = NewEvent(
        stream=stream, payload=CommitRecorded(line=commit, text="Drop the ledger"), occurred_at=Micros(900),
        dedupe_key=history_key(stream, commit), actor="tool", location=str(stage.victim),
    )  # fmt: skip
    assert list(stage.deliver(taken)) == ["0"]  # must not come out: that it was kept
