"""What users state for good: which of their sentences are kept as lasting, against labels (`lasting.json` has how)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from figures import Figure, Missing, share
from lasting import FRESH, labelled, typed_sentences
from sessions import Data, unseen

from memctl.domain.knowledge.graduation import MEANT
from memctl.domain.language.claims import PERHAPS, chance


def measure(data: Data) -> Iterator[Figure]:
    fresh = json.loads(FRESH.read_text(encoding="utf-8"))
    yield from _figures("written apart", [(each, name == "lasting") for name, all_ in fresh.items() for each in all_])
    if not data.has_sessions:
        raise Missing("there are no sessions (agent-sessions.tar.xz)")
    rows = labelled(data)
    yield from _figures("written for it (tuned)", [(row.sentence, row.lasting) for row in rows if not row.project])
    yield from _figures("set 1 (tuned)", [(row.sentence, row.lasting) for row in rows if row.project and row.own])
    with unseen(data) as other:
        if other is not None:
            own = {sentence for sentence, of_own in typed_sentences(other) if of_own}
            kept = [chance(each) for each in own]
            yield Figure("set 2: sentences kept as lasting", sum(each >= MEANT for each in kept) / len(own), len(own))
            yield Figure("  kept at all", sum(each >= PERHAPS for each in kept) / len(own), len(own))


def _figures(name: str, pairs: Sequence[tuple[str, bool]]) -> Iterator[Figure]:
    kept = [lasting for sentence, lasting in pairs if chance(sentence) >= MEANT]
    lasting = sum(label for _, label in pairs)
    yield Figure(f"{name}: what is kept as lasting is", share(sum(kept), len(kept)), len(kept))
    yield Figure("  what is lasting is kept so", share(sum(kept), lasting), lasting)
