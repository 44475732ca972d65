"""Fit which of a user's sentences are meant to last, and write the weights: `make calibrate`.

The labels (`lasting.json`) are of sentences of the first set of sessions, by hash, and of sentences written for it. A
sentence of the sessions counts thrice: they show how seldom anything lasts. The second set, and `lasting_fresh.json`,
have no part in it. Without the sessions the weights cannot be fitted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy
from numpy.typing import NDArray
from sessions import FOLDER, Data

from memctl.domain.events.observations import PromptSubmitted
from memctl.domain.knowledge.graduation import MEANT
from memctl.domain.language import claims
from memctl.domain.language.prompt_origin import own_word, typed_of
from memctl.domain.language.prompts import said_in

LABELS, FRESH = (Path(__file__).with_name(f"{name}.json") for name in ("lasting", "lasting_fresh"))
COUNTS = 3.0
"""How often a sentence of the sessions counts."""
PENALTY = 1.0

Matrix = NDArray[numpy.float64]


class Labelled(NamedTuple):
    sentence: str
    lasting: bool
    project: str
    """Empty for what was written."""
    own: bool
    """Of a prompt that can settle something."""


def labelled(data: Data) -> list[Labelled]:
    """The labelled sentences, each once."""
    labels = json.loads(LABELS.read_text(encoding="utf-8"))
    found = {
        text: Labelled(text, name == "lasting", "", True) for name, texts in labels["written"].items() for text in texts
    }
    of = {id: (project, name) for project, by in labels["sessions"].items() for name, ids in by.items() for id in ids}
    for sentence, own in typed_sentences(data):
        if known := of.get(hashlib.sha256(sentence.encode()).hexdigest()[:12]):
            before = found.get(sentence)
            found[sentence] = Labelled(sentence, known[1] == "lasting", known[0], own or bool(before and before.own))
    return list(found.values())


def typed_sentences(data: Data) -> Iterable[tuple[str, bool]]:
    """The sentences that users typed, and whether they can settle something."""
    for events in data.streams.values():
        for event in events:
            if isinstance(seen := event.payload, PromptSubmitted) and not (seen.subagent or seen.meta or seen.injected):
                said = said_in(seen.text)
                if said.by == "user":
                    typed = claims.own_prose(typed_of(said.text))
                    own = own_word(said.text)
                    for start, end in claims.sentences(typed):
                        yield typed[start:end], bool(own[start:end].strip())


def fitted(rows: Sequence[Labelled], names: Sequence[str]) -> dict[str, float]:
    """The weights of each feature of a sentence."""
    matrix = numpy.array([_row(row.sentence, names) for row in rows])
    labels = numpy.array([float(row.lasting) for row in rows])
    return fitted_to(matrix, labels, numpy.array([COUNTS if row.project else 1.0 for row in rows]), names)


def fitted_to(matrix: Matrix, labels: Matrix, counts: Matrix, names: Sequence[str]) -> dict[str, float]:
    """Weights of a logistic regression, by Newton's method. A row of the matrix counts so many times; the feature
    `all` is not held down."""
    penalty = numpy.array([1e-6 if name == "all" else PENALTY for name in names])
    weights = numpy.zeros(len(names))
    for _ in range(30):
        likely = 1 / (1 + numpy.exp(-(matrix @ weights)))
        slope = matrix.T @ (counts * (likely - labels)) + penalty * weights
        bend = (matrix.T * (counts * likely * (1 - likely))) @ matrix + numpy.diag(penalty)
        weights -= numpy.linalg.solve(bend, slope)
    return {name: round(float(weight), 3) for name, weight in zip(names, weights, strict=True)}


def _row(sentence: str, names: Sequence[str]) -> list[float]:
    seen = claims.features(sentence)
    return [seen.get(name, 0.0) for name in names]


def counted(pairs: Sequence[tuple[float, bool]], least: float = MEANT) -> str:
    """How many are kept as lasting from that chance on, how many of these are, and of how many that are."""
    kept = [label for chance, label in pairs if chance >= least]
    return f"kept {len(kept)}, of these lasting {sum(kept)}; of {sum(label for _, label in pairs)} lasting"


def main() -> None:
    rows = [row for row in labelled(Data(FOLDER)) if not claims.vetoed(row.sentence)]
    names = sorted({name for row in rows for name in claims.features(row.sentence)})
    weights = fitted(rows, names)
    digest = hashlib.sha256(repr([row[:3] for row in sorted(rows)]).encode()).hexdigest()[:16]
    kept = json.loads(claims.FILE.read_text(encoding="utf-8"))["cues"]
    cues = ",\n".join(f"    {json.dumps(cue)}: {json.dumps(words, ensure_ascii=False)}" for cue, words in kept.items())
    claims.FILE.write_text(
        f'{{\n  "cues": {{\n{cues}\n  }},\n  "weights": {json.dumps(weights)},\n  "fitted_on": "{digest}"\n}}\n',
        encoding="utf-8",
    )
    print(dict(sorted(weights.items(), key=lambda each: -each[1])))
    held_out: list[tuple[float, bool, str]] = []
    for project in sorted({row.project for row in rows} - {""}):
        without = fitted([row for row in rows if row.project != project], names)
        held_out += [
            (claims.chance(row.sentence, without), row.lasting, row.sentence)
            for row in rows
            if row.project == project and row.own
        ]
    parts: list[tuple[float, bool, str]] = []
    written = [row for row in rows if not row.project]
    for part in range(5):
        mine = written[part::5]
        without = fitted([row for row in rows if row not in mine], names)
        parts += [(claims.chance(row.sentence, without), row.lasting, row.sentence) for row in mine]
    fresh = json.loads(FRESH.read_text(encoding="utf-8"))
    apart = [(claims.chance(each, weights), name == "lasting", each) for name, texts in fresh.items() for each in texts]
    for name, pairs in (
        ("sessions, project left out", held_out),
        ("written, a fifth left out", parts),
        ("fresh", apart),
    ):
        for least in (claims.PERHAPS, MEANT):
            print(f"{name}, from {least}: {counted([each[:2] for each in pairs], least)}")
    for chance, label, sentence in sorted(held_out, reverse=True):
        if chance >= claims.PERHAPS or label:
            print(f"{chance:.2f} {'lasting' if label else ''} {sentence[:100]}")


if __name__ == "__main__":
    main()
