"""The verb that opens the viewer."""

import webbrowser

import click

from memctl.cli.connection import running
from memctl.cli.output import notice
from memctl.infra.hooks.agent_shell import only_a_person


@click.command()
@click.option("--no-open", is_flag=True, help="Only print the address.")
def view(no_open: bool) -> None:
    """Open the viewer in your browser, signed in.

    The address that is printed works once, within a minute. A name that ends in .localhost is this machine itself, and
    nobody else knows this one: what a browser receives there goes to no other server of the machine.

    \b
    memctl view
    memctl view --no-open | xclip   # to open it elsewhere
    """

    only_a_person("signs in to the viewer")
    with running() as client:
        address = client.viewer()
    click.echo(address)
    if not no_open and not webbrowser.open(address):
        notice("no browser could be started here; open that address yourself")
