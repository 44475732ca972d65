"""The verbs for what memory held when it was needed, and what it put before agents: `hindsight`, `recalls`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from memctl.api.reading.hindsight import Count, Explained, Record, Report, SessionRecalls
from memctl.cli.connection import SHORT_ID
from memctl.cli.output import Cell, Column, line, print_json, print_lines, when
from memctl.cli.pages import Reading, each, nothing, print_items, reading, since, table
from memctl.domain.support.wording import number

if TYPE_CHECKING:
    from memctl.api.client import Client, NotThere


@click.command()
@reading(limit=20)
@since
@click.option("--explain", metavar="ID", help="One record: why need and memory were paired, and who else had it.")
def hindsight(ask: Reading, since: str | None, explain: str | None) -> None:
    """What sessions needed while memory already held it: was it recalled, and what did it cost where it was not?

    \b
    memctl hindsight
    memctl hindsight --project '*' --since 2026-03-01
    memctl hindsight --explain 6f1c2a9e
    """
    if explain:
        record = ask.read(f"/v1/hindsight/{explain}", Explained)
        print_json(record.json) if ask.as_json else _print_record(record.value)
        return
    answer = ask.read("/v1/hindsight", Report, limit=ask.limit, since=since)
    if ask.as_json:
        print_json(answer.json)
    elif answer.value.items:
        _print_counts(answer.value.counts)
        _print_needs(answer.value.items)
    if not answer.value.items:
        nothing(None, "nothing yet: no session needed what memory held before")


@click.command()
@reading(limit=10)
@since
@click.option("--spoken", "said", flag_value="spoken", help="Only where memory spoke.")
@click.option("--silent", "said", flag_value="silent", help="Only prompts at which it did not.")
def recalls(ask: Reading, since: str | None, said: str | None) -> None:
    """What memory put before agents, and what it left out and why: by session and hook, with rank and score.

    \b
    memctl recalls
    memctl recalls --silent
    memctl recalls --project '*' --since 2026-03-01 --json
    """
    answer = ask.page("recalls", SessionRecalls, since=since, said=said)
    print_items(answer, ask.as_json, each(_print_recalls), "nothing yet: no agent's prompt came by a hook", whole=True)


def show_record(client: Client, id: str, why: NotThere, *, as_json: bool) -> None:
    """Print the record of hindsight of that id. Raises: NotThere, as `why` says it, where there is none."""
    from memctl.api.client import NotThere

    try:
        record = client.read(f"/v1/hindsight/{quote(id, safe='')}", Explained)
    except NotThere:
        raise why from None
    print_json(record.json) if as_json else _print_record(record.value)


def _print_recalls(session: SessionRecalls) -> None:
    silent = f", silent at {number(session.kept_silent, 'prompt')}" if session.kept_silent else ""
    blocks = number(session.count, "block")
    click.echo(f"{line(session.session)}  {line(session.project or '')}  {blocks}{silent}")
    for block in session.blocks:
        what = "held back" if block.withheld else f"{block.tokens} tokens" if block.memories else "silent"
        asked = f'  "{line(block.prompt)}"' if block.prompt else ""
        print_lines(f"  {when(block.at)}  {line(block.hook)}, {what}{asked}")
        if block.silent:
            print_lines(f"    {block.silent}")
        for memory in block.memories:
            by_files = "; for the files that it changed" if memory.by == "files" else ""
            title = line(memory.title or _GONE)
            print_lines(f"    {memory.rank}. {memory.score:.2f}  {memory.id[:SHORT_ID]}  {title}{by_files}")
        for left in block.passed_over:
            about = f"{left.score:.2f}  {left.id[:SHORT_ID]}  {line(left.title or _GONE)}"
            print_lines(f"    not said: {about}", f"      {left.why}: {left.because}")


_GONE = "forgotten, or folded otherwise since"


def _print_counts(counts: list[Count]) -> None:
    for count in counts:
        if count.count:
            left = count.count - count.recalled
            click.echo(
                f"{count.count} × {count.kind}: recalled {count.recalled}; the other {left} cost "
                f"{number(count.calls, 'call')}, {_spent(count.seconds)}, {count.tokens:,} tokens"
            )
    click.echo()


def _print_needs(items: list[Record]) -> None:
    def row(item: Record) -> list[Cell | str]:
        hook = item.recall.hook if item.recall else "no"
        about = [when(item.at), item.project or "", item.kind, hook, str(item.calls), item.what]
        return [Cell(item.id[:SHORT_ID], "cyan"), *about]

    table(row, "id", "when", "project", "kind", "recalled", Column("calls", "right"), Column("what", give=True))(items)


def _print_record(record: Explained) -> None:
    recall = record.recall
    for name, value in (
        ("needed", record.what),
        ("in", f"{record.session}, {when(record.at)}, position {record.position}"),
        ("held by", f"{record.memory.id}: {record.memory.text}"),
        ("of", f"{record.memory.session}, since position {record.memory.position}"),
        ("paired as", record.why),
        ("recalled", f"{recall.hook}, rank {recall.rank}, score {recall.score}" if recall else f"no: {record.unsaid}"),
        ("cost", f"{number(record.calls, 'call')}, {_spent(record.seconds)}, {record.tokens:,} tokens"),
        ("held in", f"{len(record.held_by)} places, needed in {len(record.needed_by)}"),
    ):
        click.echo(f"{name:<10} {line(value)}")


def _spent(seconds: int) -> str:
    hours, rest = divmod(seconds, 3600)
    return f"{hours} h {rest // 60} min" if hours else f"{rest // 60} min {rest % 60} s"
