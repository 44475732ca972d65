"""`memctl reindex`: every memory into the vector store again."""

from functools import partial

import click

from memctl.cli.output import print_outcome, progress_bar
from memctl.cli.pages import in_json
from memctl.infra.settings import load_settings


@click.command()
@click.option("--wait", is_flag=True, help="Wait until all of it is written; embedding goes on behind it.")
@in_json
def reindex(wait: bool, as_json: bool) -> None:
    """Write every memory into the vector store again; the worker does it, and embeds what has no vector.

    For a store that was emptied, swapped or restored from elsewhere. Search goes on meanwhile. After `embedder` was
    changed, nothing needs to be done. What merely drifted, the worker finds by itself within the hour, and `memctl
    verify --repair` at once.

    \b
    memctl reindex
    memctl reindex --wait
    """
    from memctl.api.checks.progress import queue_again

    settings = load_settings()
    if wait:
        with progress_bar() as progress:
            points, dense = queue_again(settings, partial(progress, "writing"))
    else:
        points, dense = queue_again(settings, None)
    outcome = "are written again" if wait else "will be written again; `memctl status` shows how far it is"
    print_outcome({"points": points, "waiting_for_dense": dense}, as_json, f"{points:,} points {outcome}")
