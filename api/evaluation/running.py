"""One run over a data set: memctl, what it is without each of its parts, and its peers, asked the same questions."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec

from memctl.api.evaluation import Dataset
from memctl.api.evaluation.bench import Notify, indexed
from memctl.api.evaluation.loaders import split
from memctl.api.evaluation.peers import judged, left_out, peers
from memctl.api.search.candidates import Switches
from memctl.domain.retrieval.metrics import Judged, abstention_curve, figures
from memctl.infra.embedders import Embedders


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What is run: which half of the questions, how many, and with what left out."""

    half: str = "all"
    limit: int | None = None
    profile: str = "bounded"
    without: frozenset[str] = frozenset()
    ablate: bool = False
    peers: bool = True
    embedders: Embedders = msgspec.field(default_factory=Embedders)


def run(dataset: Dataset, how: Run, notify: Notify) -> dict[str, Any]:
    """Figures of every system asked, memctl first, as plain data for JSON. Raises: VectorServerFailed,
    EmbedderFailed, UnknownProfile."""
    questions = split(dataset.questions, how.half)[: how.limit]
    model = how.embedders.load()
    systems: list[dict[str, Any]] = []
    with indexed(dataset, how.embedders, notify) as bench:
        own = bench.ask(questions, profile=how.profile, switches=_switches(how.without))
        systems.append({"name": "memctl", "figures": _rounded(figures(own))})
        if how.ablate:
            for part in Switches.__struct_fields__:
                if part not in how.without:
                    found = bench.ask(
                        questions, profile=how.profile, switches=_switches(how.without | {part}), hiding=False
                    )
                    systems.append({"name": f"  without {part}", "figures": _rounded(figures(found))})
    if how.peers:
        for name, rank in peers(dataset, model).items():
            systems.append({"name": name, "figures": _rounded(figures(judged(questions, rank)))})
    kinds: dict[str, list[Judged]] = defaultdict(list)
    for asked, found_one in zip(questions, own, strict=True):
        if asked.kind and found_one.answerable:
            kinds[asked.kind].append(found_one)
    return {
        "dataset": dataset.name,
        "half": how.half,
        "tuned": dataset.tuned,
        "passages": len(dataset.passages),
        "questions": len(questions),
        "answerable": sum(bool(asked.gold) for asked in questions),
        "systems": systems,
        "abstention_curve": {loss: round(silent, 4) for loss, silent in abstention_curve(own).items()},
        "kinds": {kind: _rounded(figures(those)) for kind, those in sorted(kinds.items())},
        "left_out": left_out(model) if how.peers else {},
    }


def _switches(without: frozenset[str]) -> Switches:
    return Switches(**{part: part not in without for part in Switches.__struct_fields__})


def _rounded(found: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in found.items()}
