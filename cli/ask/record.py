"""The verbs by which people state something to memctl. Each is one command, carried out once."""

from __future__ import annotations

import contextlib
import os
import uuid
from typing import TYPE_CHECKING

import click

from memctl.api.reading.views import Done
from memctl.cli.output import print_outcome
from memctl.cli.pages import in_json
from memctl.infra.hooks.agent_shell import speaker
from memctl.infra.settings import load_settings

if TYPE_CHECKING:
    from memctl.api.client import Received

_BY_AN_AGENT = "an agent's word, as no person's terminal is here: it waits for approval (memctl waiting)"

KINDS = ("preference", "pattern", "expertise", "fact", "profile")


def say(name: str, **asked: object) -> Received[Done]:
    """Have a command carried out by the running memctl, in this directory, for whoever speaks: what it became.

    Raises: Unreachable, NotThere, BadlyAsked.
    """
    from memctl.api.client import Client

    asked["by"] = speaker()
    with contextlib.suppress(FileNotFoundError):  # the working directory was deleted under us
        asked.setdefault("location", os.getcwd())
    with Client.of(load_settings()) as client:
        return client.command(name, uuid.uuid4().hex, **asked)


@click.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--kind", type=click.Choice(KINDS), help="What sort of claim it is; the rules say where you do not.")
@click.option("--everywhere", is_flag=True, help="It holds in every project, not only in this one.")
@click.option("--file", "files", multiple=True, metavar="PATH", help="A file that it is about; may be given again.")
@click.option("--importance", type=click.FloatRange(0, 1), help="How much it matters, 0 to 1.")
@in_json
def note(
    text: tuple[str, ...],
    kind: str | None,
    everywhere: bool,
    files: tuple[str, ...],
    importance: float | None,
    as_json: bool,
) -> None:
    """Remember TEXT. What you say is taken as true until you say otherwise.

    Said without a terminal, or in the shell of a coding agent, it counts as an agent's note: it waits for you.

    \b
    memctl note "Money is Decimal here, never float."
    memctl note "Answer in Korean." --everywhere --kind preference
    """
    done = say("note", text=" ".join(text), kind=kind or "", everywhere=everywhere, files=files, importance=importance)

    by_user = speaker() == "user"
    noted = f"noted as {done.value.event_id[:8]} (`memctl reject` takes it back)"
    print_outcome(done.json, as_json, noted if by_user else f"{noted}; {_BY_AN_AGENT}")
