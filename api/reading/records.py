"""Records as answers show them: the fields of a read model's row, moments in ISO 8601, spans as quotes.

Field order is the order of the JSON. A moment is None where there was none yet. What only some answers have is UNSET
elsewhere.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import UNSET, UnsetType

from memctl.api.reading.views import Evidence, Json, Origin, SourceRow
from memctl.domain.events.event import event_types


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Base of what an answer shows of one row."""


class Quote(Record, frozen=True, kw_only=True):
    """Where in the log a text stands, as a row keeps it."""

    event: str
    start: int
    end: int
    field: str
    quote_hash: str


class Seen(Record, frozen=True, kw_only=True):
    """A name, and when it was seen last."""

    name: str
    at: str | None


# --- memories and sessions ---


class MemoryItem(Record, frozen=True, kw_only=True):
    """A memory. Lists say besides whether it is pinned, what took its place, and what contradicts it."""

    id: str
    kind: str
    bucket: str
    title: str
    gist: str
    text: str
    search_text: str
    location: str
    locations: list[str]
    sessions: list[str]
    importance: float
    confidence: float
    status: str
    occurred_at: str | None
    first_at: str | None
    last_at: str | None
    source: SourceRow
    said_by: str
    member: str
    origin: str
    confirmed: bool
    evidence: list[Evidence]
    files: list[str]
    error_types: list[str]
    signatures: list[str]
    outcome: str
    task: str
    before: str
    project: str
    pinned: bool | UnsetType = UNSET
    superseded_by: str | UnsetType = UNSET
    at_odds_with: list[str] | UnsetType = UNSET


class Subagent(Record, frozen=True, kw_only=True):
    """An agent that a session started."""

    id: str
    role: str
    about: str
    ok: bool | None
    tool_calls: int
    tool_failures: int
    answers: int
    duration_ms: int | None


class SessionItem(Record, frozen=True, kw_only=True):
    """A session. `last_words` are the agent's where nobody summarised it; `working_memory` is there where one session
    is asked for."""

    id: str
    stream: str
    agent: str
    session_id: str
    location: str
    locations: list[str]
    branch: str
    model: str
    agent_version: str
    repository: str
    title: str
    first_prompt: str
    last_prompt: str
    summary: str
    summarized: bool
    tags: list[str]
    started_at: str | None
    last_at: str | None
    ended_at: str | None
    end_reason: str
    starts: int
    prompts: int
    corrections: int
    answers: int
    tool_calls: int
    tool_failures: int
    commands: int
    test_runs: int
    errors: int
    fixes: int
    patches_proposed: int
    patches_applied: int
    files_changed: int
    lines_added: int
    lines_removed: int
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    tasks: int
    through: str
    parent: str
    subagents: list[Subagent]
    project: str
    last_words: str
    working_memory: WorkingMemoryItem | UnsetType | None = UNSET


class WorkSpan(Record, frozen=True, kw_only=True):
    """Sessions of one project that began about the same time; `session` and `title` where it is one session."""

    project: str
    started_at: datetime
    last_at: datetime
    sessions: int
    prompts: int
    errors: int
    fixes: int
    session: str
    title: str


class FixedError(Record, frozen=True, kw_only=True):
    """A kind of error, when it was first seen, and when what mends it was last used."""

    id: str
    project: str
    first_seen: datetime
    fixed_at: datetime
    message: str
    fix: str


class LearntClaim(Record, frozen=True, kw_only=True):
    """A claim that was verified, and when it was first heard of. `project` is empty for what holds everywhere."""

    id: str
    project: str
    at: datetime
    text: str
    origin: str


class Activity(Record, frozen=True, kw_only=True):
    """What happened from `since` until `before`; `hidden` counts projects that are left out."""

    since: datetime
    before: datetime
    spans: list[WorkSpan]
    fixes: list[FixedError]
    claims: list[LearntClaim]
    hidden: int


# --- work ---


class ToolTally(Record, frozen=True, kw_only=True):
    """How often a tool was used, and how often it failed."""

    tool: str
    uses: int
    failures: int


class Pivot(Record, frozen=True, kw_only=True):
    """A turn that the work took."""

    step: int
    description: str
    reason: str


class FilePatch(Record, frozen=True, kw_only=True):
    """What was changed of a file, in lines."""

    path: str
    added: int
    removed: int
    created: bool
    edits: int
    description: str


class EpisodeDecision(Record, frozen=True, kw_only=True):
    """What was settled in an episode, and who settled it."""

    text: str
    said_by: str
    kind: str


class OpenThread(Record, frozen=True, kw_only=True):
    """What was left open."""

    kind: str
    text: str


class EpisodeItem(Record, frozen=True, kw_only=True):
    """One task's work in one session."""

    id: str
    stream: str
    agent: str
    session_id: str
    location: str
    task: str
    canonical: str
    closed: bool
    description: str
    task_type: str
    started_at: str | None
    ended_at: str | None
    duration_us: int
    outcome: str
    why: str
    confidence: float
    feedback: str
    complexity: float
    steps: int
    files: list[str]
    symbols: list[str]
    error_types: list[str]
    signatures: list[str]
    stack_signature: str
    resolved: list[str]
    tools: list[ToolTally]
    plan: list[str]
    plan_summary: str
    decisions: list[EpisodeDecision]
    pivots: list[Pivot]
    patches: list[FilePatch]
    lines_added: int
    lines_removed: int
    tests_passed: bool | None
    problem: str
    solution: str
    gotchas: list[str]
    tips: list[str]
    answer: str
    tokens: int
    ended_by: str
    recalled: str
    threads: list[OpenThread]
    evidence: list[Evidence]
    project: str


class LeftOpen(Record, frozen=True, kw_only=True):
    """What an episode ended with and left open."""

    id: str
    stream: str
    project: str
    description: str
    ended_at: str | None
    threads: list[OpenThread]
    evidence: list[Evidence]


class Opening(Record, frozen=True, kw_only=True):
    """When and where a task was taken up."""

    at: str | None
    id: str
    stream: str
    description: str
    task_type: str
    through: str


class Closing(Record, frozen=True, kw_only=True):
    """When and how a task ended, and who says so."""

    at: str | None
    id: str
    stream: str
    outcome: str
    by: str


class Work(Record, frozen=True, kw_only=True):
    """A session worked on a task: of what type that was, or how far it came, and what it leaves open."""

    at: str | None
    id: str
    task_type: str
    outcome: str
    left: list[str]


class TaskItem(Record, frozen=True, kw_only=True):
    """A piece of work across sessions."""

    id: str
    location: str
    canonical: str
    description: str
    task_type: str
    status: str
    outcome: str
    opened: int
    closed: int
    first_at: str | None
    last_at: str | None
    first: Opening | None
    latest: Opening | None
    sessions: list[Seen]
    closings: list[Closing]
    work: Work | None
    typed: Work | None
    evidence: list[Evidence] | UnsetType = UNSET
    project: str = ""


class PlanStep(Record, frozen=True, kw_only=True):
    """A step of a plan, and how it stands."""

    status: str
    text: str


class ActiveFile(Record, frozen=True, kw_only=True):
    """A file that the work is at. `added` and `removed` count lines."""

    path: str
    state: str
    before: str
    accesses: int
    last_at: str | None
    added: int
    removed: int


class ActiveSymbol(Record, frozen=True, kw_only=True):
    """A function or type that the work is at."""

    name: str
    state: str
    file: str
    uses: int
    last_at: str | None


class Hypothesis(Record, frozen=True, kw_only=True):
    """What the session holds to be so; `confidence` in 0 to 1."""

    at: str | None
    key: str
    text: str
    status: str
    confidence: float
    said_by: str
    told: int


class Snapshot(Record, frozen=True, kw_only=True):
    """What was at hand when something was decided."""

    step: int
    files: list[str]
    symbols: list[str]
    hypotheses: int
    decisions: int


class Decision(Record, frozen=True, kw_only=True):
    """What was settled on, or found to be a cause."""

    at: str | None
    text: str
    rationale: str
    said_by: str
    kind: str
    stated: bool
    alternatives: list[str]
    context: Snapshot


class ToolResult(Record, frozen=True, kw_only=True):
    """What a tool came back with."""

    at: str | None
    tool: str
    ok: bool
    summary: str
    result: str


class RecentError(Record, frozen=True, kw_only=True):
    """An error that the session met, and what was done about it."""

    at: str | None
    id: str
    signature: str
    message: str
    command: str
    resolution: str
    step: int
    files: list[str]


class Discovery(Record, frozen=True, kw_only=True):
    """What was found out."""

    at: str | None
    kind: str
    text: str
    said_by: str


class WorkCounts(Record, frozen=True, kw_only=True):
    """Totals of a session's work."""

    tool_calls: int
    tokens_used: int
    errors_encountered: int
    patches_proposed: int
    patches_applied: int
    lines_added: int
    lines_removed: int


class WorkingMemoryItem(Record, frozen=True, kw_only=True):
    """What a session is at; with its `id` where it stands by itself."""

    id: str | UnsetType = UNSET
    stream: str
    location: str
    locations: list[str]
    branch: str
    started_at: str | None
    updated_at: str | None
    ended_at: str | None
    task: str
    task_description: str
    task_type: str
    task_status: str
    task_started_at: str | None
    opened_by: str
    outcome: str
    why: str
    last_prompt: str
    by_user: bool
    last_answer: str
    steps: int
    plan: list[PlanStep]
    current: int
    current_step: str
    steps_done: list[str]
    pending: list[str]
    files: list[ActiveFile]
    symbols: list[ActiveSymbol]
    hypotheses: list[Hypothesis]
    decisions: list[Decision]
    pivots: list[Pivot]
    threads: list[OpenThread]
    tool_results: list[ToolResult]
    errors: list[RecentError]
    discoveries: list[Discovery]
    stats: WorkCounts


class Context(WorkingMemoryItem, frozen=True, kw_only=True):
    """The working memory of the session that is meant, with the session's own names."""

    project: str
    agent: str
    session_id: str
    title: str
    summary: str


# --- claims ---


class Saying(Record, frozen=True, kw_only=True):
    """One time that a claim was made."""

    at: str | None
    id: str
    said_by: str
    text: str
    subject: str
    confidence: float
    span: Quote | None
    rule: str
    stream: str
    proved: bool
    member: str


class InsightItem(Record, frozen=True, kw_only=True):
    """A claim, the `level` that it has reached (1 to 4), and what it is missing. The latter are of lists."""

    id: str
    kind: str
    canonical: str
    polarity: int
    everywhere: bool
    location: str
    text: str
    subject: str
    said_by: str
    member: str
    origin: str
    proved: bool
    confidence: float
    sayings: int
    first_seen: str | None
    last_seen: str | None
    best: Saying | None
    strongest: float
    sessions: list[Seen]
    sources: list[Seen]
    locations: list[Seen]
    evidence: list[Evidence]
    files: list[Seen]
    denials: list[Seen]
    project: str
    level: int | UnsetType = UNSET
    missing: list[str] | UnsetType = UNSET
    warrant: str | UnsetType = UNSET


class ClaimItem(Record, frozen=True, kw_only=True):
    """One side of a subject; `stale` where a file that it is about has changed since."""

    id: str
    kind: str
    text: str
    canonical: str
    polarity: int
    said_by: str
    member: str
    origin: str
    proved: bool
    confidence: float
    warrant: str
    sessions: int
    valid_from: str | None
    last_seen: str | None
    valid_until: str | None
    superseded_by: str
    confirmed: bool
    evidence: list[Evidence]
    files: list[str]
    stale: bool


class KnowledgeItem(Record, frozen=True, kw_only=True):
    """What is held true of a subject, what stands first. `project` and `sessions` are of lists."""

    id: str
    subject: str
    location: str
    everywhere: bool
    status: str
    kind: str
    text: str
    said_by: str
    member: str
    origin: str
    confirmed: bool
    confidence: float
    first_seen: str | None
    last_seen: str | None
    claims: list[ClaimItem]
    memory_id: str
    project: str | UnsetType = UNSET
    sessions: int | UnsetType = UNSET


class PreferenceItem(Record, frozen=True, kw_only=True):
    """How the user likes to work, by group: accepted or rejected."""

    group: str
    project: str
    insight: str
    text: str
    said: bool
    sessions: int
    last_seen: str | None
    confidence: float


class CoreSectionItem(Record, frozen=True, kw_only=True):
    """A section of core memory, as it is or was."""

    section: str
    text: str
    version: int
    changed_at: str | None
    event: str
    by: str
    said_by: str
    confirmed: bool
    origin: str
    location: str


class ForgetRequestItem(Record, frozen=True, kw_only=True):
    """What an agent asks to have forgotten, and `origin` whose agent. `text` is what the thing says."""

    thing: str
    text: str
    why: str
    by: str
    origin: str
    location: str
    asked_at: str | None


class Waiting(Record, frozen=True, kw_only=True):
    """What waits for a person: claims that act or that agents wrote, what agents wrote into core memory, and what they
    ask to have forgotten."""

    claims: list[InsightItem]
    sections: list[CoreSectionItem]
    requests: list[ForgetRequestItem]


class CoreVersion(Record, frozen=True, kw_only=True):
    """What a section of core memory was at one version."""

    section: str
    text: str
    version: int
    changed_at: str
    by: str
    event: str


class ResolutionItem(Record, frozen=True, kw_only=True):
    """What became of what a memory left open."""

    id: str
    condition: str
    resolution: str
    resolved_to: str
    confidence: float
    resolved_at: str | None
    event: str
    by: str


class Party(Record, frozen=True, kw_only=True):
    """A memory that a change of consolidation is about."""

    id: str
    role: str
    title: str


class ConsolidationChange(Record, frozen=True, kw_only=True):
    """What consolidation did to memories, and whether it was taken back."""

    id: str
    kind: str
    why: str
    made_by: str
    occurred_at: str
    undone_at: str | None
    undone_why: str
    memories: list[Party]


# --- the log ---


class EventItem(Record, frozen=True, kw_only=True):
    """One event of the log. `payload` has the fields of its type; `variants` counts what was recorded under its key.
    `occurred_at` is null where it came without a time."""

    id: str
    delivery_id: str
    position: int
    type: str
    stream: str
    actor: str
    location: str
    occurred_at: str | None
    recorded_at: str
    source: Origin
    variants: int
    sources: list[str]
    payload: dict[str, Json]


class TimelineItem(Record, frozen=True, kw_only=True):
    """An event as a session's timeline shows it. `occurred_at` is null where it came without a time."""

    id: str
    position: int
    type: str
    actor: str
    occurred_at: str | None
    recorded_at: str
    source: Origin
    payload: dict[str, Json]


class InjectedItem(Record, frozen=True, kw_only=True):
    """A memory that was put before the agent in a turn, how sure memory was (0 to 1), and the hook that asked.

    `withheld`: it was held back, so that work without memory can be compared. `title` is empty where it is gone. `why`
    is empty, or says why it was found and not put there."""

    id: str
    score: float
    hook: str
    withheld: bool
    title: str = ""
    why: str = ""


class StepItem(Record, frozen=True, kw_only=True):
    """What was done in a turn: `kind` is tool, said, command (to the client) or compacted.

    `ended` is how a use of a tool ended: well, failed, unheeded (the user refused or interrupted it, or it looked for
    something and found nothing), or empty where nothing came back. `text` is what was said, or the output of what did
    not end well."""

    event: str
    kind: str
    tool: str = ""
    about: str = ""
    text: str = ""
    ended: str = ""
    files: list[str] = []
    lines_added: int = 0
    lines_removed: int = 0
    patch: list[str] = []
    duration_ms: int | None = None


class TurnItem(Record, frozen=True, kw_only=True):
    """A turn of a session: the prompt, what memory added, the steps, and the last answer.

    `prompt` is what the user asked, without what the client put beside it. `tools` has how often each was used.
    Counts are of all steps, `steps_in_all` of them; `steps` are those that are shown."""

    event: str
    at: str | None
    prompt: str
    injected: list[InjectedItem]
    left_out: list[InjectedItem]
    silent: str
    tools: list[tuple[str, int]]
    failures: int
    files: list[str]
    lines_added: int
    lines_removed: int
    steps: list[StepItem]
    steps_in_all: int
    answer: StepItem | None


class EventType(Record, frozen=True, kw_only=True):
    """A type of event that may stand in the log."""

    name: str
    version: int
    doc: str
    fields: list[str]


def types_of_events() -> list[EventType]:
    """Every type that this memctl knows."""
    return [
        EventType(
            name=entry.name,
            version=entry.version,
            doc=" ".join(entry.doc.split("\n\n")[0].split()),
            fields=list(entry.payload.__struct_fields__),
        )
        for entry in event_types().values()
    ]


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
