"""`memctl space`: which spaces there are and where each lives. They are made where the database is."""

from __future__ import annotations

import click

from memctl.cli.pages import in_json


@click.group()
def space() -> None:
    """Spaces: whose memory it is. One API and one fleet of workers serve all.

    \b
    memctl space create payments
    MEMCTL_SPACE=payments memctl keys add dana
    """


@space.command("list")
@in_json
def list_spaces(as_json: bool) -> None:
    """List the spaces, with database and collection.

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
    help="Its name in the setting `databases`.",
)
@in_json
def create(name: str, database: str, as_json: bool) -> None:
    """Make the space NAME, here or on another database that has been set up.

    \b
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
