"""What memory put before agents, or held back: by session, the newest first."""

from memctl.api.reading import models
from memctl.api.reading.hindsight import PassedOver, RecalledBlock, RecalledMemory, SessionRecalls
from memctl.api.reading.pages import between, page, several, within
from memctl.api.reading.places import Places, projects_of
from memctl.api.reading.questions import Cursor, Limit, question
from memctl.api.reading.reader import Reader
from memctl.api.reading.views import Page, iso, moment
from memctl.domain.events.event import Micros
from memctl.projections.injections import Block
from memctl.projections.memory_rows import Memory


@question("/recalls", "learning")
def recalls(
    reader: Reader, places: Places, *, since: Micros | None = None, limit: Limit = 20, cursor: Cursor = None
) -> Page[SessionRecalls]:
    """What memory put before agents, by session, the one that got something last first: each block with its hook, its
    tokens, and its memories with rank and score; `withheld` where it was held back to compare."""
    conditions = [*within(models.injections, places), *between(models.injections, "last_at", since, None)]
    rows, after = page(reader, models.injections, "last_at", conditions, limit=limit, cursor=cursor)
    wanted = {memory for keyed in rows for block in keyed.row.blocks for memory, _ in block.memories}
    known = several(reader, models.memories, sorted(wanted))
    projects = projects_of(reader)
    items = [
        SessionRecalls(
            session=keyed.key,
            project=projects.name_of(keyed.row.location) if keyed.row.location else None,
            count=keyed.row.count,
            blocks=[_block(block, known) for block in keyed.row.blocks],
        )
        for keyed in rows
    ]
    return Page(items, after, places.scope)


def _block(block: Block, known: dict[str, Memory]) -> RecalledBlock:
    memories = []
    for rank, (id, score) in enumerate(block.memories, 1):
        memory = known.get(id)
        kind, title = (memory.kind, memory.title) if memory else ("", "")
        memories.append(RecalledMemory(id, rank, score, kind, title))
    passed_over = [PassedOver(*each) for each in block.passed_over]
    return RecalledBlock(
        block.id, iso(moment(block.at)), block.hook, block.tokens, block.withheld, memories, passed_over
    )
