"""`memctl waiting`: what only a person lets through, and letting it through."""

import click

from memctl.api.reading.records import Waiting
from memctl.cli.ask.record import say
from memctl.cli.connection import SHORT_ID
from memctl.cli.erase.forget import forget_thing
from memctl.cli.output import notice, print_json, print_lines
from memctl.cli.pages import Reading, nothing, reading
from memctl.domain.events.facts import quote_hash
from memctl.domain.events.recalls import quoted
from memctl.domain.support.errors import MemctlError

REASON = 300
"""Characters of why something is to be forgotten, which whoever asks words as they like."""


class WaitsNot(MemctlError):
    """Nothing that waits is named {id!r}."""

    exit_code = 3
    hint = "`memctl waiting` lists what waits, each with its id."
    id: str


@click.command()
@reading(limit=50)
@click.option("--approve", metavar="ID", help="Let it through: it holds, or is forgotten where that was asked.")
@click.option("--reject", metavar="ID", help="Do not: it is not shown again, or is kept.")
def waiting(ask: Reading, approve: str | None, reject: str | None) -> None:
    """List what waits for you: claims that act, what agents or another memory say, what is to be forgotten.

    Whoever follows a claim that acts fetches, runs, sends or takes away something. What an agent wrote is given to no
    session unasked until you approve it.

    \b
    memctl waiting
    memctl waiting --approve 8eb0a7c5
    memctl waiting --reject core/persona
    """
    if approve is not None and reject is not None:
        raise click.UsageError("say one of --approve and --reject")
    answer = ask.read("/v1/waiting", Waiting, limit=ask.limit)
    found = answer.value
    if (id := approve or reject) is not None:
        _settle(found, id, holds=approve is not None)
        notice("approved" if approve else "rejected")
        return
    if ask.as_json:
        print_json(answer.json)
    rows = [[each.id[:SHORT_ID], "claim", each.origin, each.text] for each in found.claims]
    rows += [[f"core/{each.section}", "core memory", each.origin, each.text] for each in found.sections]
    rows += [
        [
            each.thing[:SHORT_ID],
            "to forget",
            f"{each.origin}: {quoted(each.why, REASON)}" if each.why else each.origin,
            each.text,
        ]
        for each in found.requests
    ]
    if not ask.as_json:
        for id, what, origin, text in rows:  # whole: nobody approves what they were not shown
            print_lines(f"{id}  {what}, {origin}", f"    {' '.join(text.split()) or '(all of it is taken out)'}")
    if not rows:
        nothing(None, "nothing waits for you")


def _settle(found: Waiting, id: str, *, holds: bool) -> None:
    """Approve or reject what waits under that id, or its beginning. Raises: WaitsNot."""
    sections = {f"core/{each.section}": each for each in found.sections}
    if (section := sections.get(id)) is not None:
        if holds:
            _shown(section.text)
        say("core-approve" if holds else "core-reject", section=section.section, version=section.version)
        return
    claims = [each for each in found.claims if each.id.startswith(id)]
    things = [each.thing for each in found.requests if each.thing.startswith(id)]
    if len(claims) + len(things) != 1:
        raise WaitsNot(id=id)
    if claims:
        if holds:
            _shown(claims[0].text)
        words = {"words": quote_hash(claims[0].text)} if holds else {}
        say("verify-knowledge" if holds else "reject", claim=claims[0].id, **words)
    elif holds:
        forget_thing(things[0])
    else:
        say("refuse-forget", thing=things[0])


def _shown(text: str) -> None:
    """Show what is approved, and ask: since it was listed, an agent may have put other words in its place."""
    print_lines(f"    {text or '(all of it is taken out)'}")
    click.confirm("Approve it?", abort=True, err=True)
