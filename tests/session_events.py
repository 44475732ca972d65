"""Sessions for tests, told event by event by a person, by hooks or by chance, and the facts that they come to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st

from memctl.domain.events.event import Event, Micros, Payload, Position, type_of
from memctl.domain.events.facts import Fact
from memctl.domain.events.observations import (
    Hunk,
    NoticeReceived,
    PromptSubmitted,
    ResponseReceived,
    SessionStarted,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    event_id_of,
    hook_key,
    transcript_key,
)
from memctl.domain.session.stream_facts import derive

STREAM = "session/claude-code/s1"
START = 1_760_000_000_000_000
SECOND = 1_000_000


class Session:
    """Writes a session's events, one second apart, each line under the one before."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._line = ""

    def tell(self, payload: Payload, actor: str = "agent", *, after: float = 1, hook: str = "") -> Event:
        number = len(self.events) + 1
        when = Micros((self.events[-1].occurred_at if self.events else START) + int(after * SECOND))
        if hook:
            key = hook_key(hook)
            payload = msgspec.structs.replace(payload, via="hook")
        else:
            line = f"line-{number:03}"
            key = transcript_key("claude-code", "s1", line, 0)
            payload = msgspec.structs.replace(payload, line=line, parent=self._line)
            self._line = line
        told = event(payload, key, when, number, actor)
        self.events.append(told)
        return told

    def user(self, text: str, **fields: Any) -> Event:
        return self.tell(PromptSubmitted(text=text, **fields), "user")

    def says(self, text: str, **fields: Any) -> Event:
        return self.tell(ResponseReceived(text=text, **fields))

    def runs(self, command: str, output: str = "", exit_code: int = 0) -> Event:
        return self.uses("Bash", {"command": command}, output, failed=exit_code != 0, exit_code=exit_code or None)

    def edits(self, path: str, old: str, new: str) -> Event:
        hunk = Hunk(1, 1, (*(f"-{line}" for line in old.split("\n")), *(f"+{line}" for line in new.split("\n"))))
        given = {"file_path": path, "old_string": old, "new_string": new}
        return self.uses("Edit", given, "updated", file=path, patch=(hunk,))

    def uses(self, tool: str, given: dict[str, Any], output: str, *, failed: bool = False, **outcome: Any) -> Event:
        call = f"call-{len(self.events) + 1}"
        self.tell(ToolCalled(tool=tool, call=call, input=given))
        came = ToolFailed if failed else ToolReturned
        return self.tell(came(text=output, call=call, **outcome), "tool")


def event(payload: Payload, key: str, when: int, position: int = 1, actor: str = "agent", **more: Any) -> Event:
    return Event(
        position=Position(position),
        event_id=more.pop("event_id", event_id_of(1, key)),
        space_id=1,
        stream=STREAM,
        type=type_of(payload).name,
        occurred_at=Micros(when),
        recorded_at=Micros(when),
        actor=actor,
        location="/work/shop",
        session_id="s1",
        dedupe_key=key,
        payload=payload,
        **more,
    )


def facts_of(events: Sequence[Event]) -> list[Fact]:
    return derive(STREAM, events).drain()


def only(facts: Sequence[Fact], *kinds: type[Fact]) -> list[Any]:
    return [fact for fact in facts if isinstance(fact, kinds)]


TRACEBACK = """Exit code 1
F                                                                    [100%]
=================================== FAILURES ===================================
____________________________ test_total_of_empty_cart __________________________
    def test_total_of_empty_cart():
>       assert Cart().total() == 0
E       TypeError: unsupported operand type(s) for +: 'NoneType' and 'int'
tests/test_cart.py:12: TypeError
=========================== short test summary info ============================
FAILED tests/test_cart.py::test_total_of_empty_cart - TypeError: unsupported operand type(s) for +: 'NoneType' and 'int'
1 failed, 11 passed in 0.41s
"""


def hooks_of(events: Sequence[Event]) -> list[Event]:
    """What hooks would have delivered of these events, a little later than the transcript says."""
    told = []
    for number, each in enumerate(events):
        payload = each.payload
        if isinstance(payload, (PromptSubmitted, ToolCalled, ToolReturned, ToolFailed, SessionStarted)) or (
            isinstance(payload, ResponseReceived) and payload.kind == "text"
        ):
            payload = msgspec.structs.replace(payload, via="hook", line="", parent="", block=0)
            if isinstance(payload, (ToolReturned, ToolFailed)):
                payload = msgspec.structs.replace(payload, duration_ms=1_234)
            key = hook_key(f"{number:032x}")
            told.append(event(payload, key, each.occurred_at + 100_000, 1_000 + number, each.actor))
    return told


TEXTS = st.sampled_from(
    [
        "Fix the login please, it fails",
        "commit",
        "thanks",
        "no, that's wrong",
        "Implement the following plan:\n# Plan: B",
        "<system-reminder>x</system-reminder>",
        "고마워",
        "always use tabs",
        "",
    ]
)


OUTPUTS = st.sampled_from(
    [
        "",
        "ok",
        TRACEBACK,
        "3 passed in 0.1s",
        "Exit code 1\nerror: bad thing",
        "The user doesn't want to proceed",
        "a.go:1:2: undefined: x",
    ]
)


COMMANDS = st.sampled_from(
    ["pytest -q", "go build ./...", "git commit -m x", "cat a | head", "npm install", "", "rm -rf x &&"]
)


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Events of a session: clocks that lie, parents that are missing or run in circles, hooks, ordinals, duplicates."""
    events: list[Event] = []
    for number in range(draw(st.integers(1, 14))):
        when = START + draw(st.integers(-3, 12)) * SECOND
        shape = draw(st.sampled_from(["uuid", "uuid", "ordinal", "hook"]))
        line = {"uuid": f"u{number}", "ordinal": f"#{number + 1}", "hook": ""}[shape]
        parent = f"u{draw(st.integers(0, 14))}" if shape == "uuid" and draw(st.booleans()) else ""
        base: dict[str, Any] = {
            "via": "hook" if shape == "hook" else "transcript",
            "line": line,
            "parent": parent,
            "block": draw(st.integers(0, 1)),
            "subagent": draw(st.sampled_from(["", "", "", "a1"])),
        }
        call = f"c{draw(st.integers(0, 4))}" if draw(st.integers(0, 5)) else ""
        kind = draw(st.sampled_from(["prompt", "says", "called", "returned", "failed", "started", "title"]))
        payload: Payload
        if kind == "prompt":
            payload = PromptSubmitted(text=draw(TEXTS), **base)
        elif kind == "says":
            payload = ResponseReceived(
                text=draw(TEXTS), message=draw(st.sampled_from(["", "m1"])), tokens_out=number, **base
            )
        elif kind == "called":
            payload = ToolCalled(
                tool=draw(st.sampled_from(["Bash", "Edit"])),
                call=call,
                input={"command": draw(COMMANDS), "file_path": "a.py"},
                **base,
            )
        elif kind == "started":
            payload = SessionStarted(source=draw(st.sampled_from(["startup", "resume"])), **base)
        elif kind == "title":
            payload, when = NoticeReceived(kind="title", text=draw(TEXTS), **base), draw(st.sampled_from([0, when]))
        else:
            payload = (ToolReturned if kind == "returned" else ToolFailed)(text=draw(OUTPUTS), call=call, **base)
        key = hook_key(f"{number}") if shape == "hook" else transcript_key("claude-code", "s1", line, base["block"])
        events.append(event(payload, key, when, number))
        if draw(st.integers(0, 6)) == 0 and hasattr(payload, "text"):
            other = msgspec.structs.replace(payload, text=draw(TEXTS))
            variant = {"event_id": event_id_of(1, f"{key}~{number}"), "variant_of": events[-1].event_id}
            events.append(event(other, key, when, number, **variant))
        elif when == 0 and shape == "ordinal":
            events[-1] = msgspec.structs.replace(events[-1], location="")
    return events
