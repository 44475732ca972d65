"""The staleness checker: looks at the files that memories are tied to, and records what is in those that changed."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

from memctl.domain.events.file_checks import FileObserved
from memctl.domain.knowledge.consolidation import STREAM
from memctl.domain.projects.occupants import is_latest, occupants_of
from memctl.domain.support.location import file_at, inside, is_on_this_machine, path_of
from memctl.infra.git import blob_of
from memctl.infra.readmodels import processor_work as processing
from memctl.infra.readmodels.known_projects import known_projects
from memctl.workers.processors.runner import (
    Outcome,
    ProcessorContext,
    WorkItem,
    digest_of,
    memories,
    model,
    outcome,
    scanned,
)

EVERY_US = 3_600_000_000

TIED = frozenset(("knowledge", "strategy"))
"""Kinds of memories that claim something of their files."""

MOST_FILES = 2_000
"""Files of a project that are looked at in one round, so that a round ends."""


class StalenessChecker:
    """Looks at files once an hour, or when asked."""

    name, version = "staleness", 1

    def __init__(self, *, asked: bool = False) -> None:
        self._asked = asked

    def find(self, context: ProcessorContext) -> Iterator[WorkItem]:
        before = processing.state_of(context.connection, context.space_id, self.name, "files")
        if self._asked or context.now() - before.get("at", 0) >= EVERY_US:
            yield WorkItem("files", digest_of((context.now(),)))

    def run(self, context: ProcessorContext, work: WorkItem, attempt: int) -> Outcome:
        sources = _tied(context)
        known = _last_looks(context)
        events = []
        for path, rests_on in sources.items():
            found = blob_of(Path(path_of(path)))
            if found is None or found == known.get(path):
                continue
            events.append(
                outcome(
                    self, context.now(), FileObserved(path=path, blob=found), stream=STREAM,
                    about=(path, str(context.now())), location=str(Path(path).parent), sources=rests_on,
                )
            )  # fmt: skip
        return Outcome(events, {"at": context.now(), "files": len(sources)})


def _tied(context: ProcessorContext) -> dict[str, tuple[UUID, ...]]:
    """The files that memories claim something of, below a checkout that is here, and the events that one of those rests
    on: it is enough to look at the file."""
    found: dict[str, tuple[UUID, ...]] = {}
    here: dict[str, bool] = {}
    occupants = occupants_of(known_projects(context.connection, context.live, context.space_id).places)
    for memory in memories(context):
        place = memory.location
        if memory.kind not in TIED or not memory.files or not place:
            continue
        if place not in here:
            # Where the whole checkout is elsewhere, that a file is not here says nothing.
            there = is_on_this_machine(place) and Path(path_of(place)).is_dir()
            here[place] = there and is_latest(occupants, place)
        for path in memory.files if here[place] else ():
            whole = file_at(place, path)
            if inside(whole, place) and len(found) < MOST_FILES:
                found.setdefault(whole, tuple(span.event for span in memory.evidence))
    return found


def _last_looks(context: ProcessorContext) -> dict[str, str]:
    """What was in each file that was looked at before."""
    found: dict[str, str] = {}
    for rows in scanned(context, model("observed_files")):
        found.update({row.path: row.looks[0].blob for row in rows.values() if row.looks})
    return found
