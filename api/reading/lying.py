"""What lies at a location of this machine now, as it is recorded: where another checkout lay before, not at the bare
path, which keeps the former one's memory."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from memctl.domain.projects.tenants import Known, came, moments_of, nearest, reaching
from memctl.domain.support.location import inside, lying_since
from memctl.infra.git import Checkout, checkout_at, there_since


class Lying(NamedTuple):
    """The checkout at a location, its paths as they are recorded, and the moments (microseconds) at which checkouts
    came there over others, oldest first."""

    checkout: Checkout | None
    moments: tuple[int, ...] = ()

    def at(self, location: str, moment: int | None = None) -> str:
        """Where that lies which happened at the location at a moment, or what lies there now."""
        since = [each for each in self.moments if moment is None or each <= moment]
        return lying_since(since[-1], location) if since else location


def lying(location: str, checkout: Checkout | None, known: Known) -> Lying:
    """What git's files say of a location, by what memory knows of checkouts there. `known` is asked for a path, or for
    those around a location at which no checkout lies now."""

    def of(path: str, remote: str | None = None) -> tuple[int, ...]:
        tenants = known([path]).get(path, ())
        return moments_of(tenants) if remote is None else came(tenants, remote, lambda: there_since(path))

    if checkout is None or not checkout.root:
        around = _checkout_around(location)
        paths = [at for at in reaching(location) if around is None or (at != around.root and inside(at, around.root))]
        tenants = nearest(known(paths), paths) if paths else ()
        if tenants or around is None:
            return Lying(checkout, moments_of(tenants))
        return Lying(checkout, of(around.root, around.remote))
    own = of(checkout.root, checkout.remote)
    of_repository = of(checkout.repository, checkout.remote) if checkout.repository else ()
    borrowed = of(checkout.borrows) if checkout.borrows else ()
    moments = own or of_repository
    as_recorded = checkout._replace(
        root=lying_since(_last(moments), checkout.root),
        repository=lying_since(_last(of_repository), checkout.repository),
        borrows=lying_since(_last(borrowed), checkout.borrows),
    )
    return Lying(as_recorded, moments)


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
