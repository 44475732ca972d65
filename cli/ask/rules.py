"""The verbs for what was learnt of code: `rules`, and the statements about them."""

from __future__ import annotations

from typing import Literal

import click

from memctl.api.reading.learnt import PatternItem, RuleItem
from memctl.cli.ask.record import print_result, say
from memctl.cli.connection import SHORT_ID
from memctl.cli.output import Cell, Column, line, print_lines, when
from memctl.cli.pages import Reading, each, in_json, print_items, reading, table

_STYLES: dict[str, Literal["green", "yellow", "red", "dim"]] = {
    "trusted": "green", "active": "yellow", "weak": "red", "retired": "dim", "seen": "dim",
}  # fmt: skip


_NONE_LEARNT = "no {} were learnt here yet: one is shown once it was seen in two files or sessions"


class _WithDefault(click.Group):
    """A group whose options, given alone, list."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ("--help", "-h")):
            args = ["list", *args]
        return super().parse_args(context, args)


@click.group(cls=_WithDefault)
def rules() -> None:
    """List what code gives way to what, and how sure that is; say that a rule holds, or retire it.

    `memctl rules` alone lists: see `memctl rules list --help` for --language, --state and --patterns.

    \b
    memctl rules
    memctl rules good 8eb0a7c5
    """


@rules.command("list")
@reading(limit=30)
@click.option("--language", help="Only rules of this language: go, typescript, python, …")
@click.option("--state", type=click.Choice(["trusted", "active", "weak", "seen", "retired"]))
@click.option("--patterns", is_flag=True, help="The transformations that recur, in place of the single rules.")
def list_rules(ask: Reading, language: str | None, state: str | None, patterns: bool) -> None:
    """List rules of replacement (trusted from 0.8 on, weak below 0.3), or patterns of transformation.

    \b
    memctl rules list --state trusted
    memctl rules list --patterns --project '*'
    """
    if patterns:
        found = ask.page("patterns", PatternItem, language=language)
        print_items(found, ask.as_json, each(_print_pattern), _NONE_LEARNT.format("patterns"), whole=True)
        return
    shown = table(_row, "id", "state", Column("sure", "right"), Column("seen", "right"), Column("rule", give=True))
    answer = ask.page("rules", RuleItem, language=language, state=state)
    print_items(answer, ask.as_json, shown, _NONE_LEARNT.format("rules"), whole=True)


def _row(item: RuleItem) -> list[Cell | str]:
    after = item.after or "(nothing)"
    return [
        Cell(item.id[:SHORT_ID], "cyan"),
        Cell(item.state, _STYLES[item.state]),
        f"{item.confidence:.2f}",
        str(item.places),
        f"{item.before} → {after}",
    ]


def _print_pattern(item: PatternItem) -> None:
    stats = item.stats
    languages = ", ".join(item.applicability.languages)
    click.echo(click.style(line(f"{item.category}: {item.name}"), bold=True))
    print_lines(
        f"  {item.transformation.description}",
        f"  {stats.application_count} times in {len(item.files)} files of {item.project} ({languages}), "
        f"last {when(item.last_seen)}",
    )
    for example in item.examples[:1]:
        click.echo("  " + click.style(line(f"- {example.before}")[:150], fg="red"))
        click.echo("  " + click.style(line(f"+ {example.after}")[:150], fg="green"))
    click.echo()


_WHY = click.option("--why", default="", help="The reason, kept with the statement.")


@rules.command()
@click.argument("id")
@_WHY
@in_json
def good(id: str, why: str, as_json: bool) -> None:
    """Say that rule ID held: it gets surer.

    \b
    memctl rules good 8eb0a7c5
    """
    print_result(say("reinforce_rule", rule=id, success=True, why=why), as_json, "noted: the rule held")


@rules.command()
@click.argument("id")
@_WHY
@in_json
def bad(id: str, why: str, as_json: bool) -> None:
    """Say that rule ID did not hold: it gets less sure, and is not applied below 0.3.

    \b
    memctl rules bad 8eb0a7c5 --why "not in generated code"
    """
    print_result(say("reinforce_rule", rule=id, success=False, why=why), as_json, "noted: the rule did not hold")


@rules.command()
@click.argument("id")
@click.option("--into", default="", metavar="ID", help="The rule that says the same.")
@click.option("--pattern", is_flag=True, help="ID is a pattern of transformation.")
@_WHY
@in_json
def retire(id: str, into: str, pattern: bool, why: str, as_json: bool) -> None:
    """Stop showing rule ID. Nothing is deleted: `restore` shows it again.

    \b
    memctl rules retire 8eb0a7c5 --why outdated
    """
    kind = "code_pattern" if pattern else "rule"
    done = say("retire_pattern", pattern=id, kind=kind, reason=why, into=into)
    print_result(done, as_json, "retired" if not into else "merged")


@rules.command()
@click.argument("id")
@click.option("--pattern", is_flag=True, help="ID is a pattern of transformation.")
@_WHY
@in_json
def restore(id: str, pattern: bool, why: str, as_json: bool) -> None:
    """Show rule ID again.

    \b
    memctl rules restore 8eb0a7c5
    """
    done = say("retire_pattern", pattern=id, kind="code_pattern" if pattern else "rule", reason=why, back=True)
    print_result(done, as_json, "restored")
