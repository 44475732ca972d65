"""Sends marked text to memctl by every way there is, and says which patterns of `re` met it (`recording/`)."""

from __future__ import annotations

import contextlib
import copy
import json
import runpy
import sys
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import anyio
from client_sessions import SAMPLES
from commandline import Memctl
from soak import FACTOR

from memctl.infra.data_dir import Folders
from memctl.infra.endpoints import read_endpoints
from memctl.infra.listening import viewer_host

RECORDER = Path(__file__).parent / "recording"
MARK, DIGITS = runpy.run_path(str(RECORDER / "sitecustomize.py"))["MARKS"]
MARKED = f"{MARK} {DIGITS} why does it fail? ValueError: {MARK} at /srv/{MARK}.py:{DIGITS}"


_STAMP = f"2026-01-01T10:00:00.{DIGITS}Z"
_TOML = f"""[project]
name = "{MARK}"  # {MARK}
dependencies = ["{MARK}>=1"]
made = 2026-01-01T10:00:00.{DIGITS}Z
at = 10:00:00
size = {DIGITS}
[tool.memctl]
share = 1.5
"""
_MANIFEST = "/w/shop/pyproject.toml"
_READ = [
    {
        "type": "assistant", "uuid": "r1", "sessionId": "r", "timestamp": _STAMP, "cwd": "/w/shop",
        "message": {"content": [{"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": _MANIFEST}}]},
    },
    {
        "type": "user", "uuid": "r2", "sessionId": "r", "timestamp": _STAMP, "cwd": "/w/shop",
        "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": _TOML}]},
        "toolUseResult": {"type": "text", "file": {"filePath": _MANIFEST, "content": _TOML, "totalLines": 8}},
    },
]  # fmt: skip
_SAID = {"session_id": "s1", "transcript_path": "/nowhere/s1.jsonl", "cwd": "/w/shop", "permission_mode": "default"}
PAYLOADS: list[dict[str, Any]] = [
    {**_SAID, "hook_event_name": "SessionStart", "source": "startup", "model": "opus"},
    {**_SAID, "hook_event_name": "UserPromptSubmit", "prompt": "Why does the cart fail?"},
    {**_SAID, "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "t1",
     "tool_input": {"command": "ls"}},
    {
        **_SAID, "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "t1",
        "tool_input": {"command": "pytest"}, "tool_response": {"stdout": "1 failed", "interrupted": False},
    },
    {
        **_SAID, "hook_event_name": "PostToolUse", "tool_name": "Read", "tool_use_id": "t2",
        "tool_input": {"file_path": _MANIFEST},
        "tool_response": {"type": "text", "file": {"filePath": _MANIFEST, "content": _TOML}},
    },
    {**_SAID, "hook_event_name": "SessionEnd", "reason": "exit"},
]  # fmt: skip

_VERBS = (
    ("search", MARKED), ("search", MARK, "--since", _STAMP), ("ask", "how_to", MARKED), ("bugs", MARKED),
    ("show", MARK), ("note", MARKED), ("memory", "history", "--project", MARK), ("memory", "guidance", MARKED),
    ("forget", "--match", MARKED, "--dry-run"), ("admin", "export", f"{MARK}.zip"), ("admin", "import", f"{MARK}.zip"),
    ("admin", "doctor"), ("status",), (MARK,),
)  # fmt: skip


def recorded(environment: dict[str, str], folder: Path) -> dict[str, str]:
    """An environment whose processes write into that folder which patterns met a mark."""
    folder.mkdir(exist_ok=True)
    return {**environment, "PYTHONPATH": str(RECORDER), "MEMCTL_TEST_PATTERNS": str(folder)}


class Met(NamedTuple):
    """A pattern that met a mark: who asks it, and where in a text it is looked for: at its `start`, as the `whole` of
    it, or `anywhere`."""

    module: str
    pattern: str
    flags: int
    place: str


def met(folder: Path) -> dict[Met, str]:
    """What was recorded, each with a function that asks it."""
    found: dict[Met, str] = {}
    for path in folder.glob("*.jsonl"):
        for line in path.read_text().splitlines():
            one = json.loads(line)
            found[Met(one["module"], one["pattern"], one["flags"], one["place"])] = one["function"]
    return found


def send(memctl: Memctl, folder: Path) -> None:
    """Marked text by each way: transcripts of every client, hooks, the API, the viewer, MCP, the command line."""
    (memctl.home / ".memctl.toml").write_text(_TOML)
    memctl("ingest", str(_transcripts(folder)), "--wait")
    for payload in PAYLOADS:
        said = {name: payload[name] for name in ("hook_event_name", "tool_name") if name in payload}
        for each in (payload, {**_all_marked(payload), **said}, _all_marked(payload)):
            memctl("ingest", "--stdin", stdin=json.dumps(each).encode())
    _over_http(memctl)
    anyio.run(_over_mcp, memctl)
    for words in _VERBS:
        memctl(*words, code=None)


def _marked(value: Any) -> Iterator[Any]:
    """Copies of a value, in each of which one text or number carries a mark. Of those at one place in entries of one
    kind the first is marked, all in a soak."""
    seen = set()
    for path, leaf in list(_leaves(value, ())):
        first = value[path[0]] if isinstance(value, list) else value
        kind = str(first.get("type")) if isinstance(first, dict) else ""
        place = (kind, *("" if isinstance(step, int) else step for step in path))
        if place in seen and not FACTOR:
            continue
        seen.add(place)
        for instead in _instead(leaf):
            made = copy.deepcopy(value)
            at = made
            for step in path[:-1]:
                at = at[step]
            at[path[-1]] = instead
            yield made


def _all_marked(value: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = copy.deepcopy(value)
    for path, leaf in list(_leaves(value, ())):
        at: Any = made
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = next(iter(_instead(leaf)), leaf)
    return made


def _leaves(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict | list):
        for step, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(each, (*path, step))
    elif path:
        yield path, value


def _instead(leaf: Any) -> list[Any]:
    if isinstance(leaf, str):
        return [_STAMP] if leaf.startswith("2026-") else [f"{leaf} {MARKED}", f"{MARK}/{leaf}"]
    return [int(DIGITS)] if isinstance(leaf, int) else []


def _transcripts(folder: Path) -> Path:
    """Every client's sample, each of its texts marked in a copy of its own."""
    made = folder / f"{MARK}-sessions"
    made.mkdir()
    (made / "read.jsonl").write_text("".join(json.dumps(line) + "\n" for line in _READ))
    for number, (reader, sample) in enumerate(SAMPLES.items()):
        ending = (
            "jsonl" if sample.startswith(b"{") and sample.count(b"\n{") else "json" if sample[:1] in b"{[" else "md"
        )
        for copy_of, content in enumerate(_samples(ending, sample)):
            (made / f"{reader.__name__}-{number}-{copy_of}.{ending}").write_bytes(content)
    return made


def _samples(ending: str, sample: bytes) -> Iterator[bytes]:
    if ending == "jsonl":
        for each in _marked([json.loads(line) for line in sample.splitlines()]):
            yield b"".join(json.dumps(line).encode() + b"\n" for line in each)
    elif ending == "json":
        for each in _marked(json.loads(sample)):
            yield json.dumps(each).encode()
    lines = sample.decode().splitlines()
    for at, line in enumerate(lines):
        if ending == "md" and line.strip():
            yield "\n".join([*lines[:at], f"{line} {MARKED} &amp; {MARK}", *lines[at + 1 :]]).encode()


def _over_http(memctl: Memctl) -> None:
    """Every route of the description and of the viewer, with marks in path, query, headers and body."""
    known = read_endpoints(Folders(memctl.data))
    given = {"Authorization": f"Bearer {known['api_token']}"}
    at = urlsplit(known["api_url"])

    def ask(method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[HTTPResponse, bytes]:
        connection = HTTPConnection(at.hostname or "", at.port, timeout=20)
        with contextlib.closing(connection):
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, {**given, **named})
            answer = connection.getresponse()
            return answer, answer.read()

    described = json.loads(ask("GET", "/v1/openapi.json")[1])
    for path, methods in described["paths"].items():
        if "/tail/" in path:
            continue
        for method, operation in methods.items():
            for value in (MARKED, DIGITS, _STAMP):
                where = path
                while "{" in where:
                    where = where[: where.index("{")] + quote(value, safe="") + where[where.index("}") + 1 :]
                names = [each["name"] for each in operation.get("parameters", ()) if each.get("in") == "query"]
                ask(method.upper(), where + "?" + urlencode(dict.fromkeys(names, value)), *_bodies(operation, value))
                for name in names if value == MARKED or FACTOR else ():
                    ask(method.upper(), f"{where}?{urlencode({name: value})}", *_bodies(operation, value))
    ask("POST", "/v1/search", _CHUNKS, Transfer_Encoding="chunked", Trailer=MARK, Content_Type="application/json")
    for name in _HEADERS:
        for value in (MARK, f"{MARK}={DIGITS}; q=0.{DIGITS}", f"bytes={DIGITS}-, {MARK}/{MARK};a={MARK}"):
            ask("GET", "/v1/caller", **{name: value})
            ask("POST", "/v1/search", b"{}", **{name: value})
            ask("GET", "/", **{name: value})
    ticket = json.loads(ask("POST", "/v1/tickets")[1])
    entered = ask("GET", ticket["path"], Accept="text/html", Host=viewer_host(known["api_token"]))[0]
    cookie = str(entered.headers["set-cookie"]).partition(";")[0]
    browser = {"Cookie": f"{cookie}; {MARK}={MARK}", "Accept": "text/html", "Origin": f"http://{at.netloc}"}
    query = urlencode(dict.fromkeys(("q", "kind", "project", "cursor", "event", "turns", "how", "what", "id"), MARKED))
    for page in _PAGES:
        ask("GET", page + "?" + query, **browser)
        ask("GET", page, **browser)
    for page in ("/bugs", "/waiting", "/forget", "/projects", "/things", "/sign-in"):
        fields = {"q": MARKED, "id": MARK, "say": MARK, "words": MARK, "what": MARKED, "how": "match", "key": MARK}
        ask("POST", page, urlencode(fields).encode(), **browser, Content_Type="application/x-www-form-urlencoded")
        parts = "".join(
            f'--{MARK}\r\nContent-Disposition: form-data; name="{name}"; x={MARK}\r\n'
            f"X-{MARK}: {MARK}\r\n\r\n{value}\r\n"
            for name, value in fields.items()
        )
        kind = f'multipart/form-data; boundary={MARK}; charset="{MARK}"'
        ask("POST", page, f"{parts}--{MARK}--\r\n".encode(), **browser, Content_Type=kind)


_CHUNKS = f"2;{MARK}={MARK}\r\n{{}}\r\n0\r\n{MARK}: {MARK}\r\n\r\n".encode()
_HEADERS = ("Accept", "Accept_Encoding", "Accept_Language", "Content_Type", "Cookie", "Host", "Origin", "Range",
            "X_Forwarded_For", "Memctl_Space", "If_None_Match", "Authorization", "Idempotency_Key", "Last_Event_ID",
            "Traceparent", "User_Agent")  # fmt: skip
_PAGES = ("/", "/search", "/sessions", f"/sessions/{MARK}", f"/things/{MARK}", f"/events/{MARK}", "/bugs", "/knowledge",
          "/hindsight", "/projects", f"/projects/{MARK}", "/engine", "/waiting", "/forget", f"/static/{MARK}",
          f"/sign-in/{MARK}", f"/{MARK}")  # fmt: skip


def _bodies(operation: dict[str, Any], value: str) -> tuple[bytes, ...]:
    """A body with that value in each field that is described, where there is one."""
    content = operation.get("requestBody", {}).get("content", {})
    if not content:
        return ()
    names = {"query", "text", "q", "id", "reason", "error", "session", "project", "words", "claim", "name", "match"}
    return (json.dumps(dict.fromkeys(sorted(names), value)).encode(),)


async def _over_mcp(memctl: Memctl) -> None:
    from mcp import Client, StdioServerParameters

    started = StdioServerParameters(
        command=sys.executable, args=["-m", "memctl.cli", "mcp"], env=memctl.environment, cwd=str(memctl.home)
    )
    async with Client(started) as client:
        for tool in (await client.list_tools()).tools:
            for value in (MARKED, _STAMP):
                names = tool.input_schema.get("properties", {})
                with contextlib.suppress(Exception):
                    await client.call_tool(tool.name, dict.fromkeys(names, value))
