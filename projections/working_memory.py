"""The live state of a session: what is being done, how far, with which files, what came back lately."""

from collections import deque
from collections.abc import Sequence
from copy import copy
from typing import TypeVar, assert_never

import msgspec

from memctl.domain.events.facts import (
    Answered,
    DecisionTaken,
    Discovered,
    Episode,
    ErrorOccurred,
    ErrorResolved,
    Fact,
    FileChanged,
    HypothesisMoved,
    InsightFound,
    Pivot,
    PlanChanged,
    Prompted,
    SessionClosed,
    SessionOpened,
    TaskClosed,
    TaskOpened,
    TokensSpent,
    ToolUsed,
)
from memctl.domain.events.open_threads import Thread
from memctl.domain.language.decisions import asks_again
from memctl.domain.language.hypotheses import CONFIRMED, OPEN
from memctl.domain.support import patterns
from memctl.domain.support.bounded import LOCATIONS, clipped, one_line
from memctl.domain.support.provenance import Provenance
from memctl.domain.support.remembered import remembered
from memctl.domain.support.text import canonical
from memctl.projections.kernel import projection

TOOL_RESULTS, ERRORS, DISCOVERIES = 10, 5, 10
"""Sizes of the ring buffers."""

FILES, SYMBOLS, DECISIONS, STEPS, DONE = 24, 24, 10, 30, 12
"""Files, symbols, decisions, steps of the plan, and steps done that a row keeps."""

DECISION = 860
"""Characters of a decision: a question, and all that was answered."""

_NAME = patterns.compile(r"(?:\\b)?(?:func |def |class |type )?([A-Za-z_]\w{3,60})(?:\\b|\\\(|\()?")
"""A search for one name: what it looks for is being worked with."""


class ActiveFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file in use. `state` is read, edited or created, `before` what it was until the last change of state.

    Lines added and removed in this session; `last_at` of the last access, in microseconds. `through` is the member
    through whose key the state came.
    """

    path: str
    state: str
    before: str = ""
    accesses: int = 1
    last_at: int = 0
    added: int = 0
    removed: int = 0
    through: str = ""


class ActiveSymbol(msgspec.Struct, frozen=True, omit_defaults=True):
    """A function or type in use: `state` is written (in an edit) or searched for; `file` where it is known."""

    name: str
    state: str
    file: str = ""
    uses: int = 1
    last_at: int = 0


class PlanStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """A step of the agent's plan; `status` is pending, in_progress or completed."""

    status: str
    text: str


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a use of a tool gave back, cut short."""

    at: int
    tool: str
    ok: bool
    summary: str = ""
    result: str = ""


class RecentError(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error, at which step of the task and with which files in use, and how it was resolved where it was."""

    at: int
    id: str
    signature: str
    message: str
    command: str = ""
    resolution: str = ""
    step: int = 0
    files: tuple[str, ...] = ()
    through: str = ""


class Noted(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something found out: a claim of the user's, how an error was resolved, or what somebody recorded."""

    at: int
    kind: str
    text: str
    said_by: Provenance = Provenance.AGENT
    through: str = ""


class OpenHypothesis(msgspec.Struct, frozen=True, omit_defaults=True):
    """A hypothesis that is open: proposed or supported, with its confidence (0 to 1) and how often it was mentioned."""

    at: int
    key: str
    text: str
    status: str
    confidence: float
    said_by: Provenance = Provenance.AGENT
    told: int = 1
    through: str = ""


class Snapshot(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was at hand at a moment: names of the files and symbols in use last, counts, and the step of the task."""

    step: int = 0
    files: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    hypotheses: int = 0
    decisions: int = 0


class Decided(msgspec.Struct, frozen=True, omit_defaults=True):
    """A decision with what was at hand then. `kind` is choice or cause (a hypothesis that was confirmed)."""

    at: int
    text: str
    rationale: str = ""
    said_by: Provenance = Provenance.AGENT
    kind: str = "choice"
    stated: bool = False
    alternatives: tuple[str, ...] = ()
    context: Snapshot = Snapshot()
    through: str = ""


class Stats(msgspec.Struct, frozen=True, omit_defaults=True):
    """Counts over the whole session. Tokens without those that came from a cache."""

    tool_calls: int = 0
    tokens_used: int = 0
    errors_encountered: int = 0
    patches_proposed: int = 0
    patches_applied: int = 0
    lines_added: int = 0
    lines_removed: int = 0


class WorkingMemory(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The state of one session now. Times in microseconds; lists newest last, each bounded."""

    stream: str
    location: str = ""
    locations: tuple[str, ...] = ()
    """Everywhere it worked: what is reported of it belongs to all these."""
    branch: str = ""
    started_at: int = 0
    updated_at: int = 0
    ended_at: int | None = None
    """None while the session goes on, or where its client does not report ends."""
    task: str = ""
    task_description: str = ""
    task_stated_by: Provenance | None = None
    task_through: str = ""
    """The member through whose key it came. Whoever knows a session's id may send things into it: none takes the place
    of what another brought."""
    task_type: str = ""
    task_status: str = ""
    """open or closed."""
    task_started_at: int = 0
    opened_by: str = ""
    """Id of the fact that opened the task."""
    outcome: str = ""
    """How the task stands, by the rule, and why."""
    why: str = ""
    last_prompt: str = ""
    prompt_through: str = ""
    by_user: bool = True
    """Whether the user gave that prompt, and no program or member."""
    alone: bool = True
    """Whether nothing of the client's stood beside it."""
    last_answer: str = ""
    steps: int = 0
    """Uses of tools in this task."""
    plan: tuple[PlanStep, ...] = ()
    plan_through: str = ""
    current: int = 0
    """Number of the step in progress, from 1; 0 where none is."""
    current_step: str = ""
    steps_done: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    files: tuple[ActiveFile, ...] = ()
    symbols: tuple[ActiveSymbol, ...] = ()
    hypotheses: tuple[OpenHypothesis, ...] = ()
    decisions: tuple[Decided, ...] = ()
    pivots: tuple[Pivot, ...] = ()
    threads: tuple[Thread, ...] = ()
    """What would be left open if the session ended now."""
    tool_results: tuple[ToolResult, ...] = ()
    errors: tuple[RecentError, ...] = ()
    discoveries: tuple[Noted, ...] = ()
    stats: Stats = Stats()


Other = (
    SessionOpened
    | SessionClosed
    | Prompted
    | Answered
    | TaskOpened
    | TaskClosed
    | Episode
    | FileChanged
    | PlanChanged
    | ErrorOccurred
    | ErrorResolved
    | HypothesisMoved
    | DecisionTaken
    | Discovered
    | InsightFound
)
SessionFact = ToolUsed | TokensSpent | Other


def _stream(fact: Fact) -> str:
    return fact.stream


@projection(row=WorkingMemory, key=_stream, stage=1, indexes=(("location", "updated_at"), ("updated_at",)))
def working_memory(row: WorkingMemory | None, facts: Sequence[SessionFact]) -> WorkingMemory:
    """The live state of each session: task, plan, files, hypotheses, decisions, recent results, errors, discoveries."""
    first = facts[0]
    row = copy(row) or WorkingMemory(stream=first.stream, started_at=first.occurred_at)
    results = deque[ToolResult | ToolUsed](row.tool_results, TOOL_RESULTS)
    uses = tokens = edits = 0
    answer: str | None = None
    for fact in facts:
        if fact.occurred_at > row.updated_at:
            row.updated_at = fact.occurred_at
        # An open episode is asserted at each batch's end, located where it began: the session may be elsewhere.
        if fact.location and fact.location != row.location and not isinstance(fact, Episode):
            _move(row, fact.location)
        if isinstance(fact, ToolUsed):
            row.steps += 1
            uses += 1
            results.append(fact)
            edits += fact.family == "edit"
            _look_up(row, fact)
        elif isinstance(fact, TokensSpent):
            tokens += fact.tokens_in + fact.tokens_out
        elif isinstance(fact, Answered):
            answer = answer if fact.subagent else fact.text  # cut when all is folded
        else:
            _take(row, fact)
    row.tool_results = tuple(_result(each) if isinstance(each, ToolUsed) else each for each in results)
    if answer is not None:
        row.last_answer = clipped(answer.strip(), 600)
    if uses or tokens:
        row.stats = _more(row.stats, tool_calls=uses, tokens_used=tokens, patches_proposed=edits)
    return row


def _more(stats: Stats, **counts: int) -> Stats:
    return msgspec.structs.replace(stats, **{name: getattr(stats, name) + count for name, count in counts.items()})


def _result(use: ToolUsed) -> ToolResult:
    # The summary stands on one line already.
    result = clipped(" ".join(use.result.split())[:300], 240)
    return ToolResult(use.occurred_at, clipped(use.tool, 60), use.ok, clipped(use.summary, 160), result)


def _move(row: WorkingMemory, location: str) -> None:
    row.location = location
    if location not in row.locations and len(row.locations) < LOCATIONS:
        row.locations = (*row.locations, location)


def _look_up(row: WorkingMemory, use: ToolUsed) -> None:
    """The files that a use of a tool read, and the name that it looked for."""
    if use.ok and use.family == "read":
        row.files = _accessed(row.files, use.files, "read", use.occurred_at)
    elif use.family == "search" and (name := _NAME.fullmatch(use.summary)):
        row.symbols = _used(row.symbols, (name[1],), "searched", "", use.occurred_at)


# A case for each kind of fact: the type checker sees that none is missing.
def _take(row: WorkingMemory, fact: Other) -> None:
    at = fact.occurred_at
    match fact:
        case SessionOpened():
            row.branch = clipped(fact.branch, 160) or row.branch
            if not fact.still:
                row.ended_at = None
        case SessionClosed():
            row.ended_at = at
        case FileChanged():
            state = "created" if fact.created else "edited"
            row.files = _accessed(row.files, (fact.path,), state, at, fact.added, fact.removed, fact.through)
            row.symbols = _used(row.symbols, fact.symbols, "written", fact.path, at)
            row.stats = _more(row.stats, patches_applied=1, lines_added=fact.added, lines_removed=fact.removed)
        case Prompted():
            _prompted(row, fact)
        case PlanChanged() if _may_replace(fact, row.plan, row.plan_through):
            _plan(row, fact)
        case TaskOpened():
            _begin(row, fact)
        case TaskClosed():
            if fact.task == row.task:
                row.task_status = "closed"
        case Episode():
            row.outcome, row.why, row.pivots = fact.outcome, clipped(fact.why, 240), fact.pivots
            row.threads = fact.threads
        case ErrorOccurred():
            _failed(row, fact)
        case ErrorResolved():
            _mended(row, fact)
        case HypothesisMoved():
            row.hypotheses = _with_hypothesis(row.hypotheses, fact)
        case DecisionTaken():
            row.decisions = _decided(row, fact)
        case InsightFound(denied=True):
            pass  # it showed the contrary
        case Discovered() | InsightFound():
            row.discoveries = _found(row, fact, fact.kind, fact.text, fact.said_by)
        case Answered() | PlanChanged():
            pass  # taken above
        case _:
            assert_never(fact)


def _may_replace(fact: Fact, held: object, through: str) -> bool:
    """Whether a fact may take the place of what is held and came through that key."""
    return not held or fact.through in ("", through)


def _prompted(row: WorkingMemory, fact: Prompted) -> None:
    if fact.kind != "command" and _may_replace(fact, row.last_prompt, row.prompt_through):
        row.last_prompt, row.by_user, row.alone = clipped(fact.text, 600), fact.by_user, fact.alone
        row.prompt_through = fact.through


def _plan(row: WorkingMemory, fact: PlanChanged) -> None:
    row.plan_through = fact.through
    row.plan = tuple(PlanStep(clipped(status, 40), one_line(text, 140)) for status, text in fact.steps[:STEPS])
    row.current = next((n for n, step in enumerate(row.plan, 1) if step.status == "in_progress"), 0)
    row.current_step = row.plan[row.current - 1].text if row.current else ""
    row.steps_done = tuple(one_line(s.text, 100) for s in row.plan if s.status == "completed")[-DONE:]
    row.pending = tuple(one_line(s.text, 100) for s in row.plan if s.status == "pending")[:DONE]


def _failed(row: WorkingMemory, fact: ErrorOccurred) -> None:
    error = RecentError(
        fact.occurred_at,
        str(fact.id),
        fact.signature,
        one_line(fact.message, 240),
        one_line(fact.command, 160),
        step=row.steps,
        files=_names(row.files),
        through=fact.through,
    )
    row.errors = _newest((*row.errors, error), ERRORS)
    row.stats = _more(row.stats, errors_encountered=1)


def _mended(row: WorkingMemory, fact: ErrorResolved) -> None:
    mended, how = str(fact.error), one_line(fact.approach, 240)
    row.errors = tuple(
        msgspec.structs.replace(error, resolution=how) if error.id == mended else error for error in row.errors
    )
    if fact.part_of is None:
        row.discoveries = _found(row, fact, "resolution", fact.approach)


def _begin(row: WorkingMemory, fact: TaskOpened) -> None:
    """Another task, or other words for the one that was just opened: those leave what was done in it."""
    again = row.task_status == "open" and str(fact.id) == row.opened_by
    row.opened_by = str(fact.id)
    row.task = fact.task
    row.task_description, row.task_stated_by = clipped(fact.description, 200), fact.stated_by
    row.task_through = fact.through
    row.task_type = fact.task_type
    row.task_status = "open"
    if again:
        return
    row.task_started_at = fact.occurred_at
    row.steps = row.current = 0
    row.plan, row.steps_done, row.pending = (), (), ()
    row.hypotheses, row.pivots, row.threads = (), (), ()
    row.current_step = row.outcome = row.why = ""


def _with_hypothesis(hypotheses: tuple[OpenHypothesis, ...], fact: HypothesisMoved) -> tuple[OpenHypothesis, ...]:
    """The open hypotheses after a word on one; confirmed and rejected ones leave."""
    others = tuple(held for held in hypotheses if held.key != fact.hypothesis)
    if not all(_may_replace(fact, held, held.through) for held in hypotheses if held.key == fact.hypothesis):
        return hypotheses
    if fact.status == "rejected" or (fact.status == "confirmed" and fact.confidence >= CONFIRMED):
        return others
    held = OpenHypothesis(
        fact.occurred_at,
        fact.hypothesis,
        one_line(fact.text, 240),
        fact.status,
        round(min(max(fact.confidence, 0.0), 1.0), 4) + 0.0,
        fact.said_by,
        fact.told,
        fact.through,
    )
    return _newest((*others, held), OPEN)


def _decided(row: WorkingMemory, fact: DecisionTaken) -> tuple[Decided, ...]:
    """The decisions with one more. The same one is kept once, as it was recorded where it was; what the user answers to
    a question takes the place of an earlier answer to it."""
    said = canonical(fact.text)
    heard = [each for each in row.decisions if each.through in ("", fact.through)]
    known = next((each for each in heard if said.startswith(_canonical(each.text))), None)
    if known is not None and (known.stated or not fact.stated):
        return row.decisions
    gone = [
        each
        for each in row.decisions
        if _may_replace(fact, each, each.through)
        and (
            each is known
            or (not (each.stated or fact.stated) and each.at < fact.occurred_at and asks_again(each.text, fact.text))
        )
    ]
    decided = Decided(
        fact.occurred_at,
        one_line(fact.text, DECISION),
        one_line(fact.rationale, 120),
        fact.said_by,
        fact.kind,
        fact.stated,
        tuple(one_line(other, 120) for other in fact.alternatives[:3]),
        Snapshot(
            row.steps,
            _names(row.files),
            tuple(symbol.name for symbol in row.symbols[-3:]),
            len(row.hypotheses),
            len(row.decisions),
        ),
        fact.through,
    )
    return _newest((*(each for each in row.decisions if each not in gone), decided), DECISIONS)


K = TypeVar("K", Decided, Noted, OpenHypothesis, RecentError)


def _newest(held: Sequence[K], most: int) -> tuple[K, ...]:
    """The newest of what this machine heard, and of what came through keys: neither pushes the other out."""
    kept = {
        n for keyed in (False, True) for n in [n for n, each in enumerate(held) if bool(each.through) is keyed][-most:]
    }
    return tuple(each for n, each in enumerate(held) if n in kept)


_canonical = remembered(256)(canonical)
"""A decision that is held is compared with each that comes."""


def _names(files: tuple[ActiveFile, ...]) -> tuple[str, ...]:
    """The names of the files in use last."""
    return tuple(clipped(file.path.rpartition("/")[2], 80) for file in files[-3:])


def _found(
    row: WorkingMemory, fact: Fact, kind: str, text: str, said_by: Provenance = Provenance.AGENT
) -> tuple[Noted, ...]:
    if not text:
        return row.discoveries
    noted = Noted(fact.occurred_at, clipped(kind, 40), one_line(text, 240), said_by, fact.through)
    others = [each for each in row.discoveries if each.text != noted.text or not _may_replace(fact, each, each.through)]
    return _newest((*others, noted), DISCOVERIES)


def _accessed(
    files: tuple[ActiveFile, ...],
    paths: tuple[str, ...],
    state: str,
    at: int,
    added: int = 0,
    removed: int = 0,
    through: str = "",
) -> tuple[ActiveFile, ...]:
    """The files in use after an access: the latest last, the longest unused pushed out."""
    kept = list(files)
    for path in paths[:20]:
        path = clipped(path, 160)
        known = next((file for file in kept if file.path == path), None)
        if known is None:
            kept.append(ActiveFile(path, state, "", 1, at, added, removed, through))
            continue
        kept.remove(known)
        # Reading what was edited leaves it edited.
        now = known.state if state == "read" else state
        before = known.before if now == known.state else known.state
        lines = known.added + added, known.removed + removed
        by = known.through if now == known.state and (through or state == "read") else through
        kept.append(ActiveFile(path, now, before, known.accesses + 1, at, *lines, by))
    return tuple(kept[-FILES:])


def _used(
    symbols: tuple[ActiveSymbol, ...], names: tuple[str, ...], state: str, file: str, at: int
) -> tuple[ActiveSymbol, ...]:
    """The symbols in use after these, the latest last. What was written stays written when it is looked for."""
    if not names:
        return symbols
    kept = {symbol.name: symbol for symbol in symbols}
    for name in names[:SYMBOLS]:
        name = clipped(name, 80)
        known = kept.pop(name, None)
        if known is None:
            kept[name] = ActiveSymbol(name, state, clipped(file, 160), 1, at)
        else:
            now = known.state if state == "searched" else state
            kept[name] = ActiveSymbol(name, now, clipped(file, 160) or known.file, known.uses + 1, at)
    return tuple(list(kept.values())[-SYMBOLS:])
