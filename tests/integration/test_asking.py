"""A hook that asks memory, as a whole process; the test answers it at both sockets."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

from memctl.infra import hook
from memctl.infra.hook import MOST_ASKED, _may_recall
from memctl.infra.hooks.spool import decode_header

PATIENCE_S = 60


def listening(path: Path) -> socket.socket:
    path.parent.mkdir(exist_ok=True)
    listens = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listens.settimeout(PATIENCE_S)
    listens.bind(str(path))
    listens.listen()
    return listens


def accepted(listens: socket.socket) -> socket.socket:
    connection = listens.accept()[0]
    connection.settimeout(PATIENCE_S)
    return connection


def test_memory_is_asked_while_the_door_makes_it_durable_and_holds_up_no_delivery(tmp_path: Path) -> None:
    """The question is longer than what a socket holds, and nobody reads it before the delivery is durable."""
    text = "How is money rounded here? " * (MOST_ASKED // 27 - 10)
    payload = json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": text}).encode()
    with listening(tmp_path / "run" / "door.sock") as door, listening(tmp_path / "run" / "api.sock") as api:
        (tmp_path / "run" / hook.DOOR_FILE).write_text(f"{tmp_path}/run/door.sock\n")
        (tmp_path / "run" / hook.API_FILE).write_text(f"{tmp_path}/run/api.sock\ntoken\n")
        line = [sys.executable, "-I", "-S", hook.__file__, "ingest", "--stdin", "--recall", f"--data-dir={tmp_path}"]
        with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as asking:
            assert asking.stdin is not None
            assert asking.stdout is not None
            asking.stdin.write(payload)
            asking.stdin.close()
            with accepted(door) as delivers, delivers.makefile("rb") as told:
                assert told.read(decode_header(told.readline())[1]) == payload
                with accepted(api) as asks, asks.makefile("rb") as asked:
                    assert asked.readline() == b"POST /v1/hooks/claude-code?event= HTTP/1.1\r\n"
                    delivers.sendall(b'{"ok": true, "new": 1}\n')
                    while asked.readline() != b"\r\n":
                        pass
                    assert asked.read(len(payload)) == payload
                    asks.sendall(b"HTTP/1.1 200 OK\r\n\r\n{}")
            assert asking.stdout.read() == b"{}"
    assert asking.returncode == 0


def test_of_a_tool_that_went_well_memory_is_asked_only_where_a_command_shows_a_failure() -> None:
    def payload(name: str, tool: str, output: str) -> bytes:
        given = {"hook_event_name": name, "tool_name": tool, "tool_response": {"stdout": output}}
        return json.dumps(given).encode()

    assert _may_recall(payload("PostToolUse", "Bash", "src/cart.ts format\nFound 1 error."))
    assert not _may_recall(payload("PostToolUse", "Bash", "12 pass"))
    assert not _may_recall(payload("PostToolUse", "Read", "Found 1 error."))
    assert _may_recall(payload("PostToolUseFailure", "Edit", "no match"))
    assert _may_recall(json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": 'a "PostToolUse" hook'}).encode())
