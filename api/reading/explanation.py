"""Why memory holds a thing, as answers say it: level by level, with the quotes that it rests on."""

from typing import Literal

import msgspec

from memctl.api.reading.views import Evidence, Json


class Quoted(msgspec.Struct, frozen=True, kw_only=True):
    """L0: a quote in its surroundings, which are cut at words, with an ellipsis there. `type` and `occurred_at` are
    the event's."""

    evidence: Evidence
    type: str
    occurred_at: str
    before: str
    after: str
    said_by: str = ""
    rule: str = ""


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """One level of graduation. `row` is what stands there; `reached` whether the thing got so far, `why` in words."""

    level: Literal[0, 1, 2, 3, 4]
    name: str
    reached: bool
    why: str
    id: str = ""
    row: dict[str, Json] = {}


class Rival(msgspec.Struct, frozen=True, kw_only=True):
    """Another side of a conflict, with its dates and trust, and whether it stands."""

    id: str
    text: str
    stands: bool
    trust: str
    valid_from: str
    valid_until: str | None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """`level` is the highest that was reached. `missing` says what keeps a candidate from the next."""

    id: str
    kind: str
    text: str
    project: str
    level: int
    levels: list[Level]
    evidence: list[Quoted]
    missing: list[str] = []
    conflicts: list[Rival] = []
    stale: list[str] = []
    """Files that it is about and that have changed since it was last seen to hold."""
    resolution: str = "direct"
    """direct, pending or resolved; `resolved_to` is what it stands for then."""
    resolved_to: str = ""
