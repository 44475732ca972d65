"""Locations: what is known of each working directory, by which they are combined to projects when something is asked.

`memctl.domain.projects.identity` says how; `project_words` is what people said about it.
"""

import msgspec

from memctl.domain.events.event_order import keyed_at
from memctl.domain.events.facts import PlaceSeen
from memctl.domain.projects.identity import REMOTES, ProjectIdentified, brought_by
from memctl.domain.support.bounded import NARROW, Seen, clipped, earliest, seen
from memctl.domain.support.location import LONGEST, by_key
from memctl.projections.kernel import Recorded, projection

FIRST = 8
"""How many remotes a row keeps with when each was named first: those that were first, for of these nothing can be lost.
Twice what is known at once, for a remote is renamed seldom."""

BROUGHT = 8
"""How many deliveries a row keeps by which files that were brought named remotes: enough to know since when."""

AROUND = 8
"""How many directories around a location a row keeps, newest first."""


class Root(msgspec.Struct, frozen=True):
    """What git's own files said of a location, as `ProjectIdentified` has it. `at` counts in microseconds."""

    at: int
    id: str
    root: str
    repository: str = ""
    borrows: str = ""
    checked: bool = False
    there_since: int = 0


class Brought(msgspec.Struct, frozen=True, array_like=True, order=True):
    """A delivery by which a file named a remote: the id of its event."""

    delivery: str
    remote: str


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """One working directory. Times in microseconds; `around` are directories of the same checkout that hold it."""

    location: str
    first_seen: int
    last_seen: int
    worked: bool = False
    """Something happened there; else it was only named."""
    root: Root | None = None
    """The newest of those that were read from both sides, else of all."""
    remotes: tuple[Seen, ...] = ()
    """By git's files, or by the client's word in what it recorded of the session itself."""
    first: tuple[Seen, ...] = ()
    """When a hook or a client's own record first named each, oldest first, but not before its repository was there; by
    a key, when it was delivered."""
    brought: tuple[Brought, ...] = ()
    """Some of the deliveries by which files that were brought named a remote, those of the lowest ids: they count where
    `first` has none of it."""
    by_key: bool | None = None
    """Known by the word of who came with a key alone, which counts no more once this machine saw the place. None where
    only keys that are limited to projects spoke of it."""
    around: tuple[Seen, ...] = ()
    claims: tuple[Seen, ...] = ()
    """Remotes that keys limited to projects said it has."""
    free: bool = True
    """It was also observed without a key that is limited to projects."""


def _rank(root: Root) -> tuple[bool, int, str]:
    return root.checked, root.at, root.id


def _key(item: PlaceSeen | Recorded[ProjectIdentified]) -> str | None:
    at, confined = (
        (item.place, item.confined) if isinstance(item, PlaceSeen) else (item.payload.location, item.payload.confined)
    )
    return (by_key(at) if confined else at) or None


@projection(row=Location, key=_key)
def locations(row: Location | None, item: PlaceSeen | Recorded[ProjectIdentified]) -> Location | None:
    """Working directories: the checkout each lies in, its git remotes, and what shows that it is part of another."""
    observed = item if isinstance(item, PlaceSeen) else item.payload
    at = int(item.occurred_at if isinstance(item, PlaceSeen) else item.event.occurred_at)
    row = row or Location(location=_key(item) or "", first_seen=at, last_seen=at, free=False)
    worked = not isinstance(observed, PlaceSeen) or not (observed.remote or observed.around)
    row = msgspec.structs.replace(
        row, first_seen=min(row.first_seen, at), last_seen=max(row.last_seen, at), worked=row.worked or worked
    )
    remote = observed.remote
    if observed.confined:
        return msgspec.structs.replace(row, claims=seen(row.claims, remote, at, REMOTES, 300))
    keyed = item.keyed_at if isinstance(item, PlaceSeen) else keyed_at(item.event)
    if keyed and row.by_key is False:
        return msgspec.structs.replace(row, free=True)
    if row.by_key and not keyed:
        row = msgspec.structs.replace(row, root=None, remotes=(), first=(), brought=(), around=())
    row = msgspec.structs.replace(row, by_key=bool(keyed))
    first, brought, around, root = row.first, row.brought, row.around, row.root
    delivery = item.brought_by if isinstance(item, PlaceSeen) else brought_by(item.event)
    if remote and delivery:
        brought = tuple(sorted({*brought, Brought(delivery, clipped(remote, 300, NARROW))}))[:BROUGHT]
    elif remote:
        since = 0 if isinstance(observed, PlaceSeen) else observed.there_since
        first = earliest(first, remote, keyed or max(at, since), FIRST, 300)
    if isinstance(observed, PlaceSeen):
        around = seen(around, observed.around, at, AROUND, LONGEST)
    elif not isinstance(item, PlaceSeen) and (observed.root or observed.checked):
        id = str(item.event.delivery_id)
        found = Root(
            at, id, observed.root, observed.repository, observed.borrows, observed.checked, observed.there_since
        )
        root = found if root is None else max(found, root, key=_rank)
    remotes = seen(row.remotes, remote, at, REMOTES, 300)
    row = msgspec.structs.replace(row, first=first, brought=brought)
    return msgspec.structs.replace(row, root=root, remotes=remotes, around=around, free=True)
