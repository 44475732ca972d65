"""Histories for tests, built from events."""

from __future__ import annotations

from memctl.domain.events.event import Event, Micros, NewEvent, Payload, Position
from memctl.domain.events.observations import (
    Observation,
    PromptSubmitted,
    ToolCalled,
    ToolReturned,
    event_id_of,
    session_stream,
    transcript_key,
)

AGENT = "claude-code"
NOON = 1_772_452_800_000_000
"""2026-03-02T12:00:00Z, in microseconds."""


def observed(
    payload: Observation, *, session: str = "s1", at: int = 0, actor: str = "user", location: str = "/home/dana/ledger"
) -> NewEvent:
    """A transcript's block, `at` seconds past noon, under the key of its line and block."""
    return NewEvent(
        stream=session_stream(AGENT, session),
        payload=payload,
        occurred_at=Micros(NOON + at * 1_000_000),
        dedupe_key=transcript_key(AGENT, session, payload.line, payload.block),
        actor=actor,
        location=location,
        session_id=session,
    )


def prompt(number: int, text: str | None = None, *, session: str = "s1", at: int | None = None) -> NewEvent:
    """The `number`-th prompt of a session."""
    said = f"please look into number {number} of the list" if text is None else text
    payload = PromptSubmitted(line=f"{session}-line-{number}", text=said)
    return observed(payload, session=session, at=number if at is None else at)


def work(number: int, *, session: str = "s1") -> NewEvent:
    """The `number`-th event of a session as real ones go: a prompt, and ten calls of tools with what they returned."""
    turn, step = divmod(number, 21)
    line, call = f"{session}-line-{number}", f"{session}-call-{turn}-{(step + 1) // 2}"
    if step == 0:
        return prompt(number, session=session)
    if step % 2:
        command = f"sed -n {number}p src/part{number % 40}.py"
        return observed(
            ToolCalled(line=line, tool="Bash", call=call, input={"command": command}), session=session, at=number
        )
    return observed(ToolReturned(line=line, tool="Bash", call=call, text=f"row {number}"), session=session, at=number)


def stated(stream: str, payload: Payload, key: str = "stated", *, at: int = 0) -> NewEvent:
    """What the user states in a stream, `at` seconds past noon."""
    occurred_at = Micros(NOON + at * 1_000_000)
    return NewEvent(stream=stream, payload=payload, occurred_at=occurred_at, dedupe_key=key, actor="user")


def id_of(event: NewEvent, space_id: int = 1) -> str:
    return str(event_id_of(space_id, event.dedupe_key))


def as_read(new: NewEvent, position: int, space_id: int = 1) -> Event:
    """An event as the log would give it back."""
    return Event(
        position=Position(position),
        event_id=event_id_of(space_id, new.dedupe_key),
        space_id=space_id,
        stream=new.stream,
        type=new.type,
        occurred_at=new.occurred_at,
        recorded_at=new.occurred_at,
        actor=new.actor,
        location=new.location,
        session_id=new.session_id,
        dedupe_key=new.dedupe_key,
        payload=new.payload,
    )
