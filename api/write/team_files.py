"""What a project holds true, as Markdown files that a team reviews in git: one a claim, decision or strategy.

`memctl export --team DIR` adds files, and changes and removes none: what is in git is the team's. `memctl import DIR`
reads them as another's words, which wait for a person. A file is named by its words and its id, which comes from its
content, so that two members who hold the same write the same file.
"""

import contextlib
import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from memctl.api.queries.strategies import strategies
from memctl.api.reading import models
from memctl.api.reading.caller import OWNER
from memctl.api.reading.pages import LONGEST_PAGE, Keyed, Where, page
from memctl.api.reading.places import Places, on_machine, places_of, project_asked
from memctl.api.reading.reader import Reader, reader_of
from memctl.api.write.ingest import Account
from memctl.api.write.ingest_writer import IngestWriter
from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.facts import InsightKind
from memctl.domain.knowledge.personal import is_personal
from memctl.domain.knowledge.team_entries import KEY, claim_entry, decision_entry, key_of, lesson_entry, lesson_text
from memctl.domain.language.notes import LONGEST_NOTE, NOTES, MemoryNoted
from memctl.domain.support import patterns
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.location import normalise
from memctl.domain.support.provenance import IMPORTED, RIGHTS, words_to_all
from memctl.infra.database import outages, snapshot
from memctl.infra.files import read_file
from memctl.infra.git import checkout_at
from memctl.infra.log.spaces import at_home
from memctl.infra.settings import Settings
from memctl.projections.kernel import Projection

LARGEST_FILE = 16 << 10
"""Bytes of a team's file."""
MOST_FILES = 5_000
"""Files that are read of each kind."""

_FOLDERS = ("claims", "decisions", "strategies")
_ORIGIN = "team"
_ID = patterns.compile(r"[0-9a-f-]{8,64}")
_EPOCH = date(1970, 1, 1)
_APART = patterns.compile(r"[^a-z0-9]+")


class NotATeamFile(MemctlError):
    """{file} is no file of `memctl export --team`: {why}."""

    file: str
    why: str


class TeamEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What one file holds. `said_by` is its provenance in words, `since` a day."""

    id: str
    folder: str
    kind: str
    text: str
    said_by: str
    since: str

    @property
    def path(self) -> str:
        words = _APART.sub("-", self.text[:48].lower()).strip("-") or self.kind
        return f"{self.folder}/{words}-{self.id[:8]}.md"

    def written(self) -> str:
        return f"---\nid: {self.id}\nkind: {self.kind}\nfrom: {self.said_by}\nsince: {self.since}\n---\n\n{self.text}\n"


class TeamExport(msgspec.Struct, frozen=True):
    """What an export came to: files that are new, and how many were there already."""

    new: list[str]
    known: int


def export_team(settings: Settings, folder: Path, *, project: str | None, here: str | None) -> TeamExport:
    """Add a file for each thing that is held true of a project. Raises: UnknownProject, DatabaseUnavailable."""
    with at_home(settings, "memctl export") as (connection, _), snapshot(connection):
        reader = reader_of(connection, settings.space, OWNER)
        found = sorted(_held(reader, project_asked(reader, project, here).name, here), key=lambda each: each.path)
    _refuse_link(folder)
    there = {short for each in _FOLDERS for short in _known(folder / each)}
    new = [each for each in found if each.id[:8] not in there]
    for each in new:
        _write(folder / each.path, each.written())
    return TeamExport([each.path for each in new], len(found) - len(new))


def is_team(folder: Path) -> bool:
    """Whether a folder holds a team's files."""
    return any((folder / each).is_dir() for each in _FOLDERS)


def team_entries(folder: Path, account: Account) -> list[TeamEntry]:
    """What the files of a folder say; a file that cannot be read is a bad one in the account, and so is what is beyond
    the most that are read."""
    entries = []
    for path in _files(folder):
        if path.is_dir():
            account.refuse(path, 1, f"more than {MOST_FILES:,} files; the others were not read")
            continue
        account.files += 1
        account.lines += 1
        try:
            entries.append(_entry(path))
            account.with_events += 1
        except (OSError, ValueError, MemctlError) as problem:
            account.refuse(path, 1, str(problem))
    return entries


def import_team(writer: IngestWriter, settings: Settings, folder: Path, account: Account) -> list[str]:
    """Take in what a team's files say of the project that they lie in, as candidates; what is held here already is a
    duplicate. Returns what was taken in before and is in no file any more. Raises: DatabaseUnavailable."""
    entries = team_entries(folder, account)
    checkout = checkout_at(normalise(str(folder.resolve())))
    root = checkout.root if checkout and checkout.root else normalise(str(folder.resolve().parent))
    with outages(), snapshot(writer.connection):
        reader = reader_of(writer.connection, settings.space, OWNER)
        where, root = places_of(reader, None, root), on_machine(reader, root)
        held = {each.id for each in _held(reader, where.project, root)} if where.project else set()
        before = _taken_in(reader, where.locations or (root,))
    events = {_key_of(each): _noted(each, root) for each in entries}
    new = [event for each in entries if each.id not in held and (event := events[_key_of(each)])]
    account.duplicate += len(entries) - len(new)
    if new:
        for event, done in zip(new, writer.record(new).appended, strict=True):
            account.take(event.type, done)
    return sorted(text for key, text in before.items() if key not in events)


def _known(folder: Path) -> Iterator[str]:
    """The short ids by which a folder's own files are called, however many; no link is one."""
    _refuse_link(folder)
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as files:
        for each in files:
            if each.name.endswith(".md") and each.is_file(follow_symlinks=False):
                yield each.name.removesuffix(".md").rpartition("-")[2]


def _write(path: Path, text: str) -> None:
    """Write a file that is not there. Raises: NotATeamFile where a link, or anything else, bears its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _refuse_link(path.parent)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        handle = os.open(path.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=folder)
    except FileExistsError as why:
        raise NotATeamFile(file=str(path), why="something that is no file of the team bears its name") from why
    finally:
        os.close(folder)
    with os.fdopen(handle, "w") as file:
        file.write(text)


def _refuse_link(folder: Path) -> None:
    if folder.is_symlink():
        raise NotATeamFile(file=str(folder), why="the folder is a link to another place")


def _key_of(entry: TeamEntry) -> str:
    return key_of(entry.id, entry.text)


def _noted(entry: TeamEntry, root: str) -> NewEvent:
    kind: InsightKind | Literal[""] = next((each for each in get_args(InsightKind) if each == entry.kind), "")
    at = datetime.fromisoformat(entry.since).replace(tzinfo=UTC)
    return NewEvent(
        stream=NOTES,
        payload=MemoryNoted(text=entry.text, kind=kind, origin=_ORIGIN),
        occurred_at=Micros(int(at.timestamp()) * 1_000_000),
        dedupe_key=_key_of(entry),
        actor=IMPORTED,
        location=root,
    )


def _taken_in(reader: Reader, locations: tuple[str, ...]) -> dict[str, str]:
    """What was taken in of a team's files at these places, by key."""
    rows = reader.connection.execute(
        "SELECT dedupe_key, payload FROM memctl.events WHERE space_id = %s AND stream = %s AND actor = %s"
        " AND location = ANY(%s) AND starts_with(dedupe_key, %s) AND payload IS NOT NULL",
        [reader.space_id, NOTES, IMPORTED, list(locations), KEY],
        binary=True,
    )
    return {key: msgspec.json.decode(payload, type=MemoryNoted).text for key, payload in rows}


def _files(folder: Path) -> Iterator[Path]:
    """The files to be read, and each folder that holds more of them than are."""
    for each in _FOLDERS:
        found = sorted(path for path in (folder / each).glob("*.md") if not path.is_dir())
        yield from found[:MOST_FILES]
        if len(found) > MOST_FILES:
            yield folder / each


def _entry(path: Path) -> TeamEntry:
    head, _, text = read_file(path, LARGEST_FILE).decode().removeprefix("---\n").partition("\n---\n")
    said = dict(line.partition(": ")[::2] for line in head.splitlines())
    if missing := [name for name in ("id", "kind", "from", "since") if not said.get(name)]:
        raise NotATeamFile(file=path.name, why=f"its head has no `{missing[0]}`")
    if not _ID.fullmatch(said["id"]):
        raise NotATeamFile(file=path.name, why="its `id` is no id")
    if not _EPOCH <= (since := date.fromisoformat(said["since"])) <= datetime.now(UTC).date() + timedelta(days=1):
        raise NotATeamFile(file=path.name, why=f"its `since`, {since}, is no day of the past")
    if not 0 < len(text := text.strip()) <= LONGEST_NOTE:
        raise NotATeamFile(file=path.name, why=f"it has not 1 to {LONGEST_NOTE:,} characters")
    return TeamEntry(id=said["id"], folder=path.parent.name, kind=said["kind"], text=text, said_by=said["from"],
                     since=said["since"])  # fmt: skip


def _held(reader: Reader, project: str | None, here: str | None) -> Iterator[TeamEntry]:
    """What is held true of a project, and nothing of a person, that holds everywhere, or that waits."""
    places = places_of(reader, project, here)
    for claim in _rows(reader, models.verified_knowledge, Where(models.verified_knowledge).within(places)):
        first = claim.claims[0]
        if claim.status == "verified":
            words = words_to_all(first.said_by)
            yield from _made("claims", first.kind, first.text, words, first.valid_from,
                             claim_entry(first.kind, first.polarity, first.canonical))  # fmt: skip
    for episode in _rows(reader, models.episodes, Where(models.episodes).within(places)):
        for each in episode.decisions:
            if RIGHTS[each.said_by].as_users:
                words = words_to_all(each.said_by)
                yield from _made("decisions", "decision", each.text, words, episode.started_at,
                                 decision_entry(each.text))  # fmt: skip
    yield from _lessons(reader, places)


def _lessons(reader: Reader, places: Places) -> Iterator[TeamEntry]:
    cursor: str | None = None
    while True:
        listed = strategies(reader, places, limit=LONGEST_PAGE, cursor=cursor)
        for each in listed.items:
            at = int(datetime.fromisoformat(each.first_seen).timestamp()) * 1_000_000
            text = lesson_text(each.title, each.description, each.content)
            yield from _made("strategies", "strategy", text, each.origin, at, lesson_entry(text))
        if (cursor := listed.next) is None:
            return


def _made(folder: str, kind: str, text: str, said_by: str, at: int, entry: str) -> Iterator[TeamEntry]:
    if not is_personal(text, kind) and len(text) <= LONGEST_NOTE:
        day = datetime.fromtimestamp(at / 1_000_000, UTC).date().isoformat()
        yield TeamEntry(id=entry, folder=folder, kind=kind, text=text.strip(), said_by=said_by, since=day)


def _rows(reader: Reader, p: Projection[Any], conditions: Where) -> Iterator[Any]:
    cursor: str | None = None
    while True:
        rows: list[Keyed[Any]]
        rows, cursor = page(reader, p, "last_seen" if p is models.verified_knowledge else "started_at", conditions,
                            limit=LONGEST_PAGE, cursor=cursor)  # fmt: skip
        yield from (keyed.row for keyed in rows)
        if cursor is None:
            return
