"""Which runner of tests a command and its output show."""

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


def runner_in(command: str, text: str) -> str:
    """The runner of the tests that a command ran, as its output or the command shows it; empty where it ran none."""
    kinds = [kind for head in heads_of(command) if (kind := runner_of(head))]
    if not kinds:
        return ""
    shown = next((name for name, hints, shape in _RUNNERS if mentions(text, hints) and shape.search(text)), "")
    return shown or ("" if kinds[0] == "script" else kinds[0])
