"""docs/reference says what the code does."""

from __future__ import annotations

import reference
from limits import limits


def test_every_page_is_as_the_code_says() -> None:
    assert reference.stale() == [], "run `make docs`"


def test_every_limit_has_its_reason_beside_it() -> None:
    found = list(limits())
    assert len(found) > 150
    bare = [f"{limit.module}: {limit.name}" for limit in found if not limit.reason]
    assert not bare, "write a docstring below the constant that says what it bounds, and why there"
