"""Backups that somebody made up: what a restore makes of each, and that a refused one leaves nothing behind."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import servers
from events import prompt
from histories import drained

from memctl.api.checks import backups
from memctl.api.write.exporting import NotAnExport, export, import_export
from memctl.api.write.ingest_writer import IngestWriter
from memctl.infra.backup import archive
from memctl.infra.backup.copies import backup
from memctl.infra.backup.receipts import RECEIPTS, BadReceipts, read_receipts
from memctl.infra.database import Connection, single_row
from memctl.infra.log.append import append
from memctl.infra.readmodels import generations
from memctl.infra.settings import Settings

Parts = dict[str, bytes]
Manifest = dict[str, Any]


@pytest.fixture
def parts(settings: Settings, log: Connection, tmp_path: Path) -> Iterator[Parts]:
    append(log, 1, [prompt(n) for n in range(3)])
    with zipfile.ZipFile(backup(settings, log, tmp_path / "kept")) as whole:
        yield {name: whole.read(name) for name in whole.namelist()}


def written(file: Path, parts: Parts, manifest: Manifest) -> Path:
    """The parts as a backup, with the checksums that they have now."""
    for table, member in manifest["tables"].items():
        if table in parts and member["sha256"] != "kept":
            member["sha256"] = sha256(parts[table]).hexdigest()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in {**parts, "manifest.json": json.dumps(manifest).encode()}.items():
            made.writestr(name, content)
    return file


def changed(parts: Parts, column: str, value: bytes, table: str = "events") -> None:
    """Another value in a column of the last row."""
    manifest = json.loads(parts["manifest.json"])
    at = manifest["tables"][table]["columns"].index(column)
    *rows, last = parts[table].splitlines()
    fields = last.split(b"\t")
    fields[at] = value
    parts[table] = b"\n".join([*rows, b"\t".join(fields)]) + b"\n"


Change = Callable[[Parts, Manifest], None]


def of_events(column: str, value: bytes) -> Change:
    return lambda parts, _: changed(parts, column, value)


def holding(table: str, content: Callable[[bytes], bytes]) -> Change:
    return lambda parts, _: parts.update({table: content(parts[table])})


def columns(change: Callable[[list[str]], list[str]]) -> Change:
    def made(_: Parts, manifest: Manifest) -> None:
        manifest["tables"]["events"]["columns"] = change(manifest["tables"]["events"]["columns"])

    return made


def key_of_the_owner(parts: Parts, manifest: Manifest) -> None:
    manifest["tables"]["api_keys"] |= {"columns": ["key_id", "space", "name", "hash", "scopes"], "rows": 1}
    parts["api_keys"] = b"k\tdefault\teve\t\\\\x00\t{owner}\n"


def receipt_that_is_none(parts: Parts, manifest: Manifest) -> None:
    manifest["tables"]["receipts"] |= {"columns": ["receipt", "space_id", "scope"], "rows": 1}
    parts["receipts"] = b"00000000-0000-0000-0000-000000000001\t1\t[]\n"


SQL = "position) FROM PROGRAM 'touch /tmp/x' --\""
REFUSED: dict[str, Change] = {
    "a path out of it": lambda _, manifest: manifest["tables"].update({"../events": manifest["tables"]["events"]}),
    "a column that is a statement": columns(lambda names: [SQL, *names[1:]]),
    "a column twice": columns(lambda names: names[:1] * 2),
    "no events": lambda _, manifest: manifest["tables"].pop("events"),
    "no member": lambda parts, _: parts.__delitem__("events"),
    "a row twice": holding("events", lambda rows: rows + rows.splitlines()[0] + b"\n"),
    "events of no space": of_events("space_id", b"7"),
    "no spaces": holding("spaces", lambda _: b""),
    "no number": of_events("position", b"first"),
    "the last position of all": of_events("position", b"9223372036854775807"),
    "a position before the first": of_events("position", b"-5"),
    "no moment": of_events("occurred_at", b"infinity"),
    "a moment that no clock shows": of_events("recorded_at", b"20000-01-01 00:00:00+00"),
    "events of another shard": of_events("stream_hash", b"3"),
    "no text": of_events("stream", b"session/x/\xff"),
    "calls that are none": holding("llm_calls", lambda _: b"x\n"),
    "a key of the owner's": key_of_the_owner,
    "a receipt that is none": receipt_that_is_none,
    "a newer schema": lambda _, manifest: manifest.update(schema="9999"),
    "another format": lambda _, manifest: manifest.update(format=2),
    "a position that no reader holds": lambda _, manifest: manifest.update(position=(1 << 63) - 1),
    "a position before any": lambda _, manifest: manifest.update(position=-1),
    "a digest of something else": lambda _, manifest: manifest["tables"]["events"].update(sha256="kept"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_backup_that_no_memctl_wrote_is_refused_and_nothing_of_it_stays(
    settings: Settings, parts: Parts, elsewhere: Connection, tmp_path: Path, case: str
) -> None:
    manifest = json.loads(parts["manifest.json"])
    REFUSED[case](parts, manifest)
    with pytest.raises(archive.BadBackup):
        backups.restore(settings, elsewhere, written(tmp_path / "made.zip", parts, manifest))
    for table, rows in (("events", 0), ("spaces", 1), ("api_keys", 0), ("receipts", 0)):
        assert elsewhere.execute(f"SELECT count(*) FROM memctl.{table}").fetchone() == (rows,)  # type: ignore[arg-type]


def test_a_position_far_ahead_takes_no_more_locks_than_there_are(
    settings: Settings, parts: Parts, elsewhere: Connection, tmp_path: Path
) -> None:
    manifest = json.loads(parts["manifest.json"]) | {"position": 9_990_000_000}
    assert backups.restore(settings, elsewhere, written(tmp_path / "made.zip", parts, manifest)).events == 3
    append(elsewhere, 1, [prompt(9)])
    (partitions,) = single_row(elsewhere, "SELECT count(*) FROM memctl.partitions")
    assert partitions < 200


def test_statements_behind_the_end_of_a_table_are_no_rows_and_a_payload_without_an_end_is_left_out(
    settings: Settings, parts: Parts, elsewhere: Connection, database_url: str, tmp_path: Path
) -> None:
    changed(parts, "payload", b'{"text": "x", "data": ' + b"[" * 5_000 + b"]" * 5_000 + b"}")
    parts["events"] += b"\\.\nDROP TABLE memctl.events;\n"
    file = written(tmp_path / "made.zip", parts, json.loads(parts["manifest.json"]))
    assert backups.restore(settings, elsewhere, file).events == 3
    generations.ensure_live(elsewhere, 1)
    drained(servers.with_database(database_url, elsewhere.info.dbname))
    assert elsewhere.execute("SELECT count(*) FROM memctl.events").fetchone() == (3,)


def test_what_is_changed_behind_the_check_is_not_restored(parts: Parts, elsewhere: Connection, tmp_path: Path) -> None:
    file = written(tmp_path / "made.zip", parts, manifest := json.loads(parts["manifest.json"]))
    archive.check(file)
    parts["events"] = parts["events"].replace(b"number 1", b"number 8")
    manifest["tables"]["events"]["sha256"] = "kept"
    written(file, parts, manifest)
    with pytest.raises(archive.BadBackup), elsewhere.transaction():
        archive.restore(elsewhere, file)
    assert elsewhere.execute("SELECT count(*) FROM memctl.events").fetchone() == (0,)


def test_a_backup_that_unpacks_to_more_than_there_is_room_for_is_not_unpacked(parts: Parts, tmp_path: Path) -> None:
    parts["embeddings"] = b"0" * (64 << 20)
    bomb = written(tmp_path / "made.zip", parts, json.loads(parts["manifest.json"]))
    assert bomb.stat().st_size < 1 << 20
    with pytest.raises(archive.BadBackup, match="unpacks to 64 MB"):
        archive.check(bomb, room=63 << 20)


def test_what_is_packed_as_memctl_packs_none_is_not_unpacked(parts: Parts, tmp_path: Path) -> None:
    file = tmp_path / "made.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as made:
        for name, content in parts.items():
            made.writestr(name, content)
    with pytest.raises(archive.BadBackup, match="packs none"):
        archive.check(file)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_is_no_file_is_neither_a_backup_nor_receipts(tmp_path: Path, kind: str) -> None:
    for name in ("memctl-x.memctl.zip", RECEIPTS):
        if kind == "pipe":
            os.mkfifo(tmp_path / name)
        elif kind == "device":
            (tmp_path / name).symlink_to("/dev/zero")
        else:
            (tmp_path / name).mkdir()
    with pytest.raises(archive.BadBackup):
        archive.check(tmp_path / "memctl-x.memctl.zip")
    with pytest.raises(BadReceipts):
        list(read_receipts([tmp_path / RECEIPTS]))


def test_json_without_an_end_is_neither_receipts_nor_an_export(settings: Settings, tmp_path: Path) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    receipts = tmp_path / RECEIPTS
    receipts.write_bytes(b'{"outcome": {"a": ' + deep + b"}}\n")
    with pytest.raises(BadReceipts):
        list(read_receipts([receipts]))
    with IngestWriter(settings, identify=False) as intake:
        exported = tmp_path / "export.jsonl"
        exported.write_bytes(b'{"memctl": "export", "x": ' + deep + b"}\n")
        with pytest.raises(NotAnExport):
            import_export(intake, exported, mine=False)
        out: list[bytes] = []
        export(intake.connection, "default", out.append)
        event = {"id": str(uuid4()), "type": "tool.called", "version": 1, "stream": "session/x/y", "occurred_at": 1,
                 "recorded_at": 1, "actor": "agent", "key": "k"}  # fmt: skip
        lines = [out[0]]
        lines += [json.dumps(event | {"key": str(n)}).encode()[:-1] + b', "payload": {"tool": "x", "input": {"a": '
                  + b"[" * n + b"]" * n + b"}}}\n" for n in (1_500, 100_000)]  # fmt: skip
        end = {"end": True, "events": 2, "sha256": sha256(b"".join(lines)).hexdigest()}
        exported.write_bytes(b"".join(lines) + json.dumps(end).encode() + b"\n")
        account = import_export(intake, exported, mine=False)
    assert (account.new, account.bad_lines) == (0, 2)
