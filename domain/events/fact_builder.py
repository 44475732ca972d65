"""How stage 1 asserts facts: their ids, their evidence, and the list they are handed out from."""

from typing import Any, TypeVar

import msgspec

from memctl.domain.events.event import Micros
from memctl.domain.events.event_order import OrderedEvent
from memctl.domain.events.facts import TAGS, Fact, Identified, Span, fact_id, quote, quote_hash
from memctl.domain.support.location import by_key, home_of, inside, path_of
from memctl.domain.support.provenance import through

F = TypeVar("F", bound=Fact)
N = TypeVar("N", bound=Identified)


MOST_BASES = 64
"""Directories of one session that are known again later."""


class FactBuilder:
    """The facts of one stream that were not handed out yet."""

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self.lineage = ""
        """Digest of its first line's id: a copy, a fork and a resumed session begin with the same."""
        self.once = ""
        """The same of the line that last set the agent to work, at first of the first line."""
        self.location = ""
        """The last working directory that an event named: some events name none."""
        self.base = ""
        """The outermost directory around it that the session worked in."""
        self._bases: list[str] = []
        """All that were its base."""
        self.confined = False
        """Some of it was delivered under a key that is limited to projects: nothing it says holds elsewhere."""
        self.tokens = 0
        """Tokens that the session has spent so far, in and out."""
        self.idle = Micros(0)
        """Microseconds of it so far in which nobody worked."""
        self._facts: list[Fact] = []
        self._counts: dict[str, int] = {}

    @property
    def directory(self) -> str:
        """The path of its location, on whichever machine that is."""
        return path_of(self.location)

    @property
    def top(self) -> str:
        """The path of its base."""
        return path_of(self.base)

    @property
    def home(self) -> str:
        """Where what is said of the whole project belongs: its repository, and no folder or worktree of it."""
        return home_of(self.base)

    def home_of(self, location: str) -> str:
        """The same for another directory that the session has worked in, wherever it works now."""
        around = (base for base in self._bases if inside(location, base))
        return home_of(min(around, key=len, default=location))

    def moved(self, location: str) -> None:
        """The session works somewhere else from now on."""
        self.location = location
        if not inside(location, self.base):
            self.base = location
            if location not in self._bases and len(self._bases) < MOST_BASES:
                self._bases.append(location)

    def sets_to_work(self, when: Micros, line: str) -> None:
        """A prompt that stands in this line set the agent to work. One whose line has no id is known by what came
        before it and by its time, which a copy repeats as well."""
        self.once = lineage_of(line) or (quote_hash(f"{self.once} {when}") if self.once else "")

    def once_by(self, actor: str, once: str | None = None) -> str:
        """`once` (given, or the last prompt's) of what an actor says: what another member copies counts beside it."""
        once, member = self.once if once is None else once, through(actor)
        return quote_hash(f"{once} {member}") if once and member else once

    def placed(self, location: str) -> str:
        """Where a fact lies whose session was there: no path of this machine, where a key limited to projects says
        so."""
        return by_key(location) if self.confined else location

    def drain(self) -> list[Fact]:
        drained, self._facts = self._facts, []
        return drained

    def add(self, fact: Fact) -> None:
        if self.lineage and isinstance(fact, Identified) and not fact.lineage:
            fact = msgspec.structs.replace(fact, lineage=self.lineage)
        if (at := self.placed(fact.location)) != fact.location:
            fact = msgspec.structs.replace(fact, location=at)
        self._facts.append(fact)

    def make(self, cls: type[N], placed: OrderedEvent, about: str, *spans: Span, **fields: Any) -> N:
        """Assert a fact about `about` at an event's place, on the evidence of these spans or the whole event."""
        return self.note(cls, placed, *spans, id=fact_id(self.stream, TAGS[cls], about), lineage=self.lineage, **fields)

    def note(self, cls: type[F], placed: OrderedEvent, *spans: Span, **fields: Any) -> F:
        """Assert a fact that nothing will name, so it needs no id. `fields` may name its location, else it is
        the session's, and what it shares with copies of the session (`once`), else that is the last prompt's."""
        location, member = fields.pop("location", self.location), through(placed.event.actor)
        fact = cls(
            stream=self.stream,
            occurred_at=placed.when,
            location=by_key(location) if self.confined else location,
            subagent=placed.payload.subagent,
            through=member,
            evidence=spans or (Span(placed.cite),),
            once=self.once_by(placed.event.actor, fields.pop("once", None)),
            **fields,
        )
        self._facts.append(fact)
        return fact

    def nth(self, what: str) -> str:
        """`what` with how often it has come: the k-th of equal things keeps its name, whoever reports it."""
        count = self._counts[what] = self._counts.get(what, 0) + 1
        return f"{what}:{count}"


_NO_IDS = ("#", "start", "summary")
"""How the names begin that readers give to lines without an id: each file has the same."""


def lineage_of(line: str) -> str:
    """What the sessions share that begin with this line; empty where its id is none of the client's own."""
    return quote_hash(line) if line and not line.startswith(_NO_IDS) else ""


def span_of(placed: OrderedEvent, text: str, start: int = 0, end: int | None = None) -> Span:
    """The span of `text[start:end]` in the cited event; the whole event where another event holds the text."""
    if getattr(placed.event.payload, "text", None) != text:
        return Span(placed.cite)
    return quote(placed.cite, text, start, end)
