"""What a verb asks: the running memctl, about a place."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from memctl.api.client import Client

NOTHING_FOUND = 3
"""Exit code of a verb that found nothing."""

SHORT_ID = 8
"""Characters of an id in a table; any unambiguous beginning is understood."""


def running() -> Client:
    """The running memctl to ask."""
    from memctl.api.client import Client
    from memctl.infra.settings import load_settings

    return Client.of(load_settings())


class Placed(TypedDict):
    """What the API is asked about: a project as the user names it, and the working directory."""

    project: str | None
    here: str | None


def placed(project: str | None) -> Placed:
    """What the API is asked about: a project in the user's words, and where the command runs."""
    if project is not None and project.startswith((".", "~", "/")):
        project = os.path.abspath(os.path.expanduser(project))
    try:
        here = os.getcwd()
    except FileNotFoundError:  # the working directory was deleted under us
        here = None
    return {"project": project, "here": here}
