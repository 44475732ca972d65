"""Lists as a command prints them: a table, or that nothing was found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from memctl.cli.connection import NOTHING_FOUND, placed, running
from memctl.cli.output import Cell, Column, notice, print_json, print_table


def print_page(
    context: click.Context,
    what: str,
    columns: list[Column],
    row: Callable[[dict[str, Any]], list[Cell | str]],
    project: str | None,
    limit: int,
    as_json: bool,
    **asked: Any,
) -> None:
    with running() as client:
        answer = client.page(what, **placed(project), limit=limit, **asked)
    items = answer["items"]
    if as_json:
        print_json(items)
    elif items:
        print_scope(answer["scope"])
        print_table(columns, [row(item) for item in items])
    if not items:
        nothing(context, answer["scope"], f"no {what} found")


def nothing(context: click.Context, scope: dict[str, Any], message: str) -> None:
    if scope["project"] is not None:
        message += f" in project {scope['project']}; --project '*' asks all"
    notice(message)
    context.exit(NOTHING_FOUND)


def print_scope(scope: dict[str, Any]) -> None:
    """Print which project was asked, if the user did not name one."""
    if scope["chosen"] == "here":
        notice(f"project {scope['project']} (--project '*' for all)")
    elif scope["chosen"] == "everywhere":
        notice("all projects (memory knows none here)")
