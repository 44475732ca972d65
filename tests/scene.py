"""The README's scene: an error that an agent mended, and what memctl gives the next agent that meets it.

Runs the real hooks against an instance of its own and writes what they print to docs/images/scene.svg.

python tests/scene.py
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

HERE = Path(__file__).parents[1]
IMAGE = HERE / "docs" / "images" / "scene.svg"
EXAMPLE = HERE / "infra" / "example" / "session.jsonl"
WIDTH = 100


class Scene:
    """A terminal that is recorded, and an instance of memctl that it talks to."""

    def __init__(self, home: Path) -> None:
        self._console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
        self._environment = {
            "PATH": os.environ["PATH"], "HOME": str(home), "MEMCTL_DATA_DIR": str(home / "data"), "TZ": "UTC",
        }  # fmt: skip

    def memctl(self, *words: str, given: str = "") -> str:
        return subprocess.run(
            [sys.executable, "-m", "memctl.cli", *words], input=given, env=self._environment, cwd="/", text=True,
            check=True, capture_output=True,
        ).stdout  # fmt: skip

    def hook(self, name: str, **more: Any) -> str:
        """What a hook of Claude Code gives its agent. It is asked again where a busy machine had nothing in time."""
        return next(found for found in (self._asked(name, number, more) for number in range(100, 150)) if found)

    def _asked(self, name: str, number: int, more: dict[str, Any]) -> str:
        payload = {
            "session_id": f"9b1f6a02-3a44-4a5e-8f0e-4f2f6b1f6{number}",
            "cwd": "/home/dana/ledger",
            "hook_event_name": name,
        }
        printed = self.memctl("ingest", "--stdin", "--recall", given=json.dumps({**payload, **more}))
        return str(json.loads(printed)["hookSpecificOutput"]["additionalContext"]) if printed.strip() else ""

    def note(self, text: str) -> None:
        self._console.print(Text(f"# {text}", style="grey62"))

    def shell(self, command: str, printed: str, style: str = "") -> None:
        self._console.print(Text("$ ", style="green") + Text(command, style="bold"))
        for each in printed.splitlines():
            self._console.print(Text("\n".join(textwrap.wrap(each, WIDTH, subsequent_indent="  ")), style=style))
        self._console.print()

    def save(self) -> None:
        drawn = self._console.export_svg(title="the same error, in another session", theme=MONOKAI)
        # Without the fonts that rich would have a browser fetch.
        IMAGE.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL))


def _failure() -> str:
    """What the command printed that failed in the example."""
    for each in map(json.loads, EXAMPLE.read_text().splitlines()):
        content = each["message"]["content"]
        if isinstance(content, list) and content[0].get("is_error"):
            return str(content[0]["content"])
    raise AssertionError("nothing fails in the example")


def record() -> None:
    with tempfile.TemporaryDirectory(prefix="memctl-scene-") as name:
        scene = Scene(Path(name))
        scene.memctl("up")
        try:
            scene.note(
                "2 March: an agent mends a failing test. memctl keeps what happened; nobody writes anything down."
            )
            scene.shell(
                "memctl ingest --example --wait", scene.memctl("ingest", "--example", "--wait").splitlines()[-1]
            )
            scene.note("Weeks later, another session, which knows nothing of that one, meets the same error.")
            failure = _failure()
            scene.hook("SessionStart", source="startup")
            shown = [line for line in failure.splitlines() if line.startswith("E  ") or " failed, " in line]
            scene.shell("pytest -q", "\n".join(shown).replace("=", "").strip(), "red")
            given = scene.hook(
                "PostToolUseFailure", tool_name="Bash", tool_input={"command": "pytest -q"}, error=failure
            )
            scene.note("The failure's hook gives that agent what memory holds of it:")
            scene.shell("memctl ingest --stdin --recall  # as the client's settings call it", given, "cyan")
        finally:
            scene.memctl("down")
        scene.save()


if __name__ == "__main__":
    record()
