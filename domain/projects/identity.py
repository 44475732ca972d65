"""Projects: which locations are one, by what git's own files show of them, and by what people said.

Rows are kept per location and never rewritten. A project is worked out when something is asked. Locations are joined by
the checkout that they lie in and by the repository whose worktree that is. A remote joins nothing by itself, for anyone
can write one into a file: it is of the root that was first seen to name it, and every other root that names it waits
for its user's word. Dates count from hooks and clients' own records; what other files brought comes behind these, in
the log's order. A merge or its undoing needs no replay.
"""

from __future__ import annotations

import copy
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, ClassVar

import msgspec

from memctl.domain.events.command import BadCommand, Command, Kind, command
from memctl.domain.events.event import Event, Payload, derived_id, event
from memctl.domain.events.observations import HISTORY
from memctl.domain.events.recalls import quoted_name
from memctl.domain.support import patterns
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.location import (
    LONGEST,
    above,
    around,
    inside,
    is_in_another_memory,
    normalise,
    of_member,
    path_of,
    project_of,
    said_of,
    since_of,
    tree_of,
)

PATHS = ("location", "root", "repository", "borrows")
"""Fields of `ProjectIdentified` that are paths."""

REMOTES = 4
"""Remotes that are known of a location at most, newest first."""

SHORTEST_ID = 6
"""Digits of a project's id that are enough to name it."""


# --- what is recorded ---


@event("project.identified")
class ProjectIdentified(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """What git's own files said of a working directory when something happened there.

    `root` is the checkout that it lies in, `repository` that of the repository where the checkout is a worktree,
    `remote` the normalised remote (`remote_of`); each is empty where there is none. `borrows` is a repository on that
    machine that the checkout names and that does not name it: a claim.
    """

    location: str
    root: str = ""
    repository: str = ""
    remote: str = ""
    borrows: str = ""
    checked: bool = False
    """The files were read from both sides: `repository` names the worktree too. Of older events nobody knows."""
    confined: bool = False
    """Delivered under a key that is limited to projects: a claim that the location is of that remote, and no more."""
    brought: bool = False
    """Looked at for what was read from a file that lay elsewhere than clients keep theirs, or from a repository's
    history: whoever wrote that may have given it any date."""
    there_since: int = 0
    """When the repository came to lie there (microseconds), where that was only after what happened."""


def at_member(found: ProjectIdentified, key: str) -> ProjectIdentified:
    """The same of a member's machine, where it came through an unlimited key of that name."""
    return msgspec.structs.replace(found, **{name: of_member(key, getattr(found, name)) for name in PATHS})


def bare(payload: Payload, location: str) -> tuple[Payload, str]:
    """An event's payload and location without whose machine they are of."""
    if isinstance(payload, ProjectIdentified):
        of_paths = {name: path_of(getattr(payload, name)) for name in PATHS}
        payload = msgspec.structs.replace(payload, **of_paths)
    return payload, path_of(location)


@event("project.merged")
class ProjectMerged(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody said that what `merged` names belongs to the project of `into`. Both are anchors."""

    into: str
    merged: str


@event("project.split")
class ProjectSplit(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody said that what `part` names is a project of its own: not one with what was merged with it until then.

    Where it is a location that rules join to others, it and all below it are no longer joined to them.
    """

    part: str


_OF_PEOPLE = "which places are one project is a person's to say"


@command("merge-projects")
class MergeProjects(Command, frozen=True, kw_only=True):
    """Say that `project` belongs to the project `into`. Each is a name, an id, a remote, or a path."""

    refers: ClassVar[dict[str, Kind]] = {"into": "project", "project": "part"}
    by_people: ClassVar[str] = _OF_PEOPLE

    into: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]
    project: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]

    @property
    def stream(self) -> str:
        return project_stream(self.into)

    def decide(self, history: Sequence[Event]) -> ProjectMerged:
        if self.into == self.project:
            raise BadCommand(why=f"{self.project} is that project already")
        return ProjectMerged(into=self.into, merged=self.project)


@command("split-project")
class SplitProject(Command, frozen=True, kw_only=True):
    """Say that `project` (a name, an id, a remote, or a location's path) is a project of its own.

    What was merged with it is taken away again; a location that rules joined to others is set apart from them.
    """

    refers: ClassVar[dict[str, Kind]] = {"project": "place"}
    by_people: ClassVar[str] = _OF_PEOPLE

    project: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]

    @property
    def stream(self) -> str:
        return project_stream(self.project)

    def decide(self, history: Sequence[Event]) -> ProjectSplit:
        return ProjectSplit(part=self.project)


def identified_key(stream: str, location: str) -> str:
    """Dedupe key of what was found at a location: once for each session."""
    place = hashlib.sha256(location.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"project.identified:{stream}:{place}"


KEPT_IN_CHECKOUTS = (HISTORY, "session/aider/", "session/specstory/")
"""How the streams of records begin that lie in the checkout itself."""
_BY_NATURE = tuple(f"project.identified:{stream}" for stream in KEPT_IN_CHECKOUTS)
"""How keys begin of what was looked at for these: older events show it by that."""


def brought_by(event: Event) -> str:
    """The id of the delivery where a file brought it; empty of what a hook or a client's own record showed."""
    found = isinstance(event.payload, ProjectIdentified) and event.payload.brought
    return str(event.delivery_id) if found or event.dedupe_key.startswith(_BY_NATURE) else ""


def project_stream(anchor: str) -> str:
    """Stream of what is said about a project."""
    return f"project/{project_id(anchor)}"


def project_id(anchor: str) -> str:
    """12 hex digits that name a project by its anchor."""
    return derived_id(f"project:{anchor}").hex[:12]


# --- remotes ---

_REMOTE = patterns.compile(
    r"(?:[a-z][a-z0-9+.-]*://(?:[^/@\s]*@)?(?P<host>[A-Za-z0-9.-]+)(?::\d+)?/|(?:[^/@\s:]+@)?(?P<scp>[A-Za-z0-9-]+\.[A-Za-z0-9.-]+):(?!//))"
    r"(?P<path>[^\s?#]+)"
)
_OF_GITHUB = patterns.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+")


def remote_of(url: str) -> str:
    """A git remote as memctl compares it: `github.com/owner/name`, in lower case, without protocol, user and `.git`.

    `owner/name` alone is GitHub's. Empty for what leads to no other host: a path, a local server's bundle, an option.
    """
    url = url.strip()
    found = _REMOTE.fullmatch(url)
    if found is None:
        return f"github.com/{url.removesuffix('.git').lower()}" if _OF_GITHUB.fullmatch(url) else ""
    host = (found["host"] or found["scp"]).lower()
    path = found["path"].strip("/").removesuffix(".git").strip("/").lower()
    if not path or "." not in host or url.lower().startswith("file:"):
        return ""
    return f"{host}/{path}"[:300]


# --- which locations are one ---


class Named(msgspec.Struct, frozen=True, order=True):
    """Since when a location names a remote: a moment (microseconds); or a position of the log where only files name
    it that were `brought`, whose dates anyone may have written. The least counts most."""

    brought: bool
    since: int


class Place(msgspec.Struct, frozen=True):
    """What is known of one location: as `ProjectIdentified` has it, if anything recorded that. `remotes` also
    holds what the client said of it; `named` says since when, of those of which that is known. `inside` are
    locations around it that were on the same branch in one session; `last_seen` in microseconds. `claims` are
    remotes that it has by the word of keys limited to projects; it is `free` once anything else showed it, and
    then those count for nothing. What git has there is known `by_key` where nothing else showed the place.
    `granted` are the remotes that are its project's; None before that is worked out. `looked_at` is the last moment at
    which git's files are known to have lain there (microseconds)."""

    location: str
    root: str = ""
    repository: str = ""
    remotes: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    last_seen: int = 0
    claims: tuple[str, ...] = ()
    free: bool = True
    borrows: str = ""
    checked: bool = False
    named: dict[str, Named] = {}
    by_key: bool = False
    granted: tuple[str, ...] | None = None
    looked_at: int = 0

    @property
    def known_remotes(self) -> tuple[str, ...]:
        """The remotes that it is joined by. One that is claimed for several is of none."""
        if not self.free:
            return self.claims if len(self.claims) == 1 else ()
        return self.remotes if self.granted is None else self.granted

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths that are of its project, that of its repository first. Where nobody looked at git's files from both
        sides, a worktree is known by where it lies, but for a folder beside the project: any may be called so."""
        if self.checked:
            found = [self.repository or self.root or self.location, self.root]
        elif not self.root:
            return (tree_of(self.location),)
        else:
            found = [tree_of(self.root), self.root, tree_of(self.location)]
        return tuple(dict.fromkeys(path for path in found if path))

    @property
    def former(self) -> str:
        """The path that it lies at since another checkout lay there, whose memory that path keeps."""
        at = self.repository or self.root
        return path_of(at) if since_of(at) else ""

    @property
    def unproven(self) -> str:
        """A repository that it says it is of."""
        if self.borrows or self.checked:
            return self.borrows
        claimed = self.repository or project_of(self.root or self.location)
        return "" if claimed in (*self.paths, self.location) else claimed


class WaitingCheckout(msgspec.Struct, frozen=True):
    """A root that says it is of a known project, by a remote or the path of a repository, or that lies where such a
    project lay. Until a person has said that it is so, nothing of either is the other's."""

    root: str
    claims: str
    project: str
    """Anchor of that project."""


def why_waiting(root: str, claims: str) -> str:
    """What a root that waits has to do with what it `claims`, in words that go on after its name."""
    if replaces(root, claims):
        return "lies where another project's checkout lay"
    return f"says that it is of {claims}"


def replaces(root: str, claims: str) -> bool:
    """Whether a root that waits only lies where a checkout of the project lay, and says nothing itself."""
    return bool(since_of(root)) and claims == path_of(root)


class Merging(msgspec.Struct, frozen=True):
    """A word that something is of the project of the anchor `into`. `at` counts in microseconds."""

    at: int
    id: str
    into: str


class Words(msgspec.Struct, frozen=True):
    """What was said of one anchor: which projects it is of, and when it was last said to be one of its own
    (microseconds; 0 for never)."""

    anchor: str
    into: tuple[Merging, ...] = ()
    split_at: int = 0


class Link(msgspec.Struct, frozen=True):
    """Somebody said that what the anchor `merged` names is of the project of `into`, and nobody took it back."""

    into: str
    merged: str


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """Locations that are one project. `names` are what it may be called, in lower case."""

    id: str
    anchor: str
    """Its remote, or the path of its root: what words about it name it by."""
    name: str
    names: tuple[str, ...]
    root: str
    remotes: tuple[str, ...]
    locations: tuple[str, ...]
    parts: tuple[str, ...]
    """The anchors of what was merged to it, its own first; one where nothing was."""
    last_seen: int
    waits_for: str = ""
    """What it claims to be of, where a known project has that and nobody said yes or no."""


class UnknownProject(MemctlError):
    """Memory knows no project {project!r}."""

    exit_code = 3
    project: str


class SeveralProjects(MemctlError):
    """Several projects are meant by {project!r}: {candidates}."""

    exit_code = 2
    hint = "Name one by its path or id; `memctl project list` shows them."
    project: str
    candidates: str
    paths: tuple[str, ...] = ()
    """Of each, what names it alone: the path of its root, or its anchor."""


_REMOTE_NODE = "git:"
_NEVER = Named(True, 1 << 63)
"""Of a remote of which nobody knows since when: such a claim comes last."""
HOME = patterns.compile(r"/(?:home|Users)/[^/]+|/root|[A-Z]:/Users/[^/]+")
"""Whoever keeps settings in a repository at home keeps other projects there too, not inside it."""
_OF_ANYTHING = patterns.compile(
    r"/[^/]*|/var/tmp|(?:/(?:home|Users)/[^/]+|/root|[A-Z]:/Users/[^/]+)(?:/(?:Downloads|Desktop|Documents))?|[A-Z]:/?"
)
"""Folders in which anything may lie."""


class Projects:
    """The projects that places make, by the words about them."""

    def __init__(self, places: Iterable[Place], words: Iterable[Words] = ()) -> None:
        self._shown = {place.location: place for place in settled(places)}
        self._places = dict(self._shown)
        self.words = {said.anchor: said for said in words}
        links = standing(self.words.values())
        self._refused = {each for each, said in self.words.items() if said.split_at} - {link.merged for link in links}
        """Roots that are projects of their own, whatever they claim."""
        self._apart: frozenset[str] = frozenset()
        self._join_by_rules()
        # A word on a group as rules make it takes back mergings; one on a part of such a group sets that apart.
        split = {anchor for anchor, said in self.words.items() if said.split_at and anchor in self._places}
        apart = {location for location in split if self._anchors[self._bases[location]] != location}
        if apart:
            self._apart = frozenset(apart)
            self._join_by_rules()
        self._links = [(link, *self._join_by_word(link)) for link in links]
        """With the representatives, before anything was merged, of what they name; empty for what is not known."""
        self.waiting = self._waiting()
        self.all = self._made()

    @property
    def places(self) -> list[Place]:
        """What is known of each location, with the remotes that are its project's."""
        return list(self._places.values())

    def seen_again(self, places: Iterable[Place]) -> Projects:
        """The projects of places that differ from these in when they were seen alone, which decides nothing but their
        order."""
        at = {place.location: place for place in places}
        each = {
            p.anchor: msgspec.structs.replace(p, last_seen=max(at[place].last_seen for place in p.locations))
            for p in self.all
        }
        other = copy.copy(self)
        other._places = {
            location: msgspec.structs.replace(place, last_seen=at[location].last_seen, looked_at=at[location].looked_at)
            for location, place in self._places.items()
        }
        other._by_location = {location: each[p.anchor] for location, p in self._by_location.items()}
        other._by_root = {root: each[p.anchor] for root, p in self._by_root.items()}
        other.all = _newest_first(each.values())
        return other

    # --- questions ---

    def of(self, location: str) -> Project | None:
        """The project of a location that memory knows."""
        return self._by_location.get(location)

    def name_of(self, location: str) -> str:
        """The name of the project that a location belongs to; empty for no location."""
        if not location:
            return ""
        project = self._by_location.get(location)
        return project.name if project is not None else _name_of(project_of(location))

    def same(self, one: str, other: str) -> bool:
        """Whether two locations are of one project."""
        first = self.of(one)
        return one == other if first is None else first is self.of(other)

    def holding(self, path: str, checkout: Place | None = None) -> Project | None:
        """The project that a path is, or lies in; of nested ones the innermost. Where git's files were just read there,
        nothing around that checkout counts."""
        path = normalise(path)
        tried = [at for at in around(path) if at == path or self._holds(at)]
        if checkout is not None:
            tried = [*(at for at in around(path) if inside(at, checkout.root)), *checkout.paths]
        return self._first(tried)

    def _first(self, paths: Iterable[str]) -> Project | None:
        return next((p for at in paths if (p := self._by_location.get(at) or self._by_root.get(at))), None)

    def _holds(self, path: str) -> bool:
        """Whether what lies below a known path is of its project. A home may hold anything, and so may a plain folder
        that is for everything or in which checkouts lie."""
        known = self._places.get(path)
        if path in self._checkouts or (known is not None and not known.free):
            return not HOME.fullmatch(path_of(path))
        if known is None or _OF_ANYTHING.fullmatch(path_of(path)):
            return False
        return not any(each != path and inside(each, path) for each in self._checkouts)

    def asks(self, path: str, checkout: Place | None = None) -> list[WaitingCheckout]:
        """What waits for a person's word at a path."""
        project = self.holding(path, checkout)
        if project is not None:
            return [each for each in self.waiting if each.root in (*project.parts, project.root)]
        if checkout is None:
            return []
        root = checkout.paths[0]
        for claimed in ((*checkout.remotes, checkout.unproven), (checkout.former,)):
            known = {claim: self._known_as(claim) for claim in claimed if claim and root not in self._refused}
            if asked := [WaitingCheckout(root, claim, of.anchor) for claim, of in known.items() if of is not None]:
                return asked
        return []

    def _known_as(self, claim: str) -> Project | None:
        return next((p for p in self.all if claim in p.remotes), None) or self._by_root.get(claim)

    def named(self, text: str) -> list[Project]:
        """The projects that a text names: by any name of theirs, else by id or remote, or a path in it."""
        if "/" not in text and "\\" not in text:  # of a path, a blank at its end is a part
            text = text.strip()
        wanted = text.casefold()
        for found in (
            [p for p in self.all if wanted in p.names],
            [p for p in self.all if any(_is_named(anchor, wanted) for anchor in p.parts)],
            [p for p in self.all if {wanted, remote_of(text)} & {*p.remotes}],
        ):
            if found:
                return _meant(found)
        around_it = self._first(around(normalise(text))) if "/" in text or "\\" in text else None
        return [around_it] if around_it is not None else []

    def one(self, text: str) -> Project:
        """The one project that a text names. Raises: UnknownProject, SeveralProjects."""
        return one_of(self.named(text), text)

    def anchor(self, text: str) -> str:
        """The anchor of the one project that a text names. Raises: UnknownProject, SeveralProjects."""
        return self.one(text).anchor

    def part(self, text: str) -> str:
        """The anchor of what a text names, as it was before anything was merged to it or it to anything.

        Raises: UnknownProject, SeveralProjects.
        """
        wanted, path = text.strip().casefold(), normalise(text)
        if path in self._places:
            return self._anchors[self._bases[path]]
        anchors = dict.fromkeys(self._anchors.values())
        meant = [a for a in anchors if _is_named(a, wanted) or remote_of(text) == a]
        meant = meant or [a for a in anchors if wanted == _name_of(a).casefold()]
        if len(meant) > 1:
            raise SeveralProjects(
                project=text, candidates=", ".join(f"{project_id(a)} ({quoted_name(a)})" for a in meant)
            )
        return meant[0] if meant else self.one(text).anchor

    def place(self, text: str) -> str:
        """What a split is said of: `part`, but a location of a group that nothing was ever merged with by itself.

        Raises: UnknownProject, SeveralProjects.
        """
        path = normalise(text)
        if path in self._places:
            base = self._bases[path]
            if not any(
                base in (self._base_of(w.anchor), *(self._base_of(m.into) for m in w.into))
                for w in self.words.values()
                if w.into
            ):
                return path
        return self.part(text)

    def only(self, anchors: Iterable[str]) -> Projects:
        """These projects alone, as if nothing else had ever been met; each named by an anchor or a remote of its own,
        or a location of it."""
        wanted = frozenset(anchors)
        kept = [p for p in self.all if wanted.intersection((p.root, *p.parts, *p.remotes, *p.locations))]
        places = [self._places[location] for p in kept for location in p.locations]
        parts = {part for p in kept for part in p.parts}
        return Projects(places, [said for anchor, said in self.words.items() if anchor in parts])

    # --- joining ---

    def _find(self, node: str) -> str:
        parent = self._parent
        root = node
        while (above_it := parent.setdefault(root, root)) != root:
            root = above_it
        while parent[node] != root:
            parent[node], node = root, parent[node]
        return root

    def _join(self, one: str, other: str) -> None:
        if one and other and self._home(one) == self._home(other):
            a, b = self._find(one), self._find(other)
            self._parent[max(a, b)] = min(a, b)

    def _home(self, node: str) -> str:
        """The anchor that was set apart and that a node lies in; empty where there is none."""
        if not self._apart:
            return ""
        return next((at for at in (node, *above(node)) if at in self._apart), "")

    def _join_by_rules(self) -> None:
        self._parent: dict[str, str] = {}
        self._checkouts = roots = self._roots()
        free = [place for place in self._shown.values() if place.free]
        seen = self._roots(by_key=False)
        checkouts = {path for place in free if place.checked and not place.by_key for path in place.paths}
        for place in self._shown.values():
            self._find(place.location)
        for place in free:
            at = place.location
            for other in place.paths:
                self._join(at, other)
            if place.root or place.checked or at in checkouts:
                continue
            known = roots - seen if place.by_key else seen
            outer = next((root for root in above(at) if root in known and not HOME.fullmatch(path_of(root))), "")
            for other in dict.fromkeys((*place.inside, outer)):
                if not self._differ(place, other):
                    self._join(at, other)
        self._join_at_one_path(free)
        self._grant(free)
        for place in self._shown.values():
            if not place.free:
                for other in self._claimed_with(place, roots):
                    self._join(place.location, other)
        self._ruled = {node: self._find(node) for node in list(self._parent)}
        self._bases = {location: self._ruled[location] for location in self._places}
        self._anchors = self._anchored()
        """Anchors of the groups that rules make, by their representative."""
        self._by_anchor = {anchor: base for base, anchor in self._anchors.items()}

    def _join_at_one_path(self, free: Iterable[Place]) -> None:
        """Join checkouts that lie at one path and have one remote: of members, as those of containers do, or here, one
        after the other."""
        first: dict[tuple[bool, str, tuple[str, ...]], str] = {}
        for place in free:
            if place.root and len(place.remotes) == 1:
                at = place.by_key, path_of(place.root), place.remotes
                self._join(first.setdefault(at, place.location), place.location)

    def _grant(self, free: Sequence[Place]) -> None:
        """Let each remote be of the root that was first seen to name it, of those that nobody set apart."""
        groups: dict[str, list[Place]] = defaultdict(list)
        for place in free:
            groups[self._find(place.location)].append(place)
        self._claimants: dict[str, dict[str, tuple[bool, Named, str]]] = defaultdict(dict)
        """By remote, the paths of the roots that name it, by how good their claim is: what this machine saw comes
        before what keys say, where somebody worked before what files brought, and then what was first."""
        own: dict[str, str] = {}
        for base, places in groups.items():
            own[base] = path = min((self._own_path(place) for place in places), key=_shallow)
            if path in self._refused or self._home(path):
                continue
            for place in places:
                for remote in place.known_remotes:
                    claim = place.by_key, place.named.get(remote, _NEVER), path
                    self._claimants[remote][path] = min(claim, self._claimants[remote].get(path, claim))
        holders = {remote: min(claims.values())[-1] for remote, claims in self._claimants.items()}
        for base, places in groups.items():
            for place in places:
                granted = tuple(r for r in place.known_remotes if holders.get(r) == own[base])
                self._places[place.location] = msgspec.structs.replace(place, granted=granted)
                for remote in granted:
                    self._join(place.location, _REMOTE_NODE + remote)

    def _own_path(self, place: Place) -> str:
        """The path of the repository that a place belongs to; its own where it was set apart from that."""
        path = place.paths[0]
        return path if self._home(path) == self._home(place.location) else place.location

    def _waiting(self) -> list[WaitingCheckout]:
        """What would join a known project if it were believed."""
        claimed = {(p, remote, _REMOTE_NODE + remote) for remote, paths in self._claimants.items() for p in paths}
        for place in self._places.values():
            path, claim = self._own_path(place), place.unproven
            if claim and place.free and path not in self._refused and self._base_of(claim):
                claimed.add((path, claim, claim))
        anchors: dict[str, list[str]] = defaultdict(list)
        for base, anchor in self._anchors.items():
            anchors[self._find(base)].append(anchor)
        waiting = {each for each in claimed if self._find(each[0]) != self._find(each[2])}
        # Who claims something is asked about that alone.
        waiting |= {(path, at, at) for path, at in self._replacing({path for path, _, _ in waiting})}
        return [
            WaitingCheckout(path, claim, self._leading(anchors[self._find(node)]))
            for path, claim, node in sorted(waiting)
        ]

    def _replacing(self, asked: set[str]) -> Iterator[tuple[str, str]]:
        """The paths of checkouts that lie where others of known projects lay, and where those did; without what is
        asked about anyway, and what a person spoke of."""
        spoken_of = {base for _, into, merged in self._links for base in (into, merged)}
        spoken_of |= {base for base, anchor in self._anchors.items() if anchor in self._refused}
        for place in self._places.values():
            path, former = self._own_path(place), place.former
            if not former or path in asked | self._refused or self._ruled[path] in spoken_of:
                continue
            if self._base_of(former) and self._find(path) != self._find(former):
                yield path, former

    def _claimed_with(self, place: Place, roots: set[str]) -> Sequence[str]:
        """What a place is joined to by claims alone. It joins nothing that others showed to anything."""
        at = place.location
        if at in roots:
            return ()
        if place.known_remotes:
            home = self._places.get(project_of(at))
            return (_REMOTE_NODE + place.known_remotes[0], home.location if home and not home.free else "")
        near = [each for each in (project_of(at), *above(at)) if each in self._places and each != at]
        if near or (said := said_of(at)) == at:
            return near[:1]
        # What lies in one checkout within another may have come to lie there after the key spoke of it.
        known = [each for each in around(said) if each in self._places]
        within = {self._find(each) for each in known if each in roots and not HOME.fullmatch(each)}
        return known[:1] if len(within) < 2 else ()

    def _roots(self, *, by_key: bool = True) -> set[str]:
        """Paths that something shows to be a repository's root, by the word of keys or without that."""
        found: set[str] = set()
        for place in self._places.values():
            if not place.free or (place.by_key and not by_key):
                continue
            found.update(path for path in place.paths if path != place.location)
            if place.root or place.remotes:
                found.add(place.root or place.location)
        return found

    def _differ(self, place: Place, other: str) -> bool:
        """Whether two locations are known to have different remotes."""
        known = self._places.get(other)
        return known is not None and bool(place.remotes and known.remotes) and not {*place.remotes} & {*known.remotes}

    def _anchored(self) -> dict[str, str]:
        """The remote that most places of a group have now, or else its shallowest path; of two, the one that
        it was given later."""
        remotes: dict[str, Counter[str]] = defaultdict(Counter)
        later: dict[str, int] = defaultdict(int)
        paths: dict[str, list[str]] = defaultdict(list)
        for location, base in self._bases.items():
            place = self._places[location]
            if not self._home(location):
                for remote in place.known_remotes[:1]:
                    remotes[base][remote] += 1
                    since = place.named.get(remote, _NEVER)
                    later[remote] = max(later[remote], 0 if since.brought else since.since)
            paths[base].append(self._own_path(place))
        return {
            base: min(remotes[base], key=lambda r: (-remotes[base][r], -later[r], r))
            if remotes[base]
            else min(found, key=_shallow)
            for base, found in paths.items()
        }

    def _join_by_word(self, link: Link) -> tuple[str, str]:
        into, merged = self._base_of(link.into), self._base_of(link.merged)
        if into and merged:
            a, b = self._find(into), self._find(merged)
            self._parent[max(a, b)] = min(a, b)
        return into, merged

    def _base_of(self, anchor: str) -> str:
        """The group that rules make of what an anchor names, also one of former days: a path before its remote was
        known, say. Empty where memory knows nothing there."""
        base = self._by_anchor.get(anchor) or self._ruled.get(anchor) or self._ruled.get(_REMOTE_NODE + anchor, "")
        return base if base in self._anchors else ""

    def _made(self) -> list[Project]:
        members: dict[str, list[str]] = defaultdict(list)
        for location in sorted(self._places):
            members[self._find(location)].append(location)
        self._by_root: dict[str, Project] = {}
        self._waits = {each.root: each.claims for each in self.waiting}
        found = [self._project(locations) for locations in members.values()]
        self._by_location = {location: project for project in found for location in project.locations}
        for place in sorted(self._places.values(), key=lambda place: (place.by_key, place.location)):
            for path in place.paths if place.free else (project_of(place.location),):
                self._by_root.setdefault(path, self._by_location[place.location])
        return _newest_first(found)

    def _project(self, locations: Sequence[str]) -> Project:
        places = [self._places[location] for location in locations]
        bases = list(dict.fromkeys(self._bases[location] for location in locations))
        anchors = sorted(self._anchors[base] for base in bases)
        anchor = self._leading(anchors)
        own = [p for p in places if self._anchors[self._bases[p.location]] == anchor]
        remotes = {remote for place in places if not self._home(place.location) for remote in place.known_remotes}
        # A folder of a repository is called by the repository's name.
        folders = (p.paths[0] for p in places if self._is_outermost(p))
        roots = {self._own_path(place) for place in places}
        return Project(
            id=project_id(anchor),
            anchor=anchor,
            name=_name_of(anchor),
            names=tuple(sorted({_name_of(named).casefold() for named in (*anchors, *remotes, *folders)})),
            root=min((p.paths[0] for p in [p for p in own if p.root] or own), key=_shallow),
            remotes=tuple(sorted(remotes)),
            locations=tuple(locations),
            parts=(anchor, *(a for a in anchors if a != anchor)),
            last_seen=max(place.last_seen for place in places),
            waits_for=next((self._waits[root] for root in sorted(roots) if root in self._waits), ""),
        )

    def _leading(self, anchors: Iterable[str]) -> str:
        """The anchor that names a project: the first by its name that was not merged into another."""
        merged = {self._anchors[base] for _, into, base in self._links if into and base}
        return min(anchors, key=lambda anchor: (anchor in merged, anchor))

    def _is_outermost(self, place: Place) -> bool:
        """Whether no folder above a place is known as one of the same project."""
        group = self._find(place.location)
        return not any(at in self._places and self._find(at) == group for at in above(place.location))


def _meant(found: list[Project]) -> list[Project]:
    """By its name nobody means what only says that it is of a project, or lies in another memory."""
    meant = [p for p in found if p.remotes or p.waits_for in ("", path_of(p.root))]
    return [p for p in meant if not is_in_another_memory(p.root)] or found


def one_of(found: Sequence[Project], text: str) -> Project:
    """The one project that a text names. Raises: UnknownProject, SeveralProjects."""
    if not found:
        raise UnknownProject(project=text, hint="`memctl project list` shows what memory knows")
    if len(found) > 1:
        paths = tuple(p.root or p.anchor for p in found)
        candidates = ", ".join(f"{p.id} ({quoted_name(path)})" for p, path in zip(found, paths, strict=True))
        raise SeveralProjects(project=text, candidates=candidates, paths=paths)
    return found[0]


def settled(places: Iterable[Place]) -> list[Place]:
    """Places, of which a claim counts for nothing where others name that path as a checkout of theirs, nor what keys
    say of a path that this machine saw; and a folder of what looks like a worktree is of the checkout that it was found
    to be."""
    found = list(places)
    named = {path for p in found if p.free for path in p.paths}
    checked = {p.root or p.location: p for p in found if p.free and p.checked}
    ours = {path for p in found if p.free and not p.by_key for path in (p.location, *p.paths)}
    return [_settled(_beside(place, ours) if place.by_key else place, named, checked) for place in found]


def _beside(place: Place, ours: set[str]) -> Place:
    """A place that keys alone speak of, joined to no two of what this machine saw: by where it lies at most."""
    said = (place.location, place.root, place.repository)
    if not ours.isdisjoint((*said, *map(project_of, said))):
        return Place(place.location, last_seen=place.last_seen, by_key=True)
    inside = tuple(at for at in place.inside if ours.isdisjoint((at, project_of(at))))
    return msgspec.structs.replace(place, inside=inside)


def _settled(place: Place, named: set[str], checked: dict[str, Place]) -> Place:
    if not place.free:
        return msgspec.structs.replace(place, claims=()) if place.claims and place.location in named else place
    home = project_of(place.location)
    if place.checked or home == place.location:
        return place
    outer = next((checked[at] for at in above(place.location) if at in checked and project_of(at) == home != at), None)
    if outer is None or (outer.by_key and not place.by_key):
        return place
    return msgspec.structs.replace(
        place, root=outer.root or outer.location, repository=outer.repository, borrows="", checked=True
    )


def standing(words: Iterable[Words]) -> list[Link]:
    """The mergings that nobody took back."""
    said = {each.anchor: each for each in words}
    split = {anchor: each.split_at for anchor, each in said.items()}
    return [
        Link(merging.into, anchor)
        for anchor in sorted(said)
        for merging in said[anchor].into
        if merging.at > max(split[anchor], split.get(merging.into, 0))
    ]


def _newest_first(projects: Iterable[Project]) -> list[Project]:
    return sorted(projects, key=lambda p: (-p.last_seen, p.anchor))


def _is_named(anchor: str, wanted: str) -> bool:
    """Whether a text is an anchor, or the beginning of its id."""
    return anchor.casefold() == wanted or (len(wanted) >= SHORTEST_ID and project_id(anchor).startswith(wanted))


def _shallow(path: str) -> tuple[int, str]:
    return path.count("/"), path


def _name_of(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path
