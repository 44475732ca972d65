"""`memctl ingest`: transcripts and folders of them, or one hook payload on stdin."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from memctl.api.ingest import Account
    from memctl.infra.spool import Delivery

_XDG: bool = sys.platform == "linux"

EXAMPLE = Path(__file__).parents[1] / "infra" / "example" / "session.jsonl"


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--stdin", "from_stdin", is_flag=True, help="Take one hook payload from standard input; always exits 0.")
@click.option("--agent", default="claude-code", show_default=True, help="The client whose hook payload it is.")
@click.option("--event", default="", help="The hook that ran, where the payload does not say.")
@click.option("--follow", is_flag=True, help="Go on as the files grow, until interrupted.")
@click.option("--again", is_flag=True, help="Read files from their start, also where they were read before.")
@click.option("--example", is_flag=True, help="Read the example session that comes with memctl.")
@click.option("--wait", is_flag=True, help="Wait until what was read can be searched.")
@click.option("--json", "as_json", is_flag=True, help="Print the account as JSON.")
def ingest(
    paths: tuple[Path, ...],
    from_stdin: bool,
    agent: str,
    event: str,
    follow: bool,
    again: bool,
    example: bool,
    wait: bool,
    as_json: bool,
) -> None:
    """Read transcripts (files or folders) of Claude Code, Codex and Copilot CLI into the log.

    Without PATHS, the folders where these clients keep theirs (exit 3 if there are none). What was read before is
    not read again, and a line that was told before is a duplicate: running this twice adds nothing. The account at
    the end tells every line.
    """
    if from_stdin:
        if paths or follow:
            raise click.UsageError("--stdin takes one hook payload, and no PATHS or --follow")
        _deliver(agent, event)
        return
    from memctl.api.commands import Intake
    from memctl.api.ingest import Account
    from memctl.api.ingest import follow as follow_files
    from memctl.infra.settings import load_settings
    from memctl.infra.transcripts.files import default_sources, discover

    for path in paths:
        try:
            path.expanduser().stat()
        except OSError as problem:
            raise click.UsageError(f"{path}: {problem.strerror}") from None
        if not os.access(path.expanduser(), os.R_OK):
            raise click.UsageError(f"{path} may not be read")
    sources = [EXAMPLE] if example else list(paths) or default_sources()
    files = list(discover(sources))
    strangers = [path for path in paths if path.is_file() and path not in files]
    for path in strangers:
        click.echo(f"{path} is no transcript that memctl knows: passed over", err=True)
    if not files and not follow:
        click.echo("no sessions of Claude Code, Codex or Copilot CLI found: name a file or folder", err=True)
        raise click.exceptions.Exit(3)
    account = Account()
    with Intake(load_settings()) as intake:
        try:
            _with_progress(intake, files, again, account)
            if wait:
                _wait(intake)
            if follow:
                signal.signal(signal.SIGTERM, signal.default_int_handler)  # a supervisor's way to say Ctrl-C
                click.echo("following; Ctrl-C ends it", err=True)
                follow_files(intake, sources, account, lambda a: click.echo(f"{a.new} new events", err=True))
        except KeyboardInterrupt:
            if not follow:
                raise
    if as_json:
        import json

        click.echo(json.dumps(account.as_json(), indent=2, ensure_ascii=False))
    else:
        _print(account)


def _wait(intake: Any) -> None:
    from rich.console import Console

    from memctl.api.progress import caught_up

    console = Console(stderr=True)
    with console.status("folding") as shown:
        for waiting in caught_up(intake.connection):
            shown.update(f"folding: {waiting.events} positions and {waiting.points} points to go")


def _with_progress(intake: Any, files: list[Path], again: bool, account: Account) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from memctl.api.ingest import ingest as ingest_files

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(),
               TimeRemainingColumn())  # fmt: skip
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("reading", total=sum(map(_size, files)))
        ingest_files(intake, files, again=again, account=account, progress=lambda path, size: bar.advance(task, size))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # it went away; the account will say so
        return 0


def _print(account: Account) -> None:
    rate = account.read_bytes / 1e6 / account.seconds if account.seconds else 0.0
    unchanged = f" ({account.unchanged} unchanged)" if account.unchanged else ""
    click.echo(f"{account.files} files{unchanged}, {account.lines} lines, {account.read_bytes / 1e6:.1f} MB"
               f" in {account.seconds:.1f} s ({rate:.1f} MB/s)")  # fmt: skip
    click.echo(f"events: {account.new} new, {account.duplicate} duplicate, {account.variant} variant")
    for name, number in account.types.most_common():
        click.echo(f"  {number:>8}  {name}")
    if account.redacted:
        click.echo("redacted: " + ", ".join(f"{n} {kind}" for kind, n in account.redacted.most_common()))
    ignored = sum(account.ignored.values())
    click.echo(f"lines: {account.with_events} with events, {ignored} ignored, {account.blank} blank,"
               f" {account.incomplete} incomplete, {len(account.bad)} bad")  # fmt: skip
    for name, number in account.ignored.most_common():
        click.echo(f"  {number:>8}  ignored  {name}")
    for line in account.bad:
        click.echo(f"  bad  {line.file}:{line.line}  {line.why}")


def _deliver(agent: str, event: str) -> None:
    """Hand one hook payload to the door, or to the spool. Never fails, never prints: an agent is waiting.

    Settings are not loaded here: that costs more than the delivery, and a mistake in one of them, or in the
    `.memctl.toml` of somebody's checkout, would lose what was said.
    """
    import time

    from memctl.infra.spool import MAX_PAYLOAD, Delivery, spool

    try:
        payload = sys.stdin.buffer.read(MAX_PAYLOAD + 1)
        delivery = Delivery(os.urandom(16).hex(), time.time_ns() // 1000, agent, event, payload)
        user = _user_file()
        data_dir = _data_dir(user)
        if len(payload) > MAX_PAYLOAD or not _through_door(delivery, _door_socket(data_dir, user)):
            spool(data_dir / "spool", delivery)
    except Exception:  # noqa: S110 - a hook must never disturb the agent; `memctl status` shows what waits
        pass


def _through_door(delivery: Delivery, door: Path) -> bool:
    """Whether the door has it: only then is there nothing left to do."""
    import json
    import socket

    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(5.0)
            client.connect(str(door))
            client.sendall(delivery.encode())
            with client.makefile("rb") as answers:
                return json.loads(answers.readline() or b"{}").get("ok") is True
    except Exception:  # whatever kept it out, the spool takes it
        return False


def _data_dir(user: dict[str, Any]) -> Path:
    if named := _named("data_dir", user):
        return named
    if _XDG:
        return _home_of("XDG_DATA_HOME", "~/.local/share") / "memctl"
    from memctl.infra.settings import default_data_dir

    return default_data_dir()


def _door_socket(data_dir: Path, user: dict[str, Any]) -> Path:
    """Where the door listens, as far as anyone said. A file left behind by an instance that is gone costs nothing:
    nobody answers there."""
    import json

    if named := _named("door_socket", user):
        return named
    run = data_dir / "run"
    try:
        return Path(json.loads((run / "endpoints.json").read_bytes())["door_socket"])
    except (OSError, ValueError, KeyError, TypeError):
        return run / "sockets" / "door.sock"


def _named(name: str, user: dict[str, Any]) -> Path | None:
    """A path that the environment or else the user's `config.toml` names."""
    value = os.environ.get(f"MEMCTL_{name.upper()}") or user.get(name)
    return Path(os.path.abspath(os.path.expanduser(value))) if value and isinstance(value, str) else None


def _user_file() -> dict[str, Any]:
    """What the user's own configuration says; nothing where it cannot be read."""
    if _XDG:
        file = _home_of("XDG_CONFIG_HOME", "~/.config") / "memctl" / "config.toml"
    else:
        from memctl.infra.settings import user_file

        file = user_file()
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return {}
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}


def _home_of(variable: str, otherwise: str) -> Path:
    """A base folder of the XDG specification; platformdirs says the same and takes longer to import than all this."""
    named = os.environ.get(variable, "")
    return Path(named if os.path.isabs(named) else os.path.expanduser(otherwise))
