"""The MCP server over stdio and streamable HTTP, asked by the SDK's own client."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from apis import TOKEN, Api, free_port
from asked import LEDGER, Remembered
from histories import drained
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from unit.test_learning import EPISODE, WORK, of
from waiting import PATIENCE_S, until

from memctl.api.mcp import _caller
from memctl.domain.events.facts import Lesson
from memctl.domain.events.processor_events import StrategyDistilled
from memctl.domain.events.recalls import MemoryRecalled, RecalledMemory
from memctl.domain.knowledge.memory import memory_id
from memctl.domain.knowledge.strategies import strategy_id
from memctl.infra import api_keys as keys
from memctl.infra.database import connect
from memctl.infra.log.append import append

TOOLS = {
    "search", "find_fix", "timeline", "knowledge", "get", "explain", "context", "guidance", "strategies", "note",
    "rate", "core_memory", "core_memory_append", "core_memory_replace", "archival_memory_insert",
    "archival_memory_search", "conversation_search", "forget",
}  # fmt: skip

NAMED = "name each tool in TOOLS, and call it in the test of every tool"

Talk = Callable[[Client], Awaitable[Any]]


def over_stdio(api: Api, talk: Talk) -> Any:
    started = StdioServerParameters(
        command=sys.executable, args=["-m", "memctl.cli", "mcp"], env=api.environment, cwd=str(api.log.parent)
    )

    async def run() -> Any:
        async with Client(started) as client:
            return await talk(client)

    return asyncio.run(run())


def said(result: Any) -> str:
    return "\n".join(block.text for block in result.content)


def test_over_stdio_every_tool_is_there_and_answers_in_words(api: Api, memory: Remembered) -> None:
    lesson = Lesson(title="Start the cache first", content="The tests wait for the cache.", domain="commands")
    checked = Lesson(title="Check last", content="`make check` finds what is left to mend.", domain="verification")
    strategy = memory_id("strategy", strategy_id(LEDGER, lesson))
    was_told = MemoryRecalled(hook="UserPromptSubmit", memories=(RecalledMemory(strategy),))
    taught_of = StrategyDistilled(episode=EPISODE, strategies=(lesson, checked))
    with connect(memory.database_url) as connection:
        append(connection, 1, [*WORK, of(was_told, 2), of(taught_of, 200)])
    drained(memory.database_url)

    async def talk(client: Client) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS, NAMED
        found = said(await client.call_tool("search", {"query": "Decimal for money", "project": LEDGER}))
        assert '"In this project we always use Decimal for money, never float."' in found
        known = said(await client.call_tool("knowledge", {"project": LEDGER}))
        id = known.rpartition("id ")[2].rstrip(")")
        assert json.loads(said(await client.call_tool("get", {"id": id})))["kind"] == "knowledge"
        assert "Decimal" in said(await client.call_tool("explain", {"id": id}))
        fix = await client.call_tool("find_fix", {"error": "TypeError: unsupported operand type(s)", "project": LEDGER})
        assert "fix" in said(fix)
        assert "turn" in said(await client.call_tool("conversation_search", {"query": "Decimal", "project": "*"}))
        distilled = said(await client.call_tool("archival_memory_search", {"query": "Decimal", "project": "*"}))
        assert "(turn," not in distilled
        assert said(await client.call_tool("timeline", {"project": LEDGER}))
        task = "Invoice totals are off by a cent for some customers. Find out why the rounding test fails, and fix it."
        advice = said(await client.call_tool("guidance", {"task": task, "project": LEDGER}))
        assert "confidence" in advice
        assert "`make check` finds what is left to mend." in advice, "it bears on every change"
        assert "(from " in advice
        case = advice.partition("like it: ")[2].partition("[id ")[2].partition("]")[0]
        assert json.loads(said(await client.call_tool("get", {"id": case})))["kind"] == "memory"
        taught = said(await client.call_tool("strategies", {"project": "*", "domain": "commands"}))
        assert '"The tests wait for the cache." (commands, 1 session, confidence ' in taught
        assert taught.rpartition("id ")[2].rstrip(")") == strategy
        assert said(await client.call_tool("rate", {"id": strategy, "value": 1.0})) == "rated"
        none = said(await client.call_tool("strategies", {"project": "*", "domain": "cooking"}))
        assert none == "no strategy is learnt here yet"

    over_stdio(api, talk)
    drained(memory.database_url)
    uses = json.loads(api.ask("/v1/stats")[2])["uses"]
    (use,) = [use for use in uses if use["kind"] == "strategy"]
    assert use == {"kind": "strategy", "recalls": 1, "followed": 1, "worth": 1.0, "ratings": 1, "helpful": 1}
    figures = api.ask("/metrics")[2].decode().splitlines()
    assert 'memctl_ratings{space="default",kind="strategy",helpful="yes"} 1' in figures


def test_what_an_agent_says_is_kept_as_its_word(api: Api, memory: Remembered) -> None:
    async def talk(client: Client) -> None:
        assert said(await client.call_tool("note", {"text": "The totals are rounded half to even."})) == "noted"
        assert said(await client.call_tool("archival_memory_insert", {"content": "Tests need LEDGER_DB."})) == "stored"
        given = {"section": "work", "content": "Dana likes short answers."}
        assert said(await client.call_tool("core_memory_append", given)) == "work is at version 1"
        replaced = {"section": "work", "old": "short", "new": "very short"}
        assert said(await client.call_tool("core_memory_replace", replaced)) == "work is at version 2"
        refused = await client.call_tool("core_memory_append", {**given, "section": "human"})
        assert refused.is_error
        assert "for its user to write" in said(refused)

    over_stdio(api, talk)
    drained(memory.database_url)
    waiting = json.loads(api.ask("/v1/waiting")[2])
    assert {each["text"] for each in waiting["claims"]} >= {"The totals are rounded half to even."}
    assert {each["origin"] for each in waiting["claims"] if "half to even" in each["text"]} == {"written by an agent"}
    assert [(each["section"], each["version"], each["origin"]) for each in waiting["sections"]] == [
        ("work", 2, "written by an agent")
    ]
    known = json.loads(api.ask("/v1/knowledge?project=*&limit=200")[2])["items"]
    assert not [each for each in known if "half to even" in each["text"]]


def test_an_agent_asks_to_have_a_thing_forgotten_and_a_person_decides(api: Api, memory: Remembered) -> None:
    known = json.loads(api.ask("/v1/knowledge?project=*&limit=1")[2])["items"][0]

    async def talk(client: Client) -> None:
        asked = said(await client.call_tool("forget", {"id": known["id"], "reason": "it is wrong"}))
        assert asked.startswith("asked:")
        assert not (await client.call_tool("get", {"id": known["id"]})).is_error

    over_stdio(api, talk)
    drained(memory.database_url)
    (request,) = json.loads(api.ask("/v1/waiting")[2])["requests"]
    assert (request["thing"], request["why"], request["by"]) == (known["id"], "it is wrong", "agent")
    for by, status in (("agent", 422), ("user", 200)):
        body = json.dumps({"thing": known["id"], "by": by}).encode()
        headers = {"Idempotency-Key": f"keep-{by}", "Content-Type": "application/json"}
        assert api.ask("/v1/commands/refuse-forget", method="POST", body=body, headers=headers)[0] == status
    drained(memory.database_url)
    assert json.loads(api.ask("/v1/waiting")[2])["requests"] == []


def test_what_goes_wrong_is_said_with_what_to_do(api: Api) -> None:
    async def talk(client: Client) -> None:
        gone = await client.call_tool("get", {"id": "nothing-like-it"})
        assert gone.is_error
        assert "nothing-like-it" in said(gone)
        refused = await client.call_tool("core_memory_replace", {"section": "human", "old": "never said"})
        assert refused.is_error
        assert "exactly so" in said(refused)
        for arguments in ({}, {"query": "x", "limit": 0}):
            assert (await client.call_tool("search", arguments)).is_error

    over_stdio(api, talk)


def test_half_a_surrogate_pair_is_answered_as_any_text(api: Api) -> None:
    begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    odd = {"name": "search", "arguments": {"query": "carts \ud83d \U0001f600"}}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": begin},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": odd},
        {"id": 3, "method": "tools/call", "params": {"name": "get", "arguments": {"id": "nothing-\udc00"}}},
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "memctl.cli", "mcp"], env=api.environment, cwd=api.log.parent,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        ends = threading.Timer(PATIENCE_S, process.kill)
        ends.start()
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        answers = {answer["id"]: answer["result"] for answer in map(json.loads, itertools.islice(process.stdout, 3))}
        process.stdin.close()
        ends.cancel()
    assert not answers[2]["isError"]
    assert "nothing-\ufffd" in answers[3]["content"][0]["text"]


@pytest.fixture(scope="module")
def served(api: Api) -> Iterator[str]:
    with free_port() as port:
        command = [sys.executable, "-m", "memctl.cli", "mcp", "--http", "--port", str(port)]
        process = subprocess.Popen(command, env=api.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until(lambda: _listens(process, port), "the MCP server's port")
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()
            process.wait(20)


def _listens(process: subprocess.Popen[bytes], port: int) -> bool:
    assert process.poll() is None
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextlib.asynccontextmanager
async def connected(url: str, headers: dict[str, str]) -> AsyncIterator[Client]:
    async with (
        create_mcp_http_client(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


def test_over_http_the_same_tools_answer_whoever_has_the_token(served: str) -> None:
    async def talk() -> None:
        async with connected(served, {"Authorization": f"Bearer {TOKEN}"}) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS, NAMED
            asked = {"query": "Decimal for money"}
            assert "never float" in said(await client.call_tool("search", {**asked, "project": "*"}))
            # One server answers sessions in many places: where they are, it does not know.
            for tool, given in (("search", asked), ("find_fix", {"error": "TypeError: unsupported operand type(s)"}),
                                ("knowledge", {}), ("timeline", {}), ("conversation_search", asked),
                                ("archival_memory_search", asked), ("guidance", {"task": "money as Decimal"}),
                                ("strategies", {})):  # fmt: skip
                found = said(await client.call_tool(tool, given))
                assert "does not know this directory" in found, tool
                assert not any(word in found for word in ("Decimal", "ledger", "operand")), tool

    asyncio.run(talk())


def test_over_stdio_a_directory_that_memory_does_not_know_gets_what_holds_everywhere(api: Api) -> None:
    async def talk(client: Client) -> list[str]:
        asked = {"query": "Decimal for money"}
        return [said(await client.call_tool(tool, given)) for tool, given in
                (("search", asked), ("knowledge", {}), ("timeline", {}), ("context", {}))]  # fmt: skip

    *listed, context = over_stdio(api, talk)
    assert all("does not know this directory" in found and "ledger" not in found for found in listed)
    assert "No session is known" in context


def test_over_http_a_key_may_what_its_scopes_say(api: Api, memory: Remembered, served: str) -> None:
    with connect(memory.database_url) as connection:
        _, key = keys.make(connection, "default", "reader", ["read"])
        _, other = keys.make(connection, "default", "of atlas", ["read", "write"], projects=["/home/dana/atlas"])

    async def talk(key: str, project: str) -> tuple[str, Any]:
        async with connected(served, {"Authorization": f"Bearer {key}"}) as client:
            found = said(await client.call_tool("search", {"query": "Decimal for money", "project": project}))
            said_here = {"text": "a reader may not say this", "location": "/home/dana/atlas"}
            return found, await client.call_tool("note", said_here)

    found, refused = asyncio.run(talk(key, "ledger"))
    assert "never float" in found
    assert refused.is_error
    assert "scope write" in said(refused)
    found, noted = asyncio.run(talk(other, "*"))
    assert "never float" not in found
    assert said(noted) == "noted"
    caller = _caller(api.url, other)
    assert caller is not None
    assert caller.projects == ("/home/dana/atlas",)


def test_over_http_a_note_says_where_it_holds(served: str) -> None:
    async def talk() -> None:
        async with connected(served, {"Authorization": f"Bearer {TOKEN}"}) as client:
            for tool, named in (("note", "text"), ("archival_memory_insert", "content")):
                refused = await client.call_tool(tool, {named: "maps are drawn at night"})
                assert refused.is_error
                assert "location" in said(refused)

    asyncio.run(talk())


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer memctl_0123456789ab_guessed"},
        {"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"},
        {"Authorization": f"Bearer {TOKEN}", "Origin": "https://evil.example"},
    ],
)
def test_over_http_nobody_else_is_answered(served: str, headers: dict[str, str]) -> None:
    async def ask() -> int:
        async with create_mcp_http_client(headers=headers) as http:
            return int((await http.post(served, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).status_code)

    assert asyncio.run(ask()) in (401, 403)
