"""JSON that others send, read in the shape that its description asks for."""

import contextlib
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_DEPTH = 3
"""Down to the fields of the members of a body's list; what stands deeper is somebody's own and stays as it is."""

MOST_VALUES = 1_000_000
"""Values in one JSON text that is read whole: a list of nothing takes 25 times its bytes. The longest line of 300 real
sessions holds some thousands."""

_EXACT = 2**53
"""Beyond it a float that is whole says nothing of the number that was meant."""


def read_body(body: bytes, shape: type[T]) -> T:
    """A body in that shape. A whole number may be written with a point: in JSON Schema 5.0 is an integer.

    Raises: msgspec.MsgspecError (also where it is nested too deeply), UnicodeDecodeError.
    """
    with _no_deeper():
        try:
            return msgspec.json.decode(body, type=shape)
        except msgspec.ValidationError:
            whole = _with_integers(msgspec.json.decode(body), _DEPTH)
            return msgspec.json.decode(msgspec.json.encode(whole), type=shape)


def in_shape(data: bytes, shape: type[T]) -> T:
    """What JSON holds. Raises: msgspec.MsgspecError, also where it is nested too deeply."""
    with _no_deeper():
        return msgspec.json.decode(data, type=shape)


def has_few_values(data: bytes) -> bool:
    """Whether a JSON text holds `MOST_VALUES` at most. 64 MB of code in a text of it are one.

    Text that is no JSON may be said to hold few or many."""
    if _marks(data) <= MOST_VALUES:
        return True
    plain = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > 2 * MOST_VALUES:
        return False
    return sum(_marks(piece) for piece in plain.split(b'"')[::2]) <= MOST_VALUES


def _marks(data: bytes) -> int:
    """What a JSON text has before each of its values but the first."""
    return data.count(b",") + data.count(b"[") + data.count(b"{")


@contextlib.contextmanager
def _no_deeper() -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise msgspec.ValidationError("nested too deeply") from None


def _with_integers(value: Any, depth: int) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= _EXACT else value
    if depth and isinstance(value, dict):
        return {name: _with_integers(part, depth - 1) for name, part in value.items()}
    if depth and isinstance(value, list):
        return [_with_integers(part, depth - 1) for part in value]
    return value
