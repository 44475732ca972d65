"""Write the sheet of a reading: what memory says at moments of sessions that it has not read, to be judged by a reader.

    python tests/eval/needed.py split SESSIONS TO                 # the first 70 % of each project, and the rest
    MEMCTL_DATA_DIR=… python tests/eval/reading.py TO/rest SHEET  # asked is a memctl that has read TO/memory

Moments are drawn by a hash of their event: prompts, failed tools, starts of sessions and of subagents. Each stands with
the transcript and line where it happened, so that the reader can look at what came before and after it, and with what
was injected, or that nothing was. How to judge is said in `docs/internals/evaluation/reading.md`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from sessions import FOLDER, Data

from memctl.api.assist.recall import Injection, recall
from memctl.api.reading.caller import OWNER
from memctl.api.reading.places import places_of
from memctl.api.reading.reader import Reader, Readers
from memctl.api.search.engine import Engine
from memctl.domain.events.event import Event
from memctl.domain.events.facts import Fact
from memctl.domain.events.observations import PromptSubmitted, SessionStarted, ToolCalled, ToolFailed
from memctl.infra.embedders import embedders_of
from memctl.infra.settings import load_settings
from memctl.projections.working_memory import WorkingMemory, working_memory

DRAWN = {"UserPromptSubmit": 40, "PostToolUseFailure": 40, "SessionStart": 12, "SubagentStart": 10}


class Moment(NamedTuple):
    """When a hook would have asked memory, with its payload in Claude Code's words."""

    hook: str
    event: Event
    payload: dict[str, Any]


def moments(events: Iterable[Event]) -> Iterator[Moment]:
    """Those of one session, in its order."""
    calls: dict[str, ToolCalled] = {}
    for event in sorted(events, key=lambda each: each.position):
        said = event.payload
        session = event.stream.split("/", 2)[2]
        about: dict[str, Any] = {"session_id": session, "cwd": event.location}
        if isinstance(said, PromptSubmitted) and not said.meta and not said.subagent:
            yield Moment("UserPromptSubmit", event, {**about, "prompt": said.text})
        elif isinstance(said, SessionStarted) and said.source in ("", "startup"):
            yield Moment("SessionStart", event, {**about, "source": "startup"})
        elif isinstance(said, ToolCalled):
            calls[said.call] = said
            task = said.input.get("prompt")
            if said.tool in ("Task", "Agent") and isinstance(task, str):
                yield Moment("SubagentStart", event, {**about, "prompt": task})
        elif isinstance(said, ToolFailed) and said.call in calls:
            call = calls[said.call]
            yield Moment(
                "PostToolUseFailure", event,
                {**about, "tool_name": call.tool, "tool_input": call.input, "error": said.text},
            )  # fmt: skip


def drawn(data: Data, draw: str = "") -> list[Moment]:
    """By hook, those whose events' hashes are lowest; at most two of a session. Another word draws others."""
    of_hook: dict[str, list[Moment]] = defaultdict(list)
    every = [each for events in data.streams.values() for each in moments(events)]
    for each in sorted(every, key=lambda each: _hash(draw, each)):
        same = [other for other in of_hook[each.hook] if other.event.stream == each.event.stream]
        if len(same) < 2 and len(of_hook[each.hook]) < DRAWN[each.hook]:
            of_hook[each.hook].append(each)
    return [each for hook in DRAWN for each in of_hook[hook]]


def _hash(draw: str, moment: Moment) -> bytes:
    return hashlib.sha256(f"{draw}{moment.event.event_id}".encode()).digest()


def before(facts: Iterable[Fact], at: int) -> WorkingMemory | None:
    """What was known of a session before a moment."""
    row: WorkingMemory | None = None
    for fact in sorted(facts, key=lambda each: each.occurred_at):
        if int(fact.occurred_at) < at and isinstance(fact, tuple(working_memory.facts)):
            row = working_memory(row, [fact])
    return row


def said_at(
    reader: Reader, engine: Engine, moment: Moment, session: WorkingMemory | None
) -> tuple[Injection, Injection]:  # fmt: skip
    """What was said before a tool ran that failed, and what the hook says then, nothing twice."""
    event = moment.event
    now, places = datetime.fromtimestamp(int(event.occurred_at) / 1e6, UTC), places_of(reader, None, event.location)
    first = Injection()
    if moment.hook == "PostToolUseFailure":
        first = recall(reader, engine, "PreToolUse", moment.payload, event.stream, places, now, session)
    said = recall(reader, engine, moment.hook, moment.payload, event.stream, places, now, session)
    again = {each.id for each in said.memories} & {each.id for each in first.memories}
    return first, Injection() if again else said


def sheet(reader: Reader, engine: Engine, data: Data, draw: str) -> Iterator[str]:
    for number, moment in enumerate(drawn(data, draw), 1):
        event, at = moment.event, int(moment.event.occurred_at)
        file, line = data.lines.get(event.dedupe_key, ("?", 0))
        first, said = said_at(reader, engine, moment, before(data.facts[event.stream], at))
        when = f"{datetime.fromtimestamp(at / 1e6, UTC):%Y-%m-%d %H:%M}"
        yield f"## {number}. {moment.hook}\n\n{file}, line {line}, {when}\n"
        about = {name: value for name, value in moment.payload.items() if name not in ("session_id", "cwd")}
        yield "```json\n" + json.dumps(about, ensure_ascii=False, indent=1)[:2_500] + "\n```\n"
        if first.text:
            yield f"Injected before the tool ran ({first.tokens} tokens):\n\n```\n{first.text}\n```\n"
        yield f"Injected ({said.tokens} tokens):\n\n```\n{said.text}\n```\n" if said.text else "Injected: nothing.\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rest", type=Path)
    parser.add_argument("sheet", type=Path)
    parser.add_argument("--draw", default="", help="any word: another one draws other moments")
    given = parser.parse_args()
    settings = load_settings()
    if settings.database_url is None:
        parser.error("no memctl runs here: `memctl up`, then `memctl ingest` the first part")
    readers = Readers(settings.database_url, settings.space)
    engine = Engine(settings.qdrant_url, settings.qdrant_api_key, embedders_of(settings))
    engine.warm_up(readers)
    try:
        data = Data(FOLDER, given.rest)
        assert data.facts, "folded before a transaction is open"
        lines = readers.read(lambda reader: list(sheet(reader, engine, data, given.draw)), OWNER)
        given.sheet.write_text("\n".join(lines), encoding="utf-8")
    finally:
        engine.close()
        readers.close()


if __name__ == "__main__":
    main()
