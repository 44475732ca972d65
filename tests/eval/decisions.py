"""Ask for decisions by the bug reports that rest on them: what a hook injects, and what search finds first.

    MEMCTL_DATA_DIR=… python tests/eval/decisions.py FOLDER     # write the conversations as transcripts, to be ingested
    MEMCTL_DATA_DIR=… python tests/eval/decisions.py            # ask

The conversations are those of sde-bench (published data) in one project: 33 tasks that rest on a decision in a
conversation, 6 of them amended later, among 140 conversations about other things. A conversation is a session of its
own, a day after the one before it; the decoys come in between.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from published import FOLDER

from memctl.api.assist.recall import recall
from memctl.api.reading.caller import OWNER
from memctl.api.reading.places import places_of
from memctl.api.reading.reader import Reader, Readers
from memctl.api.search.engine import Engine, Question
from memctl.domain.language.prompts import words_in
from memctl.infra.embedders import embedders_of
from memctl.infra.settings import load_settings

BENCH = FOLDER / "sde-bench"
PLACE = "/work/boltons"
BEGAN = datetime(2026, 3, 2, 9, tzinfo=UTC)
ASKED = datetime(2026, 10, 1, 9, tzinfo=UTC)

ENOUGH = 10
"""Content words of a turn that settles something."""

HELD = 0.6
"""The share of a decision's content words that a block has to hold."""


class Task(NamedTuple):
    id: str
    report: str
    sessions: tuple[str, ...]
    """The decision's conversations, oldest first; the last one holds."""
    decided: str
    """The last turn of the last one that says enough."""


def conversations() -> list[tuple[str, list[dict[str, str]]]]:
    """Every conversation with the name of its session, decoys among them, in order of time."""
    decoys = json.loads((BENCH / "gen" / "decoy_conversations.json").read_text())
    first, last = [], []
    for number, decoy in enumerate(decoys):
        first.append((f"decoy-{number}", decoy["turns"]))
    for file in sorted(BENCH.glob("*/tasks/main/task.json")):
        task = json.loads(file.read_text())
        for number, turns in enumerate(chats_of(task)):
            (last if number else first).append((f"{task['task_id']}-{number}", turns))
    first.sort(key=lambda each: hash_of(each[0]))
    return [*first, *last]


def chats_of(task: dict[str, Any]) -> list[list[dict[str, str]]]:
    """The conversations of a task; one that is alone stands there by itself."""
    chats = task.get("conversations") or []
    return [chats] if chats and isinstance(chats[0], dict) else chats


def place_of(session: str) -> str:
    """The project of a session: decisions that were amended have one of their own, as each codebase has."""
    amended = "-amended-" in session or (session.startswith("decoy-") and int(session.split("-")[1]) % 2)
    return f"{PLACE}-amended" if amended else PLACE


def hash_of(name: str) -> str:
    import hashlib

    return hashlib.sha256(name.encode()).hexdigest()


def tasks() -> list[Task]:
    found = []
    for file in sorted(BENCH.glob("*/tasks/main/task.json")):
        task = json.loads(file.read_text())
        if chats := chats_of(task):
            names = tuple(f"{task['task_id']}-{number}" for number in range(len(chats)))
            settled = next(turn["text"] for turn in reversed(chats[-1]) if len(words_in(turn["text"])) >= ENOUGH)
            found.append(Task(task["task_id"], task["bug_report"], names, settled))
    return found


def write(folder: Path) -> None:
    """The conversations as Claude Code writes them."""
    folder.mkdir(parents=True, exist_ok=True)
    for day, (name, turns) in enumerate(conversations()):
        lines = []
        for number, turn in enumerate(turns):
            at = (BEGAN + timedelta(days=day, minutes=number)).isoformat().replace("+00:00", "Z")
            role = turn["role"]
            content: Any = turn["text"] if role == "user" else [{"type": "text", "text": turn["text"]}]
            lines.append(
                {
                    "type": role, "uuid": f"{name}-{number}", "sessionId": name, "timestamp": at, "cwd": place_of(name),
                    "message": {"role": role, "content": content, **({"id": f"m{number}"} if role != "user" else {})},
                }
            )  # fmt: skip
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def ask(reader: Reader, engine: Engine, verbose: bool) -> None:
    first = three = spoken = right = held = before = amended = tokens = 0
    asked = tasks()
    for task in asked:
        place = place_of(task.sessions[0])
        places = places_of(reader, place)
        found = engine.search(reader, Question(query=task.report, places=places, now=ASKED, limit=20)).results
        sessions = [next((e.source.session for e in each.evidence), "") for each in found]
        first += bool(sessions) and sessions[0] in task.sessions
        three += any(session in task.sessions for session in sessions[:3])
        payload: Any = {"prompt": task.report, "session_id": "asks", "cwd": place}
        said = recall(reader, engine, "UserPromptSubmit", payload, "session/claude-code/asks", places, ASKED)
        spoken += bool(said.text)
        tokens += said.tokens
        injected = {each.id for each in said.memories}
        right += any(each.id in injected and s in task.sessions for each, s in zip(found, sessions, strict=True))
        wanted = words_in(task.decided)
        share = len(wanted & words_in(said.text)) / len(wanted) if wanted else 0.0
        held += share >= HELD
        if len(task.sessions) > 1:
            amended += 1
            of = {each.id: name for each, name in zip(found, sessions, strict=True)}
            before += any(of.get(each.id) == task.sessions[-1] for each in said.memories[:1])
        if verbose and share < HELD:
            print(f"\n{task.id} holds {share:.2f}; sessions {sessions[:4]}")
            print(f"  {task.report}\n  {task.decided}\n  {said.text}")
    print(f"{len(asked)} tasks: right first {first}, in three {three}; spoken {spoken}, right {right}, holds {held};")
    print(f"the amendment said first {before} of {amended}; {tokens / len(asked):.0f} tokens a prompt")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    if given.folder:
        write(given.folder)
        return
    settings = load_settings()
    if settings.database_url is None:
        parser.error("no memctl runs here: `memctl up`, then `memctl ingest` the conversations")
    readers = Readers(settings.database_url, settings.space)
    engine = Engine(settings.qdrant_url, settings.qdrant_api_key, embedders_of(settings), settings.space)
    engine.warm_up(readers)
    try:
        readers.read(lambda reader: ask(reader, engine, given.verbose), OWNER)
    finally:
        engine.close()
        readers.close()


if __name__ == "__main__":
    main()
