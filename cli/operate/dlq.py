"""`memctl dlq`: what no fold could take, tried again, or left out for good."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import UUID

import click

from memctl.api.reading.caller import OWNER
from memctl.cli.groups import Verbs
from memctl.cli.output import Column, notice, print_json, print_lines, print_table, when
from memctl.cli.pages import in_json
from memctl.infra.hooks.agent_shell import only_a_person
from memctl.infra.settings import load_settings

if TYPE_CHECKING:
    from memctl.api.checks.dead_letters import Letter
    from memctl.api.reading.reader import Reader
    from memctl.infra.settings import Settings


@click.group(cls=Verbs)
def dlq() -> None:
    """Dead letters: what could not be folded, while everything else goes on.

    An event that its session cannot be folded with is parked, and the later ones of that session wait; so is a row
    that something cannot be folded into. Mend it with a memctl that can fold it and `retry`, or `drop` what is at
    fault. Nothing of it is lost meanwhile: it is in the log.

    \b
    memctl dlq list
    memctl dlq show 17
    memctl dlq retry --all
    """


@dlq.command("list")
@in_json
def list_(as_json: bool) -> None:
    """List what is parked, shards that stand still, and what a replay stopped at.

    \b
    memctl dlq list
    """
    from memctl.api.checks import dead_letters
    from memctl.api.checks.health import last_replay

    with _reading() as (_, reader):
        found = dead_letters.standing(reader)
        replayed = last_replay(reader)
    if as_json:
        print_json(found)
        return
    if found.letters:
        _print(found.letters)
    for halt in found.halted:
        notice(f"stage {halt.stage} shard {halt.shard} stands still at position {halt.position}: {halt.message}")
    if not found.letters and not found.halted:
        notice("nothing is parked")
    if replayed is not None and replayed.status == "failed":
        notice(f"the last replay failed: {replayed.message}")


@dlq.command()
@click.argument("id", type=int)
@in_json
def show(id: int, as_json: bool) -> None:
    """Show one dead letter: the event, the fault, and how much waits behind it.

    \b
    memctl dlq show 17
    """
    from memctl.api.checks import dead_letters

    with _reading() as (_, reader):
        found = dead_letters.show(reader, id)
    if as_json:
        print_json(found)
        return
    letter, event = found.letter, found.event
    lines = [
        f"dead letter {letter.id}: {letter.target}",
        f"fault    {letter.error}" + (f" at {letter.place}" if letter.place else ""),
        f"source   {letter.row or letter.source}",
        f"parked   {when(letter.parked_at)}, tried {letter.attempts} times, {letter.waiting} waiting",
        f"position {letter.position}",
    ]
    if event is not None:
        lines += [
            f"event    {event.type} version {event.schema_version}, {when(event.occurred_at)}, by {event.actor}",
            f"stream   {event.stream}",
        ]
    print_lines(*lines)


@dlq.command()
@click.argument("ids", type=int, nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Whatever is parked.")
@in_json
def retry(ids: tuple[int, ...], everything: bool, as_json: bool) -> None:
    """Fold what is parked again. Exit code 1 if some of it still cannot be folded.

    \b
    memctl dlq retry --all
    """
    if bool(ids) == everything:
        raise click.UsageError("name dead letters or say --all, one of the two")
    from memctl.api.checks import dead_letters

    with _reading() as (_, reader):
        left = dead_letters.retry(reader, ids)
    if as_json:
        print_json(left)
    elif left:
        notice("these still cannot be folded:")
        _print(left)
    else:
        notice("all of it is folded")
    if left:
        raise click.exceptions.Exit(1)


@dlq.command()
@click.argument("id")
@click.option("--reason", required=True, help="Why; kept in the log.")
@click.option("--from", "projection", default="", metavar="READ_MODEL", help="Of an id that a replay named: from what.")
@click.option("--row", "key", help="Of an id that a replay named: from which row of it.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def drop(id: str, reason: str, projection: str, key: str | None, yes: bool) -> None:
    """Leave out what is at fault, for good.

    ID is a dead letter's number, or the id of an event (with --from, of a source) that a replay stopped at.

    \b
    memctl dlq drop 17 --reason "a test that was never real"
    """
    from memctl.api.checks import dead_letters

    only_a_person("leaves out what is at fault")
    if not id.isdecimal():
        source = _uuid(id)
        with _reading() as (settings, reader):
            what = (
                f"from {projection}" + (f", row {key}" if key is not None else "") if projection else "from its session"
            )
            _confirm(f"{source} will be left out {what}", yes)
            dead_letters.leave_out(settings, reader, source, reason, projection, key)
    elif projection or key is not None:
        raise click.UsageError("--from and --row go with the id of a source, not with a dead letter's number")
    else:
        with _reading() as (settings, reader):
            letter = dead_letters.show(reader, int(id)).letter
            what = f"event {letter.source}" if letter.stage == 1 else f"source {letter.row or letter.source}"
            _confirm(f"{what} will be left out of {letter.target}, and the {letter.waiting} waiting be folded", yes)
            dead_letters.drop(settings, reader, letter.id, reason)
    notice("left out; the workers fold on without it")


@contextlib.contextmanager
def _reading() -> Iterator[tuple[Settings, Reader]]:
    from memctl.api.reading.reader import opened

    settings = load_settings()
    with opened(settings, OWNER, "memctl dlq") as reader:
        yield settings, reader


def _confirm(what: str, yes: bool) -> None:
    if not yes:
        notice(f"{what}.")
        notice("It stays in the log, but no read model will know it again, also after a replay. This cannot be undone.")
        click.confirm("Leave it out?", abort=True, err=True)


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise click.UsageError(f"{text} is neither a dead letter's number nor an id") from None


def _print(letters: list[Letter]) -> None:
    columns = [
        Column("id", "right"), Column("parked", give=True), Column("what", give=True), Column("fault"),
        Column("at", give=True), Column("tried", "right"), Column("waiting", "right"),
    ]  # fmt: skip
    rows = [
        [str(each.id), when(each.parked_at), each.target, each.error, each.place, str(each.attempts), str(each.waiting)]
        for each in letters
    ]
    print_table(columns, rows)
