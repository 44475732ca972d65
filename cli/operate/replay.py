"""`memctl replay`: read models rebuilt from the log, compared, and switched; or as they were in the past."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import msgspec

from memctl.cli.output import print_json, print_lines, progress_bar, when
from memctl.domain.events.event import Position
from memctl.domain.support.wording import span
from memctl.infra.settings import load_settings
from memctl.projections.kernel import projections

if TYPE_CHECKING:
    from memctl.infra.settings import Settings
    from memctl.workers.rebuild.replay import Replayed


@click.command()
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every read model, and the vectors.")
@click.option("--verify", is_flag=True, help="Compare digests at one position; exit 1 and name the rows that differ.")
@click.option("--keep-live", is_flag=True, help="Do not switch: drop what was rebuilt once it has been compared.")
@click.option(
    "--to",
    "moment",
    metavar="WHEN",
    help="As it was at a position, or a time (UTC where no zone is given); dropped afterwards.",
)
@click.option("--rows", is_flag=True, help="With --to: print the rows, one JSON object a line.")
@click.option("--shards", type=click.IntRange(1, 256), help="Fold by this many shards from now on.")
@click.option("--processes", type=click.IntRange(1, 64), help="How many build it; one for each processor unless said.")
@click.option("--rollback", is_flag=True, help="Switch back to the read models that were live before the last replay.")
@click.option("--status", is_flag=True, help="How far replays are, or how they ended.")
@click.option("--profile", is_flag=True, help="Print the processor time of each phase, and what share is serial.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def replay(
    names: tuple[str, ...],
    everything: bool,
    verify: bool,
    keep_live: bool,
    moment: str | None,
    rows: bool,
    shards: int | None,
    processes: int | None,
    rollback: bool,
    status: bool,
    profile: bool,
    as_json: bool,
) -> None:
    """Rebuild read models from the log beside the live ones, then switch to them.

    NAMES are read models; the stage they belong to is rebuilt whole, and everything after it. Ingest, queries and
    workers go on meanwhile. A replay that was stopped goes on where it was when it is started again. The rows that
    were live before are kept until the next replay: --rollback switches back to them.

    \b
    memctl replay --all --verify   # prove that what is live can be rebuilt
    memctl replay bug_patterns
    memctl replay --all --shards 4
    memctl replay tasks --to 2026-03-02T09:00 --rows
    """

    settings = load_settings()
    if status or rollback:
        if any((names, everything, verify, keep_live, moment, rows, shards, profile, status and rollback)):
            raise click.UsageError("--status and --rollback stand alone")
        _status(settings, as_json) if status else _roll_back(settings, as_json)
        return
    if bool(names) == everything:
        raise click.UsageError("name read models or say --all, one of the two")
    if moment is not None:
        if verify or keep_live or shards or profile:
            raise click.UsageError("--to shows the past and switches to nothing: it goes without --verify and --shards")
        _as_of(settings, moment, names, processes, rows=rows, as_json=as_json)
        return
    if rows:
        raise click.UsageError("--rows goes with --to; for live rows see `memctl history`, `show` and their like")
    _replay(settings, names, verify or keep_live, keep_live, shards, processes, profile, as_json)


def _replay(
    settings: Settings,
    names: tuple[str, ...],
    verify: bool,
    keep_live: bool,
    shards: int | None,
    processes: int | None,
    profile: bool,
    as_json: bool,
) -> None:
    from memctl.workers.rebuild import replay as rebuilding
    from memctl.workers.rebuild.replay import stages_of, vector_store

    first = stages_of(names)
    watched(settings)
    with vector_store(settings) as qdrant, progress_bar() as progress:
        rebuild = partial(
            rebuilding.replay,
            settings.require("database_url"),
            qdrant,
            first_stage=first,
            shards=shards,
            verify=verify,
            switch=not keep_live,
            processes=processes,
            progress=progress,
        )
        result = rebuild()
        if verify and result.outdated and not keep_live:
            click.echo(
                "the live rows had been folded by other rules and were replaced; comparing the new ones", err=True
            )
            result = rebuild()
    _print_json(result, profile) if as_json else _print(result, verify)
    if profile and not as_json:
        _print_profile(result)
    if keep_live and result.outdated:
        click.echo("the live rows were folded by other rules: there is nothing to compare", err=True)
        raise click.exceptions.Exit(1)
    if not result.equal:
        if not as_json and not keep_live:
            click.echo("the rebuilt rows are live now; --rollback switches back to the former ones", err=True)
        raise click.exceptions.Exit(1)


def watched(settings: Settings) -> None:
    """Have the folds that follow watched, unless others share this process: one that makes no progress ends them."""
    from memctl.workers.rebuild import stuck

    if click.get_current_context().find_root().obj is not None:
        stuck.watched(settings.require("database_url"))


def _roll_back(settings: Settings, as_json: bool) -> None:
    from memctl.workers.rebuild.replay import rollback, vector_store

    with vector_store(settings) as qdrant:
        result = rollback(settings.require("database_url"), qdrant)
    if as_json:
        _print_json(result, False)
    else:
        click.echo(f"the former read models are live again, at position {result.position}; --rollback takes it back")


def _status(settings: Settings, as_json: bool) -> None:
    from memctl.workers.rebuild.replay import latest

    found = latest(settings.require("database_url"), 10)
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("no replay yet")
    for p in found:
        share = f"{p.done:,} of {p.total:,} {p.phase}" if p.total else "beginning"
        rate = f" at {p.per_second:,.0f}/s" if p.per_second else ""
        left = f", about {span(p.seconds_left)} left" if p.seconds_left is not None and p.status == "running" else ""
        how = f"{share}{rate}{left}" if p.status in ("running", "stopped") else f"{p.message}".strip()
        took = span((p.ended_at - p.started_at).total_seconds()) if p.ended_at else ""
        said = " ".join(part for part in (p.status, f"after {took}" if took else "", how) if part)
        click.echo(f"{p.rebuild:>4}  {when(p.started_at.isoformat()):<15}  {p.purpose:<8} to position {p.upto}: {said}")
        if p.status == "stopped":
            click.echo("      the next replay goes on with it")


def _as_of(
    settings: Settings, moment: str, names: tuple[str, ...], processes: int | None, *, rows: bool, as_json: bool
) -> None:
    from memctl.workers.rebuild.as_of import past

    # Whatever is longer lies beyond the log, and so does its beginning.
    at = Position(int(moment[:19])) if moment.isascii() and moment.isdigit() else _time(moment)
    url = settings.require("database_url")
    watched(settings)
    with (
        progress_bar() as progress,
        past(url, at, names or None, processes=processes, progress=progress) as then,
    ):
        shown: dict[str, Any] = {}
        for p in projections():
            if names and p.name not in names:
                continue
            if rows:
                _print_rows(p.name, then.rows(p))
                continue
            found = then.digest(p)
            shown[p.name] = {"rows": found.rows, "digest": found.hex}
    if as_json and not rows:
        print_json({"position": then.position, "read_models": shown})
    elif not rows:
        click.echo(f"as of position {then.position}:")
        for name, model in shown.items():
            click.echo(f"{name:<20} {model['rows']:>8} rows  {model['digest'][:12]}")


def _print_rows(name: str, rows: Iterator[tuple[str, bytes]]) -> None:
    for key, row in rows:
        print_json({"read_model": name, "key": key, "row": msgspec.json.decode(row)}, indent=None)


def _time(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither a position nor a time; times look like 2026-03-01 or 2026-03-01T14:30+01:00",
            param_hint="--to",
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _print(result: Replayed, verified: bool) -> None:
    rate = f" ({result.events / result.seconds:,.0f} events/s)" if result.events and result.seconds else ""
    read = f"{result.events} events into {result.facts} facts" if result.events else f"{result.facts} facts"
    click.echo(f"replayed {read} up to position {result.position} in {result.seconds:.1f} s{rate}", err=verified)
    if result.without_dense:
        message = f"{result.without_dense} points wait for a meaning vector: it is made in the background"
        click.echo(message, err=True)
    if result.compared:
        click.echo(f"{'':<20} {'':>8}       {'live':<12}  {'rebuilt':<12}")
    for c in result.compared:
        verdict = "equal" if c.equal else "DIFFERS"
        waiting = f", {c.without_dense} without dense" if c.without_dense else ""
        click.echo(f"{c.name:<20} {c.rows:>8} rows  {c.digest_live[:12]}  {c.digest_rebuilt[:12]}  {verdict}{waiting}")
        for key in c.differing:
            print_lines(f"    {key}")


def _print_profile(result: Replayed) -> None:
    found = result.profile
    for each in found.phases:
        how = "one process" if each.serial else f"{each.pieces} tasks, the longest {each.longest_s:.2f} s"
        click.echo(f"{each.name:<24} {each.cpu_s:>8.2f} s of processor time, {how}")
    click.echo(f"{'in all':<24} {found.cpu_s:>8.2f} s, serial share {found.serial_share:.3f}")


def _print_json(result: Replayed, profile: bool) -> None:
    print_json(
        {
            "position": result.position,
            "events": result.events,
            "facts": result.facts,
            "seconds": round(result.seconds, 3),
            "without_dense": result.without_dense,
            "equal": result.equal if result.compared else None,
            "read_models": {c.name: msgspec.to_builtins(c) for c in result.compared},
            **({"profile": msgspec.to_builtins(result.profile)} if profile else {}),
        }
    )
