"""`memctl status`: how everything is."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import click
import msgspec
from msgspec import structs

from memctl.api.reading.caller import OWNER
from memctl.api.reading.views import Json
from memctl.cli.operate.up import data_dir_option
from memctl.cli.output import Cell, Column, line, notice, print_json, table_lines, when
from memctl.cli.pages import in_json
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.wording import number, size, span
from memctl.infra.settings import load_settings

if TYPE_CHECKING:
    from memctl.api.checks.health import Health
    from memctl.infra.backup.copies import KeptBackups
    from memctl.infra.embedded.instance import InstanceStatus
    from memctl.infra.hooks.remote_progress import RelaySeen, RemoteState
    from memctl.infra.settings import Settings

T = TypeVar("T")

LABEL = 10
"""Columns of what a line is about."""

MOST_NAMED = 3
"""Things that a line names: it is to fit a terminal."""

_NO_RELAY = "no relay runs here; start it with: memctl relay"

OF_LATE = timedelta(days=1)
"""Errors in the logs are shown for this long."""


@dataclass(frozen=True)
class Installation:
    """One look at everything: the programs, the database (None where it does not answer), the relay that stands in
    their place on a machine without one, the disk, the logs.

    `free` bytes are left where memory lies, and it may take `most` (0: any).
    """

    status: InstanceStatus
    health: Health | None = None
    unanswered: str = ""
    """Why the database does not answer."""
    api: str = ""
    """That the API does not answer where settings name it, and what to do."""
    relay: RelaySeen | None = None
    spooled: int = 0
    errors: Sequence[tuple[datetime, str, str]] = ()
    free: int | None = None
    kept: KeptBackups | None = None
    most: int = 0


def look_at(settings: Settings) -> Installation:
    """How everything is now."""
    from memctl.api.checks.health import api_trouble, free_bytes
    from memctl.infra import logs
    from memctl.infra.backup import copies as backups
    from memctl.infra.beside import beside
    from memctl.infra.embedded import instance
    from memctl.infra.hooks import spool
    from memctl.infra.hooks.remote_progress import relay_seen

    health, api = beside(partial(_health, settings)), beside(partial(api_trouble, settings))
    found = instance.status(settings)
    asked: Health | str | None = None
    if found.running or settings.configured("database_url"):
        asked = _in_time(health)
    of_api = None
    if found.running or not settings.server:
        of_api = _in_time(api)
    return Installation(
        found,
        None if isinstance(asked, str) else asked,
        asked if isinstance(asked, str) else "",
        f"the API does not answer: {of_api}" if of_api and isinstance(of_api, str) else str(of_api or ""),
        None if found.running else relay_seen(found.folders, settings.server),
        len(spool.spooled(found.folders.spool)),
        logs.latest_errors(found.folders.log, datetime.now().astimezone() - OF_LATE, MOST_NAMED),
        free_bytes(found.folders.data),
        backups.kept(settings),
        settings.storage.max_mb * 1_000_000,
    )


@click.command()
@data_dir_option
@in_json
@click.pass_context
def status(context: click.Context, data_dir: Path | None, as_json: bool) -> None:
    """Show how everything is, at a glance; exit code 1 where something needs a person.

    "All is well" means that everything appended more than 30 s ago is folded, and nothing else needs a person: no
    program that should run and does not, no dead letter, no shard that stands still, no writer that others wait for, no
    server that does not answer (the API where settings name it, too), nothing that a relay keeps for long, no rows that
    a replay found to differ, nothing that was damaged or refused. Else it
    says what is not well, since when, at which event, and what to do. `memctl doctor` looks deeper.

    \b
    memctl status                 # for people
    memctl status --json          # for scripts
    memctl status >/dev/null || memctl status   # only where something is wrong
    """

    look = look_at(load_settings(data_dir=data_dir))
    troubles = troubles_of(look)
    if as_json:
        print_json(_as_json(look, bool(troubles)))
    else:
        for each in screen(look, troubles):
            click.echo(each)
        if not (look.status.running or look.status.elsewhere or look.relay):
            notice("memctl is not running; start it with: memctl up")
    if troubles:
        context.exit(1)


# --- what is seen ---


def troubles_of(look: Installation) -> list[str]:
    """What needs a person, in words, the worst first."""
    found, health = look.status, look.health
    problems: list[str] = []
    if health is None:  # which says so itself
        problems += [f"{each.name} does not run" for each in found.programs if found.running and not each.well]
    if (relay := look.relay) is not None:
        problems += _of_relay(relay)
    elif not (found.running or found.elsewhere):
        problems.append("memctl is not running")
    if health is None and (found.running or found.elsewhere or look.unanswered):
        problems.append("the database does not answer" + (f": {look.unanswered}" if look.unanswered else ""))
    if health is not None:
        problems += _of(health, needs=True)
    problems += [look.api] if look.api else []
    problems += [each for each in _room(look) if each not in problems]
    return problems


def _of(health: Health, *, needs: bool) -> list[str]:
    """What needs a person, or passes by itself, as everything else says it too."""
    from memctl.api.checks.health import troubles

    return [str(trouble) for trouble in troubles(health) if trouble.needs == needs]


def _of_relay(relay: RelaySeen) -> Iterator[str]:
    if not relay.running:
        yield _NO_RELAY
    elif relay.refused:
        yield relay.standing.why
    elif relay.late:
        waits = f"{number(relay.waiting, 'delivery waits', 'deliveries wait')} for {span(relay.waiting_s)}"
        why = relay.standing.why or "the relay's output says why; one older than its hooks has to be restarted"
        yield f"{waits} to be sent: {why}"


def _room(look: Installation) -> Iterator[str]:
    from memctl.api.checks.health import of_files, room

    yield from map(str, room(look.free, look.status.refused))
    yield from map(str, of_files(look.status.aside, look.kept is not None and look.kept.overdue(datetime.now(UTC))))
    taken = look.health.sizes["database"] if look.health is not None else 0
    taken += look.kept.size if look.kept is not None else 0
    if look.most and taken > look.most:
        yield (
            f"memory takes {size(taken)} of {size(look.most)} (storage.max_mb);"
            " `memctl prune --older-than 180 --dry-run` shows what would go and what it would cost"
        )


def screen(look: Installation, troubles: Sequence[str]) -> Iterator[str]:
    """Everything in a screenful: the verdict, the programs, what waits, what it takes."""
    waiting = _of(look.health, needs=False) if look.health is not None else []
    for said, found, color in (("needs you: ", troubles, "red"), ("not all is done: ", waiting, "yellow")):
        for row, each in enumerate(found):
            begins = " " * len(said) if row else said
            yield click.style(f"{begins}{line(each)}", fg=color, bold=not row)
    if not (troubles or waiting):
        yield click.style("all is well", fg="green", bold=True)
    yield ""
    if look.relay is None:
        yield from _programs(look)
        yield ""
    yield from (f"{click.style(f'{name:<{LABEL}}', dim=True)} {figure}" for name, figure in _figures(look))


def _programs(look: Installation) -> Iterator[str]:
    columns = [Column("program"), Column("state"), Column("pid", "right"), Column("up", "right"),
               Column("memory", "right")]  # fmt: skip
    rows: list[list[Cell | str]] = []
    for program in look.status.programs:
        rows.append([
            program.name,
            Cell(program.state.lower(), "green" if program.well else "red"),
            str(program.pid or ""),
            span(program.uptime),
            "" if program.memory is None else size(program.memory),
        ])  # fmt: skip
    total = sum(program.memory or 0 for program in look.status.programs)
    if total:
        rows.append([Cell("together", "dim"), "", "", "", size(total)])
    yield from table_lines(columns, rows)


def _figures(look: Installation) -> Iterator[tuple[str, str]]:
    if look.relay is not None and look.relay.standing.since:
        yield from _relay_figures(look.relay.standing)
    if look.health is not None:
        yield from _engine_figures(look.health)
    if taken := _disk(look):
        yield "disk", taken
    if look.kept is not None and look.relay is None:
        yield "backups", _backups(look.kept)
    yield "spool", f"{look.spooled:,} deliveries wait" if look.spooled else "empty"
    yield "data", line(str(look.status.folders.data))
    for name in ("api_url", "database_url", "redis_url", "qdrant_url"):
        if url := look.status.endpoints.get(name):
            yield name.removesuffix("_url"), line(public(str(url)))
    for at, program, what in look.errors:
        yield "error", f"{when(at.isoformat())} {program}: {line(what)}"


def _relay_figures(standing: RemoteState) -> Iterator[tuple[str, str]]:
    yield "relay", f"{standing.state} for {span(time.time() - standing.since)}; sent {standing.events:,} events"
    yield "api_url", line(public(standing.api_url))
    if standing.left_out:
        whose = "of projects that this machine's key is not for, or of sessions that others began"
        yield "left out", f"{standing.left_out:,} events {whose}"
    if standing.why:
        yield "why", line(standing.why)


def _engine_figures(health: Health) -> Iterator[tuple[str, str]]:
    """How far log, vectors, processors and a replay are."""
    behind = [f"stage {s.stage} shard {s.shard} is {s.lag:,} behind" for s in health.shards if s.lag]
    if health.mark < health.last_position:
        behind.insert(0, f"{health.last_position - health.mark:,} not readable yet, for {health.mark_age_s:.0f} s")
    yield "log", f"up to {health.last_position:,}; {'; '.join(behind[:MOST_NAMED]) or 'all read'}"
    vectors = [f"{health.to_write:,} to write"] if health.to_write else []
    if health.to_embed:
        left = f" (about {span(health.embedding_s)})" if health.embedding_s else ""
        vectors.append(f"{health.to_embed:,} found by their words only, until embedded{left}")
    yield "vectors", "; ".join(vectors) or "all written"
    if (made := health.filling) is not None:
        done = f"{made.points - made.waiting:,} of {made.points:,} embedded"
        yield "model to come", line(f"{made.model}: {done}; searches go by the one before until all are")
    for each in health.processors:
        if each.working or each.failed or each.given_up:
            counts = f"{each.working} at work, {each.failed} to be tried again, {each.given_up} given up"
            yield "processor", f"{each.processor}: {counts}"
    if (replay := health.replay) is not None:
        left = f", {span(replay.seconds_left)} left" if replay.seconds_left else ""
        yield "replay", f"{replay.phase}: {replay.done:,} of {replay.total:,}{left}"


def _disk(look: Installation) -> str:
    """What is taken, and what is free; empty where neither is known."""
    free = "" if look.free is None else f"{size(look.free)} free"
    sizes = None if look.health is None else look.health.sizes
    taken = "" if sizes is None else f"database {size(sizes['database'])}, log {size(sizes['log'])} of it"
    return "; ".join(part for part in (taken, free) if part)


def _backups(kept: KeptBackups) -> str:
    if kept.newest is None:
        return "none yet" if kept.every else "none, and none on schedule"
    age = span((datetime.now(UTC) - kept.newest).total_seconds())
    return f"{kept.files}, the last {age} ago, {size(kept.size)}"


# --- asking ---


def _health(settings: Settings) -> Health | str:
    """How all is; why that is not known where the database cannot be asked now."""

    from memctl.api.checks.health import health, servers
    from memctl.api.queries.stats import sizes
    from memctl.api.reading.reader import opened

    try:
        with opened(settings, OWNER, "memctl status") as reader:
            return structs.replace(health(reader, servers(settings)), sizes=sizes(reader))
    except MemctlError as problem:
        return " ".join(str(problem).split())


def _in_time(asked: Future[T]) -> T | str:
    """What was asked for; why that is not known where whoever is asked hangs."""
    from memctl.api.checks.health import ANSWERED_S

    try:
        return asked.result(ANSWERED_S)
    except TimeoutError:
        return f"not within {ANSWERED_S:.0f} s"


def _as_json(look: Installation, needs_a_person: bool) -> dict[str, Json]:
    found, health = look.status, look.health
    known = dict.fromkeys(_OF_HEALTH) if health is None else _health_as_json(health)
    relayed = look.relay is not None and look.relay.running
    return {
        "running": found.running or relayed,
        "well": (found.well or found.elsewhere or relayed) and not (known["troubles"] or look.api or needs_a_person),
        "api": look.api,
        "data_dir": str(found.folders.data),
        "relay": None
        if look.relay is None
        else {**msgspec.to_builtins(look.relay.standing), "running": look.relay.running, "waiting": look.relay.waiting},
        "programs": [
            {
                "name": program.name,
                "state": program.state,
                "well": program.well,
                "pid": program.pid,
                "uptime_s": program.uptime,
                "memory_bytes": program.memory,
            }
            for program in found.programs
        ],
        "set_aside": list(found.aside),
        "refused_deliveries": found.refused,
        "spooled_deliveries": look.spooled,
        **known,
        "backups": None if look.kept is None else _kept_as_json(look.kept),
        "free_bytes": look.free,
        "errors": [{"at": at.isoformat(), "program": program, "what": what} for at, program, what in look.errors],
        "needs_a_person": needs_a_person,
        "endpoints": {
            name: public(str(url)) for name, url in found.endpoints.items() if not name.endswith(("_token", "_key"))
        },
    }


_OF_HEALTH = ("dead_letters", "halted", "slow_writers", "log", "vectors", "processors", "replay", "bytes", "troubles")


def _health_as_json(health: Health) -> dict[str, Json]:
    """What only the database says."""

    from memctl.api.checks.health import troubles as all_troubles

    standing = health.standing
    return {
        "dead_letters": len(standing.letters),
        "halted": [msgspec.to_builtins(halt) for halt in standing.halted],
        "slow_writers": [msgspec.to_builtins(writer) for writer in standing.writers],
        "log": {
            "last_position": health.last_position,
            "mark": health.mark,
            "mark_age_s": health.mark_age_s,
            "lag": health.lag,
        },
        "vectors": _vectors_as_json(health),
        "processors": [msgspec.to_builtins(each) for each in health.processors],
        "replay": None if health.replay is None else msgspec.to_builtins(health.replay),
        "bytes": {**health.sizes},
        "troubles": [msgspec.to_builtins(each) for each in all_troubles(health)],
    }


def _vectors_as_json(health: Health) -> dict[str, Json]:
    made = health.filling
    return {
        "to_write": health.to_write,
        "to_embed": health.to_embed,
        "seconds_left": health.embedding_s,
        "model_to_come": None if made is None else msgspec.to_builtins(made),
    }


def _kept_as_json(kept: KeptBackups) -> dict[str, Json]:
    return {
        "folder": str(kept.folder),
        "count": kept.files,
        "bytes": kept.size,
        "newest": kept.newest.isoformat() if kept.newest else None,
        "every_hours": kept.every.total_seconds() / 3600 if kept.every else None,
        "overdue": kept.overdue(datetime.now(UTC)),
    }


def public(url: str) -> str:
    """A URL without its password; `memctl config` has it."""
    parts = urlsplit(url)
    if not parts.password:
        return url
    return url.replace(f":{parts.password}@", ":***@", 1)
