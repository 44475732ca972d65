"""What lies at a location of this machine now, as it is recorded: where another checkout lay before, not at the bare
path, which keeps the former one's memory."""

from collections.abc import Sequence
from typing import NamedTuple

from memctl.domain.projects.tenants import Known, came, nearest, reaching
from memctl.domain.support.location import lying_since
from memctl.infra.git import Checkout, there_since


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
    those around a location in which nothing lies now."""
    if checkout is None or not checkout.root:
        paths = reaching(location)
        return Lying(checkout, tuple(each.since for each in nearest(known(paths), paths) if each.since))

    def of(path: str, remote: str | None = None) -> tuple[int, ...]:
        tenants = known([path]).get(path, ())
        if remote is None:
            return tuple(each.since for each in tenants if each.since)
        return came(tenants, remote, lambda: there_since(path))

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


def _last(moments: Sequence[int]) -> int:
    return moments[-1] if moments else 0
