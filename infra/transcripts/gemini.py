"""Gemini CLI chats under `~/.gemini/tmp/<project>/chats`: one JSON document, since 2026 JSONL; messages with ids.

A message is written again each time it grows (tokens, calls, results), under its id. Not kept: `info` and `warning`,
which are the client's own talk, `$set` (times, and the whole history once more) but for a summary, and `$rewindTo`.
The project is named by the digest of its path; `.project_root`, or an absolute path in a call, gives the path away.
"""

import hashlib
from pathlib import Path
from typing import Any

from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.event_order import text_digest
from memctl.domain.events.observations import Agent, SessionStarted
from memctl.domain.language.prompts import REFERENCED
from memctl.domain.support import patterns
from memctl.domain.support.location import normalise
from memctl.domain.support.provenance import CLIENT
from memctl.infra.files import read_file
from memctl.infra.transcripts.command_files import is_expanded
from memctl.infra.transcripts.fields import count, identifier, items, kind, mapping, micros, string
from memctl.infra.transcripts.formats import Line, Session, Unreadable, decoded, exit_code_of, token_counts
from memctl.infra.transcripts.patches import hunks_of

_OF_HOOKS = patterns.compile(r"\s*<hook_context>.*?</hook_context>\s*", patterns.S)
"""What hooks inject: the client puts it before or behind the user's words (its own `<` and `>` escaped)."""

_EXIT_CODE = patterns.compile(r"^Exit Code: (-?\d{1,10})\b", patterns.M)
_CANCELLED = patterns.compile(r"(?:Request|Operation|Turn) (?:was )?cancel", patterns.I)
_ABSOLUTE = patterns.compile(r"/[^\s\"'`]+")
_DEEPEST, _MOST_FOLDERS = 64, 10_000
"""Folders above a path that may be the project's, and all that are looked at in one chat, some tenths of a second."""


class GeminiLines:
    """The reader of a chat in lines. It keeps what the first line said."""

    agent: Agent = "gemini-cli"
    context: tuple[bytes, ...] = (b'"projectHash"',)

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._session = Session("gemini-cli")
        self._project = ""
        self._looks = _MOST_FOLDERS

    def recognises(self, record: dict[str, Any]) -> bool:
        return "$set" in record or "$rewindTo" in record or "projectHash" in record or "type" in record

    def read(self, record: dict[str, Any], place: str) -> list[NewEvent] | str:
        if "projectHash" in record and "sessionId" in record:
            return self._start(record)
        if not self._session.id:
            raise Unreadable("no sessionId in front of it")
        if "$set" in record:
            changed = mapping(record.get("$set"))
            line = self._line("summary", changed.get("lastUpdated"))
            self._summarise(string(changed.get("summary")), line)
            return line.events or kind("$set")
        if "$rewindTo" in record:
            return kind("$rewindTo")
        return self._message(record, place)

    def _start(self, record: dict[str, Any]) -> list[NewEvent]:
        session, id = self._session, identifier(record.get("sessionId"))
        if not id:
            raise Unreadable("names no session")
        self._project = string(record.get("projectHash"))
        session.location = session.location or _root_beside(self._path)
        if record.get("kind") == "subagent":
            # Its file lies in a folder that is named for the session that asked for it.
            session.subagent = id
            folder = self._path.parent.name if self._path else ""
            id = identifier(folder) if folder not in ("", "chats") else id
        session.id = id
        if session.subagent:
            line = self._line(f"start:{session.subagent}", record.get("startTime"))
            line.noticed("subagent-started")
            return line.events
        line, summary = self._line("start", record.get("startTime")), self._line("summary", record.get("lastUpdated"))
        line.add(SessionStarted(source="startup", **line.fields))
        self._summarise(string(record.get("summary")), summary)
        return line.events + summary.events

    def _line(self, id: str, moment: Any, *, model: str = "") -> Line:
        return Line(self._session, id, micros(moment), model=model)

    def _summarise(self, text: str, line: Line) -> None:
        if text and not self._session.subagent:
            line.noticed("title", text)

    def _message(self, record: dict[str, Any], place: str) -> list[NewEvent] | str:
        id = identifier(record.get("id")) or place
        line = self._line(id, record.get("timestamp"), model=string(record.get("model")))
        match record.get("type"):
            case "user":
                text, images = _prompt(record)
                if not text and not images:
                    return kind("user", "empty")
                sent = _sent(record)
                expanded = not sent and is_expanded(text, self._session.location, self.agent, line.at)
                line.actor = CLIENT if expanded and not self._session.subagent else ""
                line.prompted(text, images=images)
                if sent and text_digest(sent) != text_digest(text):
                    # A hook reports a command as the text that it becomes: then this says that the client wrote it.
                    line.prompted(sent, meta=True, block=1)
            case "gemini":
                self._answer(record, line)
                return line.events or kind("gemini", "empty")
            case "error":
                line.noticed("api-error", _text(record.get("content")))
            case "info" if _CANCELLED.search(text := _text(record.get("content"))):
                line.noticed("interrupted", text)
            case type:
                return kind(type)
        return line.events

    def _answer(self, record: dict[str, Any], line: Line) -> None:
        """Block 0 is the thoughts, 1 the text, 2 the tokens; then call and outcome in turn: a message that grows
        keeps the blocks it had.
        """
        content = record.get("content")
        # Newer versions repeat the thoughts as parts of the content.
        thoughts = [_thought(mapping(each)) for each in items(record.get("thoughts"))]
        if thought := "\n\n".join(filter(None, thoughts)) or _text(content, thought=True):
            line.said(thought, thinking=True)
        line.said(_text(content).strip(), block=1)
        tokens = mapping(record.get("tokens"))
        if any(count(tokens.get(name)) for name in ("input", "output", "cached")):
            cached = count(tokens.get("cached"))
            data = token_counts(
                taken=max(0, count(tokens.get("input")) - cached),
                given=count(tokens.get("output")) + count(tokens.get("thoughts")),
                cached=cached,
            )
            line.noticed("tokens", data=data, block=2)
        for index, call in enumerate(map(mapping, items(record.get("toolCalls")))):
            at = micros(string(call.get("timestamp")) or record.get("timestamp"))
            given = mapping(call.get("args"))
            self._locate(given)
            tool, id = string(call.get("name")), identifier(call.get("id")) or f"{line.fields['line']}.{index}"
            line.called(tool, id, given, block=3 + 2 * index, at=at)
            _answered(call, id, 4 + 2 * index, at, line)

    def _locate(self, given: dict[str, Any]) -> None:
        """Of an absolute path's folders, the one whose digest is the project's is where it lies."""
        if self._session.location or not self._project:
            return
        for value in given.values():
            for path in _ABSOLUTE.findall(value[:4000])[:20] if isinstance(value, str) else ():
                for folder in (path, *map(str, Path(path).parents[:_DEEPEST])):
                    self._looks -= 1
                    if self._looks < 0:
                        return
                    if hashlib.sha256(folder.encode("utf-8", "replace")).hexdigest() == self._project:
                        self._session.location = normalise(folder)
                        return


class GeminiDocument(GeminiLines):
    """The reader of a chat in one document: what is a line in the newer form, is a record here."""

    def split(self, data: bytes) -> list[Any]:
        chat = decoded(data)
        return [{name: value for name, value in chat.items() if name != "messages"}, *items(chat.get("messages"))]

    def read(self, record: Any, place: str) -> list[NewEvent] | str:
        if not isinstance(record, dict):
            raise Unreadable(f"not an object but {type(record).__name__}")
        return super().read(record, place)


def _root_beside(path: Path | None) -> str:
    """What `.project_root` in the project's folder says, some levels above the chat."""
    for folder in list(path.parents)[1:3] if path else ():
        try:
            return normalise(read_file(folder / ".project_root", 4096).decode("utf-8").rstrip("\r\n"))
        except (OSError, ValueError):
            continue
    return ""


def typed(text: str) -> str:
    """Of a prompt as the client sends it, what the user typed: without what hooks injected, memory's own included, and
    without the files that it names, behind which the client adds nothing of the user's."""
    words, added, _ = _OF_HOOKS.sub("", text).partition(REFERENCED)
    return words.rstrip() if added else words


def _prompt(record: dict[str, Any]) -> tuple[str, int]:
    """What the user typed, and how many images came with it."""
    shown = _text(record.get("displayContent"))
    text = typed(shown or _text(record.get("content")))
    parts = [mapping(part) for part in items(record.get("content"))]
    return text, sum("inlineData" in part or "fileData" in part for part in parts)


def _sent(record: dict[str, Any]) -> str:
    """The text that was sent in place of what is shown, as a hook reports it; empty where both are the same."""
    parts = items(record.get("content")) if record.get("displayContent") else ()
    return typed("".join(_text(part) for part in parts))


def _text(content: Any, *, thought: bool = False) -> str:
    """The text of a string, a part, or a list of parts: of what was said, or of parts that are thoughts."""
    if isinstance(content, str):
        return "" if thought else content
    found = []
    for part in items(content) or [content]:
        thinks = mapping(part).get("thought") is True
        text = part if isinstance(part, str) else string(mapping(part).get("text"))
        if text and thinks == thought:
            found.append(text)
    return "\n".join(found)


def _thought(thought: dict[str, Any]) -> str:
    return "\n".join(filter(None, (string(thought.get("subject")), string(thought.get("description")))))


def _answered(call: dict[str, Any], id: str, block: int, at: Micros, line: Line) -> None:
    """What a call gave back; nothing while it runs."""
    status = call.get("status")
    if status not in ("success", "error", "cancelled"):
        return
    responses = [
        mapping(mapping(mapping(part).get("functionResponse")).get("response")) for part in items(call.get("result"))
    ]
    texts = [string(response.get("output")) or string(response.get("error")) for response in responses]
    shown = call.get("resultDisplay")
    text = "\n".join(filter(None, texts)) or string(shown)
    code = exit_code_of(_EXIT_CODE.search(text))
    given, diff = mapping(call.get("args")), string(mapping(shown).get("fileDiff"))
    line.answered(
        failed=status != "success" or code,
        text=text,
        tool=string(call.get("name")),
        call=id,
        exit_code=code,
        interrupted=status == "cancelled",
        file=string(given.get("file_path")) or string(given.get("absolute_path")),
        patch=hunks_of(diff),
        asked=identifier(call.get("agentId")),
        block=block,
        at=at,
    )
