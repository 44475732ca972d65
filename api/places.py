"""Which project a question is about: a name, a path, `*`, or where the caller stands."""

from __future__ import annotations

import difflib
from typing import Literal

import msgspec
from psycopg import sql

from memctl.api.reader import Reader
from memctl.api.views import Scope
from memctl.domain.errors import MemctlError
from memctl.domain.location import normalise, project_name, project_of
from memctl.infra import readmodels
from memctl.projections.kernel import projections

EVERYWHERE = "*"


class UnknownProject(MemctlError):
    """Memory knows no project {project!r}."""

    exit_code = 3
    project: str


class Places(msgspec.Struct, frozen=True):
    """The projects of a question. `locations` is None for everywhere; else all locations of one project, its worktrees
    and clones among them."""

    project: str | None
    chosen: Literal["asked", "here", "everywhere"]
    locations: tuple[str, ...] | None

    @property
    def scope(self) -> Scope:
        return Scope(self.project, self.chosen, len(self.locations or ()))


def known_locations(reader: Reader) -> list[str]:
    """Every working directory that something happened in, sorted."""
    stats = next(p for p in projections(1) if p.name == "stats")
    location = readmodels.expression(stats, "location")
    # One look at the index a location: a plain DISTINCT would read a row for every location and day.
    found = reader.connection.execute(
        sql.SQL(
            "WITH RECURSIVE known(place) AS ("
            " (SELECT min({location}) FROM {table} WHERE space_id = %(space)s)"
            " UNION ALL SELECT (SELECT min({location}) FROM {table} WHERE space_id = %(space)s AND {location} > place)"
            " FROM known WHERE place IS NOT NULL)"
            " SELECT place FROM known WHERE place <> '' ORDER BY 1"
        ).format(location=sql.SQL(location), table=sql.SQL(readmodels.table("stats", reader.live.stage1))),
        {"space": reader.space_id},
    )
    return [row[0] for row in found]


def places_of(reader: Reader, project: str | None, here: str | None = None) -> Places:
    """What `project` means: a project's name in any case, a path in it, or `*` for all.

    Without it, the project that the directory `here` lies in, or everything where memory knows none there.
    Raises: UnknownProject, with names that are near.
    """
    if project == EVERYWHERE:
        return Places(None, "asked", None)
    if project:
        known = known_locations(reader)
        by_name = tuple(place for place in known if project_name(place).casefold() == project.casefold())
        if by_name:
            return Places(project_name(by_name[0]), "asked", by_name)
        inside = _around(known, project) if "/" in project or "\\" in project else None
        if inside is None:
            raise _unknown(project, known)
        return Places(project_name(inside[0]), "asked", inside)
    if here:
        inside = _around(known_locations(reader), here)
        if inside is not None:
            return Places(project_name(inside[0]), "here", inside)
    return Places(None, "everywhere", None)


def _around(known: list[str], path: str) -> tuple[str, ...] | None:
    """The locations of the project that a path is, or lies in; of nested projects the innermost."""
    wanted = project_of(normalise(path))
    roots = {project_of(place) for place in known}
    holding = [root for root in roots if wanted == root or wanted.startswith(root.rstrip("/") + "/")]
    if not holding:
        return None
    name = project_name(max(holding, key=len))
    return tuple(place for place in known if project_name(place) == name)


def _unknown(project: str, known: list[str]) -> UnknownProject:
    names = sorted({project_name(place) for place in known})
    near = difflib.get_close_matches(project, names, n=3, cutoff=0.5) or names[:5]
    hint = f"it knows {', '.join(near)}; '*' asks all" if near else "nothing was kept yet; see `memctl ingest --help`"
    return UnknownProject(project=project, hint=hint)
