"""Locations: what is known of each working directory, by which they are combined to projects when something is asked.

`memctl.domain.projects.identity` says how; `project_words` is what people said about it.
"""

from __future__ import annotations

import msgspec

from memctl.domain.events.facts import PlaceSeen
from memctl.domain.projects.identity import REMOTES, ProjectIdentified
from memctl.domain.support.bounded import Seen, newest, seen
from memctl.domain.support.location import LONGEST
from memctl.projections.kernel import Recorded, projection

ROOTS, AROUND = 2, 8
"""How many roots of each kind and directories around a location a row keeps, newest first."""


class Root(msgspec.Struct, frozen=True):
    """A checkout that a location was found to lie in, and its repository where that is a worktree's.

    `at` counts in microseconds; `recorded` are those that git's own files named.
    """

    at: int
    id: str
    root: str
    repository: str = ""
    recorded: bool = False


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """One working directory. Times in microseconds; `around` are directories of the same checkout that hold it."""

    location: str
    first_seen: int
    last_seen: int
    worked: bool = False
    """Something happened there; else it was only named."""
    roots: tuple[Root, ...] = ()
    """Those that were recorded first, each kind newest first."""
    remotes: tuple[Seen, ...] = ()
    around: tuple[Seen, ...] = ()
    modules: tuple[Seen, ...] = ()
    """Go modules that were tested there."""
    claims: tuple[Seen, ...] = ()
    """Remotes that keys limited to projects said it has."""
    free: bool = True
    """It was also observed without a key that is limited to projects."""


def _rank(root: Root) -> tuple[bool, int, str]:
    return root.recorded, root.at, root.id


def _key(item: PlaceSeen | Recorded[ProjectIdentified]) -> str | None:
    return (item.place if isinstance(item, PlaceSeen) else item.payload.location) or None


@projection(row=Location, key=_key)
def locations(row: Location | None, item: PlaceSeen | Recorded[ProjectIdentified]) -> Location | None:
    """Working directories: the checkout each lies in, its git remotes, and what shows that it is part of another."""
    if isinstance(item, PlaceSeen):
        observed: PlaceSeen | ProjectIdentified = item
        at, id, recorded, around, remote = int(item.occurred_at), str(item.id), False, item.around, item.remote
        root, module = Root(at, id, item.root), item.module
        worked = not (item.root or item.remote or item.around or item.module)
    else:
        observed, at, id, recorded, around = (
            item.payload,
            int(item.event.occurred_at),
            str(item.event.delivery_id),
            True,
            "",
        )
        root, remote, worked = Root(at, id, observed.root, observed.repository, recorded), observed.remote, True
        module = ""
    row = row or Location(location=_key(item) or "", first_seen=at, last_seen=at, free=False)
    row = msgspec.structs.replace(
        row, first_seen=min(row.first_seen, at), last_seen=max(row.last_seen, at), worked=row.worked or worked
    )
    if observed.confined:
        return msgspec.structs.replace(row, claims=seen(row.claims, remote, at, REMOTES, 300))
    roots = row.roots
    if root.root:
        # One recorded word counts for more than any number of others, so each kind keeps its own newest.
        same, others = ([r for r in roots if r.recorded == kind] for kind in (recorded, not recorded))
        roots = tuple(sorted((*newest(tuple(same), root, ROOTS), *others), key=_rank, reverse=True))
    return msgspec.structs.replace(
        row,
        roots=roots,
        remotes=seen(row.remotes, remote, at, REMOTES, 300),
        around=seen(row.around, around, at, AROUND, LONGEST),
        modules=seen(row.modules, module, at, REMOTES, 300),
        free=True,
    )
