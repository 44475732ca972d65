"""`memctl up` and `down`: everything of the one-machine default, started and stopped."""

from pathlib import Path

import click

from memctl.infra.settings import load_settings

data_dir_option = click.option(
    "--data-dir", type=click.Path(path_type=Path, file_okay=False), help="Data directory [env: MEMCTL_DATA_DIR]."
)


@click.command()
@data_dir_option
def up(data_dir: Path | None) -> None:
    """Start everything: database, queue, vector server, ingest door, API and worker.

    Creates what is missing on the first run, and starts nothing twice. A server that your settings name
    (MEMCTL_DATABASE_URL, MEMCTL_REDIS_URL, MEMCTL_QDRANT_URL) is used instead of one of memctl's own. MEMCTL_API_URL
    is where others reach the API; with MEMCTL_API_LISTEN it is started here.

    \b
    memctl up
    memctl up --data-dir ~/memory  # elsewhere; MEMCTL_DATA_DIR says the same
    """
    from memctl.infra.embedded import instance

    settings = load_settings(data_dir=data_dir)
    started = instance.up(settings, report=_print_status)
    _print_status("memctl is running" if started else "memctl is already running")
    now = load_settings(data_dir=data_dir)
    if now.api_url and now.api_listen:
        _print_status(f"API: {now.api_url}, listening on {now.api_listen}")
    elif now.configured("api_url"):
        _print_status(
            f"no API is started here: api_url names {now.api_url}; where that is this machine, set api_listen"
        )
    elif now.api_url:
        _print_status(f"API: {now.api_url}")
    offer_memories(settings.data_dir)


@click.command()
@data_dir_option
def down(data_dir: Path | None) -> None:
    """Stop everything that `memctl up` started, and wait until it is gone. What is stored stays.

    \b
    memctl down
    """
    from memctl.infra.embedded import instance

    stopped = instance.down(load_settings(data_dir=data_dir), report=_print_status)
    _print_status("memctl is stopped" if stopped else "memctl was not running")


def offer_memories(data_dir: Path) -> None:
    """Say once which memories of other tools are on this machine. None is opened."""
    from memctl.infra.legacy.finding import offered, to_offer

    if found := to_offer(data_dir):
        titles = ", ".join(dict.fromkeys(each.title for each in found))
        _print_status(f"on this machine: {titles}; what they hold, and how it comes in: memctl import")
        offered(data_dir, [each.path for each in found])


def _print_status(line: str) -> None:
    click.echo(line, err=True)
