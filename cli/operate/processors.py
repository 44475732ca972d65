"""`memctl consolidate`, `reflect`, `judge`, `maintain`: processors by hand; `costs`: what a language model cost."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import click
import msgspec

from memctl.api.reading.counts import Costs
from memctl.api.reading.records import ConsolidationChange
from memctl.api.reading.views import Json
from memctl.cli.connection import NOTHING_FOUND, running
from memctl.cli.output import line, notice, print_json, print_lines, print_outcome, when
from memctl.cli.pages import each, in_json, print_items
from memctl.domain.events.event import type_of
from memctl.infra.settings import load_settings

if TYPE_CHECKING:
    from memctl.workers.processors.consolidator import ConsolidationStep
    from memctl.workers.processors.runner import Processor, ProcessorContext


@click.command()
@click.option("--preview", is_flag=True, help="Say what would be recorded, and record nothing.")
@click.option("--force", is_flag=True, help="However many memories of a place it changes at once.")
@click.option("--log", "log_", is_flag=True, help="What was changed so far, newest first.")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="With --log: most items.")
@in_json
def consolidate(preview: bool, force: bool, log_: bool, limit: int, as_json: bool) -> None:
    """Look for memories that say the same, contradict each other, or were never needed.

    Nothing is removed or rewritten: what says the same is shown as one, what was never needed is not shown. Each change
    is recorded, and `memctl undo` takes it back. It happens by itself every 20 tasks or 6 hours.

    \b
    memctl consolidate --preview
    memctl consolidate --log
    """
    if log_:
        if preview or force:
            raise click.UsageError("--log stands alone")
        _log(limit, as_json)
        return

    from memctl.workers.processors import consolidator

    with _context() as context:
        if preview:
            plan = consolidator.plan(context)
        else:
            plan, recorded = consolidator.consolidate(context, force=force)
            if recorded:
                context.writer.wake()
    changes, held = (plan.changes, []) if preview or force else (plan.passed, plan.held)
    if as_json:
        shown = [_shown(each) for each in changes]
        waiting = [msgspec.to_builtins(each) for each in plan.held]
        print_json({"memories": plan.of, "changed": plan.changed, "changes": shown, "held": waiting})
    else:
        for change in changes:
            print_lines(f"{_verb(change)}: {' | '.join(line(title)[:60] for title in change.titles)}")
        verb = "would be recorded" if preview else "recorded"
        notice(f"{len(changes)} changes of {plan.of:,} memories {verb}")
    if held:
        place = held[0].place or "what is of no project"
        raise consolidator.TooManyChanges(place=place, changed=held[0].changed, of=held[0].of)


def _shown(change: ConsolidationStep) -> dict[str, Json]:
    payload = msgspec.to_builtins(change.payload)
    return {"type": type_of(change.payload).name, **payload, "titles": list(change.titles)}


def _verb(change: ConsolidationStep) -> str:
    return type_of(change.payload).name.partition(".")[2]


def _log(limit: int, as_json: bool) -> None:
    with running() as client:
        answer = client.page("consolidation", ConsolidationChange, limit=limit)
    print_items(answer, as_json, each(_print_change), "nothing was changed so far")


def _print_change(item: ConsolidationChange) -> None:
    undone = "  (taken back)" if item.undone_at else ""
    titles = " | ".join(line(each.title)[:40] for each in item.memories)
    print_lines(f"{item.id[:8]}  {when(item.occurred_at)}  {item.kind}: {titles}{undone}")


@click.command()
@click.option("--project", metavar="NAME|PATH", help="Only this project.")
@in_json
def reflect(project: str | None, as_json: bool) -> None:
    """Look at what many memories show together, and record it; each insight cites its memories.

    It happens by itself when enough has come together in a project.

    \b
    memctl reflect
    memctl reflect --project ledger
    """
    from memctl.workers.processors.reflector import Reflector

    with _context() as context:
        anchor = _anchor(context, project) if project else ""
        count = _run(context, Reflector(asked=True, project=anchor))
    found = f"{count} reflections recorded; see: memctl search WORDS --kind reflection"
    print_outcome({"recorded": count}, as_json, found if count else "nothing new to report")


@click.command()
@in_json
def maintain(as_json: bool) -> None:
    """Let every processor look for work now: reflect, consolidate, look whether files have changed.

    Where a language model is configured, those that ask it look for work too.

    \b
    memctl maintain
    """
    from memctl.workers.processors.registry import by_model, by_rule

    with _context() as context:
        every = (*by_rule(context.settings, asked=True), *by_model(context.settings))
        done = {processor.name: _run(context, processor) for processor in every}
    if as_json:
        print_json(done)
    else:
        print_lines(*(f"{name}: {count} recorded" for name, count in done.items()))


@click.command()
@in_json
def judge(as_json: bool) -> None:
    """Have the language model judge how finished work went, newest first, as far as its budget goes.

    Without one, the rules have judged already: `memctl episodes` shows how each went, and why.

    \b
    memctl judge
    """
    with _context() as context:
        if context.settings.llm.provider == "none":
            raise click.ClickException("no language model is configured (llm.provider); the rules judge by themselves")
        from memctl.workers.processors.language_model import Judge

        count = _run(context, Judge())
    print_outcome({"recorded": count}, as_json, f"{count} recorded")


@click.command()
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="Most items to print.")
@in_json
def costs(limit: int, as_json: bool) -> None:
    """Show what a language model cost this month, by what it worked on, and how much of the budget is left.

    \b
    memctl costs
    """

    with running() as client:
        received = client.read("/v1/costs", Costs, limit=limit)
    if as_json:
        print_json(received.json)
        return
    answer = received.value
    for name, budget in answer.budget.items():
        print_lines(f"{name:<16} {_amount(budget.spent)} of {_amount(budget.allowed)}")
    for item in answer.calls:
        print_lines(
            f"{item.processor:<15} {line(item.subject)[:24]:<24} {item.calls:>3} calls"
            f" {item.tokens_in + item.tokens_out:>9,} tokens  ${item.usd:.4f}"
        )
    if not answer.calls:
        raise click.exceptions.Exit(NOTHING_FOUND)


def _amount(value: float) -> str:
    return f"{value:,.4f}".rstrip("0").rstrip(".")


def _anchor(context: ProcessorContext, project: str) -> str:
    named = os.path.abspath(project) if project.startswith((".", "~", "/")) else project
    return context.anchor(named)


def _run(context: ProcessorContext, processor: Processor) -> int:
    from memctl.workers.processors.runner import process

    count = process(context, processor)
    if count:
        context.writer.wake()
    return count


def _context() -> AbstractContextManager[ProcessorContext]:
    from memctl.workers.processors.runner import ProcessorContext

    return ProcessorContext.opened(load_settings())
