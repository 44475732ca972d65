"""What every verb that reads has: its options, the running memctl to ask, and the place it asks about."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from memctl.api.client import Client

NOTHING_FOUND = 3
"""Exit code of a verb that found nothing."""

SHORT_ID = 8
"""Characters of an id in a table; any unambiguous beginning is understood."""

F = TypeVar("F", bound=Callable[..., Any])


def reading(*, limit: int) -> Callable[[F], F]:
    """The options that every reading verb has."""

    def decorate(command: F) -> F:
        for option in (
            click.option("--json", "as_json", is_flag=True, help="Print JSON."),
            click.option(
                "--limit", type=click.IntRange(1, 200), default=limit, show_default=True, help="Most items to print."
            ),
            click.option(
                "--project",
                metavar="NAME|PATH|*",
                help="Which project; '*' for all. Without it, the one this directory belongs to, if memory knows it.",
            ),
        ):
            command = option(command)
        return command

    return decorate


def running() -> Client:
    from memctl.api.client import Client
    from memctl.infra.settings import load_settings

    return Client.of(load_settings())


def placed(project: str | None) -> dict[str, Any]:
    """What the API is told of the place: a project in the user's words, and where the command runs."""
    if project is not None and project.startswith((".", "~", "/")):
        project = os.path.abspath(os.path.expanduser(project))
    try:
        here = os.getcwd()
    except FileNotFoundError:  # the working directory was deleted under us
        here = None
    return {"project": project, "here": here}
