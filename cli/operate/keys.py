"""`memctl keys`: who of a team may do what. Keys are made where the database is; no request over HTTP makes one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import click
import msgspec

from memctl.cli.groups import Verbs
from memctl.cli.output import print_json, print_lines, print_outcome
from memctl.cli.pages import in_json
from memctl.domain.support import patterns
from memctl.infra.api_keys import SCOPES, Key, Scope
from memctl.infra.hooks.agent_shell import only_a_person
from memctl.infra.settings import load_settings

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


@click.group(cls=Verbs)
def keys() -> None:
    """Keys of the API for the members of a team: made, listed, revoked.

    A key has scopes (read: ask, and get answers at hooks; write: state things; ingest: deliver sessions, as `memctl
    relay` does; erase: forget for good; operate: metrics) and may be limited to projects. It is sent as
    `Authorization: Bearer KEY`, or set as MEMCTL_API_TOKEN or MEMCTL_API_TOKEN_FILE.

    A key for a project is for the git remotes that the project has now, or for its path where it has none: what is
    joined to it later by another remote takes a new key. Where one path had two remotes, name those that the key is
    for; it is shown no place that has another one too.

    \b
    memctl keys add dana --scope read --scope ingest
    memctl keys list
    memctl keys revoke dana
    """


@keys.command("add")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(SCOPES),
    multiple=True,
    default=("read", "write", "ingest"),
    show_default=True,
    help="What it may do; give it several times.",
)
@click.option("--project", "projects", multiple=True, help="Limit it to this project; give it several times.")
@click.option("--expires", metavar="WHEN", help="A day, as 2027-01-31, or a time from now: 12h, 90d, 4w.")
@in_json
def add(name: str, scopes: tuple[Scope, ...], projects: tuple[str, ...], expires: str | None, as_json: bool) -> None:
    """Make a key called NAME and print it: this once, for only its hash is kept.

    \b
    memctl keys add dana --scope read --scope ingest --expires 2027-01-01
    memctl keys add ci --scope read --project ~/work/shop
    """

    from memctl.api.write import keys as api_keys

    only_a_person("makes keys")
    until = _until(expires) if expires else None
    settings = load_settings()
    key, token = api_keys.make(settings, name, scopes, projects, until)
    if as_json:
        print_json({**msgspec.to_builtins(key), "key": token})
        return
    click.echo(f"key {key.id}: {_description(key)}", err=True)
    for each in _warnings(key, [other for other in api_keys.listed(settings) if other.holds(datetime.now(UTC))]):
        click.echo(f"note: {each}", err=True)
    click.echo("it is not shown again:", err=True)
    click.echo(token)


@keys.command("list")
@click.option("--all", "everything", is_flag=True, help="Those that are revoked or have expired, too.")
@in_json
def list_keys(everything: bool, as_json: bool) -> None:
    """List the keys that are in force, latest first.

    \b
    memctl keys list
    memctl keys list --all         # with those that were revoked or ran out
    """
    from memctl.api.write import keys as api_keys

    now = datetime.now(UTC)
    found = [key for key in api_keys.listed(load_settings()) if everything or key.holds(now)]
    if as_json:
        print_json(found)
    elif not found:
        click.echo("no key is in force; `memctl keys add NAME` makes one", err=True)
    else:
        print_lines(*(f"{key.id}  {key.name}: {_description(key)}" for key in found))
    if not found:
        raise click.exceptions.Exit(3)


@keys.command("revoke")
@click.argument("key")
@in_json
def revoke(key: str, as_json: bool) -> None:
    """Put a KEY (its id or its name) out of force, for good. The API refuses it within two seconds.

    \b
    memctl keys revoke dana
    """
    from memctl.api.write import keys as api_keys

    only_a_person("revokes keys")
    gone = api_keys.revoke(load_settings(), key)
    print_outcome(gone, as_json, f"key {gone.id} ({gone.name}) is revoked")


def _warnings(key: Key, in_force: Sequence[Key]) -> Iterator[str]:
    """What a key that was just made may not be meant to be."""
    if paths := [each for each in key.projects or () if each.startswith(("/", "member:"))]:
        yield (
            f"{', '.join(paths)} is a path, which on another member's machine is another project: name the git remote"
            " instead (--project github.com/owner/name), also where memory does not know it yet"
        )
    if same := [each.id for each in in_force if each.name == key.name and each.id != key.id]:
        yield f"{', '.join(same)} in force is called so, too: once this one is in use, `memctl keys revoke {same[0]}`"


def _description(key: Key) -> str:
    parts = [", ".join(key.scopes)]
    if key.projects is not None:
        parts.append(f"for {', '.join(key.projects)}")
    if key.revoked_at is not None:
        parts.append(f"revoked {key.revoked_at:%Y-%m-%d}")
    elif key.expires_at is not None:
        parts.append(f"until {key.expires_at:%Y-%m-%d %H:%M}")
    return "; ".join(parts)


_SPAN = patterns.compile(r"(\d{1,4})([hdw])")


def _until(text: str) -> datetime:
    now = datetime.now(UTC)
    if found := _SPAN.fullmatch(text):
        return now + timedelta(**{_UNITS[found[2]]: int(found[1])})
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither a day nor a time from now", param_hint="--expires") from None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    if at <= now:
        raise click.BadParameter(f"{text} has passed", param_hint="--expires")
    return at
