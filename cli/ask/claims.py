"""The verbs about what memory holds to be true: lists, explanations, and what people say of it."""

import contextlib
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import click
from msgspec import UNSET

from memctl.api.reading.explanation import Quoted
from memctl.api.reading.records import (
    CoreSectionItem,
    CoreVersion,
    InsightItem,
    KnowledgeItem,
    PreferenceItem,
    ResolutionItem,
)
from memctl.cli.ask.record import KINDS, say
from memctl.cli.connection import SHORT_ID, looking_back, running
from memctl.cli.groups import Verbs
from memctl.cli.output import Cell, Column, broken, line, print_json, print_lines, print_outcome, print_table, when
from memctl.cli.pages import Reading, each, in_json, print_items, reading, table
from memctl.domain.events.facts import quote_hash


@click.command()
@reading(limit=20)
@click.option("--kind", type=click.Choice(KINDS), help="Only claims of this kind.")
@click.option("--waiting", is_flag=True, help="Those that wait for more sessions, or for your word.")
def insights(ask: Reading, kind: str | None, waiting: bool) -> None:
    """List claims that hold, as words and work showed them; each with the level that it has reached.

    L4: active, found by search. L3: verified. L2: passed its checks, and waits to be said by you or seen in more
    sessions. `memctl explain ID` shows the rest.

    \b
    memctl insights
    memctl insights --kind preference --project '*'
    memctl insights --waiting      # those that do not hold yet, and why
    """

    def row(item: InsightItem) -> list[Cell | str]:
        level = Cell(f"L{item.level}", "green" if item.level and item.level >= 3 else "")
        seen = f"{len(item.sources)}×"
        return [Cell(item.id[:SHORT_ID], "cyan"), level, item.kind, seen, item.project, item.origin, item.text]

    shown = table(
        row,
        "id",
        "level",
        "kind",
        Column("seen", "right"),
        "project",
        Column("from", give=True),
        Column("claim", give=True),
    )
    answer = ask.page("insights", InsightItem, kind=kind, waiting=waiting)
    print_items(answer, ask.as_json, shown, "no insights found")


@click.command()
@reading(limit=20)
@click.option("--kind", type=click.Choice(KINDS), help="Only claims of this kind.")
@click.option("--status", type=click.Choice(["verified", "conflicted"]), help="Only subjects that stand so.")
def knowledge(ask: Reading, kind: str | None, status: str | None) -> None:
    """List what is held true, by subject: what stands, and beneath it what it replaced and until when.

    \b
    memctl knowledge
    memctl knowledge --project '*' --json
    """
    answer = ask.page("knowledge", KnowledgeItem, kind=kind, status=status)
    print_items(answer, ask.as_json, each(_print_subject), "nothing is verified yet")


def _print_subject(item: KnowledgeItem) -> None:
    together = 0 if item.sessions is UNSET else item.sessions
    place = f", {line(item.project)}" if item.project else ""
    for claim in item.claims:
        stands, first = not claim.superseded_by, claim is item.claims[0]
        mark = click.style(item.id[:SHORT_ID], fg="cyan") if first else " " * SHORT_ID
        dates = f"since {(claim.valid_from or '')[:10]}" if stands else f"until {(claim.valid_until or '')[:10]}"
        stale = "; its file changed since" if claim.stale else ""
        clones = f", {together} with its clones" if first and together > claim.sessions else ""
        text = line(claim.text) if stands else click.style(f"before: {line(claim.text)}", dim=True)
        click.echo(f"{mark}  {text}")
        click.echo(
            click.style(
                f"{'':<{SHORT_ID}}  {claim.kind}, {line(claim.warrant)}{clones}{place}, {dates}{stale}", dim=True
            )
        )


@click.command()
@reading(limit=40)
def prefs(ask: Reading) -> None:
    """Show how you like to work, as you said and as your sessions show it.

    \b
    memctl prefs
    """
    print_items(ask.page("preferences", PreferenceItem), ask.as_json, _print_preferences, "no preference was seen yet")


def _print_preferences(items: list[PreferenceItem]) -> None:
    for group in dict.fromkeys(item.group for item in items):
        click.echo(click.style(line(group), bold=True))
        rows = [_preference(item) for item in items if item.group == group]
        print_table([Column(""), Column(""), Column(""), Column("", give=True)], rows, headings=False)


def _preference(item: PreferenceItem) -> list[Cell | str]:
    how = "you said so" if item.said else f"{item.sessions}× shown"
    return [f"  {how}", Cell(item.insight[:SHORT_ID], "cyan"), item.project, item.text]


@click.command()
@click.argument("id")
@looking_back
@in_json
def explain(id: str, as_json: bool) -> None:
    """Say why memory holds the thing of this ID: level by level, down to the words that it rests on.

    \b
    memctl explain 8eb0a7c5
    """
    with running() as client:
        answer = client.explain(id)
    if as_json:
        print_json(answer.json)
        return
    found = answer.value
    click.echo(click.style(line(found.text)[:400], bold=True))
    place = f" · {line(found.project)}" if found.project else ""
    short = found.id.rpartition("/")[2][:SHORT_ID]
    click.echo(click.style(f"{found.kind} {short}{place} · level {found.level}", dim=True))
    for level in found.levels:
        mark = click.style("✓", fg="green") if level.reached else click.style("·", dim=True)
        at = f" {level.id[:SHORT_ID]}" if level.id else ""
        head, *more = broken(f"  L{level.level} {level.name}{at}: {line(level.why)}", 2)
        click.echo("\n".join([f"{mark}{head[1:]}", *more]))
    for missing in found.missing:
        print_lines(f"  missing: {line(missing)}")
    for rival in found.conflicts:
        dates = f"{rival.valid_from[:10]} to {(rival.valid_until or 'now')[:10]}"
        stands = "stands" if rival.stands else "gave way"
        print_lines(f"  against: {line(rival.text)} ({rival.trust}, {dates}; {stands})")
    for path in found.stale:
        click.echo(click.style(f"  {line(path)} has changed since: look whether it still holds", fg="yellow"))
    if found.resolution != "direct":
        to = f" to {found.resolved_to[:SHORT_ID]}" if found.resolved_to else ""
        print_lines(f"  {found.resolution}{to}")
    for quoted in found.evidence:
        _print_quoted(quoted)


def _print_quoted(quoted: Quoted) -> None:
    evidence = quoted.evidence
    source = evidence.source
    click.echo()
    head = f"{str(evidence.event_id)[:SHORT_ID]} {quoted.type} {when(quoted.occurred_at)}"
    at = f"{source.agent} {source.session[:SHORT_ID]} {evidence.field} {evidence.start}–{evidence.end}"
    whose = f" · {quoted.said_by}" if quoted.said_by else ""
    click.echo(click.style(line(f"  {head} · {at}{whose}"), dim=True))
    if not evidence.holds:
        click.echo(click.style("  broken: the event no longer reads so", fg="red"))
        return
    before, after = line(quoted.before)[-60:], line(quoted.after)[:60]
    quote = f" »{click.style(line(evidence.quote)[:300], bold=True)}« " if evidence.quote else ""
    text = f"  {'…' if before else ''}{before.lstrip('…')}{quote}{after.rstrip('…')}{'…' if after else ''}"
    click.echo("\n".join(broken(text.rstrip(), 2)))


@click.command("verify-knowledge")
@click.argument("id")
@click.option("--why", default="", help="What shows it.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@in_json
def verify_knowledge(id: str, why: str, yes: bool, as_json: bool) -> None:
    """Say that the claim of this ID holds, once you have read it: it graduates by your word.

    \b
    memctl verify-knowledge 8eb0a7c5
    """
    with running() as client:
        found = client.explain(id).value
    with contextlib.redirect_stdout(sys.stderr):
        print_lines(f"{found.kind} {found.id[:SHORT_ID]} · {found.project or 'every project'}", f"    {found.text}")
        for quoted in found.evidence:
            _print_quoted(quoted)
    if not yes:
        click.confirm("Does it hold?", abort=True, err=True)
    done = say("verify-knowledge", claim=found.id, why=why, words=quote_hash(found.text))
    print_outcome(done.json, as_json, "verified")


@click.command()
@click.argument("id")
@click.option("--why", default="", help="What is wrong with it.")
@in_json
def reject(id: str, why: str, as_json: bool) -> None:
    """Say that the claim of this ID does not hold: it leaves what is known, and does not come back by itself.

    With a team's key you take back what you alone said; the id that `memctl note` printed will do.

    \b
    memctl reject 8eb0a7c5 --why "it was a joke"
    """
    print_outcome(say("reject", claim=id, why=why).json, as_json, "rejected")


@click.command()
@click.argument("id")
@click.argument("value", type=click.FloatRange(0, 1))
@click.option("--why", default="", help="What it helped with, or how it misled.")
@in_json
def rate(id: str, value: float, why: str, as_json: bool) -> None:
    """Say how useful the memory of this ID was, from 0 (it misled) to 1 (just what was needed).

    \b
    memctl rate 8eb0a7c5 1
    memctl rate 8eb0a7c5 0 --why "of another project"
    """
    print_outcome(say("rate", memory=id, value=value, why=why).json, as_json, "rated")


@click.command()
@click.argument("id")
@click.option("--off", is_flag=True, help="Pin it no longer.")
@in_json
def pin(id: str, off: bool, as_json: bool) -> None:
    """Keep the memory of this ID, and put it first.

    \b
    memctl pin 8eb0a7c5
    memctl pin 8eb0a7c5 --off
    """
    print_outcome(say("pin", memory=id, pinned=not off).json, as_json, "unpinned" if off else "pinned")


@click.command()
@click.argument("id", required=False)
@click.option("--to", "target", metavar="ID", help="What it turned out to be.")
@click.option("--pending", "resolution", flag_value="pending", help="It is being looked into.")
@click.option("--reject", "resolution", flag_value="rejected", help="There was nothing in it.")
@in_json
def resolve(id: str | None, target: str | None, resolution: str | None, as_json: bool) -> None:
    """Say what became of something that a memory left open. Without an ID, list what was said so far.

    \b
    memctl resolve                 # what is open
    memctl resolve 8eb0a7c5 --to 60fc0f64
    memctl resolve 8eb0a7c5 --reject
    """
    if id is not None:
        if (target is None) == (resolution is None):
            raise click.UsageError("give one of --to ID, --pending and --reject")
        done = say("resolve", condition=id, resolution=resolution or "confirmed", resolved_to=target or "")
        print_outcome(done.json, as_json, resolution or "resolved")
        return
    with running() as client:
        answer = client.page("resolutions", ResolutionItem)

    def row(item: ResolutionItem) -> list[Cell | str]:
        return [item.condition[:SHORT_ID], item.resolution, item.resolved_to[:SHORT_ID], when(item.resolved_at)]

    shown = table(row, "id", "is", "to", "since")
    print_items(answer, as_json, shown, "nothing was resolved yet")


@click.group(cls=Verbs, invoke_without_command=True)
@in_json
@click.pass_context
def core(context: click.Context, as_json: bool) -> None:
    """Show core memory: the short sections that are always in context. Subcommands edit it.

    \b
    memctl core
    """
    if context.invoked_subcommand is not None:
        return
    with running() as client:
        answer = client.listing("/v1/core", CoreSectionItem)
    empty = "core memory is empty; `memctl core append SECTION TEXT` begins it"
    print_items(answer, as_json, each(_print_section), empty)


def _print_section(item: CoreSectionItem | CoreVersion) -> None:
    at = f"version {item.version}, {when(item.changed_at)}, by {item.by}"
    heading = at if isinstance(item, CoreVersion) else f"{item.section} (version {item.version})"
    click.echo(click.style(heading, bold=True))
    print_lines(*(f"  {each}" for each in item.text.splitlines()))


@core.command("history")
@click.argument("section")
@in_json
def core_history(section: str, as_json: bool) -> None:
    """Show what SECTION was, version by version, newest first.

    \b
    memctl core history persona
    """
    with running() as client:
        answer = client.listing(f"/v1/core/{quote(section, safe='')}/history", CoreVersion)
    empty = f"core memory never had a section {section!r}; `memctl core` lists those that it has"
    print_items(answer, as_json, each(_print_section), empty)


_VERSION: Callable[[Any], Any] = click.option(
    "--version", type=click.IntRange(min=0), help="Refuse where the section is no longer at this version."
)


@core.command("append")
@click.argument("section")
@click.argument("text", nargs=-1, required=True)
@_VERSION
@in_json
def core_append(section: str, text: tuple[str, ...], version: int | None, as_json: bool) -> None:
    """Add TEXT as a line to SECTION; a new name begins a section.

    \b
    memctl core append persona "Answers are short."
    """
    done = say("core-append", section=section, content=" ".join(text), version=version)
    print_outcome(done.json, as_json, f"{section} is at version {done.value.recorded['version']}")


@core.command("replace")
@click.argument("section")
@click.argument("old")
@click.argument("new", default="")
@_VERSION
@in_json
def core_replace(section: str, old: str, new: str, version: int | None, as_json: bool) -> None:
    """Put NEW where OLD stands in SECTION, or leave OLD out.

    \b
    memctl core replace persona "short" "very short"
    """
    done = say("core-replace", section=section, old=old, new=new, version=version)
    print_outcome(done.json, as_json, f"{section} is at version {done.value.recorded['version']}")
