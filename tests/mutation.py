"""Mutation testing of the code that promises rest on: each small change of it has to be seen by a test.

`python tests/mutation.py [FILE[:FROM-TO] …]` changes a copy of the project, one place at a time, runs the tests of that
file, and prints the changes that no test saw; of a file that is gone through in pieces, those of some numbers only.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import servers

ROOT = Path(__file__).parents[1]
PATIENCE = 4
"""A change that makes the tests run for this many times as long is seen, too."""

LOG = ["tests/integration/test_log.py"]
TOMBSTONES = ["tests/integration/test_tombstones.py"]
LEASES = ["tests/integration/test_leases.py"]
LEASED = {"hashes_of", "acquire", "take", "advance", "renew", "release"}
MIGRATIONS = "infra/log/migrations/versions"
RESTORES = ["tests/integration/test_restores.py::test_who_appends_while_a_backup_is_restored_is_kept_after_it"]
TARGETS: dict[str, tuple[list[str], set[str] | None]] = {
    "infra/log/mark.py": ([*LOG, *RESTORES], None),
    "infra/log/checkpoints.py": (["tests/integration/test_ingest.py"], None),
    "infra/log/append.py": ([*TOMBSTONES, *LOG], None),
    f"{MIGRATIONS}/0014_log.py": (
        [*TOMBSTONES, *LOG],
        {"FORGETTING", "IMMUTABLE", "MARK", "BEGIN_APPEND", "FORGOTTEN", "APPEND"},
    ),
    "infra/readmodels/generations.py": (LEASES, LEASED),
}
"""By file: the tests that have to see a change, and the names whose definitions are changed (None: all of it)."""

COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip

SQL = re.compile(r"\b(SELECT|UPDATE|INSERT|DELETE|FROM|WHERE|TRIGGER|FUNCTION|AND)\b|[<>=] ?%s")
IN_SQL = (
    (r"(?<=[\w)]) < (?=[\w(%])", " <= "), (r"(?<=[\w)]) <= (?=[\w(%])", " < "), (r"(?<=[\w)]) > (?=[\w(%])", " >= "),
    (r"(?<=[\w)]) = (?=[\w('%])", " <> "), (r"\bAND\b", "OR"), (r"\bOR\b", "AND"), (r"IS NULL", "IS NOT NULL"),
    (r"IS NOT NULL", "IS NULL"), (r"IS FALSE", "IS TRUE"), (r"epoch \+ 1", "epoch"), (r"BEFORE (?=INSERT)", "AFTER "),
    (r"xact_lock_shared", "lock_shared"), (r"coalesce\(([\w.]+), ([\w.]+)\)", r"coalesce(\2, \1)"),
    (r"ENABLE ALWAYS", "ENABLE"), (r"ORDER BY i\.ord", "ORDER BY i.ord DESC"),
)  # fmt: skip


class Change(ast.NodeTransformer):
    """Makes the n-th change there is; counts them all."""

    def __init__(self, wanted: int, only: set[str] | None) -> None:
        self.wanted, self.only = wanted, only
        self.seen = 0
        self.what = ""

    def turn(self, node: ast.AST, what: str) -> bool:
        mine = self.seen == self.wanted
        self.seen += 1
        if mine:
            self.what = f"line {getattr(node, 'lineno', 0)}: {what}"
        return mine

    def visit_Module(self, node: ast.Module) -> ast.AST:
        if self.only is None:
            return self.generic_visit(node)
        for statement in node.body:
            if _names(statement) & self.only:
                self.visit(statement)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        kind = type(node.ops[0])
        if kind in COMPARED and self.turn(node, f"{ast.unparse(node)}: {kind.__name__} -> {COMPARED[kind].__name__}"):
            node.ops[0] = COMPARED[kind]()
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if self.turn(node, f"{ast.unparse(node)}: and <-> or"):
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        if self.turn(node, f"if {ast.unparse(node.test)}: never"):
            node.test = ast.Constant(False)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Constant):
            return node  # a docstring
        self.generic_visit(node)
        return ast.Pass() if self.turn(node, f"left out: {ast.unparse(node)[:90]}") else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        return ast.Pass() if self.turn(node, f"left out: {ast.unparse(node)}") else node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        value = node.value
        if isinstance(value, str) and SQL.search(value):
            for pattern, other in IN_SQL:
                for found in re.finditer(pattern, value):
                    part = " ".join(value[max(0, found.start() - 40) : found.end() + 30].split())
                    if self.turn(node, f"SQL …{part}…: {found.group()} -> {other}"):
                        node.value = value[: found.start()] + found.expand(other) + value[found.end() :]
        elif type(value) is int and self.turn(node, f"{value} -> {value + 1}"):
            node.value = value + 1
        return node


def _names(statement: ast.stmt) -> set[str]:
    """What a statement at a module's top defines."""
    if isinstance(statement, ast.Assign):
        return {ast.unparse(target) for target in statement.targets}
    return {statement.name} if isinstance(statement, ast.FunctionDef) else set()


def changes(source: str, only: set[str] | None) -> Iterator[tuple[str, str]]:
    """Each change there is, in words, and the source with it."""
    tree = ast.parse(source)
    for wanted in range(10_000):
        change = Change(wanted, only)
        changed = change.visit(copy.deepcopy(tree))
        if not change.what:
            return
        yield change.what, ast.unparse(ast.fix_missing_locations(changed))


def main() -> int:
    wanted = [_part(argument) for argument in sys.argv[1:]] or [(file, range(10_000)) for file in TARGETS]
    made = survived = 0
    with tempfile.TemporaryDirectory(prefix="memctl-mutation-") as name, servers.postgres_server() as url:
        work = Path(name) / "project"
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for file in filter(None, tracked.split("\0")):
            (work / file).parent.mkdir(parents=True, exist_ok=True)
            (work / file).write_bytes((ROOT / file).read_bytes())
        (work / ".links").mkdir()
        (work / ".links" / "memctl").symlink_to("..")
        environment = {**os.environ, "PYTHONPATH": str(work / ".links"), "MEMCTL_TEST_DATABASE_URL": url}
        for file, numbers in wanted:
            tests, only = TARGETS[file]
            source = (work / file).read_text()
            started = time.monotonic()
            if is_seen(work, tests, environment, patience_s=600):
                sys.exit(f"{' '.join(tests)} fail as things are")
            patience_s = PATIENCE * (time.monotonic() - started)
            for number, (what, changed) in enumerate(changes(source, only)):
                if number not in numbers:
                    continue
                (work / file).write_text(changed)
                made += 1
                print(f"\r{number}", end="", file=sys.stderr, flush=True)
                if not is_seen(work, tests, environment, patience_s):
                    survived += 1
                    print(f"{file} {number} {what}", flush=True)
            (work / file).write_text(source)
    print(f"{made} changes, {made - survived} seen, {survived} not")
    return 0


def _part(argument: str) -> tuple[str, range]:
    """A file, and the numbers of those of its changes that are to be made."""
    file, _, numbers = argument.partition(":")
    first, _, last = numbers.partition("-")
    return file, range(int(first or 0), int(last or 9_999) + 1)


def is_seen(work: Path, tests: list[str], environment: dict[str, str], patience_s: float) -> bool:
    run = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider", *tests]
    with subprocess.Popen(
        run, cwd=work, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as tried:
        try:
            return tried.wait(patience_s) != 0
        except subprocess.TimeoutExpired:
            return True
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(tried.pid, signal.SIGKILL)  # with whatever the tests had started


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    sys.exit(main())
