"""The real clients of coding agents, asked as models, in a network that ends at this machine.

`make test-client` fetches them from npm and runs this in a network namespace of its own. A server here plays each
client's API. (This is no test that `make test` collects.)
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llm_server import TOKENS_IN, TOKENS_OUT, Handler, Server, llm_server
from pydantic import BaseModel

from memctl.infra.database import Connection, connect
from memctl.infra.llm.client import ModelClient
from memctl.infra.llm.prompts import Prompt
from memctl.infra.redaction import default_redactor
from memctl.infra.settings_model import Llm

CLIENTS = Path(__file__).parents[2] / ".scratch" / "claude-code" / "node_modules" / ".bin"
HOOK = "touch hooked"
MODELS = {"claude-code": "haiku", "codex": "gpt-5.1-codex-mini", "gemini-cli": "gemini-2.5-flash"}


class Said(BaseModel):
    word: str
    chance: float


def events_of(path: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """An answer as each API streams it."""
    text = json.dumps({"word": "yes", "chance": 0.5})
    if "messages" in path:
        usage = {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT}
        message = {"id": "m", "type": "message", "role": "assistant", "model": body["model"], "content": [],
                   "stop_reason": None, "stop_sequence": None, "usage": usage}  # fmt: skip
        tool = {"type": "tool_use", "id": "t", "name": "StructuredOutput", "input": {}}
        yield {"type": "message_start", "message": message}
        yield {"type": "content_block_start", "index": 0, "content_block": tool}
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}}
        yield {"type": "content_block_stop", "index": 0}
        yield {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": usage}
        yield {"type": "message_stop"}
    elif "responses" in path:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        item = {"type": "message", "id": "i", "role": "assistant", "status": "completed", "content": content}
        usage = {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT, "total_tokens": TOKENS_IN + TOKENS_OUT}
        answer = {"id": "r", "status": "completed", "output": [item], "usage": usage}
        yield {"type": "response.created", "response": {"id": "r", "status": "in_progress", "output": []}}
        yield {"type": "response.output_item.done", "output_index": 0, "item": item}
        yield {"type": "response.completed", "response": answer}
    else:
        said = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}
        used = {"promptTokenCount": TOKENS_IN, "candidatesTokenCount": TOKENS_OUT,
                "totalTokenCount": TOKENS_IN + TOKENS_OUT}  # fmt: skip
        yield {"candidates": [said], "usageMetadata": used, "modelVersion": "g"}


def plays(handler: Handler, body: dict[str, Any]) -> None:
    if not any(part in handler.path for part in ("/messages", "/responses", "streamGenerateContent")):
        handler.reply(200, {})
        return
    handler.of.bill()
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Connection", "close")
    handler.end_headers()
    for event in events_of(handler.path, body):
        name = f"event: {event['type']}\n" if "type" in event else ""
        handler.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
    handler.close_connection = True


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which each client has hooks, of which none may run."""
    home = tmp_path / "home"
    hook = {"hooks": [{"type": "command", "command": f"touch {home}/hooked"}]}
    hooks = {"SessionStart": [hook], "UserPromptSubmit": [hook], "BeforeAgent": [hook]}
    signed_in = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    for file, held in (
        (".claude/settings.json", {"hooks": hooks}),
        (".codex/hooks.json", {"hooks": hooks}),
        (".gemini/settings.json", {"hooks": hooks, **signed_in}),
    ):
        (home / file).parent.mkdir(parents=True)
        (home / file).write_text(json.dumps(held))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", str(CLIENTS), prepend=":")
    monkeypatch.setenv("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
    return home


@pytest.mark.parametrize("provider", MODELS)
def test_a_client_answers_in_the_form_asked_for_and_leaves_nothing_to_be_remembered(
    database_url: str, home: Path, provider: str
) -> None:
    def ask(connection: Connection, url: str) -> None:
        given = {"provider": provider, "model": MODELS[provider], "base_url": url, "api_key": "none"}
        client = ModelClient(Llm.model_validate(given), connection, 1, default_redactor())
        answer = client.ask(Prompt("judge@1", "Judge the work."), "it works", Said, processor="judge", subject="e1")
        assert answer.output == Said(word="yes", chance=0.5)
        assert answer.tokens == TOKENS_IN + TOKENS_OUT

    def asked(server: Server) -> list[str]:
        return [each.text for each in server.asked if "Judge the work." in each.text]

    with llm_server() as server, connect(database_url) as connection:
        server.then(plays)
        ask(connection, server.url + ("/v1" if provider == "codex" else ""))
        (request,) = asked(server)
    assert "it works" in request
    names = [
        tool.get("name", "") for tool in json.loads(request).get("tools", []) if "functionDeclarations" not in tool
    ]
    assert not {"Bash", "Read", "shell", "exec_command", "run_shell_command"} & set(names)
    assert not (home / "hooked").exists()
    kept = [path for path in home.rglob("*.jsonl") if "it works" in path.read_text()]
    assert kept == []
