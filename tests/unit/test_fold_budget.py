"""No session of these shapes is set aside only because its fold is slow: the guard gives it enough time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
from events import as_read
from transcript_files import format_of, parse_file

from memctl.domain.events.event import Event, Micros
from memctl.domain.events.facts import FileChanged
from memctl.projections.sessions import PATHS, sessions
from memctl.projections.stream_state import fold_stream
from memctl.workers.watchdog.progress_board import BYTE_CPU_S, EVENT_CPU_S, FOLD_CPU_S

Turn = list[dict[str, Any]] | str


def said(*texts: str) -> list[Turn]:
    return list(texts)


def failed(number: int, command: str) -> list[Turn]:
    """A run of tests fails, each time in a way of its own."""
    output = (
        f"Exit code 1\nE       TypeError: unsupported operand type(s) for +: 'NoneType' and 'int{number}'\n"
        f"tests/test_cart{number}.py:12: TypeError\nFAILED tests/test_cart{number}.py::test_total_{number}\n1 failed"
    )
    return ran(f"f{number}", command, output, is_error=True)


def ran(name: str, command: str, output: str, *, is_error: bool = False) -> list[Turn]:
    return [
        [{"type": "tool_use", "id": name, "name": "Bash", "input": {"command": command}}],
        [{"type": "tool_result", "tool_use_id": name, "content": output, "is_error": is_error}],
    ]


def passed(number: int, command: str, output: str = "12 passed in 0.41s") -> list[Turn]:
    return ran(f"p{number}", command, output)


def open_errors(number: int, then: Callable[[int], list[Turn]]) -> list[Turn]:
    """At first eight runs, each with eight failures, and then something else."""
    failures = "\n".join(
        f"FAILED tests/test_{number}_{k}.py::test_total_{number}_{k} - ValueError: bad {number}{k}" for k in range(8)
    )
    return ran(f"o{number}", "pytest tests", f"Exit code 1\n{failures}", is_error=True) if number < 8 else then(number)


IN_A_SHOP = "cd /work/shop && source venv/bin/activate && pytest tests 2>&1 | tail -n 40"


def answered(number: int) -> list[Turn]:
    questions = [
        f"Which of the {each} ways to keep ledger number {number} do you want, given the weight of page {number}{each}?"
        for each in range(4)
    ]
    text = ", ".join(
        f'"{each}"="{f"the way of clerk {number} who weighs page {each[-9:]} " * 5}"' for each in questions
    )
    use = {"type": "tool_use", "id": f"q{number}", "name": "AskUserQuestion"}
    given: dict[str, Any] = {"questions": [{"question": each} for each in questions]}
    result = {
        "type": "tool_result",
        "tool_use_id": f"q{number}",
        "content": f"User has answered your questions: {text}.",
    }
    return [[use | {"input": given}], [result]]


def explained(number: int) -> list[Turn]:
    """At first sixteen runs with 24 failures each, then answers that name the file of all and explain none."""
    lines = "\n".join(
        f"FAILED tests/test_cart_service.py::test_total_{number}_{k} - AssertionError: expected total {number}{k}"
        for k in range(24)
    )
    if number < 16:
        return ran(f"e{number}", "pytest tests", f"Exit code 1\n{lines}", is_error=True)
    answer = " ".join(f"`test_cart_service.py` sets row {number}{k} because b comes from it." for k in range(5))
    return [[{"type": "text", "text": answer}]]


def patched(number: int) -> list[Turn]:
    """At first eight edits that fill a document with sections, then patches that name it fifty times each."""
    if number < 8:
        text = "\n".join(
            f"# Part {number} {k}\n" + "\n".join("abcdefghijklmnopqrstuvwxyz" * 3)[:1_700] for k in range(8)
        )
        given = {"file_path": "/work/shop/docs/guide.md", "old_string": f"old {number}", "new_string": text}
        use = {"type": "tool_use", "id": f"d{number}", "name": "Edit", "input": given}
        return [[use], [{"type": "tool_result", "tool_use_id": f"d{number}", "content": "updated"}]]
    hunks = "\n".join(
        f"*** Update File: /work/shop/docs/guide.md\n-no such line {number}{k}\n+# H{k}" for k in range(50)
    )
    return passed(number, f"apply_patch <<'EOF'\n*** Begin Patch\n{hunks}\n*** End Patch\nEOF", "Success")


def letters(number: int, count: int) -> str:
    """Words that are like no others."""
    drawn = random.Random(number)
    return " ".join("".join(drawn.choices("abcdefghijklmnopqrstuvwxyz", k=drawn.randint(2, 9))) for _ in range(count))


def sentences_of(number: int, count: int) -> str:
    return " ".join(f"{letters(number * 100 + each, 6).capitalize()}." for each in range(count))


def behind_what_was_shown(number: int) -> list[Turn]:
    """At first tools show a megabyte, and then come prompts of forty sentences."""
    if number < 90:
        return passed(number, f"cat notes{number}.txt", letters(number, 2_400))
    return said("please do all of this now\n\n" + sentences_of(number, 40))


def of_a_program(number: int) -> list[Turn]:
    """A program of which nothing is known fails in sixty parts of a command, and then runs with other words."""
    drawn = random.Random(number)
    parts = "; ".join(
        " ".join(["mytool", *(f"{'ab'[number > 7]}{drawn.choice('cdefghijklmnopqrstuvwxyz')}" for _ in range(22))])
        for _ in range(60)
    )
    failures = "\n".join(f"error: cannot frobnicate widget{number}x{k} of gadget{k}y{number}" for k in range(8))
    if number < 8:
        return ran(f"w{number}", parts, f"Exit code 1\n{failures}", is_error=True)
    return passed(number, parts, "fine")


def due_to(number: int) -> list[Turn]:
    """Sixty-four open errors, two hundred answers that explain, and a run that goes well."""
    if number < 8:
        return open_errors(number, lambda n: [])
    if number < 208:
        return [[{"type": "text", "text": " ".join(f"Due to a{number}b{k}, bad." for k in range(280))}]]
    given = {"file_path": "/work/shop/src/cart.py", "old_string": "ValueError", "new_string": "KeyError"}
    use = {"type": "tool_use", "id": f"e{number}", "name": "Edit", "input": given}
    edited: list[Turn] = [[use], [{"type": "tool_result", "tool_use_id": f"e{number}", "content": "updated"}]]
    return [*edited, *passed(number, "pytest tests")]


def edited(name: str, path: str) -> list[Turn]:
    given = {"file_path": f"/work/shop/{path}", "old_string": f"a + {name}", "new_string": f"a - {name}"}
    use = {"type": "tool_use", "id": name, "name": "Edit", "input": given}
    return [[use], [{"type": "tool_result", "tool_use_id": name, "content": "updated"}]]


def laid_aside(number: int) -> list[Turn]:
    """A failure and an edit, forty times laid aside and brought back, and a run that goes well."""
    if number == 0:
        return [*failed(0, "pytest tests/test_cart0.py"), *edited("e0", "src/cart.py")]
    if number == 41:
        return passed(41, "pytest tests/test_cart0.py")
    return [
        *passed(number, "git stash push -m 'the checkout page' src/api.py", "ok"),
        *passed(-number, "git stash pop", "ok"),
    ]


def taken_back(number: int) -> list[Turn]:
    """A failure that stays, edits of 290 documents, three hundred times files taken back, and runs that go well."""
    if number == 0:
        return failed(0, "pytest tests/test_cart0.py")
    if number < 30:
        return [turn for k in range(10) for turn in edited(f"e{number}x{k}", f"docs/d{number}/f{k}.md")]
    if number < 49:
        named = " ".join(f"a{k}/b{k}" for k in range(25))
        return passed(number, " && ".join([f"git checkout -- {named}"] * 16))
    return passed(number, "pytest")


def files(number: int, count: int, name: str = "a") -> str:
    return " ".join(f"tests/test_{name}{number}_{each}.py" for each in range(count))


SHAPES: dict[str, Callable[[int], list[Turn]]] = {
    "runs of a file": lambda n: failed(n, f"pytest {files(n, 1)}"),
    "runs of many files": lambda n: failed(n, f"pytest {files(n, 180)}"),
    "runs of some files, and of others": lambda n: [
        *failed(n, f"pytest {files(n, 60)}"), *ran(f"p{n}", f"pytest {files(n, 60, 'b')}", "12 passed in 0.41s"),
    ],
    "runs in a chain": lambda n: failed(n, " && ".join(f"pytest tests/t{n}_{each}" for each in range(200))),
    "runs far below": lambda n: failed(n, " && ".join(f"cd d{each}" for each in range(200)) + " && pytest"),
    "another runner": lambda n: failed(n, f"npx vitest run src/a{n}.test.ts src/b{n}.test.ts src/c{n}.test.ts"),
    "a compiler's errors": lambda n: ran(f"c{n}", f"npx tsc -p p{n}", "\n".join(
        f"src/a{n}_{k}.ts({k},5): error TS2322: Type 'A{n}{k}' is not assignable to type 'B{k}'." for k in range(60)
    ), is_error=True),
    "rules": lambda n: said(
        f"Always run make t{n} before you commit. Never use lib{n}, because it is slow. No, that is wrong, use x{n}."
    ),
    "runs that go well": lambda n: open_errors(n, lambda n: passed(n, IN_A_SHOP, "ok tests/a.py\n" * 150)),
    "runs behind a filter": lambda n: open_errors(n, lambda n: passed(n, "npm test | tail -5")),
    "runs among changes": lambda n: open_errors(
        n, lambda n: [*passed(n, f"mkdir m{n} && mkdir n{n}"), *passed(-n, "pytest tests | tail -5")]
    ),
    "runs after many changes": lambda n: open_errors(
        n, lambda n: passed(n, " && ".join(f"mkdir m{n}_{k}" for k in range(20)) if n < 38 else "pytest tests")
    ),
    "changes that are laid aside": laid_aside,
    "changes that are taken back": taken_back,
    "answers to questions": answered,
    "answers after failures": explained,
    "patches of a document": patched,
    "other words of a program": of_a_program,
    "many explanations": due_to,
    "prompts behind what was shown": behind_what_was_shown,
    "prompts between small outputs": lambda n: [
        *passed(n, "ls"), f"please do all of this now\n\n{sentences_of(n, 20)}",
    ],
    "prompts that nearly stand in an output": lambda n: (
        said(f"please do it again {n} now\n\nAb{'ab' * 111}c{n % 7}x")
        if n else passed(0, "cat letters.txt", ("ab" * 6 + "c ") * 2_000)
    ),
    "runs with many failures": lambda n: [
        *ran(f"r{n}", f"pytest tests/t{n}.py", "Exit code 1\n" + "\n".join(
            f"FAILED tests/t{n}_{k}.py::test_{n}_{k} - ValueError: bad value {n}{k} because x{k} is locked"
            for k in range(60)
        ), is_error=True),
        [{"type": "text", "text": " ".join(f"test_{n}_{k} fails because job{k} locks table x{k}." for k in range(60))}],
    ],
}  # fmt: skip


ROUNDS = {
    "changes that are laid aside": 42, "changes that are taken back": 250,
    "runs that go well": 150, "runs behind a filter": 400, "runs among changes": 150, "runs after many changes": 150,
    "answers to questions": 150, "answers after failures": 150, "runs in a chain": 30, "runs with many failures": 30,
    "other words of a program": 50, "many explanations": 209,
    "prompts behind what was shown": 290, "prompts between small outputs": 500, "a compiler's errors": 30,
}  # fmt: skip


def session(path: Path, shape: Callable[[int], list[Turn]], rounds: int) -> None:
    with path.open("wb") as file:
        turns = ["fix it all please now", *(turn for number in range(rounds) for turn in shape(number))]
        for number, content in enumerate(turns):
            by_agent = not isinstance(content, str) and content[0]["type"] != "tool_result"
            role = "assistant" if by_agent else "user"
            line = {
                "type": role, "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None,
                "sessionId": "s1", "cwd": "/work/shop", "version": "2.0.1",
                "timestamp": f"2026-03-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}.000Z",
                "message": {"role": role, "content": content},
            }  # fmt: skip
            file.write(orjson.dumps(line) + b"\n")


def took_by(events: list[Event]) -> float:
    began = time.process_time()
    fold_stream(events[0].stream, events)
    return time.process_time() - began


@pytest.mark.parametrize("shape", SHAPES)
def test_a_session_is_folded_within_what_the_guard_gives_it(shape: str, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    session(path, SHAPES[shape], ROUNDS.get(shape, 70))
    reader = format_of(path)
    assert reader is not None
    new = [event for parsed in parse_file(path, reader) for event in parsed.events]
    events = [as_read(event, number) for number, event in enumerate(new, 1)]
    fold_stream("session/claude-code/warm", events[:9])  # patterns are compiled once a process
    size = sum(len(msgspec.json.encode(event.payload)) for event in events)
    limit = FOLD_CPU_S + EVENT_CPU_S * len(events) + BYTE_CPU_S * size
    assert took_by(events) < limit or took_by(events) < limit  # noise only adds time


def test_a_changed_file_costs_a_session_that_changed_thousands_no_more() -> None:
    def took(files: int) -> float:
        facts = [
            FileChanged(
                stream="session/claude-code/s",
                occurred_at=Micros(number),
                location="/work/shop",
                evidence=(),
                path=f"src/{number % files}",
            )
            for number in range(20_000)
        ]
        began = time.process_time()
        row = sessions(None, facts)
        assert row is not None
        assert row.files_changed == files
        return time.process_time() - began

    few, many = (min(took(files) for _ in range(3)) for files in (20, PATHS))
    assert many < few * 4
