"""`memctl waiting`: what only a person lets through, and letting it through."""

from __future__ import annotations

import click

from memctl.api.reading.records import Waiting
from memctl.cli.ask.record import say
from memctl.cli.connection import NOTHING_FOUND, SHORT_ID, placed, reading, running
from memctl.cli.output import Column, notice, print_json, print_table
from memctl.domain.support.errors import MemctlError


class WaitsNot(MemctlError):
    """Nothing that waits is named {id!r}."""

    exit_code = 3
    hint = "`memctl waiting` lists what waits, each with its id."
    id: str


@click.command()
@reading(limit=50)
@click.option("--approve", metavar="ID", help="Let it through: it holds, or is forgotten where that was asked.")
@click.option("--reject", metavar="ID", help="Do not: it is not shown again, or is kept.")
@click.pass_context
def waiting(
    context: click.Context, project: str | None, limit: int, as_json: bool, approve: str | None, reject: str | None
) -> None:
    """List what waits for you: claims that act, what agents wrote, and what they ask to have forgotten.

    Whoever follows a claim that acts fetches, runs, sends or takes away something. What an agent wrote is given to no
    session unasked until you approve it.

    \b
    memctl waiting
    memctl waiting --approve 8eb0a7c5
    memctl waiting --reject core/persona
    """
    if approve is not None and reject is not None:
        raise click.UsageError("say one of --approve and --reject")
    with running() as client:
        answer = client.read("/v1/waiting", Waiting, limit=limit, **placed(project))
    found = answer.value
    if (id := approve or reject) is not None:
        _settle(found, id, holds=approve is not None)
        notice("approved" if approve else "rejected")
        return
    if as_json:
        print_json(answer.json)
    rows = [[each.id[:SHORT_ID], "claim", each.origin, each.text] for each in found.claims]
    rows += [[f"core/{each.section}", "core memory", each.origin, each.text] for each in found.sections]
    rows += [[each.thing[:SHORT_ID], "to forget", each.why, each.text] for each in found.requests]
    if rows and not as_json:
        print_table([Column("id"), Column("what"), Column("from"), Column("text", give=True)], rows)
    if not rows:
        notice("nothing waits for you")
        context.exit(NOTHING_FOUND)


def _settle(found: Waiting, id: str, *, holds: bool) -> None:
    """Approve or reject what waits under that id, or its beginning. Raises: WaitsNot."""
    sections = {f"core/{each.section}": each for each in found.sections}
    if (section := sections.get(id)) is not None:
        say("core-approve" if holds else "core-reject", section=section.section, version=section.version)
        return
    claims = [each.id for each in found.claims if each.id.startswith(id)]
    things = [each.thing for each in found.requests if each.thing.startswith(id)]
    if len(claims) + len(things) != 1:
        raise WaitsNot(id=id)
    if claims:
        say("verify-knowledge" if holds else "reject", claim=claims[0])
    elif holds:
        from memctl.cli.erase.forget import forget_thing

        forget_thing(things[0])
    else:
        say("refuse-forget", thing=things[0])
