"""What a person says of a thing on its page: that it holds or not, that it comes first, that it helped or misled."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import msgspec

from memctl.api.reading.caller import Caller
from memctl.api.write.command_handler import CommandHandler
from memctl.domain.events.command import BadCommand

_SAID: dict[str, tuple[str, str, dict[str, object]]] = {
    "holds": ("verify-knowledge", "claim", {}),
    "wrong": ("reject", "claim", {}),
    "pin": ("pin", "memory", {}),
    "unpin": ("pin", "memory", {"pinned": False}),
    "helped": ("rate", "memory", {"value": 1}),
    "misled": ("rate", "memory", {"value": 0}),
}
"""What a button says, as a command: its name, what names the thing in it, and the rest of it."""

OFFERED = {
    "memory": ("pin", "unpin", "helped", "misled"),
    "insight": ("holds", "wrong"),
    "knowledge": ("holds", "wrong"),
}
"""The buttons on the page of a thing, by its kind."""

LABELS = {
    "holds": "It holds", "wrong": "It does not hold", "pin": "Pin it", "unpin": "Unpin it", "helped": "It helped",
    "misled": "It misled",
}  # fmt: skip


def correct(commands: CommandHandler, form: Mapping[str, Any], caller: Caller) -> str:
    """Carry out what a button of a thing's page says, once for its `key`; returns the thing's id. Raises: BadCommand,
    and what carrying out raises."""
    id, said = str(form.get("id", ""))[:512], str(form.get("say", ""))
    if said not in _SAID:
        raise BadCommand(why="nothing of that kind can be said of it")
    name, of, rest = _SAID[said]
    key = f"{str(form.get('key', ''))[:64] or uuid4().hex} {said}"
    commands.carry_out(name, msgspec.json.encode({of: id, **rest}), key, caller)
    return id
