# ruff: noqa: E501
"""Text that nobody wrote rules for, through all of memctl: `make unseen SECONDS=3600`.

Real tools run on broken input; what they print is mangled, put into transcripts of each client, and read by an embedded
memctl of its own. Each round has to be folded within a time that grows with its bytes, rebuilt equal, with nothing parked
and nothing missing, and searches for pieces of it have to be answered in a second. What fails is kept, and named.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import client_sessions
from unseen.tools import fetch, mangled, outputs

from memctl.api.client import Client

BYTES_A_SECOND = 1_000_000
"""What a round is read and folded at, at least, with what starting takes left out."""
STARTING_S = 20.0
SEARCH_S = 1.0
"""For an answer of the API."""
TRIES = 5
"""How often a search that was slow is made again: what else the machine does is no fault of the text's."""
TEXTS = ("content", "text", "output", "result", "thought", "observation")
LINES = {
    "claude": client_sessions.CLAUDE,
    "codex": client_sessions.CODEX,
    "copilot": client_sessions.COPILOT,
    "gemini": client_sessions.GEMINI_MESSAGES,
    "opencode": client_sessions.OPENCODE_MESSAGES,
    "swe-agent": client_sessions.SWE_STEPS,
}


def filled(value: Any, name: str, number: int, texts: list[str], luck: random.Random) -> Any:
    """A client's record with drawn texts in the places of its own, and ids of a session of its own."""
    if isinstance(value, dict):
        return {key: filled(each, key, number, texts, luck) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, name, number, texts, luck) for each in value]
    if isinstance(value, str) and name in TEXTS:
        return ("Exit code 1\n" if value.startswith("Exit code") else "") + luck.choice(texts)
    if isinstance(value, str) and ("id" in name.lower() or name == "sessionId") and value:
        return f"{value}-{number}"
    return value


def session(client: str, number: int, texts: list[str], luck: random.Random) -> bytes:
    """A transcript of that client."""
    records = filled(LINES[client], "", number, texts, luck)
    match client:
        case "gemini":
            return own(client_sessions.gemini_document(records), client_sessions.GEMINI_HEAD["sessionId"], number)
        case "opencode":
            return own(client_sessions.opencode(records), client_sessions.OPENCODE_INFO["id"], number)
        case "swe-agent":
            return client_sessions.swe_agent(records)
        case _:
            return client_sessions.lines(records)


def own(document: bytes, session_id: str, number: int) -> bytes:
    """That document under a session's id of its own: late events of one session fold all of it again."""
    return document.replace(session_id.encode(), f"{session_id[:-6]}{number:06d}".encode())


class Memory:
    """An embedded memctl in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._environment = {
            **os.environ,
            "MEMCTL_DATA_DIR": str(folder),
            "MEMCTL_EMBEDDER": "none",
            "HOME": str(folder),
        }

    def __call__(self, *words: str, seconds: float = 600) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "memctl.cli", *words],
            env=self._environment, capture_output=True, text=True, timeout=seconds, check=False,
        )  # fmt: skip
        if done.returncode and "nothing was found" not in done.stderr:
            raise AssertionError(
                f"memctl {' '.join(words)[:200]}: exit {done.returncode}: {(done.stdout + done.stderr)[-2_000:]}"
            )
        return done.stdout


def round_of(memory: Memory, folder: Path, found: list[tuple[str, str]], luck: random.Random, number: int) -> int:
    """Sessions of drawn texts, read, folded and searched for. Returns their bytes."""
    texts = [
        mangled(output, luck.choice(found)[1], luck)[:2_000_000]
        for _, output in luck.sample(found, k=min(12, len(found)))
    ]
    for at in range(24):
        client = luck.choice(tuple(LINES))
        (folder / f"{number}-{at}-{client}.jsonl").write_bytes(session(client, number * 100 + at, texts, luck))
    size = sum(path.stat().st_size for path in folder.iterdir())
    began = time.monotonic()
    memory("ingest", str(folder), "--wait", seconds=(STARTING_S + size / BYTES_A_SECOND) * crowded())
    took = time.monotonic() - began
    for text in luck.sample(texts, k=2):
        at = luck.randrange(len(text) + 1)
        asked = text[at : at + 3_000].replace("\0", " ").encode("utf-8", "replace").decode().strip() or "x"
        answered = [searched_s(memory, asked)]
        while answered[-1] > SEARCH_S and len(answered) < TRIES:
            answered.append(searched_s(memory, asked))
        assert min(answered) <= SEARCH_S, f"a search took {min(answered):.1f} s: {asked!r}"
    print(f"round {number}: {size / 1e6:.1f} MB in {took:.1f} s", flush=True)
    return size


def crowded() -> float:
    """How many times as long work takes beside what else the machine does."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def searched_s(memory: Memory, query: str) -> float:
    """How many seconds the API took to answer a search."""
    settings = json.loads(memory("config", "--json"))
    with Client(settings["api_url"], settings["api_token"]) as client:
        began = time.monotonic()
        client.search(query, limit=3)
        return time.monotonic() - began


def main() -> None:
    """Rounds until the time is over; then a rebuild of everything."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=600)
    arguments.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    asked = arguments.parse_args()
    luck, absent = random.Random(asked.seed), list[str]()
    fetch(absent)
    found = list(outputs(absent))
    print(
        f"seed {asked.seed}; {len(found)} outputs of real tools; not here: {', '.join(sorted(set(absent))) or 'nothing'}"
    )
    home = Path(tempfile.mkdtemp(prefix="memctl-unseen-"))
    memory, total, number = Memory(home / "data"), 0, 0
    until = time.monotonic() + asked.seconds
    sessions = home / "sessions"
    try:
        memory("up")
        while time.monotonic() < until:
            shutil.rmtree(sessions, ignore_errors=True)
            sessions.mkdir()
            total += round_of(memory, sessions, found, luck, number := number + 1)
        parked = json.loads(memory("dlq", "list", "--json"))
        assert not any(parked.values()), f"parked: {parked}"
        rebuilt = memory("replay", "--all", "--verify", seconds=3_600)
        assert "differ" not in rebuilt, rebuilt
        memory("verify", seconds=3_600)
    except BaseException:
        print(f"failed in round {number}; seed {asked.seed}; what it read is kept in {sessions}", flush=True)
        raise
    finally:
        memory("down")
    shutil.rmtree(home)
    print(f"{number} rounds, {total / 1e6:.0f} MB: folded in time, rebuilt equal, nothing parked")


if __name__ == "__main__":
    main()
