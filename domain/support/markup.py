"""Tags and entities, which stand between a text's letters where it is written, and not where it is read."""

from collections.abc import Callable, Iterator
from itertools import islice

LONGEST_TAG, LONGEST_ENTITY = 400, 8
"""Letters (bytes) of what is one."""


def without_markup(plain: bytes, instead: bytes = b" ") -> bytes:
    """A text with a blank, or what is said, in place of each tag and each entity."""
    if b"<" in plain and b">" in plain:
        plain = instead.join(_without(plain.split(b"<"), b"<", _behind_tag))
    if b"&" in plain and b";" in plain:
        plain = instead.join(_without(plain.split(b"&"), b"&", _behind_entity))
    return plain


def _without(parts: list[bytes], begin: bytes, behind: Callable[[bytes], int]) -> Iterator[bytes]:
    """Texts between what begins so and ends where `behind` says; -1 where it does not end."""
    kept = [parts[0]]
    for part in islice(parts, 1, None):
        end = behind(part)
        if end < 0:
            kept += (begin, part)
        else:
            yield b"".join(kept)
            kept = [part[end:]]
    yield b"".join(kept)


_BEGIN = frozenset(bytes((code,)) for code in range(0x80) if chr(code).isalpha() or chr(code) in "/!?")
"""What a tag begins with; a sign of comparison has a blank or a number behind it."""


def _behind_tag(text: bytes) -> int:
    end = text.find(b">", 1, LONGEST_TAG + 1) if text[:1] in _BEGIN else -1
    return end + 1 if end > 0 and text.find(b"\n", 0, end) < 0 else -1


def _behind_entity(text: bytes) -> int:
    end = text.find(b";", 2, LONGEST_ENTITY + 2)
    name = text[1 if text.startswith(b"#") else 0 : end]
    return end + 1 if end > 0 and 2 <= len(name) <= LONGEST_ENTITY and name.isalnum() else -1
