"""`memctl install`: have a coding agent call memctl."""

from __future__ import annotations

import click

from memctl.infra.clients import CLIENTS


@click.command()
@click.argument("client", type=click.Choice(list(CLIENTS)))
@click.option("--uninstall", is_flag=True, help="Take memctl's hooks out again; others stay.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only show the change.")
def install(client: str, uninstall: bool, yes: bool, dry_run: bool) -> None:
    """Add memctl's hooks to a coding agent's own settings.

    Shows the change and asks before it writes. What the file was before is kept beside it, other hooks stay, and doing
    it again changes nothing. The hooks keep what is said and done; they print nothing, and end with 0 whatever happens.
    """
    import difflib

    from memctl.infra import clients
    from memctl.infra.settings import default_data_dir, load_settings

    known = CLIENTS[client]
    settings = load_settings()
    elsewhere = settings.data_dir if settings.data_dir != default_data_dir() else None
    change = clients.removing(known) if uninstall else clients.installing(known, elsewhere)
    if change.before == change.after:
        click.echo(
            f"nothing to do: {change.path} {'has no hooks' if uninstall else 'has the hooks'} of memctl", err=True
        )
        return
    before, after = ((text or "").splitlines(keepends=True) for text in (change.before, change.after))
    click.echo("".join(difflib.unified_diff(before, after, str(change.path), str(change.path))).rstrip())
    if dry_run:
        return
    if not yes:
        click.confirm(f"Write {change.path}?", abort=True, err=True)
    clients.apply(change)
    told = "no longer calls memctl" if uninstall else "calls memctl from its next session on"
    click.echo(f"{known.title} {told}", err=True)
    if known.note and not uninstall:
        click.echo(known.note, err=True)
