"""What a commit's message says: what was changed, why, what it takes back, and which lines are git's own.

A message that says why holds a decision. Most say only what was done, or list it; of those nothing is kept but the
event.
"""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple

from memctl.domain.language.prompts import words_in
from memctl.domain.support import patterns
from memctl.domain.support.bounded import clipped, one_line

LONGEST, SUBJECT, WHY = 16_000, 200, 1_800
"""Characters of a message that are read, of its subject, and of its reasons."""

ENOUGH = 8
"""Different words that say something, below which a body gives no reason."""

MOST_REVERTED, MOST_TRAILERS, LONGEST_TRAILER = 4, 16, 200
"""Commits that one takes back, trailers that are read, and characters of one."""

_TRAILER = patterns.compile(r"(?P<name>[A-Za-z][A-Za-z0-9-]{1,40})(?:: | #)(?P<value>\S.*)")
_REVERTS = patterns.compile(r"^(?:This reverts commit |Reverts: |Revert-of: )(?P<id>[0-9a-f]{40})\b.*$", patterns.M)
_CONTINUED = patterns.compile(r"^, reversing$\n^changes made to [0-9a-f]{40}\.?$", patterns.M)
_LISTED = patterns.compile(r"\s*(?:[-*+•>|<#]|\d+[.)]\s|https?://|\[)")
"""How a line begins that lists, quotes or links."""


class Message(NamedTuple):
    """A message, read. `why` is empty where it gives no reason; `reverts` are the commits that it takes back."""

    subject: str
    why: str
    reverts: tuple[str, ...]
    trailers: tuple[tuple[str, str], ...]


def message_of(text: str) -> Message:
    """What a commit's message says."""
    head, _, body = text[:LONGEST].strip().partition("\n")
    said, trailers = _without_trailers(body.strip().split("\n"))
    reverts = tuple(dict.fromkeys(found["id"] for found in _REVERTS.finditer(body)))[:MOST_REVERTED]
    prose = _CONTINUED.sub("", _REVERTS.sub("", "\n".join(said))).strip()
    return Message(one_line(head, SUBJECT), clipped(prose, WHY) if _reasons(prose) else "", reverts, trailers)


def _reasons(prose: str) -> bool:
    """Whether the sentences of a body say enough: what it lists, quotes or links gives no reason."""
    sentences = " ".join(line for line in prose.split("\n") if not _LISTED.match(line))
    return len(words_in(sentences)) >= ENOUGH


def _without_trailers(lines: list[str]) -> tuple[list[str], tuple[tuple[str, str], ...]]:
    """A body without its last paragraph, where that is all of trailers, and those."""
    last = list(takewhile(str.strip, reversed(lines)))[::-1]
    found = [_TRAILER.fullmatch(line.strip()[:LONGEST_TRAILER]) for line in last[:MOST_TRAILERS]]
    if not last or len(last) > MOST_TRAILERS or not all(found):
        return lines, ()
    return lines[: -len(last)], tuple((each["name"], each["value"]) for each in found if each is not None)
