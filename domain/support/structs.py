"""Structs made of other structs."""

from __future__ import annotations

import functools
from typing import TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)


def carried_over(source: msgspec.Struct, kind: type[T], **others: object) -> T:
    """A struct of that kind: the fields named in `others`, and all else that it shares with the source as it is there.

    Raises: TypeError where a field that has no default is in neither.
    """
    return kind(**{name: getattr(source, name) for name in _shared(type(source), kind) if name not in others}, **others)


@functools.cache
def _shared(one: type[msgspec.Struct], other: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(name for name in other.__struct_fields__ if name in one.__struct_fields__)
