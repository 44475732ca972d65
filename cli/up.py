"""`memctl up`, `down`, `status`: everything of the one-machine default, started, stopped and inspected."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from memctl.domain.errors import MemctlError

if TYPE_CHECKING:
    from memctl.api.dead_letters import Standing
    from memctl.infra.embedded.instance import Status
    from memctl.infra.settings import Settings

_data_dir = click.option(
    "--data-dir", type=click.Path(path_type=Path, file_okay=False), help="Data directory [env: MEMCTL_DATA_DIR]."
)


@click.command()
@_data_dir
def up(data_dir: Path | None) -> None:
    """Start everything: database, queue, vector server, ingest door, API and worker.

    Creates what is missing on the first run, and starts nothing twice. A server that your settings name
    (MEMCTL_DATABASE_URL, MEMCTL_REDIS_URL, MEMCTL_QDRANT_URL) is used instead of one of memctl's own.
    """
    from memctl.infra.embedded import instance
    from memctl.infra.settings import load_settings

    settings = load_settings(data_dir=data_dir)
    started = instance.up(settings, tell=_tell)
    _tell("memctl is running" if started else "memctl is already running")
    if api_url := load_settings(data_dir=data_dir).api_url:
        _tell(f"API: {api_url}")


@click.command()
@_data_dir
def down(data_dir: Path | None) -> None:
    """Stop everything that `memctl up` started, and wait until it is gone. What is stored stays."""
    from memctl.infra.embedded import instance
    from memctl.infra.settings import load_settings

    stopped = instance.down(load_settings(data_dir=data_dir), tell=_tell)
    _tell("memctl is stopped" if stopped else "memctl was not running")


@click.command()
@_data_dir
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def status(context: click.Context, data_dir: Path | None, as_json: bool) -> None:
    """Show what runs, since when and with how much memory; exit code 1 where something needs a person.

    That is a program that should run and does not, dead letters, a shard that stands still, a writer that others wait
    for, and what was damaged or refused.
    """
    from memctl.infra.embedded import instance
    from memctl.infra.settings import load_settings

    settings = load_settings(data_dir=data_dir)
    found = instance.status(settings)
    standing = _standing(settings) if found.running or settings.configured("database_url") else None
    if as_json:
        _print_json(found, standing)
    else:
        _print_table(found, standing)
    if not found.well or _needs_a_person(found, standing):
        context.exit(1)


def _needs_a_person(found: Status, standing: Standing | None) -> bool:
    waits = standing is not None and (standing.letters or standing.halted or standing.writers)
    return bool(waits or found.aside or found.refused)


def _standing(settings: Settings) -> Standing | None:
    """What does not go on; None where the database cannot be asked now, which is told elsewhere."""
    from memctl.api.dead_letters import standing
    from memctl.api.reader import reader_of
    from memctl.infra.database import connect, outages

    try:
        with outages(), connect(settings.require("database_url"), name="memctl status") as connection:
            return standing(reader_of(connection, settings.space))
    except MemctlError:
        return None


def _print_json(found: Status, standing: Standing | None) -> None:
    import json

    import msgspec

    programs = [
        {
            "name": program.name,
            "state": program.state,
            "well": program.well,
            "pid": program.pid,
            "uptime_s": program.uptime,
            "memory_bytes": program.memory,
        }
        for program in found.programs
    ]
    answer = {
        "running": found.running,
        "well": found.well,
        "data_dir": str(found.places.data),
        "programs": programs,
        "set_aside": list(found.aside),
        "refused_deliveries": found.refused,
        "dead_letters": None if standing is None else len(standing.letters),
        "halted": None if standing is None else [msgspec.to_builtins(halt) for halt in standing.halted],
        "slow_writers": None if standing is None else [msgspec.to_builtins(writer) for writer in standing.writers],
        "needs_a_person": not found.well or _needs_a_person(found, standing),
        "endpoints": {name: public(value) for name, value in found.endpoints.items() if not _secret(name)},
    }
    click.echo(json.dumps(answer, indent=2, ensure_ascii=False))


def _print_table(found: Status, standing: Standing | None) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for heading in ("program", "state"):
        table.add_column(heading)
    for heading in ("pid", "up", "memory"):
        table.add_column(heading, justify="right")
    for program in found.programs:
        colour = "green" if program.well else "red"
        table.add_row(
            program.name,
            f"[{colour}]{program.state.lower()}[/{colour}]",
            str(program.pid or ""),
            _ago(program.uptime),
            "" if program.memory is None else f"{program.memory / 1e6:.0f} MB",
        )
    console.print(table)
    console.print(f"\ndata directory: {escape(str(found.places.data))}")
    for name, value in sorted(found.endpoints.items()):
        if not _secret(name):
            console.print(f"{name}: {escape(public(value))}")
    for path in found.aside:
        _tell(f"damaged, and set aside for you to look at: {found.places.data / path}")
    if found.refused:
        _tell(f"the spool had no room for {found.refused} deliveries of hooks; `memctl verify` says what to do")
    if standing is not None and standing.letters:
        waiting = sum(letter.waiting for letter in standing.letters)
        _tell(f"dead letters: {len(standing.letters)}, with {waiting} waiting behind them; see: memctl dlq list")
    for halt in standing.halted if standing is not None else ():
        _tell(f"stage {halt.stage} shard {halt.shard} stands still at position {halt.position}: {halt.message}")
    for writer in standing.writers if standing is not None else ():
        _tell(
            f"nothing new is read until {writer.application or 'a client'} (process {writer.pid} of Postgres,"
            f" {writer.state or 'connected'} for {writer.seconds:.0f} s) ends its transaction; see: memctl doctor"
        )
    if not found.running:
        _tell("memctl is not running; start it with: memctl up")
    elif not found.well:
        failing = ", ".join(program.name for program in found.programs if not program.well)
        _tell(f"not well: {failing}; logs are in {found.places.log}; after mending, run: memctl up")


def public(url: str) -> str:
    """A URL without its password; `memctl config` has it."""
    parts = urlsplit(url)
    if not parts.password:
        return url
    return url.replace(f":{parts.password}@", ":***@", 1)


def _secret(name: str) -> bool:
    return name.endswith(("_token", "_key"))


def _ago(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _tell(line: str) -> None:
    click.echo(line, err=True)
