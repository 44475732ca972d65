"""`memctl backup`, `restore`, `export`, `redact` and `reset`: what is kept elsewhere, brought back, or removed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memctl.cli.connection import placed
from memctl.cli.output import notice, print_json, print_lines
from memctl.cli.pages import in_json
from memctl.domain.support.wording import number, size
from memctl.infra.backup.sealed import unsealed
from memctl.infra.data_dir import open_private
from memctl.infra.hooks.agent_shell import only_a_person
from memctl.infra.settings import load_settings

if TYPE_CHECKING:
    from memctl.infra.backup.archive import BackupManifest
    from memctl.infra.settings_model import Settings

sealing = click.option("--to", "recipient", metavar="AGE1…", help="Seal it with age for this recipient alone.")
opening = click.option(
    "--identity", type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="The file with the key of age that opens a sealed one (`.age`).",
)  # fmt: skip

UNFINISHED_S = 3_600.0
"""How long nothing was written to an export, after which whoever wrote it was killed."""


@click.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option("--keep", type=click.IntRange(1), help="Remove all but the newest so many backups in that folder.")
@click.option("--check", "file", type=click.Path(path_type=Path, dir_okay=False), help="Read a backup through instead.")
@sealing
@opening
@in_json
def backup(
    folder: Path | None,
    keep: int | None,
    file: Path | None,
    recipient: str | None,
    identity: Path | None,
    as_json: bool,
) -> None:
    """Write a backup: the log, and what is needed to bring it back, in one file with checksums.

    Into FOLDER, or `backups` in the data directory. Everything goes on meanwhile. Read models are not in it: they are
    folded again.

    \b
    memctl backup                  # into `backups` of the data directory
    memctl backup /mnt/disk --keep 7
    memctl backup /mnt/disk --to age1…
    """
    from memctl.infra.backup import archive, sealed

    if folder is not None and len(folder.parts) == 1 and not folder.exists():
        raise click.UsageError(
            f"there is no folder {str(folder)!r} here: make it first, or leave it out to write into the data directory"
        )
    settings = load_settings()
    if file is not None:
        with sealed.unsealed(file, identity, settings.data_dir) as plain:
            manifest = archive.check(plain)
        written = file
    elif recipient is not None:
        if keep is not None:
            raise click.UsageError("--keep counts backups that are not sealed")
        written, manifest = _sealed_backup(settings, folder, recipient)
    else:
        from memctl.api.checks.backups import write

        written = write(settings, folder, keep)
        manifest = archive.read_manifest(written)
    if file is None:
        from memctl.api.checks.backups import left_out

        if others := left_out(settings):
            named = ", ".join(f"{name} (on {database})" for name, database in others.items())
            notice(f"not in it: {named}; back up that database too")
    events = manifest.tables["events"].rows
    if as_json:
        print_json(
            {"file": str(written), "bytes": written.stat().st_size, "events": events, "made_at": manifest.made_at}
        )
        return
    print_lines(f"{written}: {events:,} events, {size(written.stat().st_size)}" + (", sound" if file else ""))


def _sealed_backup(settings: Settings, folder: Path | None, recipient: str) -> tuple[Path, BackupManifest]:
    """A backup that one recipient alone can read; nothing else of it stays."""
    from memctl.api.checks.backups import write
    from memctl.infra.backup import archive, copies, sealed

    sealed.recipient_of(recipient)
    into = folder or copies.folder_of(settings)
    into.mkdir(mode=0o700, parents=True, exist_ok=True)
    with sealed.plain_in(settings.data_dir) as own:
        plain = write(settings, own, None)
        written = into / f"{plain.name}{sealed.SEALED}"
        sealed.seal(plain, written, recipient)
        return written, archive.read_manifest(plain)


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option(
    "--receipts", multiple=True, type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Receipts of what was forgotten since, beside those of the backup's folder and the data directory.",
)  # fmt: skip
@click.option("--set-aside", is_flag=True, help="Put the database that is there aside first, damaged or not.")
@opening
@in_json
def restore(
    file: Path | None, receipts: tuple[Path, ...], set_aside: bool, identity: Path | None, as_json: bool
) -> None:
    """Restore a backup into a memctl that holds nothing yet; the workers then fold it.

    Without FILE the newest that can be read through. What was forgotten after the backup was made is left out, by the
    receipts. What was recorded since comes back from transcripts: `memctl ingest`.

    \b
    memctl restore                 # the newest that can be read through
    memctl restore /mnt/disk/memctl-20260302T090000000000Z.memctl.zip
    """
    from memctl.api.checks import backups
    from memctl.infra.backup import archive
    from memctl.infra.backup.receipts import RECEIPTS
    from memctl.infra.embedded import instance

    only_a_person("restores a backup")
    settings = load_settings()
    chosen = file or backups.newest(settings)
    with unsealed(chosen, identity, settings.data_dir) as plain:
        if set_aside:
            archive.check(plain)  # before anything is stopped
            backups.set_aside(settings, notice)
            settings = load_settings()
        done = backups.restored(settings, plain, [*receipts, chosen.parent / RECEIPTS])
    if done.redacted:
        from memctl.api.erasure.redaction import redact_past

        notice("the log was redacted after that backup was made: today's rules are applied to it")
        redact_past(settings, notify=notice)
    if set_aside:
        instance.up(settings, report=notice)
    if done.begun:
        notice(
            f"forgettings that were begun and did not end: {done.begun}; once all is folded, `memctl forget --resume`"
        )
    if not done.at_home and not receipts:
        notice(
            f"what was forgotten elsewhere since {done.made_at} is not known here and may be back: forget it again, or"
            f" restore into an empty memory with --receipts and the `{RECEIPTS}` of that data directory"
        )
    if as_json:
        print_json(done)
        return
    gone = f"; {done.left_out:,} of them were forgotten since, and left out" if done.left_out else ""
    print_lines(f"restored {done.events:,} events of {done.made_at} from {chosen}{gone}")
    if done.keys:
        notice(f"keys of the API in force, as they were then: {done.keys}; revoke again what was revoked since")
    notice("the workers fold them now; `memctl status` shows how far they are, `memctl ingest` reads what came since")


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--session", metavar="ID", help="Only of this session.")
@click.option("--project", metavar="NAME|PATH", help="Only of this project's places.")
@click.option("--team", type=click.Path(path_type=Path, file_okay=False), help="Add what a project holds to its files.")
@sealing
def export(
    file: Path | None, session: str | None, project: str | None, team: Path | None, recipient: str | None
) -> None:
    """Write the log as JSON lines, to FILE or the terminal, for other tools and for `memctl import`; or with `--team`
    what a project holds true as Markdown files, nothing in the first person (English, Korean).

    The first line says what it is, each other line is an event, the last has their number and checksum
    (docs/export.md).

    \b
    memctl export log.jsonl
    memctl export --project ~/work/shop | gzip > shop.jsonl.gz
    memctl export --team .memory
    """

    from memctl.api.write.exporting import exported

    settings = load_settings()
    where = placed(project)["project"]
    if team is not None:
        if file is not None or session is not None or recipient is not None:
            raise click.UsageError("--team goes with --project alone")
        from memctl.api.write.team_files import export_team

        added = export_team(settings, team, project=where, here=placed(None)["here"])
        print_lines(*added.new)
        notice(f"{number(len(added.new), 'file is', 'files are')} new in {team}, {added.known:,} were there")
        return
    if recipient is not None:
        written = _sealed_export(settings, file, recipient, session=session, project=where)
    elif file is None:
        written = exported(settings, sys.stdout.buffer.write, session=session, project=where)
    else:
        from memctl.infra.backup.copies import remove_unfinished

        remove_unfinished(file.parent, UNFINISHED_S, f"{file.name}.")
        with open_private(file) as out:
            written = exported(settings, out.write, session=session, project=where)
    notice(f"{number(written, 'event')} exported")
    if not written:
        raise click.exceptions.Exit(3)


def _sealed_export(
    settings: Settings, file: Path | None, recipient: str, *, session: str | None, project: str | None
) -> int:
    """An export that one recipient alone can read; how many events are in it."""
    from memctl.api.write.exporting import exported
    from memctl.infra.backup import sealed

    if file is None or file.suffix != sealed.SEALED:
        raise click.UsageError(f"--to needs a FILE whose name ends with {sealed.SEALED}")
    sealed.recipient_of(recipient)
    with sealed.plain_in(settings.data_dir) as own:
        with open_private(plain := own / file.stem) as out:
            written = exported(settings, out.write, session=session, project=project)
        sealed.seal(plain, file, recipient)
    return written


@click.command()
@click.option("--dry-run", is_flag=True, help="Count what would be cut, and change nothing.")
@in_json
def redact(dry_run: bool, as_json: bool) -> None:
    """Apply today's rules of redaction to the past: secrets that were kept before a rule knew them are cut.

    Events with such secrets are emptied and appended again without them, under a receipt. All that was learnt is folded
    again.

    \b
    memctl redact --dry-run
    """
    from memctl.api.erasure.redaction import redact_past

    if not dry_run:
        only_a_person("redacts the past")
    done = redact_past(load_settings(), dry=dry_run, notify=notice)
    if as_json:
        print_json(done)
        return
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in done.cut.items())
    print_lines(
        f"{done.looked_at:,} events looked at, {done.events:,} with something to cut" + (f": {kinds}" if kinds else "")
    )


@click.command()
@click.option("--confirm", is_flag=True, help="Do not ask.")
@click.option("--backup/--no-backup", default=True, show_default=True, help="Write a backup first.")
def reset(confirm: bool, backup: bool) -> None:
    """Start empty: everything that memctl knows is removed. Transcripts and backups stay.

    \b
    memctl reset --backup
    """
    from memctl.api.erasure.resetting import reset as reset_memory

    only_a_person("starts empty")
    settings = load_settings()
    if not confirm:
        notice(f"Everything that memctl knows in {settings.data_dir} will be removed.")
        click.confirm("Remove it and start empty?", abort=True, err=True)
    kept = reset_memory(settings, backup=backup, notify=notice)
    print_lines("memctl knows nothing now" + (f"; what it knew is in {kept}" if kept else ""))
