"""A struct made of another: what both have is carried over, fields and what is worked out alike."""

from __future__ import annotations

import msgspec
import pytest

from memctl.domain.support.structs import carried_over


class Row(msgspec.Struct):
    id: str
    words: int = 3

    @property
    def title(self) -> str:
        return f"row {self.id}"


class Item(msgspec.Struct):
    id: str
    title: str = ""
    words: int = 0
    place: str = ""


class Placed(msgspec.Struct):
    id: str
    place: str


def test_fields_and_what_is_worked_out_are_carried_over_and_others_are_as_named() -> None:
    assert carried_over(Row("a"), Item, place="here") == Item("a", "row a", 3, "here")
    assert carried_over(Row("a"), Item, title="another") == Item("a", "another", 3)


def test_a_field_that_nobody_gives_is_refused() -> None:
    with pytest.raises(TypeError, match="place"):
        carried_over(Row("a"), Placed)
