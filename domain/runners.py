"""What the output of a test run says: which runner, how many passed and failed."""

from __future__ import annotations

import re
from typing import NamedTuple

from memctl.domain.shell import heads_of, runner_of

_RUNNERS = (
    ("pytest", re.compile(r"^=+ .*(?:\d+ (?:passed|failed|error)|no tests ran).* =+$|^\d+ (?:passed|failed).* in "
                          r"[\d.]+s", re.MULTILINE)),
    ("go", re.compile(r"^(?:ok  |FAIL)\t\S+|^--- (?:FAIL|PASS): |^(?:\[\S+\] )?\$ go test|^(?:PASS|"
                      r"FAIL)$", re.MULTILINE)),
    ("cargo", re.compile(r"^test result: ", re.MULTILINE)),
    ("bun", re.compile(r"^bun test v|^ *\d+ (?:pass|fail)$", re.MULTILINE)),
    ("jest", re.compile(r"^Tests: +.*\d+ total", re.MULTILINE)),
    ("vitest", re.compile(r"^ *Tests +\d+ (?:passed|failed)", re.MULTILINE)),
    ("mocha", re.compile(r"^ *\d+ passing", re.MULTILINE)),
    ("dotnet", re.compile(r"^(?:Passed|Failed)! +- Failed:", re.MULTILINE)),
    ("gradle", re.compile(r"^\d+ tests completed|> Task :\S*test", re.MULTILINE)),
    ("maven", re.compile(r"Tests run: \d+, Failures:", re.MULTILINE)),
    ("rspec", re.compile(r"^\d+ examples?, \d+ failures?", re.MULTILINE)),
    ("tap", re.compile(r"^# (?:pass|fail) \d+", re.MULTILINE)),
)  # fmt: skip
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
    shown = next((name for name, shape in _RUNNERS if shape.search(text)), "")
    if kinds[0] == "script" and not shown:
        return None
    runner = shown or kinds[0]
    if runner == "go":
        failed = len(set(re.findall(r"^--- FAIL: (\S+)", text, re.MULTILINE)))
        passed = len(set(re.findall(r"^--- PASS: (\S+)", text, re.MULTILINE)))
        return RunOfTests(runner, passed or None, failed or None)
    return RunOfTests(runner, _last(_PASSED, text), _last(_FAILED, text))


def _last(pattern: re.Pattern[str], text: str) -> int | None:
    found = None
    for match in pattern.finditer(text):
        found = int(next(group for group in match.groups() if group)[:9])
    return found
