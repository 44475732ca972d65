"""Bounded collections that come out the same whatever the order of arrival.

Each keeps the newest members of a set by `(at, id)`: what was pushed out is older than all that stayed, so it could
never come back. Texts are cut by what they cost as JSON, so a row's size has a ceiling in every script.
"""

from collections.abc import Iterable
from typing import Protocol, TypeVar

import msgspec

BYTES_PER_CHARACTER = 2
"""A clipped text of `limit` characters costs at most this many times `limit` bytes of JSON: Latin text fits whole, and
of what people say in other scripts two thirds do. Of paths, commands and code, which are Latin nearly always, more is
kept where a character may cost one byte (`NARROW`)."""

NARROW = 1

LOCATIONS = 16
"""Working directories that a row names at most. One that names so many may have left others out, so it is not
shown to anyone who is limited to some: every read model with `locations` has to keep to this number."""

ELSEWHERE, ANY_PLACE = 4, "*"
"""Places beside its own that a row of a session's work names at most; and what stands for others behind them."""

_ELLIPSIS = "…"
_ELLIPSIS_COST = 3
_WORST = 6
"""Bytes of JSON of the most expensive character: a control character, written `\\u001b`."""


class Dated(Protocol):
    """Something that happened at a moment (microseconds) and has an id."""

    @property
    def at(self) -> int: ...
    @property
    def id(self) -> str: ...


D = TypeVar("D", bound=Dated)


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """A name, and when it was last seen (microseconds)."""

    name: str
    at: int


def with_place(known: tuple[str, ...], location: str) -> tuple[str, ...]:
    """The places with one more; empty where that changes nothing."""
    if location in known or len(known) > ELSEWHERE:
        return ()
    return (*known, location if len(known) < ELSEWHERE else ANY_PLACE)


def newest(kept: tuple[D, ...], item: D, limit: int) -> tuple[D, ...]:
    """The newest `limit` of `kept` and `item`, newest first. An item of an id that is kept replaces it."""
    order = (item.at, item.id)
    if len(kept) >= limit and order < (kept[-1].at, kept[-1].id) and all(k.id != item.id for k in kept):
        return kept
    others = [k for k in kept if k.id != item.id]
    others.append(item)
    others.sort(key=lambda k: (k.at, k.id), reverse=True)
    return tuple(others[:limit])


def seen(
    kept: tuple[Seen, ...], name: str, at: int, limit: int, chars: int = 160, cost: int = NARROW
) -> tuple[Seen, ...]:
    """`kept` with `name` seen at `at`: the newest `limit` names, newest first, each cut at `chars` characters."""
    if not name:
        return kept
    name = clipped(name, chars, cost)
    for old in kept:
        if old.name == name and old.at >= at:
            return kept
    if len(kept) >= limit and (at, name) < (kept[-1].at, kept[-1].name) and all(k.name != name for k in kept):
        return kept
    others = [k for k in kept if k.name != name]
    others.append(Seen(name, at))
    others.sort(key=lambda k: (k.at, k.name), reverse=True)
    return tuple(others[:limit])


def earliest(kept: tuple[Seen, ...], name: str, at: int, limit: int, chars: int = 160) -> tuple[Seen, ...]:
    """`kept` with `name` seen at `at`: the `limit` names that were first, oldest first, each with when that was."""
    name = clipped(name, chars, NARROW)
    known = {k.name: k.at for k in kept}
    known[name] = min(at, known.get(name, at))
    return tuple(sorted((Seen(*each) for each in known.items()), key=lambda k: (k.at, k.name))[:limit])


def newest_of(items: Iterable[D], limit: int) -> tuple[D, ...]:
    """The newest `limit` of items with ids of their own, newest first."""
    unique = {item.id: item for item in items}
    return tuple(sorted(unique.values(), key=lambda k: (k.at, k.id), reverse=True)[:limit])


def seen_of(kept: Iterable[Seen], limit: int) -> tuple[Seen, ...]:
    """The newest `limit` names of several collections that `seen` made, newest first."""
    last: dict[str, Seen] = {}
    for each in kept:
        if each.name not in last or last[each.name].at < each.at:
            last[each.name] = each
    return tuple(sorted(last.values(), key=lambda k: (k.at, k.name), reverse=True)[:limit])


def names(kept: tuple[Seen, ...]) -> tuple[str, ...]:
    """Just the names, newest first."""
    return tuple(k.name for k in kept)


def clipped(text: str, limit: int, cost: int = BYTES_PER_CHARACTER) -> str:
    """The text, cut with an ellipsis to `limit` characters and `cost * limit` bytes of JSON, at a blank where near."""
    room = cost * limit
    if len(text) <= limit and (len(text) * _WORST <= room or _cost(text) <= room):
        return text
    if room < _ELLIPSIS_COST:
        return ""
    head = text[:limit] if len(text) <= limit else text[: limit - 1]
    while (spent := _cost(head) + _ELLIPSIS_COST) > room:
        head = head[: min(len(head) * room // spent, len(head) - 1)]
    blank = max(head.rfind(" "), head.rfind("\n"))
    if blank > len(head) * 0.8:
        head = head[:blank]
    return head.rstrip() + _ELLIPSIS


def one_line(text: str, limit: int, cost: int = BYTES_PER_CHARACTER) -> str:
    """The text on one line, white space folded, cut as `clipped` does."""
    return clipped(" ".join(text[: limit * 8].split()), limit, cost)


_encode = msgspec.json.Encoder().encode


def _cost(text: str) -> int:
    return len(_encode(text)) - 2
