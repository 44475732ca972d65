"""The commands: each is imported when it is asked for, and errors become exit codes here only."""

import importlib
import sys
from typing import Any, NoReturn

import click

from memctl.cli.commands import BESIDE, COMMANDS, FIRST, GROUPS, MEANT, MEANT_IN, Modules
from memctl.cli.groups import listed
from memctl.domain.support.errors import MemctlError

HELP = {"help_option_names": ["-h", "--help"]}


class Commands(click.Group):
    """A group whose commands are modules that are imported on use."""

    def __init__(self, *given: Any, sections: dict[str, Modules], **more: Any) -> None:
        super().__init__(*given, **more)
        self.sections = sections
        self.places = {name: place for section in sections.values() for name, place in section.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.places)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.places:
            return None
        module, _, attribute = self.places[name].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            said = self._instead(args, ctx.info_name or "")
            raise click.UsageError(f"There is no command {args[0]!r}. {said}", ctx) from None

    def _instead(self, args: list[str], group: str) -> str:
        import difflib

        word, after = args[0], args[1] if len(args) > 1 else ""
        if word == "help" and after in COMMANDS:
            return f"Did you mean `memctl {after} --help`?"
        near = MEANT_IN.get(group, {}).get(word) or MEANT.get(word) or MEANT.get(word.partition("-")[0])
        near = near or next(iter(difflib.get_close_matches(word, COMMANDS, n=1, cutoff=0.7)), "")
        beside = f" {BESIDE[word]}" if word in BESIDE else ""
        return f"Did you mean `memctl {near}`?{beside}" if near else "`memctl --help` lists them."

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, names in self.sections.items():
            listed(self, ctx, formatter, heading, names)


class Memctl(Commands):
    """The root: it lists what a day needs, and has the commands of its groups by their names alone, too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as why:
            raise click.UsageError(
                f"{why.option_name} is no option of memctl itself: commands come first.", ctx
            ) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *GROUPS]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in GROUPS:
            return super().get_command(ctx, name)
        what, sections = GROUPS[name]
        return Commands(name, sections=sections, help=what, context_settings=HELP)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, names in FIRST.items():
            listed(self, ctx, formatter, heading, names)
        listed(self, ctx, formatter, "More", GROUPS)
        formatter.write_paragraph()
        formatter.write_text("The commands of a group are called by their names alone, too: `memctl replay`.")


@click.command(cls=Memctl, sections={"": COMMANDS}, context_settings=HELP)
@click.version_option(None, "-V", "--version", package_name="memctl", prog_name="memctl")
def memctl() -> None:
    """Memory for coding agents that can be trusted: an immutable log, and everything known is rebuilt from it.

    \b
    memctl up                      # start everything on this machine
    memctl ingest                  # read the sessions of your coding agents
    memctl search "how are tests run"
    """


ITS_OWN = "a process of its own"
"""What the root context carries where the command line is all that this process does: it may be forked."""


def run() -> None:
    """Run the command line; errors that a person can act on end it with their message, their hint and their code."""
    try:
        code = memctl.main(
            standalone_mode=False, obj=ITS_OWN
        )  # what ctx.exit was given, else what the command returned
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Abort:
        click.echo("aborted", err=True)
        sys.exit(1)
    except click.exceptions.Exit as ended:
        sys.exit(ended.exit_code)
    except click.ClickException as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except MemctlError as problem:
        _show_error(problem)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # whoever read our output has had enough
        _silence(sys.stdout)
        sys.exit(0)
    except Exception as problem:
        known = _outage(problem)
        if known is None:
            raise
        _show_error(known)


def _show_error(problem: MemctlError) -> NoReturn:
    from memctl.cli.output import notice

    notice(f"error: {problem}")
    if problem.hint:
        notice(f"hint: {problem.hint}")
    sys.exit(problem.exit_code)


def _outage(problem: Exception) -> MemctlError | None:
    """A server's failure that no command has put into words; None for any other. Imports nothing that is not loaded."""
    if (psycopg := sys.modules.get("psycopg")) and isinstance(problem, psycopg.Error):
        from memctl.infra.database import outage

        return outage(problem)
    if (redis := sys.modules.get("redis")) and isinstance(problem, redis.RedisError):
        return MemctlError(
            f"Redis does not answer: {problem}", hint="start memctl with `memctl up`, or check MEMCTL_REDIS_URL"
        )
    return None


def _silence(stream: Any) -> None:
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
