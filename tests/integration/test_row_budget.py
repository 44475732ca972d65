"""What one session does to the same rows keeps nobody waiting: stage 2 folds what is revised, and not all again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import servers
from draining import catch_up
from transcript_files import format_of, parse_file

from memctl.domain.events.event import NewEvent
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append
from memctl.workers.folding.drain import Drainer
from memctl.workers.rebuild.replay import replay

FILES, TURNS = 20, int(os.environ.get("TURNS", "160"))
MOST_S = 0.4
"""Processor seconds a turn. Where each answer folds all turns again that its rows hold, it is 1.1 s and 4 s here."""


def of_one_message(number: int, content: Any) -> list[tuple[str, Any]]:
    use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": content}}
    return [
        ("assistant", [use]),
        ("user", [{"type": "tool_result", "tool_use_id": f"t{number}", "content": "Success"}]),
    ]


def patched(number: int) -> list[tuple[str, Any]]:
    """A patch of the same twenty files, and two answers, each of which revises the turn."""
    hunks = "\n".join(f"*** Update File: /work/shop/src/m{k}.py\n-old {k} {number}\n+new {k}" for k in range(FILES))
    return [
        *of_one_message(number, f"apply_patch <<'EOF'\n*** Begin Patch\n{hunks}\n*** End Patch\nEOF"),
        ("assistant", [{"type": "text", "text": f"All twenty modules are changed in round {number}. " * 4}]),
        ("assistant", [{"type": "text", "text": f"Round {number} is done, and nothing else was changed."}]),
    ]


def taken_back(number: int) -> list[tuple[str, Any]]:
    """Two answers, of which one names twelve values and the other none: the first, and in the next turn the second."""
    values = " ".join(f"Use `--option-number-{k}` here." for k in range(12))
    first, second = (values, f"No, {number}.") if number % 2 == 0 else (f"No, {number}.", values)
    return [
        ("assistant", [{"type": "text", "text": first}]),
        *of_one_message(number, "ls"),
        ("assistant", [{"type": "text", "text": second}]),
    ]


def session(path: Path, turn: Callable[[int], list[tuple[str, Any]]]) -> list[NewEvent]:
    turns = ((("user", f"please do it once more, round {n}"), *turn(n)) for n in range(TURNS))
    with path.open("wb") as file:
        for number, (role, content) in enumerate(line for lines in turns for line in lines):
            line = {
                "type": role, "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None,
                "sessionId": "s1", "cwd": "/work/shop", "version": "2.0.1",
                "timestamp": f"2026-03-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}.000Z",
                "message": {"id": f"m{number}", "role": role, "content": content},
            }  # fmt: skip
            file.write(orjson.dumps(line) + b"\n")
    reader = format_of(path)
    assert reader is not None
    return [event for parsed in parse_file(path, reader) for event in parsed.events]


@pytest.fixture
def log(postgres_server: str, templates: servers.Templates) -> Iterator[tuple[str, Connection]]:
    with servers.fresh_database(postgres_server, templates.live(1)) as url, connect(url) as connection:
        yield url, connection


@pytest.mark.parametrize("turn", [patched, taken_back])
def test_a_turn_of_a_long_session_about_the_same_things_is_folded_as_fast_as_the_first(
    turn: Callable[[int], list[tuple[str, Any]]], log: tuple[str, Connection], tmp_path: Path
) -> None:
    url, connection = log
    events = session(tmp_path / "session.jsonl", turn)
    drainer = Drainer(url)
    late = len(events) * 7 // 8
    append(connection, 1, events[:late])
    catch_up(drainer)
    began = time.process_time()
    for event in events[late:]:  # as a hook brings them
        append(connection, 1, [event])
        catch_up(drainer)
    drainer.close()
    took = (time.process_time() - began) / (TURNS / 8)
    print(f"{took:.3f} s a turn after {TURNS * 7 // 8} turns")
    assert replay(url, None, verify=True).equal
    assert took < MOST_S
