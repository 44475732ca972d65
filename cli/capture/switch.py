"""`memctl off` and `on`: where memory records nothing, or injects nothing into an agent's context."""

from __future__ import annotations

import os

import click

from memctl.cli.output import print_json, print_lines
from memctl.infra.hooks.agent_shell import only_a_person
from memctl.infra.hooks.capture_policy import BOTH, Off, switch
from memctl.infra.settings import load_settings


def _switch(on: bool, save: bool, recall: bool, session: str, project: str | None, as_json: bool) -> None:
    only_a_person("says where memory records and speaks")
    what = tuple(each for each, named in zip(BOTH, (save, recall), strict=True) if named) or BOTH
    place = os.path.abspath(os.path.expanduser(project)) if project else ""
    off = switch(load_settings().data_dir, on, what, session=session, project=place)
    _show(off, as_json)


def _show(off: Off, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "everywhere": sorted(off.everywhere),
                "sessions": {name: sorted(what) for name, what in sorted(off.sessions.items())},
                "projects": {name: sorted(what) for name, what in sorted(off.projects.items())},
            }
        )
        return
    switches = [("everywhere", off.everywhere)] if off.everywhere else []
    switches += [(f"session {name}", what) for name, what in sorted(off.sessions.items())]
    switches += [(f"project {name}", what) for name, what in sorted(off.projects.items())]
    print_lines(*(f"{where}: {' and '.join(sorted(what))} off" for where, what in switches))
    if not switches:
        click.echo("nothing is off", err=True)


_save = click.option("--save", is_flag=True, help="Only that what is said is kept.")
_recall = click.option("--recall", is_flag=True, help="Only that hooks tell the agent what memory holds.")
_session = click.option("--session", default="", metavar="ID", help="For this session only.")
_project = click.option(
    "--project", metavar="PATH", flag_value=".", is_flag=False, help="For what lies below this folder; here by default."
)
_json = click.option("--json", "as_json", is_flag=True, help="Print what is off as JSON.")


@click.command()
@_save
@_recall
@_session
@_project
@_json
def off(save: bool, recall: bool, session: str, project: str | None, as_json: bool) -> None:
    """Keep nothing, and tell agents nothing, until `memctl on`; then print what is off.

    Everywhere, or for one session or project. What is said meanwhile is not kept later either; what was said before is
    (`memctl forget` forgets it). A project's own .memctl.toml says the same with `save = false` and `recall = false`;
    MEMCTL_OFF=1 (or save, recall) holds for the hooks of one run.

    \b
    memctl off                     # keep nothing, tell nothing, everywhere
    memctl off --recall            # go on keeping
    memctl off --project .
    """
    _switch(False, save, recall, session, project, as_json)


@click.command()
@_save
@_recall
@_session
@_project
@_json
def on(save: bool, recall: bool, session: str, project: str | None, as_json: bool) -> None:
    """Undo `memctl off`: everywhere, or for one session or project, as it was switched off.

    \b
    memctl on
    memctl on --project .
    """
    _switch(True, save, recall, session, project, as_json)
