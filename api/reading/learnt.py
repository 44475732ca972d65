"""What was learnt of code and of what it has to do with, as answers show it: rules, patterns, strategies, entities and
their graph. Field order is the order of the JSON; moments are in ISO 8601."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from memctl.api.reading.records import Record
from memctl.api.reading.views import Evidence, Scope

# --- rules and patterns ---


class CodeExample(Record, frozen=True, kw_only=True):
    """A line before and after, and where that was."""

    before: str
    after: str
    path: str
    session: str
    at: str | None
    event_id: str | None


class RuleVerdict(Record, frozen=True, kw_only=True):
    """What somebody said of a rule."""

    at: str | None
    success: bool
    why: str
    by: str


class RuleItem(Record, frozen=True, kw_only=True):
    """What gives way to what, how sure that is (0 to 1), and where it was seen. `evidence` is there where one rule is
    asked for."""

    id: str
    before: str
    after: str
    kind: str
    regex: str | None
    category: str
    languages: list[str]
    state: str
    confidence: float
    observations: int
    places: int
    successes: int
    failures: int
    asked_by_user: bool
    files: list[str]
    sessions: list[str]
    projects: list[str]
    first_seen: str | None
    last_seen: str | None
    examples: list[CodeExample]
    verdicts: list[RuleVerdict]
    retired: bool
    reason: str
    merged_into: str
    evidence: list[Evidence] | UnsetType = UNSET


class Transformation(Record, frozen=True, kw_only=True):
    """What a pattern does, in words and by an example."""

    description: str
    before_template: str
    after_template: str


class Applicability(Record, frozen=True, kw_only=True):
    """Where a pattern was applied."""

    languages: list[str]


class Effects(Record, frozen=True, kw_only=True):
    """What is expected of a pattern's category: not measured."""

    readability: float
    performance: float
    maintainability: float
    testability: float


class PatternStats(Record, frozen=True, kw_only=True):
    """How often a pattern was applied, how often that stayed, and the mean share of characters that lines lost."""

    application_count: int
    success_rate: float
    avg_improvement: float


class PatternItem(Record, frozen=True, kw_only=True):
    """A transformation that recurs."""

    id: str
    name: str
    category: str
    project: str
    transformation: Transformation
    applicability: Applicability
    effects: Effects
    stats: PatternStats
    files: list[str]
    sessions: list[str]
    first_seen: str | None
    last_seen: str | None
    examples: list[CodeExample]


class StrategyItem(Record, frozen=True, kw_only=True):
    """What earlier work teaches. `memory_id` is what is rated, pinned or rejected. What `acts` is given to nobody
    unasked: whoever follows it installs, downloads, or obeys."""

    id: str
    memory_id: str
    title: str
    description: str
    content: str
    domain: str
    from_failure: bool
    confidence: float
    made_by: str
    origin: str
    acts: bool
    project: str | None
    sessions: list[str]
    sources: int
    first_seen: str
    last_seen: str


# --- entities and their graph ---


class MentionItem(Record, frozen=True, kw_only=True):
    """One time that an entity was met. `span` is always None: `event_id` leads to the words."""

    at: str | None
    id: str
    how: str
    stream: str
    version: str
    path: str
    location: str
    span: None
    event_id: str | None


class FeelingItem(Record, frozen=True, kw_only=True):
    """How a user felt about an entity, once; `score` in -1 to 1."""

    at: str
    score: float
    words: str
    by: str
    session: str
    evidence: list[Evidence]


class SentimentItem(Record, frozen=True, kw_only=True):
    """How users feel about an entity in a project: where that leads, and the path there, newest first."""

    project: str
    label: str
    score: float
    path: list[FeelingItem]


class Neighbour(Record, frozen=True, kw_only=True):
    """An edge from an entity to another node."""

    relation: str
    node: str
    label: str
    weight: float


class EntityItem(Record, frozen=True, kw_only=True):
    """A library, service or person. What only a known one has is UNSET for a node that is named by edges alone;
    `sentiment` and `edges` are there where one is asked for."""

    id: str | None
    node: str
    kind: str
    platform: str
    name: str
    display_name: str | UnsetType = UNSET
    summary: str | UnsetType = UNSET
    interests: list[str] | UnsetType = UNSET
    notes: str | UnsetType = UNSET
    trust: float | UnsetType | None = UNSET
    interactions: int | UnsetType = UNSET
    versions: list[str] | UnsetType = UNSET
    projects: list[str] | UnsetType = UNSET
    files: list[str] | UnsetType = UNSET
    sources: list[str] | UnsetType = UNSET
    first_seen: str | UnsetType | None = UNSET
    last_seen: str | UnsetType | None = UNSET
    mentions: list[MentionItem] | UnsetType = UNSET
    sentiment: list[SentimentItem] | UnsetType = UNSET
    edges: list[Neighbour] | UnsetType = UNSET


class GraphNode(Record, frozen=True, kw_only=True):
    """A node, what people call it, and how far it is from the start."""

    node: str
    label: str
    hop: int


class GraphEdge(Record, frozen=True, kw_only=True):
    """An edge between two nodes."""

    source: str
    relation: str
    target: str
    weight: float


class GraphAnswer(Record, frozen=True, kw_only=True):
    """The nodes around one, and the edges between them."""

    start: str
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    scope: Scope
