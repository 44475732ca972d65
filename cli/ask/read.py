"""The verbs that read: they ask the running memctl and print what it answers. Exit code 3 where nothing is found."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Literal, get_args
from uuid import UUID

import click
import msgspec

from memctl.api.reading.records import EpisodeItem, MemoryItem, SessionItem, TaskItem, types_of_events
from memctl.api.reading.views import BugHit, Evidence, Found, Json, ShownSolution, Thing
from memctl.cli.ask.hindsight import show_record
from memctl.cli.ask.work import print_episode, print_task
from memctl.cli.connection import SHORT_ID, looking_back, placed, running
from memctl.cli.output import (
    Cell,
    Column,
    broken,
    by_whom,
    line,
    notice,
    print_json,
    print_lines,
    print_table,
    safe,
    when,
)
from memctl.cli.pages import (
    OneOf,
    Reading,
    before,
    in_json,
    nothing,
    print_items,
    print_scope,
    reading,
    since,
    table,
)
from memctl.domain.knowledge.memory import MemoryKind
from memctl.domain.support.wording import fix_and_why, fix_or_what_is_known, span


class _Query(click.Argument):
    """What is looked for; where it is missing it is said how it is given."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        try:
            return super().process_value(ctx, value)
        except click.MissingParameter:
            why = 'say what to look for, as in `memctl search "how are tests run"`'
            raise click.UsageError(why, ctx) from None


@click.command()
@click.argument("query", nargs=-1, required=True, cls=_Query)
@reading(limit=5, most=50)
@click.option("--profile", default="bounded", show_default=True, help="How results are scored.")
@click.option("--explain", is_flag=True, help="Say for each result where it ranked, and what its score is made of.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=OneOf(get_args(MemoryKind)),
    metavar="KIND",
    help="Only this kind of memory (turn, episode, bug_pattern, knowledge, …); may be given again.",
)
@click.option("--threshold", type=click.FloatRange(0, 1), default=0.0, help="Only results of this score or higher.")
@since
@before
def search(
    ask: Reading,
    query: tuple[str, ...],
    profile: str,
    explain: bool,
    kinds: tuple[str, ...],
    threshold: float,
    since: str | None,
    before: str | None,
) -> None:
    """Search what is remembered, best answers first.

    "sure" answers can be taken as fact, "likely" ones are worth a look, "weak" ones are only what came nearest.

    \b
    memctl search "csv export of monthly totals"
    memctl search how are tests run --project '*' --explain
    memctl search "decimal" --kind knowledge --since 2026-03-01 --json
    """
    with running() as client:
        received = client.search(
            " ".join(query), **placed(ask.project), limit=ask.limit, profile=profile, explain=explain,
            kinds=kinds, threshold=threshold, since=since, before=before,
        )  # fmt: skip
    answer = received.value
    for missing in answer.degraded:
        notice(f"note: {missing}")
    if ask.as_json:
        print_json(received.json["results"] if isinstance(received.json, dict) else [])
    elif answer.results:
        print_scope(answer.scope)
        print_results(answer.results)
    if not answer.results:
        nothing(answer.scope, "nothing was found")


@click.command()
@click.argument("id")
@looking_back
@in_json
def show(id: str, as_json: bool) -> None:
    """Show one thing whole: a memory, session, episode, bug pattern, claim, task, event or hindsight.

    ID may be the beginning of an id, as long as only one thing has it.

    \b
    memctl show 3f6f1d52
    memctl show 3f6f1d52 --json
    """
    from memctl.api.client import NotThere

    with running() as client:
        try:
            answer = client.thing(id)
        except NotThere as why:
            show_record(client, id, why, as_json=as_json)
            return
    if as_json:
        print_json(answer.json)
    else:
        print_thing(answer.value)


@click.command()
@reading(limit=20)
@since
@before
def history(ask: Reading, since: str | None, before: str | None) -> None:
    """List the latest turns: what was asked, and where.

    \b
    memctl history --limit 5
    memctl history --project '*' --since monday
    """

    def row(item: MemoryItem) -> list[Cell | str]:
        asked = by_whom(_asked(item), item.member)
        return [Cell(item.id[:SHORT_ID], "cyan"), when(item.occurred_at), item.project, asked]

    shown = table(row, "id", "when", "project", Column("asked", give=True))
    print_items(ask.page("history", MemoryItem, since=since, before=before), ask.as_json, shown, "no history found")


def _asked(turn: MemoryItem) -> str:
    """What was asked in a turn; where that is so short that the turn is called by its answer, that behind it."""
    said = " ".join(turn.text.partition("\n→ ")[0].split())
    short = len(said) < len(turn.title) and said.casefold() not in turn.title.casefold()
    return f"{said} → {turn.title}" if short else turn.title


@click.command()
@reading(limit=20)
@since
def sessions(ask: Reading, since: str | None) -> None:
    """List sessions, newest first, each with what it came to in short; `memctl show ID` shows one.

    \b
    memctl sessions --limit 5
    memctl sessions --project '*' --since 2026-03-01
    """

    def row(item: SessionItem) -> list[Cell | str]:
        title = by_whom(item.title or item.summary or item.first_prompt, item.through)
        id = Cell(item.session_id[:SHORT_ID], "cyan")
        return [id, when(item.last_at), item.agent, item.project, title]

    shown = table(row, "id", "last", "agent", "project", Column("in short", give=True))
    answer = ask.page("sessions", SessionItem, since=since)
    print_items(answer, ask.as_json, shown, "no sessions yet")


@click.command()
@click.argument("error", nargs=-1)
@reading(limit=5, most=50)
@click.option("--command", default="", help="What printed the error.")
def bugs(ask: Reading, error: tuple[str, ...], command: str) -> None:
    """Look an ERROR up: was it seen before, and what resolved it? `-` reads the error from stdin.

    Without an ERROR, the known ones that were resolved most often.

    \b
    memctl bugs "TypeError: unsupported operand type(s) for *"
    memctl bugs --command 'pytest -q' 'AssertionError: assert 3 == 4'
    npm test 2>&1 | memctl bugs -
    memctl bugs                    # those that were resolved most often
    """
    text = " ".join(error)
    if text == "-":
        text = sys.stdin.buffer.read(200_000).decode("utf-8", "replace")
    if error and not text.strip():
        raise click.UsageError("the error is empty")
    about = placed(ask.project)
    with running() as client:
        if error:
            received = client.bugs(text, command=command, **about, limit=ask.limit)
        else:
            received = client.known_bugs(**about, limit=ask.limit)
    answer = received.value
    if ask.as_json:
        print_json(received.json)
    else:
        for hit in answer.hits:
            print_bug(hit)
    if not answer.hits and not error:
        nothing(None, "no error was seen so far")
    if not answer.hits:
        nothing(None, "this error was not seen before" if answer.errors else "no error was recognised in that text")


@click.command()
@in_json
def events(as_json: bool) -> None:
    """List the types of event that may stand in the log. (This needs no running memctl.)

    \b
    memctl events
    """

    found = types_of_events()
    columns = [Column("event"), Column("version", "right"), Column("meaning", give=True)]
    rows = [[each.name, str(each.version), each.doc] for each in found]
    print_json(found) if as_json else print_table(columns, rows)


def print_results(results: Sequence[Found]) -> None:
    """What was found; where nothing of it is likely, the first with what they say, and a line each of the others."""
    none = results[:1] and results[0].class_ == "none"
    if none:
        click.echo("Nothing here is sure or likely: these only came nearest.\n")
    for each in results[:FEWEST] if none else results:
        print_found(each)
    if none:
        print_nearest(results[FEWEST:])


FEWEST = 3
"""Results that are shown with what they say however weak they are, as in the viewer."""


def print_nearest(results: Sequence[Found]) -> None:
    """A line each."""
    for each in results:
        print_lines(f"  {each.id[:SHORT_ID]}  {line(each.title)[:100]}")


def print_found(found: Found) -> None:
    mark = click.style(
        f"{_SURENESS[found.class_]:<9}",
        fg=_COLOURS.get(found.class_),
        bold=found.class_ == "high",
        dim=found.class_ == "none",
    )
    place = f" · {found.project}" if found.project else ""
    score = f"{found.score:.2f}  " if found.explain else ""  # results stand by more than that
    head, *more = broken(f"{'':<10}{score}{line(found.title)}", 10)
    click.echo("\n".join([f"{mark} {head[10:]}", *more]))
    whose = f" · {found.origin}" if found.origin else ""
    about = f"{found.id[:SHORT_ID]} · {found.kind}{whose} · {when(found.occurred_at)}{place} · {found.why}"
    click.echo(click.style("\n".join(broken(f"{'':<10}{line(about)}", 10)), dim=True))
    for each in _rest(found.passage or found.text, found.title)[:MOST_LINES]:
        print_lines(f"          > {each}")
    for name, value in (found.explain or {}).items():
        print_lines(f"          {name}: {value}")
    click.echo()


def _rest(text: str, title: str) -> list[str]:
    """Lines of a text that its title does not say already."""
    lines = [line(each) for each in text.splitlines() if each.strip()]
    if lines and lines[0].rstrip("…").startswith(title.rstrip("…")[:60]) and len(lines[0]) <= len(title) + 1:
        lines = lines[1:]
    return [each if len(each) <= LONGEST_LINE else each[: LONGEST_LINE - 1] + "…" for each in lines]


LONGEST_LINE, MOST_LINES = 1_220, 12
"""Characters of a line of what was found: as many as the passage of the first one has. Lines of it: where a passage has
more, it is a list, and its first lines say of what."""

_SURENESS = {"high": "sure", "suggested": "likely", "none": "weak"}
_COLOURS: dict[str, Literal["green", "yellow"]] = {"high": "green", "suggested": "yellow"}
_LIKENESS = {"high": "the same error", "suggested": "much alike", "none": "somewhat alike"}


def print_bug(hit: BugHit) -> None:
    types = ", ".join(hit.error_types)
    title = hit.message if hit.message.startswith(types) else f"{types}: {hit.message}"
    score = f"{hit.score:.2f}" if hit.aspects else "    "
    head, *more = broken(f"{'':<6}{line(title)}", 6)
    click.echo(f"{score}  {click.style(head[6:], bold=True)}")
    for row in more:
        click.echo(click.style(row, bold=True))
    places = ", ".join(hit.projects) or "no project"
    print_lines(f"      seen {hit.occurrences}×, last {when(hit.last_seen)}, in {places}")
    if hit.aspects:
        alike = "" if hit.class_ == "high" else f" in {', '.join(hit.aspects)}"
        print_lines(f"      {_LIKENESS[hit.class_]}{alike}")
    if hit.solution is None:
        print_lines("      no way out is known yet")
    else:
        _print_solution(hit.solution, hit.mean_resolve_s)
    for other in hit.related[:3]:
        print_lines(f"      came with: {line(', '.join(other.error_types) + ': ' + other.message)[:100]}")
    click.echo(click.style(f"      {hit.signature}", dim=True))
    click.echo()


def _print_solution(best: ShownSolution, mean_resolve_s: float | None) -> None:
    fix, why = fix_and_why(best.approach, best.description)
    print_lines(f"      fix: {line(fix_or_what_is_known(fix, edited=bool(best.edits)))[:300]}")
    lasted = f"held {best.successes} of {best.uses}"
    took = f"; takes {span(mean_resolve_s)}" if mean_resolve_s else ""
    print_lines(f"      {lasted}{took}")
    if why:
        print_lines(f"      why: {line(why)[:300]}")
    for edit in best.edits:
        print_lines(f"      edit {line(edit.path)}")
        for sign, colour, text in (("-", "red", edit.before), ("+", "green", edit.after)):
            for each in text.splitlines()[:6]:
                click.echo("        " + click.style(safe(f"{sign} {each}"), fg=colour))


def print_thing(thing: Thing) -> None:
    item = thing.item
    click.echo(click.style(f"{thing.kind} {line(str(item.get('id', '')))}", bold=True))
    if thing.kind in ("episode", "task"):
        if thing.kind == "episode":
            print_episode(msgspec.convert(item, EpisodeItem))
        else:
            print_task(msgspec.convert(item, TaskItem))
        return
    if thing.kind == "bug":
        _print_pattern(item)
    elif thing.kind == "memory":
        _print_memory(msgspec.convert(item, MemoryItem))
    else:
        for name, value in item.items():
            if name not in ("id", "evidence") and value not in (None, "", [], {}):
                _print_field(name, value, "")
    evidence = item.get("evidence")
    for each in evidence if isinstance(evidence, list) else ():
        if isinstance(each, dict) and "quote" in each:
            _print_evidence(msgspec.convert(each, Evidence))


def _print_memory(memory: MemoryItem) -> None:
    about = (memory.kind, memory.project, when(memory.occurred_at), memory.origin, memory.outcome)
    click.echo(click.style(line(" · ".join(filter(None, about))), dim=True))
    print_lines(*(f"> {each}" for each in memory.text.splitlines()))
    _print_names("files", memory.files)
    _print_names("sessions", memory.sessions)


def _print_pattern(item: dict[str, Json]) -> None:
    """An error with all that ended it; how often, when and where it was met."""
    pattern = msgspec.convert(item, _Pattern)
    print_lines(*(f"> {each}" for each in (pattern.example.text or pattern.message).splitlines()[:20]))
    print_lines(f"      seen {pattern.occurrences}×, {when(pattern.first_seen)} to {when(pattern.last_seen)}")
    mean_s = pattern.resolve_us_total / pattern.resolutions / 1_000_000 if pattern.resolutions else None
    for solution in pattern.solutions[:MOST_LISTED]:
        _print_solution(solution, mean_s)
    if not pattern.solutions:
        print_lines("      no way out is known yet")
    _print_names("commands", [each.name for each in pattern.commands])
    _print_names("files", [each.name for each in pattern.files])
    _print_names("sessions", [each.name for each in pattern.sessions])


def _print_names(label: str, names: Sequence[str]) -> None:
    for name in names[:MOST_LISTED]:
        print_lines(f"{label.removesuffix('s')}: {line(name).removeprefix('session/')}")
    if len(names) > MOST_LISTED:
        print_lines(f"{len(names) - MOST_LISTED} more {label}; `--json` has them")


MOST_LISTED = 5
"""Ways out, files and sessions of one thing that are shown."""


class _Name(msgspec.Struct):
    name: str


class _Example(msgspec.Struct):
    text: str = ""


class _Pattern(msgspec.Struct):
    """What is shown of a bug pattern's row."""

    message: str
    example: _Example
    occurrences: int
    resolutions: int
    resolve_us_total: int
    first_seen: str
    last_seen: str
    solutions: list[ShownSolution]
    commands: list[_Name]
    files: list[_Name]
    sessions: list[_Name]


_INNER = ("lineage",)
"""What only the fold needs of the parts of a row."""
_SHOWN_AS = {"stream": "session"}


def _is_id(value: Json) -> bool:
    if not isinstance(value, str) or len(value) != 36:
        return False
    try:
        UUID(value)
    except ValueError:
        return False
    return True


def _print_evidence(each: Evidence) -> None:
    holds = "" if each.holds else click.style(" (no longer reads so)", fg="red")
    source = f"{line(each.source.agent)} {line(each.source.session)}"
    click.echo(f"evidence {str(each.event_id)[:SHORT_ID]} {source}{holds}")
    for text in each.quote.splitlines()[:12]:
        print_lines(f"  > {text}")


def _print_field(name: str, value: Json, indent: str) -> None:
    label = name.replace("_", " ")
    if isinstance(value, dict):
        click.echo(f"{indent}{line(label)}:")
        for inner, each in value.items():
            if each not in (None, "", [], {}):
                _print_field(inner, each, indent + "  ")
    elif isinstance(value, list):
        click.echo(f"{indent}{line(label)}:")
        for each in value[:20]:
            if isinstance(each, dict):
                begins = f"{indent}  - "
                for inner, field in each.items():
                    if field not in (None, "", [], {}) and inner not in _INNER and not _is_id(field):
                        _print_field(_SHOWN_AS.get(inner, inner), field, begins)
                        begins = f"{indent}    "
            elif isinstance(each, list):
                print_lines(f"{indent}  - {', '.join(line(str(one)) for one in each)}")
            else:
                print_lines(f"{indent}  - {line(str(each))}")
    elif isinstance(value, str) and "\n" in value:
        click.echo(f"{indent}{line(label)}:")
        for text in value.splitlines():
            print_lines(f"{indent}  > {text}")
    else:
        shown = (
            when(value) if isinstance(value, str) and (name == "at" or name.endswith(("_at", "_seen"))) else str(value)
        )
        print_lines(f"{indent}{label}: {shown}")
