"""Copilot CLI sessions: JSONL under `~/.copilot/session-state`, each line `{type, data, id, timestamp, parentId}`.

`session.start` names the session, its directory and branch. Calls come twice, as `toolRequests` of the message and as
`tool.execution_start`: the request is kept (it is there for refused calls too). `hook.*`, `*.turn_*`, `permission.*`
and the system prompt are not kept. That prompt alone shows that nobody types: `copilot -p`.
"""

from pathlib import Path
from typing import Any

from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import Agent, ContextCompacted, SessionEnded, SessionStarted
from memctl.domain.support import patterns
from memctl.domain.support.location import normalise
from memctl.infra.transcripts.fields import count, identifier, items, joined, kind, mapping, micros, string
from memctl.infra.transcripts.formats import Line, Session, Spent, Unreadable, exit_code_of
from memctl.infra.transcripts.patches import hunks_of

_EXIT_CODE = patterns.compile(r"<(?:shellId: [^>\n]{1,40} completed|exited) with exit code (-?\d{1,10})>\s*\Z")
_TYPED = ("", "user", "immediate-prompt")
"""Where a message in the user's place comes from if the user typed it. Others are put there: skills, other agents,
instructions that were found, what makes the agent go on.
"""

_UNATTENDED = "You are running in non-interactive mode"
"""What the client says to the model, at the beginning of the system prompt, where a program asks."""

_BEGINNING = 500
"""Characters of a system prompt that may say so: what follows may quote a project's instructions."""

_OF_A_MODEL = ("assistant.message", "tool.execution_complete")
_PATCHED_FILE = patterns.compile(r"^\+\+\+ (?:b)?(/?[^\n\t]+)", patterns.M)


class Copilot:
    """The format's reader. It keeps what the session's start said."""

    agent: Agent = "copilot-cli"
    context: tuple[bytes, ...] = (
        b'"session.start"',
        b'"session.resume"',
        b'"session.context_changed"',
        b'"system.message"',
    )

    def __init__(self, path: Path | None = None) -> None:
        self._session = Session("copilot-cli")

    def recognises(self, record: dict[str, Any]) -> bool:
        return isinstance(record.get("type"), str) and isinstance(record.get("data"), dict) and "id" in record

    def read(self, record: dict[str, Any], place: str) -> list[NewEvent] | str:
        type, data = string(record.get("type")), mapping(record.get("data"))
        session = self._session
        if type == "session.start" and not session.id:
            session.id = identifier(data.get("sessionId"))
        if not session.id:
            raise Unreadable("no session.start in front of it")
        if type in ("session.start", "session.resume", "session.context_changed"):
            context = mapping(data.get("context")) or data
            session.agent_version = string(data.get("copilotVersion")) or session.agent_version
            session.location = normalise(string(context.get("cwd"))) or session.location
            session.branch = string(context.get("branch")) or session.branch
        if type == "system.message" and data.get("role") == "system":
            session.unattended = _UNATTENDED in string(data.get("content"))[:_BEGINNING]
        line = Line(
            session,
            identifier(record.get("id")) or place,
            micros(record.get("timestamp")),
            parent=identifier(record.get("parentId")),
            model=string(data.get("model")) if type in _OF_A_MODEL else "",
            subagent=identifier(data.get("parentToolCallId")),
        )
        _read(type, data, line)
        return line.events or kind(type)


def _read(type: str, data: dict[str, Any], line: Line) -> None:
    match type:
        case "session.start" | "session.resume":
            context = mapping(data.get("context"))
            source = "startup" if type == "session.start" else "resume"
            repository, commit = string(context.get("repository")), string(context.get("headCommit"))
            line.add(SessionStarted(source=source, repository=repository, commit=commit, **line.fields))
        case "session.shutdown":
            line.add(SessionEnded(reason=string(data.get("shutdownType")), **line.fields))
        case "session.compaction_complete":
            text, before = string(data.get("summaryContent")), count(data.get("preCompactionTokens"))
            line.add(ContextCompacted(text=text, tokens_before=before, **line.fields))
        case "session.error":
            line.noticed("api-error", string(data.get("message")))
        case "session.title_changed":
            line.noticed("title", string(data.get("title")))
        case "abort":
            line.noticed("interrupted", string(data.get("reason")))
        case "user.message":
            attachments = map(mapping, items(data.get("attachments")))
            images = sum("image" in string(each.get("mimeType") or each.get("type")) for each in attachments)
            text = string(data.get("content"))
            meta = string(data.get("source")) not in _TYPED or data.get("isAutopilotContinuation") is True
            if text or images:
                line.prompted(text, meta=meta, images=images)
        case "assistant.message":
            _message(data, line)
        case "tool.execution_complete":
            _answer(data, line)


def _message(data: dict[str, Any], line: Line) -> None:
    """Block 0 is the thought, block 1 the text, further blocks the calls, whether or not the others are there."""
    message = identifier(data.get("apiCallId") or data.get("messageId"))
    spent = Spent(message=message, tokens_out=count(data.get("outputTokens")))
    line.said(string(data.get("reasoningText")).strip(), thinking=True, **spent)
    line.said(string(data.get("content")).strip(), block=1, **spent)
    for block, request in enumerate(map(mapping, items(data.get("toolRequests"))), 2):
        tool, call = string(request.get("name")), identifier(request.get("toolCallId"))
        line.called(tool, call, mapping(request.get("arguments")), block=block, **spent)


def _answer(data: dict[str, Any], line: Line) -> None:
    result, error = mapping(data.get("result")), data.get("error")
    text = joined(result.get("content")) or string(mapping(error).get("message")) or string(error)
    code = exit_code_of(_EXIT_CODE.search(text[-200:]))
    details = string(result.get("detailedContent"))
    patch = hunks_of(details) if details.lstrip().startswith("diff --git ") else ()
    file = _PATCHED_FILE.search(details) if patch else None
    line.answered(
        failed=data.get("success") is False or code,
        text=text,
        call=identifier(data.get("toolCallId")),
        exit_code=code,
        file=file[1] if file else "",
        patch=patch,
    )
