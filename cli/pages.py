"""Lists as a command prints them: a table, or that nothing was found."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from memctl.cli.connection import NOTHING_FOUND, placed, running
from memctl.cli.output import Cell, Column, notice, print_json, print_table

if TYPE_CHECKING:
    from memctl.api.client import Asked
    from memctl.api.reading.views import Json, Scope

T = TypeVar("T")


def print_page(
    context: click.Context,
    what: str,
    of: type[T],
    columns: list[Column],
    row: Callable[[T], list[Cell | str]],
    project: str | None,
    limit: int,
    as_json: bool,
    **asked: Asked,
) -> None:
    with running() as client:
        answer = client.page(what, of, **placed(project), limit=limit, **asked)
    found = answer.value
    if as_json:
        print_items(answer.json)
    elif found.items:
        print_scope(found.scope)
        print_table(columns, [row(item) for item in found.items])
    if not found.items:
        nothing(context, found.scope, f"no {what} found")


def print_items(answer: Json) -> None:
    """The items of a page or list, as JSON."""
    print_json(answer["items"] if isinstance(answer, dict) else answer)


def nothing(context: click.Context, scope: Scope | None, message: str) -> None:
    if scope is not None and scope.project is not None:
        message += f" in project {scope.project}; --project '*' asks all"
    notice(message)
    context.exit(NOTHING_FOUND)


def print_scope(scope: Scope | None) -> None:
    """Print which project was asked, if the user did not name one."""
    if scope is None:
        return
    if scope.chosen == "here":
        notice(f"project {scope.project} (--project '*' for all)")
    elif scope.chosen == "everywhere":
        notice("all projects (memory knows none here)")
