"""Commands: what people and agents may have recorded, each with the pure rule that decides what it becomes.

    @command("note")
    class NoteMemory(Command): ...

A command's class says what is asked, which stream it speaks to, and decides, from that stream's events where it has to
know them, which event is appended. Doors find commands by name; modules of this package are discovered, none is listed.
"""

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal, TypeVar

import msgspec

from memctl.domain.events.event import Event, Payload
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.json_bodies import read_body

Kind = Literal["memory", "claim", "thing", "project", "part", "place", "session"]
"""What a field of a command may name by the beginning of an id: the door puts the whole id in its place.

Of a session it puts the stream, and where none is named that of the session at hand.
"""


class Command(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of commands. `by` is who speaks; `location` where, as an absolute path."""

    to: ClassVar[str]
    """The stream that the event is appended to: a template over the fields."""
    records: ClassVar[type[Payload]]
    """What is recorded, where the class has no rule of its own."""
    refers: ClassVar[dict[str, Kind]] = {}
    """Fields that name something memory holds; one that holds several names has them all looked up."""
    reads: ClassVar[bool] = False
    """Whether deciding needs the events of the stream; then nobody else may append to it meanwhile."""
    of_place: ClassVar[bool] = False
    """It speaks of its location, or of things named by id: so a caller that is limited to projects may say it of one
    of them. Whatever spans projects is not for such a caller."""
    by_people: ClassVar[str] = ""
    """Why only a person says it, and no agent and no member of a team; empty where they may."""
    cites: ClassVar[str] = ""
    """Field that holds the id of an event: deciding is given that one, and what comes of it is erased with it."""

    by: Literal["user", "agent"] = "agent"
    """Who says it. Who does not say counts as an agent."""
    location: str = ""

    @property
    def stream(self) -> str:
        """The stream that the event is appended to."""
        return self.to.format_map(msgspec.structs.asdict(self))

    def decide(self, history: Sequence[Event]) -> Payload:
        """What is recorded, given the stream's events in order (if the class `reads`) or the event it `cites`. Pure.

        Without a rule of its own a class says what is recorded, whose fields it all has. Raises: MemctlError where the
        command is refused; then nothing is recorded.
        """
        return self.records(**{name: getattr(self, name) for name in self.records.__struct_fields__})

    def repeats(self, history: Sequence[Event]) -> Sequence[Event]:
        """The events, of those it was decided from, of which the outcome may repeat parts: it is erased with them."""
        return history[-1:]


class BadCommand(MemctlError):
    """{why}"""

    exit_code = 2
    why: str


class MalformedCommand(BadCommand):
    """{why}"""

    # It has not the shape that its class asks for; another BadCommand has, and asks for what cannot be.


class KeyReused(MemctlError):
    """Something else was asked for under this idempotency key already."""

    exit_code = 2
    hint = "Draw a new key for each ask; send the same one only to try the same again."


_by_name: dict[str, type[Command]] = {}

C = TypeVar("C", bound=Command)


def command(name: str) -> Callable[[type[C]], type[C]]:
    """Register a command under the name that doors call it by."""

    def register(cls: type[C]) -> type[C]:
        if name in _by_name:
            raise ValueError(f"command {name!r} is registered twice")
        _by_name[name] = cls
        return cls

    return register


def commands() -> dict[str, type[Command]]:
    """The register by name, with every module of `memctl.domain` loaded."""
    import memctl.domain

    for module in pkgutil.walk_packages(memctl.domain.__path__, "memctl.domain."):
        importlib.import_module(module.name)
    return dict(sorted(_by_name.items()))


def read_command(cls: type[C], body: bytes) -> C:
    """A command from JSON. Raises: MalformedCommand, which names the field that is wrong."""
    try:
        return read_body(body, cls)
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise MalformedCommand(why=str(problem)) from problem
