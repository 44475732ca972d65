"""What memory put before agents, held back, or kept to itself: by session, the newest first."""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple
from uuid import UUID

from memctl.api.reading import models
from memctl.api.reading.hindsight import PassedOver, RecalledBlock, RecalledMemory, SessionRecalls
from memctl.api.reading.pages import Where, page, several
from memctl.api.reading.places import Places, limits_of, projects_of
from memctl.api.reading.questions import Cursor, Limit, question
from memctl.api.reading.reader import Reader
from memctl.api.reading.views import Page, iso, moment
from memctl.domain.events.event import Micros
from memctl.domain.events.event_order import shown_at
from memctl.domain.events.observations import PromptSubmitted
from memctl.domain.events.recalls import BECAUSE, SILENT, MemoryRecalled
from memctl.domain.language.prompts import said_in
from memctl.infra.log.read import read_versions
from memctl.projections.injections import Block

Whether = Literal["spoken", "silent"]

SHORT = 160
"""Characters of a prompt that are shown."""


class Titled(NamedTuple):
    """What has an id: the word for it, and what it says in short."""

    kind: str
    title: str


@question("/recalls", "learning")
def recalls(
    reader: Reader, places: Places, *, said: Whether | None = None, since: Micros | None = None, limit: Limit = 20,
    cursor: Cursor = None,
) -> Page[SessionRecalls]:  # fmt: skip
    """What memory put before agents, by session, the newest first: each block with its hook, its tokens, its memories
    with rank and score; `withheld` where it was held back to compare. `said`: only where it spoke, or kept silent."""
    p = models.injections
    conditions = Where(p).within(places).between("last_at", since, None)
    if said is not None:
        conditions = conditions.above("count" if said == "spoken" else "kept_silent", 0)
    rows, after = page(reader, p, "last_at", conditions, limit=limit, cursor=cursor)
    blocks = {
        keyed.key: [
            *(keyed.row.blocks if said != "silent" else ()),
            *(keyed.row.silences if said != "spoken" else ()),
        ]
        for keyed in rows
    }
    every = [block for of_session in blocks.values() for block in of_session]
    known = titles(
        reader,
        {
            *(id for block in every for id, _ in block.memories),
            *(id for block in every for id, _, _ in block.passed_over),
        },
    )
    prompts = _prompts(reader, [block.id for block in every])
    projects = projects_of(reader)
    items = [
        SessionRecalls(
            session=keyed.key,
            project=projects.name_of(keyed.row.location) if keyed.row.location else None,
            count=keyed.row.count,
            blocks=[
                _block(block, known, prompts)
                for block in sorted(blocks[keyed.key], key=lambda block: (block.at, block.id), reverse=True)
            ],
            kept_silent=keyed.row.kept_silent,
        )
        for keyed in rows
    ]
    return Page(items, after, places.scope)


def titles(reader: Reader, ids: Collection[str]) -> dict[str, Titled]:
    """What is put before agents, by id: memories, and what is looked up by key at a tool or given at a start."""
    wanted = sorted(ids)
    found = {id: Titled(row.kind, row.title) for id, row in several(reader, models.memories, wanted).items()}
    left = [id for id in wanted if id not in found]
    if not left:
        return found
    for id, call in several(reader, models.known_commands, left).items():
        found[id] = Titled("command", f"`{call.failed[0].command if call.failed else call.subject}` fails here")
    for id, met in several(reader, models.met_errors, left).items():
        if met.failures:
            newest = met.failures[0]
            found[id] = Titled("error", newest.line or newest.command)
    for id in several(reader, models.sessions, [each for each in left if each.startswith("session/")]):
        found[id] = Titled("session", "what the session was at before its context was shortened")
    sections = {id: id.removeprefix("core/") for id in left if id.startswith("core/")}
    kept = several(reader, models.core_memory, sorted(sections.values())) if sections else {}
    for id, section in sections.items():
        if section in kept:
            found[id] = Titled("core memory", section)
    return found


class _Asked(NamedTuple):
    """The event that asked, and its words in short."""

    event: str
    words: str


def _prompts(reader: Reader, recalls: Sequence[str]) -> dict[str, _Asked]:
    """The prompts that asked, by the event of what memory said; none of what was erased: no row holds them."""
    asked = {
        str(id): each.payload.asked_by
        for id, of_one in read_versions(reader.connection, reader.space_id, map(UUID, recalls)).items()
        for each in of_one
        if isinstance(each.payload, MemoryRecalled) and each.payload.asked_by is not None
    }
    prompts = read_versions(reader.connection, reader.space_id, set(asked.values()))
    limits = limits_of(reader)
    words = {
        id: " ".join(said_in(each.payload.text).words.split())[:SHORT]
        for id, of_one in prompts.items()
        for each in of_one
        if isinstance(each.payload, PromptSubmitted)
        and (limits is None or not limits.locations.isdisjoint(shown_at(each)))
    }
    return {recall: _Asked(str(event), words[event]) for recall, event in asked.items() if event in words}


def _block(block: Block, known: Mapping[str, Titled], prompts: Mapping[str, _Asked]) -> RecalledBlock:
    memories = []
    nothing, asked = Titled("", ""), prompts.get(block.id, _Asked("", ""))
    for rank, (id, score) in enumerate(block.memories, 1):
        kind, title = known.get(id, nothing)
        memories.append(RecalledMemory(id, rank, score, kind, title, "files" if rank in block.by_files else ""))
    passed_over = [
        PassedOver(id, score, why, BECAUSE.get(why, why), *known.get(id, nothing))
        for id, score, why in block.passed_over
    ]
    return RecalledBlock(
        block.id, iso(moment(block.at)), block.hook, block.tokens, block.withheld, memories, passed_over,
        silent="" if memories else SILENT.get(block.silent, block.silent), event=asked.event, prompt=asked.words,
    )  # fmt: skip
