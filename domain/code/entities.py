"""Who and what a session has to do with: libraries, services and people, and what is said of them.

Nodes of the graph, and the statements about them. What a session names by itself, `mentions` finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, cast, get_args

import msgspec

from memctl.domain.events.command import BadCommand, Command, command
from memctl.domain.events.event import Event, Payload, derived_of, event
from memctl.domain.support import patterns
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.remembered import remembered

EntityKind = Literal["library", "service", "person", "agent", "file"]
Relation = Literal[
    "uses", "depends_on", "fixes", "changed_with", "part_of", "replaces", "works_on", "calls", "tests", "related_to"
]

# --- what is recorded ---


@event("entity.described")
class EntityDescribed(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """A person, or a processor, said what an entity is. Empty fields leave what was said before."""

    kind: EntityKind
    platform: str = ""
    name: str
    display_name: str = ""
    summary: str = ""
    interests: tuple[str, ...] = ()
    notes: str = ""
    trust: float | None = None
    by: str = "user"


@event("relation.asserted")
class RelationAsserted(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """One entity has to do with another. Nodes are written as `node_of` writes them; a weight of 0 takes it back."""

    source: str
    relation: Relation
    target: str
    weight: float = 1.0
    why: str = ""
    by: str = "user"


@event("sentiment.noted")
class SentimentNoted(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """How somebody feels towards an entity, -1 to 1, as a person or a judge said."""

    node: str
    score: float
    context: str = ""
    by: str = "user"


class BadNode(MemctlError):
    """{node!r} is no entity's name."""

    exit_code = 2
    hint = "Write kind:name, such as library:npm/react, service:github.com, person:Dana or file:/path."
    node: str


def entity_id(kind: str, platform: str, name: str) -> str:
    """Key of an entity. Names are compared in lower case."""
    return str(derived_of("entity", kind, platform, name.lower()))


def node_of(kind: str, platform: str, name: str) -> str:
    """An entity's place in the graph, as people write it: `library:npm/react`, `file:/srv/shop/cart.py`."""
    return f"{kind}:{platform}/{name}" if platform else f"{kind}:{name}"


def parts_of(node: str) -> tuple[str, str, str]:
    """Kind, platform and name of a node. Raises: BadNode."""
    kind, _, rest = node.partition(":")
    if kind not in _KINDS or not rest.strip():
        raise BadNode(node=node)
    if kind == "library":
        platform, _, name = rest.partition("/")
        if platform in _PLATFORMS and name:
            return kind, platform, name
    return kind, "", rest


_KINDS = frozenset(("library", "service", "person", "agent", "file", "bug", "project", "concept"))
_PLATFORMS = frozenset(("npm", "go", "pypi", "crates", "rubygems"))

_IN_TOOLS = patterns.compile(r"/(?:\.[A-Za-z0-9_-]+/worktrees|\.worktrees|\.conductor)/[^/]+(?=/)")


@remembered(512)
def file_of(path: str, location: str) -> str:
    """The one name of a file, whichever worktree and directory it was named from."""
    if not path.startswith("/") and path[1:2] != ":" and location:
        path = f"{location.rstrip('/')}/{path.removeprefix('./')}"
    return _IN_TOOLS.sub("", path)


GRAPH = "knowledge/graph"
"""Stream of what is said of entities and their relations: they span sessions."""


@command("describe_entity")
class DescribeEntity(Command, frozen=True, kw_only=True):
    """Say what an entity is: `node` as `library:npm/react`, `service:github.com`, `person:Dana`."""

    to: ClassVar[str] = GRAPH
    node: str
    display_name: str = ""
    summary: str = ""
    interests: tuple[str, ...] = ()
    notes: str = ""
    trust: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None

    def decide(self, history: Sequence[Event]) -> EntityDescribed:
        kind, platform, name = parts_of(self.node)
        if kind not in get_args(EntityKind):
            raise BadNode(node=self.node)
        return EntityDescribed(
            kind=cast(EntityKind, kind),
            platform=platform,
            name=name[:160],
            display_name=self.display_name[:120],
            summary=self.summary[:600],
            interests=self.interests[:12],
            notes=self.notes[:400],
            trust=self.trust,
            by=self.by,
        )


@command("relate")
class RelateEntities(Command, frozen=True, kw_only=True):
    """Say that one entity has to do with another; a weight of 0 takes it back."""

    to: ClassVar[str] = GRAPH
    source: str
    relation: Relation
    target: str
    weight: Annotated[float, msgspec.Meta(ge=0, le=100)] = 1.0
    why: str = ""

    def decide(self, history: Sequence[Event]) -> RelationAsserted:
        parts_of(self.source)
        parts_of(self.target)
        if self.source == self.target:
            raise BadCommand(why="an entity has no relation to itself")
        return RelationAsserted(
            source=self.source[:300],
            relation=self.relation,
            target=self.target[:300],
            weight=self.weight,
            why=self.why[:300],
            by=self.by,
        )


@command("note_sentiment")
class NoteSentiment(Command, frozen=True, kw_only=True):
    """Say how somebody feels towards an entity, -1 to 1."""

    to: ClassVar[str] = GRAPH
    node: str
    score: Annotated[float, msgspec.Meta(ge=-1, le=1)]
    context: str = ""

    def decide(self, history: Sequence[Event]) -> SentimentNoted:
        parts_of(self.node)
        return SentimentNoted(node=self.node[:300], score=self.score, context=self.context[:200], by=self.by)
