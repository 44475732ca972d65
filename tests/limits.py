"""Every limit in the code, collected from where it stands.

A limit is a constant of a module with a number for its value, whose name says that it bounds something (`BOUNDS`), or
how many seconds or bytes it is (`ENDS`). Its reason stands beside it: the docstring below, or the comment behind.
Constants that follow on each other share the docstring below the last.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
ROOMS = ("domain", "projections", "workers", "api", "cli", "infra")
BOUNDS = {"MOST", "MAX", "LONGEST", "LARGEST", "DEEPEST", "CAP", "LIMIT", "KEPT", "WITHIN", "PATIENCE", "BUDGET"}
ENDS = ("_AT_ONCE", "_BYTES", "_CPU_S")
NOT_OURS = ("_F32_MAX", "_U32_MAX", "_SMALLEST, _LARGEST", "_PR_", "_CAP_", "_CAPABILITY")
"""What others' formats can hold, and numbers of the kernel's: how their names begin."""


class Limit(NamedTuple):
    """`value` is as the code says it, `reason` the first sentence beside it; "" where none is."""

    module: str
    name: str
    value: str
    reason: str


def limits() -> Iterator[Limit]:
    """All of them, in the order of modules and lines."""
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            yield from _of(file)


def _of(file: Path) -> Iterator[Limit]:
    source = file.read_text(encoding="utf-8")
    lines, body = source.splitlines(), ast.parse(source).body
    for at, node in enumerate(body):
        names = _names(node)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value and _bounds(names) and _is_number(node.value):
            module = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            name = ", ".join(names)
            if not name.startswith(NOT_OURS):
                yield Limit(module, name, _value(node.value), _reason(body, at, lines))


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Assign):
        target = node.targets[0]
    elif isinstance(node, ast.AnnAssign):
        target = node.target
    else:
        return []
    each = target.elts if isinstance(target, ast.Tuple) else [target]
    return [name.id for name in each if isinstance(name, ast.Name) and name.id.isupper()]


def _bounds(names: list[str]) -> bool:
    return any(BOUNDS & set(name.split("_")) or f"_{name}".endswith(ENDS) for name in names)


def _is_number(value: ast.expr) -> bool:
    """Whether it is a number, several, or an interval; not a text, nor what is worked out of one."""
    parts = list(ast.walk(value))
    return any(isinstance(part, ast.Constant) for part in parts) and not any(
        isinstance(part, ast.Constant) and not isinstance(part.value, int | float) for part in parts
    )


def _value(value: ast.expr) -> str:
    if isinstance(value, ast.Constant) and isinstance(value.value, int):
        return f"{value.value:,}"
    return ast.unparse(value)


def _reason(body: list[ast.stmt], at: int, lines: list[str]) -> str:
    _, comment, behind = lines[(body[at].end_lineno or 1) - 1].partition("  # ")
    if comment and not behind.startswith(("noqa", "type:")):
        return behind
    while at + 1 < len(body) and body[at + 1].lineno == (body[at].end_lineno or 0) + 1:
        at += 1
        node = body[at]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return " ".join(node.value.value.split()).partition(". ")[0].rstrip(".")
        if not _names(node):
            break
    return ""
