"""Facts: what happened, derived by stage 1 from one stream's events. Never in the log, rebuilt with it.

The id of an identified fact is a UUIDv5 of its stream, its type and what it is about, so it is the same however and
whenever the events arrived. `evidence` names the events and the spans of characters a fact rests on.
"""

import hashlib
from typing import Annotated, Literal, cast
from uuid import UUID

import msgspec

from memctl.domain.events.event import Micros, derived_id
from memctl.domain.events.open_threads import Thread
from memctl.domain.support.provenance import Provenance


class Span(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Characters `start` to `end` (exclusive) of one text field of an event's payload.

    `field` is `text`, or a path into the payload such as `input.command`. `quote_hash` is the first 16 hex digits of
    sha256 of the quoted characters.
    """

    event: UUID
    start: int = 0
    end: int = 0
    field: str = "text"
    quote_hash: str = ""


def quote(event: UUID, text: str, start: int = 0, end: int | None = None, field: str = "text") -> Span:
    """The span of `text[start:end]` in that event, with its hash."""
    stop = len(text) if end is None else end
    return Span(event, start, stop, field, quote_hash(text[start:stop]))


def quote_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="type"):
    """Base of facts. `occurred_at` in microseconds; `location` is the normalised working directory then. `through` is
    the member through whose key it came, empty of what this machine heard.

    A plain fact is folded once, into the rows of its stream, and forgotten: nine facts in ten are such.
    """

    stream: str
    occurred_at: Micros
    location: str = ""
    subagent: str = ""
    through: str = ""
    evidence: tuple[Span, ...] = ()
    once: str = ""
    """Digest of the id of the line that set the agent to work. A copy of the session, a fork and a resumed one repeat
    it: what follows the same line counts once, however many sessions hold it."""

    @property
    def agent(self) -> str:
        return self.stream.split("/", 2)[1]

    @property
    def session_id(self) -> str:
        return self.stream.split("/", 2)[2]


class Identified(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A fact with an id: rows and other facts may name it, it may be revised, and stage 2 may fold it."""

    id: UUID
    lineage: str = ""
    """What the session shares with those that begin with the same line: copies, forks and resumed ones."""

    @property
    def origin(self) -> str:
        """The source that this counts for, where sources are counted."""
        return self.lineage or self.stream


def fact_id(stream: str, fact_type: str, about: str) -> UUID:
    """Stable id of the fact of that type about `about` (unique within stream and type)."""
    # A session's id may hold colons, and an id that a relay passes on may hold percent signs. It never holds NUL. So
    # the ids of two streams never run together.
    named = stream.replace("%", "\0").replace(":", "%")
    return derived_id(f"fact:{named}:{fact_type}:{about}")


class SessionOpened(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="session_opened"):
    """The stream's first sign of life, or a session taken up again."""

    source: str = ""
    branch: str = ""
    model: str = ""
    agent_version: str = ""
    repository: str = ""
    title: str = ""
    parent: str = ""
    """Id of the session that asked for this one."""
    still: bool = False
    """It was open already, and more is known of it by now."""


class SubagentAsked(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="subagent_asked"):
    """Work was handed to a subagent and came back, or runs on beside. `role` is the kind of agent that was asked for,
    `about` the work in a few words, at most 200 characters.
    """

    asked: str
    role: str = ""
    about: str = ""
    ok: bool = True
    duration_ms: int | None = None


class SessionClosed(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="session_closed"):
    """The client ended the session."""

    reason: str = ""


class SessionTitled(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="session_titled"):
    """The client gave the session a title or a summary."""

    title: str


class PlaceSeen(Identified, frozen=True, kw_only=True, omit_defaults=True, tag="place_seen"):
    """A session showed something of the directory `place`, asserted once: that it works there (nothing else is given),
    its normalised git `remote` by the client's own record, or a directory `around` it on the same branch."""

    place: str
    remote: str = ""
    around: str = ""
    confined: bool = False
    """Delivered under a key that is limited to projects."""
    keyed_at: int = 0
    """When it was delivered, in microseconds, where it came with a key; 0 where this machine saw it."""
    brought_by: str = ""
    """The id of the delivery by which a file elsewhere than clients keep theirs named the remote."""


PromptKind = Literal["opening", "follow_up", "correction", "thanks", "command"]


class Prompted(Identified, frozen=True, kw_only=True, omit_defaults=True, tag="prompted"):
    """A person addressed the agent. `kind` is what the prompt does to the task at hand."""

    text: str
    kind: PromptKind
    task: str = ""
    """Key of the task it belongs to."""
    by_user: bool = True
    """Whether the user gave it, and no program or member."""
    alone: bool = True
    """Whether nothing of the client's stood beside it, with which it may have been pasted."""


class Answered(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="answered"):
    """The agent's words. `final` marks the last text before the user speaks again; `prompt` is what it answers."""

    text: str
    prompt: UUID | None = None
    model: str = ""


class Turn(Identified, frozen=True, kw_only=True, omit_defaults=True, tag="turn"):
    """A prompt with the last words that answered it: what a person would remember of the exchange. `earlier` are the
    answers that were finished before something else than a prompt set the agent to work again, `reasons` what it said
    on its way of why something is so."""

    prompt: str
    answer: str = ""
    earlier: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    task: str = ""
    files: tuple[str, ...] = ()
    prompt_id: UUID | None = None
    before: UUID | None = None
    """The turn before it in the session: what is said in one is often found by the words of its neighbour."""
    lead: str = ""
    """How the prompt before it begins, where this one is too short to say by itself what it is about."""
    elsewhere: tuple[str, ...] = ()
    """Other places that the session worked at before the next prompt."""
    by_user: bool = True
    """Whether what was typed of the prompt is the user's: of no program or member, and shown by no tool before."""
    corrected: bool = False
    """Whether the user's next words find fault with what it came to."""


class TokensSpent(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="tokens_spent"):
    """What one API message cost, in tokens."""

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0


class ToolUsed(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="tool_used"):
    """One use of a tool that came back. `summary` is its main argument, at most 300 characters.

    `noise` marks failures that say nothing of the work: a refusal by the user, a cancelled sibling, a file not read
    yet. `family` is what the tool does: run, edit, read, search, plan, delegate, web or other.
    """

    tool: str
    family: str
    ok: bool
    noise: bool = False
    summary: str = ""
    files: tuple[str, ...] = ()
    result: str = ""
    """The first 600 characters of what came back."""


class StackShown(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="stack_shown"):
    """A file showed what the project is built with: the packages that it imports; or it is a manifest (`manifest` says
    of what), with the project's `own` name there, the packages it depends on, and the commands it defines."""

    path: str
    imports: tuple[str, ...] = ()
    manifest: str = ""
    own: str = ""
    packages: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()


Proof = Literal["test", "check", "build"]


class CommandRan(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="command_ran"):
    """A shell command and how it ended. `head` is its canonical head (program and subcommand), paths left out."""

    command: str
    head: str
    ok: bool
    exit_code: int | None = None
    task: str = ""
    proofs: tuple[tuple[Proof, str], ...] = ()
    """The parts of it that test, check or build where the session works, as (which of these; as it was written)."""
    elsewhere: bool = False
    """Git worked in another place than the session: its commit says nothing of the project."""


class CommandTried(Identified, frozen=True, kw_only=True, omit_defaults=True, tag="command_tried"):
    """A call went well, was wrong in itself, or was replaced by one that went well (`domain.failures.known_commands`).

    It is asserted where it says something new of one of its `keys` in the session. `command` is the part that was
    called, on one line; `reason` and `message` say why it was wrong; `works` is the form that went well instead.
    `directory` is the name of the directory that `command`, or else `works`, ran in.
    """

    outcome: Literal["worked", "failed", "replaced"]
    keys: tuple[str, ...]
    command: str = ""
    reason: str = ""
    message: str = ""
    works: str = ""
    directory: str = ""
    failed: UUID | None = None
    """The failure that was replaced."""
    calls: int = 0
    """Uses of tools from that failure to the form that went well."""
    idle_us: int = 0
    """Microseconds between them in which nobody worked."""


class ErrorMet(Identified, frozen=True, kw_only=True, omit_defaults=True, tag="error_met"):
    """A failed output had these distinctive lines (`domain.failures.met_errors`), or something became of it.

    `met`: it came. `judged`: the agent said (`text`) that it was there before, or nobody's. `mended`: it came of what
    `text` says, `change` is the edit after which what had failed passed. `explained`: `text` says what it came of.
    `passed`: after it was judged, `command` went well instead. `failure` names the failure that all are of, `line` one
    of its lines.
    """

    outcome: Literal["met", "judged", "mended", "explained", "passed"]
    keys: tuple[str, ...]
    failure: UUID
    duration_us: int = 0
    """From the failure to this."""
    command: str = ""
    line: str = ""
    text: str = ""
    change: str = ""


class TestsRan(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="tests_ran"):
    """A test runner ran."""

    runner: str
    command: str
    passed: bool
    task: str = ""
    elsewhere: bool = False
    """It ran in another place than the session works in."""


class FileChanged(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="file_changed"):
    """An edit, a write or a patch that was applied. Lines counted from the patch where there is one."""

    path: str
    added: int = 0
    removed: int = 0
    created: bool = False
    before: str = ""
    after: str = ""
    """The first 600 characters of what was replaced, and of what stands there now."""
    symbols: tuple[str, ...] = ()
    """Functions and types that stand in `after`, at most 20."""
    task: str = ""


class PlanChanged(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="plan_changed"):
    """The agent's list of steps, as (status, text); status is pending, in_progress or completed."""

    steps: tuple[tuple[str, str], ...]
    task: str = ""


class ErrorOccurred(Identified, frozen=True, kw_only=True, omit_defaults=True, tag="error_occurred"):
    """An error worth remembering.

    `signature` is a hex digest of error types, message template and own-code frames; `template` the message with
    paths, numbers, hashes, quotes and addresses replaced; `message` the message as it was (at most 500 characters);
    `text` the excerpt that shows it (at most 1,500).
    """

    signature: str
    error_types: tuple[str, ...] = ()
    template: str = ""
    message: str = ""
    text: str = ""
    frames: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    code: str = ""
    """The line of source that the tool pointed at, where it showed one."""
    beside: tuple[str, ...] = ()
    """Signatures of the other errors of the same output."""
    tool: str = ""
    command: str = ""
    task: str = ""
    seen_before: bool = False
    """The same signature occurred earlier in this stream and was not resolved since."""


EXCERPT = 600
"""Characters of each side of an edit that are kept."""


class Edit(msgspec.Struct, frozen=True, omit_defaults=True):
    """One edit of a solution: at most `EXCERPT` characters of before and after."""

    path: str
    before: str = ""
    after: str = ""


class ErrorResolved(Identified, frozen=True, kw_only=True, omit_defaults=True, tag="error_resolved"):
    """After an error came changes, and what had failed then passed.

    `approach` says how in one line; `explanation` is what the agent said meanwhile (at most 1,500 characters);
    `command` is what passed; `duration_us` from the error to the passing run.
    """

    error: UUID
    signature: str
    message: str = ""
    """Of the error, on one line."""
    command: str = ""
    edits: tuple[Edit, ...] = ()
    ran: tuple[str, ...] = ()
    """Commands in between that changed something, or what was run instead of a wrong call."""
    explanation: str = ""
    approach: str = ""
    duration_us: int = 0
    idle_us: int = 0
    """Of these, those in which nobody worked."""
    calls: int = 0
    """Uses of tools from the error to the passing run."""
    tokens: int = 0
    """Tokens that were spent meanwhile."""
    task: str = ""
    part_of: UUID | None = None
    """Another error of the same run that the same change ended: the two are one fix."""
    instead: bool = False
    """It was called otherwise, or from elsewhere: a way out of that message and of no other."""


class ResolutionRefuted(Identified, frozen=True, kw_only=True, omit_defaults=True, tag="resolution_refuted"):
    """The same signature failed again soon after it seemed resolved."""

    resolution: UUID
    signature: str


TaskType = Literal["bugfix", "feature", "refactor", "test", "docs", "question", "review", "chore", "unknown"]
Outcome = Literal["success", "failure", "partial", "unknown"]


class KnowledgeNeeded(Identified, frozen=True, kw_only=True, omit_defaults=True, tag="knowledge_needed"):
    """The session needed what an earlier one may have left in memory.

    `place`: a file that it searched for, and then edited; `value`: a value that it searched for, and then used in a
    command or an edit; neither was named before, by the prompt or in the session.
    `subject` is the path within the project, or the value. `words` are the content words of what was asked. `calls`,
    `tokens` and `duration_us` lie between the prompt and the first sight of what was searched for. Evidence: the
    prompt, what showed it, and its use.
    """

    kind: Literal["place", "value"]
    subject: str
    words: tuple[str, ...] = ()
    searches: int = 0
    calls: int = 0
    tokens: int = 0
    duration_us: int = 0
    idle_us: int = 0
    """Of `duration_us`, while nobody worked."""


class KnowledgeHeld(Identified, frozen=True, kw_only=True, omit_defaults=True, tag="knowledge_held"):
    """What a turn left behind that a later session may need: the files that it worked on, at most 20, and the values
    that its answer names, at most 12. Where it left neither, nothing else is said of it.

    `turn` is the id of its `Turn`, `text` how its prompt begins, and `words` are at most 64 content words of all of it.
    Evidence: its last words, or the prompt.
    """

    turn: UUID
    text: str = ""
    files: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


class TaskOpened(Identified, frozen=True, kw_only=True, omit_defaults=True, tag="task_opened"):
    """A prompt asked for a piece of work. `task` is its canonical key; `canonical` makes it one across sessions."""

    task: str
    canonical: str
    description: str
    task_type: TaskType = "unknown"
    again: bool = False
    """It was reported before: these are other words for it, and it is not to be counted twice."""
    stated_by: Provenance | None = None
    """Who stated it; None where a prompt opened it."""


Recalled = Literal["none", "told", "withheld"]


class TaskClosed(Identified, frozen=True, kw_only=True, omit_defaults=True, tag="task_closed"):
    """The piece of work ended in this session: the next one began, or someone said it was done."""

    task: str
    canonical: str
    outcome: Outcome
    by: str
    """next_prompt, session_end or statement."""
    recalled: Recalled = "none"
    """Whether memory was injected for the agent during the task, or was held back where there was some."""


class MemoriesFollowed(Identified, frozen=True, kw_only=True, omit_defaults=True, tag="memories_followed"):
    """Memories were injected for an agent, and this is the outcome of the work that they were injected in. It is
    asserted when that work is over, or when the session ends."""

    memories: tuple[str, ...]
    outcome: Outcome


class ToolTally(msgspec.Struct, frozen=True, omit_defaults=True):
    """How often a tool was used, and how often it failed for reasons of its own."""

    tool: str
    uses: int
    failures: int = 0


class FilePatch(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an episode did to one file: lines added and removed over all its changes, and what in it, in words."""

    path: str
    added: int = 0
    removed: int = 0
    created: bool = False
    edits: int = 0
    description: str = ""


class Pivot(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where the work took another turn: `step` counts uses of tools (description at most 50 characters, reason 100)."""

    step: int
    description: str
    reason: str = ""


DecisionKind = Literal["choice", "cause", "finding"]
"""What was chosen, what had been wrong, or what an answer says that is worth keeping and is neither."""


class EpisodeDecision(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was settled in an episode. Who settled it stands in `said_by` alone, whatever the words claim."""

    text: str
    said_by: Provenance = Provenance.AGENT
    kind: DecisionKind = "choice"


class Episode(Identified, frozen=True, kw_only=True, omit_defaults=True, tag="episode"):
    """One task's work in one session, so far; final once `closed`. `occurred_at` is when it began.

    While it is open, the fact is revised as the work goes on: fold it only where a revision is cheap.
    """

    task: str
    canonical: str
    closed: bool
    description: str
    task_type: TaskType = "unknown"
    ended_at: Micros = Micros(0)
    steps: int = 0
    outcome: Outcome = "unknown"
    why: str = ""
    """The reason for the outcome, in words."""
    confidence: float = 0.0
    """How sure the outcome is, 0 to 1."""
    complexity: float = 0.0
    """0 to 1, from steps, files and errors."""
    files: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    error_types: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()
    resolved: tuple[str, ...] = ()
    tools: tuple[ToolTally, ...] = ()
    plan: tuple[str, ...] = ()
    plan_summary: str = ""
    """How many steps of the plan were done, and which were left; empty where there was none."""
    decisions: tuple[EpisodeDecision, ...] = ()
    pivots: tuple[Pivot, ...] = ()
    patches: tuple[FilePatch, ...] = ()
    lines_added: int = 0
    lines_removed: int = 0
    tests_passed: bool | None = None
    feedback: Literal["positive", "negative", "neutral"] = "neutral"
    problem: str = ""
    """What was wrong, where something was: the cause that was found, else the error that was spoken of or resolved."""
    solution: str = ""
    """What was done, in the agent's words."""
    gotchas: tuple[str, ...] = ()
    """Errors that came up, with what explained and resolved them, and errors that stayed."""
    tips: tuple[str, ...] = ()
    """What to do otherwise next time: the user's corrections, and commands that work in place of those that do not."""
    answer: str = ""
    """The agent's last words on it, at most 2,000 characters."""
    tokens: int = 0
    ended_by: str = ""
    """What ended the work: next_prompt, statement, session_end, commit or verdict (what the user said of it); empty
    while nothing did. What nobody touches for a day ends by silence, which who reads it knows."""
    recalled: Recalled = "none"
    """Whether memory was injected for the agent in it, or was held back where there was some."""
    threads: tuple[Thread, ...] = ()
    """What is left open, while it is the work that the session ends with."""
    elsewhere: tuple[str, ...] = ()
    """Other places that the session worked at meanwhile."""


class Lesson(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A strategy as one piece of work teaches it: when it helps (`title`, `description`), and what to do.

    `domain` is a kind of work; `from_failure` where it shows what to avoid; `key` is a rule's own name for it, equal
    for the same lesson of other work; `sessions` how many must show it before it is reported.
    """

    title: str
    description: str = ""
    content: str = ""
    domain: str = ""
    from_failure: bool = False
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.7
    key: str = ""
    sessions: int = 1


class StrategyShown(Identified, frozen=True, kw_only=True, omit_defaults=True, tag="strategy_shown"):
    """A piece of work taught something for others in its project: by rule, or as a model distilled it (`made_by`)."""

    lesson: Lesson
    made_by: str = ""


class DecisionTaken(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="decision_taken"):
    """The agent or the user settled on something: chose a way, or found a cause (a hypothesis that was confirmed).

    `stated` decisions were recorded as such; others a rule read out of somebody's words.
    """

    text: str
    rationale: str = ""
    said_by: Provenance = Provenance.AGENT
    kind: DecisionKind = "choice"
    alternatives: tuple[str, ...] = ()
    stated: bool = False
    task: str = ""


class HypothesisMoved(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="hypothesis_moved"):
    """A hypothesis as it stands after another word on it.

    `hypothesis` is equal for the same description; confirmed at 0.9 or more and rejected ones are open no more.
    """

    hypothesis: str
    text: str
    status: Literal["proposed", "supported", "confirmed", "rejected"]
    confidence: float
    said_by: Provenance = Provenance.AGENT
    told: int = 1
    """How often it was spoken of."""
    task: str = ""


class Discovered(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="discovered"):
    """Somebody recorded something found out."""

    text: str
    kind: str = "fact"
    said_by: Provenance = Provenance.AGENT
    task: str = ""


class Summarized(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="summarized"):
    """A summary of the session was recorded."""

    summary: str
    tags: tuple[str, ...] = ()


InsightKind = Literal["preference", "pattern", "expertise", "fact", "profile"]


class InsightFound(Identified, frozen=True, kw_only=True, omit_defaults=True, tag="insight_found"):
    """A claim that a rule read out of somebody's words. `evidence[0]` is the quote it stands on.

    `canonical` is equal for the same claim; `subject` for claims that can contradict each other; `polarity` is +1 for
    do and -1 for do not, 0 where neither is meant.
    """

    kind: InsightKind
    text: str
    canonical: str
    subject: str
    confidence: float
    said_by: Provenance
    polarity: int = 0
    rule: str = ""
    """Which rule found it."""
    everywhere: bool = False
    """Said of the person, not of the project."""
    proved: bool = False
    """A command that passed shows it."""
    denied: bool = False
    """The session showed the contrary: it speaks against the claim, and makes none."""
    files: tuple[str, ...] = ()
    """Files that it is about."""
    member: str = ""
    """Of the team, who said it."""


class FileTouched(Identified, frozen=True, kw_only=True, omit_defaults=True, tag="file_touched"):
    """A file was changed that the session had not changed before. Asserted once for a file, for at most 60 files."""

    path: str


class SectionWritten(Identified, frozen=True, kw_only=True, omit_defaults=True, tag="section_written"):
    """A section of a document that the agent wrote for those who come later, at most 1,800 characters. Written or
    edited again in the session, the newest text counts: none where it was taken out. `names` are the files that it
    names, at most 12."""

    path: str
    heading: str = ""
    text: str = ""
    names: tuple[str, ...] = ()


def _leaves(cls: type[Fact]) -> list[type[Fact]]:
    found = []
    for sub in cls.__subclasses__():
        found.extend(_leaves(sub) or [sub])
    return found


FACT_TYPES: dict[str, type[Fact]] = {
    cast(str, cls.__struct_config__.tag): cls for cls in sorted(_leaves(Fact), key=lambda cls: cls.__name__)
}
"""Fact classes by their tag, which the store keeps as the fact's type."""

TAGS: dict[type[Fact], str] = {cls: tag for tag, cls in FACT_TYPES.items()}


def fact_type(fact: Fact) -> str:
    """The tag of a fact."""
    return cast(str, fact.__struct_config__.tag)
