"""The talk between a user and an agent: prompts, answers, turns, and the tasks and episodes they open and close."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from uuid import UUID

from memctl.domain.events.event import Micros
from memctl.domain.events.event_order import OrderedEvent, prompt_about
from memctl.domain.events.fact_builder import FactBuilder, span_of
from memctl.domain.events.facts import (
    Answered,
    DecisionKind,
    DecisionTaken,
    EpisodeDecision,
    InsightFound,
    Prompted,
    PromptKind,
    Span,
    TaskClosed,
    TaskOpened,
    fact_id,
    quote,
    quote_hash,
)
from memctl.domain.events.observations import PromptSubmitted, ResponseReceived, ToolCalled
from memctl.domain.events.recalls import MemoryRecalled, Recalls
from memctl.domain.events.statements import TaskCompleted, TaskStarted
from memctl.domain.failures.signatures import errors_in
from memctl.domain.language.claims import Claim, claims_in
from memctl.domain.language.commits import settled_by
from memctl.domain.language.decisions import LONGEST_PROMPT, Decision
from memctl.domain.language.findings import found_in_work
from memctl.domain.language.plans import plan_in, points_of
from memctl.domain.language.prompt_origin import is_typed, own_word
from memctl.domain.language.prompts import (
    FRESH_START,
    Said,
    concedes,
    is_complaint,
    is_thanks,
    kind_of,
    said_in,
    says_no,
    words_in,
)
from memctl.domain.language.tasks import canonical_of, description_of, task_key, task_type_of
from memctl.domain.session.episode_outcomes import EpisodeOutcomes
from memctl.domain.session.episodes import CERTAIN, DECISION, EpisodeSoFar
from memctl.domain.session.outcome_rules import SAID, Verdict
from memctl.domain.session.scheduled_prompts import ScheduledPrompts
from memctl.domain.session.turns import AnswerGiven, OpenTurn
from memctl.domain.shell.changes import named_by
from memctl.domain.support import patterns
from memctl.domain.support.bounded import clipped, one_line, with_place
from memctl.domain.support.provenance import RIGHTS, Provenance, attributed, by_actor, member_of, of_client, through

RESTED = 4 * 3_600_000_000
"""After this many microseconds without a word, a request is more likely a new task."""

LONGEST_TEXT = 8_000
"""Characters of a prompt or an answer that a fact keeps; the event has the rest."""


_MOST_FILES, MOST_TURNS = 2_000, 24
"""Files of a plan that are remembered, and turns of a task whose reports are: the last ones."""

_NO_WORDS = "No response requested."
"""What Claude Code writes in the agent's place after a command of its own."""


class OpenPlan:
    """A plan that is being carried out."""

    def __init__(self, sent: OrderedEvent, text: str, episode: UUID | None) -> None:
        self.sent, self.text, self.episode = sent, text, episode
        self.files: dict[str, bool] = {}
        """What was changed for it, and whether the user has spoken since it first was."""

    def answered(self) -> None:
        """The user spoke."""
        self.files = dict.fromkeys(self.files, True)

    def goes_on(self, path: str) -> bool:
        """Whether the work is still as planned, now that a file is changed: not if the file was changed for the plan,
        and the user has spoken since. Then the user wants it otherwise."""
        if len(self.files) < _MOST_FILES:
            self.files.setdefault(path, False)
        return not self.files.get(path, False)

    def undone(self, files: tuple[str, ...]) -> None:
        """What was changed in these files and folders was taken back; in all of them, where none are named."""
        self.files = {path: at for path, at in self.files.items() if files and named_by(path).isdisjoint(files)}


class Conversation:
    """What was said in one stream, and the task that is open."""

    def __init__(self, assertions: FactBuilder, episode_outcomes: EpisodeOutcomes, scheduled: ScheduledPrompts) -> None:
        self._assert = assertions
        self._scheduled = scheduled
        self._outcomes = episode_outcomes
        self._turn: OpenTurn | None = None
        self._turn_before: OpenTurn | None = None
        self._turns: list[OpenTurn] = []
        """Those of the open task whose reports are read: they changed or committed something, or looked up what was
        asked."""
        self._about: set[str] = set()
        """The words in which the user spoke of the open task."""
        self._about_task = ""
        """What the open task's opening is about: a prompt, or a statement."""
        self._last_prompt = Micros(0)
        self._fresh = False
        self.episode: EpisodeSoFar | None = None
        self._plan: OpenPlan | None = None
        """The plan that was last to be carried out."""
        self.speaker = "user"
        """Actor of what was typed: the user, or else whoever spoke first in the user's place."""
        self._recalls = Recalls()
        """The memories that were injected since the last task was over."""

    @property
    def task(self) -> str:
        """Key of the open task; empty where there is none."""
        return self.episode.task if self.episode is not None else ""

    def episode_of(self, placed: OrderedEvent) -> EpisodeSoFar | None:
        """The open task's work, where this may be of it: it came through the key that opened it, or this machine saw
        it."""
        episode = self.episode
        return episode if episode is not None and through(placed.event.actor) in ("", episode.through) else None

    def _turn_of(self, placed: OrderedEvent) -> OpenTurn | None:
        """The open turn, by the same rule."""
        turn = self._turn
        return turn if turn is not None and through(placed.event.actor) in ("", turn.prompt.through) else None

    @property
    def asked_for(self) -> str:
        """What the user asked for last; empty of a plan, which is about many things."""
        return self._turn.prompt.text if self._turn is not None and plan_in(self._turn.prompt.text) is None else ""

    def flush(self) -> None:
        """Hand out the open turn and episode as they stand, where they have changed."""
        if self._turn is not None and self._turn.dirty:
            self._turn.dirty = False
            self._hand_out(self._turn)
        if self.episode is not None and self.episode.dirty:
            self.episode.dirty = False
            self._report(self.episode)
            self._outcomes.conclude(self.episode, closed=False)

    def recalled(self, seen: MemoryRecalled) -> None:
        """Memory was injected for the agent, or held back: for the open task, or the next to open."""
        if self.episode is None:
            self._recalls.add(seen)
        else:
            self.episode.recalls.add(seen)
            self.episode.dirty = True

    def ended(self) -> None:
        """The client ended the session, and may take it up again."""
        if self.episode is not None:
            self.episode.left = self.episode.dirty = True

    # --- the user ---

    def prompted(self, placed: OrderedEvent, seen: PromptSubmitted) -> None:
        if seen.subagent or seen.meta or seen.injected:
            return
        if self.speaker == "user" and not of_client(placed.event.actor):
            self.speaker = placed.event.actor
        said = said_in(seen.text)
        if said.by == "command":
            self._fresh = self._fresh or said.command in FRESH_START
            self._say(placed, seen.text, said.words, "command")
        elif said.by == "user":
            self._hear(placed, seen.text, said)
            if self._plan is not None:
                self._plan.answered()
            self.planned(placed, seen.text)

    def planned(self, placed: OrderedEvent, text: str) -> None:
        """A plan is to be carried out, where the text holds one."""
        if plan_in(text) is not None:
            self._plan = OpenPlan(placed, text, self.episode.id if self.episode is not None else None)

    def undone(self, files: tuple[str, ...]) -> None:
        """What was changed in these files was taken back, or all that was where none are named."""
        if self._plan is not None:
            self._plan.undone(files)

    def committed(self, placed: OrderedEvent, message: str) -> None:
        """Work was committed: what its message gives reasons for is settled, and the plan it carries out. The agent
        wrote both, whoever sent them."""
        for settled in settled_by(message):
            decided = Decision(one_line(settled, DECISION), "", 0, 0)
            self.decided(placed, Span(placed.cite), decided, Provenance.AGENT, planned=True)
        plan = self._plan
        if plan is None or not plan.files:
            return
        self._plan = None
        for point in points_of(plan.text):
            span = span_of(plan.sent, plan.text, point.start, point.end)
            self.decided(placed, span, point, Provenance.AGENT, planned=True)

    def refused(self, placed: OrderedEvent, text: str, start: int, end: int) -> None:
        """The user refused a use of a tool, and said why: `text[start:end]`."""
        words = text[start:end].strip()
        if not words:
            return
        by = attributed(Provenance.USER_TYPED, placed.event.actor)
        self._feel(words, own_word(text[start:end]) if RIGHTS[by].as_users else "")
        kind: PromptKind = "correction" if is_complaint(words) else "follow_up"
        about = self._about_prompt(words)
        self._say(placed, text, words, kind, start, end, about)
        self._about |= words_in(words)
        claims = claims_in(own_word(text[start:end]), lasting=True)
        self._claimed(placed, text, start, about, by, claims)

    def refused_change(self) -> None:
        """The user refused a change to a file."""
        if self.episode is not None:
            self.episode.refused_at = self.episode.steps

    def interrupted(self, when: Micros) -> None:
        if self.episode is not None:
            self.episode.interrupted_at = self.episode.steps
            self.episode.touch(when)

    def _hear(self, placed: OrderedEvent, text: str, said: Said) -> None:
        kind = self._kind(said, placed.when)
        by = attributed(Provenance.USER_TYPED, placed.event.actor)
        given = (by is Provenance.CLIENT or is_typed(said.text)) and self._scheduled.gave(placed, said.words)
        own = own_word(said.text) if said.alone and not given else ""
        claims = claims_in(own) if own.strip() else ()
        by_user = RIGHTS[by].as_users and not given
        start = len(text) - len(said.text.lstrip())
        end = start + len(said.text.strip())
        about_prompt = self._about_prompt(text)
        if self.episode is not None and self.episode_of(placed) is None:  # another's key sent it into this work
            prompt = self._say(placed, text, said.words, "follow_up", start, end, about_prompt)
            self._assert.add(OpenTurn(prompt, None, by_user=False).fact())
            self._claimed(placed, text, 0, about_prompt, by, claims)
            return
        self._feel(said.words, own if by_user else "")
        self._end_turn()
        if by_user and self._turn_before is not None and self._finds_fault(said.words, self._turn_before.answer):
            self._correct(self._turn_before)
        if kind == "opening":
            self._close(placed)
            self._open(placed, text, said, about_prompt, start, end)
        prompt = self._say(placed, text, said.words, kind, start, end, about_prompt)
        if kind == "opening":
            self._about_task = about_prompt
            self._opened(placed, *prompt.evidence)
        self._turn = OpenTurn(prompt, self._turn_before, by_user=by_user and said.alone)
        self._about |= words_in(said.words)
        self._last_prompt = placed.when
        self._fresh = False
        self._claimed(placed, text, 0, about_prompt, by, claims)

    def _kind(self, said: Said, when: Micros) -> PromptKind:
        kind, task = self._kind_by_words(said, when), self.episode
        if kind != "opening" or task is None:
            return kind
        # Stated before it was asked for, or the same prompt once more, after an interruption.
        stated = task.stated and not task.prompts
        return "follow_up" if stated or canonical_of(description_of(said.words)) == task.canonical else kind

    def _kind_by_words(self, said: Said, when: Micros) -> PromptKind:
        episode = self.episode
        if episode is None or self._fresh:
            return "opening" if said.command else kind_of(said.words, open_task=False, rested=True)
        if said.command and len(said.words.split()) < 3:
            return "follow_up"
        rested = when - self._last_prompt > RESTED or (
            episode.committed_at is not None and episode.committed_at >= (episode.changed_at or 0)
        )
        return kind_of(said.words, open_task=True, rested=rested, about=self._spoken_of)

    def _spoken_of(self, words: AbstractSet[str]) -> set[str]:
        """Those of some words that the open task has been about."""
        texts = list(self.episode.files) if self.episode is not None else []
        if self._turn is not None:
            texts.append(self._turn.answer)
        return set().union(*(words & spoken for spoken in (self._about, *map(words_in, texts))))

    def _feel(self, words: str, own: str) -> None:
        if self.episode is not None:
            if self._finds_fault(words, self.episode.answer):
                self.episode.take_feedback("negative", own)
            elif is_thanks(words):
                self.episode.take_feedback("positive", own)

    @staticmethod
    def _finds_fault(words: str, answer: str) -> bool:
        """Whether words complain of what was answered before them. To a question "no" is no complaint."""
        return is_complaint(words) and not (answer.rstrip().endswith("?") and says_no(words))

    def _about_prompt(self, text: str) -> str:
        return self._assert.nth(prompt_about(text))

    def _say(
        self,
        placed: OrderedEvent,
        text: str,
        words: str,
        kind: PromptKind,
        start: int = 0,
        end: int | None = None,
        about: str = "",
    ) -> Prompted:
        if (episode := self.episode_of(placed)) is not None:
            episode.prompts += 1
            episode.touch(placed.when)
        span = span_of(placed, text, start, end)
        about = about or self._about_prompt(text)
        by_user = RIGHTS[attributed(Provenance.USER_TYPED, placed.event.actor)].as_users
        said = words[:LONGEST_TEXT]
        alone = said_in(text).alone
        return self._assert.make(
            Prompted, placed, about, span, text=said, kind=kind, task=self.task, by_user=by_user, alone=alone
        )

    def decided(
        self,
        placed: OrderedEvent,
        span: Span,
        decision: Decision,
        said_by: Provenance,
        *,
        kind: DecisionKind = "choice",
        stated: bool = False,
        planned: bool = False,
    ) -> None:
        """Somebody settled on something, as the characters of the span say."""
        self._assert.note(
            DecisionTaken,
            placed,
            span,
            text=decision.text,
            rationale=decision.rationale,
            said_by=said_by,
            kind=kind,
            alternatives=decision.alternatives,
            stated=stated,
            task=self.task,
        )
        if (episode := self.episode_of(placed)) is not None:
            episode.decided(decision.text, decision.rationale, said_by, kind, planned=planned)

    def _claimed(
        self, placed: OrderedEvent, text: str, offset: int, about: str, said_by: Provenance, claims: Iterable[Claim]
    ) -> None:
        """Assert claims that somebody's words make, which stand in `text` from `offset` on."""
        for claim in claims:
            span = span_of(placed, text, offset + claim.start, offset + claim.end)
            self._assert.make(
                InsightFound,
                placed,
                f"{about}:{claim.canonical}",
                span,
                kind=claim.kind,
                text=claim.text,
                canonical=claim.canonical,
                subject=claim.subject,
                confidence=claim.confidence,
                said_by=said_by,
                polarity=claim.polarity,
                rule=claim.rule,
                everywhere=claim.everywhere and RIGHTS[said_by].crosses and not self._assert.confined,
                member=member_of(placed.event.actor),
                location=self._assert.home,
            )

    # --- the agent ---

    def answered(self, placed: OrderedEvent, seen: ResponseReceived) -> None:
        """The agent said something aloud."""
        if seen.text.strip() == _NO_WORDS:
            return
        span = span_of(placed, seen.text)
        prompt = self._turn.prompt.id if self._turn is not None else None
        text = seen.text[:LONGEST_TEXT]
        self._assert.note(Answered, placed, span, text=text, prompt=prompt, model=seen.model)
        if seen.subagent:
            return
        if (turn := self._turn_of(placed)) is not None:
            if not turn.answers and concedes(text):
                self._correct(self._turn_before)
            turn.answered(AnswerGiven(text, span, seen.message))
            if turn not in self._turns:
                self._turns = [*self._turns[1 - MOST_TURNS :], turn]
        if (episode := self.episode_of(placed)) is not None:
            episode.said(seen.text, span)
            episode.touch(placed.when)

    def called(self, placed: OrderedEvent, seen: ToolCalled) -> None:
        """The agent used a tool."""
        if (turn := self._turn_of(placed)) is not None and not seen.subagent:
            turn.called(seen.message)

    def went_on(self, location: str) -> None:
        """Something happened there: what is open has to do with that place, too."""
        turn, episode = self._turn, self.episode
        if turn is not None and location != turn.prompt.location and (more := with_place(turn.elsewhere, location)):
            turn.elsewhere, turn.dirty = more, True
        if episode is not None and location != episode.location and (more := with_place(episode.elsewhere, location)):
            episode.elsewhere, episode.dirty = more, True

    def worked_on(self, placed: OrderedEvent, path: str) -> None:
        turn = self._turn_of(placed)
        if turn is not self._turn:
            return
        if self._plan is not None and not self._plan.goes_on(path):
            self._plan = None
        if turn is not None and path not in turn.files:
            turn.files[path] = None
            turn.dirty = True

    # --- tasks ---

    def _open(self, placed: OrderedEvent, text: str, said: Said, about: str, start: int, end: int) -> None:
        description = description_of(said.words)
        canonical = canonical_of(description)
        location = self._assert.location
        self._about = set()
        self.episode = EpisodeSoFar(
            id=fact_id(self._assert.stream, "episode", about),
            stream=self._assert.stream,
            task=task_key(location, canonical),
            canonical=canonical,
            description=description,
            task_type=task_type_of(said.words, description),
            began=placed.when,
            location=location,
            opening=span_of(placed, text, start, end),
            through=through(placed.event.actor),
            once=quote_hash(f"{once} {canonical}") if (once := self._assert.once_by(placed.event.actor)) else "",
            ended=placed.when,
            recalls=self._recalls_before(),
        )
        if self.episode.task_type == "bugfix" and len(said.words) <= LONGEST_PROMPT:
            self.episode.spoken_of = _error_in(said.words)

    def task_started(self, placed: OrderedEvent, stated: TaskStarted) -> None:
        """Somebody said which task it is: the one that this turn's prompt has opened, else one that begins here. What
        comes through another's key changes nothing while a task is open."""
        if self.episode is not None and self.episode_of(placed) is None:
            return
        description = description_of(stated.description)
        canonical = canonical_of(description)
        task_type = stated.task_type or task_type_of(stated.description, description)
        span = quote(placed.cite, stated.description, field="description")
        episode = self.episode
        if episode is not None and (episode.canonical == canonical or self._just_opened(episode)):
            # The rule's finding and this are one task.
            self._about_task = self._about_task or str(placed.cite)
            episode.canonical, episode.description, episode.task_type = canonical, description, task_type
            episode.task = task_key(episode.location, canonical)
            episode.stated = episode.dirty = again = True
        else:
            again = False
            self._close(placed, by="statement")
            self._about_task = str(placed.cite)
            location = self._assert.location
            self.episode = episode = EpisodeSoFar(
                id=fact_id(self._assert.stream, "episode", self._about_task),
                stream=self._assert.stream,
                task=task_key(location, canonical),
                canonical=canonical,
                description=description,
                task_type=task_type,
                began=placed.when,
                location=location,
                opening=span,
                through=through(placed.event.actor),
                ended=placed.when,
                stated=True,
                recalls=self._recalls_before(),
            )
        self._opened(placed, span, again=again, stated_by=by_actor(placed.event.actor))

    def _recalls_before(self) -> Recalls:
        recalls, self._recalls = self._recalls, Recalls()
        return recalls

    def _just_opened(self, episode: EpisodeSoFar) -> bool:
        return episode.prompts == 1 and not episode.stated

    def task_completed(self, placed: OrderedEvent, stated: TaskCompleted) -> None:
        """Somebody said that the open task is over."""
        if self.episode_of(placed) is None or self.episode is None:
            return
        if stated.outcome != "unknown":
            user = placed.event.actor == "user"
            why = f"the {'user' if user else 'agent'} said so" + (f": {stated.note}" if stated.note else "")
            self.episode.stated_outcome = Verdict(stated.outcome, why, CERTAIN if user else SAID)
        self.episode.touch(placed.when)
        self._close(placed, by="statement")

    def _opened(
        self, placed: OrderedEvent, *spans: Span, again: bool = False, stated_by: Provenance | None = None
    ) -> None:
        episode = self.episode
        assert episode is not None
        self._assert.make(
            TaskOpened,
            placed,
            self._about_task,
            *spans,
            location=episode.location,
            task=episode.task,
            canonical=episode.canonical,
            description=episode.description,
            task_type=episode.task_type,
            again=again,
            stated_by=stated_by,
        )

    def _close(self, placed: OrderedEvent, by: str = "next_prompt") -> None:
        episode = self.episode
        if episode is None:
            return
        episode.closed_by = by
        self._report(episode)
        closed = self._outcomes.conclude(episode, closed=True)
        self._assert.make(
            TaskClosed,
            placed,
            str(episode.id),
            task=episode.task,
            canonical=episode.canonical,
            outcome=closed.outcome,
            by=by,
            location=episode.location,
            recalled=episode.recalls.recalled,
        )
        self.episode = None
        self._turns = []

    def _report(self, episode: EpisodeSoFar) -> None:
        """Note what the open task's work settles if it comes to good: what it was planned to be, and what the agent
        says of it where it changed a file and the user let that stand; and what it found."""
        plan, stands = self._plan, [turn for turn in self._turns if not turn.corrected]
        planned = points_of(plan.text) if plan is not None and plan.files and plan.episode == episode.id else ()
        found = found_in_work([turn.report for turn in stands])
        of_work = [each for each in found if each.of_work and episode.files]
        episode.awaiting = (
            *(EpisodeDecision(clipped(each.text, DECISION)) for each in planned),
            *(EpisodeDecision(clipped(each.text, DECISION), kind=each.kind) for each in of_work),
        )
        episode.findings = tuple(
            EpisodeDecision(clipped(each.text, DECISION), kind=each.kind) for each in found if not each.of_work
        )

    def _correct(self, turn: OpenTurn | None) -> None:
        """What a turn came to was not let stand. One that only asked, or came to nothing, has nothing to correct."""
        if turn is not None and not turn.corrected and turn.answer and not turn.answer.rstrip().endswith("?"):
            turn.corrected = True
            self._assert.add(turn.fact())

    def _end_turn(self) -> None:
        if self._turn is not None:
            turn, self._turn = self._turn, None
            self._turn_before = turn
            if turn.dirty:
                self._hand_out(turn)

    def _hand_out(self, turn: OpenTurn) -> None:
        fact = turn.fact()
        self._assert.add(fact)
        self._assert.add(turn.held(fact))


def _error_in(words: str) -> str:
    """The first error of a named type that a user's words hold, on one line; empty where they hold none."""
    for error in errors_in(words, "", failed=True):
        if any(_NAMED.search(name) for name in error.error_types):
            return one_line(error.message, 300)
    return ""


_NAMED = patterns.compile(r"\w(?:Error|Exception)$|^panic$|^[A-Z]+\d+$")
