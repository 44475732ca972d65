"""`memctl forget` and `memctl prune`: what is to be gone for good, shown before it goes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click
import msgspec

from memctl.api.reading.caller import OWNER
from memctl.cli.connection import placed
from memctl.cli.output import Column, notice, print_json, print_lines, print_table, when
from memctl.cli.pages import in_json
from memctl.domain.support.wording import number, size
from memctl.infra.hooks.agent_shell import only_a_person
from memctl.infra.settings import load_settings

if TYPE_CHECKING:
    from memctl.api.erasure.scope import Forgotten, Preview
    from memctl.api.reading.reader import Reader
    from memctl.infra.settings import Settings


_ONE_OF = "say one of --id, --session, --project, --before, --match"


class _Forget(click.Command):
    """Takes no word without its option: what goes for good is not guessed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        alone = len(args) == 1 and not args[0].startswith("-")
        if alone and args[0] in ("all", "everything", "*"):
            raise click.UsageError("All that memory holds goes by `memctl reset`.", ctx)
        if alone:
            raise click.UsageError(f"{_ONE_OF} before {args[0]!r}, as in `memctl forget --id {args[0]}`", ctx)
        return super().parse_args(ctx, args)


@click.command(cls=_Forget)
@click.option("--id", "id_", metavar="ID", help="A memory, episode, claim, bug, task, rule, entity, session or event.")
@click.option("--session", metavar="ID", help="A session and those of its subagents.")
@click.option("--project", metavar="NAME|PATH", help="Everything that happened in a project's places until now.")
@click.option(
    "--before",
    metavar="DATE",
    help="Everything that happened before a date or time (ISO 8601; UTC where no zone is given).",
)
@click.option("--match", metavar="TEXT", help="Every event in which a text stands, in any case and layout; - asks.")
@click.option("--scrub", is_flag=True, help="Build the database again afterwards: its files then hold nothing of it.")
@click.option(
    "--resume", is_flag=True, help="Go on with what was begun; and what a database set back in time brought back."
)
@click.option("--dry-run", is_flag=True, help="Show what would go and what would follow, and change nothing.")
@click.option("--reason", default="", metavar="TEXT", help="Why; it is kept in the log.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@in_json
def forget(
    id_: str | None,
    session: str | None,
    project: str | None,
    before: str | None,
    match: str | None,
    scrub: bool,
    resume: bool,
    dry_run: bool,
    reason: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Forget something for good: it leaves the log, all that was learnt from it, the vectors and the spool.

    Shows first what would go and what would follow. Read again from the same transcript, it stays gone. A receipt with
    ids, without a word of it, is kept in receipts.jsonl of the data directory: a backup of before is restored without
    it. Transcripts themselves belong to your client, and stay where they are.

    With `--match -` the text is asked for, or read from standard input, so that no shell and no list of processes
    shows it.

    \b
    memctl forget --match "the customer's name" --dry-run
    memctl forget --match -
    memctl forget --session 3f6f1d52-6c0e-4b7e-9d6f-2f6b1f6b8a01
    memctl forget --project ~/work/secret --scrub
    memctl forget --before 2025-01-01 --dry-run
    """
    from memctl.api.erasure import scope as forgetting

    if not dry_run:
        only_a_person("forgets")
    asked = {"id": id_, "session": session, "project": project, "before": before, "match": match}
    named = [name for name, value in asked.items() if value]
    _check_named(len(named), resume=resume, scrub=scrub, dry_run=dry_run)
    if match == "-":
        match = _unseen(alone=yes or dry_run)
    with _opened(only_look=dry_run) as (settings, reader, qdrant):
        done: list[Forgotten] = []
        if resume:
            done = _resumed(settings, reader, qdrant)
        elif named:
            plan = forgetting.plan(
                settings, reader, id=id_ or "", session=session or "", project=placed(project)["project"] or "",
                before=_moment(before), match=match or "",
            )  # fmt: skip
            seen = forgetting.preview(reader.connection, plan)
            if dry_run:
                print_json(seen) if as_json else _show(seen)
                return
            _confirm(seen, yes)
            done = [forgetting.forget(settings, reader.connection, plan, qdrant, reason)]
    if as_json:
        print_json(done[0] if len(done) == 1 else done)
    else:
        for each in done:
            _print_receipt(each)
    if scrub:
        from memctl.api.erasure.scrub import scrub as rebuild_database

        rebuild_database(settings, notice)


def forget_thing(id: str) -> None:
    """Forget one thing, once its user has seen what would go and agreed. Raises: click.Abort."""
    from memctl.api.erasure import scope as forgetting

    with _opened() as (settings, reader, qdrant):
        plan = forgetting.plan(settings, reader, id=id)
        _confirm(forgetting.preview(reader.connection, plan), yes=False)
        _print_receipt(forgetting.forget(settings, reader.connection, plan, qdrant, ""))


def _check_named(named: int, *, resume: bool, scrub: bool, dry_run: bool) -> None:
    """Raises: click.UsageError where not one thing is named; with --resume or --scrub none has to be."""
    needed = 0 if resume or (scrub and not dry_run) else 1
    if named != needed and not (named == 1 and scrub and not resume):
        raise click.UsageError(_ONE_OF)


def _resumed(settings: Settings, reader: Reader, qdrant: Any) -> list[Forgotten]:
    """What was begun and did not end, forgotten and redacted now; a message where there is nothing."""
    from memctl.api.erasure import scope as forgetting
    from memctl.api.erasure.redaction import open_redactions, redact_past

    forgetting.reopen(settings, reader.connection)
    done = list(forgetting.resume(settings, reader.connection, reader.space_id, qdrant))
    redacted: UUID | None = None
    if open_redactions(reader.connection, settings.space):
        notice("a redaction was begun and did not end: today's rules are applied to the past")
        redacted = redact_past(settings, notify=notice).receipt
    if not done and redacted is None:
        notice("nothing was left unfinished")
    return done


def _confirm(seen: Preview, yes: bool) -> None:
    """Show what would go, and ask. Raises: click.Abort."""
    if not yes:
        _show(seen)
        notice("This cannot be undone.")
        click.confirm("Forget it?", abort=True, err=True)


def _unseen(*, alone: bool) -> str:
    """A text that is typed unseen, or else all of standard input. `alone`: nothing else is to be asked there."""

    if sys.stdin.isatty():
        return str(click.prompt("Text", hide_input=True, err=True))
    if not alone:
        raise click.UsageError("--match - from standard input needs --yes or --dry-run")
    if not (text := sys.stdin.read().strip()):
        raise click.UsageError("nothing stands on standard input")
    return text


@click.command()
@click.option(
    "--older-than", "days", type=click.IntRange(1, 36_500), metavar="DAYS",
    help="Days since anything happened in a session; storage.keep_days where it is not given.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show what would go and what would follow, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@in_json
def prune(days: int | None, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Let old sessions go, with what rests on them alone, so that memory takes less room.

    What was noted or stated stays, and so does each session on which something lasting rests: a verified claim, or a
    memory that is pinned, confirmed, rated useful, or was recalled by an agent since. With storage.keep_days the worker
    does this by itself, at most a tenth of the sessions, or ten, in a day. The room is used again; `memctl forget
    --scrub` gives it back to the disk.

    \b
    memctl prune --older-than 365 --dry-run
    memctl prune --older-than 365
    """

    from memctl.api.erasure import scope as forgetting
    from memctl.workers.erasure import retention

    if not dry_run:
        only_a_person("prunes")
    with _opened(only_look=dry_run) as (settings, reader, qdrant):
        days = days or settings.storage.keep_days
        if not days:
            raise click.UsageError("say --older-than DAYS, or set storage.keep_days")
        connection, space_id = reader.connection, reader.space_id
        found = retention.asked(connection, space_id, days)
        counts = {"sessions": len(found.streams), "of": found.of, "kept": found.kept}
        takes = retention.size(connection, space_id, found.streams)
        if dry_run or not yes:
            seen = forgetting.preview(connection, found.plan(forgetting.look_of(settings, reader)))
            head = f"{len(found.streams):,} of {found.of:,} sessions, {size(takes)}{_staying(found.kept)}"
            if as_json and dry_run:
                print_json({**counts, "bytes": takes, **msgspec.to_builtins(seen)})
            elif as_json:  # on stdout what was done stands alone
                notice(f"{head}: {seen.events:,} events")
            else:
                print_lines(head)
                _show(seen)
            if dry_run:
                return
            notice("This cannot be undone.")
            click.confirm("Prune them?", abort=True, err=True)
        done, gone = [], 0
        for sessions, each in retention.prune(settings, connection, space_id, found, qdrant):
            done.append(each)
            gone += sessions
            notice(f"{gone:,} of {len(found.streams):,} sessions")
    if as_json:
        print_json({**counts, "sessions": gone, "bytes": takes, "pruned": [msgspec.to_builtins(each) for each in done]})
        return
    events = sum(each.events for each in done)
    print_lines(f"pruned: {gone:,} sessions, {events:,} events{_staying(found.kept + len(found.streams) - gone)}")


def _staying(kept: int) -> str:
    return f"; {kept:,} as old stay, since something lasting rests on them" if kept else ""


def _show(seen: Preview) -> None:
    types = ", ".join(f"{count:,} {name}" for name, count in seen.types.items())
    lines = [f"{seen.what}: {number(seen.events, 'event')}{f' ({types})' if types else ''}"]
    if seen.spooled:
        lines.append(f"with {_on_disk(seen.spooled)}")
    if seen.first_at:
        lines.append(f"from {when(seen.first_at)} to {when(seen.last_at)}, in {number(seen.sessions, 'session')}")
    if seen.statements_about:
        at_least = "" if seen.exact else "at least "
        about = number(seen.statements_about, "statement")
        lines.append(f"with {at_least}{about} about what would be gone")
    print_lines(*lines)
    if seen.consequences:
        columns = [
            Column("what was learnt from it", give=True),
            Column("goes" if seen.exact else "goes, at least", "right"),
            Column("is shown without" if seen.exact else "or is shown without, at most", "right"),
        ]
        rows = [[each.read_model, f"{each.dropped:,}", f"{each.changed:,}"] for each in seen.consequences]
        print_table(columns, rows)


def _print_receipt(done: Forgotten) -> None:
    spooled = f", {_on_disk(done.spooled)}" if done.spooled else ""
    print_lines(
        f"forgotten: {done.what}, {number(done.events, 'event')}{spooled}; {done.looked_for:,} ids and words"
        " looked for, none found",
        f"receipt    {done.receipt}",
        *(f"stays      {each}" for each in done.stays),
    )


def _on_disk(deliveries: int) -> str:
    return f"{number(deliveries, 'delivery', 'deliveries')} on this disk"


@contextlib.contextmanager
def _opened(*, only_look: bool = False) -> Iterator[tuple[Settings, Reader, Any]]:
    """The settings, a reader, and a client of the vector store, which takes long to load; None for who only looks."""
    from memctl.api.reading.reader import opened
    from memctl.workers.erasure.forgetting import store_of

    settings = load_settings()
    store = contextlib.nullcontext() if only_look else store_of(settings)
    with store as qdrant, opened(settings, OWNER, "memctl forget") as reader:
        yield settings, reader, qdrant


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"{text} is no date or time in ISO 8601, such as 2026-03-01") from None
