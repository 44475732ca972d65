"""What the seeds promise: each row of tests/eval/coverage.txt names what there is, and counts hold its verdict."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from collections import Counter
from types import ModuleType
from typing import Any

import click
import pytest
from documents import ROOT, parsed

TESTS = ROOT / "tests"


def _module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("coverage_rows", TESTS / "eval" / "coverage.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


COVERAGE = _module()
ROWS = COVERAGE.register()
COUNTS = json.loads(COVERAGE.COUNTS.read_text())


def test_nothing_is_missing_and_little_is_thin() -> None:
    verdicts = Counter(row.verdict for row in ROWS)
    assert set(verdicts) == {"works", "thin", "out"}
    assert verdicts["thin"] <= 20


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.group[:3]} {row.asks[:50]}")
def test_a_row_is_shown_by_what_it_names(row: Any) -> None:
    check = row.check
    if check.startswith("memctl "):
        try:
            parsed(shlex.split(check)[1:])
        except click.UsageError as why:
            pytest.fail(f"{check}: {why.message}")
    elif found := re.fullmatch(r"make ([a-z-]+)", check):
        assert f"\n{found[1]}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
    else:
        file, _, words = check.partition("::")
        tests = re.findall(r"^def (test_\w+)", (TESTS / file).read_text(encoding="utf-8"), re.MULTILINE)
        assert any(words in test for test in tests), check


@pytest.mark.parametrize("row", [row for row in ROWS if row.counted], ids=lambda row: row.counted)
def test_a_row_that_works_is_seen_in_both_sets(row: Any) -> None:
    one, two = COUNTS[row.counted]
    if row.verdict == "works":
        assert min(one, two) > 0, "seen in both sets, or thin"


def test_what_is_left_out_is_left_out_by_a_decision() -> None:
    for row in ROWS:
        assert bool(row.decision) == (row.verdict == "out"), row.asks
        assert bool(row.why) == (row.verdict != "works"), row.asks
        if row.decision:
            assert list((ROOT / "docs" / "decisions").glob(f"{row.decision:04}-*.md")), row.asks


def test_the_page_is_what_the_rows_and_the_last_counts_come_to() -> None:
    assert COVERAGE.PAGE.read_text(encoding="utf-8") == COVERAGE.page(ROWS, COUNTS), "make coverage, or with --page"
