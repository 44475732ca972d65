"""A session in turns (what was asked, what memory added, what was done, what came of it), and event by event."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from memctl.api.queries import memories as queries
from memctl.api.queries.recalls import Titled, titles
from memctl.api.reading.reader import Reader
from memctl.api.reading.records import InjectedItem, StepItem, TimelineItem, TurnItem
from memctl.api.reading.views import Page, iso, moment
from memctl.domain.events.event import Position
from memctl.domain.events.event_order import EventOrder, OrderedEvent, preferred
from memctl.domain.events.observations import (
    ContextCompacted,
    PromptSubmitted,
    ResponseReceived,
    ToolCalled,
    ToolFailed,
    ToolOutcome,
)
from memctl.domain.events.recalls import BECAUSE, SILENT, MemoryRecalled
from memctl.domain.events.skipping import Undecodable, remaining
from memctl.domain.language.prompts import BLANK, said_in
from memctl.domain.session.scheduled_prompts import ScheduledPrompts
from memctl.domain.session.tools import Change, changes_of_use, command_of, family_of, summary_of
from memctl.domain.session.work import errors_or_noise
from memctl.domain.support import patterns
from memctl.infra.database import single_row
from memctl.infra.log.read import read_stream_after, read_versions

_LEFT_OUT = patterns.compile(rf"{BLANK}+")
"""What the client put into a prompt, as `said_in` blanks it."""

MOST_EVENTS = 5_000
"""Events that one page is made of. A longer session is cut there, and a turn with it."""

MOST_TURNS = 20
"""On one page."""

MOST_STEPS, MOST_SHOWN = 80, 160
"""Steps of one turn that are shown: the first ones, and what failed behind them, as far as the second number."""

MOST_LINES = 400
"""Of one patch."""


LONGEST_TIMELINE = 200
"""Events of one page of a timeline."""


class Heading(NamedTuple):
    """A turn among those of its session: what its page is asked for with, its event, its first words, what failed."""

    page: str
    event: str
    prompt: str
    failures: int


def turns_and_headings(
    reader: Reader, stream: str, *, after: int = 0, skip: int = 0
) -> tuple[Page[TurnItem], list[Heading]]:
    """Turns of a session's stream, from beyond the position `after` and leaving out `skip` of them; and all turns of
    these events. `next` is `AFTER.SKIP` of the next page."""
    events = read_stream_after(reader.connection, reader.space_id, stream, Position(after), MOST_EVENTS + 1)
    more, events = len(events) > MOST_EVENTS, events[:MOST_EVENTS]
    readable = [each for each in remaining(events) if not isinstance(each.payload, Undecodable)]
    found = turns_of(EventOrder().place(readable) or [])
    here = _titled(reader, found[skip : skip + MOST_TURNS])
    following = None
    if len(found) > skip + MOST_TURNS:
        following = f"{after}.{skip + MOST_TURNS}"
    elif more:
        following = f"{events[-1].position}.0"
    headings = [
        Heading(f"{after}.{n - n % MOST_TURNS}", each.event, each.prompt[:200], each.failures)
        for n, each in enumerate(found)
    ]
    return Page(here, following), headings


def _titled(reader: Reader, found: list[TurnItem]) -> list[TurnItem]:
    """The turns, with titles for the memories that were injected, and for those that were left out."""
    ids = {memory.id for turn in found for memory in (*turn.injected, *turn.left_out)}
    known = titles(reader, ids) if ids else {}

    def titled(items: list[InjectedItem]) -> list[InjectedItem]:
        return [msgspec.structs.replace(each, title=known.get(each.id, Titled("", "")).title) for each in items]

    return [
        msgspec.structs.replace(turn, injected=titled(turn.injected), left_out=titled(turn.left_out)) for turn in found
    ]


def timeline(reader: Reader, stream: str, *, after: int = 0, limit: int = 50) -> Page[TimelineItem]:
    """Events of a stream from beyond the position `after`: those of a page in order of time, and one that came without
    a time behind what came before it.

    `next` is the position that the next page is asked with. Erased events are left out.
    """
    limit = max(1, min(limit, LONGEST_TIMELINE))
    rows = reader.connection.execute(
        "SELECT coalesce(variant_of, event_id), position FROM memctl.events e WHERE space_id = %s AND stream = %s"
        " AND position > %s AND position >> 10 >= %s::int8 >> 10"
        " AND (variant_of IS NULL OR NOT EXISTS (SELECT FROM memctl.events f WHERE"
        " f.position = ANY(ARRAY(SELECT * FROM memctl.positions_of_versions(e.space_id, ARRAY[e.variant_of])))"
        " AND f.stream = e.stream AND f.position < e.position)) ORDER BY position >> 10, position LIMIT %s",
        [reader.space_id, stream, after, after, limit + 1],
    ).fetchall()
    versions_by_id = read_versions(reader.connection, reader.space_id, [id for id, _ in rows[:limit]])
    here = {id: [each for each in versions if each.stream == stream] for id, versions in versions_by_id.items()}
    found = {id: preferred(versions) for id, versions in here.items() if versions}
    items = [
        (
            event.occurred_at,
            queries.event_shown(event, TimelineItem),
        )
        for event in (found[id] for id, _ in rows[:limit] if id in found)
    ]
    in_order = [item for _, item in sorted(_carried(items), key=lambda each: each[0])]
    return Page(in_order, str(rows[limit - 1][1]) if len(rows) > limit else None)


def _carried(items: Iterable[tuple[int, TimelineItem]]) -> Iterator[tuple[int, TimelineItem]]:
    """Each with its time (microseconds), or with that of the one before it where it came without."""
    before = 0
    for at, item in items:
        before = at if at > 0 else before
        yield before, item


def position_of(reader: Reader, event_id: str) -> int:
    """Where an event stands in the log. Raises: NotFound, Ambiguous."""
    return queries.event(reader, event_id).position


def turn_with(reader: Reader, stream: str, event_id: str) -> int:
    """Beyond which position of a stream the turn begins that an event is in. Raises: NotFound, Ambiguous."""
    row = single_row(
        reader.connection,
        "SELECT coalesce(max(position), 1) FROM memctl.events"
        " WHERE space_id = %s AND stream = %s AND type = 'prompt.submitted' AND position <= %s",
        [reader.space_id, stream, position_of(reader, event_id)],
    )
    return int(row[0]) - 1


def turns_of(placed: Iterable[OrderedEvent]) -> list[TurnItem]:
    """The turns that a stream's events make, in their order.

    What the user asked begins one; commands to the client, and what the client says in the user's place, do not. What
    stands before the first prompt is a turn without one.
    """
    made: list[_Turn] = []
    scheduled = ScheduledPrompts()
    for each in placed:
        seen = each.payload
        if isinstance(seen, ToolCalled):
            scheduled.called(seen)
        asks = isinstance(seen, PromptSubmitted) and not (seen.subagent or seen.meta or seen.injected)
        if isinstance(seen, PromptSubmitted) and asks and not scheduled.has(seen):
            said = said_in(seen.text)
            if said.by == "user":
                made.append(_Turn(each, _LEFT_OUT.sub("\n", said.words)))
                continue
        if not made:
            made.append(_Turn())
        made[-1].take(each)
    return [turn.item() for turn in made if not turn.empty]


class _Turn:
    """One turn as its events come."""

    def __init__(self, prompt: OrderedEvent | None = None, words: str = "") -> None:
        self._prompt = prompt
        self._words = words
        self._steps: list[StepItem] = []
        self._calls: dict[str, tuple[int, ToolCalled]] = {}
        """Uses of tools by the client's id of them, each with its place among the steps."""
        self._injected: list[InjectedItem] = []
        self._left_out: list[InjectedItem] = []
        self._silent = ""
        self._answer: StepItem | None = None

    @property
    def empty(self) -> bool:
        return self._prompt is None and not (self._steps or self._injected or self._answer)

    def take(self, each: OrderedEvent) -> None:
        match each.payload:
            case ResponseReceived(kind="text", subagent="", text=text) if text.strip():
                if self._answer is not None:
                    self._steps.append(self._answer)
                self._answer = _step(each, "said", text=text)
            case ToolCalled(tool=tool, call=call) as use:
                self._calls[call] = (len(self._steps), use)
                self._steps.append(_step(each, "tool", tool, summary_of(use.input)))
            case ToolOutcome() as outcome:
                self._came_back(each, outcome)
            case MemoryRecalled() as recall:
                self._injected += [
                    InjectedItem(id=memory.id, score=memory.score, hook=recall.hook, withheld=recall.withheld)
                    for memory in recall.memories
                    if memory.id
                ]
                self._left_out += [
                    InjectedItem(
                        id=left.id,
                        score=left.score,
                        hook=recall.hook,
                        withheld=False,
                        why=BECAUSE.get(left.why, left.why),
                    )
                    for left in recall.passed_over
                ]
                if not recall.memories:
                    self._silent = SILENT.get(recall.silent, recall.silent)
            case PromptSubmitted(subagent="", text=text) if (said := said_in(text)).by == "command":
                self._steps.append(_step(each, "command", text=said.words))
            case ContextCompacted(text=text):
                self._steps.append(_step(each, "compacted", text=text))
            case _:
                pass

    def _came_back(self, each: OrderedEvent, outcome: ToolOutcome) -> None:
        at, use = self._calls.get(outcome.call, (None, None)) if outcome.call else (None, None)
        if at is None:
            at = len(self._steps)
            self._steps.append(_step(each, "tool", outcome.tool))
        tool, given = (use.tool, use.input) if use is not None else (outcome.tool, {})
        family, failed = family_of(tool), isinstance(outcome, ToolFailed)
        errors, noise = errors_or_noise(family, command_of(given) if family == "run" else "", outcome, failed)
        ok = not failed and not (errors and family == "run")
        changes = [] if failed else changes_of_use(family, tool, given, outcome.patch, outcome.file)
        self._steps[at] = msgspec.structs.replace(
            self._steps[at],
            ended="well" if ok else "unheeded" if noise else "failed",
            text="" if ok else outcome.text,
            files=[change.path for change in changes],
            lines_added=sum(change.added for change in changes),
            lines_removed=sum(change.removed for change in changes),
            patch=([line for hunk in outcome.patch for line in hunk.lines] or _excerpts(changes))[:MOST_LINES],
            duration_ms=outcome.duration_ms,
        )

    def item(self) -> TurnItem:
        steps, prompt = self._steps, self._prompt
        return TurnItem(
            event=str(prompt.event.event_id) if prompt is not None else "",
            at=iso(moment(prompt.when)) if prompt is not None else None,
            prompt=self._words,
            injected=self._injected,
            left_out=self._left_out,
            silent=self._silent,
            tools=Counter(step.tool for step in steps if step.kind == "tool" and step.ended).most_common(),
            failures=sum(step.ended == "failed" for step in steps),
            files=list(dict.fromkeys(file for step in steps for file in step.files)),
            lines_added=sum(step.lines_added for step in steps),
            lines_removed=sum(step.lines_removed for step in steps),
            steps=[step for n, step in enumerate(steps) if n < MOST_STEPS or step.ended == "failed"][:MOST_SHOWN],
            steps_in_all=len(steps),
            answer=self._answer,
        )


def _step(each: OrderedEvent, kind: str, tool: str = "", about: str = "", text: str = "") -> StepItem:
    return StepItem(event=str(each.event.event_id), kind=kind, tool=tool, about=about, text=text)


def _excerpts(changes: Iterable[Change]) -> list[str]:
    """Changes of which the client showed no patch, as lines of one."""
    return [
        f"{sign}{line}"
        for change in changes
        for sign, text in (("-", change.before), ("+", change.after))
        for line in text.splitlines()
    ]
