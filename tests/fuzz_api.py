"""Asks the whole API what its own description allows, and what it forbids.

    python tests/fuzz_api.py ["what reads"] ["what changes"] ["what erases"] [schemathesis's options]

schemathesis reads `/v1/openapi.json` of an API over a small memory, makes requests from it, and holds every answer
against it: no 5xx, only described statuses, types and schemas, bad requests refused, no good one called badly asked.
What only reads goes first, then what changes memory, forgetting last.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import servers
from apis import TOKEN, Api, serving
from asked import remembered
from vector_server import vector_server

ENDLESS = "^/v1/tail/"
"""Tails never end, and schemathesis waits for an answer's end."""

ERASING = "^/v1/forget$"
CHANGING = "^/v1/(commands|import|events|hooks|tickets)"

PASSES = {
    "what reads": ["--exclude-path-regex", f"{ENDLESS}|{CHANGING}|{ERASING}"],
    "what changes": ["--include-path-regex", CHANGING],
    "what erases": ["--include-path-regex", ERASING],
}


def main() -> int:
    wanted = [word for word in sys.argv[1:] if word in PASSES] or list(PASSES)
    given = [word for word in sys.argv[1:] if word not in PASSES] or ["--max-examples", "50"]
    with contextlib.ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="memctl-fuzz-")))
        postgres = held.enter_context(servers.postgres_server())
        template = held.enter_context(servers.migrated_database(postgres))
        vectors = held.enter_context(vector_server(folder))
        memory = held.enter_context(remembered(postgres, template, vectors))
        api = held.enter_context(serving(folder, memory))
        ended = max(asked(api, what, [*PASSES[what], *given]) for what in wanted)
        log = api.log.read_text()
        if "Traceback" in log:
            print("\nthe API's log:\n" + log[log.index("Traceback") :][:20_000])
        return ended


def asked(api: Api, what: str, options: list[str]) -> int:
    """One run of schemathesis: 0 where it found nothing."""
    print(f"\n{what}", flush=True)
    program = str(Path(sys.executable).parent / "schemathesis")
    run = [
        *(program, "run", f"{api.url}/v1/openapi.json", "--header", f"Authorization: Bearer {TOKEN}"),
        *("--phases", "examples,coverage,fuzzing", "--checks", "all"),
        *("--exclude-checks", "positive_data_acceptance"),  # see `fuzz_api_rules`
        *options,
    ]
    rules = {"SCHEMATHESIS_HOOKS": "fuzz_api_rules", "PYTHONPATH": str(Path(__file__).parent)}
    return subprocess.run(run, cwd=api.log.parent, env={**os.environ, **rules}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
