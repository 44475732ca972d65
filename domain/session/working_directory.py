"""Where a session works, as its client recorded it. What commands print shows nothing of that: anyone can write it."""

from collections.abc import Set as AbstractSet

from memctl.domain.events.event_order import OrderedEvent, keyed_at
from memctl.domain.events.fact_builder import FactBuilder
from memctl.domain.events.facts import PlaceSeen
from memctl.domain.projects.identity import remote_of
from memctl.domain.session.checks import paths_in
from memctl.domain.shell.commands import Part
from memctl.domain.shell.directories import parts_where
from memctl.domain.support.location import above, belongs, is_scratch

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

    def opened(self, placed: OrderedEvent, repository: str, *, brought: bool) -> None:
        """The client named the repository of where the session began, or a file that was `brought` did."""
        if self._assert.confined:
            return
        if (remote := remote_of(repository)) and self._assert.location:
            self._assert_place(placed, self._assert.location, remote=remote, brought=brought)

    def _assert_place(
        self, placed: OrderedEvent, place: str, *, remote: str = "", around: str = "", brought: bool = False
    ) -> None:
        confined, keyed = self._assert.confined, keyed_at(placed.event)
        how = "\nconfined" * confined + "\nkeyed" * bool(keyed) + "\nbrought" * brought
        about = "\n".join((place, remote, around)) + how
        if about not in self._asserted and len(self._asserted) < 2 * PLACES:
            self._asserted.add(about)
            self._assert.make(
                PlaceSeen, placed, about, place=place, remote=remote, around=around, confined=confined, keyed_at=keyed,
                brought_by=str(placed.event.delivery_id) if brought else "",
            )  # fmt: skip


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


def in_scratch(command: str, began: str, base: str, heads: AbstractSet[str]) -> bool:
    """Whether all that programs of these heads ran in a command is of a temporary folder outside of the project of
    `base`: what passes or fails there says nothing of the project."""
    ran = [(at, part) for at, part in parts_where(command, began) if part.head in heads]
    return bool(ran) and all(is_scratch(next(iter(paths_in(part, at)), "") or at, base) for at, part in ran)
