"""Fit the decision to speak, and write its coefficients: `make calibrate`.

`bearing.json` has the questions that it is fitted on: the score of what search finds best, that of the best of any
other session, and whether the first bears on the question. Those of sde-bench are labelled by the data, also where a
question is asked in a project that has no answer; those of the first set of sessions were labelled by hand. The second
set has no part in it.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

from memctl.domain.retrieval import speaking

LABELS = Path(__file__).with_name("bearing.json")
STEPS, RATE, PENALTY = 20_000, 0.01, 0.05
"""Of plain gradient descent, with a penalty on the weights' squares."""


def fitted(rows: list[tuple[tuple[float, ...], bool]]) -> list[float]:
    """Intercept and weights of a logistic regression."""
    weights = [0.0] * len(rows[0][0])
    for _ in range(STEPS):
        gradient = [PENALTY * weight * (number > 0) for number, weight in enumerate(weights)]
        for features, label in rows:
            miss = speaking.logistic(sum(w * x for w, x in zip(weights, features, strict=True))) - label
            for number, x in enumerate(features):
                gradient[number] += miss * x
        weights = [weight - RATE * slope for weight, slope in zip(weights, gradient, strict=True)]
    return weights


def main() -> None:
    labels = json.loads(LABELS.read_text(encoding="utf-8"))
    rows = [((1.0, *speaking.features(each["best"], each["rival"])), bool(each["bears"])) for each in labels]
    weights = [round(weight, 3) for weight in fitted(rows)]
    made = {
        "intercept": weights[0], "by_score": weights[1], "by_lead": weights[2],
        "fitted_on": hashlib.sha256(LABELS.read_bytes()).hexdigest()[:16],
    }  # fmt: skip
    speaking.FILE.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    print(made)
    for source in sorted({each["of"] for each in labels}):
        kept = [(row, each) for row, each in zip(rows, labels, strict=True) if each["of"] != source]
        left = [(row, each) for row, each in zip(rows, labels, strict=True) if each["of"] == source]
        without = fitted([row for row, _ in kept])
        right = sum(
            (speaking.logistic(math.fsum(w * x for w, x in zip(without, features, strict=True))) >= speaking.LIKELY)
            == label
            for (features, label), _ in left
        )
        print(f"fitted without {source}: right for {right} of its {len(left)}")


if __name__ == "__main__":
    main()
