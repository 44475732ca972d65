"""Which project a question is about: a name, a path, an id, `*`, or where the caller stands."""

import difflib
from functools import partial
from typing import Any, Literal
from weakref import WeakKeyDictionary

import msgspec

from memctl.api.reading.occupancy import Occupancy, occupancy_of
from memctl.api.reading.reader import Reader
from memctl.api.reading.views import Scope
from memctl.domain.events.event import Event
from memctl.domain.events.recalls import quoted_name
from memctl.domain.knowledge.personal import is_personal
from memctl.domain.language.notes import MemoryNoted
from memctl.domain.projects.identity import Place, Project, Projects, UnknownProject, WaitingCheckout, one_of
from memctl.domain.projects.key_limits import Limits
from memctl.domain.projects.occupants import Occupant, occupants_of
from memctl.domain.support.bounded import LOCATIONS
from memctl.domain.support.location import by_key, is_absolute, is_on_this_machine, normalise, of_member, path_of
from memctl.domain.support.provenance import Provenance, member_of, words_of
from memctl.infra.git import checkout_at
from memctl.infra.readmodels.known_projects import known_projects
from memctl.projections.candidates import ClaimCandidate
from memctl.projections.insights import Insight, Saying
from memctl.projections.memory_feedback import MemoryFeedback
from memctl.projections.memory_rows import Memory
from memctl.projections.project_words import ProjectWords
from memctl.projections.verified_knowledge import VerifiedClaim, VerifiedKnowledge

EVERYWHERE = "*"


class Places(msgspec.Struct, frozen=True):
    """The projects of a question. `locations` is None for everywhere; else all locations of one project, its worktrees
    and clones among them."""

    project: str | None
    chosen: Literal["asked", "here", "unknown", "everywhere"]
    locations: tuple[str, ...] | None

    @property
    def scope(self) -> Scope:
        return Scope(self.project, self.chosen, len(self.locations or ()))


def projects_of(reader: Reader) -> Projects:
    """Every project that memory knows, or of them those that the caller is limited to; worked out once for each
    request."""
    if (limits := limits_of(reader)) is not None:
        return limits.projects
    known = reader.memo.get("projects")
    if known is None:
        known = reader.memo["projects"] = known_projects(reader.connection, reader.live, reader.space_id)
    assert isinstance(known, Projects)
    return known


_limits: WeakKeyDictionary[Projects, dict[tuple[str, ...], Limits]] = WeakKeyDictionary()
"""What keys may read of the projects that are kept worked out, by what each key was given."""


def limits_of(reader: Reader) -> Limits | None:
    """What a caller that is limited to projects may read and record; None for a caller that is not limited."""
    if reader.limited_to is None:
        return None
    limits = reader.memo.get("limits")
    if limits is None:
        known = known_projects(reader.connection, reader.live, reader.space_id)
        kept = _limits.setdefault(known, {})
        limits = kept.get(reader.limited_to)
        if limits is None:
            limits = kept[reader.limited_to] = Limits(known, reader.limited_to)
        reader.memo["limits"] = limits
    assert isinstance(limits, Limits)
    return limits


OF_NO_PLACE = (MemoryFeedback, ProjectWords)
"""Rows of what people say of projects and memories: it is read of what is visible."""


def visible(reader: Reader, row: Any) -> bool:
    """Whether a row shows the caller nothing but the projects that the caller is limited to, and nothing that another
    member of the team said of themselves."""
    if is_anothers(reader, row):
        return False
    limits = limits_of(reader)
    if limits is None:
        return True
    named = locations_of_row(row)
    if named is None:
        return isinstance(row, OF_NO_PLACE)
    # A list that is full may have pushed out what was met elsewhere.
    return bool(named) and len(named) < LOCATIONS and limits.locations.issuperset(named)


def is_anothers(reader: Reader, row: Any) -> bool:
    """Whether a row is a claim that another member made of themselves, and that no person confirmed for all. The owner
    is shown it, who has it all; what sessions say word for word is the team's."""
    if not reader.member or getattr(row, "said_by", None) is not Provenance.MEMBER or getattr(row, "confirmed", False):
        return False
    if isinstance(row, Memory):
        return row.kind == "knowledge" and any(map(partial(_is_anothers_line, reader, row), row.text.splitlines()))
    if not isinstance(row, Insight | ClaimCandidate | VerifiedKnowledge | VerifiedClaim):
        return False
    sayings = [each for each in getattr(row, "evidence", ()) if isinstance(each, Saying) and each.text == row.text]
    return reader.member not in (row.member, *(each.member for each in sayings)) and is_personal(row.text, row.kind)


def _is_anothers_line(reader: Reader, row: Memory, line: str) -> bool:
    """The same of one of several claims of a subject, which names its speaker where that is not who said the first."""
    own = words_of(Provenance.MEMBER, member=reader.member) in line
    return is_personal(line) and not own and (row.member != reader.member or "said by" in line)


def keeps_to_themselves(reader: Reader, event: Event) -> bool:
    """Whether an event is a note in which another member speaks of themselves."""
    noted, member = event.payload, member_of(event.actor)
    whose = bool(reader.member and member) and member != reader.member
    return whose and isinstance(noted, MemoryNoted) and is_personal(noted.text, noted.kind)


def locations_of_row(row: Any) -> set[str] | None:
    """Every location that a row names; None for a row of a kind that names none."""
    if not (hasattr(row, "location") or hasattr(row, "locations")):
        return None
    listed = (*getattr(row, "locations", ()), *getattr(row, "elsewhere", ()))
    seen = [each if isinstance(each, str) else each.name for each in listed]
    return {at for at in (getattr(row, "location", ""), *seen) if at}


def places_of(reader: Reader, project: str | None, here: str | None = None, *, anywhere: bool = False) -> Places:
    """What `project` means: a project's name in any case, its id or remote, a path in it, or `*` for all.

    Without it, the project that the directory `here` lies in. Where memory knows none there (also of an empty path),
    only what holds everywhere; or everything, with `anywhere` and where nobody says where they are.
    Of several of that name it is the one that `here` lies in. A member's paths are those of the member's own machine.
    Raises: UnknownProject, with names that are near, and SeveralProjects.
    """
    if project == EVERYWHERE:
        return Places(None, "asked", _all(reader))
    if project:
        found = _named(reader, project)
        at = _holding(reader, here) if here and len(found) > 1 else None
        meant = at if at is not None and at in found else one_of(found, project)
        return Places(meant.name, "asked", meant.locations)
    if here and (holding := _holding(reader, here)) is not None:
        return Places(holding.name, "here", holding.locations)
    if here and waiting_at(reader, here):
        return Places(None, "here", ())
    if here is not None and not anywhere:
        return Places(None, "unknown", ())
    return Places(None, "everywhere", _all(reader))


def waiting_at(reader: Reader, here: str) -> list[WaitingCheckout]:
    """What a person has to say of the checkout at a path, before it may be of the project that it claims."""
    return projects_of(reader).asks(on_machine(reader, here), _checkout(reader, here))


def _holding(reader: Reader, here: str) -> Project | None:
    """The project that a path lies in. Who comes with a key limited to projects may be the only one who knows it."""
    known = projects_of(reader)
    found = known.holding(on_machine(reader, here), _checkout(reader, here))
    if found is None and limits_of(reader) is not None:
        at = normalise(here)
        found = known.holding(by_key(at)) or known.holding(of_member(reader.member, at))
    return found


def on_machine(reader: Reader, path: str) -> str:
    """A caller's path: of the member's own machine, where it comes through an unlimited key; of this one, as what lies
    there now is recorded."""
    if reader.here:
        return _occupancy(reader, path).at(normalise(path))
    unlimited = reader.member and reader.limited_to is None
    return of_member(reader.member, normalise(path)) if unlimited else path


def _named(reader: Reader, text: str) -> list[Project]:
    """The projects that a text names, of those on the caller's own machine if any is. Raises: UnknownProject."""
    known = projects_of(reader)
    found = known.named(on_machine(reader, text) if is_absolute(normalise(text)) else text)
    if not found:
        raise _unknown(text, known)
    if len(found) == 1:
        return found

    def is_own(at: str) -> bool:
        return (is_on_this_machine(at) or not reader.here) and at == on_machine(reader, path_of(at))

    return [each for each in found if any(map(is_own, each.locations))] or found


def kept_at(reader: Reader, path: str) -> str:
    """Where something that the caller says at a path is kept: what a key limited to projects says of a path that is no
    known place of theirs lies at no path of this machine."""
    limits = limits_of(reader)
    return on_machine(reader, path) if limits is None or path in limits.locations else by_key(path)


def _checkout(reader: Reader, here: str) -> Place | None:
    """What git's files say of a path now: it may be the first time that anybody works there."""
    found = _occupancy(reader, here).checkout if reader.here else None
    if found is None:
        return None
    remotes = (found.remote,) if found.remote else ()
    return Place(
        on_machine(reader, here), found.root, found.repository, remotes, borrows=found.borrows, checked=found.checked
    )


_occupants: WeakKeyDictionary[Projects, dict[str, list[Occupant]]] = WeakKeyDictionary()
"""The checkouts that lay at paths, by the projects that are kept worked out."""


def _occupancy(reader: Reader, here: str) -> Occupancy:
    """Which checkout is at a path of this machine now."""
    location = normalise(here)
    looked = reader.memo.get(f"occupancy {location}")
    if looked is None:
        projects = projects_of(reader)
        if projects not in _occupants:
            _occupants[projects] = occupants_of(projects.places)
        occupants = _occupants[projects]
        looked = occupancy_of(
            location, checkout_at(location), lambda paths: {at: occupants[at] for at in paths if at in occupants}
        )
        reader.memo[f"occupancy {location}"] = looked
    assert isinstance(looked, Occupancy)
    return looked


def _all(reader: Reader) -> tuple[str, ...] | None:
    limits = limits_of(reader)
    return None if limits is None else tuple(sorted(limits.locations))


def project_asked(reader: Reader, project: str | None, here: str | None) -> Project:
    """The one project that is named, or else that `here` lies in. Raises: UnknownProject, SeveralProjects."""
    known = projects_of(reader)
    if project:
        return one_of(_named(reader, project), project)
    if here and (holding := _holding(reader, here)) is not None:
        return holding
    raise _unknown(here or "", known)


def _unknown(project: str, known: Projects) -> UnknownProject:
    called = sorted({each.name for each in known.all})
    near = difflib.get_close_matches(project[:100], called[:1_000], n=3, cutoff=0.5) or called[:5]
    hint = (
        f"it knows {', '.join(map(quoted_name, near))}; '*' asks all"
        if near
        else "nothing was kept yet; see `memctl ingest --help`"
    )
    return UnknownProject(project=project, hint=hint)
