"""Each session: who worked where and when, and how much of what (seed 000 §2, seed 002 §3)."""

from __future__ import annotations

import hashlib
from typing import assert_never

import msgspec

from memctl.domain.bounded import clipped, one_line
from memctl.domain.facts import (
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
    TaskOpened,
    TestsRan,
    TokensSpent,
    ToolUsed,
)
from memctl.projections.kernel import projection

LOCATIONS, PATHS = 8, 2_000
"""How many working directories a row names, and how many changed files it tells apart."""


class Session(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
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
    summary: str = ""
    """The agent's last words, at most 600 characters, until a recorded summary takes their place."""
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
    """Digests of the paths of changed files, which tell the distinct ones."""


Told = (
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
)


def _stream(fact: Fact) -> str:
    return fact.stream


@projection(
    row=Session,
    key=_stream,
    stage=1,
    indexes=(("location", "last_at"), ("agent", "last_at"), ("last_at",), ("started_at",)),
)
def sessions(row: Session | None, fact: Told) -> Session:
    """Each session: agent, place, times, and counts."""
    if row is None:
        row = Session(
            stream=fact.stream,
            agent=fact.agent,
            session_id=fact.session_id,
            location=fact.location,
            started_at=fact.occurred_at,
        )
    seen: dict[str, object] = {"last_at": max(row.last_at, fact.occurred_at)}
    if fact.location and fact.location not in row.locations and len(row.locations) < LOCATIONS:
        seen["locations"] = (*row.locations, fact.location)
        seen["location"] = row.location or fact.location
    match fact:
        case TokensSpent():
            seen.update(
                tokens_in=row.tokens_in + fact.tokens_in,
                tokens_out=row.tokens_out + fact.tokens_out,
                tokens_cached=row.tokens_cached + fact.tokens_cached,
            )
        case ToolUsed():
            seen.update(
                tool_calls=row.tool_calls + 1,
                tool_failures=row.tool_failures + (not fact.ok and not fact.noise),
                patches_proposed=row.patches_proposed + (fact.family == "edit"),
            )
        case Answered():
            seen.update(answers=row.answers + 1)
            if not fact.subagent:
                seen.update(summary=clipped(fact.text, 600), model=fact.model or row.model)
        case CommandRan():
            seen.update(commands=row.commands + 1)
        case FileChanged():
            digest = hashlib.sha256(fact.path.encode("utf-8", "surrogatepass")).hexdigest()[:12]
            if digest not in row.changed and len(row.changed) < PATHS:
                seen.update(changed=(*row.changed, digest), files_changed=row.files_changed + 1)
            seen.update(
                patches_applied=row.patches_applied + 1,
                lines_added=row.lines_added + fact.added,
                lines_removed=row.lines_removed + fact.removed,
            )
        case Prompted():
            if fact.kind != "command":
                seen.update(prompts=row.prompts + 1, corrections=row.corrections + (fact.kind == "correction"))
                seen.update(first_prompt=row.first_prompt or one_line(fact.text, 300))
        case ErrorOccurred():
            seen.update(errors=row.errors + 1)
        case TestsRan():
            seen.update(test_runs=row.test_runs + 1)
        case ErrorResolved():
            seen.update(fixes=row.fixes + 1)
        case SessionOpened():
            # The first sign of life of a session that began unseen has no source: what follows may name it.
            seen.update(
                starts=max(row.starts + bool(fact.source), 1),
                ended_at=None,
                end_reason="",
                branch=fact.branch or row.branch,
                model=fact.model or row.model,
                agent_version=fact.agent_version or row.agent_version,
                repository=fact.repository or row.repository,
                title=fact.title or row.title,
            )
        case TaskOpened():
            seen.update(tasks=row.tasks + 1)
        case SessionTitled():
            seen.update(title=clipped(fact.title, 300))
        case SessionClosed():
            seen.update(ended_at=fact.occurred_at, end_reason=fact.reason)
        case _:
            assert_never(fact)
    return msgspec.structs.replace(row, **seen)
