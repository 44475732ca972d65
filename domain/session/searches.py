"""What a session searched for before it could use it: files that it edited, and values of its commands and edits.

A need begins with a prompt. It counts only where neither the prompt nor the session before had named the thing, where
the agent looked at several others first, and where it then used what it had found.
"""

from collections.abc import Sequence

import msgspec

from memctl.domain.events.event import Micros
from memctl.domain.events.event_order import OrderedEvent
from memctl.domain.events.fact_builder import FactBuilder
from memctl.domain.events.facts import KnowledgeNeeded, Span
from memctl.domain.events.observations import PromptSubmitted
from memctl.domain.language.prompts import said_in
from memctl.domain.retrieval.hindsight import request_words
from memctl.domain.session.tools import Change
from memctl.domain.shell.commands import only_reads
from memctl.domain.support.mentions import distinctive_values_in, path_within, values_in

LEAST_SEARCHES = 3
"""Uses of tools that only look, before what was looked for was found."""

LOOKED, LOOKED_CHARACTERS = 32, 4_000
"""Outputs since a prompt that are kept, and characters of each."""

FAMILIAR = 4_000
"""Paths and values of a session that are remembered."""

NEEDS = 40
"""Things that one session is said to have searched for, at most."""


class _Sight(msgspec.Struct):
    """Where the session stood when it saw something."""

    cite: Span
    when: Micros
    uses: int
    tokens: int
    searches: int
    idle: int
    text: str = ""


class _Turn(msgspec.Struct):
    """What was asked, and what was looked at since."""

    began: _Sight
    text: str
    words: tuple[str, ...]
    looked: list[_Sight] = msgspec.field(default_factory=list)
    touched: dict[str, _Sight] = msgspec.field(default_factory=dict)


class Searches:
    """The searches of one stream."""

    def __init__(self, assertions: FactBuilder) -> None:
        self._assert = assertions
        self._turn: _Turn | None = None
        self._familiar: dict[str, None] = {}
        self._uses = self._searches = self._needs = 0

    def prompted(self, placed: OrderedEvent, seen: PromptSubmitted) -> None:
        """A person asked for something: what is searched for from here on is for that."""
        if seen.subagent or seen.meta or seen.injected:
            return
        said = said_in(seen.text)
        if said.by != "user":
            return
        if self._turn is not None:
            self._know(self._turn.touched)
        lead = self._turn.text if self._turn is not None else ""
        self._know(values_in(said.words[:20_000]))
        self._turn = _Turn(self._sight(placed), said.words[:20_000].lower(), request_words(said.words, lead))

    def answered(self, text: str) -> None:
        """What the agent has said, it knows."""
        if self._turn is None:
            self._know(values_in(text[:20_000]))

    def used(
        self,
        placed: OrderedEvent,
        family: str,
        files: Sequence[str],
        command: str,
        changes: Sequence[Change],
        output: str,
        *,
        ok: bool,
    ) -> None:
        """A use of a tool ended: it looked at something, or used what had been found."""
        self._uses += 1
        turn = self._turn
        if turn is None:
            return
        looks = family in ("search", "read", "web") or (bool(command) and only_reads(command))
        base = self._assert.base
        for path in files:
            if (inside := path_within(base, path)) and inside not in turn.touched:
                turn.touched[inside] = self._sight(placed)
        if ok:
            for change in changes:
                self._edited(placed, turn, change)
            if command and not looks:
                self._valued(placed, turn, command)
        if looks:
            self._searches += 1
            if len(turn.looked) < LOOKED:
                turn.looked.append(self._sight(placed, output[:LOOKED_CHARACTERS]))

    def _sight(self, placed: OrderedEvent, text: str = "") -> _Sight:
        spent = self._assert
        return _Sight(Span(placed.cite), placed.when, self._uses, spent.tokens, self._searches, spent.idle, text)

    def _know(self, names: object) -> None:
        for name in names:  # type: ignore[attr-defined]
            if len(self._familiar) < FAMILIAR:
                self._familiar[name] = None

    def _edited(self, placed: OrderedEvent, turn: _Turn, change: Change) -> None:
        path = path_within(self._assert.base, change.path)
        self._valued(placed, turn, change.after, but=change.before)
        if not path or path in self._familiar:
            return
        name = path.rpartition("/")[2].lower()
        known = change.created or name in turn.text or name.rpartition(".")[0] in turn.text.split()
        if not known:
            self._needed(placed, turn, "place", path, turn.touched.get(path) or self._sight(placed))
        self._know((path,))

    def _valued(self, placed: OrderedEvent, turn: _Turn, text: str, but: str = "") -> None:
        for value in distinctive_values_in(text):
            if value in self._familiar or value in values_in(but):
                continue
            self._know((value,))
            if value.lower() in turn.text:
                continue
            sight = next((each for each in turn.looked if value in each.text), None)
            if sight is not None:
                self._needed(placed, turn, "value", value, sight)

    def _needed(self, placed: OrderedEvent, turn: _Turn, kind: str, subject: str, sight: _Sight) -> None:
        searches = sight.searches - turn.began.searches
        if searches < LEAST_SEARCHES or self._needs >= NEEDS:
            return
        self._needs += 1
        self._assert.make(
            KnowledgeNeeded,
            placed,
            f"{kind}:{subject}",
            turn.began.cite,
            sight.cite,
            Span(placed.cite),
            kind=kind,
            subject=subject,
            words=turn.words,
            searches=searches,
            calls=sight.uses - turn.began.uses,
            tokens=max(sight.tokens - turn.began.tokens, 0),
            duration_us=max(sight.when - turn.began.when, 0),
            idle_us=sight.idle - turn.began.idle,
        )
