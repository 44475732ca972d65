"""What waits for a person in the viewer: the list, and a button each to let it through or not."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import msgspec
from starlette.requests import Request

from memctl.api.http.access import caller_of
from memctl.api.http.forget import Forget, forget_once
from memctl.api.queries.waiting import waiting
from memctl.api.reading.caller import Caller
from memctl.api.reading.places import places_of
from memctl.api.reading.reader import Readers
from memctl.api.viewer import render
from memctl.api.write.command_handler import CommandHandler
from memctl.domain.events.command import BadCommand

_COMMANDS = {
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
        `version`."""
        what, id, holds = str(form.get("what", "")), str(form.get("id", ""))[:512], "holds" in form
        key = str(form.get("key", ""))[:64] or uuid4().hex
        if (what, holds) == ("thing", True):
            forget_once(self._commands.settings, caller, Forget(id=id), key)
            return self._page(caller, "It is forgotten.")
        name = _COMMANDS.get((what, holds))
        if name is None:
            raise BadCommand(why="nothing of that kind waits")
        asked: dict[str, object] = {what: id}
        if what == "section" and str(form.get("version", "")).isdecimal():
            asked["version"] = int(form["version"])
        self._commands.carry_out(name, msgspec.json.encode(asked), key, caller)
        return self._page(caller, "Approved." if holds else "Rejected.")

    def _page(self, caller: Caller, done: str) -> str:
        found = self._readers.read(lambda reader: waiting(reader, places_of(reader, "*", None)), caller)
        return render.page("waiting.html", found=found, done=done, draw=lambda: uuid4().hex, at="waiting")
