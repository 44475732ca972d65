"""Projects as answers show them: who they are, what sessions showed of them, and how tools are used there. Field order
is the order of the JSON; moments are in ISO 8601."""

import msgspec

from memctl.api.reading.records import Record


class Line(msgspec.Struct, frozen=True):
    """Something true of a project: how often it was seen, in how many sessions (0 where that is not counted), when
    last (ISO 8601), and the newest events that show it."""

    text: str
    count: int
    sessions: int
    last: str | None = None
    sources: list[str] = []


class ProjectItem(Record, frozen=True, kw_only=True):
    """A project: `anchor` is its remote, or the path of its root; `parts` the anchors of what was merged to it."""

    id: str
    anchor: str
    name: str
    names: list[str]
    root: str
    remotes: list[str]
    locations: list[str]
    parts: list[str]
    last_seen: str
    waits_for: str = ""
    """What it says it is of, as long as nobody said yes or no: a known project's remote, or a repository's path."""


class WaitingItem(Record, frozen=True, kw_only=True):
    """A checkout that says it is of a known project, by `claims`: a remote, or a repository's path. `project` is that
    project's anchor."""

    root: str
    claims: str
    project: str
    name: str
    known_from: str


class ProjectCounts(Record, frozen=True, kw_only=True):
    """How much work was done, of what types, and how it ended; `success_rate` is None where no end is known."""

    sessions: int
    episodes: int
    types: dict[str, int]
    outcomes: dict[str, int]
    success_rate: float | None


class ProjectPage(Record, frozen=True, kw_only=True):
    """What is known of a project, in sections of lines."""

    project: ProjectItem
    stats: ProjectCounts
    tech_stack: list[Line]
    commands: list[Line]
    structure: list[Line]
    conventions: list[Line]
    hotspots: list[Line]
    open: list[Line]
    issues: list[Line]
    prefer: list[Line]
    avoid: list[Line]
