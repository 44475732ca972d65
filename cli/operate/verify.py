"""`memctl verify` and `memctl doctor`: what is stored, and what it is stored with."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memctl.api.checks.check import Check, attempted, check, skipped
from memctl.api.checks.check import as_json as checks_json
from memctl.cli.operate.replay import watched
from memctl.cli.output import line, print_json, print_lines, progress_bar, safe
from memctl.cli.pages import in_json
from memctl.domain.support.wording import number
from memctl.infra.settings import load_settings

if TYPE_CHECKING:
    from memctl.api.checks.verify import Progress, Verification
    from memctl.infra.settings_model import Settings

_MARKS = {"ok": ("ok", "green"), "gap": ("GAP", "red"), "skipped": ("--", "yellow")}

WIDTH = 80


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path, exists=True))
@click.option("--repair", is_flag=True, help="Have vectors that drifted written again, and look once more.")
@click.option("--replay", "rebuilt", is_flag=True, help="Also rebuild every read model beside, and compare the rows.")
@in_json
@click.pass_context
def verify(context: click.Context, paths: tuple[Path, ...], repair: bool, rebuilt: bool, as_json: bool) -> None:
    """Prove that nothing that was recorded is missing; exit code 1 where anything is.

    The log's hashes, ids and positions, the offsets of those who read it, every vector, the spool, and every line of
    every transcript that was read. With PATHS (files or folders), each of their lines has to be in the log. Changes
    nothing without --repair, and may run beside everything else.

    \b
    memctl verify
    memctl verify ~/old-sessions --repair
    """
    from memctl.api.checks.verify import Verification, for_its_log

    settings = load_settings()
    if settings.database_url is not None:
        settings = for_its_log(settings)
    if rebuilt and settings.database_url is not None:
        watched(settings)
    began = time.monotonic()
    with progress_bar() as progress:
        verification = Verification(settings, paths, repair, progress)
        found = list(_shown(_all(verification, settings, rebuilt, progress), quiet=as_json))
    gaps = sum(one.result == "gap" for one in found)
    if as_json:
        answer = {"ok": not gaps, "events": verification.events, "seconds": round(time.monotonic() - began, 3)}
        print_json({**answer, "checks": checks_json(found)})
    else:
        what = f"{verification.events:,} events, "
        sound = "nothing missing" if rebuilt else "nothing missing from the log, read models sampled (--replay: all)"
        _conclude(what + (sound if not gaps else number(gaps, "gap")), time.monotonic() - began)
    if gaps:
        context.exit(1)


@click.command()
@in_json
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> None:
    """Look at the installation: folders, servers, settings, schema, clocks; exit code 1 where something is to be done.

    Works whether memctl runs or not. `memctl verify` looks at what is stored.

    \b
    memctl doctor
    """
    from memctl.api.checks.doctor import examine

    began = time.monotonic()
    found = list(_shown(examine(), quiet=as_json))
    gaps = sum(one.result == "gap" for one in found)
    if as_json:
        print_json({"ok": not gaps, "checks": checks_json(found)})
    else:
        _conclude("nothing to be done" if not gaps else f"{gaps} to be done", time.monotonic() - began)
    if gaps:
        context.exit(1)


def _all(verification: Verification, settings: Settings, rebuilt: bool, progress: Progress) -> Iterator[Check]:
    yield from verification.checks()
    if rebuilt:
        yield from attempted("read models", lambda: _rebuilt(settings, progress))
    else:
        yield skipped("read models", "rebuilt", "not run; --replay folds all of them again and compares")


def _rebuilt(settings: Settings, progress: Progress) -> Iterator[Check]:
    """Every read model, live and rebuilt from the log at one position."""
    from memctl.workers.rebuild.replay import replay, vector_store

    with vector_store(settings) as client:
        result = replay(settings.require("database_url"), client, verify=True, switch=False, progress=progress)
    if result.outdated:
        yield skipped("read models", "rebuilt", "the live rows were folded by other rules: nothing to compare")
    for one in result.compared:
        yield check(
            "read models", one.name, f"{one.rows:,} rows, {one.digest_live[:12]}",
            () if one.equal else (one.differing or ("the digests differ",)),
            advice="run `memctl replay --all`, and report this: it should not happen", rows=one.rows,
        )  # fmt: skip


def _shown(checks: Iterable[Check], *, quiet: bool) -> Iterator[Check]:
    """Print each check as it comes."""
    part = None
    for one in checks:
        if not quiet:
            if one.part != part:
                click.secho(safe(one.part), bold=True)
                part = one.part
            _print(one)
        yield one


def _print(one: Check) -> None:
    mark, colour = _MARKS[one.result]
    first, *rest = _wrapped(one.counted, 25) or [""]
    click.echo(f"  {click.style(f'{mark:<3}', fg=colour)}  {line(one.name):<16}  {first}".rstrip())
    for each in rest:
        click.echo(" " * 25 + each)
    for found in one.found:
        print_lines(f"       {found}")  # whole: it holds paths and ids
    if one.more:
        click.echo(f"       and {one.more:,} more")
    for at, each in enumerate(_wrapped(one.advice, 9)):
        click.echo(f"       {'  ' if at else '→ '}{each}")


def _wrapped(text: str, indent: int) -> list[str]:
    return textwrap.wrap(safe(text), WIDTH - indent, break_long_words=False, break_on_hyphens=False)


def _conclude(what: str, seconds: float) -> None:
    click.echo(f"\n{what} ({seconds:.1f} s)")
