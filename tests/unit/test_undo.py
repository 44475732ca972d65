"""Which command takes an event back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memctl.cli.erase.undo import NotUndone, contrary
from memctl.domain.events.command import commands, read_command
from memctl.domain.events.event import event_types

ID = "8eb0a7c5-8f3c-5b8e-9d3a-1f2e3d4c5b6a"


@pytest.mark.parametrize(
    ("type", "payload", "wanted"),
    [
        ("memories.merged", {}, ("undo_consolidation", "change", ID)),
        ("contradiction.found", {}, ("undo_consolidation", "change", ID)),
        ("memory.pinned", {"memory": "m"}, ("pin", "pinned", False)),
        ("memory.pinned", {"memory": "m", "pinned": False}, ("pin", "pinned", True)),
        ("project.merged", {"into": "a", "merged": "b"}, ("split-project", "project", "b")),
    ],
)
def test_an_event_is_taken_back_by_a_command_that_there_is(
    type: str, payload: dict[str, Any], wanted: tuple[str, str, object]
) -> None:
    assert type in event_types()
    name, asked = contrary(ID, type, payload, "a slip")
    assert (name, wanted[1], asked[wanted[1]]) == wanted
    read_command(commands()[name], json.dumps(asked).encode())


@pytest.mark.parametrize("type", ["prompt.submitted", "pattern.retired", "knowledge.rejected", "project.split"])
def test_what_has_no_contrary_is_told_so(type: str) -> None:
    assert type in event_types()
    with pytest.raises(NotUndone, match=type):
        contrary(ID, type, {}, "")
