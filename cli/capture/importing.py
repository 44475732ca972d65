"""`memctl import`: what a memory store of before memctl holds."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memctl.cli.capture.ingest import wait_until_folded
from memctl.cli.operate.keeping import opening
from memctl.cli.output import print_json, print_lines, when
from memctl.domain.support.wording import number
from memctl.infra.backup.sealed import SEALED, unsealed
from memctl.infra.hooks.agent_shell import only_a_person
from memctl.infra.settings import load_settings

if TYPE_CHECKING:
    from memctl.api.write.ingest import Account


@click.command(name="import")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Show what would come in, and change nothing.")
@click.option("--mine", is_flag=True, help="It is your own memory: what you said in it is yours here, too.")
@click.option("--wait", is_flag=True, help="Wait until what was imported can be searched.")
@click.option("--json", "as_json", is_flag=True, help="Print the account as JSON.")
@opening
def import_legacy(
    paths: tuple[Path, ...], dry_run: bool, mine: bool, wait: bool, as_json: bool, identity: Path | None
) -> None:
    """Import what `memctl export` wrote, a team's files, or other memories: Claude Code's notes, claude-mem,
    basic-memory, mem0, code-memory, bot_memory and its like. Without PATHS, list those on this machine.

    The stores are only read, and importing one again adds nothing. What a store claims counts less than your own word:
    it is a candidate until you, a run or your sessions confirm it. Its sessions, and all that an export says, are
    another's, at places of that memory, unless you say that it is yours.

    \b
    memctl import
    memctl import ~/.claude-mem --dry-run
    memctl import exported.jsonl --mine --wait
    memctl import .memory --dry-run  # a team's files, checked in CI
    """

    if not paths:
        _list(as_json)
        return
    with contextlib.ExitStack() as opened:
        if any(path.suffix == SEALED for path in paths):
            data_dir = load_settings().data_dir
            paths = tuple(opened.enter_context(unsealed(path, identity, data_dir)) for path in paths)
        _import(paths, dry_run=dry_run, mine=mine, wait=wait, as_json=as_json)


def _import(paths: tuple[Path, ...], *, dry_run: bool, mine: bool, wait: bool, as_json: bool) -> None:
    if mine:
        only_a_person("says whose memory this is")
    exports, teams = _of_one_kind(paths, mine=mine)
    if dry_run:
        account, examples = _would_come(paths, exports, teams, mine=mine)
    else:
        account, examples = _imported(paths, exports, teams, wait, mine=mine), []
    if as_json:
        print_json(account.as_json())
    else:
        _print(account, examples, "would be new" if dry_run else "new")
    if account.new and not (mine or dry_run):
        _say_what_waits(wait)
    if dry_run and account.bad_lines and teams:
        raise click.exceptions.Exit(1)
    if not account.with_events:
        click.echo("nothing to import was found", err=True)
        raise click.exceptions.Exit(3)


def _list(as_json: bool) -> None:
    """The memories of other tools on this machine, and how each comes in."""
    from memctl.api.write.importing import found_memories

    found = found_memories()
    if as_json:
        print_json(found)
        return
    for each in found:
        newest = f", newest {when(each.newest)}" if each.newest else ""
        print_lines(f"{each.title}: {each.why or number(each.notes, 'note') + newest}",
                    f"  memctl import {shlex.quote(each.path)}")  # fmt: skip
    if not found:
        click.echo("no memory of another tool was found on this machine", err=True)
        raise click.exceptions.Exit(3)


def _of_one_kind(paths: tuple[Path, ...], *, mine: bool) -> tuple[list[Path], list[Path]]:
    """All of the paths as exports, or as teams' files, or none as either: then they are stores."""
    from memctl.api.write.exporting import is_export
    from memctl.api.write.team_files import is_team

    exports, teams = [path for path in paths if is_export(path)], [path for path in paths if is_team(path)]
    if len(paths) > len(exports or teams) > 0:
        raise click.UsageError("exports are imported by themselves, and so are a team's files")
    if mine and teams:
        raise click.UsageError("what a team's files say is another's word")
    return exports, teams


def _would_come(
    paths: tuple[Path, ...], exports: list[Path], teams: list[Path], *, mine: bool
) -> tuple[Account, list[str]]:
    """The account of what would come in, and examples of it."""
    from memctl.api.write.exporting import look_through
    from memctl.api.write.importing import account_of, stores
    from memctl.api.write.ingest import Account
    from memctl.api.write.team_files import team_entries

    if not (exports or teams):
        return account_of(stores(paths))
    account = Account()
    for path in exports:
        look_through(path, account, mine=mine)
    examples = [f"{each.path}  {each.text}" for path in teams for each in team_entries(path, account)]
    account.new += len(examples)
    return account, examples


def _say_what_waits(folded: bool) -> None:
    from memctl.api.queries.waiting import claims_waiting

    waits = claims_waiting(load_settings()) if folded else 0
    what = f"{number(waits, 'claim waits', 'claims wait')} for you" if folded else "its claims wait once folded"
    click.echo(f"{what}: memctl waiting --project '*'", err=True)


def _imported(paths: tuple[Path, ...], exports: list[Path], teams: list[Path], wait: bool, *, mine: bool) -> Account:
    """Append what the paths hold, as exports or as teams' files where they are either, else as stores."""
    from memctl.api.write.exporting import import_export
    from memctl.api.write.importing import import_stores, stores
    from memctl.api.write.ingest import Account
    from memctl.api.write.ingest_writer import IngestWriter
    from memctl.api.write.team_files import import_team
    from memctl.infra.legacy.finding import offered

    found = [] if exports or teams else stores(paths)
    settings, account = load_settings(), Account()
    # What was exported may have happened elsewhere, at paths that lie here as well.
    with IngestWriter(settings, identify=not exports) as intake:
        for path in exports:
            import_export(intake, path, mine=mine, account=account)
        for path in teams:
            for gone in import_team(intake, settings, path, account):
                print_lines(f"no longer in {path}: {gone} (if it holds no more: memctl reject ID)")
        if found:
            account = import_stores(intake, found, mine=mine)
        if wait:
            wait_until_folded(intake)
    if not (exports or teams):
        offered(settings.data_dir, paths)
    return account


def _print(account: Account, examples: list[str], new: str) -> None:
    ignored = sum(account.ignored.values())
    click.echo(f"{number(account.files, 'file')}, {number(account.lines, 'row')}: {account.with_events} with events,"
               f" {ignored} ignored, {account.blank} blank, {account.bad_lines} bad")  # fmt: skip
    gone = f", {account.forgotten} forgotten before" if account.forgotten else ""
    click.echo(f"events: {account.new} {new}, {account.duplicate} duplicate, {account.variant} variant{gone}")
    for name, count in account.types.most_common():
        click.echo(f"  {count:>8}  {name}")
    for name, count in account.ignored.most_common():
        print_lines(f"  {count:>8}  ignored  {name}")
    for line in account.bad:
        print_lines(f"  bad  {line.file}:{line.line}  {line.why}")
    if account.bad_lines > len(account.bad):
        click.echo(f"  bad  {account.bad_lines - len(account.bad)} more")
    for example in examples:
        print_lines(f"  {example}")
