"""How often search finds what answers a question, and how often simple peers do in the same run:
`tests/eval/retrieval.py`.

    python tests/bench/recall.py [--limit N] [--json FILE]

The questions are published data (tests/published.py): turns of conversations (longmemeval-lite), and what Korean pages
say of commands, asked of English and of Korean pages. What is not there is left out, with a word why.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from engine import machine

sys.path.insert(0, str(Path(__file__).parents[1]))
import published

QUESTIONS = {
    "turns": published.FOLDER / "longmemeval-lite" / "lme_evidence_turns.json",
    "pages": published.FOLDER / "tldr-ko-en.jsonl",
}
SHOWN = ("hit@1", "hit@5", "hit@10", "recall@10", "mrr")


def asked(file: Path, limit: int | None) -> list[dict[str, Any]]:
    """What is reported of each data set in a file."""
    few = [] if limit is None else ["--limit", str(limit)]
    line = [sys.executable, str(Path(__file__).parents[1] / "eval" / "retrieval.py"), str(file), *few]
    found: list[dict[str, Any]] = json.loads(subprocess.run(line, check=True, stdout=subprocess.PIPE).stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, help="questions of each data set, at most")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    figures: dict[str, Any] = {"machine": machine()}
    for name, file in QUESTIONS.items():
        if not file.exists():
            print(published.lacking(file))
            continue
        for told in asked(file, given.limit):
            print(f"\n{told['dataset']}: {told['answerable']} questions, {told['passages']} passages")
            print(f"{'':<26}" + "".join(f"{each:>11}" for each in SHOWN))
            for system in told["systems"]:
                print(f"{system['name']:<26}" + "".join(f"{system['figures'][each]:>11.3f}" for each in SHOWN))
            within = told["dataset"].rpartition(", ")[2] if name == "pages" else name
            figures[within] = {system["name"]: system["figures"] for system in told["systems"]}
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
