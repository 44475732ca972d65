"""Projects: what is known of one, which there are, and which places are one; and how tools are used there."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from memctl.api.reading.projects import Line, ProjectItem, ProjectPage, WaitingItem
from memctl.cli.ask.record import say
from memctl.cli.connection import NOTHING_FOUND, SHORT_ID, looking_back, placed, running
from memctl.cli.groups import Verbs
from memctl.cli.output import Cell, Column, line, notice, print_json, print_lines, print_outcome, when
from memctl.cli.pages import in_json, print_items, table
from memctl.domain.projects.identity import why_waiting
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.location import inside, path_of, since_of
from memctl.domain.support.wording import number

if TYPE_CHECKING:
    from memctl.api.client import Client


class NothingToSplit(MemctlError):
    """Nothing was merged with {project}, and it is no location that could be set apart."""

    exit_code = 2
    hint = "`memctl project show` lists a project's locations; a location's path can be split off."
    project: str


class NothingWaits(MemctlError):
    """No checkout at {place} waits for your word."""

    exit_code = NOTHING_FOUND
    hint = "`memctl project list --waiting` shows those that do; one is known once a session worked there."
    place: str


class AskedByNobody(MemctlError):
    """Whether {place} is of {claims} is for a person to say, at a terminal."""

    exit_code = 2
    hint = "Run it in a terminal of your own, or say it in the viewer: `memctl view`, Projects."
    place: str
    claims: str


class _Project(Verbs):
    otherwise = "A project is shown by `memctl project show {}`."


@click.group(cls=_Project)
def project() -> None:
    """Show what is known of a project, list projects, or say which places are one.

    \b
    memctl project show            # of this directory
    memctl project list
    """


@project.command()
@click.argument("name", required=False)
@click.option("--project", "also", metavar="NAME|PATH|ID", help="The same as the argument.")
@looking_back
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the events that each line rests on.")
def show(name: str | None, also: str | None, as_json: bool) -> None:
    """Show what sessions taught of a project: NAME, its id, a path in it, or the one this directory belongs to.

    Behind each line: in how many sessions it was seen, and when last.

    \b
    memctl project show            # of this directory
    memctl project show ledger --json
    """
    with running() as client:
        answer = client.read("/v1/project", ProjectPage, **placed(name or also))
    if as_json:
        print_json(answer.json)
        return
    found = answer.value
    about, counts = found.project, found.stats
    click.echo(click.style(line(about.name), bold=True) + f"  {line(about.anchor)}  ({about.id[:SHORT_ID]})")
    ends = counts.outcomes
    known = sum(n for outcome, n in ends.items() if outcome != "unknown")
    rate = f"; {ends.get('success', 0)} of {known} with a known end went well" if known else ""
    types = ", ".join(f"{n} {kind}" for kind, n in list(counts.types.items())[:4])
    print_lines(
        f"{number(counts.sessions, 'session')}, last {when(about.last_seen)};"
        f" {number(counts.episodes, 'episode')} ({types}){rate}"
    )
    if len(about.locations) > 1:
        print_lines(f"{len(about.locations)} locations, the newest checkout at {about.root}")
    for part in about.parts[1:]:
        print_lines(f"merged into it: {part}")
    for heading, lines in _sections(found):
        if lines:
            click.echo()
            click.echo(click.style(heading, bold=True))
        for each in lines:
            often, what = (each.sessions, "session") if each.sessions else (each.count, "time")
            print_lines(f"  {line(each.text)}  [{often} {what}{'s' if often > 1 else ''}, {when(each.last)}]")


def _sections(page: ProjectPage) -> list[tuple[str, list[Line]]]:
    """The sections of a project's page in their order, each with its heading."""
    return [
        ("Stack", page.tech_stack),
        ("Commands that pass", page.commands),
        ("Structure", page.structure),
        ("Conventions", page.conventions),
        ("Hot spots", page.hotspots),
        ("Left open", page.open),
        ("Errors that came back", page.issues),
        ("Preferred", page.prefer),
        ("Avoided", page.avoid),
    ]


@project.command("list")
@looking_back
@click.option("--waiting", is_flag=True, help="Only checkouts that say they are of a known project: see `join`.")
@in_json
def list_(waiting: bool, as_json: bool) -> None:
    """List the projects that memory knows, newest first.

    \b
    memctl project list
    memctl project list --waiting
    """
    if waiting:
        with running() as client:
            checkouts = client.listing("/v1/projects/waiting", WaitingItem)
        shown = table(_waiting_row, Column("checkout", give=True), "why", Column("known from", give=True))
        print_items(checkouts, as_json, shown, "no checkout waits for your word")
        return

    def row(item: ProjectItem) -> list[Cell | str]:
        id = Cell(item.id[:SHORT_ID], "cyan")
        return [id, item.name, str(len(item.locations)), when(item.last_seen), item.anchor]

    with running() as client:
        answer = client.listing("/v1/projects", ProjectItem)
    listed = table(row, "id", "project", Column("places", "right"), "last", Column("where", give=True))
    print_items(answer, as_json, listed, "no project is known yet")


def _waiting_row(item: WaitingItem) -> list[Cell | str]:
    return [item.root, why_waiting(item.root, item.claims), item.known_from]


@project.command()
@click.argument("path", required=False)
@click.option("--no", is_flag=True, help="It is a project of its own, and is not asked about again.")
@in_json
def join(path: str | None, no: bool, as_json: bool) -> None:
    """Say that a checkout is of the project that it names: the one at PATH, or here. They share one memory.

    Anyone can write a remote into a file, so a second clone of a known project has its own memory until you say so;
    and so has what lies where another repository lay. A worktree needs no word. `memctl project list --waiting` shows
    what waits, `split` takes a yes back.

    \b
    memctl project join
    memctl project join ~/work/shop-copy --no
    """
    place = os.path.abspath(os.path.expanduser(path or "."))
    with running() as client:
        items = client.listing("/v1/projects/waiting", WaitingItem).value.items
    # A member's is named as the list names it, or by its path on that machine.
    found = [each for each in items if each.root == path] or [each for each in items if inside(place, each.root)]
    found = found or [each for each in items if inside(place, path_of(each.root))]
    if not found:
        raise NothingWaits(place=place)
    for each in [item for item in found if len(path_of(item.root)) == max(len(path_of(one.root)) for one in found)]:
        if not no:
            _asked(each.root, each.claims, f", which memory knows from {each.known_from}")
            done = say("merge-projects", into=each.project, project=each.root)
            print_outcome(done.json, as_json, f"{each.root} is part of {each.name} now")
        else:
            done = say("split-project", project=each.root)
            print_outcome(
                done.json, as_json, f"{each.root} stays a project of its own; `memctl project merge` joins it"
            )


def _asked(place: str, claims: str, known: str = "") -> None:
    """Ask a person whether a checkout is of what it says, or of what lay there. Raises: AskedByNobody."""
    if not sys.stdin.isatty():
        raise AskedByNobody(place=place, claims=claims)
    notice(f"{place} {why_waiting(place, claims)}{known}.")
    click.confirm("Is it of that project, so that both may use all that is known of the other?", abort=True, err=True)


@project.command()
@click.argument("into")
@click.argument("names", nargs=-1, required=True, metavar="PROJECT...")
@in_json
def merge(into: str, names: tuple[str, ...], as_json: bool) -> None:
    """Say that each PROJECT is part of INTO: what is known of them is answered together.

    Nothing is rewritten: `memctl project split PROJECT` gives back the former answers.

    \b
    memctl project merge shop ~/work/shop-copy
    """
    with running() as client:
        for name in names:
            about = client.read("/v1/project", ProjectPage, **placed(name)).value.project
            if about.waits_for:
                _asked(about.root, about.waits_for)
        into_place, places = _occupant_now(client, into), [_occupant_now(client, name) for name in names]
    done = [say("merge-projects", into=into_place, project=place) for place in places]
    for each, name in zip(done, names, strict=True):
        print_outcome(each.json, as_json, f"{name} is part of {into} now; `memctl project split {name}` takes it back")


@project.command()
@click.argument("name", metavar="PROJECT")
@in_json
def split(name: str, as_json: bool) -> None:
    """Say that PROJECT is one of its own: what was merged with it is taken away, a location's path is set apart.

    \b
    memctl project split ~/work/shop-copy
    """
    with running() as client:
        place = _occupant_now(client, name)
        about = client.read("/v1/project", ProjectPage, **placed(name)).value.project
    if len(about.parts) == 1 and (place not in about.locations or len(about.locations) == 1):
        raise NothingToSplit(project=name)
    print_outcome(say("split-project", project=place).json, as_json, f"{name} is a project of its own now")


def _occupant_now(client: Client, name: str) -> str:
    """A project in the user's words: of a path that several checkouts had, the place of the one that is there now."""
    place = _place(name)
    if not place.startswith("/"):
        return place
    about = client.read("/v1/project", ProjectPage, **placed(place)).value.project
    return next((at for at in (*about.locations, about.root) if since_of(at) and path_of(at) == place), place)


def _place(name: str) -> str:
    """A project in the user's words: what looks like a relative path is one from here."""
    return os.path.abspath(os.path.expanduser(name)) if name.startswith((".", "~", "/")) else name
