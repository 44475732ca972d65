"""Stage 1: from the events of one stream to facts, purely.

The facts are a function of the set of events: what came in which order, in which batches, twice or in two versions,
changes nothing (`memctl.domain.events.event_order`). `conversation` reads what was said, `work` what was done,
`reasoning` what was thought and settled, `episode_outcomes` how pieces of work ended, `working_directory` where,
`project_practices` what all that shows of people and projects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from memctl.domain.events.event import Event, Micros
from memctl.domain.events.event_order import EventOrder, Observed, OrderedEvent, is_aside
from memctl.domain.events.fact_builder import FactBuilder, lineage_of
from memctl.domain.events.facts import Fact, SessionClosed, SessionOpened, SessionTitled, TokensSpent
from memctl.domain.events.observations import (
    NoticeReceived,
    PromptSubmitted,
    ResponseReceived,
    SessionEnded,
    SessionStarted,
    ToolCalled,
    ToolOutcome,
)
from memctl.domain.events.processor_events import OfEpisode
from memctl.domain.events.recalls import MemoryRecalled
from memctl.domain.events.statements import Statement
from memctl.domain.session.conversation import Conversation
from memctl.domain.session.episode_outcomes import EpisodeOutcomes
from memctl.domain.session.project_practices import ProjectPractices
from memctl.domain.session.queued_prompts import QueuedPrompts
from memctl.domain.session.reasoning import Reasoning
from memctl.domain.session.scheduled_prompts import ScheduledPrompts
from memctl.domain.session.work import Work
from memctl.domain.session.working_directory import WorkingDirectory

_NO_TOKENS = (0, 0, 0)

LONGEST_STEP = 10 * 60_000_000
"""Microseconds between two events of a session in which somebody works: as long as clients let a command run."""


def derive(stream: str, events: Iterable[Event]) -> StreamFacts:
    """The facts of a whole stream from its events, in any order, at once."""
    facts = StreamFacts(stream)
    facts.extend(list(events))
    return facts


class StreamFacts:
    """Facts of one stream, folded from its events in order."""

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self._ordering = EventOrder()
        self._assert = FactBuilder(stream)
        self._outcomes = EpisodeOutcomes(self._assert)
        self._scheduled = ScheduledPrompts()
        self._conversation = Conversation(self._assert, self._outcomes, self._scheduled)
        self._directory = WorkingDirectory(self._assert)
        self._at = ""
        self._branchless = False
        """No event named yet which branch is checked out where the session is."""
        self._work = Work(self._assert, self._conversation, self._outcomes)
        self._practices = ProjectPractices(self._assert)
        self._reasoning = Reasoning(self._assert, self._conversation, self._outcomes, self._scheduled)
        self._queued = QueuedPrompts()
        self._opened = False
        self._bare = False
        """The session was opened by an event that names neither branch nor version: a hook's, mostly."""
        self._waiting: list[OrderedEvent] = []
        self._began = (Micros(0), "")
        """When and where the session was opened."""
        self._titled = False
        """What stands at a place of its own gave the session its title: a notice, or a start after the first."""
        self._undated = False
        """No event has a time, so the session was opened at the first moment there is."""
        self._spent: dict[str, tuple[int, int, int]] = {}
        self._last = Micros(0)
        """When the latest event was."""

    def extend(self, events: Sequence[Event]) -> bool:
        """Fold further events of this stream.

        Returns False if an event belongs before one already folded, or together with one (a hook delivery and its
        transcript block, another version of it), or judges an episode that was asserted already. Then this is of no
        more use, and the caller derives the whole stream again.
        """
        placed = self._placed(events)
        if placed is None:
            return False
        for each in placed:
            self._fold(each)
        return True

    def begin_in_steps(self, events: Sequence[Event], size: int) -> Iterator[Sequence[OrderedEvent]]:
        """Fold the events of the whole stream, where none was folded: so many at a time, each time after they are
        given to who asks."""
        placed = self._placed(events) or []
        for begin in range(0, len(placed), size):
            some = placed[begin : begin + size]
            yield some
            for each in some:
                self._fold(each)

    @property
    def waits(self) -> bool:
        """Whether events without a time wait for the first that has one."""
        return bool(self._waiting)

    def _placed(self, events: Sequence[Event]) -> list[OrderedEvent] | None:
        """The events in order; None where `extend` cannot fold them."""
        placed = None if self._undated else self._ordering.place(events)
        if placed is None or (self._titled and any(is_aside(each) for each in placed)):
            return None
        if self._opened and not self._assert.confined and any(map(self._confines, placed)):
            return None  # facts that may come again were asserted as if it were not
        latest = {
            (payload.episode, type(payload)): payload
            for each in placed
            if isinstance(payload := each.payload, OfEpisode)
        }
        if not all(self._outcomes.recorded(outcome, self._conversation.episode) for outcome in latest.values()):
            return None
        if not self._assert.lineage:
            self._assert.lineage = next(filter(None, (lineage_of(each.payload.line) for each in placed)), "")
            if self._assert.lineage and self._began[0]:
                return None  # facts were asserted without it
            self._assert.once = self._assert.lineage
        return placed

    def _confines(self, placed: OrderedEvent) -> bool:
        """Whether from here on nothing that the session says holds at a path of this machine. What was recalled says
        nothing: whoever asked may not be who the session is of."""
        seen = placed.payload
        stated = seen.injected or (bool(self._opened or self._waiting) and isinstance(seen, Statement))
        return seen.confined and not stated and not is_aside(placed)

    def drain(self) -> list[Fact]:
        """Facts asserted since the last call, in order of happening.

        All are final but those of the open task: its `TaskOpened`, `Turn`, `KnowledgeHeld`, `Episode` and
        `MemoriesFollowed` come again under the same id when they have changed. Of each type the last one counts.
        """
        if self._waiting:
            self._undated = True
            self._fold_waiting(Micros(1))
        self._conversation.flush()
        return self._assert.drain()

    def _fold(self, placed: OrderedEvent) -> None:
        seen = placed.payload
        if isinstance(seen, ToolCalled):
            self._scheduled.called(seen)
        if self._confines(placed):
            self._assert.confined = True
        if seen.injected:
            if isinstance(seen, MemoryRecalled):
                self._conversation.recalled(seen)
            return
        if self._opened and is_aside(placed):
            self._entitle(placed)
            return
        self._moved(placed.event.location, seen)
        if not self._opened and placed.when <= 0:
            # Lines without a time sort first: they wait for the first that shows when the session began.
            self._waiting.append(placed)
            return
        self._began_with(placed, seen)
        if self._assert.location != self._at or (self._branchless and seen.branch):
            self._at, self._branchless = self._assert.location, not seen.branch
            self._directory.came(placed, self._at)
        self._note_idle(placed, seen)
        self._pass_on(placed, seen)
        self._conversation.went_on(self._at)

    def _note_idle(self, placed: OrderedEvent, seen: Observed) -> None:
        """Nobody worked until a person spoke or took the session up again, where no tool was at work, nor for longer
        than a step takes."""
        gap = placed.when - (self._last or placed.when)
        self._last = max(self._last, placed.when)
        if gap <= 0:
            return
        spoke = isinstance(seen, PromptSubmitted) and not (seen.subagent or seen.meta)
        waited = (spoke or isinstance(seen, SessionStarted)) and not self._work.at_a_tool
        if waited or gap > LONGEST_STEP:
            self._assert.idle = Micros(self._assert.idle + (gap if waited else gap - LONGEST_STEP))

    def _began_with(self, placed: OrderedEvent, seen: Observed) -> None:
        """What an event shows of how the session was started: the first opens it."""
        if not self._opened:
            self._opened = True
            self._began = (placed.when, self._assert.location)
            self._open(placed, seen)
            self._fold_waiting(placed.when)
        elif isinstance(seen, SessionStarted):
            self._titled = self._titled or bool(seen.title)
            self._open(placed, seen)
        elif self._bare and (seen.branch or seen.agent_version):
            self._bare = False
            self._assert.note(SessionOpened, placed, branch=seen.branch, agent_version=seen.agent_version, still=True)

    def _fold_waiting(self, when: Micros) -> None:
        """Fold the lines without a time as if they were of that one."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            self._fold(msgspec.structs.replace(each, when=when))

    def _moved(self, at: str, seen: Observed) -> None:
        """Follow the session to where its client reports it. A statement may come from anywhere, so it only counts
        while no place is known."""
        known = self._assert.location
        if at and at != known and not (known and isinstance(seen, Statement)):
            self._assert.moved(at)

    def _pass_on(self, placed: OrderedEvent, seen: Observed) -> None:
        """Hand an event to the folds that it concerns."""
        match seen:
            case ToolCalled():
                self._spend(placed, seen.message, seen.tokens_in, seen.tokens_out, seen.tokens_cached)
                self._conversation.called(placed, seen)
                self._work.called(placed, seen)
                self._practices.called(placed, seen)
            case ToolOutcome():
                self._scheduled.came_back(seen)
                self._work.came_back(placed, seen)
                self._practices.came_back(placed, seen)
            case ResponseReceived():
                self._spend(placed, seen.message, seen.tokens_in, seen.tokens_out, seen.tokens_cached)
                self._work.responded(placed, seen.text, thought=seen.kind == "thinking")
                if seen.kind == "text":
                    self._conversation.answered(placed, seen)
            case PromptSubmitted():
                if not self._queued.said_before(seen):
                    self._prompted(placed, seen)
            case NoticeReceived():
                self._notice(placed, seen)
            case SessionEnded():
                self._assert.note(SessionClosed, placed, reason=seen.reason)
                self._conversation.ended()
            case Statement():
                self._reasoning.stated(placed, seen)
            case _:
                pass

    def _prompted(self, placed: OrderedEvent, seen: PromptSubmitted) -> None:
        if self._scheduled.fired(placed, seen):
            return
        if not (seen.subagent or seen.meta):
            self._assert.sets_to_work(placed.when, seen.line)
        self._conversation.prompted(placed, seen)
        self._work.searches.prompted(placed, seen)

    def _open(self, placed: OrderedEvent, seen: Observed) -> None:
        started = seen if isinstance(seen, SessionStarted) else SessionStarted()
        self._bare = not seen.branch and not seen.agent_version
        self._assert.note(
            SessionOpened,
            placed,
            source=started.source,
            branch=seen.branch,
            model=seen.model,
            agent_version=seen.agent_version,
            repository=started.repository,
            title=started.title,
            parent=started.parent_session,
        )
        self._directory.opened(placed, started.repository, brought=started.brought)

    def _notice(self, placed: OrderedEvent, seen: NoticeReceived) -> None:
        if seen.kind == "title":
            self._entitle(placed)
        elif seen.kind == "tokens":
            counts = [seen.data.get(name) for name in ("tokens_in", "tokens_out", "tokens_cached")]
            tokens_in, tokens_out, tokens_cached = (n if isinstance(n, int) else 0 for n in counts)
            self._spend(placed, "", tokens_in, tokens_out, tokens_cached)
        elif seen.kind == "interrupted":
            self._conversation.interrupted(placed.when)
        elif seen.kind == "queued-prompt":
            self._queued.queued(placed, seen)
        elif seen.kind == "queue-taken" and (taken := self._queued.taken(placed)):
            self._prompted(*taken)

    def _entitle(self, placed: OrderedEvent) -> None:
        """A title without a time is dated to the session's opening, however much was folded since."""
        title = placed.payload.text[:300] if isinstance(placed.payload, NoticeReceived) else ""
        if not title:
            return
        if is_aside(placed):
            when, location = self._began
            opened = msgspec.structs.replace(placed, when=when)
            self._assert.note(SessionTitled, opened, location=location, once=self._assert.lineage, title=title)
        else:
            self._titled = True
            self._assert.note(SessionTitled, placed, title=title)

    def _spend(self, placed: OrderedEvent, message: str, tokens_in: int, tokens_out: int, tokens_cached: int) -> None:
        """Count what a message cost. Every block of it repeats the counts, and later ones may know more."""
        before = self._spent.get(message, _NO_TOKENS) if message else _NO_TOKENS
        if (tokens_in, tokens_out, tokens_cached) == before:
            return
        known_in, known_out, known_cached = before
        counts = (max(tokens_in, known_in), max(tokens_out, known_out), max(tokens_cached, known_cached))
        if counts == before:
            return
        if message:
            self._spent[message] = counts
        self._assert.note(
            TokensSpent,
            placed,
            tokens_in=counts[0] - known_in,
            tokens_out=counts[1] - known_out,
            tokens_cached=counts[2] - known_cached,
        )
        self._assert.tokens += counts[0] - known_in + counts[1] - known_out
        if self._conversation.episode is not None:
            self._conversation.episode.tokens += counts[0] - known_in + counts[1] - known_out
            self._conversation.episode.dirty = True
