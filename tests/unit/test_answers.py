"""What answers declare has every field of the rows that they show, so that none is lost on its way out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from memctl.api.reading import models, records
from memctl.api.reading.records import Record
from memctl.api.reading.views import ShownSolution
from memctl.domain.failures.solutions import Solution
from memctl.projections.kernel import Projection
from memctl.projections.verified_knowledge import VerifiedClaim

SHOWN: list[tuple[type[msgspec.Struct], type[Record]]] = [
    (projection.row, item)
    for projection, item in (
        (models.memories, records.MemoryItem),
        (models.sessions, records.SessionItem),
        (models.episodes, records.EpisodeItem),
        (models.tasks, records.TaskItem),
        (models.working_memory, records.WorkingMemoryItem),
        (models.insights, records.InsightItem),
        (models.verified_knowledge, records.KnowledgeItem),
        (models.core_memory, records.CoreSectionItem),
        (models.resolutions, records.ResolutionItem),
    )
    if isinstance(projection, Projection)
]
LEFT_OUT = {
    records.SessionItem: {"changed"},
    records.CoreSectionItem: {"settled"},
    records.WorkingMemoryItem: {"alone", "task_stated_by", "task_through", "prompt_through", "plan_through"},
    records.ActiveFile: {"through"},
    records.Decision: {"through"},
    records.Discovery: {"through"},
    records.Hypothesis: {"through"},
    records.RecentError: {"through"},
    records.MemoryItem: {"elsewhere"},
    records.EpisodeItem: {"elsewhere", "once"},
}
"""What only the fold or recall needs, what is shown as an item of its own, and places that not every key may know."""


PAIRS = [*SHOWN, (VerifiedClaim, records.ClaimItem), (Solution, ShownSolution)]


def with_nested(row: type[msgspec.Struct], item: type[msgspec.Struct]) -> Iterator[tuple[type, type]]:
    """The pair, and those of the structs that its fields hold; spans are shown as quotes, which are no row's."""
    yield row, item
    kept, shown = get_type_hints(row), get_type_hints(item)
    for name in kept.keys() & shown.keys():
        below, above = structs_in(kept[name]), structs_in(shown[name])
        if len(below) == len(above) == 1 and above[0].__module__ == records.__name__:
            yield from with_nested(below[0], above[0])


def structs_in(hint: Any) -> list[type[msgspec.Struct]]:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return [hint]
    return [each for part in get_args(hint) for each in structs_in(part)]


@pytest.mark.parametrize(
    ("row", "item"),
    sorted({pair for row, item in PAIRS for pair in with_nested(row, item)}, key=lambda pair: pair[1].__name__),
    ids=lambda each: each.__name__,
)
def test_an_item_has_every_field_of_its_row_in_the_order_of_the_row(
    row: type[msgspec.Struct], item: type[msgspec.Struct]
) -> None:
    fields = [name for name in row.__struct_fields__ if name not in LEFT_OUT.get(item, ())]
    assert [name for name in item.__struct_fields__ if name in fields] == fields


def test_a_client_says_which_field_of_an_answer_it_cannot_read() -> None:
    from memctl.api.client import OtherVersion, Received

    answer = Received(b'{"kind": 1, "item": {}}', records.EventType)
    assert answer.json == {"kind": 1, "item": {}}
    with pytest.raises(OtherVersion, match="name"):
        _ = answer.value
