"""`memctl undo`: take back what was recorded."""

from __future__ import annotations

import click

from memctl.api.reading.records import EventItem
from memctl.api.reading.views import Json
from memctl.cli.ask.record import say
from memctl.cli.connection import running
from memctl.cli.output import print_outcome
from memctl.cli.pages import in_json
from memctl.domain.support.errors import MemctlError


class NotUndone(MemctlError):
    """{id} is a {type}: that is not taken back."""

    hint = (
        "say its contrary (`memctl reject`, `verify-knowledge`, `resolve`, `core replace`), or erase it for good"
        " (`memctl forget --id`)"
    )
    exit_code = 2
    id: str
    type: str


@click.command()
@click.argument("id")
@click.option("--why", default="", help="What was wrong with it.")
@in_json
def undo(id: str, why: str, as_json: bool) -> None:
    """Take back what was recorded as the event ID: a change of `consolidate`, a pin, a merge of projects.
    That it was recorded, and that it was taken back, stays in the log.

    Every command shows its event with --json; `memctl consolidate --log` lists what was changed by itself.

    \b
    memctl undo 8eb0a7c5
    """

    with running() as client:
        event = client.read(f"/v1/events/{id}", EventItem).value
    name, asked = contrary(event.id, event.type, event.payload, why)
    print_outcome(say(name, **asked).json, as_json, "taken back")


def contrary(id: str, type: str, payload: dict[str, Json], why: str) -> tuple[str, dict[str, Json]]:
    """The command that takes an event back, and what it asks. Raises: NotUndone."""
    match type:
        case "memories.merged" | "memory.pruned" | "memory.superseded" | "contradiction.found":
            return "undo_consolidation", {"change": id, "why": why}
        case "memory.pinned":
            return "pin", {"memory": payload["memory"], "pinned": not payload.get("pinned", True)}
        case "project.merged":
            return "split-project", {"project": payload["merged"]}
        case other:
            raise NotUndone(id=id, type=other)
