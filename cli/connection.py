"""What a verb asks: the running memctl, as it is or was, about a place."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

from memctl.cli.output import notice
from memctl.domain.support.errors import MemctlError
from memctl.infra.hooks.agent_shell import in_agents_shell
from memctl.infra.settings import load_settings

if TYPE_CHECKING:
    from memctl.api.client import AskedPlace, Client, NotYet

NOTHING_FOUND = 3
"""Exit code of a verb that found nothing."""

SHORT_ID = 8
"""Characters of an id in a table; any unambiguous beginning is understood."""

LOOK_AGAIN_S = 0.5
PATIENCE_S = 600.0
"""How long a verb waits for memory as it was."""


class NotBuilt(MemctlError):
    """Memory as of {as_of} could not be built: {why}"""

    as_of: str
    why: str


def _remember(context: click.Context, _: click.Parameter, value: str | None) -> None:
    context.meta[_AS_OF] = value


_AS_OF = "memctl.as_of"

looking_back = click.option(
    "--as-of",
    metavar="WHEN",
    expose_value=False,
    callback=_remember,
    help="As memory was then (2026-03-01T14:30, UTC where no zone is given) or at a position of the log.",
)
"""The option of verbs that read; `running` knows what it was given."""


def running() -> Client:
    """The running memctl to ask; of a verb that was given --as-of, the past."""
    from memctl.api.client import Client

    context = click.get_current_context(silent=True)
    as_of = context.meta.get(_AS_OF) if context is not None else None
    settings = load_settings()
    if as_of is None:
        return Client.of(settings)
    waiting: list[NotYet] = []

    def wait(why: NotYet) -> None:
        """Until it is built, by looking again; a job of another number means that the one before is no more."""
        if not waiting:
            notice(f"building memory as of {as_of}; this may take as long as a replay")
        elif why.job != waiting[0].job:
            with Client.of(settings) as asking:
                job = asking.job(waiting[0].job).value
            raise NotBuilt(as_of=as_of, why=job.message or f"its job was {job.status}")
        elif len(waiting) * LOOK_AGAIN_S > PATIENCE_S:
            raise NotBuilt(
                as_of=as_of,
                why=f"it was not done in {PATIENCE_S / 60:.0f} minutes",
                hint="ask again later; `memctl status` says whether a worker runs",
            )
        waiting.append(why)
        time.sleep(LOOK_AGAIN_S)

    return Client.of(settings, as_of=as_of, not_yet=wait)


def placed(project: str | None) -> AskedPlace:
    """What the API is asked about: a project in the user's words, and where the command runs."""
    if project is not None and project.startswith((".", "~", "/")):
        project = os.path.abspath(os.path.expanduser(project))
    try:
        here = os.getcwd()
    except FileNotFoundError:  # the working directory was deleted under us
        here = None
    return {"project": project, "here": here, "anywhere": not in_agents_shell()}
