"""Forgetting: the scope that is asked for, what keeps it from being recorded again, and the event that records it."""

from typing import Literal
from uuid import UUID

import msgspec

from memctl.domain.events.event import Micros, Payload, event
from memctl.domain.events.observations import ToolCalled, ToolOutcome, bounded_name
from memctl.domain.support.errors import MemctlError

SHORTEST_MATCH = 4
"""Characters of a text that is looked for: fewer would be found everywhere."""

AROUND_US = 30_000_000
"""A hook's clock and a transcript's show the same moment within this time, in microseconds."""

ScopeKind = Literal["id", "session", "project", "before", "match", "rules"]


class Scope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is to be forgotten, in words that may be kept: never a text.

    `streams` of a session and its subagents; `locations` of a project; `until` in microseconds (what happened later
    stays). Of an id or a text, `ids` are those of the deliveries that it led to. `rules`: what new rules of redaction
    found. Its events are not gone: they are recorded again without the secrets.
    """

    kind: ScopeKind
    id: str = ""
    """The id that was named, whatever it was of."""
    streams: tuple[str, ...] = ()
    locations: tuple[str, ...] = ()
    until: Micros = Micros(0)
    rule: str = ""
    """Of what went by a rule, as by its age: the rule. Then what was observed goes, and what was stated stays."""
    asked: str = ""
    """Digest of what was asked for under an idempotency key. The key is not kept, so the digest reveals nothing."""


class Tombstone(msgspec.Struct, frozen=True, kw_only=True):
    """What every append looks at. Times in microseconds; None is open.

    `event`: a delivery of that id. `line`: any block of a transcript's line. `call`: one kind of event of one tool use.
    `moment`: one kind of event of one source (`via`) within a time, where nothing else names its twin. `session`,
    `location` (and what lies in it), `before`: whatever happened there up to a time.
    """

    kind: Literal["event", "line", "call", "moment", "session", "location", "before"]
    stream: str = ""
    value: str = ""
    since: Micros | None = None
    until: Micros | None = None


@event("content.erased")
class ContentErased(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """Something was forgotten: by what scope, how many events, and why. Never what they said."""

    receipt: UUID
    scope: Scope
    events: int
    reason: str = ""


class NothingToForget(MemctlError):
    """Nothing in memory is meant by {what}."""

    exit_code = 3
    what: str


class TooShort(MemctlError):
    """A text of fewer than {least} characters would be found everywhere."""

    exit_code = 2

    def __init__(self) -> None:
        super().__init__(least=SHORTEST_MATCH, hint="say more of it")


def scope_tombstones(scope: Scope) -> list[Tombstone]:
    """What keeps a scope from being recorded again, whichever events it holds."""
    match scope.kind:
        case "session":
            return [Tombstone(kind="session", value=stream, until=scope.until) for stream in scope.streams]
        case "project":
            return [Tombstone(kind="location", value=place, until=scope.until) for place in scope.locations]
        case "before":
            return [Tombstone(kind="before", until=scope.until)]
        case _:
            return []


def event_tombstones(stream: str, kind: str, at: Micros, payload: Payload, *, has_counterpart: bool) -> list[Tombstone]:
    """What keeps a single event from being recorded again in other words: its line, its tool use, or its moment.

    `has_counterpart`: the other source has delivered it too, so no further delivery of it is expected.
    """
    found = []
    # An old log holds longer names, from before names were bounded. When recorded again, they are bounded.
    line, call = (bounded_name(getattr(payload, name, "")) for name in ("line", "call"))
    if line:
        found.append(Tombstone(kind="line", stream=stream, value=line))
    if call and isinstance(payload, ToolCalled | ToolOutcome):
        kinds = ("tool.called",) if isinstance(payload, ToolCalled) else ("tool.returned", "tool.failed")
        found += [Tombstone(kind="call", stream=stream, value=f"{each} {call}") for each in kinds]
    elif via := getattr(payload, "via", ""):
        other = "hook" if via == "transcript" else "transcript"
        if not has_counterpart:
            since, until = Micros(at - AROUND_US), Micros(at + AROUND_US)
            found.append(Tombstone(kind="moment", stream=stream, value=f"{kind} {other}", since=since, until=until))
    return found


def same_text(one: Payload, other: Payload) -> bool:
    """Whether two observations of one session, by hook and by transcript, report the same thing."""
    if getattr(one, "via", "") == getattr(other, "via", "") or type(one) is not type(other):
        return False
    first, second = (" ".join(getattr(each, "text", "").split()) for each in (one, other))
    return bool(first) and first == second
