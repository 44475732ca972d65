"""Events as the doors let them through at the worst: every text as long as it may be, every name another one.

For laws about what a session comes to, whatever was in it. Payloads are made from the register, so an event type that
is added tomorrow is among them.
"""

from __future__ import annotations

import functools
import random
import typing
from collections.abc import Callable, Collection, Iterator
from enum import Enum
from typing import Any, Literal, Union
from uuid import UUID

import msgspec
from events import NOON

from memctl.domain.events.event import Event, Micros, Payload, Position, event_types, type_of
from memctl.domain.events.observations import Hunk, Observation, ToolCalled, ToolOutcome, event_id_of
from memctl.domain.events.statements import Statement
from memctl.domain.session.tool_uses import LONGEST_FIELD
from memctl.domain.session.work_commands import LONGEST
from memctl.domain.support.location import normalise

FIELD = 4096
"""Characters of a title, a branch, and whatever else is no text, as `infra.redaction` lets them through."""

STREAM = "session/claude-code/3f6f1d52-6c0e-4b7e-9d6f-2f6b1f6b8a01"

DEAR = ("\x1b[31m red \x07", "값이 비싼 글자 ", "plain words ", 'quoted "words" ')
"""Characters that cost three, two, six bytes and one in JSON, with blanks at which texts may be cut."""

COMMANDS = (
    "go test ./{0}", "pytest {0}", "npm run {0}", "git commit -m '{0}'", "cargo build --features {0}",
    "python {0}.py", "make {0}", "cd /src/{0} && git remote -v", "pip install {0}", "ruff check {0}",
)  # fmt: skip
SAID = (
    "Please fix {0}.", "No, that is wrong, use {0} instead.", "Always run {0} before you commit.", "I prefer {0}.",
    "Never use {0}, because it is slow.", "Thanks, that works: {0}.", "The cause was {0}.", "I decided to use {0}.",
    "Maybe {0} is what breaks it.", "Root cause: {0} was not closed.", "Add {0} to the parser.",
)  # fmt: skip
OUTPUT = (
    "Traceback (most recent call last):\n  File \"/src/{0}.py\", line 3, in {1}\n    x()\n{2}Error: {0} is not there",
    "--- FAIL: Test{2} (0.00s)\n    {1}_test.go:12: {0}\nFAIL", "ok  \t{0}\t0.2s", "{0}", "Exit code 1\nerror: {0}",
    "src/{1}.ts(3,4): error TS2304: Cannot find name '{2}'.\n{0}", "origin\tgit@example.org:{1}/{2}.git (fetch)",
)  # fmt: skip
CODE = "import {1}\nfrom {2} import x\n\ndef {1}(a):\n    return '{0}'\n\nclass {2}:\n    pass\n"
MANIFEST = '{{"name": "{1}", "scripts": {{"{2}": "x", "test": "{0}"}}, "dependencies": {{"{1}": "1", "{2}": "2"}}}}'
TOOLS = {
    "Bash": ("command", COMMANDS), "Read": ("file_path", ("/src/{0}.py", "/src/{1}/package.json")),
    "Edit": ("file_path", ("/src/{0}.go",)), "Grep": ("pattern", ("{1}", "func {2}")),
    "Write": ("file_path", ("/src/{0}.ts", "/src/package.json")), "WebFetch": ("url", ("https://{1}.example/{0}",)),
}  # fmt: skip
TASKS = ("fix the crash in {0}", "add {0}", "refactor {0}", "write tests for {0}", "document {0}", "why does {0} fail?")
"""What makes a piece of work one of each kind."""


class Values:
    """Values of any type, each as long as it may be. Every choice is drawn from `rng`."""

    def __init__(self, rng: random.Random, dear: str) -> None:
        self._rng = rng
        self.dear = dear
        self.longest = FIELD
        self.members = 8
        """How many a collection has."""

    def text(self, length: int) -> str:
        """So many characters that cost much, other ones each time, in words of every length."""
        rng = self._rng
        own = f"{rng.getrandbits(32):08x}"
        return (own + rng.choice((self.dear, self.dear.replace(" ", "_"))) * (length // len(self.dear) + 1))[:length]

    def name(self) -> str:
        """A name as code has them; a few come again."""
        rng = self._rng
        own = f"n{rng.choice((rng.randrange(40), rng.getrandbits(40)))}"
        return own + rng.choice(("", "_of_a_thing_with_a_name_that_goes_on_and_on", "이름" * 30))

    def filled(self, form: str) -> str:
        return form.format(self.text(self._rng.choice((30, 150, 2_000))), self.name(), self.name())

    def made(self, hint: Any, name: str = "") -> Any:
        """A value of that type, as long as it may be."""
        rng = self._rng
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if origin is Literal:
            return rng.choice(args)
        if origin is Union or isinstance(hint, type(int | str)):
            return self.made(rng.choice(args), name)
        if origin is tuple:
            of = [args[0]] * self.members if args[1:] == (...,) else args
            return tuple(self.made(each) for each in of)
        if origin is dict:
            return {self.name(): self.text(100) for _ in range(3)}
        if isinstance(hint, type) and issubclass(hint, Enum):
            return rng.choice(list(hint))
        if hint is type(None):
            return None
        if hint is bool:
            return rng.random() < 0.5
        if hint is str and name in NAMES:
            return NAMES[name](self)
        if hint is str:
            return self.text(self.longest) if rng.random() < 0.7 else self.name()
        if hint is Micros:
            return Micros(NOON + rng.randrange(10**12))
        if hint is int:
            return rng.choice((0, 1, 2**40))
        if hint is float:
            return rng.random()
        if hint is UUID:
            return UUID(int=rng.getrandbits(128))
        if hint is Hunk:
            return Hunk(1, 1, (f"+{self.text(80)}", f"-{self.text(80)}"))
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            return hint(**dict(self.values(hint)))
        raise AssertionError(f"{name}: the generator knows no {hint!r}")

    def values(self, kind: type[msgspec.Struct], only: Collection[str] | None = None) -> Iterator[tuple[str, Any]]:
        """Names and values of a struct's fields: of all of them, or of some."""
        return ((name, self.made(of, name)) for name, of in _fields(kind) if only is None or name in only)

    def place(self) -> str:
        """A directory, as long as one may be."""
        return normalise(f"/home/{self.text(1200)}/{self._rng.randrange(12)}")

    def anchor(self) -> str:
        """What a project is known by: a place, or in an import any text."""
        return self.place() if self.longest <= FIELD else self.text(self.longest)

    def hex(self, digits: int) -> str:
        return f"{self._rng.getrandbits(4 * digits):0{digits}x}"


NAMES: dict[str, Callable[[Values], str]] = {
    "stream": lambda values: f"session/claude-code/{values.hex(100)}",
    "task": lambda values: values.hex(16),
    "signature": lambda values: values.hex(32),
    "quote_hash": lambda values: values.hex(16),
    "field": lambda values: f"input.{values.text(LONGEST_FIELD - len('input.'))}",
    **dict.fromkeys(("location", "place", "root", "around"), Values.place),
    **dict.fromkeys(("into", "merged", "part"), Values.anchor),
}
"""Texts that memctl makes or bounds itself before a fold sees them."""


class Session(Values):
    """The events of one session, as many as wanted. Every choice is drawn from `rng`.

    A session does much of a few things and little of all others, another one of others: what fills one table of a row
    leaves no room for what fills the next.
    """

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng, rng.choice(DEAR))
        self._number = 0
        self._open: list[ToolCalled] = []
        self._told = sorted(
            (each.payload for each in event_types().values() if issubclass(each.payload, Observation | Statement)),
            key=lambda kind: kind.__name__,
        )
        self._often = [rng.choice((1, 1, 1, 8, 30)) for _ in self._told]
        self._tools, self._outputs, self._said = (
            rng.sample(all, rng.randint(1, len(all))) for all in ((*TOOLS, "TodoWrite", ""), OUTPUT, (*SAID, *TASKS))
        )
        self._uses = rng.choice((0.3, 0.6, 0.9))

    def events(self, count: int) -> Iterator[Event]:
        for _ in range(count):
            yield self._event()

    def _event(self) -> Event:
        rng = self._rng
        self._number += 1
        payload = self._outcome() if self._open and rng.random() < 0.7 else self._payload()
        if isinstance(payload, Observation):
            payload = msgspec.structs.replace(payload, line=f"#{self._number}", block=0, parent="", injected=False)
        location = self.place() if rng.random() < 0.1 else ""
        at, key = Micros(NOON + self._number * 1_000_000), f"hostile:{self._number}"
        return Event(
            position=Position(self._number), event_id=event_id_of(1, key), space_id=1, stream=STREAM,
            type=type_of(payload).name, occurred_at=at, recorded_at=at, actor="user", location=location,
            session_id=STREAM.rpartition("/")[2], dedupe_key=key, payload=payload,
        )  # fmt: skip

    def _payload(self) -> Payload:
        rng = self._rng
        [kind] = rng.choices(self._told, self._often)
        if rng.random() < self._uses or issubclass(kind, ToolOutcome):
            kind = ToolCalled
        self.longest = FIELD if issubclass(kind, Observation) else LONGEST
        payload = self.made(kind)
        if isinstance(payload, ToolCalled):
            tool = rng.choice(self._tools) or self.text(200)
            name, forms = TOOLS.get(tool, ("todos", ("{0}",)))
            given: dict[str, Any] = {name: self.filled(rng.choice(forms))}
            if tool == "Edit":
                given |= {"old_string": self.filled(CODE), "new_string": self.filled(CODE)}
            elif tool == "Write":
                given |= {"content": self.filled(rng.choice((CODE, MANIFEST)))}
            elif name == "todos":
                steps = range(60)
                states = ("pending", "in_progress", "completed")
                given = {"todos": [{"content": self.text(300), "status": rng.choice(states)} for _ in steps]}
            subagent = self.name() if rng.random() < 0.3 else ""
            payload = msgspec.structs.replace(
                payload, tool=tool, input=given, call=f"c{self._number}", subagent=subagent
            )
            self._open.append(payload)
        elif hasattr(payload, "text") and rng.random() < 0.7:
            payload = msgspec.structs.replace(payload, text=self.filled(rng.choice(self._said)))
        return payload

    def _outcome(self) -> Payload:
        rng, call = self._rng, self._open.pop()
        self.longest = FIELD
        kinds = [kind for kind in self._told if issubclass(kind, ToolOutcome)]
        made = self.made(rng.choice(kinds))
        assert isinstance(made, ToolOutcome)
        return msgspec.structs.replace(
            made, call=call.call, tool=call.tool, subagent=call.subagent, text=self.filled(rng.choice(self._outputs)),
            file=self.filled("/src/{0}.py") if rng.random() < 0.3 else "", patch=(),
            exit_code=rng.choice((None, 0, 0, 1)), asked=self.name() if rng.random() < 0.2 else "",
        )  # fmt: skip


@functools.cache
def _fields(kind: type[msgspec.Struct]) -> list[tuple[str, Any]]:
    hints = typing.get_type_hints(kind)
    return [(field.name, hints[field.name]) for field in msgspec.structs.fields(kind)]
