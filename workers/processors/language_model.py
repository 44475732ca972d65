"""What a language model adds where one is configured: verdicts, strategies, what an episode taught, claims, summaries.

Rules have done the same work by then, in folds; what the model says is recorded beside it and wins, and where it fails
only that is recorded. Each looks at one finished episode or session, once for what it holds.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, takewhile
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from psycopg import sql
from pydantic import BaseModel, Field

from memctl.domain.events.event import Event, NewEvent, Payload
from memctl.domain.events.facts import InsightKind, Lesson, Span, quote
from memctl.domain.events.observations import PromptSubmitted, ResponseReceived, ToolCalled, ToolFailed, ToolReturned
from memctl.domain.events.processor_events import (
    PROCESSORS,
    Claim,
    EpisodeDistilled,
    InsightExtracted,
    ProcessorFailed,
    StrategyDistilled,
    TrajectoryJudged,
)
from memctl.domain.events.statements import SessionSummarized
from memctl.domain.language.claims import sentences
from memctl.domain.language.prompt_origin import users_own_word
from memctl.domain.session.scheduled_prompts import ScheduledPrompts
from memctl.domain.support.alignment import align
from memctl.domain.support.bounded import one_line
from memctl.domain.support.provenance import of_client
from memctl.infra.llm.client import ModelAnswer, ModelClient, Unanswered
from memctl.infra.llm.prompts import prompt
from memctl.infra.log.read import read_stream
from memctl.infra.readmodels import facts
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.settings import Settings
from memctl.workers.processors.runner import Outcome, ProcessorContext, WorkFailed, WorkItem, model, outcome

AT_ONCE = 20
"""Pieces of work that are looked for at once, newest first."""

QUIET_US = 15 * 60_000_000
"""How long nothing has happened in what is looked at."""

HEAD, TAIL = 5_000, 9_000
"""Characters that are sent of the beginning and the end of what happened, in whole lines. None is shorter than eight,
so they are of fewer events than an outcome may name."""

NOBODY_THERE_S = 900.0
"""Pause where nothing would be answered now, or a server fails that may fail on all that it is asked."""

MOST_CLAIMS, MOST_STRATEGIES = 10, 3
"""Of one answer."""

Share = Annotated[float, Field(ge=0, le=1)]
Line = Annotated[str, Field(max_length=300)]


class Verdict(BaseModel):
    """How the work went."""

    outcome: Literal["success", "failure", "partial"]
    why: Line
    confidence: Share
    quotes: list[Annotated[str, Field(max_length=400)]] = Field(default_factory=list, max_length=3)


class Strategy(BaseModel):
    """What the work teaches for other work like it."""

    title: Annotated[str, Field(min_length=3, max_length=120)]
    description: Line = ""
    content: Annotated[str, Field(min_length=10, max_length=800)]
    domain: Annotated[str, Field(max_length=60)] = ""
    from_failure: bool = False
    confidence: Share = 0.7


class Strategies(BaseModel):
    """At most three strategies."""

    strategies: list[Strategy] = Field(max_length=MOST_STRATEGIES)


class Lessons(BaseModel):
    """What the work was about, and what it taught."""

    problem: Annotated[str, Field(max_length=400)] = ""
    solution: Annotated[str, Field(max_length=1_000)] = ""
    gotchas: list[Line] = Field(default_factory=list, max_length=3)
    tips: list[Line] = Field(default_factory=list, max_length=3)
    confidence: Share = 0.7


class Said(BaseModel):
    """A claim, and the words that make it."""

    kind: InsightKind
    text: Annotated[str, Field(min_length=5, max_length=400)]
    quote: Annotated[str, Field(min_length=3, max_length=600)]
    said_by: Literal["user", "agent"]
    confidence: Share = 0.7
    everywhere: bool = False


class Claims(BaseModel):
    """Claims that hold beyond the task."""

    claims: list[Said] = Field(max_length=MOST_CLAIMS)


class Summary(BaseModel):
    """What happened in the session."""

    summary: Annotated[str, Field(min_length=10, max_length=1_500)]
    tags: list[Annotated[str, Field(max_length=40)]] = Field(default_factory=list, max_length=5)


class Material(msgspec.Struct, frozen=True):
    """What happened, as it is shown to a model: the text, and the events it is made of, no other."""

    text: str
    events: tuple[Event, ...]

    def find(self, words: str, said_by: str = "") -> Span | None:
        """Where those words stand; None where they stand nowhere, or in somebody else's."""
        for event in self.events:
            text = getattr(event.payload, "text", "")
            # What was pasted into a prompt, and what its client put there, is not the user's word.
            own = users_own_word(text) if said_by == "user" else text
            if own and said_by in ("", _speaker(event)) and (found := align(words, own)) is not None:
                return quote(event.delivery_id, text, found.start, found.end)
        return None

    def said(self, words: str, said_by: str) -> tuple[str, Span | None]:
        """What somebody said with those words, as it stands there, and where; empty and None where they stand nowhere.
        Of a user it is the whole sentence: a part of one may say its contrary."""
        span = self.find(words, said_by)
        if span is None:
            return "", None
        texts = (getattr(event.payload, "text", "") for event in self.events if event.delivery_id == span.event)
        text = next(texts)
        if said_by != "user":
            return text[span.start : span.end], span
        own = sentences(users_own_word(text))
        around = [(start, end) for start, end in own if start < span.end and span.start < end]
        if len(around) != 1:
            return "", None
        ((start, end),) = around
        return text[start:end], quote(span.event, text, start, end)


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """The episode or session that a piece of work is about, `about` in words. Times in microseconds."""

    id: str
    stream: str
    location: str
    began: int
    ended: int
    about: str = ""


class LlmProcessor:
    """One question to the model about each finished episode or session."""

    version = 1
    of: Literal["episodes", "sessions"] = "episodes"
    name: str
    text: str
    """The prompt's file."""
    form: type[BaseModel]

    def find(self, context: ProcessorContext) -> Iterator[WorkItem]:
        for row, digest in _finished(context, self.of, self.name, prompt(self.text).name):
            subject = _subject(row, self.of)
            yield WorkItem(subject.id, digest, subject)

    def run(self, context: ProcessorContext, work: WorkItem, attempt: int) -> Outcome:
        subject: Subject = work.about
        events = read_stream(context.connection, context.space_id, subject.stream)
        material = material_of(subject, events)
        if not material.text:
            return Outcome()
        sources = (*self._evidence(context, subject), *(event.delivery_id for event in material.events))
        asked = ModelClient(context.settings.llm, context.connection, context.space_id, context.writer.redactor)
        try:
            answer: ModelAnswer[Any] = asked.ask(
                prompt(self.text),
                f"{subject.about}\n\n{material.text}".strip(),
                self.form,
                processor=self.name,
                subject=work.subject,
            )
        except Unanswered as problem:
            failed = ProcessorFailed(
                processor=self.name, subject=work.subject, kind=problem.kind, attempt=attempt, made_by=asked.model,
                prompt=prompt(self.text).name,
            )  # fmt: skip
            about = (work.subject, work.digest, str(attempt))
            note = outcome(self, context.now(), failed, stream=PROCESSORS, about=about, sources=sources)
            notes = [] if problem.kind == "over_budget" else [note]
            away = problem.whatever or problem.kind == "unavailable"
            pause_s = NOBODY_THERE_S if away else 0.0
            raise WorkFailed(problem.kind, notes, counts=not problem.whatever, pause_s=pause_s) from problem
        origin = {
            "made_by": answer.model, "prompt": prompt(self.text).name, "tokens": answer.tokens, "cost_usd": answer.usd,
        }  # fmt: skip
        payload = self.payload(subject, material, answer.output, origin)
        if payload is None:
            return Outcome()
        event: NewEvent = outcome(
            self, context.now(), payload, stream=subject.stream, about=(work.subject, work.digest),
            location=subject.location, session_id=subject.stream.split("/", 2)[2], sources=sources,
        )  # fmt: skip
        return Outcome([event], names_all=True)

    def _evidence(self, context: ProcessorContext, subject: Subject) -> Iterator[UUID]:
        """The events that the words about an episode rest on: its opening may lie before it, by its own clock."""
        if self.of == "episodes":
            id = (context.space_id, UUID(subject.id))
            for fact in facts.read_facts(context.connection, context.live.stage1, [id]).values():
                yield from (span.event for span in fact.evidence)

    def payload(self, subject: Subject, material: Material, said: Any, origin: dict[str, Any]) -> Payload | None:
        """What is recorded of the answer; None where it says nothing."""
        raise NotImplementedError


class Judge(LlmProcessor):
    """Judges each finished episode: it wins over the rule, a person's word over it."""

    name, text, form = "judge", "judge", Verdict

    def payload(self, subject: Subject, material: Material, said: Verdict, origin: dict[str, Any]) -> Payload:
        spans = tuple(span for words in said.quotes if (span := material.find(words)) is not None)
        # A verdict that points at nothing is a guess.
        confidence = said.confidence if spans else min(said.confidence, 0.5)
        return TrajectoryJudged(
            episode=UUID(subject.id),
            outcome=said.outcome,
            why=said.why,
            confidence=confidence,
            evidence=spans,
            **origin,
        )


class Distiller(LlmProcessor):
    """Distils at most three strategies from each finished episode."""

    name, text, form = "distiller", "distil", Strategies

    def payload(self, subject: Subject, material: Material, said: Strategies, origin: dict[str, Any]) -> Payload | None:
        lessons = tuple(Lesson(**each.model_dump()) for each in said.strategies)
        return StrategyDistilled(episode=UUID(subject.id), strategies=lessons, **origin) if lessons else None


class EpisodeReader(LlmProcessor):
    """Notes each finished episode's problem, solution, gotchas and tips."""

    name, text, form = "episode-reader", "episode", Lessons

    def payload(self, subject: Subject, material: Material, said: Lessons, origin: dict[str, Any]) -> Payload | None:
        if not (said.problem or said.solution or said.gotchas or said.tips):
            return None
        return EpisodeDistilled(
            episode=UUID(subject.id), problem=said.problem, solution=said.solution, gotchas=tuple(said.gotchas),
            tips=tuple(said.tips), confidence=said.confidence, **origin,
        )  # fmt: skip


class Extractor(LlmProcessor):
    """Reads claims out of each finished session, with the words that make them."""

    name, text, form, of = "extractor", "extract", Claims, "sessions"

    def payload(self, subject: Subject, material: Material, said: Claims, origin: dict[str, Any]) -> Payload | None:
        claims = tuple(
            Claim(
                kind=each.kind, text=each.text, quote=words or each.quote, said_by=each.said_by,
                confidence=each.confidence, span=span, everywhere=each.everywhere,
            )
            for each in said.claims
            for words, span in [material.said(each.quote, each.said_by)]
        )  # fmt: skip
        return InsightExtracted(claims=claims, **origin) if claims else None


class Summariser(LlmProcessor):
    """Summarises each finished session."""

    name, text, form, of = "summariser", "summarise", Summary, "sessions"

    def payload(self, subject: Subject, material: Material, said: Summary, origin: dict[str, Any]) -> Payload:
        return SessionSummarized(
            summary=said.summary, tags=tuple(said.tags), made_by=origin["made_by"], tokens=origin["tokens"],
            cost_usd=origin["cost_usd"],
        )  # fmt: skip


def llm_processors(settings: Settings) -> list[LlmProcessor]:
    """Those that the settings ask for; none where no model is configured."""
    if settings.llm.provider == "none":
        return []
    of_task: dict[str, list[LlmProcessor]] = {
        "judge": [Judge()],
        "distil": [Distiller()],
        "extract": [Extractor(), EpisodeReader()],
        "summarise": [Summariser()],
    }
    return [processor for task in settings.llm.tasks for processor in of_task[task]]


def material_of(subject: Subject, events: Sequence[Event]) -> Material:
    """What happened between two moments, a line for each thing: who said or did what; of much its beginning and end."""
    shown: list[tuple[str, Event]] = []
    scheduled = ScheduledPrompts()
    for event in sorted(events, key=lambda e: (e.occurred_at, str(e.event_id))):
        payload = event.payload
        if isinstance(payload, ToolCalled):
            scheduled.called(payload)
        elif isinstance(payload, PromptSubmitted) and scheduled.has(payload):
            continue
        if subject.began <= event.occurred_at <= subject.ended and (line := _line(event)):
            shown.append((line, event))
    lines = [line for line, _ in shown]
    if sum(len(line) + 1 for line in lines) > HEAD + TAIL:
        first, last = _fitting(lines, HEAD), len(lines) - _fitting(reversed(lines), TAIL)
        lines = [*lines[:first], "[… left out …]", *lines[last:]]
        shown = [*shown[:first], *shown[last:]]
    return Material("\n".join(lines), tuple(event for _, event in shown))


def _fitting(lines: Iterable[str], room: int) -> int:
    """How many of the lines fit into so many characters, the first ones."""
    lengths = accumulate(len(line) + 1 for line in lines)
    return sum(1 for _ in takewhile(lambda length: length <= room, lengths))


def _line(event: Event) -> str:
    payload = event.payload
    if getattr(payload, "injected", False) or getattr(payload, "subagent", ""):
        return ""
    match payload:
        case PromptSubmitted(text=text, meta=False) if text.strip():
            return f"{'COMMAND' if of_client(event.actor) else 'USER'}: {text.strip()[:2_000]}"
        case ResponseReceived(text=text, kind="text") if text.strip():
            return f"AGENT: {text.strip()[:1_500]}"
        case ToolCalled():
            return f"TOOL {payload.tool}: {one_line(str(payload.input), 200)}"
        case ToolFailed(text=text):
            return f"FAILED: {one_line(text, 400)}"
        case ToolReturned(text=text) if text.strip():
            return f"RESULT: {one_line(text, 200)}"
        case _:
            return ""


def _speaker(event: Event) -> str:
    said_by = {PromptSubmitted: "user", ResponseReceived: "agent"}.get(type(event.payload), "tool")
    return "tool" if of_client(event.actor) else said_by


def _subject(row: Any, of: str) -> Subject:
    if of == "sessions":
        return Subject(id=row.stream, stream=row.stream, location=row.location, began=row.started_at, ended=row.last_at)
    return Subject(
        id=row.id, stream=row.stream, location=row.location, began=row.started_at, ended=row.ended_at,
        about=f"The work: {row.description}\nBy rule it went: {row.outcome}",
    )  # fmt: skip


_EXTENT = {"episodes": ("started_at", "ended_at"), "sessions": ("prompts", "answers", "tool_calls")}
"""Fields that show that there is more to be said of a row. A model's own words move none of them, or it would be asked
forever."""


def _finished(context: ProcessorContext, of: str, processor: str, prompt: str) -> list[tuple[Any, str]]:
    """The newest rows in which nothing has happened for a while and that are to be worked on, each with the digest of
    what it is made of: those that `processing.claim` takes."""
    p = model(of)
    extent = [sql.SQL("coalesce(row->>{}, '0')").format(sql.Literal(field)) for field in _EXTENT[of]]
    rows = context.connection.execute(
        sql.SQL(
            "SELECT m.row, m.digest FROM"
            " (SELECT space_id, key, row, concat_ws(' ', {extent}, %(prompt)s::text) AS digest FROM {table}"
            " WHERE space_id = %(space)s AND {last} < %(quiet)s) m LEFT JOIN memctl.processing w"
            " ON w.space_id = m.space_id AND w.processor = %(processor)s AND w.subject = m.key"
            " WHERE w.digest IS DISTINCT FROM m.digest AND w.status IS DISTINCT FROM 'working'"
            " OR w.status = 'failed' AND w.next_at <= clock_timestamp()"
            " OR w.status = 'working' AND w.lease_until < clock_timestamp()"
            " ORDER BY {started} DESC LIMIT %(limit)s"
        ).format(
            table=sql.SQL(readmodels.table(p.name, context.live.stage1)),
            extent=sql.SQL(", ").join(extent),
            last=sql.SQL(readmodels.expression(p, "ended_at" if of == "episodes" else "last_at")),
            started=sql.SQL(readmodels.expression(p, "started_at")),
        ),
        {
            "processor": processor, "prompt": prompt, "space": context.space_id, "quiet": context.now() - QUIET_US,
            "limit": AT_ONCE,
        },
        binary=True,
    ).fetchall()  # fmt: skip
    return [(readmodels.decode_row(p, row), digest) for row, digest in rows]
