"""What MCP's tools answer and the viewer's pages show, in pieces that each have to name whose words they are."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from html import unescape
from urllib.parse import quote

from apis import Api
from mcp import Client
from poisoning.attacks import Attack

from memctl.api.mcp import RECORD, server
from memctl.domain.support.provenance import RIGHTS

USERS = next(may.words for may in RIGHTS.values() if may.as_users)
SOURCES = re.compile("|".join([*(re.escape(may.words) for may in RIGHTS.values() if not may.as_users), " of the team"]))
"""What names another than the user."""

_ID = re.compile(r"\bid ([0-9a-f-]{36})")
_WAITS = re.compile(r"(?:a person(?:'|&#39;)s|your) yes")
"""What a claim lacks that acts."""
_PIECE = re.compile(r"<(?:li|tr|section|svg|h1)\b")
_SHOWN_BY = ('href="/sessions/', 'href="/events/', "an agent's fix")
"""What leads to the session or the event that a line is of."""
_THING = re.compile(r'href="(/things/[0-9a-f-]{36})"')


def holds(text: str, canary: str) -> bool:
    """Whether the word of that attack is there, and not only that of one whose number begins with its own."""
    return re.search(rf"{canary}(?!\d)", text) is not None


def tools(api: Api, location: str, calls: Mapping[str, Mapping[str, object]]) -> dict[str, str]:
    """What the MCP server answers to an agent that works there, by tool."""

    async def talk() -> dict[str, str]:
        async with Client(server(api.client, location)) as client:
            return await _answers(client, calls)

    return asyncio.run(talk())


async def _answers(client: Client, calls: Mapping[str, Mapping[str, object]]) -> dict[str, str]:
    return {name: await _said(client, name, given) for name, given in calls.items()}


async def _said(client: Client, tool: str, given: Mapping[str, object]) -> str:
    result = await client.call_tool(tool, dict(given))
    assert not result.is_error or tool == "context", (tool, result)  # some attacks have no session
    return "\n".join(block.text for block in result.content if block.type == "text")


def all_tools(api: Api, attack: Attack) -> dict[str, str]:
    """What each tool answers where the attack was, and what it says of the first things that hold the attack's word."""
    about = {"query": attack.asked, "limit": 20}
    calls: dict[str, dict[str, object]] = {
        "search": about, "find_fix": {"error": attack.failed, "command": attack.ran}, "timeline": {}, "context": {},
        "knowledge": {"limit": 20}, "guidance": {"task": attack.failed}, "strategies": {"limit": 20},
        "core_memory": {}, "archival_memory_search": about, "conversation_search": about,
    }  # fmt: skip

    async def talk() -> dict[str, str]:
        async with Client(server(api.client, attack.location)) as client:
            answers = await _answers(client, calls)
            holding = [line for text in answers.values() for line in text.split("\n") if holds(line, attack.canary)]
            for id in sorted({found for line in holding for found in _ID.findall(line)})[:2]:
                whole = await _answers(client, {"get": {"id": id}, "explain": {"id": id}})
                answers |= {f"{name} {id}": text for name, text in whole.items()}
            return answers

    return asyncio.run(talk())


LISTS = {"knowledge": {"limit": 20}, "core_memory": {}, "timeline": {}, "strategies": {}, "context": {}}
"""Tools whose answer depends on no question."""


def unmarked_of_tools(answers: Mapping[str, str], canary: str) -> list[str]:
    """Tools that give the word as known, in the user's name, or without a source beside it."""
    wrong = []
    for name, text in answers.items():
        if text.startswith("{"):
            record = json.loads(text).get("what_this_is") == RECORD
            if holds(text, canary) and (not record or USERS in text):
                wrong.append(name)
            continue
        for line in text.split("\n"):
            marked = " of the team" in line if name == "knowledge" else SOURCES.search(line) is not None
            if name == "strategies":
                marked = "ask your user first" in line
            if holds(line, canary) and (not marked or USERS in line):
                wrong.append(f"{name}: {line}")
    return wrong


def pages(api: Api, *paths: str) -> dict[str, str]:
    """Pages by their paths; what is not there is left out."""
    found = {}
    for path in paths:
        status, _, body = api.ask(path)
        assert status in (200, 404), (path, status)
        if status == 200:
            found[path] = body.decode()
    return found


EVERYWHERE = (
    "/", "/sessions", "/knowledge", "/bugs", "/hindsight", "/projects", "/engine", "/engine?part=live", "/waiting",
    "/forget", "/search",
)  # fmt: skip


def pages_of(api: Api, attack: Attack) -> dict[str, str]:
    """The pages of the attack's project, of one of its sessions, and of the first things that hold its word."""
    here = quote(attack.location, safe="")
    found = pages(
        api, f"/projects/{here}", f"/search?q={quote(attack.asked)}&project={here}",
        *(f"{path}?project={here}" for path in ("/", "/sessions", "/knowledge", "/bugs", "/hindsight")),
        f"/sessions/{attack.name}-0", f"/sessions/{attack.name}-0?after=0",
    )  # fmt: skip
    holding = {thing for text in found.values() for thing in _things_with(text, attack.canary)}
    return found | pages(api, *sorted(holding)[:2])


def _things_with(page: str, canary: str) -> set[str]:
    return {id for piece in _PIECE.split(page) if holds(piece, canary) for id in _THING.findall(piece)}


def unmarked_of_pages(shown: Mapping[str, str], canary: str) -> list[str]:
    """Pages that show the word without its source: whose it is, or the session or event that it is of. As the user's it
    is shown only where it waits for them."""
    wrong = []
    for path, page in shown.items():
        if path.startswith("/sessions/"):  # a session is shown as it went, event by event
            continue
        for piece in [page] if path.startswith("/things/") else _PIECE.split(page):
            text = unescape(piece)
            waits = path == "/waiting" or _WAITS.search(text) is not None
            named = SOURCES.search(text) or any(each in text for each in _SHOWN_BY) or waits
            if holds(text, canary) and (not named or (USERS in text and not waits)):
                wrong.append(f"{path}: {text[:300]}")
    return wrong
