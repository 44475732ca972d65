"""A team's log behind its API, kept to as if it were at hand: what `EventWriter` does over Postgres, over HTTP.

Parsing, redaction, and what git says of a checkout happen here, where the words were said; the API redacts once more.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from memctl.api.client import Client, Refused, Unreachable
from memctl.api.write.identify import Identifier
from memctl.api.write.ingest_writer import Away, NotTaken, WriteResult
from memctl.api.write.remote_ingest import NOT_FOR_KEY, TOO_MANY_PLACES, Delivery, Sent, sent
from memctl.domain.events.event import NewEvent
from memctl.domain.support.errors import MemctlError
from memctl.infra.data_dir import Folders
from memctl.infra.hooks.remote_progress import Checkpoints, Listener, Nobody, State
from memctl.infra.log.append import Appended
from memctl.infra.redaction import Prepared, prepare_all
from memctl.infra.settings import Settings, SettingsInvalid, read_token
from memctl.infra.transcripts.reading import Checkpoint

log = logging.getLogger("memctl.relay")

MOST_BYTES = 4 << 20
"""Of events in one request."""

CHECKPOINTS = "relay.sqlite3"
"""The file of a member's machine that holds how far transcripts were sent."""

PATIENCE_S = 30.0
"""For the answer to one request, which may hold as much as above."""

_REFUSES_KEY = (401, 403)
_OF_ANOTHER_SPACE = 421
_OF_ANOTHER_VERSION = (404, 405, 409, 422)


class ApiAway(Away):
    """The team's API does not take anything now: {why}"""

    hint = "what it has is not sent again: go on later"


class KeyRefused(Away):
    """The team's API refuses this machine's key: {why}"""

    hint = "have a new one made (`memctl keys add`), and put it into the file that api_token_file names"


class SpaceRefused(Away):
    """The team's API refuses the space that this relay names: {why}"""

    hint = "set `space` on this machine to the team's, or not at all; `memctl config` says where it is set"


class ApiOutdated(Away):
    """The team's API does not know what this relay sends: {why}"""

    hint = "bring the API and the relay to one version"


@contextlib.contextmanager
def sending(settings: Settings) -> Iterator[RemoteWriter]:
    """A writer for a command of a member's machine, beside the relay there: both know how far files were read. Raises:
    Away."""
    places = Folders(settings.data_dir)
    places.make()
    with contextlib.closing(Checkpoints(places.data / CHECKPOINTS)) as checkpoints:
        meant = settings.of_space(settings.space_meant)  # "" is the key's, whichever that is
        with contextlib.closing(RemoteWriter(meant, Nobody(), checkpoints)) as writer:
            yield writer


class RemoteWriter:
    """Appends to a team's log, over one connection to its API. Not for several threads.

    `notes` hear how it goes. `space` is the one that hooks name: what is meant for it goes to no other. A key in a file
    is read when this is opened, which is `lost` once there is another.
    """

    def __init__(self, settings: Settings, notes: Listener, checkpoints: Checkpoints, space: str = "") -> None:
        self._meant = space
        self.settings = settings
        self._notes = notes
        self._checkpoints = checkpoints
        self._read_for = checkpoints.log
        try:
            self._token = self._given()
        except SettingsInvalid as problem:
            raise self._away("refused", KeyRefused(why=str(problem))) from problem
        self._key = sha256(self._token.encode()).hexdigest()
        if checkpoints.goes_by(self._key):
            log.warning(
                "this machine has another key: of what the API refused with the one before, transcripts are sent from"
                " their beginning, when a hook names them or a session starts beside them"
            )
        self._client = Client(
            settings.require("api_url"), self._token, patience_s=PATIENCE_S, space=space or settings.space_meant
        )
        self._redactor = settings.redactor()
        self._identifier = Identifier()

    @property
    def lost(self) -> bool:
        """Whether the file holds another key by now."""
        try:
            return self._given() != self._token
        except SettingsInvalid:  # it may be about to be written: the one before is good until it is refused
            return False

    def _given(self) -> str:
        file = self.settings.api_token_file
        return (read_token(file) if file else self.settings.api_token) or ""

    def known(self) -> dict[str, Checkpoint]:
        """How far each file was read, by `checkpoints.name_of` its path."""
        self._read_for = self._checkpoints.log
        return self._checkpoints.known()

    def record(self, events: Sequence[NewEvent]) -> WriteResult:
        """Redact and send; what is returned is in the team's log, but for what this machine's key is not for, which is
        reported. Raises: NotTaken, Away; then some may be."""
        recorded = self.write_rest(self.prepare(events))
        if wrong := [why for why in recorded.refused.values() if why not in NOT_FOR_KEY]:
            raise NotTaken(why=wrong[0])
        if recorded.refused:
            self._checkpoints.refused(self._key)
        return recorded

    def prepare(self, events: Sequence[NewEvent]) -> Prepared:
        """Clean, redact and cap."""
        return prepare_all(events, self._redactor)

    def write_rest(self, prepared: Prepared, reached: Mapping[Path, Checkpoint] | None = None) -> WriteResult:
        """Send what was prepared. Events that the API refuses are left out and reported. Once all of it is in the
        team's log, how far files were read is noted here. Raises: Away."""
        # First where it was: a key for certain projects opens by that.
        self._send(self.prepare(self._identifier.about(prepared.events)).events)
        appended, refused = self._send(prepared.events)
        if reached and TOO_MANY_PLACES in refused.values():  # what is read of a file can be read later
            raise NotTaken(why=TOO_MANY_PLACES)
        if reached and refused:
            self._checkpoints.refused(self._key)
        if reached:
            self._checkpoints.save(reached, self._read_for)
        return WriteResult(tuple(appended), dict(prepared.redactions), refused)

    def close(self) -> None:
        self._client.close()

    def _send(self, events: Sequence[NewEvent]) -> tuple[list[Appended], dict[int, str]]:
        appended: list[Appended] = []
        refused: dict[int, str] = {}
        batch: list[Sent] = []
        size = first = 0
        for event in events:
            one = sent(event)
            length = len(msgspec.json.encode(one))  # of short payloads most is what stands around them
            if batch and size + length > MOST_BYTES:
                self._post(batch, first, appended, refused)
                first, size, batch = first + len(batch), 0, []
            batch.append(one)
            size += length
        if batch:
            self._post(batch, first, appended, refused)
        return appended, refused

    def _post(self, batch: list[Sent], first: int, appended: list[Appended], refused: dict[int, str]) -> None:
        try:
            response = self._client.deliver(msgspec.json.encode(Delivery(batch)))
            recorded = msgspec.json.decode(response, type=WriteResult, strict=False)
        except Unreachable as problem:
            raise self._away("waiting", ApiAway(why=problem.why)) from problem
        except Refused as problem:
            raise self._why(problem) from problem
        except msgspec.ValidationError as problem:
            raise self._away("outdated", ApiOutdated(why="its answer cannot be read")) from problem
        if recorded.log and self._checkpoints.keeps(recorded.log):
            log.warning(
                "the team's log is another one, as after a restore: transcripts that were read are sent from their"
                " beginning, when a hook names them or a session starts beside them; what hooks alone sent since that"
                " backup is lost"
            )
        appended += recorded.appended
        refused |= {first + index: why for index, why in recorded.refused.items()}
        self._notes.took(len(recorded.appended), sum(why in NOT_FOR_KEY for why in recorded.refused.values()))

    def _why(self, problem: Refused) -> MemctlError:
        if problem.status in _REFUSES_KEY:
            return self._away("refused", KeyRefused(why=str(problem)))
        if problem.status == _OF_ANOTHER_SPACE:
            if self._meant:
                return NotTaken(why=f"it is meant for space {self._meant}, and this machine's key is for another")
            return self._away("refused", SpaceRefused(why=str(problem)))
        if problem.status in _OF_ANOTHER_VERSION:
            return self._away("outdated", ApiOutdated(why=str(problem)))
        return self._away("waiting", ApiAway(why=str(problem)))

    def _away(self, state: State, problem: Away) -> Away:
        if self._notes.failed(state, str(problem)) and state != "waiting":
            log.error("%s; what is recorded is kept here until then. %s", problem, problem.hint or "")
        return problem
