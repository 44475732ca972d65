"""What a key that is limited to projects may read and write: no more than it was made for (decision 36).

Paths carry no machine and words are cheap, so nothing that joins places for everybody else widens a key: a place is its
own while all that is known of that place leads to the remotes and paths that the key was given.
"""

from collections.abc import Collection, Iterable

from memctl.domain.projects.identity import HOME, REMOTES, Place, Project, Projects, remote_of
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.location import above, around, by_key, inside, is_absolute, normalise, project_of, said_of


class SeveralRemotes(MemctlError):
    """The project {project!r} was met under several remotes: {remotes}. Another checkout may have lain at its path."""

    exit_code = 2
    hint = "Name the remotes that the key is for, each with --project; it is shown no place that has another one too."
    project: str
    remotes: str


def given(project: Project, named: str) -> tuple[str, ...]:
    """What a key for a project is given that was named so: that remote, or its remotes, and paths of those parts of it
    that have none. Raises: SeveralRemotes, where no person said that they are of one project."""
    for remote in (named.strip().casefold(), remote_of(named)):
        if remote in project.remotes:
            return (remote,)
    if len(project.remotes) > len(project.parts):
        raise SeveralRemotes(project=project.name, remotes=", ".join(project.remotes))
    return tuple(dict.fromkeys((*project.parts, *project.remotes)))


_SHALLOWEST = 2
"""Slashes of a path that a client may claim: what lies above everybody's directories is no checkout."""


class Limits:
    """The limits of a key that was `given` remotes and paths, in a memory of these projects."""

    def __init__(self, known: Projects, given: Iterable[str]) -> None:
        self.given = frozenset(given)
        places, words = known.places, list(known.words.values())
        self._own = {each for each in self.given if is_absolute(each)}
        self._apart = {said.anchor for said in words if said.split_at and said.anchor in self._own}
        """What somebody said is a project of its own, whatever repository it lies in."""
        self._elsewhere: set[str] = set()
        self._roots: set[str] = set()
        """Of these, checkouts: what lies in one is of it."""
        for place in places:
            self._divide(place)
        kept = [place for place in places if self._may_be(place) and self._is_near(place)]
        self.projects = Projects(kept, words).only(self.given)
        self.locations = frozenset(location for each in self.projects.all for location in each.locations)
        """All that the key may read."""
        self._others = self._elsewhere | {""}
        """Paths that memory knows and that are not the key's."""
        roots: set[str] = set()
        for place in places:
            if place.location not in self.locations:
                self._others |= {place.location, place.root, place.repository if place.checked else ""}
            elif place.free and not self._is_apart(place):
                roots.update(place.paths)
        self._mine = self.locations | (roots - self._others)

    def _divide(self, place: Place) -> None:
        """Put a place among the key's or among the others'."""
        checkouts = {*place.paths} - {place.location}
        if not self._may_be(place):
            self._elsewhere |= {place.location, *checkouts}
            self._roots |= {place.location, *checkouts} if place.remotes else checkouts
        elif place.known_remotes:
            self._own |= {place.location, *(checkouts if place.free else ())}

    def may_show(self, location: str) -> bool:
        """Whether the key may see an event of this location, in a stream that it may see. Some lines name no place."""
        return not location or location in self.locations

    def holds(self, path: str, claimed: Collection[str] = ()) -> bool:
        """Whether a path is the key's: the innermost of its directories that memory knows is, or was just `claimed`."""
        for at in around(normalise(path)):
            if at in self._mine:
                return True
            if at in self._others:
                return False
            if by_key(at) in self._mine:
                return True
            if at in claimed:
                return True
        return False

    def may_claim(self, path: str, remote: str) -> bool:
        """Whether a client may say that a path has that remote: one of the key's, at a path that is the key's or that
        memory does not know, outside of other checkouts."""
        if (remote and remote not in self.given) or path.count("/") < _SHALLOWEST:
            return False
        if not path or self.holds(path):
            return bool(path)
        as_kept = (path, by_key(path))
        if not remote or not self._others.isdisjoint((*as_kept, *map(project_of, as_kept))):
            return False
        if any(inside(known, at) for known in (*self._others, *self.locations) for at in as_kept):
            return False  # what holds somebody's checkouts is none
        return not any(at in self._roots and not HOME.fullmatch(said_of(at)) for each in as_kept for at in above(each))

    def _may_be(self, place: Place) -> bool:
        """Whether nothing leads elsewhere from a place. A list that is full may have pushed out what does."""
        if self._is_apart(place):
            return True
        remotes = {*place.remotes, *place.claims}
        return remotes <= self.given and max(len(place.remotes), len(place.claims)) < REMOTES

    def _is_near(self, place: Place) -> bool:
        """Whether a place lies in nothing that is elsewhere, more closely than in what is the key's."""
        if self._is_apart(place):
            return True
        if place.free and place.remotes:
            return place.location not in self._elsewhere
        if not self._elsewhere.isdisjoint((place.root, place.repository, *place.inside)):
            return False
        for at in (*around(place.location), *(around(said) if (said := said_of(place.location)) else ())):
            if at in self._elsewhere:
                return False
            if at in self._own:
                return True
        return True

    def _is_apart(self, place: Place) -> bool:
        return bool(self._apart) and not self._apart.isdisjoint(around(place.location))
