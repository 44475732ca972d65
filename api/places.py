"""Which project a question is about: a name, a path, an id, `*`, or where the caller stands."""

from __future__ import annotations

import difflib
from typing import Any, Literal

import msgspec

from memctl.api.reader import Reader
from memctl.api.views import Scope
from memctl.domain.projects import Project, Projects, UnknownProject
from memctl.infra.places import known_projects
from memctl.projections.project_words import ProjectWords
from memctl.projections.regard import Regard

EVERYWHERE = "*"

FULL = 16
"""Locations of a row at most: the newest are kept."""


class Places(msgspec.Struct, frozen=True):
    """The projects of a question. `locations` is None for everywhere; else all locations of one project, its worktrees
    and clones among them (of several, where several are called so)."""

    project: str | None
    chosen: Literal["asked", "here", "everywhere"]
    locations: tuple[str, ...] | None

    @property
    def scope(self) -> Scope:
        return Scope(self.project, self.chosen, len(self.locations or ()))


def projects_of(reader: Reader) -> Projects:
    """Every project that memory knows, or of them those that the caller is limited to; worked out once for each
    request."""
    known = reader.memo.get("projects")
    if known is None:
        known = _limited(known_projects(reader.connection, reader.live, reader.space_id), reader)
        reader.memo["projects"] = known
    assert isinstance(known, Projects)
    return known


def locations_of(reader: Reader) -> frozenset[str] | None:
    """All locations that the caller may be told of; None for one that is not limited."""
    if reader.limited_to is None:
        return None
    return frozenset(location for each in projects_of(reader).all for location in each.locations)


def holds(reader: Reader, path: str) -> bool:
    """Whether a path lies in a project that the caller may be told of and write to."""
    return reader.limited_to is None or (bool(path) and projects_of(reader).holding(path) is not None)


def visible(reader: Reader, row: Any) -> bool:
    """Whether a row tells the caller of nothing but the projects that it is limited to.

    What people say of projects and memories (`regard`, `project_words`) has no place: it is read of what is visible.
    """
    allowed = locations_of(reader)
    if allowed is None or not (hasattr(row, "location") or hasattr(row, "locations")):
        return allowed is None or isinstance(row, Regard | ProjectWords)
    seen = [each if isinstance(each, str) else each.name for each in getattr(row, "locations", ())]
    own = getattr(row, "location", "")
    # A list that is full may have pushed out what was met elsewhere.
    return len(seen) < FULL and allowed.issuperset(filter(None, (own, *seen))) and bool(own or seen)


def places_of(reader: Reader, project: str | None, here: str | None = None) -> Places:
    """What `project` means: a project's name in any case, its id or remote, a path in it, or `*` for all.

    Without it, the project that the directory `here` lies in, or everything where memory knows none there.
    Raises: UnknownProject, with names that are near.
    """
    if project == EVERYWHERE:
        return Places(None, "asked", _all(reader))
    if project:
        known = projects_of(reader)
        found = known.named(project)
        if not found:
            raise _unknown(project, known)
        locations = sorted(location for each in found for location in each.locations)
        return Places(found[0].name, "asked", tuple(locations))
    if here and (holding := projects_of(reader).holding(here)) is not None:
        return Places(holding.name, "here", holding.locations)
    return Places(None, "everywhere", _all(reader))


def _all(reader: Reader) -> tuple[str, ...] | None:
    allowed = locations_of(reader)
    return None if allowed is None else tuple(sorted(allowed))


def project_asked(reader: Reader, project: str | None, here: str | None) -> Project:
    """The one project that is named, or else that `here` lies in. Raises: UnknownProject, SeveralProjects."""
    known = projects_of(reader)
    if project:
        if not known.named(project):
            raise _unknown(project, known)
        return known.one(project)
    if here and (holding := known.holding(here)) is not None:
        return holding
    raise _unknown(here or "", known)


def _limited(known: Projects, reader: Reader) -> Projects:
    return known if reader.limited_to is None else known.only(reader.limited_to)


def _unknown(project: str, known: Projects) -> UnknownProject:
    called = sorted({each.name for each in known.all})
    near = difflib.get_close_matches(project, called, n=3, cutoff=0.5) or called[:5]
    hint = f"it knows {', '.join(near)}; '*' asks all" if near else "nothing was kept yet; see `memctl ingest --help`"
    return UnknownProject(project=project, hint=hint)
