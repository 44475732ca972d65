"""`memctl replay`: read models rebuilt from the log, compared, and switched."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from memctl.workers.replay import Replayed


@click.command()
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every read model, and the vectors.")
@click.option("--verify", is_flag=True, help="Compare digests at one position; exit 1 and name the rows that differ.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
def replay(names: tuple[str, ...], everything: bool, verify: bool, as_json: bool) -> None:
    """Rebuild read models from the log beside the live ones, then switch to them.

    NAMES are read models; the stage they belong to is rebuilt whole, and everything after it. Ingest, queries and
    workers go on meanwhile. The rows that were live before are kept until the next replay.
    """
    if bool(names) == everything:
        raise click.UsageError("name read models or say --all, one of the two")
    from memctl.infra.embedders import load_embedder
    from memctl.infra.settings import load_settings
    from memctl.infra.vectors import store
    from memctl.workers.replay import replay as run
    from memctl.workers.replay import stages_of

    settings = load_settings()
    first = stages_of(names)
    embedder = load_embedder(settings.embedder)
    client = store.connect(settings.require("qdrant_url"), settings.qdrant_api_key)
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"),
               TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        tasks: dict[str, int] = {}

        def progress(what: str, done: int, of: int) -> None:
            task = tasks.get(what)
            if task is None:
                task = tasks[what] = bar.add_task(what, total=of, rate="")
            speed = bar.tasks[task].speed
            bar.update(bar.tasks[task].id, completed=done, total=of, rate=f"{speed:,.0f}/s" if speed else "")

        rebuild = partial(
            run,
            settings.require("database_url"),
            client,
            first_stage=first,
            model=embedder.name if embedder else "",
            dimensions=embedder.dimensions if embedder else 384,
            verify=verify,
            progress=progress,
        )
        result = rebuild()
        if verify and result.outdated:
            click.echo(
                "the live rows had been folded by other rules and were replaced; comparing the new ones", err=True
            )
            result = rebuild()
    client.close()
    _print_json(result) if as_json else _print(result, verify)
    if not result.equal:
        raise click.exceptions.Exit(1)


def _print(result: Replayed, verified: bool) -> None:
    rate = f" ({result.events / result.seconds:,.0f} events/s)" if result.events and result.seconds else ""
    read = f"{result.events} events into {result.facts} facts" if result.events else f"{result.facts} facts"
    click.echo(f"replayed {read} up to position {result.position} in {result.seconds:.1f} s{rate}", err=verified)
    if result.compared:
        click.echo(f"{'':<20} {'':>8}       {'live':<12}  {'rebuilt':<12}")
    for c in result.compared:
        verdict = "equal" if c.equal else "DIFFERS"
        waiting = f", {c.without_dense} without dense" if c.without_dense else ""
        click.echo(f"{c.name:<20} {c.rows:>8} rows  {c.digest_live[:12]}  {c.digest_rebuilt[:12]}  {verdict}{waiting}")
        for key in c.differing:
            click.echo(f"    {key}")
    if not result.equal:
        click.echo("the rebuilt rows are live now; the former ones are kept until the next replay", err=True)


def _print_json(result: Replayed) -> None:
    import json

    import msgspec

    read_models = {c.name: msgspec.to_builtins(c) for c in result.compared}
    shown = {
        "position": result.position,
        "events": result.events,
        "facts": result.facts,
        "seconds": round(result.seconds, 3),
        "equal": result.equal if result.compared else None,
        "read_models": read_models,
    }
    click.echo(json.dumps(shown, indent=2))
