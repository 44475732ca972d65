"""Hostile inputs at what listens and at what reads files: nothing dies, nothing is half done, nothing stays open."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from apis import TOKEN, Api
from asked import Remembered
from client_sessions import SAMPLES
from data_dirs import used
from histories import drained
from mangled import BYTES, COUNT, HOOKS, SEED, VALUES, Mangler, hook
from processes import memctl
from waiting import until

from memctl.api.write import exporting
from memctl.api.write.importing import account_of, stores
from memctl.api.write.ingest import ingest
from memctl.api.write.ingest_writer import IngestWriter
from memctl.domain.support.errors import MemctlError
from memctl.infra import git
from memctl.infra.backup import archive
from memctl.infra.backup.copies import backup
from memctl.infra.backup.receipts import read_receipts
from memctl.infra.database import connect
from memctl.infra.hook import header
from memctl.infra.hooks.client_files import changed_json, changed_toml
from memctl.infra.log.audit import decoded, hashed
from memctl.infra.log.mark import move_mark
from memctl.infra.readmodels import dead_letters, generations
from memctl.infra.settings import load_settings


def sound(url: str) -> None:
    """Every event in the log is whole and is folded; nothing waits."""
    drained(url)
    with connect(url) as connection:
        mark = move_mark(connection)
        found = hashed(connection, mark)
        assert (found.altered.count, found.misplaced.count) == (0, 0)
        assert decoded(connection, mark).misnamed.count == 0
        live = generations.live(connection)
        assert dead_letters.parked(connection, live.stage1, live.stage2) == []


def sockets_of(pid: int) -> set[str]:
    """What sockets a process holds, by their inode."""
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(os.readlink(entry))
    return {each for each in found if each.startswith("socket:")}


def listening(pid: int) -> int:
    """On how many sockets a process listens."""
    inodes = {each[len("socket:[") : -1] for each in sockets_of(pid)}
    tcp = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    unix = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return sum(row[3] == "0A" and row[9] in inodes for row in tcp) + sum(
        row[3] == "00010000" and row[6] in inodes for row in unix
    )


# --- the door ---


@pytest.fixture
def shards() -> int:
    return 1


def sent(door: Path, data: bytes, *, cut: bool) -> dict[str, Any] | None:
    """What the door answers to some bytes; None where it hangs up, or is hung up on (`cut`)."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(30)
        client.connect(str(door))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.sendall(data)
            if cut:
                return None
            client.shutdown(socket.SHUT_WR)
            answer = client.makefile("rb").readline()
            return dict(json.loads(answer)) if answer else None
    return None


def test_a_door_that_hostile_deliveries_come_to_goes_on_and_the_log_is_sound(database_url: str, tmp_path: Path) -> None:
    path, log = tmp_path / "door.sock", tmp_path / "door.log"
    environment = {
        "MEMCTL_DATA_DIR": str(used(tmp_path / "data")), "MEMCTL_DOOR_SOCKET": str(path),
        "MEMCTL_DATABASE_URL": database_url, "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }  # fmt: skip
    mangler, taken = Mangler(SEED + 400), 0
    with memctl("door", environment=environment, log=log) as process:
        until(path.exists)
        honest = json.dumps(hook("UserPromptSubmit")).encode()
        first = header("e" * 32, time.time_ns() // 1000, "claude-code", "", len(honest))
        assert (sent(path, first + honest, cut=False) or {}).get("ok")
        listens, held = listening(process.pid), len(sockets_of(process.pid))
        for number in range(COUNT):
            name = mangler.rng.choice(sorted(HOOKS))
            payload = mangler.json(hook(name))
            line = header(f"{number:032x}", time.time_ns() // 1000, "claude-code", name, len(payload))
            if mangler.rng.random() < 0.3:
                line = mangler.bytes(line)
            data = (line + payload)[: mangler.rng.randrange(9_000) if mangler.rng.random() < 0.2 else None]
            answer = sent(path, data, cut=mangler.rng.random() < 0.1)
            taken += answer is not None and bool(answer["ok"])
            assert process.poll() is None, log.read_text()
        answer = sent(path, first.replace(b"e" * 32, b"f" * 32) + honest, cut=False)
        assert answer is not None
        assert answer["ok"], answer
        assert taken > COUNT / 4
        until(lambda: len(sockets_of(process.pid)) <= held + 1)  # one to read transcripts by
        assert listening(process.pid) == listens
        assert "Traceback" not in log.read_text()
    sound(database_url)


# --- the API ---


def texts(rng: random.Random) -> str:
    """A hostile value as a URL or a header may hold it."""
    return str(rng.choice(VALUES)).encode("utf-8", "replace").decode()[:3000]


def requested(mangler: Mangler, document: dict[str, Any]) -> tuple[str, str, bytes | None, dict[str, str]]:
    """Method, path, body and headers of a request that no honest client would send."""
    rng = mangler.rng
    path, methods = rng.choice(sorted((p, m) for p, m in document["paths"].items() if "/tail/" not in p))
    method = rng.choice(sorted(methods)).upper()
    asked = methods[method.lower()]
    query = {}
    for each in asked.get("parameters", []):
        if each["in"] == "path":
            path = path.replace("{" + each["name"] + "}", quote(texts(rng), safe="/" if rng.random() < 0.3 else ""))
        elif each["in"] == "query" and each["name"] != "min_position" and (each.get("required") or rng.random() < 0.5):
            query[each["name"]] = texts(rng)
    body = None
    if method == "POST":
        words = (
            "text",
            "q",
            "kind",
            "id",
            "match",
            "session",
            "project",
            "section",
            "content",
            "node",
            "claim",
            "value",
        )
        body = mangler.json({name: rng.choice(("a", "session/x", 1, ["b"])) for name in rng.sample(words, 4)})
        if rng.random() < 0.2:
            body = mangler.bytes(body)
    headers = {"Idempotency-Key": quote(texts(rng))[:300] or "k", "Content-Type": "application/json"}
    return method, path + (f"?{urlencode(query)}" if query else ""), body, headers


def test_no_request_makes_the_api_fail_or_leaves_something_open(api: Api, memory: Remembered) -> None:
    mangler = Mangler(SEED + 500)
    document = json.loads(api.ask("/v1/openapi.json")[2])
    pid = api.process.pid
    listens = listening(pid)
    statuses = set()
    for _ in range(COUNT):
        method, path, body, headers = requested(mangler, document)
        status, told, answer = api.ask(path, method=method, body=body, headers=headers)
        assert status < 500, f"{method} {path} {body!r}\n{api.log.read_text()[-3000:]}"
        assert b"Traceback" not in answer
        if status >= 400:
            assert told["content-type"] == "application/problem+json", (method, path, answer)
        statuses.add(status)
    assert {200, 404, 422} <= statuses
    for number in range(COUNT // 4):
        with socket.create_connection(("127.0.0.1", api.port), timeout=30) as raw:
            line = f"GET /v1/stats HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
            with contextlib.suppress(OSError):
                raw.sendall(mangler.bytes(line) if number % 2 else mangler.rng.choice(BYTES) + b"\r\n\r\n")
                raw.shutdown(socket.SHUT_WR)
                raw.recv(65536)
    assert api.ask("/healthz")[0] == 200
    assert listening(pid) == listens
    sound(memory.database_url)


# --- files ---


EXPORTED: tuple[Callable[[Path], object], ...] = (
    lambda path: list(read_receipts([path])),
    archive.check,
    lambda path: account_of(stores([path])),
    lambda path: git.checkout_of(path),
    lambda path: changed_json(path, lambda settings: None, None),
    lambda path: changed_toml(path, "mcp_servers.memctl", "command = 'memctl'\n"),
)


@pytest.mark.filled
def test_no_file_makes_a_reader_fail_otherwise_than_in_words(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_DATABASE_URL", database_url)
    monkeypatch.setenv("MEMCTL_DATA_DIR", str(tmp_path / "data"))
    settings = load_settings()
    mangler = Mangler(SEED + 600)
    with connect(database_url) as log:
        exported = tmp_path / "export.jsonl"
        with exported.open("wb") as out:
            exporting.export(log, "default", out.write)
        made = backup(settings, log, tmp_path / "kept")
    honest = [
        exported.read_bytes(), made.read_bytes(), json.dumps([{"content": "a memory", "type": "fact"}] * 3).encode(),
        b'[core]\n\tbare = false\n[remote "origin"]\n\turl = git@example.org:a/b.git\n',
        b'{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}',
        b'[mcp_servers.memctl]\ncommand = "x"\n',
    ]  # fmt: skip
    folder = tmp_path / "hostile"
    (folder / ".git").mkdir(parents=True)
    (tmp_path / "sessions").mkdir()
    refused = 0
    with IngestWriter(settings) as intake:
        for _ in range(COUNT // 3):
            data = mangler.bytes(mangler.rng.choice(honest), mangler.rng.choice(honest)[:5000])
            (folder / ".git" / "config").write_bytes(data)
            git.checkout_of(folder)
            file = folder / mangler.rng.choice(("a.json", "a.jsonl", "a.db", "memctl-a.memctl.zip", "settings.toml"))
            file.write_bytes(data)
            for read in (*EXPORTED, lambda path: exporting.import_export(intake, path, mine=True)):
                try:
                    read(file)
                except MemctlError:
                    refused += 1
            file.unlink()
        for number in range(COUNT // 6):  # whole transcripts, through the door that reads them
            reader = mangler.rng.choice(list(SAMPLES))
            (tmp_path / "sessions" / f"{number}.jsonl").write_bytes(mangler.lines(SAMPLES[reader]))
        account = ingest(intake, [tmp_path / "sessions"])
    assert refused > COUNT / 2
    assert account.new > 0
    sound(database_url)


def test_a_backup_whose_manifest_is_larger_than_any_is_refused_without_being_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as written:
        written.writestr("manifest.json", b"0" * (64 << 20))
    assert bomb.stat().st_size < 1 << 20

    def unpacked(*_: object) -> bytes:
        raise AssertionError("it was unpacked")

    monkeypatch.setattr(zipfile.ZipFile, "read", unpacked)
    with pytest.raises(archive.BadBackup):
        archive.check(bomb)
