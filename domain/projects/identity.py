"""Projects: which locations are one, by what was seen and recorded of them, and by what people said.

Rows are kept per location and never rewritten. A project is worked out when something is asked: locations are joined
by the layout of worktrees, by the checkout they lie in, by their git remote, and by the words of people, of which the
newest about two places counts. So clones and worktrees converge, and a merge or its undoing needs no replay.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar

import msgspec

from memctl.domain.events.command import BadCommand, Command, Kind, command
from memctl.domain.events.event import Event, Payload, derived_id, event
from memctl.domain.support import patterns
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.location import LONGEST, above, normalise, project_of

REMOTES = 4
"""Remotes that are known of a location at most, newest first."""

SHORTEST_ID = 6
"""Digits of a project's id that are enough to name it."""


# --- what is recorded ---


@event("project.identified")
class ProjectIdentified(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """What git's own files said of a working directory when something happened there.

    `root` is the checkout that it lies in, `repository` that of the repository where the checkout is a worktree,
    `remote` the normalised remote (`remote_of`); each is empty where there is none.
    """

    location: str
    root: str = ""
    repository: str = ""
    remote: str = ""
    confined: bool = False
    """Delivered under a key that is limited to projects: a claim that the location is of that remote, and no more."""


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


@command("merge-projects")
class MergeProjects(Command, frozen=True, kw_only=True):
    """Say that `project` belongs to the project `into`. Each is a name, an id, a remote, or a path."""

    refers: ClassVar[dict[str, Kind]] = {"into": "project", "project": "part"}

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


class Place(msgspec.Struct, frozen=True):
    """What is known of one location. `inside` are locations around it that a session showed to be the same checkout's,
    `modules` Go modules that were tested there; `last_seen` in microseconds. `claims` are remotes that it has by the
    word of keys limited to projects; it is `free` once anything else showed it, and then those count for nothing."""

    location: str
    root: str = ""
    repository: str = ""
    remotes: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    last_seen: int = 0
    claims: tuple[str, ...] = ()
    free: bool = True

    @property
    def known_remotes(self) -> tuple[str, ...]:
        """The remotes that it is joined by. One that is claimed for several is of none."""
        return self.remotes if self.free else self.claims if len(self.claims) == 1 else ()


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


_REMOTE_NODE = "git:"
HOME = patterns.compile(r"/(?:home|Users)/[^/]+|/root|[A-Z]:/Users/[^/]+")
"""Whoever keeps settings in a repository at home keeps other projects there too, not inside it."""


class Projects:
    """The projects that places make, by the words about them."""

    def __init__(self, places: Iterable[Place], words: Iterable[Words] = ()) -> None:
        self._places = {place.location: place for place in settled(places)}
        self._words = {said.anchor: said for said in words}
        self._apart: frozenset[str] = frozenset()
        self._join_by_rules()
        # A word on a group as rules make it takes back mergings; one on a part of such a group sets that apart.
        split = {anchor for anchor, said in self._words.items() if said.split_at and anchor in self._places}
        apart = {location for location in split if self._anchors[self._bases[location]] != location}
        if apart:
            self._apart = frozenset(apart)
            self._join_by_rules()
        self._links = [(link, *self._join_by_word(link)) for link in standing(self._words.values())]
        """With the representatives, before anything was merged, of what they name; empty for what is not known."""
        self.all = self._made()
        self._by_location = {location: project for project in self.all for location in project.locations}

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

    def holding(self, path: str) -> Project | None:
        """The project that a path is, or lies in; of nested ones the innermost."""
        path = normalise(path)
        for at in (path, project_of(path), *above(path)):
            if project := self._by_location.get(at) or self._by_root.get(at):
                return project
        return None

    def named(self, text: str) -> list[Project]:
        """The projects that a text names: by name, else by another name of theirs, by id or remote, or a path in it."""
        text = text.strip()
        wanted = text.casefold()
        for found in (
            [p for p in self.all if p.name.casefold() == wanted],
            [p for p in self.all if wanted in p.names],
            [p for p in self.all if any(_is_named(anchor, wanted) for anchor in p.parts)],
            [p for p in self.all if {wanted, remote_of(text)} & {*p.remotes}],
        ):
            if found:
                return found
        inside = self.holding(text) if "/" in text or "\\" in text else None
        return [inside] if inside is not None else []

    def one(self, text: str) -> Project:
        """The one project that a text names. Raises: UnknownProject, SeveralProjects."""
        found = self.named(text)
        if not found:
            raise UnknownProject(project=text, hint="`memctl project list` shows what memory knows")
        if len(found) > 1:
            raise SeveralProjects(project=text, candidates=", ".join(f"{p.id} ({p.root or p.anchor})" for p in found))
        return found[0]

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
        named = [a for a in anchors if _is_named(a, wanted) or remote_of(text) == a]
        named = named or [a for a in anchors if wanted == _name_of(a).casefold()]
        if len(named) > 1:
            raise SeveralProjects(project=text, candidates=", ".join(f"{project_id(a)} ({a})" for a in named))
        return named[0] if named else self.one(text).anchor

    def place(self, text: str) -> str:
        """What a split is said of: `part`, but a location of a group that nothing was ever merged with by itself.

        Raises: UnknownProject, SeveralProjects.
        """
        path = normalise(text)
        if path in self._places:
            base = self._bases[path]
            if not any(
                base in (self._base_of(w.anchor), *(self._base_of(m.into) for m in w.into))
                for w in self._words.values()
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
        return Projects(places, [said for anchor, said in self._words.items() if anchor in parts])

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
        roots = self._roots()
        for place in self._places.values():
            at = place.location
            self._find(at)
            if not place.free:
                for other in self._claimed_with(place, roots):
                    self._join(at, other)
                continue
            for other in (project_of(at), place.root, place.repository, self._path_of(place)):
                self._join(at, other)
            for remote in place.remotes:
                self._join(at, _REMOTE_NODE + remote)
            if place.root or place.repository:
                continue
            around = next((root for root in above(at) if root in roots and not HOME.fullmatch(root)), "")
            for other in dict.fromkeys((*place.inside, around)):
                if not self._differ(place, other):
                    self._join(at, other)
        self._ruled = {node: self._find(node) for node in list(self._parent)}
        self._bases = {location: self._ruled[location] for location in self._places}
        self._anchors = self._anchored()
        """Anchors of the groups that rules make, by their representative."""
        self._by_anchor = {anchor: base for base, anchor in self._anchors.items()}

    def _claimed_with(self, place: Place, roots: set[str]) -> Sequence[str]:
        """What a place is joined to by claims alone. It joins nothing that others showed to anything."""
        at = place.location
        if at in roots:
            return ()
        if place.known_remotes:
            home = self._places.get(project_of(at))
            return (_REMOTE_NODE + place.known_remotes[0], home.location if home and not home.free else "")
        return [around for around in (project_of(at), *above(at)) if around in self._places and around != at][:1]

    @staticmethod
    def _path_of(place: Place) -> str:
        """The path of the repository that a place belongs to, as far as the place itself shows it."""
        return project_of(place.repository or place.root or place.location)

    def _roots(self) -> set[str]:
        """Paths that something shows to be a repository's root."""
        found: set[str] = set()
        for place in self._places.values():
            if not place.free:
                continue
            found.update((place.root, place.repository))
            if place.remotes and not place.root:
                found.add(place.location)
            if (repository := project_of(place.location)) != place.location:
                found.add(repository)
        return found - {""}

    def _differ(self, place: Place, other: str) -> bool:
        """Whether two locations are known to have different remotes."""
        known = self._places.get(other)
        return known is not None and bool(place.remotes and known.remotes) and not {*place.remotes} & {*known.remotes}

    def _anchored(self) -> dict[str, str]:
        """The remote that most places of a group have now, or else its shallowest path; of two, the one seen later."""
        remotes: dict[str, Counter[str]] = defaultdict(Counter)
        later: dict[str, int] = defaultdict(int)
        paths: dict[str, list[str]] = defaultdict(list)
        for location, base in self._bases.items():
            place = self._places[location]
            if not self._home(location):
                for remote in place.known_remotes[:1]:
                    remotes[base][remote] += 1
                    later[remote] = max(later[remote], place.last_seen)
            path = self._path_of(place)
            paths[base].append(path if self._home(path) == self._home(location) else location)
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
        found = []
        for locations in members.values():
            project = self._project(locations)
            found.append(project)
            for location in locations:
                place = self._places[location]
                for path in (project_of(location), place.root, place.repository):
                    if path:
                        self._by_root.setdefault(path, project)
        return sorted(found, key=lambda p: (-p.last_seen, p.anchor))

    def _project(self, locations: Sequence[str]) -> Project:
        places = [self._places[location] for location in locations]
        bases = list(dict.fromkeys(self._bases[location] for location in locations))
        anchors = sorted(self._anchors[base] for base in bases)
        anchor = self._leading(anchors)
        own = [p for p in places if self._anchors[self._bases[p.location]] == anchor]
        newest = max(own, key=lambda p: (p.last_seen, p.location))
        remotes = {remote for place in places if not self._home(place.location) for remote in place.known_remotes}
        # A folder of a repository is called by the repository's name.
        folders = (project_of(p.root or p.location) for p in places if self._is_outermost(p))
        return Project(
            id=project_id(anchor),
            anchor=anchor,
            name=_name_of(anchor),
            names=tuple(sorted({_name_of(named).casefold() for named in (*anchors, *remotes, *folders)})),
            root=project_of(newest.repository or newest.root or min((p.location for p in own), key=_shallow)),
            remotes=tuple(sorted(remotes)),
            locations=tuple(locations),
            parts=(anchor, *(a for a in anchors if a != anchor)),
            last_seen=max(place.last_seen for place in places),
        )

    def _leading(self, anchors: Iterable[str]) -> str:
        """The anchor that names a project: the first by its name that was not merged into another."""
        merged = {self._anchors[base] for _, into, base in self._links if into and base}
        return min(anchors, key=lambda anchor: (anchor in merged, anchor))

    def _is_outermost(self, place: Place) -> bool:
        """Whether no folder above a place is known as one of the same project."""
        group = self._find(place.location)
        return not any(at in self._places and self._find(at) == group for at in above(place.location))


def settled(places: Iterable[Place]) -> list[Place]:
    """Places, of which a claim counts for nothing where others name that path as a checkout of theirs, and one whose
    remote nothing showed has that of its Go module."""
    found = _by_modules(list(places))
    named = {path for p in found if p.free for path in (p.root, p.repository, project_of(p.location))}
    return [
        msgspec.structs.replace(p, claims=()) if p.claims and not p.free and p.location in named else p for p in found
    ]


def _by_modules(places: list[Place]) -> list[Place]:
    """Places, of which one without a remote has the one that others have who test the same module, or else the module.

    A fork tests the module of what it was forked from: where the others have several remotes, it has none of them.
    """
    remotes: dict[str, set[str]] = defaultdict(set)
    for place in places:
        if place.free:
            for name in (*place.remotes, *place.modules):
                remotes[name].update(place.remotes[:1])
    found = []
    for place in places:
        if place.free and place.modules and not place.remotes:
            known = set().union(*(remotes[module] for module in place.modules)) or {*place.modules}
            if len(known) == 1:
                place = msgspec.structs.replace(place, remotes=(*known,))
        found.append(place)
    return found


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


def _is_named(anchor: str, wanted: str) -> bool:
    """Whether a text is an anchor, or the beginning of its id."""
    return anchor.casefold() == wanted or (len(wanted) >= SHORTEST_ID and project_id(anchor).startswith(wanted))


def _shallow(path: str) -> tuple[int, str]:
    return path.count("/"), path


def _name_of(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path
