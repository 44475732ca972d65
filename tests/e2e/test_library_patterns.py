"""Which patterns of libraries meet text from outside: those on a list, each of which was judged, and no others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import Memctl
from data_dirs import used
from outside_text import Met, met, recorded, send
from patterns import LINEAR, LIST

from memctl.domain.support import patterns

MOST = 20

ROUTES = ("starlette.routing", "fastapi.routing")
_ROUTE = patterns.compile(r"\^(?:/(?:[\w\-]|\\[.-])*|/\(\?P<\w+>\[\^/\]\+\))*(?:/\(\?P<\w+>\.\*\))?\$")
"""Names between slashes, literals or parameters, of which only the last may hold slashes."""


def listed() -> dict[Met, dict[str, str]]:
    return {Met(*(each[name] for name in Met._fields)): each for each in json.loads(LIST.read_text())}


def test_the_list_is_short_and_says_of_each_why_it_does_no_harm() -> None:
    entries = listed().values()
    assert 0 < len(entries) <= MOST
    assert all(each["why"] and each["verdict"] in LINEAR for each in entries)


@pytest.fixture
def recorded_memctl(tmp_path: Path) -> Memctl:
    memctl = Memctl(tmp_path)
    used(memctl.data)
    memctl.environment = recorded(memctl.environment, tmp_path / "met")
    memctl.forked = False
    return memctl


def test_no_other_pattern_of_a_library_meets_text_from_outside(recorded_memctl: Memctl, tmp_path: Path) -> None:
    try:
        recorded_memctl("up")
        send(recorded_memctl, tmp_path)
    finally:
        recorded_memctl("down")
    found = met(tmp_path / "met")
    routes = {each for each in found if each.module in ROUTES}
    assert routes
    assert all(_ROUTE.fullmatch(each.pattern) for each in routes), routes
    known = {each for each in listed() if each.module not in ROUTES}
    others = {each: asks for each, asks in found.items() if each not in known | routes}
    assert not others, "judge them by `make patterns`, then list them, or give them less"
    assert known <= found.keys(), "what meets nothing any more needs no entry"
