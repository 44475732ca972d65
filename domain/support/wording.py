"""What is worded alike on a terminal, in the viewer and for agents."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memctl.domain.support import patterns

HIDDEN = (
    *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0, *range(0x7F, 0xA0)),
    *(*range(0x180B, 0x1810), *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)),
    *(*range(0xFE00, 0xFE10), *range(0xFFF9, 0xFFFC), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B)),
    *range(0xE0000, 0xE1000),
)
"""What shows nothing, or makes a text read other than it is: marks of direction and of a variant, joiners, tags. Whole
sentences are written in them that only a language model reads."""


@cache
def _hidden() -> patterns.Pattern[str]:
    """One joiner or variant behind a letter or an emoji belongs to it: Persian and Hindi are written so."""
    from memctl.domain.support import patterns  # compiled by whoever shows a text, and not at each start

    of = "".join(rf"\x{{{code:x}}}" for code in HIDDEN if code < 0xE0000) + r"\x{e0000}-\x{e0fff}"
    behind = r"[\x{fe0e}\x{fe0f}]?[\x{200c}\x{200d}]|[\x{fe0e}\x{fe0f}]"
    return patterns.compile(rf"([^\x00-\x7f{of}](?:{behind}))|[{of}]")


def seen(text: str, mark: str = "") -> str:
    """The text as a reader sees it: without what is hidden in it, or with a mark for each of that."""
    return text if text.isascii() else _hidden().sub(lambda found: found[1] or mark, text)


def number(count: int, noun: str, plural: str = "") -> str:
    """A count with its noun: `1 event`, `18,219 events`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def span(seconds: float | None) -> str:
    """A duration as people say it: `40 s`, `12 min`, `3 h`, `2 d`; empty where it is not known."""
    if seconds is None:
        return ""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def size(count: int) -> str:
    """Bytes as people say it: `1.2 MB`."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def fix_and_why(approach: str, description: str) -> tuple[str, str]:
    """A solution as it is shown: what helped, and what more was said of why."""
    fix = approach or description
    return fix, "" if description.rstrip(".: ") in fix else description


def fix_or_what_is_known(fix: str, *, edited: bool) -> str:
    """What helped, or what is known where that is not: what failed passed later."""
    if fix:
        return fix
    return f"passed later{', after these edits' if edited else ''}; nobody said what mended it"
