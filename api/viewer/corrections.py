"""What a person says in the viewer: of a thing on its page, and of what waits for a person."""

import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import msgspec
from starlette.requests import Request

from memctl.api.http.access import caller_of, refused
from memctl.api.http.forget import Forget, forget_once
from memctl.api.http.live import how_far
from memctl.api.queries.project import waiting as known_waiting
from memctl.api.queries.waiting import waiting
from memctl.api.reading.caller import Caller
from memctl.api.reading.places import places_of, projects_of
from memctl.api.reading.reader import Reader, Readers
from memctl.api.reading.records import Waiting
from memctl.api.viewer import render
from memctl.api.write.command_handler import CommandHandler
from memctl.domain.events.command import BadCommand, commands
from memctl.domain.projects.identity import Projects, why_waiting

_SAID: dict[str, tuple[str, str, dict[str, object]]] = {
    "holds": ("verify-knowledge", "claim", {}),
    "wrong": ("reject", "claim", {}),
    "pin": ("pin", "memory", {}),
    "unpin": ("pin", "memory", {"pinned": False}),
    "helped": ("rate", "memory", {"value": 1}),
    "misled": ("rate", "memory", {"value": 0}),
}
"""What a button says, as a command: its name, what names the thing in it, and the rest of it."""

_OFFERED = {
    "memory": ("pin", "unpin", "helped", "misled"),
    "bug": ("helped", "misled", "wrong"),
    "insight": ("holds", "wrong"),
    "knowledge": ("holds", "wrong"),
}
"""The buttons on the page of a thing, by its kind."""

LABELS = {
    "holds": "It holds", "wrong": "It does not hold", "pin": "Pin it", "unpin": "Unpin it", "helped": "It helped",
    "misled": "It misled",
}  # fmt: skip


def offered(kind: str, caller: Caller) -> list[str]:
    """What a caller may say of a thing of that kind. What only a person may say, a key may not."""
    if refused(caller, "POST", "/things"):
        return []
    return [said for said in _OFFERED.get(kind, ()) if caller.owner or not commands()[_SAID[said][0]].by_people]


def correct(handler: CommandHandler, form: Mapping[str, Any], caller: Caller) -> tuple[str, int]:
    """Carry out what a button of a thing's page says, once for its `key`; returns the thing's id, and the position of
    what was recorded. Raises: BadCommand, and what carrying out raises."""
    id, said = str(form.get("id", ""))[:512], str(form.get("say", ""))
    if said not in _SAID:
        raise BadCommand(why="nothing of that kind can be said of it")
    name, of, rest = _SAID[said]
    if said in ("holds", "pin"):  # other words may have come since the page was drawn
        rest = {"words": str(form.get("words", ""))[:64]}
    key = f"{str(form.get('key', ''))[:64] or uuid4().hex} {said}"
    done = handler.carry_out(name, msgspec.json.encode({of: id, "by": "user", **rest}), key, caller)
    return id, done.position


SOON_S, LOOK_AGAIN_S = 2.0, 0.05
"""How long a page waits until what was just said shows on it, and how often it looks."""


def shows(readers: Readers, caller: Caller, position: int) -> bool:
    """Whether rows have come to that position of the log, or soon do."""
    deadline = time.monotonic() + SOON_S
    while readers.read(how_far, caller)[1] < position:
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_AGAIN_S)
    return True


_SETTLES = {
    ("claim", True): "verify-knowledge",
    ("claim", False): "reject",
    ("section", True): "core-approve",
    ("section", False): "core-reject",
    ("thing", False): "refuse-forget",
}


class Waits:
    """`ask` lists what waits; `do` approves or rejects one of it. To grant a request is to forget the thing."""

    def __init__(self, readers: Readers, commands: CommandHandler) -> None:
        self._readers, self._commands = readers, commands

    def ask(self, request: Request) -> str:
        return self._page(caller_of(request), "")

    def do(self, form: Mapping[str, Any], caller: Caller) -> str:
        """`form` has `what` (claim, section or thing), `id`, `key`, and `holds` where it is approved; of a section its
        `version`, of a claim the digest of its words."""
        what, id, holds = str(form.get("what", "")), str(form.get("id", ""))[:512], "holds" in form
        key = str(form.get("key", ""))[:64] or uuid4().hex
        if (what, holds) == ("thing", True):
            forget_once(self._commands.settings, caller, Forget(id=id), key)
            return self._page(caller, "It is forgotten.", settled=(what, id))
        name = _SETTLES.get((what, holds))
        if name is None:
            raise BadCommand(why="nothing of that kind waits")
        asked: dict[str, object] = {what: id, "by": "user"}
        version = str(form.get("version", ""))
        if what == "section" and version.isdecimal():
            asked["version"] = int(version)
        elif what == "claim" and holds:
            asked["words"] = version[:64]
        self._commands.carry_out(name, msgspec.json.encode(asked), key, caller)
        return self._page(caller, "Approved." if holds else "Rejected.", settled=(what, id))

    def _page(self, caller: Caller, done: str, settled: tuple[str, str] = ("", "")) -> str:
        """The page without what was just `settled`, which rows may still show as waiting."""

        def look(reader: Reader) -> tuple[Waiting, list[dict[str, Any]]]:
            return waiting(reader, places_of(reader, "*", None)), checkouts(projects_of(reader))

        found, asked = self._readers.read(look, caller)
        found = msgspec.structs.replace(
            found,
            claims=[each for each in found.claims if ("claim", each.id) != settled],
            sections=[each for each in found.sections if ("section", each.section) != settled],
            requests=[each for each in found.requests if ("thing", each.thing) != settled],
        )
        return render.page(
            "waiting.html", caller, found=found, checkouts=asked, done=done, draw=lambda: uuid4().hex, at="waiting"
        )


def count_waiting(reader: Reader) -> int:
    """How much the page has, up to the longest list of each kind."""
    found = waiting(reader, places_of(reader, "*", None))
    return len([*found.claims, *found.sections, *found.requests, *checkouts(projects_of(reader))])


def checkouts(known: Projects, but: str = "") -> list[dict[str, Any]]:
    """The checkouts that wait for a person, each once for a project, by all that `claims` it, with a key under which a
    word about it is said once."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for each in known_waiting(known):
        if each.root != but:
            of_it = {**msgspec.structs.asdict(each), "key": uuid4().hex, "claims": [], "why": []}
            one = found.setdefault((each.root, each.project), of_it)
            one["claims"].append(each.claims)
            one["why"].append(why_waiting(each.root, each.claims))
    return list(found.values())
