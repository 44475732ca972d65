"""`memctl install`: have a coding agent call memctl."""

from __future__ import annotations

import difflib

import click

from memctl.cli.operate.up import offer_memories
from memctl.infra.data_dir import default_data_dir
from memctl.infra.hooks import client_files, clients
from memctl.infra.hooks.client_files import FileChange
from memctl.infra.hooks.clients import ALIASES, CLIENTS
from memctl.infra.settings import load_settings

AUTOSTART = "autostart"


@click.command()
@click.argument("client", type=click.Choice([*CLIENTS, *ALIASES, AUTOSTART]))
@click.option("--uninstall", is_flag=True, help="Take memctl out again; what others put there stays.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only show the change.")
def install(client: str, uninstall: bool, yes: bool, dry_run: bool) -> None:
    """Add memctl's hooks, and its MCP server, to a coding agent's own settings.

    Shows the change and asks before it writes. What a file was before is kept beside it, what others put there stays,
    and doing it again changes nothing. The hooks keep what is said and done; they print nothing of their own troubles,
    and end with 0 whatever happens. `memctl doctor` tries them.

    Hooks start nothing: `autostart` in a client's place is a unit of your own systemd that has memctl up after each
    login.

    \b
    memctl install claude-code --dry-run   # only show the change
    memctl install claude-code
    memctl install codex --uninstall
    memctl install autostart
    """

    settings = load_settings()
    elsewhere = settings.data_dir if settings.data_dir != default_data_dir() else None
    if client == AUTOSTART:
        if _written(
            [clients.autostart(not uninstall, elsewhere)],
            f"systemd {'does not start' if uninstall else 'starts'} memctl",
            yes,
            dry_run,
        ):
            then = "disable memctl" if uninstall else "enable --now memctl"
            click.echo(f"now: systemctl --user daemon-reload; systemctl --user {then}", err=True)
        return
    known = CLIENTS[ALIASES.get(client, client)]
    changes = clients.removing(known) if uninstall else clients.installing(known, elsewhere)
    if not _written(changes, f"{known.title} {'does not call' if uninstall else 'calls'} memctl", yes, dry_run):
        return
    outcome = "no longer calls memctl" if uninstall else "calls memctl from its next session on"
    click.echo(f"{known.title} {outcome}", err=True)
    if known.note and not uninstall:
        click.echo(known.note, err=True)
    if known.name == "claude-code" and not uninstall and clients.plugin_enabled():
        click.echo("memctl's plugin is switched on, too, and brings the same hooks: keep one of the two", err=True)
    if not uninstall:
        offer_memories(settings.data_dir)


def _written(changes: list[FileChange], already: str, yes: bool, dry_run: bool) -> bool:
    """Show changes, ask, and write them. False where nothing was written: `already` says what is so."""

    changes = [change for change in changes if change.before != change.after]
    if not changes:
        click.echo(f"nothing to do: {already}", err=True)
        return False
    for change in changes:
        before, after = ((text or "").splitlines(keepends=True) for text in (change.before, change.after))
        click.echo("".join(difflib.unified_diff(before, after, str(change.path), str(change.path))).rstrip())
    if dry_run:
        return False
    if not yes:
        click.confirm(f"Write {' and '.join(str(change.path) for change in changes)}?", abort=True, err=True)
    for change in changes:
        client_files.apply(change)
    return True
