"""docs/internals/read-models-coverage.md names rows, fields, functions and tests that exist."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import msgspec
import pytest

import memctl.domain
import memctl.projections
from memctl.projections.kernel import projections

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "internals" / "read-models-coverage.md").read_text(encoding="utf-8")
LINES = [line for line in PAGE.splitlines() if line.count("|") == 4 and "`" in line]


def structs() -> dict[str, type[msgspec.Struct]]:
    """By name; where two have one name, the projection's."""
    found: dict[str, type[msgspec.Struct]] = {}
    for package in (memctl.projections, memctl.domain):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            for name, value in vars(importlib.import_module(module.name)).items():
                if isinstance(value, type) and issubclass(value, msgspec.Struct):
                    found.setdefault(name, value)
    return found


STRUCTS = structs()


@pytest.mark.parametrize("line", LINES, ids=lambda line: " ".join(line.split("|")[1:3]).strip()[:60])
def test_what_the_page_names_is_there(line: str) -> None:
    _, _, where, test, _ = line.split("|")
    named = re.findall(r"`([^`]+)`", where)
    assert named
    for name in named:
        if name.startswith("memctl."):
            module, _, attribute = name.rpartition(".")
            assert hasattr(importlib.import_module(module), attribute), name
        else:
            row, _, field = name.partition(".")
            assert hasattr(STRUCTS[row], field), name
    (path,) = re.findall(r"`([^`]+)`", test)
    assert (ROOT / path).exists(), path


def test_every_line_is_of_a_read_model_that_is_there() -> None:
    """Not the other way round: a read model that nothing was asked of has no line here, and its file is enough."""
    told = {line.split("|")[1].split()[0] for line in LINES}
    assert len(told) > 20
    assert told <= {p.name for p in projections()}
