"""The reflector: once enough has happened in a project, what its memories show together is recorded."""

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from memctl.domain.knowledge.consolidation import STREAM
from memctl.domain.knowledge.reflections import Grown, Piece, ReflectionMade, Trigger, by_rule, clusters, due
from memctl.domain.support.structs import carried_over
from memctl.infra.readmodels import processor_work as processing
from memctl.infra.readmodels.known_projects import known_projects
from memctl.projections.memory_rows import Memory
from memctl.workers.processors.runner import Outcome, ProcessorContext, WorkItem, digest_of, memories, outcome

DAY_US = 86_400_000_000

LOOKED_AT = frozenset(("episode", "bug_pattern"))
"""Kinds of memories that are reflected on: what was done, and what went wrong."""


class Grounds(msgspec.Struct, frozen=True):
    """What a project is reflected on: its memories, where it lives, and what set it off."""

    project: str
    location: str
    trigger: Trigger
    count: int
    weight: float
    found: tuple[Memory, ...]


class Reflector:
    """Reflects on each project: when importance since the last time sums to 150, enough memories came, or by age."""

    name, version = "reflector", 3

    def __init__(self, *, asked: bool = False, project: str = "") -> None:
        """`asked`: whether it is time or not; `project` (its anchor) keeps to one."""
        self._asked, self._project = asked, project

    def find(self, context: ProcessorContext) -> Iterator[WorkItem]:
        projects = known_projects(context.connection, context.live, context.space_id)
        found: dict[str, list[Memory]] = defaultdict(list)
        counts: dict[str, int] = defaultdict(int)
        weights: dict[str, float] = defaultdict(float)
        for memory in memories(context):
            project = projects.holding(memory.location) if memory.location else None
            if project is None or memory.kind == "reflection":
                continue
            counts[project.anchor] += 1
            weights[project.anchor] += memory.importance
            if memory.kind in LOOKED_AT:
                found[project.anchor].append(msgspec.structs.replace(memory, search_text="", gist=""))
        for project in projects.all:
            anchor = project.anchor
            if anchor not in found or (self._project and anchor != self._project):
                continue
            before = processing.state_of(context.connection, context.space_id, self.name, anchor)
            grown = Grown(
                memories=max(counts[anchor] - before.get("memories", 0), 0),
                weight=max(weights[anchor] - before.get("weight", 0.0), 0.0),
                days=(context.now() - before["at"]) / DAY_US if before else 0.0,
            )
            trigger = "asked" if self._asked else due(grown, context.settings.processors.reflect_memories)
            if trigger is not None:
                ids = sorted((memory.id, memory.last_at) for memory in found[anchor])
                location = project.root or project.locations[0]
                grounds = Grounds(anchor, location, trigger, counts[anchor], weights[anchor], tuple(found[anchor]))
                yield WorkItem(anchor, digest_of(ids), grounds)

    def run(self, context: ProcessorContext, work: WorkItem, attempt: int) -> Outcome:
        grounds: Grounds = work.about
        pieces = [piece_of(memory) for memory in grounds.found]
        known = {memory.id: memory for memory in grounds.found}
        events = []
        for made in by_rule(clusters(pieces), pieces):
            payload = ReflectionMade(
                topic=made.topic, title=made.title, text=made.text, memories=made.memories, importance=made.importance,
                trigger=grounds.trigger,
            )  # fmt: skip
            sources = [span.event for id in made.memories for span in known[id].evidence]
            about = (grounds.location, made.topic, *made.memories)
            events.append(
                outcome(
                    self, context.now(), payload, stream=STREAM, about=about, location=grounds.location, sources=sources
                )
            )
        return Outcome(events, {"memories": grounds.count, "weight": grounds.weight, "at": context.now()})


def piece_of(memory: Memory) -> Piece:
    """A memory as the rules of reflection look at it."""
    return carried_over(memory, Piece, session=memory.sessions[0] if memory.sessions else "", at=memory.occurred_at)
