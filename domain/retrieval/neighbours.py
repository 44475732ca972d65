"""What is said in one turn is often found by the words of the turns around it: strength lent to neighbours."""

from collections.abc import Iterator, Mapping

import msgspec

from memctl.domain.retrieval.ranking import Candidate

REACH = 3
"""Turns to each side that lend."""


class Lending(msgspec.Struct, frozen=True):
    """Shares of a neighbour's strength by words and by meaning that a turn is lent; of one two turns away the square
    counts, and so on. A turn with neighbours is measured against what they might have lent, `spread` of the shares, but
    what it holds itself stays its own."""

    words: float = 0.6
    near: float = 0.4
    spread: float = 0.2


LENDING = Lending()


def lent(
    candidates: Mapping[str, Candidate], before: Mapping[str, str], how: Lending = LENDING
) -> dict[str, Candidate]:
    """The candidates, each with a share of what its neighbours in the same session have.

    `before` names, by memory id, the memory of the turn before it; the chain ends where a turn is no candidate. A
    meaning further from the query than the corpus is on average lends nothing.
    """
    links = {id: before[id] for id in candidates if before.get(id, id) != id and before[id] in candidates}
    back = {earlier: id for id, earlier in links.items()}
    found = dict(candidates)
    for id, each in candidates.items():
        words, near = each.words, each.near
        by_words = by_meaning = 1.0
        for distance, other in (*_along(links, id), *_along(back, id)):
            beside = candidates[other]
            words += how.words**distance * beside.words
            by_words += how.spread * how.words**distance
            if near is not None and beside.near is not None:
                near += how.near**distance * max(beside.near, 0.0)
                by_meaning += how.spread * how.near**distance
        found[id] = msgspec.structs.replace(
            each,
            words=max(each.words, words / by_words),
            near=None if near is None or each.near is None else max(each.near, near / by_meaning),
        )
    return found


def _along(links: Mapping[str, str], start: str) -> Iterator[tuple[int, str]]:
    """Distance and id of the turns to one side."""
    at = start
    for distance in range(1, REACH + 1):
        following = links.get(at, start)
        if following == start:
            return
        at = following
        yield distance, at
