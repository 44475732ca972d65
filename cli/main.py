"""The commands: each is imported when it is asked for, and errors become exit codes here only."""

from __future__ import annotations

import importlib
import sys
from typing import Any, NoReturn

import click

from memctl.domain.support.errors import MemctlError

SECTIONS = {
    "Run": {
        "up": "memctl.cli.operate.up:up",
        "down": "memctl.cli.operate.up:down",
        "status": "memctl.cli.operate.status:status",
        "top": "memctl.cli.operate.status:top",
        "install": "memctl.cli.capture.install:install",
        "off": "memctl.cli.capture.switch:off",
        "on": "memctl.cli.capture.switch:on",
        "mcp": "memctl.cli.operate.processes:mcp",
        "init": "memctl.cli.operate.processes:init",
        "keys": "memctl.cli.operate.keys:keys",
    },
    "Take in": {
        "ingest": "memctl.cli.capture.ingest:ingest",
        "import": "memctl.cli.capture.importing:import_legacy",
        "session-start": "memctl.cli.capture.hooks:session_start",
        "save": "memctl.cli.capture.hooks:save",
        "session-end": "memctl.cli.capture.hooks:session_end",
    },
    "Ask": {
        "search": "memctl.cli.ask.read:search",
        "ask": "memctl.cli.ask.guidance:ask",
        "guidance": "memctl.cli.ask.guidance:guidance",
        "show": "memctl.cli.ask.read:show",
        "history": "memctl.cli.ask.read:history",
        "sessions": "memctl.cli.ask.read:sessions",
        "bugs": "memctl.cli.ask.read:bugs",
        "insights": "memctl.cli.ask.claims:insights",
        "knowledge": "memctl.cli.ask.claims:knowledge",
        "prefs": "memctl.cli.ask.claims:prefs",
        "explain": "memctl.cli.ask.claims:explain",
        "episodes": "memctl.cli.ask.work:episodes",
        "tasks": "memctl.cli.ask.work:tasks",
        "context": "memctl.cli.ask.context:context",
        "rules": "memctl.cli.ask.rules:rules",
        "strategies": "memctl.cli.ask.strategies:strategies",
        "recalls": "memctl.cli.ask.hindsight:recalls",
        "hindsight": "memctl.cli.ask.hindsight:hindsight",
        "entities": "memctl.cli.ask.entities:entities",
        "graph": "memctl.cli.ask.entities:graph",
        "project": "memctl.cli.ask.project:project",
        "view": "memctl.cli.ask.view:view",
        "tools": "memctl.cli.ask.project:tools",
        "stats": "memctl.cli.ask.stats:stats",
        "events": "memctl.cli.ask.read:events",
    },
    "Record": {
        "note": "memctl.cli.ask.record:note",
        "waiting": "memctl.cli.erase.waiting:waiting",
        "verify-knowledge": "memctl.cli.ask.claims:verify_knowledge",
        "reject": "memctl.cli.ask.claims:reject",
        "rate": "memctl.cli.ask.claims:rate",
        "pin": "memctl.cli.ask.claims:pin",
        "resolve": "memctl.cli.ask.claims:resolve",
        "core": "memctl.cli.ask.claims:core",
        "task": "memctl.cli.ask.work:task",
        "hypothesis": "memctl.cli.ask.work:hypothesis",
        "decide": "memctl.cli.ask.work:decide",
        "discovery": "memctl.cli.ask.work:discovery",
    },
    "Erase and keep": {
        "forget": "memctl.cli.erase.forget:forget",
        "prune": "memctl.cli.erase.forget:prune",
        "redact": "memctl.cli.operate.keeping:redact",
        "backup": "memctl.cli.operate.keeping:backup",
        "restore": "memctl.cli.operate.keeping:restore",
        "export": "memctl.cli.operate.keeping:export",
        "reset": "memctl.cli.operate.keeping:reset",
        "undo": "memctl.cli.erase.undo:undo",
    },
    "Do by hand what the worker does by itself": {
        "consolidate": "memctl.cli.operate.processors:consolidate",
        "reflect": "memctl.cli.operate.processors:reflect",
        "judge": "memctl.cli.operate.processors:judge",
        "maintain": "memctl.cli.operate.processors:maintain",
        "costs": "memctl.cli.operate.processors:costs",
    },
    "Rebuild and prove": {
        "replay": "memctl.cli.operate.replay:replay",
        "dlq": "memctl.cli.operate.dlq:dlq",
        "eval": "memctl.cli.operate.evaluate:evaluate",
        "reindex": "memctl.cli.operate.reindex:reindex",
        "verify": "memctl.cli.operate.verify:verify",
        "doctor": "memctl.cli.operate.verify:doctor",
        "config": "memctl.cli.operate.processes:config",
        "completion": "memctl.cli.operate.completion:completion",
    },
    "Parts, for a supervisor of your own": {
        "worker": "memctl.cli.operate.processes:worker",
        "serve": "memctl.cli.operate.processes:serve",
        "door": "memctl.cli.operate.processes:door",
        "relay": "memctl.cli.operate.processes:relay",
        "traces": "memctl.cli.operate.processes:traces",
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
            message = f"{problem.message} Did you mean {near[0]!r}?" if near else problem.message
            raise click.UsageError(message, ctx) from None

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
