"""The verbs for what memory held when it was needed, and what it put before agents: `hindsight`, `recalls`."""

from __future__ import annotations

import click

from memctl.api.reading.hindsight import Count, Explained, Record, Report, SessionRecalls
from memctl.cli.connection import NOTHING_FOUND, SHORT_ID, placed, reading, running
from memctl.cli.output import Cell, Column, line, notice, print_json, print_table, when


@click.command()
@reading(limit=20)
@click.option("--since", metavar="DATE", help="Only what was needed from this day on (2026-03-01).")
@click.option("--explain", metavar="ID", help="One record: why need and memory were paired, and who else had it.")
@click.pass_context
def hindsight(
    context: click.Context, project: str | None, limit: int, as_json: bool, since: str | None, explain: str | None
) -> None:
    """What sessions needed while memory already held it: was it recalled, and what did it cost where it was not?

    \b
    memctl hindsight
    memctl hindsight --project '*' --since 2026-03-01
    memctl hindsight --explain 6f1c2a9e
    """
    with running() as client:
        if explain:
            record = client.read(f"/v1/hindsight/{explain}", Explained, **placed(project))
            print_json(record.json) if as_json else _print_record(record.value)
            return
        answer = client.read("/v1/hindsight", Report, **placed(project), limit=limit, since=since)
    if as_json:
        print_json(answer.json)
    elif answer.value.items:
        _print_counts(answer.value.counts)
        _print_items(answer.value.items)
    if not answer.value.items:
        notice("nothing yet: no session needed what memory held before")
        context.exit(NOTHING_FOUND)


@click.command()
@reading(limit=10)
@click.option("--since", metavar="DATE", help="Only sessions that got something from this day on (2026-03-01).")
@click.pass_context
def recalls(context: click.Context, project: str | None, limit: int, as_json: bool, since: str | None) -> None:
    """What memory put before agents: by session, each block with its hook and its memories, with rank and score.

    \b
    memctl recalls
    memctl recalls --project '*' --since 2026-03-01 --json
    """
    with running() as client:
        answer = client.page("recalls", SessionRecalls, **placed(project), limit=limit, since=since)
    if as_json:
        print_json(answer.json)
    for session in () if as_json else answer.value.items:
        click.echo(f"{line(session.session)}  {session.project or ''}  {session.count} blocks")
        for block in session.blocks:
            held = ", held back" if block.withheld else ""
            click.echo(f"  {when(block.at)}  {line(block.hook)}, {block.tokens} tokens{held}")
            for memory in block.memories:
                title = memory.title or "gone, or no memory of its own"
                click.echo(f"    {memory.rank}. {memory.score:.2f}  {memory.id[:SHORT_ID]}  {line(title)}")
            for left in block.passed_over:
                click.echo(click.style(f"    not said: {left.score:.2f}  {left.id[:SHORT_ID]}  {left.why}", dim=True))
    if not answer.value.items:
        notice("nothing yet: memory put nothing before an agent")
        context.exit(NOTHING_FOUND)


def _print_counts(counts: list[Count]) -> None:
    for count in counts:
        if count.count:
            left = count.count - count.recalled
            click.echo(
                f"{count.count} × {count.kind}: recalled {count.recalled}; the other {left} cost "
                f"{count.calls} calls, {_spent(count.seconds)}, {count.tokens:,} tokens"
            )
    click.echo()


def _print_items(items: list[Record]) -> None:
    columns = [
        Column("id"), Column("when"), Column("kind"), Column("recalled"), Column("calls"), Column("what", give=True),
    ]  # fmt: skip
    print_table(
        columns,
        [
            [
                Cell(item.id[:SHORT_ID], "cyan"), when(item.at), item.kind,
                item.recall.hook if item.recall else "no", str(item.calls), item.what,
            ]
            for item in items
        ],
    )  # fmt: skip


def _print_record(record: Explained) -> None:
    recall = record.recall
    for name, value in (
        ("needed", record.what),
        ("in", f"{record.session}, {when(record.at)}, position {record.position}"),
        ("held by", f"{record.memory.id}: {record.memory.text}"),
        ("of", f"{record.memory.session}, since position {record.memory.position}"),
        ("paired as", record.why),
        ("recalled", f"{recall.hook}, rank {recall.rank}, score {recall.score}" if recall else "no"),
        ("cost", f"{record.calls} calls, {_spent(record.seconds)}, {record.tokens:,} tokens"),
        ("held in", f"{len(record.held_by)} places, needed in {len(record.needed_by)}"),
    ):
        click.echo(f"{name:<10} {line(value)}")


def _spent(seconds: int) -> str:
    hours, rest = divmod(seconds, 3600)
    return f"{hours} h {rest // 60} min" if hours else f"{rest // 60} min {rest % 60} s"
