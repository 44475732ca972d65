"""`memctl space`: which spaces there are and where each lives. They are made where the database is."""

from __future__ import annotations

import click

from memctl.cli.groups import Verbs
from memctl.cli.output import print_json, print_lines, print_outcome
from memctl.cli.pages import in_json
from memctl.infra.hooks.agent_shell import only_a_person
from memctl.infra.settings import load_settings


@click.group(cls=Verbs)
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

    only_a_person("makes spaces")
    made = spaces.create(load_settings(space=name), name, database)
    print_outcome(made, as_json, f"space {made.name} is there, on {made.database or 'this database'}")


@space.command("move")
@click.argument("name")
@click.option(
    "--to",
    "database",
    required=True,
    metavar="DATABASE",
    help="Its name in the setting `databases`; `here` for that of `database_url`.",
)
@click.option("--undo", is_flag=True, help="Delete what an unfinished move has copied there.")
def move(name: str, database: str, undo: bool) -> None:
    """Move the space NAME to another database, while it is written and read.

    It is copied there, folded by the workers there, compared, switched and deleted here. Killed, it goes on when run
    again.

    \b
    memctl space move research --to east
    """
    from memctl.workers.moving import space_move

    only_a_person("moves spaces")
    if undo:
        space_move.give_up(load_settings(), name, database)
        click.echo(f"nothing of space {name} is left on {database}; it stays where it was", err=True)
        return
    space_move.move(load_settings(), name, database, lambda said: click.echo(said, err=True))
    click.echo(f"space {name} lives on {database}", err=True)
