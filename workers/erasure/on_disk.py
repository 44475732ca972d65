"""Deliveries on this disk: what waits for the door, and what was set aside there, which nobody looks at again.

What is forgotten goes from there, too, where it is meant for the same space. Each has an id before it is recorded, by
which a receipt and a tombstone name it.
"""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from memctl.domain.events.erasure import Scope
from memctl.domain.events.event import Micros
from memctl.domain.events.observations import event_id_of, hook_key, session_stream
from memctl.domain.support.location import inside
from memctl.domain.support.written_forms import WrittenForms
from memctl.infra.files import NoRegularFile, opened
from memctl.infra.hooks.dialects import place_of, read_asked
from memctl.infra.hooks.spool import MAX_HEADER, BadDelivery, decode_header
from memctl.workers.erasure.look import Look

SPOOL = "spool"
"""Their folder in the data directory."""

_KINDS = (".delivery", ".damaged", ".refused")
_MOST_EVENTS = 2
"""Events of one delivery that are named by its id: a call, and what came of it."""


class OnDisk(NamedTuple):
    """A delivery: of which client and space (None: it has no header), when it was made, and its payload."""

    path: Path
    id: str
    agent: str
    space: str | None
    at: int
    payload: bytes

    def events(self, space_id: int) -> set[UUID]:
        """The ids under which a space would know what it says; messages that a client hands over whole have others."""
        keys = (hook_key(self.id) + (f":{n}" if n else "") for n in range(_MOST_EVENTS))
        return {event_id_of(space_id, key) for key in keys}

    def is_of(self, scope: Scope) -> bool:
        """Whether it is of one of the sessions or places; of what is torn, whether it names one."""
        _, payload = read_asked(self.agent, self.payload)
        session, place = place_of(payload)
        if session or place:
            stream = session_stream(self.agent, session) if session else ""
            return stream in scope.streams or any(inside(place, each) for each in scope.locations)
        said = self.said()
        names = [json.dumps(name, ensure_ascii=False).lower() for name in _names(scope)]
        return any(name in said or (name[1:2] == "/" and f"{name[:-1]}/" in said) for name in names)

    def said(self) -> str:
        """Its words, in lower case."""
        try:
            return json.dumps(json.loads(self.payload), ensure_ascii=False).lower()
        except (ValueError, RecursionError):
            return self.payload.decode("utf-8", "replace").lower()


def meant(look: Look, scope: Scope, text: str, ids: frozenset[UUID] = frozenset()) -> Iterator[OnDisk]:
    """The deliveries of the look's space that hold the text, belong to the sessions or places, are that old, or are
    named by an id. None goes by a rule."""
    wanted = bool(scope.streams or scope.locations)
    before = scope.until if scope.kind == "before" else 0
    sought = WrittenForms([text] if text else [])
    if scope.rule or not (wanted or before or text or ids):
        return

    def is_meant(each: OnDisk) -> bool:
        if each.at < before or not ids.isdisjoint(each.events(look.space_id)):
            return True
        return (wanted and each.is_of(scope)) or bool(text and sought.within(each.said().encode()).held)

    yield from filter(is_meant, _seen(look))


def sessions_called(look: Look, id: str) -> list[str]:
    """The streams of the sessions of that id, or stream, that only deliveries know."""
    found = list[str]()
    for each in _seen(look):
        session, _ = place_of(read_asked(each.agent, each.payload)[1])
        stream = session_stream(each.agent, session)
        if session and id in (session, stream):
            found.append(stream)
    return list(dict.fromkeys(found))


def files_of(look: Look) -> Iterator[Path]:
    """The files of the folder, those that are being written among them, of which the look may see what they hold."""
    for path in sorted((look.data_dir / SPOOL).rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        try:
            with opened(path) as file:
                space = _header(file.readline(MAX_HEADER + 1))[2]
        except (FileNotFoundError, NoRegularFile):  # gone meanwhile
            continue
        if look.means(space):
            yield path


def _seen(look: Look) -> Iterator[OnDisk]:
    folder = look.data_dir / SPOOL
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            if path.suffix in _KINDS and look.means((each := _read(path)).space):
                yield each
        except (FileNotFoundError, NoRegularFile):  # the door has just taken it
            continue


def _read(path: Path) -> OnDisk:
    """A delivery, or what is left of one. Raises: OSError."""
    with opened(path) as file:
        line = file.readline(MAX_HEADER + 1)
        rest, changed = file.read(), os.fstat(file.fileno()).st_mtime_ns // 1000
    id, agent, space, at = _header(line)
    if space is None:
        named = path.name.split(".", 1)[0].rpartition("-")[2]
        return OnDisk(path, named, "", None, changed, line + rest)
    return OnDisk(path, id, agent, space, at, rest)


def _header(line: bytes) -> tuple[str, str, str | None, Micros]:
    try:
        found, _ = decode_header(line)
    except BadDelivery:
        return "", "", None, Micros(0)
    return found.id, found.agent, found.space, Micros(found.at)


def _names(scope: Scope) -> Sequence[str]:
    """A scope's sessions and places, as deliveries name them."""
    return [stream.split("/", 2)[2] for stream in scope.streams] + list(scope.locations)
