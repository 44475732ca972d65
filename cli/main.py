"""The commands: each is imported when it is asked for, and errors become exit codes here only."""

from __future__ import annotations

import importlib
import sys
from typing import Any, NoReturn

import click

from memctl.domain.support.errors import MemctlError

SECTIONS = {
    "Run": {
        "up": "memctl.cli.up:up",
        "down": "memctl.cli.up:down",
        "status": "memctl.cli.status:status",
        "top": "memctl.cli.status:top",
        "install": "memctl.cli.install:install",
        "off": "memctl.cli.switch:off",
        "on": "memctl.cli.switch:on",
        "mcp": "memctl.cli.processes:mcp",
        "init": "memctl.cli.processes:init",
        "keys": "memctl.cli.keys:keys",
    },
    "Take in": {
        "ingest": "memctl.cli.ingest:ingest",
        "import": "memctl.cli.importing:import_legacy",
        "session-start": "memctl.cli.hooks:session_start",
        "save": "memctl.cli.hooks:save",
        "session-end": "memctl.cli.hooks:session_end",
    },
    "Ask": {
        "search": "memctl.cli.read:search",
        "ask": "memctl.cli.guiding:ask",
        "guidance": "memctl.cli.guiding:guidance",
        "show": "memctl.cli.read:show",
        "history": "memctl.cli.read:history",
        "sessions": "memctl.cli.read:sessions",
        "bugs": "memctl.cli.read:bugs",
        "insights": "memctl.cli.claims:insights",
        "knowledge": "memctl.cli.claims:knowledge",
        "prefs": "memctl.cli.claims:prefs",
        "explain": "memctl.cli.claims:explain",
        "episodes": "memctl.cli.work:episodes",
        "tasks": "memctl.cli.work:tasks",
        "context": "memctl.cli.context:context",
        "rules": "memctl.cli.rules:rules",
        "strategies": "memctl.cli.strategies:strategies",
        "entities": "memctl.cli.entities:entities",
        "graph": "memctl.cli.entities:graph",
        "project": "memctl.cli.project:project",
        "view": "memctl.cli.view:view",
        "tools": "memctl.cli.project:tools",
        "stats": "memctl.cli.stats:stats",
        "events": "memctl.cli.read:events",
    },
    "Tell": {
        "note": "memctl.cli.say:note",
        "verify-knowledge": "memctl.cli.claims:verify_knowledge",
        "reject": "memctl.cli.claims:reject",
        "rate": "memctl.cli.claims:rate",
        "pin": "memctl.cli.claims:pin",
        "resolve": "memctl.cli.claims:resolve",
        "core": "memctl.cli.claims:core",
        "task": "memctl.cli.work:task",
        "hypothesis": "memctl.cli.work:hypothesis",
        "decide": "memctl.cli.work:decide",
        "discovery": "memctl.cli.work:discovery",
    },
    "Erase and keep": {
        "forget": "memctl.cli.forget:forget",
        "prune": "memctl.cli.forget:prune",
        "redact": "memctl.cli.keeping:redact",
        "backup": "memctl.cli.keeping:backup",
        "restore": "memctl.cli.keeping:restore",
        "export": "memctl.cli.keeping:export",
        "reset": "memctl.cli.keeping:reset",
        "undo": "memctl.cli.undo:undo",
    },
    "Do by hand what the worker does by itself": {
        "consolidate": "memctl.cli.processors:consolidate",
        "reflect": "memctl.cli.processors:reflect",
        "judge": "memctl.cli.processors:judge",
        "maintain": "memctl.cli.processors:maintain",
        "costs": "memctl.cli.processors:costs",
    },
    "Rebuild and prove": {
        "replay": "memctl.cli.replay:replay",
        "dlq": "memctl.cli.dlq:dlq",
        "eval": "memctl.cli.evaluate:evaluate",
        "reindex": "memctl.cli.reindex:reindex",
        "verify": "memctl.cli.verify:verify",
        "doctor": "memctl.cli.verify:doctor",
        "config": "memctl.cli.processes:config",
        "completion": "memctl.cli.completion:completion",
    },
    "Parts, for a supervisor of your own": {
        "worker": "memctl.cli.processes:worker",
        "serve": "memctl.cli.processes:serve",
        "door": "memctl.cli.processes:door",
        "relay": "memctl.cli.processes:relay",
        "traces": "memctl.cli.processes:traces",
    },
}
"""Where each command lives, under what help lists it, in that order."""

COMMANDS = {name: place for section in SECTIONS.values() for name, place in section.items()}


class Commands(click.Group):
    """A group whose commands are modules that are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as problem:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            told = f"{problem.message} Did you mean {near[0]!r}?" if near else problem.message
            raise click.UsageError(told, ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        room = formatter.width - max(map(len, COMMANDS)) - 4
        for heading, names in SECTIONS.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(heading):
                formatter.write_dl([(name, in_short(command, room)) for name, command in commands if command])


def in_short(command: click.Command, most: int) -> str:
    """The first sentence of a command's help, without what explains it further where it is longer than `most`."""
    sentence = command.get_short_help_str(limit=1_000).removesuffix(".")
    if len(sentence) <= most:
        return sentence
    main = min((sentence.partition(apart)[0] for apart in ("; ", ": ", " (")), key=len)
    while len(main) > most and ", " in main:
        main = main.rpartition(", ")[0]
    return main if len(main) <= most else command.get_short_help_str(limit=most)


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="memctl", prog_name="memctl")
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
        _tell(problem)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # whoever read our output has had enough
        _silence(sys.stdout)
        sys.exit(0)
    except Exception as problem:
        known = _outage(problem)
        if known is None:
            raise
        _tell(known)


def _tell(problem: MemctlError) -> NoReturn:
    click.echo(f"error: {problem}", err=True)
    if problem.hint:
        click.echo(f"hint: {problem.hint}", err=True)
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
