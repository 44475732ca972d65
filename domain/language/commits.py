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

MOST_REVERTED, MOST_TRAILERS, LONGEST_TRAILER, MOST_SETTLED = 4, 16, 200, 4
"""Commits that one takes back, trailers that are read, characters of one, and points that one commit settles."""

_TRAILER = patterns.compile(r"(?P<name>[A-Za-z][A-Za-z0-9-]{1,40})(?:: | #)(?P<value>\S.*)")
_REVERTS = patterns.compile(r"^(?:This reverts commit |Reverts: |Revert-of: )(?P<id>[0-9a-f]{40})\b.*$", patterns.M)
_CONTINUED = patterns.compile(r"^, reversing$\n^changes made to [0-9a-f]{40}\.?$", patterns.M)
_LISTED = patterns.compile(r"\s*(?:[-*+•>|<#]|\d+[.)]\s|https?://|\[)")
"""How a line begins that lists, quotes or links."""


_ITEM = patterns.compile(r"\s*(?:[-*+•]|\d+[.)])\s")


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
    why = clipped(prose, WHY) if _reasons(_paragraphs(prose)[0]) else ""
    return Message(one_line(head, SUBJECT), why, reverts, trailers)


def settled_by(text: str) -> list[str]:
    """What the message of a commit settles, each under its subject: what its sentences say where they say enough, and
    the points of its list that do."""
    head, _, body = text[:LONGEST].strip().partition("\n")
    sentences, points = _paragraphs("\n".join(_without_trailers(body.strip().split("\n"))[0]))
    said = [sentences] if _reasons(sentences) else []
    said += [point for point in points if _reasons(point)]
    return [f"Committed: {one_line(head, SUBJECT)}. {each}" for each in said[:MOST_SETTLED]]


def _paragraphs(prose: str) -> tuple[str, list[str]]:
    """The sentences of a body, and the points of its lists, each with the lines that go on with it."""
    sentences, points = list[str](), list[str]()
    before = ""
    for line in prose.split("\n"):
        item = _ITEM.match(line)
        if item is not None:
            points.append(line[item.end() :].strip())
            before = "item"
        elif before == "item" and line[:1] == " ":
            points[-1] += f" {line.strip()}"
        elif before != "sentence" and _LISTED.match(line):
            before = "quoted"
        else:
            before = "sentence" if line.strip() else ""
            sentences.append(line.strip())
    return " ".join(filter(None, sentences)), points


def _reasons(sentences: str) -> bool:
    """Whether the sentences of a body say enough: what it lists, quotes or links gives no reason."""
    return len(words_in(sentences)) >= ENOUGH


def _without_trailers(lines: list[str]) -> tuple[list[str], tuple[tuple[str, str], ...]]:
    """A body without its last paragraph, where that is all of trailers, and those."""
    last = list(takewhile(str.strip, reversed(lines)))[::-1]
    found = [_TRAILER.fullmatch(line.strip()[:LONGEST_TRAILER]) for line in last[:MOST_TRAILERS]]
    if not last or len(last) > MOST_TRAILERS or not all(found):
        return lines, ()
    return lines[: -len(last)], tuple((each["name"], each["value"]) for each in found if each is not None)
