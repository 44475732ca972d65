"""The verbs that a client's hooks may call. Their work is done by `memctl.infra.hook`, before click is imported; what
comes here asks how they are used."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def _of_a_hook(command: F) -> F:
    for option in (
        click.option("--agent", default="claude-code", show_default=True, help="Whose hook it is."),
        click.option("--session-id", help="The session, where no payload on standard input names it."),
        click.option("--cwd", help="Where the session works."),
        click.option("--stdin", is_flag=True, help="Read the payload from standard input."),
    ):
        command = option(command)
    return command


@click.command("session-start")
@_of_a_hook
def session_start(**_: object) -> None:
    """Keep that a session began, and print what its agent should know.

    For a client's hook, with the payload (JSON) on standard input. Always exits 0. The answer has the form of the
    client that sent the payload; where it names no hook, it is {"context": "…"}.

    \b
    memctl session-start --session-id 3f6f1d52 --cwd ~/work/shop
    """
    raise click.UsageError("a hook gives it a payload on standard input, or --session-id")


@click.command()
@_of_a_hook
def save(**_: object) -> None:
    """Keep what a session's turn said, for a client's hook.

    The payload (JSON) is on standard input, in its client's form or with "session_id" and "messages", each with "role"
    and "content". Messages that came before are known again. Always exits 0, and prints nothing.

    \b
    memctl save --session-id 3f6f1d52 --cwd ~/work/shop
    """
    raise click.UsageError("a hook gives it a payload on standard input")


@click.command("session-end")
@_of_a_hook
def session_end(**_: object) -> None:
    """Keep that a session ended, for a client's hook. Always exits 0, and prints nothing.

    \b
    memctl session-end --session-id 3f6f1d52 --cwd ~/work/shop
    """
    raise click.UsageError("a hook gives it a payload on standard input, or --session-id")
