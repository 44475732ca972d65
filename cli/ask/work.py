"""The verbs about work: episodes and tasks, and what is stated of a session's work."""

from typing import Literal

import click

from memctl.api.reading.records import EpisodeItem, TaskItem
from memctl.cli.ask.context import decision_line
from memctl.cli.ask.record import say
from memctl.cli.connection import SHORT_ID
from memctl.cli.groups import Verbs
from memctl.cli.output import Cell, Column, by_whom, line, print_lines, print_outcome, when
from memctl.cli.pages import OneOf, Reading, in_json, print_items, reading, since, table
from memctl.domain.support.wording import number, span

OUTCOMES: dict[str, Literal["green", "red", "yellow"]] = {"success": "green", "failure": "red", "partial": "yellow"}
_TYPES = OneOf(["bugfix", "feature", "refactor", "test", "docs", "question", "review", "chore", "unknown"])
_ENDS = OneOf(["success", "failure", "partial", "unknown"])
_session = click.option(
    "--session", default="", metavar="ID", help="Which session; without it, the one that is going on here."
)


# --- episodes and tasks ---


@click.command()
@reading(limit=20)
@click.option("--type", "task_type", type=_TYPES, help="Type of task.")
@click.option("--outcome", type=_ENDS)
@click.option("--file", help="Only work on files whose path has this in it.")
@click.option("--symbol", help="Only work that changed functions or types whose name has this in it.")
@click.option("--error", help="Only work that met this error: a part of its type, or its text. Successes first.")
@since
@click.option("--similar", metavar="TEXT", help="Those most like this text, best first.")
def episodes(
    ask: Reading,
    task_type: str | None,
    outcome: str | None,
    file: str | None,
    symbol: str | None,
    error: str | None,
    since: str | None,
    similar: str | None,
) -> None:
    """List pieces of work as they went in one session, with how they ended; `memctl show ID` shows one.

    \b
    memctl episodes --outcome success --limit 5
    memctl episodes --file totals.py --error TypeError
    """

    def row(item: EpisodeItem) -> list[Cell | str]:
        return [
            Cell(item.id[:SHORT_ID], "cyan"),
            when(item.started_at),
            item.project,
            item.task_type,
            Cell(item.outcome, OUTCOMES.get(item.outcome, "dim")),
            item.description,
        ]

    shown = table(row, "id", "when", "project", "type", "outcome", Column("work", give=True))
    asked = {"type": task_type, "outcome": outcome, "file": file, "symbol": symbol, "error": error}
    answer = ask.page("episodes", EpisodeItem, **asked, since=since, similar=similar)
    print_items(answer, ask.as_json, shown, "no episodes found")


@click.command()
@reading(limit=20)
@click.option("--status", type=click.Choice(["open", "done"]), help="Open ones are loose threads.")
@click.option("--open", "only_open", is_flag=True, help="The same as --status open.")
@click.option("--type", "task_type", type=_TYPES, help="Type of task.")
@since
def tasks(ask: Reading, status: str | None, only_open: bool, task_type: str | None, since: str | None) -> None:
    """List pieces of work across sessions: open or done, in how many sessions, and how they ended.

    \b
    memctl tasks --open
    memctl tasks --type bugfix --since 2026-03-01
    """

    if only_open and status == "done":
        raise click.UsageError("say one of --open and --status done")

    def row(item: TaskItem) -> list[Cell | str]:
        state = state_of(item.status, item.outcome)
        return [
            Cell(item.id[:SHORT_ID], "cyan"),
            when(item.last_at),
            item.task_type,
            state,
            str(len(item.sessions)),
            by_whom(item.description, item.first.through if item.first is not None else "") + _left(item),
        ]

    shown = table(row, "id", "last", "type", "state", Column("in", "right"), Column("work", give=True))
    status = "open" if only_open else status
    answer = ask.page("tasks", TaskItem, status=status, type=task_type, since=since)
    print_items(answer, ask.as_json, shown, "no tasks found")


def _left(item: TaskItem) -> str:
    left = item.work.left if item.status == "open" and item.work is not None else []
    return f" (left: {'; '.join(left)})" if left else ""


def state_of(status: str, outcome: str) -> Cell:
    """How a task stands. Work may have gone well and leave something open."""
    if status == "done":
        return Cell(outcome, OUTCOMES.get(outcome, "dim"))
    return Cell(f"open, {outcome}" if outcome == "success" else "open", "cyan")


def print_episode(item: EpisodeItem) -> None:
    """One episode as a person would describe it: the work, how it went and why, what to take from it."""
    click.echo(click.style(line(item.description), bold=True))
    outcome = click.style(item.outcome, fg=OUTCOMES.get(item.outcome))
    click.echo(f"{outcome}: {line(item.why)}" + ("" if item.closed else " (open)"))
    print_lines(_figures(item))
    print_lines(f"{item.agent} session {item.session_id}")
    for label, text in (("problem", item.problem), ("solution", item.solution)):
        if text:
            print_lines("", f"{label}: {line(text)}")
    for label, texts in _parts(item):
        if texts:
            print_lines("", f"{label}")
            print_lines(*(f"  {line(str(text))}" for text in texts))
    if item.answer:
        print_lines("", "the agent's last words")
        print_lines(*(f"  {each}" for each in item.answer.splitlines()[:12]))


def _figures(item: EpisodeItem) -> str:
    """Type, place, time and size of an episode, on one line."""
    took = span(item.duration_us / 1e6)
    parts = [item.task_type, item.project, when(item.started_at), took, number(item.steps, "step")]
    parts += [f"{item.tokens:,} tokens"] if item.tokens else []
    parts += [f"complexity {item.complexity:.2f}"]
    if item.tests_passed is not None:
        parts.append("tests passed" if item.tests_passed else "tests failed")
    if item.feedback != "neutral":
        parts.append(f"feedback {item.feedback}")
    return ", ".join(part for part in parts if part)


def _parts(item: EpisodeItem) -> list[tuple[str, list[str]]]:
    """The lists of an episode, each with its heading; some are empty."""
    tools = [f"{t.tool} {t.uses}" + (f" ({t.failures} failed)" if t.failures else "") for t in item.tools]
    return [
        ("beware", item.gotchas),
        ("tips", item.tips),
        ("decided", list(map(decision_line, item.decisions))),
        ("pivots", [f"step {p.step}: {p.description}" + _in_brackets(p.reason) for p in item.pivots]),
        ("plan", [item.plan_summary, *item.plan] if item.plan else []),
        (
            f"changed: +{item.lines_added} −{item.lines_removed} lines",
            [f"+{p.added} −{p.removed}  {p.path}" + _in_brackets(p.description) for p in item.patches],
        ),
        ("errors", item.error_types),
        ("symbols", [", ".join(item.symbols)] if item.symbols else []),
        ("tools", [", ".join(tools)] if tools else []),
    ]


def _in_brackets(text: str) -> str:
    return f" ({text})" if text else ""


def print_task(item: TaskItem) -> None:
    """One task: how it stands, and in which sessions it was worked on."""
    click.echo(click.style(line(item.description), bold=True))
    state = item.status if item.status == "open" else f"{item.status}, {item.outcome}"
    print_lines(f"{state}; {item.task_type}; {item.project or item.location}; last {when(item.last_at)}")
    if item.work is not None:
        print_lines(*(f"  left: {line(each)}" for each in item.work.left))
    for each in item.sessions:
        print_lines(f"  {when(each.at)}  {line(each.name)}")


# --- statements ---


@click.group(cls=Verbs)
def task() -> None:
    """Say which piece of work begins, or that it is done. What you say wins over what was read out of prompts.

    \b
    memctl task start "round invoice totals by the cent"
    memctl task done --outcome success
    """


@task.command("start")
@click.argument("description", nargs=-1, required=True)
@click.option("--type", "task_type", type=_TYPES, help="Type of task; the rules say where you do not.")
@_session
@in_json
def start(description: tuple[str, ...], task_type: str | None, session: str, as_json: bool) -> None:
    """Begin the piece of work DESCRIPTION in a session.

    \b
    memctl task start "round invoice totals by the cent" --type bugfix
    """
    done = say("task-start", description=" ".join(description), type=task_type or "", session=session)
    print_outcome(done.json, as_json, "task begun")


@task.command("done")
@click.argument("id", required=False, default="")
@click.option("--outcome", type=_ENDS, default="success", show_default=True)
@click.option("--note", default="", help="How it went, in your words.")
@in_json
def done(id: str, outcome: str, note: str, as_json: bool) -> None:
    """End a session's open piece of work. ID is a task's or a session's; without it, the session here is meant.

    \b
    memctl task done --outcome success
    memctl task done 3f6f1d52 --outcome failure --note "no access"
    """
    print_outcome(say("task-done", session=id, outcome=outcome, note=note).json, as_json, "task done")


@click.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--confirm", "status", flag_value="confirmed", help="It is so: from 0.9 on it becomes a decision.")
@click.option("--support", "status", flag_value="supported", help="Something speaks for it.")
@click.option("--reject", "status", flag_value="rejected", help="It is not so.")
@click.option("--confidence", type=click.FloatRange(0, 1), help="How sure, 0 to 1.")
@click.option("--evidence", multiple=True, metavar="TEXT", help="What speaks for or against it; may be given again.")
@_session
@in_json
def hypothesis(
    text: tuple[str, ...],
    status: str | None,
    confidence: float | None,
    evidence: tuple[str, ...],
    session: str,
    as_json: bool,
) -> None:
    """Hold TEXT to be so; or say what became of it, by the beginning of its words or of its key.

    \b
    memctl hypothesis "the discount is a float" --confidence 0.6
    memctl hypothesis "the discount" --confirm
    """
    said = " ".join(text)
    sure = {} if confidence is None else {"confidence": confidence}
    if status is None:
        done = say("hypothesis-propose", text=said, evidence=evidence, session=session, **sure)
        print_outcome(done.json, as_json, "held")
    else:
        done = say("hypothesis-update", hypothesis=said, status=status, evidence=evidence, session=session, **sure)
        print_outcome(done.json, as_json, f"{status}: {line(str(done.value.recorded['text']))}")


@click.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--because", default="", help="Why.")
@click.option("--over", multiple=True, metavar="TEXT", help="What else there had been to choose; may be given again.")
@_session
@in_json
def decide(text: tuple[str, ...], because: str, over: tuple[str, ...], session: str, as_json: bool) -> None:
    """Record that TEXT was settled on.

    \b
    memctl decide "Decimal for money" --because "floats lose cents"
    """
    done = say("decide", text=" ".join(text), rationale=because, alternatives=over, session=session)
    print_outcome(done.json, as_json, "decided")


@click.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--kind", default="fact", show_default=True, help="What sort of thing it is.")
@_session
@in_json
def discovery(text: tuple[str, ...], kind: str, session: str, as_json: bool) -> None:
    """Note that TEXT was found out, for the rest of the session.

    \b
    memctl discovery "totals are rounded twice"
    """
    print_outcome(say("discovery", text=" ".join(text), kind=kind, session=session).json, as_json, "noted")
