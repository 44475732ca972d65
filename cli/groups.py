"""Groups of commands that know what is meant by a word which is none of theirs, and list each in words that end."""

from __future__ import annotations

from collections.abc import Iterable

import click

from memctl.cli.commands import MEANT_IN


class Verbs(click.Group):
    """A noun's verbs, as `memctl keys` has them; `otherwise` says what to do with a word that none is meant by."""

    otherwise = ""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as why:
            near = MEANT_IN.get(ctx.info_name or "", {}).get(args[0])
            said = f"Did you mean `memctl {near}`?" if near else self.otherwise.format(args[0])
            raise click.UsageError(f"{why.format_message()} {said}".rstrip(), ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        listed(self, ctx, formatter, "Commands", self.list_commands(ctx))


def listed(
    group: click.Group, ctx: click.Context, formatter: click.HelpFormatter, heading: str, names: Iterable[str]
) -> None:
    """Write commands below a heading, each with what it does, on its line."""
    commands = [(name, command) for name in names if (command := group.get_command(ctx, name))]
    room = formatter.width - max(map(len, group.list_commands(ctx))) - 4
    with formatter.section(heading):
        formatter.write_dl([(name, in_short(command, room)) for name, command in commands])


def in_short(command: click.Command, most: int) -> str:
    """The first sentence of a command's help, without what explains it further where it is longer than `most`."""
    sentence = command.get_short_help_str(limit=1_000).removesuffix(".")
    if len(sentence) <= most:
        return sentence
    main = min((sentence.partition(apart)[0] for apart in ("; ", ": ", " (")), key=len)
    while len(main) > most and ", " in main:
        main = main.rpartition(", ")[0]
    return main if len(main) <= most else command.get_short_help_str(limit=most)
