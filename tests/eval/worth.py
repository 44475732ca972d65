"""Fit which passages of an agent's answers are worth keeping, and write the weights: `make calibrate`.

Three readers, who built none of it, read 75 sessions of the first set before they saw any row. They listed what a
careful colleague would keep, and which sentences say it. `worth.json` has their labels by hash. The second set has no
part in it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy
from lasting import fitted_to
from sessions import FOLDER, Data

from memctl.domain.events.facts import Turn
from memctl.domain.language import findings
from memctl.domain.language.findings import Passage
from memctl.domain.support.location import project_name

LABELS = Path(__file__).with_suffix(".json")


class Labelled(NamedTuple):
    passage: Passage
    worth: bool
    project: str


def labelled(data: Data) -> list[Labelled]:
    """The passages that were labelled, each text once by project."""
    labels = json.loads(LABELS.read_text(encoding="utf-8"))["sessions"]
    known = {id: name for by in labels.values() for name, ids in by.items() for id in ids}
    found = {}
    for passage, project in passages_of(data):
        if name := known.get(hashlib.sha256(passage.text.encode()).hexdigest()[:12]):
            found.setdefault((project, passage.text), Labelled(passage, name == "worth", project))
    return list(found.values())


def passages_of(data: Data) -> Iterator[tuple[Passage, str]]:
    """Those of the last words of each turn, with its project."""
    for facts in data.facts.values():
        turns = {fact.id: fact for fact in facts if isinstance(fact, Turn) and fact.answer}
        later = Counter(turn.task for turn in turns.values())
        for turn in sorted(turns.values(), key=lambda turn: turn.occurred_at):
            later[turn.task] -= 1
            for passage in findings.passages_in(turn.answer):
                yield passage._replace(later=later[turn.task]), project_name(turn.location)


def counted(pairs: Sequence[tuple[float, bool]]) -> str:
    kept = [label for chance, label in pairs if chance >= findings.LEAST]
    return f"kept {len(kept)}, of these worth it {sum(kept)}; of {sum(label for _, label in pairs)} worth it"


def main() -> None:
    rows = [row for row in labelled(Data(FOLDER)) if findings.chance(row.passage, {}) > 0]
    names = sorted(findings.features(rows[0].passage))

    def fit(of: Sequence[Labelled]) -> dict[str, float]:
        matrix = numpy.array([[findings.features(row.passage)[name] for name in names] for row in of])
        return fitted_to(matrix, numpy.array([float(row.worth) for row in of]), numpy.ones(len(of)), names)

    weights = fit(rows)
    digest = hashlib.sha256(LABELS.read_bytes()).hexdigest()[:16]
    findings.FILE.write_text(json.dumps({"weights": weights, "fitted_on": digest}, indent=2) + "\n", encoding="utf-8")
    print(weights)
    print("fitted", counted([(findings.chance(row.passage, weights), row.worth) for row in rows]))
    held_out = []
    for project in sorted({row.project for row in rows}):
        without = fit([row for row in rows if row.project != project])
        held_out += [(findings.chance(row.passage, without), row.worth) for row in rows if row.project == project]
    print("each project left out", counted(held_out))


if __name__ == "__main__":
    main()
