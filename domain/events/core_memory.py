"""Core memory: a few short sections that are always in context (MemGPT), edited with the version in hand."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated, ClassVar
from uuid import UUID

import msgspec

from memctl.domain.events.command import BadCommand, Command, command
from memctl.domain.events.event import Event, Payload, event
from memctl.domain.events.event_order import preferred
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.location import inside
from memctl.domain.support.text import composed
from memctl.domain.support.wording import seen

LONGEST_SECTION = 2_000
"""Characters."""

CORE = "core/memory"
"""Stream of all sections of a space."""

Section = Annotated[str, msgspec.Meta(min_length=1, max_length=40, pattern=r"^[\w][\w -]*$")]


class SectionFull(MemctlError):
    """Section {section!r} would have {length} characters; {longest} are the most."""

    exit_code = 2
    hint = "Replace something in it by something shorter."


class SectionChanged(MemctlError):
    """Section {section!r} is at version {version} by now, not {expected}."""

    exit_code = 2
    hint = "Read it again, then say what you want of it as it is."


class NotInSection(MemctlError):
    """Section {section!r} does not hold {text!r}."""

    exit_code = 2
    hint = "The text to be replaced has to stand there exactly so, and once."


HUMAN = "human"
"""The section about the user: theirs to write."""


class NotYours(MemctlError):
    """Section {section!r} is for its user to write."""

    exit_code = 2
    hint = "Note what you found out: the user may approve it."
    section: str


class OfAnotherProject(MemctlError):
    """Section {section!r} holds what an agent wrote in another project, which nobody has approved."""

    exit_code = 2
    hint = "Take another name for the section."
    section: str


class _Edited(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """`text` is the section's whole text after the edit, its `version`-th. So the last edit holds the full text."""

    section: str
    text: str
    version: int
    agents: bool = False
    """Words of an agent stand in it that no person has approved."""
    approved: bool = False
    """Words of an agent stand in it that a person has approved."""


@event("core_memory.appended")
class CoreMemoryAppended(_Edited, frozen=True, kw_only=True, omit_defaults=True):
    """A line was added to a section of core memory. `text` is the whole section then, `version` counts from 1."""

    content: str = ""


@event("core_memory.replaced")
class CoreMemoryReplaced(_Edited, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a section was replaced, or left out where `new` is empty. `text` is the whole section then."""

    old: str = ""
    new: str = ""


Edited = CoreMemoryAppended | CoreMemoryReplaced


def unapproved(edit: Event) -> bool:
    """Whether words of an agent that no person approved stand in a section after this edit."""
    return edit.actor != "user" or (isinstance(edit.payload, Edited) and edit.payload.agents)


class _Edit(Command, frozen=True, kw_only=True):
    to: ClassVar[str] = CORE
    reads: ClassVar[bool] = True

    section: Section
    version: int | None = None
    """The version that the edit is meant for; any where it is None."""

    def repeats(self, history: Sequence[Event]) -> Sequence[Event]:
        """The section's last edit, which repeats the one before, and so on; other sections are none of its business."""
        return self.edits(history)[-1:]

    def edits(self, history: Sequence[Event]) -> list[Event]:
        """The section's edits in order of their versions."""
        versions: dict[UUID, list[Event]] = defaultdict(list)
        for e in history:
            versions[e.delivery_id].append(e)
        # As the read model has it, and not the one that was appended last: an import may bring earlier edits later.
        edits = [
            (e.payload.version, e.occurred_at, str(e.delivery_id), e)
            for e in map(preferred, versions.values())
            if isinstance(e.payload, Edited) and e.payload.section == self.section
        ]
        return [edit[-1] for edit in sorted(edits)]

    def of_agents(self, history: Sequence[Event], text: str) -> bool:
        """Whether words of an agent that nobody approved stand in the section after this edit. An agent's edit stays
        in its project. Raises: BadCommand, NotYours, OfAnotherProject."""
        edits = self.repeats(history)
        before = bool(edits and text) and unapproved(edits[-1])
        if self.by == "user":  # also behind an agent that took all out: what was there before is not lost by it
            return any(map(unapproved, edits))
        if not self.location:
            raise BadCommand(why="an agent says where it works, for what it writes stays there")
        plain = composed(seen(self.section))
        if plain != self.section or plain.strip().casefold() == HUMAN:
            raise NotYours(section=self.section)
        if before and not (inside(self.location, edits[-1].location) or inside(edits[-1].location, self.location)):
            raise OfAnotherProject(section=self.section)
        return True

    def approved_of_agents(self, history: Sequence[Event], text: str) -> bool:
        """Whether words of an agent that a person approved stand in the section still."""
        edits = self.repeats(history) if text else ()
        return any(isinstance(e.payload, Edited) and e.payload.approved for e in edits)

    def found(self, history: Sequence[Event]) -> tuple[str, int]:
        """The section's text and version. Raises: SectionChanged where it is not the version that was meant."""
        edits = [e.payload for e in self.repeats(history) if isinstance(e.payload, Edited)]
        text, version = (edits[-1].text, edits[-1].version) if edits else ("", 0)
        if self.version not in (None, version):
            raise SectionChanged(section=self.section, version=version, expected=self.version)
        return text, version

    def fitting(self, text: str) -> str:
        """The text, where it fits a section. Raises: SectionFull."""
        if len(text) > LONGEST_SECTION:
            raise SectionFull(section=self.section, length=len(text), longest=LONGEST_SECTION)
        return text


@command("core-append")
class AppendCoreMemory(_Edit, frozen=True, kw_only=True):
    """Add a line to a section of core memory; a new name begins a section."""

    content: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_SECTION)]

    def decide(self, history: Sequence[Event]) -> CoreMemoryAppended:
        text, version = self.found(history)
        content = self.content.strip()
        if not content:
            raise BadCommand(why="there is nothing to append")
        whole = self.fitting(f"{text}\n{content}" if text else content)
        return CoreMemoryAppended(
            section=self.section,
            text=whole,
            version=version + 1,
            content=content,
            agents=self.of_agents(history, text),
            approved=self.approved_of_agents(history, text),
        )


@command("core-replace")
class ReplaceCoreMemory(_Edit, frozen=True, kw_only=True):
    """Put `new` where `old` stands in a section, or leave it out where `new` is empty."""

    old: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_SECTION)]
    new: Annotated[str, msgspec.Meta(max_length=LONGEST_SECTION)] = ""

    def decide(self, history: Sequence[Event]) -> CoreMemoryReplaced:
        text, version = self.found(history)
        if text.count(self.old) != 1:
            raise NotInSection(section=self.section, text=self.old)
        whole = self.fitting(text.replace(self.old, self.new).strip("\n"))
        return CoreMemoryReplaced(
            section=self.section,
            text=whole,
            version=version + 1,
            old=self.old,
            new=self.new,
            agents=self.of_agents(history, text),
            approved=self.approved_of_agents(history, text),
        )


class NothingWaits(MemctlError):
    """Nothing of an agent's waits in section {section!r}."""

    exit_code = 3
    section: str


class _Judged(_Edit, frozen=True, kw_only=True):
    by_people: ClassVar[str] = "a person says what every session is given"

    def waiting(self, history: Sequence[Event]) -> tuple[str, int]:
        """The section as it waits for a person. Raises: NothingWaits, SectionChanged."""
        text, version = self.found(history)
        if not any(map(unapproved, self.repeats(history))):
            raise NothingWaits(section=self.section)
        return text, version


@command("core-approve")
class ApproveCoreMemory(_Judged, frozen=True, kw_only=True):
    """Approve what agents wrote into a section: starts give it from then on, as an agent's that you confirmed."""

    def decide(self, history: Sequence[Event]) -> CoreMemoryReplaced:
        text, version = self.waiting(history)
        return CoreMemoryReplaced(section=self.section, text=text, version=version + 1, approved=True)


@command("core-reject")
class RejectCoreMemory(_Judged, frozen=True, kw_only=True):
    """Put a section back to what it was before agents wrote into it."""

    def decide(self, history: Sequence[Event]) -> CoreMemoryReplaced:
        text, version = self.waiting(history)
        edits = [e for e in self.edits(history) if not unapproved(e)]
        last = edits[-1].payload if edits else None
        kept, approved = (last.text, last.approved) if isinstance(last, Edited) else ("", False)
        return CoreMemoryReplaced(
            section=self.section, text=kept, version=version + 1, old=text[:LONGEST_SECTION], approved=approved
        )
