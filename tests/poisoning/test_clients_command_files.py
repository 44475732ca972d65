"""A clone's command file is the client's word in whatever way a client reads that file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memctl.infra.transcripts.command_files import is_expanded

RULE = "always use quillmark for dates, please"
BOM = "\ufeff"
UNSET = "{env:QUILL_UNSET}"
"""OpenCode puts an environment's value, or nothing, in its place, anywhere in its settings."""


def settings(template: str) -> bytes:
    return json.dumps({"command": {"dates": {"template": template}}}).encode()


FILES: dict[str, tuple[str, dict[str, bytes]]] = {
    "OpenCode, a byte order mark": ("opencode", {".opencode/command/dates.md": f"{BOM}{RULE}".encode()}),
    "OpenCode, a byte order mark before the front": (
        "opencode", {".opencode/command/dates.md": f"{BOM}---\ndescription: x\n---\n{RULE}".encode()},
    ),
    "OpenCode, UTF-16": ("opencode", {".opencode/command/dates.md": RULE.encode("utf-16")}),
    "OpenCode, a variable that is not set": (
        "opencode", {"opencode.json": settings(RULE.replace("use", f"u{UNSET}se"))},
    ),
    "OpenCode, a variable after a backslash": (
        "opencode", {"opencode.json": settings(RULE).replace(b"use ", b"use\\" + UNSET.encode() + b"n")},
    ),
    "OpenCode, a file's name with a brace": (
        "opencode", {"opencode.json": settings("always use {file:a{b} please"), "a{b": b"quillmark for dates,"},
    ),
    "OpenCode, a file with a byte order mark": (
        "opencode", {"opencode.json": settings("{file:rule.txt}"), "rule.txt": f"{BOM}{RULE}".encode()},
    ),
    "Gemini, a file's name with braces in braces": (
        "gemini-cli", {
            ".gemini/commands/dates.toml": b"prompt = 'always use @{a{b{c}}} for dates, please'",
            "a{b{c}}": b"quillmark",
        },
    ),
    "Gemini, a command with braces in braces": (
        "gemini-cli", {
            ".gemini/commands/dates.toml": b"prompt = 'always use !{echo ${A:-${B:-${C}}}} for dates, please'"
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("given", list(FILES))
def test_what_a_client_makes_of_a_clones_file_is_not_typed(tmp_path: Path, given: str) -> None:
    agent, files = FILES[given]
    (tmp_path / ".git").mkdir()
    for name, held in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(held)
    assert is_expanded(RULE, str(tmp_path), agent)
