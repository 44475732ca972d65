"""Structs made of other structs."""

import functools
from typing import TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)


def carried_over(source: msgspec.Struct, kind: type[T], /, **others: object) -> T:
    """A struct of that kind: the fields named in `others`, and all else that the source has, or works out, under the
    name of a field. Raises: TypeError where a field that has no default is in neither."""
    return kind(**{name: getattr(source, name) for name in _shared(type(source), kind) if name not in others}, **others)


@functools.cache
def _shared(one: type[msgspec.Struct], other: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(name for name in other.__struct_fields__ if hasattr(one, name))
