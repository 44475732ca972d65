"""Where a session works, and what its own words and git's show of those directories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from memctl.domain.events.event_order import OrderedEvent
from memctl.domain.events.fact_builder import FactBuilder
from memctl.domain.events.facts import PlaceSeen
from memctl.domain.projects.identity import remote_of
from memctl.domain.shell.commands import Part
from memctl.domain.shell.directories import bare, parts_where
from memctl.domain.support import patterns
from memctl.domain.support.literals import mentions
from memctl.domain.support.location import above, belongs, inside, joined, normalise

_NAMING = ("git push", "git pull", "git fetch", "git remote", "git remote get-url", "git rev-parse", "gh pr create")
"""Heads of commands whose output names the remote or the root of where they ran."""

_HINTS = ("git push", "git pull", "git fetch", "git remote", "show-toplevel", "gh pr create", "git -C")

_TRANSFER = patterns.compile(r"^(?:To|From) (\S+)$", patterns.M)
_LISTED = patterns.compile(r"^origin\t(\S+) \(fetch\)", patterns.M)
_GO_PACKAGE = patterns.compile(
    r"(?:ok  |FAIL|\?   )\t((?:github\.com|gitlab\.com|bitbucket\.org|codeberg\.org)/[\w.-]+/[\w.-]+)(?:/\S*)?[\t\n]"
)
_PACKAGE = patterns.compile(r"(?:ok  |FAIL|\?   )\t([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+/[^\s]+)")
_HOSTS = ("\tgithub.com/", "\tgitlab.com/", "\tbitbucket.org/", "\tcodeberg.org/")
_MOST_TESTED = 20_000
"""Characters of a run's output in which its packages are looked for."""

_GO_TEST = "go test"

_PULL_REQUEST = patterns.compile(r"^(https://[a-z0-9.-]+/[\w.-]+/[\w.-]+)/pull/\d+\s*$", patterns.M)
_NO_BRANCH = ("", "HEAD")

PLACES = 64
"""Directories that one session records at most."""


class WorkingDirectory:
    """The directories that one stream works in."""

    def __init__(self, assertions: FactBuilder) -> None:
        self._assert = assertions
        self._branches: dict[str, str] = {}
        """By location, the first branch that it was seen on."""
        self._asserted: set[str] = set()

    def came(self, placed: OrderedEvent, location: str) -> None:
        """The session works at a location, of which an event names the branch."""
        branch = placed.payload.branch
        if self._branches.get(location, "") not in _NO_BRANCH or (location in self._branches and not branch):
            return
        self._assert_place(placed, location)
        if (home := self._assert.home) not in ("", location):
            self._assert_place(placed, home)
        if branch not in _NO_BRANCH and not self._assert.confined:
            # One branch in a directory and in one around it, within a session: one checkout.
            for around in above(location):
                if self._branches.get(around) == branch:
                    self._assert_place(placed, location, around=around)
                    break
            for inside, its in self._branches.items():
                if its == branch and inside.startswith(location + "/"):
                    self._assert_place(placed, inside, around=location)
        if len(self._branches) < PLACES:
            self._branches[location] = branch

    def opened(self, placed: OrderedEvent, repository: str) -> None:
        """The client named the repository of where the session began."""
        if self._assert.confined:
            return
        if (remote := remote_of(repository)) and self._assert.location:
            self._assert_place(placed, self._assert.location, remote=remote)

    def ran(self, placed: OrderedEvent, command: str, text: str, began: str) -> None:
        """A command that began in a directory ended well.

        Git's answer may name the remote, or the root, and a run of Go's tests the module.
        """
        if self._assert.confined:
            return  # words alone would join its places to any other
        if "test" in command and (_GO_TEST in command or mentions(text, _HOSTS)):
            self._tested(placed, command, text, began)
        if not mentions(command, _HINTS):
            return
        naming = list(_naming_parts(command, began))
        if not naming or len({at for at, _ in naming}) > 1:
            return
        for at, part in naming:
            if not at:
                return
            root, remote = _shown(at, part, text)
            if root or remote:
                self._assert_place(placed, at, root=root, remote=remote)

    def _tested(self, placed: OrderedEvent, command: str, text: str, began: str) -> None:
        here = self._assert.base
        modules = {found[1].lower() for found in _GO_PACKAGE.finditer(text, 0, _MOST_TESTED)}
        if not modules and _GO_TEST not in command:
            return
        parts = list(parts_where(command, began))
        if not all(inside(at, here) for at, _ in parts):
            return
        modules = modules or _modules_of(parts, here, text)
        if len(modules) == 1:
            self._assert_place(placed, here, module=modules.pop())

    def _assert_place(
        self, placed: OrderedEvent, place: str, *, root: str = "", remote: str = "", around: str = "", module: str = ""
    ) -> None:
        confined = self._assert.confined
        about = "\n".join((place, root, remote, around, *((module,) if module else ()))) + "\nconfined" * confined
        if about not in self._asserted and len(self._asserted) < 2 * PLACES:
            self._asserted.add(about)
            self._assert.make(
                PlaceSeen,
                placed,
                about,
                place=place,
                root=root,
                remote=remote,
                around=around,
                module=module,
                confined=confined,
            )


def _modules_of(parts: Iterable[tuple[str, Part]], here: str, text: str) -> set[str]:
    """The modules of which packages were tested that a run of Go's tests named by their folders below `here`.

    `go test ./cart/...` that prints `shop.example/store/cart` is of `shop.example/store`. A name that is not after a
    host of repositories does not show by itself where the module ends.
    """
    found: set[str] = set()
    packages = {match[1].lower() + "/" for match in _PACKAGE.finditer(text, 0, _MOST_TESTED)}
    for at, part in parts:
        for word in part.words if part.head == _GO_TEST else ():
            folder = joined(at, word.removesuffix("...")) if at and word.startswith("./") else ""
            if not folder.startswith(here + "/"):
                continue
            below = folder[len(here) :].lower() + "/"
            for package in packages:
                module, inner, _ = package.partition(below)
                if inner and "/" in module:
                    found.add(module)
    return found


def _naming_parts(command: str, began: str) -> Iterator[tuple[str, Part]]:
    """The parts of a command that name something, each with where it ran; an empty path where that is uncertain.

    What a shell was handed to run (`sh -c "cd lib && git push"`) has the head of what it does, which may be elsewhere.
    """
    return (
        (at, part)
        for at, part in parts_where(command, began)
        if part.head in _NAMING and {*part.head.split()[1:]}.issubset(map(bare, part.words))
    )


def git_stays_in(command: str, began: str, base: str) -> bool:
    """Whether nothing shows that git works elsewhere than in the project of `base` in a command that began somewhere.

    Where the directory is uncertain (`cd "$REPO"`), or none is known of the session, it most likely does not.
    """
    if not base:
        return True
    at_git = (at for at, part in parts_where(command, began) if part.words[:1] == ("git",))
    return all(not at or belongs(at, base) for at in at_git)


def parted(command: str, began: str, base: str) -> tuple[list[Part], list[Part]]:
    """The parts of a command that ran in the project of `base`, or most likely so, and those that ran elsewhere."""
    within: list[Part] = []
    elsewhere: list[Part] = []
    for at, part in parts_where(command, began):
        (within if not base or not at or belongs(at, base) else elsewhere).append(part)
    return within, elsewhere


def _shown(at: str, part: Part, text: str) -> tuple[str, str]:
    """The root and the remote that the output of a part shows."""
    head = part.head
    if head in ("git push", "git pull", "git fetch"):
        words = [bare(word) for word in part.words]
        named = [word for word in words[words.index(head[4:]) + 1 :] if not word.startswith("-")][:1]
        found = _TRANSFER.search(text) if named in ([], ["origin"]) else None
        return "", remote_of(found[1]) if found else ""
    if head == "gh pr create":
        found = _PULL_REQUEST.search(text)
        return "", remote_of(found[1]) if found else ""
    if head == "git remote":
        found = _LISTED.search(text)
        return "", remote_of(found[1]) if found else ""
    if head == "git remote get-url":
        return "", remote_of(text) if "origin" in part.words else ""
    if "--show-toplevel" in part.words:
        # The root is an absolute path that holds where it ran; what else was printed is not.
        for line in text[:2_000].splitlines():
            if line[:1] == "/" or line[1:2] == ":":
                path = normalise(line)
                if path == at or path in above(at):
                    return path, ""
    return "", ""
