"""One run over a data set: figures of memctl's search, over all and by kind of question."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from evaluation import Asked, Dataset
from evaluation.bench import Notify, indexed
from evaluation.metrics import Judged, abstention_curve, figures
from memctl.api.search.candidates import Switches
from memctl.infra.embedders import Embedders


def run(
    dataset: Dataset,
    notify: Notify,
    *,
    limit: int | None = None,
    profile: str = "bounded",
    without: frozenset[str] = frozenset(),
    embedders: Embedders,
) -> dict[str, Any]:
    """Figures as plain data for JSON. Raises: VectorServerFailed, EmbedderFailed, UnknownProfile."""
    questions = dataset.questions[:limit]
    with indexed(dataset, embedders, notify) as bench:
        judged = bench.ask(questions, profile=profile, switches=switches(without))
    return report(dataset, questions, judged)


def report(dataset: Dataset, questions: Sequence[Asked], judged: Sequence[Judged]) -> dict[str, Any]:
    """What the outcome of each question comes to."""
    kinds: dict[str, list[Judged]] = defaultdict(list)
    for asked, one in zip(questions, judged, strict=True):
        if asked.kind and one.answerable:
            kinds[asked.kind].append(one)
    return {
        "dataset": dataset.name,
        "passages": len(dataset.passages),
        "questions": len(questions),
        "answerable": sum(bool(asked.gold) for asked in questions),
        "systems": [{"name": "memctl", "figures": rounded(judged)}],
        "abstention_curve": {loss: round(silent, 4) for loss, silent in abstention_curve(judged).items()},
        "kinds": {kind: rounded(those) for kind, those in sorted(kinds.items())},
    }


def switches(without: frozenset[str]) -> Switches:
    """The pipeline without these parts of it."""
    return Switches(**{part: part not in without for part in Switches.__struct_fields__})


def rounded(judged: Sequence[Judged]) -> dict[str, float]:
    """Every measure by name, to four places."""
    return {name: round(value, 4) for name, value in figures(judged).items()}
