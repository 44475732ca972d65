"""Project knowledge: what sessions show of how a project is built, kept and worked on.

One row for each session and location; who asks adds them up by project (`memctl.api.queries.project`). They are kept by
session, so that a correction refolds no other, and because a page can then say in how many sessions a thing was seen.
"""

from collections.abc import Sequence
from typing import assert_never
from uuid import UUID

import msgspec

from memctl.domain.events.event import derived_of
from memctl.domain.events.facts import CommandRan, ErrorResolved, Fact, FileChanged, StackShown, TestsRan, ToolUsed
from memctl.domain.projects.stack import commit_style_of, subject_of
from memctl.domain.support.location import path_of
from memctl.domain.support.remembered import remembered
from memctl.domain.support.tallies import Tallies, count
from memctl.projections.kernel import projection

FILES, NAMES, FEW = 120, 40, 12
"""How many files, names of packages, and commands or styles a row counts."""


class SessionKnowledge(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What one session showed of the project at one location. Times in microseconds.

    Files by path, below the location where they lie there: `changed` how often, `fixed` how often in what resolved an
    error, `read` how often; `lines` added and removed. Commands by how they were written, by what they do (test, check
    or build), with how often they failed. `manifests` by path, what each is of; `packages` those they depend on.
    """

    stream: str
    location: str
    first_at: int = 0
    last_at: int = 0
    changed: Tallies = msgspec.field(default_factory=dict)
    fixed: Tallies = msgspec.field(default_factory=dict)
    read: Tallies = msgspec.field(default_factory=dict)
    lines: dict[str, int] = msgspec.field(default_factory=dict)
    tests: Tallies = msgspec.field(default_factory=dict)
    checks: Tallies = msgspec.field(default_factory=dict)
    builds: Tallies = msgspec.field(default_factory=dict)
    runners: Tallies = msgspec.field(default_factory=dict)
    imports: Tallies = msgspec.field(default_factory=dict)
    packages: Tallies = msgspec.field(default_factory=dict)
    manifests: Tallies = msgspec.field(default_factory=dict)
    owns: Tallies = msgspec.field(default_factory=dict)
    """The project's own names, in its manifests."""
    scripts: Tallies = msgspec.field(default_factory=dict)
    commits: Tallies = msgspec.field(default_factory=dict)
    """Styles of the subjects of commits."""


CountedFact = FileChanged | CommandRan | TestsRan | ErrorResolved | StackShown
Shown = CountedFact | ToolUsed

_TABLES = tuple(
    field.name for field in msgspec.structs.fields(SessionKnowledge) if field.default_factory is not msgspec.NODEFAULT
)


def row_id(fact: Fact) -> str:
    """Key of the row of a session at a location."""
    return _id(fact.stream, fact.location)


@remembered(256)
def _id(stream: str, location: str) -> str:
    return derived_of("project_knowledge", stream, location)


@projection(row=SessionKnowledge, key=row_id, stage=1, indexes=(("location", "last_at"),))
def project_knowledge(row: SessionKnowledge | None, facts: Sequence[Shown]) -> SessionKnowledge:
    """What sessions show of a project: structure, conventions, stack, hot spots."""
    first = facts[0]
    if row is None:
        row = SessionKnowledge(stream=first.stream, location=first.location, first_at=first.occurred_at)
    else:
        row = msgspec.structs.replace(row, **{name: dict(getattr(row, name)) for name in _TABLES})
    for fact in facts:
        if fact.occurred_at > row.last_at:
            row.last_at = fact.occurred_at
        # Most uses of tools are no reading of a file.
        if not isinstance(fact, ToolUsed):
            _count(row, fact)
        elif fact.family == "read" and fact.ok:
            for path in fact.files:
                count(row.read, _below(row.location, path), fact.occurred_at, _shown_by(fact), FILES)
    return row


def _shown_by(fact: Fact) -> UUID | None:
    return fact.evidence[-1].event if fact.evidence else None


def _count(row: SessionKnowledge, fact: CountedFact) -> None:
    at, event = fact.occurred_at, _shown_by(fact)
    match fact:
        case FileChanged():
            path = _below(row.location, fact.path)
            count(row.changed, path, at, event, FILES)
            row.lines["added"] = row.lines.get("added", 0) + fact.added
            row.lines["removed"] = row.lines.get("removed", 0) + fact.removed
        case CommandRan():
            tables = {"test": row.tests, "check": row.checks, "build": row.builds}
            for kind, form in fact.proofs:
                count(tables[kind], form, at, event, FEW, ok=fact.ok)
            if fact.ok and not fact.elsewhere and "git" in fact.command and (subject := subject_of(fact.command)):
                count(row.commits, commit_style_of(subject), at, event, FEW)
        case TestsRan(elsewhere=True):
            pass
        case TestsRan():
            count(row.runners, fact.runner, at, event, FEW, ok=fact.passed)
        case ErrorResolved():
            for path in dict.fromkeys(edit.path for edit in fact.edits):
                count(row.fixed, _below(row.location, path), at, event, FILES)
        case StackShown():
            for name in fact.imports:
                count(row.imports, name, at, event, NAMES)
            if fact.manifest:
                count(row.manifests, f"{_below(row.location, fact.path)}={fact.manifest}", at, event, FEW)
            if fact.own:
                count(row.owns, fact.own, at, event, FEW)
            for name in fact.packages:
                count(row.packages, name, at, event, NAMES)
            for name in fact.scripts:
                count(row.scripts, name, at, event, FEW)
        case _:
            assert_never(fact)


def _below(location: str, path: str) -> str:
    """The path from the location on, where it lies there."""
    return path.removeprefix(path_of(location) + "/")
