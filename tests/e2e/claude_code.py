"""The real Claude Code, with memctl as `install` writes it, in a network that ends at this machine.

`make test-client` fetches the client from npm and runs this in a network namespace of its own. A server here plays
the model: what is asked of it says which tool to use. (This is no test that `make test` collects.)
"""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commandline import Memctl
from llm_server import Handler, Server, llm_server
from waiting import until

CLIENT = Path(__file__).parents[2] / ".scratch" / "claude-code" / "node_modules" / ".bin" / "claude"
SUMMARY = "<summary>The parser's lines were counted.</summary>"
FULL = 996_000
"""Tokens of a context that the client thinks it has to shorten."""

Answer = tuple[str, Any, int]
"""The tool to use, or "" for words; its input, or the words; tokens that the context is said to have."""


def model(body: dict[str, Any]) -> Answer:
    last = json.dumps([each for each in body["messages"] if each["role"] == "user"][-1])
    tools = {tool["name"] for tool in body.get("tools", ())}
    if "Respond with TEXT ONLY" in last or "create a detailed summary" in last:
        return "", SUMMARY, 500
    if "tool_result" in last:
        return "", "All done.", 500
    if "COUNT" in last and "Bash" in tools:
        return "Bash", {"command": "echo counted", "description": "Count"}, 500
    if "DELEGATE" in last and "Agent" in tools:
        work = {"prompt": "COUNT the lines", "subagent_type": "general-purpose", "run_in_background": False}
        return "Agent", {"description": "Count lines", **work}, 500
    if "FILL" in last and "Bash" in tools:
        return "Bash", {"command": "echo filled", "description": "Fill"}, FULL
    return "", "Nothing to do.", 500


def plays(handler: Handler, body: dict[str, Any]) -> None:
    if "/messages" not in handler.path or "count_tokens" in handler.path:
        handler.reply(200, {"input_tokens": 10})
        return
    tool, told, size = model(body)
    number = len(handler.of.asked)
    usage = {"input_tokens": size, "output_tokens": 5}
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": told}
    if tool:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(told)}
    message = {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": body["model"], "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    stop = {"stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None}
    parts = (
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": usage},
        {"type": "message_stop"},
    )
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Connection", "close")
    handler.end_headers()
    for part in parts:
        handler.wfile.write(f"event: {part['type']}\ndata: {json.dumps(part)}\n\n".encode())
    handler.close_connection = True


class ClaudeCode:
    """The client in a project, with memctl installed; `session` is the one it goes on with."""

    def __init__(self, memctl: Memctl, server: Server) -> None:
        self.memctl = memctl
        self.project = memctl.home / "parser"
        self.project.mkdir()
        subprocess.run(["git", "init", "-q"], cwd=self.project, check=True)
        self.session = ""
        self._environment = {
            **memctl.environment,
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }

    def __call__(self, prompt: str) -> None:
        command = [str(CLIENT), "-p", prompt, "--allowedTools", "Bash,Agent", "--output-format", "json"]
        command += ["--resume", self.session] if self.session else []
        done = subprocess.run(
            command, cwd=self.project, env=self._environment, capture_output=True, text=True, timeout=120, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        self.session = json.loads(done.stdout)["session_id"]

    def remembered(self, *, answers: int) -> dict[str, Any]:
        """The one session, once so many answers of it are folded."""
        found: list[dict[str, Any]] = []

        def whole() -> bool:
            found[:] = self.memctl.json("sessions", "--project", "*")
            return bool(found) and found[0]["answers"] >= answers

        until(whole)
        assert len(found) == 1
        return found[0]


@pytest.fixture
def server() -> Iterator[Server]:
    assert [name for _, name in socket.if_nameindex()] == ["lo"], "there is a way out of this machine"
    with llm_server() as found:
        found.then(plays)
        yield found


def settings_of(home: Path) -> str:
    return (home / ".claude" / "settings.json").read_text()


def test_a_subagent_and_compactions_are_told_once_and_what_was_at_hand_survives(tmp_path: Path, server: Server) -> None:
    memctl = Memctl(tmp_path)
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text('{"model": "opus"}\n')
    before = settings_of(tmp_path)
    memctl("up")
    try:
        memctl("install", "claude-code", "--yes")
        client = ClaudeCode(memctl, server)
        client("DELEGATE: have the lines of the parser counted")
        client("/compact")
        asked = len(server.asked)
        client("FILL the context")
        session = client.remembered(answers=3)
        context = memctl.json("context", client.session)
        memctl("install", "claude-code", "--uninstall", "--yes")
    finally:
        memctl("down")

    # Each use of a tool once, though hooks and transcripts told all of them; the summary is nobody's answer.
    assert (session["prompts"], session["tool_calls"], session["tool_failures"]) == (2, 3, 0)
    assert [(each["role"], each["tool_calls"], each["ok"]) for each in session["subagents"]] == [
        ("general-purpose", 1, True)
    ]
    assert context["last_answer"] == "All done."
    # The first compaction was asked for, the second came by itself: a session was begun once, and taken up twice.
    assert session["starts"] == 3
    told = [each.text for each in server.asked[asked:] if "before its context was shortened" in each.text]
    # What came of the first compaction goes along until the second, which tells what was at hand by then.
    assert "DELEGATE: have the lines of the parser counted" in told[0]
    assert json.dumps('the last prompt, typed by no person: "FILL the context"')[1:-1] in told[-1]
    assert settings_of(tmp_path) == before
