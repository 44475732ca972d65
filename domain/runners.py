"""What the output of a test run says: which runner, how many passed and failed."""

from __future__ import annotations

import re
from typing import NamedTuple

from memctl.domain.literals import mentions
from memctl.domain.shell import heads_of, runner_of

_RUNNERS = (
    ("pytest", ("passed", "failed", "error", "no tests ran"), re.compile(
        r"^=+ .*(?:\d+ (?:passed|failed|error)|no tests ran).* =+$|^\d+ (?:passed|failed).* in [\d.]+s", re.MULTILINE)),
    ("go", ("ok  \t", "FAIL", "PASS", "$ go test"), re.compile(
        r"^(?:ok  |FAIL)\t\S+|^--- (?:FAIL|PASS): |^(?:\[\S+\] )?\$ go test|^(?:PASS|FAIL)$", re.MULTILINE)),
    ("cargo", ("test result: ",), re.compile(r"^test result: ", re.MULTILINE)),
    ("bun", ("bun test v", " pass", " fail"), re.compile(r"^bun test v|^ *\d+ (?:pass|fail)$", re.MULTILINE)),
    ("jest", ("Tests: ",), re.compile(r"^Tests: +.*\d+ total", re.MULTILINE)),
    ("vitest", ("Tests ",), re.compile(r"^ *Tests +\d+ (?:passed|failed)", re.MULTILINE)),
    ("mocha", (" passing",), re.compile(r"^ *\d+ passing", re.MULTILINE)),
    ("dotnet", (" Failed:",), re.compile(r"^(?:Passed|Failed)! +- Failed:", re.MULTILINE)),
    ("gradle", (" tests completed", "> Task :"), re.compile(
        r"^\d+ tests completed|> Task :\S*test", re.MULTILINE)),
    ("maven", ("Tests run: ",), re.compile(r"Tests run: \d+, Failures:", re.MULTILINE)),
    ("rspec", (" example",), re.compile(r"^\d+ examples?, \d+ failures?", re.MULTILINE)),
    ("tap", ("# pass ", "# fail "), re.compile(r"^# (?:pass|fail) \d+", re.MULTILINE)),
)  # fmt: skip
"""Runners by how their output looks; without one of the hints a text is not searched."""

_PASSED = re.compile(r"\b(\d+) (?:passed|pass|passing|ok)\b|^# pass (\d+)|Passed: +(\d+)", re.MULTILINE)
_FAILED = re.compile(
    r"\b(\d+) (?:failed|fail|failing|failures?)\b|^# fail (\d+)|Failed: +(\d+)|Failures: (\d+)", re.MULTILINE
)


class RunOfTests(NamedTuple):
    """A run of tests. Counts are None where the output does not tell them."""

    runner: str
    count_passed: int | None
    count_failed: int | None


def run_of_tests(command: str, text: str) -> RunOfTests | None:
    """The run of tests that a command was, if it was one."""
    kinds = [kind for head in heads_of(command) if (kind := runner_of(head))]
    if not kinds:
        return None
    shown = next((name for name, hints, shape in _RUNNERS if mentions(text, hints) and shape.search(text)), "")
    if kinds[0] == "script" and not shown:
        return None
    runner = shown or kinds[0]
    if runner == "go":
        return RunOfTests(runner, _distinct(_GO_PASSED, text) or None, _distinct(_GO_FAILED, text) or None)
    return RunOfTests(runner, _last(_PASSED, text), _last(_FAILED, text))


_GO_PASSED = re.compile(r"^--- PASS: (\S+)", re.MULTILINE)
_GO_FAILED = re.compile(r"^--- FAIL: (\S+)", re.MULTILINE)


def _distinct(pattern: re.Pattern[str], text: str) -> int:
    return len(set(pattern.findall(text))) if "--- " in text else 0


def _last(pattern: re.Pattern[str], text: str) -> int | None:
    """The number that stands last: summaries come at the end."""
    for line in reversed(text.split("\n")):
        if numbers := pattern.findall(line):
            return int(next(group for group in numbers[-1] if group)[:9])
    return None
