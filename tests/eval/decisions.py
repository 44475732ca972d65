"""Ask for decisions by the bug reports that rest on them: what a hook injects, and what search finds first.

    MEMCTL_DATA_DIR=… python tests/eval/decisions.py FOLDER     # write the conversations as transcripts, to be ingested
    MEMCTL_DATA_DIR=… python tests/eval/decisions.py            # ask

With `--history` the 28 decisions that stand in commits: FOLDER then gets a repository beside the conversations, which
are the decoys alone. `--noise REPOSITORY` puts its commits between.

The conversations are those of sde-bench (published data) in one project: 33 tasks that rest on a decision in a
conversation, 6 of them amended later, among 140 conversations about other things. A conversation is a session of its
own, a day after the one before it; the decoys come in between.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import textwrap
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from published import FOLDER

from memctl.api.assist.recall import recall
from memctl.api.reading import models
from memctl.api.reading.caller import OWNER
from memctl.api.reading.pages import several
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
        write_session(folder, name, turns, day, place_of(name))


def write_session(folder: Path, name: str, turns: list[dict[str, str]], day: int, place: str) -> None:
    lines = []
    for number, turn in enumerate(turns):
        at = (BEGAN + timedelta(days=day, minutes=number)).isoformat().replace("+00:00", "Z")
        role = turn["role"]
        content: Any = turn["text"] if role == "user" else [{"type": "text", "text": turn["text"]}]
        lines.append(
            {
                "type": role, "uuid": f"{name}-{number}", "sessionId": name, "timestamp": at, "cwd": place,
                "message": {"role": role, "content": content, **({"id": f"m{number}"} if role != "user" else {})},
            }
        )  # fmt: skip
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def histories() -> list[dict[str, Any]]:
    """The tasks that rest on a commit."""
    found = []
    for file in sorted(BENCH.glob("*/tasks/main/task.json")):
        task = json.loads(file.read_text())
        if task["source"] != "history":
            continue
        if "decision_subject" not in task:  # its messages stand in the program that builds it
            program = ast.parse((file.parents[2] / "build.py").read_text())
            calls = [node for node in ast.walk(program) if isinstance(node, ast.Call) and len(node.args) == 2]
            said = [one.value for call in calls if isinstance(one := call.args[1], ast.Constant)]
            messages = sorted((each for each in said if isinstance(each, str) and " " in each), key=len)
            task["decision_subject"], _, task["decision_rationale"] = messages[-1].partition("\n\n")
            task["cause_subject"] = next(each for each in messages if each.startswith("perf"))
        found.append(task)
    return found


def write_history(folder: Path, noise: Path | None) -> None:
    """One repository with every decision as a commit, each followed by the commit that lost it, and the decoys."""
    repository = folder / "boltons"
    steps: list[tuple[str, str, list[str]]] = []
    lost: list[tuple[str, str, list[str]]] = []
    for task in histories():
        steps.append((f"{task['decision_subject']}\n\n{textwrap.fill(task['decision_rationale'], 100)}", "decided",
                      [task["module"]]))  # fmt: skip
        lost.append((task["cause_subject"], "lost", [task["module"]]))
    others = commits_of(noise) if noise else []
    between = len(others) // (len(steps) + 1)
    made = [step for number, one in enumerate(steps) for step in (*others[number * between :][:between], one)]
    repository.mkdir(parents=True)
    run(repository, "init", "-q", "-b", "main")
    stream = ["reset refs/heads/main\n"]
    for number, (message, content, files) in enumerate([*made, *others[between * len(steps) :], *lost]):
        at = int(BEGAN.timestamp()) - 86_400 * 400 + number * 3_600
        stream += ["commit refs/heads/main\n", f"committer P <p@example.com> {at} +0000\n", data(message)]
        stream += [f"M 100644 inline {json.dumps(file)}\n{data(f'{content} {number}')}" for file in files[:20]]
    run(repository, "fast-import", "--quiet", given="".join(stream))
    decoys = json.loads((BENCH / "gen" / "decoy_conversations.json").read_text())
    for number, decoy in enumerate(decoys):
        write_session(folder, f"decoy-{number}", decoy["turns"], number, str(repository))


def commits_of(repository: Path) -> list[tuple[str, str, list[str]]]:
    """Message, content and files of the newest 1,600 commits of a repository, oldest first."""
    said = run(repository, "log", "-1600", "--reverse", "--no-merges", "--name-only", "--format=%x1e%B%x1f")
    found = (each.partition("\x1f") for each in said.split("\x1e")[1:])
    return [(message.strip() or "x", "noise", [f for f in files.split("\n") if f][:5]) for message, _, files in found]


def data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"


def run(repository: Path, *command: str, given: str = "") -> str:
    done = subprocess.run(["git", "-C", str(repository), *command], input=given.encode(), capture_output=True)
    return done.stdout.decode("utf-8", "replace")


def ask_history(reader: Reader, engine: Engine, repository: Path, verbose: bool) -> None:
    place, held, right, decoys, tokens, spoken, wrong = str(repository.resolve()), 0, 0, 0, 0, 0, 0
    places = places_of(reader, place)
    for task in histories():
        payload: Any = {"prompt": task["bug_report"], "session_id": "asks", "cwd": place}
        said = recall(reader, engine, "UserPromptSubmit", payload, "session/claude-code/asks", places, ASKED)
        wanted = words_in(task["decision_rationale"])
        share = len(wanted & words_in(said.text)) / len(wanted)
        held += share >= HELD
        spoken += bool(said.text)
        tokens += said.tokens
        rows = several(reader, models.memories, [each.id for each in said.memories])
        right += any(task["decision_subject"][:40] in row.title for row in rows.values())
        wrong += sum(row.kind == "commit" and task["decision_subject"][:40] not in row.title for row in rows.values())
        decoys += sum(row.kind != "commit" for row in rows.values())
        if verbose and share < HELD:
            asked = Question(query=task["bug_report"], places=places, now=ASKED, limit=20, settled=True)
            found = engine.search(reader, asked).results
            print(f"\n{task['task_id']} holds {share:.2f}")
            print([(each.title[:40], round(each.score, 2), each.class_) for each in found[:4]])
            print(f"  {task['bug_report']}\n  {task['decision_rationale']}\n  {said.text}")
    print(f"{len(histories())} tasks: spoken {spoken}, right {right}, holds {held};")
    print(f"other commits {wrong}, decoys {decoys}; {tokens / len(histories()):.0f} tokens a prompt")


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
    parser.add_argument("--history", action="store_true", help="those that stand in commits")
    parser.add_argument("--noise", type=Path, help="a repository whose commits come between")
    parser.add_argument("--ask", type=Path, help="ask in this repository")
    given = parser.parse_args()
    if given.history and given.folder:
        write_history(given.folder, given.noise)
        return
    if given.folder:
        write(given.folder)
        return
    settings = load_settings()
    if settings.database_url is None:
        parser.error("no memctl runs here: `memctl up`, then `memctl ingest` the conversations")
    readers = Readers(settings.database_url, settings.space)
    engine = Engine(settings.qdrant_url, settings.qdrant_api_key, embedders_of(settings))
    engine.warm_up(readers)
    try:
        if given.ask:
            readers.read(lambda reader: ask_history(reader, engine, given.ask, given.verbose), OWNER)
        else:
            readers.read(lambda reader: ask(reader, engine, given.verbose), OWNER)
    finally:
        engine.close()
        readers.close()


if __name__ == "__main__":
    main()
