"""`memctl worker | serve | door | relay | mcp`: plain foreground processes; `init`, `config` beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memctl.cli.output import print_lines
from memctl.infra.settings import load_settings

if TYPE_CHECKING:
    from memctl.infra.settings import Settings


def _settings() -> Settings:
    from memctl.infra import logs

    settings = load_settings()
    logs.set_up(settings.log_level, settings.log_format)
    return settings


@click.command()
@click.option("--ready-file", type=click.Path(path_type=Path), help="Write the process id there once it works.")
def worker(ready_file: Path | None) -> None:
    """Fold events into read models and vectors (foreground; run as many as wanted).

    \b
    memctl worker
    """
    from memctl.workers.runtime.worker import run_worker

    run_worker(_settings(), ready_file)


@click.command()
def serve() -> None:
    """Answer queries over HTTP and a Unix socket (foreground).

    \b
    MEMCTL_API_URL=http://127.0.0.1:8760 MEMCTL_API_TOKEN=… memctl serve
    """
    from memctl.api.server.serve import run_api

    run_api(_settings())


@click.command()
def door() -> None:
    """Take hook deliveries over a Unix socket (foreground).

    \b
    memctl door
    """
    from memctl.api.write.door import run_door

    run_door(_settings())


@click.command()
def relay() -> None:
    """Take hooks on this machine for a team's memory elsewhere (foreground); no database is needed.

    MEMCTL_API_URL names the team's API, MEMCTL_API_TOKEN_FILE a file with your key (`memctl keys add`, scopes read and
    ingest) that only you may read. What hooks and transcripts send is redacted here, kept on this disk until the API
    has it, and sent once; what hooks ask is passed on. `memctl status` shows how it goes.

    \b
    MEMCTL_API_URL=https://memory.example memctl relay
    """
    from memctl.api.write.relay import run_relay

    run_relay(_settings())


@click.command()
@click.option("--http", is_flag=True, help="Serve over streamable HTTP at /mcp instead, with the API's token.")
@click.option(
    "--port", type=click.IntRange(1, 65535), default=8765, show_default=True, help="Of loopback, with --http."
)
def mcp(http: bool, port: int) -> None:
    """Answer an agent's questions over MCP, on standard input and output.

    `memctl install` registers it with a client. By hand, it is the command `memctl mcp`, started in the project's
    folder.

    \b
    memctl mcp                     # what an agent's settings name
    memctl mcp --http --port 8765
    """
    from memctl.api.client import Client
    from memctl.api.mcp import serve_http, serve_stdio, server

    if http:
        serve_http(_settings(), port)
    else:
        serve_stdio(server(lambda: Client.of(load_settings())))


@click.command()
def init() -> None:
    """Bring the schema of the database up to this version; harmless to repeat.

    For servers of your own (MEMCTL_DATABASE_URL). `memctl up` does this by itself.

    \b
    MEMCTL_DATABASE_URL=postgresql://memctl@db.example/memctl memctl init
    """
    from memctl.workers.runtime.worker import prepared

    revision, live = prepared(_settings())
    click.echo(f"schema {revision}, generations {live.stage1} and {live.stage2}", err=True)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with secrets in it, for scripts.")
def config(as_json: bool) -> None:
    """Show the settings in force, and where each came from.

    \b
    memctl config
    memctl config --json
    """

    settings = _settings()
    values = settings.model_dump(mode="json")
    if as_json:
        click.echo(json.dumps(values, indent=2))
        return
    width = max(map(len, values))
    for name, value in values.items():
        shown = "(hidden; --json shows it)" if value and _secret(name, value) else value
        print_lines(f"{name:<{width}}  {shown if shown is not None else '-'}  [{settings.origin(name)}]")


def _secret(name: str, value: object) -> bool:
    if isinstance(value, dict):
        return any(_secret(inner, each) for inner, each in value.items())
    return name.endswith(("_token", "_key")) or (isinstance(value, str) and "://" in value and "@" in value)
