"""Which checkout a session works in, as git's files say, recorded while the directory is still there to be asked."""

import time
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from memctl.api.reading.occupancy import Occupancy, occupancy_of
from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import HISTORY
from memctl.domain.projects.identity import KEPT_IN_CHECKOUTS, ProjectIdentified, identified_key, project_stream
from memctl.domain.projects.occupants import Known, Occupant, merged
from memctl.domain.support.location import is_absolute, path_of, since_of
from memctl.infra.git import Checkout, checkout_at, there_since

MOST_KNOWN = 50_000
"""How many pairs of session and location are remembered. Beyond them some are looked at again, and recorded once."""


_OBSERVED = ("session/", HISTORY)
"""How streams begin that hold what was observed at places."""


class Identifier:
    """Looks at each location of each session once, and after `again_s` seconds: another checkout may have come there.
    `known` says which checkouts memory knows at paths of this machine; without it every location is its path."""

    def __init__(self, known: Known | None = None, again_s: float = 60.0) -> None:
        self._rows = known
        self._again_s = again_s
        self._began = time.monotonic()
        self._looks: dict[tuple[str, str, bool], Occupancy] = {}
        self._found: set[tuple[str, str, bool]] = set()
        """What was recorded of these streams at these locations."""
        self._dated: dict[str, int] = {}
        """By stream in which that decides, the moment of an event that bore a time."""
        self._checkouts: dict[tuple[Checkout, int, int], Occupancy] = {}
        self._met: dict[str, list[Occupant]] = defaultdict(list)
        """What was found at paths and may not be folded yet."""

    def about(self, events: Sequence[NewEvent]) -> list[NewEvent]:
        """What is to be recorded beside these events: see `placed`."""
        return self.placed(events)[1]

    def placed(self, events: Sequence[NewEvent]) -> tuple[list[NewEvent], list[NewEvent]]:
        """The events, each where the checkout lies that lay there when it happened; and what is to be recorded beside
        them: one `project.identified` for each session and location that is new here and lies in a checkout on this
        machine. Its key makes it one event, however often it is sent."""
        if time.monotonic() - self._began >= self._again_s:
            self._looks.clear()
            self._began = time.monotonic()
        placed, found = list[NewEvent](), list[NewEvent]()
        for event in events:
            if not event.location or not event.stream.startswith(_OBSERVED):
                placed.append(event)
                continue
            brought = event.brought or event.stream.startswith(HISTORY)
            look = self._looks.get((event.stream, event.location, brought))
            if look is not None and not look.moments:
                placed.append(event)
                continue
            if look is None:
                look = self._look(event, brought)
            location = look.at(event.location, self._moment(event, events)) if look.moments else event.location
            is_there = location == look.at(event.location)
            if location != event.location:
                event = msgspec.structs.replace(event, location=location)
            placed.append(event)
            seen = (event.stream, location, brought)
            if look.checkout is not None and is_there and seen not in self._found:
                self._found.add(seen)
                found.append(self._identified(event, look.checkout, brought=brought))
        return placed, found

    def _moment(self, event: NewEvent, events: Sequence[NewEvent]) -> int | None:
        """When an event happened; None of what is of the checkout that lies there now: what is kept in that, whatever
        its dates say, and what bears no time in a session of which no other event does."""
        if event.stream.startswith(KEPT_IN_CHECKOUTS):
            return None
        if event.occurred_at <= 0:
            others = (each.occurred_at for each in events if each.stream == event.stream and each.occurred_at > 0)
            return next(others, self._dated.get(event.stream))
        self._dated[event.stream] = event.occurred_at
        return event.occurred_at

    def _look(self, event: NewEvent, brought: bool) -> Occupancy:
        if len(self._looks) >= MOST_KNOWN:
            for each in (self._looks, self._found, self._dated, self._checkouts):
                each.clear()
        location = event.location
        checkout = checkout_at(location)
        if self._rows is None or not is_absolute(location):
            look = Occupancy(checkout)
        elif checkout is None or not checkout.root:
            look = occupancy_of(location, checkout, self._known)
        else:
            # Of a checkout memory is asked once, until another lies there.
            whole = checkout, there_since(checkout.root), there_since(checkout.repository or checkout.root)
            look = self._checkouts.get(whole) or occupancy_of(location, checkout, self._known)
            self._checkouts[whole] = look
        self._looks[event.stream, location, brought] = look
        return look

    def _known(self, paths: Sequence[str]) -> dict[str, list[Occupant]]:
        assert self._rows is not None
        rows = self._rows(paths)
        both = {path: merged((*rows.get(path, ()), *self._met.get(path, ()))) for path in paths}
        return {path: occupants for path, occupants in both.items() if occupants}

    def _identified(self, event: NewEvent, checkout: Checkout, *, brought: bool) -> NewEvent:
        since = there_since(path_of(checkout.repository or checkout.root)) if checkout.root else 0
        payload = ProjectIdentified(
            location=event.location, brought=brought, there_since=since if since > event.occurred_at else 0,
            **checkout._asdict(),
        )  # fmt: skip
        for at in {checkout.root, checkout.repository} - {""}:
            remotes = frozenset({checkout.remote} - {""})
            occupants = (*self._met[path_of(at)], Occupant(since_of(at), max(event.occurred_at, since), remotes))
            self._met[path_of(at)] = merged(occupants)
        return NewEvent(
            stream=project_stream(payload.remote or payload.repository or payload.root or payload.location),
            payload=payload,
            occurred_at=event.occurred_at,
            dedupe_key=identified_key(event.stream, event.location),
            actor="memctl",
            location=event.location,
            session_id=event.session_id,
        )
