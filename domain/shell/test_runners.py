"""What the output of a test run says: which runner, how many passed and failed."""

from __future__ import annotations

from typing import NamedTuple

from memctl.domain.shell.commands import heads_of, runner_of
from memctl.domain.support import patterns
from memctl.domain.support.literals import mentions

_RUNNERS = (
    ("pytest", ("passed", "failed", "error", "no tests ran"), patterns.compile(
        r"^=+ .*(?:\d+ (?:passed|failed|error)|no tests ran).* =+$|^\d+ (?:passed|failed).* in [\d.]+s", patterns.M)),
    ("go", ("ok  \t", "FAIL", "PASS", "$ go test"), patterns.compile(
        r"^(?:ok  |FAIL)\t\S+|^--- (?:FAIL|PASS): |^(?:\[\S+\] )?\$ go test|^(?:PASS|FAIL)$", patterns.M)),
    ("cargo", ("test result: ",), patterns.compile(r"^test result: ", patterns.M)),
    ("bun", ("bun test v", " pass", " fail"), patterns.compile(r"^bun test v|^ *\d+ (?:pass|fail)$", patterns.M)),
    ("jest", ("Tests: ",), patterns.compile(r"^Tests: +.*\d+ total", patterns.M)),
    ("vitest", ("Tests ",), patterns.compile(r"^ *Tests +\d+ (?:passed|failed)", patterns.M)),
    ("mocha", (" passing",), patterns.compile(r"^ *\d+ passing", patterns.M)),
    ("dotnet", (" Failed:",), patterns.compile(r"^(?:Passed|Failed)! +- Failed:", patterns.M)),
    ("gradle", (" tests completed", "> Task :"), patterns.compile(
        r"^\d+ tests completed|> Task :\S*test", patterns.M)),
    ("maven", ("Tests run: ",), patterns.compile(r"Tests run: \d+, Failures:", patterns.M)),
    ("rspec", (" example",), patterns.compile(r"^\d+ examples?, \d+ failures?", patterns.M)),
    ("tap", ("# pass ", "# fail "), patterns.compile(r"^# (?:pass|fail) \d+", patterns.M)),
)  # fmt: skip
"""Runners by how their output looks; without one of the hints a text is not searched."""

_PASSED = patterns.compile(r"\b(\d+) (?:passed|pass|passing|ok)\b|^# pass (\d+)|Passed: +(\d+)", patterns.M)
_FAILED = patterns.compile(
    r"\b(\d+) (?:failed|fail|failing|failures?)\b|^# fail (\d+)|Failed: +(\d+)|Failures: (\d+)", patterns.M
)


class RunOfTests(NamedTuple):
    """A run of tests. Counts are None where the output does not show them."""

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


_GO_PASSED = patterns.compile(r"^--- PASS: (\S+)", patterns.M)
_GO_FAILED = patterns.compile(r"^--- FAIL: (\S+)", patterns.M)


def _distinct(pattern: patterns.Pattern[str], text: str) -> int:
    return len(set(pattern.findall(text))) if "--- " in text else 0


def _last(pattern: patterns.Pattern[str], text: str) -> int | None:
    """The number that stands last: summaries come at the end."""
    for line in reversed(text.split("\n")):
        if numbers := pattern.findall(line):
            return int(next(group for group in numbers[-1] if group)[:9])
    return None
