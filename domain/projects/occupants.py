"""The checkouts that were at one path of this machine, one after the other, and when each came there.

Another one came where the git directory is younger than the last look at the former one's, and the remote is another:
a clone in its place, where `git remote set-url` changes a remote in the same directory, and `chown -R` or a fresh clone
of the same remote renews the directory alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from memctl.domain.projects.identity import HOME, Place
from memctl.domain.support.location import around, is_on_this_machine, path_of, since_of


class Occupant(NamedTuple):
    """A checkout that is or was at a path. Times in microseconds; `since` is 0 of the first that was known there.
    `looked_at` is the last moment at which git's files are known to have been there."""

    since: int
    looked_at: int
    remotes: frozenset[str] = frozenset()


Known = Callable[[Sequence[str]], Mapping[str, Sequence[Occupant]]]
"""The occupants of those of some paths that have any, oldest first."""


def occupants_of(places: Iterable[Place]) -> dict[str, list[Occupant]]:
    """By path, the checkouts that places show there, oldest first. Members' are on other machines. Where nobody looked
    at git's files, a client's word that it has a remote shows one."""
    found: dict[str, list[Occupant]] = defaultdict(list)
    here = [place for place in places if place.free and not place.by_key and is_on_this_machine(place.location)]
    for place in sorted(here, key=lambda place: not place.root):
        reached = place.root or any(at in found for at in reaching(path_of(place.location)))
        own = place.location if place.remotes and not reached else ""
        for at in {place.root or own, place.repository} - {""}:
            found[path_of(at)].append(Occupant(since_of(at), place.looked_at, frozenset(place.remotes)))
    return {path: merged(each) for path, each in found.items()}


def merged(occupants: Iterable[Occupant]) -> list[Occupant]:
    """What is known of each occupant of a path together, oldest first."""
    found: dict[int, Occupant] = {}
    for each in occupants:
        known = found.get(each.since, each)
        found[each.since] = Occupant(each.since, max(known.looked_at, each.looked_at), known.remotes | each.remotes)
    return [found[since] for since in sorted(found)]


def is_latest(occupants: Mapping[str, Sequence[Occupant]], location: str) -> bool:
    """Whether what is known of a location of this machine is of the checkout that came to its path last."""
    found = nearest(occupants, reaching(path_of(location)))
    return not found or since_of(location) == found[-1].since


def reaching(path: str) -> Iterator[str]:
    """The path and those around it whose checkouts reach it, innermost first: one at home holds settings alone."""
    home = HOME.match(path)
    return (at for at in around(path) if at == path or home is None or at != home[0])


def nearest(occupants: Mapping[str, Sequence[Occupant]], paths: Iterable[str]) -> Sequence[Occupant]:
    """Those of the first of some paths that has any."""
    return next((occupants[at] for at in paths if at in occupants), ())


def moments_of(known: Sequence[Occupant]) -> tuple[int, ...]:
    """When each of them came there over another one."""
    return tuple(each.since for each in known if each.since)


def came(known: Sequence[Occupant], remote: str, there_since: Callable[[], int]) -> tuple[int, ...]:
    """When each checkout came to a path over another one, oldest first, up to what lies there now: a git directory with
    that remote (or none), which is there since that moment."""
    moments = moments_of(known)
    if not known or (remote in known[-1].remotes if remote else not known[-1].remotes):
        return moments
    since = there_since()
    return (*moments, since) if since > max(known[-1].since, known[-1].looked_at) else moments
