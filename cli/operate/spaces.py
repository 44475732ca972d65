"""`memctl space`: which spaces there are and where each lives. They are made where the database is."""

from __future__ import annotations

import click

from memctl.cli.pages import in_json


@click.group()
def space() -> None:
    """Spaces: whose memory it is. One API and one fleet of workers serve all that a database holds.

    A space sees nothing of another. Who has a key of one (`memctl keys`, with MEMCTL_SPACE set to it) reads and writes
    there alone; the token means the one of MEMCTL_SPACE, or of `Memctl-Space` in a request.

    \b
    memctl space create payments
    MEMCTL_SPACE=payments memctl keys add dana
    memctl space list
    """


@space.command("list")
@in_json
def list_spaces(as_json: bool) -> None:
    """List the spaces, each with its database and the collection of its vectors.

    \b
    memctl space list
    """
    from memctl.api.write import spaces
    from memctl.cli.output import print_json, print_lines
    from memctl.infra.settings import load_settings

    found = spaces.listed(load_settings())
    if as_json:
        print_json(list(found))
        return
    print_lines(
        *(
            f"{each.name}: {each.database or 'here'}, {each.collection or 'no collection'}, {each.keys} keys"
            for each in found
        )
    )


@space.command("create")
@click.argument("name")
@click.option(
    "--on",
    "database",
    default="",
    metavar="DATABASE",
    help="The database that it is to live on, as `databases` has it.",
)
@in_json
def create(name: str, database: str, as_json: bool) -> None:
    """Make the space NAME, here or on another database.

    That one has to be set up (`memctl init`) and to have workers of its own; the API, doors and commands find it by its
    name in the setting `databases`.

    \b
    memctl space create payments
    memctl space create research --on east
    """
    from memctl.api.write import spaces
    from memctl.cli.output import print_json
    from memctl.infra.hooks.agent_shell import only_a_person
    from memctl.infra.settings import load_settings

    only_a_person("makes spaces")
    made = spaces.create(load_settings(space=name), name, database)
    if as_json:
        print_json(made)
    else:
        click.echo(f"space {made.name} is there, on {made.database or 'this database'}", err=True)
