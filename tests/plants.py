"""Phrases that nothing else says, each planted in one place: a session's prompt, answer, thought, command, output,
error, edit, file name, branch, summary, a hook, or what somebody stated. With the ways in which each is forgotten."""

from __future__ import annotations

import json
import random
import string
from pathlib import Path
from typing import Any, NamedTuple

from written import FORMS

Record = dict[str, Any]

IN_SESSIONS = ("prompt", "answer", "thought", "command", "output", "error", "edit", "file", "branch", "summary", "hook")
STATED = ("note", "preference", "decision", "hypothesis", "task", "discovery", "core")
WAYS = ("match", "id", "thing", "session", "project", "before")
"""`id`: of the event; `thing`: of a row that holds it, of whatever read model."""


NAMED = ("file", "branch", "core", "edit")
"""Places that take a name, or whose words are part of a name."""

OF_NAMES = ("as it is", "capitals", "full width", "zero width", "percent signs", "base64", "hex", "hex in pairs")


class Plant(NamedTuple):
    """A phrase, where it is said, and how it is to be forgotten."""

    number: int
    word: str
    place: str
    way: str

    @property
    def session(self) -> str:
        return f"plant-{self.number:04d}"

    @property
    def location(self) -> str:
        return f"/home/dana/planted/part{self.number:04d}"

    @property
    def day(self) -> str:
        """What is forgotten by time lies years before all else, one day after the other."""
        year = 2020 if self.way == "before" else 2026
        return f"{year}-{1 + self.number // 28 % 12:02d}-{1 + self.number % 28:02d}"


def phrase(seed: int) -> str:
    """Ten random characters, with digits, which no compression shortens and no other text holds."""
    drawn = random.Random(seed)
    return "q" + "".join(drawn.choices(string.ascii_lowercase, k=6)) + "".join(drawn.choices(string.digits, k=2)) + "x"


def plants(count: int) -> list[Plant]:
    """As many, with every place and every way among the first 18, and each place in the ways it has among 108."""
    places = IN_SESSIONS + STATED
    found = []
    for n in range(count):
        place = places[n % len(places)]
        way = WAYS[(n + n // len(places) + 2) % len(WAYS)]  # a prompt has most rows: by one of them
        if (place in STATED and way not in ("id", "thing")) or (place, way) == ("hook", "before"):
            way = "match"  # what was stated by hand is of no session, and a hook's time is now
        found.append(Plant(n, phrase(n), place, way))
    return found


def plants_in_forms(count: int) -> list[Plant]:
    """As many, each in the next form of writing and the next place, forgotten by text, session or project."""
    places, forms = IN_SESSIONS + STATED, list(FORMS)
    found = []
    for n in range(count):
        place, form = places[n % len(places)], forms[n % len(forms)]
        if place in NAMED and form not in OF_NAMES:
            form = OF_NAMES[n % len(OF_NAMES)]
        way = "match" if place in STATED else ("match", "session", "project")[n % 3]
        found.append(Plant(n, FORMS[form](phrase(n)), place, way))
    return found


def transcript(plant: Plant) -> bytes:
    """A session of Claude Code's that works on a failing test, with the phrase in its place."""
    holds = dict.fromkeys(IN_SESSIONS, "it") | {plant.place: plant.word}
    file = f"{plant.location}/src/{holds['file']}.py"
    lines: list[Record] = []

    def line(kind: str, message: Record, **more: Any) -> None:
        number = len(lines)
        lines.append({
            "type": kind, "uuid": f"{plant.session}-{number}", "parentUuid": lines[-1]["uuid"] if lines else None,
            "sessionId": plant.session, "cwd": plant.location, "gitBranch": f"fix/{holds['branch']}",
            "timestamp": f"{plant.day}T10:00:{number:02d}.000Z", "message": message, **more,
        })  # fmt: skip

    def used(tool: str, given: Record, answer: str, *, failed: bool = False) -> None:
        call = f"{plant.session}-call-{len(lines)}"
        use = {"type": "tool_use", "id": call, "name": tool, "input": given}
        line("assistant", {"id": f"m{call}", "role": "assistant", "content": [use]})
        result = {"type": "tool_result", "tool_use_id": call, "content": answer, "is_error": failed}
        line("user", {"role": "user", "content": [result]})

    said = (
        f"Please fix the failing test of {holds['prompt']}. In this project we always use {holds['prompt']} for money."
    )
    if plant.place == "hook":
        said = hooked(plant)
    line("user", {"role": "user", "content": said})
    thought = {"type": "thinking", "thinking": f"Perhaps {holds['thought']} rounds twice.", "signature": "x"}
    line("assistant", {"id": "m1", "role": "assistant", "content": [thought]})
    error = f"E   ValueError: {holds['error']} is not a price\n\nsrc/total.py:18: ValueError\n1 failed"
    used("Bash", {"command": f"pytest -q -k {holds['command']}"}, f"Exit code 1\n{error}", failed=True)
    used("Read", {"file_path": file}, f"    12→def total(lines):\n    13→    return {holds['output']}(lines)\n")
    edit = {
        "file_path": file,
        "old_string": f"return {holds['edit']}(lines)",
        "new_string": f"return sum_{holds['edit']}(lines)",
    }
    used("Edit", edit, "The file has been updated.")
    used("Bash", {"command": f"pytest -q -k {holds['command']}"}, "1 passed in 0.1s")
    line("assistant", {"id": "m2", "role": "assistant", "content": [
        {"type": "text", "text": f"The cause: {holds['answer']} rounded each line; I round once. All tests pass."}
    ]})  # fmt: skip
    if plant.place == "summary":
        line(
            "user", {"role": "user", "content": f"Earlier we settled that {plant.word} rounds."}, isCompactSummary=True
        )
    return b"".join(json.dumps(each).encode() + b"\n" for each in lines)


def hooked(plant: Plant) -> str:
    """What the hook of a plant's session tells, and its transcript again later."""
    return f"Remember that {plant.word} listens on port 8080 and always deploy with it."


def hook(plant: Plant) -> bytes:
    return json.dumps({
        "hook_event_name": "UserPromptSubmit", "session_id": plant.session, "cwd": plant.location,
        "prompt": hooked(plant),
    }).encode()  # fmt: skip


def statement(plant: Plant) -> tuple[str, Record]:
    """The command that states it, and what it is given."""
    word, here = plant.word, {"location": plant.location}
    return {
        "note": ("note", {"text": f"The tests of this project need {word} to run.", "files": ["src/total.py"], **here}),
        "preference": ("note", {"text": f"I always prefer {word} to others.", "kind": "preference", **here}),
        "decision": (
            "decide",
            {"text": f"We use {word}", "rationale": f"{word} is fast", "alternatives": ["no"], **here},
        ),
        "hypothesis": ("hypothesis-propose", {"text": f"{word} rounds twice", "evidence": ["seen"], **here}),
        "task": ("task-start", {"description": f"Move the shop to {word}", **here}),
        "discovery": ("discovery", {"text": f"{word} needs a running cache", **here}),
        "core": ("core-append", {"section": f"part{plant.number}", "content": f"{word} is what Dana likes"}),
    }[plant.place]


def lay(folder: Path, chosen: list[Plant]) -> None:
    """Write the transcripts of those that are said in sessions."""
    folder.mkdir(parents=True, exist_ok=True)
    for plant in chosen:
        if plant.place in IN_SESSIONS:
            (folder / f"{plant.session}.jsonl").write_bytes(transcript(plant))
