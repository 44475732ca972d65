"""`memctl ingest`: transcripts and folders of them, or one hook payload on stdin."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from memctl.cli.output import notice, print_lines
from memctl.domain.support.wording import number
from memctl.infra.hooks.agent_shell import only_a_person
from memctl.infra.hooks.capture_policy import CapturePolicy
from memctl.infra.settings import load_settings

if TYPE_CHECKING:
    from memctl.api.write.ingest import Account

MOST_NAMED = 3
"""Packed files that are named."""

KINDS_SHOWN = 8
"""How many kinds of lines without events are shown, the most frequent ones; clients have some fifty."""


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--stdin", "from_stdin", is_flag=True, help="Take one hook payload from standard input; always exits 0.")
@click.option("--agent", default="", help="Read this client's sessions only; with --stdin, the client of the payload.")
@click.option("--event", default="", help="The hook that ran, where the payload does not say.")
@click.option("--follow", is_flag=True, help="Go on as the files grow, until interrupted.")
@click.option("--again", is_flag=True, help="Read files from their start, also where they were read before.")
@click.option("--example", is_flag=True, help="Read the example session that comes with memctl.")
@click.option("--git", is_flag=True, help="Read the commits and tags of the repositories that PATHS lie in.")
@click.option("--wait", is_flag=True, help="Wait until what was read can be searched.")
@click.option("--json", "as_json", is_flag=True, help="Print the account as JSON.")
def ingest(
    paths: tuple[Path, ...],
    from_stdin: bool,
    agent: str,
    event: str,
    follow: bool,
    again: bool,
    example: bool,
    git: bool,
    wait: bool,
    as_json: bool,
) -> None:
    """Read transcripts (files or folders) into the log: Claude Code, Codex, Copilot CLI, Gemini CLI, OpenCode's
    exports, SpecStory, aider, SWE-agent.

    Without PATHS, the folders where clients keep theirs (exit 3 if there are none). A folder may hold all kinds; among
    projects' files only their histories are found. What was read before is not read again, and a line that was recorded
    before is a duplicate: running this twice adds nothing. The account at the end counts every line. On a member's
    machine all is sent to the team's API with the member's key.

    \b
    memctl ingest                  # where coding agents keep their sessions
    memctl ingest ~/old-sessions --wait
    memctl ingest --follow         # go on as they grow
    memctl ingest --git ~/shop     # the reasons that its commits give
    memctl ingest --example --wait
    """
    if from_stdin:  # alone, or with --agent and --event, it never comes here: see `memctl.infra.hook`
        raise click.UsageError("--stdin takes one hook payload, --agent and --event, and nothing else")
    from memctl.api.write.ingest import Account
    from memctl.api.write.ingest import follow as follow_files
    from memctl.infra.transcripts.files import EXAMPLE, default_sources

    _check_arguments(paths, agent)
    if git and (follow or agent or example):
        raise click.UsageError("--git reads repositories, and takes neither --follow, --agent nor --example")
    sources = [EXAMPLE] if example else list(paths) or ([] if git else default_sources(agent=agent))
    if not git:
        _check_whose(paths, passed_over=again and not example)
    files = _repositories(paths) if git else _files_to_read(sources, paths, agent, follow=follow)
    account = Account()
    with _opened(to_wait=wait) as writer:
        policy = None if again else CapturePolicy(writer.settings)
        try:
            _with_progress(writer, files, again, account, policy, git=git)
            if wait:
                wait_until_folded(writer)
            if follow:
                stop = _asked_to_stop()
                click.echo("following; Ctrl-C ends it", err=True)
                follow_files(
                    writer,
                    sources,
                    account,
                    lambda so_far: click.echo(f"{so_far.new} new events", err=True),
                    stop,
                    agent=agent,
                    policy=policy,
                )
        except KeyboardInterrupt:
            if not follow:
                raise
    print_account(account, as_json)


@contextlib.contextmanager
def _opened(*, to_wait: bool) -> Iterator[Any]:
    """Where events go: into the log at hand, or on a member's machine to the team's API."""

    settings = load_settings()
    if not settings.server or settings.database_url is not None:
        from memctl.api.write.ingest_writer import IngestWriter

        with IngestWriter(settings) as writer:
            yield writer
        return
    from memctl.api.write.remote_writer import sending

    if to_wait:
        raise click.UsageError(f"--wait is for the machine that has the memory: this one sends to {settings.server}")
    notice(f"sending to {settings.server}")
    with sending(settings) as sender:
        yield sender


def _check_arguments(paths: Sequence[Path], agent: str) -> None:
    """Raises: click.UsageError where the client is unknown, or a path cannot be read."""
    from memctl.infra.transcripts.sniff import READERS

    agents = list(dict.fromkeys(reader.agent for reader in READERS))
    if agent and agent not in agents:
        raise click.UsageError(f"no client {agent!r} is known: {', '.join(agents)}")
    for path in paths:
        try:
            path.expanduser().stat()
        except OSError as problem:
            raise click.UsageError(f"{path}: {problem.strerror}") from None
        if not os.access(path.expanduser(), os.R_OK):
            raise click.UsageError(f"{path} may not be read")


def _check_whose(paths: Sequence[Path], *, passed_over: bool) -> None:
    """Raises: NotByAgents where an agent names sessions that lie elsewhere than its user's clients keep theirs. Anybody
    may have written those, and what they say as typed would be the user's word, in whichever project they name. Or
    where it asks for what was `passed_over`, too: what was said while saving was off."""
    from memctl.infra.transcripts.files import kept_by_a_client

    if passed_over:
        only_a_person("has that read which was passed over")
    for path in paths:
        if not kept_by_a_client(path):
            only_a_person("says whose sessions these are")


def _files_to_read(sources: Sequence[Path], paths: Sequence[Path], agent: str, *, follow: bool) -> list[Path]:
    """The transcripts among `sources`, and a message for each of `paths` that is none. Exit 3 where there are none and
    none are waited for."""
    from memctl.infra.transcripts.files import archives, discover

    unread: dict[Path, OSError] = {}
    files = list(discover(sources, agent, refused=unread.__setitem__))
    for path, why in unread.items():
        notice(f"{path} is not read: {why.strerror or why}")
    strangers = [path for path in paths if path.is_file() and path not in unread and not any(discover([path], agent))]
    for path in strangers:
        notice(f"{path} is {_what_else(path, agent)}")
    if not files and not follow:
        if not paths or len(strangers) < len(paths):
            of = f" of {agent}" if agent else ""
            where = f"found in {', '.join(map(str, paths))}" if paths else "of your own yet; name a file or folder"
            packed = [
                each for path in paths if path.expanduser().is_dir() for each in archives(path) if each not in unread
            ]
            notice(f"no sessions{of} {where}{_packed(packed)}")
        raise click.exceptions.Exit(3)
    return files


def _packed(files: Sequence[Path]) -> str:
    """What is said of packed files that were found where sessions were looked for."""
    if not files:
        return ""
    named = ", ".join(path.name for path in files[:MOST_NAMED])
    more = f" and {len(files) - MOST_NAMED:,} more" if len(files) > MOST_NAMED else ""
    them = "it" if len(files) == 1 else "those that hold sessions"
    return f", but {number(len(files), 'packed file')} ({named}{more}): unpack {them}, and name what comes of it"


def _repositories(paths: Sequence[Path]) -> list[Path]:
    """The repositories that paths lie in, each once; of none, the one that the caller stands in. Exit 3 where one of
    them lies in none, or saving is off there."""
    from memctl.infra.transcripts.history import repository_at

    policy, found = CapturePolicy(load_settings()), dict[Path, None]()
    for path in paths or [Path.cwd()]:
        root = repository_at(path.expanduser())
        if root is None or policy.saving_was_off("", str(root), 0):
            notice(f"{path} lies in no repository" if root is None else f"saving is off in {root}")
            raise click.exceptions.Exit(3)
        found[root] = None
    return list(found)


def _what_else(path: Path, agent: str) -> str:
    """What a file is that was named and is no transcript."""
    from memctl.infra.transcripts.sniff import is_archive

    if path.stat().st_size == 0:
        return "empty: passed over"
    if is_archive(path):
        return "packed: unpack it, and name what comes of it"
    return f"no transcript {f'of {agent}' if agent else 'that memctl knows'}: passed over"


def _asked_to_stop() -> threading.Event:
    """Set by the first Ctrl-C or SIGTERM (a supervisor's way to say it); the second one interrupts."""
    stop = threading.Event()

    def ask(number: int, at: FrameType | None) -> None:
        stop.set()
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.default_int_handler)

    for each in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(each) != signal.SIG_IGN:  # as in what a shell runs in the background
            signal.signal(each, ask)
    return stop


def wait_until_folded(writer: Any) -> None:
    from rich.console import Console

    from memctl.api.checks.dead_letters import parked_in
    from memctl.api.checks.progress import caught_up

    console = Console(stderr=True)
    with console.status("folding") as shown:
        for waiting in caught_up(writer.connection, writer.space_id):
            shown.update(f"folding: {waiting.events} positions and {waiting.points} points to go")
    if parked := parked_in(writer.connection, writer.space_id):
        click.echo(f"not all of it can be searched: {parked} set aside; `memctl status` says why", err=True)


def _with_progress(
    writer: Any, files: list[Path], again: bool, account: Account, policy: CapturePolicy | None,
    *, git: bool,
) -> None:  # fmt: skip
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from memctl.api.write.ingest import ingest as ingest_files
    from memctl.api.write.ingest import ingest_history

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(),
               TimeRemainingColumn())  # fmt: skip
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("reading", total=None if git else sum(map(_size, files)))
        read = ingest_history if git else partial(ingest_files, policy=policy)
        read(writer, files, again=again, account=account, progress=lambda path, size: bar.advance(task, size))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # it went away; the account will say so
        return 0


def print_account(account: Account, as_json: bool) -> None:
    """Print what became of every line, as JSON or for people."""
    if as_json:
        click.echo(json.dumps(account.as_json(), indent=2, ensure_ascii=False))
        return
    rate = account.read_bytes / 1e6 / account.seconds if account.seconds else 0.0
    unchanged = f" ({account.unchanged} unchanged)" if account.unchanged else ""
    click.echo(f"{number(account.files, 'file')}{unchanged}, {number(account.lines, 'line')},"
               f" {account.read_bytes / 1e6:.1f} MB in {account.seconds:.1f} s ({rate:.1f} MB/s)")  # fmt: skip
    gone = f", {account.forgotten} forgotten before" if account.forgotten else ""
    click.echo(f"events: {account.new} new, {account.duplicate} duplicate, {account.variant} variant{gone}")
    for name, count in account.types.most_common():
        click.echo(f"  {count:>8}  {name}")
    if account.redacted:
        click.echo("redacted: " + ", ".join(f"{n} {kind}" for kind, n in account.redacted.most_common()))
    ignored = sum(account.ignored.values())
    click.echo(f"lines: {account.with_events} with events, {ignored} ignored, {account.blank} blank,"
               f" {account.incomplete} incomplete, {account.bad_lines} bad")  # fmt: skip
    for name, count in account.ignored.most_common(KINDS_SHOWN):
        print_lines(f"  {count:>8}  ignored  {name}")
    if len(account.ignored) > KINDS_SHOWN:
        rest = ignored - sum(count for _, count in account.ignored.most_common(KINDS_SHOWN))
        click.echo(f"  {rest:>8}  ignored  of {len(account.ignored) - KINDS_SHOWN} other kinds; --json shows each")
    for line in account.bad:
        print_lines(f"  bad  {line.file}{f':{line.line}' if line.line else ''}  {line.why}")
    if account.bad_lines > len(account.bad):
        click.echo(f"  bad  {account.bad_lines - len(account.bad)} more")
