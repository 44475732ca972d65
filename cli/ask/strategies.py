"""The verb for what earlier work teaches: `strategies`."""

import click

from memctl.api.reading.records import StrategyItem
from memctl.cli.connection import SHORT_ID
from memctl.cli.output import line, print_lines
from memctl.cli.pages import Reading, each, print_items, reading


@click.command()
@reading(limit=20)
@click.option("--domain", help="Only of this kind of work: commands, code style, version control, …")
@click.option("--waiting", is_flag=True, help="Those that too few sessions have taught so far.")
def strategies(ask: Reading, domain: str | None, waiting: bool) -> None:
    """What earlier work in this project teaches: rules that are enforced, what is run before a commit, how one test is.

    \b
    memctl strategies
    memctl strategies --project '*' --waiting
    """
    answer = ask.page("strategies", StrategyItem, domain=domain, waiting=waiting)
    empty = "nothing yet: strategies are learnt from work whose errors were mended"
    print_items(answer, ask.as_json, each(_print_strategy), empty, whole=True)


def _print_strategy(item: StrategyItem) -> None:
    sessions = len(item.sessions)
    by = f", distilled by {item.made_by}" if item.made_by else ""
    warned = ", and acts: look before you follow it" if item.acts else ""
    click.echo(f"{item.id[:SHORT_ID]}  {line(item.title)}")
    click.echo(f"          {line(item.content)}")
    print_lines(
        f"          {item.confidence:.2f}, {sessions} session{'s' if sessions != 1 else ''}, "
        f"{item.project or 'everywhere'}, {item.origin}{by}{warned}"
    )
