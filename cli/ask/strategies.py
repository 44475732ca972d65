"""The verb for what earlier work teaches: `strategies`."""

from __future__ import annotations

import click

from memctl.api.reading.learnt import StrategyItem
from memctl.cli.connection import NOTHING_FOUND, SHORT_ID, placed, reading, running
from memctl.cli.output import line, notice, print_json


@click.command()
@reading(limit=20)
@click.option("--domain", help="Only of this kind of work: commands, code style, version control, …")
@click.option("--waiting", is_flag=True, help="Those that too few sessions have taught so far.")
@click.pass_context
def strategies(
    context: click.Context, project: str | None, limit: int, as_json: bool, domain: str | None, waiting: bool
) -> None:
    """What earlier work in this project teaches: calls that work, what mends an error, rules that are enforced.

    \b
    memctl strategies
    memctl strategies --project '*' --waiting
    """
    with running() as client:
        answer = client.page("strategies", StrategyItem, **placed(project), limit=limit, domain=domain, waiting=waiting)
    items = answer.value.items
    if as_json:
        print_json(answer.json)
    for item in () if as_json else items:
        sessions = len(item.sessions)
        by = f", distilled by {item.made_by}" if item.made_by else ""
        click.echo(f"{item.id[:SHORT_ID]}  {line(item.title)}")
        click.echo(f"          {line(item.content)}")
        click.echo(
            f"          {item.confidence:.2f}, {sessions} session{'s' if sessions != 1 else ''}, "
            f"{item.project or 'everywhere'}{by}"
        )
    if not items:
        notice("nothing yet: strategies are learnt from work whose errors were mended")
        context.exit(NOTHING_FOUND)
