"""The verb that counts: what is remembered, what memory was good for, how far it is read, and what it takes."""

import click

from memctl.api.reading.counts import ModelUse, Stats, Use
from memctl.cli.connection import placed, running
from memctl.cli.output import Cell, Column, notice, print_json, print_lines, print_table
from memctl.cli.pages import Reading, before, print_scope, reading, since
from memctl.domain.support.wording import size, span
from memctl.infra.settings import load_settings

_CALLED = {"sessions_opened": "sessions opened or resumed", "files_changed": "changes to files"}
"""Totals whose own names may be taken for something else: a session and a file count once for each time."""


@click.command()
@reading(limit=50)
@since
@before
def stats(ask: Reading, since: str | None, before: str | None) -> None:
    """Count what is remembered, how far it is read, and what it takes on disk; or what some days took.

    \b
    memctl stats --project '*'
    memctl stats --since 7d        # prompts, errors, tokens, by days of UTC
    """
    with running() as client:
        received = client.stats(since, before, **placed(ask.project))
    if ask.as_json:
        print_json(received.json)
        return
    answer = received.value
    print_scope(answer.scope)
    _print_totals(answer.totals, ask.limit)
    _print_models(answer.models)
    if not (since or before):
        _print_state(answer)


def _print_totals(totals: dict[str, int], limit: int) -> None:
    number = [Column("what"), Column("count", "right")]
    figures = [
        (_CALLED.get(name) or name.replace("_", " "), value)
        for name, value in totals.items()
        if not name.endswith("_us_total")
    ]
    print_table(number, [[name, f"{value:,}"] for name, value in figures][:limit])
    if resolved := totals["errors_resolved"]:
        mean = totals["resolve_us_total"] / 1e6 / resolved
        notice(f"mean time to resolve an error: {span(mean)}")


def _print_models(found: list[ModelUse]) -> None:
    """What sessions took, by model; and what that cost where the settings say what a model costs."""

    if not found:
        return
    prices = load_settings().prices
    heads = ("model", "sessions", "tokens in", "out", "cached", *(["cost"] if prices else []))
    rows = []
    for each in found:
        spent = (each.tokens_in, each.tokens_out, each.tokens_cached)
        price = prices.get(each.model)
        cost = [f"{price.of(*spent):,.2f}" if price else ""] if prices else []
        rows.append([each.model or "unnamed", *(f"{count:,}" for count in (each.sessions, *spent)), *cost])
    click.echo()
    print_table([Column(heads[0]), *(Column(head, "right") for head in heads[1:])], rows)


def _print_state(answer: Stats) -> None:
    """What memory was good for, what it holds, how far it is read, and what it takes."""
    shares = [(name.replace("_", " "), value) for name, value in answer.measures.items() if value is not None]
    if shares:
        click.echo()
        cells = [[name, f"{value:,}" if isinstance(value, int) else f"{value:.2f}"] for name, value in shares]
        print_table([Column("measure"), Column("value", "right")], cells)
    _print_uses(answer.uses)
    click.echo()
    print_table([Column("read model"), Column("rows", "right")], _numbers(answer.read_models))
    click.echo()
    print_table([Column("event"), Column("count", "right")], _numbers(answer.events.by_type))
    click.echo()
    log = answer.log
    behind = [f"stage {s.stage} shard {s.shard}: {s.lag:,} behind" for s in log.shards if s.lag]
    print_lines(f"log: position {log.last_position:,}, mark {log.mark:,}; {', '.join(behind) or 'all read'}")
    waiting = answer.outbox
    print_lines(f"vectors: {waiting.to_write:,} to write, {waiting.waiting_for_dense:,} to embed")
    spent = [
        f"{name.replace('_', ' ')} {share.spent:,.6g} of {share.allowed:,.6g}"
        for name, share in (answer.budget or {}).items()
        if share.spent
    ]
    if spent:
        print_lines("language models: " + ", ".join(spent))
    print_lines("on disk: " + ", ".join(f"{name.replace('_', ' ')} {size(n)}" for name, n in answer.bytes.items()))


def _print_uses(found: list[Use]) -> None:
    """How agents used what was recalled, by kind of memory."""
    if not found:
        return
    click.echo()
    names = ("recalls", "followed", "worth", "ratings", "helpful")
    rows: list[list[Cell | str]] = [
        [use.kind or "other", f"{use.recalls:,}", f"{use.followed:,}", f"{use.worth:g}",
         f"{use.ratings:,}", f"{use.helpful:,}"]
        for use in found
    ]  # fmt: skip
    print_table([Column("recalled"), *(Column(name, "right") for name in names)], rows)


def _numbers(counts: dict[str, int]) -> list[list[Cell | str]]:
    return [[name, f"{count:,}"] for name, count in counts.items()]
