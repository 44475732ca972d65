"""docs/reference says what the code does."""

from __future__ import annotations

import reference


def test_every_page_is_as_the_code_says() -> None:
    assert reference.stale() == [], "run `make docs`"
