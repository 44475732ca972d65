"""Which checkout a session works in, as git's files say, recorded while the directory is still there to be asked."""

from collections.abc import Sequence

from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import HISTORY
from memctl.domain.projects.identity import ProjectIdentified, identified_key, project_stream
from memctl.infra.git import checkout_at, there_since

MOST_KNOWN = 50_000
"""How many pairs of session and location are remembered. Beyond them some are looked at again, and recorded once."""


_OBSERVED = ("session/", HISTORY)
"""How streams begin that hold what was observed at places."""


class Identifier:
    """Looks at each location of each session once."""

    def __init__(self) -> None:
        self._known: set[tuple[str, str, bool]] = set()

    def about(self, events: Sequence[NewEvent]) -> list[NewEvent]:
        """What is to be recorded beside these events: one `project.identified` for each session and location that is
        new here and lies in a checkout on this machine. Its key makes it one event, however often it is sent."""
        found = []
        for event in events:
            brought = event.brought or event.stream.startswith(HISTORY)
            seen = (event.stream, event.location, brought)
            if seen in self._known or not event.location or not event.stream.startswith(_OBSERVED):
                continue
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known.add(seen)
            checkout = checkout_at(event.location)
            if checkout is None:
                continue
            since = there_since(checkout)
            payload = ProjectIdentified(
                location=event.location, brought=brought, there_since=since if since > event.occurred_at else 0,
                **checkout._asdict(),
            )  # fmt: skip
            found.append(
                NewEvent(
                    stream=project_stream(payload.remote or payload.repository or payload.root or payload.location),
                    payload=payload,
                    occurred_at=event.occurred_at,
                    dedupe_key=identified_key(event.stream, event.location),
                    actor="memctl",
                    location=event.location,
                    session_id=event.session_id,
                )
            )
        return found
