"""The viewer over a large memory: each page's time and size as served, its first paint and requests in a browser.

    python tests/bench/viewer.py [FOLDER] [--events 100000] [--in DIRECTORY] [--turns 5] [--shots DIRECTORY]

Generated events (generated.py) are appended and replayed in a data directory of its own, which `memctl up` then serves:
what is measured is what a user would open. `--in` names a data directory to keep, or one kept before. Words can be
searched once the worker has written them to the vector store; embedding is off. The browser is the system's Chromium;
without it or playwright the pages are timed all the same. `--shots` keeps a picture of each page.

Three lines are held to a bound: the first paint of the timeline, a zoom of it (to a time not asked for before), and a
session of 2,000 events in turns. Other work on the machine makes them longer: beside the median stand the least time
and the processor time of API and Postgres, and of the page in the browser.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin

import engine
import httpx
import msgspec
from evaluation.metrics import percentile
from generated import START, generate, read_sessions
from hooks import Memory

from memctl.domain.events.event import Micros
from memctl.domain.events.observations import session_stream
from memctl.infra.data_dir import Folders
from memctl.infra.database import connect
from memctl.infra.embedded.postgres import start_postgres
from memctl.infra.listening import viewer_host
from memctl.infra.log.append import append
from memctl.infra.log.migrate import migrate
from memctl.infra.readmodels import generations

OUTBOX_S = 900.0
"""How long the worker may take to write the words of all memories to the vector store."""

LONG, LONG_EVENTS = "two-thousand-events", 2_000
"""A session of its own, and how many events it has."""

BOUNDS = {
    "home": ("least paint (ms)", 150),
    "a zoom": ("least (ms)", 100),
    "session of 2,000 events": ("least (ms)", 200),
}
"""What is held to a bound."""

FIXED = {
    "home": "/",
    "a zoom": "/?part=timeline&since={since}&before={before}",
    "session of 2,000 events": f"/sessions/{LONG}",
    "trends": "/trends",
    "work": "/work",
    "hindsight": "/hindsight",
    "sessions with most errors": "/sessions?sort=errors",
    "search": "/search?q=how+did+we+fix+the+failing+test",
    "sessions": "/sessions",
    "knowledge": "/knowledge",
    "bugs": "/bugs",
    "bugs like an error": "/bugs?q=TypeError%3A+cannot+read+properties+of+undefined",
    "projects": "/projects",
    "engine": "/engine",
    "engine, what is watched live": "/engine?part=live",
    "forget": "/forget",
}
FIGURES = "/metrics"
"""Not a page, but scraped every few seconds over the same memory."""

_PAINT = """() => {
  const [page] = performance.getEntriesByType('navigation');
  const [paint] = performance.getEntriesByName('first-contentful-paint');
  const parts = performance.getEntriesByType('resource');
  return {paint: paint ? paint.startTime : 0, loaded: page.loadEventEnd, requests: 1 + parts.length,
          nodes: document.querySelectorAll('*').length};
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--in", dest="directory", type=Path)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--shots", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with contextlib.ExitStack() as stack:
        kept = given.directory
        directory = kept or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memctl-bench-")))
        figures: dict[str, Any] = {"machine": engine.machine()}
        memory = Memory(directory.absolute())
        memory.environment |= {"MEMCTL_EMBEDDER": "none", "MEMCTL_BACKUP__EVERY_HOURS": "0"}
        if not Folders(memory.data).postgres.exists():
            fill(memory, given.folder, given.events)
        stack.callback(memory, "down")
        memory("up")
        append_long_session(memory, given.folder)
        figures["memory"] = wait_for_words(memory)
        told = memory("config", "--json")
        figures["pages"] = measure(memory, told["api_url"], told["api_token"], given.turns, given.shots)
        figures["forget one memory (s)"] = forgotten(memory, told["api_url"], told["api_token"])
    print(*table(figures), sep="\n")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def fill(memory: Memory, folder: Path | None, events: int) -> None:
    """Append and replay before `up`, by several processes: a worker that folds as they come takes far longer."""
    places = Folders(memory.data)
    places.make()
    with start_postgres(places.postgres) as server:
        migrate(server.url)
        with connect(server.url) as connection:
            generations.ensure_live(connection, engine.SHARDS)
        engine.load(server.url, read_sessions(folder), events)
        subprocess.run([sys.executable, "-c", engine.REPLAY, server.url], check=True)


def append_long_session(memory: Memory, folder: Path | None) -> None:
    """One session of so many events, put together of several; where it is there already, nothing happens."""
    events = [event for made in generate(read_sessions(folder), 2 * LONG_EVENTS, seed=2) for event in made.events]
    stream = session_stream("claude-code", LONG)
    with connect(memory.config["database_url"]) as connection:
        append(
            connection,
            1,
            [
                msgspec.structs.replace(
                    event, stream=stream, session_id=LONG, dedupe_key=f"{LONG} {number}",
                    occurred_at=Micros(START + number * 1_000_000),
                )
                for number, event in enumerate(events[:LONG_EVENTS])
            ],
        )  # fmt: skip


def wait_for_words(memory: Memory) -> dict[str, int]:
    """How much there is, once the vector store has it."""
    deadline = time.monotonic() + OUTBOX_S
    while True:
        found = memory("stats", "--project", "*", "--json")
        if not found["outbox"]["to_write"]:
            return {"events": found["events"]["total"], **found["read_models"]}
        if time.monotonic() > deadline:
            sys.exit(f"{found['outbox']['to_write']} points are not in the vector store yet")
        time.sleep(5.0)


def measure(memory: Memory, url: str, token: str, turns: int, shots: Path | None) -> dict[str, Any]:
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
        pages = FIXED | dict(of_this_memory(client))
        found = {name: served(memory, client, path, turns) for name, path in pages.items()}
        for name, seen in painted(client, pages, turns, shots):
            found[name] |= seen
        return found | {f"`{FIGURES}`": served(memory, client, FIGURES, turns)}


def forgotten(memory: Memory, url: str, token: str) -> list[float]:
    """Seconds of `memctl forget` of one memory as a whole, by itself, from the shortest to the longest of a few."""
    answer = httpx.get(
        f"{url}/v1/memories", headers={"Authorization": f"Bearer {token}"}, params={"limit": 3}, timeout=60
    )
    took = []
    for each in answer.json()["items"]:
        began = time.perf_counter()
        memory("forget", "--id", each["id"], "--yes", "--json")
        took.append(round(time.perf_counter() - began, 2))
    return sorted(took)


def busy(pids: dict[str, int]) -> float:
    """Milliseconds of processor that the API and all of Postgres have taken so far."""
    ticks, parents = 0, {str(pids["api"]), str(pids["postgres"])}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if stat.parent.name in parents or fields[1] == str(pids["postgres"]):
                ticks += int(fields[11]) + int(fields[12])
    return ticks * 1e3 / os.sysconf("SC_CLK_TCK")


def of_this_memory(client: httpx.Client) -> Iterator[tuple[str, str]]:
    """Pages of single things, among them the largest project's; their addresses are found where a person would."""
    for name, listed, link in (
        ("second page of sessions", "/sessions", r"\?cursor=[^\"]+"),
        ("session", "/sessions", r"/sessions/[^\"?]+"),
        ("memory", "/knowledge", r"/things/[^\"?]+"),
        ("bug", "/bugs", r"/things/[^\"?]+"),
    ):
        if links := re.findall(rf'href="({link})"', client.get(listed).text):
            yield name, urljoin(listed, links[0].replace("&amp;", "&"))
    projects = client.get("/v1/projects").json()["items"]
    if projects:
        largest = max(projects, key=lambda each: len(each["locations"]))["name"]
        yield "largest project", f"/projects/{quote(largest, safe='')}"
        yield "home of the largest project", f"/?project={quote(largest, safe='')}"
        yield "sessions of the largest project", f"/sessions?project={quote(largest, safe='')}"


def served(memory: Memory, client: httpx.Client, path: str, turns: int) -> dict[str, Any]:
    """Milliseconds until the whole answer is here, what of them is processor time, and its size. The first turn, which
    may find caches cold, is shown by itself."""
    took, pids = [], memory.pids()
    for turn in range(turns):
        if turn == 1:
            before = busy(pids)
        began = time.perf_counter()
        answer = client.get(of_turn(path, turn))
        took.append((time.perf_counter() - began) * 1e3)
        if answer.status_code != 200:
            return {"status": answer.status_code, "first (ms)": round(took[0])}
    again = took[1:] or took
    return {
        "first (ms)": round(took[0]),
        "median (ms)": round(percentile(again, 0.5)),
        "least (ms)": round(min(again)),
        "processor (ms)": round((busy(pids) - before) / len(again)) if len(took) > 1 else "",
        "kB": round(len(answer.content) / 1e3, 1),
    }


def of_turn(path: str, turn: int) -> str:
    """A zoom is to another time each turn, which nothing has kept."""
    day, now = 86_400, START // 1_000_000 + 30 * 86_400
    return path.format(since=now - (20 - turn) * day - turn, before=now + (20 - turn) * day)


def painted(
    client: httpx.Client, pages: dict[str, str], turns: int, shots: Path | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """First paint (ms), requests and nodes, as a new tab of a browser has them; files come from its cache after the
    first page."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return
    if chromium is None:
        return
    token = client.headers["Authorization"].removeprefix("Bearer ")
    name = str(client.base_url).rstrip("/").replace("127.0.0.1", viewer_host(token))
    with sync_playwright() as drivers:
        browser = drivers.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True)
        page = context.new_page()
        page.goto(name + "/sign-in")
        page.fill("input[name=token]", token)
        page.click("form[action='/sign-in'] button")
        devtools = context.new_cdp_session(page)
        devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        for label, path in pages.items():
            seen = []
            for turn in range(turns):
                page.goto(name + of_turn(path, turn), wait_until="load")
                page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
                spent = {each["name"]: each["value"] for each in devtools.send("Performance.getMetrics")["metrics"]}
                seen.append({**page.evaluate(_PAINT), "browser": spent["TaskDuration"] * 1e3})
            last = seen[-1]
            if shots is not None:
                shots.mkdir(parents=True, exist_ok=True)
                page.screenshot(path=shots / f"{re.sub('[^a-z]+', '-', label)}.png", full_page=True)
            yield (
                label,
                {
                    "first paint (ms)": round(percentile([each["paint"] for each in seen], 0.5)),
                    "least paint (ms)": round(min(each["paint"] for each in seen)),
                    "browser (ms)": round(min(each["browser"] for each in seen)),
                    "requests": last["requests"],
                    "nodes": last["nodes"],
                },
            )
        browser.close()


def table(figures: dict[str, Any]) -> Iterator[str]:
    columns = (
        "first (ms)", "median (ms)", "least (ms)", "processor (ms)", "kB", "first paint (ms)", "least paint (ms)",
        "browser (ms)", "requests", "nodes",
    )  # fmt: skip
    yield f"| page over {figures['memory']['events']:,} events | {' | '.join(columns)} |"
    yield f"| --- |{' ---: |' * len(columns)}"
    for name, found in figures["pages"].items():
        yield f"| {name} | {' | '.join(str(found.get(column, '')) for column in columns)} |"
    yield ""
    yield f"forgetting one memory took {figures['forget one memory (s)']} s"
    for name, (column, bound) in BOUNDS.items():
        if (value := figures["pages"][name].get(column)) is not None:
            yield f"{name}: {column} {value}, to be at most {bound}"


if __name__ == "__main__":
    main()
