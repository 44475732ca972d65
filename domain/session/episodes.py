"""One task's work in one session: what is gathered while it goes on, and how it ended."""

from typing import Literal
from uuid import UUID

import msgspec

from memctl.domain.events.event import Micros
from memctl.domain.events.facts import (
    DecisionKind,
    Episode,
    EpisodeDecision,
    FilePatch,
    Outcome,
    Pivot,
    Span,
    TaskType,
    ToolTally,
)
from memctl.domain.events.open_threads import Thread, threads_of
from memctl.domain.events.processor_events import EpisodeDistilled, TrajectoryJudged
from memctl.domain.events.recalls import Recalls
from memctl.domain.failures.explanations import links, sentences
from memctl.domain.knowledge.memory import first_sentences
from memctl.domain.language.decisions import asks_again
from memctl.domain.language.prompts import words_in
from memctl.domain.language.summaries import account_of, gist_of, is_politeness, says_done
from memctl.domain.session.outcome_rules import UNCONTRADICTED, Signs, Verdict, verdict_of
from memctl.domain.support import patterns
from memctl.domain.support.bounded import clipped, one_line
from memctl.domain.support.provenance import RIGHTS, Provenance

FILES, PATCHES, NAMES, LINES = 32, 24, 30, 10
"""How many files, patches, names (symbols, signatures, steps of the plan) and lines (decisions, pivots) are kept."""

SETTLED = 32
"""Decisions of an episode, with what its work came to."""

DECISION = 700
"""Characters of a decision: a question with what was answered, what a commit says, or a finding."""

PIVOT_STEPS = 5
"""More steps than this between one error and the next are a change of strategy."""

SUBJECTS = 3
"""Commits that say what was done where no words do."""

CERTAIN = 1.0
"""Confidence in an outcome that a person stated."""

ACCOUNT, LATER, WHOLE = 300, 140, 460
"""Characters of what was done: in answer to one prompt, to others, and in all."""

SHORT_COMMAND = 70
"""Characters of a command that somebody may want to use again."""

_CORRECTS = patterns.compile(
    r"\b(?:don'?t|do not|never|always|instead|should(?:n'?t)?|must|use|only|not|without|rather|make sure|keep|revert|"
    r"undo)\b|"
    r"말고|하지 ?마|대신|항상|써야|해야",
    patterns.I,
)
_ASKS = patterns.compile(r"\?|https?://|\b(?:should|shall|can|could) (?:we|i|you)\b", patterns.I)
_TYPES: dict[str, TaskType] = {
    "feat": "feature", "fix": "bugfix", "docs": "docs", "refactor": "refactor", "test": "test", "chore": "chore",
}  # fmt: skip
_TYPED = patterns.compile(rf"({'|'.join(_TYPES)})(?:\([^)]*\))?!?: ")
"""A commit by Conventional Commits."""
_DOCUMENT = patterns.compile(r"\.(?:md|mdx|rst|adoc)$", patterns.I)


class _Patch(msgspec.Struct):
    """What was done to one file so far; `names` are those that the changed text defines, in order."""

    added: int = 0
    removed: int = 0
    created: bool = False
    edits: int = 0
    names: dict[str, None] = msgspec.field(default_factory=dict)

    def shown(self, path: str) -> FilePatch:
        done = "created" if self.created else f"{self.edits} edits" if self.edits > 1 else "1 edit"
        names = list(self.names)
        about = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        description = f"{done}: {about}" if about else done
        return FilePatch(path, self.added, self.removed, self.created, self.edits, clipped(description, 160))


class EpisodeSoFar(Signs, kw_only=True):
    """An open episode. Times in microseconds; `steps` counts uses of tools."""

    id: UUID
    stream: str
    task: str
    canonical: str
    description: str
    task_type: TaskType
    began: Micros
    location: str
    opening: Span
    through: str = ""
    """The member through whose key it was opened. What comes through another's is none of its work."""
    elsewhere: tuple[str, ...] = ()
    once: str = ""
    """What copies of it in other sessions have in common: the line and the words that opened it."""
    ended: Micros = Micros(0)
    prompts: int = 0
    files: dict[str, _Patch] = msgspec.field(default_factory=dict)
    symbols: dict[str, None] = msgspec.field(default_factory=dict)
    error_types: dict[str, None] = msgspec.field(default_factory=dict)
    signatures: dict[str, None] = msgspec.field(default_factory=dict)
    tools: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    plan: tuple[tuple[str, str], ...] = ()
    decisions: list[EpisodeDecision] = msgspec.field(default_factory=list)
    awaiting: tuple[EpisodeDecision, ...] = ()
    """What the work settles if it comes to good."""
    findings: tuple[EpisodeDecision, ...] = ()
    """What it found, if nobody finds fault with it."""
    pivots: list[Pivot] = msgspec.field(default_factory=list)
    written_at: int | None = None
    """Uses of tools before the last change of any file, `changed_at` before that of one that the work is judged by."""
    added: int = 0
    removed: int = 0
    errors: int = 0
    error_at: int | None = None
    subjects: dict[str, None] = msgspec.field(default_factory=dict)
    """Of the commits that were made."""
    stated: bool = False
    """The task was stated, not read out of a prompt."""
    stated_outcome: Verdict | None = None
    """What somebody stated of the outcome, and in which words; a person is certain of it."""
    cause: str = ""
    """The cause that was found last."""
    spoken_of: str = ""
    """The error that the opening words hold."""
    found: dict[str, str] = msgspec.field(default_factory=dict)
    """Errors that came up before anything was changed, with their messages: what there was to mend."""
    mended: str = ""
    """The first of those that was resolved."""
    approach: str = ""
    gotchas: dict[str, None] = msgspec.field(default_factory=dict)
    tips: dict[str, None] = msgspec.field(default_factory=dict)
    recalls: Recalls = msgspec.field(default_factory=Recalls)
    """The memories that were injected in it."""
    left: bool = False
    """The session ended in it, and may go on with it."""
    closed_by: str = ""
    """What closed it for good."""
    passed: dict[str, None] = msgspec.field(default_factory=dict)
    """Commands of the project's own that passed since something was changed or committed, the last that did last."""
    checked_at: int | None = None
    """Uses of tools before the last of them."""
    lessons: set[str] = msgspec.field(default_factory=set)
    """Keys of what it taught by rule."""
    answered: Span | None = None
    summary: str = ""
    """The longest of the agent's words after the last change, up to the next prompt."""
    summary_at: int = 0
    summary_prompts: int = 0
    """How many prompts there had been by then."""
    accounts: dict[str, None] = msgspec.field(default_factory=dict)
    """What the agent said that it did in answer to earlier prompts."""
    tokens: int = 0
    dirty: bool = True

    def touch(self, when: Micros) -> None:
        if when > self.ended:
            self.ended = when
        self.dirty = True

    def used(self, tool: str, *, ok: bool) -> None:
        uses, failures = self.tools.get(tool, (0, 0))
        self.tools[tool] = (uses + 1, failures + (not ok))
        self.steps += 1

    def changed(
        self, path: str, added: int, removed: int, symbols: tuple[str, ...], *, created: bool, scratch: bool
    ) -> None:
        """A file was changed. One of the session's own trials (`scratch`) is none that the work is judged by."""
        path = clipped(path, 200)
        if path in self.files or len(self.files) < FILES:
            patch = self.files.setdefault(path, _Patch())
            patch.added += added
            patch.removed += removed
            patch.created = patch.created or created
            patch.edits += 1
            _keep(patch.names, symbols, LINES)
        _keep(self.symbols, symbols, NAMES)
        self.files_changed = len(self.files)
        self.added += added
        self.removed += removed
        self.written_at = self.steps
        if not scratch:
            self.changed_at = self.steps

    def erred(self, signature: str, types: tuple[str, ...], message: str, *, matters: bool) -> None:
        """An error came up. It `matters` where it is what the work is judged by, not a slip on the way."""
        _keep(self.error_types, types, NAMES)
        _keep(self.signatures, (signature,), NAMES)
        if self.written_at is None and len(self.found) < NAMES:
            self.found.setdefault(signature, one_line(message, 200))
        if matters and len(self.unresolved) < NAMES:
            self.unresolved[signature] = message[:200]
        if self.error_at is not None and self.steps - self.error_at > PIVOT_STEPS:
            first = message.split("\n", 1)[0]
            self.pivot("Strategy change after errors", f"{self.steps - self.error_at} steps on: {first}")
        self.errors += 1
        self.error_at = self.steps

    def resolve(self, signature: str, message: str, approach: str, explanation: str, *, scratch: bool) -> None:
        """An error was resolved; one of what the session tried for itself (`scratch`) is none that the work is judged
        by."""
        self.unresolved.pop(signature, None)
        if not scratch:
            _keep(self.resolved, (signature,), NAMES)
        first = clipped(message.split("\n", 1)[0], 140)
        self.approach = approach
        if approach.startswith("ran `") and "` instead of `" in approach:
            works, _, fails = approach.removeprefix("ran ").partition(" instead of ")
            if max(len(works), len(fails)) <= SHORT_COMMAND and "<<" not in approach:
                _keep(self.tips, (f"{works} works here, {fails} does not ({first})",), LINES // 2)
            return
        if first.endswith(":"):
            return  # a message that only announces what came up
        self.mended = self.mended or self.found.get(signature, "")
        why = gist_of("\n".join(filter(links, sentences(explanation))), 180)
        if why and not any(gotcha.endswith(why) for gotcha in self.gotchas):
            _keep(self.gotchas, (f"{first} → {why}",), LINES // 2)

    def said(self, text: str, span: Span) -> None:
        """The agent spoke: its last words, and the fullest since the last change. "You're welcome" answers nothing."""
        if self.answer and is_politeness(text):
            return
        self.answer, self.answered, self.answered_at = text[:2_000], span, self.steps
        # What is said to a later prompt, with nothing changed since, answers another question.
        longer = len(text) > len(self.summary) and self.prompts == self.summary_prompts
        if longer or self.summary_at < (self.written_at or 0):
            if self.prompts != self.summary_prompts and not self.subjects:
                _keep(self.accounts, (account_of(self.summary, LATER),), LINES)
            self.summary, self.summary_at, self.summary_prompts = text[:2_000], self.steps, self.prompts

    def went_through(self, step: str) -> None:
        """A command of the project's own passed."""
        self.passed.pop(step, None)
        self.passed[step] = None
        self.checked_at = self.steps
        if len(self.passed) > NAMES:
            del self.passed[next(iter(self.passed))]

    def committed(self, subject: str) -> None:
        """A commit was made, or pushed (then without a subject)."""
        self.committed_at = self.steps
        self.passed.clear()
        _keep(self.subjects, (clipped(subject, 140),), SUBJECTS)

    def decided(
        self, text: str, rationale: str, said_by: Provenance, kind: DecisionKind = "choice", *, planned: bool = False
    ) -> None:
        self.dirty = True  # a statement does nothing else to it
        if kind == "cause":
            self.cause = clipped(text, DECISION)
        if RIGHTS[said_by].as_users:  # what is answered to a question takes the place of an earlier answer to it
            self.decisions = [each for each in self.decisions if not asks_again(each.text, text)]
        decision = EpisodeDecision(clipped(text, DECISION), said_by, kind)
        if len(self.decisions) < LINES and decision not in self.decisions:
            self.decisions.append(decision)
            if not planned:  # what was planned before the work is no turn of it
                self.pivot(f"{'Cause' if kind == 'cause' else 'Decision'}: {text}", rationale)

    def pivot(self, description: str, reason: str) -> None:
        """Descriptions are cut at 50 characters, reasons at 100."""
        if len(self.pivots) < LINES:
            self.pivots.append(Pivot(self.steps, one_line(description, 50), one_line(reason, 100)))

    def take_feedback(self, feedback: Literal["positive", "negative"], own: str) -> None:
        """The user was content or not; only their own word becomes a tip."""
        self.feedback = feedback
        self.feedback_at = self.steps
        if feedback == "negative" and self.steps:
            first = first_sentences(own.strip(), 160)
            if len(first) >= 20 and _CORRECTS.search(first) and not _ASKS.search(first):
                _keep(self.tips, (f"The user: {first}",), LINES // 2)

    def _problem(self) -> str:
        """What was wrong. An error on the way is the problem only where the task was to mend something."""
        return self.cause or self.spoken_of or (self.mended if self.task_type == "bugfix" else "")

    def _solution(self) -> str:
        if self.written_at is None:
            return "; ".join(self.subjects)  # git itself changed what was committed
        account = account_of(self.summary, ACCOUNT)
        # Of what was said later, nothing having been changed, only what it says was done.
        since = self.prompts > self.summary_prompts
        more = self.answer != self.summary and (since or not account)
        later = account_of(self.answer, LATER if account else ACCOUNT, sure=since) if more else ""
        # Why something failed, or what was run instead, is no solution of the whole work.
        words = self.approach.partition(" (edited ")[0]
        if not (account or later) and says_done(words) and not words.startswith("ran "):
            account = self.approach
        if self.subjects:
            # Commit messages describe all that was committed. What was said beside them must be about the same.
            committed = "; ".join(self.subjects)
            about = words_in(f"{self.description} {committed}")
            beside = next((each for each in (account, later) if about & words_in(each)), "")
            return f"{committed} — {beside}" if beside else committed
        parts = [*self.accounts, account or later, *((later,) if account and since else ())]
        while len(parts) > 2 and sum(map(len, parts)) > WHOLE:
            del parts[1]
        return " ".join(filter(None, parts))

    def _type(self) -> TaskType:
        """What sort of work it was: what a question led to, as its commit says; documents, where only those changed."""
        files = [path for path in self.files if "/.claude/plans/" not in path]
        asked = self.task_type
        if asked in ("question", "unknown"):
            committed = next((_TYPES[kind[1]] for subject in self.subjects if (kind := _TYPED.match(subject))), None)
            if committed is not None:
                return committed
        if asked in ("feature", "bugfix", "unknown", "question") and files and all(map(_DOCUMENT.search, files)):
            return "docs"
        return "unknown" if asked == "question" and files else asked

    def _threads(self, outcome: Outcome, why: str) -> tuple[Thread, ...]:
        """What is left open, as long as nobody goes on with something else."""
        if self.stated_outcome is not None and outcome == "success":
            return ()
        worked_after = self.steps > self.answered_at
        return threads_of(self.answer, self.plan, self.unresolved, worked_after=worked_after, outcome=outcome, why=why)

    def _plan_summary(self) -> str:
        if not self.plan:
            return ""
        left = [text for status, text in self.plan if status != "completed"]
        steps = f"{len(self.plan) - len(left)} of {len(self.plan)} steps done"
        return clipped(f"{steps}; left: {'; '.join(left)}" if left else steps, 300)

    def ended_by(self) -> str:
        """What ended the work so far; empty while it goes on."""
        if self.closed_by:
            return self.closed_by
        if self.committed_at is not None and self.committed_at >= (self.changed_at or 0):
            return "commit"
        if self.feedback != "neutral" and self.steps <= self.feedback_at:
            return "verdict"
        return "session_end" if self.left else ""

    def _accepted(self, confidence: float, *, closed: bool) -> bool:
        """Whether more than the agent's word says that the work came to good: what was run, the user going on to
        something else or leaving, or a check of the project's own that passed after the last change."""
        checked = self.passed and self.checked_at is not None and self.checked_at >= (self.changed_at or 0)
        return closed or self.left or bool(checked) or confidence > UNCONTRADICTED

    def _decisions(self, problem: str, *, accepted: bool, outcome: Outcome) -> tuple[EpisodeDecision, ...]:
        """What was settled; with what the work came to, where it came to good, and what it found."""
        more = ((*self.awaiting, *self.findings) if accepted else self.findings) if outcome == "success" else ()
        found = dict.fromkeys((*self.decisions, *more))
        return tuple(each for each in found if (each.kind, each.text) != ("cause", clipped(problem, DECISION)))[
            :SETTLED
        ]

    def complexity(self) -> float:
        """0 to 1: steps (full at 60), files (at 12), errors (at 8)."""
        parts = 0.5 * min(self.steps / 60, 1) + 0.3 * min(len(self.files) / 12, 1) + 0.2 * min(self.errors / 8, 1)
        return round(parts, 3)

    def _verdict(self, judged: TrajectoryJudged | None, *, closed: bool) -> Verdict:
        """How it went: by a person's word, else a judge's, else the agent's, else the rule. A judge that points at
        nothing of the work guesses: it counts where the rule says nothing."""
        stated = self.stated_outcome
        if stated is not None and (judged is None or stated.confidence == CERTAIN):
            return stated
        by_rule = verdict_of(self, closed=closed)
        if judged is None or (not judged.evidence and by_rule.confidence > 0):
            return stated or by_rule
        said = f"judged by {clipped(judged.made_by, 60)}" if judged.made_by else "judged"
        return Verdict(judged.outcome, f"{said}: {judged.why}" if judged.why else said, judged.confidence)

    def fact(
        self,
        *,
        closed: bool,
        judged: TrajectoryJudged | None = None,
        distilled: EpisodeDistilled | None = None,
    ) -> Episode:
        outcome, why, confidence = self._verdict(judged, closed=closed)
        distilled = distilled or EpisodeDistilled(episode=self.id)
        problem = distilled.problem or self._problem()
        return Episode(
            through=self.through,
            id=self.id,
            stream=self.stream,
            occurred_at=self.began,
            location=self.location,
            elsewhere=self.elsewhere,
            once=self.once,
            evidence=(self.opening, self.answered) if self.answered is not None else (self.opening,),
            task=self.task,
            canonical=self.canonical,
            closed=closed,
            description=self.description,
            task_type=self._type(),
            ended_at=self.ended,
            steps=self.steps,
            outcome=outcome,
            why=why,
            confidence=round(confidence, 3) + 0.0,
            complexity=self.complexity(),
            files=tuple(self.files),
            symbols=tuple(self.symbols),
            error_types=tuple(self.error_types),
            signatures=tuple(self.signatures),
            resolved=tuple(self.resolved),
            tools=tuple(
                ToolTally(clipped(tool, 60), uses, failures)
                for tool, (uses, failures) in sorted(self.tools.items(), key=lambda item: (-item[1][0], item[0]))[
                    :NAMES
                ]
            ),
            plan=tuple(clipped(text, 140) for _, text in self.plan[:NAMES]),
            plan_summary=self._plan_summary(),
            decisions=self._decisions(problem, accepted=self._accepted(confidence, closed=closed), outcome=outcome),
            pivots=tuple(self.pivots),
            patches=tuple(patch.shown(path) for path, patch in list(self.files.items())[:PATCHES]),
            lines_added=self.added,
            lines_removed=self.removed,
            tests_passed=self.tests_passed,
            feedback=self.feedback,
            problem=problem,
            solution=distilled.solution or self._solution(),
            gotchas=_cut(distilled.gotchas) or tuple(self.gotchas),
            tips=_cut(distilled.tips) or tuple(self.tips),
            answer=clipped(self.answer, 2_000),
            tokens=self.tokens,
            ended_by=self.ended_by(),
            recalled=self.recalls.recalled,
            threads=() if closed else self._threads(outcome, why),
        )


def _cut(lines: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(clipped(line, 300) for line in lines[:LINES])


def _keep(names: dict[str, None], more: tuple[str, ...], limit: int) -> None:
    for name in more:
        if len(names) >= limit:
            return
        if name:
            names[clipped(name, 300)] = None
