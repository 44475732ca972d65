"""The hook payloads that Claude Code would have sent for a session that its transcript tells.

Made from the transcript's own lines, never from what memctl reads out of them, so that what comes of both can be
compared. A hook runs when the thing it tells of has happened and before the client writes the line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

Record = dict[str, Any]

JUST_BEFORE_S = 0.003
"""A hook runs so long before the client writes its line."""

_NOT_TYPED = ("<", "[Request interrupted", "Caveat: ")
_REFUSED = ("The user doesn't want to", "The agent's", "[Request interrupted")


class Sent(NamedTuple):
    """One payload, and when its hook ran, in microseconds since 1970."""

    at: int
    payload: Record


def sent_for(transcripts: Sequence[Path]) -> list[Sent]:
    """The payloads for transcripts of Claude Code, in order of each file; nothing for other clients' files.

    What two files tell, copies of one session, happened once.
    """
    sessions: dict[str, tuple[Path, dict[str, Record]]] = {}
    for transcript in transcripts:
        for number, record in enumerate(_records(transcript)):
            if session := record.get("sessionId"):
                _, records = sessions.setdefault(session, (transcript, {}))
                records.setdefault(record.get("uuid") or f"{transcript}:{number}", record)
    sent: list[Sent] = []
    for session, (transcript, records) in sessions.items():
        if any(record.get("type") == "user" for record in records.values()):
            sent.extend(_Playing(transcript, session).all(list(records.values())))
    return sent


class _Playing:
    def __init__(self, transcript: Path, session: str) -> None:
        self._common = {"session_id": session, "transcript_path": str(transcript)}
        self._cwd = ""
        self._at = 0
        self._asked: dict[str, Record] = {}
        self._said = ""
        """The agent's last words since the last prompt."""
        self._starts: set[str] = set()

    def all(self, records: list[Record]) -> Iterator[Sent]:
        self._cwd = next((record["cwd"] for record in records if record.get("cwd")), "/")
        self._at = min(filter(None, map(_moment, records)), default=1)
        if not any(map(_start, records)):
            yield self._sent("SessionStart", source="startup", model="claude-test")
        for record in records:
            if start := _start(record):
                self._at = _moment(record)
                yield from self._started(*start)
                continue
            inner = (record.get("data") or {}).get("message") if record.get("type") == "progress" else None
            subagent = str((record.get("data") or {}).get("agentId") or "") if isinstance(inner, dict) else ""
            line = inner if isinstance(inner, dict) and subagent else record
            self._at = _moment(line) or self._at
            self._cwd = record.get("cwd") or self._cwd
            if line.get("type") == "user":
                yield from self._user(line, subagent)
            elif line.get("type") == "assistant":
                yield from self._assistant(line, subagent)
            elif line.get("subtype") == "compact_boundary":
                trigger = line.get("compactMetadata", {}).get("trigger", "auto")
                yield self._sent("PreCompact", trigger=trigger, custom_instructions="")
        yield from self._stopped()
        yield self._sent("SessionEnd", reason="other")

    def _started(self, run: str, source: str) -> Iterator[Sent]:
        """One start, of which each of the user's own hooks leaves a line."""
        if run not in self._starts:
            self._starts.add(run)
            yield self._sent("SessionStart", source=source, model="claude-test")

    def _user(self, line: Record, subagent: str) -> Iterator[Sent]:
        content = line.get("message", {}).get("content")
        if line.get("isCompactSummary") or line.get("isMeta") or line.get("isSidechain"):
            return
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        for block in blocks:
            if block.get("type") == "tool_result":
                yield from self._came_back(block, line.get("toolUseResult"), subagent)
            elif block.get("type") == "text" and not subagent and not block["text"].startswith(_NOT_TYPED):
                yield from self._stopped()
                yield self._sent("UserPromptSubmit", prompt=block["text"], permission_mode="default")

    def _came_back(self, block: Record, details: Any, subagent: str) -> Iterator[Sent]:
        asked = self._asked.pop(block.get("tool_use_id", ""), None)
        text = _text(block.get("content"))
        if asked is None or text.startswith(_REFUSED):
            return
        more: Record = {"permission_mode": "default", **asked}
        if subagent:
            more |= {"agent_id": subagent, "agent_type": "general-purpose"}
        if block.get("is_error"):
            yield self._sent("PostToolUseFailure", error=text[:10_000], is_interrupt=False, **more)
        else:
            yield self._sent("PostToolUse", tool_response=details if details is not None else text, **more)

    def _assistant(self, line: Record, subagent: str) -> Iterator[Sent]:
        if line.get("isApiErrorMessage"):
            self._said = ""
            yield self._sent("StopFailure", error="server_error", last_assistant_message="API Error: 500")
            return
        for block in line.get("message", {}).get("content") or []:
            if not isinstance(block, dict):
                continue
            if block.get("type") == "tool_use":
                self._asked[block["id"]] = {
                    "tool_name": block["name"],
                    "tool_input": block["input"],
                    "tool_use_id": block["id"],
                }
            elif block.get("type") == "text" and not subagent and block["text"].strip():
                self._said = block["text"].strip()

    def _stopped(self) -> Iterator[Sent]:
        if self._said:
            yield self._sent("Stop", stop_hook_active=False, last_assistant_message=self._said)
            self._said = ""

    def _sent(self, name: str, **fields: Any) -> Sent:
        at = self._at - int(JUST_BEFORE_S * 1e6)
        return Sent(at, {**self._common, "cwd": self._cwd, "hook_event_name": name, **fields})


def _start(record: Record) -> tuple[str, str] | None:
    """Which run of the hooks at a session's start a line is about, and why the session started."""
    hook = record.get("data") or record.get("attachment") or {}
    if not isinstance(hook, dict) or hook.get("hookEvent") != "SessionStart":
        return None
    run = record.get("parentToolUseID") or hook.get("toolUseID") or record.get("timestamp")
    return str(run), str(hook.get("hookName")).partition(":")[2]


def _records(transcript: Path) -> Iterator[Record]:
    for line in transcript.read_bytes().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


def _moment(record: Record) -> int:
    try:
        return int(datetime.fromisoformat(record["timestamp"]).timestamp() * 1e6)
    except (KeyError, TypeError, ValueError):
        return 0


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content or [] if isinstance(block, dict))
