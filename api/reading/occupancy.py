"""Which checkout is at a location of this machine now, and how its place is recorded: where another one was before, not
by the bare path, which keeps the former one's memory."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from memctl.domain.projects.occupants import Known, came, moments_of, nearest, reaching
from memctl.domain.support.location import inside, of_occupant
from memctl.infra.git import Checkout, checkout_at, there_since


class Occupancy(NamedTuple):
    """The checkout at a location, its paths as they are recorded, and the moments (microseconds) at which checkouts
    came there over others, oldest first."""

    checkout: Checkout | None
    moments: tuple[int, ...] = ()

    def at(self, location: str, moment: int | None = None) -> str:
        """The place of what happened at the location at a moment, or of the checkout that is there now."""
        since = [each for each in self.moments if moment is None or each <= moment]
        return of_occupant(since[-1], location) if since else location


def occupancy_of(location: str, checkout: Checkout | None, known: Known) -> Occupancy:
    """What git's files say of a location, by what memory knows of checkouts there. `known` is asked for a path, or for
    those around a location at which no checkout lies now."""

    def of(path: str, remote: str | None = None) -> tuple[int, ...]:
        occupants = known([path]).get(path, ())
        return moments_of(occupants) if remote is None else came(occupants, remote, lambda: there_since(path))

    if checkout is None or not checkout.root:
        around = _checkout_around(location)
        paths = [at for at in reaching(location) if around is None or (at != around.root and inside(at, around.root))]
        occupants = nearest(known(paths), paths) if paths else ()
        if occupants or around is None:
            return Occupancy(checkout, moments_of(occupants))
        return Occupancy(checkout, of(around.root, around.remote))
    own = of(checkout.root, checkout.remote)
    of_repository = of(checkout.repository, checkout.remote) if checkout.repository else ()
    borrowed = of(checkout.borrows) if checkout.borrows else ()
    moments = own or of_repository
    as_recorded = checkout._replace(
        root=of_occupant(_last(moments), checkout.root),
        repository=of_occupant(_last(of_repository), checkout.repository),
        borrows=of_occupant(_last(borrowed), checkout.borrows),
    )
    return Occupancy(as_recorded, moments)


def _checkout_around(location: str) -> Checkout | None:
    """The checkout in which a directory lay that is not there any more."""
    try:
        there = next((at for at in reaching(location) if Path(at).is_dir()), "")
    except OSError:  # not ours to read
        return None
    found = checkout_at(there) if there != location else None
    return found if found is not None and found.root else None


def _last(moments: Sequence[int]) -> int:
    return moments[-1] if moments else 0
