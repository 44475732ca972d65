"""What is said in one turn is often found by the words of the turn before or after it: scores lent to neighbours."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from memctl.domain.scoring import Candidate

LENT = 0.25
"""Share of each neighbour's strength that a turn is lent."""


def lent(candidates: Mapping[str, Candidate], before: Mapping[str, str], share: float = LENT) -> dict[str, Candidate]:
    """The candidates, each with a share of what its neighbours in the same session have.

    `before` names, by memory id, the memory of the turn before it; those that are not candidates lend nothing. A
    meaning further from the query than the corpus is on average lends nothing either: no neighbour takes away.
    """
    after = {earlier: id for id, earlier in before.items() if earlier in candidates and id in candidates}
    found = dict(candidates)
    for id, each in candidates.items():
        sides = {before.get(id, ""), after.get(id, "")} - {id}
        beside = [candidates[other] for other in sides if other in candidates]
        if beside:
            found[id] = msgspec.structs.replace(
                each,
                words=each.words + share * sum(other.words for other in beside),
                near=None if each.near is None else each.near + share * sum(max(o.near or 0.0, 0.0) for o in beside),
            )
    return found
