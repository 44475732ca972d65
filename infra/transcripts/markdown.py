"""Code blocks of markdown, found in one pass over its lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from memctl.domain.support import patterns

_FENCE = patterns.compile(r" {0,3}(?P<fence>`{3,}|~{3,})(?P<info>.*)")


class Fence(NamedTuple):
    """A code block: the numbers of its first line, which opens it, and of the line behind its last."""

    start: int
    end: int
    info: str
    text: str


def fences(lines: Sequence[str]) -> list[Fence]:
    """The code blocks of a text. One that nothing closes goes on to the end."""
    found: list[Fence] = []
    opened: patterns.Match[str] | None = None
    start = 0
    for number, line in enumerate(lines):
        fence = _FENCE.fullmatch(line)
        if fence is None:
            continue
        if opened is None:
            if "`" not in fence["info"]:  # else it is code on one line
                opened, start = fence, number
        elif fence["fence"].startswith(opened["fence"]) and not fence["info"].strip():
            found.append(Fence(start, number + 1, opened["info"].strip(), "\n".join(lines[start + 1 : number])))
            opened = None
    if opened is not None:
        found.append(Fence(start, len(lines), opened["info"].strip(), "\n".join(lines[start + 1 :])))
    return found


def outside(lines: Sequence[str], blocks: Sequence[Fence]) -> list[tuple[int, str]]:
    """The lines that stand in no code block, with their numbers."""
    found, at = [], 0
    for block in [*blocks, Fence(len(lines), len(lines), "", "")]:
        found += [(number, lines[number]) for number in range(at, block.start)]
        at = block.end
    return found
