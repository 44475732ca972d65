"""Fit the decision to speak, and write its coefficients: `make calibrate`.

In two steps. What a score and its lead say is fitted on `bearing.json`: questions with what search finds best, that of
the best of any other session, and whether the first bears on the question; those of sde-bench are labelled by the data,
also where a question is asked in a project that has no answer, those of the first set of sessions by hand. What the
sort of a memory, and the files in play, add to that is fitted on `needed.json`: what the first set's work came to need
(`needed.py label`). There the odds of all are left free, for a label by hindsight is not one by a reader. The chance
that what is shown answers who asks is fitted on `answered.json`: plain questions of the first set, each in three
wordings, asked of their project and of others, which hold no answer (`make eval ONLY=plain_questions` writes it). Those
without an answer weigh as much as those with one. The second set has no part in any.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from memctl.domain.retrieval import answering, calibration

LABELS, NEEDED, ANSWERED = (Path(__file__).with_name(f"{name}.json") for name in ("bearing", "needed", "answered"))
STEPS = 4_000
RATE, PENALTY = 0.01, 0.05
PRIOR = 8.0
"""The penalty on what a sort adds: few labels of a sort move it little."""

ADDED = tuple(sort for sort in get_args(calibration.Sort) if sort != "said")


def fitted(
    rows: Sequence[tuple[tuple[float, ...], bool]], offsets: Sequence[float] = (), penalty: float = PENALTY,
    weigh: Sequence[float] = (),
) -> list[float]:  # fmt: skip
    """Intercept and weights of a logistic regression, beside what is known already; `weigh` is what each row counts."""
    weights = [0.0] * len(rows[0][0])
    offsets, weigh = offsets or [0.0] * len(rows), weigh or [1.0] * len(rows)
    rate = min(RATE, 2 / len(rows))
    for _ in range(STEPS * 5 if len(rows) < 200 else STEPS):
        gradient = [penalty * weight * (number > 0) for number, weight in enumerate(weights)]
        for (features, label), offset, counts in zip(rows, offsets, weigh, strict=True):
            miss = calibration.logistic(offset + sum(w * x for w, x in zip(weights, features, strict=True))) - label
            miss *= counts
            for number, x in enumerate(features):
                gradient[number] += miss * x
        weights = [weight - rate * slope for weight, slope in zip(weights, gradient, strict=True)]
    return weights


def main() -> None:
    labels = json.loads(LABELS.read_text(encoding="utf-8"))
    rows = [((1.0, *calibration.features(each["best"], each["rival"])), bool(each["bears"])) for each in labels]
    weights = [round(weight, 3) for weight in fitted(rows)]
    needed = json.loads(NEEDED.read_text(encoding="utf-8"))
    offsets = [_odds(weights, (1.0, *calibration.features(score, rival))) for _, _, score, rival, *_ in needed]
    beside = [(_features(sort, play), bool(bears)) for _, sort, _, _, play, _, bears in needed]
    added = [round(weight, 3) for weight in fitted(beside, offsets, PRIOR)]
    answered = json.loads(ANSWERED.read_text(encoding="utf-8"))
    answer = [round(weight, 3) for weight in _of_answers(answered)]
    made = {
        "intercept": weights[0], "by_score": weights[1], "by_lead": weights[2],
        "by_files": added[1], "by_sort": dict(zip(ADDED, added[2:], strict=True)),
        "answer": answer[0], "by_odds": answer[1],
        "fitted_on": hashlib.sha256(LABELS.read_bytes() + NEEDED.read_bytes() + ANSWERED.read_bytes()).hexdigest()[:16],
    }  # fmt: skip
    calibration.FILE.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    print(made)
    for source in sorted({each["of"] for each in labels}):
        kept = [row for row, each in zip(rows, labels, strict=True) if each["of"] != source]
        left = [row for row, each in zip(rows, labels, strict=True) if each["of"] == source]
        without = fitted(kept)
        right = sum((_odds(without, features) >= 0) == label for features, label in left)
        print(f"fitted without {source}: right for {right} of its {len(left)}")
    for project in sorted({each[0] for each in needed}):
        mine = [number for number, each in enumerate(needed) if each[0] == project]
        others = [number for number in range(len(needed)) if needed[number][0] != project]
        without = fitted([beside[n] for n in others], [offsets[n] for n in others], PRIOR)
        plain = _ordered([offsets[n] for n in mine], [beside[n][1] for n in mine])
        odds = [offsets[n] + _odds(without, beside[n][0]) for n in mine]
        print(f"without {project}: area {_ordered(odds, [beside[n][1] for n in mine]):.3f}, by score {plain:.3f}")

    for project in sorted({each["project"] for each in answered}):
        weights = _of_answers([each for each in answered if each["project"] != project])
        mine = [each for each in answered if each["project"] == project]
        print(f"without {project}: {_counted(weights, mine)}")


def _of_answers(answered: Sequence[dict[str, Any]]) -> list[float]:
    """Intercept and weight of the odds; questions without an answer weigh as much as those with one."""
    known = sum(each["known"] for each in answered)
    rows = [
        ((1.0, odds), label, 1.0 if each["known"] else known / (len(answered) - known))
        for each in answered
        for odds, label in zip(each["odds"], each["answers"], strict=True)
    ]
    return fitted([row[:2] for row in rows], weigh=[row[2] for row in rows])


def _counted(weights: Sequence[float], answered: Sequence[dict[str, Any]]) -> str:
    """How many questions are called answered, of those that what is found answers, and of those without an answer."""
    called = {True: 0, False: 0}
    number = {True: 0, False: 0}
    for each in answered:
        if any(each["answers"]) or not each["known"]:
            number[each["known"]] += 1
            chances = (calibration.logistic(weights[0] + weights[1] * odds) for odds in each["odds"])
            called[each["known"]] += math.fsum(chances) >= answering.AMONG
    return f"called answered {called[True]} of {number[True]}; where nothing answers {called[False]} of {number[False]}"


def _features(sort: str, play: int) -> tuple[float, ...]:
    return (1.0, float(min(play, calibration.MOST_IN_PLAY)), *(float(sort == each) for each in ADDED))


def _odds(weights: Sequence[float], features: Sequence[float]) -> float:
    return math.fsum(w * x for w, x in zip(weights, features, strict=True))


def _ordered(odds: Sequence[float], labels: Sequence[bool]) -> float:
    """How often what bears comes before what does not."""
    yes = [each for each, label in zip(odds, labels, strict=True) if label]
    no = [each for each, label in zip(odds, labels, strict=True) if not label]
    pairs = [(a > b) + 0.5 * (a == b) for a in yes for b in no]
    return sum(pairs) / len(pairs) if pairs else math.nan


if __name__ == "__main__":
    main()
