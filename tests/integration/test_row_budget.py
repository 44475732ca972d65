"""What one session does to the same rows keeps nobody waiting: stage 2 folds what is revised, and not all again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import servers
from draining import catch_up
from events import prompt
from transcript_files import format_of, parse_file

from memctl.domain.events.event import NewEvent, Position
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append
from memctl.infra.log.read import read_range
from memctl.workers.folding import newest_sources
from memctl.workers.folding.drain import Drainer
from memctl.workers.rebuild.replay import replay

FILES, LAST = 20, 16
"""Files of a patch, and the turns at a session's end of which each event is folded by itself."""

SESSIONS, MOST_TIMES = 1_000, 3
"""Sessions of one task; and what an event of the next may take, against one of a task of its own. It is eight times as
much where each folds all of them again."""


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


def wavering(number: int) -> list[tuple[str, Any]]:
    """Answers that name the same twelve values; at last words that name them and words that do not, in turns, all in
    one turn of the session."""
    values = " ".join(f"Use `--option-number-{k}` here." for k in range(12))
    if number < WAVERING - LAST:
        return [("assistant", [{"type": "text", "text": f"{values} {number}. {'This is what was done in it. ' * 60}"}])]
    said = f"{values} {number}" if number % 2 == 0 else f"No, not so, {number}."
    return [("assistant", [{"type": "text", "text": said}]), *of_one_message(number, "ls")]


def session(path: Path, turn: Callable[[int], list[tuple[str, Any]]], turns: int) -> list[NewEvent]:
    last = WAVERING - LAST if turn is wavering else turns
    asked = ([("user", f"please do it once more, round {number}")] if number <= last else [] for number in range(turns))
    return read(path, [line for number, first in enumerate(asked) for line in (*first, *turn(number))], "s1")


def read(path: Path, lines: list[tuple[str, Any]], name: str) -> list[NewEvent]:
    with path.open("wb") as file:
        for number, (role, content) in enumerate(lines):
            line = {
                "type": role, "uuid": f"{name}u{number}", "parentUuid": f"{name}u{number - 1}" if number else None,
                "sessionId": name, "cwd": "/work/shop", "version": "2.0.1",
                "timestamp": f"2026-03-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}.000Z",
                "message": {"id": f"{name}m{number}", "role": role, "content": content},
            }  # fmt: skip
            file.write(orjson.dumps(line) + b"\n")
    reader = format_of(path)
    assert reader is not None
    return [event for parsed in parse_file(path, reader) for event in parsed.events]


@pytest.fixture
def log(postgres_server: str, templates: servers.Templates) -> Iterator[tuple[str, Connection]]:
    with servers.fresh_database(postgres_server, templates.live(1)) as url, connect(url) as connection:
        yield url, connection


PATCHED, WAVERING = 200, 800
"""Turns. Where each answer folds all of them again that its rows hold, one of these takes 1.3 s, and .4 s."""


@pytest.mark.parametrize(("turn", "turns", "most_s"), [(patched, PATCHED, 0.4), (wavering, WAVERING, 0.15)])
def test_a_turn_of_a_long_session_about_the_same_things_is_folded_as_fast_as_the_first(
    turn: Callable[[int], list[tuple[str, Any]]],
    turns: int,
    most_s: float,
    log: tuple[str, Connection],
    tmp_path: Path,
) -> None:
    url, connection = log
    events = session(tmp_path / "session.jsonl", turn, turns)
    drainer = Drainer(url)
    late = len(events) * (turns - LAST) // turns
    append(connection, 1, events[:late])
    catch_up(drainer)
    began = time.process_time()
    for event in events[late:]:  # as a hook brings them
        append(connection, 1, [event])
        catch_up(drainer)
    drainer.close()
    took = (time.process_time() - began) / LAST
    print(f"{took:.3f} s a turn after {turns - LAST} turns")
    assert replay(url, None, verify=True).equal
    assert took < most_s


def test_the_same_task_in_many_sessions_is_folded_as_fast_as_in_the_first(
    log: tuple[str, Connection], tmp_path: Path
) -> None:
    """As a loop makes them that asks the same of an agent again and again."""
    url, connection = log

    def worked(number: int, uses: int, asked: str) -> list[NewEvent]:
        lines = [("user", asked), *(line for use in range(uses) for line in of_one_message(use, f"ls {use}"))]
        return read(tmp_path / f"{number}.jsonl", lines, f"s{number}")

    def took(number: int, asked: str) -> float:
        live = worked(number, 10, asked)
        append(connection, 1, live[:3])
        catch_up(drainer)
        began = time.process_time()
        for event in live[3:]:
            append(connection, 1, [event])
            catch_up(drainer)
        return (time.process_time() - began) / len(live[3:])

    drainer, asked = Drainer(url), "Please implement the next item of the plan, run all tests, and commit what you did"
    append(connection, 1, [event for number in range(SESSIONS) for event in worked(number, 1, asked)])
    catch_up(drainer)
    alone = took(SESSIONS, "Please mend the parser of ledgers, which drops the last cent of what a customer paid")
    shared = took(SESSIONS + 1, asked)
    drainer.close()
    print(f"{shared:.3f} s an event after {SESSIONS} sessions, {alone:.3f} s by itself")
    assert replay(url, None, verify=True).equal
    assert shared < MOST_TIMES * alone


@pytest.mark.parametrize("most", [10, 40, 80, 120, 200])
def test_rows_are_right_however_few_are_held_in_two_parts(
    most: int, log: tuple[str, Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One batch revises many rows; what it holds of one pushes out another that it has yet to fold."""
    monkeypatch.setattr(newest_sources, "MOST_HELD", most)
    url, connection = log
    drainer = Drainer(url, 5_000)
    for turn in range(1, 5):
        texts = [f"Please mend the parser number {number} of ledgers, round {turn}" for number in range(12)]
        append(connection, 1, [prompt(turn, text, session=f"s{n}", at=turn) for n, text in enumerate(texts)])
        catch_up(drainer)
    drainer.close()
    assert replay(url, None, verify=True).equal


def test_a_batch_ends_where_its_events_hold_much(log: tuple[str, Connection], tmp_path: Path) -> None:
    _, connection = log
    lines = [line for number in range(60) for line in of_one_message(number, f"echo {'x' * 900} {number}")]
    append(connection, 1, read(tmp_path / "long.jsonl", lines, "s1"))
    read_first = read_range(connection, Position(0), Position(1 << 40), limit=1_000, most_bytes=8_000)
    assert 0 < len(read_first.events) < 20
    assert read_first.end == read_first.events[-1].position
    rest = read_range(connection, read_first.end, Position(1 << 40), limit=1_000)
    assert len(read_first.events) + len(rest.events) == len(
        read_range(connection, Position(0), rest.end, limit=1_000)[0]
    )
