"""`memctl context`: what a session is at, on a screenful that a person or an agent can act on."""

import shutil
import sys

import click

from memctl.api.reading.records import (
    ActiveFile,
    Context,
    Decision,
    EpisodeDecision,
    PlanStep,
    RecentError,
    ToolResult,
    WorkCounts,
)
from memctl.cli.connection import NOTHING_FOUND, SHORT_ID, looking_back, placed, running
from memctl.cli.output import cut, line, notice, print_json, when
from memctl.cli.pages import in_json
from memctl.domain.support.provenance import Provenance, words_to_all
from memctl.domain.support.wording import number

WIDTH = 100
"""Columns that a line takes at most; fewer on a terminal that has fewer."""

_MARKS = {"completed": "✓", "in_progress": "▶", "pending": "·"}


@click.command()
@click.argument("session", required=False)
@looking_back
@in_json
@click.option("--project", metavar="NAME|PATH|*", help="The latest session of this project; '*' for all.")
@click.pass_context
def context(context: click.Context, session: str | None, as_json: bool, project: str | None) -> None:
    """Show what a session is at: task, plan, files, hypotheses, decisions, errors, and what came back last.

    SESSION is a session's id or its beginning, or the id of a task or episode in it; without it, the latest one here.

    \b
    memctl context                 # of the latest session here
    memctl context 3f6f1d52 --json
    """
    from memctl.api.client import NotThere

    try:
        with running() as client:
            answer = client.read("/v1/context", Context, **placed(project), session=session)
    except NotThere as problem:
        notice(str(problem))
        if problem.hint:
            notice(f"hint: {problem.hint}")
        context.exit(NOTHING_FOUND)
    if as_json:
        print_json(answer.json)
    else:
        _print(answer.value)


def _print(item: Context) -> None:
    state = f"ended {when(item.ended_at)}" if item.ended_at else f"last heard {when(item.updated_at)}"
    branch = f" on {item.branch}" if item.branch else ""
    who = click.style(line(f"{item.agent} {item.session_id[:SHORT_ID]}"), bold=True)
    _row(who, f"{item.project}{branch}, {state}")
    _row("", item.title or item.summary)
    if item.task_description:
        stats = item.stats
        steps = number(item.steps, "step") + (f", {item.outcome}: {item.why}" if item.outcome else "")
        _row("task", f"{item.task_type}, {item.task_status}: {item.task_description}")
        _row("", steps)
        _row("", f"session: {_counts(stats)}" if stats.tool_calls else "")
    _row("asked", item.last_prompt)
    _row("answered", item.last_answer)
    if item.plan:
        done = sum(step.status == "completed" for step in item.plan)
        _row("plan", f"{done} of {len(item.plan)} done")
        for step in _around(item.plan, item.current):
            _row("", f"{_MARKS.get(step.status, '·')} {step.text}")
    _list("files", [_file(each) for each in reversed(item.files[-6:])])
    names = [each.name for each in reversed(item.symbols[-10:])]
    _row("symbols", ", ".join(names))
    _list("errors", [_error(each) for each in reversed(item.errors)])
    _list("holds", [f"{each.confidence:.1f} {each.text}" for each in reversed(item.hypotheses)])
    _list("decided", [_decision(each) for each in reversed(item.decisions[-5:])])
    _list("found", [f"{each.kind}: {each.text}" for each in reversed(item.discoveries[-5:])])
    _list("open", [each.text for each in item.threads])
    _list("turns", [" ".join((f"step {p.step}:", p.description, p.reason)) for p in item.pivots[-3:]])
    _list("results", [_result(each) for each in reversed(item.tool_results[-5:])])


def _row(label: str, text: str) -> None:
    """A labelled line; nothing where there is no text."""
    if text := line(text):
        width = len(click.unstyle(label))
        head = label if width > 9 else f"{label}{' ' * (9 - width)}"
        room = min(WIDTH, shutil.get_terminal_size().columns) if sys.stdout.isatty() else WIDTH
        click.echo(f"{head} {cut(text, room - max(width, 9) - 1)}")


def _list(label: str, texts: list[str]) -> None:
    for at, text in enumerate(texts):
        _row("" if at else label, text)


def _around(plan: list[PlanStep], current: int, room: int = 8) -> list[PlanStep]:
    """The steps near the one in progress, else near the first that is not done."""
    at = current - 1 if current else next((n for n, s in enumerate(plan) if s.status != "completed"), len(plan) - 1)
    start = max(0, min(at - 2, len(plan) - room))
    return plan[start : start + room]


def _counts(stats: WorkCounts) -> str:
    parts = [f"{stats.tool_calls:,} tool calls", f"{stats.tokens_used:,} tokens"]
    if stats.errors_encountered:
        parts.append(number(stats.errors_encountered, "error"))
    if stats.patches_applied:
        parts.append(f"{stats.patches_applied} of {max(stats.patches_proposed, stats.patches_applied)} patches")
        parts.append(f"+{stats.lines_added} −{stats.lines_removed} lines")
    return ", ".join(parts)


def _file(file: ActiveFile) -> str:
    lines = f", +{file.added} −{file.removed}" if file.added or file.removed else ""
    before = f", was {file.before}" if file.before else ""
    return f"{_tail(file.path)} ({file.state}{before}, {file.accesses}×{lines})"


def _tail(path: str) -> str:
    """The end of a path: four segments distinguish it from others."""
    parts = path.rsplit("/", 4)
    return f"…/{'/'.join(parts[-4:])}" if len(parts) == 5 and len(path) > 50 else path


def _error(error: RecentError) -> str:
    if error.resolution:
        return f"✓ {error.message} → {error.resolution}"
    return f"✗ {error.message}" + (f" (`{error.command[:60]}`)" if error.command else "")


def decision_line(decided: Decision | EpisodeDecision) -> str:
    """A decision behind who took it: its own words say nothing of that."""
    cause = "cause: " if decided.kind == "cause" else ""
    return f"{words_to_all(Provenance(decided.said_by))}: {cause}{decided.text}"


def _decision(decided: Decision) -> str:
    why = f" ({decided.rationale})" if decided.rationale and decided.rationale not in decided.text else ""
    return f"{decision_line(decided)}{why}"


def _result(result: ToolResult) -> str:
    mark = "✓" if result.ok else "✗"
    back = f" → {result.result}" if result.result else ""
    return f"{mark} {result.tool} {result.summary[:70]}{back}"
