"""Coding agents as models: the client that the user pays for already is asked once, without its tools or hooks.

It runs in an empty folder of its own, keeps no session, and is ended with all its children when it takes too long. So
nothing of what it does comes back into memory.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model
    from pydantic_ai.models.function import AgentInfo

    from memctl.infra.settings_model import Llm

MOST_BYTES = 4 << 20
"""Of what a client prints."""

_NOT_THEIRS = ("MEMCTL_", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT")
"""Beginnings of variables that a client does not get. Others of Claude Code's hold how the user is signed in."""

_SCHEMA, _SYSTEM = "schema.json", "instructions.md"
_FORM = "\n\nAnswer with one JSON object of this schema, and nothing else:\n"


class Said(NamedTuple):
    """An answer: the object, and tokens as the client counts them."""

    output: dict[str, Any]
    tokens_in: int
    tokens_out: int


class Failed(Exception):
    """The client says that it could not answer. `status` is its server's, where it names one."""

    def __init__(self, status: int | None = None) -> None:
        super().__init__(status)
        self.status = status


class Agent(NamedTuple):
    """How one client is asked: its program with arguments (of the settings, the schema as text, and the folder it runs
    in), what it prints, and the tokens that it adds to a request at most."""

    program: str
    arguments: Callable[[Llm, str, Path], list[str]]
    read: Callable[[bytes], Said]
    overhead: int
    form_in_words: bool = False
    """It takes no schema, so the request says the form."""


def _claude_code(settings: Llm, schema: str, folder: Path) -> list[str]:
    return [
        "-p", "--output-format", "json", "--json-schema", schema,
        "--system-prompt-file", str(folder / _SYSTEM), "--model", settings.model, "--effort", "low", "--tools", "",
        "--setting-sources", "", "--settings", '{"disableAllHooks":true}', "--strict-mcp-config",
        "--disable-slash-commands", "--no-session-persistence",
    ]  # fmt: skip


def _read(printed: bytes | str) -> dict[str, Any]:
    """Raises: ValueError where it is no JSON object."""
    try:
        return msgspec.json.decode(printed, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise ValueError("no JSON object") from None


def _said_by_claude_code(printed: bytes) -> Said:
    found = _read(printed)
    if found.get("is_error") or "structured_output" not in found:
        raise Failed(found.get("api_error_status"))
    used = found["usage"]
    tokens_in = sum(used.get(name) or 0 for name in _CLAUDE_INPUT)
    return Said(found["structured_output"], tokens_in, used["output_tokens"])


_CLAUDE_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")

_CODEX_OFF = ("shell_tool", "unified_exec", "hooks", "multi_agent", "goals", "apps", "plugins", "view_image",
              "browser_use", "computer_use", "image_generation")  # fmt: skip


def _codex(settings: Llm, schema: str, folder: Path) -> list[str]:
    off = [part for name in _CODEX_OFF for part in ("-c", f"features.{name}=false")]
    where = ["-c", f"openai_base_url={json.dumps(str(settings.base_url))}"] if settings.base_url else []
    return [
        "exec", "--ephemeral", "--ignore-user-config", "--ignore-rules", "--skip-git-repo-check", "--json",
        "-s", "read-only", "-m", settings.model, "--output-schema", str(folder / _SCHEMA), *off, *where,
        "-c", f"model_instructions_file={json.dumps(str(folder / _SYSTEM))}", "-c", 'web_search="disabled"',
        "-c", "project_doc_max_bytes=0", "-",
    ]  # fmt: skip


def _said_by_codex(printed: bytes) -> Said:
    words, used = "", dict[str, int]()
    for line in printed.splitlines():
        found = _read(line)
        if found.get("type") == "item.completed" and found["item"].get("type") == "agent_message":
            words = found["item"]["text"]
        used = found.get("usage") or used
    if not words:
        raise Failed
    return Said(_read(words), used.get("input_tokens", 0), used.get("output_tokens", 0))


_GEMINI_SETTINGS = {
    "hooksConfig": {"enabled": False}, "tools": {"core": []}, "skills": {"enabled": False},
    "context": {"fileName": "none"},
}  # fmt: skip


def _gemini(settings: Llm, schema: str, folder: Path) -> list[str]:
    return ["-o", "json", "-e", "none", "--allowed-mcp-server-names", "none",
            "-m", settings.model, "-p", ""]  # fmt: skip


def _said_by_gemini(printed: bytes) -> Said:
    found = _read(printed)
    _forget_session(found.get("session_id") or "")
    if "response" not in found:
        raise Failed
    words = found["response"].strip().removeprefix("```json").removesuffix("```")
    used = [each["tokens"] for each in found["stats"]["models"].values()]
    tokens_in = sum(each["prompt"] for each in used)
    return Said(_read(words), tokens_in, sum(each["total"] for each in used) - tokens_in)


def _forget_session(id: str) -> None:
    """Gemini CLI keeps a session of every question, which would be read as one of the user's."""
    home = Path(os.environ.get("GEMINI_CLI_HOME") or Path.home()) / ".gemini" / "tmp"
    for kept in home.glob(f"*/chats/session-*-{id[:8]}.json*") if id[:8].isalnum() else ():
        if id.encode() in kept.read_bytes()[:4096]:
            kept.unlink()


AGENTS = {
    "claude-code": Agent("claude", _claude_code, _said_by_claude_code, 4_000),
    "codex": Agent("codex", _codex, _said_by_codex, 24_000),
    "gemini-cli": Agent("gemini", _gemini, _said_by_gemini, 12_000, form_in_words=True),
}


def model_of(settings: Llm) -> Model:
    """The client that the settings name, as a model."""
    from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
    from pydantic_ai.messages import ModelResponse, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer
    from pydantic_ai.usage import RequestUsage

    agent = AGENTS[settings.provider]

    async def asked(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        (tool,) = info.output_tools
        strict = OpenAIJsonSchemaTransformer(tool.parameters_json_schema, strict=True).walk()
        schema, instructions, words = json.dumps(strict), info.instructions or "", _words_of(messages)
        if agent.form_in_words:
            words += _FORM + schema
        try:
            said = agent.read(await _printed(agent, settings, instructions, schema, words))
        except FileNotFoundError:
            raise ModelHTTPError(404, settings.model) from None
        except Failed as problem:
            if problem.status is not None:
                raise ModelHTTPError(problem.status, settings.model) from None
            raise ModelAPIError(settings.model, f"{settings.provider} gave no answer") from None
        usage = RequestUsage(input_tokens=said.tokens_in, output_tokens=said.tokens_out)
        return ModelResponse([ToolCallPart(tool.name, said.output)], usage=usage, model_name=settings.model)

    return FunctionModel(asked, model_name=settings.model)


def _words_of(messages: list[ModelMessage]) -> str:
    """What is asked, and what was wrong with the answer before."""
    said = [
        part.model_response() if part.part_kind == "retry-prompt" else str(part.content)
        for message in messages
        for part in message.parts
        if part.part_kind in ("user-prompt", "retry-prompt")
    ]
    return "\n\n".join(said)


async def _printed(agent: Agent, settings: Llm, instructions: str, schema: str, words: str) -> bytes:
    """What the client prints. Raises: FileNotFoundError where it is not installed."""
    with tempfile.TemporaryDirectory(prefix="memctl-asks-") as name:
        folder = Path(name)
        (folder / _SCHEMA).write_text(schema)
        (folder / _SYSTEM).write_text(instructions)
        (folder / ".gemini").mkdir()
        (folder / ".gemini" / "settings.json").write_text(json.dumps(_GEMINI_SETTINGS))
        client = await asyncio.create_subprocess_exec(
            agent.program, *agent.arguments(settings, schema, folder), cwd=folder, env=_environment(settings, folder),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        assert client.stdin is not None
        assert client.stdout is not None
        try:
            client.stdin.write(words.encode("utf-8", "replace"))
            with suppress(BrokenPipeError, ConnectionResetError):
                await client.stdin.drain()
            client.stdin.close()
            printed = b""
            while len(printed) < MOST_BYTES and (more := await client.stdout.read(1 << 16)):
                printed += more
            await client.wait()
            return printed
        finally:
            with suppress(ProcessLookupError):
                os.killpg(client.pid, signal.SIGKILL)
            await client.wait()


def _environment(settings: Llm, folder: Path) -> dict[str, str]:
    """The user's, so that the client is signed in, without memctl's own settings and what says that one client runs
    within another. Hooks that run all the same keep nothing."""
    ours = {
        "MEMCTL_OFF": "1", "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(settings.most_output_tokens),
        "GEMINI_SYSTEM_MD": str(folder / _SYSTEM), "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }  # fmt: skip
    if settings.base_url is not None:
        url = str(settings.base_url).rstrip("/")
        ours |= {"ANTHROPIC_BASE_URL": url, "GOOGLE_GEMINI_BASE_URL": url}
    if settings.api_key is not None:
        key = settings.api_key.get_secret_value()
        ours |= {"ANTHROPIC_API_KEY": key, "CODEX_API_KEY": key, "GEMINI_API_KEY": key}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_THEIRS)}
    return {**kept, **ours}
