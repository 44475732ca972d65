"""Each session: who worked where and when, and how much of what."""

from collections.abc import Sequence
from copy import copy
from typing import assert_never

import msgspec
from msgspec.structs import replace

from memctl.domain.events.facts import (
    Answered,
    CommandRan,
    ErrorOccurred,
    ErrorResolved,
    Fact,
    FileChanged,
    Prompted,
    SessionClosed,
    SessionOpened,
    SessionTitled,
    SubagentAsked,
    Summarized,
    TaskOpened,
    TestsRan,
    TokensSpent,
    ToolUsed,
)
from memctl.domain.language.tasks import titled
from memctl.domain.support.bounded import LOCATIONS, NARROW, clipped, one_line
from memctl.domain.support.text import digest_of
from memctl.projections.kernel import projection

PATHS, SUBAGENTS = 2_000, 32
"""How many distinct changed files a row counts, and how many subagents it lists."""


class Subagent(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A subagent of the session. `role` and `about` are what it was asked for; `ok` is None until it came back."""

    id: str
    role: str = ""
    about: str = ""
    ok: bool | None = None
    tool_calls: int = 0
    tool_failures: int = 0
    answers: int = 0
    duration_ms: int | None = None


class Session(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One session of one agent. Times in microseconds; `location` is where it began.

    `tool_failures` leaves out failures that say nothing of the work; `patches_proposed` counts edits that were asked
    for, `patches_applied` files that were changed; tokens as the client counted them.
    """

    stream: str
    agent: str
    session_id: str
    location: str = ""
    locations: tuple[str, ...] = ()
    branch: str = ""
    model: str = ""
    agent_version: str = ""
    repository: str = ""
    title: str = ""
    first_prompt: str = ""
    """The first words of the user, at most 300 characters."""
    last_prompt: str = ""
    """The last ones that ask for something, where they are others, at most 300 characters."""
    summary: str = ""
    """The agent's last words, at most 600 characters, until a recorded summary takes their place. Until then readers
    show a summary made by rule (`memctl.domain.language.brief`)."""
    summarized: bool = False
    tags: tuple[str, ...] = ()
    started_at: int = 0
    last_at: int = 0
    ended_at: int | None = None
    end_reason: str = ""
    starts: int = 0
    """How often it was started or taken up again."""
    prompts: int = 0
    corrections: int = 0
    answers: int = 0
    tool_calls: int = 0
    tool_failures: int = 0
    commands: int = 0
    test_runs: int = 0
    errors: int = 0
    fixes: int = 0
    patches_proposed: int = 0
    patches_applied: int = 0
    files_changed: int = 0
    lines_added: int = 0
    lines_removed: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    tasks: int = 0
    changed: tuple[str, ...] = ()
    """Digests of the paths of changed files. They show which files are distinct."""
    through: str = ""
    """The member through whose key it came. What another's key sends into it is none of its words and figures."""
    parent: str = ""
    """Id of the session that asked for this one, which is a subagent's."""
    subagents: tuple[Subagent, ...] = ()
    """The first 32 that worked for it; their work is counted in the session's figures, too."""


SessionFact = (
    SessionOpened
    | SessionClosed
    | SessionTitled
    | Prompted
    | Answered
    | ToolUsed
    | CommandRan
    | TestsRan
    | FileChanged
    | ErrorOccurred
    | ErrorResolved
    | TokensSpent
    | TaskOpened
    | SubagentAsked
    | Summarized
)


def _stream(fact: Fact) -> str:
    return fact.stream


@projection(
    row=Session,
    key=_stream,
    stage=1,
    indexes=(("location", "last_at"), ("agent", "last_at"), ("last_at",), ("started_at",)),
)
def sessions(row: Session | None, facts: Sequence[SessionFact]) -> Session:
    """Each session: agent, place, times, and counts."""
    first = facts[0]
    row = copy(row) or Session(
        stream=first.stream,
        agent=first.agent,
        session_id=first.session_id,
        location=first.location,
        started_at=first.occurred_at,
        last_at=first.occurred_at,
        through=first.through,
    )
    for fact in facts:
        # A summary may be recorded long after the session. Like a read, it does not extend the session.
        if fact.occurred_at > row.last_at and not isinstance(fact, Summarized):
            row.last_at = fact.occurred_at
        if fact.location and fact.location not in row.locations and len(row.locations) < LOCATIONS:
            row.locations = (*row.locations, fact.location)
            row.location = row.location or fact.location
        if fact.through in ("", row.through):
            _count(row, fact)
    _note_files(row, [fact for fact in facts if isinstance(fact, FileChanged) and fact.through in ("", row.through)])
    row.summary = clipped(row.summary, 600)
    return row


# A case for each kind of fact: the type checker sees that none is missing.
def _count(row: Session, fact: SessionFact) -> None:
    match fact:
        case TokensSpent():
            row.tokens_in += fact.tokens_in
            row.tokens_out += fact.tokens_out
            row.tokens_cached += fact.tokens_cached
        case ToolUsed():
            failed = not fact.ok and not fact.noise
            row.tool_calls += 1
            row.tool_failures += failed
            row.patches_proposed += fact.family == "edit"
            if fact.subagent:
                was = _subagent(row, fact.subagent)
                _enter(row, replace(was, tool_calls=was.tool_calls + 1, tool_failures=was.tool_failures + failed))
        case Answered():
            _answered(row, fact)
        case CommandRan():
            row.commands += 1
        case FileChanged():
            row.patches_applied += 1
            row.lines_added += fact.added
            row.lines_removed += fact.removed
        case Prompted():
            _prompted(row, fact)
        case ErrorOccurred():
            row.errors += 1
        case TestsRan():
            row.test_runs += 1
        case ErrorResolved():
            row.fixes += 1
        case SessionOpened():
            _opened(row, fact)
        case TaskOpened():
            row.tasks += not fact.again
        case SubagentAsked():
            was = _subagent(row, fact.asked)
            _enter(row, replace(was, role=fact.role, about=fact.about, ok=fact.ok, duration_ms=fact.duration_ms))
        case Summarized():
            row.summary, row.summarized = clipped(fact.summary, 600), True
            row.tags = tuple(clipped(tag, 40) for tag in fact.tags[:12])
        case SessionTitled():
            row.title = clipped(titled(fact.title), 300)
        case SessionClosed():
            row.ended_at, row.end_reason = fact.occurred_at, _name(fact.reason)
        case _:
            assert_never(fact)


def _prompted(row: Session, fact: Prompted) -> None:
    if fact.kind != "command":
        row.prompts += 1
        row.corrections += fact.kind == "correction"
        said = one_line(titled(fact.text), 300)
        row.first_prompt = row.first_prompt or said
        if fact.kind != "thanks":
            row.last_prompt = said if said != row.first_prompt else ""


def _answered(row: Session, fact: Answered) -> None:
    row.answers += 1
    if fact.subagent:
        was = _subagent(row, fact.subagent)
        _enter(row, replace(was, answers=was.answers + 1))
        return
    if not row.summarized:
        row.summary = fact.text  # cut when all is folded
    row.model = _name(fact.model) or row.model


def _opened(row: Session, fact: SessionOpened) -> None:
    # The first sign of life of a session that began unseen has no source: what follows may name it.
    row.starts = max(row.starts + (fact.source not in ("", "compact")), 1)
    if not fact.still:
        row.ended_at, row.end_reason = None, ""
    row.branch = _name(fact.branch) or row.branch
    row.model = _name(fact.model) or row.model
    row.agent_version = _name(fact.agent_version) or row.agent_version
    row.repository = clipped(fact.repository, 400, NARROW) or row.repository
    row.title = clipped(titled(fact.title), 300) or row.title
    row.parent = _name(fact.parent) or row.parent


def _note_files(row: Session, changes: Sequence[FileChanged]) -> None:
    """Count the files that are changed for the first time."""
    if not changes:
        return
    known = dict.fromkeys(row.changed)
    for fact in changes:
        if len(known) < PATHS:
            known[digest_of(fact.path, 12)] = None
    row.changed, row.files_changed = tuple(known), row.files_changed + len(known) - len(row.changed)


def _name(text: str) -> str:
    return clipped(text, 200, NARROW)


def _subagent(row: Session, id: str) -> Subagent:
    id = _name(id)
    return next((known for known in row.subagents if known.id == id), Subagent(id))


def _enter(row: Session, subagent: Subagent) -> None:
    for index, known in enumerate(row.subagents):
        if known.id == subagent.id:
            row.subagents = (*row.subagents[:index], subagent, *row.subagents[index + 1 :])
            return
    # What a subagent's own session does is not listed in it once more.
    if len(row.subagents) < SUBAGENTS and subagent.id != row.session_id:
        row.subagents = (*row.subagents, subagent)
