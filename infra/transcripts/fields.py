"""Reading fields of unknown JSON: each function takes whatever stands there and gives the type that is wanted."""

from datetime import UTC, datetime, timedelta
from string import ascii_letters, digits
from typing import Any

from memctl.domain.events.event import Micros
from memctl.domain.support import patterns
from memctl.domain.support.remembered import remembered
from memctl.domain.support.text import digest_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LONGEST_ID, _IN_IDS = 128, f"{ascii_letters}{digits}._:@#+-".encode()
"""Characters of an id that is kept as it is, and those that it may hold. A letter or digit begins it."""
_KIND = patterns.compile(r"[^A-Za-z0-9._:@+-]+")
_LARGEST = 2**53
"""The whole numbers that every reader of JSON holds exactly."""
MAX_DEPTH = 256
"""How deep a value may nest that is unpacked."""


def mapping(value: Any) -> dict[str, Any]:
    """The object, or an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """The list, or an empty one."""
    return value if isinstance(value, list) else []


def string(value: Any) -> str:
    """The string, or an empty one."""
    return value if isinstance(value, str) else ""


def integer(value: Any) -> int | None:
    """A whole number that JSON can carry exactly (up to 2**53 either way), else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if not -_LARGEST <= value <= _LARGEST:  # False for NaN as well
        return None
    return int(value)


def count(value: Any) -> int:
    """A number of things, 0 where there is none or it makes no sense."""
    number = integer(value)
    return number if number is not None and number > 0 else 0


def micros(value: Any) -> Micros:
    """An ISO 8601 time (UTC where it names no zone), or 0 for what is none or lies before 1970."""
    if not isinstance(value, str):
        return Micros(0)
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return Micros(max(0, (moment - _EPOCH) // _MICROSECOND))
    except (ValueError, OverflowError):
        return Micros(0)


def identifier(value: Any) -> str:
    """An id as the client wrote it. One that is overlong or holds odd characters (a path, a newline) becomes a digest,
    since ids end up in stream names and dedupe keys.
    """
    if not isinstance(value, str) or not value:
        return ""
    plain = value.isascii() and value[0].isalnum() and not value.encode().translate(None, _IN_IDS)
    if plain and len(value) <= _LONGEST_ID:
        return value
    return "x" + digest_of(value, 32)


def kind(*parts: Any) -> str:
    """A name to count ignored lines by: the client's own words for it, joined by colons."""
    return _kind(tuple(part[:60] for part in parts if isinstance(part, str) and part))


@remembered(1024)
def _kind(words: tuple[str, ...]) -> str:
    return ":".join(_KIND.sub("_", word) for word in words) or "unknown"


def joined(content: Any, *, of: tuple[str, ...] = ("text",)) -> str:
    """The text of a content field that is a string or a list of blocks: texts by line, `[image]` for each image."""
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for block in items(content):
        if isinstance(block, str):
            texts.append(block)
            continue
        block = mapping(block)
        if block.get("type") in of:
            texts.append(string(block.get("text")))
        elif string(block.get("type")).endswith("image"):
            texts.append("[image]")
    return "\n".join(texts)


def shallow(value: Any) -> bool:
    """Whether nesting stays within 256 levels, which every later reader can walk."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return True
    return False
